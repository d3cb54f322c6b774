# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Entries of `dynamic=` by the names of parameters."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shlo_disc.errors import OptionError


@dataclass(frozen=True)
class NamedSizes:
    """entries: by the names of parameters. positional: the names of those that a call may give by position."""

    entries: Mapping[str, Any]
    positional: Sequence[str]

    @staticmethod
    def of(
        entries: Mapping[str, Any], positional: Sequence[str], names: Sequence[str], takes_names: bool
    ) -> NamedSizes:
        """Raises OptionError for a name that the function does not have, unless it takes all names."""
        known = [*positional, *(name for name in names if name not in positional)]
        for name in entries:
            if name not in known and not takes_names:
                near = difflib.get_close_matches(str(name), known, 1)
                instead = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(known)}"
                raise OptionError(f"dynamic= names {name!r}, which is no argument of the function: {instead}")
        return NamedSizes(entries, positional)

    def of_calls(self, count: int, fixed: Collection[int] = ()) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        """The entries of up to `count` arguments by position, or as many as have names, and those by name.

        None where there is no entry. fixed: positions of static arguments, which are left out.
        """
        names = [*self.positional, *[""] * (count - len(self.positional))]
        return tuple(self.entries.get(name) for i, name in enumerate(names) if i not in fixed), self.entries


__all__ = ["NamedSizes"]
