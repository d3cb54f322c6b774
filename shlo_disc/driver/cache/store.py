# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A directory of artifacts, one file for each key, shared by any number of processes.

Files appear whole, by renaming, and are never changed after that. A hit sets the file's time, and what was used longest
ago goes first when the directory grows too large. Whoever can write here can run code as the user who loads it: the
directory and its files must belong to that user, or to root, and be writable by nobody else.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shlo_disc.errors import ArtifactError, OptionError
from shlo_disc.options import Options
from shlo_disc.runtime.artifact import Artifact

ENVIRONMENT_VARIABLE = "SHLO_DISC_CACHE_DIR"
_SUFFIX = ".shlodisc"
_UNFINISHED = ".unfinished"
_ABANDONED_AFTER = 3600  # seconds, for files of a process that died while writing


class CacheWarning(UserWarning):
    """The compile cache could not be read or written; the program was compiled without it."""


def open_cache(options: Options) -> CompileCache | None:
    """The cache that the options, or else the environment, name; none for passes of the user's, which have no version.

    Raises OptionError when it cannot be trusted.
    """
    if options.passes:
        return None
    chosen = os.environ.get(ENVIRONMENT_VARIABLE, "") if options.cache_dir is None else os.fspath(options.cache_dir)
    if not chosen:
        return None
    cache = CompileCache(Path(chosen).expanduser(), options.cache_bytes)
    cache.prepare()
    return cache


@dataclass(frozen=True)
class CompileCache:
    """Artifacts in `directory`, which holds at most `limit` bytes."""

    directory: Path
    limit: int

    def prepare(self) -> None:
        """Make the directory when there is none. Raises OptionError when it is not a directory of this user alone."""
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._opened():
                pass
        except OSError as error:
            raise OptionError(f"the cache directory {str(self.directory)!r} cannot be used: {error.strerror}") from None

    def load(self, key: str) -> Artifact | None:
        """The artifact of a key; None when there is none, or a damaged one, which is removed."""
        name = key + _SUFFIX
        try:
            with self._opened() as directory:
                data = self._read(name, directory)
            return None if data is None else Artifact.deserialize(data, trust=True)
        except ArtifactError as error:
            self._warn(f"{name} is damaged: {error}")
            self.discard(key)
        except OSError as error:
            self._warn(f"{name} cannot be read: {error.strerror}")
        return None

    def store(self, key: str, artifact: Artifact) -> None:
        """Keep an artifact. What cannot be written is not kept."""
        data = artifact.serialize()
        name = key + _SUFFIX
        if len(data) > self.limit:
            return
        try:
            with self._opened() as directory:
                _write(name, data, directory)
                _evict(directory, self.limit, keep=name)
        except OSError as error:
            self._warn(f"{name} cannot be written: {error.strerror}")

    def discard(self, key: str) -> None:
        """Remove a key's artifact."""
        with contextlib.suppress(OSError), self._opened() as directory:
            os.unlink(key + _SUFFIX, dir_fd=directory)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        """The directory as a file descriptor, after a look at who may write there."""
        descriptor = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._check_owner(descriptor, str(self.directory))
            yield descriptor
        finally:
            os.close(descriptor)

    def _check_owner(self, descriptor: int, name: str) -> None:
        found = os.fstat(descriptor)
        if found.st_uid not in (os.geteuid(), 0):
            raise OptionError(f"the compile cache holds native code, and {name!r} belongs to another user")
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise OptionError(f"the compile cache holds native code, and other users may write to {name!r}: chmod go-w")

    def _read(self, name: str, directory: int) -> bytes | None:
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
        except FileNotFoundError:
            return None
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ArtifactError("it is not a file")
            self._check_owner(descriptor, str(self.directory / name))
            with contextlib.suppress(OSError):  # a directory that may only be read still serves
                os.utime(descriptor)
            return file.read()

    def _warn(self, text: str) -> None:
        warnings.warn(f"compile cache {str(self.directory)!r}: {text}", CacheWarning, stacklevel=4)


def _write(name: str, data: bytes, directory: int) -> None:
    unfinished = f"{name}.{os.getpid()}.{secrets.token_hex(4)}{_UNFINISHED}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(unfinished, flags, 0o600, dir_fd=directory)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(unfinished, name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        _unlink(unfinished, directory)
        raise


def _unlink(name: str, directory: int) -> None:
    with contextlib.suppress(FileNotFoundError):  # another process was faster
        os.unlink(name, dir_fd=directory)


def _evict(directory: int, limit: int, keep: str) -> None:
    """Remove what was used longest ago until at most `limit` bytes are left, and what dead processes left behind."""
    files: list[tuple[int, str, int]] = []
    for name in os.listdir(directory):
        if not name.endswith((_SUFFIX, _UNFINISHED)):
            continue
        try:
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            continue
        if name.endswith(_SUFFIX):
            files.append((found.st_mtime_ns, name, found.st_size))
        elif time.time() - found.st_mtime > _ABANDONED_AFTER:
            _unlink(name, directory)
    total = sum(size for *_, size in files)
    for _, name, size in sorted(files):
        if total <= limit:
            break
        if name != keep:
            _unlink(name, directory)
            total -= size
