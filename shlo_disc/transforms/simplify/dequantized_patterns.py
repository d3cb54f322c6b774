# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with weights of narrow integers, `x @ ((q - zero) * scale)`, and the conditions under which they are read as
they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.ops import BROADCASTS, RESHAPES, SLICES
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.product_tiles import at_most
from shlo_disc.shape_dialect.utils.regions import is_constant
from shlo_disc.transforms.decisions import Pattern
from shlo_disc.transforms.simplify.index_digits import Place, Read, places, source_of, whole
from shlo_disc.transforms.simplify.narrow_integers import FLOATS_OF_8_BITS, Integers, integers_of

MOST_ROWS_BESIDE_TILES = 32
"""Rows of bf16 that multiply narrow weights where tiles (AMX) would multiply weights that are written."""

FEWEST_ROWS = 8
"""Rows of a weight that share a scale, at least: below, reading scales takes as long as reading floats."""

_MOVES = BROADCASTS | RESHAPES | {"stablehlo.transpose"}
_STORED = {*SLICES, "stablehlo.dynamic_slice"}
OF_16_BITS = ("bf16", "f16")
FLOATS = ("f32", *OF_16_BITS)
"""Element types of products; those of weights by their positions are `Rounding` in runtime/native/kernels."""


@dataclass(frozen=True)
class Layout:
    """The distances in memory of a read along k and n: one for every `group` rows, 0 where it is the same for all."""

    group: int
    k: int
    n: int


@dataclass(frozen=True)
class DequantizedProduct:
    """A product whose operand `side`, of `rows` (k) and `columns` (n), is dequantised.

    rounding: the type to which integers are rounded when they have been multiplied by the scale.
    """

    op: ir.Operation
    side: int
    rows: int
    columns: int
    integers: Integers
    scale: Read | None
    rounding: str = "f32"

    @property
    def numbers(self) -> stablehlo.DotDimensionNumbers:
        """The product's dimension numbers."""
        return _numbers(self.op)

    @property
    def terms(self) -> list[int]:
        """The axes of the other operand that are summed over, row-major along k."""
        return [axes[1 - self.side] for axes in _terms(self.op, self.side)]

    @property
    def other(self) -> ir.Value:
        """The operand that is multiplied by the weight."""
        return self.op.operands[1 - self.side]

    @property
    def free(self) -> list[int]:
        """The axes of the other operand that the result has."""
        return [axis for axis in range(len(dims_of(self.other))) if axis not in self.terms]

    @property
    def is_of_few_rows(self) -> Expr:
        """1 where the other operand has no more rows than a tile of the target's kernels, else 0."""
        dims = dims_of(self.other)
        return at_most(product(dims[axis] for axis in self.free), policy().product_tile)

    @cached_property
    def half(self) -> int:
        """The distance of rows that share a byte, 0 where none do; -1 where these are no two rows."""
        half = self.integers.half
        if half is None:
            return 0
        return half.step if half.name == "k" and half.size == 2 and half.step in (1, self.rows // 2) else -1

    @cached_property
    def has_dense_columns(self) -> bool | None:
        """The order of the bytes in memory, (n, k) or (k, n); None for any other."""
        count = self.rows // 2 if self.half else self.rows
        step = 2 if self.half == 1 and self.rows > 2 else 1
        found = places(self.integers.data) or []
        for is_dense, (k, n) in ((True, (1, count)), (False, (self.columns, 1))):
            wanted = [("k", step, count, k), ("n", 1, self.columns, n)]
            if [(*p.digit, p.distance) for p in found] == [w for w in wanted if w[2] > 1]:
                return is_dense
        return None

    @cached_property
    def layouts(self) -> list[Layout | None]:
        """The layouts of the scale and of the zero point."""
        return [self._layout(read) for read in (self.scale, self.integers.zero)]

    def _layout(self, read: Read | None) -> Layout | None:
        found: dict[str, Place] = {}
        for place in (None if read is None else places(read)) or []:
            if place.digit.name in found:
                return None
            found[place.digit.name] = place
        along_k, along_n = found.get("k"), found.get("n")
        if along_n is not None and along_n.digit[1:] != (1, self.columns):
            return None
        if along_k is not None and along_k.digit.step * along_k.digit.size != self.rows:
            return None
        distance = 0 if along_n is None else along_n.distance
        return (
            Layout(self.rows, 0, distance)
            if along_k is None
            else Layout(along_k.digit.step, along_k.distance, distance)
        )

    @property
    def has_narrow_rows(self) -> bool:
        """Tells whether the other operand has floats of 8 bits, all of which bf16 has."""
        return str(element_type_of(self.other)) in FLOATS_OF_8_BITS

    @property
    def group(self) -> int:
        """The rows that share a scale and a zero point."""
        return min((layout.group for layout in self.layouts if layout is not None), default=self.rows)


DEQUANTIZED: Pattern[DequantizedProduct] = Pattern(
    "dequantized-product", "a weight of narrow integers is dequantised where it is multiplied"
)


@DEQUANTIZED.requires(
    "the product is one of floats, of 8 bits too, without batches, whose sums no algorithm prescribes"
)
def _is_of_floats(found: DequantizedProduct) -> bool:
    left, right, result = (str(element_type_of(v)) for v in (*found.op.operands, found.op.results[0]))
    batches = list(found.numbers.lhs_batching_dimensions)
    are_floats = left == right and left in FLOATS and result in (left, "f32")
    are_narrow = found.has_narrow_rows and right in FLOATS_OF_8_BITS and result in ("f32", "bf16")
    are_floats |= are_narrow and not policy().product_tile
    return are_floats and not batches and "algorithm" not in found.op.attributes


@DEQUANTIZED.requires("weights that are scaled are rounded to the type of the product, or to one that f32 has")
def _are_rounded_once(found: DequantizedProduct) -> bool:
    element = str(element_type_of(found.other))
    return found.scale is None or element in ("f32", found.rounding)


@DEQUANTIZED.requires("a target with tiles of bf16 has few rows that are multiplied by them")
def _pays_beside_tiles(found: DequantizedProduct) -> bool:
    if not policy().bf16_tiles or str(element_type_of(found.other)) != "bf16":
        return True
    rows = product(dims_of(found.other)).constant
    return rows is not None and rows <= MOST_ROWS_BESIDE_TILES * found.rows


@DEQUANTIZED.requires("a target whose products are kernels may have few rows, which read a weight once")
def _pays_beside_libraries(found: DequantizedProduct) -> bool:
    return not policy().product_tile or found.is_of_few_rows.constant != 0


@DEQUANTIZED.requires("the integers are an argument, a constant, or a slice of one, and not computed")
def _are_stored(found: DequantizedProduct) -> bool:
    op = defining_op(found.integers.data.value)
    return op is None or is_constant(op) or op.name in _STORED


@DEQUANTIZED.requires("nothing but the product reads what is computed of the integers")
def _is_read_once(found: DequantizedProduct) -> bool:
    return all(sum(1 for _ in _readers(op.results[0])) == 1 for op in found.integers.ops)


@DEQUANTIZED.requires("the integers lie in the order of rows or of columns; two in a byte are two rows")
def _is_dense(found: DequantizedProduct) -> bool:
    return found.half >= 0 and found.has_dense_columns is not None


@DEQUANTIZED.requires("scales and zero points are one for all, for each column, or for groups of rows of each")
def _are_by_groups(found: DequantizedProduct) -> bool:
    given = [found.scale, found.integers.zero]
    if any(read is not None and layout is None for read, layout in zip(given, found.layouts, strict=True)):
        return False
    groups = {layout.group for layout in found.layouts if layout is not None}
    return len(groups - {found.rows}) <= 1 and (found.group == found.rows or found.group >= FEWEST_ROWS)


@DEQUANTIZED.requires("both rows of a byte go from one group to the next together")
def _halves_share_groups(found: DequantizedProduct) -> bool:
    if not found.half or found.group == found.rows:
        return True
    return found.group % 2 == 0 if found.half == 1 else found.half % found.group == 0


def dequantized_product(op: ir.Operation, side: int) -> DequantizedProduct | None:
    """The product with operand `side` as its weight."""
    weight = op.operands[side]
    sizes = [size.constant or 0 for size in dims_of(weight)]
    inner = [axes[side] for axes in _terms(op, side)]
    free = [axis for axis in range(len(sizes)) if axis not in inner]
    read = whole(weight, {"k": inner, "n": free})
    if read is None:
        return None
    parts = _scaled(read)
    if parts is None:
        return None
    return DequantizedProduct(op, side, _count(sizes, inner), _count(sizes, free), *parts)


def _numbers(op: ir.Operation) -> stablehlo.DotDimensionNumbers:
    return stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])


def _terms(op: ir.Operation, side: int) -> list[tuple[int, int]]:
    """The axes of both operands that are summed over, in the order of operand `side`."""
    numbers = _numbers(op)
    pairs = zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True)
    return sorted(pairs, key=lambda axes: axes[side])


def _scaled(read: Read) -> tuple[Integers, Read | None, str] | None:
    """Integers, the scale that they are multiplied by, and the type that the products are rounded to."""
    if (integers := integers_of(read)) is not None:
        return integers, None, "f32"
    ops: tuple[ir.Operation, ...] = ()
    found, op = _source(read)
    if op is not None and _is_conversion(op, OF_16_BITS, "f32"):
        ops, (found, op) = (op,), _source(Read(op.operands[0], found.at))
    rounding = str(element_type_of(found.value))
    if op is not None and _is_conversion(op, ("f32",), *OF_16_BITS):
        ops, (found, op) = (*ops, op), _source(Read(op.operands[0], found.at))
    if op is None or op.name != "stablehlo.multiply" or str(element_type_of(found.value)) not in FLOATS:
        return None
    for number in (0, 1):
        integers = integers_of(Read(op.operands[number], found.at))
        scale = None if integers is None else _narrowest(Read(op.operands[1 - number], found.at))
        if integers is not None and scale is not None:
            return replace(integers, ops=(*ops, op, *integers.ops)), scale, rounding
    return None


def _source(read: Read) -> tuple[Read, ir.Operation | None]:
    """The read of what is moved there, and the op that computes that."""
    found = source_of(read) or read
    return found, defining_op(found.value)


def _is_conversion(op: ir.Operation, sources: Sequence[str], *targets: str) -> bool:
    types = [str(element_type_of(value)) for value in (*op.operands, *op.results)]
    return op.name == "stablehlo.convert" and types[0] in sources and types[1] in targets


def _narrowest(read: Read) -> Read | None:
    """A read of floats before they have become wider."""
    found = source_of(read)
    op = None if found is None else defining_op(found.value)
    if found is None or op is None or not _is_conversion(op, OF_16_BITS, "f32"):
        return found
    return _narrowest(Read(op.operands[0], found.at))


def _count(sizes: list[int], axes: list[int]) -> int:
    count = 1
    for axis in axes:
        count *= sizes[axis]
    return count


def _readers(value: ir.Value) -> Iterator[ir.Operation]:
    """The ops that read a value, themselves or what other ops move of it."""
    for use in value.uses:
        user = use.owner.operation
        if user.name in _MOVES:
            yield from _readers(user.results[0])
        else:
            yield user


__all__ = ["DEQUANTIZED", "FLOATS", "OF_16_BITS", "DequantizedProduct", "Layout", "dequantized_product"]
