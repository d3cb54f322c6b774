# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Structures of words, and types of functions, as C declares them and as their words lie in memory."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

_WIDTH = 120


@dataclass(frozen=True)
class Fields:
    """A line of a structure: fields of one C type, by names such as `m` or `batch[4]`, and what they mean."""

    type: str
    names: str
    text: str = ""

    def each(self) -> Iterator[tuple[str, int]]:
        """Each field's name and its number of elements."""
        for name in self.names.split(", "):
            stem, count = re.fullmatch(r"(\w+)(?:\[(\d+)\])?", name).groups()  # type: ignore[union-attr]
            yield stem, int(count or 1)


@dataclass(frozen=True)
class Field:
    """A field of a structure in words: the first, how many elements, and those of one element."""

    name: str
    type: str
    first: int
    count: int
    words: int


@dataclass(frozen=True)
class Struct:
    """A structure of words."""

    name: str
    text: str
    lines: Sequence[Fields]
    nested: Sequence[Struct] = ()
    """Structures that are types of fields."""

    @cached_property
    def fields(self) -> Mapping[str, Field]:
        """The fields by name, in order."""
        found: dict[str, Field] = {}
        first, words_of = 0, {struct.name: struct.words for struct in self.nested}
        for line in self.lines:
            words = words_of.get(line.type, 1)
            for name, count in line.each():
                found[name] = Field(name, line.type, first, count, words)
                first += count * words
        return found

    @cached_property
    def words(self) -> int:
        """The number of words that it has."""
        return sum(field.count * field.words for field in self.fields.values())

    def declaration(self) -> str:
        """In C."""
        return "\n".join([*comment(self.text, ""), f"struct {self.name} {{", *map(field_line, self.lines), "};"])


@dataclass(frozen=True)
class Function:
    """A type of functions."""

    name: str
    text: str
    parameters: Sequence[tuple[str, str]]
    result: str = "void"

    @property
    def llvm_parameters(self) -> str:
        """The types of the parameters in MLIR's LLVM dialect, separated by commas."""
        return ", ".join("i64" if type_ == "int64_t" else "!llvm.ptr" for type_, _ in self.parameters)

    def declaration(self) -> str:
        """In C."""
        return "\n".join([*comment(self.text, ""), *self.signature(f"using {self.name} = {self.result} (*)(")])

    def signature(self, head: str) -> list[str]:
        """The parameters behind `head`, in lines."""
        parameters = ", ".join(_declared(type_, name).replace(" ", "\xa0") for type_, name in self.parameters)
        lines = textwrap.wrap(f"{parameters});", _WIDTH - len(head))
        heads = [head, *[" " * len(head)] * len(lines)]
        return [f"{start}{line}".replace("\xa0", " ") for start, line in zip(heads, lines, strict=False)]


def comment(text: str, indent: str) -> list[str]:
    """Lines of a comment in front of a declaration."""
    return textwrap.wrap(text, _WIDTH, initial_indent=f"{indent}/// ", subsequent_indent=f"{indent}/// ")


def _declared(type_: str, name: str) -> str:
    return f"{type_}{name}" if type_.endswith("*") else f"{type_} {name}"


def field_line(line: Fields) -> str:
    """A line of a structure in C, with its comment."""
    star = "*" if line.type.endswith("*") else ""
    names = ", ".join(f"{star}{name}" for name in line.names.split(", "))
    declared = f"  {line.type.removesuffix('*').rstrip()} {names};"
    if len(declared) + len(line.text) + 4 <= _WIDTH:
        return f"{declared} // {line.text}" if line.text else declared
    return "\n".join([*comment(line.text, "  "), declared])


__all__ = ["Field", "Fields", "Function", "Struct", "comment", "field_line"]
