# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments that are neither NumPy arrays, nor Buffers, nor Python numbers."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from shlo_disc.errors import ArgumentTypeError

from . import _native


def adapt_argument(value: object, path: str) -> Any:
    """Turns a call's argument into a NumPy array, a jax.Array, or an object with `__dlpack__`.

    `path` names the argument in errors. Raises ArgumentTypeError when the value is no array.
    """
    if isinstance(value, np.generic):
        return np.asarray(value)
    if is_jax_array(value):
        return value
    if hasattr(value, "__dlpack__"):
        return value
    if hasattr(value, "__array__"):
        return _by_array_method(value, path)
    raise ArgumentTypeError(f"{path} is a {type(value)}, which is not an array or a number")


def _by_array_method(value: object, path: str) -> np.ndarray:
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"{path} cannot be turned into an array: {error}") from error


def is_jax_array(value: object) -> bool:
    """Tells whether `value` is a concrete jax.Array, and from then on lets the core recognise them by type.

    Raises ArgumentTypeError for values that exist only while JAX traces a function.
    """
    jax = sys.modules.get("jax")
    if jax is None:
        return False
    if isinstance(value, jax.core.Tracer):
        raise ArgumentTypeError(
            "a compiled program cannot be called inside a function that JAX is tracing (jit, grad, vmap): "
            f"the argument is {value}"
        )
    if not isinstance(value, jax.Array) or jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended):
        return False
    _native.set_jax_array_type(type(value))
    return True
