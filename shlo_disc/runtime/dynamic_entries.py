# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Faults of entries of `dynamic=` that are written as shapes are elsewhere, and what to write."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

_WILD = ("*", "?", ":", "-1", "None", "")
OtherRank = Callable[[Any, Sequence[str], tuple[int, ...]], str]
"""The fault of an entry with too many sizes: of the path of a leaf, the sizes that are stated, and its shape."""


def entry_fault(args: tuple[Any, ...], kwargs: Mapping[str, Any], shapes: Any, other_rank: OtherRank) -> str:
    """The first fault of an entry, with the argument; "" where there is none. shapes: as in `specifications`."""
    if isinstance(shapes, str):
        shapes = [shapes] * len(args), dict.fromkeys(kwargs, shapes)
    if not isinstance(shapes, tuple) or len(shapes) != 2:
        return ""
    sequence, key = jax.tree_util.SequenceKey, jax.tree_util.DictKey
    pairs = [((sequence(0), sequence(i)), *pair) for i, pair in enumerate(zip(shapes[0], args, strict=False))]
    pairs += [((sequence(1), key(name)), entry, kwargs[name]) for name, entry in (shapes[1] or {}).items()]
    return next((fault for pair in pairs for fault in _faults(*pair, other_rank)), "")


def _faults(path: tuple[Any, ...], entry: Any, value: Any, other_rank: OtherRank) -> Iterator[str]:
    """The faults of an entry for an argument, or for a part of one."""
    if entry is None:
        return
    where = ("args" if path[0].idx == 0 else "kwargs") + jax.tree_util.keystr(path[1:])
    if isinstance(entry, str):
        for rest, leaf in jax.tree_util.tree_leaves_with_path(value):
            yield from _faults_of_text(entry, (*path, *rest), where, np.shape(leaf), other_rank)
    elif jax.tree_util.all_leaves([value]):
        yield _not_a_text(entry, where, np.shape(value))
    elif isinstance(entry, Mapping) and isinstance(value, Mapping):
        keys = [str(key) for key in value]
        for key in entry.keys() - value.keys():
            near = difflib.get_close_matches(str(key), keys, 1)
            instead = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(map(repr, value))}"
            yield f"dynamic= has the key {key!r} for {where}, which has no such key: {instead}"
        for key in value.keys() - entry.keys():
            yield f"dynamic= lacks the key {key!r} for {where}: write {key!r}: None if the sizes there stay fixed"
        for key in entry:
            yield from _faults((*path, jax.tree_util.DictKey(key)), entry[key], value[key], other_rank)
    elif isinstance(entry, list | tuple) and type(entry) is type(value):
        if len(entry) != len(value):
            counts = f"{len(entry)} entries for {where}, which has {len(value)}"
            yield f"dynamic= has {counts}: write one for each, None for fixed sizes"
        for i, pair in enumerate(zip(entry, value, strict=False)):
            yield from _faults((*path, jax.tree_util.SequenceKey(i)), *pair, other_rank)


def _faults_of_text(
    entry: str, path: tuple[Any, ...], where: str, shape: tuple[int, ...], other_rank: OtherRank
) -> Iterator[str]:
    sizes = [size.strip() for size in re.split(r",(?![^(]*\))", entry.strip(" ()"))]
    wanted = _names(sizes)
    if wanted != sizes and sizes != [""]:
        wanted += ["..."] if len(wanted) < len(shape) and "..." not in wanted else []
        yield f"dynamic= has {entry!r} for {where}: a size that varies has a name: write {', '.join(wanted)!r}"
    stated = [size for size in sizes if size != "..."]
    if len(stated) > len(shape) and sizes != [""]:
        yield other_rank(path, sizes, shape)


def _not_a_text(entry: Any, where: str, shape: tuple[int, ...]) -> str:
    """The fault of an entry that is no text, for an array."""
    start = f"dynamic= has {_short(entry)} for {where}, whose shape is {shape}: an entry is one text or None: write"
    if isinstance(entry, list | tuple) and entry and all(isinstance(size, str | int | None) for size in entry):
        if any(size is not None for size in entry) and len(entry) == len(shape):
            fits = (not isinstance(size, int) or size in (-1, n) for size, n in zip(entry, shape, strict=True))
            sizes = [str(size) if is_fit else "_" for size, is_fit in zip(entry, fits, strict=True)]
            return f"{start} {', '.join(_names(sizes))!r}"
    return f"{start} a text such as {', '.join(['n', '...'][: max(1, len(shape))])!r}, or None if its sizes stay fixed"


def _short(entry: Any) -> str:
    return repr(entry) if isinstance(entry, list | tuple | dict | int) else f"a {type(entry).__name__}"


def _names(sizes: Sequence[str]) -> list[str]:
    """The sizes, with names for those that stand for any size elsewhere, and names of one word."""
    taken = set(re.findall(r"[a-zA-Z]\w*", " ".join(sizes)))
    free = (name for name in itertools.chain("nmk", map("n{}".format, itertools.count(1))) if name not in taken)
    return [next(free) if size in _WILD else re.sub(r"(?<=\w)\s+(?=[a-zA-Z])", "_", size) for size in sizes]


__all__ = ["entry_fault"]
