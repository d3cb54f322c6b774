# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's ops that take graphs: `cond`, `while_loop`, `scan` and `map`, as branches and loops of StableHLO."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.build import shape_tensor
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .graph import Graph, Spec
from .relations import truth
from .shapes import join

_ZERO, _ONE = Expr.const(0), Expr.const(1)

Run = Callable[[Any, Sequence[Any]], list[Any]]
"""Translates a graph at the insertion point, its placeholders being these values; returns what it returns."""


def _region(op: ir.Operation, number: int, types: Sequence[ir.Type], build: Callable[..., Sequence[ir.Value]]) -> None:
    block = op.regions[number].blocks.append(*types, arg_locs=[ir.Location.unknown()] * len(types))
    with ir.InsertionPoint(block):
        ir.Operation.create("stablehlo.return", [], list(build(*block.arguments)))


def _tensors(t: Graph, values: Sequence[Any]) -> list[ir.Value]:
    if not all(isinstance(v, ir.Value) for v in values):
        raise t.refuse("what a loop carries, or a branch returns, has to be tensors", "make numbers tensors")
    return list(values)


def _as(t: Graph, value: ir.Value, type_: ir.Type, where: str) -> ir.Value:
    """A value that has to have a type."""
    if value.type != type_:
        raise t.refuse(f"{where} has the type {value.type}, and not {type_}", "give it one shape and dtype")
    return value


def cond(t: Graph, run: Run, predicate: Any, yes: Any, no: Any, operands: Sequence[Any]) -> tuple[ir.Value, ...]:
    """One graph or another."""
    node, types = t.node, _types(t, t.outs)
    if isinstance(predicate, torch.SymBool):
        flag = truth(t, predicate.node.expr)
    else:
        flag = t.number(predicate, torch.bool)
    op = ir.Operation.create("stablehlo.if", types, [flag], regions=2)
    for number, graph in enumerate((yes, no)):

        def branch(graph: Any = graph) -> list[ir.Value]:
            found = _tensors(t, run(graph, operands))
            return [_as(t, v, type_, "a branch's result") for v, type_ in zip(found, types, strict=True)]

        _region(op, number, (), branch)
    t.node = node
    return tuple(op.results)


def _types(t: Graph, specs: Sequence[Spec]) -> list[ir.Type]:
    return [tensor_type(s.dims, t.element(s.dtype)) for s in specs]


def while_loop(
    t: Graph, run: Run, condition: Any, body: Any, carried: Sequence[Any], others: Sequence[Any]
) -> tuple[ir.Value, ...]:
    """As long as a graph says so."""
    return tuple(_loop(t, run, condition, body, _tensors(t, carried), others))


def _loop(
    t: Graph, run: Run, condition: Any, body: Any, carried: Sequence[ir.Value], others: Sequence[Any]
) -> list[ir.Value]:
    types = [v.type for v in carried]
    op = ir.Operation.create("stablehlo.while", types, list(carried), regions=2)
    t.loops += 1
    _region(op, 0, types, lambda *values: [t.number(run(condition, [*values, *others])[0], torch.bool)])

    def step(*values: ir.Value) -> list[ir.Value]:
        found = _tensors(t, run(body, [*values, *others]))
        return [_as(t, v, type_, "what a loop carries") for v, type_ in zip(found, types, strict=True)]

    _region(op, 1, types, step)
    t.loops -= 1
    return list(op.results)


def scan(
    t: Graph, run: Run, combine: Any, start: Sequence[Any], sequences: Sequence[Any], others: Sequence[Any] = ()
) -> tuple[ir.Value, ...]:
    """A graph at each index of the first axis of sequences; returns what it carries, and its other results stacked."""
    carried, rows = _tensors(t, start), _tensors(t, sequences)
    if not rows:
        raise t.refuse("a scan without sequences has no translation", "use while_loop")
    buffers = [t.constant(0, s.dtype, s.dims) for s in t.outs[len(carried) :]]
    count = dims_of(rows[0])[0]
    first = t.constant(0, torch.int32)
    operands = [first, *carried, *buffers]
    types = [v.type for v in operands]
    op = ir.Operation.create("stablehlo.while", types, operands, regions=2)
    t.loops += 1
    _region(op, 0, types, lambda index, *_: [t.compare("LT", index, t.size(count, torch.int32))])

    def step(index: ir.Value, *values: ir.Value) -> list[ir.Value]:
        elements = [_row(t, row, index) for row in rows]
        found = _tensors(t, run(combine, [*values[: len(carried)], *elements, *others]))
        kept = [_as(t, v, c.type, "what a scan carries") for v, c in zip(found, carried, strict=False)]
        written = [
            _with_row(t, buffer, value, index)
            for buffer, value in zip(values[len(carried) :], found[len(carried) :], strict=True)
        ]
        return [build.add(index, t.constant(1, torch.int32)), *kept, *written]

    _region(op, 1, types, step)
    t.loops -= 1
    return tuple(op.results)[1:]


def mapped(t: Graph, run: Run, body: Any, sequences: Sequence[Any], others: Sequence[Any] = ()) -> tuple[ir.Value, ...]:
    """A graph at each index of the first axis of sequences."""
    return scan(t, run, body, [], sequences, others)


def _starts(t: Graph, index: ir.Value, rank: int) -> list[ir.Value]:
    return [index, *[t.constant(0, torch.int32)] * (rank - 1)]


def _row(t: Graph, x: ir.Value, index: ir.Value) -> ir.Value:
    """The elements at one index of the first axis."""
    source = dims_of(x)
    dims = (_ONE, *source[1:])
    starts = [t.reshape(s, (_ONE,)) for s in _starts(t, index, len(source))]
    place = starts[0] if len(starts) == 1 else join(t, starts, 0, (Expr.const(len(starts)),))
    sizes = t.convert(shape_tensor(dims), torch.int32)
    low = t.constant(0, torch.int32, dims_of(place))
    high = build.subtract(t.convert(shape_tensor(source), torch.int32), sizes)
    place = t.pointwise("clamp", low, place, high)
    steps = t.constant(1, torch.int32, dims_of(place))
    found = t.op("real_dynamic_slice", [x, place, build.add(place, sizes), steps], dims, element_type_of(x))
    return t.reshape(found, source[1:])


def _with_row(t: Graph, x: ir.Value, value: ir.Value, index: ir.Value) -> ir.Value:
    """A tensor whose elements at one index of the first axis are others."""
    dims = dims_of(x)
    row = t.reshape(value, (_ONE, *dims[1:]))
    return t.op("dynamic_update_slice", [x, row, *_starts(t, index, len(dims))], dims, element_type_of(x))


HIGHER: dict[str, Callable[..., tuple[ir.Value, ...]]] = {
    "cond": cond, "map_impl": mapped, "scan": scan, "while_loop": while_loop,
}  # fmt: skip
"""By the names of PyTorch's higher-order ops."""
