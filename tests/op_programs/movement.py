# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of one op that arranges elements, or decides which way a program goes."""

from __future__ import annotations

import re

from tests.op_programs.program import ALIKE, LEGACY, Form, Program, moved, scalar, tensor

I64 = "tensor<1xi64>"
PAIR = "tensor<2xi64>"


def number(name: str, values: object, type_: str = PAIR) -> str:
    return f"%{name} = stablehlo.constant dense<{values}> : {type_}\n  "


ROWS_OF = "%n = stablehlo.get_dimension_size %a0, dim = 0 : (X) -> tensor<i32>\n  "
SHAPE = (
    ROWS_OF + "%m = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>\n  "
    "%four = stablehlo.constant dense<4> : tensor<1xi32>\n  "
    "%shape = stablehlo.concatenate %m, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>\n  "
)

MOVEMENT: dict[str, Form] = {
    "broadcast_in_dim": moved("%r0 = stablehlo.broadcast_in_dim %a0, dims = [1] : (X) -> R", (3, 4), (4,)),
    "concatenate": moved("%r0 = stablehlo.concatenate %a0, %a0, dim = 1 : (X, X) -> R", ("n", 8)),
    "dynamic_broadcast_in_dim": moved(
        SHAPE + "%r0 = stablehlo.dynamic_broadcast_in_dim %a0, %shape, dims = [0, 1] : (X, tensor<2xi32>) -> R",
        ("n", 4),
    ),
    "dynamic_pad": moved(
        number("low", "[1, 0]") + number("high", "[0, 2]") + number("inner", "[0, 1]")
        + "%r0 = stablehlo.dynamic_pad %a0, %z, %low, %high, %inner : (X, S, tensor<2xi64>, tensor<2xi64>,"
        " tensor<2xi64>) -> R",
        ("n", 9),
    ),
    "dynamic_reshape": moved(
        ROWS_OF + "%four = stablehlo.constant dense<4> : tensor<i32>\n"
        "%f = stablehlo.multiply %n, %four : tensor<i32>\n  %s = stablehlo.reshape %f : (tensor<i32>) -> tensor<1xi32>"
        "\n  %t = stablehlo.reverse %a0, dims = [1] : X\n"
        "%r0 = stablehlo.dynamic_reshape %t, %s : (X, tensor<1xi32>) -> R",
        ("n",),
    ),
    "dynamic_slice": moved(
        "%r0 = stablehlo.dynamic_slice %a0, %a1, %a1, sizes = [1, 3] : (X, tensor<i32>, tensor<i32>) -> R",
        (1, 3), more=(((), "i32"),),
    ),
    "dynamic_update_slice": moved(
        "%u = stablehlo.slice %a0 [0:1, 0:2] : (X) -> U\n  "
        "%r0 = stablehlo.dynamic_update_slice %a0, %u, %a1, %a1 : (X, U, tensor<i32>, tensor<i32>) -> R",
        ("n", 4), more=(((), "i32"),),
    ),
    "pad": moved(
        "%r0 = stablehlo.pad %a0, %z, low = [1, 0], high = [0, 2], interior = [2, 1] : (X, S) -> R", (8, 9), (3, 4)
    ),
    "real_dynamic_slice": moved(
        number("start", "[0, 1]") + number("end", "[1, 4]") + number("step", "[1, 2]")
        + "%r0 = stablehlo.real_dynamic_slice %a0, %start, %end, %step : (X, tensor<2xi64>, tensor<2xi64>,"
        " tensor<2xi64>) -> R",
        (1, 2),
    ),
    "reshape": moved("%t = stablehlo.reverse %a0, dims = [0] : X\n  %r0 = stablehlo.reshape %t : (X) -> R",
                     (2, 6), (3, 4)),
    "reverse": moved("%r0 = stablehlo.reverse %a0, dims = [1, 0] : X", ("n", 4)),
    "slice": moved("%r0 = stablehlo.slice %a0 [0:1, 1:4:2] : (X) -> R", (1, 2)),
    "transpose": moved("%r0 = stablehlo.transpose %a0, dims = [1, 0] : (X) -> R", (4, "n")),
    "gather": moved(
        """%r0 = "stablehlo.gather"(%a0, %a1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}>
      : (X, tensor<5xi32>) -> R""",
        (5, 3), more=(((5,), "i32"),),
    ),
    "dynamic_gather": moved(
        number("sizes", "[1, 3]")
        + """%r0 = "stablehlo.dynamic_gather"(%a0, %a1, %sizes) <{dimension_numbers = #stablehlo.gather<
      offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}>
      : (X, tensor<5xi32>, tensor<2xi64>) -> R""",
        (5, 3), more=(((5,), "i32"),),
    ),
    "broadcast": moved(
        '%r0 = "stablehlo.broadcast"(%a0) {broadcast_sizes = array<i64: 3>} : (X) -> R', (3, 4), (4,)
    ),
    "torch_index_select": moved(
        '%r0 = "stablehlo.torch_index_select"(%a0, %a1) {batch_dims = 0 : i64, dim = 1 : i64}'
        " : (X, tensor<5xi32>) -> R",
        (3, 5), (3, 4), (((5,), "i32"),),
    ),
    "custom_call": moved("%r0 = stablehlo.custom_call @Sharding(%a0) : (X) -> X", ("n", 4)),
    "composite": moved('%r0 = stablehlo.composite "own.turned" %a0 {decomposition = @turned} : (X) -> R', ("n", 4)),
    "return": moved("%r0 = stablehlo.reverse %a0, dims = [0] : X", ("n", 4)),
    "optimization_barrier": moved("%b = stablehlo.reverse %a0, dims = [0] : X\n"
                                  "  %r0 = stablehlo.optimization_barrier %b : X", ("n", 4)),
    "tuple": moved("%t = stablehlo.tuple %a0 : tuple<X>\n"
                   "  %r0 = stablehlo.get_tuple_element %t[0] : (tuple<X>) -> X", ("n", 4)),
    "case": moved(
        """%r0 = "stablehlo.case"(%a1) ({ stablehlo.return %a0 : X }, {
      %t = stablehlo.reverse %a0, dims = [1] : X
      stablehlo.return %t : X }) : (tensor<i32>) -> X""",
        ("n", 4), more=(((), "i32"),),
    ),
    "if": moved(
        """%r0 = "stablehlo.if"(%a1) ({ stablehlo.return %a0 : X }, {
      %t = stablehlo.reverse %a0, dims = [1] : X
      stablehlo.return %t : X }) : (tensor<i1>) -> X""",
        ("n", 4), more=(((), "i1"),),
    ),
    "while": moved(
        """%zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %i, %r0 = stablehlo.while(%k = %zero, %v = %a0) : tensor<i32>, X
    cond { %c = stablehlo.compare LT, %k, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1> }
    do { %l = stablehlo.add %k, %one : tensor<i32>
      %w = stablehlo.reverse %v, dims = [1] : X
      stablehlo.return %l, %w : tensor<i32>, X }""",
        ("n", 4),
    ),
}  # fmt: skip

_TURNED = """func.func private @turned(%x: X) -> X {
  %y = stablehlo.reverse %x, dims = [1] : X
  return %y : X }"""


def constant_row(t: str) -> Program:
    """A constant that no register holds, in front of the argument."""
    numbers = [f"({i}.0, 1.0)" if "complex" in t else scalar(t, i % 2).split(">")[0][6:] for i in (0, 1, 1, 0)]
    body = f"""%c = stablehlo.constant dense<[{", ".join(numbers)}]> : tensor<4x{t}>
  %r0 = stablehlo.concatenate %c, %a0, dim = 0 : (tensor<4x{t}>, {tensor(ALIKE, t)}) -> {tensor(ALIKE, t)}"""
    return Program(((ALIKE, t),), ((ALIKE, t),), body)


def composite_row(t: str) -> Program:
    functions = _TURNED.replace("X", tensor(("n", 4), t))
    return MOVEMENT["composite"](t)._replace(functions=functions, by_xla=False)


def custom_call_row(t: str) -> Program:
    """One that says where a value shall lie, which changes nothing."""
    return MOVEMENT["custom_call"](t)._replace(by_xla=False)


def update_row(t: str) -> Program:
    made = MOVEMENT["dynamic_update_slice"](t)
    return made._replace(body=re.sub(r"\bU\b", f"tensor<1x2x{t}>", made.body))


def iota(op: str) -> Form:
    def made(t: str) -> Program:
        if op == "iota":
            return Program((), (((5,), t),), f"%r0 = stablehlo.iota dim = 0 : tensor<5x{t}>")
        body = f"""%n = stablehlo.get_dimension_size %a0, dim = 0 : ({tensor(ALIKE, t)}) -> tensor<i32>
  %s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %r0 = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> {tensor(ALIKE, t)}"""
        return Program(((ALIKE, t),), ((ALIKE, t),), body)

    return made


def size_row(t: str) -> Program:
    x = tensor(ALIKE, t)
    return Program(
        ((ALIKE, t),), (((), "i32"),), f"%r0 = stablehlo.get_dimension_size %a0, dim = 0 : ({x}) -> tensor<i32>"
    )


FORMS: dict[str, Form] = {
    **MOVEMENT, "constant": constant_row, "composite": composite_row, "custom_call": custom_call_row,
    "dynamic_update_slice": update_row, "get_tuple_element": MOVEMENT["tuple"],
    "iota": iota("iota"), "dynamic_iota": iota("dynamic_iota"), "get_dimension_size": size_row,
}  # fmt: skip

NOT_GENERATED = dict.fromkeys(("broadcast", "torch_index_select"), LEGACY)
