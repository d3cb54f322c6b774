# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One program with many schedules: it is planned once, and the code cache keeps the kernels that stay as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shlo_disc.api.compile import compile as build
from shlo_disc.driver.artifact_header import artifact_of
from shlo_disc.driver.compilation import Compilation, made
from shlo_disc.driver.compiler import import_stage, run_pipeline
from shlo_disc.driver.executable import Executable
from shlo_disc.errors import OptionError
from shlo_disc.lowering.launches import launches_in
from shlo_disc.options import CPU, Options, Schedule
from shlo_disc.runtime import Artifact
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.utils.content import content_of
from shlo_disc.tools.tune.space import TunedKernel, tuned_kernels


class PlannedProgram:
    """A program for processors, up to its plan. `header` is that of its artifacts, `kernels` those to tune.

    Raises OptionError for what is no program for processors, and what `compile` raises.
    """

    def __init__(self, program: Any, options: Options, **compile_arguments: Any):
        executable = build(program, options=options, **compile_arguments)
        if not isinstance(executable, Executable) or executable.target != CPU:
            raise OptionError("tune takes a program that `shlo_disc.compile` makes an Executable for processors of")
        self._planned = run_pipeline(import_stage(executable.program, CPU, options), "plan")
        self.header = executable.artifact.header
        default = self._compiled(Schedule())
        self.kernels: list[TunedKernel] = tuned_kernels(launches_in(default.snapshots["host"]), self._contents())

    def artifact(self, schedule: Schedule) -> Artifact:
        """The program with a schedule."""
        return artifact_of(self._compiled(schedule))

    def _compiled(self, schedule: Schedule) -> Compilation:
        planned = self._planned
        options = replace(planned.options, schedule=schedule)
        return run_pipeline(replace(planned, options=options, snapshots={}, llvm_ir={}, sections={}, header={}))

    def _contents(self) -> dict[str, str]:
        """The content of each fusion, by its name."""
        module = made(self._planned.module)
        functions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
        names = [name for name, function in functions.items() if "disc.fusion" in function.attributes]
        with self._planned.context, ir.Location.unknown():
            return {name: content_of(functions[name], functions) for name in names}


__all__ = ["PlannedProgram"]
