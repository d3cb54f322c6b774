# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line: `python -m shlo_disc COMMAND`, or `shlo_disc COMMAND`; docs/cli.md shows each one.

    opt FILE [--stage NAME]             print a stage's MLIR, or the LLVM IR or assembly
    opt FILE --pass-pipeline=PASSES     print the program after stages, passes and MLIR's passes
    compile FILE -o OUT                 write an artifact, which loads without the compiler
    export FILE --triton FOLDER         write a model for Triton Inference Server
    info FILE                           signature, symbols, constraints, kernels, memory, timings
    run FILE --dims b=2,s=16            call the program once on synthetic or given arrays
    inspect FILE                        everything known: guards, functions, sections, required processor
    disasm FILE [--kernel NAME]         machine code or PTX, kernel by kernel, beside its IR and your source lines
    diff A B, diff FILE --stages X Y    the differences between programs, stages or artifacts
    bench FILE... --dims b=2,s=16       time calls; with several files, calls alternate between them
    explain FILE --dims b=2,s=16        the kernels of a call, each with its time and the machine's limit
    report FILE [--dims b=2,s=16]       one HTML page about a whole compile; see docs/report.md
    watch [--page P] SCRIPT ...         run a script, and report how many programs each function has
    tune FILE --dims b=2,s=16 -o OUT    measure the forms of each kernel, and choose, for `--schedule OUT`
    bisect FILE [--dims b=2,s=16]       find the compiler's decision that makes the results wrong
    reduce FILE [--dims b=2,s=16]       shrink a failing program to a small one that fails alike
    replay FOLDER                       compile, run and compare the programs of SHLO_DISC_RECORD
    check FILE...                       run self-checking modules; see `shlo_disc.tools.check`
    doctor                              what works on this machine, and how to fix the rest
    why [CODE]                          explain the code of an error, such as DISC-S101
    ops                                 the table of ops: which are supported, for which element types
    dialect                             the page of the disc dialect
    completion bash|zsh|fish            a script for completion in your shell

`RULES` describes what they have in common.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

from shlo_disc.errors import DiscError, OptionError, ShapeError, check_folder
from shlo_disc.runtime.installed import DEPENDENCIES
from shlo_disc.tools.commands.bench import add_bench
from shlo_disc.tools.commands.bisect import add_bisect
from shlo_disc.tools.commands.check import add_check
from shlo_disc.tools.commands.common import error_code, error_document, error_text, put, say
from shlo_disc.tools.commands.compile import add_compile
from shlo_disc.tools.commands.completion import add_completion
from shlo_disc.tools.commands.diff import add_diff
from shlo_disc.tools.commands.disasm import add_disasm
from shlo_disc.tools.commands.doctor import add_doctor, version
from shlo_disc.tools.commands.explain import add_explain
from shlo_disc.tools.commands.export import add_export
from shlo_disc.tools.commands.info import add_info
from shlo_disc.tools.commands.inspect import add_inspect
from shlo_disc.tools.commands.opt import add_opt
from shlo_disc.tools.commands.pages import add_dialect, add_ops
from shlo_disc.tools.commands.reduce import add_reduce
from shlo_disc.tools.commands.replay import add_replay
from shlo_disc.tools.commands.report import add_report
from shlo_disc.tools.commands.run import add_run
from shlo_disc.tools.commands.tune import add_tune
from shlo_disc.tools.commands.watch import add_watch
from shlo_disc.tools.commands.why import add_why

RULES = """\
FILE is StableHLO as text, bytecode or a portable artifact, or the output of `jax.export.Exported.serialize`; -
reads standard input. export, info, inspect, run, bench, disasm and diff also read the output of `compile`. Results
go to standard output, errors to standard error. With --json, standard output has one JSON document: the result, or
{"error": {"kind": ..., "code": ..., "message": ...}}. Exit status: 0 on success; 1 for an error in the program, a
file or the machine, or if bisect, check, diff or doctor find something; 2 for a wrong command line, such as an
option or a size that does not exist, and for all errors of diff.
"""

_OF_FILES = ("DISC-O108", "DISC-O109")
"""Codes of OptionErrors for which a program or a file is at fault."""

_WRITTEN = ("output", "outputs", "page", "trace")
"""Options that name a file to write. Its folder is looked for before a command starts, which may take minutes."""

COMPILER = ("jax", "jaxlib", "llvmlite", "torch_mlir")
"""Packages that compiling programs needs and loading artifacts does not."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status. Raises SystemExit(2) on a wrong command line, as argparse does."""
    options = _parse(parser(), arguments)
    try:
        for name in _WRITTEN:
            if path := getattr(options, name, None):
                check_folder(path)
        status = options.command(options) or 0
    except (DiscError, OSError) as error:
        return _fail(error, options)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in COMPILER:
            raise
        advice = f"this needs the compiler, and {missing} is not installed: pip install {DEPENDENCIES}"
        if getattr(options, "file", None):
            advice += f"\nIf {options.file} is a compiled artifact, it is damaged: artifacts begin with SHLODISC"
        return _fail(DiscError(advice), options)
    return int(status)


def _parse(whole: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line. Raises SystemExit(2) for an option that does not exist, with the nearest one that does."""
    options, unknown = whole.parse_known_args(arguments)
    if unknown:
        given = next((part.partition("=")[0] for part in unknown if part.startswith("-")), "")
        near = difflib.get_close_matches(given, _option_names(whole, arguments or sys.argv[1:]), 1)
        advice = f"; did you mean {near[0]}?" if near else ""
        whole.error(f"unrecognized arguments: {' '.join(unknown)}{advice}")
    return options


def _option_names(whole: argparse.ArgumentParser, arguments: Sequence[str]) -> list[str]:
    """The options of the command that a command line names."""
    parsers = [whole]
    for argument in arguments:
        commands = [action.choices for action in parsers[-1]._actions if isinstance(action.choices, dict)]
        parsers += [choices[argument] for choices in commands if argument in choices]
    return [name for one in parsers for action in one._actions for name in action.option_strings]


def _fail(error: Exception, options: argparse.Namespace) -> int:
    """Tell of an error; the exit status."""
    code = error_code(error)
    say(f"shlo_disc: error{f'[{code}]' if code else ''}: {error_text(error)}")
    if getattr(options, "json", False):
        put(json.dumps(error_document(error), indent=2))
    return int(getattr(options, "error_status", 2 if _is_of_command_line(error, options) else 1))


def _is_of_command_line(error: Exception, options: argparse.Namespace) -> bool:
    """Tells whether the command line is at fault, and not a program, a file or the machine."""
    if isinstance(error, OptionError):
        return error.code not in _OF_FILES
    return isinstance(error, ShapeError) and not getattr(options, "inputs", None)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors name the nearest of the choices that there are."""

    def error(self, message: str) -> NoReturn:
        """Raises SystemExit(2)."""
        if found := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
            choices = [choice.strip("' ") for choice in found[2].split(",")]
            if near := difflib.get_close_matches(found[1], choices, 1):
                message = f"{message}; did you mean {near[0]}?"
        super().error(message)


def parser() -> argparse.ArgumentParser:
    """The parser of the command line. The function that runs a command is in `command` of what it parses."""
    whole = _Parser(
        prog="shlo_disc",
        description="Compile StableHLO once, for every shape.",
        epilog=RULES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument("--version", action="version", version=f"shlo_disc {version()}")
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add_opt(commands)
    add_compile(commands)
    add_export(commands)
    add_info(commands)
    add_run(commands)
    add_inspect(commands)
    add_disasm(commands)
    add_diff(commands)
    add_bench(commands)
    add_explain(commands)
    add_report(commands)
    add_watch(commands)
    add_tune(commands)
    add_check(commands)
    add_bisect(commands)
    add_reduce(commands)
    add_replay(commands)
    add_doctor(commands)
    add_why(commands)
    add_ops(commands)
    add_dialect(commands)
    add_completion(commands, whole)
    return whole


__all__ = ["main", "parser"]
