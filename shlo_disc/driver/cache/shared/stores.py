# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stores of bytes by name. They trust nothing and are not trusted: entries are checked by those who read them."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from shlo_disc.errors import OptionError


class Store(Protocol):
    """Bytes by name. Its methods raise whatever the implementation raises when the store cannot be reached."""

    def get(self, name: str, limit: int) -> bytes | None:
        """The first `limit` bytes of an entry; None without one."""

    def put(self, name: str, data: bytes) -> None:
        """Write an entry, or replace one. A reader sees the whole of the former or of the latter."""


class DirectoryStore:
    """Files in a directory that machines share, such as one of NFS. Its parent must exist, as a mounted one does."""

    def __init__(self, directory: Path):
        self.directory = directory

    def get(self, name: str, limit: int) -> bytes | None:
        """As `Store.get`. Links are not followed."""
        try:
            descriptor = os.open(self.directory / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(descriptor, "rb") as file:
                found = os.fstat(descriptor)
                return file.read(min(limit, found.st_size)) if stat.S_ISREG(found.st_mode) else b""
        except FileNotFoundError:
            self.directory.mkdir(exist_ok=True)  # raises where it cannot be reached
            return None
        except OSError as error:
            if error.errno == errno.ESTALE:  # NFS: another machine has replaced the file in the meantime
                return None
            raise

    def put(self, name: str, data: bytes) -> None:
        """As `Store.put`, by renaming, which is atomic on NFS too."""
        self.directory.mkdir(exist_ok=True)
        unfinished = self.directory / f"{name}.{secrets.token_hex(8)}.unfinished"
        try:
            unfinished.write_bytes(data)
            os.replace(unfinished, self.directory / name)
        except OSError:
            with contextlib.suppress(OSError):
                unfinished.unlink()
            raise


class FsspecStore:
    """Objects below a URL of fsspec, such as s3://bucket/prefix. Raises ImportError and ValueError for unknown ones."""

    def __init__(self, url: str):
        import fsspec

        self.files: Any
        self.files, path = fsspec.core.url_to_fs(url, use_listings_cache=False)
        self.prefix = path.rstrip("/")

    def get(self, name: str, limit: int) -> bytes | None:
        """As `Store.get`."""
        try:
            with self.files.open(f"{self.prefix}/{name}", "rb") as file:
                found: bytes = file.read(limit)
                return found
        except FileNotFoundError:
            return None

    def put(self, name: str, data: bytes) -> None:
        """As `Store.put` where the file system replaces objects as a whole, as object stores do."""
        self.files.pipe_file(f"{self.prefix}/{name}", data)


def open_store(url: str) -> Store:
    """The store of a URL: a directory for a path or file:///path, else one of fsspec. Raises OptionError."""
    parts = urlsplit(url)
    if not parts.scheme or parts.scheme == "file":
        return DirectoryStore(_directory(url, unquote(parts.path) if parts.scheme else url))
    try:
        return FsspecStore(url)
    except ImportError as error:
        advice = "pip install fsspec" if getattr(error, "name", "") == "fsspec" else str(error)
        raise OptionError(f"the cache store {visible(url)!r} needs a package: {advice}") from None
    except Exception as error:  # of any implementation
        raise OptionError(f"the cache store {visible(url)!r} cannot be opened: {error}") from None


def _directory(url: str, path: str) -> Path:
    directory = Path(os.path.expanduser(path))
    if not directory.is_absolute():
        raise OptionError(f"the cache store {url!r} must be an absolute path or a URL")
    return directory


def visible(url: str) -> str:
    """A URL without a user's name and password."""
    start, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{start}{separator}{host.rpartition('@')[2]}{slash}{path}" if separator else url


__all__ = ["DirectoryStore", "FsspecStore", "Store", "open_store", "visible"]
