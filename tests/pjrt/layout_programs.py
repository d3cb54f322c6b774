# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs on layouts of arrays, which `jax_programs.py` runs with its own."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.layout import Format, Layout

from tests.pjrt.program_table import PLATFORM, case, check, ramp, refused


def by_columns(device: Any = None) -> Format:
    """Matrices whose first axis is the fastest."""
    device = device or jax.config.jax_default_device or jax.devices(PLATFORM)[0]
    return Format(Layout((1, 0)), jax.sharding.SingleDeviceSharding(device))


def order_of(x: Any) -> tuple[int, ...]:
    """The axes of an array from the slowest to the fastest, as it lies."""
    found: tuple[int, ...] = x.format.layout.major_to_minor
    return found


@case
def arrays_by_columns() -> Any:
    arrays = [
        jax.device_put(ramp(6, 4, dtype=dtype), by_columns()) for dtype in ("float32", "int8", "int4", "bfloat16")
    ]
    assert [order_of(x) for x in arrays] == [(1, 0)] * 4
    x = arrays[0]
    gradient = jax.jit(jax.grad(lambda w, v: jnp.tanh(v @ w).sum()))(x, jax.device_put(ramp(3, 6), by_columns()))
    return arrays, [x + x for x in arrays], x[1:3], x.T @ x, gradient, jax.device_put(x, x.sharding)


@check
def results_by_columns() -> None:
    """At several sizes; the second result lies as its argument does, for it is that turned around."""
    program = jax.jit(
        lambda x, w: (x @ w, x.T),
        in_shardings=(by_columns(), None),
        out_shardings=(by_columns(), Format(Layout.AUTO)),
    )
    for n in (3, 4, 7, 9):
        product, turned = program(jax.device_put(ramp(n, 8), by_columns()), ramp(8, 5))
        assert (order_of(product), order_of(turned)) == ((1, 0), (0, 1))
        np.testing.assert_allclose(product, ramp(n, 8) @ ramp(8, 5), rtol=1e-4)
        assert np.array_equal(turned, ramp(n, 8).T)


@check
def layouts_that_jax_does_not_look_at() -> None:
    """JAX lets arrays that no device is chosen for come to a program as they lie."""
    x = jax.jit(lambda a: a.T, out_shardings=Format(Layout.AUTO))(jnp.asarray(ramp(3, 5)))
    assert (x.committed, order_of(x)) == (False, (1, 0))
    assert np.array_equal(jax.jit(lambda a: a * 2)(x), 2 * ramp(3, 5).T)
    w = jax.jit(lambda a: a.T, out_shardings=Format(Layout.AUTO))(jnp.asarray(ramp(64, 64)))
    for _ in range(3):
        np.testing.assert_allclose(jnp.dot(ramp(8, 64), w), ramp(8, 64) @ ramp(64, 64).T, rtol=1e-4)


@check
def layouts_of_compiled_programs() -> None:
    from jax.experimental import serialize_executable

    columns = by_columns(jax.devices(PLATFORM)[0])
    function = jax.jit(lambda a: a * a, in_shardings=columns, out_shardings=columns, donate_argnums=0)
    program = function.lower(ramp(6, 4)).compile()
    parts = serialize_executable.serialize(program)
    again = serialize_executable.deserialize_and_load(*parts, execution_devices=jax.devices(PLATFORM)[:1])
    for run in (program, again):
        assert run.input_formats[0][0].layout == run.output_formats.layout == Layout((1, 0), ())
        assert "entry_computation_layout={(f32[6,4]{0,1})->f32[6,4]{0,1}}" in run.as_text()
        x = jax.device_put(ramp(6, 4), columns)
        view = np.asarray(x)
        assert np.array_equal(run(x), ramp(6, 4) ** 2)
        assert x.is_deleted()
        assert np.array_equal(view, ramp(6, 4))
    by_rows = jax.device_put(ramp(6, 4), columns.sharding)
    refused(lambda: program(by_rows), "disagree with the layouts", error=ValueError)
