# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs gpu.func kernels with NumPy: blocks one after the other, the threads of a block as lanes of one array.

Beyond results it checks what hardware does not: every access lies inside its tensor, no active thread divides by zero,
all threads of a block reach each barrier and shuffle together, no thread touches what another thread of its block wrote
since the last barrier, no block touches what another block wrote, and accesses of vectors are aligned as they say.
Atomic operations may meet in an element, in an order that no kernel may count on, but nothing else may touch it
meanwhile.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from shlo_disc.shape_dialect.dtypes import BY_MLIR, numpy_dtype
from shlo_disc.shape_dialect.mlir import ir
from tests.ir.gpu_accesses import Accesses
from tests.ir.gpu_hopper import TensorMap, Warpgroups, shared_bytes_of
from tests.ir.gpu_intrinsics import INTRINSICS
from tests.ir.gpu_vectors import VectorOps, of_each

WARP = 32

Lanes = np.ndarray
Env = dict[ir.Value, Any]

NARROW = {"i2": ml_dtypes.int2, "i4": ml_dtypes.int4, "i6": np.uint8}
"""Integers of fewer bits than a byte. Those of six bits are codes of floats."""

DTYPES = {
    **NARROW, **{kind.mlir: numpy_dtype(kind) for kind in BY_MLIR.values() if kind.mlir[0] == "f" and kind.bits <= 8},
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "i1": np.bool_,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "index": np.int64,
}  # fmt: skip


def dtype_of(type_: ir.Type) -> np.dtype:
    """The NumPy dtype of a scalar, or of the elements of a memref or a vector."""
    element = type_.element_type if isinstance(type_, ir.MemRefType | ir.VectorType) else type_
    return np.dtype(DTYPES[str(element)])


def shape_of(type_: ir.Type) -> list[int]:
    """The sizes of a vector; a scalar has none."""
    return list(type_.shape) if isinstance(type_, ir.VectorType) else []


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
        for holder in module.body.operations:
            for op in holder.regions[0].blocks[0].operations:
                name = ir.StringAttr(op.attributes["sym_name"]).value
                if op.operation.name == "memref.global":
                    self.globals[name] = ir.MemRefType(ir.TypeAttr(op.attributes["type"]).value)
                else:
                    self.functions[name] = op

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
        grid = Accesses()
        for number in range(blocks):
            block = Block(self.globals, number, blocks, threads, self.shared_bytes(name))
            env = dict(zip(entry.arguments, arguments, strict=True))
            with np.errstate(all="ignore"):
                block.run_warpgroups(entry, env) if maps else block.run(entry, env, np.ones(threads, bool))
            block.check_races()
            for addresses, is_write in block.global_accesses:
                grid.add(addresses, np.full_like(addresses, number), is_write)
            for addresses in block.global_atomics:
                grid.add_atomic(addresses, np.full_like(addresses, number))
        grid.check("blocks")


class Block(VectorOps, Warpgroups):
    """One block of a launch."""

    _dtype_of = staticmethod(dtype_of)

    def __init__(
        self, globals_: dict[str, ir.MemRefType], number: int, blocks: int, threads: int, shared_bytes: int = 0
    ):
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
        self.global_accesses: list[tuple[np.ndarray, bool]] = []
        self.global_atomics: list[np.ndarray] = []
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
        return [self.shared[ir.FlatSymbolRefAttr(op.attributes["name"]).value]]

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
            self.global_accesses.append((addresses, is_write))
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
        """Lanes that meet in an element take turns, the last one first."""
        assert not any(True for _ in op.results[0].uses), "MLIR's text does not say if it is the old value or the new"
        waiting = active.copy()
        if active.any():
            offsets = view.offsets(indices, active)
            addresses = view.addresses(offsets)[active]
            self.since_barrier.add_atomic(addresses, self.lane[active])
            if not self._is_shared(view):
                self.global_atomics.append(addresses)
        while waiting.any():
            lanes = self.lane[waiting][::-1]
            turn = np.zeros_like(active)
            turn[lanes[np.unique(offsets[lanes], return_index=True)[1]]] = True
            view.data[offsets[turn]] = update(view.data[offsets], turn)[turn]
            waiting &= ~turn
        return np.zeros(self.threads, view.data.dtype)

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

    def _nvvm_bar_warp_sync(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        warps = active.reshape(-1, WARP)
        assert (warps.all(1) == warps.any(1)).all(), "not all threads of a warp meet"
        assert (env[op.operands[0]][active] == -1).all()
        self.since_barrier.check("threads")
        self.since_barrier.move(self.of_warps, active, WARP)
        return []

    def _gpu_shuffle(self, op: ir.OpView, env: Env, active: Lanes) -> list[Lanes]:
        assert active.all(), "not all threads reach a shuffle"
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


# ---- scalar ops ----------------------------------------------------------------------------------------------------


def unsigned(value: Lanes) -> Lanes:
    """The same bits as unsigned integers; booleans as bytes."""
    if value.dtype in NARROW_DTYPES:
        return value.view(np.uint8) & ((1 << len(bits_of(value))) - 1)
    return value.astype(np.uint8) if value.dtype == np.bool_ else value.view(f"u{value.dtype.itemsize}")


def wide(value: Lanes) -> Lanes:
    """Integers whose sign bit is copied: a true i1 is -1."""
    if value.dtype in NARROW_DTYPES:
        return value.astype(np.int8)
    return -value.astype(np.int8) if value.dtype == np.bool_ else value


def compare_integers(op: ir.OpView, _: np.dtype, a: Lanes, b: Lanes) -> Lanes:
    """arith.cmpi."""
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    a, b = (unsigned(a), unsigned(b)) if predicate >= 6 else (wide(a), wide(b))
    functions = [np.equal, np.not_equal, *[np.less, np.less_equal, np.greater, np.greater_equal] * 2]
    return functions[predicate](a, b)


def compare_floats(op: ir.OpView, _: np.dtype, a: Lanes, b: Lanes) -> Lanes:
    """arith.cmpf: predicates 1 to 6 are false on NaN, 8 to 13 are true."""
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    nan = np.isnan(a) | np.isnan(b)
    if predicate in (7, 14):
        return ~nan if predicate == 7 else nan
    functions = [np.equal, np.greater, np.greater_equal, np.less, np.less_equal, np.not_equal]
    result = functions[(predicate - 1) % 7](a, b)
    return result & ~nan if predicate < 7 else result | nan


def of_unsigned(function: Callable[..., Lanes]) -> Callable[..., Lanes]:
    """An op on unsigned integers; the result has the bits of the unsigned one."""

    def apply(_: ir.OpView, dtype: np.dtype, *operands: Lanes) -> Lanes:
        result = function(*map(unsigned, operands))
        if dtype in NARROW_DTYPES:
            return result.astype(np.int8)
        return result if dtype.kind == "f" or result.dtype.itemsize != dtype.itemsize else result.view(dtype)

    return apply


def plain(function: Callable[..., Lanes]) -> Callable[..., Lanes]:
    """An op that NumPy computes in the operands' own type, on integers of fewer bits than a byte in bytes."""

    def apply(_: ir.OpView, dtype: np.dtype, *operands: Lanes) -> Lanes:
        return function(*(wide(x) if x.dtype in NARROW_DTYPES else x for x in operands))

    return apply


def same_bits(_: ir.OpView, dtype: np.dtype, x: Lanes) -> Lanes:
    """arith.bitcast."""
    return (unsigned(x) if x.dtype in NARROW_DTYPES else x).view(dtype)


def lowest_bits(_: ir.OpView, dtype: np.dtype, x: Lanes) -> Lanes:
    """arith.trunci."""
    return wide(x) & {np.dtype(np.bool_): 1, np.dtype(np.uint8): 63}.get(dtype, -1)


def signed_quotient(_: ir.OpView, __: np.dtype, a: Lanes, b: Lanes) -> Lanes:
    """arith.divsi rounds towards zero."""
    return np.trunc(wide(a).astype(np.longdouble) / wide(b).astype(np.longdouble))


def fused(_: ir.OpView, __: np.dtype, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """math.fma."""
    wide = np.float64 if a.dtype == np.float32 else np.longdouble
    return a.astype(wide) * b + c


def away_from_zero(x: Lanes) -> Lanes:
    """math.round: to the nearest integer, of two equally near the one further from zero."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole).astype(x.dtype)


def ones(_: ir.OpView, __: np.dtype, x: Lanes) -> Lanes:
    """math.ctpop."""
    return sum((unsigned(x) >> i & 1).astype(np.int8) for i in bits_of(x))


def leading_zeros(_: ir.OpView, __: np.dtype, x: Lanes) -> Lanes:
    """math.ctlz."""
    return len(bits_of(x)) - sum((unsigned(x) >> i != 0).astype(np.int8) for i in bits_of(x))


def bits_of(x: Lanes) -> range:
    """The bits of an integer."""
    return range({np.dtype(ml_dtypes.int2): 2, np.dtype(ml_dtypes.int4): 4}.get(x.dtype, 8 * x.dtype.itemsize))


NARROW_DTYPES = (np.dtype(ml_dtypes.int2), np.dtype(ml_dtypes.int4))

DIVISIONS = {"arith.divui", "arith.remui", "arith.divsi", "arith.remsi"}

SCALARS: dict[str, Callable[..., Lanes]] = {
    "arith.addf": plain(np.add), "arith.addi": plain(np.add), "arith.andi": plain(np.bitwise_and),
    "arith.bitcast": same_bits, "arith.cmpf": compare_floats, "arith.cmpi": compare_integers,
    "arith.divf": plain(np.divide), "arith.divsi": signed_quotient, "arith.divui": of_unsigned(np.floor_divide),
    "arith.extf": plain(np.asarray), "arith.extsi": plain(wide), "arith.extui": of_unsigned(np.asarray),
    "arith.fptosi": plain(np.trunc), "arith.fptoui": plain(np.trunc), "arith.index_cast": plain(wide),
    "arith.index_castui": of_unsigned(np.asarray), "arith.maximumf": plain(np.maximum),
    "arith.maxsi": plain(np.maximum), "arith.maxui": of_unsigned(np.maximum), "arith.minimumf": plain(np.minimum),
    "arith.minsi": plain(np.minimum), "arith.minui": of_unsigned(np.minimum), "arith.mulf": plain(np.multiply),
    "arith.muli": plain(np.multiply), "arith.negf": plain(np.negative), "arith.ori": plain(np.bitwise_or),
    "arith.remsi": plain(np.fmod), "arith.remui": of_unsigned(np.remainder),
    "arith.shli": plain(np.left_shift), "arith.shrsi": plain(np.right_shift),
    "arith.shrui": of_unsigned(np.right_shift), "arith.sitofp": plain(wide), "arith.subf": plain(np.subtract),
    "arith.subi": plain(np.subtract), "arith.truncf": plain(np.asarray),
    "arith.trunci": lowest_bits, "arith.uitofp": of_unsigned(np.asarray),
    "arith.xori": plain(np.bitwise_xor), "math.absf": plain(np.abs), "math.atan2": plain(np.arctan2),
    "math.cbrt": plain(np.cbrt), "math.ceil": plain(np.ceil), "math.copysign": plain(np.copysign),
    "math.ctlz": leading_zeros, "math.ctpop": ones,
    "math.cos": plain(np.cos), "math.exp": plain(np.exp), "math.expm1": plain(np.expm1),
    "math.floor": plain(np.floor), "math.fma": fused, "math.log": plain(np.log), "math.log1p": plain(np.log1p),
    "math.powf": plain(np.power), "math.round": plain(away_from_zero),
    "math.roundeven": plain(np.rint), "math.rsqrt": plain(lambda x: 1 / np.sqrt(x)),
    "math.sin": plain(np.sin), "math.sqrt": plain(np.sqrt), "math.tan": plain(np.tan), "math.tanh": plain(np.tanh),
}  # fmt: skip

ATOMICS: dict[int, Callable[..., Lanes]] = {
    0: SCALARS["arith.addf"], 1: SCALARS["arith.addi"], 2: SCALARS["arith.andi"], 3: plain(lambda old, new: new),
    6: SCALARS["arith.maxsi"], 7: SCALARS["arith.maxui"], 10: SCALARS["arith.minsi"], 11: SCALARS["arith.minui"],
    14: SCALARS["arith.ori"], 15: SCALARS["arith.xori"],
}  # fmt: skip
"""By the number of an AtomicRMWKind."""
