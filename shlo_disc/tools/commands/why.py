# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc why DISC-S101`: the page of an error's code; without a code, all of them in a table."""

from __future__ import annotations

import argparse
from typing import Any

from shlo_disc.errors import ALL_CODES, PLACES_OF_PAGES, OptionError, page_of
from shlo_disc.tools.commands.common import add_command, add_json, show


def add_why(commands: Any) -> None:
    """Add the command."""
    command = add_command(commands, "why", _why, "explain the code of an error, such as DISC-S101")
    command.add_argument("code", metavar="CODE", nargs="?", help="as in error[DISC-S101]; without it: all codes")
    add_json(command)


def _why(arguments: argparse.Namespace) -> None:
    text = index() if arguments.code is None else page(arguments.code)
    rows = [c for c in ALL_CODES if arguments.code is None or c.name == full_name(arguments.code)]
    codes = [{"code": c.name, "error": c.error, "title": c.title, "page": page(c.name)} for c in rows]
    show(arguments, {"codes": codes}, text.removesuffix("\n"))


def full_name(code: str) -> str:
    """A code, whose capitals and "DISC-" may be left out. Raises OptionError where there is none."""
    name = f"DISC-{code.upper().removeprefix('DISC-')}"
    if name not in {known.name for known in ALL_CODES}:
        raise OptionError(f"no error has the code {code!r}; `python -m shlo_disc why` prints all codes")
    return name


def page(code: str) -> str:
    """The page of a code, by `full_name`. Raises OptionError where there is none."""
    found = page_of(full_name(code))
    if found is None:
        places = ", ".join(map(str, PLACES_OF_PAGES))
        raise OptionError(f"the pages of errors are not installed: {places} are missing")
    return found


def index() -> str:
    """The table of all codes, in Markdown: docs/errors/index.md."""
    rows = [f"| [{c.name}]({c.name}.md) | `{c.error}` | {c.title} |" for c in ALL_CODES]
    return "\n".join(
        [
            "# Errors",
            "",
            "The text of an error ends with its code, such as `[DISC-P103]`; the command line puts it first:",
            "`shlo_disc: error[DISC-P103]: ...`. `python -m shlo_disc why DISC-P103` prints the page of the code. In",
            "Python, an error has `code`, `message` (its text without the code) and `remedy` (the end of the page).",
            "In C, `disc_error_code` is the code, `disc_error_kind` the class, and `disc_error_text` the message.",
            "",
            "| code | raised as | what it means |",
            "|--|--|--|",
            *rows,
            "",
            "```{toctree}",
            ":hidden:",
            "",
            *(c.name for c in ALL_CODES),
            "```",
            "",
        ]
    )


__all__ = ["add_why", "index", "page"]
