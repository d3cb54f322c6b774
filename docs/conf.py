# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How Sphinx makes the documentation site: `make docs`. Nothing is fetched, when it is built or when it is read."""

from __future__ import annotations

import importlib.util
import inspect
import re
from typing import Any

from pygments.lexers.special import TextLexer

project = "shlo_disc"
copyright = "the authors of shlo_disc, Apache-2.0 with LLVM exceptions"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["decisions/0000-template.md"]

html_theme = "furo"
html_title = "shlo_disc"
html_show_sphinx = False
html_copy_source = False

myst_heading_anchors = 3
default_role = "code"
"""One pair of backquotes in a docstring is code."""
add_module_names = False
smartquotes = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_mock_imports = [name for name in ("torch", "sympy") if importlib.util.find_spec(name) is None]

_ITEM = re.compile(r"(?:^|(?<=[.;] ))(`?\w+`?(?:, `?\w+`?)*): ")
"""Where the description of a parameter, or of several, begins."""


def setup(app: Any) -> None:
    """What Sphinx calls first."""
    app.connect("autodoc-process-docstring", _mark_items)
    app.add_lexer("mlir", TextLexer)  # shown as it is: Pygments has no such language


def _mark_items(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Make descriptions "parameter: text" in a docstring a list. All docstrings here have them so."""
    known = _parameters(thing)
    text = re.sub(r"(`[^`\n]+`)(?=\w)", r"\1\\ ", "\n".join(lines))  # a letter behind code has to be told apart
    paragraphs = text.strip().split("\n\n")
    lines[:] = [line for paragraph in paragraphs for line in (*_list_of(paragraph.split("\n"), known), "")]


def _list_of(lines: list[str], known: set[str]) -> list[str]:
    """The lines of a paragraph; of one that describes parameters: what is before them, an item for each, the errors."""
    text = " ".join(line.strip() for line in lines)
    items = [found for found in _ITEM.finditer(text) if set(re.findall(r"\w+", found[1])) <= known]
    if not items:
        return lines
    ends = [*(found.start() for found in items[1:]), len(text)]
    listed = [
        f"* **{found[1].replace('`', '')}**: {text[found.end() : end].strip()}"
        for found, end in zip(items, ends, strict=True)
    ]
    listed[-1], raises, errors = listed[-1].partition(" Raises ")
    return [text[: items[0].start()], "", *listed, "", f"{raises.strip()} {errors}"]


def _parameters(thing: Any) -> set[str]:
    try:
        return set(inspect.signature(thing).parameters)
    except (TypeError, ValueError):
        return set()
