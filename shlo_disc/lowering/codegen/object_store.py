# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Objects that were made before, by what they are made of."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from shlo_disc.runtime.digests import digest_of


class ObjectStore(Hashable, Protocol):
    """A place for objects, which may lose them and never gives others."""

    def load(self, key: str) -> bytes | None:
        """The object of a key; None where it has none."""

    def store(self, key: str, data: bytes) -> None:
        """Keep an object."""


def stored(store: ObjectStore | None, make: Callable[..., bytes], *arguments: Any) -> bytes:
    """`make(*arguments)`, or what the store has from an equal call.

    The key is a SHA-256 of the arguments' text, the code of this folder, and the versions of LLVM and MLIR.
    """
    if store is None:
        return make(*arguments)
    key = digest_of([_compiler(), make.__name__.encode(), *(_text(a).encode() for a in arguments)])
    found = store.load(key)
    if found is None:
        found = make(*arguments)
        store.store(key, found)
    return found


def _text(argument: Any) -> str:
    """Text that is equal for equal arguments alone, and in every process."""
    if isinstance(argument, set | frozenset):
        return repr(sorted(argument))
    return argument if isinstance(argument, str) else repr(argument)


@functools.cache
def _compiler() -> bytes:
    files = sorted(Path(__file__).parent.glob("*.py"))
    versions = [version(name).encode() for name in ("llvmlite", "torch-mlir")]
    return digest_of([*versions, *(file.read_bytes() for file in files)]).encode()


__all__ = ["ObjectStore", "stored"]
