# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Typed PRNG keys (`jax.random.key`) as arguments and results, beside JAX's own."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend import random as extend_random

import shlo_disc
from shlo_disc.errors import ArgumentTypeError, ShapeError, UnsupportedError
from shlo_disc.runtime import Buffer, Client

IMPLEMENTATIONS = ("threefry2x32", "rbg", "unsafe_rbg")


def drawn(key: Any, x: Any) -> Any:
    """A key in, keys in a pytree out."""
    first, second = jax.random.split(key)
    return first, {"next": second}, x + jax.random.uniform(first, x.shape)


def many(keys: Any) -> Any:
    """An array of keys, as many as a symbol says."""
    return jax.vmap(jax.random.split)(keys), jax.vmap(lambda key: jax.random.bits(key, (3,)))(keys)


def key_type(implementation: str = "threefry2x32") -> Any:
    return jax.random.key(0, impl=implementation).dtype


def assert_same(got: Any, want: Any) -> None:
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for mine, other in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert mine.shape == other.shape
        assert mine.dtype == other.dtype
        if jax.dtypes.issubdtype(mine.dtype, jax.dtypes.prng_key):
            mine, other = jax.random.key_data(mine), jax.random.key_data(other)
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(other))


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_keys_in_and_out(implementation: str) -> None:
    key = jax.random.key(3, impl=implementation)
    program = shlo_disc.compile(drawn, args=(jax.ShapeDtypeStruct((), key.dtype), ("b", "float32")))
    for size in (1, 3, 17):
        x = np.zeros(size, np.float32)
        assert_same(program(key, x), jax.jit(drawn)(key, x))
        assert program.out_shape(b=size) == jax.eval_shape(drawn, key, x)
        assert program.loaded.dims_of(key.shape, x.shape) == {"b": size}
    name = f"key<{implementation}>[]"
    assert str(program.signature) == (
        f"drawn(args[0]: {name}, args[1]: f32[b]) -> (result[0]: {name}, result[1]['next']: {name}, result[2]: f32[b])"
    )


@pytest.mark.slow
def test_arrays_of_keys() -> None:
    program = shlo_disc.compile(many, args=(("b", key_type()),))
    for size in (1, 2, 16, 17):
        keys = jax.random.split(jax.random.key(1), size)
        assert_same(program(keys), many(keys))
        assert_same(program.bind(keys)(), many(keys))
    loaded = Client().load(program.artifact.serialize(), trust=True)
    assert_same(loaded(keys), many(keys))
    assert program.explain(b=5).kernels


def test_keys_with_jit() -> None:
    function = shlo_disc.jit(many, dynamic="b")
    for size in (3, 5):
        keys = jax.random.split(jax.random.key(size), size)
        assert_same(function(keys), many(keys))
    assert function.compile_count == 1


def test_a_key_that_a_program_makes() -> None:
    program = shlo_disc.compile(lambda seed: jax.random.key(seed), args=(("", "int32"),))
    assert_same(program(7), jax.random.key(7))


def test_keys_that_are_passed_on_or_not_read() -> None:
    program = shlo_disc.compile(lambda a, b: a, args=(("n", key_type()), ("", key_type("rbg"))))
    keys = jax.random.split(jax.random.key(1), 3)
    assert_same(program(keys, jax.random.key(0, impl="rbg")), keys)
    with pytest.raises(ArgumentTypeError, match=r"args\[1\]: expected keys of rbg, not of threefry2x32"):
        program(keys, keys[0])


def test_the_data_of_keys_is_taken_as_well() -> None:
    key, x = jax.random.key(5), np.zeros(4, np.float32)
    program = shlo_disc.compile(drawn, args=(jax.ShapeDtypeStruct((), key.dtype), ("b", "float32")))
    want = jax.jit(drawn)(key, x)
    assert_same(program(jax.random.key_data(key), jnp.asarray(x)), want)
    got = program(np.asarray(jax.random.key_data(key)), x)
    assert_same((got[0], got[1]), (want[0], want[1]))
    buffers = program.loaded.execute((key, x), output="buffer")
    assert isinstance(buffers[0], Buffer) and buffers[0].shape == (2,)


def test_wrong_keys() -> None:
    program = shlo_disc.compile(drawn, args=(jax.ShapeDtypeStruct((), key_type()), ("b", "float32")))
    x = np.zeros(4, np.float32)
    with pytest.raises(ArgumentTypeError, match=r"args\[0\]: expected keys of threefry2x32, not of rbg"):
        program(jax.random.key(0, impl="rbg"), x)
    with pytest.raises(ShapeError, match=r"Rank mismatch for args\[0\]"):
        program(jax.random.split(jax.random.key(0)), x)
    with pytest.raises(ArgumentTypeError, match=r"args\[1\] is an array of key<fry>, and the program takes numbers"):
        program(jax.random.key(0), jax.random.split(jax.random.key(0), 4))


def test_keys_of_a_users_own_implementation_are_refused() -> None:
    own = extend_random.define_prng_impl(
        key_shape=(3,),
        seed=lambda seed: jnp.zeros(3, jnp.uint32),
        split=lambda key, shape: jnp.zeros((*shape, 3), jnp.uint32),
        random_bits=lambda key, width, shape: jnp.zeros(shape, jnp.uint32),
        fold_in=lambda key, data: key,
        name="own",
        tag="own",
    )
    dtype = jax.random.wrap_key_data(jnp.zeros(3, jnp.uint32), impl=own).dtype
    with pytest.raises(UnsupportedError, match=r"args\[0\] on key<own>"):
        shlo_disc.compile(lambda key: key, args=(jax.ShapeDtypeStruct((), dtype),))
