# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The signature of a `jax.export.Exported`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax import export

from shlo_disc.shape_dialect.dialect.signature import Signature, TensorSpec
from shlo_disc.shape_dialect.dtypes import BY_NUMPY
from shlo_disc.shape_dialect.symbolic.expr import Expr


def signature_of(exported: export.Exported, sizes: Sequence[str]) -> tuple[Signature, dict[int, str]]:
    """The signature, dropped arguments included, and which arguments of the module are hidden, for which of `sizes`."""
    args, kwargs = jax.tree.unflatten(exported.in_tree, list(range(len(exported.in_avals))))
    hidden = dict(zip(args[-1], sizes, strict=True)) if sizes else {}
    args = args[:-1] if sizes else args
    leaves = jax.tree_util.tree_flatten_with_path((args, kwargs))[0]
    position = {leaf: i for i, (_, leaf) in enumerate(leaves)}
    signature = Signature(
        name=exported.fun_name,
        arguments=tuple(_tensor_spec(_argument_path(path), exported.in_avals[leaf]) for path, leaf in leaves),
        results=result_specs(exported),
        kept=tuple(position[leaf] for leaf in exported.module_kept_var_idx if leaf in position),
        least=1,
        in_tree=jax.tree.structure((args, kwargs)) if sizes else exported.in_tree,
        out_tree=exported.out_tree,
    )
    return signature, {i: hidden[leaf] for i, leaf in enumerate(exported.module_kept_var_idx) if leaf in hidden}


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
    key = ""
    if jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key):
        aval, key = _data_of_keys(aval)
    dims = tuple(Expr.parse(str(d)) if export.is_symbolic_dim(d) else Expr.const(int(d)) for d in aval.shape)
    name = "bool" if aval.dtype == jax.dtypes.float0 else aval.dtype.name  # cotangents of integers, as JAX lowers them
    known = BY_NUMPY.get(name)
    return TensorSpec(path, known.name if known else name, dims, key=key)


def _data_of_keys(aval: Any) -> tuple[Any, str]:
    """The type of the data of PRNG keys, and the name of their implementation; that of a user's own has none.

    Programs for the latter are refused by their dtype.
    """
    names: list[Any] = []

    def data(keys: Any) -> Any:
        names.append(jax.random.key_impl(keys))
        return jax.random.key_data(keys)

    physical = jax.eval_shape(data, jax.ShapeDtypeStruct(aval.shape, aval.dtype))
    is_known = isinstance(names[0], str) and len(physical.shape) == len(aval.shape) + 1
    return (physical, names[0]) if is_known else (aval, "")
