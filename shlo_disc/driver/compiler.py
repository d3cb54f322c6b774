# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pipeline: named stages, each a list of named passes (`passes.py`) that take the module one step down.

The name of a stage is also its dump file, its argument to `as_text` and the command line, and its row in the timings.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from shlo_disc.driver import pass_pipelines
from shlo_disc.driver.code_pages import note_loading
from shlo_disc.driver.compilation import Compilation, cpu_named, made
from shlo_disc.driver.garbage import fewer_collections
from shlo_disc.driver.pass_pipelines import PIPELINES, After, added_passes, check_places, parse_pipeline
from shlo_disc.driver.stages import STAGES
from shlo_disc.errors import CompilerError, DeviceError, DiscError, OptionError, ProgramError
from shlo_disc.importer.import_program import import_program
from shlo_disc.importer.precision import decide_precision
from shlo_disc.importer.program import read
from shlo_disc.importer.programs import DescribedProgram
from shlo_disc.importer.reader import Limits
from shlo_disc.lowering import progress
from shlo_disc.lowering.kernel_module import kernel_module_of
from shlo_disc.options import CPU, CUDA, Options, architecture_for, check_target, jax_platforms
from shlo_disc.runtime.native_module import Gpu
from shlo_disc.shape_dialect.compile_state import compiling_for
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.dialect.names import STAGE
from shlo_disc.shape_dialect.dialect.records import Malformed
from shlo_disc.shape_dialect.dialect.remembered import remembering
from shlo_disc.shape_dialect.inference.verify_sizes import verify_sizes
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.utils.regions import entry_block, main_function
from shlo_disc.shape_dialect.verifier import verify_dialect
from shlo_disc.verify import verify_buffers, verify_fusions, verify_nested_sizes, verify_panels

note_loading()  # of the libraries that the modules above have imported


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
    c = Compilation(options, named_target(target), context or make_context(), cpu=cpu_named(options.cpu))

    def work() -> None:
        is_read = isinstance(program, DescribedProgram)
        source = program if is_read else read(program, args, kwargs, constraints, Limits.of(options), target)
        platforms = jax_platforms(target)
        imported = import_program(source, c.context, options.symbolic, platforms, resume)
        c.module, c.signature = imported.module, imported.signature
        if c.target != CPU and STAGE not in c.module.operation.attributes:
            decide_precision(c.module, options.matmul_precision)
        if imported.stage != STAGES[0]:
            c.stage = _checked_stage(imported.stage)
            _check_resumed(c)

    with c.context, ir.Location.unknown(), remembering(), fewer_collections():
        run_stage(c, "import", work)
    return c


def named_target(target: str) -> str:
    """The target; for "cuda" the one of the first GPU of this machine, such as "cuda:sm_90a".

    Raises DiscError for what is no target, and for "cuda" where there is no GPU that programs run on.
    """
    check_target(target)
    if target != CUDA:
        return target
    try:
        capability = Gpu.get(0).facts["compute_capability"]
    except DeviceError as error:
        elsewhere = "to compile for one elsewhere, name its architecture, such as target='cuda:sm_90'"
        raise DeviceError(f"the target 'cuda' is the GPU of this machine; {elsewhere}: {error.message}") from error
    return f"{CUDA}:{architecture_for(capability)}"


def run_pipeline(c: Compilation, last: str = STAGES[-1], after: After | None = None) -> Compilation:
    """Run the stages that have not run yet, up to and including `last`, and `after` after each pass."""
    check_places(c.options)
    with _working(c):
        done, end = (STAGES.index(stage) for stage in (c.stage, last))
        for name in STAGES[done + 1 : end + 1]:
            run_stage(c, name, partial(_run_passes, c, name, after))
    return c


@contextmanager
def _working(c: Compilation) -> Iterator[None]:
    """Around all passes."""
    compiling = compiling_for(c.backend.policy, strict=c.options.is_strict)
    with c.context, ir.Location.unknown(), remembering(), compiling, fewer_collections():
        yield


def run_text_pipeline(c: Compilation, text: str, after: After | None = None) -> Compilation:
    """Run a pipeline: whole stages, passes of ours, and MLIR's own (`passes.py`).

    A stage has run when its last pass has. after: called with the name of each pass and the compilation. Raises
    OptionError where the pipeline names what there is not, or a stage whose turn it is not.
    """
    elements = parse_pipeline(text)
    check_places(c.options)
    with _working(c):
        for element in elements:
            due = next(iter(STAGES[STAGES.index(c.stage) + 1 :]), "")
            if element.name == due:
                if element.changes:
                    c.change_options(**element.changes)
                run_stage(c, due, partial(_run_passes, c, due, after))
            elif element.name in PIPELINES:
                raise OptionError(f"after {c.stage} comes {due or 'nothing'}, and not {element.name}")
            elif due and element.name == parse_pipeline(PIPELINES[due])[-1].name:
                run_stage(c, due, partial(pass_pipelines.run_element, c, element, due, after))
            else:
                _guarded(element.name, partial(pass_pipelines.run_element, c, element, due, after))
                _verify_all(c, element.name)
    return c


def _run_passes(c: Compilation, stage: str, after: After | None) -> None:
    """Run the passes of a stage, and those that the options add."""
    for element in parse_pipeline(PIPELINES[stage]):
        pass_pipelines.run_element(c, element, stage, after)
        _run_added(c, element.name, stage, after)
    _run_added(c, stage, stage, after)


def _run_added(c: Compilation, place: str, stage: str, after: After | None) -> None:
    """Run the passes that the options add after a stage or a pass, each of which is verified."""
    for element in added_passes(c.options, place):
        about = f"the pass {element.name}, which the options add after {place}, "
        try:
            pass_pipelines.run_element(c, element, stage, after)
            _verify_all(c, element.name)
        except CompilerError as error:
            raise OptionError(f"{about}failed: {error.message}") from error
        except (DiscError, OSError, MemoryError):
            raise
        except Exception as error:
            raise OptionError(f"{about}failed: {type(error).__name__}: {error}") from error


def run_stage(c: Compilation, name: str, work: Callable[[], None]) -> None:
    """Run one stage: time it, verify what it made, keep a copy."""
    start = time.perf_counter()
    c.stage = name
    progress.tell(name)
    _guarded(name, partial(_work, c, name, work))
    c.timings[name] = time.perf_counter() - start
    progress.tell(name, c.timings[name])
    module = c.current
    if c.code is None:
        module.operation.attributes[STAGE] = ir.StringAttr.get(c.stage, c.context)
        if c.options.verify:
            _verify(module, name)
        if c.options.verify and c.options.is_strict:
            _verify_sizes(c, CompilerError)
    c.snapshots[c.stage] = module.operation.clone(ip=False)


def _work(c: Compilation, name: str, work: Callable[[], None]) -> None:
    work()
    if c.options.verify and name == "fuse":
        verify_fusions(made(c.module), c.facts)
    if c.options.verify and name in ("fuse", "plan"):
        verify_nested_sizes(made(c.module), c.facts, entry_block(made(c.module)))
    if c.options.verify and name == "plan":
        verify_buffers(made(c.module), c.facts, entry_block(made(c.module)))
        verify_panels(made(c.module), entry_block(made(c.module)))


def _guarded(name: str, work: Callable[[], None]) -> None:
    """Run a stage or a pass, whose internal errors are CompilerErrors that name it."""
    try:
        work()
    except ir.MLIRError as error:
        found = [d.message.strip() for d in error.error_diagnostics]
        raise CompilerError(f"the stage {name} failed: {'; '.join(found) or error}") from error
    except RecursionError as error:
        raise CompilerError(f"the stage {name} failed: the program's chains are too long for it") from error
    except (DiscError, OSError, MemoryError):
        raise
    except Exception as error:
        raise CompilerError(f"the stage {name} failed: {type(error).__name__}: {error}") from error


# ---- verification ---------------------------------------------------------------------------------------------------


def _verify(module: ir.Module, stage: str) -> None:
    """Verify what a stage has changed; what the last one makes is verified on the way."""
    try:
        for op in _changed(module, stage):
            op.verify()
        verify_dialect(module, stage == STAGES[0], STAGES.index(stage) <= STAGES.index("fuse"))
    except (ir.MLIRError, Malformed) as error:
        kind = ProgramError if stage == "import" else CompilerError
        raise kind(f"the program does not verify after {stage}: {error}") from None


def _verify_sizes(c: Compilation, kind: type[DiscError]) -> None:
    """Check the sizes that ops imply, from `annotate` on and as long as there are such ops."""
    if STAGES.index("annotate") <= STAGES.index(c.stage) < STAGES.index("host"):
        try:
            verify_sizes(made(c.module), c.facts)
        except Malformed as error:
            raise kind(f"the sizes after {c.stage} are not those that the program implies: {error}") from None


def _verify_all(c: Compilation, name: str) -> None:
    """Verify all that there is, after a pass."""
    module = c.current
    try:
        module.operation.verify()
        if c.code is None:
            verify_dialect(module, is_between=True)
    except (ir.MLIRError, Malformed) as error:
        raise CompilerError(f"the program does not verify after {name}: {error}") from None


def _changed(module: ir.Module, stage: str) -> list[ir.Operation]:
    """The parts of a module that a stage has changed, or made."""
    if STAGES.index(stage) <= STAGES.index("fuse"):
        return [module.operation]
    if stage == "host":
        kernels = kernel_module_of(module)
        return [op for op in (view.operation for view in module.body.operations) if op != kernels]
    entry = main_function(module).operation
    return [entry, kernel_module_of(module)] if stage == "kernels" else [entry]


def _check_resumed(c: Compilation) -> None:
    """Take up what a stage has printed, if it is what the checkers of its stages let through."""
    module, done = made(c.module), STAGES.index(c.stage)
    _verify(module, STAGES[0])
    try:
        c.read_declarations()
        _verify_sizes(c, ProgramError)
        if STAGES.index("fuse") <= done < STAGES.index("host"):
            verify_fusions(module, c.facts)
            verify_nested_sizes(module, c.facts, entry_block(module))
        if STAGES.index("plan") <= done < STAGES.index("host"):
            verify_buffers(module, c.facts, entry_block(module))
            verify_panels(module, entry_block(module))
    except CompilerError as error:
        raise ProgramError(f"the program is not what the stage {c.stage} prints: {error}") from None


def _checked_stage(name: str) -> str:
    known = STAGES[: STAGES.index("codegen")]
    if name not in known:
        raise ProgramError(f"no program goes on after the stage {name!r}, only after {', '.join(known)}")
    return name


__all__ = ["STAGES", "Compilation", "import_stage", "run_pipeline", "run_stage", "run_text_pipeline"]
