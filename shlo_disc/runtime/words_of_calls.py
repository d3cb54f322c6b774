# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of calls of JAX's programs: what does not fit and what to do stand before the words of jax.export."""

from __future__ import annotations

import re
from collections.abc import Sequence

from shlo_disc.errors import DiscError, ShapeError

_FIXED = re.compile(
    r"Shape mismatch for (?P<path>\S+)\.shape\[(?P<axis>\d+)\] \(expected same constant\): "
    r"expected \((?P<expected>.*)\) and called with \((?P<given>.*)\)"
)
_CONSTRAINT = re.compile(r"Input shapes do not match the symbolic shape constraint (.+?)\. Expected ")
_SPECIFICATION = "Input shapes do not match the polymorphic shapes specification. "
_UNEQUAL = re.compile(
    r"Found inconsistency between dimension size (\S+) \(= (\d+)\) and the specification '(.+?)' \(= (-?\d+)\)\."
)
_LEAST = re.compile(r"Expected value >= (\d+) for dimension variable '(\w+)'\.")
ASKED = re.compile(r"Expected (.+?), which (.+) requires\.")
"""A condition of an operation of the program."""
_SOLVED = re.compile(r"'(\w+)' = (-?\d+) from specification '[^']*' for dimension (\S+) \(= -?\d+\)")
_MULTIPLE = re.compile(r"(\d+)\*floordiv\((.+), \1\) == (.+)")
_PLACE = re.compile(r"args\[(\d+)\]")

Sources = dict[str, tuple[str, str]]
"""Values of symbols, and the sizes of arguments that they come from."""


def in_own_words(error: DiscError, names: Sequence[str]) -> DiscError:
    """The same error, which begins with what does not fit. names: of the positional arguments, "" for none."""
    if not isinstance(error, ShapeError):
        return error
    lead = _lead(error.message, names)
    return ShapeError(f"{lead}\n{error.message}") if lead else error


def _lead(message: str, names: Sequence[str]) -> str:
    if found := _FIXED.fullmatch(message):
        return _of_fixed(found, names)
    sources = {name: (value, _named(path, names)) for name, value, path in _SOLVED.findall(message)}
    if found := _CONSTRAINT.match(message):
        return (
            f"the sizes do not satisfy the constraint {_written(found[1])}: {_solved(found[1], sources)}. Pass sizes "
            "that satisfy it, or change what constraints= states"
        )
    if not message.startswith(_SPECIFICATION):
        return ""
    finding = message.removeprefix(_SPECIFICATION).partition(" Using the following")[0]
    if found := _UNEQUAL.match(finding):
        path, size, wanted, value = found.groups()
        required = f"{wanted}, which is {value}" if wanted.isidentifier() else f"{wanted}, that is {value}"
        by = "".join(f", by {sources[name][1]}" for name in [wanted] if name in sources)
        return (
            f"{_named(path, names)} is {size}, where it has to be {required}{by}, as names in args= or dynamic= and "
            "constraints= state. Pass arrays whose sizes go together, or give sizes that may differ other names"
        )
    if (found := _LEAST.match(finding)) and found[2] in sources:
        least, name = found.groups()
        value, path = sources[name]
        advice = (
            f': a size that may be 0 is named "{name} - 1" in args= or dynamic=' if (least, value) == ("1", "0") else ""
        )
        return f"{name} is {value}, by {path}, and is at least {least}{advice}"
    if found := ASKED.match(finding):
        relation, operation = found.groups()
        return f"{operation} requires {relation}, and {_solved(relation, sources)}: pass sizes for which it holds"
    found_here = _solved(finding, sources)
    return f"the sizes of the call do not fit. {finding}" + (f" Here {found_here}." if found_here else "")


def _of_fixed(found: re.Match[str], names: Sequence[str]) -> str:
    """The fault of a size that was compiled as a number. It begins as the code of the error requires."""
    axis, expected = int(found["axis"]), found["expected"].rstrip(",").split(", ")
    given = found["given"].rstrip(",").split(", ")
    named = ", ".join("n" if i == axis else size for i, size in enumerate(expected))
    return (
        f"Shape mismatch: {_named(found['path'] + f'.shape[{axis}]', names)} is {given[axis]}, and the program was "
        f'compiled for {expected[axis]}. Pass that size; if it changes, name it in args= or dynamic=, as in "{named}"'
    )


def _named(path: str, names: Sequence[str]) -> str:
    """The size of an argument, with the name of the argument where it is known."""
    found = _PLACE.match(path)
    name = names[int(found[1])] if found and int(found[1]) < len(names) else ""
    return f"{path} (of {name})" if name else path


def _solved(text: str, sources: Sources) -> str:
    """The values of the symbols in a text."""
    symbols = [name for name in dict.fromkeys(re.findall(r"[a-zA-Z_]\w*", text)) if name in sources]
    return " and ".join(f"{name} is {sources[name][0]}, by {sources[name][1]}" for name in symbols)


def _written(constraint: str) -> str:
    """A constraint as people write it: mod(b, 4) == 0 for 4*floordiv(b, 4) == b."""
    found = _MULTIPLE.fullmatch(constraint)
    return f"mod({found[2]}, {found[1]}) == 0" if found and found[2] == found[3] else constraint


__all__ = ["ASKED", "in_own_words"]
