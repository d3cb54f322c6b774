# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Docstrings of modules, classes and functions begin with a noun phrase or a verb, never with a word of `REFUSED`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("shlo_disc", "tests", "benchmarks", "examples", "scripts", "corpus")

REFUSED = ("what", "which", "that", "how", "whether", "where", "of", "who", "when", "whatever")
BEGINNING = re.compile(rf"\s*(?:{'|'.join(REFUSED)})\b", re.IGNORECASE)
QUOTED = re.compile(f'"{BEGINNING.pattern}', re.IGNORECASE)
"""The same behind a quote: most files have none, and are not parsed."""


def refused(text: str) -> Iterator[tuple[int, str]]:
    """The docstrings of a program that begin with one of the words, each with its line and its first line of text."""
    for node in ast.walk(ast.parse(text)) if QUOTED.search(text) else ():
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        docstring = ast.get_docstring(node)
        if docstring and BEGINNING.match(docstring):
            yield node.body[0].lineno, docstring.splitlines()[0]


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_begin_with_a_noun_or_a_verb(folder: str) -> None:
    paths = sorted((ROOT / folder).rglob("*.py"))
    found = [f"{path.relative_to(ROOT)}:{line}: {text}" for path in paths for line, text in refused(path.read_text())]
    assert paths and not found, "\n".join(found)


def test_each_kind_is_found() -> None:
    of = '"""Of an object."""'
    text = f"{of}\nclass A:\n    {of}\n    def f(self):\n        {of}\nasync def g():\n    {of}\n"
    assert sorted(line for line, _ in refused(text)) == [1, 3, 5, 7]
    assert list(refused('"""The object that is whole."""\nx = 1\n"""What x is."""\n')) == []
