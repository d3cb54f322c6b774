# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process's clients of the runtime."""

from __future__ import annotations

import functools

from shlo_disc.options import CPU
from shlo_disc.runtime import Artifact, Client


def client(threads: int, guard_pages: bool = False, device_count: int = 1) -> Client:
    """The process's client for a thread count; clients share nothing but the machine.

    Those that differ by the number of devices only share their threads and their memory.
    """
    return _client(threads, guard_pages, device_count)


@functools.cache
def gpu_client(ordinal: int = 0, device_count: int = 1) -> Client:
    """The process's client for a GPU, or for so many from this one on. Raises DeviceError where there are none."""
    return Client.of_gpu(ordinal if device_count == 1 else range(ordinal, ordinal + device_count))


def client_for(artifact: Artifact, threads: int = 0) -> Client:
    """The process's client for what an artifact is compiled for: processors, or the first GPU of this machine."""
    target = artifact.header.get("target")
    is_gpu = isinstance(target, dict) and target.get("name", CPU) != CPU
    return gpu_client() if is_gpu else client(threads)


@functools.cache
def _client(threads: int, guard_pages: bool, device_count: int) -> Client:
    if device_count > 1:
        return Client(device_count=device_count, native_device=_client(threads, guard_pages, 1).native_device)
    if threads == 0 and not guard_pages:
        return Client.of_process()
    return Client(threads=threads, guard_pages=guard_pages)
