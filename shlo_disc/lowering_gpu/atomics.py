# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Combining a value into an element of memory while other threads do the same.

What GPUs have an instruction for is one (sums of f32, f64, f16, of bf16 from sm_90 on, and of integers; extremes and
bits of integers; exchanges). Anything else is a loop that computes the new value and compares and swaps. GPUs compare
and swap words of 32 or 64 bits: for a narrower element LLVM takes the aligned word of 32 bits that it lies in, and puts
its neighbours back as they are. That word never leaves the buffer's allocation: allocations start at, and are multiples
of, 64 bytes (`runtime/native/core/memory.cpp`, `transforms/memory`).

The instruction for sums of f32 takes subnormal numbers for zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shlo_disc.lowering.element_types import Element, from_memory, to_memory
from shlo_disc.shape_dialect.mlir import arith, ir, memref

RELAXED = "relaxed_atomics"
"""On a kernel, then on its function of the LLVM dialect: no atomic of it orders accesses of other elements."""

_INTEGER_KINDS = {"add": "addi", "and": "andi", "or": "ori", "xor": "xori"}
_EXTREMES = {"maximum": "max", "minimum": "min"}

_MONOTONIC = 2
"""LLVM's number of the weakest order among atomics."""


def combine_atomically(
    buffer: ir.Value,
    place: Sequence[ir.Value],
    element: Element,
    name: str | None,
    new: ir.Value,
    combine: Callable[[ir.Value], ir.Value],
) -> None:
    """Make the element at `place` what `combine` gives for it: a sum with `new` where `name` is "add", and so on.

    `combine` emits ops without effects and without regions. A `name` of "replace" makes it `new`; None says nothing.
    """
    kind = _instruction(name, element)
    if kind is not None:
        memref.AtomicRMWOp(arith.AtomicRMWKind[kind], to_memory(new, element), buffer, place)
        return
    update = memref.GenericAtomicRMWOp(element.memory(), buffer, place)
    block = update.regions[0].blocks.append(element.memory())
    with ir.InsertionPoint(block):
        memref.AtomicYieldOp(to_memory(combine(from_memory(block.arguments[0], element)), element))


def _instruction(name: str | None, element: Element) -> str | None:
    """The atomic operation that a combination is on the element as it lies in memory, if there is one."""
    if name == "replace":
        return "assign"
    if element.is_float:
        return "addf" if name == "add" and not element.is_small_float else None
    if element.is_bool:
        return _INTEGER_KINDS[name] if name in ("and", "or", "xor") else None
    if name in _EXTREMES and element.bits >= 8:
        return _EXTREMES[name] + ("u" if element.is_unsigned else "s")
    return _INTEGER_KINDS.get(name or "") if element.bits >= 8 else None


def relax_atomics(function: ir.Operation) -> None:
    """Take the order among accesses from the atomics of a function of the LLVM dialect that is marked as RELAXED.

    Kernels that read what another has written start when that one has ended, so atomics on an element need no more than
    to be whole, for the threads of this GPU.
    """
    order = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _MONOTONIC)

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in ("llvm.atomicrmw", "llvm.cmpxchg"):
            op.attributes["syncscope"] = ir.StringAttr.get("device")
            for name in ("ordering", "success_ordering", "failure_ordering"):
                if name in op.attributes:
                    op.attributes[name] = order
        return ir.WalkResult.ADVANCE

    if RELAXED in function.attributes:
        function.walk(visit)
