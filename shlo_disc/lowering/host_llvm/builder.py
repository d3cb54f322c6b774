# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builders of ops of the LLVM dialect: those that a host program consists of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shlo_disc.runtime import c_declarations
from shlo_disc.shape_dialect.mlir import ir, llvm

_DYNAMIC = -(2**31)
"""The index of a `getelementptr` that is an operand."""

_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge")
"""Comparisons, in the order of their numbers."""


class LlvmDialect:
    """The types and attributes of host programs in the current context, each made once, and what a module holds."""

    def __init__(self) -> None:
        self.location = ir.Location.unknown()
        self.pointer: ir.Type = llvm.PointerType.get()
        self.void = ir.Type.parse("!llvm.void")
        self.i1, self.i8, self.i64 = (ir.IntegerType.get_signless(bits) for bits in (1, 8, 64))
        self.checked: ir.Type = llvm.StructType.get_literal([self.i64, self.i1], loc=self.location)
        """The result of arithmetic that tells whether it overflows."""
        self.no_bundles = ir.DenseI32ArrayAttr.get([])
        self.not_volatile: dict[str, ir.Attribute] = {"isVolatile": ir.BoolAttr.get(False)}
        self.predicates = {name: ir.IntegerAttr.get(self.i64, number) for number, name in enumerate(_PREDICATES)}
        self._elements: dict[tuple[int, ir.Type], dict[str, ir.Attribute]] = {}

    def element(self, index: int, type_: ir.Type) -> dict[str, ir.Attribute]:
        """The attributes of a `getelementptr`, in an array of a type."""
        key = index, type_
        if key not in self._elements:
            indices = ir.DenseI32ArrayAttr.get([index])
            self._elements[key] = {"elem_type": ir.TypeAttr.get(type_), "rawConstantIndices": indices}
        return self._elements[key]

    def descriptor(self, rank: int) -> ir.Type:
        """The structure that a memref of a rank becomes."""
        arrays = [llvm.ArrayType.get(self.i64, rank)] * 2 if rank else []
        fields = [self.pointer, self.pointer, self.i64, *arrays]
        return llvm.StructType.get_literal(fields, loc=self.location)

    def parameters(self, function: c_declarations.Function) -> list[ir.Type]:
        """The types of the parameters of a function of the runtime's interface."""
        return [self.i64 if type_ == "int64_t" else self.pointer for type_, _ in function.parameters]

    def declaration(self, name: str, parameters: Sequence[ir.Type], result: ir.Type | None = None) -> ir.Operation:
        """A function without a body, in no module yet."""
        type_ = llvm.FunctionType.get(self.void if result is None else result, parameters)
        attributes = {"sym_name": ir.StringAttr.get(name), "function_type": ir.TypeAttr.get(type_)}
        return ir.Operation.create("llvm.func", attributes=attributes, regions=1, loc=self.location, ip=False)

    def function(self, name: str, parameters: Sequence[ir.Type], result: ir.Type | None = None) -> Function:
        """A function whose body is to be built, in no module yet."""
        op = self.declaration(name, parameters, result)
        entry = op.regions[0].blocks.append(*parameters, arg_locs=[self.location] * len(parameters))
        return Function(op, entry, Builder(self, ir.InsertionPoint(entry)))

    def constant_words(self, name: str, words: Sequence[int]) -> ir.Operation:
        """A constant of words, aligned to a cache line, in no module yet."""
        attributes = {
            "sym_name": ir.StringAttr.get(name),
            "global_type": ir.TypeAttr.get(llvm.ArrayType.get(self.i64, len(words))),
            "value": ir.DenseElementsAttr.get(np.array(words, np.int64).data),
            "linkage": ir.Attribute.parse("#llvm.linkage<internal>"),
            "constant": ir.UnitAttr.get(),
            "alignment": ir.IntegerAttr.get(self.i64, 64),
        }
        return ir.Operation.create("llvm.mlir.global", attributes=attributes, regions=1, loc=self.location, ip=False)


class Builder:
    """Builds ops at `point`. `count`: the ops and blocks that it has built."""

    def __init__(self, dialect: LlvmDialect, point: ir.InsertionPoint):
        self.dialect = dialect
        self.point = point
        self.count = 0

    def op(
        self,
        name: str,
        results: Sequence[ir.Type],
        operands: Sequence[ir.Value],
        attributes: dict[str, ir.Attribute] | None = None,
        successors: Sequence[ir.Block] | None = None,
    ) -> ir.Operation:
        """Any op."""
        self.count += 1
        location = self.dialect.location
        return ir.Operation.create(name, results, operands, attributes, successors, 0, location, self.point)

    # ---- constants --------------------------------------------------------------------------------------------------

    def constant(self, number: int, bits: int = 64) -> ir.Value:
        """An integer."""
        type_ = self.dialect.i64 if bits == 64 else ir.IntegerType.get_signless(bits)
        return self.op("llvm.mlir.constant", [type_], (), {"value": ir.IntegerAttr.get(type_, number)}).result

    def flag(self, value: bool) -> ir.Value:
        """A truth value."""
        return self.op("llvm.mlir.constant", [self.dialect.i1], (), {"value": ir.BoolAttr.get(value)}).result

    def null(self) -> ir.Value:
        """No address."""
        return self.op("llvm.mlir.zero", [self.dialect.pointer], ()).result

    def address_of(self, symbol: str) -> ir.Value:
        """The address of a function or constant of the module."""
        name: dict[str, ir.Attribute] = {"global_name": ir.FlatSymbolRefAttr.get(symbol)}
        return self.op("llvm.mlir.addressof", [self.dialect.pointer], (), name).result

    # ---- memory -----------------------------------------------------------------------------------------------------

    def alloca(self, words: int) -> ir.Operation:
        """Reserve words of the function's own."""
        type_: dict[str, ir.Attribute] = {"elem_type": ir.TypeAttr.get(self.dialect.i64)}
        return self.op("llvm.alloca", [self.dialect.pointer], [self.constant(words)], type_)

    def gep(self, base: ir.Value, index: int | ir.Value, type_: ir.Type) -> ir.Value:
        """The address of an element of an array of `type_`."""
        if isinstance(index, int):
            operands, attributes = [base], self.dialect.element(index, type_)
        else:
            operands, attributes = [base, index], self.dialect.element(_DYNAMIC, type_)
        return self.op("llvm.getelementptr", [self.dialect.pointer], operands, attributes).result

    def load(self, address: ir.Value, type_: ir.Type) -> ir.Value:
        """The value at an address."""
        return self.op("llvm.load", [type_], [address]).result

    def store(self, value: ir.Value, address: ir.Value) -> None:
        """Write a value to an address."""
        self.op("llvm.store", (), [value, address])

    def memcpy(self, target: ir.Value, source: ir.Value, size: ir.Value) -> None:
        """Copy bytes."""
        self.op("llvm.intr.memcpy", (), [target, source, size], self.dialect.not_volatile)

    def memset(self, target: ir.Value, byte: ir.Value, size: ir.Value) -> None:
        """Write a byte so many times."""
        self.op("llvm.intr.memset", (), [target, byte, size], self.dialect.not_volatile)

    # ---- arithmetic -------------------------------------------------------------------------------------------------

    def arithmetic(self, name: str, a: ir.Value, b: ir.Value) -> ir.Value:
        """`llvm.<name>`, whose result has the type of its operands."""
        return self.op(f"llvm.{name}", [a.type], [a, b]).result

    def checked(self, name: str, a: ir.Value, b: ir.Value) -> ir.Value:
        """`llvm.intr.<name>.with.overflow` of words: a structure of the result, and whether it does not fit."""
        return self.op(f"llvm.intr.{name}.with.overflow", [self.dialect.checked], [a, b]).result

    def compare(self, predicate: str, a: ir.Value, b: ir.Value) -> ir.Value:
        """Tells whether two integers, or addresses, compare so."""
        attributes: dict[str, ir.Attribute] = {"predicate": self.dialect.predicates[predicate]}
        return self.op("llvm.icmp", [self.dialect.i1], [a, b], attributes).result

    def select(self, condition: ir.Value, yes: ir.Value, no: ir.Value) -> ir.Value:
        """One of two values."""
        return self.op("llvm.select", [yes.type], [condition, yes, no]).result

    def extended(self, value: ir.Value, is_unsigned: bool) -> ir.Value:
        """An integer of fewer bits as a word."""
        return self.op("llvm.zext" if is_unsigned else "llvm.sext", [self.dialect.i64], [value]).result

    # ---- structures -------------------------------------------------------------------------------------------------

    def undefined(self, type_: ir.Type) -> ir.Value:
        """A value that is to be filled."""
        return self.op("llvm.mlir.undef", [type_], ()).result

    def extract(self, struct: ir.Value, field: int, type_: ir.Type) -> ir.Value:
        """A field of a structure."""
        position: dict[str, ir.Attribute] = {"position": ir.DenseI64ArrayAttr.get([field])}
        return self.op("llvm.extractvalue", [type_], [struct], position).result

    def insert(self, value: ir.Value, struct: ir.Value, *position: int) -> ir.Value:
        """A structure with another value at a position."""
        attributes: dict[str, ir.Attribute] = {"position": ir.DenseI64ArrayAttr.get(position)}
        return self.op("llvm.insertvalue", [struct.type], [struct, value], attributes).result

    # ---- calls and branches -----------------------------------------------------------------------------------------

    def call(self, function: str | ir.Value, *operands: ir.Value) -> None:
        """Call a function without a result: one of the module, or one at an address."""
        attributes: dict[str, ir.Attribute] = {"op_bundle_sizes": self.dialect.no_bundles}
        if isinstance(function, str):
            attributes["callee"] = ir.FlatSymbolRefAttr.get(function)
        else:
            operands = function, *operands
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([len(operands), 0])
        self.op("llvm.call", (), operands, attributes)

    def blocks(self, count: int) -> list[ir.Block]:
        """Empty blocks right behind the one that ops go into."""
        found = [self.point.block]
        for _ in range(count):
            found.append(found[-1].create_after())
        self.count += count
        return found[1:]

    def enter(self, block: ir.Block) -> None:
        """Build at the end of a block from now on."""
        self.point = ir.InsertionPoint(block)

    def br(self, block: ir.Block) -> ir.Operation:
        """Go on in a block."""
        return self.op("llvm.br", (), (), None, [block])

    def cond_br(self, condition: ir.Value, yes: ir.Block, no: ir.Block) -> ir.Operation:
        """Go on in one of two blocks."""
        sizes: dict[str, ir.Attribute] = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0])}
        return self.op("llvm.cond_br", (), [condition], sizes, [yes, no])

    def switch(self, value: ir.Value, default: ir.Block, cases: Mapping[int, ir.Block]) -> ir.Operation:
        """Go on in the block of an integer."""
        numbers = [ir.IntegerAttr.get(value.type, number) for number in cases]
        attributes: dict[str, ir.Attribute] = {
            "case_operand_segments": ir.DenseI32ArrayAttr.get([0] * len(cases)),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0]),
        }
        if numbers:
            type_ = ir.VectorType.get([len(numbers)], value.type)
            attributes["case_values"] = ir.DenseElementsAttr.get(numbers, type_)
        return self.op("llvm.switch", (), [value], attributes, [default, *cases.values()])

    def return_(self, *values: ir.Value) -> None:
        """End the function."""
        self.op("llvm.return", (), values)


@dataclass
class Function:
    """A function that is being built. `body` builds at the end of its first block, `entry`."""

    op: ir.Operation
    entry: ir.Block
    body: Builder
    last_slot: ir.Operation | None = None

    @property
    def arguments(self) -> Sequence[ir.Value]:
        """The arguments of the function."""
        return list(self.entry.arguments)

    def slot(self, words: int) -> ir.Value:
        """The address of words of the function's own, reserved where it begins."""
        last = self.last_slot
        point = ir.InsertionPoint.at_block_begin(self.entry) if last is None else ir.InsertionPoint.after(last)
        self.last_slot = Builder(self.body.dialect, point).alloca(words)
        return self.last_slot.result

    def pass_through(self, *attributes: str) -> None:
        """Give the function attributes of LLVM's."""
        self.op.attributes["passthrough"] = ir.ArrayAttr.get([ir.StringAttr.get(name) for name in attributes])
