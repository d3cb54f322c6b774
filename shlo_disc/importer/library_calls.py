# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Custom calls that have no definition of their own: shape assertions, LAPACK, and what the user registered."""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.shape_dialect.custom_calls import find_custom_call, is_callback
from shlo_disc.shape_dialect.dtypes import BY_MLIR
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.lapack import LAPACK, MATRIX, LapackFunction, LapackTensor
from shlo_disc.shape_dialect.ops.lapack_sizes import parameters_of, shape_operands
from shlo_disc.shape_dialect.utils.attributes import attribute_values

UNKNOWN = "this custom call has no lowering"
REGISTER = "register a native function for it with shlo_disc.register_custom_call"
OF_GPUS = "this custom call is a function of jaxlib's for GPUs"
CALLBACK = "a callback of JAX's own belongs to the program of JAX that it stands in"
ADVICE = {
    UNKNOWN: REGISTER,
    OF_GPUS: "give the function itself to shlo_disc.compile, or export it with platforms=['cpu']: GPUs run its linear "
    "algebra as well",
    CALLBACK: "give the function itself to shlo_disc.compile or shlo_disc.jit, which have callbacks, or run it with "
    "jax.jit on the plugin (JAX_PLATFORMS=shlo_disc,cpu)",
}
"""Advice for some problems."""


_LIBRARIES_OF_JAXLIB = ("cu_lu_pivots_to_permutation", "cublas_", "cuhybrid_", "cusolver_", "cusparse_")


def custom_call_problem(op: ir.OpView) -> str | None:
    """The reason that a custom call cannot be compiled; None when it can."""
    target = ir.StringAttr(op.attributes["call_target_name"]).value
    if target == "shape_assertion":
        return _assertion_problem(op)
    if target in LAPACK:
        return _lapack_problem(op, LAPACK[target])
    if find_custom_call(target) is not None:
        return _registered_problem(op)
    if target.startswith(_LIBRARIES_OF_JAXLIB):
        return OF_GPUS
    return CALLBACK if is_callback(target) else UNKNOWN


def _assertion_problem(op: ir.OpView) -> str | None:
    said = "error_message" in op.attributes and isinstance(op.attributes["error_message"], ir.StringAttr)
    scalars = op.operands and all(ir.RankedTensorType(v.type).rank == 0 for v in op.operands)
    return None if scalars and said else "a shape assertion needs scalars and a message"


# ---- functions that the user registered -----------------------------------------------------------------------------


def _registered_problem(op: ir.OpView) -> str | None:
    values = [*op.operands, *op.results]
    if any(str(ir.RankedTensorType(v.type).element_type) not in BY_MLIR for v in values):
        return "a registered function takes tensors of numbers"
    for key in ("operand_layouts", "result_layouts"):
        for layout in ir.ArrayAttr(op.attributes[key]) if key in op.attributes else ():
            order = list(ir.DenseIntElementsAttr(layout))
            if order != [*range(len(order) - 1, -1, -1)]:
                return "a registered function takes row-major arrays only; transpose them around the call"
    for name, attribute in parameters_of(op).items():
        if attribute_values(attribute) is None:
            return f"the attribute {name} is no number, string or array of numbers"
    return None


# ---- LAPACK ---------------------------------------------------------------------------------------------------------

_PARAMETERS = {
    "geev": {"compute_left": "NV", "compute_right": "NV"},
    "gees": {"mode": "NV", "sort": "N"},
    "gehrd": {"low": "", "high": ""},
    "gesdd": {"mode": "ASN"},
    "gesvd": {"mode": "ASN"},
    "heevd": {"mode": "NV", "uplo": "LU"},
    "hetrd": {"uplo": "LU"},
    "ormqr": {"left": "", "transpose": ""},
    "potrf": {"uplo": "LU"},
    "trsm": {"side": "LR", "uplo": "LU", "trans_x": "NTC", "diag": "NU"},
}
_PARAMETERS |= {"syevd": _PARAMETERS["heevd"], "sytrd": _PARAMETERS["hetrd"], "unmqr": _PARAMETERS["ormqr"]}
"""The parameters of each function, and the letters that a parameter may be ("" for numbers)."""


def _lapack_problem(op: ir.OpView, function: LapackFunction) -> str | None:
    operands = list(op.operands)[: len(op.operands) - len(shape_operands(op))]
    if len(operands) != len(function.operands) or len(op.results) != len(function.results):
        return f"{function.name} has {len(function.operands)} operands and {len(function.results)} results"
    rank = max((ir.RankedTensorType(v.type).rank for v in operands), default=0)
    if rank < 2:
        return f"{function.name} needs a matrix"
    for values, expected in ((operands, function.operands), (list(op.results), function.results)):
        for value, tensor in zip(values, expected, strict=True):
            type_ = ir.RankedTensorType(value.type)
            if str(type_.element_type) != tensor.dtype or type_.rank != tensor.rank(rank):
                return f"{function.name} needs a tensor of {tensor.dtype} and rank {tensor.rank(rank)}, not {type_}"
    layouts = _are_column_major(op, "operand_layouts", function.operands, rank)
    if not layouts or not _are_column_major(op, "result_layouts", function.results, rank):
        return "LAPACK needs matrices that are laid out column by column"
    return _parameter_problem(op, function)


def _parameter_problem(op: ir.OpView, function: LapackFunction) -> str | None:
    given = parameters_of(op)
    for name, letters in _PARAMETERS.get(function.name, {}).items():
        if not isinstance(given.get(name), ir.IntegerAttr | ir.BoolAttr):
            return f"{function.name} needs the parameter {name}"
        if letters and chr(ir.IntegerAttr(given[name]).value % 128) not in letters:
            return f"the parameter {name} of {function.name} must be one of the letters {', '.join(letters)}"
    return None


def _are_column_major(op: ir.OpView, attribute: str, tensors: Sequence[LapackTensor], rank: int) -> bool:
    """Tells whether matrices have the layout of Fortran, and all the rest is row-major."""
    if attribute not in op.attributes:
        return False
    layouts = [list(ir.DenseIntElementsAttr(a)) for a in ir.ArrayAttr(op.attributes[attribute])]
    column_major = [rank - 2, rank - 1, *range(rank - 3, -1, -1)]
    return all(
        layout == (column_major if tensor.kind == MATRIX else [*range(tensor.rank(rank) - 1, -1, -1)])
        for layout, tensor in zip(layouts, tensors, strict=False)
    )
