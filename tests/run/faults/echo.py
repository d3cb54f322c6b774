# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A process that answers with what it is asked, or does not."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from shlo_disc.importer.child import Message, limit_memory, serve


def answer(header: dict[str, Any], data: bytes) -> Message:
    """Returns the request, unless that is to end, to sleep or to take memory."""
    print("this is no answer")  # goes to standard error
    if "exit" in header:
        sys.stderr.write(f"{header['say']}\nand more\n")
        sys.stderr.flush()
        os._exit(header["exit"])
    time.sleep(header.get("sleep", 0))
    if "take" in header:
        limit_memory(64 << 20)
        try:
            bytearray(header["take"])
        except MemoryError:
            return {"pid": os.getpid(), "memory": False}, b""
        finally:
            limit_memory(None)
    return {**header, "pid": os.getpid()}, data


if __name__ == "__main__":
    serve(answer)
