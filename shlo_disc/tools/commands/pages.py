# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc ops` and `dialect`: pages of the documentation that are made from the code."""

from __future__ import annotations

import argparse
from typing import Any

from shlo_disc.tools.commands.common import add_command, add_json, put, show


def add_ops(commands: Any) -> None:
    """Add the command."""
    add_json(add_command(commands, "ops", _ops, "print the table of ops"))


def add_dialect(commands: Any) -> None:
    """Add the command."""
    command = add_command(commands, "dialect", _dialect, "print the page of the disc dialect")
    command.add_argument("--irdl", action="store_true", help="print the dialect as IRDL")


def _ops(arguments: argparse.Namespace) -> None:
    from shlo_disc.shape_dialect.ops.document import ops_document, ops_rows

    show(arguments, {"ops": ops_rows()} if arguments.json else {}, ops_document().removesuffix("\n"))


def _dialect(arguments: argparse.Namespace) -> None:
    from shlo_disc.shape_dialect.dialect.document import dialect_document, irdl_text

    put(irdl_text() if arguments.irdl else dialect_document(), end="")
