# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Artifacts in a directory, by what they were compiled from."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from shlo_disc.errors import ArtifactError, OptionError
from shlo_disc.options import Options
from shlo_disc.runtime.artifact import Artifact

from .files import CacheDirectory, user_directory
from .shared import shared_entries

ENVIRONMENT_VARIABLE = "SHLO_DISC_CACHE_DIR"


class CacheWarning(UserWarning):
    """The compile cache could not be read or written; the program was compiled without it."""


def open_cache(options: Options) -> CompileCache | None:
    """The cache that the options, or else the environment, name; none for passes of the user's, which have no version.

    With a store that machines share there is one by default. Raises OptionError when it cannot be trusted.
    """
    if options.passes:
        return None
    shared = shared_entries(options)
    chosen = _directory(shared is not None) if options.cache_dir is None else os.fspath(options.cache_dir)
    if not chosen:
        return None
    cache = CompileCache(Path(chosen).expanduser(), options.cache_bytes, shared)
    cache.prepare()
    return cache


def _directory(is_needed: bool) -> str:
    """The directory that the environment names; "" for no cache. is_needed: there is one by default."""
    if not is_needed or ENVIRONMENT_VARIABLE in os.environ:
        return os.environ.get(ENVIRONMENT_VARIABLE, "")
    directory = user_directory(ENVIRONMENT_VARIABLE, "programs")
    if not directory:
        raise OptionError(f"the cache store needs a directory in front of it: name one by {ENVIRONMENT_VARIABLE}")
    return directory


class CompileCache(CacheDirectory):
    """Artifacts in `directory`, which holds at most `limit` bytes."""

    suffix = ".shlodisc"

    def load(self, key: str) -> Artifact | None:
        """The artifact of a key; None when there is none, or a damaged one, which is removed."""
        name = key + self.suffix
        try:
            data = self.read(key)
            return None if data is None else Artifact.deserialize(data, trust=True)
        except ArtifactError as error:
            self._warn(f"{name} is damaged: {error}")
            self.discard(key)
        except OSError as error:
            self._warn(f"{name} cannot be read: {error.strerror}")
        return None

    def store(self, key: str, artifact: Artifact) -> None:
        """Keep an artifact. What cannot be written is not kept."""
        try:
            self.write(key, artifact.serialize())
        except OSError as error:
            self._warn(f"{key}{self.suffix} cannot be written: {error.strerror}")

    def _warn(self, text: str) -> None:
        warnings.warn(f"compile cache {str(self.directory)!r}: {text}", CacheWarning, stacklevel=4)
