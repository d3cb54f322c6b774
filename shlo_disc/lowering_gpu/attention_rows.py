# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The common part of attention kernels, for any multiplication: where matrices lie, and the softmax of rows in pieces.

For each row a thread has the largest element so far. The weights of a piece are exponentials less it, and sums of
earlier pieces are scaled down when a larger one comes; the sum of the weights divides once, in the end. Weights are
smaller by a power of two, which is exact, so that no row has weights of more than 1 together: the sums stay in the
range of the values, as they do in a program of whole rows.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.element_types import Element, constant_like, convert, element_of, round_to
from shlo_disc.lowering.elements import Elements
from shlo_disc.lowering.index_rules import INDEX_RULES
from shlo_disc.lowering.kernels import delinearize
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering_gpu import device_math
from shlo_disc.lowering_gpu.index_math import below, plus
from shlo_disc.lowering_gpu.kernel import GpuFrame, part_behind
from shlo_disc.lowering_gpu.product_form import Matrix
from shlo_disc.lowering_gpu.shuffles import from_lane_across
from shlo_disc.lowering_gpu.whole_pieces import WholePieces
from shlo_disc.shape_dialect.dialect.fusion import Attention, fusion_of
from shlo_disc.shape_dialect.dialect.names import PRECISION, PRODUCTS
from shlo_disc.shape_dialect.dialect.problems import AttentionProblem, Operand
from shlo_disc.shape_dialect.dialect.types import dims_of, product
from shlo_disc.shape_dialect.mlir import arith, func, ir, vector
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import callee_of
from shlo_disc.shape_dialect.utils.structure import Structure

Values = list[ir.Value]
NO_NUMBER = -math.inf

_MANTISSA, _BIAS = 23, 127
"""Bits of an f32 behind its exponent, and the exponent that 1 has."""


@dataclass(frozen=True)
class AttentionTask:
    """A fusion that is an attention: what it says of itself, and the function of its row kernel."""

    fusion: func.FuncOp
    what: Attention
    rows: func.FuncOp

    @staticmethod
    def of(fusion: func.FuncOp) -> AttentionTask:
        """The task of a function in its module."""
        what = fusion_of(fusion)
        if not isinstance(what, Attention):
            raise CompilerError(f"kernels: @{fusion.name.value} is no attention")
        functions = (op for op in fusion.operation.parent.opview.body.operations if isinstance(op, func.FuncOp))
        return AttentionTask(fusion, what, next(op for op in functions if op.name.value == what.rows))

    @property
    def problem(self) -> AttentionProblem:
        """Sizes and strides."""
        if self.what.problem is None:
            raise CompilerError(f"kernels: @{self.fusion.name.value} does not say what its attention is")
        return self.what.problem

    @property
    def key(self) -> Hashable:
        """Equal for attentions that are one kernel: all but the names of their functions."""
        types = tuple(v.type for v in self.fusion.entry_block.arguments), tuple(self.fusion.type.results)
        return types, self.problem, self.what.row_operands, self.allows_tf32, Structure(self.rows, None).key

    @property
    def allows_tf32(self) -> bool:
        """Tells whether the program asks for no more than TF32 of both products."""
        functions = {
            f.name.value: f for f in self.fusion.operation.parent.opview.body.operations if isinstance(f, func.FuncOp)
        }
        called = [
            functions[callee_of(op.operation)]
            for op in self.fusion.entry_block.operations
            if op.operation.name == "func.call"
        ]
        products = [
            op for function in called for op in function.entry_block.operations if op.operation.name in PRODUCTS
        ]
        return all(
            PRECISION in op.attributes and ir.StringAttr(op.attributes[PRECISION]).value == "tf32" for op in products
        )

    @property
    def depth(self) -> int:
        """Elements of a query, and of a key."""
        return _known(self.problem.depth)

    @property
    def width(self) -> int:
        """Elements of a value."""
        return _known(self.problem.width)

    @property
    def scores(self) -> ir.Value:
        """The argument of the row kernel that has no buffer."""
        return self.rows.entry_block.arguments[self.what.row_operands.index(-1)]

    @property
    def x(self) -> ir.Value:
        """The values that the softmax is of, which the first reduction of its kernel reads."""
        if not self.what.online:
            raise CompilerError(f"kernels: @{self.fusion.name.value} does not process rows in pieces")
        reductions = (op for op in self.rows.entry_block.operations if op.operation.name == "stablehlo.reduce")
        return next(reductions).operands[0]


def _known(size: Expr) -> int:
    if size.constant is None:
        raise CompilerError(f"kernels: an attention has heads of {size} elements")
    return size.constant


@dataclass(frozen=True)
class Sides:
    """Query, key, value and result as [batch..., rows or columns, elements of a head]."""

    OPERANDS: ClassVar = ("query", "key", "value")

    query: Matrix
    key: Matrix
    value: Matrix
    result: Matrix

    @staticmethod
    def of(frame: GpuFrame, task: AttentionTask) -> Sides:
        """Those that a kernel is told."""
        p, count = task.problem, len(frame.inputs)

        def matrix(operand: Operand, rows: Expr, inner: Expr, *strides: Expr) -> Matrix:
            pointer, value = frame.pointers[operand.number], frame.tensors[operand.number]
            length = frame.size_of(product(dims_of(value)) - operand.start)
            sizes = (*(axis.size for axis in p.batch), rows, inner)
            told = ([frame.size_of(e) for e in numbers] for numbers in (sizes, strides))
            return Matrix(part_behind(pointer, operand.start, length), *told)

        rows, columns, batch = p.rows.size, p.columns, p.batch
        return Sides(
            matrix(p.query, rows, p.depth, *(a.query for a in batch), p.rows.query, p.query_depth),
            matrix(p.key, columns, p.depth, *(a.key for a in batch), p.key_column, p.key_depth),
            matrix(p.value, columns, p.width, *(a.value for a in batch), p.value_column, p.value_width),
            matrix(Operand(count), rows, p.width, *(a.result for a in batch), p.rows.result, p.result_width),
        )

    @property
    def batch(self) -> Values:
        """The number of matrices along each axis."""
        return list(self.query.sizes[:-2])

    @property
    def rows(self) -> ir.Value:
        """The rows of a matrix."""
        return self.query.sizes[-2]

    @property
    def columns(self) -> ir.Value:
        """The columns of the scores."""
        return self.key.sizes[-2]


@dataclass(frozen=True)
class Column:
    """A column of the scores: its number, and whether there is one; None in whole pieces, whose columns all are."""

    number: ir.Value
    is_there: ir.Value | None


class ScoreBody:
    """The ops on scores before the softmax: masks, biases, scales, by the ops of the row kernel."""

    def __init__(self, frame: GpuFrame, task: AttentionTask, sides: Sides):
        self.sides, self.scores = sides, task.scores
        self.x, self.hides, self.causal = task.x, task.what.hides, task.problem.causal
        self.rows_of_matrix = task.problem.rows.size
        self.rows = dims_of(self.x)[:-1]
        arguments = list(task.rows.entry_block.arguments)
        memory = {
            argument: frame.view(frame.pointers[number], argument)
            for argument, number in zip(arguments, task.what.row_operands, strict=True)
            if number >= 0
        }
        self.whole = WholePieces.of(task.rows)
        self.scaled = self.whole.scaled(self.x)
        self.elements = Elements(1, frame.facts, frame.size_of, device_math, INDEX_RULES, memory)
        self.type = element_of(self.scores.type)

    def place(self, matrix: Sequence[ir.Value], row: ir.Value) -> Values:
        """The index of a matrix's row in the row kernel; the last row for one that does not exist."""
        last = arith.subi(self.sides.rows, index_constant(1))
        pairs = zip((*matrix, arith.minui(row, last)), (*self.sides.batch, self.sides.rows), strict=True)
        linear = functools.reduce(lambda n, pair: arith.addi(arith.muli(n, pair[1]), pair[0]), pairs, index_constant(0))
        return delinearize(linear, self.rows, self.elements.size_of)

    def columns(self, first: ir.Value, own: ir.Value, most: int, is_whole: bool) -> Callable[[int], Column]:
        """Those of a piece of at most so many, from column `first` on, which there is: by their distance from `own`,
        which counts from `first`. Whether there is one is asked in 32 bits, which is one comparison. is_whole: there
        are all, and a causal mask hides none of them."""
        if is_whole:
            return lambda distance: Column(plus(arith.addi(first, own), distance), None)
        word = ir.IntegerType.get_signless(32)
        rest = arith.minui(arith.subi(self.sides.columns, first), index_constant(most))
        count, start = arith.index_cast(word, rest), arith.index_cast(word, own)
        begin = arith.addi(first, own)

        def column(distance: int) -> Column:
            is_there = below(arith.addi(start, arith.constant(word, distance)), count)
            return Column(plus(begin, distance), is_there)

        return column

    def rounded(self, pair: Sequence[ir.Value]) -> Sequence[ir.Value]:
        """Two scores as the program rounds them, where it does, by one instruction."""
        if not self.type.is_half:
            return pair
        narrow = device_math.rounded_pair(pair, self.type.exact())
        return [arith.extf(ir.F32Type.get(), vector.extract(narrow, [], [i])) for i in range(2)]

    def at(self, place: Sequence[ir.Value], column: Column, score: ir.Value) -> ir.Value:
        """The argument of the exponential, as f32; -inf behind the last column. The score is a sum of f32."""
        if column.is_there is None:
            return self._at(self.x, place, column.number, score)
        inside = arith.minui(column.number, arith.subi(self.sides.columns, index_constant(1)))
        x = self._at(self.x, place, inside, score)
        return arith.select(column.is_there, x, constant_like(x, NO_NUMBER))

    def scaled_at(self, place: Sequence[ir.Value], column: Column, score: ir.Value) -> ir.Value:
        """The same in a whole piece, over the factor of `scaled`."""
        return self._at(self.scaled.value, place, column.number, score, self.whole)

    def _at(
        self,
        value: ir.Value,
        place: Sequence[ir.Value],
        column: ir.Value,
        score: ir.Value,
        known: WholePieces | None = None,
    ) -> ir.Value:
        at = tuple(map(Position, (*place, column)))
        with self.elements.scope():
            self.elements.bound[self.scores] = round_to(convert(score, Element("f32"), self.type), self.type)
            self.elements.cached = {} if known is None else known.elements(*at[-2:])
            return self.elements.at(value, at)


# ---- softmax --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowState:
    """The state of a row so far: its largest element, and the sum of its weights."""

    peak: ir.Value
    total: ir.Value

    @staticmethod
    def start() -> RowState:
        """The state of no elements."""
        return RowState(f32(NO_NUMBER), f32(0.0))


@dataclass(frozen=True)
class RowStep:
    """The result of a piece of a row: its weights, the factor of the earlier sums, and the state after it."""

    weights: Values
    factor: ir.Value
    state: RowState

    @staticmethod
    def of(
        piece: Sequence[ir.Value],
        before: RowState,
        lanes: int,
        room: Room,
        exp: Callable[[ir.Value], ir.Value] = device_math.exp,
    ) -> RowStep:
        """A piece of a row of which so many neighbouring lanes have parts.

        While all that came is -inf, so is the largest element, and the sum 0: neither is worked with. NaN stays NaN.
        """
        peak = arith.maximumf(before.peak, across(tree(arith.maximumf, piece), lanes, arith.maximumf))
        base = number_or_zero(peak)
        weights = [arith.mulf(exp(arith.subf(x, base)), room.scale) for x in piece]
        factor = exp(arith.subf(before.peak, base))
        total = across(tree(arith.addf, weights), lanes, arith.addf)
        return RowStep(weights, factor, RowState(peak, arith.addf(arith.mulf(before.total, factor), total)))


@dataclass(frozen=True)
class Room:
    """The power of two that weights are made smaller by, so that those of a row add up to less than 0.55.

    exponent: its negative exponent, as i32.
    """

    exponent: ir.Value

    @staticmethod
    def of(columns: ir.Value) -> Room:
        """Room for so many weights of at most 1.1."""
        word = ir.IntegerType.get_signless(32)
        number = arith.uitofp(ir.F32Type.get(), arith.index_cast(ir.IntegerType.get_signless(64), columns))
        power = arith.shrui(arith.bitcast(word, number), arith.constant(word, _MANTISSA))
        return Room(arith.subi(power, arith.constant(word, _BIAS - 2)))

    @property
    def scale(self) -> ir.Value:
        """The power itself, at most 1, as f32."""
        word = ir.IntegerType.get_signless(32)
        bits = arith.shli(arith.subi(arith.constant(word, _BIAS), self.exponent), arith.constant(word, _MANTISSA))
        return arith.bitcast(ir.F32Type.get(), bits)


def over_total(total: ir.Value, body: ScoreBody) -> ir.Value:
    """The number that the sums of a row are multiplied by in the end: 1 over the sum of its weights.

    A row of nothing but -inf has no weights: its result is NaN, or 0, as are its sums, where the program hides that. No
    columns at all give 0.
    """
    is_empty = _equal(total, 0.0)
    inverse = arith.divf(f32(1.0), arith.select(is_empty, f32(1.0), total))
    if body.hides:
        return inverse
    is_hidden = arith.andi(is_empty, below(index_constant(0), body.sides.columns))
    return arith.select(is_hidden, f32(math.nan), inverse)


def number_or_zero(peak: ir.Value) -> ir.Value:
    """A largest element to subtract: 0 for -inf, of which it would make NaN."""
    return arith.select(_equal(peak, NO_NUMBER), f32(0.0), peak)


def tree(combine: Callable[[ir.Value, ir.Value], ir.Value], values: Sequence[ir.Value]) -> ir.Value:
    """The combination of values, in as few dependent steps as there can be."""
    while len(values) > 1:
        pairs = [values[i : i + 2] for i in range(0, len(values), 2)]
        values = [combine(*pair) if len(pair) > 1 else pair[0] for pair in pairs]
    return values[0]


def across(value: ir.Value, lanes: int, combine: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
    """The combination of the values of so many lanes, a power of two, in all of them."""
    offset = 1
    while offset < lanes:
        value = combine(value, from_lane_across(value, offset))
        offset *= 2
    return value


def f32(number: float) -> ir.Value:
    """A constant."""
    return arith.constant(ir.F32Type.get(), number)


def _equal(value: ir.Value, number: float) -> ir.Value:
    return arith.cmpf(arith.CmpFPredicate.OEQ, value, f32(number))


__all__ = [
    "NO_NUMBER", "AttentionTask", "Column", "Room", "RowState", "RowStep", "ScoreBody", "Sides", "across", "f32",
    "number_or_zero", "over_total", "tree",
]  # fmt: skip
