# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What has to hold of the dialect in a module: references, types, and what attributes say of what they stand on.

MLIR checks an op of ours by itself whenever it verifies (`LOCAL`). What goes beyond one op is checked here, after each
stage and on what is read: names against declarations, encodings against types, attributes against functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from shlo_disc.dtypes import BY_MLIR
from shlo_disc.errors import ProgramError
from shlo_disc.mlir import func, ir
from shlo_disc.shape_dialect.dialect import fusion as kinds
from shlo_disc.shape_dialect.dialect.buffers import ARENAS, BUFFERS, ResultBuffer, arenas_of, buffers_of
from shlo_disc.shape_dialect.dialect.declarations import Bounds, constraint_of, name_of, symbol_of, symbols_in
from shlo_disc.shape_dialect.dialect.library import LIBRARY, library_function_of
from shlo_disc.shape_dialect.dialect.names import FLOPS, LAYOUT, PARTICIPANTS, SEGMENT, STAGE
from shlo_disc.shape_dialect.dialect.ops import LOCAL
from shlo_disc.shape_dialect.dialect.problems import Axis, MatrixProduct
from shlo_disc.shape_dialect.dialect.records import (
    Malformed,
    as_kind,
    entries_of,
    from_entries,
    read_integer,
    read_size,
)
from shlo_disc.shape_dialect.dialect.signature import TensorSpec, declaration_of
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, dims_of_attr, element_type_of, product, storage_type
from shlo_disc.shape_dialect.dialect.window import WINDOW, read_window
from shlo_disc.shape_dialect.symbolic.expr import Expr

ORDER = ("import", "annotate", "simplify", "fuse", "plan")
"""The stages after which a module has the dialect."""

_CALLS = ("func.call", "stablehlo.case", "stablehlo.if", "stablehlo.while")
_RUNS = (*_CALLS, "disc.bind")
_WINDOWED = ("stablehlo.reduce_window", "stablehlo.select_and_scatter")


class Use(NamedTuple):
    """Where an attribute may stand, "" for a module, and what checks it."""

    ops: Sequence[str]
    check: Callable[[Verifier, ir.Operation], None]


def verify_dialect(module: ir.Module, thorough: bool = True) -> None:
    """Check a module. Raises Malformed with the first thing that is wrong, and the op and place where it stands.

    thorough: look for attributes of ours on all ops, and not only where they may stand.
    """
    Verifier(module, thorough).run()


class Verifier:
    """One module."""

    def __init__(self, module: ir.Module, thorough: bool):
        self.module = module
        self.thorough = thorough
        attributes = module.operation.attributes
        self.stage = ir.StringAttr(attributes[STAGE]).value if STAGE in attributes else ""
        self.functions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
        self.symbols: set[str] = set()
        self.arenas: Dims = ()
        self._types: set[ir.Type] = set()

    def has_run(self, stage: str) -> bool:
        """Whether a stage has run."""
        return self.stage in ORDER and ORDER.index(self.stage) >= ORDER.index(stage)

    def run(self) -> None:
        """All checks."""
        self._placed(self.module.operation, self._check_module)
        for op in self.module.body.operations:
            self._op(op.operation)
        if self.has_run("fuse"):
            for function in self.functions.values():
                self._placed(function.operation, _check_function)

    def _check_module(self, op: ir.Operation) -> None:
        _check_stage(self, op)
        declared = symbols_in(self.module)
        self.symbols = set(declared)
        if len(declared) != sum(op.operation.name == "disc.symbol" for op in self.module.body.operations):
            raise Malformed("two symbols have one name")
        self._attributes(op, "")

    # ---- ops --------------------------------------------------------------------------------------------------------

    def _op(self, op: ir.Operation) -> None:
        self._placed(op, self._check)
        for region in op.regions:
            for block in region.blocks:
                for inner in block.operations:
                    self._op(inner.operation)

    def _placed(self, op: ir.Operation, check: Callable[[ir.Operation], None]) -> None:
        """Adds the op to what a check of it raises."""
        try:
            check(op)
        except (Malformed, ProgramError) as error:
            raise Malformed(f"{_title(op)}: {error}") from None

    def _check(self, op: ir.Operation) -> None:
        name = op.name
        rule = RULES.get(name)
        if rule is not None:
            rule(self, op)
        if self.thorough or name in _ATTRIBUTED:
            self._attributes(op, name)
        for result in op.results:
            self.check_type(result.type)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    self.check_type(argument.type)

    def _attributes(self, op: ir.Operation, name: str) -> None:
        for key in op.attributes:
            if not key.startswith("disc."):
                continue
            use = ATTRIBUTES.get(key)
            if use is None:
                raise Malformed(f"there is no attribute {key}; there are {', '.join(sorted(ATTRIBUTES))}")
            if name not in use.ops:
                raise Malformed(f"{key} stands on {' or '.join(use.ops) or 'a module'}")
            use.check(self, op)

    # ---- sizes ------------------------------------------------------------------------------------------------------

    def check_type(self, type_: ir.Type) -> None:
        """Check a type's sizes against what its encoding says of them."""
        if type_ in self._types or not isinstance(type_, ir.RankedTensorType):
            return
        if type_.encoding is not None:
            self._check_encoding(type_, type_.encoding)
        elif self.has_run("annotate") and not type_.has_static_shape:
            raise Malformed(f"the type {type_} has a size without a symbol")
        self._types.add(type_)

    def _check_encoding(self, type_: ir.RankedTensorType, encoding: ir.Attribute) -> None:
        entries = [read_size(entry) for entry in as_kind(ir.ArrayAttr, encoding, "an array of sizes")]
        if len(entries) != type_.rank:
            raise Malformed(f"the encoding of {type_} has {len(entries)} sizes for {type_.rank} dimensions")
        for axis, size in enumerate(entries):
            stated = None if type_.is_dynamic_dim(axis) else type_.shape[axis]
            if size.constant != stated:
                raise Malformed(f"the encoding of {type_} says {size} of dimension {axis}")
        self.check_sizes(entries)

    def check_sizes(self, sizes: Sequence[Expr]) -> None:
        """Check that sizes name declared symbols."""
        for size in sizes:
            missing = size.symbols() - self.symbols
            if missing:
                known = ", ".join(sorted(self.symbols)) or "none"
                raise Malformed(f"the size {size} names {sorted(missing)[0]}, which is no symbol; there are {known}")


def _title(op: ir.Operation) -> str:
    names = [op.attributes[key] for key in ("name", "sym_name", "callee") if key in op.attributes]
    place = str(op.location).removeprefix("loc(").removesuffix(")")
    return " ".join([op.name, *map(str, names), *([f"at {place}"] if "unknown" not in place else [])])


# ---- ops of ours ----------------------------------------------------------------------------------------------------


def _symbol(op: ir.OpView) -> None:
    _check_name(op, Expr.parse(name_of(op)).is_symbol is not None, "is no name of a symbol")
    symbol_of(op).check()


def _dim(op: ir.OpView) -> None:
    size = Expr.parse(name_of(op))
    is_derived = size.constant is None and not size.is_symbol and str(size) == name_of(op)
    _check_name(op, is_derived, f"is no derived size in normal form, which is {size}")
    from_entries(Bounds, entries_of(op, but="name"))


def _check_name(op: ir.OpView, is_right: bool, text: str) -> None:
    if not is_right:
        raise Malformed(f"{name_of(op)!r} {text}")


def _constraint(op: ir.OpView) -> None:
    constraint_of(op)


def _shape(op: ir.OpView) -> None:
    result = ir.RankedTensorType(op.results[0].type)
    dims = [read_size(entry) for entry in as_kind(ir.ArrayAttr, op.attributes["dims"], "an array of sizes")]
    is_whole = isinstance(result.element_type, ir.IntegerType | ir.IndexType)
    if not is_whole or not result.has_static_shape or result.rank > 1:
        raise Malformed(f"its result is {result}, no integers of rank 0 or 1")
    count = result.shape[0] if result.rank else 1
    if len(dims) != count:
        raise Malformed(f"it has {len(dims)} sizes for {count} elements")


def _bind(op: ir.OpView) -> None:
    source = ir.RankedTensorType(op.operands[0].type)
    names = [read_size(entry) for entry in as_kind(ir.ArrayAttr, op.attributes["symbols"], "an array of symbols")]
    if not isinstance(source.element_type, ir.IntegerType) or not source.has_static_shape:
        raise Malformed(f"it reads {source}, no integers of known number")
    count = product(dims_of(source)).constant
    if len(names) != count or not all(name.is_symbol for name in names):
        raise Malformed(f"it gives {len(names)} symbols the values of {count} elements")


def _nonzero(op: ir.OpView) -> None:
    mask, result = ir.RankedTensorType(op.operands[0].type), ir.RankedTensorType(op.results[0].type)
    if mask.rank != 1 or str(mask.element_type) != "i1":
        raise Malformed(f"its mask is {mask}, no vector of booleans")
    if result.rank != 1 or not isinstance(result.element_type, ir.IntegerType):
        raise Malformed(f"its result is {result}, no vector of integers")


LOCAL.update(
    {
        "disc.symbol": _symbol, "disc.dim": _dim, "disc.constraint": _constraint,
        "disc.shape": _shape, "disc.bind": _bind, "disc.nonzero": _nonzero,
    }
)  # fmt: skip


def _dim_names(v: Verifier, op: ir.Operation) -> None:
    v.check_sizes([Expr.parse(name_of(op.opview))])


def _constraint_names(v: Verifier, op: ir.Operation) -> None:
    constraint = constraint_of(op.opview)
    v.check_sizes([constraint.relation.lhs, constraint.relation.rhs, *constraint.operands])


def _shape_names(v: Verifier, op: ir.Operation) -> None:
    if v.has_run("annotate"):
        v.check_sizes(dims_of_attr(op.attributes["dims"]))


def _bind_names(v: Verifier, op: ir.Operation) -> None:
    if v.has_run("annotate"):
        v.check_sizes(dims_of_attr(op.attributes["symbols"]))


def _signature_fits(v: Verifier, op: ir.Operation) -> None:
    said = declaration_of(op.opview)
    if sorted(set(said.kept)) != sorted(said.kept) or any(not 0 <= k < len(said.arguments) for k in said.kept):
        raise Malformed(f"kept = {list(said.kept)} are no different ones of {len(said.arguments)} arguments")
    entry = next(f for f in v.functions.values() if not _is_private(f))
    block = entry.entry_block
    returned = list(block.operations[len(block.operations) - 1].operands)
    for what, specs, values in (
        ("argument", [said.arguments[leaf] for leaf in said.kept], list(block.arguments)),
        ("result", said.results, returned),
    ):
        if len(specs) != len(values):
            raise Malformed(f"it has {len(specs)} {what}s, and the function {len(values)}")
        for spec, value in zip(specs, values, strict=True):
            if not _is_of(spec, value, has_sizes=v.has_run("annotate")):
                raise Malformed(f"its {what} {spec} is a {value.type} in the function")


def _is_of(spec: TensorSpec, value: ir.Value, has_sizes: bool) -> bool:
    """Whether a value is such a tensor; one of complex numbers may be one of reals, with an axis of 2 more."""
    element = BY_MLIR[str(storage_type(element_type_of(value)))].name
    dims = dims_of(value) if has_sizes else spec.dims
    if spec.dtype == element:
        return spec.dims == dims
    is_pair = (spec.dtype, element) in (("c64", "f32"), ("c128", "f64"))
    return is_pair and (not has_sizes or (*spec.dims, Expr.const(2)) == dims)


RULES: dict[str, Callable[[Verifier, ir.Operation], None]] = {
    "disc.dim": _dim_names,
    "disc.constraint": _constraint_names,
    "disc.shape": _shape_names,
    "disc.bind": _bind_names,
    "disc.signature": _signature_fits,
}
"""What is checked of an op of ours besides `LOCAL`."""


# ---- attributes -----------------------------------------------------------------------------------------------------


def _check_stage(v: Verifier, module: ir.Operation) -> None:
    if STAGE in module.attributes and v.stage not in ORDER:
        raise Malformed(f"there is no stage {v.stage!r}; there are {', '.join(ORDER)}")


def _check_flops(v: Verifier, module: ir.Operation) -> None:
    v.check_sizes([read_size(module.attributes[FLOPS])])


def _check_arenas(v: Verifier, module: ir.Operation) -> None:
    v.arenas = arenas_of(module)
    v.check_sizes(v.arenas)


def _check_participants(v: Verifier, module: ir.Operation) -> None:
    if read_integer(module.attributes[PARTICIPANTS]) < 1:
        raise Malformed("there is no participant")


def _check_segment(v: Verifier, op: ir.Operation) -> None:
    if read_integer(op.attributes[SEGMENT]) < 1:
        raise Malformed("the first segment is not noted, and there is none before it")


def _check_buffers(v: Verifier, op: ir.Operation) -> None:
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


def _check_library(v: Verifier, op: ir.Operation) -> None:
    function = library_function_of(op)
    if len(function.operands) != len(op.operands) or len(function.results) != len(op.results):
        raise Malformed("element types are given for another number of operands or results")


def _check_window(v: Verifier, op: ir.Operation) -> None:
    window = read_window(op.attributes[WINDOW])
    rank = ir.RankedTensorType(op.operands[0].type).rank
    for name in ("size", "stride", "base_dilation", "dilation", "low", "high"):
        sizes = getattr(window, name)
        if len(sizes) != rank:
            raise Malformed(f"{WINDOW}: {name} has {len(sizes)} sizes for {rank} dimensions")
        v.check_sizes(sizes)


def _check_layout(v: Verifier, op: ir.Operation) -> None:
    raise Malformed(f"{LAYOUT} stands on arguments and results")


def _check_fusion(v: Verifier, op: ir.Operation) -> None:
    function = op.opview
    what = kinds.fusion_of(function)
    check = FUSIONS.get(type(what))
    if check is not None:
        check(v, function, what)


ATTRIBUTES: dict[str, Use] = {
    STAGE: Use(("",), _check_stage),
    FLOPS: Use(("",), _check_flops),
    ARENAS: Use(("",), _check_arenas),
    PARTICIPANTS: Use(("",), _check_participants),
    SEGMENT: Use(_RUNS, _check_segment),
    BUFFERS: Use(_CALLS, _check_buffers),
    LIBRARY: Use(("stablehlo.custom_call",), _check_library),
    WINDOW: Use(_WINDOWED, _check_window),
    LAYOUT: Use(("func.func",), _check_layout),
    kinds.FUSION: Use(("func.func",), _check_fusion),
}


_ATTRIBUTED = frozenset(name for use in ATTRIBUTES.values() for name in use.ops)


# ---- fusions --------------------------------------------------------------------------------------------------------


def _check_function(op: ir.Operation) -> None:
    if _is_private(op.opview) != kinds.is_fusion(op.opview):
        name = ir.StringAttr(op.attributes["sym_name"]).value
        raise Malformed(f"@{name} is {'a private function' if _is_private(op.opview) else 'a fusion'} and not both")


def _is_private(function: ir.OpView) -> bool:
    return str(function.attributes.get("sym_visibility", "")) == '"private"'


def _arguments(function: func.FuncOp) -> list[ir.Value]:
    return list(function.entry_block.arguments)


def _results(function: func.FuncOp) -> list[ir.Value]:
    block = function.entry_block
    return list(block.operations[len(block.operations) - 1].operands)


def _index(name: str, number: int, count: int, *, least: int = 0) -> None:
    if not least <= number < count:
        raise Malformed(f"{kinds.FUSION}: {name} = {number} is none of {count}")


def _check_row_reduce(v: Verifier, function: func.FuncOp, what: kinds.RowReduce) -> None:
    values = (value for op in function.entry_block.operations for value in (*op.operands, *op.results))
    rank = max((ir.RankedTensorType(value.type).rank for value in values), default=0)
    _index("columns", what.columns, rank + 1)
    if what.accumulators is not None:
        _index("accumulators", what.accumulators, len(_results(function)), least=-1)


def _check_epilogue(v: Verifier, function: func.FuncOp, what: kinds.Epilogue) -> None:
    _index("sums", what.sums, len(_arguments(function)))
    v.check_sizes([what.row])


def _check_updates(v: Verifier, function: func.FuncOp, what: kinds.Scatter | kinds.Update) -> None:
    results, arguments = _results(function), _arguments(function)
    if len(what.updates) != len(results):
        raise Malformed(f"{kinds.FUSION}: {len(what.updates)} updates for {len(results)} results")
    for number, result in zip(what.updates, results, strict=True):
        _index("updates", number, len(arguments), least=-1)
        if number >= 0 and arguments[number].type != result.type:
            raise Malformed(f"{kinds.FUSION}: a result {result.type} starts from a {arguments[number].type}")


def _check_dot(v: Verifier, function: func.FuncOp, what: kinds.Dot) -> None:
    if what.product is not None:
        _check_gemm(v, function, what.product)
        (result,) = _results(function)
        _check_covered(what.product, "rhs", _arguments(function)[what.product.rhs])
        _check_covered(what.product, "lhs", _arguments(function)[what.product.lhs])
        _check_covered(what.product, "result", result)


def _check_gemm(v: Verifier, function: func.FuncOp, gemm: MatrixProduct) -> None:
    arguments = _arguments(function)
    for name in ("lhs", "rhs"):
        _index(name, getattr(gemm, name), len(arguments))
        element = str(element_type_of(arguments[getattr(gemm, name)]))
        if element != gemm.element:
            raise Malformed(f"{kinds.FUSION}: a GEMM of {gemm.element} has elements of {element} as {name}")
    for axis in _axes(gemm):
        v.check_sizes([axis.size, axis.lhs, axis.rhs, axis.result])


def _axes(gemm: MatrixProduct) -> Iterator[Axis]:
    yield from (*gemm.batch, gemm.m, gemm.n, gemm.k)


def _check_covered(gemm: MatrixProduct, side: str, value: ir.Value) -> None:
    """The loops that go along an operand, or the result, go through all of its elements."""
    covered = product(axis.size for axis in _axes(gemm) if getattr(axis, side) != Expr.const(0))
    if covered != product(dims_of(value)) and product(dims_of(value)).constant != 0:
        raise Malformed(f"{kinds.FUSION}: a GEMM goes through {covered} elements of its {side}, a {value.type}")


def _check_convolution(v: Verifier, function: func.FuncOp, what: kinds.Convolution) -> None:
    if what.product is None:
        return
    _check_gemm(v, function, what.product.product)
    dims = (("input", dims_of(_arguments(function)[0])), ("result", dims_of(_results(function)[0])))
    for name, stated in dims:
        if getattr(what.product, name) != stated:
            raise Malformed(f"{kinds.FUSION}: {name} has other sizes than the function's")


def _check_attention(v: Verifier, function: func.FuncOp, what: kinds.Attention) -> None:
    arguments = _arguments(function)
    if what.rows not in v.functions or kinds.kind_of(v.functions[what.rows]) != kinds.RowReduce.kind:
        raise Malformed(f"{kinds.FUSION}: @{what.rows} is no row kernel of the module")
    if len(what.row_operands) != len(_arguments(v.functions[what.rows])) or what.row_operands.count(-1) != 1:
        raise Malformed(f"{kinds.FUSION}: row_operands = {list(what.row_operands)} are no operands of @{what.rows}")
    for number in what.row_operands:
        _index("row_operands", number, len(arguments), least=-1)
    if what.problem is None:
        raise Malformed(f"{kinds.FUSION}: problem is missing")
    for name in ("query", "key", "value"):
        _index(name, getattr(what.problem, name).number, len(arguments))


def _check_library_call(v: Verifier, function: func.FuncOp, what: kinds.Library) -> None:
    op = next(iter(function.entry_block.operations))
    if LIBRARY not in op.attributes:
        raise Malformed(f"{kinds.FUSION}: a fusion of kind library does not begin with a call that says {LIBRARY}")


FUSIONS: dict[type[kinds.Fusion], Callable[..., None]] = {
    kinds.RowReduce: _check_row_reduce,
    kinds.Epilogue: _check_epilogue,
    kinds.Scatter: _check_updates,
    kinds.Update: _check_updates,
    kinds.Dot: _check_dot,
    kinds.Convolution: _check_convolution,
    kinds.Attention: _check_attention,
    kinds.Library: _check_library_call,
}
