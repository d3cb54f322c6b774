# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPU target: the plan it shares with the CPU, kernels that parse again, assemble, and compute XLA's numbers.

Nothing here needs a GPU: kernels run in an emulator, which also looks for races and accesses outside a tensor.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.codegen import assemble, cuda_toolkit
from shlo_disc.compiler import Compilation, import_stage, run_pipeline
from shlo_disc.errors import DiscError, UnsupportedError
from shlo_disc.gpu_program import GpuLaunch, GpuProgram, gpu_launches
from shlo_disc.lowering_cpu.host.constants import dense_bytes
from shlo_disc.lowering_gpu import MAX_BLOCKS, build_gpu_kernels, device_module
from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.dialect.buffers import Buffer, ResultBuffer, arenas_of, buffers_of
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.dialect.types import bytes_of, dims_of, element_type_of, product
from shlo_disc.shape_dialect.utils.regions import entry_block
from shlo_disc.transforms.views import root
from tests.ir.gpu_emulator import Emulator, dtype_of
from tests.run.op_check import random_array

TARGETS = ("cuda:sm_80", "cuda:sm_90")


class Case(NamedTuple):
    """A program, its arguments as shape and dtype, and an absolute tolerance per unit of the largest result."""

    function: Callable[..., Any]
    arguments: tuple[tuple[str, str], ...]
    tolerance: float = 2e-6


def layer_norm(x: Any, scale: Any, bias: Any) -> Any:
    """Two reductions, the second of values that need the first."""
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * scale + bias


def narrow_floats(x: Any, y: Any) -> Any:
    """f16 and bf16 arithmetic, and conversions between them."""
    return jnp.tanh(x) * 2 + jnp.exp(y).astype(jnp.float16), y * y - x.astype(jnp.bfloat16)


def many_functions(x: Any, y: Any) -> Any:
    """Each function of the math library, f64 included."""
    wide = x.astype(jnp.float64)
    return (
        jnp.log(jnp.abs(x)), jnp.log1p(jnp.abs(x)), jnp.expm1(x), jax.nn.sigmoid(x), jnp.sin(x) + jnp.cos(x),
        jnp.tan(x), jnp.cbrt(x), jnp.arctan2(x, y), jnp.power(jnp.abs(x), y), jnp.sqrt(jnp.abs(x)),
        jnp.maximum(wide, jnp.exp(wide)), jnp.minimum(wide, jnp.tanh(wide)), jnp.round(x), jnp.floor(x), jnp.ceil(x),
    )  # fmt: skip


def integer_functions(x: Any, y: Any) -> Any:
    """Divisions, shifts, counts, comparisons and conversions of integers of several widths."""
    narrow = x.astype(jnp.int8)
    return (
        x // y, x % y, x << 3, jax.lax.shift_right_logical(x, jnp.int32(2)), jax.lax.population_count(x),
        jax.lax.clz(x), jnp.sign(narrow), narrow.astype(jnp.float32), x.astype(jnp.uint16), (x > y) & (x != 0),
    )  # fmt: skip


def in_place(x: Any, y: Any) -> Any:
    """A chain in which results take over the buffers of arguments that die, rows and single values both."""
    first = jnp.exp(x) + y.sum(0)
    second = first - first.max(-1, keepdims=True)
    weight = jax.nn.softmax(jnp.tanh(second.mean(-1)).reshape(1, -1))[0]
    return second.T * weight, (second / weight[:, None]).sum(-1)


IMAGE = (("b, s", "float32"),)

CASES = {
    "softmax": Case(lambda x: jax.nn.softmax(x, axis=-1), (("b, s", "float32"),)),
    "softmax_static_row": Case(lambda x: jax.nn.softmax(x, axis=-1), (("b, s, 48", "float32"),)),
    "layer_norm": Case(layer_norm, (("b, s, 64", "float32"), ("64", "float32"), ("64", "float32")), 1e-5),
    "gelu_bias": Case(lambda x, b: jax.nn.gelu(x + b, approximate=False), (("b, 3*s", "float32"), ("3*s", "float32"))),
    "gelu_tanh": Case(lambda x: jax.nn.gelu(x), (("b, s", "float32"),)),
    "embedding": Case(lambda t, i, p: t[i] + p, (("1000, 32", "float32"), ("b, s", "int32"), ("s, 32", "float32"))),
    "transpose": Case(lambda x: x.transpose(0, 2, 1), (("b, s, 16", "float32"),), 0),
    "argmax": Case(lambda x: jnp.argmax(x, axis=-1), (("b, s", "float32"),), 0),
    "argmin_of_integers": Case(lambda x: jnp.argmin(x % 7, axis=-1), (("b, s", "int32"),), 0),
    "narrow_floats": Case(narrow_floats, (("b, s", "float16"), ("b, s", "bfloat16")), 1e-2),
    "narrow_sums": Case(lambda x, y: (x.sum(-1), jax.nn.softmax(y)), (("b, s", "float16"), ("b, s", "bfloat16")), 1e-2),
    "functions": Case(many_functions, (("b, s", "float32"), ("b, s", "float32")), 1e-5),
    "integers": Case(integer_functions, (("b, s", "int32"), ("b, s", "int32")), 0),
    "remainder": Case(jax.lax.rem, (("b, s", "float32"), ("b, s", "float32")), 0),
    "any_and_all": Case(lambda x: (jnp.any(x, -1), jnp.all(x, -1)), (("b, s", "bool"),), 0),
    "doubles": Case(lambda x: (x.max(-1), x.sum((-1, -2)), x.prod(-1)), (("b, s, 5", "float64"),)),
    "pooled": Case(lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (2, 3), (1, 2), "SAME"), IMAGE, 0),
    "columns": Case(lambda x: (x.sum(0), x.max(1)), (("b, s, 5", "float32"),), 1e-5),
    "joined": Case(lambda x, y: jnp.concatenate([x, y * 2, x[:, :1]], 1), (("b, s", "float32"), ("b, 9", "float32"))),
    "padded": Case(lambda x: jnp.pad(x, ((1, 2), (0, 3)), constant_values=1.5)[:, ::2], (("b, s", "float32"),), 0),
    "constant_table": Case(lambda x: x + np.arange(12, dtype=np.float32).reshape(3, 4), (("b, 3, 4", "float32"),), 0),
    "in_place": Case(in_place, (("b, s", "float32"), ("b, b, s", "float32")), 1e-5),
    "whole": Case(lambda x: (x.sum(), x.max()), (("b, s", "float32"),), 1e-5),
}

NAMES = sorted(CASES)


def available(find: Callable[[], Path]) -> bool:
    """Whether a part of NVIDIA's toolkit is installed."""
    try:
        find()
    except DiscError:
        return False
    return True


needs_libdevice = pytest.mark.skipif(
    not available(cuda_toolkit.find_libdevice), reason="libdevice is absent: pip install 'shlo_disc[cuda]'"
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


@functools.cache
def lowered(name: str) -> Compilation:
    """A case down to the `host` stage, which needs none of NVIDIA's tools."""
    case = CASES[name]
    with jax.enable_x64(True):
        start = import_stage(case.function, TARGETS[0], shlo_disc.Options(), case.arguments, None, ())
        return run_pipeline(start, "host")


def launches_of(c: Compilation) -> list[GpuLaunch]:
    return gpu_launches(c.snapshots["host"])


# ---- text ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_lowered_text_parses_again(name: str) -> None:
    text = str(lowered(name).snapshots["host"])
    with make_context() as context:
        module = ir.Module.parse(text, context)
        assert module.operation.verify()
        assert str(module) == text


@pytest.mark.parametrize("name", NAMES)
def test_both_targets_take_the_same_plan(name: str) -> None:
    case = CASES[name]
    cpu = shlo_disc.compile(case.function, args=case.arguments)
    assert str(lowered(name).snapshots["plan"]) == cpu.as_text("plan")


@pytest.mark.parametrize("name", NAMES)
def test_one_kernel_for_each_distinct_fusion(name: str) -> None:
    c = lowered(name)
    kernels = re.findall(r"gpu\.func @(\w+)\(", str(c.snapshots["host"]))
    assert len(set(kernels)) == len(kernels)
    assert {launch.name for launch in launches_of(c)} == set(kernels)


def test_kernels_take_raw_pointers_then_sizes() -> None:
    text = str(lowered("transpose").snapshots["host"])
    pointer = "memref<f32, #gpu.address_space<global>>"
    assert f"(%arg0: {pointer}, %arg1: {pointer}, %arg2: index, %arg3: index, %arg4: index) kernel" in text


def test_fusions_with_equal_bodies_share_a_kernel() -> None:
    def twice(x: Any, y: Any) -> Any:
        return jax.nn.softmax(x), jax.nn.softmax(y)

    start = import_stage(twice, TARGETS[0], shlo_disc.Options(), (("a, b", "float32"), ("c, d", "float32")), None, ())
    launches = launches_of(run_pipeline(start, "host"))
    assert len(launches) == 2 and launches[0].name == launches[1].name
    assert [str(s) for s in launches[0].sizes] == ["a", "b"] and [str(s) for s in launches[1].sizes] == ["c", "d"]


def test_row_reductions_have_a_block_a_row_and_loops_a_thread_an_element() -> None:
    (row,) = launches_of(lowered("softmax"))
    (loop,) = launches_of(lowered("transpose"))
    assert row.kind == "row_reduce" and row.threads == loop.threads == 256
    assert row.blocks.evaluate({"b": 5, "s": 900}) == 5
    assert loop.kind == "loop" and loop.blocks.evaluate({"b": 3, "s": 11}) == -(-3 * 11 * 16 // 256)
    assert row.blocks.evaluate({"b": 2**40, "s": 1}) == MAX_BLOCKS


# ---- PTX ----------------------------------------------------------------------------------------------------------


@needs_libdevice
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NAMES)
def test_ptx_has_an_entry_for_each_kernel(name: str, target: str) -> None:
    compiled = program(name, target)
    ptx = compiled.as_text("ptx")
    entries = re.findall(r"\.visible \.entry (\w+)\(", ptx)
    assert sorted(entries) == sorted({k.name for k in compiled.kernels})
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


class Run:
    """One call of a lowered program in the emulator, in the arena and at the offsets of its plan."""

    def __init__(self, c: Compilation, dims: dict[str, int]):
        self.c, self.dims = c, dims
        self.emulator = Emulator(device_module(c.module))
        with c.context:
            self.plan = ir.Module.parse(str(c.snapshots["plan"]))
            size = arenas_of(self.plan.operation)[0].evaluate(dims)
        self.arena = np.full(size, 0xA5, np.uint8)
        self.results: dict[int, np.ndarray] = {}

    def __call__(self, arguments: list[np.ndarray]) -> list[np.ndarray]:
        """The results as flat arrays."""
        block = entry_block(self.plan)
        leaves = [np.ascontiguousarray(arguments[leaf]).reshape(-1) for leaf in self.c.signature.kept]
        self.buffers = dict(zip(block.arguments, leaves, strict=True))
        launches = iter(launches_of(self.c))
        for op in block.operations:
            if op.operation.name == "stablehlo.constant":
                data = dense_bytes(ir.DenseElementsAttr(op.attributes["value"]))
                self.buffers[op.results[0]] = np.frombuffer(data, self._dtype(op.results[0]))
            elif op.operation.name == "func.call":
                self._launch(op, next(launches))
        return [self.results[i] for i in sorted(self.results)]

    def _launch(self, call: ir.OpView, launch: Any) -> None:
        for result, buffer in zip(call.results, buffers_of(call), strict=True):
            self.buffers[result] = self._buffer(result, buffer)
        pointers = [self.buffers[root(v)].view(self._dtype(v)) for v in [*call.operands, *call.results]]
        sizes = [s.evaluate(self.dims) for s in launch.sizes]
        self.emulator.launch(launch.name, launch.blocks.evaluate(self.dims), pointers, sizes)

    def _buffer(self, value: ir.Value, buffer: Buffer) -> np.ndarray:
        count = product(dims_of(value)).evaluate(self.dims)
        if isinstance(buffer, ResultBuffer):
            self.results[buffer.index] = np.zeros(count, self._dtype(value))
            return self.results[buffer.index]
        start = buffer.offset.evaluate(self.dims)
        return self.arena[start : start + count * bytes_of(element_type_of(value))].view(self._dtype(value))

    @staticmethod
    def _dtype(value: ir.Value) -> np.dtype:
        name = str(element_type_of(value))
        if name == "i1":
            return np.dtype(np.int8)
        return np.dtype(f"uint{name[2:]}") if name.startswith("ui") else dtype_of(element_type_of(value))


def arrays(case: Case, dims: dict[str, int]) -> list[np.ndarray]:
    """Random arguments; indices stay small, so that most are inside the table."""
    found = []
    for position, (text, dtype) in enumerate(case.arguments):
        shape = tuple(eval(d, {"__builtins__": {}}, dims) for d in text.split(","))  # noqa: S307
        array = random_array(shape, dtype, position)
        found.append(array % 1100 if dtype == "int32" and case is CASES["embedding"] else array)
    return found


def run(name: str, dims: dict[str, int]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Pairs of the emulator's and XLA's results."""
    case = CASES[name]
    given = arrays(case, dims)
    c = lowered(name)
    names = {s.name for s in c.signature.symbols}
    with c.context, ir.Location.unknown():
        got = Run(c, {k: v for k, v in dims.items() if k in names})(given)
    want = [np.asarray(w) for w in jax.tree.leaves(jax.jit(case.function)(*given))]
    return [(g.view(w.dtype).reshape(w.shape), w) for g, w in zip(got, want, strict=True)]


@pytest.mark.parametrize("dims", [{"b": 1, "s": 1}, {"b": 3, "s": 7}, {"b": 2, "s": 33}, {"b": 2, "s": 531}], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_kernels_compute_what_xla_computes(name: str, dims: dict[str, int]) -> None:
    for got, want in run(name, dims):
        if want.dtype.kind in "iub":
            np.testing.assert_array_equal(got, want)
            continue
        got, want = got.astype(np.float64), want.astype(np.float64)
        scale = np.abs(want[np.isfinite(want)]).max(initial=1.0)
        np.testing.assert_allclose(got, want, rtol=0, atol=CASES[name].tolerance * scale)


def test_argmax_keeps_the_first_of_equal_elements_and_the_first_nan() -> None:
    c = lowered("argmax")
    rows = np.zeros((5, 700), np.float32)
    rows[1, [40, 333, 699]] = 1
    rows[2, [555, 21]] = np.nan
    rows[3] = -np.inf
    rows[4, 699] = 2
    with c.context, ir.Location.unknown():
        (got,) = Run(c, {"b": 5, "s": 700})([rows])
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


@pytest.mark.parametrize("barrier", [0, 1])
@pytest.mark.parametrize("name", ["softmax", "argmax"])
def test_no_barrier_can_be_left_out(name: str, barrier: int) -> None:
    """The emulator sees the race that a missing barrier makes, within a row or from one row to the next."""
    c = lowered(name)
    pieces = re.split(r"(?<=\n) *gpu\.barrier\n", str(c.snapshots["host"]))
    assert len(pieces) == 3
    barriers = ["gpu.barrier\n"] * 2
    barriers[barrier] = ""
    text = "".join(a + b for a, b in zip(pieces, [*barriers, ""], strict=True))
    rows, got = np.ones(3 * 300, np.float32), np.zeros(3 * 300, np.float64)
    with c.context, ir.Location.unknown(), pytest.raises(AssertionError, match="two threads touch one element"):
        Emulator(device_module(ir.Module.parse(text))).launch(launches_of(c)[0].name, 1, [rows, got], [3, 300])


# ---- what cannot be done ------------------------------------------------------------------------------------------


def test_dots_and_scatters_are_reported_together() -> None:
    def function(x: Any, w: Any, i: Any) -> Any:
        y = x @ w
        z = jnp.tanh(y).at[i].add(1.0)
        return z @ w.T

    arguments = (("b, 64", "float32"), ("64, 32", "float32"), ("k", "int32"))
    with pytest.raises(UnsupportedError) as caught:
        shlo_disc.compile(function, target="cuda:sm_90", args=arguments)
    first = function.__code__.co_firstlineno
    constructs = caught.value.constructs
    assert [c.op.split()[0] for c in constructs] == ["stablehlo.dot_general", "stablehlo.scatter"] + [
        "stablehlo.dot_general"
    ]
    assert [c.location.rsplit("/", 1)[-1] for c in constructs] == [
        f"{Path(__file__).name}:{first + line}" for line in (1, 2, 3)
    ]
    assert all("target='cpu'" in c.suggestion for c in constructs)


@pytest.mark.parametrize("target", ["cuda", "cuda:sm_70", "rocm", "", "CPU", "cuda:sm_90a"])
def test_unknown_targets_are_refused_with_the_list(target: str) -> None:
    with pytest.raises(DiscError, match="targets are 'cpu', 'cuda:sm_80', 'cuda:sm_90'"):
        shlo_disc.compile(lambda x: x, target=target, args=(("b", "float32"),))


@needs_libdevice
def test_the_program_can_be_read_and_not_called(tmp_path: Path) -> None:
    compiled = program("softmax", "cuda:sm_90")
    assert isinstance(compiled, GpuProgram)
    with pytest.raises(DiscError, match=r"cuda:sm_90.*target='cpu'"):
        compiled(np.ones((2, 3), np.float32))
    with pytest.raises(ValueError, match="no stage 'asm'; stages are import, .*codegen, llvm, ptx"):
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
