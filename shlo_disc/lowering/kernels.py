# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts that kernels of every target share: one kernel per distinct body, its name, and a work item's position."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from shlo_disc.lowering.elements import Positions
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.shape_dialect.dialect.fusion import columns_of, fusion_of, kind_of
from shlo_disc.shape_dialect.dialect.host import Guard
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import arith, func, ir
from shlo_disc.shape_dialect.ops import ELEMENTWISE, TABLE
from shlo_disc.shape_dialect.ops.index_maps import unit_axes
from shlo_disc.shape_dialect.symbolic.expr import Expr, ExprLike
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.shape_dialect.utils.structure import SizeNames, Structure, renamed

_LARGE = 256
"""A size of at least this is long to every kernel."""


@dataclass(eq=False)
class Kernel:
    """A finished kernel.

    `sizes` are the expressions of its size arguments, `total` the number of its work items and `cost` the rough work of
    one item, in simple vector ops, and `guards` what it chooses at run time, all over the names of its fusion.
    """

    name: str
    function: ir.OpView
    sizes: list[Expr]
    total: Expr
    cost: ExprLike
    guards: list[Guard] = field(default_factory=list)


@dataclass(frozen=True)
class KernelBuffers:
    """Properties of its buffers that a kernel may assume.

    are_results: those of its results are the caller's, so that what is written is not read again soon. are_zero: those
    of results that start from no operand hold zeros. panels: the operands that it may have to read from panels.
    """

    are_results: bool = False
    are_zero: bool = False
    panels: tuple[int, ...] = ()


_Known = tuple[int | None, int | None, int]
"""The facts of a size: inclusive bounds, and a divisor."""

Build = Callable[[func.FuncOp, Facts, str, KernelBuffers], Kernel]


class KernelCache:
    """Kernels by structure: fusions that differ in the names of their sizes only share one.

    Sizes may be other expressions as well, as long as the same facts hold of them. `build` makes a kernel of a name
    that is not there yet, over given facts.
    """

    def __init__(self, facts: Facts, build: Build):
        self.facts = facts
        self.build = build
        self.kernels: dict[Hashable, Kernel] = {}
        self.names: dict[str, int] = {}

    def kernel_for(
        self, fusion: func.FuncOp, outputs: KernelBuffers = KernelBuffers()
    ) -> tuple[Kernel, dict[str, Expr]]:
        """The kernel of a fusion, and what its size names stand for here."""
        names = SizeNames() if _is_renamable(fusion) else None
        structure = Structure(fusion, names).key
        meaning = {} if names is None else names.meaning
        known = self._known(fusion, meaning)
        key = (structure, outputs, tuple(known.values()))
        if key not in self.kernels:
            self.kernels[key] = self._build(fusion, known, names, outputs)
        return self.kernels[key], meaning

    def _known(self, fusion: func.FuncOp, meaning: Mapping[str, Expr]) -> dict[str, _Known]:
        """All that a kernel may know of its sizes. Fusions share a kernel where these agree.

        A loop compares sizes that no result has, and no more.
        """
        if not meaning:
            return {}
        looped = {d for type_ in fusion.type.results for d in dims_of(type_)}
        is_loop = kind_of(fusion) == "loop"
        return {
            name: self._compared(size) if is_loop and size not in looped else self._walked(size)
            for name, size in meaning.items()
        }

    def _compared(self, size: Expr) -> _Known:
        return (0 if self.facts.at_least(size, 0) else None), None, 1

    def _walked(self, size: Expr) -> _Known:
        """The bounds are powers of two, as those between change nothing and would keep kernels apart."""
        low, high = self.facts.range(size)
        if low is not None:
            low = 1 << min(low, _LARGE).bit_length() - 1 if low > 0 else 0 if low == 0 else None
        if high is not None and high > 1:
            high = 1 << (high - 1).bit_length()
        divisor = 1
        while divisor < 64 and self.facts.divides(2 * divisor, size):
            divisor *= 2
        return low, high, divisor

    def _build(
        self, fusion: func.FuncOp, known: Mapping[str, _Known], names: SizeNames | None, outputs: KernelBuffers
    ) -> Kernel:
        name = self._unique(_describe(fusion))
        if names is None or not known:
            return self.build(fusion, self.facts, name, outputs)
        facts = Facts()
        for size_name, (low, high, divisor) in known.items():
            hint = self.facts.estimate(names.meaning[size_name])
            facts.declare(size_name, min=low, max=high, divisor=divisor, hints=(hint,))
        holder, copy = renamed(fusion, names)
        kernel = self.build(copy, facts, name, outputs)
        del holder  # the copy lives as long as its module
        return kernel

    def _unique(self, name: str) -> str:
        number = self.names.get(name, 0)
        self.names[name] = number + 1
        return f"{name}_{number}" if number else name


_MOVES = frozenset(
    {"disc.shape", "func.return", "stablehlo.broadcast_in_dim", "stablehlo.concatenate", "stablehlo.constant",
     "stablehlo.dynamic_broadcast_in_dim", "stablehlo.dynamic_iota", "stablehlo.iota", "stablehlo.real_dynamic_slice",
     "stablehlo.slice", "stablehlo.transpose"}
)  # fmt: skip
"""Ops whose kernels compare sizes and pass them on, and compute nothing from the expressions that they are."""


def _is_renamable(fusion: func.FuncOp) -> bool:
    """Tells whether the kernel is the same for any sizes of which the same is known, one by one."""
    if fusion_of(fusion).collapsed:
        return True
    if kind_of(fusion) not in ("concatenate", "loop"):
        return False
    names = {op.operation.name for op in fusion.entry_block.operations}
    return names <= _MOVES | ELEMENTWISE


def _describe(fusion: func.FuncOp) -> str:
    """`row_reduce_add_exponential_divide`: the kind and the first telling ops."""
    names = [op.operation.name for op in fusion.entry_block.operations]
    telling = list(dict.fromkeys(n.split(".")[-1] for n in names if _is_telling(n)))
    return "_".join([kind_of(fusion), *telling[:4]])


def _is_telling(name: str) -> bool:
    """Tells whether the name of an op is more than the kind of a fusion."""
    is_known = name in ("func.return", "stablehlo.return", "stablehlo.reduce")
    return not is_known and (name not in TABLE or TABLE[name].generates_code)


def has_rows(fusion: func.FuncOp) -> bool:
    """A row reduction that is known to be one chain over rows and columns."""
    return columns_of(fusion) > 0


def delinearize(linear: ir.Value, dims: Dims, size_of: Callable[[Expr], ir.Value]) -> list[ir.Value]:
    """The index along each of `dims` of a row-major linear index."""
    indices: list[ir.Value] = []
    for dim in reversed(dims[1:]):
        if dim.constant == 1:
            indices.insert(0, index_constant(0))
            continue
        size = size_of(dim)
        indices.insert(0, arith.remui(linear, size))
        linear = arith.divui(linear, size)
    return [linear, *indices] if dims else []


def output_positions(output: ir.Value, positions: Positions, domain: Dims) -> Positions:
    """The positions that a loop over `domain` writes of an output: outputs have the same sizes up to sizes of 1."""
    dims = dims_of(output)
    if dims == domain:
        return positions
    axes = unit_axes(dims, domain)
    if axes is None:
        raise ValueError(f"outputs of one loop have different sizes: {dims} and {domain}")
    return tuple(Position(index_constant(0)) if a is None else positions[a] for a in axes)


def op_cost(op: ir.OpView) -> int:
    """Rough work per element, in simple vector ops."""
    definition = TABLE.get(op.operation.name)
    return 1 if definition is None else definition.cost
