# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A file's constants are read where they lie in it: processes that load it share them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shlo_disc

from .c_api import Program

BYTES = 16 << 20


def loaded_in_c(path: Path) -> Any:
    program = Program(path)
    return lambda x: program(x)[0]


def loaded_in_python(path: Path) -> Any:
    return shlo_disc.load(path, trust=True)


def kilobytes(path: Path, key: str) -> int:
    """The kilobytes that the process has of the mappings of a file."""
    total, is_ours = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, _, value = line.partition(":")
        if " " in name:
            is_ours = line.endswith(str(path))
        elif is_ours and name == key:
            total += int(value.split()[0])
    return total


@pytest.mark.parametrize("load", [loaded_in_c, loaded_in_python])
def test_constants_are_not_copied(load: Callable[[Path], Any], tmp_path: Path) -> None:
    path, table = tmp_path / "table.disc", np.arange(BYTES // 4, dtype=np.float32)
    shlo_disc.compile(lambda x: x + table, args=((f"b, {table.size}", "float32"),)).save(path)
    program, x = load(path), np.ones((1, table.size), np.float32)
    np.testing.assert_array_equal(program(x), x + table)
    assert kilobytes(path, "Rss") >= BYTES // 1024
    assert kilobytes(path, "Anonymous") == 0  # pages of its own, as a copy has
    path.rename(tmp_path / "moved")  # another file may take its place
    path.write_bytes(b"something else")
    np.testing.assert_array_equal(program(x), x + table)


@pytest.mark.parametrize("load", [loaded_in_c, loaded_in_python])
def test_packed_constants_are_not_made(load: Callable[[Path], Any], tmp_path: Path) -> None:
    path, table = tmp_path / "table.disc", np.arange(BYTES // 4, dtype=np.float32).reshape(2048, -1) / BYTES
    executable = shlo_disc.compile(lambda x: x @ table, args=(("b, 2048", "float32"),))
    executable.save(path, prepack=True)
    program = load(path)
    for b in (1, 5):
        x = np.ones((b, 2048), np.float32)
        np.testing.assert_array_equal(program(x), executable(x))
    assert kilobytes(path, "Rss") >= BYTES // 1024
    assert kilobytes(path, "Anonymous") == 0
