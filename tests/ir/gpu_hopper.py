# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Emulation of sm_90a: barriers that count bytes, copies of boxes (TMA), products by a warpgroup (wgmma).

Warpgroups are parts that wait for each other (`gpu_roles`). Whatever is asynchronous happens as late as it may: a copy
lands, in any order, when all warpgroups wait, and there are NaNs in its place until then; a product reads its matrices
when it is waited for. Reading what has not landed, writing what a product may still read, sums that are used too early,
products without a fence, wrong numbers of bytes, and waits without an end are errors.

Descriptors, swizzles and the layout of sums are those of NVIDIA's PTX manual.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shlo_disc.lowering_gpu.hopper_launch import BY_MAPS
from shlo_disc.shape_dialect.mlir import ir
from tests.ir.gpu_hopper_state import (
    BOX_ALIGNMENT,
    DEPTH_BYTES,
    ELEMENTS,
    FIRST,
    PRODUCT_OF_ROWS,
    REGISTERS,
    WARPGROUP,
    Barrier,
    Copy,
    Matrix,
    Product,
    SharedBytes,
    State,
    Sums,
    rows_of,
    swizzled,
)
from tests.ir.gpu_order import BlockOrder
from tests.ir.gpu_roles import Role, Roles
from tests.ir.gpu_tensor_cores import TensorCores

Lanes = np.ndarray
Env = dict[ir.Value, Any]


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
        self.numbered: dict[int, Barrier] = {}
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
            given = REGISTERS // self.threads // 8 * 8 * self.threads
            assert sum((s.registers or 0) * WARPGROUP for s in states) <= given, "too many registers"
        assert all(b.missing == b.count for b in self.numbered.values()), "somebody has arrived for nobody"
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
        places = addresses - FIRST
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

    def _nvvm_barrier_reduction(self, op: ir.OpView, env: Env, active: Lanes) -> list[Any]:
        """All threads of the block meet, at a barrier of its own, and tell each other whether one has something."""
        self._whole(active)
        number, value = (env[v] for v in op.operands)
        assert _one(number, active) == 1 and "or" in str(op.attributes["reductionOp"]) and self.roles is not None
        state, roles = self.state, self.roles
        state.votes.append(bool(value[active].any()))
        mine = len(state.votes)

        def have_come() -> bool:
            return all(len(self.states.setdefault(r, State()).votes) >= mine for r in roles.all)

        assert roles.current is not None
        roles.current.wait(have_come)
        found = any(self.states[r].votes[mine - 1] for r in roles.all)
        return [np.full(self.threads, found, np.int32)]

    def _nvvm_barrier_arrive(self, op: ir.OpView, env: Env, active: Lanes) -> list[Any]:
        """Some threads arrive at a barrier of a number, and do not wait."""
        self._whole(active)
        number, count = (_one(env[v], active) for v in op.operands)
        barrier = self.numbered.setdefault(number, Barrier(count, count, is_published=True))
        assert barrier.count == count and number > 1, "a barrier of another size"
        barrier.arrive(int(active.sum()))
        return []

    def _nvvm_barrier(self, op: ir.OpView, env: Env, active: Lanes) -> list[Any]:
        self._nvvm_barrier_arrive(op, env, active)
        assert self.roles is not None and self.roles.current is not None
        barrier = self.numbered[_one(env[op.operands[0]], active)]
        mine = barrier.phase + (barrier.missing < barrier.count)
        self.roles.current.wait(lambda: barrier.phase >= mine)
        return []

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
        assert copy.target % BOX_ALIGNMENT == 0, "a box at no multiple of 1024 bytes"
        for other in self.under_way:
            assert copy.end <= other.target or other.end <= copy.target, "two copies to one place"
        for product in self._products_under_way():
            for side in product.matrices:
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

    def _llvm_mlir_undef(self, op: ir.OpView, env: Env, active: Lanes) -> list[Any]:
        count = str(op.results[0].type).count("f32")
        return [Sums(np.full((self.threads, count), np.nan, np.float32))]

    def _llvm_insertvalue(self, op: ir.OpView, env: Env, active: Lanes) -> list[Any]:
        sums, value = (env[v] for v in op.operands)
        (number,) = ir.DenseI64ArrayAttr(op.attributes["position"])
        data = sums.data.copy()
        data[:, number] = value
        return [Sums(data)]

    def _llvm_mlir_zero(self, op: ir.OpView, env: Env, active: Lanes) -> list[Any]:
        found = str(op.results[0].type)
        kind, count = (np.float32, found.count("f32")) if "f32" in found else (np.int32, found.count("i32"))
        return [Sums(np.zeros((self.threads, count), kind))]

    def _llvm_extractvalue(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        sums = env[op.operands[0]]
        if not isinstance(sums, Sums):
            return super()._llvm_extractvalue(op, env, active)
        is_handed_on = all(use.owner.name == "llvm.inline_asm" for use in op.results[0].uses)
        assert sums.is_ready or is_handed_on, "sums are read while a product adds to them"
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
        element = np.dtype(ELEMENTS[str(op.attributes["typeA"]).split("<")[1].strip(">")])
        assert (m, k) == (64, DEPTH_BYTES // element.itemsize) and op.attributes["typeA"] == op.attributes["typeB"]
        assert ("f32" if sums.data.dtype.kind == "f" else "s32") in str(op.attributes["typeD"])
        insides = ("row" in str(op.attributes["layoutA"]), "col" in str(op.attributes["layoutB"]))
        sizes = zip((a, b), (64, columns), insides, strict=True)
        left, right = (Matrix.of(*one, element.itemsize) for one in sizes)
        return self._begin(sums, (left, right), columns, element, "<one>" in str(op.attributes["scaleD"]))

    def _llvm_inline_asm(self, op: ir.OpView, env: Env, active: Lanes) -> list[Any]:
        """A product whose left side is in registers, or nothing, by which sums or a number stay what they are."""
        self._whole(active)
        text, constraints = (ir.StringAttr(op.attributes[name]).value for name in ("asm_string", "constraints"))
        ties = [kind for kind in constraints.split(",") if kind.isdecimal()]
        assert ties == [str(number) for number in range(len(ties))], "sums become others in other registers"
        given = [env[v] for v in op.operands]
        if (text, constraints) == ("", "=r,0"):
            return given
        parts = [v.owner for v in list(op.operands)[-len(ties) :]]
        places = [(part.operands[0], *ir.DenseI64ArrayAttr(part.attributes["position"])) for part in parts]
        assert places == [(places[0][0], number) for number in range(len(ties))], "sums in another order"
        sums = env[places[0][0]]
        if not text:
            assert sums.is_ready, "sums are taken for ready while a product adds to them"
            return [sums]
        found = PRODUCT_OF_ROWS.search(text)
        assert found is not None and self.state.is_fenced, "a product without a fence before it"
        columns, element = int(found["n"]), np.dtype(ELEMENTS[found["a"]])
        assert found["a"] == found["b"] and len(given) == len(ties) + 5 and len(ties) == columns // 2
        words = np.stack(given[:4], 1).astype(np.int32)
        right = Matrix.of(_one(given[4], active), columns, found["is_transposed"] == "0", element.itemsize)
        return self._begin(sums, (words.view(element), right), columns, element, True)

    def _begin(
        self, sums: Sums, sides: tuple[Matrix | Lanes, Matrix], columns: int, element: np.dtype, adds: bool
    ) -> list[Sums]:
        assert sums.data.shape[1] == columns // 2 and columns % 16 == 0 and columns <= 256
        poison = np.nan if sums.data.dtype.kind == "f" else 0x5A5A5A5A
        product = Product(Sums(np.full_like(sums.data, poison), False), sums, sides, element, adds)
        for side in product.matrices:
            self._at(side.addresses)
            for copy in self.under_way:
                read = (side.addresses >= copy.target) & (side.addresses < copy.end)
                assert not read.any(), "a product reads what has not landed"
        self.state.products.append(product)
        return [product.result]

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
        left, right = product.sides
        a = self._elements(left, product.element) if isinstance(left, Matrix) else rows_of(left[active])
        b = self._elements(right, product.element)
        # Warp w has rows from 16 w on; its lane 4 g + t rows g and g + 8, and of each 8 columns those from 2 t on.
        added = (a @ b.T).astype(product.sums.data.dtype)
        added = added.reshape(4, 2, 8, -1, 4, 2).transpose(0, 2, 4, 3, 1, 5).reshape(WARPGROUP, -1)
        product.result.data[...] = product.sums.data
        product.result.data[active] = added + (product.sums.data[active] if product.adds else 0)
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
