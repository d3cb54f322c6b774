# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Halves beside numbers and tensors of one element: rounded, or not, where eager PyTorch does it, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from shlo_disc.torch import backend  # noqa: E402
from tests.pytorch.modules import Applied  # noqa: E402

HALVES = (torch.float16, torch.bfloat16)
SIZES = (1, 2, 15, 16, 17, 97, 1031)

OPS: dict[str, tuple[Callable[[Any, Any], Any], float]] = {
    "add": (lambda x, s: x + s, 1.2345),
    "subtract": (lambda x, s: x - s, 1.2345),
    "subtract from": (lambda x, s: s - x, 1.2345),
    "multiply": (lambda x, s: x * s, 1.2345),
    "multiply by large": (lambda x, s: (x * 1e-4) * s, 70000.0),
    "multiply by small": (lambda x, s: (x * 1e4) * s, 1e-9),
    "multiply a number": (lambda x, s: s * x, 1.2345),
    "divide": (lambda x, s: x / s, 1.2345),
    "divide a number": (lambda x, s: s / x, 1.2345),
    "divide, down": (lambda x, s: torch.div(x, s, rounding_mode="floor"), 0.3),
    "divide, to zero": (lambda x, s: torch.div(x, s, rounding_mode="trunc"), 0.3),
    "remainder": (lambda x, s: x % s, 0.3),
    "remainder of a number": (lambda x, s: torch.remainder(s, x), 1.2345),
    "fmod": (lambda x, s: torch.fmod(x, s), 0.3),
    "less": (lambda x, s: x < s, 0.3),
    "equal": (lambda x, s: x == s, 0.3),
    "where": (lambda x, s: torch.where(x > 0, x, s), 1.2345),
    "clamp": (lambda x, s: torch.clamp(x, max=s), 0.3),
}
POWERS = (-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 1.5)
KINDS: dict[str, Callable[[float, Any], Any]] = {
    "number": lambda s, _: s,
    "float32": lambda s, _: torch.tensor(s),
    "float64": lambda s, _: torch.tensor(s, dtype=torch.float64),
    "half": lambda s, dtype: torch.tensor(s).to(dtype),
}
CASES = [(op, kind) for op in OPS for kind in KINDS if op != "clamp" or kind in ("number", "half")]
"""A bound of `clamp` that is a tensor of another dtype promotes the result."""


@pytest.fixture(autouse=True)
def _reset() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def _compare(function: Callable[..., Any], dtype: Any, *others: Any) -> None:
    """A function beside its compiled form, to the last bit."""
    run = torch.compile(function, backend=backend, dynamic=True)
    for size in SIZES:
        x = (torch.randn(size) * 3).to(dtype)
        found, wanted = run(x, *others), function(x, *others)
        assert found.dtype == wanted.dtype
        assert torch.equal(found.nan_to_num(7.0), wanted.nan_to_num(7.0)), (x[found != wanted], found[found != wanted])


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize(("op", "kind"), CASES)
def test_rounding(op: str, kind: str, dtype: Any) -> None:
    function, number = OPS[op]
    other = KINDS[kind](number, dtype)
    if kind == "number":
        _compare(lambda x: function(x, other), dtype)
    else:
        _compare(function, dtype, other)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("power", POWERS)
def test_powers(power: float, dtype: Any) -> None:
    """Bit for bit where the steps are multiplications; else the power of a float32 is rounded."""
    run = torch.compile(lambda x: x**power, backend=backend, dynamic=True)
    for size in SIZES:
        x = torch.rand(size).mul(3).add(0.1).to(dtype)
        found, wanted = run(x), x**power
        if power in (0.0, 1.0, 2.0) or (power in (-2.0, 3.0) and dtype == torch.bfloat16):
            assert torch.equal(found, wanted)
        torch.testing.assert_close(found, wanted, rtol=torch.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_scaled_sums(dtype: Any) -> None:
    """Eager PyTorch rounds the product of the last elements alone, those that fill no vector."""
    other = torch.tensor(1.2345)
    for function in (lambda x: torch.add(x, other, alpha=1.7), lambda x: torch.sub(x, x * 2, alpha=1.7)):
        torch._dynamo.reset()
        run = torch.compile(function, backend=backend, dynamic=True)
        for size in SIZES:
            x = (torch.randn(size) * 3).to(dtype)
            wanted = function(torch.nn.functional.pad(x, (0, 64)))[:size]
            assert torch.equal(run(x), wanted)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_sizes(dtype: Any) -> None:
    """A size is a number: 70000 of float16 would be infinite."""
    for scaled in (lambda x: x * x.shape[0], lambda x: x * (1 / x.shape[0]), lambda x: x / x.shape[0]):
        torch._dynamo.reset()
        run = torch.compile(scaled, backend=backend, dynamic=True)
        for size in (3, 17, 70000):
            x = (torch.rand(size) * 1e-3).to(dtype)
            assert torch.equal(run(x), scaled(x))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_integers(dtype: Any) -> None:
    """An integer of rank 0, or of one element in any rank, is not rounded; other integers are."""
    large = torch.tensor(70001)
    for other in (large, large.reshape(1), torch.full((17,), 70001)):
        torch._dynamo.reset()
        run = torch.compile(torch.mul, backend=backend, dynamic=True)
        x = (torch.rand(17) * 1e-3).to(dtype)
        assert torch.equal(run(x, other), x * other)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_exported(dtype: Any) -> None:
    """A parameter of float32 that scales halves, exported."""
    import shlo_disc

    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor(1e5))

        def forward(self, x: Any) -> Any:
            return x * self.scale * 1e-3 + Applied(lambda v: v % 0.3)(x)

    module = Scaled()
    program = shlo_disc.compile(
        torch.export.export(module, (torch.ones(4, dtype=dtype),), dynamic_shapes=({0: torch.export.Dim.AUTO},))
    )
    for size in SIZES[1:]:
        x = (torch.rand(size) * 1e-3).to(dtype)
        with torch.no_grad():
            wanted = module(x)
        assert torch.equal(program(x), wanted)


def test_gradient() -> None:
    """Scales that leave float16 and come back, forwards and backwards."""
    run = torch.compile(lambda x: (x * 70000.0 * 1e-4).sum(), backend=backend, dynamic=True)
    for size in (5, 17):
        x = (torch.rand(size) * 1e-2).half().requires_grad_()
        run(x).backward()
        found, x.grad = x.grad, None
        (x * 70000.0 * 1e-4).sum().backward()
        assert torch.equal(found, x.grad)
