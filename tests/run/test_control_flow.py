# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops and branches: each compiled once and compared with XLA at many sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shlo_disc
from tests.run.op_check import DTYPES, Spec, check, check_text, random_array

F, INT = "float32", "int32"
SIZES = [{"n": n} for n in (1, 2, 15, 16, 17, 33)]
TWO = [{"n": n, "m": m} for n, m in [(1, 1), (3, 16), (17, 2), (5, 33)]]


def counts(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    """Floats as usual; integers are small trip counts and choices, 0 among them."""
    if np.dtype(dtype).kind == "f":
        return random_array(shape, dtype, seed)
    return np.full(shape, seed % 10, dtype)


def small_counts(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    """Numbers of a magnitude that does not grow in a loop, and trip counts up to 3."""
    if np.dtype(dtype).kind == "f":
        return random_array(shape, dtype, seed) * np.dtype(dtype).type(0.01)
    return np.full(shape, seed % 4, dtype)


def power_iteration(x: jax.Array, steps: jax.Array) -> jax.Array:
    return lax.fori_loop(0, steps, lambda i, y: y * 0.5 + jnp.sum(x * (i + 1).astype(F)), x)


def swap(x: jax.Array, y: jax.Array, steps: jax.Array) -> Any:
    return lax.fori_loop(0, steps, lambda i, c: (c[1], c[0]), (x, y))


def rotate(x: jax.Array, y: jax.Array, steps: jax.Array) -> Any:
    return lax.fori_loop(0, steps, lambda i, c: (c[1], c[2] + 1, c[0] * c[1]), (x, y, x + y))


def same_value_twice(x: jax.Array, y: jax.Array, steps: jax.Array) -> Any:
    return lax.fori_loop(0, steps, lambda i, c: (c[0] + c[1], c[0] + c[1]), (x, x))


def outer_value_returned(x: jax.Array, y: jax.Array, steps: jax.Array) -> Any:
    return lax.fori_loop(0, steps, lambda i, c: (c[1] * 2, y), (x, x))


def two_readers(x: jax.Array, y: jax.Array, steps: jax.Array) -> Any:
    return lax.fori_loop(0, steps, lambda i, c: (c[0] + c[1][::-1], c[1] - c[0][::-1]), (x, y))


def initial_value_used_later(x: jax.Array, y: jax.Array, steps: jax.Array) -> Any:
    start = jnp.sin(x)
    end = lax.fori_loop(0, steps, lambda i, c: c[::-1] + start, start)
    return end, start * y


def nested_loops(x: jax.Array, y: jax.Array, steps: jax.Array) -> Any:
    def outer(i: jax.Array, c: jax.Array) -> jax.Array:
        return lax.fori_loop(0, i + 1, lambda j, d: d[::-1] + y * j.astype(F), c) * 0.5

    return lax.fori_loop(0, steps, outer, x)


def nested_carry(x: jax.Array, y: jax.Array, steps: jax.Array) -> Any:
    """The inner loop starts from what the outer one carries, and its result goes on as it is."""

    def outer(i: jax.Array, c: Any) -> Any:
        return lax.fori_loop(0, i, lambda j, d: (d[1], d[0] * 0.5 + y), c)

    return lax.fori_loop(0, steps, outer, (x, y))


def branch_in_loop(x: jax.Array, y: jax.Array, steps: jax.Array) -> Any:
    def body(i: jax.Array, c: jax.Array) -> jax.Array:
        return lax.cond(i % 2 == 0, lambda d: d * 2 + y, lambda d: d, c)

    return lax.fori_loop(0, steps, body, x)


def loop_in_branch(x: jax.Array, y: jax.Array, steps: jax.Array) -> Any:
    def long(c: jax.Array) -> jax.Array:
        return lax.fori_loop(0, steps, lambda i, d: jnp.tanh(d) + y[::-1], c)

    return lax.cond(steps > 2, long, lambda c: c + y, x)


def reads_what_it_writes(x: jax.Array, y: jax.Array, steps: jax.Array) -> Any:
    return lax.fori_loop(0, steps, lambda i, c: c.at[i].set(c[i - 1] + y[i]), x)


def writes_what_others_read(x: jax.Array, y: jax.Array, steps: jax.Array) -> Any:
    def body(i: jax.Array, c: Any) -> Any:
        return c[0].at[i].set(jnp.sum(c[1])), c[0] * y

    return lax.fori_loop(0, steps, body, (x, y))


def scatters(x: jax.Array, y: jax.Array, steps: jax.Array) -> Any:
    def body(i: jax.Array, c: Any) -> Any:
        places = jnp.stack([i, i * 2, i])
        return c[0].at[places].add(c[1][:1] + 1), c[1] * 0.5

    return lax.fori_loop(0, steps, body, (x, y))


def branches_that_keep(x: jax.Array, y: jax.Array, steps: jax.Array) -> Any:
    def body(i: jax.Array, c: Any) -> Any:
        branches = [lambda d: (d[1], d[0]), lambda d: d, lambda d: (d[0] * 2 + d[1][::-1], d[1])]
        return lax.switch(i, branches, c)

    return lax.fori_loop(0, steps, body, (x, y))


PAIRS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        swap, rotate, same_value_twice, outer_value_returned, two_readers, initial_value_used_later, nested_loops,
        nested_carry, branch_in_loop, loop_in_branch, reads_what_it_writes, writes_what_others_read, scatters,
        branches_that_keep,
    )
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_carried_values(name: str) -> None:
    sizes = [{"n": n} for n in (1, 17, 2, 16, 33)]
    specs: list[Spec] = [("n", F), ("n", F), ("", INT)]
    executable = check(PAIRS[name], specs, sizes, inputs=counts, ulps=4, floor=1)
    function = jax.jit(PAIRS[name])
    for steps in (0, 1, 2, 3, 6):
        x, y = random_array((5,), F, 1), random_array((5,), F, 2)
        got, want = executable(x, y, np.int32(steps)), function(x, y, np.int32(steps))
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            np.testing.assert_allclose(a, np.asarray(b), rtol=1e-5, atol=1e-5)


def test_loops_whose_trip_count_is_data() -> None:
    executable = check(power_iteration, [("n", F), ("", INT)], SIZES, inputs=counts, ulps=32, floor=100)
    x = np.arange(4, dtype=F)
    assert (executable(x, np.int32(0)) == x).all()
    assert (executable(x, np.int32(-3)) == x).all()


@pytest.mark.parametrize("dtypes", [DTYPES, ("complex64", "complex128"), ("int4", "uint4", "float8_e4m3fn")], ids=str)
def test_every_dtype_is_carried(dtypes: Sequence[str]) -> None:
    """Through a loop that swaps, and a branch that keeps or replaces."""

    def f(x: jax.Array, k: jax.Array) -> Any:
        def body(i: jax.Array, c: Any) -> Any:
            pairs = [(b, a) for a, b in zip(c[0], c[1], strict=True)]
            return lax.cond(i % 2 == 0, lambda: c, lambda: ([p[0] for p in pairs], [p[1] for p in pairs]))

        first = [(x * 3).astype(d) for d in dtypes]
        second = [jnp.flip(x).astype(d) for d in dtypes]
        ends = lax.fori_loop(0, k, body, (first, second))
        return [e if e.dtype.itemsize > 1 or e.dtype == bool else e.astype(F) for part in ends for e in part]

    check(f, [("n", F), ("", INT)], [{"n": 1}, {"n": 5}, {"n": 17}, {"n": 8}], inputs=counts)


def test_while_stops_on_data() -> None:
    def collatz(x: jax.Array) -> Any:
        def step(c: Any) -> Any:
            y, steps = c
            going = y > 1
            y = jnp.where(going, jnp.where(y % 2 == 0, y // 2, 3 * y + 1), y)
            return y, steps + going

        return lax.while_loop(lambda c: jnp.any(c[0] > 1), step, (x, jnp.zeros_like(x)))

    def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
        return np.random.default_rng(seed).integers(1, 50, shape).astype(dtype)

    check(collatz, [("n, 3", INT)], SIZES, inputs=numbers)


def test_while_under_vmap_has_a_predicate_for_each_row() -> None:
    def halve(x: jax.Array) -> jax.Array:
        return jax.vmap(lambda v: lax.while_loop(lambda u: jnp.sum(u) > 1, lambda u: u * 0.5, v))(x)

    check(halve, [("n, m", F)], TWO, ulps=8, floor=1)


# ---- branches -------------------------------------------------------------------------------------------------------


def test_cond_with_values_from_outside() -> None:
    def choose(x: jax.Array, y: jax.Array, k: jax.Array) -> Any:
        z = x * y
        return lax.cond(k > 3, lambda: (z + x, x), lambda: (jnp.flip(z), y)), z

    specs: list[Spec] = [("n, m", F), ("n, m", F), ("", INT)]
    executable = check(choose, specs, TWO, inputs=counts)
    x, y = random_array((3, 2), F, 1), random_array((3, 2), F, 2)
    for k in (0, 9):
        (first, second), _ = executable(x, y, np.int32(k))
        np.testing.assert_array_equal(first, np.flip(x * y) if k == 0 else x * y + x)
        np.testing.assert_array_equal(second, y if k == 0 else x)


SWITCH = """
func.func @main(%k: tensor<i32>, %x: tensor<?xf32>) -> (tensor<?xf32>, tensor<i32>) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = "stablehlo.case"(%k) ({
    %a = stablehlo.add %x, %x : tensor<?xf32>
    stablehlo.return %a, %k : tensor<?xf32>, tensor<i32>
  }, {
    %a = stablehlo.negate %x : tensor<?xf32>
    stablehlo.return %a, %one : tensor<?xf32>, tensor<i32>
  }, {
    %b = stablehlo.add %k, %one : tensor<i32>
    stablehlo.return %x, %b : tensor<?xf32>, tensor<i32>
  }) : (tensor<i32>) -> (tensor<?xf32>, tensor<i32>)
  return %r#0, %r#1 : tensor<?xf32>, tensor<i32>
}
"""


def test_an_index_out_of_range_takes_the_last_branch() -> None:
    calls = [
        [np.int32(k), random_array((n,), F, n)] for n in (1, 16, 17) for k in (0, 1, 2, 3, -1, 2**31 - 1, -(2**31))
    ]
    check_text(SWITCH, calls)


def test_switch_and_nested_conds() -> None:
    def nested(x: jax.Array, k: jax.Array) -> jax.Array:
        def inner(v: jax.Array) -> jax.Array:
            return lax.cond(v[0] > 0, jnp.exp, lambda u: lax.cond(k > 1, jnp.negative, jnp.abs, u), v)

        return lax.switch(k, [inner, lambda v: v * 3, inner, jnp.flip], x)

    executable = check(nested, [("n", F), ("", INT)], SIZES, inputs=counts, ulps=4)
    for k in range(-1, 5):
        for sign in (1, -1):
            x = np.abs(random_array((9,), F, k + 2)) * np.float32(sign)
            want = np.asarray(jax.jit(nested)(x, np.int32(k)))
            np.testing.assert_allclose(executable(x, np.int32(k)), want, rtol=1e-6)


def test_a_branch_that_is_known_is_opened() -> None:
    def constant(x: jax.Array) -> jax.Array:
        return lax.cond(x.shape[0] > 0, jnp.sin, jnp.cos, x)

    executable = shlo_disc.compile(jax.jit(constant), args=(("n", F),))
    assert "stablehlo.if" not in executable.as_text("simplify")
    assert "stablehlo.case" not in executable.as_text("simplify")


def test_what_is_the_same_in_every_iteration_is_computed_once() -> None:
    def attend(x: jax.Array, memory: jax.Array, w: jax.Array) -> jax.Array:
        def body(i: jax.Array, y: jax.Array) -> jax.Array:
            keys = jnp.sin(memory) @ w
            return jnp.tanh(y @ keys.T @ memory)

        return lax.fori_loop(0, 3, body, x)

    specs: list[Spec] = [("n, 4", F), ("m, 4", F), ("4, 4", F)]
    executable = check(attend, specs, [{"n": 1, "m": 1}, {"n": 3, "m": 17}], ulps=100, floor=1)
    text = executable.as_text("simplify")
    assert text.index("stablehlo.dot_general") < text.index("stablehlo.while")
    assert text.count("stablehlo.dot_general") == 3


def test_what_nobody_needs_is_not_carried() -> None:
    text = """
    func.func @main(%x: tensor<?xf32>, %k: tensor<i32>) -> tensor<?xf32> {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %r:4 = stablehlo.while(%i = %k, %a = %x, %b = %x, %c = %x)
        : tensor<i32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
      cond {
        %zero = stablehlo.constant dense<0> : tensor<i32>
        %p = stablehlo.compare GT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %j = stablehlo.subtract %i, %one : tensor<i32>
        %s = stablehlo.add %a, %b : tensor<?xf32>
        %t = stablehlo.multiply %b, %b : tensor<?xf32>
        %u = stablehlo.add %c, %a : tensor<?xf32>
        stablehlo.return %j, %s, %t, %u : tensor<i32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
      }
      return %r#1 : tensor<?xf32>
    }
    """
    calls = [[random_array((n,), F, n), np.int32(k)] for n in (1, 17) for k in (0, 1, 3)]
    executable = check_text(text, calls, ulps=2)
    assert "%iterArg_1 = " in executable.as_text("import")
    assert "%iterArg_2 = " not in executable.as_text("import")


def test_tokens_are_not_carried() -> None:
    text = """
    func.func @main(%k: tensor<i32>) -> tensor<i32> {
      %start = stablehlo.create_token : !stablehlo.token
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %two = stablehlo.constant dense<2> : tensor<i32>
      %r:2 = stablehlo.while(%i = %k, %t = %start) : tensor<i32>, !stablehlo.token
      cond {
        %p = stablehlo.compare GT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %j = stablehlo.subtract %i, %two : tensor<i32>
        %u = stablehlo.after_all %t, %t : !stablehlo.token
        stablehlo.return %j, %u : tensor<i32>, !stablehlo.token
      }
      %done = stablehlo.after_all %r#1 : !stablehlo.token
      return %r#0 : tensor<i32>
    }
    """
    executable = shlo_disc.compile(text)
    assert [int(executable(np.int32(k))) for k in (-3, 0, 1, 4, 5)] == [-3, 0, -1, 0, -1]


# ---- sizes ----------------------------------------------------------------------------------------------------------


def test_sizes_that_a_loop_carries_are_known_in_it() -> None:
    text = """
    func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %half = stablehlo.constant dense<0.5> : tensor<f32>
      %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
      %r:3 = stablehlo.while(%i = %zero, %size = %n, %v = %x) : tensor<i32>, tensor<i32>, tensor<?xf32>
      cond {
        %p = stablehlo.compare LT, %i, %size : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %s = stablehlo.reshape %size : (tensor<i32>) -> tensor<1xi32>
        %h = stablehlo.dynamic_broadcast_in_dim %half, %s, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
        %w = stablehlo.multiply %v, %h : tensor<?xf32>
        %j = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %j, %size, %w : tensor<i32>, tensor<i32>, tensor<?xf32>
      }
      return %r#2 : tensor<?xf32>
    }
    """
    check_text(text, [[random_array((n,), F, n)] for n in (1, 2, 17, 5)])


def test_a_loop_that_grows_what_it_carries_is_refused_by_name() -> None:
    text = """
    func.func @main(%x: tensor<?xf32>, %k: tensor<i1>) -> tensor<?xf32> {
      %r:2 = stablehlo.while(%v = %x, %p = %k) : tensor<?xf32>, tensor<i1>
      cond {
        stablehlo.return %p : tensor<i1>
      } do {
        %c = stablehlo.constant dense<1.0> : tensor<1xf32>
        %w = stablehlo.concatenate %v, %c, dim = 0 : (tensor<?xf32>, tensor<1xf32>) -> tensor<?xf32>
        %q = stablehlo.not %p : tensor<i1>
        stablehlo.return %w, %q : tensor<?xf32>, tensor<i1>
      }
      return %r#0 : tensor<?xf32>
    }
    """
    with pytest.raises(shlo_disc.ProgramError, match=r"stablehlo.while at line 3: the sizes .* must be equal"):
        shlo_disc.compile(text)


def test_a_counter_is_no_size() -> None:
    text = """
    func.func @main(%x: tensor<?xf32>) -> tensor<i32> {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %five = stablehlo.constant dense<5> : tensor<i32>
      %r = stablehlo.while(%i = %one) : tensor<i32>
      cond {
        %p = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %s = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>
        %v = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
        %zero = stablehlo.constant dense<0> : tensor<i32>
        %t = stablehlo.reduce(%v init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<?xi32>, tensor<i32>) -> tensor<i32>
        %j = stablehlo.add %i, %t : tensor<i32>
        stablehlo.return %j : tensor<i32>
      }
      return %r : tensor<i32>
    }
    """  # noqa: E501
    with pytest.raises(shlo_disc.UnsupportedError, match="dynamic_iota"):
        shlo_disc.compile(text)


# ---- programs with loops inside --------------------------------------------------------------------------------------


def test_a_loop_that_only_a_later_loop_reads() -> None:
    def two(x: jax.Array, k: jax.Array) -> jax.Array:
        first = lax.fori_loop(0, k, lambda i, c: c * 0.5 + 1, x)
        start = jnp.sum(first)
        return lax.fori_loop(0, k, lambda i, c: lax.fori_loop(0, i, lambda j, d: d * start + first, c), x)

    check(two, [("n", F), ("", INT)], SIZES, inputs=small_counts, ulps=64, floor=1)


def viterbi(x: jax.Array, transitions: jax.Array) -> Any:
    """The best path through states, forward and then back."""

    def step(score: jax.Array, emission: jax.Array) -> Any:
        table = score[:, None] + transitions
        return jnp.max(table, axis=0) + emission, jnp.argmax(table, axis=0)

    score, back = lax.scan(step, x[0], x[1:])
    return score, lax.scan(lambda k, row: (row[k], row[k]), jnp.argmax(score), back, reverse=True)[1]


def edit_distance(x: jax.Array, y: jax.Array) -> Any:
    """A scan in a scan, over two symbolic lengths."""

    def row(above: jax.Array, letter: jax.Array) -> Any:
        def cell(left: jax.Array, at: Any) -> Any:
            corner, up, other = at
            best = jnp.minimum(jnp.minimum(left + 1, up + 1), corner + (letter > other))
            return best, best

        first = above[0] + 1
        cells = lax.scan(cell, first, (above[:-1], above[1:], y))[1]
        return jnp.concatenate([first[None], cells]), None

    return lax.scan(row, jnp.arange(y.shape[0] + 1), x)[0]


def conjugate_gradients(a: jax.Array, b: jax.Array) -> Any:
    return jax.scipy.sparse.linalg.cg(lambda v: a @ (a.T @ v) + 9 * v, b, maxiter=12)[0]


ALGORITHMS: dict[str, tuple[Callable[..., Any], list[Spec], float]] = {
    "viterbi": (viterbi, [("n + 1, m", F), ("m, m", F)], 16),
    "edit distance": (edit_distance, [("n", F), ("m", F)], 0),
    "conjugate gradients": (conjugate_gradients, [("n, m", F), ("n", F)], 1e4),
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_algorithms(name: str) -> None:
    function, specs, ulps = ALGORITHMS[name]
    check(function, specs, TWO, ulps=ulps, floor=1 if ulps else 0)


def test_matrix_power() -> None:
    def power(x: jax.Array, k: jax.Array) -> jax.Array:
        def body(c: Any) -> Any:
            result, base, exponent = c
            result = lax.cond(exponent % 2 == 1, lambda: result @ base, lambda: result)
            return result, base @ base, exponent // 2

        start = (jnp.eye(x.shape[0], dtype=x.dtype), x * 0.1, k)
        return lax.while_loop(lambda c: c[2] > 0, body, start)[0]

    check(power, [("n, n", F), ("", INT)], SIZES, inputs=counts, ulps=200, floor=1)


def test_what_a_loop_does_without_a_kernel_is_named_for_gpus() -> None:
    def function(x: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 3, lambda _, v: jax.lax.linalg.hessenberg(v)[0], x)

    with pytest.raises(shlo_disc.UnsupportedError, match=r"hessenberg.*no kernel for GPUs"):
        shlo_disc.compile(function, args=(("4, 4", F),), target="cuda:sm_90")


def test_stages_of_a_program_with_loops_can_be_read_again() -> None:
    executable = shlo_disc.compile(jax.jit(nested_carry), args=(("n", F), ("n", F), ("", INT)))
    from shlo_disc.shape_dialect.dialect.context import make_context
    from shlo_disc.shape_dialect.mlir import ir

    for stage in ("import", "annotate", "simplify", "fuse", "plan", "kernels", "host"):
        with make_context():
            assert ir.Module.parse(executable.as_text(stage)).operation.verify()
    assert {k.kind for k in executable.kernels} <= {"loop", "copy", "recurrence"}


def test_a_loop_reads_what_is_fused_with_the_result_of_a_later_one() -> None:
    def function(x: jax.Array) -> jax.Array:
        doubled = x * 2
        first = lax.while_loop(lambda c: (c < doubled + 3).any(), lambda c: c + 1, x)
        second = lax.while_loop(lambda c: c.sum() < 10, lambda c: c + jnp.abs(c) + 1, x)
        return first + (doubled + second)

    check(function, [("n", "float32")], [{"n": n} for n in (1, 15, 16, 17)], ulps=4, floor=1.0)
