# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs on JAX's platform shlo_disc that are interpreted before they are compiled; run by test_interpreted.py."""

from __future__ import annotations

import json
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from shlo_disc.runtime.native_module import plugin_programs

CASES: dict[str, Callable[[], None]] = {}


def case(function: Callable[[], None]) -> Callable[[], None]:
    """Registers a case by its name."""
    CASES[function.__name__] = function
    return function


class Counted:
    """The programs since the block began, by how they were served."""

    def __enter__(self) -> Counted:
        self.before = plugin_programs().counts
        return self

    def __exit__(self, *_: object) -> None:
        after = plugin_programs().counts
        self.counts = {name: count - self.before[name] for name, count in after.items() if count != self.before[name]}


def fresh(length: int, rows: int = 1) -> Any:
    """An array that no program has made."""
    return jax.device_put(elements(length, rows))


def elements(length: int, rows: int = 1) -> np.ndarray:
    """The elements of `fresh`, as NumPy has them."""
    return np.random.default_rng(length).normal(size=(rows, length)).astype(np.float32)


@case
def small_programs_are_interpreted() -> None:
    x = fresh(5)
    with Counted() as programs:
        found = jax.jit(lambda x: jnp.tanh(x).sum() + x)(x)
        np.testing.assert_allclose(found, np.tanh(elements(5)).sum() + elements(5), rtol=1e-6)
    assert programs.counts == {"interpreted": 1}, programs.counts


@case
def busy_programs_are_compiled() -> None:
    step = jax.jit(lambda x: jnp.sin(x) * 2 + jnp.cos(x))
    x, y = fresh(7000), fresh(300)
    before = np.asarray(step(x))
    with Counted() as programs:
        for _ in range(200):
            after = step(x)
        np.testing.assert_allclose(before, after, rtol=1e-5, atol=1e-6)
    assert programs.counts == {"compiled": 1}, programs.counts
    with Counted() as programs:  # another size of it is not interpreted
        expected = np.sin(elements(300)) * 2 + np.cos(elements(300))
        np.testing.assert_allclose(step(y), expected, rtol=1e-5, atol=1e-6)
    assert programs.counts == {"compiled_symbolic": 1}, programs.counts


@case
def sizes_that_were_interpreted_become_one_program() -> None:
    step = jax.jit(lambda x: jnp.exp(x) - x)
    arrays = [fresh(length, 3) for length in (1000, 1700, 2100, 900)]
    with Counted() as programs:
        for x in arrays:
            step(x)
    assert programs.counts == {"interpreted": 4}, programs.counts
    with Counted() as programs:
        for _ in range(200):
            for x in arrays:
                given = elements(x.shape[1], 3)
                np.testing.assert_allclose(step(x), np.exp(given) - given, rtol=1e-5, atol=1e-6)
    assert programs.counts == {"compiled_symbolic": 1, "instances": 3}, programs.counts


@case
def large_programs_are_compiled() -> None:
    with Counted() as programs:
        jax.block_until_ready(jax.jit(lambda x: jnp.sin(x) + 1)(fresh(1000, 1000)))
    assert programs.counts == {"compiled": 1}, programs.counts


@case
def a_run_that_takes_long_is_begun_again() -> None:
    """With an argument that is donated, which the first run must not have changed."""

    def run(x: Any, y: Any) -> Any:
        return lax.fori_loop(0, 30_000, lambda _, x: (x + y) * 0.5, x)

    x, y = fresh(6), fresh(6) * 3
    expected = np.asarray(y)
    with Counted() as programs:
        found = jax.jit(run, donate_argnums=0)(x, y)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert programs.counts == {"interpreted": 1, "compiled": 1}, programs.counts
    assert x.is_deleted()


@case
def an_op_that_is_only_compiled_is_reached() -> None:
    run = jax.jit(lambda p, x: lax.cond(p, lambda x: jnp.linalg.qr(x)[1], lambda x: x, x))
    x = fresh(3, 3)
    with Counted() as programs:
        np.testing.assert_array_equal(run(False, x), x)
    assert programs.counts == {"interpreted": 1}, programs.counts
    with Counted() as programs:
        np.testing.assert_allclose(np.abs(run(True, x)), np.abs(np.linalg.qr(x)[1]), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(run(False, x), x)
    assert programs.counts == {"compiled": 1}, programs.counts


@case
def callbacks_are_compiled() -> None:
    seen: list[float] = []
    x = fresh(4)
    with Counted() as programs:
        jax.jit(lambda x: jax.debug.callback(lambda v: seen.append(float(v)), x.sum()))(x)
        jax.effects_barrier()
    assert programs.counts == {"compiled": 1}, programs.counts
    np.testing.assert_allclose(seen, [np.asarray(x).sum()], rtol=1e-5)


@case
def donated_arguments_are_deleted() -> None:
    x = fresh(4)
    expected = np.asarray(x) + 1
    with Counted() as programs:
        found = jax.jit(lambda x: x + 1, donate_argnums=0)(x)
        np.testing.assert_array_equal(found, expected)
    assert programs.counts == {"interpreted": 1}, programs.counts
    assert x.is_deleted()


@case
def results_of_others_are_awaited() -> None:
    large = fresh(2000, 2000)
    slow = jax.jit(lambda x: (x @ x @ x).sum())
    jax.block_until_ready(slow(large))
    add, loop = jax.jit(lambda x: x + 1), jax.jit(lambda x: lax.fori_loop(0, 3, lambda _, x: x * 2, x))
    for small in (add, loop):
        np.testing.assert_allclose(small(slow(large)), small(np.asarray(slow(large))), rtol=1e-6)


@case
def those_who_ask_for_code_have_it_compiled() -> None:
    x = fresh(4)
    with Counted() as programs:
        compiled = jax.jit(lambda x: jnp.sin(x) @ x.T).lower(x).compile()
        assert "interpreted" in compiled.as_text()
    assert programs.counts == {"interpreted": 1}, programs.counts
    with Counted() as programs:
        assert compiled.memory_analysis().output_size_in_bytes == 4
        assert compiled.cost_analysis()["flops"] > 0
    assert programs.counts == {"compiled": 1}, programs.counts
    np.testing.assert_allclose(compiled(x), np.sin(elements(4)) @ elements(4).T, rtol=1e-5)


@case
def serialized_programs_are_compiled() -> None:
    from jax.experimental import serialize_executable

    x = fresh(4)
    compiled = jax.jit(lambda x: jnp.sin(x) - x).lower(x).compile()
    loaded = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
    np.testing.assert_allclose(loaded(x), compiled(x), rtol=1e-6)


@case
def threads_call_while_it_is_compiled() -> None:
    step = jax.jit(lambda x: jnp.sin(x) * x + jnp.cos(x))
    x = fresh(4000)
    given = elements(4000)
    expected = np.sin(given) * given + np.cos(given)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(60):
                np.testing.assert_allclose(step(x), expected, rtol=1e-4, atol=1e-5)
        except BaseException as failure:
            failures.append(failure)

    with Counted() as programs:
        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures, failures[0]
    assert programs.counts.get("compiled") == 1, programs.counts


@case
def programs_that_are_observed_are_compiled() -> None:
    from shlo_disc.runtime.native_module import observe_programs

    observe_programs(True)
    with Counted() as programs:
        jax.jit(lambda x: x - 3)(fresh(4))
    observe_programs(False)
    assert programs.counts == {"compiled": 1}, programs.counts


@case
def programs_that_the_compiler_refuses_stay_interpreted() -> None:
    from shlo_disc.errors import UnsupportedError
    from shlo_disc.pjrt import compile as compiler

    whole = compiler.compile_program

    def refuse(*_: Any, **__: Any) -> None:
        raise UnsupportedError("no code for this")

    step, x = jax.jit(lambda x: jnp.sin(x) * 3), fresh(7000)
    expected = np.asarray(step(x))
    compiler.compile_program = refuse
    try:
        with Counted() as programs:
            for _ in range(300):
                np.testing.assert_array_equal(step(x), expected)
    finally:
        compiler.compile_program = whole
    assert programs.counts == {}, programs.counts


def outcome(name: str) -> str:
    """Run a case as if it were the first: "passed", or what it raised."""
    plugin_programs().clear()
    try:
        CASES[name]()
    except Exception:
        return traceback.format_exc()
    return "passed"


if __name__ == "__main__":
    print(json.dumps({name: outcome(name) for name in sys.argv[1:]}))
