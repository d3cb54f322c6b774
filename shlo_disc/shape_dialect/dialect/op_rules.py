# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules for the ops of the dialect. The first line of a rule's docstring is what `docs/dialect.md` says."""

from __future__ import annotations

from collections.abc import Callable

from shlo_disc.shape_dialect.dialect.declarations import Bounds, constraint_of, name_of, symbol_of
from shlo_disc.shape_dialect.dialect.host_rules import HOST_RULES, check_part
from shlo_disc.shape_dialect.dialect.ops import LOCAL
from shlo_disc.shape_dialect.dialect.parts import part_of
from shlo_disc.shape_dialect.dialect.records import Malformed, as_kind, from_entries, read_size
from shlo_disc.shape_dialect.dialect.remembered import remembered
from shlo_disc.shape_dialect.dialect.scope import Scope, is_private
from shlo_disc.shape_dialect.dialect.signature import TensorSpec
from shlo_disc.shape_dialect.dialect.types import dims_of, dims_of_attr, element_type_of, product, storage_type
from shlo_disc.shape_dialect.dtypes import BY_MLIR
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr


def _symbol(op: ir.OpView) -> None:
    """Its name is valid for a symbol, `min` is at most `max`, and the residue is less than the divisor."""
    if Expr.parse(name_of(op)).is_symbol is None:
        raise Malformed(f"{name_of(op)!r} is no name of a symbol")
    symbol_of(op).check()


def _dim(op: ir.OpView) -> None:
    """Its name is an expression of symbols in normal form, other than a single symbol."""
    _check_dim(tuple(op.attributes.items()))


@remembered
def _check_dim(attributes: tuple[tuple[str, ir.Attribute], ...]) -> None:
    entries = dict(attributes)
    name = ir.StringAttr(entries.pop("name")).value
    size = Expr.parse(name)
    if size.constant is not None or size.is_symbol or str(size) != name:
        raise Malformed(f"{name!r} is no derived size in normal form, which is {size}")
    from_entries(Bounds, entries)


def _constraint(op: ir.OpView) -> None:
    """It is a relation between two sizes."""
    constraint_of(op)


def _shape(op: ir.OpView) -> None:
    """Its result has integers and rank 0 or 1, and one element for each size."""
    result = ir.RankedTensorType(op.results[0].type)
    dims = [read_size(entry) for entry in as_kind(ir.ArrayAttr, op.attributes["dims"], "an array of sizes")]
    is_whole = isinstance(result.element_type, ir.IntegerType | ir.IndexType)
    if not is_whole or not result.has_static_shape or result.rank > 1:
        raise Malformed(f"its result is {result}, no integers of rank 0 or 1")
    count = result.shape[0] if result.rank else 1
    if len(dims) != count:
        raise Malformed(f"it has {len(dims)} sizes for {count} elements")


def _bind(op: ir.OpView) -> None:
    """It names a symbol for each element of an integer tensor of static size."""
    source = ir.RankedTensorType(op.operands[0].type)
    names = [read_size(entry) for entry in as_kind(ir.ArrayAttr, op.attributes["symbols"], "an array of symbols")]
    if not isinstance(source.element_type, ir.IntegerType) or not source.has_static_shape:
        raise Malformed(f"it reads {source}, no integers of known number")
    count = product(dims_of(source)).constant
    if len(names) != count or not all(name.is_symbol for name in names):
        raise Malformed(f"it gives {len(names)} symbols the values of {count} elements")


def _nonzero(op: ir.OpView) -> None:
    """The mask is a vector of booleans, and the result a vector of integers."""
    mask, result = ir.RankedTensorType(op.operands[0].type), ir.RankedTensorType(op.results[0].type)
    if mask.rank != 1 or str(mask.element_type) != "i1":
        raise Malformed(f"its mask is {mask}, no vector of booleans")
    if result.rank != 1 or not isinstance(result.element_type, ir.IntegerType):
        raise Malformed(f"its result is {result}, no vector of integers")


def _piece(op: ir.OpView) -> None:
    """It is a tensor of the elements of its array, and its starts are signed integers of rank 0 or 1."""
    part_of(op.operation)
    source, result, *starts = (ir.RankedTensorType(v.type) for v in (op.operands[0], op.results[0], *op.operands[1:]))
    if source.element_type != result.element_type:
        raise Malformed(f"it is {result}, and of {source}")
    if any(str(start.element_type) not in ("i32", "i64") or start.rank > 1 for start in starts):
        raise Malformed("it begins at no signed integers of 32 or 64 bits")


LOCAL.update(
    {
        "disc.symbol": _symbol, "disc.dim": _dim, "disc.constraint": _constraint,
        "disc.shape": _shape, "disc.bind": _bind, "disc.nonzero": _nonzero, "disc.piece": _piece,
    }
)  # fmt: skip


def _dim_names(v: Scope, op: ir.Operation) -> None:
    """Its symbols are declared."""
    v.check_sizes([Expr.parse(name_of(op.opview))])


def _constraint_names(v: Scope, op: ir.Operation) -> None:
    """Its symbols are declared."""
    constraint = constraint_of(op.opview)
    v.check_sizes([constraint.relation.lhs, constraint.relation.rhs, *constraint.operands])


def _shape_names(v: Scope, op: ir.Operation) -> None:
    """Its symbols are declared."""
    if v.has_run("annotate"):
        v.check_sizes(dims_of_attr(op.attributes["dims"]))


def _piece_is_told(v: Scope, op: ir.Operation) -> None:
    """It has an operand for each start besides the array, and its symbols are declared."""
    check_part(v, op, part_of(op))


def _bind_names(v: Scope, op: ir.Operation) -> None:
    """Its symbols are declared."""
    if v.has_run("annotate"):
        v.check_sizes(dims_of_attr(op.attributes["symbols"]))


def _signature_fits(v: Scope, op: ir.Operation) -> None:
    """It is the only one. Number, dtypes and sizes of kept arguments and of results are those of the entry function."""
    if sum(other.operation.name == op.name for other in v.module.body.operations) != 1:
        raise Malformed("there is another one")
    said = v.declared
    if sorted(set(said.kept)) != sorted(said.kept) or any(not 0 <= k < len(said.arguments) for k in said.kept):
        raise Malformed(f"kept = {list(said.kept)} are no different ones of {len(said.arguments)} arguments")
    if v.has_run("host"):
        return
    entry = next(f for f in v.functions.values() if not is_private(f))
    block = entry.entry_block
    returned = list(block.operations[len(block.operations) - 1].operands)
    for what, specs, values in (
        ("argument", [said.arguments[leaf] for leaf in said.kept], list(block.arguments)),
        ("result", said.results, returned),
    ):
        if len(specs) != len(values):
            raise Malformed(f"it has {len(specs)} {what}s, and the function {len(values)}")
        for spec, value in zip(specs, values, strict=True):
            if not _is_of(v, spec, value):
                raise Malformed(f"its {what} {spec} is a {value.type} in the function")


def _is_of(v: Scope, spec: TensorSpec, value: ir.Value) -> bool:
    """Tells whether a value is such a tensor; one of complex numbers may be one of reals, with an axis of 2 more."""
    element = BY_MLIR[str(storage_type(element_type_of(value)))].name
    has_sizes = v.has_run("annotate")
    dims = dims_of(value) if has_sizes else spec.dims
    if spec.dtype == element:
        return v.are_equal(spec.dims, dims)
    is_pair = (spec.dtype, element) in (("c64", "f32"), ("c128", "f64"))
    return is_pair and (not has_sizes or v.are_equal((*spec.dims, Expr.const(2)), dims))


RULES: dict[str, Callable[[Scope, ir.Operation], None]] = {
    "disc.dim": _dim_names,
    "disc.constraint": _constraint_names,
    "disc.shape": _shape_names,
    "disc.bind": _bind_names,
    "disc.piece": _piece_is_told,
    "disc.signature": _signature_fits,
    **HOST_RULES,
}
"""Checks of ops of ours besides those in `LOCAL`."""
