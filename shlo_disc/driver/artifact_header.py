# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled program as an artifact: its header says what the runtime needs to check and run calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from shlo_disc.driver.call_checks import data_message, size_message
from shlo_disc.driver.compilation import Compilation, made
from shlo_disc.lowering.host.segments import function_name
from shlo_disc.lowering.host_llvm.program import LoweredProgram
from shlo_disc.lowering.launches import launches_in
from shlo_disc.options import CPU
from shlo_disc.runtime import Artifact
from shlo_disc.shape_dialect.dialect.host import Check
from shlo_disc.shape_dialect.dialect.names import FLOPS
from shlo_disc.shape_dialect.dialect.signature import declared_signature
from shlo_disc.shape_dialect.dialect.symbol_sources import SymbolSource, steps_of
from shlo_disc.shape_dialect.dialect.types import dim_of_attr
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Declaration, Relation


def artifact_header(c: Compilation) -> dict[str, Any]:
    """The artifact's header: what the runtime needs to check and run calls."""
    said = declared_signature(made(c.module))
    trees = {"in": said.in_tree, "out": said.out_tree}
    pytree = {key: json.loads(text) for key, text in trees.items() if text}
    if said.parameters:
        pytree["names"] = list(said.parameters)
    if said.parameters and "in" not in pytree:
        pytree["weights"] = said.weights
    return {**_program_header(c), "pytree": pytree}


def _program_header(c: Compilation) -> dict[str, Any]:
    lowered, known = made(c.code), c.facts.symbols
    offset = 0
    constants = []
    for data in lowered.constants:
        constants.append({"offset": offset, "bytes": len(data)})
        offset += -(-len(data) // 64) * 64
    first, *later = (_segment_rows(c, number) for number in range(len(lowered.segments)))
    names = [source.name for source in c.signature.symbols]
    symbols = [_symbol_row(s, known[s.name], names) for s in c.signature.symbols]
    header = {
        "format": _format(c, symbols),
        "name": c.signature.name,
        "target": _target_row(c),
        "symbols": symbols,
        "arguments": [_tensor_row(a) for a in c.signature.arguments],
        "results": [_tensor_row(r) for r in c.signature.results],
        "constants": constants,
        "flops": str(dim_of_attr(made(c.module).operation.attributes[FLOPS])),
        "replicas": c.options.replicas,
        **lowered.header,
        **first,
    }
    return {**header, "segments": later} if later else header


def _format(c: Compilation, symbols: list[dict[str, Any]]) -> int:
    """The oldest format that has what the program needs."""
    if any(launched.kind == "attention_gradient" for launched in launches_in(made(c.module).operation)):
        return 3
    return 1 if all("less" not in row["solve"] for row in symbols) else 2


def _target_row(c: Compilation) -> dict[str, Any]:
    """The processor that host functions, and kernels for CPUs, are for; the name of a target that is a device."""
    row: dict[str, Any] = {"triple": c.cpu.triple, "features": list(c.cpu.features)}
    if c.options.cpu != "host":
        row["cpu"] = c.options.cpu  # by which it is asked for where there are several
    return row if c.target == CPU else {**row, "name": c.target}


def _segment_rows(c: Compilation, number: int) -> dict[str, Any]:
    """The header's entries on a segment: on the first one at its top level, on the others in "segments"."""
    segment = made(c.code).segments[number]
    overflow = "A size that this call needs does not fit in 64 bits, or divides by zero."
    message, operands = data_message(c, overflow) if number else size_message(c, overflow)
    checks = [*segment.checks, Check("overflow", Relation.eq(0, 0), message, operands)]
    rows = {
        "checks": [_check_row(k, segment.words.place) for k in checks],
        "plan_words": segment.words.count,
        "entry": {"plan": function_name("disc_plan", number), "run": function_name("disc_run", number)},
    }
    if len(made(c.code).segments) == 1:
        return rows
    read = [{"name": name, "constraints": _constraints_on(c, name)} for name in segment.symbols]
    return {**rows, "results_written": segment.results, "symbols_read": read}


def _check_row(check: Check, place: Callable[[Expr], int]) -> dict[str, Any]:
    """A check, whose relation is only shown."""
    row = {"kind": check.kind, "message": check.message, "operands": [place(o) for o in check.operands]}
    return row if check.kind == "overflow" else row | {"relation": str(check.relation.balanced())}


def _constraints_on(c: Compilation, name: str) -> list[str]:
    return [str(k.relation) for k in c.constraints if name in k.relation.symbols()]


def artifact_of(c: Compilation) -> Artifact:
    """The finished program as data."""
    return Artifact(c.header, {**c.sections, "consts": _constants_block(made(c.code)), "portable": b""})


def _constants_block(lowered: LoweredProgram) -> bytes:
    """All constants, each at a multiple of 64 bytes."""
    return b"".join(data + bytes(-len(data) % 64) for data in lowered.constants)


def _symbol_row(source: SymbolSource, declaration: Declaration, names: Sequence[str]) -> dict[str, Any]:
    """The solution of a symbol. `less`, which releases before format 2 do not know, is there where it is not 0."""
    solve: dict[str, Any] = {
        "argument": source.argument,
        "dim": source.dim,
        "scale": source.scale,
        "offset": source.offset,
    }
    if source.less.terms:
        solve["less"] = [list(step) for step in steps_of(source.less, names)]
    return {"name": source.name, "min": declaration.min, "max": declaration.max, "solve": solve}


def _tensor_row(spec: Any) -> dict[str, Any]:
    shape = [str(d) if d.constant is None else d.constant for d in spec.dims]
    row = {"path": spec.path, "dtype": spec.dtype, "shape": shape, "donated": spec.donated}
    stated = {"memory": spec.memory, "layout": list(spec.layout), "key": spec.key, "axes": list(spec.axes)}
    return row | {key: value for key, value in stated.items() if value}
