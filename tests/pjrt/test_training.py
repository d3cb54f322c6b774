# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The training examples on the plugin: the losses of XLA's CPU, and a few compiles for batches of changing sizes."""

from __future__ import annotations

import importlib.util

import pytest

from tests.pjrt.plugin import run_python

STEPS = 12
MOST_COMPILES = {"flax": 8, "equinox": 14}


@pytest.mark.slow
@pytest.mark.parametrize("library", ["flax", "equinox"])
def test_training_examples(library: str) -> None:
    """Needs the extra `examples`."""
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    arguments = ("-m", f"examples.train_{library}", "--steps", str(STEPS), "--check")
    done = run_python(*arguments, timeout=1200, JAX_PLATFORMS="shlo_disc,cpu")
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("programs: "))
    counts = dict(reversed(part.split()) for part in line.removeprefix("programs: ").split(", "))
    assert int(counts["compiled"]) + int(counts["compiled_symbolic"]) <= MOST_COMPILES[library]
    assert int(counts["instances"]) >= STEPS - 5
