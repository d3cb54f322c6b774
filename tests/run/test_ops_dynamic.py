# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plain StableHLO with `?`: every dynamic op, its sizes recovered from the shape computations of the program."""

from __future__ import annotations

import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import ShapeError
from tests.run.op_check import assert_same, check_text, random_array

ONE = (1, 2, 15, 16, 17, 33, 97, 0)
TWO = [(1, 1), (2, 3), (3, 16), (5, 17), (16, 5), (33, 2), (1, 97), (0, 3), (3, 0)]


def vectors(dtype: str = "float32", sizes: tuple[int, ...] = ONE) -> list[list[np.ndarray]]:
    return [[random_array((n,), dtype, n)] for n in sizes]


def matrices(dtype: str = "float32", sizes: list[tuple[int, int]] = TWO) -> list[list[np.ndarray]]:
    return [[random_array(shape, dtype)] for shape in sizes]


SIZES = """
  %m0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
  %n0 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>
  %m = stablehlo.reshape %m0 : (tensor<i32>) -> tensor<1xi32>
  %n = stablehlo.reshape %n0 : (tensor<i32>) -> tensor<1xi32>
  %c0 = stablehlo.constant dense<0> : tensor<1xi32>
  %c1 = stablehlo.constant dense<1> : tensor<1xi32>
  %c2 = stablehlo.constant dense<2> : tensor<1xi32>
  %c3 = stablehlo.constant dense<3> : tensor<1xi32>
"""


def program(result: str, body: str, arguments: str = "%x: tensor<?x?xf32>") -> str:
    """A function of a matrix %x, with its sizes at hand as %m and %n."""
    return f"func.func @main({arguments}) -> {result} {{{SIZES}{body}\n  return %r : {result} }}"


def shape(name: str, *parts: str) -> str:
    """%name = the shape [parts...]."""
    types = ", ".join("tensor<1xi32>" for _ in parts)
    return f"%{name} = stablehlo.concatenate {', '.join(parts)}, dim = 0 : ({types}) -> tensor<{len(parts)}xi32>\n"


ROWS = {
    "dynamic_broadcast_in_dim": program(
        "tensor<?x?x?xf32>",
        shape("s", "%c3", "%m", "%n")
        + "%r = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1, 2]"
        + " : (tensor<?x?xf32>, tensor<3xi32>) -> tensor<?x?x?xf32>",
    ),
    "dynamic_broadcast_in_dim_permuted_size": program(
        "tensor<?x?x?xf32>",
        shape("s", "%m", "%c2", "%n")
        + '%r = "stablehlo.dynamic_broadcast_in_dim"(%x, %s) <{broadcast_dimensions = array<i64: 0, 2>,'
        + " known_nonexpanding_dimensions = array<i64: 0, 1>}>"
        + " : (tensor<?x?xf32>, tensor<3xi32>) -> tensor<?x?x?xf32>",
    ),
    "dynamic_iota": program(
        "tensor<?x?xf32>",
        shape("s", "%m", "%n")
        + """%i = stablehlo.dynamic_iota %s, dim = 1 : (tensor<2xi32>) -> tensor<?x?xf32>
        %j = stablehlo.dynamic_iota %s, dim = 0 : (tensor<2xi32>) -> tensor<?x?xf32>
        %k = stablehlo.multiply %i, %j : tensor<?x?xf32>
        %r = stablehlo.add %k, %x : tensor<?x?xf32>""",
    ),
    "dynamic_reshape_flat": program(
        "tensor<?xf32>",
        """%t = stablehlo.multiply %m, %n : tensor<1xi32>
        %r = stablehlo.dynamic_reshape %x, %t : (tensor<?x?xf32>, tensor<1xi32>) -> tensor<?xf32>""",
    ),
    "dynamic_reshape_swapped": program(
        "tensor<?x?xf32>",
        shape("s", "%n", "%m")
        + "%r = stablehlo.dynamic_reshape %x, %s : (tensor<?x?xf32>, tensor<2xi32>) -> tensor<?x?xf32>",
    ),
    "dynamic_pad": program(
        "tensor<?x?xf32>",
        shape("low", "%c1", "%n")
        + shape("high", "%m", "%c0")
        + shape("interior", "%c0", "%c2")
        + "%z = stablehlo.constant dense<7.0> : tensor<f32>\n"
        + "%r = stablehlo.dynamic_pad %x, %z, %low, %high, %interior : (tensor<?x?xf32>, tensor<f32>,"
        + " tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>",
    ),
    "real_dynamic_slice": program(
        "tensor<?x?xf32>",
        "%half = stablehlo.divide %n, %c2 : tensor<1xi32>\n"
        + shape("start", "%c0", "%half")
        + shape("limit", "%m", "%n")
        + shape("stride", "%c2", "%c1")
        + "%r = stablehlo.real_dynamic_slice %x, %start, %limit, %stride : (tensor<?x?xf32>, tensor<2xi32>,"
        + " tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>",
    ),
    "real_dynamic_slice_stride": program(
        "tensor<?x?xf32>",
        "%big = stablehlo.add %m, %c1 : tensor<1xi32>\n"
        + shape("start", "%c0", "%c0")
        + shape("limit", "%m", "%n")
        + shape("stride", "%c1", "%big")
        + "%r = stablehlo.real_dynamic_slice %x, %start, %limit, %stride : (tensor<?x?xf32>, tensor<2xi32>,"
        + " tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>",
    ),
    "transpose_concatenate": program(
        "tensor<?x?xf32>",
        """%t = stablehlo.transpose %x, dims = [1, 0] : (tensor<?x?xf32>) -> tensor<?x?xf32>
        %r = stablehlo.concatenate %t, %t, dim = 1 : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>""",
    ),
    "get_dimension_size_as_data": program(
        "tensor<?x?xf32>",
        """%p = stablehlo.multiply %m0, %n0 : tensor<i32>
        %f = stablehlo.convert %p : (tensor<i32>) -> tensor<f32>
        """
        + shape("s", "%m", "%n")
        + """%b = stablehlo.dynamic_broadcast_in_dim %f, %s, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x?xf32>
        %r = stablehlo.add %x, %b : tensor<?x?xf32>""",
    ),
    "pad_slice": program(
        "tensor<?x?xf32>",
        """%z = stablehlo.constant dense<1.0> : tensor<f32>
        %r = stablehlo.pad %x, %z, low = [1, 2], high = [0, 3], interior = [1, 0]
          : (tensor<?x?xf32>, tensor<f32>) -> tensor<?x?xf32>""",
    ),
    "reduce_reverse": program(
        "tensor<?xf32>",
        """%z = stablehlo.constant dense<0xFF800000> : tensor<f32>
        %v = stablehlo.reverse %x, dims = [0, 1] : tensor<?x?xf32>
        %r = stablehlo.reduce(%v init: %z) applies stablehlo.maximum across dimensions = [0]
          : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>""",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_matrix_programs(name: str) -> None:
    check_text(ROWS[name], matrices(), static=2)


def test_dynamic_reshape_splits_and_merges() -> None:
    text = """func.func @main(%x: tensor<?xi32>) -> (tensor<?x4xi32>, tensor<2x?xi32>, tensor<?x2x2xi32>) {
      %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xi32>) -> tensor<i32>
      %four = stablehlo.constant dense<4> : tensor<i32>
      %two = stablehlo.constant dense<2> : tensor<1xi32>
      %c4 = stablehlo.constant dense<4> : tensor<1xi32>
      %q = stablehlo.divide %n, %four : tensor<i32>
      %q1 = stablehlo.reshape %q : (tensor<i32>) -> tensor<1xi32>
      %h1 = stablehlo.multiply %q1, %two : tensor<1xi32>
      %s = stablehlo.concatenate %q1, %c4, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %t = stablehlo.concatenate %two, %h1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %u = stablehlo.concatenate %q1, %two, %two, dim = 0
        : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
      %a = stablehlo.dynamic_reshape %x, %s : (tensor<?xi32>, tensor<2xi32>) -> tensor<?x4xi32>
      %b = stablehlo.dynamic_reshape %x, %t : (tensor<?xi32>, tensor<2xi32>) -> tensor<2x?xi32>
      %c = stablehlo.dynamic_reshape %a, %u : (tensor<?x4xi32>, tensor<3xi32>) -> tensor<?x2x2xi32>
      return %a, %b, %c : tensor<?x4xi32>, tensor<2x?xi32>, tensor<?x2x2xi32> }"""
    executable = check_text(text, vectors("int32", (4, 8, 16, 32, 68, 400, 0)))
    with pytest.raises(ShapeError, match="dynamic_reshape"):
        executable(np.zeros(6, np.int32))
    with pytest.raises(ShapeError, match="dynamic_reshape"):
        executable(np.zeros(3, np.int32))


def test_a_broadcast_that_may_stretch_or_not() -> None:
    """Sizes of 1 and equal sizes are both admissible; anything else is refused before anything runs."""
    text = """func.func @main(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> tensor<?x?xf32> {
      %m = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
      %n = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>
      %m1 = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
      %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
      %s = stablehlo.concatenate %m1, %n1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %b = stablehlo.dynamic_broadcast_in_dim %y, %s, dims = [0, 1]
        : (tensor<?x?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
      %r = stablehlo.multiply %x, %b : tensor<?x?xf32>
      return %r : tensor<?x?xf32> }"""
    executable = shlo_disc.compile(text)
    for m, n in TWO:
        for p, q in {(m, n), (1, n), (m, 1), (1, 1)}:
            x, y = random_array((m, n), "float32", 1), random_array((p, q), "float32", 2)
            assert_same(executable(x, y), x * y)
    with pytest.raises(ShapeError, match="dynamic_broadcast_in_dim"):
        executable(np.zeros((4, 3), np.float32), np.zeros((2, 3), np.float32))


def test_equal_sizes_are_learned_from_ops() -> None:
    text = """func.func @main(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>, %z: tensor<?xf32>) -> tensor<?x?xf32> {
      %a = stablehlo.add %x, %y : tensor<?x?xf32>
      %b = stablehlo.dot_general %a, %z, contracting_dims = [1] x [0]
        : (tensor<?x?xf32>, tensor<?xf32>) -> tensor<?xf32>
      %c = stablehlo.concatenate %b, %z, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      return %a : tensor<?x?xf32> }"""
    executable = shlo_disc.compile(text)
    for m, n in TWO:
        x, y, z = (random_array(s, "float32", i) for i, s in enumerate([(m, n), (m, n), (n,)]))
        assert_same(executable(x, y, z), x + y)
    for shapes in [((2, 3), (2, 4), (3,)), ((2, 3), (3, 3), (3,)), ((2, 3), (2, 3), (2,))]:
        with pytest.raises(ShapeError):
            executable(*(np.zeros(s, np.float32) for s in shapes))


def test_windows_that_do_not_fit_are_refused() -> None:
    """A slice, an update and a start given by data never reach past their operand."""
    head = "func.func @main(%x: tensor<?xf32>, %i: tensor<i32>) -> tensor<{r}xf32> {{"
    tail = " return %r : tensor<{r}xf32> }}"
    rows = {
        "slice": (10, "%r = stablehlo.slice %x [2:12] : (tensor<?xf32>) -> tensor<10xf32>"),
        "dynamic_slice": (
            10, "%r = stablehlo.dynamic_slice %x, %i, sizes = [10] : (tensor<?xf32>, tensor<i32>) -> tensor<10xf32>"),
        "dynamic_update_slice": (
            "?", """%c = stablehlo.constant dense<1.0> : tensor<10xf32>
            %r = stablehlo.dynamic_update_slice %x, %c, %i
              : (tensor<?xf32>, tensor<10xf32>, tensor<i32>) -> tensor<?xf32>"""),
    }  # fmt: skip
    for name, (result, body) in rows.items():
        text = "\n".join([head.format(r=result), body, tail.format(r=result)])
        calls = [[random_array((n,), "float32"), np.array(i, np.int32)] for n in (12, 17, 40) for i in (0, 1, 99, -5)]
        executable = check_text(text, calls)
        with pytest.raises(ShapeError, match=name):
            executable(np.zeros(9, np.float32), np.array(0, np.int32))


def test_a_slice_that_starts_at_data() -> None:
    """Its length is known although its start is not; a start outside is moved inside, as dynamic_slice does."""
    text = """func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %i: tensor<1xi32>) -> tensor<?xf32> {
      %n = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?xf32>) -> tensor<i32>
      %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
      %one = stablehlo.constant dense<1> : tensor<1xi32>
      %limit = stablehlo.add %i, %n1 : tensor<1xi32>
      %s = stablehlo.real_dynamic_slice %x, %i, %limit, %one
        : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
      %r = stablehlo.add %s, %y : tensor<?xf32>
      return %r : tensor<?xf32> }"""
    executable = shlo_disc.compile(text)
    for n, m in [(5, 3), (17, 17), (40, 33), (40, 1), (7, 0)]:
        x, y = random_array((n,), "float32", 1), random_array((m,), "float32", 2)
        for start in (0, 1, n - m, n, 10**6, -1, -(2**31)):
            at = min(max(start, 0), n - m)
            assert_same(executable(x, y, np.array([start], np.int32)), x[at : at + m] + y)
    with pytest.raises(ShapeError, match="real_dynamic_slice"):
        executable(np.zeros(3, np.float32), np.zeros(4, np.float32), np.zeros(1, np.int32))


def test_small_integer_arithmetic_is_not_mistaken_for_sizes() -> None:
    """Constants wrap around in their own type before they are compared or converted."""
    text = """func.func @main() -> (tensor<i1>, tensor<i32>, tensor<i1>, tensor<2xf32>, tensor<i64>) {
      %a = stablehlo.constant dense<200> : tensor<ui8>
      %b = stablehlo.constant dense<100> : tensor<ui8>
      %s = stablehlo.add %a, %b : tensor<ui8>
      %d = stablehlo.subtract %b, %a : tensor<ui8>
      %p = stablehlo.compare LT, %s, %b : (tensor<ui8>, tensor<ui8>) -> tensor<i1>
      %w = stablehlo.convert %d : (tensor<ui8>) -> tensor<i32>
      %q = stablehlo.convert %b : (tensor<ui8>) -> tensor<i1>
      %c = stablehlo.constant dense<[2147483647, -2147483648]> : tensor<2xi32>
      %e = stablehlo.add %c, %c : tensor<2xi32>
      %f = stablehlo.convert %e : (tensor<2xi32>) -> tensor<2xf32>
      %g = stablehlo.constant dense<3000000000> : tensor<ui32>
      %h = stablehlo.convert %g : (tensor<ui32>) -> tensor<i32>
      %i = stablehlo.convert %h : (tensor<i32>) -> tensor<i64>
      return %p, %w, %q, %f, %i : tensor<i1>, tensor<i32>, tensor<i1>, tensor<2xf32>, tensor<i64> }"""
    check_text(text, [[]])


def test_sizes_in_narrow_and_unsigned_types() -> None:
    """Sizes as data: they wrap where the type is too narrow for them."""
    text = """func.func @main(%x: tensor<?xf32>) -> (tensor<i8>, tensor<ui32>, tensor<i1>, tensor<i64>, tensor<i1>) {
      %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
      %a = stablehlo.convert %n : (tensor<i32>) -> tensor<i8>
      %u = stablehlo.convert %n : (tensor<i32>) -> tensor<ui32>
      %c = stablehlo.constant dense<5> : tensor<ui32>
      %d = stablehlo.subtract %u, %c : tensor<ui32>
      %z = stablehlo.convert %n : (tensor<i32>) -> tensor<i1>
      %w = stablehlo.convert %a : (tensor<i8>) -> tensor<i64>
      %p = stablehlo.compare GT, %d, %c : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      return %a, %d, %z, %w, %p : tensor<i8>, tensor<ui32>, tensor<i1>, tensor<i64>, tensor<i1> }"""
    check_text(text, vectors(sizes=(0, 1, 4, 5, 10, 127, 128, 300)))


def test_calls_are_inlined() -> None:
    text = """module {
      func.func private @twice(%x: tensor<?xf32>) -> tensor<?xf32> {
        %r = stablehlo.add %x, %x : tensor<?xf32>
        return %r : tensor<?xf32> }
      func.func private @four_times(%x: tensor<?xf32>) -> tensor<?xf32> {
        %a = func.call @twice(%x) : (tensor<?xf32>) -> tensor<?xf32>
        %b = func.call @twice(%a) : (tensor<?xf32>) -> tensor<?xf32>
        return %b : tensor<?xf32> }
      func.func @main(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
        %a = call @four_times(%x) : (tensor<?xf32>) -> tensor<?xf32>
        %b = call @twice(%a) : (tensor<?xf32>) -> tensor<?xf32>
        return %a, %b : tensor<?xf32>, tensor<?xf32> } }"""
    check_text(text, vectors())


@pytest.mark.parametrize("kind,dtype", [("f32", "float32"), ("bf16", "bfloat16"), ("i1", "bool"), ("ui64", "uint64")])
def test_empty_arrays_through_every_move(kind: str, dtype: str) -> None:
    text = """func.func @main(%x: tensor<?x?xT>) -> (tensor<?x?xT>, tensor<?x?xT>, tensor<?x?xT>, tensor<?x?xT>) {
      %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<?x?xT>) -> tensor<?x?xT>
      %c = stablehlo.concatenate %x, %x, dim = 0 : (tensor<?x?xT>, tensor<?x?xT>) -> tensor<?x?xT>
      %v = stablehlo.reverse %x, dims = [1] : tensor<?x?xT>
      %p = stablehlo.maximum %x, %v : tensor<?x?xT>
      return %t, %c, %v, %p : tensor<?x?xT>, tensor<?x?xT>, tensor<?x?xT>, tensor<?x?xT> }""".replace("T", kind)
    executable = shlo_disc.compile(text)
    for size in TWO:
        x = random_array(size, dtype)
        v = x[:, ::-1]
        assert_same(executable(x), [x.T, np.concatenate([x, x]), v, np.maximum(x, v)])
