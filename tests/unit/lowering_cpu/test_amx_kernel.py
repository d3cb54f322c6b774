# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Micro-kernels of AMX: their instructions, and what they compute by an emulation of these on any processor."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np
import pytest

from shlo_disc.lowering.codegen import CpuTarget, code_text, lower_to_llvm, to_llvm_ir
from shlo_disc.lowering_cpu import CpuOptions
from shlo_disc.lowering_cpu.micro_kernels.gemm_format import AMX
from shlo_disc.lowering_cpu.micro_kernels.gemm_kernel import DEPTH, GemmTile, micro_kernels, tile_of
from shlo_disc.shape_dialect.mlir import ir

TARGET = CpuTarget(
    "x86_64-unknown-linux-gnu",
    ("amx-bf16", "amx-int8", "amx-tile", "avx2", "avx512bw", "avx512dq", "avx512f", "avx512vl", "f16c", "fma"),
    512,
)
DTYPES = {"bf16": ml_dtypes.bfloat16, "i8": np.int8, "ui8": np.uint8}


def kernel_text(element: str) -> tuple[GemmTile, str]:
    """The micro-kernel in LLVM IR."""
    tile = tile_of(element, CpuOptions.of(TARGET))
    ((_, text),) = micro_kernels(tile)
    with ir.Context(), ir.Location.unknown():
        return tile, to_llvm_ir(lower_to_llvm(ir.Module.parse(text)))


class Processor:
    """Tile registers, with the checks that the processor makes."""

    def __init__(self, element: str) -> None:
        self.element = element
        self.rows = self.widths = [0] * 16
        self.tiles: dict[int, np.ndarray] = {}

    def ldtilecfg(self, address: int) -> None:
        config = np.frombuffer(ctypes.string_at(address, 64), np.uint8)
        assert config[0] == 1 and not config[1:16].any() and not config[32:48].any() and not config[56:].any()
        self.widths, self.rows = list(config[16:48].view(np.uint16)), list(config[48:])
        assert all(0 < r <= 16 and 0 < w <= 64 for r, w in zip(self.rows[:8], self.widths[:8], strict=True))
        self.tiles = {}

    def tilerelease(self) -> None:
        self.rows, self.tiles = [0] * 16, {}

    def tilezero(self, tile: int) -> None:
        self.tiles[tile] = np.zeros((self.rows[tile], self.widths[tile]), np.uint8)

    def tileloadd64(self, tile: int, address: int, stride: int) -> None:
        rows = [ctypes.string_at(address + i * stride, self.widths[tile]) for i in range(self.rows[tile])]
        self.tiles[tile] = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1).copy()

    def tilestored64(self, tile: int, address: int, stride: int) -> None:
        for i, row in enumerate(self.tiles[tile]):
            ctypes.memmove(address + i * stride, row.tobytes(), len(row))

    def multiply(self, sums: int, left: int, right: int) -> None:
        dtype = np.dtype(DTYPES[self.element])
        wide = np.float32 if self.element == "bf16" else np.int32
        a, b = self.tiles[left].view(dtype), self.tiles[right].view(dtype)
        assert self.widths[left] == 4 * self.rows[right], "words of A and rows of B differ"
        assert (self.rows[sums], self.widths[sums]) == (self.rows[left], self.widths[right])
        elements = 4 // dtype.itemsize
        columns = b.reshape(len(b), -1, elements).swapaxes(1, 2).reshape(len(b) * elements, -1)
        total = self.tiles[sums].view(wide) + a.astype(wide) @ columns.astype(wide)
        self.tiles[sums] = np.ascontiguousarray(total).view(np.uint8)

    def instructions(self) -> dict[str, tuple[Callable[..., None], tuple[Any, ...]]]:
        """The function of each intrinsic, and the types of its operands."""
        byte, address, word = ctypes.c_int8, ctypes.c_void_p, ctypes.c_int64
        return {
            "ldtilecfg": (self.ldtilecfg, (address,)),
            "tilerelease": (self.tilerelease, ()),
            "tilezero": (self.tilezero, (byte,)),
            "tileloadd64": (self.tileloadd64, (byte, address, word)),
            "tilestored64": (self.tilestored64, (byte, address, word)),
            **dict.fromkeys(AMX.values(), (self.multiply, (byte, byte, byte))),
        }


class Emulated:
    """A micro-kernel whose AMX instructions are calls of a `Processor`."""

    def __init__(self, element: str) -> None:
        self.processor, self.failures = Processor(element), []
        self.tile, text = kernel_text(element)
        text = re.sub(r" immarg", "", re.sub(r"@llvm\.x86\.", f"@emulated_{element}_", text))
        self.callbacks = []
        for name, (function, types) in self.processor.instructions().items():
            callback = ctypes.CFUNCTYPE(None, *types)(self._guarded(function))
            self.callbacks.append(callback)
            llvm.add_symbol(f"emulated_{element}_{name}", ctypes.cast(callback, ctypes.c_void_p).value)
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine()
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
        self.engine.finalize_object()
        word, pointer = ctypes.c_int64, ctypes.c_void_p
        type_ = ctypes.CFUNCTYPE(None, word, pointer, pointer, word, pointer, word, word, word, pointer, word)
        self.function = type_(self.engine.get_function_address(self.tile.name))

    def _guarded(self, function: Callable[..., None]) -> Callable[..., None]:
        def run(*operands: Any) -> None:
            try:
                function(*operands)
            except Exception as error:  # ctypes would only print it
                self.failures.append(error)

        return run

    def __call__(self, a: np.ndarray, b: np.ndarray, c: np.ndarray, accumulate: bool) -> None:
        """`a`: rows of words, `b` [k, 32] words, `c`: rows of sums, any number apart."""
        rows, k = a.shape
        blocks = [a[:, i : i + DEPTH] for i in range(0, k, DEPTH)]
        padded = [np.pad(x, ((0, 0), (0, DEPTH - x.shape[1])), constant_values=0x7FC17FC1).ravel() for x in blocks]
        packed = np.concatenate([*padded, np.zeros(0, np.uint32)])
        address = [x.ctypes.data for x in (packed, b, c)]
        step = c.strides[0] // 4
        self.function(rows, address[0], address[1], b.strides[0] // 4, address[2], step, k, int(accumulate), None, 0)
        assert not self.failures, self.failures[0]


@pytest.fixture(scope="module")
def emulated() -> dict[str, Emulated]:
    return {element: Emulated(element) for element in DTYPES}


def words(array: np.ndarray) -> np.ndarray:
    """Neighbours along the last axis as words."""
    return np.ascontiguousarray(array).view(np.uint32)


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("rows", [1, 2, 15, 16, 17, 31, 32])
@pytest.mark.parametrize("k", [0, 1, 15, 16, 17, 63, 64, 65, 100, 384])
def test_all_sizes(emulated: dict[str, Emulated], element: str, rows: int, k: int) -> None:
    rng = np.random.default_rng(rows * 1000 + k)
    dtype = np.dtype(DTYPES[element])
    elements = 4 // dtype.itemsize
    if element == "bf16":
        a, b = (rng.integers(-8, 8, (n, k * elements)).astype(dtype) for n in (rows, 32))
    else:
        limits = np.iinfo(dtype)
        a, b = (rng.integers(limits.min, limits.max, (n, k * elements), dtype, endpoint=True) for n in (rows, 32))
    product = a.astype(np.int64) @ b.astype(np.int64).T
    sums = np.float32 if element == "bf16" else np.int32
    whole = np.full((rows, 40), 7, sums)
    c = whole[:, :32]
    right = words(b).T.copy() if k else np.zeros((0, 32), np.uint32)
    emulated[element](words(a) if k else np.zeros((rows, 0), np.uint32), right, c, False)
    np.testing.assert_array_equal(c, product.astype(sums))
    emulated[element](words(a) if k else np.zeros((rows, 0), np.uint32), right, c, True)
    np.testing.assert_array_equal(c, (2 * product).astype(sums))
    assert (whole[:, 32:] == 7).all()


@pytest.mark.parametrize("element", DTYPES)
def test_instructions(element: str) -> None:
    """Four products of tiles a step, from two tiles of each side."""
    tile, text = kernel_text(element)
    product = AMX[tile.format.multiplier]
    loops = re.split(r"\n(?=\.L\w+:)", code_text("asm", text, TARGET, 3, {tile.name}))
    most = max(loops, key=lambda block: block.count(product))
    assert most.count(product) == 4, most
    assert most.count("tileloadd") == 4, most
