# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pipeline on one page: named stages, each taking the module one step down.

The name of a stage is also its dump file, its argument to `as_text` and the command line, and its row in the timings.
"""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from shlo_disc import codegen
from shlo_disc.errors import CompilerError, DiscError, ProgramError
from shlo_disc.lowering.kernel_module import kernel_module_of
from shlo_disc.lowering_cpu import CpuOptions, LoweredProgram, build_host, build_kernels, lower_host
from shlo_disc.lowering_cpu.host.segments import function_name
from shlo_disc.mlir import ir
from shlo_disc.options import Options
from shlo_disc.reader import Limits
from shlo_disc.runtime import Artifact, cpu_features
from shlo_disc.schedule import Schedule
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.dialect.declarations import Constraint, constraints_in, facts_of
from shlo_disc.shape_dialect.dialect.host import Check
from shlo_disc.shape_dialect.dialect.names import FLOPS, STAGE
from shlo_disc.shape_dialect.dialect.records import Malformed
from shlo_disc.shape_dialect.dialect.remembered import remembering
from shlo_disc.shape_dialect.dialect.signature import declared_signature, write_signature
from shlo_disc.shape_dialect.dialect.types import Dims, dim_attr, dim_of_attr
from shlo_disc.shape_dialect.dialect.verifier import verify_dialect
from shlo_disc.shape_dialect.inference.annotate import annotate
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Declaration, Facts, Relation
from shlo_disc.shape_dialect.utils.regions import entry_block, main_function
from shlo_disc.stages import STAGES
from shlo_disc.target import cuda_architecture, jax_platforms
from shlo_disc.transforms.control_flow.barriers import remove_barriers
from shlo_disc.transforms.decisions import Decisions, deciding
from shlo_disc.transforms.flops import flops_in
from shlo_disc.transforms.fusion import fuse
from shlo_disc.transforms.fusion.products import fuse_products
from shlo_disc.transforms.memory import plan_memory
from shlo_disc.transforms.simplify import simplify
from shlo_disc.verify import verify_buffers, verify_fusions

_Made = TypeVar("_Made")


@dataclass
class Compilation:
    """One program on its way down. `snapshots` holds a copy of the module after each stage that ran.

    module: that of the last stage before `codegen`, whose own is `code`. lowered: what a CPU's artifact is made of.

    stage: the last one that has run; that whose module was printed, where that is the program.
    """

    options: Options
    target: str
    context: ir.Context
    signature: Any = None
    module: ir.Module | None = None
    facts: Facts = field(default_factory=Facts)
    constraints: list[Constraint] = field(default_factory=list)
    lowered: LoweredProgram | None = None
    code: ir.Module | None = None
    cpu: codegen.CpuTarget = field(default_factory=codegen.CpuTarget.host)
    llvm_ir: str = ""
    ptx: str = ""
    object: bytes = b""
    snapshots: dict[str, ir.Operation] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)
    compile_count: int = 0
    stage: str = ""
    decisions: dict[str, Decisions] = field(init=False)

    def __post_init__(self) -> None:
        """The decisions that may be made, by their kind, are those that the options allow."""
        fusions, reuses = self.options.max_fusions, None if self.options.reuse else 0
        self.decisions = {"hoist": Decisions(fusions), "fusion": Decisions(fusions), "reuse": Decisions(reuses)}

    @property
    def exported(self) -> set[str]:
        """The functions of the object code that the runtime calls."""
        numbers = range(len(_made(self.lowered).segments))
        return {function_name(stem, number) for stem in ("disc_plan", "disc_run") for number in numbers}

    @property
    def opt_level(self) -> int:
        """LLVM's optimisation level for the target."""
        chosen = self.options.opt_level
        return chosen if chosen is not None else 1 if cuda_architecture(self.target) is None else 3

    def run_stage(self, name: str, work: Callable[[Compilation], None]) -> None:
        """Run one stage: time it, verify what it made, keep a copy."""
        start = time.perf_counter()
        self.stage = name
        try:
            work(self)
        except ir.MLIRError as error:
            found = [d.message.strip() for d in error.error_diagnostics]
            raise CompilerError(f"the stage {name} failed: {'; '.join(found) or error}") from error
        except RecursionError as error:
            raise CompilerError(f"the stage {name} failed: the program's chains are too long for it") from error
        except (DiscError, OSError, MemoryError):
            raise
        except Exception as error:
            raise CompilerError(f"the stage {name} failed: {type(error).__name__}: {error}") from error
        self.timings[name] = time.perf_counter() - start
        module = self.code or self.module
        if module is None:
            raise CompilerError(f"the stage {name} left no module")
        if self.code is None:
            module.operation.attributes[STAGE] = ir.StringAttr.get(self.stage, self.context)
        if self.options.verify and self.code is None:
            _verify(module, name)
        self.snapshots[self.stage] = module.operation.clone(ip=False)


def _verify(module: ir.Module, stage: str) -> None:
    """Verify what a stage has changed; what the last one makes is verified on the way."""
    try:
        for op in _changed(module, stage):
            op.verify()
        verify_dialect(module, stage == STAGES[0], STAGES.index(stage) <= STAGES.index("fuse"))
    except (ir.MLIRError, Malformed) as error:
        kind = ProgramError if stage == "import" else CompilerError
        raise kind(f"the program does not verify after {stage}: {error}") from None


def _changed(module: ir.Module, stage: str) -> list[ir.Operation]:
    """The parts of a module that a stage has changed, or made."""
    if STAGES.index(stage) <= STAGES.index("fuse"):
        return [module.operation]
    if stage == "host":
        return [op.operation for op in module.body.operations if op.operation != kernel_module_of(module)]
    entry = main_function(module).operation
    return [entry, kernel_module_of(module)] if stage == "kernels" else [entry]


def _made(value: _Made | None) -> _Made:
    """What an earlier stage has made."""
    if value is None:
        raise CompilerError("a stage runs before one that it needs")
    return value


def _annotate(c: Compilation) -> None:
    module = _made(c.module)
    annotate(module, c.options.hints)
    c.signature = c.signature.with_shapes(entry_block(module))
    write_signature(module, c.signature)
    _read_declarations(c)


def _read_declarations(c: Compilation) -> None:
    """Take up what an annotated module says of its sizes."""
    module = _made(c.module)
    c.facts, c.constraints = facts_of(module), constraints_in(module)
    read = [r for r in (k.relation for k in c.constraints) if not r.symbols().isdisjoint(c.facts.data_symbols)]
    c.signature = replace(c.signature, where=tuple(map(str, read)))


def _simplify(c: Compilation) -> None:
    simplify(_made(c.module), c.facts, c.decisions["hoist"])


def _fuse(c: Compilation) -> None:
    module = _made(c.module)
    flops = c.facts.simplify(flops_in(module, entry_block(module)))
    module.operation.attributes[FLOPS] = dim_attr(flops)
    fuse(module, c.decisions["fusion"])
    if cuda_architecture(c.target) is None:
        fuse_products(module, c.decisions["fusion"])
    remove_barriers(entry_block(module))
    if c.options.verify:
        verify_fusions(module)


def _plan(c: Compilation) -> None:
    plan_memory(_made(c.module), c.facts, c.decisions["reuse"])
    if c.options.verify:
        verify_buffers(_made(c.module), c.facts, entry_block(_made(c.module)))


def _require_solved(c: Compilation) -> None:
    solved = {s.name for s in c.signature.symbols}
    unsolved = sorted({n for a in c.signature.arguments for d in a.dims for n in d.symbols()} - solved)
    if unsolved:
        raise ProgramError(f"no argument size determines the symbols {unsolved}; pass one of size a*symbol + b")


def _kernels(c: Compilation) -> None:
    _require_solved(c)
    c.module = build_kernels(_made(c.module), c.facts, cpu_options(c.cpu, c.options.schedule))


def _host(c: Compilation) -> None:
    c.module = build_host(_made(c.module), c.facts, c.signature, checks_of(c), cpu_options(c.cpu))


def cpu_named(name: str) -> codegen.CpuTarget:
    """The processor that `Options.cpu` names, without the tile registers that this process may not use."""
    cpu = codegen.CpuTarget.named(name)
    missing = [f for f in cpu_features.missing_features(cpu.features) if f.startswith("amx-")]
    return replace(cpu, features=tuple(f for f in cpu.features if f not in missing))


def cpu_options(cpu: codegen.CpuTarget, schedule: Schedule | None = None) -> CpuOptions:
    """What kernels need to know of a processor, and what is chosen for them."""
    is_x86 = cpu.triple.startswith("x86_64")
    return CpuOptions(cpu.vector_bits, features=frozenset(cpu.features), is_x86=is_x86, schedule=schedule or Schedule())


def _codegen(c: Compilation) -> None:
    c.lowered = lower_host(_made(c.module), c.signature, c.cpu.vector_bits)
    c.code = module = c.lowered.module
    codegen.split_masked_loads(module, c.cpu)
    codegen.lower_to_llvm(module)
    c.llvm_ir = codegen.to_llvm_ir(module)
    c.object = codegen.compile_to_object(c.llvm_ir, c.cpu, c.opt_level, c.exported)
    c.compile_count += 1


def _kernels_of_gpu(c: Compilation) -> None:
    from shlo_disc.lowering_gpu import build_gpu_kernels

    _require_solved(c)
    c.module = build_gpu_kernels(_made(c.module), c.facts)


def _codegen_gpu(c: Compilation) -> None:
    from shlo_disc.lowering_gpu import lower_to_nvvm, nvvm_to_llvm_ir

    c.code = lower_to_nvvm(_made(c.module))
    c.llvm_ir = nvvm_to_llvm_ir(c.code)
    c.ptx = codegen.compile_to_ptx(c.llvm_ir, _made(cuda_architecture(c.target)), c.opt_level)
    c.compile_count += 1


Work = Callable[[Compilation], None]

PIPELINE: tuple[tuple[str, Work], ...] = (
    ("annotate", _annotate),
    ("simplify", _simplify),
    ("fuse", _fuse),
    ("plan", _plan),
    ("kernels", _kernels),
    ("host", _host),
    ("codegen", _codegen),
)

GPU_WORK: dict[str, Work] = {
    "kernels": _kernels_of_gpu,
    "codegen": _codegen_gpu,
}
"""What the stages that know the target do for a GPU."""


def import_stage(
    program: Any,
    target: str,
    options: Options,
    args: Any = None,
    kwargs: Any = None,
    constraints: Sequence[str] = (),
    context: ir.Context | None = None,
    resume: bool = False,
) -> Compilation:
    """The first stage: any program becomes a normalised module. With `resume`, what a stage has printed goes on."""
    c = Compilation(options, target, context or make_context(), cpu=cpu_named(options.cpu))

    def work(c: Compilation) -> None:
        reader = importlib.import_module("shlo_disc.import.program")
        importer = importlib.import_module("shlo_disc.import.import_program")
        read = reader.read(program, args, kwargs, constraints, Limits.of(options))
        imported = importer.import_program(read, c.context, options.symbolic, jax_platforms(target), resume)
        c.module, c.signature = imported.module, imported.signature
        if imported.stage != STAGES[0]:
            c.stage = _checked_stage(imported.stage)
            _check_resumed(c)

    with c.context, ir.Location.unknown():
        c.run_stage("import", work)
    return c


def _check_resumed(c: Compilation) -> None:
    """Take up what a stage has printed, if it is what the checkers of its stages let through."""
    module, done = _made(c.module), STAGES.index(c.stage)
    _verify(module, STAGES[0])
    try:
        _read_declarations(c)
        if STAGES.index("fuse") <= done < STAGES.index("host"):
            verify_fusions(module)
        if STAGES.index("plan") <= done < STAGES.index("host"):
            verify_buffers(module, c.facts, entry_block(module))
    except CompilerError as error:
        raise ProgramError(f"the program is not what the stage {c.stage} prints: {error}") from None


def _checked_stage(name: str) -> str:
    known = STAGES[: STAGES.index("codegen")]
    if name not in known:
        raise ProgramError(f"no program goes on after the stage {name!r}, only after {', '.join(known)}")
    return name


def run_pipeline(c: Compilation, last: str = STAGES[-1]) -> Compilation:
    """Run the stages that have not run yet, up to and including `last`."""
    is_gpu = cuda_architecture(c.target) is not None
    with c.context, ir.Location.unknown(), deciding(strict=c.options.is_strict), remembering():
        done, end = (STAGES.index(stage) for stage in (c.stage, last))
        for name, work in PIPELINE:
            if done < STAGES.index(name) <= end:
                c.run_stage(name, GPU_WORK.get(name, work) if is_gpu else work)
    return c


_ADVICE = "Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details."


def checks_of(c: Compilation) -> list[Check]:
    """The conditions on a call's sizes, in the order in which they are checked, with jax.export's wording."""
    declared = c.signature.least
    checks = [_minimum(c, position, declared) for position in range(len(c.signature.symbols))]
    data = set(c.facts.data_symbols)
    for constraint in c.constraints:
        if not data.isdisjoint(constraint.relation.symbols()):
            text = f"Expected {constraint.relation}, which {constraint.origin} requires."
            checks.append(Check("data", constraint.relation, *_data_message(c, text, constraint.relation)))
        elif constraint.message:
            checks.append(Check("constraint", constraint.relation, constraint.message, constraint.operands))
        else:
            text = f"Expected {constraint.relation}, which {constraint.origin} requires."
            checks.append(Check("equal", constraint.relation, *_message(c, text)))
    # What the facts add to the declarations follows from the constraints, or from a symbol that was replaced.
    known = c.facts.symbols
    for position, source in enumerate(c.signature.symbols):
        low = known[source.name].min
        if low is not None and low > declared:
            checks.append(_minimum(c, position, low))
    return checks


def _minimum(c: Compilation, position: int, low: int) -> Check:
    name = c.signature.symbols[position].name
    text = f"Expected value >= {low} for dimension variable '{name}'."
    return Check("min", Relation.ge(Expr.symbol(name), low), *_message(c, text, position + 1))


def _message(c: Compilation, finding: str, solved: int | None = None) -> tuple[str, Dims]:
    """A message in jax.export's form and its operands; `{i}` stands for the value of operand i.

    `solved`: how many of the symbols have their values when the condition is checked, all by default.
    """
    specifications = ",".join(
        f"{a.path}.shape = ({', '.join(map(str, a.dims))}{',' if len(a.dims) == 1 else ''})"
        for a in c.signature.arguments
        if any(d.constant is None for d in a.dims)
    )
    operands: list[Expr] = []
    obtained = ""
    for source in c.signature.symbols[:solved]:
        argument = c.signature.arguments[source.argument]
        size = argument.dims[source.dim]
        obtained += (
            f"'{source.name}' = {{{len(operands)}}} from specification '{size}' "
            f"for dimension {argument.path}.shape[{source.dim}] (= {{{len(operands) + 1}}}), "
        )
        operands += [Expr.symbol(source.name), size]
    text = (
        f"Input shapes do not match the polymorphic shapes specification. {finding} "
        f"Using the following polymorphic shapes specifications: {specifications}. "
        f"Obtained dimension variables: {obtained}. {_ADVICE}"
    )
    return text, tuple(operands)


def _data_message(c: Compilation, finding: str, relation: Relation | None = None) -> tuple[str, Dims]:
    """A message about sizes that were read from data, and its operands: the sizes that `relation` names."""
    names = sorted(relation.symbols()) if relation else []
    values = ", ".join(f"{name} = {{{position}}}" for position, name in enumerate(names))
    text = f"A size that the program reads from data does not fit. {finding}" + (f" Here {values}." if values else "")
    return text, tuple(Expr.symbol(name) for name in names)


def _artifact_header(c: Compilation) -> dict[str, Any]:
    """The artifact's header: what the runtime needs to check and run calls, the pytrees aside."""
    lowered = c.lowered
    if lowered is None:
        raise CompilerError("the program has not been lowered")
    offset = 0
    constants = []
    for data in lowered.constants:
        constants.append({"offset": offset, "bytes": len(data)})
        offset += -(-len(data) // 64) * 64
    known = c.facts.symbols
    first, *later = (_segment_rows(c, number) for number in range(len(lowered.segments)))
    header = {
        "format": 1,
        "name": c.signature.name,
        "target": {"triple": c.cpu.triple, "features": list(c.cpu.features)},
        "symbols": [_symbol_row(s, known[s.name]) for s in c.signature.symbols],
        "arguments": [_tensor_row(a) for a in c.signature.arguments],
        "results": [_tensor_row(r) for r in c.signature.results],
        "constants": constants,
        "calls": lowered.calls,
        "blas": bool(lowered.calls) or lowered.uses_blas,
        "flops": str(dim_of_attr(_made(c.module).operation.attributes[FLOPS])),
        "replicas": c.options.replicas,
        **lowered.packs,
        **first,
    }
    return {**header, "segments": later} if later else header


def _segment_rows(c: Compilation, number: int) -> dict[str, Any]:
    """What the header says of a segment: of the first one at its top level, of the others in "segments"."""
    segment = _made(c.lowered).segments[number]
    overflow = "A size that this call needs does not fit in 64 bits, or divides by zero."
    message, operands = _data_message(c, overflow) if number else _message(c, overflow)
    checks = [*segment.checks, Check("overflow", Relation.eq(0, 0), message, operands)]
    rows = {
        "checks": [
            {"kind": k.kind, "message": k.message, "operands": [segment.words.place(o) for o in k.operands]}
            for k in checks
        ],
        "plan_words": segment.words.count,
        "entry": {"plan": function_name("disc_plan", number), "run": function_name("disc_run", number)},
    }
    if len(_made(c.lowered).segments) == 1:
        return rows
    read = [{"name": name, "constraints": _constraints_on(c, name)} for name in segment.symbols]
    return {**rows, "results_written": segment.results, "symbols_read": read}


def _constraints_on(c: Compilation, name: str) -> list[str]:
    return [str(k.relation) for k in c.constraints if name in k.relation.symbols()]


def artifact_of(c: Compilation) -> Artifact:
    """The finished program as data."""
    said = declared_signature(_made(c.module))
    header = _artifact_header(c)
    trees = {"in": said.in_tree, "out": said.out_tree}
    header["pytree"] = {key: json.loads(text) for key, text in trees.items() if text}
    return Artifact(header, c.object, _constants_block(_made(c.lowered)))


def _constants_block(lowered: LoweredProgram) -> bytes:
    """All constants, each at a multiple of 64 bytes."""
    return b"".join(data + bytes(-len(data) % 64) for data in lowered.constants)


def _symbol_row(source: Any, declaration: Declaration) -> dict[str, Any]:
    solve = {"argument": source.argument, "dim": source.dim, "scale": source.scale, "offset": source.offset}
    return {"name": source.name, "min": declaration.min, "max": declaration.max, "solve": solve}


def _tensor_row(spec: Any) -> dict[str, Any]:
    shape = [str(d) if d.constant is None else d.constant for d in spec.dims]
    row = {"path": spec.path, "dtype": spec.dtype, "shape": shape, "donated": spec.donated}
    stated = {"memory": spec.memory, "layout": list(spec.layout), "key": spec.key}
    return row | {key: value for key, value in stated.items() if value}


__all__ = ["PIPELINE", "STAGES", "Compilation", "artifact_of", "import_stage", "run_pipeline"]
