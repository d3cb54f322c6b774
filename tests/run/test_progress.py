# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The line that a long compile has on a terminal."""

from __future__ import annotations

import io
import re
import threading
import time
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import shlo_disc
from shlo_disc.lowering import progress
from shlo_disc.lowering.progress import showing, tell, watching
from shlo_disc.shape_dialect.compile_state import current_compile


class Terminal(io.StringIO):
    """A stream that is one."""

    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        """The texts that it has shown, one after the other."""
        return [line.rstrip() for line in self.getvalue().split("\r") if line.strip()]

    def left(self) -> str:
        """The visible text: later text is written over earlier text from the beginning of the line on."""
        shown: list[str] = []
        for text in self.getvalue().split("\r"):
            shown[: len(text)] = text
        return "".join(shown).rstrip()


def as_stderr(monkeypatch: pytest.MonkeyPatch, stream: Any) -> None:
    """A stream as standard error. Pytest puts its own there between a fixture and the test."""
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error, with a line at once and for each turn of the scheduler."""
    stream = Terminal()
    as_stderr(monkeypatch, stream)
    monkeypatch.setattr(progress, "AFTER", 0.0)
    monkeypatch.setattr(progress, "EVERY", 0.001)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("SHLO_DISC_PROGRESS", raising=False)
    return stream


def f(x: jax.Array) -> jax.Array:
    return jnp.sort(jnp.cumsum(jax.nn.softmax(x), axis=0))


def compiled(**options: Any) -> None:
    shlo_disc.compile(f, args=(("b, 7", "float32"),), options=shlo_disc.Options(**options))


def test_a_line_for_each_stage_that_is_gone_in_the_end(monkeypatch: pytest.MonkeyPatch, terminal: Terminal) -> None:
    """Kernels are made more slowly here, for a stage of a few milliseconds has no line where the machine is busy."""
    advance = progress.advance

    def slowly() -> None:
        advance()
        time.sleep(0.05)

    monkeypatch.setattr(progress, "advance", slowly)
    compiled()
    stages = {re.fullmatch(r"compiling f: (\w+)(?:, \d of \d)?, \d+ s", line)[1] for line in terminal.lines()}  # type: ignore[index]
    assert {"import", "kernels", "codegen"} <= stages
    assert "\n" not in terminal.getvalue() and terminal.left() == "" and terminal.getvalue().endswith("\r")


def test_kernels_are_counted(monkeypatch: pytest.MonkeyPatch, terminal: Terminal) -> None:
    counts: list[tuple[int, int]] = []
    advance = progress.advance

    def counted() -> None:
        advance()
        line = current_compile().progress
        assert line is not None and line.stage == "kernels"
        counts.append((line.done, line.total))

    monkeypatch.setattr(progress, "advance", counted)
    compiled()
    assert counts == [(n, len(counts)) for n in range(1, len(counts) + 1)] and len(counts) > 1


def test_a_short_compile_has_none(monkeypatch: pytest.MonkeyPatch, terminal: Terminal) -> None:
    monkeypatch.setattr(progress, "AFTER", 60.0)
    compiled()
    assert terminal.getvalue() == ""


def test_it_can_be_turned_off(monkeypatch: pytest.MonkeyPatch, terminal: Terminal) -> None:
    compiled(progress=False)
    monkeypatch.setenv("SHLO_DISC_PROGRESS", "0")
    compiled()
    assert terminal.getvalue() == ""
    compiled(progress=True)
    assert terminal.getvalue() != ""


def test_where_nobody_looks_there_is_none(monkeypatch: pytest.MonkeyPatch, terminal: Terminal) -> None:
    threads = threading.active_count()
    streams: list[Any] = [io.StringIO(), None, object(), io.TextIOWrapper(io.BytesIO())]
    for stream in streams:
        as_stderr(monkeypatch, stream)
        with showing("f"):
            assert threading.active_count() == threads
    as_stderr(monkeypatch, terminal)
    monkeypatch.setenv("TERM", "dumb")
    compiled()
    assert terminal.getvalue() == streams[0].getvalue() == ""


def test_a_notebook_has_it(monkeypatch: pytest.MonkeyPatch, terminal: Terminal) -> None:
    notebook = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    as_stderr(monkeypatch, notebook)
    compiled()
    assert "compiling f: codegen" in notebook.getvalue() and notebook.getvalue().endswith("\r")


def test_who_watches_shows_it(terminal: Terminal) -> None:
    with watching(lambda stage, seconds: None):
        compiled()
    assert terminal.getvalue() == ""


def test_one_line_at_a_time(terminal: Terminal) -> None:
    with showing("outer"), showing("inner"):
        tell("plan")
        time.sleep(0.1)
    assert {line.split(",")[0] for line in terminal.lines()} <= {"compiling outer: import", "compiling outer: plan"}
    assert terminal.lines()


def test_an_error_erases_it_as_well(terminal: Terminal) -> None:
    with pytest.raises(ZeroDivisionError), showing("f"):
        time.sleep(0.1)
        _ = 1 // 0
    assert terminal.lines() and terminal.left() == ""
    with showing("g"):
        time.sleep(0.1)
    assert any(line.startswith("compiling g: ") for line in terminal.lines())


def test_a_narrow_terminal_has_one_line_too(monkeypatch: pytest.MonkeyPatch, terminal: Terminal) -> None:
    monkeypatch.setattr(progress, "_columns", lambda stream: 20)
    with showing("a_function_of_a_long_name"):
        time.sleep(0.1)
    assert max(map(len, terminal.lines())) == 19
