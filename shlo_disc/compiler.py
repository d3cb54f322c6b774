# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pipeline on one page: named stages, each taking the module one step down.

The name of a stage is also its dump file, its argument to `as_text` and the command line, and its row in the timings.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from shlo_disc import codegen
from shlo_disc.errors import CompilerError, ProgramError
from shlo_disc.lowering_cpu import LoweredProgram, lower
from shlo_disc.lowering_cpu.host import Check
from shlo_disc.lowering_cpu.kernel import CpuOptions
from shlo_disc.mlir import ir
from shlo_disc.options import Options
from shlo_disc.shape_dialect.annotate import Constraint, annotate, entry_block, read_facts
from shlo_disc.shape_dialect.dialect import make_context
from shlo_disc.shape_dialect.expr import Expr
from shlo_disc.shape_dialect.facts import Facts, Relation
from shlo_disc.shape_dialect.types import Dims
from shlo_disc.transforms.fusion import fuse
from shlo_disc.transforms.memory import plan_memory
from shlo_disc.transforms.simplify import simplify

STAGES = ("import", "annotate", "simplify", "fuse", "plan", "lower", "codegen")


@dataclass
class Compilation:
    """One program on its way down. `texts` holds a copy of the module after each stage that ran."""

    options: Options
    target: str
    context: ir.Context
    signature: Any = None
    module: ir.Module | None = None
    facts: Facts = field(default_factory=Facts)
    shapes: Sequence[Dims | None] = ()
    constraints: list[Constraint] = field(default_factory=list)
    lowered: LoweredProgram | None = None
    cpu: codegen.CpuTarget = field(default_factory=codegen.CpuTarget.host)
    llvm_ir: str = ""
    object: bytes = b""
    snapshots: dict[str, ir.Operation] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)

    def run_stage(self, name: str, work: Callable[[Compilation], None]) -> None:
        """Run one stage: time it, verify what it made, keep a copy."""
        start = time.perf_counter()
        work(self)
        self.timings[name] = time.perf_counter() - start
        module = self.lowered.module if self.lowered is not None else self.module
        if module is None:
            raise CompilerError(f"the stage {name} left no module")
        if self.options.verify:
            _verify(module, name)
        self.snapshots[name] = module.operation.clone(ip=False)


def _verify(module: ir.Module, stage: str) -> None:
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        kind = ProgramError if stage == "import" else CompilerError
        raise kind(f"the program does not verify after {stage}: {error}") from None


def _annotate(c: Compilation) -> None:
    c.facts = annotate(c.module, c.facts, c.shapes)
    c.signature = c.signature.with_shapes(entry_block(c.module))
    c.constraints = read_facts(c.module)[1]
    for name, value in c.options.hints.items():
        if name not in c.facts.symbols:
            raise ProgramError(f"the hint for {name!r} names no symbol; the symbols are {sorted(c.facts.symbols)}")
        declaration = c.facts.symbols[name]
        c.facts.declare(name, min=declaration.min, max=declaration.max, divisor=declaration.divisor, hints=(value,))


def _lower(c: Compilation) -> None:
    solved = {s.name for s in c.signature.symbols}
    unsolved = sorted({n for a in c.signature.arguments for d in a.dims for n in d.symbols()} - solved)
    if unsolved:
        raise ProgramError(f"no argument size determines the symbols {unsolved}; pass one of size a*symbol + b")
    c.lowered = lower(
        c.module,
        c.facts,
        arguments=[a.dims for a in c.signature.arguments],
        results=[r.dims for r in c.signature.results],
        kept=c.signature.kept,
        symbols=[s.name for s in c.signature.symbols],
        checks=checks_of(c),
        options=CpuOptions(vector_bits=c.cpu.vector_bits),
    )


def _codegen(c: Compilation) -> None:
    codegen.lower_to_llvm(c.lowered.module)
    c.llvm_ir = codegen.to_llvm_ir(c.lowered.module)
    exported = {"disc_plan", "disc_run"}
    c.object = codegen.compile_to_object(c.llvm_ir, c.cpu, c.options.opt_level, exported)


PIPELINE: tuple[tuple[str, Callable[[Compilation], None]], ...] = (
    ("annotate", _annotate),
    ("simplify", lambda c: simplify(c.module, c.facts)),
    ("fuse", lambda c: fuse(c.module)),
    ("plan", lambda c: plan_memory(c.module, c.facts) and None),
    ("lower", _lower),
    ("codegen", _codegen),
)


def import_stage(
    program: Any, target: str, options: Options, args: Any, kwargs: Any, constraints: Sequence[str]
) -> Compilation:
    """The first stage: any program becomes a normalised module."""
    c = Compilation(options, target, make_context())

    def work(c: Compilation) -> None:
        importer = importlib.import_module("shlo_disc.import")
        imported = importer.import_program(program, c.context, args=args, kwargs=kwargs, constraints=constraints)
        c.module, c.signature = imported.module, imported.signature
        c.facts, c.shapes = imported.facts, imported.shapes

    c.run_stage("import", work)
    return c


def run_pipeline(c: Compilation, last: str = STAGES[-1]) -> Compilation:
    """Run the stages after `import`, up to and including `last`."""
    with c.context, ir.Location.unknown():
        for name, work in PIPELINE:
            if STAGES.index(name) > STAGES.index(last):
                break
            c.run_stage(name, work)
    return c


_ADVICE = "Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details."


def checks_of(c: Compilation) -> list[Check]:
    """The conditions on a call's sizes, in the order in which they are checked, with jax.export's wording."""
    checks = []
    for source in c.signature.symbols:
        symbol = Expr.symbol(source.name)
        low = c.facts.symbols[source.name].min
        constrained = any(k.relation == Relation.ge(symbol, low) for k in c.constraints)
        if low is not None and not constrained:
            message = _message(c, f"Expected value >= {low} for dimension variable '{source.name}'.")
            checks.append(Check("min", Relation.ge(symbol, low), message, _symbols(c)))
    for constraint in c.constraints:
        if constraint.message:
            checks.append(Check("constraint", constraint.relation, constraint.message, constraint.operands))
        else:
            text = f"Expected {constraint.relation}, which {constraint.origin} requires."
            checks.append(Check("equal", constraint.relation, _message(c, text), _symbols(c)))
    return checks


def _symbols(c: Compilation) -> Dims:
    return tuple(Expr.symbol(s.name) for s in c.signature.symbols)


def _message(c: Compilation, finding: str) -> str:
    """A message template in jax.export's form; `{i}` stands for the value of symbol i."""
    specifications = ",".join(
        f"{a.path}.shape = ({', '.join(map(str, a.dims))}{',' if len(a.dims) == 1 else ''})"
        for a in c.signature.arguments
        if any(d.constant is None for d in a.dims)
    )
    obtained = ", ".join(
        f"'{s.name}' = {{{i}}} from specification '{c.signature.arguments[s.argument].dims[s.dim]}' "
        f"for dimension {c.signature.arguments[s.argument].path}.shape[{s.dim}]"
        for i, s in enumerate(c.signature.symbols)
    )
    return (
        f"Input shapes do not match the polymorphic shapes specification. {finding} "
        f"Using the following polymorphic shapes specifications: {specifications}. "
        f"Obtained dimension variables: {obtained}. {_ADVICE}"
    )


def artifact_header(c: Compilation) -> dict[str, Any]:
    """The artifact's header: what the runtime needs to check and run calls, the pytrees aside."""
    lowered = c.lowered
    if lowered is None:
        raise CompilerError("the program has not been lowered")
    checks = [
        {"kind": k.kind, "message": k.message, "operands": [lowered.words.place(o) for o in k.operands]}
        for k in lowered.checks
    ]
    overflow = "A size that this call needs does not fit in 64 bits, or divides by zero."
    checks.append({"kind": "overflow", "message": _message(c, overflow), "operands":
                   [lowered.words.place(s) for s in _symbols(c)]})  # fmt: skip
    offset = 0
    constants = []
    for data in lowered.constants:
        constants.append({"offset": offset, "bytes": len(data)})
        offset += -(-len(data) // 64) * 64
    return {
        "format": 1,
        "name": c.signature.name,
        "target": {"triple": c.cpu.triple, "features": list(c.cpu.features)},
        "symbols": [_symbol_row(c, s) for s in c.signature.symbols],
        "arguments": [_tensor_row(a) for a in c.signature.arguments],
        "results": [_tensor_row(r) for r in c.signature.results],
        "checks": checks,
        "plan_words": lowered.words.count,
        "constants": constants,
        "entry": {"plan": "disc_plan", "run": "disc_run"},
    }


def constants_block(lowered: LoweredProgram) -> bytes:
    """All constants, each at a multiple of 64 bytes."""
    return b"".join(data + bytes(-len(data) % 64) for data in lowered.constants)


def _symbol_row(c: Compilation, source: Any) -> dict[str, Any]:
    declaration = c.facts.symbols[source.name]
    solve = {"argument": source.argument, "dim": source.dim, "scale": source.scale, "offset": source.offset}
    return {"name": source.name, "min": declaration.min, "max": declaration.max, "solve": solve}


def _tensor_row(spec: Any) -> dict[str, Any]:
    shape = [str(d) if d.constant is None else d.constant for d in spec.dims]
    return {"path": spec.path, "dtype": spec.dtype, "shape": shape, "donated": spec.donated}


__all__ = ["PIPELINE", "STAGES", "Compilation", "artifact_header", "constants_block", "import_stage", "run_pipeline"]
