# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A directory of files, one for each key, shared by any number of processes, and by machines through a store.

Files appear whole, by renaming, and are never changed after that. A hit sets the file's time, and what was used longest
ago goes first when the directory grows too large. Whoever can write here can run code as the user who loads it: the
directory and its files must belong to that user, or to root, and be writable by nobody else. A store's entries are
signed instead.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from shlo_disc.errors import ArtifactError, OptionError

from .shared import SharedEntries

_UNFINISHED = ".unfinished"
_ABANDONED_AFTER = 3600  # seconds, for files of a process that died while writing


def user_directory(variable: str, name: str) -> str:
    """The directory that an environment variable names, by default one below the user's cache directory.

    "" where the variable is empty or the user has no home.
    """
    chosen = os.environ.get(variable)
    if chosen is None:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache")
        chosen = os.path.join(base, "shlo_disc", name)
    directory = os.path.expanduser(chosen)
    return "" if directory.startswith("~") else directory


@dataclass(frozen=True)
class CacheDirectory:
    """Files in `directory`, which holds at most `limit` bytes. suffix: of their names.

    shared: a store of the same files. It has what other machines have written, and gets what is written here.
    """

    directory: Path
    limit: int
    shared: SharedEntries | None = None

    suffix: ClassVar[str]

    def prepare(self) -> None:
        """Make the directory when there is none. Raises OptionError when it is not a directory of this user alone."""
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._opened():
                pass
        except OSError as error:
            raise OptionError(f"the cache directory {str(self.directory)!r} cannot be used: {error.strerror}") from None

    def read(self, key: str) -> bytes | None:
        """The file of a key; None when there is none, in the store either.

        Raises OSError, and ArtifactError where it is no file.
        """
        found = self.read_here(key)
        return self.read_shared(key) if found is None else found

    def read_here(self, key: str) -> bytes | None:
        """As `read`, of the directory alone."""
        with self._opened() as directory:
            return self._read(key + self.suffix, directory)

    def read_shared(self, key: str) -> bytes | None:
        """The file of a key in the store, which is then in the directory as well."""
        data = None if self.shared is None else self.shared.load(key, self.suffix, self.limit)
        if data is not None:
            with contextlib.suppress(OSError):
                self._write_here(key, data, evicts=True)
        return data

    def write(self, key: str, data: bytes, evicts: bool = True) -> None:
        """Keep a file that is not larger than the limit. evicts: remove what is too much. Raises OSError."""
        if len(data) > self.limit:
            return
        self._write_here(key, data, evicts)
        if self.shared is not None:
            self.shared.store(key, self.suffix, data)

    def _write_here(self, key: str, data: bytes, evicts: bool) -> None:
        with self._opened() as directory:
            _write(key + self.suffix, data, directory)
            if evicts:
                _evict(directory, self.suffix, self.limit, keep=key + self.suffix)

    def discard(self, key: str) -> None:
        """Remove a key's file."""
        with contextlib.suppress(OSError), self._opened() as directory:
            os.unlink(key + self.suffix, dir_fd=directory)

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


def _evict(directory: int, suffix: str, limit: int, keep: str) -> None:
    """Remove what was used longest ago until at most `limit` bytes are left, and what dead processes left behind."""
    files: list[tuple[int, str, int]] = []
    for name in os.listdir(directory):
        if not name.endswith((suffix, _UNFINISHED)):
            continue
        try:
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            continue
        if name.endswith(suffix):
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
