# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Equalities of sizes in the user's code, which JAX takes to be false: a warning says so, and what to write works."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc

ONE = np.ones(1, np.float32)
THREE = np.ones(3, np.float32)


def special(x: Any) -> Any:
    return 2 * x if x.shape[0] == 1 else -x


UNDECIDED: dict[str, tuple[Callable[..., Any], str]] = {
    "a number": (special, "n == 1 to be false"),
    "other than": (lambda x: -x if x.shape[0] != 1 else 2 * x, "n == 1 to be false"),
    "a remainder": (lambda x: 2 * x if x.shape[0] % 2 == 0 else -x, r"mod\(n, 2\) == 0 to be false"),
    "one of several": (lambda x: 2 * x if x.shape[0] in (1, 2) else -x, "n == 1 to be false"),
    "shapes": (lambda x: 2 * x if x.shape == (1,) else -x, "n == 1 to be false"),
}


@pytest.mark.parametrize("name", UNDECIDED)
def test_an_equality_that_is_not_decided(name: str) -> None:
    function, text = UNDECIDED[name]
    for compiled in (
        lambda: shlo_disc.compile(function, args=(("n", "float32"),)),
        lambda: shlo_disc.jit(function, dynamic="n")(THREE),
    ):
        jax.clear_caches()
        with pytest.warns(UserWarning, match=text) as warned:
            compiled()
        assert len(warned) == 1 and warned[0].filename == __file__


@pytest.mark.filterwarnings("error")
def test_equalities_that_are_decided() -> None:
    for constraint in ("n >= 2", "n == 1"):
        shlo_disc.compile(special, args=(("n", "float32"),), constraints=(constraint,))
    shlo_disc.compile(lambda x: x if x.shape[1] == 4 and x.shape[0] == x.shape[0] else -x, args=(("n, 4", "float32"),))
    shlo_disc.compile(lambda x: x if x.shape[0] + 1 == x.shape[0] else -x, args=(("n", "float32"),))
    shlo_disc.compile(lambda x: x if x.shape[0] == "n" else -x, args=(("n", "float32"),))


@pytest.mark.filterwarnings("error")
def test_what_the_warning_says_to_write() -> None:
    chosen = shlo_disc.compile(
        lambda x: jax.lax.cond(jnp.asarray(x.shape[0]) == 1, lambda: 2 * x, lambda: -x), args=(("n", "float32"),)
    )
    np.testing.assert_array_equal(chosen(ONE), 2 * ONE)
    np.testing.assert_array_equal(chosen(THREE), -THREE)
    with pytest.raises(Exception, match="inconclusive"):
        shlo_disc.compile(lambda x: 2 * x if x.shape[0] <= 1 else -x, args=(("n", "float32"),))
    fixed = shlo_disc.compile(special, args=(("n", "float32"),), constraints=("n >= 2",))
    np.testing.assert_array_equal(fixed(THREE), -THREE)
    with pytest.raises(shlo_disc.ShapeError):
        fixed(ONE)


def test_libraries_may_compare_sizes() -> None:
    """JAX and NumPy do, as do dicts."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shlo_disc.compile(lambda x, y: jnp.einsum("nd,md->nm", x, y), args=(("n, 4", "float32"), ("m, 4", "float32")))
        shlo_disc.compile(lambda x: x + {x.shape[0]: 1.0}[x.shape[0]], args=(("n", "float32"),))
