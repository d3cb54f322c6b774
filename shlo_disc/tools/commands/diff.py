# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc diff A B`, or `diff FILE --stages X Y`: the differences, in the format of `diff -u`.

    diff before.mlir after.mlir --stage fuse
    diff model.jax --stages fuse plan
    diff before.disc after.disc
    diff before.disc after.disc --stage asm

Two programs are compared at a stage (simplify by default) or a view such as llvm or asm, one program at two stages.
Two artifacts are compared by header, sections and functions, or with --stage asm or ptx. If only one is an artifact,
the other one is compiled. Differences in the numbering of values are ignored. Exit status: 0 for no differences, 1 for
differences, 2 for errors.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from shlo_disc.errors import OptionError
from shlo_disc.lowering.progress import is_terminal
from shlo_disc.report.listing import artifact_listing
from shlo_disc.report.text_diff import ASSEMBLY, LLVM, MLIR, PLAIN, PTX, Hunk, Syntax, differences
from shlo_disc.runtime import Artifact
from shlo_disc.tools.commands.common import (
    add_command,
    add_compile_options,
    add_json,
    at_level,
    built,
    check_files,
    opened,
    options_of,
    show,
)
from shlo_disc.tools.commands.facts import code_facts

_SYNTAX = {"llvm": LLVM, "optimized-llvm": LLVM, "host-llvm": LLVM, "ptx": PTX, "asm": ASSEMBLY}
"""Syntax of each view; stages are MLIR."""

_RED, _GREEN, _CYAN, _BOLD, _PLAIN = "\033[31m", "\033[32m", "\033[36m", "\033[1m", "\033[0m"
_COLOURS = {"-": _RED, "+": _GREEN, "@": _CYAN}


class _Side(NamedTuple):
    """One side of a comparison: its name, its text, and what names in it look like."""

    name: str
    text: str
    syntax: Syntax


def add_diff(commands: Any) -> None:
    """Add the command."""
    command = add_command(commands, "diff", _diff, "compare programs, stages or artifacts", __doc__)
    command.set_defaults(error_status=2)
    command.add_argument("files", metavar="FILE", nargs="+", help="a program (- for standard input) or an artifact")
    command.add_argument("--stage", metavar="NAME", help="compare two files at this stage (simplify by default)")
    command.add_argument("--stages", metavar=("A", "B"), nargs=2, help="compare one program at two stages")
    command.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="auto: on a terminal")
    add_json(command)
    add_compile_options(command)


def _diff(arguments: argparse.Namespace) -> int:
    """1 where something differs."""
    before, after = _sides(arguments)
    hunks = differences(before.text, after.text, before.syntax)
    names = {"from": before.name, "to": after.name}
    document = {**names, "same": not hunks, "hunks": [hunk.to_json() for hunk in hunks]}
    lines = list(_lines(before.name, after.name, hunks))
    if arguments.json or lines:
        show(arguments, document, _coloured(lines) if _wants_colour(arguments.color) else lines)
    return int(bool(hunks))


def _sides(arguments: argparse.Namespace) -> tuple[_Side, _Side]:
    """The two sides of a comparison. Raises OptionError."""
    files, stages = arguments.files, arguments.stages
    if len(files) != (1 if stages else 2) or (stages and arguments.stage):
        raise OptionError("compare two files, at --stage NAME, or one file at --stages A B")
    check_files(files)
    if stages:
        found = opened(files[0])
        if isinstance(found, Artifact):
            raise OptionError(f"{files[0]} is an artifact, which has no stages; compare the program that was compiled")
        return _at(files[0], found, stages[0], arguments), _at(files[0], found, stages[1], arguments)
    one, other = map(opened, files)
    if isinstance(one, Artifact) or isinstance(other, Artifact):
        return _artifact(files[0], one, arguments), _artifact(files[1], other, arguments)
    stage = arguments.stage or "simplify"
    return _at(files[0], one, stage, arguments), _at(files[1], other, stage, arguments)


def _at(file: str, program: Path | bytes, stage: str, arguments: argparse.Namespace) -> _Side:
    """The program at a stage or view. Raises OptionError on others."""
    from shlo_disc.driver.compiler import STAGES, import_stage, run_pipeline
    from shlo_disc.driver.stage_text import stage_text

    compilation = import_stage(program, arguments.target, options_of(arguments), resume=True)
    known = [*STAGES, *compilation.backend.views]
    if stage not in known:
        raise OptionError(f"no stage {stage!r}; stages are {', '.join(known)}")
    run_pipeline(compilation, stage if stage in STAGES else STAGES[-1])
    return _Side(f"{file} ({stage})", stage_text(compilation, stage), _SYNTAX.get(stage, MLIR))


def _artifact(file: str, found: Artifact | Path | bytes, arguments: argparse.Namespace) -> _Side:
    """An artifact, or a program compiled to one. Raises OptionError for a stage that is not its code."""
    artifact = at_level(found, arguments) if isinstance(found, Artifact) else built(found, arguments).artifact
    stage = arguments.stage
    if stage:
        return _Side(f"{file} ({stage})", str(artifact_listing(artifact, [stage])), _SYNTAX.get(stage, PLAIN))
    facts = code_facts(artifact, False)
    sections = {row["name"]: f"{row['bytes']} bytes, SHA-256 {row['sha256']}" for row in facts["sections"]}
    functions = {row["name"]: f"{row['bytes']} bytes" for row in facts["functions"]}
    document = {"header": artifact.header, "sections": sections, "functions": functions}
    return _Side(file, json.dumps(document, indent=2, sort_keys=True), PLAIN)


# ---- output -------------------------------------------------------------------------------------------------------


def _lines(before: str, after: str, hunks: Sequence[Hunk]) -> Iterator[str]:
    if hunks:
        yield from (f"--- {before}", f"+++ {after}")
    for hunk in hunks:
        yield from str(hunk).splitlines()


def _wants_colour(choice: str) -> bool:
    """By the option, or on a terminal that nobody has asked to have no colours."""
    return choice == "always" or (choice == "auto" and is_terminal(sys.stdout) and not os.environ.get("NO_COLOR"))


def _coloured(lines: Sequence[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        colour = _BOLD if number < 2 else _COLOURS.get(line[:1], "")
        yield f"{colour}{line}{_PLAIN}" if colour else line
