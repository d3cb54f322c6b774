# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The code of large libraries leaves memory when it has done its work for a compile, and comes back when it is used."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from subprocess import run
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.driver import code_pages
from shlo_disc.lowering_cpu.backend import CpuBackend


def resident(libraries: tuple[str, ...], smaps: str = "") -> int:
    """Bytes of the libraries' code that are in a process's memory; by default, in this one's."""
    total, is_code = 0, False
    for line in (smaps or Path("/proc/self/smaps").read_text()).splitlines():
        if match := re.match(r"[0-9a-f]+-[0-9a-f]+ (\S+) \S+ \S+ \d+ *(.*)", line):
            is_code = match[1] == "r-xp" and Path(match[2]).name.startswith(libraries)
        elif is_code and line.startswith("Rss:"):
            total += int(line.split()[1]) * 1024
    return total


def compiled(factor: float) -> np.ndarray:
    executable = shlo_disc.compile(lambda x: jnp.tanh(x * factor).sum(0), args=(("n, m", "float32"),))
    return np.asarray(executable(np.full((3, 5), 0.5, np.float32)))


def test_code_comes_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_pages, "SECONDS", 1e9)
    monkeypatch.setattr(code_pages._Counts, "front_ends_released", 1e12)
    compiled(0.5)  # which may load the libraries
    np.testing.assert_allclose(compiled(1.5), 3 * np.tanh(np.full(5, 0.75)), 1e-6)
    for libraries in (code_pages.COMPILERS, code_pages.FRONT_ENDS):
        assert resident(libraries) > 10 << 20
        others = resident(code_pages.COMPILERS)
        code_pages.release_code(libraries)
        assert resident(libraries) < 4 << 20
        assert libraries == code_pages.COMPILERS or resident(code_pages.COMPILERS) == others
    np.testing.assert_allclose(compiled(2.5), 3 * np.tanh(np.full(5, 1.25)), 1e-6)
    assert all(resident(libraries) > 10 << 20 for libraries in (code_pages.COMPILERS, code_pages.FRONT_ENDS))


def released(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The libraries whose code is released from now on, where nothing was counted yet."""
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(code_pages, "release_code", calls.append)
    monkeypatch.setattr(code_pages._Counts, "compiling", 0.0)
    monkeypatch.setattr(code_pages._Counts, "front_ends_released", -1e9)
    return calls


def test_after_enough_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, counts = released(monkeypatch), []
    for seconds in (0.1, 0.1, 0.1, 0.1, 0.4):
        code_pages.note_compile(seconds)
        counts.append(len(calls))
    assert counts == [0, 0, 1, 1, 2]
    assert set(calls) == {code_pages.COMPILERS}


def test_before_code_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes that took long count with the compiles before, but are not counted twice."""
    calls, counts = released(monkeypatch), []
    for passes, whole in ((0.1, 0.15), (0.05, 0.08), (0.05, 0.1), (0.2, 0.2)):
        code_pages.note_passes(passes)
        counts.append(len(calls))
        code_pages.note_compile(whole)
        counts.append(len(calls))
    assert counts == [0, 0, 0, 0, 1, 2, 2, 2]


def test_front_ends_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = released(monkeypatch)
    code_pages.note_reading()
    code_pages.note_reading()
    assert calls == [code_pages.FRONT_ENDS]
    monkeypatch.setattr(code_pages._Counts, "front_ends_released", time.monotonic() - code_pages.INTERVAL)
    code_pages.note_reading()
    assert calls == [code_pages.FRONT_ENDS] * 2


def test_initialisers_leave_when_the_compiler_is_loaded() -> None:
    """In a process that has compiled nothing yet, hardly any code of these libraries is in memory."""
    program = "import jax; jax.devices(); import shlo_disc.driver.compiler; print(open('/proc/self/smaps').read())"
    smaps = run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert resident(code_pages.COMPILERS + code_pages.FRONT_ENDS, smaps) < 8 << 20


def test_each_step_releases_what_the_last_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX's code before the passes, MLIR's before LLVM's work, and all of it at the end."""
    calls = released(monkeypatch)
    monkeypatch.setattr(code_pages, "SECONDS", 0.0)
    places: list[int] = []
    emit = CpuBackend.emit

    def noted(*args: Any) -> bytes:
        places.append(len(calls))
        return emit(*args)

    monkeypatch.setattr(CpuBackend, "emit", noted)
    compiled(3.5)
    assert calls == [code_pages.FRONT_ENDS, code_pages.COMPILERS, code_pages.COMPILERS]
    assert places == [2]


def test_only_code_of_files(tmp_path: Path) -> None:
    """Mappings that may have been written, and the code of others, stay."""
    maps = tmp_path / "maps"
    maps.write_text(
        "7f00000000-7f00001000 r--p 00000000 08:01 5 /lib/libllvmlite.so\n"
        "7f00001000-7f00003000 r-xp 00001000 08:01 5 /some where/libllvmlite.so\n"
        "7f00003000-7f00004000 rwxp 00003000 08:01 5 /lib/libllvmlite.so\n"
        "7f00004000-7f00005000 r-xp 00000000 00:00 0 \n"
        "7f00005000-7f00006000 r-xp 00000000 08:01 6 /lib/libc.so.6\n"
        "7f00006000-7f00007000 r-xp 00000000 08:01 7 /lib/libTorchMLIRAggregateCAPI.so\n"
    )
    assert code_pages.code_ranges(code_pages.COMPILERS, maps) == [
        (0x7F00001000, 0x7F00003000),
        (0x7F00006000, 0x7F00007000),
    ]
    assert code_pages.code_ranges(code_pages.COMPILERS, tmp_path / "none") == []
    assert code_pages.code_ranges(code_pages.COMPILERS)
