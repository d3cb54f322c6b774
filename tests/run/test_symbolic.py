# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The option `symbolic`: what becomes a symbol, what stays a number, and results at other sizes."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

import shlo_disc
from shlo_disc.errors import OptionError, ShapeError


def compile_symbolic(text: str) -> shlo_disc.Executable:
    return shlo_disc.compile(text, options=shlo_disc.Options(symbolic=True))


def static_text(function, *shapes: tuple[int, ...], dtype: str = "float32") -> str:
    """The StableHLO that JAX makes of a function at static shapes."""
    return str(jax.jit(function).lower(*(jax.ShapeDtypeStruct(s, dtype) for s in shapes)).as_text())


def shapes_of(executable: shlo_disc.Executable) -> tuple[list[str], list[str]]:
    def shape(spec) -> str:
        return ", ".join(map(str, spec.dims))

    signature = executable.signature
    return [shape(a) for a in signature.arguments], [shape(r) for r in signature.results]


A, B, C = "arg0_d0", "arg0_d1", "arg1_d1"

PROGRAMS = {
    "softmax": (lambda x: jax.nn.softmax(x, axis=1), [(4, 6)], [f"{A}, {B}"], [f"{A}, {B}"]),
    "row mean": (lambda x: x - x.mean(axis=1, keepdims=True), [(4, 6)], [f"{A}, {B}"], [f"{A}, {B}"]),
    "product": (lambda x, y: x @ y, [(3, 5), (5, 7)], [f"{A}, {B}", f"{B}, {C}"], [f"{A}, {C}"]),
    "equal sizes stay apart": (lambda x: x.T + 1, [(5, 5)], [f"{A}, {B}"], [f"{B}, {A}"]),
    "flatten": (lambda x: x.reshape(-1) * 2, [(4, 6)], [f"{A}, {B}"], [f"{A}*{B}"]),
    "unit axes": (lambda x: x.reshape(1, 4, 1, 6) + 1, [(4, 6)], [f"{A}, {B}"], [f"1, {A}, 1, {B}"]),
    "split": (lambda x: x.reshape(2, 3, 5), [(6, 5)], [f"6, {B}"], [f"2, 3, {B}"]),
    "concatenate": (lambda x, y: jnp.concatenate([x, y]), [(3, 4), (5, 4)], [f"{A}, {B}", f"arg1_d0, {B}"],
                    [f"arg1_d0 + {A}, {B}"]),
    "pad": (lambda x: jnp.pad(x, ((1, 2), (0, 0))), [(3, 4)], [f"{A}, {B}"], [f"{A} + 3, {B}"]),
    "tail": (lambda x: x[1:], [(4, 6)], [f"{A}, {B}"], [f"{A} - 1, {B}"]),
    "head": (lambda x: x[:2], [(4, 6)], [f"{A}, {B}"], [f"2, {B}"]),
    "positions": (lambda x: x + jnp.arange(6), [(4, 6)], [f"{A}, {B}"], [f"{A}, {B}"]),
    "argmax": (lambda x: jnp.argmax(x, axis=1), [(4, 6)], [f"{A}, {B}"], [f"{A}"]),
    "a table of numbers": (lambda x: x + np.arange(6.0, dtype="f")[::-1], [(4, 6)], [f"{A}, 6"], [f"{A}, 6"]),
    "rows of a table": (lambda x, y: x[y.astype("int32")], [(4, 6), (3,)], [f"{A}, {B}", "arg1_d0"], [f"arg1_d0, {B}"]),
    "broadcast": (lambda x, y: x + y, [(4, 1), (1, 6)], [f"{A}, 1", f"1, {C}"], [f"{A}, {C}"]),
    "window": (lambda x: lax.dynamic_slice(x, (1, 0), (2, 6)), [(4, 6)], [f"{A}, {B}"], ["2, 6"]),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_becomes_a_symbol(name: str) -> None:
    function, shapes, arguments, results = PROGRAMS[name]
    executable = compile_symbolic(static_text(function, *shapes))
    assert shapes_of(executable) == (arguments, results)
    arrays = [np.random.default_rng(0).standard_normal(s).astype("f") for s in shapes]
    np.testing.assert_allclose(executable(*arrays), function(*arrays), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rows", [1, 2, 17, 33])
def test_other_sizes(rows: int) -> None:
    def function(x: jax.Array) -> jax.Array:
        return jax.nn.softmax(x, axis=1)

    executable = compile_symbolic(static_text(function, (4, 6)))
    x = np.random.default_rng(0).standard_normal((rows, 19)).astype("f")
    np.testing.assert_allclose(executable(x), function(x), rtol=1e-5, atol=1e-6)


def test_normalisation_of_features_alone() -> None:
    executable = compile_symbolic("""func.func @main(%x: tensor<4xf32>, %s: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "stablehlo.batch_norm_inference"(%x, %s, %s, %s, %s) <{epsilon = 0.0 : f32, feature_index = 0 : i64}>
        : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32> }""")
    x, s = np.arange(7, dtype="f"), np.full(7, 4, "f")
    np.testing.assert_allclose(executable(x, s), (x - s) / 2 * s + s, rtol=1e-6)


def test_related_arguments_are_checked() -> None:
    executable = compile_symbolic(static_text(lambda x, y: x + y, (4, 6), (4, 6)))
    with pytest.raises(ShapeError):
        executable(np.zeros((4, 6), "f"), np.zeros((4, 7), "f"))


def test_a_size_that_is_dynamic_already() -> None:
    with pytest.raises(OptionError, match="static sizes"):
        compile_symbolic("func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }")


def test_a_jax_function_has_its_own_symbols() -> None:
    with pytest.raises(OptionError, match="is for StableHLO"):
        shlo_disc.compile(jnp.sin, args=(("n", "float32"),), options=shlo_disc.Options(symbolic=True))
