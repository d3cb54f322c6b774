# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Emulation of sm_90a: barriers that count bytes, copies of boxes (TMA), products by a warpgroup (wgmma).

Warpgroups are parts that wait for each other (`gpu_roles`). Whatever is asynchronous happens as late as it may: a copy
lands, in any order, when all warpgroups wait, and there are NaNs in its place until then; a product reads its matrices
when it is waited for. Reading what has not landed, writing what a product may still read, sums that are used too early,
products without a fence, wrong numbers of bytes, and waits without an end are errors.

Descriptors, swizzles and the layout of sums are those of NVIDIA's PTX manual.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from shlo_disc.lowering_gpu.hopper_product import BY_MAPS
from shlo_disc.shape_dialect.mlir import ir
from tests.ir.gpu_order import BlockOrder
from tests.ir.gpu_roles import Role, Roles
from tests.ir.gpu_tensor_cores import TensorCores

WARPGROUP = 128
REGISTERS = 65536
_FIRST = 1040
"""Start of the shared memory of a block: at no multiple of more than 16 bytes."""

_BOX_ALIGNMENT = 1024
_ELEMENTS = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "s8": np.int8, "u8": np.uint8}
_DEPTH_BYTES = 32

Lanes = np.ndarray
Env = dict[ir.Value, Any]


@dataclass(frozen=True)
class TensorMap:
    """A tensor and the boxes that copies take of it, the axis of neighbours first, whose pieces of 16 bytes are
    permuted in rows of 128 bytes. Strides count elements."""

    data: np.ndarray
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """The bytes of a box."""
        return self.data.itemsize * math.prod(self.box)

    def take(self, first: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """A box, its first axis last, with zeros outside of the tensor; and the places of the elements inside."""
        axes = [np.arange(start, start + count) for start, count in zip(first, self.box, strict=True)]
        inside, place = np.ones((), bool), np.zeros((), np.int64)
        for axis, size, stride in reversed(list(zip(axes, self.sizes, self.strides, strict=True))):
            inside = inside[..., None] & (axis >= 0) & (axis < size)
            place = place[..., None] + axis * stride
        values = np.zeros(inside.shape, self.data.dtype)
        values[inside] = self.data[place[inside]]
        return values, place[inside]


def swizzled(address: np.ndarray) -> np.ndarray:
    """The address of a byte of a box, in rows of 128 bytes."""
    return address ^ ((address >> 7 & 7) << 4)


@dataclass
class Barrier:
    """Ends a phase when nobody is missing and no byte is."""

    count: int
    missing: int
    bytes: int = 0
    phase: int = 0
    is_published: bool = False

    def arrive(self, times: int, announced: int = 0) -> None:
        assert self.is_published, "a barrier is used before copies know of it"
        assert times <= self.missing, "more arrive at a barrier than it waits for"
        self.missing -= times
        self.add(announced)

    def add(self, count: int) -> None:
        """Bytes that are to come, or less than none when they have."""
        self.bytes += count
        assert self.bytes >= 0, "more bytes come than were announced"
        if not self.missing and not self.bytes:
            self.missing, self.phase = self.count, self.phase + 1


@dataclass
class Copy:
    """A box that is under way."""

    target: int
    values: np.ndarray
    barrier: Barrier

    @property
    def end(self) -> int:
        return self.target + self.values.nbytes


@dataclass
class Sums:
    """Those of all threads, [threads, sums of one]; `is_ready`: no product adds to them."""

    data: np.ndarray
    is_ready: bool = True


@dataclass
class Matrix:
    """The elements of a matrix in shared memory: [rows or columns, depth] addresses of their first bytes."""

    addresses: np.ndarray

    @staticmethod
    def of(descriptor: int, size: int, depth_inside: bool, bytes_: int) -> Matrix:
        """Decodes a descriptor of 64 bits."""
        start, across, down = ((descriptor >> low & 0x3FFF) << 4 for low in (0, 16, 32))
        assert descriptor >> 62 == 1, "another swizzle than that of the boxes"
        assert descriptor >> 49 & 7 == 0 and start >> 7 & 7 == 0, "a matrix begins amidst 1024 bytes"
        assert not any(descriptor >> low & 3 for low in (14, 30, 46)), "unused bits of a descriptor are set"
        place, depth = np.arange(size)[:, None], np.arange(_DEPTH_BYTES // bytes_)[None, :]
        if depth_inside:
            return Matrix(swizzled(start + place % 8 * 128 + place // 8 * down + depth * bytes_))
        assert bytes_ == 2, "elements of a byte lie along the depth"
        at = start + place % 64 * 2 + place // 64 * across + depth % 8 * 128 + depth // 8 * down
        return Matrix(swizzled(at))


@dataclass
class Product:
    """One that is under way."""

    result: Sums
    sums: Sums
    sides: tuple[Matrix, Matrix]
    element: Any


@dataclass
class State:
    """The operations that a warpgroup has begun."""

    is_fenced: bool = False
    products: list[Product] = field(default_factory=list)
    groups: list[list[Product]] = field(default_factory=list)
    registers: int | None = None
    barriers: int = 0


class SharedBytes:
    """The shared memory that a launch asks for, as a tensor."""

    start = 0

    def __init__(self, count: int):
        self.data = np.full(count, 0xFF, np.uint8)

    def addresses(self, offsets: Lanes) -> Lanes:
        return _FIRST + offsets


class Warpgroups(TensorCores):
    """The part of a block for warpgroups."""

    threads: int
    order: BlockOrder
    check_races: Any
    run: Any

    def begin_warpgroups(self, number: int, shared_bytes: int) -> None:
        """Nothing is under way."""
        self.bytes = SharedBytes(shared_bytes)
        self.barriers: dict[int, Barrier] = {}
        self.under_way: list[Copy] = []
        self.roles: Roles | None = None
        self.states: dict[Role, State] = {}
        self.random = np.random.default_rng(number)
        self.block_number = number

    def run_warpgroups(self, entry: ir.Block, env: Env) -> None:
        """The whole block, each warpgroup by itself."""
        self.roles = Roles(self.block_number, self._land_one)
        lanes = [np.arange(self.threads) // WARPGROUP == number for number in range(self.threads // WARPGROUP)]

        def body(active: Lanes) -> Any:
            def all_ops() -> None:
                with np.errstate(all="ignore"):
                    self.run(entry, dict(env), active)

            return all_ops

        self.roles.run([(active, body(active)) for active in lanes])
        self._check_end()

    def _check_end(self) -> None:
        assert not self.under_way, "a copy is under way at the end of a block"
        states = self.states.values()
        assert not any(s.products or s.groups for s in states), "a product is under way at the end of a block"
        if any(s.registers for s in states):
            assert sum((s.registers or 0) * WARPGROUP for s in states) <= REGISTERS, "too many registers"
        for barrier in self.barriers.values():
            assert not barrier.bytes and barrier.is_published

    @property
    def state(self) -> State:
        assert self.roles is not None and self.roles.current is not None
        return self.states.setdefault(self.roles.current, State())

    def _whole(self, active: Lanes) -> None:
        assert self.roles is not None and self.roles.current is not None
        assert (active == self.roles.current.lanes).all(), "not all threads of a warpgroup are there"

    # ---- addresses ------------------------------------------------------------------------------------------------

    def _gpu_dynamic_shared_memory(self, op: ir.OpView, env: Env, active: Lanes) -> list[Any]:
        return [self.bytes]

    def _llvm_inttoptr(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        return [env[op.operands[0]]]

    _llvm_addrspacecast = _llvm_inttoptr

    def _at(self, addresses: np.ndarray) -> np.ndarray:
        """The places of bytes in the shared memory."""
        places = addresses - _FIRST
        assert (places >= 0).all() and (places < len(self.bytes.data)).all(), "outside of the shared memory"
        return places

    # ---- barriers -------------------------------------------------------------------------------------------------

    def _rendezvous(self) -> None:
        """All warpgroups have come to a barrier of the block; the last one ends it."""
        assert self.roles is not None
        state = self.state
        state.barriers += 1
        mine = state.barriers
        if all(self.states.setdefault(r, State()).barriers >= mine for r in self.roles.all):
            self.check_races()
            assert all(b.is_published for b in self.barriers.values()), "copies do not know of a barrier"
        roles = self.roles
        assert roles.current is not None
        roles.current.wait(lambda: all(self.states.setdefault(r, State()).barriers >= mine for r in roles.all))

    def _nvvm_mbarrier_init(self, op: ir.OpView, env: Env, active: Lanes) -> list[Any]:
        address, count = (_one(env[v], active) for v in op.operands)
        assert address % 8 == 0 and active.sum() == 1 and address not in self.barriers
        self._at(np.arange(address, address + 8))
        self.barriers[address] = Barrier(count, count)
        return []

    def _nvvm_fence_mbarrier_init(self, op: ir.OpView, env: Env, active: Lanes) -> list[Any]:
        for barrier in self.barriers.values():
            barrier.is_published = True
        return []

    def _nvvm_mbarrier_arrive_expect_tx(self, op: ir.OpView, env: Env, active: Lanes) -> list[Any]:
        address, count = (_one(env[v], active) for v in op.operands)
        assert active.sum() == 1
        self.barriers[address].arrive(1, count)
        return []

    def _nvvm_mbarrier_arrive(self, op: ir.OpView, env: Env, active: Lanes) -> list[Any]:
        self.barriers[_one(env[op.operands[0]], active)].arrive(int(active.sum()))
        return [np.zeros(self.threads, np.int64)]

    def _nvvm_mbarrier_try_wait_parity(self, op: ir.OpView, env: Env, active: Lanes) -> list[Any]:
        address, parity = (_one(env[v], active) for v in op.operands[:2])
        barrier = self.barriers[address]
        assert barrier.is_published and self.roles is not None and self.roles.current is not None
        self.roles.current.wait(lambda: barrier.phase % 2 != parity)
        return []

    # ---- copies ---------------------------------------------------------------------------------------------------

    def _nvvm_cp_async_bulk_tensor_shared_cluster_global(self, op: ir.OpView, env: Env, active: Lanes) -> list[Any]:
        rank = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[2]
        target, map_, *first, barrier = (env[v] for v in op.operands[: 3 + rank])
        assert active.sum() == 1, "a copy is begun by one thread"
        values, inside = map_.take(tuple(_one(f, active) for f in first))
        copy = Copy(_one(target, active), values, self.barriers[_one(barrier, active)])
        assert copy.target % _BOX_ALIGNMENT == 0, "a box at no multiple of 1024 bytes"
        for other in self.under_way:
            assert copy.end <= other.target or other.end <= copy.target, "two copies to one place"
        for product in self._products_under_way():
            for side in product.sides:
                read = (side.addresses >= copy.target) & (side.addresses < copy.end)
                assert not read.any(), "a copy to what a product may still read"
        first_address = map_.data.__array_interface__["data"][0]
        self.order.add(first_address + map_.data.itemsize * inside, False)
        self.bytes.data[self._at(np.arange(copy.target, copy.end))] = 0xFF
        self.under_way.append(copy)
        return []

    def _products_under_way(self) -> list[Product]:
        return [p for s in self.states.values() for group in (s.products, *s.groups) for p in group]

    def _land_one(self) -> bool:
        """Tells whether there was a copy under way."""
        if not self.under_way:
            return False
        copy = self.under_way.pop(self.random.integers(len(self.under_way)))
        linear = np.arange(copy.target, copy.end)
        self.bytes.data[self._at(swizzled(linear))] = np.ascontiguousarray(copy.values).reshape(-1).view(np.uint8)
        copy.barrier.add(-copy.values.nbytes)
        return True

    # ---- products -------------------------------------------------------------------------------------------------

    def _llvm_mlir_zero(self, op: ir.OpView, env: Env, active: Lanes) -> list[Any]:
        found = str(op.results[0].type)
        kind, count = (np.float32, found.count("f32")) if "f32" in found else (np.int32, found.count("i32"))
        return [Sums(np.zeros((self.threads, count), kind))]

    def _llvm_extractvalue(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        sums = env[op.operands[0]]
        if not isinstance(sums, Sums):
            return super()._llvm_extractvalue(op, env, active)
        assert sums.is_ready, "sums are read while a product adds to them"
        (number,) = ir.DenseI64ArrayAttr(op.attributes["position"])
        return [sums.data[:, number]]

    def _nvvm_wgmma_fence_aligned(self, op: ir.OpView, env: Env, active: Lanes) -> list[Any]:
        self._whole(active)
        self.state.is_fenced = True
        return []

    def _nvvm_wgmma_mma_async(self, op: ir.OpView, env: Env, active: Lanes) -> list[Any]:
        self._whole(active)
        assert self.state.is_fenced, "a product without a fence before it"
        sums, a, b = env[op.operands[0]], *(_one(env[v], active) for v in op.operands[1:])
        m, columns, k = (int(part.split("=")[1].strip(" >")) for part in str(op.attributes["shape"]).split(","))
        element = np.dtype(_ELEMENTS[str(op.attributes["typeA"]).split("<")[1].strip(">")])
        assert (m, k) == (64, _DEPTH_BYTES // element.itemsize) and op.attributes["typeA"] == op.attributes["typeB"]
        assert sums.data.shape[1] == columns // 2 and columns % 16 == 0 and columns <= 256
        assert ("f32" if sums.data.dtype.kind == "f" else "s32") in str(op.attributes["typeD"])
        insides = ("row" in str(op.attributes["layoutA"]), "col" in str(op.attributes["layoutB"]))
        sizes = zip((a, b), (64, columns), insides, strict=True)
        sides = tuple(Matrix.of(*one, element.itemsize) for one in sizes)
        for side in sides:
            self._at(side.addresses)
            for copy in self.under_way:
                read = (side.addresses >= copy.target) & (side.addresses < copy.end)
                assert not read.any(), "a product reads what has not landed"
        poison = np.nan if sums.data.dtype.kind == "f" else 0x5A5A5A5A
        result = Sums(np.full_like(sums.data, poison), False)
        self.state.products.append(Product(result, sums, sides, element))
        return [result]

    def _nvvm_wgmma_commit_group_sync_aligned(self, op: ir.OpView, env: Env, active: Lanes) -> list[Any]:
        self._whole(active)
        state = self.state
        state.groups.append(state.products)
        state.products, state.is_fenced = [], False
        return []

    def _nvvm_wgmma_wait_group_sync_aligned(self, op: ir.OpView, env: Env, active: Lanes) -> list[Any]:
        self._whole(active)
        pending = ir.IntegerAttr(op.attributes["group"]).value
        while len(self.state.groups) > pending:
            for product in self.state.groups.pop(0):
                self._finish(product, active)
        return []

    def _finish(self, product: Product, active: Lanes) -> None:
        assert product.sums.is_ready, "products are finished in another order"
        a, b = (self._elements(side, product.element) for side in product.sides)
        # Warp w has rows from 16 w on; its lane 4 g + t rows g and g + 8, and of each 8 columns those from 2 t on.
        added = (a @ b.T).astype(product.sums.data.dtype)
        added = added.reshape(4, 2, 8, -1, 4, 2).transpose(0, 2, 4, 3, 1, 5).reshape(WARPGROUP, -1)
        product.result.data[...] = product.sums.data
        product.result.data[active] += added
        product.result.is_ready = True

    def _elements(self, side: Matrix, dtype: np.dtype) -> np.ndarray:
        low = self._at(side.addresses)
        all_bytes = np.stack([self.bytes.data[low + number] for number in range(dtype.itemsize)], -1)
        found = np.ascontiguousarray(all_bytes).view(dtype)[..., 0]
        return found.astype(np.int64 if dtype.kind in "iu" else np.float32)

    def _nvvm_setmaxregister(self, op: ir.OpView, env: Env, active: Lanes) -> list[Any]:
        self._whole(active)
        count = ir.IntegerAttr(op.attributes["regCount"]).value
        assert count % 8 == 0 and 24 <= count <= 256
        self.state.registers = count
        return []


def shared_bytes_of(kernel: ir.OpView) -> int:
    """The bytes of shared memory that a launch of a kernel has to ask for, beyond what it declares."""
    attributes = kernel.attributes
    return ir.IntegerAttr(attributes[BY_MAPS]["shared_bytes"]).value if BY_MAPS in attributes else 0


def _one(values: Lanes, active: Lanes) -> int:
    """The value that all active threads have."""
    found = np.unique(values[active])
    assert len(found) == 1, "threads disagree on what they do together"
    return int(found[0])
