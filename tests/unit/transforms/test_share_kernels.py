# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fusions that differ in numbers alone share a kernel; those next to them do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shlo_disc
from shlo_disc.shape_dialect.mlir import func
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.utils.regions import entry_block
from tests.unit.transforms.deciding import Function, compiled, taken

NUMBERS = (0.5, 1.5, -2.0, 3.0, 1e-3)


def steps(step: Callable[..., Any], numbers: tuple[float, ...] = NUMBERS) -> Function:
    """Steps with a number each, each of them in a loop, which keeps it apart from the others."""

    def run(x: jax.Array) -> jax.Array:
        for number in numbers:
            x = lax.fori_loop(0, 2, lambda _, y, number=number: step(y, number), x)
        return x

    return run


def executables(function: Function, dtype: str) -> tuple[shlo_disc.Executable, shlo_disc.Executable]:
    """With shared kernels, which are the last decision of the stage `fuse`, and without."""
    args = (("b, d", dtype),)
    without = compiled(function, "b, d")[0].decisions["fusion"].taken - 1
    options = [shlo_disc.Options(strict=True), shlo_disc.Options(strict=True, max_fusions=without)]
    shared, apart = (shlo_disc.compile(function, args=args, options=each) for each in options)
    return shared, apart


def kernels(made: shlo_disc.Executable) -> int:
    """The number of different kernels of a program besides those that count."""
    return len({k.name for k in made.kernels} - {"copy_bytes", "loop", "loop_add", "loop_compare"})


SHARED: dict[str, tuple[Callable[..., Any], int]] = {
    "product": (lambda x, n: x * n, 1),
    "sum and tanh": (lambda x, n: jnp.tanh(x + n), 1),
    "two numbers": (lambda x, n: jnp.maximum(x * n, n - 1.25), 1),
    "compared": (lambda x, n: jnp.where(x > n, x, -x), 1),
    "softmax": (lambda x, n: jax.nn.softmax(x * n, axis=-1), 1),
    "column means": (lambda x, n: jnp.tanh(x - jnp.mean(x * n, axis=0)), 2),
}
"""Steps, and the kernels of one."""


OFTEN = ("product", "float32"), ("compared", "float32"), ("two numbers", "float64")
SELDOM = [(name, "float32") for name in SHARED if (name, "float32") not in OFTEN] + [("softmax", "bfloat16")]


@pytest.mark.parametrize(("name", "dtype"), [*OFTEN, *(pytest.param(*case, marks=pytest.mark.slow) for case in SELDOM)])
def test_one_kernel_for_all_numbers(name: str, dtype: str) -> None:
    step, kernels_of_a_step = SHARED[name]
    function = steps(step)
    with jax.enable_x64(dtype == "float64"):
        shared, apart = executables(function, dtype)
        assert kernels(shared) == kernels_of_a_step < kernels(apart)
        for shape in ((1, 1), (3, 7), (8, 8), (9, 33), (2, 300)):
            x = np.asarray(np.random.default_rng(1).standard_normal(shape), jnp.dtype(dtype))
            found = shared(x)
            np.testing.assert_array_equal(found, apart(x))
            if dtype != "bfloat16":
                np.testing.assert_allclose(found, jax.jit(function)(x), 2e-5, 2e-5)


def test_too_few_to_pay() -> None:
    done, failed = compiled(steps(SHARED["product"][0], NUMBERS[:3]), "b, d")
    assert taken(done, "shared-kernel") == 0
    first, second = (steps(SHARED[name][0], NUMBERS[:3]) for name in ("product", "sum and tanh"))
    done, failed = compiled(lambda x: second(first(x)), "b, d")
    assert "shared-kernel.are-many" in failed and taken(done, "shared-kernel") == 0


def test_more_numbers_than_a_call_should_have() -> None:
    def step(x: jax.Array, number: float) -> jax.Array:
        for i in range(9):
            x = jnp.tanh(x * (number + i)) + (number - 0.3 * i)
        return x

    done, failed = compiled(steps(step), "b, d")
    assert "shared-kernel.differ-in-few-numbers" in failed and taken(done, "shared-kernel") == 0


def test_epilogues_keep_their_numbers() -> None:
    weights = np.eye(8, dtype=np.float32)

    def run(x: jax.Array) -> jax.Array:
        for number in NUMBERS:
            x = jnp.tanh((x @ weights) * number)
        return x

    done, _ = compiled(run, "b, 8")
    assert (taken(done, "epilogue"), taken(done, "shared-kernel")) == (len(NUMBERS), 0)


def test_rows_of_attentions_keep_their_numbers() -> None:
    def run(q: jax.Array, k: jax.Array) -> jax.Array:
        for number in NUMBERS:
            q = jax.nn.softmax((q @ k.T) * number - number, axis=-1) @ k
        return q

    done, failed = compiled(run, "b, 16", "n, 16")
    assert taken(done, "attention") == len(NUMBERS)
    assert "shared-kernel.are-called-by-the-program" in failed and taken(done, "shared-kernel") == 0


KEPT: dict[str, Callable[..., Any]] = {
    "divisor": lambda x, n: x / n,
    "exponent": lambda x, n: jnp.abs(x) ** n,
    "start of a reduction": lambda x, n: x + lax.reduce(x, np.float32(n), lax.max, (1,))[:, None],
    "integers": lambda x, n: x + (lax.broadcasted_iota(jnp.int32, x.shape, 0) * int(10 * n)).astype(jnp.float32),
}


@pytest.mark.parametrize("name", KEPT)
def test_numbers_that_the_code_depends_on(name: str) -> None:
    assert taken(compiled(steps(KEPT[name]), "b, d")[0], "shared-kernel") == 0


def test_numbers_that_are_the_same_stay() -> None:
    done, _ = compiled(steps(lambda x, n: jnp.maximum(x * n, 0.125)), "b, d")
    assert taken(done, "shared-kernel") == 1
    ops = [op for block in all_blocks(entry_block(done.module)) for op in block.operations]
    calls = [op for op in ops if isinstance(op, func.CallOp)]
    assert [len(call.operands) for call in calls if len(call.operands) > 1] == [2] * len(NUMBERS)


def test_in_branches_and_outside_of_them() -> None:
    def run(x: jax.Array) -> jax.Array:
        for number in NUMBERS:
            x = lax.cond(x[0, 0] > number, lambda y, n=number: jnp.tanh(y * n), lambda y, n=number: jnp.tanh(y * -n), x)
        return jnp.tanh(x * 7.0)

    done, _ = compiled(run, "b, d", strict=True)
    assert taken(done, "shared-kernel") >= 1
    made = shlo_disc.compile(run, args=(("b, d", "float32"),), options=shlo_disc.Options(strict=True))
    for shape in ((1, 1), (4, 9), (17, 16)):
        x = np.random.default_rng(2).standard_normal(shape, dtype=np.float32)
        np.testing.assert_allclose(made(x), jax.jit(run)(x), rtol=2e-5, atol=2e-6)


def test_scalars_do_not_take_over_the_memory_of_numbers() -> None:
    """A result as small as a number, in a call that is repeated."""

    def run(x: jax.Array) -> jax.Array:
        total = x.sum()
        for number in NUMBERS:
            total = lax.fori_loop(0, 3, lambda _, y, number=number: jnp.tanh(y * number + number), total)
        return total

    done, _ = compiled(run, "n")
    assert taken(done, "shared-kernel") == 1
    made = shlo_disc.compile(run, args=(("n", "float32"),), options=shlo_disc.Options(strict=True, guard_pages=True))
    x = np.random.default_rng(3).standard_normal(17, dtype=np.float32)
    results = [float(made(x)) for _ in range(4)]
    assert len(set(results)) == 1
    np.testing.assert_allclose(results[0], jax.jit(run)(x), rtol=1e-5)


def test_a_limit_leaves_it_out() -> None:
    whole, _ = compiled(steps(SHARED["product"][0]), "b, d")
    number = next(d.number for d in whole.decisions["fusion"].made if d.pattern == "shared-kernel")
    assert taken(compiled(steps(SHARED["product"][0]), "b, d", max_fusions=number)[0], "shared-kernel") == 0
