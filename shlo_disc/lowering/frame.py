# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The part common to kernels of every target: the tensors of a fusion, and the sizes passed to the kernel.

Sizes are arguments, added when the body first asks for them, so kernels over other symbols but with the same body are
one kernel.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.elements import Elements, Positions
from shlo_disc.lowering.positions import index_constant
from shlo_disc.shape_dialect.dialect.fusion import results_of
from shlo_disc.shape_dialect.dialect.host import Guard
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation

OneElement = Callable[[Elements, Positions, bool], None]
"""Computes what stands at some positions; `True`: what it writes is read by nobody soon."""


@dataclass
class Frame(ABC):
    """A kernel under construction, with the insertion point at the end of its entry block."""

    fusion: func.FuncOp
    facts: Facts
    sizes: list[Expr] = field(default_factory=list, init=False)
    guards: list[Guard] = field(default_factory=list, init=False)

    input_buffers: Sequence[ir.Value] = field(init=False)
    output_buffers: Sequence[ir.Value] = field(init=False)

    def __post_init__(self) -> None:
        block = self.fusion.entry_block
        returned = list(block.operations[len(block.operations) - 1].operands)
        self.inputs: list[ir.Value] = list(block.arguments)
        self.outputs: list[ir.Value] = results_of(self.fusion)
        self.partials: list[ir.Value] = returned[len(self.outputs) :]

    @property
    def tensors(self) -> list[ir.Value]:
        """The inputs, then the outputs, and the scratch memory for the parts of several blocks."""
        return [*self.inputs, *self.outputs, *self.partials]

    def begin_function(self, function: Any) -> None:
        """Take up a function, whose arguments so far are not sizes."""
        self.function = function
        self.entry: ir.Block = function.add_entry_block()
        self._first_size = len(self.entry.arguments)
        for dim in self.dynamic_dims():
            self._size_argument(dim)

    def end_function(self) -> None:
        """Fix the function's type, after the body is complete."""
        types = [a.type for a in self.entry.arguments]
        self.function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))

    def dynamic_dims(self) -> list[Expr]:
        """The sizes of the tensors that are no numbers, one after the other."""
        return [dim for value in self.tensors for dim in dims_of(value) if dim.constant is None]

    def size_of(self, size: Expr) -> ir.Value:
        """The value of a size: a constant or an argument."""
        return index_constant(size.constant) if size.constant is not None else self._size_argument(size)

    def _size_argument(self, size: Expr) -> ir.Value:
        if size not in self.sizes:
            self.sizes.append(size)
            self.entry.add_argument(ir.IndexType.get(), ir.Location.unknown())
        return self.entry.arguments[self._first_size + self.sizes.index(size)]

    def expression_of(self, value: ir.Value) -> Expr | None:
        """The size that a value is, if it is an argument."""
        if isinstance(value.owner, ir.Block) and value.owner == self.entry:
            number = ir.BlockArgument(value).arg_number - self._first_size
            return self.sizes[number] if 0 <= number < len(self.sizes) else None
        return None

    def guard(self, variant: str, otherwise: str, *conditions: Relation, of_size: bool = False) -> None:
        """Note a choice that the kernel makes at run time; one between numbers is none."""
        found = Guard(variant, otherwise, conditions, of_size)
        if found not in self.guards and any(condition.symbols() for condition in conditions):
            self.guards.append(found)

    def maker(self, output: int = 0) -> ir.OpView:
        """The op that an output is a result of. Raises CompilerError for an input that is handed on."""
        owner = self.outputs[output].owner
        if isinstance(owner, ir.Block):
            raise CompilerError("kernels: a fusion hands an input on")
        return owner.operation.opview

    @abstractmethod
    def each_element(self, domain: Dims, body: OneElement) -> tuple[Expr, Expr]:
        """Loops over a domain: this call's part of it. Returns the number of work items, and the elements of one."""

    @abstractmethod
    def store(
        self, buffer: ir.Value, value: ir.Value, at: Positions, output: ir.Value, elements: Elements, streaming: bool
    ) -> None:
        """Write the element(s) of an output at some positions; with `streaming`, nobody reads them soon."""
