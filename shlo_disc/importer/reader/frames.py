# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Messages between the compiler and the process that reads programs: bytes with their lengths in front."""

from __future__ import annotations

import os
import select
import struct
import time
from collections.abc import Sequence

_LENGTH = struct.Struct("<Q")
_CHUNK = 1 << 20  # bytes that are received at once


def send(descriptor: int, *parts: bytes) -> None:
    """Write the parts, whatever the pipe takes at a time. Raises OSError when nobody reads them."""
    for data in (_lengths(parts), *parts):
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]


def packed(*parts: bytes) -> bytes:
    """The bytes that `send` writes."""
    return b"".join((_lengths(parts), *parts))


def unpacked(data: bytes, count: int) -> list[bytes]:
    """The parts in the bytes of `packed`."""
    parts, start = [], count * _LENGTH.size
    for (length,) in _LENGTH.iter_unpack(data[:start]):
        parts.append(data[start : start + length])
        start += length
    return parts


def receive(descriptor: int, count: int, seconds: float | None = None) -> list[bytes]:
    """Read as many parts as `send` was given. Raises EOFError when the other side ends before it has sent them.

    seconds: how long to wait for all of them; TimeoutError is raised after that. None: without end.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    lengths = _LENGTH.iter_unpack(_exactly(descriptor, count * _LENGTH.size, deadline))
    return [_exactly(descriptor, length, deadline) for (length,) in lengths]


def _lengths(parts: Sequence[bytes]) -> bytes:
    return b"".join(_LENGTH.pack(len(part)) for part in parts)


def _exactly(descriptor: int, length: int, deadline: float | None) -> bytes:
    chunks: list[bytes] = []
    while length > 0:
        _wait(descriptor, deadline)
        chunk = os.read(descriptor, min(length, _CHUNK))
        if not chunk:
            raise EOFError
        chunks.append(chunk)
        length -= len(chunk)
    return b"".join(chunks)


def _wait(descriptor: int, deadline: float | None) -> None:
    if deadline is None:
        return
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    if not poll.poll(1000 * max(deadline - time.monotonic(), 0.0)):
        raise TimeoutError


__all__ = ["packed", "receive", "send"]
