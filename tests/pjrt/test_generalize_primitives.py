# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""JAX's harnesses of single primitives, mapped over 2, 3 and 5 elements: none is compiled with symbols twice."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tests.pjrt.streams import Stream
from tests.run.jax_harnesses import _stacked, difference, harnesses, sample, unique_results

SAMPLE = sample(10**6)  # the first of each group
FAST = SAMPLE[:: len(SAMPLE) // 8]


@pytest.mark.parametrize("position", [p if p in FAST else pytest.param(p, marks=pytest.mark.slow) for p in SAMPLE])
def test_mapped_over_elements(position: int) -> None:
    """With the results of XLA."""
    harness = harnesses()[position]
    with jax.enable_x64(True):
        try:
            args = jax.tree.map(np.asarray, harness.dyn_args_maker(np.random.RandomState(7)))
            function = jax.vmap(harness.dyn_fun)
            calls = [_stacked(args, size) for size in (2, 3, 5)]
            wanted = [jax.tree.map(np.asarray, jax.jit(function)(*call)) for call in calls]
        except Exception as error:  # JAX cannot map all of them
            pytest.skip(str(error))
        stream = Stream(function)
        for call, want in zip(calls, wanted, strict=True):
            got = jax.tree.unflatten(jax.tree.structure(want), stream(*call))
            assert not difference(got, want, harness.group_name, unique_results(harness))
    # Some are written as another program for each size; none of those that are one program needs a third compile.
    assert stream.table.counts["not_general"] == 0, stream.reasons
    assert stream.how.count("compiled_symbolic") <= 1
