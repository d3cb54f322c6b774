# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The user's line of an operation: never one of this package."""

from __future__ import annotations

import pytest

import shlo_disc
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.utils.locations import source_line

OURS = f"{shlo_disc.__path__[0]}/api/compile.py"
ELSEWHERE = "/env/lib/python3.12/site-packages/shlo_disc/api/compile.py"


@pytest.mark.parametrize(("location", "line"), [
    ('"a.py":3:1', "a.py:3"),
    ('"-":3:1', "line 3"),
    (f'callsite("compile"("{OURS}":91:1) at "<module>"("a.py":3:1))', "a.py:3"),
    (f'callsite("compile"("{ELSEWHERE}":91:1) at "<module>"("a.py":3:1))', "a.py:3"),
    (f'"jit(softmax)/div"(callsite("export"("{OURS}":9:1) at "compile"("{OURS}":91:1)))', "jit(softmax)/div"),
    (f'"{OURS}":91:1', "unknown"),
    (f'fused["{OURS}":91:1, "a.py":4:1]', "a.py:4"),
    ('"/home/me/shlo_disc/train.py":5:1', "/home/me/shlo_disc/train.py:5"),
])  # fmt: skip
def test_a_line(location: str, line: str) -> None:
    with ir.Context():
        module = ir.Module.parse(f"module {{}} loc({location})")
        assert source_line(module.operation.location) == line
