# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The public functions of JAX that tests call, their arguments, and their gradients."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.fft
import jax.scipy.integrate
import jax.scipy.linalg
import jax.scipy.signal
import jax.scipy.special
import jax.scipy.stats
import numpy as np

MODULES = (
    jnp, jnp.linalg, jnp.fft, jax.nn, jax.scipy.special, jax.scipy.linalg, jax.scipy.signal, jax.scipy.fft,
    jax.scipy.stats, jax.scipy.integrate,
)  # fmt: skip
FORMS = (("n",), ("n, n",), ("n", "n"))
"""The shapes of the arguments."""

LEFT = {
    **dict.fromkeys(("empty", "empty_like"), "gives what is in memory"),
    **dict.fromkeys(("eig", "eigh", "svd", "schur", "qr", "polar", "rsf2csf"), "has any sign, or order"),
    **dict.fromkeys(("histogram", "histogram2d", "histogramdd"), "counts by edges that XLA rounds otherwise"),
    **dict.fromkeys(("save", "savez", "printoptions", "set_printoptions"), "computes nothing"),
}
"""Functions that are not compared, and why."""


def named() -> dict[str, Callable[..., Any]]:
    """The functions, by module and name."""
    return {
        f"{module.__name__.removeprefix('jax.')}.{name}": function
        for module in MODULES
        for name, function in sorted(vars(module).items())
        if callable(function) and not inspect.isclass(function) and not name.startswith("_") and name not in LEFT
    }


FUNCTIONS = named()


def arrays(form: Sequence[str], n: int, m: int = 0, dtype: Any = np.float32) -> list[np.ndarray]:
    """Numbers between 0.1 and 0.9 for arguments of these shapes; of integers, numbers between 1 and 9.

    Complex ones have such imaginary parts, too.
    """
    sizes: dict[str, int] = {"n": n, "m": m}
    made = []
    for i, spec in enumerate(form):
        shape = tuple(sizes[s] if s in sizes else int(s) for s in spec.split(", "))
        array = np.random.default_rng([n, i]).uniform(0.1, 0.9, shape)
        if np.issubdtype(dtype, np.complexfloating):
            array = array + 1j * np.random.default_rng([n, i, 1]).uniform(0.1, 0.9, shape)
        made.append((array * 10 if np.issubdtype(dtype, np.integer) else array).astype(dtype))
    return made


def results(function: Callable[..., Any], inputs: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    """JAX's results; None where it takes no such arguments, or returns something else."""
    try:
        found = jax.tree.leaves(function(*map(jnp.asarray, inputs)))
    except Exception:  # whatever a function raises for what it does not take
        return None
    return [np.asarray(x) for x in found] if found and all(isinstance(x, jax.Array) for x in found) else None


def weighted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient of a sum to which each element of each result contributes by its place."""

    def total(*inputs: Any) -> Any:
        floats = [x for x in jax.tree.leaves(function(*inputs)) if jnp.issubdtype(x.dtype, jnp.inexact)]
        return sum(jnp.sum(jnp.abs(x) ** 2 * (1 + jnp.cumsum(jnp.ones_like(x.real)).reshape(x.shape))) for x in floats)

    return jax.grad(total)
