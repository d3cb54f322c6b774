# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Atomic operations of GPU kernels: their machine code, and how the emulator runs them."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest

from shlo_disc.lowering.codegen import assemble
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from tests.gpu.checks import compiled
from tests.gpu.marks import needs_libdevice
from tests.gpu.test_scatter import BITS
from tests.ir.gpu_cases import TARGETS
from tests.ir.gpu_emulator import Emulator

# ---- machine code ---------------------------------------------------------------------------------------------------

SWAP = ("atom.relaxed.gpu.global.cas.b32",)
WIDE_SWAP = ("atom.relaxed.gpu.global.cas.b64",)

INSTRUCTIONS = {
    ("f32", "add"): ("atom.global.add.f32",),
    ("f64", "add"): ("atom.global.add.f64",),
    ("f16", "add"): ("atom.global.add.noftz.f16",),
    ("i32", "add"): ("atom.global.add.u32",),
    ("ui64", "add"): ("atom.global.add.u64",),
    ("i32", "maximum"): ("atom.global.max.s32",),
    ("ui64", "minimum"): ("atom.global.min.u64",),
    ("i64", "and"): ("atom.global.and.b64",),
    ("i1", "or"): ("atom.global.or.b32",),
    ("f32", "maximum"): SWAP,
    ("i32", "multiply"): SWAP,
    ("f64", "multiply"): WIDE_SWAP,
    ("i8", "add"): SWAP,
    ("ui16", "maximum"): SWAP,
    ("bf16", "multiply"): SWAP,
    ("i1", "add"): SWAP,
    ("i4", "add"): SWAP,
    ("ui4", "maximum"): SWAP,
    ("f8E4M3FN", "add"): SWAP,
    ("f8E5M2", "multiply"): SWAP,
}
"""Instructions that combine an element, on every architecture."""


@functools.cache
def ptx_of(kind: str, body: str, target: str) -> str:
    return compiled(BITS.replace("TYPE", kind).replace("BODY", body), target=target).as_text("ptx")


def atomics_in(ptx: str) -> tuple[str, ...]:
    return tuple(sorted(set(re.findall(r"\b((?:atom|red)\.[\w.]+)", ptx))))


@needs_libdevice
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("kind", "body"), INSTRUCTIONS)
def test_the_instruction_for_a_combination(kind: str, body: str, target: str) -> None:
    ptx = ptx_of(kind, body, target)
    assert atomics_in(ptx) == INSTRUCTIONS[kind, body]
    assert "fence" not in ptx and "membar" not in ptx and "acq_rel" not in ptx


@needs_libdevice
def test_sums_of_bf16_are_an_instruction_from_sm_90_on() -> None:
    assert atomics_in(ptx_of("bf16", "add", "cuda:sm_80")) == SWAP
    assert atomics_in(ptx_of("bf16", "add", "cuda:sm_90")) == ("atom.global.add.noftz.bf16",)


@needs_libdevice
@pytest.mark.parametrize("kind", ["i8", "ui16", "bf16", "i1"])
def test_a_narrow_element_is_swapped_within_the_aligned_word_that_it_is_in(kind: str) -> None:
    """The word's address is a multiple of 4, and what is put in it is its other bits as they were."""
    ptx = ptx_of(kind, "multiply" if kind == "bf16" else "add", "cuda:sm_80")
    (address,) = set(re.findall(r"atom\.relaxed\.gpu\.global\.cas\.b32\s+%r\d+, \[(%rd\d+)\]", ptx))
    assert re.search(rf"and\.b64\s+{address}, %rd\d+, -4;", ptx)


@needs_libdevice
@pytest.mark.ptxas
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("kind", "body"), INSTRUCTIONS)
def test_atomics_assemble(kind: str, body: str, target: str) -> None:
    assert assemble(ptx_of(kind, body, target), target.removeprefix("cuda:")).startswith(b"\x7fELF")


# ---- the emulator ---------------------------------------------------------------------------------------------------

KERNEL = """
module attributes {gpu.container_module} {
gpu.module @kernels {
  gpu.func @k(%a: memref<TYPE, #gpu.address_space<global>>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    %n = arith.constant 5 : index
    %zero = arith.constant 0 : index
    %b = memref.reinterpret_cast %a to offset: [0], sizes: [5], strides: [1]
      : memref<TYPE, #gpu.address_space<global>> to memref<5xTYPE, #gpu.address_space<global>>
    %t = gpu.thread_id x
    %i = arith.remui %t, %n : index
    %w = arith.index_cast %t : index to i32
    %g = gpu.block_id x
    BODY
    gpu.return
  }
}}"""

ADD = """%r = memref.atomic_rmw addi %w, %b[%i] : (i32, memref<5xi32, #gpu.address_space<global>>) -> i32"""
KEEP_LAST = """%r = memref.generic_atomic_rmw %b[%i] : memref<5xi32, #gpu.address_space<global>> {
      ^bb0(%old: i32):
        %two = arith.constant 2 : i32
        %twice = arith.muli %old, %two : i32
        %sum = arith.addi %twice, %w : i32
        memref.atomic_yield %sum : i32
    }"""


def launch(body: str, memory: np.ndarray, blocks: int = 1) -> None:
    with make_context(), ir.Location.unknown():
        text = KERNEL.replace("BODY", body).replace("TYPE", "i32")
        Emulator(ir.Module.parse(text)).launch("k", blocks, [memory], [])


def test_every_thread_that_meets_another_has_its_turn() -> None:
    memory = np.zeros(5, np.int32)
    launch(ADD, memory, blocks=3)
    np.testing.assert_array_equal(memory, [3 * sum(range(i, 64, 5)) for i in range(5)])


def test_turns_are_not_in_the_order_of_threads() -> None:
    memory, forwards, backwards = np.zeros(5, np.int32), np.zeros(5, np.int32), np.zeros(5, np.int32)
    launch(KEEP_LAST, memory)
    for t in range(64):
        forwards[t % 5] = forwards[t % 5] * 2 + t
        backwards[(63 - t) % 5] = backwards[(63 - t) % 5] * 2 + 63 - t
    np.testing.assert_array_equal(memory, backwards)
    assert (memory != forwards).all()


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ("%v = memref.load %b[%zero] : memref<5xi32, #gpu.address_space<global>>", "one does so by an atomic"),
        ("memref.store %w, %b[%i] : memref<5xi32, #gpu.address_space<global>>", "one writes it"),
    ],
)
def test_other_accesses_beside_atomics_are_races(other: str, what: str) -> None:
    with pytest.raises(AssertionError, match=what):
        launch(f"{ADD}\n    {other}", np.zeros(5, np.int32))
    with pytest.raises(AssertionError, match="two blocks"):
        alone = f"""%first = arith.cmpi eq, %t, %zero : index
          scf.if %first {{
            %one = arith.cmpi eq, %g, %zero : index
            scf.if %one {{ {ADD} }} else {{ {other} }}
          }}"""
        launch(alone, np.zeros(5, np.int32), blocks=2)


def test_an_atomic_outside_of_its_tensor() -> None:
    with pytest.raises(AssertionError, match="outside a size of 5"):
        launch(ADD.replace("[%i]", "[%t]"), np.zeros(64, np.int32))
