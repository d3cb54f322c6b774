# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules for attributes of the dialect, and the ops that they stand on.

The first line of a rule's docstring is what `docs/dialect.md` says of its attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from shlo_disc.shape_dialect.dialect import fusion as kinds
from shlo_disc.shape_dialect.dialect.buffers import ARENAS, BUFFERS, ResultBuffer, arenas_of, buffers_of
from shlo_disc.shape_dialect.dialect.fusion_rules import FUSIONS
from shlo_disc.shape_dialect.dialect.host import KERNEL, PRECISIONS
from shlo_disc.shape_dialect.dialect.host_rules import check_choice
from shlo_disc.shape_dialect.dialect.library import LIBRARY, library_function_of
from shlo_disc.shape_dialect.dialect.names import (
    FLOPS,
    LAYOUT,
    MEMORY_LIMIT,
    PANELS,
    PARTICIPANTS,
    PRECISION,
    PRODUCTS,
    SEEN,
    SEGMENT,
    STAGE,
    VARIANT,
)
from shlo_disc.shape_dialect.dialect.records import Malformed, as_kind, read_integer, read_size
from shlo_disc.shape_dialect.dialect.scope import ORDER, Scope
from shlo_disc.shape_dialect.dialect.window import GROUPS, WINDOW, read_window
from shlo_disc.shape_dialect.mlir import ir

_CALLS = ("func.call", "stablehlo.case", "stablehlo.if", "stablehlo.while")
_RUNS = (*_CALLS, "disc.bind")
_CONVOLUTIONS = ("stablehlo.convolution", "stablehlo.dynamic_conv")
_WINDOWED = ("stablehlo.reduce_window", "stablehlo.select_and_scatter")


class Use(NamedTuple):
    """The ops that an attribute may stand on, "" for a module, what checks it, and the stage that writes it."""

    ops: Sequence[str]
    check: Callable[[Scope, ir.Operation], None]
    stage: str


def _check_stage(v: Scope, module: ir.Operation) -> None:
    """The last stage that has run."""
    if STAGE in module.attributes and v.stage not in ORDER:
        raise Malformed(f"there is no stage {v.stage!r}; there are {', '.join(ORDER)}")


def _check_flops(v: Scope, module: ir.Operation) -> None:
    """The number of floating-point operations of a call, as a size."""
    v.check_sizes([read_size(module.attributes[FLOPS])])


def _check_arenas(v: Scope, module: ir.Operation) -> None:
    """The size of the arena of each segment, or of what variants share and of each variant, in bytes."""
    v.arenas = arenas_of(module)
    v.check_sizes(v.arenas)


def _check_memory_limit(v: Scope, module: ir.Operation) -> None:
    """The bytes that a call may allocate, with its results."""
    if read_integer(module.attributes[MEMORY_LIMIT]) < 1:
        raise Malformed("a call may allocate nothing")


def _check_variant(v: Scope, module: ir.Operation) -> None:
    """The variant that a call takes: the number of a branch of the `stablehlo.case` that has all of the program."""
    v.check_sizes([read_size(module.attributes[VARIANT])])


def _check_participants(v: Scope, module: ir.Operation) -> None:
    """The number of participants on which the module runs, if it does not run on one alone."""
    if read_integer(module.attributes[PARTICIPANTS]) < 1:
        raise Malformed("there is no participant")


def _check_segment(v: Scope, op: ir.Operation) -> None:
    """The segment in which an op runs, if it is not the first."""
    if read_integer(op.attributes[SEGMENT]) < 1:
        raise Malformed("the first segment is not noted, and there is none before it")


def _check_buffers(v: Scope, op: ir.Operation) -> None:
    """The buffer of each result: one `#disc.buffer<...>` for each, in an arena that exists."""
    buffers = buffers_of(op)
    if len(buffers) != len(op.results):
        raise Malformed(f"{len(buffers)} buffers are given for {len(op.results)} results")
    for buffer in buffers:
        if isinstance(buffer, ResultBuffer):
            if buffer.index < 0:
                raise Malformed(f"the program has no result {buffer.index}")
            continue
        if not 0 <= buffer.segment < len(v.arenas):
            raise Malformed(f"there is no arena {buffer.segment}; there are {len(v.arenas)}")
        v.check_sizes([buffer.offset, buffer.bytes])


def _check_library(v: Scope, op: ir.Operation) -> None:
    """The parameters of a library function: `#disc.library<...>`, with an element type for each operand and result."""
    function = library_function_of(op)
    if len(function.operands) != len(op.operands) or len(function.results) != len(op.results):
        raise Malformed("element types are given for another number of operands or results")


def _check_window(v: Scope, op: ir.Operation) -> None:
    """Windows with symbolic parameters: `#disc.window<...>`, with one value of each parameter for each dimension."""
    window = read_window(op.attributes[WINDOW])
    rank = ir.RankedTensorType(op.operands[0].type).rank
    for name in ("size", "stride", "base_dilation", "dilation", "low", "high"):
        sizes = getattr(window, name)
        if len(sizes) != rank:
            raise Malformed(f"{WINDOW}: {name} has {len(sizes)} sizes for {rank} dimensions")
        v.check_sizes(sizes)


def _check_groups(v: Scope, op: ir.Operation) -> None:
    """Symbolic numbers of groups: that of feature groups and that of batch groups, as in `[@n, 1]`."""
    sizes = [read_size(size) for size in as_kind(ir.ArrayAttr, op.attributes[GROUPS], "numbers of groups")]
    if len(sizes) != 2:
        raise Malformed(f"{GROUPS} has {len(sizes)} sizes; there are feature groups and batch groups")
    v.check_sizes(sizes)


def _check_precision(v: Scope, op: ir.Operation) -> None:
    """The precision of a product on a GPU that does not take all bits of its sides: "tf32" or "tf32x3"."""
    precision = as_kind(ir.StringAttr, op.attributes[PRECISION], "a precision").value
    if precision not in PRECISIONS[1:]:
        raise Malformed(f"there is no precision {precision!r}; there are {', '.join(PRECISIONS[1:])}")


def _check_panels(v: Scope, op: ir.Operation) -> None:
    """The operands that a kernel reads from a product's packed form, where that is all that a call has."""
    numbers = list(as_kind(ir.DenseI64ArrayAttr, op.attributes[PANELS], "numbers of operands"))
    if not numbers or numbers != sorted(set(numbers)) or not 0 <= numbers[0] <= numbers[-1] < len(op.operands):
        raise Malformed(f"{numbers} are not operands of {len(op.operands)}, each once and in order")


def _check_seen(v: Scope, op: ir.Operation) -> None:
    """The axes of rows and of columns of a comparison that is a causal mask, and 1 or 0: its truth in columns that are
    not hidden."""
    numbers = list(as_kind(ir.DenseI64ArrayAttr, op.attributes[SEEN], "axes and a truth"))
    rank = ir.RankedTensorType(op.results[0].type).rank
    if len(numbers) != 3 or not 0 <= numbers[0] < numbers[1] < rank or numbers[2] not in (0, 1):
        raise Malformed(f"{numbers} is not an axis of rows, one of columns after it, and a truth")


def _check_layout(v: Scope, op: ir.Operation) -> None:
    """On an argument or result that is not row-major: for each axis, the axis that it is in JAX."""
    raise Malformed(f"{LAYOUT} stands on arguments and results")


def _check_fusion(v: Scope, op: ir.Operation) -> None:
    """The kind and parameters of a fusion: `#disc.fusion<...>`, see below."""
    function = op.opview
    what = kinds.fusion_of(function)
    check = FUSIONS.get(type(what))
    if check is not None:
        check(v, function, what)


ATTRIBUTES: dict[str, Use] = {
    STAGE: Use(("",), _check_stage, "import"),
    FLOPS: Use(("",), _check_flops, "fuse"),
    ARENAS: Use(("",), _check_arenas, "plan"),
    MEMORY_LIMIT: Use(("",), _check_memory_limit, "plan"),
    VARIANT: Use(("",), _check_variant, "plan"),
    PARTICIPANTS: Use(("",), _check_participants, "import"),
    SEGMENT: Use(_RUNS, _check_segment, "plan"),
    BUFFERS: Use(_CALLS, _check_buffers, "plan"),
    PANELS: Use(("func.call",), _check_panels, "plan"),
    LIBRARY: Use(("stablehlo.custom_call",), _check_library, "simplify"),
    GROUPS: Use(_CONVOLUTIONS, _check_groups, "import"),
    WINDOW: Use(_WINDOWED, _check_window, "import"),
    PRECISION: Use((*PRODUCTS, "stablehlo.custom_call"), _check_precision, "import"),
    SEEN: Use(("stablehlo.compare",), _check_seen, "fuse"),
    LAYOUT: Use(("func.func",), _check_layout, "import"),
    KERNEL: Use(("func.call",), check_choice, "kernels"),
    kinds.FUSION: Use(("func.func",), _check_fusion, "fuse"),
}
