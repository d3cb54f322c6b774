# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Answers of the plugin's compiler in a store that machines share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shlo_disc.driver.cache import shared
from shlo_disc.pjrt import server

PARTS = [b"program", b"more"]


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The programs that were compiled, on any machine."""
    found: list[bytes] = []

    def work(request: server.Request) -> server.Answer:
        found.append(request.parts[0])
        return {"symbols": [1, 2]}, PARTS

    monkeypatch.setitem(server._TASKS, "compile", work)
    (tmp_path / "key").write_bytes(bytes(32))
    (tmp_path / "key").chmod(0o400)
    monkeypatch.setenv("SHLO_DISC_CACHE_KEY_FILE", str(tmp_path / "key"))
    monkeypatch.setenv("SHLO_DISC_CACHE_STORE", str(tmp_path / "store"))
    return found


def ask(directory: Path, monkeypatch: pytest.MonkeyPatch, key: str = "k") -> Any:
    """The answer on a machine with this cache directory."""
    monkeypatch.setattr(server, "_directory", str(directory))
    found = server.answer({"task": "compile", "sizes": [3], "functions": 0, "key": key}, b"abc")
    shared.flush_stores()
    return found


def test_a_second_machine_does_not_compile(
    compiled: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = ask(tmp_path / "first", monkeypatch), ask(tmp_path / "second", monkeypatch)
    assert first == second == ({"symbols": [1, 2], "sizes": [7, 4]}, b"programmore")
    assert compiled == [b"abc"]
    (kept,), (other,) = ([*(tmp_path / name).iterdir()] for name in ("first", "second"))
    assert kept.read_bytes() == other.read_bytes()
    ask(tmp_path / "second", monkeypatch, key="l")
    assert len(compiled) == 2


def test_answers_of_other_compilers_and_altered_ones_are_replaced(
    compiled: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(tmp_path / "first", monkeypatch)
    monkeypatch.setattr(server, "package_digest", lambda: "of other sources")
    assert ask(tmp_path / "second", monkeypatch)[1] == b"programmore" and len(compiled) == 2
    ask(tmp_path / "third", monkeypatch)
    assert len(compiled) == 2
    (entry,) = (tmp_path / "store").glob("*.answer")
    entry.write_bytes(entry.read_bytes()[:-1])
    ask(tmp_path / "fourth", monkeypatch)
    ask(tmp_path / "fifth", monkeypatch)
    assert len(compiled) == 3
