# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc opt`: print a program after any stage, or any pipeline of passes.

    opt FILE --stage plan
    opt FILE --pass-pipeline='annotate,simplify,fuse{max-fusions=3}'
    opt FILE --pass-pipeline='annotate,expand-ops,func.func(canonicalize)' --print-after=all --timing
    opt --list-passes

FILE is a program, or the output of a stage, from which it continues; `-` is standard input.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shlo_disc.errors import OptionError
from shlo_disc.options import Options
from shlo_disc.tools.commands.common import add_command, add_compile_options, add_json, options_of, program_of, put, say

if TYPE_CHECKING:
    from shlo_disc.driver.compilation import Compilation


def add_opt(commands: Any) -> None:
    """Add the command."""
    help = "print a program after a stage or a pipeline of passes"
    command = add_command(commands, "opt", lambda options: _Opt(options, options_of(options)).run(), help, __doc__)
    command.add_argument("file", metavar="FILE", nargs="?", help="a program, or - for standard input")
    command.add_argument("--stage", help="a stage (simplify by default), llvm, optimized-llvm, asm, or all")
    command.add_argument("--pass-pipeline", metavar="PASSES", help="stages, passes, and passes of MLIR")
    command.add_argument("--list-passes", action="store_true", help="print the passes, their stages and options")
    command.add_argument("--print-after", metavar="PASSES", help="print the module after these, or all, to stderr")
    command.add_argument("--timing", action="store_true", help="print the time of each pass to stderr")
    command.add_argument("-o", "--output", metavar="FILE", help="the file to write, instead of standard output")
    command.add_argument("--dump", metavar="DIR", help="with --stage all: write one file per stage into this directory")
    add_json(command)
    add_compile_options(command)
    command.set_defaults(parser=command)


class _Opt:
    """One run of the command."""

    def __init__(self, arguments: argparse.Namespace, options: Options):
        self.arguments = arguments
        self.options = options

    def run(self) -> None:
        """Print what is asked for. Raises OptionError, and what the compiler raises."""
        if self.arguments.list_passes:
            self._list_passes()
            return
        if self.arguments.json:
            raise OptionError("--json goes with --list-passes; a stage is printed as text")
        if self.arguments.file is None:
            self.arguments.parser.error("the following arguments are required: FILE")
        if self.arguments.pass_pipeline is not None:
            self._run_pipeline()
        else:
            self._run_stage(self.arguments.stage or "simplify")

    def _list_passes(self) -> None:
        from shlo_disc.driver.passes import passes_rows, passes_table

        self._write(json.dumps({"passes": passes_rows()}, indent=2) + "\n" if self.arguments.json else passes_table())

    def _run_pipeline(self) -> None:
        from shlo_disc.driver.compiler import run_text_pipeline

        if self.arguments.stage:
            raise OptionError("--stage and --pass-pipeline are two ways to say the same; use one")
        compilation = self._started()
        run_text_pipeline(compilation, self.arguments.pass_pipeline, self._printer())
        self._write(str(compilation.current))
        self._print_timings(compilation)

    def _run_stage(self, stage: str) -> None:
        from shlo_disc.driver.compiler import STAGES, run_pipeline
        from shlo_disc.driver.stage_text import stage_text

        compilation = self._started()
        known = [*STAGES, *compilation.backend.views, "all"]
        if stage not in known:
            raise OptionError(f"no stage {stage!r}; stages are {', '.join(known)}")
        if stage == "all":
            self._dump()
            return
        run_pipeline(compilation, stage if stage in STAGES else STAGES[-1], self._printer())
        self._write(stage_text(compilation, stage))
        self._print_timings(compilation)

    def _dump(self) -> None:
        from shlo_disc.api.compile import compile as build

        if not self.arguments.dump:
            raise OptionError("--stage all needs --dump DIR")
        program = program_of(self.arguments.file)
        files = build(program, target=self.arguments.target, options=self.options).dump(self.arguments.dump)
        self._write("".join(f"{path}\n" for path in files))

    def _started(self) -> Compilation:
        from shlo_disc.driver.compiler import import_stage

        return import_stage(program_of(self.arguments.file), self.arguments.target, self.options, resume=True)

    # ---- output -----------------------------------------------------------------------------------------------------

    def _printer(self) -> Callable[[str, Compilation], None] | None:
        """The function that prints the module after the passes that were asked for."""
        if self.arguments.print_after is None:
            return None
        names = self.arguments.print_after.split(",")

        def print_after(name: str, c: Compilation) -> None:
            if name in names or names == ["all"]:
                say(f"// ----- after {name}\n{c.current}")

        return print_after

    def _print_timings(self, c: Compilation) -> None:
        if self.arguments.timing:
            rows = [f"{seconds * 1e3:9.2f} ms  {name}\n" for name, seconds in c.pass_timings.items()]
            say("".join([*rows, f"{sum(c.pass_timings.values()) * 1e3:9.2f} ms  all passes"]))

    def _write(self, text: str) -> None:
        if self.arguments.output:
            Path(self.arguments.output).write_text(text)
        else:
            put(text, end="")
