# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lowering rule of `jax.lax.ragged_dot` to our custom call.

JAX's own rule for processors repeats one operand for each group and masks it, which takes as many times the arithmetic
and the memory of a dense product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.interpreters import mlir
from jax._src.lax import lax as _lax

from shlo_disc.shape_dialect.custom_calls import RAGGED_DOT

_FLOATS = ("bfloat16", "float16", "float32", "float64")


class _Form(NamedTuple):
    """An order of rhs's axes, and which operands have their last two axes the other way round."""

    contracts: bool
    rhs_order: tuple[int, ...]
    lhs_flipped: bool
    rhs_flipped: bool


def lower_ragged_dot(context: Any, lhs: Any, rhs: Any, group_sizes: Any, **parameters: Any) -> Sequence[Any]:
    """The lowering rule. What `_form` does not know keeps JAX's own form, or the error that JAX raises."""
    return mlir.lower_fun(_ragged_dot, multiple_results=False)(context, lhs, rhs, group_sizes, **parameters)


def _ragged_dot(lhs: Any, rhs: Any, group_sizes: Any, **parameters: Any) -> Any:
    preferred = parameters.get("preferred_element_type")
    result = np.dtype(lhs.dtype if preferred is None else preferred)
    is_whole = all(parameters.get(name) is None for name in ("group_offset", "out_sharding"))
    form = _form(lhs, rhs, group_sizes, parameters["ragged_dot_dimension_numbers"]) if is_whole else None
    wide = {"float64": ("float64",)}.get(lhs.dtype.name, (lhs.dtype.name, "float32"))
    if form is None or lhs.dtype.name not in _FLOATS or result.name not in wide or lhs.dtype != rhs.dtype:
        return _lax._ragged_dot_general_impl(lhs, rhs, group_sizes, **parameters)
    return _call(lhs, rhs, group_sizes, form, result)


def _form(lhs: Any, rhs: Any, group_sizes: Any, numbers: Any) -> _Form | None:
    """The form of a product of two matrices in groups; None for batches, and where an operand has other axes."""
    (lhs_contracting, rhs_contracting), (lhs_batch, _) = numbers.dot_dimension_numbers
    ragged, group_axes = numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions
    is_plain = lhs.ndim == 2 and group_sizes.ndim == 1 and not lhs_batch and len(lhs_contracting) == 1
    if not is_plain:
        return None
    (terms,), (rhs_terms,), (rows,) = lhs_contracting, rhs_contracting, ragged
    if rows == terms:
        is_matrix = rhs.ndim == 2 and not group_axes
        return _Form(True, (0, 1), rows == 1, rhs_terms == 1) if is_matrix else None
    if rhs.ndim != 3 or len(group_axes) != 1:
        return None
    group = group_axes[0]
    order = (group, *(axis for axis in range(3) if axis != group))
    return _Form(False, order, rows == 1, order.index(rhs_terms) == 2)


def _call(lhs: Any, rhs: Any, group_sizes: Any, form: _Form, result: np.dtype[Any]) -> Any:
    if form.rhs_order != tuple(range(rhs.ndim)):
        rhs = jnp.transpose(rhs, form.rhs_order)
    if group_sizes.dtype.name not in ("int32", "int64", "uint32"):
        group_sizes = group_sizes.astype(np.int32)
    rows, other = lhs.shape[::-1] if form.lhs_flipped else lhs.shape
    columns = rhs.shape[-2 if form.rhs_flipped else -1]
    shape = (group_sizes.shape[0], other, columns) if form.contracts else (rows, columns)
    call = jax.ffi.ffi_call(RAGGED_DOT, jax.ShapeDtypeStruct(shape, result))
    flags = {"contracts": form.contracts, "lhs_flipped": form.lhs_flipped, "rhs_flipped": form.rhs_flipped}
    return call(lhs, rhs, group_sizes, **{name: np.int64(flag) for name, flag in flags.items()})


RULES = ((_lax.ragged_dot_general_p, lower_ragged_dot),)
"""For `jax.export`: the primitive and its rule."""
