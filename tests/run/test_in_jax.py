# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled programs inside functions that JAX traces: jit, vmap, grad, loops, export, and what is refused there."""

from __future__ import annotations

import gc
import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import shlo_disc
import shlo_disc.numpy
from shlo_disc.errors import ArgumentTypeError, ShapeError
from shlo_disc.runtime import Artifact, Client


def model(p: dict[str, Any], x: Any) -> dict[str, Any]:
    h = jnp.tanh(x @ p["w"] + p["b"])
    return {"h": h, "total": (h * h).sum(0)}


def specs() -> tuple[Any, ...]:
    return {"w": ((4, 8), "float32"), "b": ((8,), "float32")}, ("n, 4", "float32")


@pytest.fixture(scope="module")
def program() -> Any:
    return shlo_disc.compile(model, args=specs())


@pytest.fixture(scope="module")
def params() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"w": jnp.asarray(rng.standard_normal((4, 8), np.float32)), "b": jnp.ones(8, jnp.float32)}


def rows(n: int, seed: int = 1) -> Any:
    return jnp.asarray(np.random.default_rng(seed).standard_normal((n, 4), np.float32))


def check(got: Any, want: Any) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5), got, want)


@pytest.mark.parametrize("n", [1, 2, 5, 7, 64])
def test_jit(program: Any, params: Any, n: int) -> None:
    around = lambda call: jax.jit(lambda p, x: jax.tree.map(jnp.exp, call(p, x * 2)))  # noqa: E731
    got, want = around(program)(params, rows(n)), around(model)(params, rows(n))
    check(got, want)
    assert isinstance(got["h"], jax.Array)
    assert program.compile_count == 1


def test_results_are_those_of_a_plain_call(program: Any, params: Any) -> None:
    for n in (3, 8):
        jax.tree.map(
            np.testing.assert_array_equal, jax.jit(program)(params, rows(n)), jax.device_get(program(params, rows(n)))
        )


def test_a_size_of_zero(program: Any) -> None:
    total = shlo_disc.compile(
        "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> "
        "{ %y = stablehlo.add %x, %x : tensor<?xf32> return %y : tensor<?xf32> }"
    )
    assert jax.jit(total)(jnp.zeros(0)).shape == (0,)


def test_vmap_runs_one_after_the_other(program: Any, params: Any) -> None:
    x = jnp.stack([rows(5, seed) for seed in range(3)])
    check(jax.vmap(program, (None, 0))(params, x), jax.vmap(model, (None, 0))(params, x))
    inside = jnp.moveaxis(x, 0, 1)
    check(jax.jit(jax.vmap(program, (None, 1), 1))(params, inside), jax.vmap(model, (None, 1), 1)(params, inside))
    both = jax.tree.map(lambda a: jnp.stack([a, a + 1, a * 2]), params)
    check(jax.vmap(program)(both, x), jax.vmap(model)(both, x))


def loss(call: Any) -> Any:
    return lambda p, x: sum((leaf**2).sum() for leaf in jax.tree.leaves(call(p, x)))


def test_grad(program: Any, params: Any) -> None:
    for n in (1, 6):
        check(jax.grad(loss(program))(params, rows(n)), jax.grad(loss(model))(params, rows(n)))
    want = jax.value_and_grad(loss(model), 1)(params, rows(9))
    check(jax.jit(jax.value_and_grad(loss(program), 1))(params, rows(9)), want)


def test_donated_arguments_are_there_for_the_gradient() -> None:
    donating = jax.jit(lambda x, y: jnp.sin(x) * y, donate_argnums=0)
    program = shlo_disc.compile(donating, args=(("n", "float32"), ("n", "float32")))
    x, y = jnp.arange(4.0), jnp.ones(4)
    check(jax.grad(lambda x: program(x, y).sum())(x), jnp.cos(x))
    assert not x.is_deleted()


def test_new_sizes_outside_of_jit_are_not_compiled_by_jax(program: Any, params: Any) -> None:
    lowered: list[str] = []

    def listen(event: str, _: float, **about: Any) -> None:
        if event == "/jax/core/compile/jaxpr_to_mlir_module_duration":
            lowered.append(str(about.get("fun_name")))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        jax.vjp(lambda w: program({**params, "w": w}, rows(11)), params["w"])
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert not any("lambda" in name or "shlo_disc" in name for name in lowered), lowered


@pytest.mark.slow
def test_grad_of_vmap_and_vmap_of_grad(program: Any, params: Any) -> None:
    x = jnp.stack([rows(5, seed) for seed in range(3)])

    def summed(call: Any) -> Any:
        return lambda p: jax.vmap(loss(call), (None, 0))(p, x).sum()

    check(jax.grad(summed(program))(params), jax.grad(summed(model))(params))
    check(
        jax.vmap(jax.grad(loss(program)), (None, 0))(params, x), jax.vmap(jax.grad(loss(model)), (None, 0))(params, x)
    )


@pytest.mark.slow
def test_second_derivatives(params: Any) -> None:
    def f(x: Any) -> Any:
        return jnp.sin(x) * x

    program = shlo_disc.compile(f, args=(("n", "float32"),))
    x = jnp.arange(5, dtype=jnp.float32)
    twice = lambda call: jax.grad(lambda x: jax.grad(lambda x: call(x).sum())(x).sum())(x)  # noqa: E731
    check(twice(program), twice(f))


def test_integers_have_no_cotangents() -> None:
    def f(x: Any, i: Any) -> Any:
        return x[i], i * 2

    program = shlo_disc.compile(f, args=(("n, 3", "float32"), ("m", "int32")))
    x, i = jnp.arange(12.0).reshape(4, 3), jnp.array([2, 0, 2])
    check(jax.grad(lambda x: (program(x, i)[0] ** 2).sum())(x), jax.grad(lambda x: (f(x, i)[0] ** 2).sum())(x))
    np.testing.assert_array_equal(jax.jit(program)(x, i)[1], i * 2)


def test_scan(program: Any, params: Any) -> None:
    def run(call: Any) -> Any:
        return jax.lax.scan(lambda c, x: (c + call(params, x)["total"], None), jnp.zeros(8), jnp.stack([rows(5)] * 4))[
            0
        ]

    check(run(program), run(model))


def test_an_exported_program_keeps_its_gradient(params: Any) -> None:
    exported = export.export(jax.jit(model))(*export.symbolic_args_specs((params, rows(2)), ("...", "n, ...")))
    x = rows(3)
    whole = shlo_disc.compile(bytes(exported.serialize(vjp_order=1)))
    check(jax.grad(loss(whole))(params, x), jax.grad(loss(model))(params, x))
    plain = shlo_disc.compile(bytes(exported.serialize()))
    check(jax.jit(plain)(params, x), model(params, x))
    with pytest.raises(ArgumentTypeError, match="'model' has no gradient: .* serialized with vjp_order=1"):
        jax.grad(loss(plain))(params, x)


def test_saved_programs(program: Any, params: Any) -> None:
    loaded = Client().load(Artifact.deserialize(program.artifact.serialize(), trust=True))
    check(jax.jit(loaded)(params, rows(4)), model(params, rows(4)))
    with pytest.raises(ArgumentTypeError, match="has no gradient"):
        jax.grad(loss(loaded))(params, rows(4))


def test_errors_come_while_jax_traces(program: Any, params: Any) -> None:
    with pytest.raises(ShapeError, match=r"args\[1\] has the shape \(3, 5\); the program takes \(n, 4\)"):
        jax.jit(program)(params, jnp.ones((3, 5)))
    with pytest.raises(
        ArgumentTypeError, match=r"Dtype mismatch for args\[1\]: expected float32 and called with int32"
    ):
        jax.jit(program)(params, jnp.ones((3, 4), jnp.int32))
    with pytest.raises(ArgumentTypeError, match="pytree|structure|missing|key"):
        jax.jit(lambda x: program({"w": x}, x))(jnp.ones((4, 8)))
    bounded = shlo_disc.compile(jnp.exp, args=(("n", "float32"),), constraints=("n <= 8",))
    with pytest.raises(ShapeError, match="n <= 8"):
        jax.jit(bounded)(jnp.ones(9))


def test_numbers_and_numpy_arrays_are_arguments() -> None:
    scaled = shlo_disc.compile(lambda x, s: x * s, args=(("n", "float32"), ((), "float32")))
    np.testing.assert_array_equal(jax.jit(lambda x: scaled(x, 2.0))(jnp.arange(3.0)), [0, 2, 4])
    np.testing.assert_array_equal(jax.jit(lambda x: scaled(x, np.float32(3)))(jnp.arange(3.0)), [0, 3, 6])


@pytest.mark.slow
def test_keys() -> None:
    drawn = shlo_disc.compile(
        lambda key, x: (jax.random.split(key), x + jax.random.uniform(key, x.shape)),
        args=(jax.eval_shape(lambda: jax.random.key(0)), ("n", "float32")),
    )
    key, x = jax.random.key(3), jnp.zeros(5)
    keys, y = jax.jit(drawn)(key, x)
    np.testing.assert_array_equal(jax.random.key_data(keys), jax.random.key_data(jax.random.split(key)))
    check(y, jax.random.uniform(key, (5,)))
    for around in (lambda f: f, jax.jit):
        check(around(jax.grad(lambda x: (drawn(key, x)[1] ** 2).sum()))(x), 2 * jax.random.uniform(key, (5,)))


def test_sizes_that_are_data_are_refused() -> None:
    nonzero = shlo_disc.compile(lambda x: shlo_disc.numpy.flatnonzero(x), args=(("n", "float32"),))
    with pytest.raises(ArgumentTypeError, match="cannot be called inside .* its results are read from data"):
        jax.jit(nonzero)(jnp.ones(3))


def test_bound_programs_say_what_to_call(program: Any, params: Any) -> None:
    bound = program.bind(params)
    with pytest.raises(ArgumentTypeError, match="call the executable itself"):
        jax.jit(bound)(rows(2))


def test_memory_errors_name_themselves(params: Any) -> None:
    def product(p: dict[str, Any], x: Any) -> Any:
        return jnp.sin(x @ p["w"]) @ p["w"].T

    small = Client(memory_limit=1 << 10).load(
        Artifact.deserialize(shlo_disc.compile(product, args=specs()).artifact.serialize(), trust=True)
    )
    with pytest.raises(jax.errors.JaxRuntimeError, match="shlo_disc.AllocationError: could not allocate"):
        jax.block_until_ready(jax.jit(small)(params, rows(1000)))
    check(jax.jit(small)(params, rows(2)), product(params, rows(2)))


def test_jax_keeps_the_program(params: Any) -> None:
    jitted = jax.jit(shlo_disc.compile(model, args=specs()))
    want = jitted(params, rows(3))
    gc.collect()
    check(jitted(params, rows(3)), want)


@pytest.mark.slow
def test_threads(program: Any, params: Any) -> None:
    jitted, wrong = jax.jit(program), []

    def work(n: int) -> None:
        for seed in range(20):
            got, want = jitted(params, rows(n, seed)), program(params, rows(n, seed))
            if not all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True)):
                wrong.append((n, seed))

    threads = [threading.Thread(target=work, args=(n,)) for n in (1, 3, 17, 130)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_programs_that_we_compile_call_others(program: Any, params: Any) -> None:
    outer = shlo_disc.compile(lambda p, x: program(p, jnp.sin(x))["h"] + 1, args=specs())
    for n in (2, 7):
        check(outer(params, rows(n)), model(params, jnp.sin(rows(n)))["h"] + 1)
