# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A sample of programs against the StableHLO reference interpreter, which follows the specification to the letter.

The interpreter may end the process on a program it does not like, so it runs in one of its own, all programs at once.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shlo_disc
from tests.run.op_check import assert_same, mlir_dtype, random_array, refine

INTERPRETER = """
import pickle, sys
import numpy as np
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.dialect.context import make_context

def evaluate(text, arrays, kinds):
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        types = [ir.RankedTensorType.get(a.shape, ir.Type.parse(k)) for a, k in zip(arrays, kinds)]
        attributes = [ir.DenseElementsAttr.get(memoryview(a), type=t) for a, t in zip(arrays, types)]
        return [np.array(r) for r in stablehlo.eval_module(module, attributes)]

with open(sys.argv[1], "rb") as file:
    programs = pickle.load(file)
results = {name: evaluate(*program) for name, program in programs.items()}
with open(sys.argv[2], "wb") as file:
    pickle.dump(results, file)
"""

Row = tuple[str, list[tuple[tuple[int, ...], str]], float]


def matrix(body: str, result: str = "tensor<?x?xf32>", ulps: float = 0) -> Row:
    """A program of one f32 matrix %x whose result is %r."""
    text = f"func.func @main(%x: tensor<?x?xf32>) -> {result} {{\n{body}\n return %r : {result} }}"
    return text, [((5, 17), "float32")], ulps


def unary(op: str, kind: str, dtype: str, ulps: float = 0) -> Row:
    text = f"func.func @main(%x: tensor<?x{kind}>) -> tensor<?x{kind}> {{\n" + (
        f"%r = stablehlo.{op} %x : tensor<?x{kind}>\n return %r : tensor<?x{kind}> }}"
    )
    return text, [((33,), dtype)], ulps


def binary(op: str, kind: str, dtype: str, ulps: float = 0) -> Row:
    text = f"func.func @main(%x: tensor<?x{kind}>, %y: tensor<?x{kind}>) -> tensor<?x{kind}> {{\n" + (
        f"%r = stablehlo.{op} %x, %y : tensor<?x{kind}>\n return %r : tensor<?x{kind}> }}"
    )
    return text, [((33,), dtype), ((33,), dtype)], ulps


UNARY_FLOAT = {"abs": 0, "ceil": 0, "floor": 0, "negate": 0, "sign": 0, "round_nearest_afz": 0, "round_nearest_even": 0,
               "cbrt": 2, "cosine": 2, "exponential": 2, "exponential_minus_one": 2, "log": 2, "log_plus_one": 2,
               "logistic": 3, "rsqrt": 2, "sine": 2, "sqrt": 1, "tan": 3, "tanh": 3}  # fmt: skip
BINARY_FLOAT = {"add": 0, "subtract": 0, "multiply": 0, "divide": 0, "maximum": 0, "minimum": 0, "remainder": 0,
                "atan2": 3, "power": 4}  # fmt: skip
BINARY_INTEGER = ("add", "subtract", "multiply", "maximum", "minimum", "and", "or", "xor", "shift_left",
                  "shift_right_arithmetic", "shift_right_logical")  # fmt: skip

PROGRAMS: dict[str, Row] = {
    **{f"{op}_f32": unary(op, "f32", "float32", ulps) for op, ulps in UNARY_FLOAT.items()},
    **{f"{op}_f32": binary(op, "f32", "float32", ulps) for op, ulps in BINARY_FLOAT.items()},
    **{f"{op}_{k}": binary(op, k, d) for op in BINARY_INTEGER for k, d in (("i32", "int32"), ("ui8", "uint8"))},
    **{f"{op}_i16": unary(op, "i16", "int16") for op in ("count_leading_zeros", "popcnt", "not", "sign", "abs")},
    "transpose": matrix("%r = stablehlo.transpose %x, dims = [1, 0] : (tensor<?x?xf32>) -> tensor<?x?xf32>"),
    "reverse": matrix("%r = stablehlo.reverse %x, dims = [1, 0] : tensor<?x?xf32>"),
    "pad": matrix(
        "%z = stablehlo.constant dense<2.0> : tensor<f32>\n"
        "%r = stablehlo.pad %x, %z, low = [1, -2], high = [-1, 3], interior = [2, 1]"
        " : (tensor<?x?xf32>, tensor<f32>) -> tensor<?x?xf32>"
    ),
    "slice": matrix(
        "%r = stablehlo.slice %x [1:4:2, 0:16:3] : (tensor<?x?xf32>) -> tensor<2x6xf32>", "tensor<2x6xf32>"
    ),
    "concatenate": matrix(
        "%r = stablehlo.concatenate %x, %x, %x, dim = 1"
        " : (tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>"
    ),
    "reduce_precision": matrix("%r = stablehlo.reduce_precision %x, format = e4m3 : tensor<?x?xf32>"),
    "reduce_initial_value": matrix(
        "%z = stablehlo.constant dense<9.0> : tensor<f32>\n"
        "%r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1]"
        " : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>",
        "tensor<?xf32>",
        16,
    ),
    "dot_general": matrix(
        "%r = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1]"
        " : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>",
        ulps=64,
    ),
    "compare_select": matrix(
        "%y = stablehlo.reverse %x, dims = [1] : tensor<?x?xf32>\n"
        "%c = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xi1>\n"
        "%r = stablehlo.select %c, %x, %y : tensor<?x?xi1>, tensor<?x?xf32>"
    ),
    "convert_to_i8": matrix(
        "%r = stablehlo.convert %x : (tensor<?x?xf32>) -> tensor<?x?xi8>", "tensor<?x?xi8>"
    ),
    "gather": (
        """func.func @main(%x: tensor<?x?xf32>, %i: tensor<?x2xi32>) -> tensor<?x2x3xf32> {
          %r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2],
            start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 2, 3>}>
            : (tensor<?x?xf32>, tensor<?x2xi32>) -> tensor<?x2x3xf32>
          return %r : tensor<?x2x3xf32> }""",
        [((5, 17), "float32"), ((9, 2), "int32")],
        0,
    ),
    "dynamic_update_slice": (
        """func.func @main(%x: tensor<?x?xf32>, %y: tensor<2x3xf32>, %i: tensor<i32>) -> tensor<?x?xf32> {
          %r = stablehlo.dynamic_update_slice %x, %y, %i, %i
            : (tensor<?x?xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<?x?xf32>
          return %r : tensor<?x?xf32> }""",
        [((5, 17), "float32"), ((2, 3), "float32"), ((), "int32")],
        0,
    ),
}  # fmt: skip


def inputs(row: Row) -> list[np.ndarray]:
    return [random_array(shape, dtype, i) for i, (shape, dtype) in enumerate(row[1])]


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[np.ndarray]]:
    """The interpreter's results of all programs."""
    folder: Path = tmp_path_factory.mktemp("interpreter")
    programs: dict[str, Any] = {}
    for name, row in PROGRAMS.items():
        arrays = inputs(row)
        text = refine(row[0], tuple((a.shape, a.dtype.name) for a in arrays))
        programs[name] = (text, arrays, [mlir_dtype(a.dtype.name) for a in arrays])
    (folder / "programs").write_bytes(pickle.dumps(programs))
    command = [sys.executable, "-c", INTERPRETER, str(folder / "programs"), str(folder / "results")]
    subprocess.run(command, check=True, timeout=300)
    return pickle.loads((folder / "results").read_bytes())  # noqa: S301  (written by the line above)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, interpreted: dict[str, list[np.ndarray]]) -> None:
    row = PROGRAMS[name]
    assert_same(shlo_disc.compile(row[0])(*inputs(row)), interpreted[name], row[2])
