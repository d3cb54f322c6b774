# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Words that docs/words.md replaces stand nowhere: not in identifiers, comments, errors or pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("shlo_disc", "tests", "benchmarks", "examples", "scripts", "corpus", "docs")
SUFFIXES = (".c", ".cpp", ".h", ".md", ".mlir", ".py", ".pyi")
EXEMPT = (ROOT / "docs" / "words.md", Path(__file__).resolve())

REFUSED = re.compile(
    r"""(?ix)
    \b(?: lets? \s go \s of | g(?:ive|ives|iven|ave) \s back | dear | dearer | takes? \s along | made \s up \s again
    | turned \s weights | clos(?:e|es|ed|ing)[ _-]regions | carry[ _-]less | sizes \s that \s are \s data )\b
    | (?<![a-z]) (?: _?stretched | twins? | is_?finished | streamed | settled? | taken \s over | contestants? )
      (?![a-z])
    """
)


def texts(folder: str) -> Iterator[Path]:
    """The sources and pages of a folder, those of others and what is generated aside."""
    for path in sorted((ROOT / folder).rglob("*")):
        if path.suffix in SUFFIXES and path.is_file() and path.resolve() not in EXEMPT and "_vendor" not in path.parts:
            yield path


def refused(text: str) -> Iterator[tuple[int, str]]:
    """The words of a text that are replaced, each with its line."""
    for found in REFUSED.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, found[0]


@pytest.mark.parametrize("folder", FOLDERS)
def test_words_that_are_replaced(folder: str) -> None:
    paths = list(texts(folder))
    found = [f"{p.relative_to(ROOT)}:{line}: {word}" for p in paths for line, word in refused(p.read_text())]
    assert paths and not found, "\n".join(["docs/words.md has the words for these:", *found])


@pytest.mark.parametrize(
    "text", ["a dynamic_twin", "# it gives back the block", "self.is_finished", "def stretched():"]
)
def test_a_word_is_found(text: str) -> None:
    assert list(refused(text))
