# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs as files: what the fuzzer writes about a failing program, and reads again once the defect is fixed.

The comments at the head give, for each argument, its range and the step of its elements; for each result, the most
that two correct answers differ; and the shapes of the arguments in each call.
"""

from __future__ import annotations

import re
from pathlib import Path

from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from tests.fuzz.case import Call, Case, random_elements
from tests.fuzz.program import CARRIED, Program, Value
from tests.fuzz.ranges import Range
from tests.run.op_check import refine

_ENCODING = re.compile(r", \[[^\[\]>]*\]>")


def describe(program: Program, seed: int) -> str:
    """A program with the comments that `load` reads."""
    arguments = program.arguments()
    lines = [f"seed: {seed}"]
    lines += [f"argument: {v.range.lo} {v.range.hi} {v.range.step}" for v in arguments]
    lines.append("errors: " + " ".join(f"{2 * v.range.error!r}" for v in program.results))
    for sizes in program.sizes:
        shapes = ["x".join(map(str, v.shape(sizes))) or "scalar" for v in arguments]
        lines.append(f"call: {' '.join(shapes)}")
    return "".join(f"// {line}\n" for line in lines) + program.text()


def load(path: Path) -> Case:
    """The case that a file describes."""
    text = path.read_text()
    fields: dict[str, list[str]] = {}
    for key, rest in re.findall(r"^// (\w+): ?(.*)$", text, re.MULTILINE):
        fields.setdefault(key, []).append(rest)
    dtypes = argument_dtypes(text)
    ranges = [_range(line) for line in fields.get("argument", [])]
    seed = int(fields["seed"][0])
    calls = []
    for number, line in enumerate(fields["call"]):
        shapes = [() if s == "scalar" else tuple(map(int, s.split("x"))) for s in line.split()]
        values = [
            Value(dtype, tuple(map(Expr.const, shape)), range_)
            for dtype, shape, range_ in zip(dtypes, shapes, ranges, strict=True)
        ]
        arrays = [random_elements(v, {}, [seed, number, i]) for i, v in enumerate(values)]
        static = refine(_ENCODING.sub(">", text), tuple((a.shape, a.dtype.name) for a in arrays))
        carried = "" if any(kind in text for kind in CARRIED) else static
        calls.append(Call({}, arrays, static, carried))
    return Case(text, [float(e) for e in fields["errors"][0].split()], calls, [], [], 3, 1)


def argument_dtypes(text: str) -> list[str]:
    """The element types of a program's arguments."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        block = module.body.operations[0].regions[0].blocks[0]
        return [str(ir.RankedTensorType(a.type).element_type) for a in block.arguments]


def _range(line: str) -> Range:
    lo, hi, step = line.split()
    return Range(float(lo), float(hi), None if step == "None" else int(step))
