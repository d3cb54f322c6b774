# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The decisions of `fuse` and what each of them saves, and the kernels that come of them with their work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from shlo_disc.driver.compilation import Compilation, made
from shlo_disc.driver.compiler import run_pipeline
from shlo_disc.report.page.facts import before_fusion
from shlo_disc.report.work import Work, work_of
from shlo_disc.shape_dialect.dialect.fusion import kind_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.utils.regions import callee_of, entry_block
from shlo_disc.transforms.cost import Choice
from shlo_disc.transforms.decisions import recording


@dataclass(frozen=True)
class FusionReport:
    """The work of `fuse` on a program.

    decisions: the pattern of each decision, with what it chose between; None for one that is always right.
    kernels: the kind and the work of each kernel, in the order of their calls. Equal ones are counted.
    """

    decisions: tuple[tuple[str, Choice | None, int], ...]
    kernels: tuple[tuple[str, Work, int], ...]

    def to_json(self) -> dict[str, Any]:
        """Everything as numbers, texts, lists and dicts."""
        choices = [
            {
                "pattern": pattern,
                "times": times,
                "gain": None if choice is None else choice.gain,
                "without": None if choice is None else choice.without._asdict(),
                "chosen": None if choice is None else choice.chosen._asdict(),
            }
            for pattern, choice, times in self.decisions
        ]
        kernels = [
            {
                "kind": kind,
                "times": times,
                "ops": work.ops,
                "bytes_read": str(work.bytes_read),
                "bytes_written": str(work.bytes_written),
                "flops": str(work.flops),
            }
            for kind, work, times in self.kernels
        ]
        return {"decisions": choices, "kernels": kernels}

    def __str__(self) -> str:
        lines = ["decisions"]
        for pattern, choice, times in self.decisions:
            lines.append(f"  {times} x {pattern}" + ("" if choice is None else f": {choice}"))
        lines.append("kernels")
        for kind, work, times in self.kernels:
            moved = f"reads {work.bytes_read} bytes, writes {work.bytes_written}, {work.flops} flops"
            lines.append(f"  {times} x {kind} ({work.ops or 'a copy'}): {moved}")
        return "\n".join(lines)


def fusion_report(c: Compilation) -> FusionReport:
    """The report of a program that has been through `simplify`; it is fused once more for that."""
    again = before_fusion(c)
    with recording():
        run_pipeline(again, "fuse")
    module = made(again.module)
    functions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
    decisions = Counter((decision.pattern, decision.choice) for decision in again.decisions["fusion"].made)
    kernels = Counter((kind_of(kernel), work_of(kernel, functions)) for kernel in _called(module, functions))
    return FusionReport(
        tuple((pattern, choice, times) for (pattern, choice), times in decisions.items()),
        tuple((kind, work, times) for (kind, work), times in kernels.items()),
    )


def _called(module: ir.Module, functions: dict[str, func.FuncOp]) -> Iterator[func.FuncOp]:
    """The kernels that a program calls, each as often as it stands there."""
    for block in all_blocks(entry_block(module)):
        yield from (functions[callee_of(op)] for op in block.operations if op.operation.name == "func.call")
