# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Paddings that remove elements, and gradients of paddings by elements and of `take`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from shlo_disc.errors import ShapeError, UnsupportedError  # noqa: E402
from shlo_disc.torch import backend, graph_count  # noqa: E402
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


PADDINGS: dict[str, tuple[Callable[[Any], Any], Callable[[int], tuple[int, ...]]]] = {
    "replicate, a vector": (lambda x: F.pad(x, (2, 1), mode="replicate"), lambda n: (3, n)),
    "replicate": (nn.ReplicationPad1d((3, 4)), lambda n: (2, 3, n)),
    "replicate before": (nn.ReplicationPad1d((3, 0)), lambda n: (2, 3, n)),
    "replicate behind": (nn.ReplicationPad1d((0, 9)), lambda n: (2, 3, n)),
    "replicate less": (nn.ReplicationPad1d((-1, 3)), lambda n: (2, 3, n + 1)),
    "replicate less behind": (nn.ReplicationPad1d((5, -2)), lambda n: (2, 3, n)),
    "replicate beyond": (nn.ReplicationPad1d((-6, 7)), lambda n: (2, 3, n)),
    "replicate beyond the start": (nn.ReplicationPad1d((7, -6)), lambda n: (2, 3, n)),
    "replicate images": (nn.ReplicationPad2d((2, 1, 3, 0)), lambda n: (2, 3, n, n + 1)),
    "replicate an image": (nn.ReplicationPad2d((2, 1, -1, 4)), lambda n: (3, n + 1, 5)),
    "replicate volumes": (nn.ReplicationPad3d((2, 1, 3, 0, 1, 2)), lambda n: (2, 1, n, n + 1, 3)),
    "replicate sizes": (lambda x: F.pad(x, (x.shape[0], 1), mode="replicate"), lambda n: (n, 3, 4)),
    "reflect": (lambda x: F.pad(x, (2, 1), mode="reflect"), lambda n: (2, 3, n + 2)),
    "reflect images": (nn.ReflectionPad2d((1, 1, 2, 0)), lambda n: (2, 3, n + 2, n + 3)),
    "reflect volumes": (nn.ReflectionPad3d(1), lambda n: (2, 1, n + 1, n + 2, 3)),
    "circular": (lambda x: F.pad(x, (1, 2), mode="circular"), lambda n: (2, 3, n + 1)),
    "constant": (lambda x: F.pad(x, (-1, 2), value=2), lambda n: (2, n + 1)),
    "take": (lambda x: torch.take(x, torch.tensor([[0, 1, -1], [1, 1, -2]])), lambda n: (n, 3)),
    "take of a vector": (lambda x: x.take(torch.tensor([0, -1, 0])), lambda n: (n,)),
}  # fmt: skip


def _gradient(function: Callable[[Any], Any], x: Any) -> Any:
    y = function(x)
    weights = torch.arange(y.numel(), dtype=torch.float64).reshape(y.shape).sin().to(y.dtype)
    return torch.autograd.grad((y * weights).sum(), x)[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", PADDINGS)
def test_gradients(name: str, dtype: Any) -> None:
    torch._dynamo.reset()
    function, shape = PADDINGS[name]
    run, before = torch.compile(function, backend=backend, dynamic=True), graph_count()
    for size in (7, 2, 3, 8, 9, 33, 1):
        x = torch.randn(shape(size), dtype=dtype, requires_grad=True)
        close(_gradient(run, x), _gradient(function, x), f"{name} at {size}")
    assert graph_count() - before <= 4  # two for all sizes, and two for a size of 1


def _replicated_backward(x: Any) -> Any:
    y = torch.ones_like(F.pad(x, (2, 1), mode="replicate")).cumsum(-1)
    return torch.ops.aten.replication_pad1d_backward(y, x, (2, 1))


def _put(x: Any) -> Any:
    values = torch.arange(4).to(x.dtype)
    place = torch.tensor([0, -1, 0, 1])
    other = torch.tensor([-2, 1, 0])
    return x.put(place, values, accumulate=True), x.put(other[:2], values[:2]), x.put(other[:0], values[:0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.float64, torch.bfloat16])
def test_put(dtype: Any) -> None:
    run = _exported(_put, _of(dtype, 3, 11))
    for size in (1, 2, 7, 8, 9, 33):
        x = _of(dtype, 3, size)
        close(run(x), _put(x), f"at {size}")


def test_an_exported_gradient() -> None:
    run = _exported(_replicated_backward, torch.randn(2, 3, 9))
    for size in (1, 2, 7, 8, 9, 33):
        x = torch.randn(2, 3, size)
        close(run(x), _replicated_backward(x), f"at {size}")


WRAPPED = {(-2, 6): (2, 0, 6), (6, -3): (0, 3, 6), (-1, 2): (1, 0, 2), (2, -1): (0, 1, 2)}
"""Circular paddings of both signs; elements to remove in front and behind, and the number of those to add."""


@pytest.mark.parametrize("pads", WRAPPED)
def test_circular_paddings_of_both_signs(pads: tuple[int, int]) -> None:
    """Eager PyTorch reads memory there that it has not written, or that it is writing. What is advised is defined."""
    torch._dynamo.reset()
    x = torch.randn(2, 3, 9)

    def padded(x: Any) -> Any:
        return F.pad(x, pads, mode="circular")

    words = (
        r"circular padding that adds .* is undefined; remove them by a slice first: F\.pad\(x\[\.\.\., 1:\], \(0, 2\)"
    )
    with pytest.raises(UnsupportedError, match=words):
        _exported(padded, x)
    with pytest.raises(Exception, match=words):
        torch.compile(padded, backend=backend, dynamic=True)(x)
    assert torch.equal(torch.compile(padded, backend=backend, options={"fallback": True})(x[:0]), padded(x[:0]))
    front, behind, more = WRAPPED[pads]
    ends = (more, 0) if pads[0] > 0 else (0, more)

    def advised(x: Any) -> Any:
        return F.pad(x[..., front : x.shape[-1] - behind], ends, mode="circular")

    assert torch.equal(_exported(advised, x)(x), advised(x))
    if min(pads) + 9 >= max(pads):  # defined at this size
        assert torch.equal(advised(x), padded(x))


def test_circular_paddings_of_one_sign() -> None:
    for pads in ((0, -1, 2, 1), (-3, 0, 0, 0), (1, 1, -1, -2)):
        run = _exported(lambda x, pads=pads: F.pad(x, pads, mode="circular"), torch.randn(2, 3, 9, 9))
        for size in (5, 8, 33):
            x = torch.randn(2, 3, 9, size)
            assert torch.equal(run(x), F.pad(x, pads, mode="circular"))
