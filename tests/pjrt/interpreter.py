# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of JAX, by the interpreter of small programs and by XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.export
import numpy as np

from shlo_disc.runtime.native_module import interpret

ANY_WORK = 2**62


def exported(function: Callable[..., Any], *arguments: Any) -> tuple[bytes, list[np.ndarray]]:
    """A function at the sizes of its arguments, as the plugin is given it, and the arguments that it reads."""
    found = jax.export.export(jax.jit(function))(*arguments)
    leaves = jax.tree.leaves(arguments)
    return bytes(found.mlir_module_serialized), [np.asarray(leaves[i]) for i in found.module_kept_var_idx]


def interpreted(function: Callable[..., Any], *arguments: Any, most_work: int = ANY_WORK) -> list[np.ndarray]:
    """The results of a function by the interpreter. Raises ValueError where it does not take the program."""
    return interpret(*exported(function, *arguments), most_work)


def by_xla(function: Callable[..., Any], *arguments: Any) -> list[np.ndarray]:
    """The results of a function by JAX on the CPU."""
    return [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(function)(*arguments))]


def check(function: Callable[..., Any], *arguments: Any, ulps: float = 0, absolute: float = 0) -> None:
    """Compare both: same shapes and types, and values that differ by so many units in the last place of the largest.

    ulps: 0 for equal bits. absolute: a difference that is allowed in any case.
    """
    found, expected = interpreted(function, *arguments), by_xla(function, *arguments)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        if ulps == 0 and absolute == 0:
            np.testing.assert_array_equal(one, other)
        else:
            tolerance = ulps * float(jax.numpy.finfo(other.dtype).eps)
            wide = np.complex128 if np.iscomplexobj(other) else np.float64
            np.testing.assert_allclose(one.astype(wide), other.astype(wide), rtol=tolerance, atol=absolute)
