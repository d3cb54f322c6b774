# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Custom calls in programs for GPUs: functions of the host's, whose arrays go there and back, over the mock driver."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxlib import lapack

import shlo_disc
from shlo_disc.errors import CustomCallError, UnsupportedError
from shlo_disc.runtime import Client
from tests.gpu.emulated import loaded
from tests.gpu.loop_programs import ROWS, rows
from tests.gpu.marks import needs_mock_driver
from tests.gpu.mock_driver import MockDriver
from tests.run.test_custom_calls import Call, plain

pytestmark = needs_mock_driver

_numbers = itertools.count()


def registered(function: Callable[[Call], Any]) -> str:
    """A name under which programs call it."""
    name = f"host_call_{next(_numbers)}"
    shlo_disc.register_custom_call(name, plain(function))
    return name


def program(name: str, **options: Any) -> Callable[..., Any]:
    """Kernels before and behind a call that doubles rows."""

    def run(x: jax.Array) -> Any:
        shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype)]
        (y,) = jax.ffi.ffi_call(name, shapes, **options)(jnp.exp(x))
        return y.sum(1), y + 1

    return run


def double(call: Call) -> None:
    call.results[0].array()[...] = 2 * call.operands[0].array()


def compiled(function: Callable[..., Any]) -> shlo_disc.Executable:
    return shlo_disc.compile(function, target="cuda:sm_90", args=ROWS)


def test_arrays_go_to_the_host_and_back(client: Client) -> None:
    run = loaded(compiled(program(registered(double))), client)
    for b, s in ((1, 1), (3, 7), (2, 300), (3, 7)):
        x = rows(b, s)
        total, more = run(x)
        np.testing.assert_allclose(total, 2 * np.exp(x).sum(1), rtol=1e-5)
        np.testing.assert_allclose(more, 2 * np.exp(x) + 1, rtol=1e-5)


def test_a_result_begins_as_its_operand(client: Client) -> None:
    def add(call: Call) -> None:
        call.results[0].array()[...] += 1

    run = loaded(compiled(program(registered(add), input_output_aliases={0: 0})), client)
    np.testing.assert_allclose(run(rows(3, 4))[1], np.exp(rows(3, 4)) + 2, rtol=1e-5)


def test_a_function_that_fails_ends_the_call(client: Client) -> None:
    fails = [True]

    def may_fail(call: Call) -> bool:
        double(call)
        return fails[0]

    run = loaded(compiled(program(registered(may_fail))), client)
    with pytest.raises(CustomCallError, match="no good"):
        run(rows(3, 4))
    fails[0] = False
    np.testing.assert_allclose(run(rows(3, 4))[1], 2 * np.exp(rows(3, 4)) + 1, rtol=1e-5)


def test_a_call_in_a_loop(client: Client) -> None:
    name = registered(double)

    def f(x: jax.Array) -> jax.Array:
        def body(_: Any, v: jax.Array) -> jax.Array:
            return jax.ffi.ffi_call(name, jax.ShapeDtypeStruct(v.shape, v.dtype))(v) - 1

        return jax.lax.fori_loop(0, 3, body, x)

    np.testing.assert_allclose(loaded(compiled(f), client)(rows(2, 3)), 8 * rows(2, 3) - 7, rtol=1e-5)


def test_memory_of_the_driver_that_fails(driver: MockDriver, client: Client) -> None:
    run = loaded(compiled(program(registered(double))), client)
    driver.fails["cuMemcpyDtoHAsync_v2"] = 719
    with pytest.raises(Exception, match="copy from a GPU"):
        run(rows(3, 4))


def test_a_handler_that_would_be_told_of_the_gpus_memory_is_refused() -> None:
    handlers = {name: function for name, function, *_ in lapack.registrations()["cpu"]}
    shlo_disc.register_custom_call("handler_of_processors", handlers["lapack_spotrf_ffi"])

    def f(x: jax.Array) -> Any:
        shapes = (jax.ShapeDtypeStruct((3, 3), jnp.float32), jax.ShapeDtypeStruct((), jnp.int32))
        return jax.ffi.ffi_call("handler_of_processors", shapes)(x, uplo=np.uint8(76))

    with pytest.raises(UnsupportedError, match=r"custom_call[\s\S]*no kernel for GPUs"):
        shlo_disc.compile(f, target="cuda:sm_90", args=(("3, 3", "float32"),))


def test_callbacks_to_python(client: Client) -> None:
    """Those of JAX's functions take the same way."""
    seen: list[tuple[int, ...]] = []

    def run(x: jax.Array) -> Any:
        jax.debug.callback(lambda a: seen.append(a.shape), x + 1)
        y = jax.pure_callback(lambda a: 2 * a, jax.ShapeDtypeStruct(x.shape, x.dtype), jnp.exp(x))
        return y.sum(1), y + 1

    executable = compiled(run)
    on_gpu = loaded(executable, client)
    for b, s in ((1, 1), (3, 7), (2, 300)):
        x = rows(b, s)
        total, more = on_gpu(x)
        np.testing.assert_allclose(total, 2 * np.exp(x).sum(1), rtol=1e-5)
        np.testing.assert_allclose(more, 2 * np.exp(x) + 1, rtol=1e-6)
    assert seen == [(1, 1), (3, 7), (2, 300)]
