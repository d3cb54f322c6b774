# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scatters on GPUs: side by side and in order, every element type and body, and what results start from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.lowering.launches import CLEAR, COPY, launches_in
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.tools.cli import main
from tests.gpu.checks import check, check_text, compiled, run_on_gpu
from tests.gpu.marks import needs_mock_driver
from tests.run.op_check import INTEGERS, Sizes, assert_same, random_array, run_xla, small_integers
from tests.run.test_ops_scatter import (
    ADD,
    BODIES,
    NUMBERS,
    SCATTER,
    START,
    gradients_of_gathers,
    inputs,
    segments_and_counts,
)

pytestmark = needs_mock_driver

SIZES: list[Sizes] = [
    {"v": v, "d": d, "n": n + 1} for v, d, n in [(1, 1, 0), (1, 1, 1), (2, 3, 5), (7, 5, 31), (3, 7, 33), (13, 2, 257)]
]
"""Sizes for which "n - 1" is the number of indices."""

ELEMENTS = (("v", "float32"), ("n - 1", "int32"), ("n - 1", "float32"))


def commands(executable: shlo_disc.Executable) -> list[str]:
    """The kinds of the commands of a program."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(executable.as_text("host"))
        return [{COPY: "copy", CLEAR: "clear"}.get(c.name, c.kind) for c in launches_in(module.operation)]


def guards(executable: shlo_disc.Executable) -> list[str]:
    """The choices of its kernels at run time."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(executable.as_text("host"))
        return [f"{g.variant}/{g.otherwise}" for c in launches_in(module.operation) for g in c.guards]


def is_atomic(executable: shlo_disc.Executable) -> bool:
    """Tells whether some kernel has atomic operations."""
    return "atomic_rmw" in executable.as_text("host")


# ---- element types and bodies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ("float32", "float64", "float16", "bfloat16", *INTEGERS))
def test_every_element_type_and_body(dtype: str) -> None:
    """Indices on both sides outside, and each many times."""

    def function(x: jax.Array, i: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        bodies = ("add", "multiply", "min", "max", "set", "subtract")
        return tuple(getattr(x.at[i], body)(y, mode="drop") for body in bodies)

    executable = check(function, [("v", dtype), ("n - 1", "int32"), ("n - 1", dtype)], SIZES, inputs=inputs)
    assert is_atomic(executable) and guards(executable) == ["in order/by atomic operations"]


def test_booleans() -> None:
    def function(x: jax.Array, i: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        return x.at[i].set(y[:, None]), x.at[i, 0].max(y), x.at[i, 0].min(y)

    check(function, [("v, d", "bool"), ("n - 1", "int32"), ("n - 1", "bool")], SIZES, inputs=inputs)


BITS = """func.func @main(%x: tensor<?xTYPE>, %i: tensor<?x1xi64>, %u: tensor<?xTYPE>) -> tensor<?xTYPE> {
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<TYPE>, %b: tensor<TYPE>):
      %s = stablehlo.BODY %a, %b : tensor<TYPE>
      stablehlo.return %s : tensor<TYPE>
  }) : (tensor<?xTYPE>, tensor<?x1xi64>, tensor<?xTYPE>) -> tensor<?xTYPE>
  return %r : tensor<?xTYPE> }"""


@pytest.mark.parametrize("body", ("and", "or", "xor", "add", "maximum"))
@pytest.mark.parametrize("kind", ("i1", "i8", "ui16", "i64"))
def test_bits(kind: str, body: str) -> None:
    dtype = {"i1": "bool", "i8": "int8", "ui16": "uint16", "i64": "int64"}[kind]
    calls = [
        [random_array((v,), dtype, 1), inputs((n, 1), "int32", n).astype(np.int64), random_array((n,), dtype, 2)]
        for v, n in [(1, 1), (17, 33), (33, 0), (5, 100)]
    ]
    check_text(BITS.replace("TYPE", kind).replace("BODY", body), calls)


@pytest.mark.parametrize("name", BODIES)
def test_computed_bodies(name: str) -> None:
    index_type, update, numbers, _ = NUMBERS["no vector axis"]
    body = BODIES[name].replace("stablehlo.reshape", "stablehlo.convert")
    text = SCATTER.format(indices=index_type, update=update, numbers=numbers, body=body)
    calls = [
        [small_integers((v, d), "float32"), inputs((n, 2), "int32", n), small_integers((n, 2, 4), "float32", 1)]
        for v, d, n in [(1, 4, 1), (5, 17, 16), (33, 4, 33)]
    ]
    check_text(text, calls)


LOOP = """%k = stablehlo.constant dense<1.5> : tensor<f32>
      %c = stablehlo.remainder %a, %k : tensor<f32>
      %s = stablehlo.add %c, %b : tensor<f32>"""


def test_a_body_that_is_a_loop_goes_in_order() -> None:
    index_type, update, numbers, _ = NUMBERS["no vector axis"]
    text = SCATTER.format(indices=index_type, update=update, numbers=numbers, body=LOOP)
    call = [small_integers((5, 9), "float32"), inputs((3, 2), "int32", 3), small_integers((3, 2, 4), "float32", 1)]
    assert not is_atomic(check_text(text, [call]))


@pytest.mark.parametrize("name", NUMBERS)
def test_dimension_numbers(name: str) -> None:
    index_type, update, numbers, shape = NUMBERS[name]
    text = SCATTER.format(indices=index_type, update=update, numbers=numbers, body=ADD)

    def call(v: int, d: int, n: int) -> list[np.ndarray]:
        index_shape = tuple(int(s) if s.isdigit() else n for s in index_type[7:].split("x")[:-1])
        indices = inputs(index_shape, "int32", n)
        return [small_integers((v, d), "float32"), indices, small_integers(shape(n), "float32", 1)]

    for deterministic in (False, True):
        check_text(
            text, [call(*s) for s in [(2, 4, 1), (5, 17, 16), (17, 5, 33), (20, 20, 0)]], deterministic=deterministic
        )


def test_batches_windows_and_scalars() -> None:
    def function(x: jax.Array, i: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        along = jax.vmap(lambda a, j, b: a.at[j].add(b))
        ordered = jax.vmap(lambda a, j, b: a.at[j].set(b))
        return along(x, i, y), ordered(x, i, y), x.at[i[0]].add(y.T[:, :1]), x.sum().at[()].add(2), x.at[0, 0].set(3)

    sizes = [{"v": v, "d": d, "n": n + 1} for v, d, n in [(1, 1, 1), (3, 7, 0), (3, 7, 19), (2, 33, 5)]]
    check(function, [("v, d", "float32"), ("v, n - 1", "int32"), ("v, n - 1", "float32")], sizes, inputs=inputs)


def test_several_results_that_depend_on_each_other() -> None:
    """Pairs of a key and a value; the pair with the larger key stays."""
    names = "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
    text = f"""func.func @main(%x: tensor<?xf32>, %y: tensor<?xi32>, %i: tensor<?x1xi32>, %u: tensor<?xf32>,
        %w: tensor<?xi32>) -> (tensor<?xf32>, tensor<?xi32>) {{
      %r:2 = "stablehlo.scatter"(%x, %y, %i, %u, %w) <{{scatter_dimension_numbers = #stablehlo.scatter<{names}>}}> ({{
        ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
          %p = stablehlo.compare LT, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
          %s = stablehlo.select %p, %c, %a : tensor<i1>, tensor<f32>
          %t = stablehlo.select %p, %d, %b : tensor<i1>, tensor<i32>
          stablehlo.return %s, %t : tensor<f32>, tensor<i32>
      }}) : (tensor<?xf32>, tensor<?xi32>, tensor<?x1xi32>, tensor<?xf32>, tensor<?xi32>)
        -> (tensor<?xf32>, tensor<?xi32>)
      return %r#0, %r#1 : tensor<?xf32>, tensor<?xi32> }}"""
    calls = [
        [random_array((v,), "float32"), random_array((v,), "int32"), inputs((n, 1), "int32", n),
         random_array((n,), "float32", 1), random_array((n,), "int32", 1)]
        for v, n in [(1, 1), (16, 33), (33, 16), (5, 0)]
    ]  # fmt: skip
    executable = compiled(text)
    assert not is_atomic(executable)
    for (x, y, i, u, w), got in zip(calls, run_on_gpu(executable, calls), strict=True):
        want = [x.copy(), y.copy()]
        for place, key, value in zip(i[:, 0], u, w, strict=True):
            if 0 <= place < len(x) and want[0][place] < key:
                want[0][place], want[1][place] = key, value
        assert_same(got, want)


@pytest.mark.parametrize("n", (0, 1, 5, 40))
def test_complex_numbers(n: int) -> None:
    """Sums of the two parts are atomic each; both parts of a number come from one update."""

    def function(x: jax.Array, i: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        return x.at[i].add(y), x.at[i].set(y), x.at[i].multiply(y)

    def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
        if dtype == "int32":
            return inputs(shape, dtype, seed)
        return (small_integers(shape, "float32", seed) + 1j * small_integers(shape, "float32", seed + 1)).astype(dtype)

    specs = [("v", "complex64"), ("n - 1", "int32"), ("n - 1", "complex64")]
    check(function, specs, [{"v": v, "n": n + 1} for v in (1, 30)], inputs=numbers, ulps=4 * max(1, n))


# ---- order ----------------------------------------------------------------------------------------------------------

MANY = 1031
"""More updates than are combined in order by themselves, and a prime."""


def test_the_last_of_equal_indices_stays() -> None:
    def function(x: jax.Array, i: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        rows = jnp.broadcast_to(y[:, None], (y.shape[0], x.shape[1]))
        return x.at[i].set(rows), x.at[i % 2, 0].set(y), x.at[i].apply(lambda v: v * 2 + 1)

    check(function, [("v, d", "float32"), ("n - 1", "int32"), ("n - 1", "float32")], SIZES[:5], inputs=inputs)


@pytest.mark.parametrize("dtype", ("float32", "bfloat16", "int8"))
def test_many_replacements_are_whole_and_in_order_if_asked(dtype: str) -> None:
    def function(x: jax.Array, i: jax.Array, y: jax.Array) -> jax.Array:
        return x.at[i].set(y, mode="drop")

    specs = [("5", dtype), ("n - 1", "int32"), ("n - 1", dtype)]
    x, i, y = np.zeros(5, np.float32), np.random.default_rng(3).integers(0, 7, MANY), np.arange(MANY) % 100
    call = [x.astype(jnp.dtype(dtype)), i.astype(np.int32), (y + 1).astype(jnp.dtype(dtype))]
    (got,) = run_on_gpu(compiled(function, specs), [call])
    for place in range(5):
        assert got[place] in call[2][call[1] == place]
    ordered = compiled(function, specs, deterministic=True)
    assert not is_atomic(ordered)
    assert_same(run_on_gpu(ordered, [call])[0], run_xla(function, call))


def test_sizes_that_are_known_leave_one_kind() -> None:
    def function(x: jax.Array, i: jax.Array, y: jax.Array) -> jax.Array:
        return x.at[i].set(y)

    for n, has_atomics in ((1024, False), (1025, True)):
        executable = compiled(function, [("v", "float32"), (f"{n}", "int32"), (f"{n}", "float32")])
        assert is_atomic(executable) == has_atomics and guards(executable) == []


def test_rounding_is_that_of_the_order_if_asked() -> None:
    """The emulator adds those that meet in an element in another order than theirs."""

    def function(x: jax.Array, i: jax.Array, y: jax.Array) -> jax.Array:
        return x.at[i].add(y)

    rng = np.random.default_rng(1)
    values = rng.standard_normal(300, np.float32) * np.float32(10) ** rng.integers(-4, 5, 300).astype(np.float32)
    call = [np.zeros(3, np.float32), rng.integers(0, 3, 300).astype(np.int32), values]
    want = run_xla(function, call)
    loose, exact = (compiled(function, ELEMENTS, deterministic=d) for d in (False, True))
    assert is_atomic(loose) and not is_atomic(exact)
    (got,), (same,) = run_on_gpu(loose, [call]), run_on_gpu(exact, [call])
    assert_same(same, want)
    np.testing.assert_allclose(got, want, rtol=1e-4)
    assert (got != want).any(), "or this test shows nothing"


@pytest.mark.parametrize("body", ("max", "min", "add"))
def test_determinism_costs_nothing_where_the_order_does_not_show(body: str) -> None:
    def function(x: jax.Array, i: jax.Array, y: jax.Array) -> jax.Array:
        return getattr(x.at[i], body)(y)

    dtype = "int32" if body == "add" else "float32"
    specs = [("v", dtype), ("n - 1", "int32"), ("n - 1", dtype)]
    assert is_atomic(check(function, specs, SIZES[2:5], inputs=inputs, deterministic=True))


def test_determinism_is_an_option_of_the_pipeline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.mlir"
    path.write_text(BITS.replace("TYPE", "f32").replace("BODY", "add"))
    stages = "annotate,simplify,fuse,plan,kernels"

    def printed(*arguments: str) -> str:
        assert main(["opt", str(path), "--target", "cuda:sm_90", *arguments]) == 0
        return capsys.readouterr().out

    assert "atomic_rmw addf" in printed("--pass-pipeline", stages)
    ordered = printed("--pass-pipeline", stages + "{deterministic=true}")
    assert "atomic_rmw" not in ordered
    assert ordered == printed("--deterministic", "--stage", "kernels")
    with pytest.raises(shlo_disc.OptionError, match="deterministic must be one of"):
        shlo_disc.Options(deterministic="yes")


def test_unique_indices_need_no_atomic_operations() -> None:
    def function(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        i = jnp.arange(y.shape[0]) * 3 % x.shape[0]
        return x.at[i].add(y, unique_indices=True), x.at[i].set(y, unique_indices=True)

    sizes = [{"v": v, "n": n + 1} for v, n in ((1, 1), (7, 5), (901, 257), (5, 0))]
    executable = check(function, [("v", "float32"), ("n - 1", "float32")], sizes, inputs=small_integers)
    assert not is_atomic(executable) and guards(executable) == []


# ---- what results start from ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", START)
def test_constants_to_start_from(start: str) -> None:
    """Zeros are cleared, anything else is written by a loop before."""
    dtype, value, is_cleared = START[start]

    def function(x: jax.Array, i: jax.Array, one: jax.Array) -> tuple[jax.Array, ...]:
        rows, elements = jnp.full((20, x.shape[1]), value, dtype), jnp.full((x.shape[1],), value, dtype)
        return rows.at[i].max(x), elements.at[i].set(one)

    specs = [("n - 1, d", dtype), ("n - 1", "int32"), ("n - 1", dtype)]
    sizes = [{"n": n + 1, "d": d} for n, d in ((1, 1), (0, 3), (33, 7))]
    executable = check(function, specs, sizes, inputs=inputs)
    indices = "loop"
    assert sorted(commands(executable)) == sorted([indices, *["clear" if is_cleared else "loop", "scatter"] * 2])


def test_what_is_computed_to_start_from_is_a_loop() -> None:
    def function(x: jax.Array, y: jax.Array, i: jax.Array) -> jax.Array:
        return jnp.maximum(x, 1).at[i].add(y * 2)

    specs = [("v, d", "float32"), ("n - 1, d", "float32"), ("n - 1", "int32")]

    executable = check(function, specs, SIZES, inputs=inputs)
    assert commands(executable) == ["loop", "scatter"]
    plain = check(function, specs, SIZES[2:3], inputs=inputs, max_fusions=0, reuse=False)
    assert commands(plain)[-2:] == ["copy", "scatter"]


def test_operands_are_kept_and_results_taken_over() -> None:
    """An argument is copied first; what a scatter leaves, the next one changes where it is, in the end at its place."""

    def function(x: jax.Array, i: jax.Array, y: jax.Array) -> jax.Array:
        return x.at[i].add(y).at[i % 3].multiply(y).at[i].max(y)

    executable = check(function, ELEMENTS, SIZES, inputs=inputs)
    indices = "loop"
    assert commands(executable) == [indices, "copy", "scatter", "scatter", "copy", "scatter"]


def test_scatters_in_loops() -> None:
    def function(x: jax.Array, i: jax.Array, y: jax.Array) -> jax.Array:
        def body(step: Any, state: jax.Array) -> jax.Array:
            return jnp.cos(state).at[(i + step) % x.shape[0]].set(y)

        return jax.lax.fori_loop(0, 3, body, x)

    check(function, ELEMENTS, SIZES[1:5], inputs=inputs, ulps=8)


# ---- gradients ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_gradients_of_gathers() -> None:
    check(gradients_of_gathers, [("v, d", "float32"), ("n - 1", "int32"), ("n - 1", "float32")], SIZES, inputs=inputs)


def test_segments_and_counts() -> None:
    check(segments_and_counts, [("n - 1", "float32"), ("n - 1", "int32")], SIZES[1:5], inputs=inputs)


def test_kernels_say_where_they_come_from() -> None:
    def function(x: jax.Array, i: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.exp(x).at[i].add(y)

    kernels = compiled(function, ELEMENTS).artifact.header["kernels"]
    line = function.__code__.co_firstlineno + 1
    assert len(kernels) == 2
    assert all(re.search(rf"test_scatter\.py:{line}\b", kernel["where"]) for kernel in kernels)
