# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear algebra under `torch.compile`, with gradients, matrices without an inverse, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from shlo_disc.errors import ShapeError, UnsupportedError  # noqa: E402
from shlo_disc.torch import backend  # noqa: E402
from tests.pytorch.test_data import compiled  # noqa: E402

L = torch.linalg

DIFFERENTIATED: dict[str, Callable[[Any], Any]] = {
    "inv": L.inv,
    "solve": lambda x: L.solve(x, x[:, :2] * 2),
    "solve with a transpose": lambda x: L.solve(x.mT, x[:, :2] * 2),
    "solve from the right": lambda x: L.solve(x, x[:2] * 2, left=False),
    "det": L.det,
    "det of a transpose": lambda x: L.det(x.mT),
    "slogdet": lambda x: L.slogdet(x)[1],
    "cholesky": lambda x: L.cholesky(x @ x.mT),
    "triangular": lambda x: L.solve_triangular(x, x[:, :2], upper=True),
    "lu": lambda x: L.lu(x)[2],
    "lu_solve": lambda x: L.lu_solve(*L.lu_factor(x), x),
    "qr": lambda x: L.qr(x)[1].abs(),
    "eigh": lambda x: L.eigh(x + x.mT)[1].abs(),
    "svdvals": L.svdvals,
    "pinv": L.pinv,
}


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_gradients(name: str) -> None:
    torch._dynamo.reset()
    function = DIFFERENTIATED[name]
    run = torch.compile(function, backend=backend, dynamic=True)
    for size in (5, 3, 8):
        torch.manual_seed(size)
        start = torch.randn(size, size, dtype=torch.float64) + size * torch.eye(size, dtype=torch.float64)
        ours, theirs = (start.clone().requires_grad_() for _ in range(2))
        found, wanted = run(ours), function(theirs)
        torch.testing.assert_close(found, wanted)
        found.sum().backward()
        wanted.sum().backward()
        torch.testing.assert_close(ours.grad, theirs.grad)
        with torch.no_grad():
            torch.testing.assert_close(run(start), function(start))


def exported(function: Callable[..., Any], dtype: Any = torch.float32) -> Any:
    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return function(x)

    size = torch.export.Dim.AUTO
    return shlo_disc.compile(
        torch.export.export(Module(), (torch.eye(5, dtype=dtype),), dynamic_shapes=({0: size, 1: size},))
    )


@pytest.mark.parametrize("function", [L.inv, L.cholesky, lambda x: L.solve(x, x)])
def test_matrices_without_an_inverse(function: Callable[..., Any]) -> None:
    """The results are no finite numbers, as docs/torch.md says."""
    run = exported(function)
    assert not bool(run(torch.zeros(3, 3)).isfinite().any())
    assert run(torch.zeros(0, 0)).shape == (0, 0)


def test_complex_matrices() -> None:
    with pytest.raises(UnsupportedError, match=r"linalg_inv_ex.*test_linear_algebra\.py:\d+.*of complex numbers"):
        exported(L.inv, torch.complex64)


def test_negative_numbers_and_repetitions() -> None:
    count = compiled(torch.bincount, torch.arange(5))
    assert count(torch.zeros(0, dtype=torch.int64)).shape == (0,)
    with pytest.raises(ShapeError, match=r"bincount_least = -1; bincount_least is the smallest number at \S+\.py:\d+"):
        count(torch.tensor([2, -1]))
    repeat = compiled(lambda x: torch.repeat_interleave(x), torch.tensor([1, 2]))
    with pytest.raises(ShapeError, match=r"is the smallest number of repetitions at"):
        repeat(torch.tensor([2, -1]))


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")])
def test_gradients_of_distances(p: float) -> None:
    """Also between equal rows, whose distance has no derivative."""
    torch._dynamo.reset()
    run = torch.compile(lambda x, y: torch.cdist(x, y, p), backend=backend, dynamic=True)
    for rows, others in ((6, 9), (30, 40)):
        torch.manual_seed(rows)
        start = torch.randn(2, rows, 5), torch.randn(2, others, 5)
        if rows < 10:  # of more rows the distances come from products, which round those of equal rows
            start[1][:, :3] = start[0][:, :3]
        pairs = [[v.clone().requires_grad_() for v in start] for _ in range(2)]
        found, wanted = run(*pairs[0]), torch.cdist(*pairs[1], p)
        torch.testing.assert_close(found, wanted)
        factors = torch.randn_like(wanted)
        gradients = [torch.autograd.grad(v, given, factors) for v, given in zip((found, wanted), pairs, strict=True)]
        torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)


def test_rrelu() -> None:
    negative = compiled(lambda x: torch.nn.functional.rrelu(x), torch.randn(3, 4))
    x = torch.randn(5, 4)
    torch.testing.assert_close(negative(x), torch.nn.functional.rrelu(x))
    drawn = compiled(lambda x: torch.nn.functional.rrelu(x, 0.2, 0.4, training=True), torch.randn(3, 4))
    slopes = drawn(-torch.ones(1000, 4)).neg()
    assert 0.2 <= float(slopes.min()) < 0.21 and 0.39 < float(slopes.max()) <= 0.4
    assert abs(float(slopes.mean()) - 0.3) < 0.01


@pytest.mark.parametrize(("count", "replacement"), [(1, False), (3, False), (3, True)])
def test_draws(count: int, replacement: bool) -> None:
    weights = torch.tensor([1.0, 2.0, 0.0, 7.0])
    run = compiled(lambda x: torch.multinomial(x, count, replacement), torch.rand(3, 4))
    torch.manual_seed(5)
    found = run(weights.expand(20000, 4).contiguous())
    assert found.shape == (20000, count)
    assert found.dtype == torch.int64
    frequencies = torch.bincount(found[:, 0], minlength=4) / 20000
    torch.testing.assert_close(frequencies, weights / 10, rtol=0, atol=0.02)
    if count == 3:
        assert bool((found.sort(1)[0].diff(dim=1) == 0).any()) == replacement
