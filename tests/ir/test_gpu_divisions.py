# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Division of positions by multipliers: quotients and remainders for numerators and divisors around all edges."""

from __future__ import annotations

import numpy as np
import pytest

from shlo_disc.lowering.multiples import Multiples
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering_gpu.lane_math import NARROW, SHIFT, LaneMath, multiplier_of
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir, scf
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts
from tests.ir.gpu_emulator import Block

EDGES = [1 << k for k in range(32)]
DIVISORS = sorted(
    {d for e in EDGES for d in (e - 1, e, e + 1, e * 3 // 2, e * 5 // 3) if 0 < d < NARROW} | set(range(1, 70))
)


def numerators(divisor: int) -> list[int]:
    """Numerators around multiples of a divisor and around powers of two, and the largest."""
    most = (NARROW - 1) // divisor
    multiples = {
        k * divisor for k in (0, 1, 2, 3, most // 3, most // 2, most - 1, most, *(e % (most + 1) for e in EDGES))
    }
    edges = {n + step for n in multiples | set(EDGES) for step in (-1, 0, 1)} | {NARROW - 1}
    return [n for n in sorted(edges) if 0 <= n < NARROW]


def divided(places: np.ndarray, divisors: np.ndarray, multipliers: np.ndarray, width: int) -> list[np.ndarray]:
    """Quotients and remainders as kernels compute them, in vectors where the width is above 1."""
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        zero = index_constant(0)
        body = scf.ForOp(zero, zero, zero, [zero, zero]).body
    with ir.InsertionPoint(body):
        place, divisor, multiplier = body.arguments
        math = LaneMath(width, True, Multiples(width, Facts()), lambda value: multiplier)
        found = math.divmod(Position(place, int(width > 1)), divisor)
        scf.yield_([p.base if width == 1 else p.lanes for p in found])
    assert "arith.divui" not in str(module)
    values = dict(zip(body.arguments, (places, divisors, multipliers), strict=True))
    return Block({}, 0, 1, len(places)).run(body, values, np.ones(len(places), bool))


@pytest.mark.parametrize("width", [1, 4])
def test_quotients_around_all_edges(width: int) -> None:
    """Up to 2^31 - 1, by each divisor near a power of two, with multipliers as the host passes them."""
    pairs = [(n, d, multiplier_of(Expr.symbol("d")).evaluate({"d": d})) for d in DIVISORS for n in numerators(d)]
    places, divisors, multipliers = np.array(pairs, np.int64).T
    places = np.maximum(places - (width - 1), 0)
    with make_context(), ir.Location.unknown():
        quotients, rests = divided(places, divisors, multipliers, width)
    if width > 1:
        places, divisors = places[:, None] + np.arange(width), divisors[:, None]
    assert len(pairs) > 20_000
    np.testing.assert_array_equal(quotients, places // divisors)
    np.testing.assert_array_equal(rests, places % divisors)


def test_multipliers() -> None:
    """A size of 0 divides as 1; all fit a signed word of the host, and the bound that the proof needs holds."""
    multiplier = multiplier_of(Expr.symbol("d"))
    assert multiplier.evaluate({"d": 0}) == multiplier.evaluate({"d": 1}) == (1 << SHIFT) + 1
    for d in DIVISORS:
        error = multiplier.evaluate({"d": d}) * d - (1 << SHIFT)
        assert 1 <= error <= d and error * (NARROW - 1) < 1 << SHIFT
