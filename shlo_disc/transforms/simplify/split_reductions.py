# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions of many elements to few are done in two steps, where a target has a block of threads for each result.

The elements are cut into parts of equal length, the last of which is filled up with the neutral element; each part is
reduced, and then what the parts have given. A sum over a whole tensor is so the work of hundreds of blocks, and not of
one (the tree reductions of XLA and of NVIDIA's CUB are the same idea).
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect.build import broadcast, convert, pad, reduce, view
from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, product, tensor_type
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.ops import BROADCASTS, ELEMENTWISE, RESHAPES
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.transforms.decisions import Decisions, Pattern
from shlo_disc.transforms.simplify.reduce import neutral_of, starts_neutral

REDUCE, PRODUCT = "stablehlo.reduce", "stablehlo.dot_general"

_BY_ELEMENT = frozenset({*ELEMENTWISE, *BROADCASTS, *RESHAPES, "stablehlo.transpose"})
"""Ops that change no element, or each by itself."""

_ROUNDED = frozenset({"bf16", "f16"})
"""Elements whose sums are held in f32, and rounded when they are whole."""

FEWEST_PARTS = 4
"""With fewer parts, little is gained."""

_EXACT = frozenset({"stablehlo.maximum", "stablehlo.minimum"})


@dataclass(frozen=True)
class Reduction:
    """A reduction, and what is known of sizes."""

    op: ir.OpView
    facts: Facts

    @property
    def dims(self) -> Dims:
        """The sizes of what is reduced."""
        return dims_of(self.op.operands[0])

    @property
    def axes(self) -> list[int]:
        """Those that are reduced, from the first."""
        return sorted(integers(self.op.attributes["dimensions"]))

    @property
    def run(self) -> range:
        """The last of the reduced axes that are neighbours."""
        last = first = self.axes[-1]
        while first - 1 in self.axes:
            first -= 1
        return range(first, last + 1)

    @property
    def combining(self) -> str:
        """The op that combines two elements."""
        return str(self.op.regions[0].blocks[0].operations[0].operation.name)

    def most(self, dims: Dims) -> int | None:
        """The most elements that a tensor of these sizes may have."""
        return self.facts.range(product(dims))[1]

    @property
    def parts(self) -> int:
        """Into how many the elements of a result are cut: a power of two."""
        results = self.most(dims_of(self.op.results[0])) or 1
        return 1 << (max(policy().split_results // results, 1).bit_length() - 1)


SPLIT: Pattern[Reduction] = Pattern(
    "split-reductions", "a reduction of many elements to few is done in parts, and then over the parts"
)


@SPLIT.requires("one tensor is reduced, by an op whose neutral element is where it starts")
def _starts_neutral(found: Reduction) -> bool:
    return len(found.op.results) == 1 and bool(found.axes) and starts_neutral(found.op)


@SPLIT.requires("there are so few results that each part of one is worth a block")
def _has_few_results(found: Reduction) -> bool:
    most = found.most(dims_of(found.op.results[0]))
    return most is not None and most * FEWEST_PARTS <= policy().split_results


@SPLIT.requires("what is reduced may be long")
def _may_be_long(found: Reduction) -> bool:
    most = found.most(found.dims)
    return most is None or most > policy().split_elements


@SPLIT.requires("it is none of an attention, which goes over its columns once for all that it needs of them")
def _is_of_no_attention(found: Reduction) -> bool:
    value, columns = found.op.operands[0], found.dims[-1]
    if not policy().online_attention_depth or found.axes != [len(found.dims) - 1]:
        return True
    return not (_is_of_product(value, columns) and any(_is_contracted(v, columns) for v in _made_of(value, columns)))


def _is_of_product(value: ir.Value, columns: Expr) -> bool:
    """Tells whether a value of so many columns is made of a product, element by element."""
    seen, waiting = dict[ir.Value, None](), [value]
    while waiting:
        value = waiting.pop()
        op = None if isinstance(value.owner, ir.Block) else value.owner
        if value in seen or op is None or columns not in dims_of(value):
            continue
        seen[value] = None
        if op.name == PRODUCT:
            return True
        waiting += op.operands if op.name in _BY_ELEMENT else []
    return False


def _made_of(value: ir.Value, columns: Expr) -> list[ir.Value]:
    """The values of so many columns that are made of one, and of what its rows are reduced to."""
    found, waiting = dict[ir.Value, None](), [value]
    while waiting:
        value = waiting.pop()
        if value in found:
            continue
        found[value] = None
        users = (use.owner.operation for use in value.uses)
        waiting += [r for op in users if op.name in _BY_ELEMENT or op.name == REDUCE for r in op.results]
    return [v for v in found if columns in dims_of(v)]


def _is_contracted(value: ir.Value, columns: Expr) -> bool:
    """Tells whether a product adds up what a value has in so many columns."""
    for use in value.uses:
        op = use.owner.operation
        if op.name == PRODUCT:
            numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
            sides = (numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions)
            sizes = dims_of(value)
            if any(
                v == value and columns in [sizes[i] for i in axes] for v, axes in zip(op.operands, sides, strict=True)
            ):
                return True
    return False


def split_reductions(block: ir.Block, facts: Facts, decisions: Decisions) -> None:
    """Split the reductions of a block and of what is nested in it, in place, where the target asks for it."""
    if not policy().split_results:
        return
    for inner in list(all_blocks(block)):
        for op in [op for op in inner.operations if op.operation.name == REDUCE]:
            found = SPLIT.match(lambda op: Reduction(op, facts), op)
            if found is not None and decisions.take(SPLIT.name, op.operation):
                _split(found)


def _split(found: Reduction) -> None:
    op, combining = found.op, found.combining
    with ir.InsertionPoint(op), op.location:
        value, element = op.operands[0], element_type_of(op.operands[0])
        if str(element) in _ROUNDED and combining not in _EXACT:
            value = convert(value, ir.F32Type.get())
        run, others = found.run, [axis for axis in found.axes if axis < found.run.start]
        if others:
            whole = _reduce(_reduce(value, list(run), combining), others, combining)
        else:
            cut, length, rest = _cut(value, run, found.parts, combining)
            whole = _reduce(_reduce(cut, [length], combining), [rest], combining)
        op.results[0].replace_all_uses_with(convert(whole, element))
    op.operation.erase()


def _cut(value: ir.Value, run: range, parts: int, combining: str) -> tuple[ir.Value, int, int]:
    """A run of axes as two, that of the elements of a part and that of the parts, which are neighbours in memory where
    nothing is behind the run: each part then has every so many-th element. What is missing is filled up with what
    changes nothing.

    Returns the tensor, the axis of a part's elements, and that of the parts once the former is reduced.
    """
    dims = dims_of(value)
    before, behind = dims[: run.start], dims[run.stop :]
    count = product(dims[run.start : run.stop])
    length = ceildiv(count, parts)
    flat = _flat(value, (*before, count, *behind))
    missing = length * parts - count
    if missing.constant != 0:
        none = [Expr.const(0)] * len(dims_of(flat))
        high = [*none[: run.start], missing, *none[run.start + 1 :]]
        flat = pad(flat, none, high, [0] * len(none), _neutral(combining, element_type_of(value)))
    axes = (Expr.const(parts), length) if behind else (length, Expr.const(parts))
    return view(flat, (*before, *axes, *behind)), run.start + bool(behind), run.start


def _flat(value: ir.Value, dims: Dims) -> ir.Value:
    """A view of other sizes. What an elementwise op makes is made of views, so that no index has to be divided."""
    op = None if isinstance(value.owner, ir.Block) else value.owner
    if op is None or dims_of(value) in ((), dims):
        return view(value, dims) if dims_of(value) else value
    if op.name in BROADCASTS and not dims_of(op.operands[0]):
        return broadcast(op.operands[0], dims, [])
    if op.name not in ELEMENTWISE or len(list(value.uses)) > 1:
        return view(value, dims)
    operands = [_flat(operand, dims) for operand in op.operands]
    type_ = tensor_type(dims, element_type_of(value))
    attributes = {name: op.attributes[name] for name in op.attributes}
    return ir.Operation.create(op.name, results=[type_], operands=operands, attributes=attributes).results[0]


def _neutral(combining: str, element: ir.Type) -> float:
    neutral = neutral_of(combining, element)
    if neutral is None:
        raise CompilerError(f"split-reductions: {combining} has no neutral element for {element}")
    return neutral


def _reduce(value: ir.Value, axes: list[int], combining: str) -> ir.Value:
    """`value` reduced along some axes by an op, from its neutral element on."""
    return reduce(value, axes, combining.removeprefix("stablehlo."), _neutral(combining, element_type_of(value)))
