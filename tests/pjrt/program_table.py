# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table that programs on the plugin's platform fill, and what they need to be written and run."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

PLATFORM = "shlo_disc"
CASES: dict[str, Callable[[], Any]] = {}
CHECKS: dict[str, Callable[[], None]] = {}


def case(function: Callable[[], Any]) -> Callable[[], Any]:
    """A program whose results are compared with those of XLA's CPU."""
    CASES[function.__name__] = function
    return function


def check(function: Callable[[], None]) -> Callable[[], None]:
    """Something about the platform, with assertions of its own."""
    CHECKS[function.__name__] = function
    return function


def ramp(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Different elements of the shape."""
    return (np.arange(np.prod(shape)).reshape(shape) / 7 - 1).astype(dtype)


def refused(program: Callable[[], Any], *texts: str, error: type[Exception] = jax.errors.JaxRuntimeError) -> None:
    """Expect an error with these texts."""
    try:
        jax.block_until_ready(program())
    except error as raised:
        assert all(text in str(raised) for text in texts), str(raised)
    else:
        raise AssertionError("there is no error")


def compared(function: Callable[[], Any]) -> None:
    """Run a case on both platforms. Raises AssertionError when they differ."""
    results = []
    for platform in (PLATFORM, "cpu"):
        jax.config.update("jax_default_device", jax.devices(platform)[0])
        try:
            results.append([np.asarray(leaf) for leaf in jax.tree.leaves(function())])
        finally:
            jax.config.update("jax_default_device", None)
    ours, theirs = results
    assert len(ours) == len(theirs) > 0
    for a, b in zip(ours, theirs, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a.astype(np.complex128), b.astype(np.complex128), rtol=2e-5, atol=2e-5)


def print_outcomes() -> None:
    """Run what the command line names, or all that is in the table, and print as JSON "ok" or what is wrong for each.

    The others are "left out".
    """
    runs = {**{name: lambda f=f: compared(f) for name, f in CASES.items()}, **CHECKS}
    outcomes = dict.fromkeys(runs, "left out")
    for name in sys.argv[1:] or list(runs):
        run = runs[name]
        try:
            run()
            outcomes[name] = "ok"
        except Exception:
            outcomes[name] = traceback.format_exc()
    print(json.dumps(outcomes))
