# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc info FILE`."""

from __future__ import annotations

import argparse
from typing import Any

from shlo_disc.runtime import Artifact
from shlo_disc.tools.commands.common import (
    add_command,
    add_isolate,
    add_program_or_artifact,
    at_level,
    built,
    opened,
    show,
)
from shlo_disc.tools.commands.facts import artifact_facts, info_lines, program_facts


def add_info(commands: Any) -> None:
    """Add the command."""
    command = add_command(commands, "info", _info, "summarise a program or an artifact")
    add_program_or_artifact(command)
    add_isolate(command)


def _info(arguments: argparse.Namespace) -> None:
    found = opened(arguments.file)
    if isinstance(found, Artifact):
        facts = artifact_facts(at_level(found, arguments))
    else:
        facts = program_facts(built(found, arguments))
    show(arguments, facts, info_lines(facts))
