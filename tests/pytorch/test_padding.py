# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Paddings that remove elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from shlo_disc.errors import ShapeError, UnsupportedError  # noqa: E402
from shlo_disc.torch import backend  # noqa: E402
from tests.pytorch.judge import close  # noqa: E402

F, nn = torch.nn.functional, torch.nn

SIZES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 33)


class _Function(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


def _exported(function: Callable[..., Any], x: Any) -> Any:
    dynamic = {x.dim() - 1: torch.export.Dim.DYNAMIC}
    return shlo_disc.compile(torch.export.export(_Function(function), (x,), dynamic_shapes=((dynamic,))))


def _of(dtype: Any, *shape: int) -> Any:
    numbers = torch.randn(*shape) * 5
    return numbers > 0 if dtype == torch.bool else numbers.to(dtype)


def _outcome(function: Callable[..., Any], x: Any) -> Any:
    """The result, or None where there is an error."""
    try:
        return function(x)
    except (RuntimeError, ShapeError):
        return None


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
@pytest.mark.parametrize("pads", [(3, -5), (-5, 3), (-6, 6), (6, -6), (-2, 2, 1, -2), (-2, -3), (-4, 0)])
def test_paddings_that_remove_more_than_there_is_are_errors(pads: tuple[int, ...], dtype: Any) -> None:
    def function(x: Any) -> Any:
        return F.pad(x, pads, value=1)

    run = _exported(function, _of(dtype, 4, 11))
    kept = 0
    for size in SIZES:
        x = _of(dtype, 4, size)
        found, wanted = _outcome(run, x), _outcome(function, x)
        assert found is None or wanted is not None, f"eager PyTorch raises an error at {size}"
        if found is not None:
            close(found, wanted, f"{pads} at {size}")
            kept += 1
    assert kept >= 3
    assert _outcome(function, _of(dtype, 4, 0)) is None


def test_words_of_a_padding_that_removes_too_much() -> None:
    run = _exported(lambda x: F.pad(x, (3, -5)), torch.randn(2, 11))
    with pytest.raises(ShapeError, match=r"a padding of 3 and -5 may remove more elements than"):
        run(torch.randn(2, 4))


def test_a_compiled_padding_that_removes_too_much() -> None:
    torch._dynamo.reset()
    run = torch.compile(lambda x: F.pad(x, (3, -5)), backend=backend, dynamic=True)
    for size in (7, 5, 33):
        x = torch.randn(2, size)
        close(run(x), F.pad(x, (3, -5)), f"at {size}")
    with pytest.raises(Exception, match="may remove more elements|negative"):
        run(torch.randn(2, 4))


def test_a_padding_in_a_branch_is_refused_where_it_cannot_be_checked() -> None:
    def branches(pads: tuple[int, int]) -> Callable[..., Any]:
        def function(x: Any) -> Any:
            return torch.cond(x.sum() > 0, lambda x: F.pad(x, pads).sum(1), lambda x: F.pad(x, pads).cos().sum(1), (x,))

        return function

    with pytest.raises(UnsupportedError, match="cannot be checked in a loop or branch"):
        _exported(branches((3, -5)), torch.randn(2, 11))
    function = branches((-1, -1))
    run = _exported(function, torch.randn(2, 11))
    for x in (torch.ones(2, 7), -torch.ones(2, 33)):
        close(run(x), function(x), "at other sizes")
