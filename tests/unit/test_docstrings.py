# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Docstrings, of stubs too, and descriptions of variables begin with a noun phrase or a verb, not a word of `REFUSED`.

A description is a string after an assignment.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("shlo_disc", "tests", "benchmarks", "examples", "scripts", "corpus")

REFUSED = ("what", "which", "that", "how", "whether", "where", "of", "who", "when", "whatever", "why")
BEGINNING = re.compile(rf"\s*(?:{'|'.join(REFUSED)})\b", re.IGNORECASE)
QUOTED = re.compile(f'"{BEGINNING.pattern}', re.IGNORECASE)
"""The same behind a quote: most files have none, and are not parsed."""


def refused(text: str) -> Iterator[tuple[int, str]]:
    """The strings that are statements and begin with one of the words, each with its line and first line of text."""
    for node in ast.walk(ast.parse(text)) if QUOTED.search(text) else ():
        match node:
            case ast.Expr(value=ast.Constant(value=str(string))) if BEGINNING.match(string):
                yield node.lineno, string.strip().splitlines()[0]


def files(folder: str) -> list[Path]:
    """The programs and stubs in a folder."""
    return sorted(path for path in (ROOT / folder).rglob("*.py*") if path.suffix in (".py", ".pyi"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_descriptions_begin_with_a_noun_or_a_verb(folder: str) -> None:
    paths = files(folder)
    found = [f"{path.relative_to(ROOT)}:{line}: {text}" for path in paths for line, text in refused(path.read_text())]
    assert paths and not found, "\n".join(found)


def test_each_kind_is_found() -> None:
    of, why = '"""Of an object."""', '"""\n    Why it is.\n    """'
    text = f"{of}\nclass A:\n    {of}\n    def f(self):\n        {of}\nasync def g():\n    {of}\n"
    assert sorted(line for line, _ in refused(text)) == [1, 3, 5, 7]
    text = f"x = 1\n{of}\nclass A:\n    y: int\n    {of}\n    def f(self):\n        self.z = 1\n        {why}\n"
    assert sorted(refused(text)) == [(2, "Of an object."), (5, "Of an object."), (8, "Why it is.")]
    assert ROOT / "shlo_disc" / "runtime" / "_native.pyi" in files("shlo_disc")
    assert list(refused('"""The object that is whole."""\nx = "What x is."\n"""The size of x."""\n')) == []
