# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The symbolic arena: at any sizes, buffers that are alive together do not overlap and lie inside the arena."""

from __future__ import annotations

import importlib
import random
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import export, lax

from shlo_disc.driver.compiler import import_stage, run_pipeline
from shlo_disc.options import Options
from shlo_disc.shape_dialect.dialect.buffers import ArenaBuffer, Buffer, ResultBuffer, arenas_of, buffers_of
from shlo_disc.shape_dialect.dialect.types import bytes_of, dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import CONTROL
from shlo_disc.shape_dialect.ops.nested_blocks import nested_blocks
from shlo_disc.shape_dialect.ops.views import root
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import entry_block, terminator_of

MODELS = ["bert", "gpt2", "vit", "mlp_mixer", "transformer_train"]


def planned(program: Any) -> ir.Module:
    compilation = run_pipeline(import_stage(program, "cpu", Options(), None, None, ()), last="plan")
    module: ir.Module = compilation.module
    return module


def arena_buffers(module: ir.Module) -> list[tuple[Expr, Expr, int, int]]:
    """(offset, bytes, first call, last call) of every buffer in the arena."""
    calls = [op for op in entry_block(module).operations if op.operation.name == "func.call"]
    first: dict[ir.Value, int] = {}
    last: dict[ir.Value, int] = {}
    offsets: dict[ir.Value, Expr] = {}
    for position, call in enumerate(calls):
        for value in call.operands:
            last[root(value)] = position
        for result, buffer in zip(call.results, buffers_of(call), strict=True):
            if isinstance(buffer, ArenaBuffer):
                offsets[result] = buffer.offset
                first[result] = position
    return [
        (offset, product(dims_of(v)) * bytes_of(element_type_of(v)), first[v], last.get(v, first[v]))
        for v, offset in offsets.items()
    ]


def check_no_overlap(module: ir.Module, sizes: dict[str, int]) -> int:
    total = arenas_of(module.operation)[0].evaluate(sizes)
    placed = [(o.evaluate(sizes), b.evaluate(sizes), f, t) for o, b, f, t in arena_buffers(module)]
    for index, (offset, size, start, end) in enumerate(placed):
        assert offset % 64 == 0
        assert offset + size <= total
        for other_offset, other_size, other_start, other_end in placed[:index]:
            # A result may take over the buffer of an input that dies in the same call.
            alive_together = start < other_end and other_start < end
            apart = offset + size <= other_offset or other_offset + other_size <= offset
            assert apart or not alive_together
    return len(placed)


@pytest.mark.parametrize("name", MODELS)
def test_live_buffers_never_overlap(name: str) -> None:
    model = importlib.import_module(f"examples.{name}")
    module = planned(model.export(model.SMALL))
    generator = random.Random(name)
    names = [n.strip() for n in model.DIMS.split(",")]
    for _ in range(8):
        sizes = {n: generator.choice([1, 2, 3, 7, 13, 16, 17, 24]) for n in names}
        assert check_no_overlap(module, sizes) > 3


Interval = tuple[str, int, int]


class Machine:
    """Runs a plan on tokens instead of numbers: every value is where its reader looks for it, or the plan is wrong."""

    def __init__(self, module: ir.Module, sizes: dict[str, int], trips: int):
        self.sizes = sizes
        self.trips = trips
        self.choices = trips
        self.arena = arenas_of(module.operation)[0].evaluate(sizes)
        self.memory: dict[Interval, object] = {}
        self.places: dict[ir.Value, Interval] = {}
        self.tokens: dict[ir.Value, object] = {}

    def place(self, buffer: Buffer, value: ir.Value) -> Interval:
        size = (product(dims_of(value)) * bytes_of(element_type_of(value))).evaluate(self.sizes)
        if isinstance(buffer, ResultBuffer):
            return f"result {buffer.index}", 0, size
        start = buffer.offset.evaluate(self.sizes)
        assert start % 64 == 0
        assert start + size <= self.arena
        return "arena", start, start + size

    def write(self, place: Interval, token: object) -> None:
        space, start, end = place
        self.memory = {
            (s, a, b): t for (s, a, b), t in self.memory.items() if s != space or b <= start or end <= a or a == b
        }
        if start < end:
            self.memory[place] = token

    def read(self, value: ir.Value) -> object:
        source = root(value)
        token = self.tokens.get(source)
        if token is not None:
            _, start, end = self.places[source]
            assert start == end or self.memory.get(self.places[source]) is token, f"{source} has been overwritten"
        return token or source

    def define(self, value: ir.Value, place: Interval, token: object | None = None) -> None:
        self.places[value] = place
        self.tokens[value] = token or object()
        self.write(place, self.tokens[value])

    def deliver(self, values: Any, targets: Any, places: list[Interval]) -> None:
        """`values` are from here on at `places`, as `targets`."""
        for value, target, place in zip(values, targets, places, strict=True):
            token = self.read(value)
            if self.places.get(root(value)) != place:
                self.write(place, token)
            self.places[target], self.tokens[target] = place, token

    def run(self, block: ir.Block) -> None:
        for op in block.operations:
            if op.operation.name not in CONTROL | {"func.call"}:
                continue
            for value in op.operands:
                self.read(value)
            places = [self.place(b, v) for b, v in zip(buffers_of(op), op.results, strict=True)]
            if op.operation.name == "func.call":
                for result, place in zip(op.results, places, strict=True):
                    self.define(result, place)
            elif op.operation.name == "stablehlo.while":
                self.loop(op, places)
            else:
                self.choices += 1
                branch = nested_blocks(op)[self.choices % len(op.regions)]
                self.run(branch)
                self.deliver(terminator_of(branch).operands, op.results, places)

    def loop(self, op: ir.OpView, places: list[Interval]) -> None:
        condition, body = nested_blocks(op)
        self.deliver(op.operands, op.results, places)
        for trip in range(self.trips + 1):
            for arguments in (condition.arguments, body.arguments):
                for argument, result in zip(arguments, op.results, strict=True):
                    self.places[argument], self.tokens[argument] = self.places[result], self.tokens[result]
            self.run(condition)
            self.read(terminator_of(condition).operands[0])
            if trip < self.trips:
                self.run(body)
                self.deliver(terminator_of(body).operands, op.results, places)


LOOPS = {
    "swap": lambda x, y, k: lax.fori_loop(0, k, lambda i, c: (c[1], c[0]), (x, y)),
    "rotate": lambda x, y, k: lax.fori_loop(0, k, lambda i, c: (c[1], c[2], c[0] * c[1]), (x, y, x + y)),
    "two readers": lambda x, y, k: lax.fori_loop(0, k, lambda i, c: (c[0] + c[1][::-1], c[1] - c[0][::-1]), (x, y)),
    "outer value": lambda x, y, k: lax.fori_loop(0, k, lambda i, c: (c[1] * 2, y), (x, x)),
    "nested": lambda x, y, k: lax.fori_loop(
        0, k, lambda i, c: lax.fori_loop(0, i, lambda j, d: (d[1][::-1], d[0] + jnp.dot(d[1], d[0])), c), (x + y, y)
    ),
    "nested, used later": lambda x, y, k: lax.fori_loop(
        0, k, lambda i, c: (c[1], lax.fori_loop(0, i, lambda j, d: d[::-1] + c[0], c[1]) * c[0]), (x + y, y)
    ),
    "branches": lambda x, y, k: lax.fori_loop(
        0, k, lambda i, c: lax.cond(i > 2, lambda d: (d[1], d[0][::-1] + y), lambda d: d, c), (x, x * y)
    ),
    "one branch keeps": lambda x, y, k: lax.fori_loop(
        0, k, lambda i, c: lax.cond(i > 2, lambda d: jnp.tanh(d[::-1] + d) * y, lambda d: d, c), x
    ),
    "branches swap": lambda x, y, k: lax.fori_loop(
        0, k, lambda i, c: lax.cond(i > 2, lambda d: (d[1], d[0]), lambda d: (d[0] * 2, d[1]), c), (x, y)
    ),
    # fmt: off
    "branches in branches": lambda x, y, k: lax.fori_loop(
        0,
        k,
        lambda i, c: lax.switch(
            i,
            [
                lambda d: d,
                lambda d: lax.cond(i > 5, lambda e: jnp.flip(e) + e, lambda e: e, d),
                lambda d: lax.fori_loop(0, i, lambda j, e: e * y, d),
            ],
            c,
        ),
        x,
    ),
    # fmt: on
    "read and written": lambda x, y, k: lax.fori_loop(0, k, lambda i, c: c.at[i].set(c[i + 1] * 2), x),
    "written after it is read": lambda x, y, k: lax.fori_loop(
        0, k, lambda i, c: (c[0].at[i].set(c[1]), jnp.sum(c[0] * y)), (x, jnp.float32(0))
    ),
    "scan": lambda x, y, k: lax.scan(lambda c, _: (jnp.tanh(c * y), (c, c * k)), x, None, length=4),
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("trips", [0, 1, 2, 3])
def test_loops_and_branches_find_their_values(name: str, trips: int) -> None:
    (n,) = export.symbolic_shape("n")
    vector, scalar = jax.ShapeDtypeStruct((n,), jnp.float32), jax.ShapeDtypeStruct((), jnp.int32)
    module = planned(export.export(jax.jit(LOOPS[name]))(vector, vector, scalar))
    block = entry_block(module)
    for size in (1, 16, 40):
        machine = Machine(module, {"n": size}, trips)
        machine.run(block)
        for index, value in enumerate(terminator_of(block).operands):
            machine.read(value)
            assert machine.places[root(value)][0] == f"result {index}"


def test_a_slot_of_incomparable_tenants_is_their_maximum() -> None:
    def f(x: jax.Array, y: jax.Array) -> jax.Array:
        a = jnp.sum(jnp.dot(x, x.T), axis=0)
        b = jnp.sum(jnp.dot(y, y.T), axis=0)
        return jnp.sum(a) + jnp.sum(b)

    specs = [jax.ShapeDtypeStruct(export.symbolic_shape(d, scope=scope), jnp.float32) for scope in
             [export.SymbolicScope()] for d in ("a, 4", "b, 4")]  # fmt: skip
    module = planned(export.export(jax.jit(f))(*specs))
    for a, b in [(1, 1), (3, 50), (50, 3), (17, 17)]:
        check_no_overlap(module, {"a": a, "b": b})


def test_a_chain_of_equal_buffers_needs_two_slots() -> None:
    def f(x: jax.Array, w: jax.Array) -> jax.Array:
        for _ in range(6):
            x = jnp.dot(x, w)
        return x

    (b,) = export.symbolic_shape("b")
    specs = jax.ShapeDtypeStruct((b, 16), jnp.float32), jax.ShapeDtypeStruct((16, 16), jnp.float32)
    module = planned(export.export(jax.jit(f))(*specs))
    assert [str(size) for size in arenas_of(module.operation)] == ["128*b"]
