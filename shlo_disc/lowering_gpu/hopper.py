# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions that sm_90a alone has: copies of boxes of tensors (TMA), barriers that count bytes, products by a
warpgroup (wgmma).

Shared memory is addressed by numbers of 32 bits. A box is BOX rows of ROW_BYTES, whose pieces of 16 bytes are permuted
in every 8 rows ("128-byte swizzle"): bits 4 to 6 of an address are combined with bits 7 to 9 by exclusive or. The
meanings of descriptors and of registers are those of NVIDIA's PTX manual, "Asynchronous Warpgroup Level Matrix
Instructions".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shlo_disc.shape_dialect.mlir import arith, ir

WARPGROUP = 128
"""Threads that compute a product together, 16 of its 64 rows each of their warps."""

M, K_BYTES = 64, 32
"""Rows, and bytes of the depth, of one product."""

BOX = 64
"""Rows of a box, and elements of two bytes of a row."""

ROW_BYTES = 2 * BOX
BOX_BYTES = BOX * ROW_BYTES
ATOM_BYTES = 8 * ROW_BYTES
"""Period of the permutation: boxes begin at multiples of it."""

MAP_WORDS = 16
"""Words of 8 bytes of a tensor map, which is passed by value."""


@dataclass(frozen=True)
class Factors:
    """A type that products have, by its name in PTX; its bytes, and the name of that of the sums."""

    name: str
    bytes: int
    sums: str

    @property
    def depth(self) -> int:
        """The depth of one product."""
        return K_BYTES // self.bytes

    @property
    def of_row(self) -> int:
        """Elements of a row of a box."""
        return ROW_BYTES // self.bytes

    @property
    def takes_columns(self) -> bool:
        """Tells whether neighbours may be along another axis than the depth."""
        return self.bytes == 2

    @property
    def sum_type(self) -> ir.Type:
        """The type of a sum in a register."""
        return ir.F32Type.get() if self.sums == "f32" else ir.IntegerType.get_signless(32)


FACTORS = {
    "f16": Factors("f16", 2, "f32"), "bf16": Factors("bf16", 2, "f32"), "i8": Factors("s8", 1, "s32"),
    "ui8": Factors("u8", 1, "s32"),
}  # fmt: skip
"""By the names of element types. Sums of integers are those modulo 2^32, with a sign or without."""

_SWIZZLE_128 = 1 << 62
_TICKS = 0x989680

_VOTES = 1
"""The number of the barrier at which threads tell each other something; that of a plain barrier of the block is 0."""

FIRST_NUMBER = 2
"""The number of the first other barrier."""


def i32(number: int) -> ir.Value:
    """A constant of 32 bits."""
    return arith.constant(ir.IntegerType.get_signless(32), number)


def map_type() -> ir.Type:
    """The type of a kernel's argument that is a tensor map."""
    return ir.Type.parse("!llvm.ptr")


def narrowed(value: ir.Value) -> ir.Value:
    """An index in 32 bits, which it has to fit."""
    return arith.index_cast(ir.IntegerType.get_signless(32), value)


def shared_base() -> ir.Value:
    """The first multiple of ATOM_BYTES in the memory of the block that the launch asks for."""
    bytes_ = ir.Type.parse("memref<?xi8, #gpu.address_space<workgroup>>")
    memory = ir.Operation.create("gpu.dynamic_shared_memory", results=[bytes_]).result
    index = ir.IndexType.get()
    first = ir.Operation.create("memref.extract_aligned_pointer_as_index", results=[index], operands=[memory]).result
    up = arith.addi(narrowed(first), i32(ATOM_BYTES - 1))
    return arith.andi(up, i32(-ATOM_BYTES))


def meet_warp() -> None:
    """All threads of a warp, after what they have written to shared memory is there for each other."""
    _create("nvvm.bar.warp.sync", [i32(-1)])


# ---- barriers -------------------------------------------------------------------------------------------------------


def init_barrier(address: ir.Value, arrivals: int) -> None:
    """Make 8 bytes a barrier whose phases end with so many arrivals, and all bytes that were announced."""
    _create("nvvm.mbarrier.init", [_shared(address), i32(arrivals)])


def publish_barriers() -> None:
    """Make this thread's new barriers visible to copies; other threads see them behind a barrier of the block."""
    _create("nvvm.fence.mbarrier.init")


def expect_bytes(address: ir.Value, count: int) -> None:
    """Arrive at a barrier, and announce bytes of copies in its phase."""
    _create("nvvm.mbarrier.arrive.expect_tx", [_shared(address), i32(count)], **_of_block())


def arrive(address: ir.Value) -> None:
    """Arrive at a barrier."""
    _create("nvvm.mbarrier.arrive", [_shared(address)], [ir.IntegerType.get_signless(64)], **_of_block())


def wait_for(address: ir.Value, parity: ir.Value) -> None:
    """Until the last phase of a parity has ended. Before the first one, those of parity 1 have."""
    _create("nvvm.mbarrier.try_wait.parity", [_shared(address), parity, i32(_TICKS)])


def copy_box(target: ir.Value, tensor_map: ir.Value, first: Sequence[ir.Value], barrier: ir.Value) -> None:
    """Begin to bring the box whose first element is at `first`, that of neighbours in memory first; by one thread."""
    _create(
        "nvvm.cp.async.bulk.tensor.shared.cluster.global",
        [_of_cluster(_shared(target)), tensor_map, *first, _shared(barrier)],
        mode=ir.Attribute.parse("#nvvm.tma_load_mode<tile>"),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 1, len(first), 1, 0, 0, 0, 0]),
    )


def any_in_block(condition: ir.Value) -> ir.Value:
    """Tells all threads of the block, which meet here, whether a condition holds in one of them."""
    word = ir.IntegerType.get_signless(32)
    attributes = {"reductionOp": ir.Attribute.parse("#nvvm.reduction<or>"), **_not_aligned()}
    operands = [i32(_VOTES), arith.extui(word, condition)]
    found = ir.Operation.create(
        "nvvm.barrier.reduction", results=[word], operands=operands, attributes=attributes
    ).result
    return arith.cmpi(arith.CmpIPredicate.ne, found, i32(0))


def arrive_at(number: ir.Value) -> None:
    """Arrive, as a warpgroup, at a barrier of two of them, without waiting."""
    _create("nvvm.barrier.arrive", [number, i32(2 * WARPGROUP)], **_not_aligned())


def meet_at(number: ir.Value) -> None:
    """Arrive, as a warpgroup, at a barrier of two of them, and wait until the other one has arrived."""
    segments = ir.DenseI32ArrayAttr.get([1, 1])
    _create("nvvm.barrier", [number, i32(2 * WARPGROUP)], operandSegmentSizes=segments, **_not_aligned())


def _not_aligned() -> dict[str, ir.Attribute]:
    return {"aligned": ir.BoolAttr.get(False)}


# ---- products -------------------------------------------------------------------------------------------------------


def matrix(address: ir.Value, depth_inside: bool) -> ir.Value:
    """The descriptor, of 64 bits, of a matrix that begins at an address and is in boxes one behind the other.

    depth_inside: the rows of the boxes run along the depth. Else neighbours along the other axis are 64 in a box, and
    the next 64 in the next one.
    """
    i64 = ir.IntegerType.get_signless(64)
    known = arith.constant(i64, _known_bits(depth_inside))
    return arith.ori(arith.extui(i64, arith.shrui(address, i32(4))), known)


def _known_bits(depth_inside: bool) -> int:
    to_next_box = 0 if depth_inside else BOX_BYTES
    return _SWIZZLE_128 | ATOM_BYTES >> 4 << 32 | to_next_box >> 4 << 16


@dataclass(frozen=True)
class Boxes:
    """Matrices in boxes one behind the other, as `matrix` describes them. low: the lower half of the descriptor of the
    first one, 32 bits. high: the other half, the same for all."""

    low: ir.Value
    high: int

    @staticmethod
    def of(address: ir.Value, depth_inside: bool) -> Boxes:
        """Describe the matrices from an address on."""
        known = _known_bits(depth_inside)
        low = arith.ori(arith.shrui(address, i32(4)), i32(known & 0xFFFFFFFF))
        return Boxes(low, known >> 32)

    def at(self, offset: int) -> ir.Value:
        """The descriptor of the matrix so many bytes behind, a multiple of 16."""
        i64 = ir.IntegerType.get_signless(64)
        low = arith.extui(i64, arith.addi(self.low, i32(offset >> 4)))
        return arith.ori(low, arith.constant(i64, self.high << 32))


def known_here(value: ir.Value) -> ir.Value:
    """A number of 32 bits, of which compilers know no more than that it is there: what is computed from it stays in the
    loop where it is needed, and takes no registers around it."""
    return _statement("", [value], ["0"], value.type)


def depth_step(depth_inside: bool) -> int:
    """Bytes from one depth of a matrix to that of the next product."""
    return K_BYTES if depth_inside else K_BYTES // 2 * ROW_BYTES


def zeros(columns: int, factors: Factors) -> ir.Value:
    """The sums of 64 rows and so many columns: of each thread, 2 neighbours in each 8 columns of 2 rows."""
    return ir.Operation.create("llvm.mlir.zero", results=[_struct(columns // 2, factors)]).result


def _struct(count: int, factors: Factors) -> ir.Type:
    return ir.Type.parse(f"!llvm.struct<({', '.join([str(factors.sum_type)] * count)})>")


def sums_of(values: Sequence[ir.Value], factors: Factors) -> ir.Value:
    """The sums of a product from those of this thread, one by one."""
    type_ = _struct(len(values), factors)
    sums = ir.Operation.create("llvm.mlir.undef", results=[type_]).result
    for number, value in enumerate(values):
        place: dict[str, ir.Attribute] = {"position": ir.DenseI64ArrayAttr.get([number])}
        sums = ir.Operation.create("llvm.insertvalue", results=[type_], operands=[sums, value], attributes=place).result
    return sums


def sum_at(sums: ir.Value, number: int, factors: Factors) -> ir.Value:
    """One of a thread's sums."""
    place: dict[str, ir.Attribute] = {"position": ir.DenseI64ArrayAttr.get([number])}
    return ir.Operation.create(
        "llvm.extractvalue", results=[factors.sum_type], operands=[sums], attributes=place
    ).result


def fence() -> None:
    """Sums are in registers before products that begin behind it use them."""
    _create("nvvm.wgmma.fence.aligned")


def multiply_add(
    sums: ir.Value, a: ir.Value, b: ir.Value, columns: int, factors: Factors, insides: tuple[bool, bool]
) -> ir.Value:
    """Begin to add A B of two matrices, 64 x depth and depth x columns. insides: whether their rows run along the
    depth."""
    return _multiply(sums, a, b, columns, factors, insides, adds=True)


def multiply(a: ir.Value, b: ir.Value, columns: int, factors: Factors, insides: tuple[bool, bool]) -> ir.Value:
    """Begin to compute A B, as `multiply_add` adds it."""
    none = ir.Operation.create("llvm.mlir.undef", results=[_struct(columns // 2, factors)]).result
    return _multiply(none, a, b, columns, factors, insides, adds=False)


def _multiply(
    sums: ir.Value, a: ir.Value, b: ir.Value, columns: int, factors: Factors, insides: tuple[bool, bool], adds: bool
) -> ir.Value:
    one = ir.Attribute.parse("#nvvm.wgmma_scale_in<one>")
    type_ = ir.Attribute.parse(f"#nvvm.wgmma_type<{factors.name}>")
    attributes: dict[str, ir.Attribute] = {
        "shape": ir.Attribute.parse(f"#nvvm.shape<m = {M}, n = {columns}, k = {factors.depth}>"),
        "typeA": type_,
        "typeB": type_,
        "typeD": ir.Attribute.parse(f"#nvvm.wgmma_type<{factors.sums}>"),
        "scaleD": ir.Attribute.parse(f"#nvvm.wgmma_scale_out<{'one' if adds else 'zero'}>"),
        "scaleA": one,
        "scaleB": one,
        "layoutA": _layout("row" if insides[0] else "col"),
        "layoutB": _layout("col" if insides[1] else "row"),
    }
    return ir.Operation.create(
        "nvvm.wgmma.mma_async", results=[sums.type], operands=[sums, a, b], attributes=attributes
    ).result


def multiply_add_rows(
    sums: ir.Value, a: Sequence[ir.Value], b: ir.Value, columns: int, factors: Factors, depth_inside: bool
) -> ir.Value:
    """The same with A in registers: for each warp's 16 rows a fragment as `mma.m16n8k16` takes it, four words of a
    thread. depth_inside: whether the rows of B run along the depth.

    The dialect has the instruction for two matrices in shared memory only, so this is written as it makes that one.
    """
    count = columns // 2
    results, left = ([f"${first + i}" for i in range(size)] for first, size in ((0, count), (count, len(a))))
    types = f"{factors.sums}.{factors.name}.{factors.name}"
    text = (
        f"{{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m{M}n{columns}k{factors.depth}.{types} "
        f"{{{', '.join(results)}}}, {{{', '.join(left)}}}, ${count + len(a)}, p, 1, 1, {int(not depth_inside)}; }}"
    )
    return _assembly(text, sums, count, factors, [*a, b], ["r"] * len(a) + ["l"])


def behind_products(sums: ir.Value, columns: int, factors: Factors) -> ir.Value:
    """Sums that have been waited for: what uses the result of this stays behind the waiting, wherever compilers move
    what has no effects."""
    return _assembly("", sums, columns // 2, factors, [], [])


def _assembly(
    text: str, sums: ir.Value, count: int, factors: Factors, operands: Sequence[ir.Value], kinds: Sequence[str]
) -> ir.Value:
    """A statement of PTX, by which so many sums become others in the same registers. Its operands are numbered: the new
    sums, then others, of which the constraints of LLVM's inline assembly are `kinds`."""
    values = [sum_at(sums, number, factors) for number in range(count)]
    return _statement(text, [*operands, *values], [*kinds, *map(str, range(count))], sums.type, ["=f"] * count)


def _statement(
    text: str, operands: Sequence[ir.Value], kinds: Sequence[str], result: ir.Type, results: Sequence[str] = ("=r",)
) -> ir.Value:
    """A statement of PTX, with the constraints of LLVM's inline assembly for its results, and its operands."""
    attributes: dict[str, ir.Attribute] = {
        "asm_string": ir.StringAttr.get(text),
        "constraints": ir.StringAttr.get(",".join([*results, *kinds])),
        "has_side_effects": ir.UnitAttr.get(),
    }
    return ir.Operation.create("llvm.inline_asm", results=[result], operands=operands, attributes=attributes).result


def close_products() -> None:
    """The products since the last group are one group."""
    _create("nvvm.wgmma.commit.group.sync.aligned")


def wait_for_products(pending: int) -> None:
    """Until at most so many groups, the latest, are under way."""
    group = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), pending)
    _create("nvvm.wgmma.wait.group.sync.aligned", group=group)


def set_registers(count: int, more: bool) -> None:
    """Set the number of registers that each thread of a warpgroup has from here on."""
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), count)
    action = ir.Attribute.parse(f"#nvvm<action {'increase' if more else 'decrease'}>")
    _create("nvvm.setmaxregister", regCount=number, action=action)


def _create(
    name: str, operands: Sequence[ir.Value] = (), results: Sequence[ir.Type] = (), /, **attributes: ir.Attribute
) -> None:
    ir.Operation.create(name, results=list(results), operands=list(operands), attributes=attributes)


def _of_block() -> dict[str, ir.Attribute]:
    return {"scope": ir.Attribute.parse("#nvvm.mem_scope<cta>"), "relaxed": ir.BoolAttr.get(False)}


def _layout(name: str) -> ir.Attribute:
    return ir.Attribute.parse(f"#nvvm.mma_layout<{name}>")


def _shared(address: ir.Value) -> ir.Value:
    return ir.Operation.create("llvm.inttoptr", results=[ir.Type.parse("!llvm.ptr<3>")], operands=[address]).result


def _of_cluster(pointer: ir.Value) -> ir.Value:
    return ir.Operation.create("llvm.addrspacecast", results=[ir.Type.parse("!llvm.ptr<7>")], operands=[pointer]).result
