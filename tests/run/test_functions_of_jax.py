# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Public functions of JAX and their gradients, with one symbolic size, against JAX at each size.

JAX traces them once with a symbol, and may take a branch that is right for most sizes alone. What is compiled has JAX's
shapes and numbers at every size that it does not refuse.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
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
import pytest

import shlo_disc
from shlo_disc.errors import DiscError, ShapeError

MODULES = (
    jnp, jnp.linalg, jnp.fft, jax.nn, jax.scipy.special, jax.scipy.linalg, jax.scipy.signal, jax.scipy.fft,
    jax.scipy.stats, jax.scipy.integrate,
)  # fmt: skip
FORMS = (("n",), ("n, n",), ("n", "n"))
"""The shapes of the arguments."""
SIZES = (1, 2, 3, 4, 5, 8)

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


def arrays(form: Sequence[str], n: int) -> list[np.ndarray]:
    """Numbers between 0 and 1 for arguments of these shapes."""
    shapes = [(n,) * (1 + spec.count(",")) for spec in form]
    return [np.random.default_rng([n, i]).uniform(0.1, 0.9, s).astype(np.float32) for i, s in enumerate(shapes)]


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


def programs(function: Callable[..., Any]) -> Iterator[tuple[Callable[..., Any], Sequence[str], Any]]:
    """The function and its gradient in each form that JAX takes, with the program of each that can be compiled."""
    for form in FORMS:
        for each in (function, weighted(function)):
            if None in (results(each, arrays(form, 3)), results(each, arrays(form, 4))):
                continue
            try:
                yield each, form, shlo_disc.compile(each, args=tuple((spec, "float32") for spec in form))
            except (DiscError, TypeError, ValueError, IndexError, NotImplementedError, jax.errors.JAXTypeError):
                continue  # a refusal, or JAX's own


def check(function: Callable[..., Any], form: Sequence[str], program: Any) -> None:
    for n in SIZES:
        inputs = arrays(form, n)
        if (wanted := results(function, inputs)) is None:
            continue
        try:
            found = [np.asarray(x) for x in jax.tree.leaves(program(*inputs))]
        except ShapeError:
            continue
        for ours, theirs in zip(found, wanted, strict=True):
            assert ours.shape == theirs.shape, (form, n)
            scale = max(1.0, float(np.abs(theirs[np.isfinite(theirs)]).max(initial=0)))
            np.testing.assert_allclose(ours, theirs, rtol=5e-3, atol=5e-4 * scale, err_msg=f"{form} at {n}")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for function, form, program in programs(FUNCTIONS[name]):
            check(function, form, program)


def test_a_function_is_compiled() -> None:
    """The table compares something: programs for a value and for a gradient."""
    assert len(list(programs(FUNCTIONS["nn.softplus"]))) >= 2
