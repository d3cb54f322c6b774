# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""HMAC-SHA-256 of entries with the operator's key (RFC 2104)."""

from __future__ import annotations

import hashlib
import hmac
import os
import stat

from shlo_disc.errors import OptionError

KEY_FILE_VARIABLE = "SHLO_DISC_CACHE_KEY_FILE"
LEAST_KEY_BYTES = 32
_MOST_KEY_BYTES = 4096
_FORMAT = b"shlo_disc entry 1\n"
_SIGNATURE_BYTES = hashlib.sha256().digest_size
EXTRA_BYTES = len(_FORMAT) + _SIGNATURE_BYTES
"""Bytes in front of an entry's data."""


def read_key(path: str) -> bytes:
    """The bytes of a key file.

    Raises OptionError where it is not a file of this user or root, where others can read it or a group can write it, or
    where it is too short. A group may read it, as in mounted secrets of Kubernetes.
    """
    name = f"the cache store's key file {path!r}"
    try:
        with open(os.path.expanduser(path), "rb", opener=_opened) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise OptionError(f"{name} is not a file")
            if found.st_uid not in (os.geteuid(), 0):
                raise OptionError(f"{name} belongs to another user")
            if found.st_mode & (stat.S_IWGRP | stat.S_IRWXO):
                raise OptionError(f"{name} is open to other users: chmod 400")
            key = file.read(_MOST_KEY_BYTES + 1)
    except OSError as error:
        raise OptionError(f"{name} cannot be read: {error.strerror}") from None
    if not LEAST_KEY_BYTES <= len(key) <= _MOST_KEY_BYTES:
        raise OptionError(f"{name} must have from {LEAST_KEY_BYTES} to {_MOST_KEY_BYTES} bytes")
    return key


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def signed(key: bytes, name: str, data: bytes) -> bytes:
    """An entry: its data behind their signature as the entry of this name."""
    return _FORMAT + _signature(key, name, data) + data


def checked(key: bytes, name: str, entry: bytes) -> bytes | None:
    """The data of an entry; None where it was not signed with this key as the entry of this name."""
    data = entry[EXTRA_BYTES:]
    signature = entry[len(_FORMAT) : EXTRA_BYTES]
    is_ours = entry.startswith(_FORMAT) and hmac.compare_digest(signature, _signature(key, name, data))
    return data if is_ours else None


def _signature(key: bytes, name: str, data: bytes) -> bytes:
    digest = hmac.new(key, _FORMAT, hashlib.sha256)
    for part in (name.encode(), data):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


__all__ = ["EXTRA_BYTES", "KEY_FILE_VARIABLE", "LEAST_KEY_BYTES", "checked", "read_key", "signed"]
