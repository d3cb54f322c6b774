# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Faults of entries of `dynamic=` that are written as shapes are elsewhere, and what to write."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from .size_syntax import syntax_advice

_WILD = ("*", "?", ":", "-1", "None", "")
OtherRank = Callable[[Any, Sequence[str], tuple[int, ...]], str]
"""The fault of an entry with too many sizes: of the path of a leaf, the sizes that are stated, and its shape."""


class _Fault(NamedTuple):
    """A fault of an entry. wanted: the entry to write; "" where there is none."""

    text: str
    wanted: str = ""


def entry_fault(args: tuple[Any, ...], kwargs: Mapping[str, Any], shapes: Any, other_rank: OtherRank) -> str:
    """The first fault of an entry, with the argument and the whole `dynamic` to write; "" where there is none.

    shapes: as in `specifications`.
    """
    given = shapes
    if isinstance(shapes, str):
        shapes = [shapes] * len(args), dict.fromkeys(kwargs, shapes)
    if not isinstance(shapes, tuple) or len(shapes) != 2:
        return ""
    sequence, key = jax.tree_util.SequenceKey, jax.tree_util.DictKey
    pairs = [((sequence(0), sequence(i)), *pair) for i, pair in enumerate(zip(shapes[0], args, strict=False))]
    pairs += [((sequence(1), key(name)), entry, kwargs[name]) for name, entry in (shapes[1] or {}).items()]
    for path, entry, value in pairs:
        for fault in _faults(path, entry, value, other_rank):
            is_whole = fault.wanted and jax.tree_util.all_leaves([value])
            return f"{fault.text}{_as_in(given, path, fault.wanted)}" if is_whole else fault.text
    return ""


def _as_in(shapes: Any, path: tuple[Any, ...], wanted: str) -> str:
    """The text of `dynamic` with another entry for an argument; "" for one that has entries by name."""
    if isinstance(shapes, str):
        return f", as in dynamic={wanted!r}"
    if shapes[1] is not None:
        return ""
    entries = tuple(wanted if i == path[1].idx else entry for i, entry in enumerate(shapes[0]))
    return f", as in dynamic={entries!r}"


def positions_fault(entries: Any, args: Sequence[Any]) -> str:
    """The fault of a `dynamic` that has positions of arguments, with the one to write; "" for others.

    First sizes have names, as have sizes that are equal to them.
    """
    if not isinstance(entries, list | tuple) or not all(entry is None or type(entry) is int for entry in entries):
        return ""
    shapes = [np.shape(arg) if jax.tree_util.all_leaves([arg]) else () for arg in args]
    places = [entry for entry in entries if entry is not None and 0 <= entry < len(args)]
    first = dict.fromkeys(shapes[place][0] for place in places if shapes[place])
    if not first:
        return ""
    names = dict(zip(first, itertools.chain("nmk", map("n{}".format, itertools.count(1))), strict=False))
    texts = [", ".join(names.get(size, "_") for size in shape) for shape in shapes]
    wanted = tuple(text if text.strip("_, ") else None for text in texts)
    return f"dynamic= names the sizes of arguments, and not their positions: write dynamic={wanted!r}"


def _faults(path: tuple[Any, ...], entry: Any, value: Any, other_rank: OtherRank) -> Iterator[_Fault]:
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
            yield _Fault(f"dynamic= has the key {key!r} for {where}, which has no such key: {instead}")
        for key in value.keys() - entry.keys():
            text = f"dynamic= lacks the key {key!r} for {where}: write {key!r}: None if the sizes there stay fixed"
            yield _Fault(text)
        for key in entry:
            yield from _faults((*path, jax.tree_util.DictKey(key)), entry[key], value[key], other_rank)
    elif isinstance(entry, list | tuple) and type(entry) is type(value):
        if len(entry) != len(value):
            counts = f"{len(entry)} entries for {where}, which has {len(value)}"
            yield _Fault(f"dynamic= has {counts}: write one for each, None for fixed sizes")
        for i, pair in enumerate(zip(entry, value, strict=False)):
            yield from _faults((*path, jax.tree_util.SequenceKey(i)), *pair, other_rank)


def _faults_of_text(
    entry: str, path: tuple[Any, ...], where: str, shape: tuple[int, ...], other_rank: OtherRank
) -> Iterator[_Fault]:
    sizes = [size.strip() for size in re.split(r",(?![^(]*\))", entry.strip(" ()"))]
    if separated := _separated(entry, len(shape)):
        text = f"dynamic= has {entry!r} for {where}, whose shape is {shape}: commas separate sizes: write {separated!r}"
        yield _Fault(text, separated)
        return
    wanted = _names(sizes)
    if wanted == sizes and (advice := syntax_advice(entry, len(shape))):
        yield _Fault(f"dynamic= has {entry!r} for {where}, whose shape is {shape}: {advice}")
        return
    if wanted != sizes and sizes != [""]:
        wanted += ["..."] if len(wanted) < len(shape) and "..." not in wanted else []
        text = f"dynamic= has {entry!r} for {where}: a size that varies has a name: write {', '.join(wanted)!r}"
        yield _Fault(text, ", ".join(wanted))
    stated = [size for size in sizes if size != "..."]
    if len(stated) > len(shape) and sizes != [""]:
        yield _Fault(other_rank(path, sizes, shape))


def _separated(entry: str, rank: int) -> str:
    """A text of sizes with commas where it lacks them, which has as many sizes as an array; "" for others."""
    sizes = re.split(r"[\s,;]+", entry.strip(" ()[]"))
    lacks = ";" in entry or re.search(r"[\w.]\s+[\w.]", entry)
    is_plain = all(re.fullmatch(r"\w+|\.\.\.", size) for size in sizes)
    fits = len(sizes) == rank or "..." in sizes and len(sizes) <= rank + 1
    return ", ".join(sizes) if lacks and is_plain and fits else ""


def _not_a_text(entry: Any, where: str, shape: tuple[int, ...]) -> _Fault:
    """The fault of an entry that is no text, for an array."""
    start = f"dynamic= has {_short(entry)} for {where}, whose shape is {shape}: an entry is one text or None: write"
    if sizes := _sizes_of(entry, shape):
        text = ", ".join(_names(sizes))
        return _Fault(f"{start} {text!r}", text)
    text = ", ".join(["n", "..."][: max(1, len(shape))])
    return _Fault(f"{start} a text such as {text!r}, or None if its sizes stay fixed", text)


def _sizes_of(entry: Any, shape: tuple[int, ...]) -> list[str]:
    """The sizes that an entry other than a text means: a shape, a specification, or axes; [] where none is clear."""
    if isinstance(entry, jax.ShapeDtypeStruct):
        entry = entry.shape if any(map(jax.export.is_symbolic_dim, entry.shape)) else None
    elif isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str) and _is_dtype(entry[1]):
        sizes = [size.strip() for size in entry[0].strip(" ()").split(",")]
        return sizes if len(sizes) == len(shape) else []
    axes = range(len(shape))
    if isinstance(entry, Mapping) and entry and all(type(axis) is int and axis in axes for axis in entry):
        names = {axis: name for axis, name in entry.items() if isinstance(name, str)}
        return [names.get(axis, "?" if axis in entry else "_") for axis in axes]
    if not isinstance(entry, list | tuple) or all(size is None for size in entry):
        return []
    known = [str(size) if jax.export.is_symbolic_dim(size) else size for size in entry]
    if not all(isinstance(size, str | int | None) for size in known):
        return []
    are_axes = all(type(axis) is int and axis in axes for axis in known)
    if len(known) == len(shape):
        fits = [not isinstance(size, int) or size in (-1, n) for size, n in zip(known, shape, strict=True)]
        if any(fits) or not are_axes:
            return [str(size) if is_fit else "_" for size, is_fit in zip(known, fits, strict=True)]
    return ["?" if axis in known else "_" for axis in axes] if are_axes else []


def _is_dtype(value: Any) -> bool:
    try:
        np.dtype(value)
    except TypeError:
        return False
    return value is not None


def _short(entry: Any) -> str:
    return repr(entry) if isinstance(entry, list | tuple | dict | int) else f"a {type(entry).__name__}"


def _names(sizes: Sequence[str]) -> list[str]:
    """The sizes, with names for those that stand for any size elsewhere, and names of one word."""
    taken = set(re.findall(r"[a-zA-Z]\w*", " ".join(sizes)))
    free = (name for name in itertools.chain("nmk", map("n{}".format, itertools.count(1))) if name not in taken)
    return [next(free) if size in _WILD else re.sub(r"(?<=\w)\s+(?=[a-zA-Z])", "_", size) for size in sizes]


__all__ = ["entry_fault", "positions_fault"]
