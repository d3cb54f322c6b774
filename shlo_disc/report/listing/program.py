# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The listing of a program that has been compiled here, with its IR and the user's lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shlo_disc.driver.compilation import Compilation
from shlo_disc.driver.stage_text import stage_text
from shlo_disc.errors import OptionError
from shlo_disc.lowering.kernel_module import kernel_module_of
from shlo_disc.lowering.launches import Launched, launches_in
from shlo_disc.report.function_texts import functions_in
from shlo_disc.report.listing.listing import HOST, Kernel, Listing, Source, by_kernel
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.utils.locations import source_line
from shlo_disc.shape_dialect.utils.regions import callee_of

KERNELS = "kernels"


def program_listing(c: Compilation, stages: Sequence[str] = (), file: str = "") -> Listing:
    """The code of a compilation that has gone through all stages, at `stages`: "kernels" (MLIR) and the target's views.

    By default the kernels' MLIR, and assembly or PTX. file: where the program is, if it is text. Raises OptionError for
    other stages.
    """
    stages = stages or (KERNELS, "ptx" if "ptx" in c.backend.views else "asm")
    wrong = [stage for stage in stages if stage != KERNELS and stage not in c.backend.views]
    if wrong:
        raise OptionError(f"no code at {wrong[0]!r}; there is {', '.join([KERNELS, *c.backend.views])}")
    code = {stage: _functions(c, stage) for stage in stages}
    launches = launches_in(c.snapshots["host"])
    ran = list(dict.fromkeys(name for launch in launches for name in launch.functions))
    kernels = [_kernel(name, texts, launches, c, file) for name, texts in by_kernel(code, ran).items()]
    return Listing(c.signature.name, c.target, tuple(kernels))


def _functions(c: Compilation, stage: str) -> dict[str, str]:
    if stage != KERNELS:
        return functions_in(stage_text(c, stage), stage)
    module = kernel_module_of(c.snapshots[KERNELS].opview)
    symbols = [op.operation for block in module.regions[0].blocks for op in block.operations]
    return {ir.StringAttr(op.attributes["sym_name"]).value: str(op) for op in symbols if "sym_name" in op.attributes}


def _kernel(name: str, code: Mapping[str, str], launches: Sequence[Launched], c: Compilation, file: str) -> Kernel:
    own = [launch for launch in launches if name in launch.functions]
    module = c.snapshots["plan"].opview
    fusions = dict.fromkeys(launch.fusion for launch in own if launch.fusion)
    lines = dict.fromkeys(line for fusion in fusions for line in source_lines(module, fusion))
    guards = dict.fromkeys(guard for launch in own for guard in launch.guards)
    return Kernel(
        name,
        ", ".join(dict.fromkeys(launch.kind for launch in own)) or HOST,
        len(own) if own else None,
        tuple(Source.at(line, file) for line in lines),
        tuple(map(str, guards)),
        code,
    )


def source_lines(module: ir.Module, fusion: str) -> list[str]:
    """The user's lines that a fusion of a planned module came from, those of the fusions in it as well."""
    functions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
    return list(dict.fromkeys(_lines_in(fusion, functions)))


def _lines_in(name: str, functions: Mapping[str, func.FuncOp]) -> Iterator[str]:
    if name not in functions:
        return
    for block in all_blocks(functions[name].entry_block):
        for op in block.operations:
            if op.operation.name == "func.call":
                yield from _lines_in(callee_of(op), functions)
            elif op.operation.name != "func.return" and (line := source_line(op.location)) != "unknown":
                yield line


__all__ = ["program_listing", "source_lines"]
