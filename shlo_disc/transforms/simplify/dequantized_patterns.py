# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with weights of narrow integers, `x @ ((q - zero) * scale)`, and the conditions under which they are read as
they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.ops import BROADCASTS, RESHAPES
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.product_tiles import at_most
from shlo_disc.transforms.decisions import Pattern
from shlo_disc.transforms.simplify.gathered_rows import STEPS, takes_rows
from shlo_disc.transforms.simplify.index_digits import Place, Read, places, whole
from shlo_disc.transforms.simplify.narrow_integers import FLOATS_OF_8_BITS, is_stored
from shlo_disc.transforms.simplify.scaled_integers import FLOATS, Scaled, is_normal, number_of, scaled_integers

MOST_ROWS_BESIDE_TILES = 32
"""Rows of bf16 that multiply narrow weights where tiles (AMX) would multiply weights that are written."""

FEWEST_ROWS = 8
"""Rows of a weight that share a scale, at least: below, reading scales takes as long as reading floats."""

_MOVES = BROADCASTS | RESHAPES | {"stablehlo.transpose"}


class Use(NamedTuple):
    """The operand of an op, by its number."""

    op: ir.Operation
    operand: int


@dataclass(frozen=True)
class Layout:
    """The distances in memory of a read along k and n, and from a matrix to the next: one for every `group` rows and
    `columns`, 0 where it is the same for all."""

    group: int
    columns: int
    k: int
    n: int
    matrix: int


@dataclass(frozen=True)
class DequantizedProduct:
    """A product whose operand `side`, `matrices` of `rows` (k) and `columns` (n), is a `weight` of scaled integers."""

    op: ir.Operation
    side: int
    matrices: int
    rows: int
    columns: int
    weight: Scaled

    @property
    def zero(self) -> Read | None:
        """The zero point that is taken off the integers, or the bias."""
        return self.weight.integers.zero if self.weight.bias is None else self.weight.bias

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
    def batch(self) -> list[int]:
        """The axes of the other operand that count matrices, row-major."""
        return _batches(self.op, 1 - self.side)

    @property
    def free(self) -> list[int]:
        """The axes of the other operand that the result has, besides those of batches."""
        return [axis for axis in range(len(dims_of(self.other))) if axis not in {*self.terms, *self.batch}]

    @property
    def is_of_few_rows(self) -> Expr:
        """1 where the other operand has no more rows than a tile of the target's kernels, else 0."""
        dims = dims_of(self.other)
        return at_most(product(dims[axis] for axis in self.free), policy().product_tile)

    @cached_property
    def half(self) -> int:
        """The distance of rows that share a byte, 0 where none do."""
        return self._half_of("k", self.rows)

    @cached_property
    def column_half(self) -> int:
        """The distance of columns that share a byte, 0 where none do."""
        return self._half_of("n", self.columns)

    def _half_of(self, name: str, size: int) -> int:
        half = self.weight.integers.half
        is_one = half is not None and half.name == name and half.size == 2 and half.step in (1, size // 2)
        return half.step if half is not None and is_one else 0

    @cached_property
    def has_dense_columns(self) -> bool | None:
        """The order of the bytes in memory, (n, k) or (k, n); None for any other."""
        count, step = _of_bytes(self.rows, self.half)
        columns, column_step = _of_bytes(self.columns, self.column_half)
        found = [place for place in places(self.weight.integers.data) or [] if place.digit.name != "matrix"]
        for is_dense, (k, n) in ((True, (1, count)), (False, (columns, 1))):
            wanted = [("k", step, count, k), ("n", column_step, columns, n)]
            if [(*p.digit, p.distance) for p in found] == [w for w in wanted if w[2] > 1]:
                return is_dense
        return None

    @property
    def distance(self) -> int | None:
        """The distance from a matrix of integers to the next; None where it is not one number."""
        return self._between_matrices(self.weight.integers.data)

    def _between_matrices(self, read: Read) -> int | None:
        found = [place for place in places(read) or [] if place.digit.name == "matrix"]
        if not found:
            return 0
        return found[0].distance if [place.digit[1:] for place in found] == [(1, self.matrices)] else None

    @cached_property
    def layouts(self) -> list[Layout | None]:
        """The layouts of the scale and of the zero point."""
        return [self._layout(read) for read in (self.weight.scale, self.zero)]

    def _layout(self, read: Read | None) -> Layout | None:
        found: dict[str, Place] = {}
        matrix = 0 if read is None else self._between_matrices(read)
        if matrix is None:
            return None
        for place in (None if read is None else places(read)) or []:
            if place.digit.name in found and place.digit.name != "matrix":
                return None
            found[place.digit.name] = place
        along_k, along_n = found.get("k"), found.get("n")
        for along, size in ((along_k, self.rows), (along_n, self.columns)):
            if along is not None and along.digit.step * along.digit.size != size:
                return None
        group, k = (self.rows, 0) if along_k is None else (along_k.digit.step, along_k.distance)
        columns, n = (self.columns, 0) if along_n is None else (along_n.digit.step, along_n.distance)
        return Layout(group, columns, k, n, matrix)

    @property
    def other_uses(self) -> list[Use]:
        """Other uses of all that is computed of the integers, by ops that do more than compute elements of it."""
        ops = self.weight.integers.ops
        uses = [use for op in ops for use in _uses_of(op.results[0], ops)]
        return [use for use in _ends(uses) if use != Use(self.op, self.side)]

    @property
    def has_narrow_rows(self) -> bool:
        """Tells whether the other operand has floats of 8 bits, all of which bf16 has."""
        return str(element_type_of(self.other)) in FLOATS_OF_8_BITS

    @property
    def group(self) -> int:
        """The rows that share a scale and a zero point."""
        return min((layout.group for layout in self.layouts if layout is not None), default=self.rows)

    @property
    def group_columns(self) -> int:
        """The columns that share them."""
        return min((layout.columns for layout in self.layouts if layout is not None), default=self.columns)

    @property
    def is_spread(self) -> bool:
        """Tells whether scales are those of rows, or of groups of columns, or columns share bytes: sums of integers are
        not scaled."""
        has_short_groups = self.group < min(FEWEST_ROWS, self.rows)
        return has_short_groups or self.group_columns not in (1, self.columns) or bool(self.column_half)


DEQUANTIZED: Pattern[DequantizedProduct] = Pattern(
    "dequantized-product", "a weight of narrow integers is dequantised where it is multiplied"
)


@DEQUANTIZED.requires("the product is one of floats, of 8 bits too, whose sums no algorithm prescribes")
def _is_of_floats(found: DequantizedProduct) -> bool:
    left, right, result = (str(element_type_of(v)) for v in (*found.op.operands, found.op.results[0]))
    are_floats = left == right and left in FLOATS and result in (left, "f32")
    are_narrow = found.has_narrow_rows and right in FLOATS_OF_8_BITS and result in ("f32", "bf16")
    are_floats |= are_narrow and not policy().product_tile
    return are_floats and "algorithm" not in found.op.attributes


@DEQUANTIZED.requires(
    "a target whose products are kernels multiplies one matrix, of integers less zero points, by scales of columns"
)
def _has_a_kernel(found: DequantizedProduct) -> bool:
    integers = found.weight.integers
    is_plain = not found.is_spread and integers.table is None and not integers.difference_bits
    is_scaled = not found.weight.divides and found.weight.bias is None
    return not policy().product_tile or (is_plain and is_scaled and not found.batch)


@DEQUANTIZED.requires("weights that are scaled are rounded to the type of the product, or to one that f32 has")
def _are_rounded_once(found: DequantizedProduct) -> bool:
    element = str(element_type_of(found.other))
    return found.weight.scale is None or element in ("f32", found.weight.rounding)


@DEQUANTIZED.requires("quotients differ from products with reciprocals by no more than a rounding of f32")
def _are_quotients_rounded_alike(found: DequantizedProduct) -> bool:
    """A quotient of 8 bits and a bf16 is 2**-17 of itself away from any number halfway between two of bf16."""
    if not found.weight.divides or found.weight.scale is None:
        return True
    number = number_of(found.weight.scale)
    if number is not None and not is_normal(1 / number if number else 0.0):
        return False
    is_exact = found.weight.rounding == "bf16" and str(element_type_of(found.weight.scale.value)) == "bf16"
    return found.weight.rounding == "f32" or (is_exact and found.weight.integers.has_range)


@DEQUANTIZED.requires("a target with tiles of bf16 has few rows that are multiplied by them")
def _pays_beside_tiles(found: DequantizedProduct) -> bool:
    if not policy().bf16_tiles or str(element_type_of(found.other)) != "bf16":
        return True
    rows = product(dims_of(found.other)).constant
    return rows is not None and rows <= MOST_ROWS_BESIDE_TILES * found.matrices * found.rows


@DEQUANTIZED.requires("a target whose products are kernels may have few rows, which read a weight once")
def _pays_beside_libraries(found: DequantizedProduct) -> bool:
    return not policy().product_tile or found.is_of_few_rows.constant != 0


@DEQUANTIZED.requires("the integers are an argument, a constant, or a slice of one, and not computed")
def _are_stored(found: DequantizedProduct) -> bool:
    return is_stored(found.weight.integers)


@DEQUANTIZED.requires(
    "nothing but the product reads what is computed of the integers, or in f32 others that read the integers as well"
)
def _is_read_by_products(found: DequantizedProduct) -> bool:
    others = found.other_uses
    pays = not policy().product_tile and str(element_type_of(found.other)) == "f32"
    return not others or (pays and all(_reads_integers(use, found) for use in others))


@DEQUANTIZED.requires(
    "integers lie in the order of rows or of columns, as matrices do at a distance; two in a byte are rows, or columns"
)
def _is_dense(found: DequantizedProduct) -> bool:
    are_known = found.weight.integers.half is None or bool(found.half or found.column_half)
    return are_known and found.has_dense_columns is not None and found.distance is not None


@DEQUANTIZED.requires("scales and zero points are one for all, or for groups of rows and of columns that have a kernel")
def _are_by_groups(found: DequantizedProduct) -> bool:
    given = zip((found.weight.scale, found.zero), found.layouts, strict=True)
    if any(read is not None and layout is None for read, layout in given):
        return False
    layouts = [layout for layout in found.layouts if layout is not None]
    groups, columns = {layout.group for layout in layouts}, {layout.columns for layout in layouts}
    if len(groups - {found.rows}) > 1 or len(columns - {found.columns}) > 1:
        return False
    if not found.is_spread:
        return True
    rows_are_long = found.group in (1, found.rows) or found.group >= FEWEST_ROWS
    are_for_columns = found.group_columns == 1 and found.group > 1
    columns_are_long = found.group_columns >= min(FEWEST_ROWS, found.columns)
    return not found.half and rows_are_long and (columns_are_long or are_for_columns)


@DEQUANTIZED.requires("both rows, or columns, of a byte go from one group to the next together")
def _halves_share_groups(found: DequantizedProduct) -> bool:
    rows_do = _go_together(found.half, found.group, found.rows)
    return rows_do and (found.group_columns == 1 or _go_together(found.column_half, found.group_columns, found.columns))


def _go_together(half: int, group: int, size: int) -> bool:
    if not half or group == size:
        return True
    return group % 2 == 0 if half == 1 else half % group == 0


def _of_bytes(size: int, half: int) -> tuple[int, int]:
    """The number of rows (columns) of bytes, and the distance of those that neighbouring bytes hold."""
    return (size // 2, 2 if half == 1 and size > 2 else 1) if half else (size, 1)


def dequantized_product(op: ir.Operation, side: int) -> DequantizedProduct | None:
    """The product with operand `side` as its weight."""
    weight = op.operands[side]
    sizes = [size.constant or 0 for size in dims_of(weight)]
    inner, batch = [axes[side] for axes in _terms(op, side)], _batches(op, side)
    free = [axis for axis in range(len(sizes)) if axis not in {*inner, *batch}]
    read = whole(weight, {"matrix": batch, "k": inner, "n": free})
    if read is None:
        return None
    scaled = scaled_integers(read)
    if scaled is None:
        return None
    matrices, rows, columns = (_count(sizes, axes) for axes in (batch, inner, free))
    return DequantizedProduct(op, side, matrices, rows, columns, scaled)


def _numbers(op: ir.Operation) -> stablehlo.DotDimensionNumbers:
    return stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])


def _batches(op: ir.Operation, side: int) -> list[int]:
    """The axes of operand `side` that are batches, in the order of the result."""
    numbers = _numbers(op)
    return list((numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions)[side])


def _terms(op: ir.Operation, side: int) -> list[tuple[int, int]]:
    """The axes of both operands that are summed over, in the order of operand `side`."""
    numbers = _numbers(op)
    pairs = zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True)
    return sorted(pairs, key=lambda axes: axes[side])


def _count(sizes: list[int], axes: list[int]) -> int:
    count = 1
    for axis in axes:
        count *= sizes[axis]
    return count


def _uses_of(value: ir.Value, ops: Sequence[ir.Operation]) -> Iterator[Use]:
    """The uses of a value, or of what other ops move of it, by others than `ops`."""
    for use in value.uses:
        user = use.owner.operation
        if user.name in _MOVES:
            yield from _uses_of(user.results[0], ops)
        elif user not in ops:
            yield Use(user, use.operand_number)


def _ends(uses: Iterable[Use]) -> Iterator[Use]:
    """The uses by ops that do more than compute other elements."""
    for use in uses:
        if use.op.name in STEPS:
            yield from _ends(_uses_of(use.op.results[0], ()))
        else:
            yield use


def _reads_integers(use: Use, found: DequantizedProduct) -> bool:
    """Tells whether another product reads the integers in place of an operand, or a gather a few rows of them."""
    if use.op.name != "stablehlo.dot_general":
        return use.operand == 0 and takes_rows(use.op, found.weight.integers.ops)
    is_other = use.op != found.op
    return is_other and _would_match(*use) and (use.operand == 1 or not _would_match(use.op, 1))


def _would_match(op: ir.Operation, side: int) -> bool:
    """Tells whether all other conditions hold for a product."""
    found = dequantized_product(op, side)
    others = (condition.holds for condition in DEQUANTIZED.conditions if condition.holds is not _is_read_by_products)
    return found is not None and all(holds(found) for holds in others)


__all__ = ["DEQUANTIZED", "DequantizedProduct", "Layout", "dequantized_product"]
