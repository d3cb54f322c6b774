# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of the C API that no framework should make. Each gives an error with a code, and the process goes on."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
import pytest

from tests.pjrt.plugin import library

pypjrt: Any = pytest.importorskip("pypjrt")
client_module: Any = pytest.importorskip("pypjrt.client")
errors: Any = pytest.importorskip("pypjrt.errors")
abi: Any = pytest.importorskip("pypjrt._abi.pjrt_0_114")

UNIMPLEMENTED = {
    "CopyToDeviceStream_Destroy", "CopyToDeviceStream_AddChunk", "CopyToDeviceStream_TotalBytes",
    "CopyToDeviceStream_GranuleSize", "CopyToDeviceStream_CurrentBytes", "Client_DmaMap", "Client_DmaUnmap",
    "Client_CreateAliasBuffer", "Client_FulfillAliasBuffer", "Client_CreateErrorBuffer",
    "AsyncHostToDeviceTransferManager_AddMetadata", "AsyncHostToDeviceTransferManager_TransferLiteral",
    "Buffer_CopyRawToHostFuture", "Device_PoisonExecution", "Device_CreateAsyncTrackingEvent",
    "AsyncTrackingEvent_Destroy", "Buffer_DonateWithControlDependency",
    "TopologyDescription_MakeCanonicalShapeForMemorySpace", "TopologyDescription_GetMemorySpaceKindIds",
}  # fmt: skip
"""Functions that are in the table only for its order; docs/plugin.md lists the same."""
WITHOUT_OBJECT = {
    "Error_Destroy", "Error_Message", "Plugin_Initialize", "Plugin_Attributes", "Event_Create", "ExecuteContext_Create",
    "Client_Create", "TopologyDescription_Create",
}  # fmt: skip
"""Functions to which the rule does not apply that an object is missing where all arguments are zero."""
DESTROY = {f"{noun}_Destroy" for noun in ("Event", "Client", "Executable", "LoadedExecutable", "Buffer",
                                          "ExecuteContext")}  # fmt: skip
"""As `delete` does, these do nothing for null."""


@functools.cache
def portable_artifact() -> bytes:
    """A program as JAX sends it."""
    import jax
    from jaxlib.mlir.dialects import stablehlo

    module = jax.jit(lambda x: jax.numpy.sin(x) + x.sum()).lower(np.ones((3, 4), np.float32)).compiler_ir()
    data: bytes = stablehlo.serialize_portable_artifact(module, "1.13.7")  # type: ignore[attr-defined, unused-ignore]
    return data


@pytest.fixture(scope="module")
def plugin() -> Any:
    made = pypjrt.Plugin(library())
    made.initialize()
    return made


def names() -> list[str]:
    return [name.removeprefix("PJRT_") for name in abi.FUNCTIONS]


def call(plugin: Any, name: str, **fields: Any) -> None:
    """Call a function with the fields given, all else zero. Raises what it returns."""
    plugin.call(f"PJRT_{name}", plugin.args(f"PJRT_{name}_Args", **fields))


def call_for(plugin: Any, name: str, field: str, **fields: Any) -> Any:
    """Call a function, and return a field that it fills in."""
    args = plugin.args(f"PJRT_{name}_Args", **fields)
    plugin.call(f"PJRT_{name}", args)
    return getattr(args, field)


@pytest.mark.parametrize("name", [n for n in names() if n not in UNIMPLEMENTED])
def test_no_arguments_at_all(plugin: Any, name: str) -> None:
    error = plugin.fn(f"PJRT_{name}")(None)
    if name in ("Error_Destroy", "Error_Message"):  # with which errors are read, and which give none
        assert not error
    else:
        assert isinstance(plugin._to_exception(error), errors.InvalidArgument)


@pytest.mark.parametrize("name", ["Error_Destroy", "Error_Message"])
def test_no_error(plugin: Any, name: str) -> None:
    call(plugin, name)


@pytest.mark.parametrize("name", [n for n in names() if n not in UNIMPLEMENTED | WITHOUT_OBJECT | DESTROY])
def test_missing_objects(plugin: Any, name: str) -> None:
    with pytest.raises(errors.InvalidArgument, match="is null"):
        call(plugin, name)


@pytest.mark.parametrize("name", sorted(UNIMPLEMENTED))
def test_functions_that_are_not_there_say_their_names(plugin: Any, name: str) -> None:
    with pytest.raises(errors.Unimplemented, match=f"PJRT_{name} is not implemented"):
        call(plugin, name)


@pytest.mark.parametrize("name", sorted(DESTROY))
def test_nothing_can_be_destroyed(plugin: Any, name: str) -> None:
    call(plugin, name)


@pytest.mark.parametrize("name", ["Buffer_Dimensions", "Client_Compile", "LoadedExecutable_Execute"])
def test_structures_of_older_versions(plugin: Any, name: str) -> None:
    args = plugin.args(f"PJRT_{name}_Args")
    args.struct_size = 16
    with pytest.raises(errors.InvalidArgument, match="older version"):
        plugin.call(f"PJRT_{name}", args)


@pytest.mark.parametrize("options", [{"device_count": 0}, {"device_count": 1 << 40}, {"devices": 1}])
def test_wrong_options_of_a_client(plugin: Any, options: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidArgument, match="device_count"):
        client_module.Client(plugin, options=options)


class TestBuffers:
    @pytest.fixture
    def client(self, plugin: Any) -> Any:
        with client_module.Client(plugin) as made:
            yield made

    def host_args(self, client: Any, array: np.ndarray, **fields: Any) -> Any:
        dims = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
        args = client._plugin.args(
            "PJRT_Client_BufferFromHostBuffer_Args",
            client=client.address,
            data=array.ctypes.data,
            type=abi.PJRT_Buffer_Type_F32,
            dims=ctypes.cast(dims, ctypes.c_void_p),
            num_dims=array.ndim,
            device=client._addressable()[0],
        )
        for name, value in fields.items():
            setattr(args, name, value)
        return args

    def refuse(self, client: Any, args: Any, message: str, kind: Any = errors.InvalidArgument) -> None:
        with pytest.raises(kind, match=message):
            client._plugin.call("PJRT_Client_BufferFromHostBuffer", args)

    def test_host_arrays(self, client: Any) -> None:
        array = np.ones((2, 3), np.float32)
        self.refuse(client, self.host_args(client, array, data=None), "'data' is null")
        self.refuse(client, self.host_args(client, array, dims=None), "'dims' is null")
        self.refuse(client, self.host_args(client, array, device=None), "'device' is null")
        self.refuse(client, self.host_args(client, array, type=0), "element type", errors.Unimplemented)
        self.refuse(client, self.host_args(client, array, type=99), "element type", errors.Unimplemented)
        strides = (ctypes.c_int64 * 1)(4)
        address = ctypes.cast(strides, ctypes.c_void_p).value
        self.refuse(client, self.host_args(client, array, byte_strides=address, num_byte_strides=1), "strides")

    def test_sizes(self, client: Any) -> None:
        array = np.ones((2, 3), np.float32)
        for sizes, message in (((-1, 3), "negative"), ((1 << 40, 1 << 40), "64 bits")):
            dims = (ctypes.c_int64 * 2)(*sizes)
            args = self.host_args(client, array, dims=ctypes.cast(dims, ctypes.c_void_p).value)
            self.refuse(client, args, message)
        dims = (ctypes.c_int64 * 2)(1 << 30, 1 << 25)
        args = self.host_args(client, array, dims=ctypes.cast(dims, ctypes.c_void_p).value)
        self.refuse(client, args, "could not allocate", errors.ResourceExhausted)

    def test_deleted_buffers(self, client: Any) -> None:
        args = self.host_args(client, np.ones((2, 3), np.float32))
        client._plugin.call("PJRT_Client_BufferFromHostBuffer", args)
        call(client._plugin, "Buffer_Delete", buffer=args.buffer)
        target = (ctypes.c_char * 24)()
        place = ctypes.cast(target, ctypes.c_void_p)
        for name, fields in (
            ("Buffer_ToHostBuffer", {"src": args.buffer, "dst": place, "dst_size": 24}),
            ("Buffer_UnsafePointer", {"buffer": args.buffer}),
            ("Buffer_IncreaseExternalReferenceCount", {"buffer": args.buffer}),
        ):
            with pytest.raises(errors.InvalidArgument, match="deleted"):
                call(client._plugin, name, **fields)
        call(client._plugin, "Buffer_Destroy", buffer=args.buffer)

    def test_a_place_that_is_too_small(self, client: Any) -> None:
        args = self.host_args(client, np.ones((2, 3), np.float32))
        client._plugin.call("PJRT_Client_BufferFromHostBuffer", args)
        target = (ctypes.c_char * 24)()
        place = ctypes.cast(target, ctypes.c_void_p)
        with pytest.raises(errors.InvalidArgument, match="has 23 bytes"):
            call(client._plugin, "Buffer_ToHostBuffer", src=args.buffer, dst=place, dst_size=23)
        with pytest.raises(errors.InvalidArgument, match="outside"):
            call(client._plugin, "Buffer_CopyRawToHost", buffer=args.buffer, dst=place, offset=20, transfer_size=8)
        call(client._plugin, "Buffer_Destroy", buffer=args.buffer)

    def test_refused_arrays_are_not_counted(self, client: Any) -> None:
        device = client._addressable()[0]

        def stats() -> tuple[int, int, int]:
            args = client._plugin.args("PJRT_Device_MemoryStats_Args", device=device)
            client._plugin.call("PJRT_Device_MemoryStats", args)
            return args.bytes_in_use, args.peak_bytes_in_use, args.num_allocs

        dims = (ctypes.c_int64 * 2)(1 << 30, 1 << 15)  # 128 TiB of f32
        args = self.host_args(client, np.ones((2, 3), np.float32), dims=ctypes.cast(dims, ctypes.c_void_p).value)
        before = stats()
        self.refuse(client, args, "could not allocate", errors.ResourceExhausted)
        assert stats() == before

    def test_lists_that_are_null(self, client: Any) -> None:
        """Not so long as they are said to be empty."""
        array = np.ones((2, 3), np.float32)
        self.refuse(
            client, self.host_args(client, array, byte_strides=None, num_byte_strides=2), "'byte_strides' is null"
        )
        layout = abi.PJRT_Buffer_MemoryLayout()
        place = ctypes.addressof(layout)
        layout.type = abi.PJRT_Buffer_MemoryLayout_Type_Strides
        layout.strides.num_byte_strides = 2
        self.refuse(client, self.host_args(client, array, device_layout=place), "'byte_strides' is null")
        layout.type = abi.PJRT_Buffer_MemoryLayout_Type_Tiled
        layout.tiled.minor_to_major_size = 2
        self.refuse(client, self.host_args(client, array, device_layout=place), "'minor_to_major' is null")
        memory = call_for(client._plugin, "Device_DefaultMemory", "memory", device=client._addressable()[0])
        for fields, name in (
            ({"num_shape_specs": 1}, "shape_specs"),
            ({"num_device_layouts": 1}, "device_layouts"),
        ):
            with pytest.raises(errors.InvalidArgument, match=f"'{name}' is null"):
                call(
                    client._plugin,
                    "Client_CreateBuffersForAsyncHostToDevice",
                    client=client.address,
                    memory=memory,
                    **fields,
                )

    def test_texts_that_are_null(self, client: Any) -> None:
        program = abi.PJRT_Program()
        for field in ("code", "format"):
            for name in ("code", "format"):
                setattr(program, f"{name}_size", 3 if name == field else 0)
            with pytest.raises(errors.InvalidArgument, match=f"'program.{field}' is null"):
                call(client._plugin, "Client_Compile", client=client.address, program=ctypes.addressof(program))
        program.format_size = 0
        with pytest.raises(errors.InvalidArgument, match="'compile_options' is null"):
            call(
                client._plugin, "Client_Compile", client=client.address, program=ctypes.addressof(program),
                compile_options_size=3,
            )  # fmt: skip
        with pytest.raises(errors.InvalidArgument, match="'error_message' is null"):
            event = call_for(client._plugin, "Event_Create", "event")
            call(client._plugin, "Event_Set", event=event, error_code=1, error_message_size=5)
        with pytest.raises(errors.InvalidArgument, match="'create_options' is null"):
            call(client._plugin, "Client_Create", num_options=2)

    def test_damaged_programs(self, client: Any) -> None:
        """Artifacts with bytes changed or cut off are refused, or compiled if they are programs still."""
        refused = 0
        for seed in range(6):
            random = np.random.default_rng(seed)
            data = bytearray(portable_artifact())
            if seed % 2:
                del data[random.integers(8, len(data)) :]
            else:
                data[random.integers(8, len(data))] ^= 1 << int(random.integers(8))
            try:
                client.compile(bytes(data)).close()
            except errors.PjrtError:
                refused += 1
        assert refused > 2

    def test_damaged_executables(self, client: Any) -> None:
        for data in (b"", b"no artifact", b"SHLODISC" + bytes(400)):
            with pytest.raises(errors.InvalidArgument, match="artifact|null"):
                client.deserialize_executable(data)
