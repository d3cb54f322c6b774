# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`Executable.max_dim`: the largest size for which memory suffices."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import shlo_disc
from shlo_disc.errors import ShapeError
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.largest import LARGEST, largest_value


def layer(w: Any, x: Any) -> Any:
    return jax.nn.softmax(jnp.tanh(x @ w) @ w.T)


@pytest.fixture(scope="module")
def executable() -> shlo_disc.Executable:
    return shlo_disc.compile(layer, args=(((24, 40), "float32"), ("b, s, 24", "float32")))


@pytest.mark.parametrize("memory", [5_000, 5_001, 123_457, 10**6, 10**9, 7 * 10**12])
def test_one_more_does_not_fit(executable: shlo_disc.Executable, memory: int) -> None:
    for length in (1, 2, 7, 8, 13):
        found = executable.max_dim("b", memory=memory, s=length)
        assert found == executable.max_dim("b", {"s": length}, memory=memory)
        assert executable.peak_memory(b=found, s=length) <= memory < executable.peak_memory(b=found + 1, s=length)


def test_exactly_as_much_fits(executable: shlo_disc.Executable) -> None:
    for batch in (1, 2, 7, 8, 9, 997):
        needed = executable.peak_memory(b=batch, s=3)
        assert executable.max_dim("b", memory=needed, s=3) == batch
        if batch > 1:
            assert executable.max_dim("b", memory=needed - 1, s=3) == batch - 1


def test_a_maximum_is_kept() -> None:
    program = shlo_disc.compile(jnp.cumsum, args=(("n", "float32"),), constraints=["n <= 100", "n >= 3"])
    assert program.max_dim("n", memory=10**9) == 100
    assert program.max_dim("n", memory=4 * 50 + 3) <= 50
    with pytest.raises(ShapeError, match=r"no value of 'n' fits 8 bytes: a call with n=3 takes \d+"):
        program.max_dim("n", memory=8)


def test_constraints_hold() -> None:
    """A value that no call may have is none that fits."""
    program = shlo_disc.compile(
        lambda x, y: x.sum() + y, args=(("b, s", "float32"), ("b", "float32")), constraints=["mod(b, 8) == 0", "b <= s"]
    )
    assert program.max_dim("b", memory=10**9, s=1_000_003) == 1_000_000
    found = program.max_dim("b", memory=4 * 1001 + 200, s=1_000_003)
    assert found % 8 == 0 and program.peak_memory(b=found, s=1_000_003) <= 4 * 1001 + 200


def test_a_formula_that_is_not_monotone() -> None:
    """The greatest value that fits, where a smaller one does not."""
    formula = Expr.parse("3*n + 1000*mod(n, 7) - 40*mod(n, 3)")
    for limit in (0, 50, 999, 1234, 5000):
        found = largest_value(
            "n",
            1,
            LARGEST,
            lambda facts, limit=limit: (facts.range(formula)[0] or 0) <= limit,
            lambda n, limit=limit: formula.evaluate({"n": n}) <= limit,
        )
        values = [n for n in range(1, 5000) if formula.evaluate({"n": n}) <= limit]
        assert found == (values[-1] if values else None)


def test_refusals(executable: shlo_disc.Executable) -> None:
    with pytest.raises(ShapeError, match=r"no dimension variable 'q'; it has \['b', 's'\]"):
        executable.max_dim("q", memory=10**6, b=1, s=1)
    with pytest.raises(ShapeError, match=r"expected values for the dimension variables \['s'\], got \[\]"):
        executable.max_dim("b", memory=10**6)
    with pytest.raises(ShapeError, match=r"got \['b', 's'\]"):
        executable.max_dim("b", memory=10**6, s=1, b=1)
    with pytest.raises(ShapeError, match="no value of 'b' fits 10 bytes"):
        executable.max_dim("b", memory=10, s=3)
    with pytest.raises(ShapeError, match="memory= is a number of bytes, not 1.5"):
        executable.max_dim("b", memory=1.5, s=3)  # type: ignore[arg-type]
    constant = shlo_disc.compile(lambda x: jnp.float32(x.shape[0]), args=(("n", "float32"),))
    with pytest.raises(ShapeError, match="every value of 'n' fits 100000 bytes"):
        constant.max_dim("n", memory=100_000)
