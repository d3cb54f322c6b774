# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists of numbers that a call gives where a compiled program takes an array: the array to pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from shlo_disc.shape_dialect.dtypes import BY_NAME

from .tree import TreeSpec, sequences_for_leaves


def with_arrays(
    explain: Callable[[Any, Any], str],
    expected: TreeSpec,
    rows: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    bound: int,
) -> Callable[[Any, Any], str]:
    """The function that explains why a call does not fit, which also says what to pass for lists of numbers.

    explain: without that. expected: the tree of a call. rows: the arguments of the header. names: those of positional
    arguments. bound: how many of them `bind` has fixed.
    """
    dtypes = {row["path"]: BY_NAME[row["dtype"]].numpy for row in rows if "key" not in row and row["dtype"] in BY_NAME}

    def explained(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        found = []
        for path, value in _lists(expected, args, kwargs, bound):
            if path in dtypes and _are_numbers(value):
                shown = _name(path, names)
                found.append(f"numpy.asarray({shown}, {dtypes[path]!r}) for the {type(value).__name__} {shown}")
        text = explain(args, kwargs)
        own, _, theirs = text.partition("\n")
        return f"{own}. Pass {', '.join(found)}\n{theirs}" if found else text

    return explained


def _lists(
    expected: TreeSpec, args: tuple[Any, ...], kwargs: Mapping[str, Any], bound: int
) -> Iterator[tuple[str, Any]]:
    """The lists and tuples in place of arrays, with their paths as in the header."""
    positional, keyword = expected.children
    for i, (spec, value) in enumerate(zip(positional.children, args, strict=False)):
        yield from sequences_for_leaves(f"args[{bound + i}]", spec, value)
    for key, spec in zip(keyword.keys, keyword.children, strict=False):
        if key in kwargs:
            yield from sequences_for_leaves(f"kwargs[{key!r}]", spec, kwargs[key])


def _name(path: str, names: Sequence[str]) -> str:
    """The user's name of an argument, such as `x` for args[0]; for a part of one it is the path."""
    own = {f"args[{i}]": name for i, name in enumerate(names) if name}
    return own.get(path, path)


def _are_numbers(value: Any) -> bool:
    """Tells whether a value has numbers only, in lists of equal lengths."""

    def leaves(part: Any) -> Iterator[Any]:
        for entry in part:
            yield from leaves(entry) if isinstance(entry, list | tuple) else (entry,)

    if not all(isinstance(leaf, bool | int | float | complex | np.generic) for leaf in leaves(value)):
        return False
    try:
        return np.asarray(value).dtype.kind in "biufc"
    except ValueError:
        return False


__all__ = ["with_arrays"]
