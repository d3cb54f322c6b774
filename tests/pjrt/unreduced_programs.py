# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs with unreduced arrays, whose parts `device_checks.py` compares device by device, and their sums."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, shard_map
from jax.sharding import AxisType, Mesh, reshard

from tests.pjrt.device_programs import Devices, P, case
from tests.pjrt.program_table import ramp


def explicit(devices: Devices) -> Mesh:
    """Two times two devices, whose axes are in the types of arrays."""
    return jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2, devices=list(devices))


def parts(*arrays: Any) -> list[Any]:
    """The parts of arrays, device by device."""
    return [shard.data for array in arrays for shard in array.addressable_shards]


def left(*dims: Any, axes: str = "x") -> Any:
    """A sharding that is unreduced along `axes`, one letter each."""
    return P(*dims, unreduced=set(axes))


@case
def products_left_unreduced(devices: Devices) -> Any:
    """Some sums are made, others left to the caller: the sums over x, y, or both."""
    with jax.set_mesh(explicit(devices)):
        a, b = jax.device_put(ramp(8, 4), P("x", "y")), jax.device_put(ramp(4, 6), P("y", None))
        f = jax.jit(lambda a, b: jnp.einsum("ab,bc->ac", a, b, out_sharding=left("x", None, axes="y")))
        c, d = jax.device_put(ramp(6, 8), P(None, ("x", "y"))), jax.device_put(ramp(8, 2), P(("x", "y"), None))
        g = jax.jit(lambda c, d: jnp.einsum("ab,bc->ac", c, d, out_sharding=left(axes="xy")))
        one, both = f(a, b), g(c, d)
        back = [reshard(one, P("x", "y")), reshard(one, P()), reshard(both, P("y")), reshard(both, P())]
        return parts(one, both, *back), jax.jit(lambda o: (reshard(o, P()), reshard(o, P("x"))))(one)


@case
def reductions_left_unreduced(devices: Devices) -> Any:
    with jax.set_mesh(explicit(devices)):
        a = jax.device_put(ramp(8, 4), P("x", "y"))
        f = jax.jit(lambda a: lax.reduce_sum(a, [0], out_sharding=left("y")))
        g = jax.jit(lambda a: lax.reduce_sum(a, [0, 1], out_sharding=left(axes="xy")))
        return parts(f(a), g(a)), reshard(f(a), P()), reshard(g(a), P())


@case
def arrays_made_unreduced(devices: Devices) -> Any:
    """Whole arrays are the first device's; divided ones stay where they are, among zeros."""
    with jax.set_mesh(explicit(devices)):
        found = []
        for spec, target in (
            (P(), left()),
            (P(), left(axes="xy")),
            (P("x"), left()),
            (P("x", "y"), left(None, "y")),
            (P(("x", "y")), left(axes="xy")),
            (P(("y", "x")), left("y")),
            (P(("x", "y")), left()),
            (P("y"), left(axes="xy")),
            (P("x"), left("y")),
        ):
            array = reshard(jax.device_put(ramp(8, 4), spec), target)
            found.append(reshard(array, P()))
            found += parts(array) if spec == P() or spec == P("x") else []
        return found


@case
def linear_ops_of_unreduced_arrays(devices: Devices) -> Any:
    with jax.set_mesh(explicit(devices)):
        a = jax.jit(lambda a: lax.reduce_sum(a, [0], out_sharding=left("y")))(
            jax.device_put(ramp(8, 4, 6), P("x", "y"))
        )
        scale = jax.device_put(ramp(4, 6), P("y", reduced={"x"}))

        def f(a: Any, scale: Any) -> Any:
            twice = a + a
            return twice, twice.T, a * scale, scale * twice, a.astype(jnp.bfloat16), jnp.concatenate([a, twice], 1)

        results = jax.jit(f)(a, scale)
        return parts(*results), [reshard(r, P()) for r in results]


@case
def unreduced_arrays_of_manual_programs(devices: Devices) -> Any:
    with jax.set_mesh(explicit(devices)):
        cast = shard_map(lambda b: lax.pcast(b.sum(0), "x", to="unreduced"), out_specs=left("y"))
        made = jax.jit(cast)(jax.device_put(ramp(8, 4), P("x", "y")))
        used = shard_map(lambda s: lax.psum(s, "x"), in_specs=left("y"), out_specs=P("y"))
        scattered = shard_map(
            lambda s: lax.psum_scatter(s, "x", tiled=True), in_specs=left("y"), out_specs=P(("y", "x"))
        )
        return parts(made), used(made), jax.jit(used)(made), jax.jit(scattered)(made), reshard(made, P())


@case
def gradients_summed_after_the_loop(devices: Devices) -> Any:
    """Gradients of small batches are added on each device, and between devices once."""
    with jax.set_mesh(explicit(devices)):
        w = jax.device_put(0.1 * ramp(4, 4), P(reduced={"x", "y"}))
        batches = jax.device_put(ramp(3, 8, 4), P(None, ("x", "y")))

        def f(w: Any, batches: Any) -> Any:
            def step(total: Any, batch: Any) -> Any:
                return total + jax.grad(lambda w: jnp.sum(jnp.tanh(batch @ w)))(w), None

            zero = reshard(jnp.zeros_like(reshard(w, P())), left(axes="xy"))
            total, _ = lax.scan(step, zero, batches)
            return reshard(total, P()), total

        whole, total = jax.jit(f)(w, batches)
        return whole, parts(total)


@case
def unreduced_arrays_in_branches(devices: Devices) -> Any:
    """Branches capture what is outside of them."""
    with jax.set_mesh(explicit(devices)):
        a = jax.device_put(np.asarray(ramp(8, 4)), P("x", "y"))

        def f(a: Any, flag: Any) -> Any:
            sums = lax.reduce_sum(a, [0], out_sharding=left("y"))
            return lax.cond(flag, lambda: reshard(sums, P("y")), lambda: reshard(sums + sums, P("y"))), sums

        found = [jax.jit(f)(a, jnp.asarray(flag)) for flag in (True, False)]
        return [(chosen, reshard(sums, P())) for chosen, sums in found]
