# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The builder of each fusion's kernel, and the fusions that have none."""

from __future__ import annotations

from collections.abc import Callable

from shlo_disc.errors import Unsupported
from shlo_disc.lowering.index_rules import INDEX_RULES
from shlo_disc.lowering.kernels import has_rows
from shlo_disc.lowering.loop_kernel import build_loop
from shlo_disc.lowering_gpu.attention_kernel import build_attention
from shlo_disc.lowering_gpu.column_kernel import build_columns
from shlo_disc.lowering_gpu.concatenate_kernel import build_concatenation
from shlo_disc.lowering_gpu.grid import THREADS
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.lowering_gpu.nonzero_kernel import build_nonzero
from shlo_disc.lowering_gpu.product_form import device_product
from shlo_disc.lowering_gpu.recurrence_kernel import build_recurrence
from shlo_disc.lowering_gpu.row_kernel import build_rows
from shlo_disc.lowering_gpu.scan_kernel import build_scan
from shlo_disc.lowering_gpu.scatter_kernel import build_scatter
from shlo_disc.lowering_gpu.select_scatter_kernel import build_select_and_scatter
from shlo_disc.lowering_gpu.sort_kernel import build_sort
from shlo_disc.lowering_gpu.top_k_kernel import build_top_k
from shlo_disc.lowering_gpu.update_kernel import build_update
from shlo_disc.shape_dialect.custom_calls import find_custom_call
from shlo_disc.shape_dialect.dialect.fusion import is_by_columns, kind_of, product_of
from shlo_disc.shape_dialect.dialect.library import library_function_of
from shlo_disc.shape_dialect.dialect.types import element_type_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops import ELEMENTWISE
from shlo_disc.shape_dialect.ops.lapack import LAPACK_ON_GPUS
from shlo_disc.shape_dialect.symbolic.expr import Expr, ExprLike, ceildiv
from shlo_disc.shape_dialect.utils.locations import operation_name, source_line

Builder = Callable[[GpuFrame], tuple[Expr, ExprLike]]
"""Emits the body of a kernel; returns how many blocks have work, and the cost of what one does."""


def build_elements(frame: GpuFrame) -> tuple[Expr, ExprLike]:
    """Each element of the results by a thread."""
    items, cost = build_loop(frame)
    return ceildiv(items, THREADS), cost * THREADS


BUILDERS: dict[str, Builder] = {
    "attention": build_attention,
    "concatenate": build_concatenation,
    "scatter": build_scatter,
    "select_and_scatter": build_select_and_scatter,
    "update": build_update,
    "nonzero": build_nonzero,
    "recurrence": build_recurrence,
    "scan": build_scan,
    "sort": build_sort,
    "top_k": build_top_k,
}
"""Builders of the kinds of fusion that have a kernel of their own. Each says itself which bodies it takes."""

_IN_LOOPS = ELEMENTWISE | INDEX_RULES.keys() | {"func.return"}

_PRODUCTS = frozenset({"stablehlo.dot_general"})
"""Ops that are refused where a fusion is a product of matrices, which a loop would take too long for."""


def builder_of(fusion: func.FuncOp) -> Builder:
    """The builder of a fusion which `unsupported` finds nothing in."""
    if is_by_columns(fusion):
        return build_columns
    return BUILDERS.get(kind_of(fusion), build_rows if has_rows(fusion) else build_elements)


def unsupported(fusion: func.FuncOp) -> list[Unsupported]:
    """The ops of a fusion that there is no kernel of."""
    if kind_of(fusion) in BUILDERS or is_call(fusion) or device_product(fusion) is not None:
        return []
    taken = _IN_LOOPS if product_of(fusion) is None else _IN_LOOPS - _PRODUCTS
    return [_no_kernel(op) for op in fusion.entry_block.operations if op.operation.name not in taken]


def is_call(fusion: func.FuncOp) -> bool:
    """Tells whether a fusion is a runtime call: a collective (`runtime/native/cuda/collectives.cpp`), a Fourier
    transform (`runtime/native/cuda/fft.cpp`), a function of LAPACK (`runtime/native/cuda/solver_functions.cpp`), or a
    function of the host's that the user registered (`runtime/native/cuda/host_call.cpp`).

    A handler of XLA's FFI is neither: on a GPU it would be told of the GPU's memory and stream.
    """
    (first, *_) = fusion.entry_block.operations
    if kind_of(fusion) != "library":
        return False
    if library_function_of(first).custom is None:
        name = _library_function(first)
        return name.startswith(("collective_", "fft_")) or name.removeprefix("lapack_")[1:] in LAPACK_ON_GPUS
    found = find_custom_call(ir.StringAttr(first.attributes["call_target_name"]).value)
    return found is not None and found.convention == "c"


def _no_kernel(op: ir.OpView) -> Unsupported:
    name, label = op.operation.name, operation_name(op.location) or _library_function(op)
    return Unsupported(
        f"{name} ({label})" if label else name,
        str(element_type_of(op.results[0])) if op.results else "",
        source_line(op.location),
        "this op has no kernel for GPUs",
        "compile with target='cpu', or move it out of the compiled function",
    )


def _library_function(op: ir.OpView) -> str:
    """The name of the function that a library call computes."""
    if "call_target_name" not in op.attributes:
        return ""
    return ir.StringAttr(op.attributes["call_target_name"]).value.rsplit(".", 1)[-1]
