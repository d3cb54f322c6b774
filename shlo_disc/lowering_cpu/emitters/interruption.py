# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that return before they are done where the run has ended: those with loops over data (decision 0042)."""

from __future__ import annotations

from shlo_disc.lowering.positions import index_constant
from shlo_disc.runtime import abi
from shlo_disc.shape_dialect.mlir import arith, ir, scf
from shlo_disc.shape_dialect.symbolic.expr import Expr, Symbol

RUNTIME = Expr.of_atom(Symbol("%runtime"))
"""The address of the runtime, as a size of the kernel."""

TRIPS = 64
"""Trips of a loop for each test whether the run has ended."""


class Interruption:
    """A test for the end of a kernel's run. Made where the kernel begins; `runtime`: its address, an index."""

    def __init__(self, runtime: ir.Value):
        self.runtime = _operation("llvm.inttoptr", _pointer(), arith.index_cast(_i64(), runtime))
        place = abi.RUNTIME_CALLS[_ASK] * 8
        address = arith.index_cast(_i64(), arith.addi(runtime, index_constant(place)))
        self.function = _operation("llvm.load", _pointer(), _operation("llvm.inttoptr", _pointer(), address))
        null = _operation("llvm.mlir.zero", _pointer())
        self.asks = _operation("llvm.icmp", _i1(), self.function, null, predicate=_NOT_EQUAL)

    def before_trip(self, trips: ir.Value, between: int) -> ir.Value:
        """Tells whether it has, before one trip in `between` (a power of two) of the `trips` so far."""
        rest = arith.andi(trips, index_constant(between - 1))
        is_asked = arith.cmpi(arith.CmpIPredicate.eq, rest, index_constant(0))
        asks = scf.IfOp(arith.andi(self.asks, is_asked), [_i1()], has_else=True)
        with ir.InsertionPoint(asks.then_block):
            answer = _call(self.function, self.runtime)
            scf.yield_([arith.cmpi(arith.CmpIPredicate.ne, answer, arith.constant(_i64(), 0))])
        with ir.InsertionPoint(asks.else_block):
            scf.yield_([arith.constant(_i1(), 0)])
        return asks.results[0]


_ASK = "has_ended"
_NOT_EQUAL = 1


def _pointer() -> ir.Type:
    return ir.Type.parse("!llvm.ptr")


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def _i1() -> ir.Type:
    return ir.IntegerType.get_signless(1)


def _operation(name: str, result: ir.Type, *operands: ir.Value, predicate: int | None = None) -> ir.Value:
    attributes: dict[str, ir.Attribute] = {}
    if predicate is not None:
        attributes["predicate"] = ir.IntegerAttr.get(_i64(), predicate)
    return ir.Operation.create(name, results=[result], operands=operands, attributes=attributes).results[0]


def _call(function: ir.Value, runtime: ir.Value) -> ir.Value:
    """Call a function of the runtime that returns a number."""
    attributes: dict[str, ir.Attribute] = {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 0]),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
    }
    call = ir.Operation.create("llvm.call", results=[_i64()], operands=[function, runtime], attributes=attributes)
    return call.results[0]
