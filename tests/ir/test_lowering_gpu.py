# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPU target: the plan it shares with the CPU, kernels that parse again, assemble, and compute XLA's numbers.

Nothing here needs a GPU: kernels run in an emulator, which also looks for races and accesses outside a tensor. On one
they run by `tests/gpu/test_on_gpu.py`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.driver.compiler import import_stage, run_pipeline
from shlo_disc.errors import DiscError, UnsupportedError
from shlo_disc.lowering.codegen import assemble, cuda_toolkit
from shlo_disc.lowering_gpu import MAX_BLOCKS, build_gpu_kernels, device_module
from shlo_disc.runtime import Artifact
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from tests.ir.gpu_cases import CASES, TARGETS, Run, arrays, assert_close, emulated, launches_of, lowered
from tests.ir.gpu_emulator import Emulator
from tests.run.op_check import random_array

NAMES = sorted(CASES)


def available(find: Callable[[], Path]) -> bool:
    """Tells whether a part of NVIDIA's toolkit is installed."""
    try:
        find()
    except DiscError:
        return False
    return True


needs_libdevice = pytest.mark.skipif(
    not available(cuda_toolkit.find_libdevice), reason="libdevice is absent: pip install '.[cuda]'"
)


@pytest.fixture(autouse=True)
def _doubles() -> Any:
    with jax.enable_x64(True):
        yield


@functools.cache
def program(name: str, target: str) -> Any:
    """A case compiled for a target."""
    case = CASES[name]
    with jax.enable_x64(True):
        return shlo_disc.compile(case.function, target=target, args=case.arguments)


# ---- text ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_lowered_text_parses_again(name: str) -> None:
    text = str(lowered(name).snapshots["host"])
    with make_context() as context:
        module = ir.Module.parse(text, context)
        assert module.operation.verify()
        assert str(module) == text


OTHER_PLANS = (
    "any_and_all", "argmax", "argmin_of_integers", "attention", "attention_groups", "attention_heads",
    "attention_narrow", "best", "columns", "cumulative", "decoding", "decoding_narrow", "doubles", "in_place",
    "narrow_sums", "product", "product_gelu", "product_in_columns", "product_narrow", "product_of_bytes",
    "product_pairs", "product_residual", "sorted", "whole",
)  # fmt: skip


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OTHER_PLANS])
def test_both_targets_take_the_same_plan(name: str) -> None:
    """But for attention, whose rows processors have whole, for products of 16-bit floats into their own type, for long
    reductions to few elements, which GPUs do in parts, for scratch memory where several blocks have parts of a result
    or how many have, for where a library may leave a product's sums, and for products by narrow weights."""
    case = CASES[name]
    cpu = shlo_disc.compile(case.function, args=case.arguments)
    assert str(lowered(name).snapshots["plan"]).replace("accumulators = 0 : i64, ", "") == cpu.as_text("plan")


def test_products_of_16_bit_floats_round_their_sums() -> None:
    plan = str(lowered("product_in_columns").snapshots["plan"])
    assert re.search(r"stablehlo\.dot_general .*-> tensor<\?x5xf16", plan) and "stablehlo.convert" not in plan


@pytest.mark.parametrize("name", NAMES)
def test_one_kernel_for_each_distinct_fusion(name: str) -> None:
    c = lowered(name)
    kernels = re.findall(r"gpu\.func @(\w+)\(", str(c.snapshots["host"]))
    assert len(set(kernels)) == len(kernels)
    assert {launch.name for launch in launches_of(c)} <= set(kernels) == used_kernels(str(c.snapshots["host"]))


def used_kernels(host: str) -> set[str]:
    """Those that the ops of a host program name."""
    return set(re.findall(r"kernel = @(\w+)", host))


def test_kernels_take_raw_pointers_then_sizes() -> None:
    text = str(lowered("transpose").snapshots["host"])
    pointer = "memref<f32, #gpu.address_space<global>>"
    arguments = re.findall(r"gpu\.func @\w+\((.*)\) kernel", text)
    types = [[argument.split(": ")[1] for argument in one.split(", %")] for one in arguments]
    assert types == [[pointer, pointer, *["index"] * (len(types[0]) - 2)]] and len(types[0]) > 4


def test_fusions_with_equal_bodies_share_a_kernel() -> None:
    def twice(x: Any, y: Any) -> Any:
        return jax.nn.softmax(x), jax.nn.softmax(y)

    start = import_stage(twice, TARGETS[0], shlo_disc.Options(), (("a, b", "float32"), ("c, d", "float32")), None, ())
    launches = launches_of(run_pipeline(start, "host"))
    assert len(launches) == 2 and launches[0].name == launches[1].name
    assert [str(s) for s in launches[0].sizes] == ["a", "b"] and [str(s) for s in launches[1].sizes] == ["c", "d"]


def test_row_reductions_have_a_team_a_row_and_loops_a_thread_an_element() -> None:
    (row,) = launches_of(lowered("softmax"))
    (loop,) = launches_of(lowered("transpose"))
    assert row.kind == "row_reduce" and row.threads == loop.threads == 256
    lengths = {0: 2, 32: 2, 33: 5, 1024: 5, 1025: 33, 9000: 33}
    assert {s: row.blocks.evaluate({"b": 33, "s": s}) for s in lengths} == lengths
    assert loop.kind == "loop" and loop.blocks.evaluate({"b": 3, "s": 11}) == -(-3 * 11 * 16 // 256)
    assert row.blocks.evaluate({"b": 2**40, "s": 2000}) == MAX_BLOCKS


# ---- PTX ----------------------------------------------------------------------------------------------------------


@needs_libdevice
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NAMES)
def test_ptx_has_an_entry_for_each_kernel(name: str, target: str) -> None:
    compiled = program(name, target)
    ptx = compiled.as_text("ptx")
    entries = re.findall(r"\.visible \.entry (\w+)\(", ptx)
    besides = [name for name in entries if name.endswith("_by_maps")]
    names = set(used_kernels(compiled.as_text("host")))
    assert sorted(entries) == sorted([*names, *besides])
    assert {name.removesuffix("_by_maps") for name in besides} <= names and (not besides or target == "cuda:sm_90a")
    assert f".target {target.removeprefix('cuda:')}" in ptx
    assert "call" not in re.sub(r"//.*", "", ptx), "libdevice is inlined"


@needs_libdevice
@pytest.mark.ptxas
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NAMES)
def test_every_kernel_assembles(name: str, target: str) -> None:
    cubin = assemble(program(name, target).as_text("ptx"), target.removeprefix("cuda:"))
    assert cubin.startswith(b"\x7fELF")
    assert all(k.name.encode() in cubin for k in program(name, target).kernels)


@needs_libdevice
def test_divisions_and_square_roots_are_rounded_correctly() -> None:
    ptx = program("functions", TARGETS[0]).as_text("ptx") + program("layer_norm", TARGETS[0]).as_text("ptx")
    assert "sqrt.rn.f32" in ptx and "div.rn.f32" in ptx
    assert not re.search(r"(?<!r)sqrt\.approx|div\.approx|div\.full", ptx)


# ---- numbers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dims", [{"b": 1, "s": 1}, {"b": 3, "s": 7}, {"b": 2, "s": 33}, {"b": 2, "s": 531}], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_kernels_compute_what_xla_computes(name: str, dims: dict[str, int]) -> None:
    given = arrays(CASES[name], dims)
    assert_close(emulated(lowered(name), dims, given), jax.jit(CASES[name].function)(*given), CASES[name].tolerance)


def test_argmax_keeps_the_first_of_equal_elements_and_the_first_nan() -> None:
    c = lowered("argmax")
    rows = np.zeros((5, 700), np.float32)
    rows[1, [40, 333, 699]] = 1
    rows[2, [555, 21]] = np.nan
    rows[3] = -np.inf
    rows[4, 699] = 2
    with c.context, ir.Location.unknown():
        (got,) = Run(c, {"b": 5, "s": 700}, Emulator(device_module(c.module)))([rows])
    np.testing.assert_array_equal(got, [0, 40, 21, 0, 699])
    np.testing.assert_array_equal(got, jnp.argmax(rows, -1))


def test_loops_over_the_grid_have_a_stride() -> None:
    """A kernel is right for any number of blocks."""
    c = lowered("softmax")
    rows = random_array((7, 50), "float32")
    got = np.zeros(7 * 50, np.float32)
    with c.context, ir.Location.unknown():
        Emulator(device_module(c.module)).launch(launches_of(c)[0].name, 3, [rows.reshape(-1), got], [7, 50])
    np.testing.assert_allclose(got.reshape(7, 50), jax.nn.softmax(rows), atol=1e-6)


@pytest.mark.parametrize(("length", "barriers"), [(2000, (0, 1)), (2001, (2, 3))])
@pytest.mark.parametrize("name", ["softmax", "argmax"])
def test_no_barrier_can_be_left_out(name: str, length: int, barriers: tuple[int, ...]) -> None:
    """The emulator sees the race that a missing barrier makes, within a row or from one row to the next."""
    c = lowered(name)
    pieces = re.split(r"(?<=\n) *gpu\.barrier\n", str(c.snapshots["host"]))
    assert len(pieces) == 5  # of rows in whole vectors, and of others
    for barrier in barriers:
        kept = ["" if i == barrier else "gpu.barrier\n" for i in range(len(pieces) - 1)]
        text = "".join(a + b for a, b in zip(pieces, [*kept, ""], strict=True))
        rows, got = np.ones(3 * length, np.float32), np.zeros(3 * length, np.float64)
        with c.context, ir.Location.unknown(), pytest.raises(AssertionError, match="two threads touch one element"):
            Emulator(device_module(ir.Module.parse(text))).launch(launches_of(c)[0].name, 1, [rows, got], [3, length])


# ---- what cannot be done ------------------------------------------------------------------------------------------


def test_all_library_calls_are_reported_together() -> None:
    def function(x: Any) -> Any:
        y = jnp.linalg.eigvals(x.T @ x).real
        z = jnp.tanh(y) * x
        return jnp.linalg.eigvals(z.T @ z)

    with pytest.raises(UnsupportedError) as caught:
        shlo_disc.compile(function, target="cuda:sm_90", args=(("b, 64", "float32"),))
    first = function.__code__.co_firstlineno
    constructs = caught.value.constructs
    assert [c.op for c in constructs] == ["stablehlo.custom_call (eig)"] * 2
    assert [c.location.rsplit("/", 1)[-1] for c in constructs] == [
        f"{Path(__file__).name}:{first + line}" for line in (1, 3)
    ]
    assert all("target='cpu'" in c.suggestion for c in constructs)


@pytest.mark.parametrize("target", ["cuda:sm_70", "rocm", "", "CPU", "cuda:", "cuda:sm_90b"])
def test_unknown_targets_are_refused_with_the_list(target: str) -> None:
    with pytest.raises(DiscError, match="targets are 'cpu', 'cuda', 'cuda:sm_80', 'cuda:sm_90', 'cuda:sm_90a'"):
        shlo_disc.compile(lambda x: x, target=target, args=(("b", "float32"),))


@needs_libdevice
def test_the_program_can_be_read(tmp_path: Path) -> None:
    compiled = program("softmax", "cuda:sm_90")
    assert compiled.target == "cuda:sm_90"
    assert list(compiled.artifact.sections) == ["ptx", "object", "consts", "portable"]
    assert Artifact.deserialize(compiled.artifact.serialize()).header == compiled.artifact.header
    (kernel,) = compiled.artifact.header["kernels"]
    assert kernel["name"] == compiled.kernels[0].name and kernel["threads"] == 256
    assert kernel["where"].rsplit("/", 1)[-1].startswith("gpu_cases.py:")
    with pytest.raises(ValueError, match="no stage 'asm'; stages are import, .*codegen, llvm, ptx, host-llvm"):
        compiled.as_text("asm")
    assert str(compiled.signature).count("f32[b, s]") == 2
    assert compiled.stages == list(compiled.timings)
    assert "nvvm.kernel" in compiled.as_text("codegen") and "gpu.func" not in compiled.as_text("codegen")
    files = compiled.dump(tmp_path)
    assert [f.name for f in files][-2:] == ["8-codegen.ll", "8-codegen.ptx"]
    assert files[-1].read_text() == compiled.as_text("ptx")


def test_lowering_leaves_the_planned_module_as_it_was() -> None:
    c = lowered("layer_norm")
    with c.context, ir.Location.unknown():
        module = ir.Module.parse(str(c.snapshots["plan"]))
        before = str(module)
        build_gpu_kernels(module, c.facts)
        assert str(module) == before
