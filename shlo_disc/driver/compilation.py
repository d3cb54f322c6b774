# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One program on its way down: its module, and what is known of it besides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from shlo_disc.driver.cache import open_code_cache, recorded_schedules
from shlo_disc.errors import CompilerError, OptionError
from shlo_disc.lowering import codegen
from shlo_disc.lowering.backend import Backend
from shlo_disc.lowering.host_llvm.program import LoweredProgram
from shlo_disc.lowering_cpu.backend import CpuBackend
from shlo_disc.options import KernelSchedule, Options, cuda_architecture
from shlo_disc.runtime import cpu_features
from shlo_disc.shape_dialect.dialect.declarations import Constraint, constraints_in, facts_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.transforms.decisions import Decisions

_Made = TypeVar("_Made")


@dataclass
class Compilation:
    """The state that passes work on. `snapshots` holds a copy of the module after each stage that ran.

    module: that of the last stage before `codegen`, whose own are in `code`. llvm_ir, sections: of each section of code
    that the artifact has, `object` for CPUs. header: the artifact's. stage: the last that has run; that whose module
    was printed, where that is the program. timings: seconds of each stage, `pass_timings` those of each pass, by
    "stage/pass".
    """

    options: Options
    target: str
    context: ir.Context
    signature: Any = None
    module: ir.Module | None = None
    facts: Facts = field(default_factory=Facts)
    constraints: list[Constraint] = field(default_factory=list)
    code: LoweredProgram | None = None
    cpu: codegen.CpuTarget = field(default_factory=codegen.CpuTarget.host)
    llvm_ir: dict[str, str] = field(default_factory=dict)
    sections: dict[str, bytes] = field(default_factory=dict)
    header: dict[str, Any] = field(default_factory=dict)
    snapshots: dict[str, ir.Operation] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)
    pass_timings: dict[str, float] = field(default_factory=dict)
    compile_count: int = 0
    stage: str = ""
    decisions: dict[str, Decisions] = field(init=False)

    def __post_init__(self) -> None:
        """The decisions that may be made, by their kind, are those that the options allow."""
        fusions, reuses = self.options.max_fusions, None if self.options.reuse else 0
        self.decisions = {"hoist": Decisions(fusions), "fusion": Decisions(fusions), "reuse": Decisions(reuses)}

    @property
    def backend(self) -> Backend:
        """The target."""
        architecture, chosen = cuda_architecture(self.target), self.options.opt_level
        if architecture is None:
            opt_level, store = 1 if chosen is None else chosen, open_code_cache(self.options)
            return CpuBackend(self.cpu, self.options.schedule, opt_level, store, self.recorded)
        from shlo_disc.lowering_gpu.backend import GpuBackend

        return GpuBackend(architecture, 3 if chosen is None else chosen, self.cpu, self.options.deterministic)

    @cached_property
    def recorded(self) -> dict[str, KernelSchedule]:
        """The schedules that were recorded on this machine, if the options ask for them."""
        return recorded_schedules(self.options)

    @property
    def current(self) -> ir.Module:
        """The module of the last stage, that which people look at where there are several."""
        return next(iter(self.code.modules.values())) if self.code is not None else made(self.module)

    def change_options(self, **changes: Any) -> None:
        """Use other options from now on. Raises OptionError."""
        self.options = replace(self.options, **changes)
        for kind in ("hoist", "fusion"):
            self.decisions[kind].limit = self.options.max_fusions
        self.decisions["reuse"].limit = None if self.options.reuse else 0

    def read_declarations(self) -> None:
        """Take up what an annotated module says of its sizes."""
        module = made(self.module)
        self.facts, self.constraints = facts_of(module), constraints_in(module)
        data = self.facts.data_symbols
        read = [k.relation for k in self.constraints if not k.relation.symbols().isdisjoint(data)]
        self.signature = replace(self.signature, where=tuple(map(str, read)))


def made(value: _Made | None) -> _Made:
    """The value that an earlier stage has made."""
    if value is None:
        raise CompilerError("a stage runs before one that it needs")
    return value


def cpu_named(cpu: str | Sequence[str]) -> codegen.CpuTarget:
    """The processor that `Options.cpu` names; of this process, without the tile registers that it may not use.

    Raises OptionError where it names several: `shlo_disc.compile` compiles for one after the other.
    """
    if not isinstance(cpu, str):
        raise OptionError(f"one processor at a time is looked at here, not {cpu!r}")
    named = codegen.CpuTarget.named(cpu)
    if cpu != "host":
        return named
    missing = [f for f in cpu_features.missing_features(named.features) if f.startswith("amx-")]
    return replace(named, features=tuple(f for f in named.features if f not in missing))
