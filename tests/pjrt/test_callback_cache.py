# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of the plugin that call Python, in the compile cache: each process has other numbers for its functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pjrt.plugin import run_python

PROGRAM = """
import sys
import jax, jax.numpy as jnp, numpy as np
from jax import lax

function = getattr(np, sys.argv[1])

@jax.jit
def program(x):
    called = lambda a: jax.pure_callback(function, jax.ShapeDtypeStruct(a.shape, a.dtype), a)
    positive = lax.cond(x.sum() > 0, called, lambda a: -called(a), x)
    return lax.fori_loop(0, 3, lambda _, a: 0.5 * called(a), positive)

for size in (3, 5, 7):
    x = np.linspace(-1, 2, size, dtype=np.float32)
    wanted = function(x)
    for _ in range(3):
        wanted = 0.5 * function(wanted)
    np.testing.assert_allclose(program(x), wanted, rtol=1e-6)
"""


@pytest.mark.slow
def test_another_process_finds_the_programs(tmp_path: Path) -> None:
    """Though its functions are others; with two the cache has nothing to add."""
    found = []
    for function in ("sin", "cos"):
        done = run_python("-c", PROGRAM, function, JAX_PLATFORMS="shlo_disc,cpu", SHLO_DISC_CACHE_DIR=str(tmp_path))
        assert done.returncode == 0, done.stderr
        found.append(sorted(path.name for path in tmp_path.glob("*.shlodisc")))
    assert found[0] == found[1] and len(found[0]) >= 2
