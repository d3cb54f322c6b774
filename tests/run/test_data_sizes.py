# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that are read from data while the program runs: results of their true size, and nothing out of bounds."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import ShapeError, UnsupportedError
from shlo_disc.shape_dialect.symbolic.expr import Expr

TAKE = """
func.func @main(%x: tensor<?xf32>, %n: tensor<i32>) -> (tensor<?xf32>, tensor<?xi32>) {
  %r = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %i = stablehlo.dynamic_iota %r, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
  %c0 = stablehlo.constant dense<0> : tensor<1xi32>
  %c1 = stablehlo.constant dense<1> : tensor<1xi32>
  %y = stablehlo.real_dynamic_slice %x, %c0, %r, %c1
    : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  return %y, %i : tensor<?xf32>, tensor<?xi32>
}
"""
"""The first n elements of x, and their positions."""

CHAIN = """
func.func @main(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?x?xf32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.add %x, %x : tensor<?xf32>
  %sum = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
  %n = stablehlo.convert %sum : (tensor<f32>) -> tensor<i64>
  %n1 = stablehlo.reshape %n : (tensor<i64>) -> tensor<1xi64>
  %s = stablehlo.dynamic_broadcast_in_dim %sum, %n1, dims = [] : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32>
  %total = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
  %m = stablehlo.convert %total : (tensor<f32>) -> tensor<i32>
  %m1 = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
  %n2 = stablehlo.convert %n1 : (tensor<1xi64>) -> tensor<1xi32>
  %mn = stablehlo.concatenate %m1, %n2, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %t = stablehlo.dynamic_broadcast_in_dim %s, %mn, dims = [1] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  %all = stablehlo.reduce(%t init: %zero) applies stablehlo.add across dimensions = [0, 1]
    : (tensor<?x?xf32>, tensor<f32>) -> tensor<f32>
  return %y, %t, %all : tensor<?xf32>, tensor<?x?xf32>, tensor<f32>
}
"""
"""n = sum(2*x) copies of n; then n*n rows of them: the second size is computed from data of the first."""


@pytest.fixture(scope="module")
def take() -> shlo_disc.Executable:
    return shlo_disc.compile(TAKE)


@pytest.fixture(scope="module")
def chain() -> shlo_disc.Executable:
    return shlo_disc.compile(CHAIN)


@pytest.mark.parametrize("size", [0, 1, 5, 97])
def test_a_slice_of_as_many_elements_as_an_argument_says(take: shlo_disc.Executable, size: int) -> None:
    x = np.arange(size, dtype=np.float32)
    for n in sorted({0, min(1, size), size // 2, size}):
        y, i = take(x, np.int32(n))
        np.testing.assert_array_equal(y, x[:n])
        np.testing.assert_array_equal(i, np.arange(n, dtype=np.int32))


@pytest.mark.parametrize("n", [-1, -(2**31), 6, 2**31 - 1])
def test_a_size_out_of_range_is_an_error_and_the_executable_stays_usable(take: shlo_disc.Executable, n: int) -> None:
    x = np.arange(5, dtype=np.float32)
    expected = r"n0 >= 0, which stablehlo.dynamic_iota" if n < 0 else r"arg0_d0 >= n0.*real_dynamic_slice"
    with pytest.raises(ShapeError, match=f"reads from data does not fit.*{expected}.*n0 = {n}"):
        take(x, np.int32(n))
    np.testing.assert_array_equal(take(x, np.int32(3))[0], x[:3])


@pytest.mark.parametrize("x", [[], [0.5], [0.5, 1.0], [1.0, 0.5, 0.5], [0.25] * 12])
def test_a_size_that_depends_on_data_of_a_size_that_depends_on_data(
    chain: shlo_disc.Executable, x: list[float]
) -> None:
    array = np.array(x, np.float32)
    n = int(2 * array.sum())
    y, t, total = chain(array)
    np.testing.assert_array_equal(y, 2 * array)
    np.testing.assert_array_equal(t, np.full((n * n, n), n, np.float32))
    assert total == n**4


def test_memory_formula_and_out_shape_name_the_data_symbols(chain: shlo_disc.Executable) -> None:
    x = np.full(8, 0.25, np.float32)
    sizes = {"arg0_d0": 8, "n0": 4, "n1": 16}
    assert [tuple(s.shape) for s in chain.out_shape(**sizes)] == [(8,), (16, 4), ()]
    assert chain.measure_peak_memory(x) == chain.peak_memory(**sizes)
    assert chain.peak_memory(**sizes) == Expr.parse(chain.peak_memory_formula).evaluate(sizes)
    assert "where n0 >= 0, n1 >= 0" in str(chain.signature)
    later = chain.artifact.header["segments"]
    assert [[row["name"] for row in segment["symbols_read"]] for segment in later] == [["n0"], ["n1"]]
    with pytest.raises(ShapeError, match="n0 = -1"):
        chain.out_shape(arg0_d0=8, n0=-1, n1=0)


def test_an_artifact_is_loaded_again(chain: shlo_disc.Executable) -> None:
    data = chain.artifact.serialize()
    loaded = shlo_disc.driver.executable.client(0).load(data, trust=True)
    assert loaded(np.full(8, 0.25, np.float32))[1].shape == (16, 4)


def test_calls_of_several_threads(chain: shlo_disc.Executable) -> None:
    wrong: list[int] = []

    def calls(first: int) -> None:
        for n in range(first, first + 40):
            count = n % 7
            _, t, _ = chain(np.full(2, count / 4, np.float32))
            if t.shape != (count * count, count) or not (t == count).all():
                wrong.append(n)

    threads = [threading.Thread(target=calls, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("dtype", ["i8", "ui8", "i16", "ui32", "i64", "ui64"])
def test_sizes_of_every_integer_type(dtype: str) -> None:
    text = f"""func.func @main(%n: tensor<1x{dtype}>) -> tensor<?xf32> {{
      %r = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1x{dtype}>) -> tensor<?xf32>
      return %r : tensor<?xf32> }}"""
    run = shlo_disc.compile(text)
    numpy_type = np.dtype(dtype.replace("i", "int"))
    np.testing.assert_array_equal(run(np.array([100], numpy_type)), np.arange(100, dtype=np.float32))
    if numpy_type.kind == "i":
        with pytest.raises(ShapeError, match="n0 = -100"):
            run(np.array([-100], numpy_type))
    if dtype == "ui64":
        with pytest.raises(ShapeError):
            run(np.array([2**63], numpy_type))


def test_a_slice_between_two_positions_that_are_data() -> None:
    text = """func.func @main(%x: tensor<?x4xf32>, %a: tensor<2xi64>, %b: tensor<2xi64>) -> tensor<?x?xf32> {
      %s = stablehlo.constant dense<[2, 1]> : tensor<2xi64>
      %y = stablehlo.real_dynamic_slice %x, %a, %b, %s
        : (tensor<?x4xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>
      %z = stablehlo.multiply %y, %y : tensor<?x?xf32>
      return %z : tensor<?x?xf32> }"""
    run = shlo_disc.compile(text)
    x = np.arange(28, dtype=np.float32).reshape(7, 4)
    for a, b in [((0, 0), (7, 4)), ((1, 2), (6, 3)), ((3, 1), (3, 1)), ((2, 0), (3, 4))]:
        want = x[a[0] : b[0] : 2, a[1] : b[1]] ** 2
        np.testing.assert_array_equal(run(x, np.array(a), np.array(b)), want)
    for a, b in [((-1, 0), (7, 4)), ((0, 0), (8, 4)), ((0, 0), (7, 5)), ((4, 0), (3, 4))]:
        with pytest.raises(ShapeError, match="real_dynamic_slice"):
            run(x, np.array(a), np.array(b))


def test_a_pad_and_a_reshape_by_data() -> None:
    text = """func.func @main(%x: tensor<?xi32>, %low: tensor<1xi64>, %shape: tensor<2xi64>) -> tensor<?x?xi32> {
      %c0 = stablehlo.constant dense<0> : tensor<1xi64>
      %v = stablehlo.constant dense<7> : tensor<i32>
      %p = stablehlo.dynamic_pad %x, %v, %low, %c0, %c0
        : (tensor<?xi32>, tensor<i32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xi32>
      %r = stablehlo.dynamic_reshape %p, %shape : (tensor<?xi32>, tensor<2xi64>) -> tensor<?x?xi32>
      return %r : tensor<?x?xi32> }"""
    run = shlo_disc.compile(text)
    x = np.arange(5, dtype=np.int32)
    for low, shape in [(1, (2, 3)), (-2, (3, 1)), (-5, (0, 9)), (11, (4, 4))]:
        want = np.concatenate([np.full(max(low, 0), 7, np.int32), x[max(-low, 0) :]]).reshape(shape)
        np.testing.assert_array_equal(run(x, np.array([low]), np.array(shape)), want)
    for low, shape in [(1, (2, 2)), (1, (-2, -3)), (-6, (0, 1))]:
        with pytest.raises(ShapeError, match="reads from data"):
            run(x, np.array([low]), np.array(shape))


def test_what_is_known_of_sizes_from_data_does_not_change_what_runs_before() -> None:
    """The slice says n <= b; nothing that runs before n is read may rely on a bound for b that comes from it."""
    text = """func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: tensor<1xi64>)
        -> (tensor<?xf32>, tensor<?xf32>) {
      %c0 = stablehlo.constant dense<0> : tensor<1xi64>
      %c1 = stablehlo.constant dense<1> : tensor<1xi64>
      %r = stablehlo.real_dynamic_slice %x, %c0, %n, %c1
        : (tensor<?xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
      %s = stablehlo.add %r, %y : tensor<?xf32>
      %t = stablehlo.multiply %y, %y : tensor<?xf32>
      return %s, %t : tensor<?xf32>, tensor<?xf32> }"""
    run = shlo_disc.compile(text)
    x, y = np.arange(9, dtype=np.float32), np.ones(4, np.float32)
    np.testing.assert_array_equal(run(x, y, np.array([4]))[0], x[:4] + 1)
    for sizes, n in [((9, 4), 3), ((3, 9), 9), ((3, 9), 3)]:
        with pytest.raises(ShapeError, match="reads from data"):
            run(x[: sizes[0]], np.ones(sizes[1], np.float32), np.array([n]))


LOOP = """
func.func @main(%x: tensor<?xf32>, %n: tensor<1xi32>, %times: tensor<i32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = stablehlo.constant dense<0> : tensor<1xi32>
  %c1 = stablehlo.constant dense<1> : tensor<1xi32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %y = stablehlo.real_dynamic_slice %x, %c0, %n, %c1
    : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  %w = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
  %i, %v = stablehlo.while(%k = %zero, %a = %y) : tensor<i32>, tensor<?xf32>
   cond {
    %p = stablehlo.compare LT, %k, %times : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %next = stablehlo.add %k, %one : tensor<i32>
    %b = stablehlo.add %a, %w : tensor<?xf32>
    stablehlo.return %next, %b : tensor<i32>, tensor<?xf32>
  }
  %z = stablehlo.multiply %x, %x : tensor<?xf32>
  return %v, %z : tensor<?xf32>, tensor<?xf32>
}
"""


def test_a_loop_over_values_of_a_size_that_is_data() -> None:
    run = shlo_disc.compile(LOOP)
    for size, n, times in [(7, 3, 4), (17, 17, 1), (5, 0, 2), (5, 4, 0)]:
        x = np.arange(size, dtype=np.float32)
        v, z = run(x, np.array([n], np.int32), np.int32(times))
        np.testing.assert_array_equal(v, x[:n] + times * np.arange(n, dtype=np.float32))
        np.testing.assert_array_equal(z, x * x)
    with pytest.raises(ShapeError, match="n0 = 6"):
        run(np.ones(5, np.float32), np.array([6], np.int32), np.int32(1))


def test_a_size_that_the_body_of_a_loop_reads_is_refused() -> None:
    text = """func.func @main(%n: tensor<i32>) -> tensor<i32> {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %r = stablehlo.while(%k = %n) : tensor<i32>
       cond {
        %p = stablehlo.compare GT, %k, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %s = stablehlo.reshape %k : (tensor<i32>) -> tensor<1xi32>
        %i = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
        %m = stablehlo.reduce(%i init: %one) applies stablehlo.minimum across dimensions = [0]
          : (tensor<?xi32>, tensor<i32>) -> tensor<i32>
        stablehlo.return %m : tensor<i32>
      }
      return %r : tensor<i32> }"""
    with pytest.raises(UnsupportedError, match="dynamic_iota at line 9: its size depends.*outside of loops"):
        shlo_disc.compile(text)


def test_shapes_of_data_that_are_refused() -> None:
    text = """func.func @main(%x: tensor<i32>) -> tensor<i32> {
      %c = stablehlo.constant dense<3> : tensor<i32>
      %p = stablehlo.compare GE, %x, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.custom_call @shape_assertion(%p) {error_message = "x", has_side_effect = true} : (tensor<i1>) -> ()
      return %x : tensor<i32> }"""
    with pytest.raises(UnsupportedError, match="depends on the elements"):
        shlo_disc.compile(text)
