# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions of windows along one axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.fuzz.near.pieces.movement import check_axis, other_axes
from tests.fuzz.near.program import Params, Rejected, Type, piece

WINDOW: dict[str, tuple[Callable[..., Any], float]] = {
    "sum": (jax.lax.add, 0.0), "max": (jax.lax.max, -jnp.inf), "min": (jax.lax.min, jnp.inf),
}  # fmt: skip


def _other_windows(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    found = other_axes(params, types) + [{**params, "f": f} for f in WINDOW if f != params["f"]]
    found += [{**params, "less": n} for n in (0, 1) if n != params["less"]]
    found += [{**params, key: 3 - params[key]} for key in ("stride", "dilation", "base")]
    pads = ([-1, 0], [0, -1], [0, 0], [-1, 1], [-2, 0])
    return found + [{**params, "padding": p} for p in pads if p != params["padding"]]


@piece("prefixes", _other_windows)
def _prefixes(arrays: list[Any], params: Params) -> Any:
    """Windows that are `less` shorter than their axis. Padding of -1 is one less than the axis, of -2 two less."""
    (x,), axis = arrays, params["axis"]
    check_axis(x, axis)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        raise Rejected("not floats")
    f, start = WINDOW[params["f"]]
    whole = x.shape[axis]

    def along(size: Any, others: Any) -> list[Any]:
        return [size if a == axis else others for a in range(x.ndim)]

    padding = tuple(whole + p if p < 0 else p for p in params["padding"])
    return jax.lax.reduce_window(
        x, np.asarray(start, x.dtype), f, along(whole - params["less"], 1), along(params["stride"], 1),
        along(padding, (0, 0)), along(params["base"], 1), along(params["dilation"], 1),
    )  # fmt: skip
