# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`jax.jit` on the plugin at many shapes compiles a function twice: for the first shape, and for all others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pjrt.plugin import run_python

_PROGRAM = Path(__file__).with_name("shape_streams.py")


@pytest.mark.slow
def test_two_compiles_serve_all_shapes() -> None:
    """With the results of XLA."""
    done = run_python(str(_PROGRAM), JAX_PLATFORMS="shlo_disc,cpu")
    assert done.returncode == 0, done.stderr
    assert "leaked" not in done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) == 6
    for name, (error, counts) in found.items():
        assert error < 1e-5, name
        if name != "decode":  # of one sequence it is another program
            assert (counts["compiled"], counts["compiled_symbolic"]) == (1, 1), name
        assert counts["compiled"] + counts["compiled_symbolic"] + counts["instances"] == 16, (name, counts)
        assert counts["instances"] >= 12, (name, counts)
