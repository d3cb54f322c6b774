# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs written down as they are given, without weights, for SHLO_DISC_RECORD; `replay` compiles and compares them.

| module | what it does |
|--|--|
| `recorder` | writes a program into the folder |
| `elide` | takes large constants out of a program |
| `replay` | compiles and runs what a folder has |

Only the names are imported here: nothing is loaded where nothing is recorded.
"""

from __future__ import annotations

import os
from typing import Any

RECORD_VARIABLE = "SHLO_DISC_RECORD"
"""Names the folder."""


def record_read(read: Any, front: str) -> None:
    """Write down a program that a front end has read, where the user has asked for that.

    read: a JaxProgram or a TextProgram. front: what gave it, such as "compile". A program that cannot be written is no
    error: a warning of the logger `shlo_disc` says why.
    """
    folder = os.environ.get(RECORD_VARIABLE)
    if folder:
        from .recorder import record

        record(folder, read, front)


__all__ = ["RECORD_VARIABLE", "record_read"]
