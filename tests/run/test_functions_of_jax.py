# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Public functions of JAX and their gradients, with one symbolic size, against JAX at each size.

JAX traces them once with a symbol, and may take a branch that is right for most sizes alone. What is compiled has JAX's
shapes and numbers at every size that it does not refuse.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import DiscError, ShapeError
from tests.run.functions_of_jax import FORMS, FUNCTIONS, arrays, results, weighted

SIZES = (1, 2, 3, 4, 5, 8)


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
