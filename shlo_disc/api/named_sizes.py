# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Entries of `dynamic=` by the names of parameters."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shlo_disc.errors import OptionError
from shlo_disc.runtime.described import count_text


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
        name: Any
        for name in entries:
            if name not in known and not takes_names:
                near = difflib.get_close_matches(str(name), known, 1)
                near = [positional[name]] if isinstance(name, int) and 0 <= name < len(positional) else near
                instead = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(known)}"
                raise OptionError(f"dynamic= names {name!r}, which is no argument of the function: {instead}")
        return NamedSizes(entries, positional)

    def of_calls(self, count: int, fixed: Collection[int] = ()) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        """The entries of up to `count` arguments by position, or as many as have names, and those by name.

        None where there is no entry. fixed: positions of static arguments, which are left out.
        """
        names = [*self.positional, *[""] * (count - len(self.positional))]
        return tuple(self.entries.get(name) for i, name in enumerate(names) if i not in fixed), self.entries


def count_fault(
    function: Callable[..., Any],
    entries: Sequence[Any],
    call: tuple[Sequence[Any], Any],
    is_filtered: bool = False,
) -> str:
    """The fault of a `dynamic` with another number of entries than a call has arguments by position.

    is_filtered: the function has `filter=True`, which makes static what is no array.
    """
    from shlo_disc.runtime.dynamic_entries import positions_fault

    args, kwargs = call
    if fault := positions_fault(entries, args):
        return fault
    stated = "1 entry" if len(entries) == 1 else f"{len(entries)} entries"
    start = f"dynamic= has {stated}, and the call has {count_text(len(args), 'positional argument')}"
    names, missing = _parameters(function, args, kwargs)
    if missing:
        return f"{start}: it lacks {', '.join(missing)}"
    if _is_of_method(names, args) and len(entries) < len(args) and not any(type(entry) is int for entry in entries):
        wanted = (None, *entries, *[None] * (len(args) - len(entries) - 1))
        return f"{start}, the first of which is {names[0]}: {_with_owner(names[0], args[0], wanted, is_filtered)}"
    rank = len(getattr(args[0], "shape", ())) if len(args) == 1 else 0
    if 0 < len(entries) == rank and all(isinstance(entry, str) and "," not in entry for entry in entries):
        return f"{start}: one text has all sizes of an argument, as in dynamic={(', '.join(entries),)!r}"
    wanted = tuple([*entries, *[None] * (len(args) - len(entries))][: len(args)])
    text = f"{start}: one for each, None for those whose sizes stay fixed"
    named = {name: entry for name, entry in zip(names, entries, strict=False) if entry is not None}
    by_name = f"dynamic={named!r}" if named and len(entries) <= len(names) else ""
    if kwargs:
        return f"{text}, or by name, as in {by_name}" if by_name else text
    return f"{text}, as in dynamic={wanted!r}" + (f", or by name, as in {by_name}" if by_name else "")


def _is_of_method(names: Sequence[str], args: Sequence[Any]) -> bool:
    """Tells whether the first argument of a call is the object or the class of a method."""
    import jax

    return bool(names and args) and names[0] in _OWNERS and not isinstance(args[0], jax.Array | np.ndarray)


def _with_owner(name: str, owner: Any, wanted: Sequence[Any], is_filtered: bool) -> str:
    """Advice on the `dynamic` of a method that lacks an entry for its object or class. wanted: the whole of it."""
    import jax

    text = f"write dynamic={wanted!r}"
    if is_filtered or not jax.tree_util.all_leaves([owner]):
        return text
    if isinstance(owner, Hashable):
        return f"{text} and static_argnums=0, which compiles a program for each {name}"
    return (
        f"{text} and filter=True, and register the class {type(owner).__name__} with JAX, as by "
        "@jax.tree_util.register_dataclass"
    )


_OWNERS = ("self", "cls")
"""The names by which methods call their object or class."""


def by_name_instead(function: Callable[..., Any], given: Any) -> str:
    """Advice on a `dynamic` that has no sizes, such as a position or a set of names; "" where names are not known."""
    names = _parameters(function, (), {})[0]
    names = names[1:] if names[:1] in (["self"], ["cls"]) and given is True else names
    found = [name for name in names if given is True or isinstance(given, set | frozenset) and name in given]
    if type(given) is int and -len(names) <= given < len(names):
        found = [names[given]]
    return f": it names sizes, as in dynamic={{{found[0]!r}: 'n, ...'}}" if found else ""


def _parameters(function: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> tuple[list[str], list[str]]:
    """The names of the parameters that a call may give by position, and of those that it lacks."""
    try:
        signature = inspect.signature(function)
        given = signature.bind_partial(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return [], []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = [p for p in signature.parameters.values() if p.kind in kinds]
    return [p.name for p in found], [p.name for p in found if p.name not in given and p.default is p.empty]


__all__ = ["NamedSizes", "by_name_instead", "count_fault"]
