# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The report of a compile: one HTML page that needs nothing else, neither a network nor a server.

`gather.py` makes a document (`document.py`) of a finished compilation, and `assets/` shows it: a page, a style and a
few scripts, which are written into the file together with the document.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from importlib.resources import files

from shlo_disc.driver.compilation import Compilation
from shlo_disc.report.page.document import Document
from shlo_disc.report.page.gather import OnDevice, document_of
from shlo_disc.runtime import Artifact

SCRIPTS = ("dom.js", "texts.js", "stages.js", "graph.js", "facts.js", "arena.js", "kernels.js", "main.js")
"""In the order in which they run."""


def report_page(artifact: Artifact, c: Compilation, on: OnDevice, dims: Iterable[Mapping[str, int]] = ()) -> str:
    """The page of a compilation; what is taken and raised is as for `document_of`."""
    return render(document_of(artifact, c, on, dims))


def render(document: Document) -> str:
    """The page of a document."""
    parts = {
        "TITLE": html.escape(f"{document.overview.name}: shlo_disc report"),
        "STYLE": _asset("page.css"),
        "DOCUMENT": script_json(asdict(document)),
        "SCRIPT": "\n".join(_asset(name) for name in SCRIPTS),
    }
    pieces = _asset("page.html").split("%%")  # texts and the names of parts by turns
    return "".join(parts[piece] if number % 2 else piece for number, piece in enumerate(pieces))


def script_json(value: object) -> str:
    """JSON that may stand in a `<script>` of a page: nothing in it ends the script or begins a comment."""
    text = json.dumps(value, separators=(",", ":"))  # ASCII only
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")


__all__ = ["SCRIPTS", "document_of", "render", "report_page", "script_json"]
