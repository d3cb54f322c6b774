# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that come from JAX: `jax.export.Exported` objects and plain functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import export

from shlo_disc.shape_dialect.expr import Expr

from .signature import TensorSpec

NUMPY_TO_DTYPE = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "bool": "i1", "int8": "i8",
    "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip


def is_exported(program: Any) -> bool:
    """True for a `jax.export.Exported`."""
    return isinstance(program, export.Exported)


def export_function(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    constraints: Sequence[str],
) -> export.Exported:
    """Export a JAX function. Leaves of args/kwargs: arrays, ShapeDtypeStructs or ("b, s", dtype) pairs."""
    scope = export.SymbolicScope(constraints)
    specs = jax.tree.map(lambda leaf: _spec(leaf, scope), (tuple(args), dict(kwargs)), is_leaf=_is_pair)
    jitted: Any = function if hasattr(function, "trace") else jax.jit(function)
    return export.export(jitted, platforms=["cpu"])(*specs[0], **specs[1])


def _is_pair(leaf: Any) -> bool:
    """A ("b, s", dtype) or ((2, "s"), dtype) specification."""
    if not isinstance(leaf, tuple) or len(leaf) != 2 or not isinstance(leaf[0], str | tuple):
        return False
    if isinstance(leaf[1], str | tuple | list | dict):
        return isinstance(leaf[1], str) and leaf[1] in NUMPY_TO_DTYPE
    return hasattr(leaf[1], "dtype") or isinstance(leaf[1], type) or hasattr(leaf[1], "itemsize")


def _spec(leaf: Any, scope: export.SymbolicScope) -> Any:
    if not _is_pair(leaf):
        return leaf
    shape, dtype = leaf
    text = shape if isinstance(shape, str) else ", ".join(str(d) for d in shape)
    return jax.ShapeDtypeStruct(export.symbolic_shape(text, scope=scope) if text else (), dtype)


def argument_specs(exported: export.Exported) -> tuple[TensorSpec, ...]:
    """Every argument leaf, dropped ones included."""
    args, kwargs = jax.tree.unflatten(exported.in_tree, list(range(len(exported.in_avals))))
    paths = jax.tree_util.tree_flatten_with_path((args, kwargs))[0]
    return tuple(
        _tensor_spec(_argument_path(path), aval) for (path, _), aval in zip(paths, exported.in_avals, strict=True)
    )


def result_specs(exported: export.Exported) -> tuple[TensorSpec, ...]:
    """Every result leaf."""
    tree = jax.tree.unflatten(exported.out_tree, list(range(len(exported.out_avals))))
    paths = jax.tree_util.tree_flatten_with_path(tree)[0]
    return tuple(
        _tensor_spec("result" + jax.tree_util.keystr(path), aval)
        for (path, _), aval in zip(paths, exported.out_avals, strict=True)
    )


def _argument_path(path: tuple[Any, ...]) -> str:
    return ("args" if path[0].idx == 0 else "kwargs") + jax.tree_util.keystr(path[1:])


def _tensor_spec(path: str, aval: Any) -> TensorSpec:
    dims = tuple(Expr.parse(str(d)) if export.is_symbolic_dim(d) else Expr.const(int(d)) for d in aval.shape)
    return TensorSpec(path, NUMPY_TO_DTYPE.get(aval.dtype.name, aval.dtype.name), dims)
