# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Objects that LLVM made, by the LLVM IR that they were made of: on by default, between programs and processes."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from shlo_disc.errors import ArtifactError, OptionError
from shlo_disc.options import Options

from .files import CacheDirectory, user_directory
from .shared import SharedEntries, shared_entries

ENVIRONMENT_VARIABLE = "SHLO_DISC_CODE_CACHE_DIR"
LIMIT = 256 << 20  # bytes
_DIGEST_BYTES = hashlib.sha256().digest_size
_WRITES_TO_EVICT = 32  # an eviction looks at every file


def open_code_cache(options: Options) -> CodeCache | None:
    """The directory that the environment names, by default one below the user's cache directory.

    None where there is none: the variable is empty, the user has no home, the directory cannot be made or is not the
    user's alone, or the options ask for a compile without caches by `cache_dir=""`. Raises OptionError for a store that
    cannot be used.
    """
    if options.cache_dir is not None and not os.fspath(options.cache_dir):
        return None
    directory = user_directory(ENVIRONMENT_VARIABLE, "code")
    return _prepared(directory, shared_entries(options)) if directory else None


@functools.lru_cache(maxsize=8)
def _prepared(directory: str, shared: SharedEntries | None) -> CodeCache | None:
    cache = CodeCache(Path(directory), LIMIT, shared)
    try:
        cache.prepare()
    except OptionError:
        return None
    return cache


@dataclass(frozen=True)
class CodeCache(CacheDirectory):
    """Objects in `directory`, each behind its SHA-256. Without warnings: nobody asked for it."""

    suffix = ".o"

    _writes: Iterator[int] = field(default_factory=itertools.count, compare=False)

    def load(self, key: str) -> bytes | None:
        """The object of a key; None when there is none. A damaged one is removed."""
        try:
            data = self.read(key)
        except (OSError, OptionError, ArtifactError):
            return None
        if data is None:
            return None
        if hashlib.sha256(data[_DIGEST_BYTES:]).digest() != data[:_DIGEST_BYTES]:
            self.discard(key)
            return None
        return data[_DIGEST_BYTES:]

    def store(self, key: str, data: bytes) -> None:
        """Keep an object. What cannot be written is not kept."""
        with contextlib.suppress(OSError, OptionError):
            evicts = next(self._writes) % _WRITES_TO_EVICT == 0
            self.write(key, hashlib.sha256(data).digest() + data, evicts)
