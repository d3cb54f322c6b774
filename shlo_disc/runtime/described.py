# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled programs in a line, and as a table for notebooks, by the header of their artifact."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from shlo_disc.errors import ArtifactError
from shlo_disc.shape_dialect.dtypes import BY_NUMPY

from .axes import users_shape

SHOWN = 6
"""The most arguments or results of a program that a line has."""

ROWS = 40
"""The most that a table has."""

_OF_THE_COMPILE = frozenset({
    "as_text", "compile_count", "dump", "explain", "fusion_count", "kernels", "launches", "listing", "max_dim",
    "options", "peak_memory_formula", "report", "source_lines", "stages", "timings", "trace",
})  # fmt: skip
"""Attributes of an Executable that a loaded program lacks."""

_POSITION = re.compile(r"args\[(\d+)\]")

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


@contextmanager
def reading_header() -> Iterator[None]:
    """Around what reads the header of an artifact from outside. Raises ArtifactError where that is malformed."""
    try:
        yield
    except (KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(f"the artifact's header is malformed: {error!r}") from None


def tensor_text(row: Mapping[str, Any]) -> str:
    """`x: f32[b, 768]` for a row of an artifact's header."""
    return f"{row['path']}: {type_text(row)}"


def argument_names(header: Mapping[str, Any]) -> list[str]:
    """The user's name for each argument of a header, such as `params['w']`; "" where the header has none."""
    names = (header.get("pytree") or {}).get("names", [])
    found = []
    for row in header["arguments"]:
        place = _POSITION.match(row["path"])
        if place is None:
            found.append(row["path"])
            continue
        name = names[int(place[1])] if int(place[1]) < len(names) else ""
        found.append(f"{name}{row['path'][place.end() :]}" if name else "")
    return found


def type_text(row: Mapping[str, Any], is_as_taken: bool = False) -> str:
    """`f32[b, 768]` for a row of an artifact's header. is_as_taken: in the order of axes of C."""
    shape = row["shape"] if is_as_taken else users_shape(row)
    return f"{row['dtype']}[{', '.join(map(str, shape))}]"


def size_text(count: int) -> str:
    """A number of bytes to three digits, such as "12 bytes" or "1.23 MB"."""
    size, unit = float(count), 0
    while size >= 999.5 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {_UNITS[unit]}"


def count_text(count: int, noun: str) -> str:
    """A number of things, such as "1 command" or "2 commands"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def program_text(header: Mapping[str, Any]) -> str:
    """A program in a line: `f(f32[b, 64], f32[64]) -> f32[b]`."""
    arguments = some_text([type_text(row) for row in header["arguments"]])
    results = [type_text(row) for row in header["results"]]
    made = some_text(results) if len(results) == 1 else f"({some_text(results)})"
    return f"{header['name']}({arguments}) -> {made}"


def signature_text(header: Mapping[str, Any], bound: int = 0) -> str:
    """A program with the names of its arguments: `f(x: f32[b, 64], w: f32[64]) -> (result: f32[b])`.

    bound: how many of the first arguments are fixed, and left out.
    """
    rows = [(_POSITION.match(row["path"]), row) for row in header["arguments"]]
    places = [number if found is None else int(found[1]) for number, (found, _) in enumerate(rows)]
    named = zip(places, rows, argument_names(header), strict=True)
    arguments = [f"{name or row['path']}: {type_text(row)}" for place, (_, row), name in named if place >= bound]
    return f"{header['name']}({', '.join(arguments)}) -> ({', '.join(map(tensor_text, header['results']))})"


def buffer_text(buffer: Any) -> str:
    """A Buffer in a line: `f32[3, 768] in the memory 'device' of ...`, without its elements."""
    dtype = BY_NUMPY.get(str(buffer.dtype))
    row = {"dtype": dtype.name if dtype else buffer.dtype, "shape": buffer.shape}
    where = "deleted" if buffer.is_deleted() else f"in the memory {buffer.memory.kind!r} of {buffer.device}"
    return f"<Buffer {type_text(row)}, {where}>"


def target_text(header: Mapping[str, Any]) -> str:
    """The target that a program runs on: the name of a GPU's architecture, or that of a processor's or of its level."""
    target = header["target"]
    return str(target.get("name") or target.get("cpu") or target.get("triple", "cpu").partition("-")[0])


def missing_text(kind: str, attribute: str, program: str, has_executable: bool = False) -> str:
    """A sentence on why a loaded or bound program lacks an attribute.

    has_executable: it comes from an Executable of this process, and from no file.
    """
    if attribute not in _OF_THE_COMPILE:
        return f"{kind!r} object has no attribute {attribute!r}"
    if has_executable and kind == "BoundExecutable":
        return (
            f"a bound program has no {attribute!r}, but the Executable that it was bound from has: after executable = "
            f"shlo_disc.compile(...) and bound = executable.bind(...), use executable.{attribute}"
        )
    if has_executable:
        return (
            f"the native code of {program!r} has no {attribute!r}, but the Executable that it belongs to has: use "
            f"executable.{attribute} in place of executable.loaded.{attribute}"
        )
    return (
        f"{program!r} was loaded as native code, without the program it was compiled from, which {attribute!r} needs: "
        "use that of the Executable that shlo_disc.compile gives, or `profile(args)` for the times of commands"
    )


def target_row(header: Mapping[str, Any]) -> tuple[str, str]:
    """The row of the target in a table."""
    return "target", target_text(header)


def program_table(title: str, header: Mapping[str, Any], more: Iterable[tuple[str, str]]) -> str:
    """HTML of a program: its arguments, its results, the bounds of its symbols, and rows of `more`."""
    rows = [*more]
    for kind in ("arguments", "results"):
        found = header[kind]
        rows += [(kind[:-1], tensor_text(row)) for row in found[:ROWS]]
        rows += [(kind, f"and {len(found) - ROWS} more")] if len(found) > ROWS else []
    rows += [("symbol", _bounds_text(symbol)) for symbol in header.get("symbols", ())]
    body = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>" for name, text in rows)
    return f"<table><caption>{html.escape(title)}</caption><tbody>{body}</tbody></table>"


def _bounds_text(symbol: Mapping[str, Any]) -> str:
    low = "" if symbol["min"] is None else f"{symbol['min']} <= "
    high = "" if symbol["max"] is None else f" <= {symbol['max']}"
    return f"{low}{symbol['name']}{high}"


def some_text(texts: Sequence[str]) -> str:
    """A list of which only the first are shown."""
    if len(texts) <= SHOWN:
        return ", ".join(texts)
    return ", ".join([*texts[: SHOWN - 1], f"{len(texts) - SHOWN + 1} more"])


__all__ = [
    "buffer_text", "count_text", "missing_text", "program_table", "program_text", "reading_header", "size_text",
    "argument_names", "some_text", "target_row", "target_text", "tensor_text", "type_text",
]  # fmt: skip
