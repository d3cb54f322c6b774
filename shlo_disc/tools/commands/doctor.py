# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc doctor`, and the package's version."""

from __future__ import annotations

import argparse
from typing import Any

from shlo_disc.tools.commands.common import add_command, add_json, put, show


def add_doctor(commands: Any) -> None:
    """Add the command."""
    add_json(add_command(commands, "doctor", _doctor, "what works on this machine, and how to fix the rest"))


def _doctor(arguments: argparse.Namespace) -> int:
    """1 where nothing works without what is broken."""
    from shlo_disc.tools.doctor import BROKEN, examine, report

    found = []
    for finding in examine():
        found.append(finding)
        if not arguments.json:
            put(str(finding))
    if arguments.json:
        show(arguments, report(iter(found)), "")
    return int(any(finding.state == BROKEN for finding in found))


def version() -> str:
    """The package's."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as version_of

    try:
        return version_of("shlo_disc")
    except PackageNotFoundError:
        return "unknown"
