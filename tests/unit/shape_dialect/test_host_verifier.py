# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels and host programs that the verifier refuses: a module with one thing changed, a row for each rule."""

from __future__ import annotations

import pytest

from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from tests.unit.shape_dialect.test_dialect_verifier import check_change, refusal

KERNELS = {
    "name of a kernel": ("kernel = @epilogue_tanh", "kernel = @nowhere", "@nowhere is no kernel of the module"),
    "size of a kernel": (
        'kernel = @epilogue_tanh, sizes = [@"4*s", @s]',
        "kernel = @epilogue_tanh, sizes = [@t, @s]",
        "names t, which is no symbol",
    ),
    "no choice": ("disc.kernel = #disc.kernel<{use =", "disc.kernel = #disc.kernel<{us =", "use is missing"),
    "zeros in no result": (
        "disc.kernel = #disc.kernel<{use =",
        "disc.kernel = #disc.kernel<{clears = array<i64: 7>, use =",
        "clears = [7] are none of ",
    ),
    "dynamic sizes": (
        "disc.dynamic_dims = array<i64: 0, 0, 0, 0>",
        "disc.dynamic_dims = array<i64: 0, 0>",
        "are not 4 of 1 sizes",
    ),
    "place of a dynamic size": (
        "disc.dynamic_dims = array<i64: 0, 0, 0, 0>",
        "disc.dynamic_dims = array<i64: 0, 0, 0, 9>",
        "are not 4 of 1 sizes",
    ),
    "type of dynamic sizes": (
        "disc.dynamic_dims = array<i64: 0, 0, 0, 0>",
        'disc.dynamic_dims = "s"',
        "expected array",
    ),
}

HOST = {
    "arena": ('{call = {arena = @"', '{call = {arena = "', "arena: expected a size"),
    "check": ('relation = "b >= 1"', 'relation = "b and 1"', "no relation of sizes"),
    "symbol of a check": ('relation = "b >= 1"', 'relation = "t >= 1"', "names t, which is no symbol"),
    "results": (
        "writes = array<i64: 0, 1, 2, 3, 4>",
        "writes = array<i64: 0, 1, 2, 3, 5>",
        "the results [0, 1, 2, 3, 5]",
    ),
    "arguments": (
        "%arg10: memref<?xi8>, %arg11: memref<?xi8>)",
        "%arg10: memref<?xi8>, %arg11: memref<?xi8>, %arg12: memref<?xi8>)",
        "a segment has 13 arguments, and not 12 buffers",
    ),
    "size": ('{call = {value = @"40*s"}}', "{call = {value = @t}}", "names t, which is no symbol"),
    "entry": ('{call = {value = @"40*s"}}', '{call = {valu = @"40*s"}}', "value is missing"),
    "kernel": ("kernel = @scatter_compare_add_select_scatter", "kernel = @nowhere", "@nowhere is no kernel"),
    "sizes": (
        "kernel = @scatter_compare_add_select_scatter, sizes = [@s]",
        "kernel = @scatter_compare_add_select_scatter, sizes = []",
        "has 4 buffers and 1 sizes, and is given 4 and 0",
    ),
    "given": (
        "kernel = @scatter_compare_add_select_scatter, sizes = [@s]",
        "kernel = @scatter_compare_add_select_scatter, sizes = [], given = array<i64: 0>",
        "that is launched by itself",
    ),
    "products": ("products = [{epilogue", "products = [], product = [{epilogue", "there is no product"),
    "no product": (
        "{call = {products = [{epilogue",
        '{call = {products = [], tile = {format = {element = "f32", multiplier = '
        '"f32"}, lanes = 16 : i64, rows = 14 : i64}}, was = {products = [{epilogue',
        "it is no product",
    ),
    "left-hand side": ("lhs = 0 : i64, m = {lhs = 8 : i64", "lhs = 7 : i64, m = {lhs = 8 : i64", "no operand 7"),
    "stride": ("lhs = 0 : i64, m = {lhs = 8 : i64", "lhs = 0 : i64, m = {lhs = @t", "names t, which is no symbol"),
    "epilogue": (
        "epilogue = {operands = array<i64: -1, ",
        "epilogue = {operands = array<i64: 0, ",
        "reads neither tiles",
    ),
    "rows of a tile": ("rows = 14 : i64}", 'rows = "many"}', "expected an i64"),
    "scores": ("row_operands = array<i64: -1, -1>", "row_operands = array<i64: -1, 0>", "not given scores"),
    "query": ("query = {number = 0 : i64}", "query = {number = 9 : i64}", "no operand 9"),
    "columns": ("columns = @s", "columns = @t", "names t, which is no symbol"),
    "bytes": (
        '"disc_host.copy"(%arg3, %arg9) {call = {bytes = @"32*s"}}',
        '"disc_host.copy"(%arg3, %arg9) {call = {bytes = @t}}',
        "names t, which is no symbol",
    ),
    "arrays of a library": ("dims = [[@s, 8], ", "dims = [", "sizes of 2 arrays are given for 3"),
    "sizes of a library": ("dims = [[@s, 8], ", "dims = [[@t, 8], ", "names t, which is no symbol"),
}


@pytest.mark.parametrize("name", KERNELS)
def test_malformed_kernels(name: str) -> None:
    """A module with kernels, with one thing changed, wherever it stands first."""
    check_change("kernels", *KERNELS[name])


@pytest.mark.parametrize("name", HOST)
def test_malformed_program(name: str) -> None:
    """A host program with one thing changed, wherever it stands first."""
    check_change("host", *HOST[name])


SMALL = {
    "constant": ('"disc_host.constant"() {call = {name = @nowhere}} : () -> memref<?xi8>', "no constant @nowhere"),
    "no integers": (
        '"disc_host.bind"(%x) {call = {element = f32, symbols = ["n"]}} : (memref<?xi8>) -> ()',
        "no integers",
    ),
    "no data": (
        '"disc_host.bind"(%x) {call = {element = i32, symbols = ["s"]}} : (memref<?xi8>) -> ()',
        "s is not read",
    ),
    "plans": ("%c0 = arith.constant 0 : index", "there are 0 plans for 1 functions"),
}


@pytest.mark.parametrize("name", SMALL)
def test_malformed_op(name: str) -> None:
    """An op in a program that has nothing else."""
    op, message = SMALL[name]
    text = f"""module attributes {{disc.stage = "host"}} {{
      "disc.signature"() {{arguments = [], kept = array<i64>, name = "main", results = []}} : () -> ()
      "disc.symbol"() {{name = "s"}} : () -> ()
      "disc.symbol"() {{data, name = "n"}} : () -> ()
      func.func @disc_run(%x: memref<?xi8>) {{
        {op}
        return
      }}
      module @kernels {{}}
    }}"""
    assert message in refusal(text)


def test_a_program_is_read_again() -> None:
    """An op of the dialect by itself, which MLIR's verifier checks."""
    with make_context(), ir.Location.unknown(), pytest.raises(ir.MLIRError):
        ir.Module.parse('"disc_host.clear"() {call = {bytes = 4 : i64}} : () -> ()')


LOADED = """%c0 = arith.constant 0 : index
        %v = memref.view %x[%c0][] : memref<?xi8> to memref<i8>
        %b = memref.load %v[] : memref<i8>
        %z = arith.constant 0 : i8
        %p = arith.cmpi ne, %b, %z : i8
        scf.if %p { } else { }"""

STOCK = {
    "predicate": ("arith.cmpi ne", "arith.cmpi eq", "does not ask whether"),
    "compared with 1": ("arith.constant 0 : i8", "arith.constant 1 : i8", "does not ask whether"),
    "second element": ("arith.constant 0 : index", "arith.constant 1 : index", "not the first one"),
    "no load": ("memref.load %v[] : memref<i8>", "arith.constant 3 : i8", "does not ask whether"),
    "choice": ("scf.if %p", "%t = arith.constant true\nscf.if %t", "it takes values other than"),
    "result": ("scf.if %p { } else { }", "%r = scf.if %p -> i8 { scf.yield %z : i8 } else { scf.yield %z : i8 }",
               "it takes values other than"),
    "part of an argument": ("scf.if %p { } else { }", "%w = memref.view %y[%c0][%c0] : memref<?xi8> to memref<?xi8>",
                            "something else than an arena"),
    "index": ("scf.if %p { } else { }", "%i = arith.index_cast %z : i8 to index", "something else than a number"),
}  # fmt: skip


def stock(body: str) -> str:
    """The error for a program of one argument and one arena."""
    said = '[{dims = [4], dtype = "f32", path = "x"}]'
    return refusal(
        f"""module attributes {{disc.stage = "host"}} {{
      "disc.signature"() {{arguments = {said}, kept = array<i64: 0>, name = "main", results = []}} : () -> ()
      "disc_host.plan"() {{call = {{arena = 64 : i64, checks = [], writes = array<i64>}}}} : () -> ()
      func.func @disc_run(%y: memref<?xi8>, %x: memref<?xi8>) {{
        {body}
        return
      }}
      module @kernels {{}}
    }}"""
    )


def test_stock_ops_in_their_forms() -> None:
    """Code is made of these forms; another one would become code that does something else."""
    assert stock(LOADED) == ""


@pytest.mark.parametrize("name", STOCK)
def test_stock_ops_in_others(name: str) -> None:
    old, new, message = STOCK[name]
    assert old in LOADED
    assert message in stock(LOADED.replace(old, new))
