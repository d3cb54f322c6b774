# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Extensions of the C API that pypjrt does not call, by their addresses; in both of the plugin's libraries."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

import shlo_disc
from tests.pjrt.plugin import library

pypjrt: Any = pytest.importorskip("pypjrt")
topology_module: Any = pytest.importorskip("pypjrt.topology")
errors: Any = pytest.importorskip("pypjrt.errors")
abi: Any = pytest.importorskip("pypjrt._abi.pjrt_0_114")

KINDS = ["device", "pinned_host", "unpinned_host"]


@pytest.fixture(scope="module", params=["with Python", "without Python"])
def plugin(request: pytest.FixtureRequest) -> Any:
    made = pypjrt.Plugin(library() if request.param == "with Python" else shlo_disc.get_pjrt_plugin())
    made.initialize()
    return made


def call(plugin: Any, extension: str, function: str, **fields: object) -> Any:
    """The arguments of a call of an extension's function, with what it returned in them. Raises PjrtError."""
    table = getattr(abi, f"PJRT_{extension}_Extension")
    place = plugin.require_extension(extension).address + getattr(table, function).offset
    address = ctypes.cast(place, ctypes.POINTER(ctypes.c_void_p))[0]
    arguments = plugin.args(f"{function}_Args", **fields)
    error = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(address)(ctypes.byref(arguments))
    if error:
        raise plugin._to_exception(error)
    return arguments


def described(plugin: Any, topology: Any) -> list[int]:
    """The addresses of the descriptions of a topology's devices, which live as long as it does."""
    asked = plugin.args("PJRT_TopologyDescription_GetDeviceDescriptions_Args", topology=topology._check())
    plugin.call("PJRT_TopologyDescription_GetDeviceDescriptions", asked)
    return list(ctypes.cast(asked.descriptions, ctypes.POINTER(ctypes.c_void_p))[: asked.num_descriptions])


def test_memories_of_devices_without_a_client(plugin: Any) -> None:
    topology = topology_module.Topology.create(plugin, "", options={"device_count": 2})
    descriptions = described(plugin, topology)
    assert len(descriptions) == 2
    for description in descriptions:
        found = call(
            plugin, "MemoryDescriptions", "PJRT_DeviceDescription_MemoryDescriptions", device_description=description
        )
        memories = ctypes.cast(found.memory_descriptions, ctypes.POINTER(ctypes.c_void_p))
        rows = [
            call(plugin, "MemoryDescriptions", "PJRT_MemoryDescription_Kind", memory_description=memories[i])
            for i in range(found.num_memory_descriptions)
        ]
        assert [ctypes.string_at(row.kind, row.kind_size).decode() for row in rows] == KINDS
        assert [row.kind_id for row in rows] == [0, 1, 2] and found.default_memory_index == 0
    topology.close()


def test_calls_without_an_object(plugin: Any) -> None:
    for function in ("PJRT_DeviceDescription_MemoryDescriptions", "PJRT_MemoryDescription_Kind"):
        with pytest.raises(errors.InvalidArgument, match="is null"):
            call(plugin, "MemoryDescriptions", function)


def test_jax_can_serialize_programs(plugin: Any) -> None:
    """IFRT of jaxlib 0.12 refuses to serialize executables that state an ABI of a platform that it does not know."""
    assert plugin.extension("AbiVersion") is None
