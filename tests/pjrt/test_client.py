# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C API driven by a client that is not JAX."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.pjrt.plugin import library, run_python

pypjrt: Any = pytest.importorskip("pypjrt")
client_module: Any = pytest.importorskip("pypjrt.client")
options_module: Any = pytest.importorskip("pypjrt.compile_options")
transfer: Any = pytest.importorskip("pypjrt.transfer")
errors: Any = pytest.importorskip("pypjrt.errors")
abi: Any = pytest.importorskip("pypjrt._abi.pjrt_0_114")

F32 = abi.PJRT_Buffer_Type_F32
ADD = """
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3x2xf32>) {
  %0 = stablehlo.add %a, %b : tensor<2x3xf32>
  %1 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %0, %1 : tensor<2x3xf32>, tensor<3x2xf32>
}
"""
DYNAMIC = """
func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.multiply %a, %a : tensor<?xf32>
  return %0 : tensor<?xf32>
}
"""
DONATED = """
func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
DTYPES = {
    "PRED": "bool", "S8": "int8", "S16": "int16", "S32": "int32", "S64": "int64", "U8": "uint8", "U16": "uint16",
    "U32": "uint32", "U64": "uint64", "F16": "float16", "F32": "float32", "F64": "float64", "BF16": "bfloat16",
    "C64": "complex64", "C128": "complex128", "S4": "int4", "U4": "uint4", "S2": "int2", "U2": "uint2",
    "F8E4M3FN": "float8_e4m3fn", "F8E5M2": "float8_e5m2", "F4E2M1FN": "float4_e2m1fn",
}  # fmt: skip


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    plugin = pypjrt.Plugin(library())
    plugin.initialize()
    made = client_module.Client(plugin, options={"device_count": 2})
    yield made
    made.close()


def put(client: Any, array: np.ndarray, dtype: int = F32) -> Any:
    """A buffer with a copy of the elements."""
    data = np.ascontiguousarray(array).view(np.uint8).reshape(-1) if array.size else np.zeros(1, np.uint8)
    with client.device(0) as device:
        return client.buffer_from_host(memoryview(data), dtype, list(array.shape), device)


def get(buffer: Any, dtype: Any = np.float32) -> np.ndarray:
    """The elements of a buffer."""
    return np.frombuffer(buffer.to_host(), np.uint8).view(dtype).reshape(buffer.dimensions)


def matrix(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((2, 3)).astype(np.float32)


def test_conformance() -> None:
    done = run_python("-m", "pypjrt.conform", library())
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 FAIL" in done.stdout


def test_conformance_without_a_compiler() -> None:
    """In a Python that cannot import it, a client is told so; all else is as it was."""
    program = f"import runpy, sys; sys.modules['shlo_disc'] = None; sys.argv = ['conform', {library()!r}]"
    done = run_python("-c", f"{program}; runpy.run_module('pypjrt.conform', run_name='__main__')")
    assert done.returncode == 0 and " 0 FAIL" in done.stdout, done.stdout + done.stderr
    assert "compile.stablehlo_text                 compiling needs shlo_disc with its dependencies" in done.stdout


def test_compiles_and_runs(client: Any) -> None:
    executable = client.compile(ADD)
    a, b = matrix(0), matrix(1)
    total, turned = executable(put(client, a), put(client, b))
    assert np.array_equal(get(total), a + b)
    assert np.array_equal(get(turned), a.T)
    assert executable.name == "main"
    assert executable.num_outputs == 2
    stats = executable.compiled_memory_stats()
    assert (stats["argument_size_in_bytes"], stats["output_size_in_bytes"]) == (48, 48)
    assert executable.cost_analysis() == {"bytes accessed": 96.0, "flops": 6.0}


def test_sizes_may_come_with_the_arguments(client: Any) -> None:
    executable = client.compile(DYNAMIC)
    for size in (1, 7, 100):
        x = np.arange(size, dtype=np.float32)
        (squared,) = executable(put(client, x))
        assert np.array_equal(get(squared), x * x)


@pytest.mark.parametrize("name", DTYPES)
def test_elements_come_back_as_they_were(client: Any, name: str) -> None:
    dtype = np.dtype(getattr(np, DTYPES[name], None) or getattr(ml_dtypes, DTYPES[name]))
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    buffer = put(client, array, getattr(abi, f"PJRT_Buffer_Type_{name}"))
    assert buffer.element_type == getattr(abi, f"PJRT_Buffer_Type_{name}")
    assert np.array_equal(get(buffer, dtype), array)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1)])
def test_unusual_shapes(client: Any, shape: tuple[int, ...]) -> None:
    array = np.ones(shape, np.float32)
    buffer = put(client, array)
    assert buffer.dimensions == shape
    assert buffer.nbytes == array.nbytes
    if array.size:
        assert np.array_equal(get(buffer), array)


def test_donated_arguments_are_gone(client: Any) -> None:
    executable = client.compile(DONATED)
    a, b = (put(client, np.ones(4, np.float32)) for _ in range(2))
    (result,) = executable(a, b)
    assert np.array_equal(get(result), np.full(4, 2, np.float32))
    assert not b.is_deleted
    assert a.is_deleted


def test_a_donated_argument_can_be_kept(client: Any) -> None:
    executable = client.compile(DONATED)
    a, b = (put(client, np.ones(4, np.float32)) for _ in range(2))
    executable(a, b, non_donatable=[0])
    assert np.array_equal(get(a), np.ones(4, np.float32))


def test_a_buffer_cannot_be_donated_twice(client: Any) -> None:
    executable = client.compile(DONATED)
    a = put(client, np.ones(4, np.float32))
    with pytest.raises(errors.InvalidArgument, match="is donated"):
        executable(a, a)
    assert np.array_equal(get(a), np.ones(4, np.float32))
    executable(a, a, non_donatable=[0])


def test_copies_to_devices_and_memories(client: Any) -> None:
    buffer = put(client, matrix(2))
    with client.devices() as devices:
        assert len(devices) == 2
        copy = buffer.copy_to_device(devices[1])
        assert copy.device().id == 1
        pinned = buffer.copy_to_memory(devices[0].memories()[1])
        assert pinned.memory().kind == "pinned_host"
    buffer.delete()
    assert np.array_equal(get(copy), matrix(2))
    assert np.array_equal(get(pinned), matrix(2))


def test_pieces_make_a_buffer(client: Any) -> None:
    x = np.arange(6, dtype=np.float32)
    with client.device(0) as device, client.async_transfer([transfer.ShapeSpec(F32, (6,))], device=device) as parts:
        parts.transfer(0, memoryview(x))
        buffer = parts.retrieve(0)
        assert np.array_equal(get(buffer), x)


def test_a_call_on_a_buffer_to_come(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client waits for the end of each run, here in a thread, while the buffer gets its pieces or never will."""
    monkeypatch.setattr("pypjrt._loader.pjrt_call", contextlib.nullcontext)  # the client's lock around each call
    executable, x = client.compile(DYNAMIC), np.arange(6, dtype=np.float32)
    with client.device(0) as device, ThreadPoolExecutor(1) as pool:
        with client.async_transfer([transfer.ShapeSpec(F32, (6,))], device=device) as parts:
            call = pool.submit(executable, parts.retrieve(0))
            assert not wait([call], timeout=0.1).done
            parts.transfer(0, memoryview(x))
            assert np.array_equal(get(call.result()[0]), x * x)
        with client.async_transfer([transfer.ShapeSpec(F32, (6,))], device=device) as parts:
            call = pool.submit(executable, parts.retrieve(0))
            assert not wait([call], timeout=0.1).done
        with pytest.raises(errors.Cancelled, match="given up"):
            call.result()
    (result,) = executable(put(client, np.ones(3, np.float32)))
    assert np.array_equal(get(result), np.ones(3, np.float32))


def test_serialized_executables_run(client: Any) -> None:
    again = client.deserialize_executable(client.compile(ADD).serialize())
    total, _ = again(put(client, matrix(0)), put(client, matrix(1)))
    assert np.array_equal(get(total), matrix(0) + matrix(1))


REFUSED = {
    "not a program": ("this is no program", "InvalidArgument", "cannot be parsed"),
    "an unknown function": (
        "func.func @main(%a: tensor<f32>) -> tensor<f32> {\n%0 = stablehlo.custom_call @unknown_function(%a)"
        " : (tensor<f32>) -> tensor<f32>\nreturn %0 : tensor<f32>\n}",
        "Unimplemented",
        "unknown_function",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_programs_that_are_refused(client: Any, name: str) -> None:
    program, kind, message = REFUSED[name]
    with pytest.raises(getattr(errors, kind), match=message):
        client.compile(program)


def test_calls_that_are_refused(client: Any) -> None:
    executable = client.compile(ADD)
    a = put(client, matrix(0))
    with pytest.raises(errors.InvalidArgument, match="takes 2 arguments, not 1"):
        executable(a)
    with pytest.raises(errors.InvalidArgument, match="float64"):
        executable(a, put(client, np.ones((2, 3)), abi.PJRT_Buffer_Type_F64))
    with pytest.raises(errors.InvalidArgument, match="Shape mismatch|another size|size"):
        executable(a, put(client, np.ones((2, 4), np.float32)))
    total, _ = executable(a, a)
    assert np.array_equal(get(total), 2 * matrix(0))


@pytest.mark.parametrize(("replicas", "partitions"), [(2, 1), (1, 2)])
def test_several_devices_take_portable_artifacts(client: Any, replicas: int, partitions: int) -> None:
    with pytest.raises(errors.InvalidArgument, match="portable artifact|for 1 participants"):
        client.compile(ADD, options=options_module.CompileOptions(num_replicas=replicas, num_partitions=partitions))
