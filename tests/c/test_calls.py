# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls from C do what Python's do: custom calls, data-dependent sizes, strided tensors, limits, and refusals."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import CustomCallError, DiscError, ShapeError
from shlo_disc.runtime import AllocationError, Client
from tests.run.test_data_sizes import TAKE

from .building import PROGRAMS
from .c_api import CError, Options, Program, checked, library, tensors_of


def saved(folder: Path, executable: shlo_disc.Executable) -> Path:
    path = folder / "program.disc"
    executable.save(path)
    return path


def same_error(kind: type[DiscError], of_python: Any, of_c: Any) -> CError:
    """Both calls fail with one kind and text."""
    with pytest.raises(kind) as wanted:
        of_python()
    with pytest.raises(CError) as found:
        of_c()
    assert (found.value.kind, found.value.text) == (kind.__name__, wanted.value.message)
    return found.value


# ---- custom calls ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scale_rows(tmp_path_factory: pytest.TempPathFactory) -> Any:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no cc")
    path = tmp_path_factory.mktemp("custom") / "libcustom.so"
    source = [f"-I{shlo_disc.get_include()}", str(PROGRAMS / "custom.c")]
    subprocess.run([compiler, "-shared", "-fPIC", "-std=c11", "-Wall", "-Werror", *source, "-o", str(path)], check=True)
    return ctypes.CDLL(str(path)).scale_rows


def scaled(x: jax.Array) -> Any:
    like = jax.ShapeDtypeStruct(x.shape, x.dtype), jax.ShapeDtypeStruct(x.shape[:1], x.dtype)
    y, sums = jax.ffi.ffi_call("test.scale_rows", like)(x + 1, factor=np.float32(2.5))
    return y - 1, sums


def test_custom_calls(scale_rows: Any, tmp_path: Path) -> None:
    shlo_disc.register_custom_call("test.scale_rows", ctypes.cast(scale_rows, ctypes.c_void_p).value)
    executable = shlo_disc.compile(scaled, args=(("n, k", "float32"),))
    path = saved(tmp_path, executable)
    with pytest.raises(CError, match="calls 'test.scale_rows', which is not registered") as caught:
        Program(path)
    assert caught.value.kind == "ArtifactError"
    for name, function in ((None, scale_rows), (b"test.scale_rows", None)):
        with pytest.raises(CError, match="NULL"):
            checked("disc_register_custom_call", name, function)
    checked("disc_register_custom_call", b"test.scale_rows", scale_rows)
    program = Program(path)
    for shape in ((1, 1), (3, 17), (64, 5), (12, 40)):
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        for found, wanted in zip(program(x), executable(x), strict=True):
            np.testing.assert_array_equal(found, wanted)
    x = np.zeros((13, 2), np.float32)
    same_error(CustomCallError, lambda: executable(x), lambda: program(x))
    program(x[:12])  # and it is as good as before


# ---- data-dependent sizes -----------------------------------------------------------------------------------------


def test_sizes_that_are_data(tmp_path: Path) -> None:
    executable = shlo_disc.compile(TAKE)
    program = Program(saved(tmp_path, executable))
    for size in (0, 1, 5, 97):
        x = np.arange(size, dtype=np.float32)
        for n in sorted({0, min(1, size), size // 2, size}):
            y, i = program(x, np.array(n, np.int32))
            np.testing.assert_array_equal(y, x[:n])
            np.testing.assert_array_equal(i, np.arange(n, dtype=np.int32))
    x = np.arange(5, dtype=np.float32)
    for n in (-1, 6, 2**31 - 1):
        number = np.array(n, np.int32)
        with pytest.raises(
            ShapeError, match="A size that the program reads from data does not fit. Expected "
        ) as of_python:
            executable(x, number)
        with pytest.raises(CError, match="A size that the program reads from data does not fit. Expected ") as of_c:
            program(x, number)
        assert of_c.value.code == of_python.value.code
    for plan in (lambda: program.plan(5), lambda: program.plan_symbols(5)):
        with pytest.raises(CError, match="depend on data: call it by disc_call") as caught:
            plan()
        assert (caught.value.kind, caught.value.code) == ("ValueError", "DISC-V101")
    bound = program.bind(x)
    np.testing.assert_array_equal(bound(np.array(3, np.int32))[0], x[:3])


# ---- strides -----------------------------------------------------------------------------------------------------


def combine(x: jax.Array, y: jax.Array) -> jax.Array:
    """(f32[a, b, 3], i32[b]) -> f32[a, 3]."""
    return (x * y[:, None]).sum(1) + jnp.cos(x[:, 0])


def views(rng: np.random.Generator, a: int, b: int) -> list[np.ndarray]:
    """Arrays of shape [a, b, 3] that lie in memory in many ways."""
    whole = rng.standard_normal((2 * a, 3 * b + 1, 7)).astype(np.float32)
    other = rng.standard_normal((3, b, a)).astype(np.float32)
    return [
        whole[:a, :b, :3], whole[::2, 1::3, ::-2][:a, :b, :3], whole[a:, b : 2 * b, 6:3:-1][::-1],
        other.transpose(2, 1, 0), np.broadcast_to(other[:, :1, 0].T, (a, b, 3)), np.asfortranarray(whole[:a, :b, :3]),
    ]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), [(1, 1), (2, 3), (5, 17), (31, 8)])
def test_strided_tensors(a: int, b: int, tmp_path: Path) -> None:
    executable = shlo_disc.compile(combine, args=(("a, b, 3", "float32"), ("b", "int32")))
    program, rng = Program(saved(tmp_path, executable)), np.random.default_rng(a)
    y = np.arange(2 * b, dtype=np.int32)[::2]
    plan = program.plan(a, b, 3, b)
    for x in views(rng, a, b):
        wanted = executable(np.ascontiguousarray(x), np.ascontiguousarray(y))
        np.testing.assert_array_equal(program(x, y)[0], wanted)
        np.testing.assert_array_equal(program.bind(x)(y)[0], wanted)
        result = np.full((a, 3), np.nan, np.float32)
        plan.run([x, y], [result])
        np.testing.assert_array_equal(result, wanted)


def test_results_have_no_gaps(tmp_path: Path) -> None:
    program = Program(saved(tmp_path, shlo_disc.compile(combine, args=(("a, b, 3", "float32"), ("b", "int32")))))
    plan, memory = program.plan(2, 4, 3, 4), np.zeros((2, 6), np.float32)
    with pytest.raises(
        CError, match="result is to be .* gaps, .*: set strides to NULL, and copy the result afterwards$"
    ) as caught:
        plan.run([np.ones((2, 4, 3), np.float32), np.ones(4, np.int32)], [memory[:, ::2]])
    assert caught.value.kind == "ValueError" and caught.value.argument == "result" and not memory.any()


def test_results_that_overlap_each_other(tmp_path: Path) -> None:
    program = Program(saved(tmp_path, shlo_disc.compile(lambda x: (x + 1, x * 2), args=(("n", "float32"),))))
    memory = np.zeros(7, np.float32)
    with pytest.raises(CError, match=r"the memory for result\[1\] overlaps that of result\[0\]$") as caught:
        program.plan(4).run([np.ones(4, np.float32)], [memory[:4], memory[3:]])
    assert caught.value.code == "DISC-V100" and not memory.any()


def test_donated_arguments_are_kept(tmp_path: Path) -> None:
    donating = jax.jit(lambda x: x + 1, donate_argnums=0)
    program = Program(saved(tmp_path, shlo_disc.compile(donating, args=(("n", "float32"),))))
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    with pytest.raises(CError, match=r"the memory for result overlaps that of args\[0\]$"):
        program.plan(4).run([x], [x])
    program.plan(4).run([x], [y])
    np.testing.assert_array_equal(x, np.ones(4))
    np.testing.assert_array_equal(y, x + 1)


# ---- devices and addresses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "code", "text"),
    [
        (
            "device",
            (1, 1),
            "DISC-T100",
            r"args\[0\] has the device_id 1: the host's memory is kDLCPU with the device_id 0",
        ),
        ("ndim", 65, "DISC-S101", r"Rank mismatch for args\[0\]: expected \(.*\) and called with the rank 65"),
        ("ndim", 2**31 - 1, "DISC-S101", r"called with the rank 2147483647"),
        ("byte_offset", 2**64 - 4, "DISC-S105", r"The byte_offset of args\[0\] is 18446744073709551612: the addresses"),
        ("byte_offset", 2**64 - 2**20, "DISC-S105", r"The byte_offset of args\[0\] is .* do not fit 64 bits"),
        ("strides", (-(2**60),), "DISC-S105", r"The strides of args\[0\] .*do not fit 64 bits"),
    ],
)
def test_tensors_that_are_nowhere(field: str, value: Any, code: str, text: str, tmp_path: Path) -> None:
    """Arguments and results alike."""
    program = Program(saved(tmp_path, shlo_disc.compile(jnp.negative, args=(("n", "float32"),))))
    plan, arrays = program.plan(4), [np.zeros(4, np.float32) for _ in range(2)]
    wrong, one = tensors_of([arrays[0]]), ctypes.c_size_t(1)
    if field == "strides":
        wrong[0].strides = (ctypes.c_int64 * 1)(*value)
    else:
        setattr(wrong[0], field, (ctypes.c_int32 * 2)(*value) if field == "device" else value)
    with pytest.raises(CError, match=text) as caught:
        checked("disc_call", program.pointer, wrong, one, ctypes.byref(ctypes.c_void_p()))
    assert (caught.value.code, caught.value.argument) == (code, "args[0]")
    if field != "strides":
        with pytest.raises(CError, match=text.replace(r"args\[0\]", "result")) as caught:
            checked("disc_run", plan.pointer, tensors_of([arrays[1]]), one, wrong, one)
        assert (caught.value.code, caught.value.argument) == (code, "result")


def test_results_on_another_device(tmp_path: Path) -> None:
    """The remedy is memory of the host, for there is nothing to copy yet."""
    program = Program(saved(tmp_path, shlo_disc.compile(jnp.negative, args=(("n", "float32"),))))
    plan, one = program.plan(4), ctypes.c_size_t(1)
    given, taken = (tensors_of([np.zeros(4, np.float32)]) for _ in range(2))
    taken[0].device = (ctypes.c_int32 * 2)(2, 0)
    with pytest.raises(CError, match="result is on a device of .*: give memory of the host for it") as caught:
        checked("disc_run", plan.pointer, given, one, taken, one)
    assert caught.value.argument == "result"


# ---- limits and options ------------------------------------------------------------------------------------------


def test_memory_limits(tmp_path: Path) -> None:
    path = saved(tmp_path, shlo_disc.compile(lambda x: jnp.sort(x) + 1, args=(("n", "float32"),)))
    limited = Client(memory_limit=100_000).load(path.read_bytes(), trust=True)
    program = Program(path, memory_limit=100_000)
    large, small = np.zeros(30_000, np.float32), np.zeros(5000, np.float32)
    same_error(AllocationError, lambda: limited(large), lambda: program(large))
    for _ in range(3):  # what is freed counts no more
        np.testing.assert_array_equal(program(small)[0], 1 + small)
    result = np.full(30_000, 7, np.float32)
    with pytest.raises(CError, match="that alone is more than the memory limit of 100000 bytes; only a higher"):
        program.plan(30_000).run([large], [np.frombuffer(result.tobytes() + b"....", np.float32)[1:]])
    Program(path)(large)


def test_weights_have_to_fit_the_memory_limit(tmp_path: Path) -> None:
    function = shlo_disc.compile(lambda w, x: x @ w + w[0], args=(("256, 256", "float32"), ("n, 256", "float32")))
    program = Program(saved(tmp_path, function), memory_limit=100_000)
    text = "limit is reached: 100000 bytes, of which .* in use; each block of packed or copied weights has to fit"
    with pytest.raises(CError, match=text) as caught:
        program.bind(np.zeros((256, 256), np.float32))
    assert caught.value.kind == "AllocationError"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"threads": -1}, "threads of disc_load_options is -1, and must not be negative"),
        ({"threads": 10**6}, "threads of disc_load_options is 1000000; at most"),
        ({"memory_limit": -1}, "memory_limit of disc_load_options is -1, and must not be negative"),
        ({"struct_size": 0}, "struct_size of disc_load_options is not set"),
        *(
            ({"struct_size": size}, f"struct_size of disc_load_options is {size}, which is the size of no version")
            for size in (1, 8, 12, 50, 57, 1 << 40)
        ),
        ({"unknown": 1}, "struct_size of disc_load_options is 64, and this library has 56 bytes of options: .* newer"),
    ],
)  # fmt: skip
def test_options_are_checked(options: dict[str, int], text: str, tmp_path: Path) -> None:
    path = saved(tmp_path, shlo_disc.compile(jnp.negative, args=(("n", "float32"),)))
    with pytest.raises(CError, match=text) as caught:
        Program(path, **options)
    assert caught.value.kind == "ValueError"
    with pytest.raises(CError, match="set trust of disc_load_options"):
        Program(path, trust=0)


def test_borrowed_bytes(tmp_path: Path) -> None:
    table = np.arange(64, dtype=np.float32)
    path = saved(tmp_path, shlo_disc.compile(lambda x: x + table, args=(("n, 64", "float32"),)))
    for shift in (0, 1):
        memory = np.zeros(path.stat().st_size + 129, np.uint8)
        start = -memory.ctypes.data % 64 + shift
        memory[start : start + path.stat().st_size] = np.frombuffer(path.read_bytes(), np.uint8)
        pointer = ctypes.c_void_p(memory.ctypes.data + start)
        program = ctypes.c_void_p()

        given = ctypes.byref(Options(struct_size=ctypes.sizeof(Options), trust=1, borrow=1))
        size = ctypes.c_size_t(path.stat().st_size)
        checked("disc_load_bytes", pointer, size, given, ctypes.byref(program))
        x = np.ones((3, 64), np.float32)
        np.testing.assert_array_equal(Program(None, program)(x)[0], x + table)


# ---- plans by symbols --------------------------------------------------------------------------------------------


def test_plans_by_symbols(tmp_path: Path) -> None:
    executable = shlo_disc.compile(
        lambda x, y: jnp.concatenate([x, x]) @ y, args=(("b, 2*s", "float32"), ("2*s, 8", "float32"))
    )
    program = Program(saved(tmp_path, executable))
    assert [library().disc_symbol(program.pointer, ctypes.c_size_t(i)) for i in range(3)] == [b"b", b"s", None]
    plan = program.plan_symbols(3, 5)
    shape = library().disc_plan_argument_shape
    assert shape(plan.pointer, ctypes.c_size_t(0))[:2] == [3, 10] and shape(plan.pointer, ctypes.c_size_t(1))[0] == 10
    assert not shape(plan.pointer, ctypes.c_size_t(2))
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((3, 10)).astype(np.float32), rng.standard_normal((10, 8)).astype(np.float32)
    result = np.zeros((6, 8), np.float32)
    plan.run([x, y], [result])
    np.testing.assert_allclose(result, np.concatenate([x, x]) @ y, rtol=1e-5, atol=1e-5)
    for values in ((3,), (1, 2, 3)):
        with pytest.raises(CError, match="has 2 symbols"):
            program.plan_symbols(*values)
    for pair in ((0, 1), (-1, 5), (2**62, 2**62)):
        with pytest.raises(CError) as caught:
            program.plan_symbols(*pair)
        assert caught.value.kind == "ShapeError"
    with pytest.raises(CError, match="are bound"):
        program.bind(x).plan_symbols(3, 5)


def test_errors_of_sizes_name_the_argument(tmp_path: Path) -> None:
    executable = shlo_disc.compile(lambda x, y: x @ y, args=(("b, 4", "float32"), ("4, n", "float32")))
    program = Program(saved(tmp_path, executable))
    for sizes, path in (((3, 5, 4, 8), "args[0]"), ((3, 4, 5, 8), "args[1]"), ((3, 4, 4, -1), "args[1]")):
        with pytest.raises(CError) as caught:
            program.plan(*sizes)
        assert (caught.value.kind, caught.value.argument) == ("ShapeError", path)
    plan, result = program.plan(3, 4, 4, 8), np.zeros((3, 8), np.float32)
    with pytest.raises(CError) as caught:
        plan.run([np.ones((3, 4), np.float32), np.ones((4, 7), np.float32)], [result])
    assert caught.value.argument == "args[1]"
    assert caught.value.text == (
        "the plan has a size of 8 for dimension 1 of args[1], and the array has 7: make a plan for these sizes, or use "
        "disc_call"
    )
    plan.run([np.ones((3, 4), np.float32), np.ones((4, 8), np.float32)], [result])
    np.testing.assert_array_equal(result, np.full((3, 8), 4, np.float32))
