# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the kernels of every target share: one kernel per distinct body, its name, and where a work item stands."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from shlo_disc.lowering.elements import Positions
from shlo_disc.lowering.launches import Guard
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.mlir import arith, func, ir
from shlo_disc.shape_dialect.expr import Expr, ExprLike
from shlo_disc.shape_dialect.facts import Facts
from shlo_disc.shape_dialect.op_sets import ELEMENTWISE
from shlo_disc.shape_dialect.types import Dims, dims_of, parse_dim
from shlo_disc.transforms.fusion.access import unit_reshape_axes

_LARGE = 256
"""A size of at least this is long to every kernel."""

_SYMBOL = re.compile(r'@(?:"([^"]+)"|([A-Za-z_][\w$.]*))')


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


class KernelCache:
    """Kernels by body: fusions that differ in the names of their sizes only share one.

    Sizes may be other expressions as well, as long as the same facts hold of them. `build(fusion, facts, name)` makes a
    kernel that is not there yet. `asked` has every answer that was given.
    """

    def __init__(self, facts: Facts, build: Callable[[func.FuncOp, Facts, str], Kernel]):
        self.facts = facts
        self.build = build
        self.kernels: dict[str, Kernel] = {}
        self.names: dict[str, int] = {}
        self.asked: list[tuple[Kernel, dict[str, Expr]]] = []

    def kernel_for(self, fusion: func.FuncOp) -> tuple[Kernel, dict[str, Expr]]:
        """The kernel of a fusion, and what its size names stand for here."""
        text = fusion.operation.get_asm(use_local_scope=True).replace(f"@{fusion.name.value}(", "@fusion(", 1)
        renamed, meaning = _rename(text) if _is_renamable(fusion) else (text, {})
        key = renamed + self._known_facts(meaning)
        if key not in self.kernels:
            self.kernels[key] = self._build(fusion, renamed, meaning)
        self.asked.append((self.kernels[key], meaning))
        return self.kernels[key], meaning

    def _known_facts(self, meaning: dict[str, Expr]) -> str:
        return "".join(f" {name}:{self._known(e)}" for name, e in meaning.items())

    def _known(self, size: Expr) -> tuple[int | None, int | None, int]:
        """All that a kernel may know of a size: bounds and a divisor. Fusions share a kernel where these agree.

        The bounds are powers of two, as those between change nothing and would keep kernels apart.
        """
        low, high = self.facts.range(size)
        if low is not None:
            low = 1 << min(low, _LARGE).bit_length() - 1 if low > 0 else 0 if low == 0 else None
        if high is not None and high > 1:
            high = 1 << (high - 1).bit_length()
        divisor = 1
        while divisor < 64 and self.facts.divides(2 * divisor, size):
            divisor *= 2
        return low, high, divisor

    def _build(self, fusion: func.FuncOp, text: str, meaning: dict[str, Expr]) -> Kernel:
        facts = self.facts
        if meaning:
            facts = Facts()
            for name, size in meaning.items():
                low, high, divisor = self._known(size)
                facts.declare(name, min=low, max=high, divisor=divisor, hints=(self.facts.estimate(size),))
            holder = ir.Module.parse(text)
            fusion = next(op for op in holder.body.operations if isinstance(op, func.FuncOp))
        return self.build(fusion, facts, self._unique(_describe(fusion)))

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
    """Whether the kernel is the same for any sizes of which the same is known, one by one."""
    if "disc.collapsed" in fusion.attributes:
        return True
    if kind_of(fusion) not in ("concatenate", "loop"):
        return False
    names = {op.operation.name for op in fusion.entry_block.operations}
    return names <= _MOVES | ELEMENTWISE


def _rename(text: str) -> tuple[str, dict[str, Expr]]:
    """Sizes renamed in order of appearance."""
    meaning: dict[str, Expr] = {}
    short: dict[str, str] = {}

    def replace(match: re.Match[str]) -> str:
        name = match.group(1) or match.group(2)
        if name == "fusion":
            return match.group(0)
        if name not in short:
            short[name] = f"n{len(short)}"
            meaning[short[name]] = parse_dim(name)
        return "@" + short[name]

    return _SYMBOL.sub(replace, text), meaning


def _describe(fusion: func.FuncOp) -> str:
    """`row_reduce_add_exponential_divide`: the kind and the first telling ops."""
    plain = {"constant", "shape", "broadcast_in_dim", "dynamic_broadcast_in_dim", "reshape", "dynamic_reshape",
             "return", "reduce"}  # fmt: skip
    names = [op.operation.name.split(".")[-1] for op in fusion.entry_block.operations]
    telling = list(dict.fromkeys(n for n in names if n not in plain))
    return "_".join([kind_of(fusion), *telling[:4]])


def kind_of(fusion: func.FuncOp) -> str:
    """The kind that the `fuse` stage gave: "loop", "row_reduce", "reduce", "dot", "scatter"."""
    return ir.StringAttr(fusion.attributes["disc.kind"]).value


def updates_of(fusion: func.FuncOp) -> list[int]:
    """For each result of a kernel that changes some elements only: the argument it starts from, or -1."""
    return list(ir.DenseI64ArrayAttr(fusion.attributes["disc.updates"])) if "disc.updates" in fusion.attributes else []


def has_rows(fusion: func.FuncOp) -> bool:
    """A row reduction that is known to be one chain over rows and columns."""
    return kind_of(fusion) == "row_reduce" and "disc.columns" in fusion.attributes


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
    """Where an output of a loop over `domain` is written: outputs have the same sizes up to sizes of 1."""
    dims = dims_of(output)
    if dims == domain:
        return positions
    axes = unit_reshape_axes(dims, domain, tuple(range(len(domain))))
    if axes is None:
        raise ValueError(f"outputs of one loop have different sizes: {dims} and {domain}")
    return tuple(Position(index_constant(0)) if a is None else positions[a] for a in axes)


_COST = {"exponential": 12, "divide": 4, "tanh": 20, "logistic": 16, "power": 40, "log": 15, "sqrt": 6, "rsqrt": 6,
         "sine": 25, "cosine": 25, "gather": 6, "dynamic_gather": 6, "remainder": 60, "dot_general": 200,
         "convolution": 400, "reduce_window": 16}  # fmt: skip


def op_cost(op: ir.OpView) -> int:
    """Rough work per element, in simple vector ops."""
    name = op.operation.name.removeprefix("stablehlo.")
    return 0 if name in ("constant", "reshape", "broadcast_in_dim") else _COST.get(name, 1)
