# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules that the dialect's verifier refuses: a planned module with one thing changed, a row for each rule."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import pytest
from jax import export

from shlo_disc.driver.compiler import import_stage, run_pipeline
from shlo_disc.driver.stage_text import stage_text
from shlo_disc.options import Options
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.dialect.records import Malformed
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.verifier import verify_dialect


def _program(
    query: jax.Array, key: jax.Array, value: jax.Array, table: jax.Array, rows: jax.Array, updates: jax.Array
) -> tuple[jax.Array, ...]:
    weights = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", query, key))
    normalised = jax.nn.softmax(jax.nn.relu(table @ table.T) + 1.0)
    activated = jnp.tanh(updates @ table.T)
    return weights @ value, normalised, activated, table.at[rows].add(updates), jnp.fft.rfft(table)


@functools.cache
def printed(stage: str) -> str:
    """A module with most of the dialects, as a stage prints it for one level of processors."""
    scope = export.SymbolicScope(["mod(s, 4) == 2"])

    def spec(shape: str, dtype: type = jnp.float32) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), dtype)

    arguments = [*[spec("b, s, 16")] * 3, spec("s, 8"), spec("4", jnp.int32), spec("4, 8")]
    compilation = import_stage(export.export(jax.jit(_program))(*arguments), "cpu", Options(cpu="x86-64-v4"))
    run_pipeline(compilation, stage)
    return stage_text(compilation, stage)


def refusal(text: str) -> str:
    """The error for a module's text, "" where there is none."""
    with make_context(), ir.Location.unknown():
        try:
            module = ir.Module.parse(text)
            module.operation.verify()
            verify_dialect(module)
        except (ir.MLIRError, Malformed) as error:
            return str(error)
    return ""


CHANGES = {
    "stage": ('disc.stage = "plan"', 'disc.stage = "banana"', "there is no stage 'banana'"),
    "attribute": ('disc.stage = "plan"', 'disc.stage = "plan", disc.mood = "good"', "no attribute disc.mood"),
    "place of an attribute": ("func.func public @main(", "func.func private @f() attributes {disc.segment = 1}"
                              "\n  func.func public @main(", "disc.segment stands on func.call"),
    "flops": ("disc.flops = @", "disc.flops = @nowhere, disc.was = @", "nowhere, which is no symbol"),
    "size of an arena": ("disc.arenas = [@", 'disc.arenas = ["", @', "expected a size"),
    "no number": ('{divisor = 4 : i64, min = 2 : i64, name', '{divisor = 4 : i64, min = "hello", name',
                  "min: expected an i64"),
    "bounds": ('"disc.symbol"() {min = 1 : i64', '"disc.symbol"() {max = 0 : i64, min = 1 : i64', "is more than max"),
    "residue": ("residue = 2 : i64", "residue = 4 : i64", "no size is 4 modulo 4"),
    "entry of a symbol": ("residue = 2 : i64", "rest = 2 : i64", "there is no rest"),
    "segment of an argument": ("residue = 2 : i64", "residue = 2 : i64, segment = 1 : i64", "read from data"),
    "name of a symbol": ('name = "b"', 'name = "2*b"', "is no name of a symbol"),
    "same symbol": ('name = "b"', 'name = "s"', "two symbols have one name"),
    "undeclared symbol": ('name = "b"', 'name = "nowhere"', "names b, which is no symbol"),
    "relation": ('relation = "mod(s, 4) - 2 == 0"', 'relation = "s and t"', "no relation of sizes"),
    "size in a relation": ('relation = "mod(s, 4) - 2 == 0"', 'relation = "mod(t, 4) - 2 == 0"', "t, which is no"),
    "second signature": ('"disc.signature"()', '"disc.signature"() {name = "again"} : () -> ()\n  "disc.signature"()',
                         "there is another one"),
    "arguments of the signature": ("kept = array<i64: 0, 1, 2, 3, 4, 5>", "kept = array<i64: 0, 1, 2, 3, 4, 4>",
                                   "no different ones"),
    "count of arguments": ("kept = array<i64: 0, 1, 2, 3, 4, 5>", "kept = array<i64: 0, 1, 2, 3, 4>", "5 arguments"),
    "dtype of an argument": ('dtype = "i32", path = "args[4]"', 'dtype = "f32", path = "args[4]"', "its argument"),
    "sizes of a result": ('{dims = [@s, 5], dtype = "c64"', '{dims = [@s, 6], dtype = "c64"', "its result"),
    "field of a leaf": ('path = "args[4]"', 'pth = "args[4]"', "path is missing"),
    "fusion": ('#disc.fusion<"gemm", {}>', '"gemm"', "expected #disc.fusion"),
    "kind": ('#disc.fusion<"gemm", {}>', '#disc.fusion<"banana", {}>', "there is no kind 'banana'"),
    "entry of a kind": ('#disc.fusion<"gemm", {}>', '#disc.fusion<"gemm", {columns = 1 : i64}>', "there is no columns"),
    "no fusion": (' attributes {disc.fusion = #disc.fusion<"gemm", {}>}', "", "a private function and not both"),
    "columns": ("columns = 1 : i64", "columns = 7 : i64", "columns = 7 is none of"),
    "accumulators": ("accumulators = 0 : i64", "accumulators = 1 : i64", "accumulators = 1 is none of 1"),
    "sums": ("row = @s}", "row = @s, sums = 3 : i64}", "sums = 3 is none of 1"),
    "row": ("row = @s}", "row = @t}", "t, which is no symbol"),
    "updates": ("updates = array<i64: 1>", "updates = array<i64: 1, 1>", "2 updates for 1 results"),
    "updated argument": ("updates = array<i64: 1>", "updates = array<i64: 7>", "updates = 7 is none of 3"),
    "type of the updated argument": ("updates = array<i64: 1>", "updates = array<i64: 0>", "starts from a"),
    "operand of a GEMM": ("lhs = 0 : i64, m", "lhs = 9 : i64, m", "lhs = 9 is none of"),
    "element of a GEMM": ('element = "f32", k', 'element = "f64", k', "a GEMM of f64 has elements of f32"),
    "size of a GEMM": ("size = 8 : i64", "size = 9 : i64", "a GEMM goes through"),
    "row kernel": ("rows = @row_reduce", "rows = @dot_0, was = @row_reduce", "there is no was"),
    "no row kernel": ("array<i64: -1>, rows = @row_reduce_1", "array<i64: -1>, rows = @dot_0", "no row kernel"),
    "operands of a row kernel": ("row_operands = array<i64: -1>", "row_operands = array<i64: 0>", "no operands of"),
    "query": ("query = {number = 0 : i64}", "query = {number = 8 : i64}", "query = 8 is none of 3"),
    "problem": ("query_depth = 1 : i64, ", "", "query_depth is missing"),
    "library": ("operands = [f32], parameters", "operands = [], parameters", "another number of operands"),
    "parameters": ("rank = 1 : i64", 'rank = "one"', "rank: expected an i64"),
    "buffers": ('[#disc.buffer<"result", {index = 1 : i64}>]', "[]", "0 buffers are given for 1 results"),
    "memory": ('#disc.buffer<"result", {index = 1 : i64}>', '#disc.buffer<"disk", {index = 1 : i64}>', "space 'disk'"),
    "result": ("{index = 1 : i64}", "{index = -1 : i64}", "the program has no result -1"),
    "arena": ("offset = 0 : i64}", "offset = 0 : i64, segment = 1 : i64}", "there is no arena 1"),
    "offset": ("offset = 0 : i64}", "offset = @t}", "t, which is no symbol"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_malformed_module(name: str) -> None:
    """A planned module with one thing changed, wherever it stands first."""
    check_change("plan", *CHANGES[name])


def check_change(stage: str, old: str, new: str, message: str) -> None:
    """A module with one thing changed is refused."""
    assert old in printed(stage), old
    assert message in refusal(printed(stage).replace(old, new, 1))


@pytest.mark.parametrize("stage", ["plan", "kernels", "host"])
def test_what_a_stage_prints_is_right(stage: str) -> None:
    """As it is, nothing is wrong with it."""
    assert refusal(printed(stage)) == ""


OPS = {
    "sizes of a shape": ('%0 = "disc.shape"() {dims = [4]} : () -> tensor<2xi64>', "1 sizes for 2 elements"),
    "type of a shape": ('%0 = "disc.shape"() {dims = [4]} : () -> tensor<1xf32>', "no integers of rank 0 or 1"),
    "entry of a shape": ('%0 = "disc.shape"() {dims = ["b"]} : () -> tensor<1xi64>', "expected a size"),
    "count of symbols": ('"disc.bind"(%n) {symbols = [@a]} : (tensor<2xi32>) -> ()', "1 symbols the values of 2"),
    "expression": ('"disc.bind"(%n) {symbols = [@a, @"2*b"]} : (tensor<2xi32>) -> ()', "the values of 2 elements"),
    "source": ('"disc.bind"(%x) {symbols = [@a]} : (tensor<4xf32>) -> ()', "no integers of known number"),
    "mask": ('%0 = "disc.nonzero"(%x) : (tensor<4xf32>) -> tensor<?xi32, [@a]>', "no vector of booleans"),
    "positions": ('%0 = "disc.nonzero"(%m) : (tensor<4xi1>) -> tensor<?xf32, [@a]>', "no vector of integers"),
    "derived size": ('"disc.dim"() {name = "b + b"} : () -> ()', "normal form, which is 2*b"),
}
OPS |= {
    f"groups {sizes}": (
        "%0 = stablehlo.convolution(%c, %c) dim_numbers = [b, f]x[i, o]->[b, f], window = {} "
        f"{{disc.groups = {sizes}, batch_group_count = 1 : i64, feature_group_count = 1 : i64}} "
        ": (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>",
        message,
    )
    for sizes, message in {
        "[@a]": "disc.groups has 1 sizes",
        "[@z, 1]": "names z, which is no symbol",
        '["a", 1]': "expected a size",
        "3": "expected numbers of groups",
    }.items()
}


@pytest.mark.parametrize("name", OPS)
def test_malformed_op(name: str) -> None:
    """An op of ours by itself, which MLIR's verifier checks."""
    op, message = OPS[name]
    arguments = "%x: tensor<4xf32>, %n: tensor<2xi32>, %m: tensor<4xi1>, %c: tensor<2x2xf32>"
    symbols = "\n".join(f'"disc.symbol"() {{data, name = "{s}"}} : () -> ()' for s in "ab")
    body = "" if op.startswith('"disc.dim') else op
    assert message in refusal(
        f"{symbols}\n{op if not body else ''}\nfunc.func @main({arguments}) {{\n{body}\nreturn\n}}"
    )


TYPES = {
    "rank of an encoding": ("[@a]", "has 1 sizes for 2 dimensions"),
    "number in an encoding": ("[@a, 9]", "says 9 of dimension 1"),
    "number for a symbol": ("[4, 8]", "says 4 of dimension 0"),
    "symbol for a number": ("[@a, @a]", "says a of dimension 1"),
    "no array": ('"a"', "expected an array of sizes"),
    "no size": ('["a", 8]', "expected a size"),
    "no expression": ('[@"a +", 8]', "expected a size"),
    "undeclared symbol": ("[@b, 8]", "names b, which is no symbol; there are a"),
}


@pytest.mark.parametrize("name", TYPES)
def test_malformed_type(name: str) -> None:
    """A tensor type whose encoding does not say what it has to."""
    encoding, message = TYPES[name]
    symbol = '"disc.symbol"() {name = "a"} : () -> ()'
    assert message in refusal(f"{symbol}\nfunc.func @main(%x: tensor<?x8xf32, {encoding}>) {{ return }}")


def test_size_without_a_symbol() -> None:
    """An annotated module has none."""
    text = 'module attributes {disc.stage = "annotate"} { func.func @main(%x: tensor<?xf32>) { return } }'
    assert "has a size without a symbol" in refusal(text)
