# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The launches of kernels that are told tensor maps, as an attribute of these: what the artifact's header says of them.

A launch gives the words of a kernel that takes any operands, from which the runtime makes the maps
(`runtime/native/cuda/tensor_map.cpp`), and starts the kernel by maps with maps and words; or the other one, where an
operand cannot be described.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.shape_dialect.dialect.problems import Operand
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

BY_MAPS = "disc.by_maps"
"""An attribute of the kernel: what the runtime has to know to start it, as the artifact's header says it."""

NO_WORD = -1
"""In place of the number of a word, where there is a number that is known."""

Axis = tuple[int, int, int, int]
"""A size and a stride in elements: for each, the number of the word that has it, or NO_WORD, and what it is then."""


def name_by_maps(other: str) -> str:
    """The name of the kernel here, from that of the kernel which takes any operands."""
    return f"{other}_by_maps"


@dataclass(frozen=True)
class OperandMap:
    """A map of an operand: the word that has its address, its first element, and its axes, that of neighbours first."""

    pointer: int
    start: int
    axes: Sequence[Axis]


def map_of_operand(frame: GpuFrame, operand: Operand, sizes: Sequence[Expr], steps: Sequence[Expr]) -> OperandMap:
    """The map of an operand of a kernel. sizes, steps: those of its axes, from neighbours on, whose step is 1."""

    def told(size: Expr) -> tuple[int, int]:
        if size.constant is not None:
            return NO_WORD, size.constant
        return len(frame.tensors) + frame.sizes.index(size), 0

    pairs = zip(sizes, (Expr.const(1), *steps), strict=True)
    return OperandMap(operand.number, operand.start, [(*told(size), *told(step)) for size, step in pairs])


@dataclass(frozen=True)
class MapsOfWords:
    """A kernel whose maps are made from words. box: rows and columns of a box.

    least_rows: the kernel is for that many rows of the first operand at least. is_persistent: blocks take tile after
    tile, so that no more are started than there are multiprocessors.
    """

    threads: int
    shared_bytes: int
    element_bytes: int
    box: tuple[int, int]
    least_rows: int
    is_persistent: bool
    operands: Sequence[OperandMap]

    @property
    def attribute(self) -> ir.Attribute:
        """As it is written on the kernel."""
        numbers = {
            "threads": self.threads, "shared_bytes": self.shared_bytes, "element_bytes": self.element_bytes,
            "box_rows": self.box[0], "box_columns": self.box[1], "least_rows": self.least_rows,
            "is_persistent": int(self.is_persistent),
        }  # fmt: skip
        operands = [
            ir.DictAttr.get(
                {
                    "pointer": _integer(operand.pointer),
                    "start": _integer(operand.start),
                    "axes": ir.ArrayAttr.get([ir.DenseI64ArrayAttr.get(axis) for axis in operand.axes]),
                }
            )
            for operand in self.operands
        ]
        told: dict[str, ir.Attribute] = {name: _integer(number) for name, number in numbers.items()}
        return ir.DictAttr.get({**told, "operands": ir.ArrayAttr.get(operands)})


def header_of(attribute: ir.Attribute) -> object:
    """The header's form of an attribute: numbers, lists and tables of them."""
    if isinstance(attribute, ir.IntegerAttr):
        return attribute.value
    if isinstance(attribute, ir.DictAttr):
        return {attribute[i].name: header_of(attribute[i].attr) for i in range(len(attribute))}
    if isinstance(attribute, ir.ArrayAttr):
        return list(map(header_of, attribute))
    return list(ir.DenseI64ArrayAttr(attribute))


def _integer(number: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)


__all__ = ["BY_MAPS", "NO_WORD", "MapsOfWords", "OperandMap", "header_of", "map_of_operand", "name_by_maps"]
