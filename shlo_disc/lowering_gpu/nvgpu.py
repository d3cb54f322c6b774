# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops of the dialect `nvgpu`: asynchronous copies to shared memory, and the instructions of tensor cores.

They are there from sm_80 on. The layouts of fragments are those that NVIDIA's PTX manual gives for `mma.m16n8k16` and
`ldmatrix`; with g = lane / 4 and t = lane % 4, a lane holds, of elements of two bytes,

    A (16 x 16): pairs at (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8), along the columns
    B (16 x 8): pairs at (2t, g), (2t + 8, g), along the rows
    C (16 x 8): pairs at (g, 2t), (g + 8, 2t), along the columns

Of elements of a byte (`mma.m16n8k32`) it holds fours along the depth, which is twice as long, in place of pairs; of f32
as TF32 (`mma.m16n8k8`) single elements along the depth, which is half as long.
"""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.types import bytes_of
from shlo_disc.shape_dialect.mlir import ir, vector

CHUNK_BYTES = 16
"""Bytes that one lane of an asynchronous copy moves, and bytes at the row address that one lane gives to `ldmatrix`."""


def load(context: ir.Context) -> None:
    """Load the dialects, whose ops are made by name."""
    for name in ("llvm", "nvgpu", "nvvm"):
        context.get_dialect_descriptor(name)


def copy_async(
    target: ir.Value, place: ir.Value, source: ir.Value, at: ir.Value, length: int, present: ir.Value
) -> None:
    """Begin to copy `length` elements, 4, 8 or 16 bytes, into shared memory; those behind the first `present` become
    zeros."""
    attributes: dict[str, ir.Attribute] = {
        "dstElements": ir.IntegerAttr.get(ir.IndexType.get(), length),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 1, 1, 1]),
    }
    if length * bytes_of(ir.MemRefType(target.type).element_type) == CHUNK_BYTES:
        attributes["bypassL1"] = ir.UnitAttr.get()
    operands = [target, place, source, at, present]
    ir.Operation.create("nvgpu.device_async_copy", results=[_token()], operands=operands, attributes=attributes)


def close_group() -> None:
    """This thread's copies since the last group are one group."""
    ir.Operation.create("nvvm.cp.async.commit.group")


def wait_for_groups(pending: int) -> None:
    """Until at most so many of this thread's groups, the latest, are under way."""
    ir.Operation.create("nvvm.cp.async.wait.group", attributes={"n": _integer(32, pending)})


def load_matrices(buffer: ir.Value, row: ir.Value, transpose: bool) -> ir.Value:
    """Four matrices of 8 rows of 16 bytes: a vector of 4 times the elements of 4 bytes. Lane l tells where row l % 8 of
    matrix l / 8 is. transpose: of elements of two bytes only."""
    element = ir.MemRefType(buffer.type).element_type
    type_ = ir.VectorType.get([4, 4 // bytes_of(element)], element)
    attributes = {
        "transpose": ir.BoolAttr.get(transpose),
        "numTiles": _integer(32, 4),
    }
    return ir.Operation.create("nvgpu.ldmatrix", results=[type_], operands=[buffer, row], attributes=attributes).result


def multiply_add(a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """C + A B of fragments of f16 or bf16: vector<4x2xT>, vector<2x2xT>, and vector<2x2xf32>."""
    shape = ir.ArrayAttr.get([_integer(64, n) for n in (16, 8, 16)])
    return ir.Operation.create(
        "nvgpu.mma.sync", results=[c.type], operands=[a, b, c], attributes={"mmaShape": shape}
    ).result


def multiply_add_tf32(a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """C + A B of fragments of f32, of whose elements the bits of TF32 are read: vector<4x1xf32>, vector<2x1xf32>, and
    vector<2x2xf32>."""
    attributes: dict[str, ir.Attribute] = {
        "mmaShape": ir.ArrayAttr.get([_integer(64, n) for n in (16, 8, 8)]),
        "tf32Enabled": ir.UnitAttr.get(),
    }
    return ir.Operation.create("nvgpu.mma.sync", results=[c.type], operands=[a, b, c], attributes=attributes).result


def multiply_add_bytes(a: ir.Value, b: ir.Value, c: ir.Value, is_unsigned: bool) -> ir.Value:
    """C + A B of fragments of integers modulo 2^32: vector<4x4xi8>, vector<2x4xi8>, and vector<2x2xi32>."""
    word = ir.IntegerType.get_signless(32)
    words = [_words(a, 4), _words(b, 2), [vector.extract(c, [], [i, j]) for i in range(2) for j in range(2)]]
    type_ = ir.Attribute.parse(f"#nvvm.mma_type<{'u8' if is_unsigned else 's8'}>")
    attributes: dict[str, ir.Attribute] = {
        "shape": ir.Attribute.parse("#nvvm.shape<m = 16, n = 8, k = 32>"),
        "multiplicandAPtxType": type_,
        "multiplicandBPtxType": type_,
        "intOverflowBehavior": ir.Attribute.parse("#nvvm.mma_int_overflow<wrapped>"),
        "layoutA": ir.Attribute.parse("#nvvm.mma_layout<row>"),
        "layoutB": ir.Attribute.parse("#nvvm.mma_layout<col>"),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get(list(map(len, words))),
    }
    four = ir.Type.parse("!llvm.struct<(i32, i32, i32, i32)>")
    operands = [one for some in words for one in some]
    sums = ir.Operation.create("nvvm.mma.sync", results=[four], operands=operands, attributes=attributes).result
    return vector.from_elements(ir.VectorType.get([2, 2], word), [_member(sums, i, word) for i in range(4)])


def _words(fragment: ir.Value, count: int) -> list[ir.Value]:
    """The registers of a fragment of bytes."""
    type_ = ir.VectorType.get([count, 1], ir.IntegerType.get_signless(32))
    words = vector.bitcast(type_, fragment)
    return [vector.extract(words, [], [i, 0]) for i in range(count)]


def _member(struct: ir.Value, number: int, type_: ir.Type) -> ir.Value:
    place: dict[str, ir.Attribute] = {"position": ir.DenseI64ArrayAttr.get([number])}
    return ir.Operation.create("llvm.extractvalue", results=[type_], operands=[struct], attributes=place).result


def _integer(width: int, number: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(width), number)


def _token() -> ir.Type:
    return ir.Type.parse("!nvgpu.device.async.token")
