# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs with fewer fusions compute the same, so that the number of fusions can be halved to find a fault."""

from __future__ import annotations

import importlib

import jax
import numpy as np
import pytest

import shlo_disc

SIZES = {"bert": (3, 17), "dien": (5, 7), "crnn": (2, 24)}


@pytest.mark.parametrize("name", SIZES)
def test_fewer_fusions_compute_the_same(name: str) -> None:
    module = importlib.import_module(f"examples.{name}")
    exported = module.export(module.SMALL)
    whole = shlo_disc.compile(exported, options=shlo_disc.Options(opt_level=0))
    arguments = (module.init(module.SMALL), *module.make_inputs(module.SMALL, *SIZES[name], seed=1))
    expected = jax.tree.leaves(whole(*arguments))
    most = whole.fusion_count
    launches = [len(whole.kernels)]
    for limit in (most, most // 2, 0):
        options = shlo_disc.Options(opt_level=0, max_fusions=limit)
        fewer = shlo_disc.compile(exported, options=options)
        assert fewer.fusion_count == limit
        launches.append(len(fewer.kernels))
        for got, want in zip(jax.tree.leaves(fewer(*arguments)), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5 * np.abs(want).max())
    assert launches == sorted(launches) and launches[0] == launches[1] and launches[-1] > 2 * launches[0]
