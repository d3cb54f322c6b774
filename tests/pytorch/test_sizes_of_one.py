# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops whose results have another rank at a size of 1, and products of several dtypes: right as in eager, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.export import Dim, export  # noqa: E402

import shlo_disc  # noqa: E402
from shlo_disc.errors import ShapeError  # noqa: E402
from tests.pytorch.modules import Applied  # noqa: E402

SQUEEZED: dict[str, Callable[[Any], Any]] = {
    "an axis": lambda x: x.squeeze(0).sum(0),
    "the last axis": lambda x: x.squeeze(-1) * 2,
    "several axes": lambda x: x.squeeze((0, 1)).sum(0),
    "all axes": lambda x: x.squeeze().sum(0),
    "the end of a scoring model": lambda x: (x @ torch.ones(5, 1)).squeeze(),
    "only what is always 1": lambda x: (x @ torch.ones(5, 1)).squeeze(-1),
    "an axis before": lambda x: x[None].squeeze(0) + 1,
    "in place": lambda x: x.clone().squeeze_(0).sum(0),
}


@pytest.mark.parametrize("name", SQUEEZED)
@pytest.mark.parametrize("dim", [Dim.DYNAMIC, Dim("b"), Dim("b", min=1)], ids=["dynamic", "named", "from 1"])
def test_squeezed_sizes(name: str, dim: Any) -> None:
    module = Applied(SQUEEZED[name])
    run = shlo_disc.compile(export(module, (torch.randn(3, 5),), dynamic_shapes=({0: dim},)))
    refused = 0
    for b in (1, 2, 3, 7):
        x = torch.arange(5.0 * b).reshape(b, 5)
        expected = module(x)
        try:
            found = run(x)
        except ShapeError as error:
            assert b == 1 and "squeeze only axes that are always 1" in str(error)
            refused += 1
            continue
        torch.testing.assert_close(found, expected)
    changes_rank = module(torch.ones(1, 5)).dim() != module(torch.ones(3, 5)).dim()
    assert refused == (changes_rank or name in ("an axis", "several axes", "all axes", "in place"))


def test_a_squeeze_under_compile() -> None:
    compiled = torch.compile(Applied(lambda x: x.squeeze(0).sum(0)), backend="shlo_disc", dynamic=True)
    for b in (3, 1, 2):
        x = torch.arange(5.0 * b).reshape(b, 5)
        torch.testing.assert_close(compiled(x), x.squeeze(0).sum(0))


PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "mm": lambda x, w: x @ w,
    "linear": lambda x, w: torch.nn.functional.linear(x, w.T),
    "with a bias": lambda x, w: torch.nn.functional.linear(x, w.T, w[0]),
    "bmm": lambda x, w: x[None] @ w[None],
    "mv": lambda x, w: x @ w[:, 0],
    "a convolution": lambda x, w: torch.nn.functional.conv1d(x[:, :, None], w.T[:, :, None]),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtypes", [("float64", "float32"), ("float16", "float32"), ("float32", "bfloat16")])
def test_products_of_several_dtypes(name: str, dtypes: tuple[str, str]) -> None:
    function = PRODUCTS[name]
    x, w = (torch.ones(4, 4, dtype=getattr(torch, dtype)) for dtype in dtypes)
    with pytest.raises(RuntimeError):
        function(x, w)
    torch._dynamo.reset()
    with pytest.raises(Exception, match="dtype|should be the same"):
        torch.compile(function, backend="shlo_disc", dynamic=True)(x, w)
    torch._dynamo.reset()
    same = torch.compile(function, backend="shlo_disc", dynamic=True)(x.to(w.dtype), w)
    torch.testing.assert_close(same, function(x.to(w.dtype), w))


AUTO = Dim.AUTO


def bags(rows: int, size: Any) -> Any:
    """A program of bags of tokens, one for each row, exported for so many."""
    torch.manual_seed(0)
    example = torch.zeros(rows, 4, dtype=torch.int64)
    module = torch.nn.EmbeddingBag(10, 3)
    return module, shlo_disc.compile(export(module, (example,), dynamic_shapes=({0: size, 1: AUTO},)))


def test_bags_of_tokens() -> None:
    """The remedies of the texts export a program for the call."""
    one, several = torch.arange(6).reshape(1, 6), torch.arange(10).reshape(2, 5)
    with torch.no_grad():
        module, run = bags(3, Dim("b"))
        torch.testing.assert_close(run(several), module(several))
        with pytest.raises(ShapeError, match=r"took to hold for an op .* b = 1 .* again with an example of"):
            run(one)
        module, run = bags(1, AUTO)
        torch.testing.assert_close(run(one), module(one))
        words = r"input\.shape\[0\], which was fixed .* an example in which this size is 2 or more, and dynamic_shapes="
        with pytest.raises(ShapeError, match=words):
            run(several)


@pytest.mark.parametrize("offsets", [[0], [0, 2, 2]])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_tokens_with_offsets(mode: str, offsets: list[int]) -> None:
    module = torch.nn.EmbeddingBag(10, 3, mode=mode)
    example = torch.arange(7), torch.tensor([0, 4])
    run = shlo_disc.compile(export(module, example, dynamic_shapes=({0: AUTO}, {0: AUTO})))
    with torch.no_grad():
        for count in (1, 5) if len(offsets) == 1 else (5,):
            given = torch.arange(count), torch.tensor(offsets)
            torch.testing.assert_close(run(*given), module(*given))
