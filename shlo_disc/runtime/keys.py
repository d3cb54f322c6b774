# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Typed PRNG keys of JAX (`jax.random.key`). Programs take and return their data: integers, with a dim more."""

from __future__ import annotations

import sys
from typing import Any

from shlo_disc.errors import ArgumentTypeError


def is_key_array(value: Any) -> bool:
    """Tells whether a value is an array of typed keys, and concrete."""
    jax = sys.modules.get("jax")
    if jax is None or isinstance(value, jax.core.Tracer) or not isinstance(value, jax.Array):
        return False
    return bool(jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key))


def key_data(keys: Any, path: str, expected: str) -> Any:
    """The data of keys, which are to be of the implementation `expected`; "": the program takes no keys there.

    Raises ArgumentTypeError where it takes others.
    """
    from jax import random

    if not expected:
        raise ArgumentTypeError(
            f"{path} is an array of {keys.dtype}, and the program takes numbers: pass jax.random.key_data(keys)"
        )
    implementation = random.key_impl(keys)
    if implementation != expected:
        raise ArgumentTypeError(f"Dtype mismatch for {path}: expected keys of {expected}, not of {implementation}")
    return random.key_data(keys)


def key_array(data: Any, implementation: str) -> Any:
    """Keys of their data; the data where there is no JAX."""
    try:
        from jax import random
    except ImportError:
        return data
    wrap: Any = random.wrap_key_data
    return wrap(data, impl=implementation)


def key_dtype(implementation: str) -> Any:
    """The dtype of keys. Needs JAX."""
    import jax

    return jax.eval_shape(lambda: jax.random.key(0, impl=implementation)).dtype
