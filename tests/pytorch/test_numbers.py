# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers that a compiled graph computes from sizes and floats: results and gradients, forwards and backwards."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from shlo_disc.torch import backend, graph_count  # noqa: E402

F = torch.nn.functional

SIZES = ((4, 3), (5, 6), (9, 2), (3, 7))


@pytest.fixture(autouse=True)
def _reset() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def _tensors(grad: bool, *shapes: tuple[int, ...]) -> list[Any]:
    return [torch.randn(shape).requires_grad_(grad) for shape in shapes]


def compare(function: Callable[..., Any], arguments: Callable[[int, int], list[Any]], grad: bool) -> None:
    """A function beside its compiled form, one graph forwards and one backwards for all sizes."""
    run = torch.compile(function, backend=backend, dynamic=True)
    before = graph_count()
    for n, m in SIZES:
        given = arguments(n, m)
        found, wanted = run(*given), function(*given)
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
        if grad:
            tensors = [v for v in given if isinstance(v, torch.Tensor)]
            pairs = [torch.autograd.grad(v.square().sum(), tensors) for v in (found, wanted)]
            torch.testing.assert_close(*pairs, rtol=1e-4, atol=1e-5)
    assert graph_count() - before == 1 + grad


def _all(x: Any) -> Any:
    """Numbers computed from sizes in many ways."""
    n, m = x.shape
    scaled = x * (1 / math.sqrt(m)) + x * (1 / (n * m)) - x * (n / 2) + x * (n / m) * math.sqrt(n / m)
    return scaled / n + 2.0 / (x.square() + m) + (m**0.5) * x


@pytest.mark.parametrize("grad", [False, True])
def test_of_sizes(grad: bool) -> None:
    compare(_all, lambda n, m: _tensors(grad, (n, m)), grad)


@pytest.mark.parametrize("grad", [False, True])
def test_of_float_arguments(grad: bool) -> None:
    def function(x: Any, a: float, b: float) -> Any:
        return x * (1 / a) + x.exp() * (a * b) - x / (a + x.shape[0]) + a**2

    compare(function, lambda n, m: [*_tensors(grad, (n, m)), 1 / n, m + 0.5], grad)


def test_powers() -> None:
    """PyTorch fixes an exponent where it computes a gradient."""
    compare(lambda x: x.abs().clamp(0.1) ** (1 / x.shape[0]), lambda n, m: _tensors(False, (n, m)), False)


@pytest.mark.slow
@pytest.mark.parametrize("grad", [False, True])
def test_attention_whose_heads_are_of_a_symbolic_size(grad: bool) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        scores = (q @ k.mT) * (1.0 / math.sqrt(q.size(-1)))
        return F.scaled_dot_product_attention(q, k, v) + scores.softmax(-1) @ v

    compare(function, lambda n, m: _tensors(grad, *[(2, n, m + 4, 2 * m)] * 3), grad)


@pytest.mark.slow
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "nearest-exact", "bicubic"])
def test_interpolation_by_a_factor(mode: str, grad: bool) -> None:
    compare(
        lambda x: F.interpolate(x, scale_factor=2.0, mode=mode), lambda n, m: _tensors(grad, (1, 2, n + 2, m + 2)), grad
    )


def test_the_line_of_ops_that_pytorch_puts_into_a_graph() -> None:
    def function(x: Any) -> Any:
        y = torch.special.erfcx(x * (1 / math.sqrt(x.shape[0])))
        return y + 1

    with pytest.raises(Exception, match=rf"special_erfcx\.default at {__file__}:"):
        torch.compile(function, backend=backend, dynamic=True)(torch.randn(4, 3))


RANGES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    **{f"linspace {a} {b} {n}": (torch.linspace, (a, b, n))
       for a, b in ((0, 1), (-1, 1), (0.1, 0.9), (5, -3.3), (2, 2)) for n in (0, 1, 2, 7, 33, 100, 1000)},
    **{f"arange {a} {b} {s}": (torch.arange, (a, b, s))
       for a, b, s in ((0, 1, 0.1), (0, 10, 0.3), (0.1, 5, 0.7), (5, -5, -0.3), (0, 1, 0.001), (0, 7, 1.5))},
}  # fmt: skip


def _is_whole(numbers: tuple[Any, ...], dtype: Any) -> bool:
    return dtype == torch.int64 and abs(numbers[2]) >= 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.complex64], ids=str)
def test_ranges(dtype: Any) -> None:
    """Each bit as in eager, which rounds in its own order; the steps of integers are integers."""

    class Ranges(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x, *(function(*numbers, dtype=dtype) for function, numbers in chosen)

    chosen = [
        (f, n) for f, n in RANGES.values() if f is torch.linspace or dtype.is_floating_point or _is_whole(n, dtype)
    ]
    x = torch.ones(2)
    found = shlo_disc.compile(torch.export.export(Ranges(), (x,)))(x)
    for (function, numbers), own in zip(chosen, found[1:], strict=True):
        wanted = function(*numbers, dtype=dtype)
        assert own.dtype == wanted.dtype
        assert torch.equal(own, wanted), (function, numbers)


def test_ranges_in_dynamos_graphs() -> None:
    run = torch.compile(lambda x: x * torch.linspace(0, 1, x.shape[0]), backend=backend, dynamic=True)
    for size in (5, 9, 100):
        assert torch.equal(run(torch.ones(size)), torch.linspace(0, 1, size))


def test_ranges_of_many_numbers() -> None:
    """They are computed, where they would be a large part of the program."""

    class Ranges(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            whole = torch.linspace(3, 90001, 70000, dtype=torch.int64)
            return torch.linspace(0.1, 0.9, 70000), torch.arange(0, 7000.1, 0.1), whole

    module = Ranges()
    found = shlo_disc.compile(torch.export.export(module, (torch.ones(2),)))(torch.ones(2))
    torch.testing.assert_close(found, module(None), rtol=2e-7, atol=0)
