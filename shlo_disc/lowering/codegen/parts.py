# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cuts a module of LLVM IR into parts that are compiled apart, as ThinLTO's code generation does, and joined again.

A part is whole for LLVM's inliner: functions that refer to each other stay together, and so do host functions and what
they call. Entry points of kernels, whose addresses alone are taken, may be elsewhere. The cut depends on the text and
not on the machine.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

PART_BYTES = 48 << 10
"""Text of LLVM IR that takes LLVM some 80 ms: less is not worth a module of its own."""
MOST_PARTS = 16

_DEFINITION = re.compile(r"^(?:; Function Attrs:[^\n]*\n)?define [^\n]*\{\n.*?^\}\n", re.MULTILINE | re.DOTALL)
_CONSTANT = re.compile(r"^(@[\w.$-]+) = internal (?:unnamed_addr )?constant [^\n]*\n", re.MULTILINE)
_HEAD = re.compile(r"^(?:source_filename|target) [^\n]*\n", re.MULTILINE)
_NAME = re.compile(r"@([\w.$-]+)")
_CALL = re.compile(r"\bcall [^\n(]*?@([\w.$-]+)\(")
_ATTRIBUTES_AND_METADATA = re.compile(r"(\) ?)[^()]*\{$")


class Part(NamedTuple):
    """A module of its own. exported: what others name, or the caller. external: what it names of others."""

    text: str
    exported: tuple[str, ...]
    external: tuple[str, ...]


class _Function(NamedTuple):
    name: str
    text: str
    names: frozenset[str]


def parts_of(text: str, exported: Collection[str], hosts: tuple[str, ...], part_bytes: int = PART_BYTES) -> list[Part]:
    """The parts of a module, the one with the host functions first; the module alone where it is small.

    Host functions are parted from kernels whose addresses they take; a name in quotation marks keeps a module whole.

    exported: definitions that the caller names. hosts: prefixes of the names of host functions.
    """
    if len(text) < 2 * part_bytes or '@"' in text:
        return [Part(text, tuple(sorted(exported)), ())]
    functions = [_function(found[0]) for found in _DEFINITION.finditer(text)]
    rest = _DEFINITION.sub("", text)
    constants = {found[1][1:]: found[0] for found in _CONSTANT.finditer(rest)}
    rest = _CONSTANT.sub("", rest)
    owned = {name for line in rest.splitlines() if line.startswith("@") for name in _NAME.findall(line)}
    first, *others = _balanced(_groups(functions, {*exported, *owned}, hosts), part_bytes)
    # Variables, and constants that the caller names, are the first part's.
    shared = "".join(line for line in rest.splitlines(keepends=True) if not line.startswith("@"))
    modules = [(first, rest), *((group, shared) for group in others if group)]
    return [_part(group, frame, constants, functions, exported) for group, frame in modules]


def _function(text: str) -> _Function:
    head = text.index("define ")
    name, *names = _NAME.findall(text, head)
    return _Function(name, text, frozenset(names))


def _groups(functions: list[_Function], first: Collection[str], hosts: tuple[str, ...]) -> list[list[_Function]]:
    """Functions that stay together; at first those of the host, with what they call and what names `first`."""
    by_name = {f.name: f for f in functions}
    leader = {f.name: f.name for f in functions}

    def find(name: str) -> str:
        while leader[name] != name:
            leader[name] = name = leader[leader[name]]
        return name

    host = {f.name for f in functions if f.name.startswith(hosts)}
    for f in functions:
        names = _CALL.findall(f.text) if f.name in host else f.names
        for name in names:
            if name in by_name:
                leader[find(name)] = find(f.name)
    together = [f.name for f in functions if f.name in host or f.name in first or not f.names.isdisjoint(first)]
    for name in together:
        leader[find(name)] = find(together[0])
    groups: dict[str, list[_Function]] = {find(together[0]): []} if together else {"": []}
    for f in functions:
        groups.setdefault(find(f.name), []).append(f)
    return list(groups.values())


def _balanced(groups: list[list[_Function]], part_bytes: int) -> list[list[_Function]]:
    """At most `MOST_PARTS` parts of about one size: the next largest group goes to the smallest (Graham, 1969)."""
    sizes = [sum(len(f.text) for f in group) for group in groups]
    count = 1 + min(MOST_PARTS - 1, sum(sizes[1:]) // part_bytes)
    parts: list[list[int]] = [[] for _ in range(count)]
    held = [0] * count
    for index in [0, *sorted(range(1, len(groups)), key=lambda i: -sizes[i])]:
        least = held.index(min(held)) if index else 0
        parts[least].append(index)
        held[least] += sizes[index]
    return [[f for index in sorted(part) for f in groups[index]] for part in parts]


def _part(
    group: list[_Function],
    frame: str,
    constants: dict[str, str],
    functions: list[_Function],
    exported: Collection[str],
) -> Part:
    own = {f.name for f in group}
    named = frozenset[str]().union(*(f.names for f in group)) | set(_NAME.findall(frame))
    external = tuple(f.name for f in functions if f.name in named - own)
    declarations = [_declaration(f) for f in functions if f.name in external]
    head = "".join(_HEAD.findall(frame))
    body = [*_reachable(named, constants), *(f.text for f in group), *declarations, _HEAD.sub("", frame)]
    wanted = frozenset[str]().union(*(f.names for f in functions if f.name not in own))
    visible = tuple(f.name for f in group if f.name in wanted or f.name in exported)
    of_frame = tuple(
        name for name in sorted(exported) if name not in {f.name for f in functions} and f"@{name} =" in frame
    )
    return Part("".join([head, *body]), visible + of_frame, external)


def _reachable(named: Iterable[str], constants: dict[str, str]) -> list[str]:
    """Constants that are named, or named by those; a constant is a copy in each part."""
    found: dict[str, str] = {}
    pending = [name for name in constants if name in set(named)]
    while pending:
        name = pending.pop()
        if name not in found:
            found[name] = constants[name]
            pending += [inner for inner in _NAME.findall(constants[name]) if inner in constants and inner != name]
    return [text for name, text in constants.items() if name in found]


def _declaration(function: _Function) -> str:
    """The function's type and name, without attributes and debug information."""
    head = function.text[function.text.index("define ") :].split("\n", 1)[0]
    return _ATTRIBUTES_AND_METADATA.sub(")", "declare " + head.removeprefix("define ").removeprefix("internal ")) + "\n"


__all__ = ["MOST_PARTS", "PART_BYTES", "Part", "parts_of"]
