# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Orders of elements other than row-major, by the C API: transfers, programs, and what is refused."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tests.pjrt.plugin import library

pypjrt: Any = pytest.importorskip("pypjrt")
client_module: Any = pytest.importorskip("pypjrt.client")
extensions: Any = pytest.importorskip("pypjrt.extensions")
errors: Any = pytest.importorskip("pypjrt.errors")
abi: Any = pytest.importorskip("pypjrt._abi.pjrt_0_114")

SHAPE = (2, 3, 4)
ORDERS = list(itertools.permutations(range(3)))
STRIDED = abi.PJRT_Buffer_MemoryLayout_Type_Strides


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    plugin = pypjrt.Plugin(library())
    plugin.initialize()
    with client_module.Client(plugin, options={"device_count": 2}) as made:
        yield made


class Layout:
    """A structure of the C API and the memory that it refers to."""

    def __init__(self, minor_to_major: Sequence[int] = (), tiles: int = 0, strides: Sequence[int] = ()):
        numbers = strides or minor_to_major
        self._numbers = (ctypes.c_int64 * max(len(numbers), 1))(*numbers)
        self._layout = abi.PJRT_Buffer_MemoryLayout()
        self._layout.struct_size = ctypes.sizeof(self._layout)
        place = ctypes.addressof(self._numbers)
        if strides:
            self._layout.type = STRIDED
            self._layout.strides.byte_strides = place
            self._layout.strides.num_byte_strides = len(strides)
        else:
            self._layout.tiled.minor_to_major = place
            self._layout.tiled.minor_to_major_size = len(minor_to_major)
            self._layout.tiled.num_tiles = tiles
        self.address = ctypes.addressof(self._layout)


def minor_to_major(order: Sequence[int]) -> list[int]:
    return list(reversed(order))


def text(order: Sequence[int]) -> bytes:
    """A layout in the words of XLA."""
    return ("{" + ",".join(map(str, minor_to_major(order))) + "}").encode()


def put(client: Any, array: np.ndarray, layout: Layout | None = None, semantics: int = 0) -> Any:
    """A buffer from an array of any strides."""
    dims, strides = ((ctypes.c_int64 * array.ndim)(*numbers) for numbers in (array.shape, array.strides))
    args = client._plugin.args(
        "PJRT_Client_BufferFromHostBuffer_Args",
        client=client.address,
        data=array.ctypes.data,
        type=abi.PJRT_Buffer_Type_F32,
        dims=ctypes.addressof(dims),
        num_dims=array.ndim,
        byte_strides=ctypes.addressof(strides),
        num_byte_strides=array.ndim,
        host_buffer_semantics=semantics,
        device=client._addressable()[0],
        device_layout=layout.address if layout else None,
    )
    client._plugin.call("PJRT_Client_BufferFromHostBuffer", args)
    client_module.Event(client._plugin, args.done_with_host_buffer).close()
    return client_module.Buffer(client._plugin, args.buffer)


def get(buffer: Any, order: Sequence[int] | None = None) -> np.ndarray:
    """The elements, which the host asks for in an order."""
    order = order or range(len(buffer.dimensions))
    layout = Layout(minor_to_major(order))
    out = np.empty([buffer.dimensions[axis] for axis in order], np.float32)
    args = buffer._plugin.args(
        "PJRT_Buffer_ToHostBuffer_Args",
        src=buffer.address,
        dst=out.ctypes.data,
        dst_size=out.nbytes,
        host_layout=layout.address,
    )
    buffer._plugin.call("PJRT_Buffer_ToHostBuffer", args)
    client_module.Event(buffer._plugin, args.event).consume()
    return out.transpose(np.argsort(order))


def memory(buffer: Any) -> np.ndarray:
    """The elements as they lie."""
    args = buffer._plugin.args("PJRT_Buffer_UnsafePointer_Args", buffer=buffer.address)
    buffer._plugin.call("PJRT_Buffer_UnsafePointer", args)
    count = int(np.prod(buffer.dimensions))
    return np.array((ctypes.c_float * count).from_address(args.buffer_pointer), np.float32)


def reported(buffer: Any) -> tuple[bytes, list[int]]:
    """The layout by the extension, and by the function of the table."""
    args = buffer._plugin.args("PJRT_Buffer_GetMemoryLayout_Args", buffer=buffer.address)
    buffer._plugin.call("PJRT_Buffer_GetMemoryLayout", args)
    tiled = args.layout.tiled
    place = ctypes.cast(tiled.minor_to_major, ctypes.POINTER(ctypes.c_int64))
    with extensions.buffer_layout(buffer) as layout:
        return layout.serialize(), [place[i] for i in range(tiled.minor_to_major_size)]


def elements(shape: Sequence[int] = SHAPE) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize("order", ORDERS)
def test_a_buffer_has_the_layout_that_it_is_made_with(client: Any, order: tuple[int, ...]) -> None:
    x = elements()
    buffer = put(client, x, Layout(minor_to_major(order)))
    assert buffer.dimensions == SHAPE
    assert reported(buffer) == (text(order), minor_to_major(order))
    assert np.array_equal(memory(buffer), x.transpose(order).reshape(-1))
    for host in ORDERS:
        assert np.array_equal(get(buffer, host), x)
    with client.devices() as devices:
        copy = buffer.copy_to_device(devices[1])
    assert reported(copy)[0] == text(order)
    assert np.array_equal(get(copy), x)


@pytest.mark.parametrize("order", ORDERS)
def test_layouts_by_strides(client: Any, order: tuple[int, ...]) -> None:
    x = np.empty([SHAPE[axis] for axis in order], np.float32).transpose(np.argsort(order))
    x[...] = elements()
    buffer = put(client, x, Layout(strides=x.strides))
    assert reported(buffer)[0] == text(order)
    assert np.array_equal(memory(buffer), x.transpose(order).reshape(-1))
    assert np.array_equal(get(buffer), x)


def test_dimensions_of_one_element_have_no_place(client: Any) -> None:
    x = elements((3, 1, 2))
    buffer = put(client, x, Layout(strides=(4, 8, 12)))
    assert reported(buffer)[0] == b"{0,1,2}"
    assert np.array_equal(get(buffer), x)


def test_an_array_that_lies_so_is_used_where_it_is(client: Any) -> None:
    zero_copy = abi.PJRT_HostBufferSemantics_kImmutableZeroCopy
    memory_of_x = np.zeros(64 * 96 + 16, np.float32)  # of 16 KiB and more
    start = -memory_of_x.ctypes.data % 64 // 4
    x = memory_of_x[start : start + 64 * 96].reshape(64, 96).T
    for order, shared in (((1, 0), True), ((0, 1), False)):
        buffer = put(client, x, Layout(minor_to_major(order)), zero_copy)
        x[2, 3] += 1
        assert bool(memory(buffer).max() == x.max()) is shared
        buffer.close()


PROGRAM = """
func.func @main(%a: tensor<2x3x4xf32> {{mhlo.layout_mode = "{a}"}}, %b: tensor<4xf32> {{mhlo.layout_mode = "default"}})
    -> (tensor<2x3x4xf32> {{mhlo.layout_mode = "{result}"}}, tensor<4x2x3xf32> {{mhlo.layout_mode = "auto"}}) {{
  %0 = stablehlo.broadcast_in_dim %b, dims = [2] : (tensor<4xf32>) -> tensor<2x3x4xf32>
  %1 = stablehlo.add %a, %0 : tensor<2x3x4xf32>
  %2 = stablehlo.transpose %a, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  return %1, %2 : tensor<2x3x4xf32>, tensor<4x2x3xf32>
}}
"""


def words(order: Sequence[int]) -> str:
    return text(order).decode()


@pytest.mark.parametrize("order", ORDERS)
def test_a_program_takes_and_makes_layouts(client: Any, order: tuple[int, ...]) -> None:
    """Its second result, a transposed argument, lies as the argument does."""
    result = ORDERS[(ORDERS.index(order) + 1) % 6]
    executable = client.compile(PROGRAM.format(a=words(order), result=words(result)))
    again = client.deserialize_executable(executable.serialize())
    turned = tuple((2, 0, 1).index(axis) for axis in order)
    x, b = elements(), elements((4,))
    for run in (executable, again):
        layouts = [
            layout.serialize()
            for kind in ("parameters", "outputs")
            for layout in extensions.executable_layouts(run, kind)
        ]
        assert layouts == [text(order), b"{0}", text(result), text(turned)]
        for given in ORDERS:  # what lies otherwise is copied
            total, moved = run(put(client, x, Layout(minor_to_major(given))), put(client, b))
            assert (total.dimensions, moved.dimensions) == (SHAPE, (4, 2, 3))
            assert (reported(total)[0], reported(moved)[0]) == (text(result), text(turned))
            assert np.array_equal(get(total), x + b)
            assert np.array_equal(get(moved), x.transpose(2, 0, 1))
        assert np.array_equal(memory(moved), x.transpose(order).reshape(-1))


@pytest.mark.parametrize(
    ("layout", "kind", "message"),
    [
        (Layout([0, 1]), "InvalidArgument", "has 2 dimensions, the array 3"),
        (Layout([0, 1, 1]), "InvalidArgument", "no order"),
        (Layout([0, 1, 3]), "InvalidArgument", "no order"),
        (Layout([0, 1, -1]), "InvalidArgument", "no order"),
        (Layout([2, 1, 0], tiles=1), "Unimplemented", "tiled layout"),
        (Layout(strides=(4, 8)), "InvalidArgument", "not as many strides"),
        (Layout(strides=(48, 16, 8)), "Unimplemented", "gaps"),
        (Layout(strides=(0, 0, 0)), "Unimplemented", "gaps"),
    ],
)
def test_layouts_that_are_refused(client: Any, layout: Layout, kind: str, message: str) -> None:
    with pytest.raises(getattr(errors, kind), match=message):
        put(client, elements(), layout)


@pytest.mark.parametrize(
    ("mode", "kind", "message"),
    [
        ("{0,1}", "InvalidArgument", "no layout of an array"),
        ("{0,1,1}", "InvalidArgument", "no layout of an array"),
        ("{0,1,7}", "InvalidArgument", "no layout of an array"),
        ("row by row", "InvalidArgument", "no layout of an array"),
        ("{2,1,0:T(8,128)}", "Unimplemented", "tiled layout"),
    ],
)
def test_programs_that_are_refused(client: Any, mode: str, kind: str, message: str) -> None:
    for modes in ({"a": mode, "result": "default"}, {"a": "auto", "result": mode}):
        with pytest.raises(getattr(errors, kind), match=message):
            client.compile(PROGRAM.format(**modes))
