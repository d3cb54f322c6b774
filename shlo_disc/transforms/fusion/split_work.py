# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kinds of kernels whose work on one result may be split over blocks: what is cut, into how many parts, and what a
block leaves of one (`partials`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.fusion import (
    Attention,
    Dot,
    Nonzero,
    Scan,
    Sort,
    TopK,
    fusion_of,
    is_by_columns,
)
from shlo_disc.shape_dialect.dialect.problems import AttentionProblem, MatrixProduct
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops.element_types import SUM_TYPES
from shlo_disc.shape_dialect.ops.reducers import monoid_of
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.shape_dialect.utils.product_tiles import product_tiles, tile_sums, wanted_tiles
from shlo_disc.shape_dialect.utils.regions import terminator_of

Memory = list[tuple[Dims, ir.Type]]
"""The sizes and the element types of what a block leaves."""


@dataclass(frozen=True)
class Called:
    """A fusion, all calls of it by the program, and what is known of sizes."""

    function: func.FuncOp
    calls: tuple[func.CallOp, ...]
    is_called_by_fusions: bool
    facts: Facts


@dataclass(frozen=True)
class Work(Called, ABC):
    """A kernel whose work on one result may be split."""

    @property
    @abstractmethod
    def length(self) -> Expr:
        """The number of elements that are cut into parts."""

    @property
    @abstractmethod
    def least(self) -> int:
        """The least size of a part."""

    @property
    @abstractmethod
    def blocks(self) -> Expr:
        """The blocks that work where nothing is split."""

    @property
    @abstractmethod
    def memory(self) -> Memory:
        """The words that each block leaves of a part of all results."""

    @property
    def wanted(self) -> Expr:
        """The blocks, each counted as one of those, that are to work where something is split."""
        return Expr.const(policy().blocks)

    @property
    def parts(self) -> Expr:
        """Into how many parts each result's work is cut; 0 where it is not."""
        parts = Expr.minimum(self.wanted // Expr.maximum(self.blocks, 1), self.length // self.least)
        return parts * Expr.minimum(parts // 2, 1)


@dataclass(frozen=True)
class Reductions(Work):
    """A kernel of reductions."""

    @staticmethod
    def of(called: Called) -> Reductions:
        """Any kernel as one of reductions, as which it is examined."""
        return Reductions(**vars(called))

    @cached_property
    def ops(self) -> list[ir.OpView]:
        """Its reductions."""
        return [op for op in self.function.entry_block.operations if op.operation.name == "stablehlo.reduce"]

    @property
    def results(self) -> Dims:
        """The sizes of what the first one makes."""
        return dims_of(self.ops[0].results[0])

    @property
    def length(self) -> Expr:
        """The elements of a result."""
        dims = dims_of(self.ops[0].operands[0])
        return product(dims[axis] for axis in integers(self.ops[0].attributes["dimensions"]))

    @property
    def least(self) -> int:
        """The elements of a part, at least."""
        return policy().part_rows if is_by_columns(self.function) else policy().part_columns

    @property
    def blocks(self) -> Expr:
        """The blocks that work where nothing is split."""
        if not is_by_columns(self.function):
            return product(self.results)
        outer = min(integers(self.ops[0].attributes["dimensions"]))
        return product(self.results[:outer]) * ceildiv(product(self.results[outer:]), policy().tile_columns)

    @property
    def memory(self) -> Memory:
        """The values that the reductions make."""
        return [(self.results, _held(element_type_of(v))) for op in self.ops for v in op.results]


@dataclass(frozen=True)
class Keys(Work):
    """An attention whose rows come in pieces."""

    problem: AttentionProblem

    @staticmethod
    def of(called: Called) -> Keys | None:
        """A kernel as an attention, if it is one."""
        what = fusion_of(called.function)
        if not isinstance(what, Attention) or not what.online or what.problem is None:
            return None
        return Keys(**vars(called), problem=what.problem)

    @property
    def length(self) -> Expr:
        """The keys."""
        return self.problem.columns

    @property
    def least(self) -> int:
        """The keys of a part, at least."""
        return policy().part_keys

    @property
    def blocks(self) -> Expr:
        """A block for all rows of a matrix."""
        return product(axis.size for axis in self.problem.batch)

    @property
    def parts(self) -> Expr:
        """Nothing is cut where rows are not few."""
        return super().parts * Expr.minimum(policy().few_queries // Expr.maximum(self.problem.rows.size, 1), 1)

    @property
    def memory(self) -> Memory:
        """For each row its largest element, the sum of its weights, and what these weigh."""
        rows = self.blocks * self.problem.rows.size
        return [(dims, ir.F32Type.get()) for dims in ((rows,), (rows,), (rows, self.problem.width))]


@dataclass(frozen=True)
class Lines(Work):
    """A cumulative op."""

    op: ir.OpView
    axis: int

    @staticmethod
    def of(called: Called) -> Lines | None:
        """A kernel as a cumulative op, if it is one."""
        what = fusion_of(called.function)
        if not isinstance(what, Scan):
            return None
        ops = called.function.entry_block.operations
        op = next(op for op in ops if op.operation.name == "stablehlo.reduce_window")
        return Lines(**vars(called), op=op, axis=what.axis)

    @property
    def length(self) -> Expr:
        """The elements of a line."""
        return dims_of(self.op.results[0])[self.axis]

    @property
    def least(self) -> int:
        """The elements of a part, at least."""
        return policy().part_columns

    @property
    def blocks(self) -> Expr:
        """A block for each line."""
        return product(size for axis, size in enumerate(dims_of(self.op.results[0])) if axis != self.axis)

    @property
    def memory(self) -> Memory:
        """For each line what its elements are together; of a sum of floats what it lacks, too."""
        element = element_type_of(self.op.results[0])
        is_long = isinstance(element, ir.FloatType) and monoid_of(self.op.regions[0].blocks[0]) == "add"
        return [((self.blocks,), _held(element))] * (2 if is_long else 1)


@dataclass(frozen=True)
class Mask(Work):
    """The positions of the true elements of a mask."""

    op: ir.OpView

    @staticmethod
    def of(called: Called) -> Mask | None:
        """A kernel as one of positions, if it is one."""
        if not isinstance(fusion_of(called.function), Nonzero):
            return None
        ops = called.function.entry_block.operations
        return Mask(**vars(called), op=next(op for op in ops if op.operation.name == "disc.nonzero"))

    @property
    def length(self) -> Expr:
        """The elements."""
        return product(dims_of(self.op.operands[0]))

    @property
    def least(self) -> int:
        """The elements of a part, at least."""
        return policy().part_columns

    @property
    def blocks(self) -> Expr:
        """One."""
        return Expr.const(1)

    @property
    def memory(self) -> Memory:
        """The number of true elements."""
        return [((), ir.IntegerType.get_signless(64))]


@dataclass(frozen=True)
class Depth(Work):
    """A product of matrices, which the program calls, or fusions of it with what follows it."""

    problem: MatrixProduct
    callers: tuple[func.FuncOp, ...]

    @staticmethod
    def of(called: Called, callers: tuple[func.FuncOp, ...]) -> Depth | None:
        """A kernel as a product, if it is one."""
        what = fusion_of(called.function)
        if not isinstance(what, Dot) or what.product is None:
            return None
        return Depth(**vars(called), problem=what.product.by_rows(), callers=callers)

    @property
    def length(self) -> Expr:
        """The elements of the summed dimension."""
        return self.problem.k.size

    @property
    def least(self) -> int:
        """The elements of a part, at least."""
        return policy().part_depth

    @property
    def blocks(self) -> Expr:
        """A block for each tile."""
        return product_tiles(self.problem, policy())

    @property
    def wanted(self) -> Expr:
        """More where rows are few, and blocks have two tiles."""
        return wanted_tiles(self.problem, policy())

    @property
    def parts(self) -> Expr:
        """No more than one block adds up in the time that others take for a part."""
        return Expr.minimum(super().parts, policy().depth_parts)

    @property
    def memory(self) -> Memory:
        """The sums of each tile."""
        sums = ir.Type.parse(SUM_TYPES[self.problem.element])
        return [((self.blocks * tile_sums(policy()),), sums)]


@dataclass(frozen=True)
class _SortedLines(Work):
    """Lines along the last axis that are sorted, or of which the first elements are found."""

    op: ir.OpView

    @property
    def length(self) -> Expr:
        """The elements of a line."""
        return dims_of(self.op.operands[0])[-1]

    @property
    def least(self) -> int:
        """The elements of a part, at least."""
        return policy().part_columns

    @property
    def blocks(self) -> Expr:
        """A block for each line."""
        return product(dims_of(self.op.operands[0])[:-1])


def _sort_in(called: Called) -> ir.OpView:
    """The sort of a kernel that has one."""
    return next(op for op in called.function.entry_block.operations if op.operation.name == "stablehlo.sort")


@dataclass(frozen=True)
class Best(_SortedLines):
    """The first elements of sorted lines."""

    count: int

    @staticmethod
    def of(called: Called) -> Best | None:
        """A kernel as one that finds them, if it is one."""
        if not isinstance(fusion_of(called.function), TopK):
            return None
        count = dims_of(terminator_of(called.function.entry_block).operands[0])[-1].constant or 0
        return Best(**vars(called), op=_sort_in(called), count=count)

    @property
    def memory(self) -> Memory:
        """For each line the first elements of a part, of every operand."""
        dims = (self.blocks, Expr.const(self.count))
        return [(dims, element_type_of(v)) for v in self.op.operands]


@dataclass(frozen=True)
class Sorted(_SortedLines):
    """A sort."""

    @staticmethod
    def of(called: Called) -> Sorted | None:
        """A kernel as a sort, if it is one."""
        if not isinstance(fusion_of(called.function), Sort):
            return None
        return Sorted(**vars(called), op=_sort_in(called))

    @property
    def wanted(self) -> Expr:
        """A power of two: a part more would take another pass."""
        return Expr.const(policy().merging_blocks)

    @property
    def memory(self) -> Memory:
        """None: runs lie in the results and in the sort's own scratch memory."""
        return []


def _held(element: ir.Type) -> ir.Type:
    """The type in which a value is held between two elements of a reduction: floats of fewer bits as f32."""
    is_narrow = isinstance(element, ir.FloatType) and element.width < 32
    return ir.F32Type.get() if is_narrow else element
