# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`trace` and `lower` of `shlo_disc.jit`, and calls with leaves that are no arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import ArgumentTypeError, OptionError, RecompileError


def model(p: Any, x: Any, scale: float = 1.0) -> Any:
    return {"y": jnp.tanh(x @ p) * scale}


def spec(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def test_step_by_step() -> None:
    function = shlo_disc.jit(model, dynamic=(None, "b, ..."), static_argnames="scale")
    traced = function.trace(spec(4, 8), spec(3, 4), scale=2.0)
    assert "tanh" in str(traced.jaxpr) and str(traced.out_info["y"].shape) == "(b, 8)"
    lowered = traced.lower()
    assert "stablehlo.tanh" in lowered.as_text() and "tensor<?x4xf32>" in lowered.as_text()
    assert lowered.out_info["y"].dtype == jnp.float32 and str(lowered.out_info["y"].shape) == "(b, 8)"
    assert str(lowered.args_info[0][1].shape) == "(b, 4)"
    assert function.compile_count == 0
    program = lowered.compile()
    assert isinstance(program, shlo_disc.Executable) and program.compile_count == 1
    p, x = np.full((4, 8), 0.5, np.float32), np.ones((5, 4), np.float32)
    np.testing.assert_allclose(program(p, x)["y"], np.tanh(x @ p) * 2, rtol=1e-6)
    np.testing.assert_array_equal(function(p, x, scale=2.0)["y"], program(p, x)["y"])


def test_lower_takes_arrays_and_options() -> None:
    options = shlo_disc.Options(output="jax", max_fusions=0)
    program = shlo_disc.jit(lambda x, n: x * n, options=options).lower(np.ones(3), 2).compile()
    assert program.options == options
    np.testing.assert_array_equal(program(jnp.arange(3.0), 2), [0, 2, 4])


def test_errors_of_tracing() -> None:
    with pytest.raises(TypeError, match="incompatible shapes"):
        shlo_disc.jit(lambda x, y: x + y).lower(spec(2), spec(3))
    with pytest.raises(ArgumentTypeError):
        shlo_disc.jit(lambda x: x).trace("text")


def test_methods() -> None:
    class Scaled:
        @shlo_disc.jit(static_argnums=0, dynamic=(None, "b"))
        def call(self, x: Any) -> Any:
            return x * 3

    lowered = Scaled().call.__func__.lower(Scaled(), spec(2))
    np.testing.assert_array_equal(lowered.compile()(np.ones(7, np.float32)), [3] * 7)


# ---- filter ------------------------------------------------------------------------------------------------------


@jax.tree_util.register_dataclass
@dataclass
class Layer:
    """As modules of Equinox are: arrays, functions and settings, all of them leaves."""

    w: Any
    activation: Any
    scale: float
    name: str = "layer"

    def __call__(self, x: Any) -> Any:
        return self.activation(x @ self.w) * self.scale


def layer(activation: Any = jnp.tanh, scale: float = 2.0) -> Layer:
    return Layer(jnp.full((4, 8), 0.5, jnp.float32), activation, scale)


def test_leaves_that_are_no_arrays_are_static() -> None:
    function = shlo_disc.jit(lambda m, x: m(x), dynamic=(None, "b, ..."), filter=True)
    for n in (1, 4):
        x = jnp.ones((n, 4))
        np.testing.assert_allclose(function(layer(), x), layer()(x), rtol=1e-6)
    assert function.compile_count == 1
    x = jnp.ones((3, 4))
    np.testing.assert_allclose(function(layer(jnp.sin), x), layer(jnp.sin)(x), rtol=1e-6)
    np.testing.assert_allclose(function(layer(scale=3.0), x), layer(scale=3.0)(x), rtol=1e-6)
    np.testing.assert_allclose(function(layer(scale=3), x), layer(scale=3)(x), rtol=1e-6)
    assert function.compile_count == 4


def test_results_may_be_modules() -> None:
    @shlo_disc.jit(filter=True, dynamic=(None, "b, ..."))
    def step(m: Layer, x: Any) -> Any:
        grad = jax.grad(lambda w: (Layer(w, m.activation, m.scale)(x) ** 2).mean())(m.w)
        return Layer(m.w - 0.1 * grad, m.activation, m.scale, m.name), x.shape[0], "done"

    made, rows, text = step(layer(), jnp.ones((5, 4)))
    assert isinstance(made, Layer) and made.activation is jnp.tanh and made.name == "layer" and text == "done"
    assert int(rows) == 5 and not np.array_equal(made.w, layer().w)
    assert int(step(made, jnp.ones((9, 4)))[1]) == 9
    assert step.compile_count == 1


def test_compile_once_holds_for_each_program() -> None:
    function = shlo_disc.jit(lambda m, x: m(x), filter=True)
    function(layer(), jnp.ones((2, 4)))
    with pytest.raises(RecompileError, match="does not fit the one compiled program"):
        function(layer(), jnp.ones((3, 4)))


def test_errors_of_a_filtered_function_name_places_in_the_call() -> None:
    function = shlo_disc.jit(lambda m, x, *, y: m["f"](x @ m["w"]) + y, dynamic=(None, "b, ..."), filter=True)
    model, y = {"f": jnp.sin, "w": jnp.ones((4, 2))}, jnp.ones(2)
    function(model, jnp.ones((3, 4)), y=y)
    for call, bias, place in (
        ((model, jnp.ones((3, 5))), y, r"args\[1\]\.shape\[1\]"),
        ((model, jnp.ones((3, 4), jnp.int32)), y, r"args\[1\]: expected float32"),
        ((model | {"w": jnp.ones((4, 3))}, jnp.ones((3, 4))), y, r"args\[0\]\['w'\]\.shape\[1\]"),
        ((model, jnp.ones((3, 4))), jnp.ones(3), r"kwargs\['y'\]\.shape\[0\]"),
    ):
        with pytest.raises(RecompileError, match=place):
            function(*call, y=bias)


@pytest.mark.parametrize("x", [np.ones(4, np.float32), np.float32(3), np.ones((1, 2, 4), np.float32)])
def test_a_call_of_another_rank(x: Any) -> None:
    function = shlo_disc.jit(lambda x, w: x @ w, dynamic=("b, 4", "4, k"))
    w = np.ones((4, 3), np.float32)
    function(np.ones((2, 4), np.float32), w)
    with pytest.raises((OptionError, RecompileError), match=r"Rank mismatch for args\[0\]|dynamic= "):
        function(x, w)


@pytest.mark.slow
def test_a_filtered_function_in_steps_and_in_jax() -> None:
    function = shlo_disc.jit(lambda m, x: m(x), dynamic=(None, "b, ..."), filter=True)
    assert "tensor<?x4xf32>" in function.lower(layer(), jnp.ones((2, 4))).as_text()
    x = jnp.ones((3, 4))
    grad = jax.grad(lambda x: function(layer(), x).sum())(x)
    np.testing.assert_allclose(grad, jax.grad(lambda x: layer()(x).sum())(x), rtol=1e-5)


def test_the_executable_of_a_filtered_function() -> None:
    function = shlo_disc.jit(lambda m, x: m(x), dynamic=(None, "b, ..."), filter=True)
    with pytest.raises(OptionError, match="^no call has compiled .* yet: call it"):
        _ = function.executable
    function(layer(), jnp.ones((2, 4)))
    assert str(function.executable.signature.arguments[1].dims[0]) == "b"
    function(layer(jnp.sin), jnp.ones((2, 4)))
    (found,) = function.executable([layer().w, jnp.ones((3, 4))])
    np.testing.assert_allclose(found, layer(jnp.sin)(jnp.ones((3, 4))), rtol=1e-6)


def test_filter_is_checked() -> None:
    with pytest.raises(OptionError, match="filter=True finds out what is static"):
        shlo_disc.jit(model, filter=True, static_argnames="scale")
    with pytest.raises(OptionError, match="dynamic= has 1 entry, and the call has 2"):
        shlo_disc.jit(model, filter=True, dynamic=("b",))(jnp.ones(2), jnp.ones(2))
    with pytest.raises(ArgumentTypeError, match=r"has to be hashable, and set is not: args\[0\]\['s'\]"):
        shlo_disc.jit(lambda s: 1, filter=True)({"s": {1}})
    with pytest.raises(ArgumentTypeError, match=r"has to be hashable, and set is not: the result\[0\]"):
        shlo_disc.jit(lambda s: ({1}, s), filter=True)(1)


def test_types_of_results_without_a_compile() -> None:
    function = shlo_disc.jit(
        lambda x, w, axis: {"sum": (x @ w).sum(axis), "half": x[: x.shape[0] // 2]},
        dynamic=("b, 4", None),
        static_argnames="axis",
    )
    arguments = np.ones((6, 4), np.float32), spec(4, 3)
    made = function.eval_shape(*arguments, axis=0)
    assert made == jax.jit(lambda x, w: {"sum": (x @ w).sum(0), "half": x[:3]}).eval_shape(*arguments)
    assert made == {"sum": spec(3), "half": spec(3, 4)} and function.compile_count == 0
    filtered = shlo_disc.jit(lambda p: Layer(p.w, p.activation, p.w.shape[0]), filter=True, dynamic="n, 8")
    for size in (4, 3):
        made = filtered.eval_shape(Layer(jnp.ones((size, 8)), jnp.tanh, 2.0))
        assert made.w == spec(size, 8) and made.activation is jnp.tanh and made.scale == size
    assert filtered.compile_count == 0
    assert [filtered(Layer(jnp.ones((size, 8)), jnp.tanh, 2.0)).scale for size in (4, 3)] == [4, 3]


@pytest.mark.parametrize("is_filtered", [False, True])
def test_programs_are_forgotten(is_filtered: bool) -> None:
    function = shlo_disc.jit(lambda x: x + 1, filter=is_filtered)  # type: ignore[call-overload]
    x = np.ones(3, np.float32)
    for size in (3, 2):  # the second does not fit the first program
        np.testing.assert_array_equal(function(x[:size]), x[:size] + 1)
        assert function.compile_count == 1
        function.clear_cache()
        assert function.compile_count == 0
    with pytest.raises(shlo_disc.OptionError, match="no call has compiled"):
        _ = function.executable


def test_keys() -> None:
    function = shlo_disc.jit(lambda key, n: jax.random.normal(key, (n,)), filter=True)
    key = jax.random.key(0)
    np.testing.assert_allclose(function(key, 4), jax.random.normal(key, (4,)), rtol=1e-5, atol=1e-6)
