# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of groups (`torch.nn.functional.grouped_mm`) in each of their forms; one program serves all sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

GROUPS, DEPTH, COLUMNS = 4, 16, 24
ENDS = {32: (5, 5, 20, 32), 8: (8, 8, 8, 8), 64: (16, 32, 48, 64), 40: (0, 1, 3, 40)}
"""By the number of rows, the end of each group."""

FORMS: dict[str, Callable[[int], tuple[Any, Any]]] = {
    "rows": lambda n: (torch.randn(n, DEPTH), torch.randn(GROUPS, DEPTH, COLUMNS)),
    "rows, transposed matrices": lambda n: (torch.randn(n, DEPTH), torch.randn(GROUPS, COLUMNS, DEPTH).mT),
    "terms": lambda n: (torch.randn(n, DEPTH).mT, torch.randn(n, COLUMNS)),
    "columns": lambda n: (torch.randn(GROUPS, COLUMNS, DEPTH), torch.randn(n, DEPTH).mT),
}


def ends(rows: int) -> Any:
    return torch.tensor(ENDS[rows], dtype=torch.int32)


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str) -> None:
    """torch.compile takes bfloat16 only; sums are f32, rounded once, as in eager PyTorch."""
    compiled = torch.compile(lambda x, y, e: F.grouped_mm(x, y, offs=e), backend="shlo_disc", dynamic=True)
    for rows in ENDS:
        torch.manual_seed(rows)
        x, y = (v.to(torch.bfloat16) for v in FORMS[form](rows))
        want = F.grouped_mm(x, y, offs=ends(rows))
        torch.testing.assert_close(compiled(x, y, ends(rows)), want, rtol=1e-2, atol=1e-2)


def test_gradients() -> None:
    def loss(x: Any, w: Any, e: Any) -> Any:
        return F.grouped_mm(x, w, offs=e).square().sum()

    compiled = torch.compile(loss, backend="shlo_disc", dynamic=True)
    for rows in ENDS:
        torch.manual_seed(rows)
        x, w = (v.to(torch.bfloat16).requires_grad_() for v in FORMS["rows"](rows))
        want = torch.autograd.grad(loss(x, w, ends(rows)), (x, w))
        got = torch.autograd.grad(compiled(x, w, ends(rows)), (x, w))
        for a, b in zip(got, want, strict=True):
            torch.testing.assert_close(a, b, rtol=2e-2, atol=2e-2 * float(b.abs().max()))


def test_op_of_transformers() -> None:
    """The op by which transformers has experts in f32, forward and backward."""
    pytest.importorskip("transformers.integrations.moe")

    def function(x: Any, w: Any, e: Any) -> Any:
        return torch.ops.transformers.grouped_mm_fallback(x, w, offs=e).tanh()

    compiled = torch.compile(function, backend="shlo_disc", dynamic=True)
    for rows in ENDS:
        torch.manual_seed(rows)
        x, w = (v.requires_grad_() for v in FORMS["rows"](rows))
        want, got = function(x, w, ends(rows)), compiled(x, w, ends(rows))
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
        pairs = (torch.autograd.grad(y.sum(), (x, w)) for y in (got, want))
        for a, b in zip(*pairs, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_a_batch_of_products() -> None:
    compiled = torch.compile(lambda x, y: F.grouped_mm(x, y), backend="shlo_disc", dynamic=True)
    x, y = torch.randn(3, 8, 16).to(torch.bfloat16), torch.randn(3, 24, 16).mT.to(torch.bfloat16)
    torch.testing.assert_close(compiled(x, y), F.grouped_mm(x, y), rtol=1e-2, atol=1e-2)
