# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading what comes from outside: text, bytecode, portable artifacts and what `jax.export` has serialized.

MLIR's readers can end the process on damaged bytes, take minutes, or gigabytes. They run in a process of their own,
with limits, which hands back a program that MLIR has verified and written anew (decision 0019). Needs no MLIR itself.
"""

from __future__ import annotations

from .client import READER
from .formats import BYTECODE_MAGIC, portable_version, uses_chlo
from .limits import Limits

_SHARDED = (b"sdy", b"mhlo.layout_mode")


def read_program(data: bytes, what: str, limits: Limits | None = None) -> bytes:
    """StableHLO text or bytecode as bytecode, a portable artifact as one, without the sharding rules of custom calls.

    what: how messages call the program.

    Raises ProgramError with the position when it is damaged, or reading it reaches a limit, and ReaderError when there
    can be no process to read it.
    """
    return READER.read("read_program", data, what, limits or Limits.of())


def read_sharded(data: bytes, what: str, limits: Limits | None = None) -> bytes:
    """As `read_program`, for a program with shardings or layouts; a portable artifact for JAX's bindings."""
    return READER.read("read_sharded", data, what, limits or Limits.of())


def read_any(data: bytes, what: str, limits: Limits | None = None) -> bytes:
    """As `read_program` or, where the program mentions shardings or layouts, `read_sharded`."""
    read = read_sharded if any(word in data for word in _SHARDED) else read_program
    return read(data, what, limits)


def check_exported(data: bytes, what: str, limits: Limits | None = None) -> None:
    """Raise ProgramError when `jax.export.deserialize` does not end, or reaches another limit, with these bytes."""
    READER.read("check_exported", data, what, limits or Limits.of())


__all__ = [
    "BYTECODE_MAGIC", "Limits", "check_exported", "portable_version", "read_any", "read_program", "read_sharded",
    "uses_chlo",
]  # fmt: skip
