# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page of ops is what the table says, and each op of Core ATen is on it, or taken apart, or known to be missing."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from shlo_disc.torch import ops_page  # noqa: E402

PAGE = Path(__file__).resolve().parents[2] / "docs" / "torch-ops.md"

MISSING = {
    "_adaptive_avg_pool2d_backward.default", "_adaptive_avg_pool3d.default", "_cdist_forward.default",
    "_embedding_bag.default", "_fft_c2r.default", "_fft_r2c.default", "_pdist_forward.default", "as_strided.default",
    "masked_scatter.default", "randperm.default", "resize_.default",
    "sym_size.int", "sym_stride.int", "sym_numel.default", "sym_storage_offset.default", "sym_is_contiguous.default",
}  # fmt: skip
"""Core ATen that has no translation; what begins with sym_ is no op on tensors and is read off the graph."""


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == ops_page()


def test_core_aten() -> None:
    table = importlib.import_module("shlo_disc.import.aten.table").rows()
    apart = importlib.import_module("shlo_disc.import.aten.decompositions").for_exporting()
    known = {*table, *(str(op).removeprefix("aten.") for op in apart)}
    core = set()
    for name in torch._C._dispatch_get_all_op_names():
        base, _, overload = name.removeprefix("aten::").partition(".")
        op = getattr(getattr(torch.ops.aten, base, None), overload or "default", None) if "aten::" in name else None
        if op is not None and torch.Tag.core in op.tags:
            core.add(f"{base}.{overload or 'default'}")
    assert len(core) > 180
    assert core - known <= MISSING
    assert core >= MISSING
