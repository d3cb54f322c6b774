# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes as numbers: ranges of both directions, negative sizes in kernels, and what a program says of its sizes."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import shlo_disc
from tests.run.op_check import check

ONE = [{"b": b} for b in (1, 2, 3, 15, 16, 17, 64)]
SEVERAL = [{"a": a, "b": b, "c": c} for a, b, c in ((1, 1, 1), (2, 3, 1), (3, 2, 2), (17, 1, 5), (1, 16, 3))]

RANGES: dict[str, tuple[str, Callable[..., jax.Array]]] = {
    "down by the size": ("b", lambda b: jnp.arange(b, 1, -b)),
    "through zero": ("b", lambda b: jnp.arange(-b, b, 2)),
    "down through zero": ("b", lambda b: jnp.arange(b, -b, -3)),
    "empty": ("b", lambda b: jnp.arange(b, b)),
    "rounded down": ("b", lambda b: jnp.arange(-b // 3, b % 3)),
    "three sizes": ("a, b, c", lambda a, b, c: jnp.arange(a, b, c)),
    "three sizes down": ("a, b, c", lambda a, b, c: jnp.arange(a, b, -c)),
}


@pytest.mark.parametrize("name", RANGES)
def test_ranges(name: str) -> None:
    shape, function = RANGES[name]
    sizes = SEVERAL if "a" in shape else ONE
    check(lambda x: function(*x.shape), [(shape, "float32")], sizes, static=0)


def test_one_kernel_knows_no_more_of_a_size_than_holds_for_all_that_share_it() -> None:
    def both(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        b = x.shape[0]
        return jnp.arange(b) * b, jnp.arange(b) * (3 - b)

    check(both, [("b", "int32")], ONE, static=0)


@pytest.mark.parametrize("residue", [0, 1, 3])
@pytest.mark.parametrize("hints", [{}, {"b": 131}])
def test_a_residue_is_no_divisor(residue: int, hints: dict[str, int]) -> None:
    options = shlo_disc.Options(hints=hints, guard_pages=True)
    constraints = (f"mod(b, 4) == {residue}",)
    executable = shlo_disc.compile(
        lambda x: x * 2 + x.shape[0], args=(("b", "float32"),), constraints=constraints, options=options
    )
    for b in (residue or 4, residue + 16, residue + 64):
        np.testing.assert_array_equal(executable(np.ones(b, "f")), np.full(b, 2 + b, "f"))


@pytest.mark.parametrize("shape", ["b", "2*b", "3*b + 1", "b + 2"])
@pytest.mark.parametrize("partitionable", [False, True])
def test_the_text_of_a_program_whose_argument_has_a_computed_size(shape: str, partitionable: bool) -> None:
    def noise(key: jax.Array, x: jax.Array) -> jax.Array:
        return x + jax.random.bits(key, x.shape).astype(jnp.float32)

    with jax.threefry_partitionable(partitionable):
        x = jax.ShapeDtypeStruct(export.symbolic_shape(shape), jnp.float32)
        exported = export.export(jax.jit(noise), platforms=["cpu"])(jax.ShapeDtypeStruct((2,), jnp.uint32), x)
        executable = shlo_disc.compile(exported.mlir_module())
        for b in (1, 2, 16):
            size = eval(shape, {"b": b})  # noqa: S307
            arrays = np.array([1, 2], "uint32"), np.ones(size, "f")
            np.testing.assert_array_equal(jax.tree.leaves(executable(*arrays))[0], jax.jit(noise)(*arrays))


@pytest.mark.parametrize(("constraint", "kernels"), [("s >= 8", 2), ("mod(s, 8) == 0", 1), ("mod(s, 24) == 0", 1)])
def test_a_slice_that_is_proved_to_be_whole_is_none(constraint: str, kernels: int) -> None:
    def windows(x: jax.Array) -> jax.Array:
        b, s = x.shape
        return jax.nn.softmax(x[:, : s // 8 * 8].reshape(b, s // 8, 8), axis=-1).reshape(b, s // 8 * 8)

    executable = shlo_disc.compile(windows, args=(("b, s", "float32"),), constraints=[constraint])
    assert len(executable.kernels) == kernels
    for shape in ((1, 24), (3, 48), (17, 240)):
        x = np.random.default_rng(shape[0]).standard_normal(shape).astype(np.float32)
        np.testing.assert_allclose(executable(x), jax.jit(windows)(x), rtol=1e-5)
