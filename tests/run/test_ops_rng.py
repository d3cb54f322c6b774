# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random bits and the state after them, bit for bit as XLA's; JAX's random functions over the generators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

import shlo_disc
from tests.run.op_check import Sizes, check, check_text, random_array, tensor_text

ALGORITHMS = [("THREE_FRY", 2), ("PHILOX", 2), ("PHILOX", 3), ("DEFAULT", 2)]
SHAPES: dict[str, list[tuple[int, ...]]] = {"uint32": [(), (7,), (2, 3), (5, 5, 3)], "uint64": [(), (3, 5)]}

GENERATE = """func.func @main(%s: tensor<{words}xui64>) -> (tensor<{words}xui64>, {result}) {{
  %state, %bits = stablehlo.rng_bit_generator %s, algorithm = {algorithm} : (tensor<{words}xui64>)
    -> (tensor<{words}xui64>, {result})
  return %state, %bits : tensor<{words}xui64>, {result} }}"""


def states(words: int) -> list[np.ndarray]:
    """The second one's counter wraps around."""
    wraps = np.array([0x123456789ABCDEF1, 2**64 - 2, 2**64 - 1][:words], np.uint64)
    return [random_array((words,), "uint64"), wraps]


@pytest.mark.parametrize(("algorithm", "words"), ALGORITHMS)
@pytest.mark.parametrize("dtype", ("uint32", "uint64"))
def test_static_shapes(algorithm: str, words: int, dtype: str) -> None:
    for shape in SHAPES[dtype]:
        text = GENERATE.format(algorithm=algorithm, words=words, result=tensor_text(shape, dtype))
        check_text(text, [[s] for s in states(words)], static=0)


@pytest.mark.parametrize("dtype", ("uint8", "uint16"))
def test_narrow_integers(dtype: str) -> None:
    for algorithm, words in ALGORITHMS[::2]:
        text = GENERATE.format(algorithm=algorithm, words=words, result=tensor_text((3, 5), dtype))
        check_text(text, [[s] for s in states(words)], static=0)


OTHER_TYPES = [
    ("float16", "uint16"),
    ("float32", "uint32"),
    ("float64", "uint64"),
    ("int8", "uint8"),
    ("int64", "uint64"),
]


@pytest.mark.parametrize(("dtype", "bits"), OTHER_TYPES)
def test_other_types_hold_the_bits(dtype: str, bits: str) -> None:
    found = [
        np.asarray(shlo_disc.compile(GENERATE.format(algorithm="PHILOX", words=3, result=tensor_text((40,), d)))(s)[1])
        for d in (dtype, bits)
        for s in states(3)[:1]
    ]
    assert found[0].tobytes() == found[1].tobytes()


SIZES: list[Sizes] = [{"m": m, "n": n} for m, n in [(1, 1), (1, 2), (3, 3), (3, 5), (5, 3), (4, 6), (3, 16), (17, 33)]]


@pytest.mark.parametrize("algorithm", (lax.RandomAlgorithm.RNG_THREE_FRY, lax.RandomAlgorithm.RNG_DEFAULT))
@pytest.mark.parametrize("dtype", ("uint32", "uint64"))
def test_symbolic_shapes(algorithm: lax.RandomAlgorithm, dtype: str) -> None:
    """The axis that ThreeFry splits depends on which sizes are even, and on the largest."""

    def function(x: jax.Array, state: jax.Array) -> tuple[jax.Array, ...]:
        generate = lambda shape: lax.rng_bit_generator(state, shape, dtype=dtype, algorithm=algorithm)  # noqa: E731
        return (*generate(x.shape), *generate((x.shape[0], 3, x.shape[1])))

    check(function, [("m, n", "float32"), ("2", "uint64")], SIZES)


def test_bits_fuse_with_their_use() -> None:
    def function(x: jax.Array, state: jax.Array) -> jax.Array:
        return x + (lax.rng_bit_generator(state, x.shape, dtype="uint32")[1] >> 8).astype(jnp.float32)

    executable = check(function, [("n", "float32"), ("2", "uint64")], [{"n": n} for n in (1, 15, 16, 97)])
    assert executable.memory(n=1000).arena_bytes < 1000


def keyed(draw: Callable[[jax.Array, tuple[Any, ...]], Any], implementation: str) -> Callable[..., Any]:
    """`draw` with a key made of four words, for the shape of the other argument."""

    def function(x: jax.Array, words: jax.Array) -> Any:
        return draw(jax.random.wrap_key_data(words, impl=implementation), x.shape)

    return function


Draw = Callable[[jax.Array, tuple[Any, ...]], Any]

DRAWS: dict[str, Draw] = {
    "bits": lambda key, shape: [jax.random.bits(key, shape, d) for d in ("uint8", "uint16", "uint32", "uint64")],
    "uniform": lambda key, shape: [jax.random.uniform(key, shape, d) for d in ("float32", "float64")],
    "normal": lambda key, shape: jax.random.normal(key, shape, "float32"),
    "bernoulli": lambda key, shape: jax.random.bernoulli(key, 0.3, shape),
    "randint": lambda key, shape: jax.random.randint(key, shape, -5, 100, "int32"),
    "split": lambda key, shape: jax.random.key_data(jax.random.split(jax.random.fold_in(key, 7), 3)),
    "keys": lambda key, shape: jax.random.key_data(jax.random.split(key, shape)),
    "categorical": lambda key, shape: jax.random.categorical(key, jnp.arange(4, dtype="float32"), shape=shape),
    "choice": lambda key, shape: jax.random.choice(key, jnp.arange(5), shape),
    "gumbel": lambda key, shape: jax.random.gumbel(key, shape, "float32"),
    "truncated_normal": lambda key, shape: jax.random.truncated_normal(key, -1, 1, shape, "float32"),
    "exponential": lambda key, shape: jax.random.exponential(key, shape, "float32"),
    "laplace": lambda key, shape: jax.random.laplace(key, shape, "float32"),
    "gamma": lambda key, shape: jax.random.gamma(key, 2.0, shape, "float32"),
    "poisson": lambda key, shape: jax.random.poisson(key, 2.0, shape, "int32"),
    "beta": lambda key, shape: jax.random.beta(key, 2.0, 1.0, shape, "float32"),
}
REJECTION = ("gamma", "poisson", "beta")
"""Loops until every element is accepted: programs of several hundred ops."""


def check_draw(name: str, implementation: str, words: str) -> None:
    function = keyed(DRAWS[name], implementation)
    check(function, [("m, n", "float32"), (words, "uint32")], SIZES[1::3], ulps=16, floor=1.0)


@pytest.mark.parametrize("name", sorted(DRAWS.keys() - set(REJECTION)))
def test_threefry_keys(name: str) -> None:
    check_draw(name, "threefry2x32", "2")


@pytest.mark.parametrize("name", ("bits", "split", "keys", "randint"))
def test_rbg_keys(name: str) -> None:
    check_draw(name, "rbg", "4")


@pytest.mark.parametrize("name", ("bits", "uniform", "split"))
def test_unsafe_rbg_keys(name: str) -> None:
    check_draw(name, "unsafe_rbg", "4")


@pytest.mark.slow
@pytest.mark.parametrize("name", REJECTION)
def test_rejection_sampling(name: str) -> None:
    check_draw(name, "threefry2x32", "2")


CASTS = [("uint64", "uint8"), ("float32", "uint16"), ("int64", "float32"), ("float64", "int16")]


@pytest.mark.parametrize(("wide", "narrow"), CASTS)
def test_bitcasts_that_change_the_rank(wide: str, narrow: str) -> None:
    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        parts = lax.bitcast_convert_type(x, narrow)
        return parts, lax.bitcast_convert_type(parts[::-1], wide)

    check(function, [("m, n", wide)], SIZES[::3])


def test_bitcasts_between_bytes_and_bits() -> None:
    text = """func.func @main(%x: tensor<?xui8>) -> (tensor<?x8xi1>, tensor<?xui8>) {
      %b = stablehlo.bitcast_convert %x : (tensor<?xui8>) -> tensor<?x8xi1>
      %y = stablehlo.bitcast_convert %b : (tensor<?x8xi1>) -> tensor<?xui8>
      return %b, %y : tensor<?x8xi1>, tensor<?xui8> }"""
    x = random_array((33,), "uint8")
    bits, back = (np.asarray(r) for r in shlo_disc.compile(text)(x))
    assert (bits == np.unpackbits(x, bitorder="little").reshape(33, 8).astype(bool)).all()
    assert (back == x).all()


MAP = """func.func @main(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> tensor<?x?xi1> {
  %r = "stablehlo.map"(%x, %y) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %k = stablehlo.constant dense<0.5> : tensor<f32>
      %c = stablehlo.multiply %a, %k : tensor<f32>
      %p = stablehlo.compare LT, %c, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
  }) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xi1>
  return %r : tensor<?x?xi1> }"""


def test_map() -> None:
    shapes = [(1, 1), (3, 17), (16, 16), (0, 5)]
    check_text(MAP, [[random_array(s, "float32"), random_array(s, "float32", 1)] for s in shapes])
    assert "stablehlo.map" not in shlo_disc.compile(MAP).as_text("simplify")


def test_map_to_a_constant() -> None:
    text = MAP.replace("return %p", "return %t").replace(
        "%p =", "%t = stablehlo.constant dense<true> : tensor<i1>\n%p ="
    )
    check_text(text, [[random_array((3, 5), "float32")] * 2])
