# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops over elements on GPUs: how wide memory is accessed, how indices are divided, and XLA's numbers."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.driver.compiler import Compilation, import_stage, run_pipeline
from shlo_disc.lowering import loop_kernel
from shlo_disc.lowering.kernel_module import kernel_module_of
from shlo_disc.lowering.launches import launches_in
from shlo_disc.lowering_gpu import device_module
from shlo_disc.shape_dialect.mlir import ir
from tests.gpu.sass import read
from tests.gpu.test_sass import needs_tools
from tests.ir import gpu_vectors
from tests.ir.gpu_cases import TARGETS, Case, arrays, assert_close, emulated, launches_of
from tests.ir.gpu_emulator import Block, Emulator, View
from tests.run.op_check import random_array


@pytest.fixture(autouse=True)
def _doubles() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def dtypes(x: Any) -> Any:
    """Results of several widths, which one loop writes."""
    return x * 2, x > 0, x.astype(jnp.float16), x.astype(jnp.float64), x.astype(jnp.int8)


def windows(x: Any) -> Any:
    """Rows and columns of a window that starts at no multiple of anything."""
    return x[:, 1:] - x[:, :-1]


def around(x: Any, y: Any) -> Any:
    """Paddings between elements and around them, of a value that is computed."""
    return jax.lax.pad(x * y, jnp.float32(1.5), ((1, 2, 0), (3, 2, 1)))


def joined_rows(x: Any, y: Any) -> Any:
    """Pieces one above the other."""
    return jnp.tanh(jnp.concatenate([x, y], 0)) + 1


def joined_columns(x: Any, y: Any) -> Any:
    """Pieces side by side, whose edges lie at multiples of a vector's lanes."""
    return jnp.tanh(jnp.concatenate([x, y * 2, x], 1)) + 1


VECTOR, ROWS = (("s", "float32"),), (("b, s", "float32"),)

LOOPS = {
    "f32": Case(lambda x: jnp.exp(x) + 1, VECTOR),
    "f64": Case(lambda x: x * x - 1, (("s", "float64"),)),
    "f16": Case(lambda x: x * x - 1, (("s", "float16"),), 1e-3),
    "bf16": Case(lambda x, y: x * y - 1, (("b, s", "bfloat16"), ("s", "bfloat16")), 1e-2),
    "i8": Case(lambda x, y: x * y - 1, (("s", "int8"), ("s", "int8")), 0),
    "i32": Case(lambda x, y: x * y - 1, (("s", "int32"), ("s", "int32")), 0),
    "divided": Case(lambda x: x // 3 + x % 5, (("s", "int32"),), 0),
    "bool": Case(lambda x, y: x & ~y, (("b, s", "bool"), ("s", "bool")), 0),
    "dtypes": Case(dtypes, ROWS),
    "bytes_and_words": Case(lambda x, y: x.astype(jnp.float32) * y, (("b, s", "int8"), ("s", "float32"))),
    "along_rows": Case(lambda x, y: x + y, (("b, s", "float32"), ("s", "float32"))),
    "along_columns": Case(lambda x, y: x / y[:, None], (("b, s", "float32"), ("b", "float32"))),
    "along_the_middle": Case(lambda x, y: x * y[:, None], (("3, b, s", "float32"), ("b", "float32"))),
    "both_ways": Case(lambda x, y: x[:, None] * y, (("b", "float32"), ("s", "float32"))),
    "whole_rows": Case(lambda x, y: x - y, (("b, 12", "float32"), ("12", "float32"))),
    "odd_rows": Case(lambda x, y: x - y, (("b, 7", "float32"), ("7", "float32"))),
    "gathered_rows": Case(lambda t, i: t[i] * 2, (("50, 8", "float32"), ("b, s", "int32"))),
    "gathered": Case(lambda t, i, x: t[i] + x, (("50", "float32"), ("b, s", "int32"), ("b, s", "float32"))),
    "a_row_of_a_matrix": Case(lambda x, y: x[1] + y, (("3, s", "float32"), ("s", "float32"))),
    "windows": Case(windows, (("b, s + 1", "float32"),)),
    "every_other": Case(lambda x: jnp.sin(x)[:, ::2] * 2, ROWS),
    "reversed": Case(lambda x: x[:, ::-1] + 1, ROWS),
    "padded": Case(around, (("b, s", "float32"), ("b, s", "float32"))),
    "joined_rows": Case(joined_rows, (("b, s", "float32"), ("2, s", "float32"))),
    "joined_columns": Case(joined_columns, (("s, 4", "float32"), ("s, 8", "float32"))),
    "joined_anywhere": Case(joined_columns, (("b, s", "float32"), ("b, 3", "float32"))),
    "numbered": Case(lambda x: x * jnp.arange(x.shape[1], dtype=jnp.float32), ROWS),
    "reshaped": Case(lambda x: (x.T.reshape(-1, 2) + 1), (("b, 2*s", "float32"),)),
    "transposed": Case(lambda x, y: x.T + y, (("s, b", "float32"), ("b, s", "float32"))),
    "transposed_in_batches": Case(lambda x: jnp.tanh(x).transpose(0, 2, 1), (("3, s, b", "float32"),)),
    "tiles": Case(lambda x, y: jnp.sin(x.T) + y, (("s, s + 3", "float32"), ("s + 3, s", "float32"))),
    "tiles_of_halves": Case(lambda x: x.transpose(0, 2, 1), (("b, 20, s", "float16"),), 0),
    "tiles_of_computed": Case(lambda x, y: (x + 1).T * y, (("s, s + 3", "float32"), ("s", "float32"))),
    "tiles_across": Case(lambda x: jnp.exp(x.transpose(2, 1, 0)), (("40, 3, s", "float32"),)),
    "two_tiles": Case(lambda x, y: x.T * y.T, (("s, 17", "float32"), ("s, 17", "int8"))),
    "one": Case(lambda x: jnp.tanh(x) + 1, (("1, 1", "float32"),)),
    "remainder": Case(jax.lax.rem, (("s", "float32"), ("s", "float32")), 0),
}  # fmt: skip

SIZES = ({"b": 3, "s": 1}, {"b": 1, "s": 3}, {"b": 3, "s": 4}, {"b": 5, "s": 5}, {"b": 2, "s": 16}, {"b": 3, "s": 31},
         {"b": 2, "s": 33}, {"b": 5, "s": 64}, {"b": 4, "s": 127}, {"b": 3, "s": 128}, {"b": 7, "s": 257})  # fmt: skip


BOUNDED, LEAST = ("b <= 1024", "s <= 4096"), ("b >= 0", "s >= 0")


def bounds(case: Case, all_bounds: tuple[str, ...] = BOUNDED) -> tuple[str, ...]:
    """The bounds of the sizes that a case has."""
    return tuple(bound for bound in all_bounds if any(bound[0] in shape for shape, _ in case.arguments))


@functools.cache
def lowered(name: str, constraints: tuple[str, ...] = ()) -> Compilation:
    case = LOOPS[name]
    with jax.enable_x64(True):
        start = import_stage(case.function, TARGETS[0], shlo_disc.Options(), case.arguments, None, constraints)
        return run_pipeline(start, "host")


def assert_right(name: str, dims: dict[str, int], given: list[np.ndarray], c: Compilation | None = None) -> None:
    case = LOOPS[name]
    wanted = jax.jit(case.function)(*given)
    assert_close(emulated(c or lowered(name), dims, given), wanted, case.tolerance)


def kernels(c: Compilation) -> str:
    """The code of all kernels."""
    with c.context:
        return str(kernel_module_of(c.module))


# ---- numbers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(LOOPS))
def test_numbers_at_sizes_around_every_guard(name: str) -> None:
    for dims in SIZES:
        assert_right(name, dims, arrays(LOOPS[name], dims))


@pytest.mark.parametrize("name", ["f32", "i8", "along_rows", "along_columns", "gathered", "joined_anywhere"])
def test_no_elements(name: str) -> None:
    case = LOOPS[name]
    c = run_pipeline(
        import_stage(case.function, TARGETS[0], shlo_disc.Options(), case.arguments, None, bounds(case, LEAST)), "host"
    )
    for dims in ({"b": 0, "s": 3}, {"b": 3, "s": 0}, {"b": 3, "s": 8}):
        assert_right(name, dims, arrays(case, dims), c)


def test_scalars() -> None:
    start = import_stage(lambda x: jnp.exp(x) + 1, TARGETS[0], shlo_disc.Options(), (("", "float32"),), None, ())
    (got,) = emulated(run_pipeline(start, "host"), {}, [np.float32(2)])
    np.testing.assert_allclose(got, [np.exp(2) + 1], rtol=1e-6)


@pytest.mark.parametrize("s", [3, 12])
def test_lanes_are_written_anywhere(monkeypatch: pytest.MonkeyPatch, s: int) -> None:
    """A kernel may write its elements elsewhere than a loop does: here, those of a column into a row."""

    def write_across(frame: Any, elements: Any, positions: Any, domain: Any, streaming: bool) -> None:
        (output,), (buffer,) = frame.outputs, frame.output_buffers
        frame.store(buffer, elements.at(output, positions), positions[::-1], output, elements, streaming)

    monkeypatch.setattr(loop_kernel, "write_outputs", write_across)
    arguments = (("s, s", "float32"), ("s", "float32"))
    start = import_stage(lambda x, y: x + y, TARGETS[0], shlo_disc.Options(), arguments, None, ())
    c = run_pipeline(start, "host")
    x, y = random_array((s, s), "float32"), random_array((s,), "float32")
    (got,) = emulated(c, {"s": s}, [x, y])
    np.testing.assert_array_equal(got.reshape(s, s).T, x + y)


def shifted(array: np.ndarray, count: int) -> np.ndarray:
    """A copy that begins `count` elements behind a multiple of 16 bytes."""
    memory = np.zeros(array.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 16 + count * array.itemsize
    found = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    found[...] = array
    return found


@pytest.mark.parametrize("count", range(4))
@pytest.mark.parametrize("name", ["f32", "f16", "along_rows", "gathered_rows", "bytes_and_words"])
def test_arguments_at_any_address(name: str, count: int) -> None:
    for dims in ({"b": 3, "s": 16}, {"b": 2, "s": 37}):
        given = [shifted(a, count) for a in arrays(LOOPS[name], dims)]
        assert_right(name, dims, given)


@pytest.mark.parametrize("count", range(4))
@pytest.mark.parametrize("in_place", [False, True])
def test_results_at_any_address_and_in_place(count: int, in_place: bool) -> None:
    c = lowered("f32")
    x = random_array((75,), "float32")
    given = shifted(x, count)
    got = given if in_place else shifted(x, count)
    with c.context, ir.Location.unknown():
        Emulator(device_module(c.module)).launch(launches_of(c)[0].name, 2, [given, got], [75])
    np.testing.assert_allclose(got, np.exp(x) + 1, rtol=1e-6)


# ---- accesses -----------------------------------------------------------------------------------------------------


@pytest.fixture
def lanes(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Counts the elements that the emulator has read and written, by the op that did."""
    found: dict[str, int] = {}

    def counted(name: str, owner: type) -> None:
        plain = getattr(owner, name)

        def count(self: Any, op: ir.OpView, env: Any, active: np.ndarray) -> Any:
            vector = op.results[0].type if "load" in name else op.operands[0].type
            width = vector.shape[0] if isinstance(vector, ir.VectorType) else 1
            found[name] = found.get(name, 0) + int(active.sum()) * width
            return plain(self, op, env, active)

        monkeypatch.setattr(owner, name, count)

    counted("_vector_load", gpu_vectors.VectorOps)
    counted("_vector_store", gpu_vectors.VectorOps)
    counted("_memref_load", Block)
    counted("_memref_store", Block)
    return found


def test_a_flat_loop_has_a_tail_of_single_elements(lanes: dict[str, int]) -> None:
    assert_right("f32", {"s": 75}, arrays(LOOPS["f32"], {"s": 75}))
    assert lanes == {"_vector_load": 72, "_vector_store": 72, "_memref_load": 3, "_memref_store": 3}


@pytest.mark.parametrize(("s", "wide"), [(12, 36), (13, 36), (14, 40), (4, 12), (5, 12), (3, 0), (1, 0)])
def test_pieces_of_rows_and_across_rows(lanes: dict[str, int], s: int, wide: int) -> None:
    assert_right("along_rows", {"b": 3, "s": s}, arrays(LOOPS["along_rows"], {"b": 3, "s": s}))
    single = 3 * s - wide
    read_apart = wide if s % 4 else 0  # the row that is added: its pieces have no place of their own
    want = {
        "_vector_load": 2 * wide - read_apart,
        "_vector_store": wide,
        "_memref_load": 2 * single + read_apart,
        "_memref_store": single,
    }
    assert lanes == {name: count for name, count in want.items() if count}


def test_unaligned_memory_is_accessed_element_by_element(lanes: dict[str, int]) -> None:
    given = [shifted(arrays(LOOPS["f32"], {"s": 64})[0], 1)]
    assert_right("f32", {"s": 64}, given)
    assert lanes == {"_memref_load": 64, "_memref_store": 64}


WIDTHS = {
    "f32": ("vector<4xf32>", 16), "f64": ("vector<2xf64>", 16), "f16": ("vector<8xf16>", 16),
    "bf16": ("vector<8xbf16>", 16), "i8": ("vector<16xi8>", 16), "bool": ("vector<16xi8>", 16),
    "i32": ("vector<4xi32>", 16), "bytes_and_words": ("vector<4xi8>", 4), "gathered_rows": ("vector<4xf32>", 16),
    "whole_rows": ("vector<4xf32>", 16), "joined_columns": ("vector<4xf32>", 16),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(WIDTHS))
def test_threads_take_16_bytes_of_the_widest_tensor(name: str) -> None:
    type_, alignment = WIDTHS[name]
    pattern = rf"vector\.load .*alignment = {alignment} : i64.*{re.escape(type_)}\n"
    assert re.search(pattern, kernels(lowered(name)))


@pytest.mark.parametrize("name", ["windows", "a_row_of_a_matrix"])
def test_what_starts_anywhere_is_not_said_to_be_aligned(name: str) -> None:
    loads = re.findall(r"vector\.load (.*)", kernels(lowered(name)))
    assert any("alignment" not in load for load in loads)


def test_no_vectors_where_none_can_be() -> None:
    assert "vector" not in kernels(lowered("one"))
    pieces_across = kernels(lowered("odd_rows", ("b <= 1024",)))
    assert "vector.store" in pieces_across and pieces_across.count("scf.for") == 2


def test_pieces_that_end_at_multiples_are_chosen_for_all_lanes() -> None:
    """A vector lies within one piece, so one condition decides of it."""
    _, vectors, _ = kernels(lowered("joined_columns", ("s <= 4096",))).split("scf.for")
    assert "xindex>" not in vectors and vectors.count("scf.if") == 3
    assert "vector<4xindex>" in kernels(lowered("joined_anywhere"))


def test_long_bodies_take_fewer_lanes() -> None:
    long = Case(lambda x: functools.reduce(lambda a, _: jnp.sin(a), range(3), x), VECTOR)
    start = import_stage(long.function, TARGETS[0], shlo_disc.Options(), long.arguments, None, ())
    assert "vector" not in kernels(run_pipeline(start, "host"))


def test_the_emulator_finds_an_access_that_is_not_aligned() -> None:
    c = lowered("f32")
    text, count = re.subn(r"arith\.constant 15 : index", "arith.constant 0 : index", str(c.snapshots["host"]))
    assert count == 1
    x = shifted(random_array((64,), "float32"), 1)
    with c.context, ir.Location.unknown(), pytest.raises(AssertionError, match="an access of 16 bytes is not aligned"):
        Emulator(device_module(ir.Module.parse(text))).launch(launches_of(c)[0].name, 1, [x, x.copy()], [64])


def test_the_grid_has_a_thread_for_each_vector_or_each_element() -> None:
    (launch,) = launches_of(lowered("along_rows"))
    assert launch.blocks.evaluate({"b": 1024, "s": 64}) == 1024 * 64 // 4 // 256
    assert launch.blocks.evaluate({"b": 1024, "s": 63}) == 1024 * 63 // 4 // 256
    assert launch.blocks.evaluate({"b": 1024, "s": 3}) == 1024 * 3 // 256
    (launch,) = launches_of(lowered("f32"))
    assert [launch.blocks.evaluate({"s": s}) for s in (1, 1024, 1025)] == [1, 1, 2]


# ---- divisions ----------------------------------------------------------------------------------------------------


def divisions(text: str) -> set[str]:
    """The types that indices are divided in, in the loops; by powers of two, it is done by shifts."""
    found = re.findall(r"^ {6,}.*arith\.(?:div|rem)ui .*, (%\w+) : (?:vector<\d+x)?(\w+)", text, re.MULTILINE)
    return {type_ for divisor, type_ in found if not re.match(r"%c(2|4|8|16|32|64|128)(_|$)", divisor)}


def multiplications(text: str) -> int:
    """The number of products of 64 bits, of which a division by a multiplier has one."""
    return len(re.findall(r"arith\.muli .* : (?:vector<\d+x)?i64", text))


@pytest.mark.parametrize("name", ["along_rows", "gathered", "joined_anywhere", "reshaped", "transposed"])
def test_indices_are_divided_in_32_bits_where_sizes_are_known_to_be_small(name: str) -> None:
    text = kernels(lowered(name, BOUNDED))
    assert divisions(text) <= {"i32"} and multiplications(text)
    assert_right(name, {"b": 3, "s": 12}, arrays(LOOPS[name], {"b": 3, "s": 12}), lowered(name, BOUNDED))


@pytest.mark.parametrize("name", ["along_rows", "reshaped"])
def test_how_indices_are_divided_is_chosen_at_run_time(name: str) -> None:
    """In 32 bits it is a multiplication by what the host has passed."""
    text = kernels(lowered(name))
    assert divisions(text) == {"index"} and multiplications(text)
    sizes = [str(size) for launch in launches_of(lowered(name)) for size in launch.sizes]
    assert any("floordiv(4611686018427387904, " in size for size in sizes)


def test_loops_of_either_width_are_chosen_once() -> None:
    """Loops that divide in 32 bits, and others in 64, with no choice inside."""
    text = kernels(lowered("along_rows"))
    first, second = re.split(r"^    } else {$", text, flags=re.MULTILINE)
    assert divisions(first) <= {"i32"} and multiplications(first)
    assert divisions(second) == {"index"} and not multiplications(second)
    assert first.count("scf.for") == second.count("scf.for") == 3


@pytest.mark.parametrize("name", ["f32", "dtypes", "numbered_flat"])
def test_a_loop_over_one_axis_divides_nothing(name: str) -> None:
    c = lowered(name) if name in LOOPS else flat_iota()
    assert not divisions(kernels(c))


def flat_iota() -> Compilation:
    start = import_stage(lambda x: x + jnp.arange(x.shape[0]), TARGETS[0], shlo_disc.Options(), VECTOR, None, ())
    return run_pipeline(start, "host")


def test_guards_are_noted() -> None:
    def noted(*constraints: str) -> list[str]:
        (launched,) = launches_in(lowered("along_rows", constraints).snapshots["host"])
        return [f"{g.variant}: {' and '.join(map(str, g.conditions))}" for g in launched.guards]

    assert noted() == ["divisions of 32 bits: b*s < 2147483648", "4 lanes: mod(s, 4) == 0"]
    assert noted(*BOUNDED) == ["4 lanes: mod(s, 4) == 0"]
    assert noted(*BOUNDED, "mod(s, 4) == 0") == []


class Endless:
    """Memory of a tensor that is too large to be there: element i holds `value(i)`; what is written is kept."""

    def __init__(self, number: int, value: Callable[[np.ndarray], np.ndarray]):
        self.dtype, self.itemsize = np.dtype(np.float32), 4
        self.__array_interface__ = {"data": (number << 44, False)}
        self.value, self.written = value, dict[int, float]()

    def __getitem__(self, offsets: np.ndarray) -> np.ndarray:
        return self.value(offsets).astype(np.float32)

    def __setitem__(self, offsets: np.ndarray, values: np.ndarray) -> None:
        self.written.update(zip(offsets.tolist(), values.tolist(), strict=True))


def last_block(text: str, c: Compilation, b: int, s: int) -> bool:
    """Tells whether the last block that has pieces of a loop over [b, s] writes the right numbers."""
    x, bias, out = Endless(1, lambda i: i % 1009), Endless(2, lambda i: i % 4093 * 2048), Endless(3, lambda i: i * 0)
    (launch,) = launches_of(c)
    blocks, last = launch.blocks.evaluate({"b": b, "s": s}), (b * s // 4 - 1) // launch.threads
    sizes = [size.evaluate({"b": b, "s": s}) for size in launch.sizes]
    with c.context, ir.Location.unknown():
        emulator = Emulator(device_module(ir.Module.parse(text)))
        block = Block(emulator.globals, last, blocks, launch.threads)
        entry = emulator.functions[launch.name].regions[0].blocks[0]
        arguments = [*map(View, (x, bias, out)), *(np.full(launch.threads, size, np.int64) for size in sizes)]
        block.run(entry, dict(zip(entry.arguments, arguments, strict=True)), np.ones(launch.threads, bool))
    where = np.array(sorted(out.written))
    assert len(where) > 0 and where[-1] == b * s // 4 * 4 - 1
    want = (where % 1009 + where % s % 4093 * 2048).astype(np.float32)
    return np.array_equal([out.written[i] for i in where.tolist()], want)


@pytest.mark.parametrize("s", [1 << 20, (1 << 20) + 4, (1 << 20) + 1])
@pytest.mark.parametrize("b", [2045, 2049, 5001])
def test_more_elements_than_32_bits_count(b: int, s: int) -> None:
    c = lowered("along_rows")
    assert last_block(str(c.snapshots["host"]), c, b, s)


def test_32_bits_would_be_too_few() -> None:
    """The guard keeps cases apart: with another limit in its place, numbers are wrong."""
    c = lowered("along_rows")
    text = str(c.snapshots["host"]).replace("arith.constant 2147483648 : index", "arith.constant 99999999999 : index")
    assert last_block(text, c, 2045, (1 << 20) + 4)
    assert not last_block(text, c, 5001, (1 << 20) + 4)


# ---- machine code -------------------------------------------------------------------------------------------------

MACHINE = {
    "f32": (128, 128), "f16": (128, 128), "bf16": (128, 128), "i8": (128, 128), "f64": (128, 128), "bool": (128, 128),
    "tiles": (64, 64), "tiles_of_halves": (64, 64),
    "along_rows": (128, 128), "gathered": (128, 128), "whole_rows": (128, 128), "joined_columns": (128, 128),
}  # fmt: skip


@needs_tools
@pytest.mark.ptxas
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", sorted(MACHINE))
def test_machine_code_has_wide_accesses_and_no_local_memory(name: str, target: str) -> None:
    case, (loads, stores) = LOOPS[name], MACHINE[name]
    compiled = shlo_disc.compile(case.function, target=target, args=case.arguments, constraints=bounds(case))
    for _, _, usage, machine in read(compiled.as_text("ptx")):
        assert max(machine.widths("LDG")) == loads and max(machine.widths("STG")) == stores
        assert machine.count("LDL", "STL") == usage.spills == machine.divisions == 0
        assert usage.registers <= 64
