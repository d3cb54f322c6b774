# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops of the dialect `nvgpu`: asynchronous copies to shared memory, and the instructions of tensor cores.

They are there from sm_80 on. The layouts of fragments are those that NVIDIA's PTX manual gives for `mma.m16n8k16` and
`ldmatrix`; with g = lane / 4 and t = lane % 4, a lane holds of

    A (16 x 16): pairs at (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8), along the columns
    B (16 x 8): pairs at (2t, g), (2t + 8, g), along the rows
    C (16 x 8): pairs at (g, 2t), (g + 8, 2t), along the columns
"""

from __future__ import annotations

from shlo_disc.mlir import ir

CHUNK_BYTES = 16
"""What one lane of an asynchronous copy moves, and what one lane gives to `ldmatrix` as the address of a row."""


def load(context: ir.Context) -> None:
    """Load the dialects, whose ops are made by name."""
    for name in ("nvgpu", "nvvm"):
        context.get_dialect_descriptor(name)


def copy_async(
    target: ir.Value, place: ir.Value, source: ir.Value, at: ir.Value, length: int, present: ir.Value
) -> None:
    """Begin to copy `length` elements, 16 bytes, into shared memory; those behind the first `present` become zeros."""
    attributes = {
        "dstElements": ir.IntegerAttr.get(ir.IndexType.get(), length),
        "bypassL1": ir.UnitAttr.get(),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 1, 1, 1]),
    }
    operands = [target, place, source, at, present]
    ir.Operation.create("nvgpu.device_async_copy", results=[_token()], operands=operands, attributes=attributes)


def close_group() -> None:
    """This thread's copies since the last group are one group."""
    ir.Operation.create("nvvm.cp.async.commit.group")


def wait_for_groups(pending: int) -> None:
    """Until at most so many of this thread's groups, the latest, are under way."""
    ir.Operation.create("nvvm.cp.async.wait.group", attributes={"n": _integer(32, pending)})


def load_matrices(buffer: ir.Value, row: ir.Value, transpose: bool) -> ir.Value:
    """Four matrices of 8 x 8 elements of two bytes: vector<4x2>. Lane l tells where row l % 8 of matrix l / 8 is."""
    type_ = ir.VectorType.get([4, 2], ir.MemRefType(buffer.type).element_type)
    attributes = {
        "transpose": ir.BoolAttr.get(transpose),
        "numTiles": _integer(32, 4),
    }
    return ir.Operation.create("nvgpu.ldmatrix", results=[type_], operands=[buffer, row], attributes=attributes).result


def multiply_add(a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """C + A B of fragments: vector<4x2xT>, vector<2x2xT>, and vector<2x2xf32>."""
    shape = ir.ArrayAttr.get([_integer(64, n) for n in (16, 8, 16)])
    return ir.Operation.create(
        "nvgpu.mma.sync", results=[c.type], operands=[a, b, c], attributes={"mmaShape": shape}
    ).result


def _integer(width: int, number: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(width), number)


def _token() -> ir.Type:
    return ir.Type.parse("!nvgpu.device.async.token")
