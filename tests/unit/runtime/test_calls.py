# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls: every kind of argument, every kind of result, threads, memory, limits."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from shlo_disc.errors import ArtifactError, DiscError
from shlo_disc.runtime import AllocationError, Buffer, Client, TreeSpec
from shlo_disc.runtime.tree import call_tree

from .programs import add_one, identity, symbol

DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i1": np.bool_, "bf16": ml_dtypes.bfloat16}
DTYPES |= {f"{kind}{bits}": np.dtype(f"{kind}{bits // 8}") for kind in "iu" for bits in (8, 16, 32, 64)}


@pytest.fixture
def client() -> Iterator[Client]:
    yield Client(threads=2)


def matrix(dtype: str) -> Any:
    """x[b, s] -> x."""
    return identity([("args[0]", [{"b": 1}, {"s": 1}], dtype)], [symbol("b", 0, 0, min=0), symbol("s", 0, 1, min=0)])


def numbers(dtype: str, *shape: int) -> np.ndarray:
    return np.arange(int(np.prod(shape))).reshape(shape).astype(DTYPES[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_in_every_way(client: Client, dtype: str) -> None:
    executable = client.load(matrix(dtype))
    x = numbers(dtype, 3, 5)
    result = executable(x)
    assert type(result) is np.ndarray
    assert result.dtype == x.dtype
    assert (result == x).all()
    buffer = executable.execute((x,), output="buffer")
    assert isinstance(buffer, Buffer)
    assert buffer.shape == (3, 5)
    assert buffer.dtype == x.dtype
    assert buffer.on_device_size_in_bytes() == x.nbytes
    assert (np.asarray(buffer) == x).all()
    assert (executable(buffer) == x).all()
    assert (client.buffer_from_host(x).to_host() == x).all()
    with jax.enable_x64(True):
        as_jax = executable.execute((x,), output="jax")
        assert isinstance(as_jax, jax.Array)
        assert as_jax.dtype == x.dtype
        assert (np.asarray(as_jax) == x).all()
        again = executable(as_jax)
        assert isinstance(again, jax.Array)
        assert (np.asarray(again) == x).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_copies_only_when_needed(client: Client, dtype: str) -> None:
    executable = client.load(matrix(dtype))
    item = np.dtype(DTYPES[dtype]).itemsize
    base = numbers(dtype, 6, 8)
    unaligned = np.frombuffer(bytearray(base.nbytes + 1), np.uint8)[1:].view(base.dtype).reshape(6, 8)
    unaligned[...] = base
    plain = [base, base[2:4], np.zeros((0, 8), base.dtype), np.zeros((3, 0), base.dtype), base[:1, :]]
    copied = [base.T, base[::2], base[:, 1:3], base[::-1], np.broadcast_to(base[0], (4, 8))]
    if item > 1:
        copied.append(unaligned)
        if dtype != "bf16":
            copied.append(base.astype(base.dtype.newbyteorder(">")))
            copied.append(base.astype(base.dtype.newbyteorder(">")).T)
    for expected, arrays in ((0, plain), (1, copied)):
        for array in arrays:
            before = client.devices()[0].memory_stats()["argument_copies"]
            np.testing.assert_array_equal(executable(array), array)
            assert client.devices()[0].memory_stats()["argument_copies"] - before == expected, array.strides


def test_jax_arrays_are_not_copied(client: Client) -> None:
    executable = client.load(matrix("f32"))
    x = jnp.arange(4096.0).reshape(64, 64)
    result = executable(x)
    assert client.devices()[0].memory_stats()["argument_copies"] == 0
    assert (result == x).all()
    assert result.sharding == x.sharding
    view = executable.execute((x,), output="buffer")
    np_view = np.asarray(view)
    wrapped = executable.execute((x,), output="jax")
    assert wrapped.unsafe_buffer_pointer() % 64 == 0
    assert (np_view == x).all()
    assert not np_view.flags.writeable


def test_dropped_jax_arrays_give_their_memory_to_the_next_call() -> None:
    client = Client(threads=1)
    executable = client.load(matrix("f32"))
    x = jnp.ones((512, 512))
    executable(x)
    for _ in range(5):
        result = executable(x)
        del result
    kept = executable(x)
    stats = client.devices()[0].memory_stats()
    assert stats["peak_bytes"] < 2 * x.nbytes, "one result at a time"
    other = executable(x + 1)
    assert (np.asarray(kept) == 1).all()
    assert (np.asarray(other) == 2).all()


def test_deleted_jax_array_is_an_error(client: Client) -> None:
    executable = client.load(matrix("f32"))
    executable(jnp.zeros((1, 1)))
    x = jnp.zeros((2, 2))
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        executable(x)


class WithDlpack:
    """An object of another library: nothing but the DLPack protocol, and perhaps strides."""

    def __init__(self, array: np.ndarray):
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class WithArray:
    def __init__(self, array: np.ndarray):
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.array


def test_objects_of_other_libraries(client: Client) -> None:
    executable = client.load(matrix("f32"))
    x = numbers("f32", 4, 6)
    for wrap in (WithDlpack, WithArray):
        for array in (x, x.T, x[:, ::2], x[:0]):
            np.testing.assert_array_equal(executable(wrap(array)), array)
    with pytest.raises(DiscError, match="Dtype mismatch"):
        executable(WithDlpack(x.astype(np.int32)))
    references = sys.getrefcount(x)
    for _ in range(100):
        executable(WithDlpack(x))
    assert sys.getrefcount(x) == references


def test_python_and_numpy_numbers(client: Client) -> None:
    for dtype, values in {
        "f32": [1, 0.1, np.float32(2.5), float("inf"), 1e300, -0.0],
        "f64": [0.1, 2**53, np.float64(3)],
        "f16": [1.0009, 70000.0, 2048, np.float16(1.5)],
        "bf16": [1.00390625, 256, 3.389e38],
        "i1": [True, False, np.bool_(True)],
        "i8": [-128, 127, np.int8(3)],
        "u64": [2**64 - 1],
        "i64": [-(2**63)],
    }.items():
        executable = client.load(identity([("args[0]", [], dtype)]))
        for value in values:
            with np.errstate(over="ignore"):
                expected = np.asarray(value, DTYPES[dtype])
            assert executable(value).tobytes() == expected.tobytes(), (dtype, value)


def test_structures(client: Client) -> None:
    program = identity([(f"args[{i}]", [], "f32") for i in range(3)])
    in_tree = TreeSpec.of((({"z": 0.0, "a": [0.0]},), {"k": 0.0}))
    out_tree = TreeSpec.of([{"q": 0.0}, (0.0, None), 0.0])
    executable = client.load(program, in_tree=in_tree, out_tree=out_tree)
    # Leaves are in the order of the sorted keys: a, z, k.
    assert executable({"z": 2.0, "a": [1.0]}, k=3.0) == [{"q": 1.0}, (2.0, None), 3.0]
    header = {**program.header, "pytree": {"in": in_tree.to_json(), "out": out_tree.to_json()}}
    stored = client.load(type(program).of(header, program.object))
    assert stored({"a": [1.0], "z": 2.0}, k=3.0) == [{"q": 1.0}, (2.0, None), 3.0]
    assert stored.output_shapes() == [{"q": ()}, ((), None), ()]


@jax.tree_util.register_pytree_node_class
class Pair:
    """A node type of the user's own, with metadata."""

    def __init__(self, left: Any, right: Any, name: str):
        self.left, self.right, self.name = left, right, name

    def tree_flatten(self) -> tuple[tuple[Any, Any], str]:
        return (self.left, self.right), self.name

    @classmethod
    def tree_unflatten(cls, name: str, children: tuple[Any, Any]) -> Pair:
        return cls(*children, name)


def test_custom_nodes(client: Client) -> None:
    example = Pair(0.0, [0.0], "n")
    in_tree = jax.tree_util.tree_structure(((example,), {}))
    out_tree = jax.tree_util.tree_structure({"r": example})
    program = identity([("args[0].left", [], "f32"), ("args[0].right[0]", [], "f32")])
    executable = client.load(program, in_tree=in_tree, out_tree=out_tree)
    result = executable(Pair(1.0, [2.0], "n"))["r"]
    assert (type(result), result.left, result.right, result.name) == (Pair, 1.0, [2.0], "n")
    for wrong in (Pair(1.0, [2.0], "other"), Pair(1.0, 2.0, "n"), (1.0, [2.0])):
        with pytest.raises(DiscError, match="structural differences"):
            executable(wrong)
    with pytest.raises(ArtifactError, match="node of type tests.unit.runtime.test_calls.Pair"):
        TreeSpec.from_json(executable.in_tree.to_json())


def test_call_tree_helper() -> None:
    assert call_tree(2).leaves == 2
    assert call_tree(TreeSpec.of((0.0,)), TreeSpec.of({"k": 0.0})).leaves == 2


def test_zero_sizes_and_rank_zero(client: Client) -> None:
    executable = client.load(matrix("f64"))
    for shape in ((0, 0), (0, 4), (4, 0)):
        assert executable(np.zeros(shape)).shape == shape
    assert client.load(identity([("args[0]", [], "f64")]))(np.array(2.0)) == 2
    assert client.load(identity([]))() == ()


def test_sixteen_threads(client: Client) -> None:
    executable, failures = client.load(add_one()), []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(120):
            x = rng.standard_normal((int(rng.integers(1, 900)), 8), np.float32)
            if not (executable(x) == x + 1).all():
                failures.append(x.shape)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert client.devices()[0].memory_stats()["live_bytes"] == 0


def test_fork_restarts_the_threads(client: Client) -> None:
    code = """
import os, numpy as np
from shlo_disc.runtime import Client
from tests.unit.runtime.programs import add_one
executable = Client(threads=2).load(add_one())
x = np.ones((4000, 8), np.float32)
assert (executable(x) == 2).all()
child = os.fork()
ok = all((executable(x) == 2).all() for _ in range(50))
if child == 0:
    os._exit(0 if ok else 1)
assert ok and os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60, cwd=os.getcwd())


def test_one_arena_a_call_and_the_peak_as_planned(client: Client) -> None:
    executable, device = client.load(add_one()), client.devices()[0]
    for rows in (1, 7, 1000):
        client.reset_peak()
        before = device.memory_stats()
        x = np.ones((rows, 8), np.float32)
        result = executable(x)
        after = device.memory_stats()
        assert after["arena_allocations"] - before["arena_allocations"] == 1
        assert after["result_allocations"] - before["result_allocations"] == 1
        assert after["last_arena_bytes"] == rows * 32
        assert after["peak_bytes"] == executable.peak_memory(b=rows) == 2 * rows * 32
        assert after["live_bytes"] == result.nbytes
        del result


def test_warm_calls_take_no_fresh_memory(client: Client) -> None:
    executable, device = client.load(add_one()), client.devices()[0]
    x = np.ones((100000, 8), np.float32)
    executable(x)
    before = device.memory_stats()["system_allocations"]
    for _ in range(5):
        executable(x)
        executable(x[:60000])
    assert device.memory_stats()["system_allocations"] == before
    assert client.trim() > 0
    assert device.memory_stats()["cached_bytes"] == 0


def test_results_keep_their_memory(client: Client) -> None:
    executable, device = client.load(add_one()), client.devices()[0]
    x = np.ones((500, 8), np.float32)
    buffer = executable.execute((x,), output="buffer")
    array, shared = np.asarray(buffer), np.from_dlpack(buffer)
    as_jax = jax.dlpack.from_dlpack(buffer)
    buffer.delete()
    assert buffer.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(buffer)
    executable.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        executable(x)
    del buffer, executable
    gc.collect()
    assert (array == 2).all() and (shared == 2).all() and (np.asarray(as_jax) == 2).all()
    assert device.memory_stats()["live_bytes"] == x.nbytes
    del array, shared, as_jax
    gc.collect()
    assert device.memory_stats()["live_bytes"] == 0


def test_allocation_failure_at_every_step(client: Client) -> None:
    executable, device = client.load(add_one()), client.devices()[0]
    x = np.ones((8, 50), np.float32).T  # needs a copy, a result and an arena
    for k, asked in ((1, 1600), (2, 1600), (3, 1600)):
        client.native_device.fail_allocation(k)
        with pytest.raises(MemoryError) as error:
            executable(x)
        assert isinstance(error.value, AllocationError)
        assert isinstance(error.value, DiscError)
        assert error.value.bytes_asked == asked
        assert "1600 bytes" in str(error.value)
        assert device.memory_stats()["live_bytes"] == 0
        assert (executable(x) == 2).all()
    client.native_device.fail_allocation(4)
    assert (executable(x) == 2).all()
    client.native_device.fail_allocation(0)


def test_memory_limit() -> None:
    client = Client(threads=1, memory_limit=10_000)
    executable = client.load(add_one())
    assert (executable(np.zeros((100, 8), np.float32)) == 1).all()
    with pytest.raises(AllocationError, match="memory limit"):
        executable(np.zeros((200, 8), np.float32))
    assert (executable(np.zeros((100, 8), np.float32)) == 1).all()


def test_the_cache_is_bounded() -> None:
    client = Client(threads=1, cache_limit=100_000)
    executable = client.load(add_one())
    for rows in range(1, 2000, 37):
        executable(np.zeros((rows, 8), np.float32))
        assert client.devices()[0].memory_stats()["cached_bytes"] <= 100_000


def test_remembered_shapes_are_bounded(client: Client) -> None:
    executable = client.load(add_one(), memo_bytes=4000)
    for rows in range(1, 200):
        x = np.zeros((rows, 8), np.float32)
        assert (executable(x) == 1).all()
    count, used = executable.plan_cache()
    assert 2 <= count < 20
    assert used <= 4000


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_no_leak_over_many_calls(client: Client) -> None:
    executable = client.load(add_one())
    arrays = [np.zeros((rows, 8), np.float32) for rows in range(1, 101)]
    as_jax = jnp.zeros((3, 8))

    def calls(count: int) -> None:
        for i in range(count):
            executable(arrays[i % 100])
            if i % 10 == 0:
                executable(as_jax)
                executable.execute((arrays[i % 100],), output="buffer")
            if i % 50 == 0:
                with pytest.raises(DiscError):
                    executable(arrays[0][:, :3])

    calls(5_000)
    gc.collect()
    before = resident_bytes()
    calls(100_000)
    gc.collect()
    # Less than a byte a call; the allowance is for pages that the interpreter keeps.
    assert resident_bytes() - before < 100_000 + 400_000
