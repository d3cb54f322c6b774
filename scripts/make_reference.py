# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the lists of functions and methods in `docs/reference/`, for readers of the pages' source.

Run: `python -m scripts.make_reference`. The directives of a page say what belongs on it, and the docstrings what it is.
Nothing of the package is imported, for some of it needs PyTorch. `tests/unit/scripts/test_make_reference.py` compares.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"

_START, _END = "<!-- Written by python -m scripts.make_reference. -->\n", "<!-- End of what is written. -->\n"
_DIRECTIVE = re.compile(r"^\.\. auto(\w+):: ([\w.]+)(?:\(\))?\n((?:   :.*\n)*)", re.MULTILINE)
_OPTION = re.compile(r"^   :([\w-]+):[ ]?(.*)$", re.MULTILINE)

Definition = ast.ClassDef | ast.FunctionDef


class Found(NamedTuple):
    """A module, or a class or function and the module that defines it."""

    module: ast.Module
    file: Path
    definition: Definition | None = None


def page(text: str) -> str:
    """A page with its list, which stands before the first directive, or where there is one already."""
    rows = [row for kind, name, options in _DIRECTIVE.findall(text) for row in _rows(kind, name, options)]
    table = "\n".join(["| name | description |", "|--|--|", *(f"| `{name}` | {line} |" for name, line in rows)])
    written = f"{_START}\n{table}\n\n{_END}"
    if _START in text:
        start, end = text.index(_START), text.index(_END) + len(_END)
        return text[:start] + written + text[end:]
    start = text.index("```{eval-rst}\n")
    return f"{text[:start]}{written}\n{text[start:]}"


def _rows(kind: str, name: str, options: str) -> Iterator[tuple[str, str]]:
    """The rows of a directive: names, and the first sentences of docstrings."""
    given = dict(_OPTION.findall(options))
    found = find(name)
    if kind == "module":
        if "members" in given:
            yield from _members_of_module(name, found, given)
        return
    if found.definition is None:
        raise LookupError(name)
    yield _name(name, found.definition), _sentence(found.definition)
    if not isinstance(found.definition, ast.ClassDef):
        return
    own = name.rpartition(".")[2]
    chosen = {word.strip() for word in given.get("members", "").split(",")} - {""}
    special = {word.strip() for word in given.get("special-members", "").split(",")}
    for member in _methods(found, given.get("inherited-members")):
        is_shown = member.name in special or (
            "members" in given and not member.name.startswith("_") and (not chosen or member.name in chosen)
        )
        if is_shown and member.name not in given.get("exclude-members", ""):
            label = own if member.name == "__call__" else f"{own}.{member.name}"
            yield label + ("" if _is_property(member) else "()"), _sentence(member)


def _members_of_module(name: str, found: Found, given: dict[str, str]) -> Iterator[tuple[str, str]]:
    excluded = [word.strip() for word in given.get("exclude-members", "").split(",")]
    assigned = [node for node in found.module.body if isinstance(node, ast.Assign)]
    listed = next(
        (ast.literal_eval(node.value) for node in assigned if ast.unparse(node.targets[0]) == "__all__"), None
    )
    for node in found.module.body:
        if not isinstance(node, Definition) or node.name in excluded:
            continue
        if node.name in listed if listed is not None else not node.name.startswith("_"):
            yield _name(f"{name}.{node.name}", node), _sentence(node)


def _name(name: str, definition: Definition) -> str:
    return name if isinstance(definition, ast.ClassDef) else f"{name}()"


def _sentence(definition: Definition) -> str:
    """The first sentence of a docstring."""
    text = " ".join((ast.get_docstring(definition) or "").partition("\n\n")[0].split())
    sentence = re.match(r".{9,}?\.(?= [A-Z`]|$)", text)
    return (sentence[0] if sentence else text).replace("|", r"\|")


def _is_property(definition: ast.FunctionDef) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in definition.decorator_list)


def _methods(found: Found, inherited: str | None) -> Iterator[ast.FunctionDef]:
    """The documented methods of a class, and of those that it inherits from where `inherited` is not None.

    inherited: a class whose own methods are left out, and those of its bases; "" for none.
    """
    seen: set[str] = set()
    for node in found.definition.body if found.definition else ():
        if isinstance(node, ast.FunctionDef) and node.name not in seen and ast.get_docstring(node):
            seen.add(node.name)
            yield node
    if inherited is None:
        return
    for base in found.definition.bases if isinstance(found.definition, ast.ClassDef) else ():
        name = ast.unparse(base)
        if name == inherited or (parent := _find_in(found, name)) is None:
            continue
        yield from (method for method in _methods(parent, inherited) if method.name not in seen)


def find(name: str) -> Found:
    """The class, function or module of a dotted name, in this order. Raises LookupError where there is none."""
    package, _, last = name.rpartition(".")
    file = _file(package)
    if file and (found := _find_in(Found(ast.parse(file.read_text()), file), last)):
        return found
    if file := _file(name):
        return Found(ast.parse(file.read_text()), file)
    raise LookupError(name)


def _file(module: str) -> Path | None:
    """The file of a module. Stubs are those of the native core."""
    place = ROOT.joinpath(*module.split("."))
    files = (place / "__init__.py", place.with_suffix(".py"), place.with_suffix(".pyi"))
    return next((file for file in files if module and file.is_file()), None)


def _find_in(found: Found, name: str) -> Found | None:
    """A class or function that a module defines or imports from this package; None for others."""
    package = found.file.relative_to(ROOT).parts[:-1]
    nodes = [node for node in found.module.body if isinstance(node, Definition) and node.name == name]
    if nodes:  # the last of several has no @overload
        return Found(found.module, found.file, nodes[-1])
    for node in _statements(found.module):
        if (
            isinstance(node, ast.Assign)
            and ast.unparse(node.targets[0]) == name
            and isinstance(node.value, ast.Attribute)
        ):
            return find(".".join([*package, ast.unparse(node.value)]))
        if isinstance(node, ast.ImportFrom) and (original := _imported(node, name)):
            parts = package[: len(package) - node.level + 1] if node.level else ()
            source = ".".join([*parts, *([node.module] if node.module else [])])
            is_of_package = source.startswith("shlo_disc") and _file(source) != found.file
            return find(f"{source}.{original}") if is_of_package else None
    return None


def _statements(module: ast.Module) -> Iterator[ast.stmt]:
    """The statements of a module, and those under its conditions, such as TYPE_CHECKING."""
    for node in module.body:
        yield from node.body if isinstance(node, ast.If) else (node,)


def _imported(node: ast.ImportFrom, name: str) -> str:
    """The name under which an imported object is defined; "" where it is not imported."""
    return next((alias.name for alias in node.names if name == (alias.asname or alias.name)), "")


def main() -> None:
    """Write all pages."""
    for file in sorted(FOLDER.glob("*.md")):
        file.write_text(page(file.read_text()))


if __name__ == "__main__":
    main()
