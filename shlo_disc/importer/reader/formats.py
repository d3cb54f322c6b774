# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Facts read from the first bytes of a program. Needs no MLIR."""

from __future__ import annotations

import re

BYTECODE_MAGIC = b"ML\xefR"
_PORTABLE = re.compile(rb"ML\xefR.StableHLO_v(\d+\.\d+\.\d+)\0", re.DOTALL)


def portable_version(data: bytes) -> str:
    """The version of StableHLO of a portable artifact; "" for all other bytes."""
    found = _PORTABLE.match(data)
    return found[1].decode() if found else ""


def uses_chlo(data: bytes) -> bool:
    """Tells whether bytecode may have ops of CHLO: it names the dialect."""
    return b"chlo\0" in data


__all__ = ["BYTECODE_MAGIC", "portable_version", "uses_chlo"]
