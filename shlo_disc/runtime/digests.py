# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One digest of several byte strings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def digest_of(parts: Iterable[bytes]) -> str:
    """The SHA-256 of the parts with their lengths, in hexadecimal: parts that are cut otherwise have another one."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


__all__ = ["digest_of"]
