# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What calls of executables give: the kind of their results, the times of their commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import _native

OUTPUTS = {
    None: _native.Output.automatic,
    "numpy": _native.Output.numpy,
    "jax": _native.Output.jax,
    "buffer": _native.Output.buffer,
}


@dataclass(frozen=True)
class CommandTime:
    """How often a command of the program ran in a call, the seconds of all its runs, and the way the runtime chose."""

    calls: int
    seconds: float
    way: str | None


def command_times(rows: Sequence[Any]) -> list[CommandTime]:
    """Those of the native core's rows."""
    return [CommandTime(row.calls, row.nanoseconds * 1e-9, row.way) for row in rows]


def output_of(name: str | None) -> _native.Output:
    """The kind of results by its name. Raises ValueError for another name."""
    if name not in OUTPUTS:
        raise ValueError(f"output must be one of {[known for known in OUTPUTS if known]} or None, not {name!r}")
    return OUTPUTS[name]
