# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler's code leaves memory after a compile, and comes back with the next."""

from __future__ import annotations

import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.driver import code_pages


def resident() -> int:
    """Bytes of the libraries' code that are in this process's memory."""
    total, is_code = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if match := re.match(r"[0-9a-f]+-[0-9a-f]+ (\S+) \S+ \S+ \d+ *(.*)", line):
            is_code = match[1] == "r-xp" and Path(match[2]).name.startswith(code_pages.LIBRARIES)
        elif is_code and line.startswith("Rss:"):
            total += int(line.split()[1]) * 1024
    return total


def compiled(factor: float) -> np.ndarray:
    executable = shlo_disc.compile(lambda x: jnp.tanh(x * factor).sum(0), args=(("n, m", "float32"),))
    return np.asarray(executable(np.full((3, 5), 0.5, np.float32)))


def test_code_comes_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_pages, "SECONDS", 1e9)
    np.testing.assert_allclose(compiled(1.5), 3 * np.tanh(np.full(5, 0.75)), 1e-6)
    used = resident()
    assert used > 10 << 20
    code_pages.release_code()
    assert resident() < used // 4
    np.testing.assert_allclose(compiled(2.5), 3 * np.tanh(np.full(5, 1.25)), 1e-6)
    assert resident() > 10 << 20


def test_after_enough_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(code_pages, "release_code", lambda: calls.append(1))
    monkeypatch.setattr(code_pages._Compiles, "seconds", 0.0)
    counts = []
    for seconds in (0.1, 0.1, 0.1, 0.1, 0.4):
        code_pages.note_compile(seconds)
        counts.append(len(calls))
    assert counts == [0, 0, 1, 1, 2]


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
    assert code_pages.code_ranges(maps) == [(0x7F00001000, 0x7F00003000), (0x7F00006000, 0x7F00007000)]
    assert code_pages.code_ranges(tmp_path / "none") == []
    assert code_pages.code_ranges()
