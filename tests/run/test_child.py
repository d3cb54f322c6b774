# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that may end: they are started again, and what ended them is told."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator

import pytest

from shlo_disc.importer.child import Child, ChildEnded


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    made = Child("tests.run.faults.echo")
    yield made
    made.close()


def pid_of(child: Child) -> int:
    return int(child.ask({})[0]["pid"])


def test_what_is_asked_comes_back(child: Child) -> None:
    first = pid_of(child)
    data = os.urandom(3 << 20)
    said, made = child.ask({"words": ["one", {"two": 2}]}, data)
    assert said == {"words": ["one", {"two": 2}], "pid": first} and made == data


def test_an_end_is_told_and_the_next_request_answered(child: Child) -> None:
    first = pid_of(child)
    with pytest.raises(ChildEnded) as caught:
        child.ask({"exit": 3, "say": "LLVM ERROR: out of memory"})
    assert str(caught.value) == "exit status 3: LLVM ERROR: out of memory" and caught.value.wants_memory
    second = pid_of(child)
    assert second != first
    os.kill(second, signal.SIGKILL)
    while child._process.is_alive:
        pass
    assert pid_of(child) not in (first, second)  # nobody was told: nothing was asked meanwhile


def test_a_signal_and_the_time_limit(child: Child) -> None:
    pid = pid_of(child)
    timer = threading.Timer(0.2, os.kill, (pid, signal.SIGSEGV))
    timer.start()
    with pytest.raises(ChildEnded) as caught:
        child.ask({"sleep": 60})
    assert caught.value.how == "SIGSEGV" and caught.value.status == -signal.SIGSEGV
    with pytest.raises(ChildEnded) as caught:
        child.ask({"sleep": 60}, seconds=1.0)
    assert caught.value.status is None and str(caught.value) == "the time limit"
    assert not child._process.is_started


def test_memory_is_limited_for_a_request(child: Child) -> None:
    assert child.ask({"take": 1 << 30})[0]["memory"] is False
    assert "take" in child.ask({"take": 1 << 20})[0]


def test_a_forked_process_has_a_child_of_its_own(child: Child) -> None:
    first = pid_of(child)
    forked = os.fork()
    if forked == 0:
        is_own = pid_of(child) != first
        child.close()
        os._exit(0 if is_own else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 0
    assert pid_of(child) == first


def test_requests_of_many_threads_do_not_mix(child: Child) -> None:
    wrong: list[int] = []

    def ask(number: int) -> None:
        said, made = child.ask({"number": number}, str(number).encode())
        if said["number"] != number or made != str(number).encode():
            wrong.append(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_process_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(OSError, match="No such file"):
        Child("tests.run.faults.echo").ask({})
