# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes by name, and the stages as pipelines of them.

A pipeline is text: names of stages, of the passes below and of MLIR's own, separated by commas. What stands in braces
behind a name of ours are fields of `shlo_disc.Options`: `annotate,simplify,fuse{max-fusions=3}`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shlo_disc.driver.artifact_header import artifact_header
from shlo_disc.driver.call_checks import checks_of
from shlo_disc.driver.code_pages import note_passes
from shlo_disc.driver.compilation import Compilation, made
from shlo_disc.errors import ProgramError
from shlo_disc.lowering.host import build_host
from shlo_disc.runtime import Artifact
from shlo_disc.runtime.artifact import HEADER_DIGEST
from shlo_disc.shape_dialect.dialect.names import FLOPS
from shlo_disc.shape_dialect.dialect.signature import write_signature
from shlo_disc.shape_dialect.dialect.types import dim_attr, dims_of
from shlo_disc.shape_dialect.inference.annotate import infer_sizes, set_argument_sizes
from shlo_disc.shape_dialect.inference.unify_sizes import unify_sizes
from shlo_disc.shape_dialect.inference.unused_sizes import erase_unused_sizes
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops.segments import split_segments
from shlo_disc.shape_dialect.utils.regions import entry_block, terminator_of
from shlo_disc.transforms import expand
from shlo_disc.transforms.control_flow.barriers import remove_barriers, thin_barriers
from shlo_disc.transforms.expand.complex_values import decompose
from shlo_disc.transforms.expand.quantized import remove_quantized_types
from shlo_disc.transforms.flops import flops_in
from shlo_disc.transforms.fusion.grouping import group
from shlo_disc.transforms.fusion.horizontal import merge_recurrences
from shlo_disc.transforms.fusion.outline import Outliner
from shlo_disc.transforms.fusion.outline_attention import outline_attentions
from shlo_disc.transforms.fusion.partials import reserve_partials
from shlo_disc.transforms.fusion.products import fuse_products
from shlo_disc.transforms.fusion.share_kernels import share_kernels
from shlo_disc.transforms.memory import assign_buffers
from shlo_disc.transforms.memory.panels import read_panels
from shlo_disc.transforms.memory.pieces import view_pieces
from shlo_disc.transforms.memory.variants import limit_memory
from shlo_disc.transforms.regions import isolate_regions
from shlo_disc.transforms.simplify import patterns
from shlo_disc.transforms.simplify.accumulated import hoist_accumulated_products
from shlo_disc.transforms.simplify.control_flow import hoist_invariants, simplify_control_flow
from shlo_disc.transforms.simplify.dequantized_products import fuse_dequantized_products
from shlo_disc.transforms.simplify.materialize_shapes import materialize_shapes
from shlo_disc.transforms.simplify.pre_transpose import pre_transpose_weights
from shlo_disc.transforms.simplify.scanned import hoist_scanned_products
from shlo_disc.transforms.simplify.slice_gathers import slice_gathers
from shlo_disc.transforms.simplify.split_reductions import split_reductions


@dataclass(frozen=True)
class Pass:
    """A named step of a stage, on a compilation. `options` are the fields of `Options` that it reads."""

    name: str
    stage: str
    run: Callable[[Compilation], None]
    options: tuple[str, ...]

    @property
    def text(self) -> str:
        """The description of the pass, in a line."""
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
    """Give every dynamic size a symbol or an expression, and declare the facts about it."""
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
    """Rewrite linear algebra, Fourier transforms and collectives to calls of library functions."""
    expand.expand(made(c.module))


@_pass("simplify")
def _remove_quantized_types(c: Compilation) -> None:
    """Compute with the floats that quantized elements represent."""
    remove_quantized_types(made(c.module))


@_pass("simplify")
def _materialize_shapes(c: Compilation) -> None:
    """Replace computations of sizes by `disc.shape`, which states the sizes."""
    materialize_shapes(made(c.module), c.facts)


@_pass("simplify")
def _expand_bodies(c: Compilation) -> None:
    """Inline maps, and rewrite windows whose bodies other patterns do not visit."""
    patterns.apply(expand.BODIES, made(c.module))


@_pass("simplify")
def _decompose_complex(c: Compilation) -> None:
    """Split each complex tensor into two real ones."""
    decompose(made(c.module))


@_pass("simplify", "max_fusions")
def _fuse_dequantized_products(c: Compilation) -> None:
    """Multiply by weights of narrow integers without writing them as floats, on targets that do so."""
    fuse_dequantized_products(entry_block(made(c.module)), c.decisions["hoist"])


@_pass("simplify")
def _simplify_control_flow(c: Compilation) -> None:
    """Remove unused loop-carried values, and branches whose condition is known."""
    simplify_control_flow(entry_block(made(c.module)))


@_pass("simplify", "max_fusions")
def _hoist_scanned_products(c: Compilation) -> None:
    """Hoist matrix products of the rows that a loop reads, as one product before the loop."""
    hoist_scanned_products(entry_block(made(c.module)), c.decisions["hoist"])


@_pass("simplify")
def _expand_ops(c: Compilation) -> None:
    """Rewrite ops without a kernel into other ops."""
    patterns.apply(expand.PATTERNS, made(c.module))


@_pass("simplify")
def _unify_sizes(c: Compilation) -> None:
    """Rewrite provably equal sizes to one form, in types and attributes."""
    block = entry_block(made(c.module))
    ends = [*block.arguments, *terminator_of(block).operands]
    unify_sizes(block, c.facts, (size for value in ends for size in dims_of(value)))


@_pass("simplify", "max_fusions")
def _slice_gathers(c: Compilation) -> None:
    """Replace gathers at evenly spaced positions, which are known to lie inside, by slices."""
    slice_gathers(entry_block(made(c.module)), c.facts, c.decisions["hoist"])


@_pass("simplify")
def _simplify_ops(c: Compilation) -> None:
    """Simplify data movement, matrix products and reductions."""
    patterns.apply(patterns.PATTERNS, made(c.module))


@_pass("simplify", "max_fusions")
def _hoist_accumulated_products(c: Compilation) -> None:
    """Replace a sum of matrix products accumulated in a loop by one product after the loop."""
    hoist_accumulated_products(entry_block(made(c.module)), c.decisions["hoist"])


@_pass("simplify", "max_fusions")
def _split_reductions(c: Compilation) -> None:
    """Split reductions of many elements to few into partial reductions, on targets that do so."""
    split_reductions(entry_block(made(c.module)), c.facts, c.decisions["hoist"])


@_pass("simplify", "max_fusions")
def _pre_transpose_weights(c: Compilation) -> None:
    """Transpose the weights of matrix products in a loop once, before the loop."""
    pre_transpose_weights(entry_block(made(c.module)), c.decisions["hoist"])


@_pass("simplify", "max_fusions", "hoist")
def _hoist_invariants(c: Compilation) -> None:
    """Hoist loop-invariant ops, where `hoist` asks for it."""
    if c.options.hoist:
        hoist_invariants(entry_block(made(c.module)), c.facts, c.decisions["hoist"])


@_pass("simplify")
def _isolate_regions(c: Compilation) -> None:
    """Copy constants into the bodies of reductions and scatters that use them."""
    for function in _functions(made(c.module)):
        isolate_regions(function.entry_block)


# ---- fuse -----------------------------------------------------------------------------------------------------------


@_pass("fuse")
def _count_flops(c: Compilation) -> None:
    """Write the number of floating-point operations of a call into the module."""
    module = made(c.module)
    module.operation.attributes[FLOPS] = dim_attr(c.facts.simplify(flops_in(module, entry_block(module), c.facts)))


@_pass("fuse")
def _thin_barriers(c: Compilation) -> None:
    """Remove values that need no ordering from barriers."""
    thin_barriers(entry_block(made(c.module)))


@_pass("fuse", "max_fusions")
def _fuse_groups(c: Compilation) -> None:
    """Group ops into fusions, each a private function that becomes one kernel."""
    module, decisions = made(c.module), c.decisions["fusion"]
    block = entry_block(module)
    Outliner(module, block, group(block, decisions), decisions).run()


@_pass("fuse", "max_fusions")
def _fuse_attention(c: Compilation) -> None:
    """Fuse two matrix products and the row kernel between them."""
    outline_attentions(made(c.module), c.decisions["fusion"])


@_pass("fuse", "max_fusions")
def _merge_recurrences(c: Compilation) -> None:
    """Fuse independent recurrences horizontally."""
    merge_recurrences(made(c.module), c.decisions["fusion"])


@_pass("fuse", "max_fusions")
def _fuse_gemm(c: Compilation) -> None:
    """Fuse matrix products with their epilogues, and those that share a left-hand side, on targets that do so."""
    if c.backend.policy.has_gemm_epilogues:
        fuse_products(made(c.module), c.decisions["fusion"])


@_pass("fuse", "max_fusions")
def _share_kernels(c: Compilation) -> None:
    """Share one kernel among fusions that differ only in constants, passed as arguments, on targets that do so."""
    share_kernels(made(c.module), c.decisions["fusion"])


@_pass("fuse", "max_fusions")
def _reserve_partials(c: Compilation) -> None:
    """Reserve scratch memory for kernels whose work on a result several blocks of threads share, on such targets."""
    reserve_partials(made(c.module), c.facts, c.decisions["fusion"])


@_pass("fuse")
def _remove_barriers(c: Compilation) -> None:
    """Remove the barriers, which are no longer needed."""
    remove_barriers(entry_block(made(c.module)))


# ---- plan -----------------------------------------------------------------------------------------------------------


@_pass("plan")
def _split_segments(c: Compilation) -> None:
    """Move ops that need data-dependent sizes after the ops that read these sizes."""
    split_segments(made(c.module))


@_pass("plan", "memory_limit")
def _limit_memory(c: Compilation) -> None:
    """Make variants of the program that compute values again, where the memory of a call is limited."""
    if c.options.memory_limit is not None:
        limit_memory(made(c.module), c.facts, c.options.memory_limit)


@_pass("plan", "reuse")
def _view_pieces(c: Compilation) -> None:
    """Read pieces of arrays where they lie, in products, on targets that do so."""
    view_pieces(made(c.module), c.decisions["reuse"])


@_pass("plan", "reuse")
def _read_panels(c: Compilation) -> None:
    """Have kernels look up rows of a matrix in its packed form, where products multiply by them."""
    read_panels(made(c.module), c.decisions["reuse"])


@_pass("plan", "reuse")
def _assign_buffers(c: Compilation) -> None:
    """Assign a buffer to every value, by liveness: a result, or a slice of the symbolic arena."""
    assign_buffers(made(c.module), c.facts, c.decisions["reuse"])


# ---- kernels, host --------------------------------------------------------------------------------------------------


@_pass("kernels", "deterministic")
def _build_kernels(c: Compilation) -> None:
    """Emit the kernels of fusions, and name the kernel of each call."""
    _require_solved(c)
    c.module = c.backend.build_kernels(made(c.module), c.facts)


@_pass("host")
def _build_host(c: Compilation) -> None:
    """Turn calls, loops and branches into a program of `disc_host`."""
    c.module = build_host(made(c.module), c.facts, c.signature, checks_of(c), c.backend.tile_of)


# ---- codegen --------------------------------------------------------------------------------------------------------


@_pass("codegen")
def _lower_host(c: Compilation) -> None:
    """Lower the host program to the LLVM dialect, and add micro-kernels; GPU kernels stay separate."""
    c.code = c.backend.lower_host(made(c.module), c.signature)


@_pass("codegen")
def _legalize_for_target(c: Compilation) -> None:
    """Split masked loads wider than a register, which LLVM miscompiles on targets without mask registers."""
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
    """Optimise and select instructions: an object file with the digest of its header, and PTX for GPUs."""
    note_passes(sum(c.timings.values()))
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


# ---- the page of passes ----------------------------------------------------------------------------------------------


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


__all__ = ["PASSES", "Pass", "passes_rows", "passes_table"]
