# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays on a GPU go from library to library by `__cuda_array_interface__`, each waiting for the other's work."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import ArgumentTypeError, ShapeError
from shlo_disc.runtime import Client, _native
from tests.gpu.emulated import fresh_client, loaded
from tests.gpu.marks import needs_mock_driver
from tests.gpu.mock_driver import FIRST_CONTEXT, MockDriver
from tests.gpu.mock_streams import LEGACY, PER_THREAD

pytestmark = needs_mock_driver

ROWS = (("b, s", "float32"),)


@functools.cache
def program(function: Callable[..., Any], arguments: tuple[tuple[str, str], ...] = ROWS) -> shlo_disc.Executable:
    return shlo_disc.compile(function, target="cuda:sm_90", args=arguments)


def double(x: Any) -> Any:
    return x + x


def rows(b: int, s: int) -> np.ndarray:
    return np.random.default_rng(b + s).standard_normal((b, s)).astype(np.float32)


class Library:
    """Another library on a client's GPU, with memory and a stream of its own."""

    def __init__(self, driver: MockDriver, client: Client):
        self.driver, self.cell = driver, np.zeros(1, np.uint64)
        self.context = FIRST_CONTEXT + client.device(0).local_hardware_id
        self.stream = self.ask("cuStreamCreate", self.cell.ctypes.data, 1)

    def ask(self, name: str, *arguments: int) -> int:
        """Call the driver as a library does; what it writes to the cell."""
        self.driver.call("cuCtxPushCurrent_v2", [self.context])
        code = self.driver.call(name, arguments)
        found = int(self.cell[0])
        self.driver.call("cuCtxPopCurrent_v2", [self.cell.ctypes.data])
        assert code == 0
        return found

    def array(self, elements: np.ndarray, stream: int | None = None, **changes: Any) -> Any:
        """An array whose elements are written by work in a stream, which is not done yet; None: they are there."""
        memory = np.ascontiguousarray(elements)
        address = self.ask("cuMemAlloc_v2", self.cell.ctypes.data, max(memory.nbytes, 1) + 64)

        def write() -> None:
            self.driver.view(address, memory.nbytes)[...] = memory.reshape(-1).view(np.uint8)

        if stream is None:
            write()
        else:
            self.driver._give(stream, write)
        return Array({
            "shape": elements.shape, "typestr": elements.dtype.str, "data": (address, False), "strides": None,
            "version": 3, "stream": stream, **changes,
        })  # fmt: skip


class Array:
    """An object with the interface, and nothing else."""

    def __init__(self, interface: Any):
        self.__cuda_array_interface__ = interface


def copies(client: Client) -> int:
    return client.device(0).memory_stats()["argument_copies"]


def test_what_a_buffer_says(driver: MockDriver, client: Client) -> None:
    run = loaded(program(double), client)
    made = run.execute([rows(3, 5)], output="buffer")
    said = made.__cuda_array_interface__
    (address, is_read_only) = said["data"]
    assert said["shape"] == (3, 5) and said["typestr"] == "<f4" and said["strides"] is None and said["version"] == 3
    assert is_read_only and said["stream"] > PER_THREAD
    assert isinstance(said["stream"], int) and driver._stream(said["stream"]).given, "where the work is that makes it"
    made.block_until_ready()
    assert made.__cuda_array_interface__["stream"] is None, "there is nothing to wait for"
    np.testing.assert_array_equal(driver.view(address, 60).view(np.float32).reshape(3, 5), 2 * rows(3, 5))
    assert client.buffer_from_host(np.zeros((0, 4), np.float32)).__cuda_array_interface__["data"] == (0, True)


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "i8", "f2", "f8", "c8", "c16"])
def test_the_types_of_buffers(client: Client, dtype: str) -> None:
    array = np.ones((2,), dtype)
    assert client.buffer_from_host(array).__cuda_array_interface__["typestr"] == array.dtype.str


def test_who_has_no_interface(client: Client) -> None:
    assert not hasattr(Client(threads=1).buffer_from_host(rows(1, 2)), "__cuda_array_interface__")
    assert not hasattr(client.buffer_from_host(np.zeros(2, jnp.bfloat16)), "__cuda_array_interface__")
    deleted = client.buffer_from_host(rows(1, 2))
    deleted.delete()
    with pytest.raises(RuntimeError, match="has been deleted"):
        _ = deleted.__cuda_array_interface__


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 31, 301])
@pytest.mark.parametrize("where", ["own", LEGACY, PER_THREAD, None])
def test_arrays_are_read_in_place_once_their_work_is_done(
    driver: MockDriver, client: Client, size: int, where: Any
) -> None:
    library = Library(driver, client)
    run = loaded(program(double, (("b, s - 1", "float32"),)), client)
    given = rows(2, size)
    array = library.array(given, library.stream if where == "own" else where)
    before = copies(client)
    result = run.execute([array], output="buffer")
    assert result.is_ready(), "the call waits, for the array may be freed once it is over"
    assert copies(client) == before
    np.testing.assert_array_equal(result.to_host(), given + given)


def test_an_older_interface_does_not_say_what_to_wait_for(driver: MockDriver, client: Client) -> None:
    library = Library(driver, client)
    run = loaded(program(double), client)
    array = library.array(rows(2, 3), library.stream, version=2)
    del array.__cuda_array_interface__["stream"]
    np.testing.assert_array_equal(run(array), 2 * rows(2, 3))


def test_work_of_others_goes_on_behind_ours(driver: MockDriver, client: Client) -> None:
    """The array is written again as soon as the call is over, and may be."""
    library = Library(driver, client)
    run = loaded(program(double), client)
    array = library.array(rows(2, 3), library.stream)
    result = run.execute([array], output="buffer")
    library.ask("cuMemsetD8Async", array.__cuda_array_interface__["data"][0], 0, 24, library.stream)
    library.ask("cuStreamSynchronize", library.stream)
    np.testing.assert_array_equal(result.to_host(), 2 * rows(2, 3))


def test_rows_at_a_distance_are_copied_once_on_the_gpu(driver: MockDriver, client: Client) -> None:
    library = Library(driver, client)
    run = loaded(program(double), client)
    whole = rows(6, 8)
    for part in (whole[:, :5], whole[::2], whole[1::3, 2:4], whole[:, ::2], whole[:1, ::3], whole[2:4]):
        offset = part.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
        array = library.array(whole, library.stream, shape=part.shape, strides=part.strides)
        address, _ = array.__cuda_array_interface__["data"]
        array.__cuda_array_interface__["data"] = (address + offset, False)
        before = copies(client)
        np.testing.assert_array_equal(run(array), part + part)
        assert copies(client) - before == (not part.flags.c_contiguous)


def test_an_address_between_words_is_copied(driver: MockDriver, client: Client) -> None:
    library = Library(driver, client)
    run = loaded(program(double), client)
    array = library.array(rows(3, 8), library.stream, shape=(2, 8))
    address, _ = array.__cuda_array_interface__["data"]
    for offset, copied in ((4, 1), (32, 0)):
        array.__cuda_array_interface__["data"] = (address + offset, False)
        before = copies(client)
        want = rows(3, 8).reshape(-1)[offset // 4 : offset // 4 + 16].reshape(2, 8)
        np.testing.assert_array_equal(run(array), want + want)
        assert copies(client) - before == copied


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"strides": (4, 8), "shape": (2, 3)}, r"args\[0\] does not lie in rows .* pass a contiguous array"),
        ({"strides": (0, 4)}, "does not lie in rows"),
        ({"strides": (-12, 4)}, "does not lie in rows"),
        ({"strides": (12,)}, "not as many strides as dims"),
        ({"typestr": ">f4"}, "does not lie in rows"),
        ({"typestr": "<f8"}, "expected float32 and called with float64"),
        ({"typestr": "nonsense"}, "is no type of NumPy's"),
        ({"stream": 0}, "is 0, which may be either of two"),
        ({"mask": 1}, "is a masked array"),
        ({"data": 17}, "'data' of its __cuda_array_interface__"),
        ({"data": (17, False)}, r"args\[0\] is on no GPU, and the program runs on GPU \d+"),
        ({"shape": (2.5, 3)}, "is not of integers"),
        ({"version": None}, "'version' of its __cuda_array_interface__"),
    ],
)
def test_what_is_refused(driver: MockDriver, client: Client, changes: Any, message: str) -> None:
    array = Library(driver, client).array(rows(2, 3))
    array.__cuda_array_interface__ |= changes
    with pytest.raises(ArgumentTypeError, match=message):
        loaded(program(double), client)(array)


def test_arrays_elsewhere_are_refused(driver: MockDriver, client: Client) -> None:
    other = Library(driver, fresh_client()).array(rows(2, 3))
    with pytest.raises(ArgumentTypeError, match=r"args\[0\] is on GPU \d+, and the program runs on GPU \d+"):
        loaded(program(double), client)(other)
    with pytest.raises(ArgumentTypeError, match=r"args\[0\] is on a GPU, and the program runs on the CPU"):
        shlo_disc.compile(double, args=ROWS)(other)
    with pytest.raises(ShapeError, match="Rank mismatch"):
        loaded(program(double), client)(Library(driver, client).array(rows(2, 3)[0]))


def test_what_is_bound_is_copied_before_its_owner_may_free_it(driver: MockDriver, client: Client) -> None:
    library = Library(driver, client)
    added = program(lambda b, x: x + b, (("n", "float32"), ("b, n", "float32")))
    array = library.array(rows(1, 6)[0], library.stream)
    address, _ = array.__cuda_array_interface__["data"]
    bound = loaded(added, client).bind(array)
    driver.view(address, 24)[...] = 0
    result = bound.executable.execute([rows(1, 6)[0], rows(2, 6)], output="numpy")
    np.testing.assert_array_equal(bound(rows(2, 6)), result)


def test_memory_that_was_lent_is_used_again_once_others_have_read_it(driver: MockDriver, client: Client) -> None:
    library = Library(driver, client)
    run = loaded(program(double), client)
    made = run.execute([rows(3, 5)], output="buffer")
    said, seen = made.__cuda_array_interface__, []
    made.block_until_ready()
    driver._give(library.stream, lambda: seen.append(driver.view(said["data"][0], 60).view(np.float32).copy()))
    made.delete()
    other = run.execute([rows(5, 3)], output="buffer")
    assert other.__cuda_array_interface__["data"][0] != said["data"][0], "it is deleted, and lent as long as it lives"
    assert seen == []
    del made
    gc.collect()
    np.testing.assert_array_equal(seen[0].reshape(3, 5), 2 * rows(3, 5))


# ---- arrays of JAX --------------------------------------------------------------------------------------------------


class JaxArray:
    """A stand-in for a jax.Array on a GPU: no Python buffer, DLPack in any stream, and elements by way of the host."""

    def __init__(self, buffer: Any):
        self.buffer, self.host_copies = buffer, 0
        self.streams: list[Any] = []

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, **others: Any) -> Any:
        self.streams.append(stream)
        return self.buffer.__dlpack__(max_version=max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.buffer.__dlpack_device__()


@pytest.fixture
def jax_type(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Our core takes the stand-in for JAX's arrays, and its elements as JAX would hand them over."""

    def elements(array: JaxArray) -> np.ndarray:
        array.host_copies += 1
        return np.asarray(array.buffer.to_host())

    _native.set_jax_array_type(JaxArray)
    _native.set_jax_elements(elements)
    yield
    _native.set_jax_array_type(type(jnp.zeros(1)))
    from shlo_disc.runtime.jax_arrays import jax_elements

    _native.set_jax_elements(jax_elements)


def test_arrays_of_jax_on_the_gpu_stay_there(client: Client, jax_type: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax.dlpack, "from_dlpack", JaxArray)
    run = loaded(program(double), client)
    array = JaxArray(client.buffer_from_host(rows(3, 4)))
    before = copies(client)
    result = run(array)
    assert isinstance(result, JaxArray) and array.host_copies == 0 and copies(client) == before
    assert len(array.streams) == 1 and array.streams[0] > PER_THREAD
    again = run(result)
    np.testing.assert_array_equal(again.buffer.to_host(), 4 * rows(3, 4))
    np.testing.assert_array_equal(run.execute([again], output="numpy"), 8 * rows(3, 4))


def test_arrays_of_jax_elsewhere_come_through_the_host(client: Client, jax_type: None) -> None:
    array = JaxArray(fresh_client().buffer_from_host(rows(3, 4)))
    run = loaded(program(double), client)
    np.testing.assert_array_equal(run.execute([array], output="numpy"), 2 * rows(3, 4))
    assert array.host_copies == 1 and array.streams == []
    on_cpu = Client(threads=1).load(shlo_disc.compile(double, args=ROWS).artifact)
    np.testing.assert_array_equal(on_cpu.execute([array], output="numpy"), 2 * rows(3, 4))
    assert array.host_copies == 2


# ---- DLPack in streams ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["own", LEGACY, PER_THREAD])
def test_a_stream_that_reads_a_result_waits_and_the_host_does_not(
    driver: MockDriver, client: Client, where: Any
) -> None:
    library, seen = Library(driver, client), []
    stream = library.stream if where == "own" else where
    run = loaded(program(double), client)
    made = run.execute([rows(3, 5)], output="buffer")
    capsule = made.__dlpack__(stream=stream)
    assert not made.is_ready()
    address, _ = made.__cuda_array_interface__["data"]
    driver._give(stream, lambda: seen.append(driver.view(address, 60).view(np.float32).copy()))
    library.ask("cuStreamSynchronize", stream)
    np.testing.assert_array_equal(seen[0].reshape(3, 5), 2 * rows(3, 5))
    del capsule


def test_work_goes_through_two_streams_and_back(driver: MockDriver, client: Client) -> None:
    """Ours, a library's, and ours again, each after the other, for all that nothing has been waited for."""
    library = Library(driver, client)
    run = loaded(program(double), client)
    first = run.execute([rows(4, 7)], output="buffer")
    capsule = first.__dlpack__(stream=library.stream)
    address, _ = first.__cuda_array_interface__["data"]
    between = library.array(np.zeros((4, 7), np.float32))
    target, _ = between.__cuda_array_interface__["data"]
    library.ask("cuMemcpyDtoDAsync_v2", target, address, 4 * 7 * 4, library.stream)
    assert not first.is_ready()
    between.__cuda_array_interface__["stream"] = library.stream
    np.testing.assert_array_equal(run.execute([between], output="numpy"), 4 * rows(4, 7))
    del capsule


def test_a_consumer_that_says_nothing_finds_all_there(client: Client) -> None:
    run = loaded(program(double), client)
    made = run.execute([rows(3, 5)], output="buffer")
    capsule = made.__dlpack__(stream=-1)
    assert not made.is_ready(), "nobody waits"
    made.__dlpack__()
    assert made.is_ready()
    del capsule


@pytest.mark.parametrize("stream", [0, -2])
def test_a_stream_that_is_none(client: Client, stream: int) -> None:
    made = loaded(program(double), client).execute([rows(3, 5)], output="buffer")
    with pytest.raises(ValueError, match="a stream of a GPU is 1, 2, the address of another one, or -1"):
        made.__dlpack__(stream=stream)


def test_a_deleted_buffer_gives_nothing_to_a_stream(client: Client) -> None:
    made = loaded(program(double), client).execute([rows(3, 5)], output="buffer")
    made.delete()
    for stream in (None, LEGACY, -1):
        with pytest.raises(RuntimeError, match="has been deleted"):
            made.__dlpack__(stream=stream)
