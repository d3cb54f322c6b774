# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading, writing and adding by masks, alone and beside integers, as eager PyTorch does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from shlo_disc.errors import ShapeError, UnsupportedError  # noqa: E402
from shlo_disc.torch import backend  # noqa: E402
from tests.pytorch.judge import close  # noqa: E402

ROWS = torch.export.Dim.DYNAMIC


def written(function: Callable[..., None]) -> Callable[..., Any]:
    """A function that changes its first argument in place, as one of a copy."""

    def found(x: Any, *others: Any) -> Any:
        x = x.clone()
        function(x, *others)
        return x

    return found


def _one(x: Any) -> Any:
    return torch.tensor(1).to(x.dtype)


def _up_to(count: int, x: Any) -> Any:
    return torch.arange(count).to(x.dtype)


CASES: dict[str, Callable[..., Any]] = {
    "rows": lambda x, m, n, i: x[m],
    "columns": lambda x, m, n, i: x[:, n],
    "beside a slice": lambda x, m, n, i: x[m, 1:],
    "beside an integer": lambda x, m, n, i: x[m, 2],
    "beside None": lambda x, m, n, i: x[None, m],
    "behind dots": lambda x, m, n, i: x[..., n, :],
    "one after the other": lambda x, m, n, i: x[m][:, n],
    "before indices": lambda x, m, n, i: x[m][:, torch.tensor([1, 0])],
    "elements": lambda x, m, n, i: x[x > 0],
    "beside an index": lambda x, m, n, i: x[m, i],
    "beside an index of rank 2": lambda x, m, n, i: x[m, torch.stack([i, i + 1, -i])],
    "behind an index": lambda x, m, n, i: x[torch.zeros_like(i), n],
    "a slice between": lambda x, m, n, i: x[m, :, i],
    "an integer and an index": lambda x, m, n, i: x[m, 3, i],
    "the last axes": lambda x, m, n, i: x[:, n, i],
    "of two axes": lambda x, m, n, i: x[x[:, :, 0] > 0, i],
    "an index of the same mask": lambda x, m, n, i: x[m, x.sum(2).argmax(1)[m]],
    "written": lambda x, m, n, i: x.index_put((m,), _one(x)),
    "written beside an index": lambda x, m, n, i: x.index_put((m, i), _one(x)),
    "added": lambda x, m, n, i: x.index_put((m,), _one(x), accumulate=True),
    "added, rows": lambda x, m, n, i: x.index_put((m,), x[m].logical_not().to(x.dtype), accumulate=True),
    "added, a row": lambda x, m, n, i: x.index_put((m,), _up_to(24, x).view(6, 4), accumulate=True),
    "added beside an index": lambda x, m, n, i: x.index_put((m, i), _one(x), accumulate=True),
    "added beside an index of rank 2": lambda x, m, n, i: x.index_put(
        (m, torch.stack([i, i, -i])), _up_to(4, x), accumulate=True
    ),
    "rows written beside an index": lambda x, m, n, i: x.index_put((m, i), x[m, i].logical_not().to(x.dtype)),
    "columns written": written(lambda x, m, n, i: x.__setitem__((slice(None), n), _up_to(4, x))),
    "a slice between, written": written(lambda x, m, n, i: x.__setitem__((m, slice(None), i), _up_to(6, x))),
    "turned": written(lambda x, m, n, i: x.__setitem__((m, slice(1, None), i), x[m, 1:, i].flip(1))),
}
"""Functions of a tensor [rows, 6, 4], masks of its rows and of its columns, and an index [1]."""


class _Function(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any, m: Any, n: Any, i: Any) -> Any:
        return self.function(x, m, n, i)


def _tensor(dtype: Any, rows: int) -> Any:
    numbers = torch.randn(rows, 6, 4) * 3
    return numbers > 0 if dtype == torch.bool else numbers.to(dtype)


def _compiled(function: Callable[..., Any], dtype: Any = torch.float32) -> Any:
    dynamic = {"x": {0: ROWS}, "m": {0: ROWS}, "n": None, "i": None}
    values = _tensor(dtype, 5), torch.arange(5) % 2 == 0, torch.arange(6) > 2, torch.tensor([1])
    return shlo_disc.compile(torch.export.export(_Function(function), values, dynamic_shapes=dynamic))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
@pytest.mark.parametrize("name", CASES)
def test_masks(name: str, dtype: Any) -> None:
    torch.manual_seed(0)
    function = CASES[name]
    run = _compiled(function, dtype)
    for rows in (0, 1, 2, 7, 8, 9, 33):
        if rows == 0 and name == "behind an index":
            continue  # row 0 is not there
        for mask in (torch.rand(rows) > 0.5, torch.ones(rows) > 0, torch.ones(rows) < 0):
            values = _tensor(dtype, rows), mask, torch.rand(6) > 0.5, torch.tensor([rows % 4 - 2])
            close(run(*values), function(*values), f"{name} at {rows}")


def test_values_of_another_number_than_the_mask_has() -> None:
    run = _compiled(lambda x, m, n, i: x.index_put((m, i), x[:, 1]))
    x, i = _tensor(torch.float32, 4), torch.tensor([2])
    whole, part, columns = torch.ones(4) > 0, torch.arange(4) > 1, torch.ones(6) > 0
    close(run(x, whole, columns, i), x.index_put((whole, i), x[:, 1]), "all")
    with pytest.raises(ShapeError, match=r"reads from data does not fit.*index_put_count_0 = 2"):
        run(x, part, columns, i)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, m, i: x[m, i].sin(),
        lambda x, m, i: x[m, :, i] ** 2,
        lambda x, m, i: x.sin().index_put((m, i), x[m, i].cos(), accumulate=True),
        lambda x, m, i: x.sin().index_put((m,), x[m].cos(), accumulate=True),
    ],
)
def test_gradients_of_masks(function: Callable[..., Any]) -> None:
    torch._dynamo.reset()
    run = torch.compile(function, backend=backend, dynamic=True, fullgraph=True)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        for rows in (7, 2, 8, 9, 33):
            x, mask, i = torch.randn(rows, 6, 4, requires_grad=True), torch.rand(rows) > 0.4, torch.tensor([1])
            found, wanted = run(x, mask, i), function(x, mask, i)
            close(found, wanted, f"at {rows}")
            mine, other = (torch.autograd.grad(y.square().sum(), x) for y in (found, wanted))
            close(mine, other, f"the gradient at {rows}")


@pytest.mark.parametrize("name", ["rows", "beside an index", "written", "added", "written beside an index"])
def test_masks_of_another_size(name: str) -> None:
    run = _compiled(CASES[name])
    x, n, i = _tensor(torch.float32, 7), torch.ones(6) > 0, torch.tensor([1])
    for rows in (6, 8, 1):
        with pytest.raises(ShapeError):
            run(x, torch.ones(rows) > 0, n, i)


def test_a_mask_of_bytes_is_rejected() -> None:
    with pytest.raises(UnsupportedError, match=r'mask of bytes.*options=\{"fallback": True\}'):
        _compiled(lambda x, m, n, i: torch.ops.aten.index_put(x, (m.to(torch.uint8), i), _one(x)))
