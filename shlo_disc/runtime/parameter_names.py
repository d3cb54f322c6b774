# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments that a call gives by name, as Python functions take them, in their places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shlo_disc.errors import ArgumentTypeError, ArtifactError

from .tree import TreeSpec


@dataclass(frozen=True)
class ParameterNames:
    """The names of a program's positional arguments, "" for one that is not passed by name. False without any."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, header: Mapping[str, Any], in_tree: TreeSpec) -> ParameterNames:
        """Those that a header states, where the program takes as many. Raises ArtifactError for what are no names."""
        found = (header.get("pytree") or {}).get("names", [])
        if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
            raise ArtifactError("header: 'names' of 'pytree' is not a list of names")
        return cls(tuple(found) if len(found) <= len(in_tree.children[0].children) else ())

    def __bool__(self) -> bool:
        return bool(self.names)

    def after(self, count: int) -> ParameterNames:
        """The names when the first `count` arguments are bound."""
        return ParameterNames(self.names[count:])

    def by_position(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A call whose named arguments stand in their places as far as those before them are given."""
        placed, rest = list(args), dict(kwargs)
        for name in self.names[len(placed) :]:
            if not name or name not in rest:
                break
            placed.append(rest.pop(name))
        return tuple(placed), rest

    def with_weights(self, args: Sequence[Any], weights: Mapping[str, Any]) -> list[Any]:
        """The first arguments of a program: those given by position, and after them the weights in their places.

        Raises ArgumentTypeError for names that the program does not have, and where one is missing between others.
        """
        rest = self.names[len(args) :]
        if unknown := [name for name in weights if name not in rest]:
            others = f"it takes {listed(rest)}" if rest else "it has no names of arguments: give weights by position"
            raise ArgumentTypeError(f"weights= has {listed(unknown)}, which the program does not take: {others}")
        count = 1 + max((place for place, name in enumerate(rest) if name in weights), default=-1)
        if missing := [name for name in rest[:count] if name not in weights]:
            raise ArgumentTypeError(f"weights= lacks {listed(missing)}")
        return [*args, *(weights[name] for name in rest[:count])]


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names in one line, of which the first and the last ones are shown where there are many."""
    shown = list(names)
    if len(shown) > most:
        shown[most - 3 : -2] = [f"{len(shown) - most + 1} more"]
    return ", ".join(name or "one without a name" for name in shown)


__all__ = ["ParameterNames", "listed"]
