# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lowering rule of `jax.lax.linalg.tridiagonal_solve` for systems that may be singular (`perturb_singular=True`).

JAX calls a function of its own there. Ours is a loop down the rows and one up, as in LAPACK's xLAGTF and xLAGTS
(Anderson et al., 1999): Gaussian elimination with scaled partial pivoting, and pivots that are moved by multiples of
eps * max |U| where a division would overflow. All systems of a batch go through the loops together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src.interpreters import mlir
from jax._src.lax.linalg import tridiagonal_solve_p

from shlo_disc.options import CPU


def lower_tridiagonal_solve(context: Any, *operands: Any, perturb_singular: bool = False) -> Sequence[Any]:
    """The lowering rule. Systems that are not perturbed keep JAX's rule for processors, which calls LAPACK."""
    if not perturb_singular:
        rule = mlir._platform_specific_lowerings[CPU][tridiagonal_solve_p].rule
        return rule(context, *operands, perturb_singular=False)
    return mlir.lower_fun(_perturbed_solve, multiple_results=False)(context, *operands)


def _perturbed_solve(lower: Any, diagonal: Any, upper: Any, b: Any) -> Any:
    """x of a x = b: diagonals [..., m], of which lower[..., 0] and upper[..., -1] are not used; b and x [..., m, k]."""
    m = diagonal.shape[-1]
    if m == 0:
        return b
    position = jnp.arange(m)
    lower, upper = jnp.where(position > 0, lower, 0), jnp.where(position < m - 1, upper, 0)
    lower, diagonal, upper = (jnp.moveaxis(x, -1, 0) for x in (lower, diagonal, upper))
    b = jnp.moveaxis(b, -2, 0)
    zero, none = jnp.zeros_like(diagonal[0]), jnp.zeros_like(b[0])
    start = zero, zero, abs(zero), none  # a row above the first one
    (last, _, _, right), (rows, rights) = lax.scan(_eliminate, start, (lower, diagonal, upper, b))
    rows = [jnp.concatenate([x[1:], y[None]]) for x, y in zip(rows, (last, zero, zero), strict=True)]
    rights = jnp.concatenate([rights[1:], right[None]])
    largest = jnp.max(jnp.stack([jnp.max(abs(row), axis=0) for row in rows]), axis=0)
    step = jnp.finfo(largest.dtype).eps * largest

    def substitute(below: Any, row: Any) -> Any:
        (pivot, first, second), right = row
        pivot, right = _moved(pivot, right - first[..., None] * below[0] - second[..., None] * below[1], step)
        x = right * (1 / pivot)[..., None]
        return (x, below[0]), x

    _, x = lax.scan(substitute, (none, none), (tuple(rows), rights), reverse=True)
    return jnp.moveaxis(x, 0, -2)


def _eliminate(above: Any, row: Any) -> Any:
    """One row less: what is left of the two, and the row of U with its right-hand side.

    above: the pivot, the element right of it, their scale, and the right-hand side of the row above.
    """
    pivot, beside, scale, right = above
    low, middle, high, b = row
    own = abs(low) + abs(middle) + abs(high)
    rank = jnp.where(pivot == 0, 0, abs(pivot) / scale)
    is_there = low != 0
    swaps = is_there & ~(abs(low) / own <= rank)
    factor = jnp.where(is_there, jnp.where(swaps, pivot / low, low / pivot), 0)
    left = jnp.where(swaps, beside - factor * middle, middle - factor * beside)
    next_to_it = jnp.where(swaps, -factor * high, high)
    u = jnp.where(swaps, low, pivot), jnp.where(swaps, middle, beside), jnp.where(swaps, high, 0)
    wide, by = swaps[..., None], factor[..., None]
    rest = jnp.where(wide, right - by * b, b - by * right)
    return (left, next_to_it, jnp.where(swaps, abs(left) + abs(next_to_it), own), rest), (u, jnp.where(wide, b, right))


def _moved(pivot: Any, right: Any, step: Any) -> tuple[Any, Any]:
    """A pivot [...] and its right-hand sides [..., k] whose quotient does not overflow.

    The pivot moves by `step`, twice that, and so on, away from zero; where it is a denormal number that will do, both
    are scaled up.
    """
    info = jnp.finfo(step.dtype)
    least, most = np.asarray(info.tiny, step.dtype), np.asarray(1 / info.tiny, step.dtype)
    largest = jnp.max(abs(right), axis=-1, initial=0)
    step = jnp.copysign(jnp.maximum(step, least), jnp.real(pivot))

    def overflows(pivot: Any) -> Any:
        size = abs(pivot)
        is_small = jnp.where(size < least, (size == 0) | (largest * least > size), largest > size * most)
        return (size < 1) & is_small

    def move(state: Any) -> Any:
        pivot, step = state
        moves = overflows(pivot)
        return jnp.where(moves, pivot + step.astype(pivot.dtype), pivot), jnp.where(moves, 2 * step, step)

    pivot, _ = lax.while_loop(lambda state: jnp.any(overflows(state[0])), move, (pivot, step))
    scale = jnp.where(abs(pivot) < least, most, 1).astype(pivot.dtype)
    return pivot * scale, right * scale[..., None]


RULES = ((tridiagonal_solve_p, lower_tridiagonal_solve),)

__all__ = ["RULES", "lower_tridiagonal_solve"]
