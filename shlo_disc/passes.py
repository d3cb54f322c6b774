# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes by name, and the stages as pipelines of them.

A pipeline is text: names of stages, of the passes below and of MLIR's own, separated by commas. What stands in braces
behind a name of ours are fields of `shlo_disc.Options`: `annotate,simplify,fuse{max-fusions=3}`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

from shlo_disc.artifact_header import artifact_header
from shlo_disc.call_checks import checks_of
from shlo_disc.compilation import Compilation, made
from shlo_disc.errors import OptionError, ProgramError
from shlo_disc.lowering.host import build_host
from shlo_disc.mlir import func, ir, passmanager
from shlo_disc.options import Options
from shlo_disc.runtime import Artifact
from shlo_disc.runtime.artifact import HEADER_DIGEST
from shlo_disc.shape_dialect.dialect.names import FLOPS
from shlo_disc.shape_dialect.dialect.remembered import remembered
from shlo_disc.shape_dialect.dialect.signature import write_signature
from shlo_disc.shape_dialect.dialect.types import dim_attr, dims_of
from shlo_disc.shape_dialect.inference.annotate import infer_sizes, set_argument_sizes
from shlo_disc.shape_dialect.inference.unify_sizes import unify_sizes
from shlo_disc.shape_dialect.inference.values import erase_unused_sizes
from shlo_disc.shape_dialect.utils.regions import entry_block, terminator_of
from shlo_disc.stages import STAGES
from shlo_disc.transforms import expand
from shlo_disc.transforms.control_flow.barriers import remove_barriers, thin_barriers
from shlo_disc.transforms.expand.complex_values import decompose
from shlo_disc.transforms.expand.quantized import remove_quantized_types
from shlo_disc.transforms.flops import flops_in
from shlo_disc.transforms.fusion.grouping import group
from shlo_disc.transforms.fusion.horizontal import merge_recurrences
from shlo_disc.transforms.fusion.outline import Outliner
from shlo_disc.transforms.fusion.outline_attention import outline_attentions
from shlo_disc.transforms.fusion.products import fuse_products
from shlo_disc.transforms.fusion.share_kernels import share_kernels
from shlo_disc.transforms.memory import assign_buffers
from shlo_disc.transforms.policy import policy
from shlo_disc.transforms.regions import close_regions
from shlo_disc.transforms.segments import split_segments
from shlo_disc.transforms.simplify import patterns
from shlo_disc.transforms.simplify.accumulated import hoist_accumulated_products
from shlo_disc.transforms.simplify.control_flow import hoist_invariants, simplify_control_flow
from shlo_disc.transforms.simplify.materialize_shapes import materialize_shapes
from shlo_disc.transforms.simplify.pre_transpose import pre_transpose_weights
from shlo_disc.transforms.simplify.scanned import hoist_scanned_products
from shlo_disc.transforms.simplify.split_reductions import split_reductions

PIPELINES = {
    "annotate": "set-argument-sizes,erase-unused-sizes,infer-sizes,write-signature",
    "simplify": (
        "expand-library-calls,remove-quantized-types,materialize-shapes,expand-bodies,decompose-complex,"
        "func.func(canonicalize{max-iterations=4},cse),symbol-dce,"
        "simplify-control-flow,hoist-scanned-products,expand-ops,unify-sizes,simplify-ops,"
        "func.func(canonicalize{max-iterations=4},cse),symbol-dce,"
        "hoist-accumulated-products,split-reductions,"
        "func.func(canonicalize{max-iterations=4},cse),symbol-dce,"
        "pre-transpose-weights,hoist-invariants,unify-sizes,isolate-regions"
    ),
    "fuse": (
        "count-flops,thin-barriers,fuse-groups,func.func(cse),fuse-attention,merge-recurrences,isolate-regions,"
        "fuse-gemm,share-kernels,remove-barriers"
    ),
    "plan": "split-segments,assign-buffers",
    "kernels": "build-kernels",
    "host": "build-host",
    "codegen": "lower-host,legalize-for-target,lower-to-llvm,translate-to-llvm-ir,emit-object",
}
"""What each stage consists of, the import aside."""

Changes = dict[str, Any]
LOGGER = logging.getLogger("shlo_disc")
After = Callable[[str, Compilation], None]


@dataclass(frozen=True)
class Pass:
    """A named step of a stage, on a compilation. `options` are the fields of `Options` that it reads."""

    name: str
    stage: str
    run: Callable[[Compilation], None]
    options: tuple[str, ...]

    @property
    def text(self) -> str:
        """What it does, in a line."""
        return (self.run.__doc__ or "").split("\n")[0]


PASSES: dict[str, Pass] = {}
"""All passes of ours by name, in the order of the stages."""


def _pass(stage: str, *options: str) -> Callable[[Callable[[Compilation], None]], Callable[[Compilation], None]]:
    """Makes a function a pass of its name, `fuse_groups` that of `fuse-groups`."""

    def register(run: Callable[[Compilation], None]) -> Callable[[Compilation], None]:
        name = run.__name__.strip("_").replace("_", "-")
        PASSES[name] = Pass(name, stage, run, options)
        return run

    return register


# ---- annotate -------------------------------------------------------------------------------------------------------


@_pass("annotate")
def _set_argument_sizes(c: Compilation) -> None:
    """Give the arguments the symbolic sizes that the signature states."""
    set_argument_sizes(made(c.module))


@_pass("annotate")
def _erase_unused_sizes(c: Compilation) -> None:
    """Erase computations of sizes that nothing reads."""
    erase_unused_sizes(entry_block(made(c.module)))


@_pass("annotate", "hints")
def _infer_sizes(c: Compilation) -> None:
    """Give every dynamic size a symbol or an expression, and declare what is known of them."""
    infer_sizes(made(c.module), c.options.hints)


@_pass("annotate")
def _write_signature(c: Compilation) -> None:
    """Write the sizes of arguments and results into the signature."""
    module = made(c.module)
    c.signature = c.signature.with_shapes(entry_block(module))
    write_signature(module, c.signature)
    c.read_declarations()


# ---- simplify -------------------------------------------------------------------------------------------------------


@_pass("simplify")
def _expand_library_calls(c: Compilation) -> None:
    """Make linear algebra, Fourier transforms and collectives calls of library functions."""
    expand.expand(made(c.module))


@_pass("simplify")
def _remove_quantized_types(c: Compilation) -> None:
    """Compute with the floats that quantized elements stand for."""
    remove_quantized_types(made(c.module))


@_pass("simplify")
def _materialize_shapes(c: Compilation) -> None:
    """Replace computations of sizes by the sizes that they are, `disc.shape`."""
    materialize_shapes(made(c.module), c.facts)


@_pass("simplify")
def _expand_bodies(c: Compilation) -> None:
    """Inline maps and rewrite windows whose bodies other patterns never see."""
    patterns.apply(expand.BODIES, made(c.module))


@_pass("simplify")
def _decompose_complex(c: Compilation) -> None:
    """Make each complex tensor two of reals."""
    decompose(made(c.module))


@_pass("simplify")
def _simplify_control_flow(c: Compilation) -> None:
    """Remove what loops carry for nothing, and branches whose choice is known."""
    simplify_control_flow(entry_block(made(c.module)))


@_pass("simplify", "max_fusions")
def _hoist_scanned_products(c: Compilation) -> None:
    """Move products of the rows that a loop reads out of the loop, as one product."""
    hoist_scanned_products(entry_block(made(c.module)), c.decisions["hoist"])


@_pass("simplify")
def _expand_ops(c: Compilation) -> None:
    """Rewrite ops that have no kernel of their own into others."""
    patterns.apply(expand.PATTERNS, made(c.module))


@_pass("simplify")
def _unify_sizes(c: Compilation) -> None:
    """Write sizes that are proved to be equal alike, in types and attributes."""
    block = entry_block(made(c.module))
    ends = [*block.arguments, *terminator_of(block).operands]
    unify_sizes(block, c.facts, (size for value in ends for size in dims_of(value)))


@_pass("simplify")
def _simplify_ops(c: Compilation) -> None:
    """Simplify movements of data, products and reductions."""
    patterns.apply(patterns.PATTERNS, made(c.module))


@_pass("simplify", "max_fusions")
def _hoist_accumulated_products(c: Compilation) -> None:
    """Make a sum of products that a loop adds up one product behind the loop."""
    hoist_accumulated_products(entry_block(made(c.module)), c.decisions["hoist"])


@_pass("simplify", "max_fusions")
def _split_reductions(c: Compilation) -> None:
    """Reduce many elements to few in parts, and then over the parts, where the target does so."""
    split_reductions(entry_block(made(c.module)), c.facts, c.decisions["hoist"])


@_pass("simplify", "max_fusions")
def _pre_transpose_weights(c: Compilation) -> None:
    """Transpose the weights of products within loops once, before the loop."""
    pre_transpose_weights(entry_block(made(c.module)), c.decisions["hoist"])


@_pass("simplify", "max_fusions")
def _hoist_invariants(c: Compilation) -> None:
    """Move what does not change out of loops."""
    hoist_invariants(entry_block(made(c.module)), c.facts, c.decisions["hoist"])


@_pass("simplify")
def _isolate_regions(c: Compilation) -> None:
    """Copy constants into the bodies of reductions and scatters that use them."""
    for function in _functions(made(c.module)):
        close_regions(function.entry_block)


# ---- fuse -----------------------------------------------------------------------------------------------------------


@_pass("fuse")
def _count_flops(c: Compilation) -> None:
    """Write the floating-point operations of a call into the module."""
    module = made(c.module)
    module.operation.attributes[FLOPS] = dim_attr(c.facts.simplify(flops_in(module, entry_block(module))))


@_pass("fuse")
def _thin_barriers(c: Compilation) -> None:
    """Let barriers hold only what has to stay behind them."""
    thin_barriers(entry_block(made(c.module)))


@_pass("fuse", "max_fusions")
def _fuse_groups(c: Compilation) -> None:
    """Group ops into fusions, each a private function that becomes one kernel."""
    module, decisions = made(c.module), c.decisions["fusion"]
    block = entry_block(module)
    Outliner(module, block, group(block, decisions), decisions).run()


@_pass("fuse", "max_fusions")
def _fuse_attention(c: Compilation) -> None:
    """Fuse two products and the row kernel between them."""
    outline_attentions(made(c.module), c.decisions["fusion"])


@_pass("fuse", "max_fusions")
def _merge_recurrences(c: Compilation) -> None:
    """Fuse recurrences that do not need each other horizontally."""
    merge_recurrences(made(c.module), c.decisions["fusion"])


@_pass("fuse", "max_fusions")
def _fuse_gemm(c: Compilation) -> None:
    """Fuse products with their epilogues, and products of one left-hand side, where the target does so."""
    if policy().has_gemm_epilogues:
        fuse_products(made(c.module), c.decisions["fusion"])


@_pass("fuse", "max_fusions")
def _share_kernels(c: Compilation) -> None:
    """Pass numbers to fusions that differ in nothing else, where the target does so."""
    share_kernels(made(c.module), c.decisions["fusion"])


@_pass("fuse")
def _remove_barriers(c: Compilation) -> None:
    """Remove the barriers, which have done their work."""
    remove_barriers(entry_block(made(c.module)))


# ---- plan -----------------------------------------------------------------------------------------------------------


@_pass("plan")
def _split_segments(c: Compilation) -> None:
    """Bring what needs sizes from data behind the reading of them."""
    split_segments(made(c.module))


@_pass("plan", "reuse")
def _assign_buffers(c: Compilation) -> None:
    """Assign every value a buffer, by its liveness: a result, or a part of the symbolic arena."""
    assign_buffers(made(c.module), c.facts, c.decisions["reuse"])


# ---- kernels, host --------------------------------------------------------------------------------------------------


@_pass("kernels", "deterministic")
def _build_kernels(c: Compilation) -> None:
    """Emit the kernels of fusions, and write on each call which one it is."""
    _require_solved(c)
    c.module = c.backend.build_kernels(made(c.module), c.facts)


@_pass("host")
def _build_host(c: Compilation) -> None:
    """Make a program of `disc_host` of the calls, loops and branches."""
    c.module = build_host(made(c.module), c.facts, c.signature, checks_of(c), c.backend.tile_of)


# ---- codegen --------------------------------------------------------------------------------------------------------


@_pass("codegen")
def _lower_host(c: Compilation) -> None:
    """Lower the host program to the LLVM dialect, and add micro-kernels; a GPU's kernels stay apart."""
    c.code = c.backend.lower_host(made(c.module), c.signature)


@_pass("codegen")
def _legalize_for_target(c: Compilation) -> None:
    """Take apart what LLVM gets wrong: masked loads of more than a register, without registers of masks."""
    for section, module in made(c.code).modules.items():
        c.backend.legalize(section, module)


@_pass("codegen")
def _lower_to_llvm(c: Compilation) -> None:
    """Lower structured kernels to the LLVM dialect, or to that and NVVM."""
    for section, module in made(c.code).modules.items():
        c.backend.lower_to_llvm(section, module)


@_pass("codegen")
def _translate_to_llvm_ir(c: Compilation) -> None:
    """Translate the LLVM dialect to LLVM IR."""
    c.llvm_ir = {section: c.backend.translate(section, module) for section, module in made(c.code).modules.items()}


@_pass("codegen", "opt_level")
def _emit_object(c: Compilation) -> None:
    """Optimise, and select instructions: an object, and PTX for GPUs. The object has its header's digest."""
    c.header = artifact_header(c)
    made(c.code).embedded = {HEADER_DIGEST: Artifact(c.header, {}).header_digest()}
    c.sections = {section: c.backend.emit(section, text, made(c.code)) for section, text in c.llvm_ir.items()}
    c.compile_count += 1


def _functions(module: ir.Module) -> list[func.FuncOp]:
    return [op for op in module.body.operations if isinstance(op, func.FuncOp)]


def _require_solved(c: Compilation) -> None:
    solved = {s.name for s in c.signature.symbols}
    unsolved = sorted({n for a in c.signature.arguments for d in a.dims for n in d.symbols()} - solved)
    if unsolved:
        arguments = c.signature.arguments
        stated = [
            (a.path, i, d) for a in arguments for i, d in enumerate(a.dims) if not d.symbols().isdisjoint(unsolved)
        ]
        sizes = ", ".join(f"{path}.shape[{axis}] = {size}" for path, axis, size in stated)
        raise ProgramError(
            f"the sizes of the arguments do not determine the symbols {unsolved}, which are in {sizes}; pass an "
            "argument of size a*symbol + b, or several whose sizes are linear in them"
        )


# ---- pipelines ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Element:
    """One element of a pipeline: its name, its text with options, and the options where it is ours."""

    name: str
    text: str
    changes: Changes


def parse_pipeline(text: str) -> list[Element]:
    """The elements of a pipeline. Raises OptionError where one is neither a stage, nor a pass of ours or MLIR's."""
    found = []
    for part in _split(text):
        name, _, options = part.partition("{")
        name = name.strip()
        is_ours = name in PASSES or name in PIPELINES
        if is_ours and options and not options.endswith("}"):
            raise OptionError(f"{part!r} does not end with a brace")
        changes = _options(name, options.removesuffix("}")) if is_ours else {}
        found.append(Element(name if is_ours else part, part, changes))
    return found


def _split(text: str) -> Iterator[str]:
    """The parts between commas outside of brackets."""
    depth, start = 0, 0
    for position, character in enumerate(text):
        depth += (character in "({") - (character in ")}")
        if character == "," and depth == 0:
            yield text[start:position].strip()
            start = position + 1
    if depth:
        raise OptionError(f"the brackets of the pipeline {text!r} do not match")
    yield text[start:].strip()


def _options(name: str, text: str) -> Changes:
    """Options as they stand in braces, `max-fusions=3 reuse=false`."""
    read = {option for p in passes_of(name) for option in p.options}
    changes: Changes = {}
    for word in text.split():
        key, _, value = word.partition("=")
        field = key.replace("-", "_")
        if field not in read:
            known = ", ".join(sorted(option.replace("_", "-") for option in read)) or "none"
            raise OptionError(f"{name} has no option {key!r}; it has {known}")
        changes[field] = _value(field, value)
    return changes


def _value(field: str, text: str) -> Any:
    """An option's value of the type that the default has, or an integer."""
    default = {f.name: f.default for f in fields(Options)}[field]
    if isinstance(default, bool):
        if text not in ("true", "false"):
            raise OptionError(f"{field} must be true or false, not {text!r}")
        return text == "true"
    if field == "hints":
        pairs = [pair.partition(":") for pair in text.split(";")]
        return {name: _integer(field, value) for name, _, value in pairs}
    return text if isinstance(default, str) else _integer(field, text)


def _integer(field: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"{field} must be an integer, not {text!r}") from None


def passes_of(name: str) -> list[Pass]:
    """The passes of ours that a stage, or a pass, consists of."""
    if name in PASSES:
        return [PASSES[name]]
    return [PASSES[e.name] for e in parse_pipeline(PIPELINES[name]) if e.name in PASSES]


def run_passes(c: Compilation, stage: str, after: After | None = None) -> None:
    """Run the passes of a stage."""
    for element in parse_pipeline(PIPELINES[stage]):
        run_element(c, element, stage, after)


def run_element(c: Compilation, element: Element, stage: str, after: After | None = None) -> None:
    """Run one pass, ours or MLIR's. Raises OptionError where MLIR knows none of its name."""
    start = time.perf_counter()
    if element.changes:
        c.change_options(**element.changes)
    if element.name in PASSES:
        PASSES[element.name].run(c)
    else:
        passes = _stock(element.text)
        passes.enable_verifier(c.options.is_strict)  # else what the stage has made is verified, once
        passes.run(c.current.operation)
    row, seconds = f"{stage}/{element.name}", time.perf_counter() - start
    c.pass_timings[row] = c.pass_timings.get(row, 0.0) + seconds
    LOGGER.debug("%s: %.3f ms", row, 1e3 * seconds)
    if after is not None:
        after(element.name, c)


@remembered
def _stock(text: str) -> passmanager.PassManager:
    """Passes of MLIR's, which take their patterns from the context once."""
    try:
        return passmanager.PassManager.parse(f"builtin.module({text})")
    except ValueError as error:
        reason = str(error).strip().splitlines()[0]
        known = f"passes of ours are {', '.join(PASSES)}; stages are {', '.join(STAGES[1:])}"
        raise OptionError(f"{text!r} is no pass of ours, nor of MLIR ({reason}); {known}") from None


def passes_rows() -> list[dict[str, Any]]:
    """Each pass: its name, its stage, the options that it reads, and what it does."""
    return [{"name": p.name, "stage": p.stage, "options": list(p.options), "text": p.text} for p in PASSES.values()]


def passes_table() -> str:
    """The page of passes, in Markdown."""
    lines = ["# Passes", "", "| pass | stage | options | what it does |", "|--|--|--|--|"]
    for p in PASSES.values():
        options = ", ".join(f"`{option.replace('_', '-')}`" for option in p.options)
        lines.append(f"| `{p.name}` | {p.stage} | {options} | {p.text} |")
    return "\n".join(lines) + "\n"


__all__ = [
    "PASSES", "PIPELINES", "Element", "Pass", "parse_pipeline", "passes_of", "passes_rows", "passes_table",
    "run_element", "run_passes",
]  # fmt: skip
