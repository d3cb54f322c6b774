# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page of ops is what the table says, and each op of Core ATen is on it, or taken apart, or known to be missing."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from shlo_disc.torch import ops_page  # noqa: E402
from tests.pytorch.judge import exported  # noqa: E402
from tests.pytorch.test_ops import ALL  # noqa: E402

PAGE = Path(__file__).resolve().parents[2] / "docs" / "torch-ops.md"

MISSING = {
    "resize_.default",
    "sym_size.int", "sym_stride.int", "sym_numel.default", "sym_storage_offset.default", "sym_is_contiguous.default",
}  # fmt: skip
"""Core ATen that has no translation; what begins with sym_ is no op on tensors and is read off the graph."""


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == ops_page()


def _core() -> set[str]:
    """The overloads that PyTorch tags as core."""
    core = set()
    for name in torch._C._dispatch_get_all_op_names():
        base, _, overload = name.removeprefix("aten::").partition(".")
        op = getattr(getattr(torch.ops.aten, base, None), overload or "default", None) if "aten::" in name else None
        if op is not None and torch.Tag.core in op.tags:
            core.add(f"{base}.{overload or 'default'}")
    return core


def test_core_aten() -> None:
    table = importlib.import_module("shlo_disc.importer.aten.table").rows()
    apart = importlib.import_module("shlo_disc.importer.aten.decompositions").of_pytorch()
    known = {*table, *(str(op).removeprefix("aten.") for op in apart)}
    core = _core()
    assert len(core) > 180
    assert core - known <= MISSING
    assert core >= MISSING


UNTESTED = MISSING - {"sym_size.int"} | {"atan2.out"}
"""Core ATen that no case comes to; atan2.out is atan2.default once PyTorch has made a graph functional."""


@pytest.mark.slow
def test_every_op_of_core_aten_has_a_case() -> None:
    apart = importlib.import_module("shlo_disc.importer.aten.decompositions").of_pytorch()
    found = set()
    for case in ALL.values():
        program = exported(case)
        for graph in (program.graph, program.run_decompositions(apart).graph):
            found |= {str(node.target).removeprefix("aten.") for node in graph.nodes if node.op == "call_function"}
    assert _core() - found <= UNTESTED
