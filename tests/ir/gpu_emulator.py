# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs gpu.func kernels with NumPy: blocks one after the other, the threads of a block as lanes of one array.

Beyond results it checks what hardware does not: every access lies inside its tensor, no active thread divides by zero,
all threads of a block reach each barrier and shuffle together, no thread touches what another thread of its block wrote
since the last barrier, no block touches what another block wrote but where fences order that (`gpu_order.py`), and
accesses of vectors are aligned as they say. A module's variables in the memory of the device last as the emulator does.
Atomic operations may meet in an element, in an order that no kernel may count on, but nothing else may touch it
meanwhile.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shlo_disc.shape_dialect.mlir import ir
from tests.ir.gpu_accesses import Accesses
from tests.ir.gpu_hopper import Warpgroups, shared_bytes_of
from tests.ir.gpu_hopper_state import TensorMap
from tests.ir.gpu_intrinsics import INTRINSICS
from tests.ir.gpu_order import BlockOrder, DeviceOrder
from tests.ir.gpu_scalars import ATOMICS, DIVISIONS, SCALARS, dtype_of, shape_of
from tests.ir.gpu_vectors import VectorOps, of_each

WARP = 32

Lanes = np.ndarray
Env = dict[ir.Value, Any]


@dataclass
class View:
    """A strided tensor over a flat array, whose element `start` is its first one."""

    data: np.ndarray
    sizes: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    start: int = 0

    def offsets(self, indices: Sequence[Lanes], active: Lanes) -> Lanes:
        """The element each lane stands at; fails for an active lane that stands outside."""
        total = np.full(active.shape, self.start, np.int64)
        for index, size, stride in zip(indices, self.sizes, self.strides, strict=True):
            wrong = active & ((index < 0) | (index >= size))
            assert not wrong.any(), f"index {index[wrong][0]} is outside a size of {size}"
            total = total + index * stride
        return np.where(active, total, 0)

    def addresses(self, offsets: Lanes) -> Lanes:
        """The addresses of the elements in memory, in bytes."""
        return self.data.__array_interface__["data"][0] + offsets * self.data.itemsize


class Emulator:
    """The kernels of a lowered module; `launch` runs one."""

    def __init__(self, module: ir.Module):
        self.module = module
        self.functions: dict[str, ir.OpView] = {}
        self.globals: dict[str, ir.MemRefType] = {}
        self.variables: dict[str, View] = {}
        for holder in module.body.operations:
            for op in holder.regions[0].blocks[0].operations:
                name = ir.StringAttr(op.attributes["sym_name"]).value
                if op.operation.name == "memref.global":
                    self._declare(name, ir.MemRefType(ir.TypeAttr(op.attributes["type"]).value))
                else:
                    self.functions[name] = op

    def _declare(self, name: str, type_: ir.MemRefType) -> None:
        """A variable, of the device or of each block."""
        if "workgroup" in str(type_.memory_space):
            self.globals[name] = type_
        else:
            self.variables[name] = View(np.zeros(type_.shape, dtype_of(type_)), tuple(type_.shape), (1,))

    def threads(self, name: str) -> int:
        """The number of threads in a block of a kernel."""
        return list(ir.DenseI32ArrayAttr(self.functions[name].attributes["known_block_size"]))[0]

    def shared_bytes(self, name: str) -> int:
        """The bytes of shared memory that a launch of a kernel has to ask for, beyond what it declares."""
        return shared_bytes_of(self.functions[name])

    def launch(
        self,
        name: str,
        blocks: int,
        pointers: Sequence[np.ndarray],
        sizes: Sequence[int],
        maps: Sequence[TensorMap] = (),
    ) -> None:
        """Run a kernel on flat arrays, which it changes in place. One that is told tensor maps has warpgroups that wait
        for each other."""
        function = self.functions[name]
        threads = self.threads(name)
        entry = function.regions[0].blocks[0]
        arguments: list[Any] = [*maps, *(View(p) for p in pointers)]
        arguments += [np.full(threads, size, np.int64) for size in sizes]
        device = DeviceOrder()
        for number in range(blocks):
            block = Block(self.globals, number, blocks, threads, self.shared_bytes(name), self.variables, device)
            env = dict(zip(entry.arguments, arguments, strict=True))
            with np.errstate(all="ignore"):
                block.run_warpgroups(entry, env) if maps else block.run(entry, env, np.ones(threads, bool))
            block.check_races()
        device.check()


class Block(VectorOps, Warpgroups):
    """One block of a launch."""

    _dtype_of = staticmethod(dtype_of)

    def __init__(
        self,
        globals_: dict[str, ir.MemRefType],
        number: int,
        blocks: int,
        threads: int,
        shared_bytes: int = 0,
        variables: dict[str, View] | None = None,
        device: DeviceOrder | None = None,
    ):
        self.variables = variables or {}
        self.shared = {
            name: View(np.full(type_.shape, 77, dtype_of(type_)), tuple(type_.shape), (1,))
            for name, type_ in globals_.items()
        }
        self.threads = threads
        self.lane = np.arange(threads, dtype=np.int64)
        self.places = {
            "gpu.block_id": np.full(threads, number, np.int64),
            "gpu.grid_dim": np.full(threads, blocks, np.int64),
            "gpu.block_dim": np.full(threads, threads, np.int64),
            "gpu.thread_id": self.lane,
        }
        self.since_barrier, self.of_warps = Accesses(), Accesses()
        self.order = BlockOrder(device or DeviceOrder(), number)
        self.begin_copies()
        self.begin_warpgroups(number, shared_bytes)

    def run(self, block: ir.Block, env: Env, active: Lanes) -> list[Lanes]:
        """Run a block's ops for the active lanes; gives what its terminator yields."""
        for op in block.operations:
            name = op.operation.name
            if name in ("scf.yield", "scf.condition", "gpu.return", "memref.atomic_yield"):
                return [env[v] for v in op.operands]
            handler = getattr(self, "_" + name.replace(".", "_"), None)
            if handler is not None:
                results = handler(op, env, active)
            elif name in self.places:
                results = [self.places[name]]
            else:
                results = [self._scalar(op, [env[v] for v in op.operands], active)]
            env.update(zip(op.results, results, strict=True))
        raise AssertionError("a block without a terminator")

    def _scalar(self, op: ir.OpView, operands: list[Lanes], active: Lanes) -> Lanes:
        name, dtype = op.operation.name, dtype_of(op.results[0].type)
        if name in DIVISIONS:
            assert not (of_each(active, operands[1]) & (operands[1] == 0)).any(), f"{name} by zero"
            operands[1] = np.where(operands[1] == 0, np.ones_like(operands[1]), operands[1])
        return np.asarray(SCALARS[name](op, dtype, *operands)).astype(dtype, copy=False)

    def _llvm_call_intrinsic(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        return [INTRINSICS[ir.StringAttr(op.attributes["intrin"]).value](*(env[v] for v in op.operands))]

    def _arith_constant(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        shape, value = (self.threads, *shape_of(op.results[0].type)), op.attributes["value"]
        number = value.get_splat_value() if isinstance(value, ir.DenseElementsAttr) else value
        return [np.full(shape, number.value, dtype_of(op.results[0].type))]

    # ---- memory ---------------------------------------------------------------------------------------------------

    def _memref_reinterpret_cast(self, op: ir.OpView, env: Env, active: Lanes) -> list[View]:
        source, *dynamic = op.operands
        rest = iter(dynamic)

        def known(attribute: str) -> tuple[int, ...]:
            static = ir.DenseI64ArrayAttr(op.attributes[attribute])
            return tuple(int(env[next(rest)][0]) if s == ir.ShapedType.get_dynamic_size() else s for s in static)

        (offset,) = known("static_offsets")
        sizes = known("static_sizes")
        return [View(env[source].data, sizes, known("static_strides"), env[source].start + offset)]

    def _memref_view(self, op: ir.OpView, env: Env, active: Lanes) -> list[View]:
        """A tensor over some bytes, of static sizes."""
        source, shift = (env[v] for v in op.operands)
        type_ = ir.MemRefType(op.results[0].type)
        dtype, sizes, start = dtype_of(type_), tuple(type_.shape), int(shift[0])
        assert start % dtype.itemsize == 0, f"elements of {dtype} at byte {start}"
        data = source.data[start : start + math.prod(sizes) * dtype.itemsize].view(dtype)
        return [View(data, sizes, tuple(math.prod(sizes[i + 1 :]) for i in range(len(sizes))))]

    def _is_shared(self, view: View) -> bool:
        """Tells whether it is in the memory of the block."""
        return any(np.may_share_memory(view.data, s.data) for s in self.shared.values())

    def _memref_get_global(self, op: ir.OpView, env: Env, active: Lanes) -> list[View]:
        name = ir.FlatSymbolRefAttr(op.attributes["name"]).value
        return [self.variables[name] if name in self.variables else self.shared[name]]

    def _memref_load(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        buffer, *indices = op.operands
        return [self._touch(env[buffer], [env[i] for i in indices], active, None)]

    def _memref_store(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        value, buffer, *indices = op.operands
        self._touch(env[buffer], [env[i] for i in indices], active, env[value])
        return []

    def _touch(self, view: View, indices: list[Lanes], active: Lanes, value: Lanes | None) -> Lanes:
        if not active.any():
            return np.zeros(self.threads, view.data.dtype)
        offsets = view.offsets(indices, active)
        addresses, is_write = view.addresses(offsets)[active], value is not None
        self.since_barrier.add(addresses, self.lane[active], is_write)
        if not self._is_shared(view):
            self.order.add(addresses, is_write, int(self.lane[active][0]) if len(addresses) == 1 else -1)
        if is_write:
            view.data[offsets[active]] = value[active]
            return value
        return view.data[offsets]

    # ---- atomic operations ----------------------------------------------------------------------------------------

    def _memref_atomic_rmw(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        value, buffer, *indices = op.operands
        combine = ATOMICS[ir.IntegerAttr(op.attributes["kind"]).value]
        dtype = dtype_of(value.type)

        def update(old: Lanes, _: Lanes) -> Lanes:
            return np.asarray(combine(op, dtype, old, env[value])).astype(dtype, copy=False)

        return [self._atomically(op, env[buffer], [env[i] for i in indices], active, update)]

    def _memref_generic_atomic_rmw(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        buffer, *indices = op.operands
        body = op.regions[0].blocks[0]

        def update(old: Lanes, lanes: Lanes) -> Lanes:
            return self.run(body, env | {body.arguments[0]: old}, lanes)[0]

        return [self._atomically(op, env[buffer], [env[i] for i in indices], active, update)]

    def _atomically(
        self, op: ir.OpView, view: View, indices: list[Lanes], active: Lanes, update: Callable[[Lanes, Lanes], Lanes]
    ) -> Lanes:
        """Lanes that meet in an element take turns, the last one first; gives what each finds, as `atomicrmw` does."""
        waiting, before = active.copy(), np.zeros(self.threads, view.data.dtype)
        if active.any():
            offsets = view.offsets(indices, active)
            addresses = view.addresses(offsets)[active]
            self.since_barrier.add_atomic(addresses, self.lane[active])
            if not self._is_shared(view):
                self.order.atomic(addresses, self.lane[active])
        while waiting.any():
            lanes = self.lane[waiting][::-1]
            turn = np.zeros_like(active)
            turn[lanes[np.unique(offsets[lanes], return_index=True)[1]]] = True
            before[turn] = view.data[offsets[turn]]
            view.data[offsets[turn]] = update(view.data[offsets], turn)[turn]
            waiting &= ~turn
        return before

    # ---- threads --------------------------------------------------------------------------------------------------

    def _gpu_barrier(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        if self.roles is not None:
            self._whole(active)
            self._rendezvous()
            return []
        assert active.all(), "not all threads reach a barrier"
        self.check_races()
        return []

    def check_races(self) -> None:
        """All threads have met: those of a warp may have before, those of different ones have not."""
        self.since_barrier.check("threads")
        if self.of_warps.touched:
            self.since_barrier.move(self.of_warps, np.ones(self.threads, bool), WARP)
            self.of_warps.check("warps")
        self.since_barrier, self.of_warps = Accesses(), Accesses()
        self.order.barrier()

    def _llvm_fence(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        assert ir.StringAttr(op.attributes["syncscope"]).value == "device"
        assert ir.IntegerAttr(op.attributes["ordering"]).value == 6, "a fence that orders less than all"
        self.order.fence(self.lane[active])
        return []

    def _nvvm_prmt(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        low, high, selector = (np.ascontiguousarray(env[v]) for v in op.operands)
        bytes_ = np.concatenate([v.view(np.uint8).reshape(-1, 4) for v in (low, high)], 1)
        chosen = selector.reshape(-1, 1) >> np.arange(0, 16, 4) & 0xF
        assert (chosen < 8).all(), "copies of signs"
        return [np.take_along_axis(bytes_, chosen, 1).view(np.int32).reshape(-1)]

    def _nvvm_bar_warp_sync(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        warps = active.reshape(-1, WARP)
        assert (warps.all(1) == warps.any(1)).all(), "not all threads of a warp meet"
        assert (env[op.operands[0]][active] == -1).all()
        self.since_barrier.check("threads")
        self.since_barrier.move(self.of_warps, active, WARP)
        return []

    def _gpu_shuffle(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        self._whole_warps(active)
        value, offset, width = (env[v] for v in op.operands)
        assert (width == WARP).all() and value.dtype.itemsize >= 4
        mode = re.findall(r"\w+", str(op.attributes["mode"]))[-1]
        lane = self.lane % WARP
        source = {"idx": offset, "xor": lane ^ offset}.get(mode, lane + DIRECTIONS.get(mode, 0) * offset)
        valid = (source >= 0) & (source < WARP)
        return [value[np.where(valid, self.lane - self.lane % WARP + source, self.lane)], valid]

    # ---- control flow ---------------------------------------------------------------------------------------------

    def _scf_for(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        place, upper, step, *carried = (env[v] for v in op.operands)
        body = op.regions[0].blocks[0]
        assert (step > 0).all()
        while (inside := active & (place < upper)).any():
            results = self.run(body, env | dict(zip(body.arguments, [place, *carried], strict=True)), inside)
            carried = [chosen(inside, new, old) for new, old in zip(results, carried, strict=True)]
            place = place + step
        return carried

    def _scf_while(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        before, after = (region.blocks[0] for region in op.regions)
        carried = [env[v] for v in op.operands]
        results = [np.zeros((self.threads, *shape_of(r.type)), dtype_of(r.type)) for r in op.results]
        while active.any():
            goes_on, *values = self.run(before, env | dict(zip(before.arguments, carried, strict=True)), active)
            results = [chosen(active, new, old) for new, old in zip(values, results, strict=True)]
            active = active & goes_on
            if not active.any():
                break
            carried = self.run(after, env | dict(zip(after.arguments, values, strict=True)), active)
        return results

    def _arith_select(self, op: ir.OpView, env: Env, active: Lanes) -> list[Any]:
        condition, yes, no = (env[v] for v in op.operands)
        if isinstance(yes, View):
            assert not active.any() or len(np.unique(condition[active])) == 1, "threads choose different tensors"
            return [yes if (condition & active).any() else no]
        return [np.where(of_each(condition, yes), yes, no)]

    def _scf_if(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        condition = env[op.operands[0]]
        results = [np.zeros((self.threads, *shape_of(r.type)), dtype_of(r.type)) for r in op.results]
        for region, taken in zip(op.regions, (active & condition, active & ~condition), strict=True):
            if len(region.blocks) and taken.any():
                values = self.run(region.blocks[0], dict(env), taken)
                results = [chosen(taken, new, old) for new, old in zip(values, results, strict=True)]
        return results


DIRECTIONS = {"down": 1, "up": -1}


def chosen(lanes: Lanes, new: Any, old: Any) -> Any:
    """Selects the new values of some lanes. A tensor is the same one to all, and sums are a whole warpgroup's."""
    return np.where(of_each(lanes, new), new, old) if isinstance(new, np.ndarray) else new
