# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops for GPUs whose iterations read sizes from data: run over the mock driver, and assembled."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
import pytest

import shlo_disc
from shlo_disc.lowering.codegen.ptx import assemble
from shlo_disc.runtime import Client
from tests.gpu.emulated import loaded
from tests.gpu.marks import needs_libdevice, needs_mock_driver
from tests.run.test_sizes_in_loops import (
    assert_close,
    depths,
    depths_by_numpy,
    lambert,
    nested,
    nested_by_numpy,
    pruned,
    scanned,
    scanned_by_numpy,
    vector,
)

ROW = (("n",), "float32")
PROGRAMS = {
    "lambert": (lambert, [ROW]),
    "pruned": (pruned, [(("n", 8), "float32"), ROW, ((8, 8), "float32")]),
    "depths": (depths, [(("e",), "int32"), (("e",), "int32"), (("v",), "int32")]),
    "nested": (nested, [ROW]),
    "scanned": (scanned, [ROW, (("k",), "float32")]),
}


@functools.cache
def compiled(name: str) -> Any:
    function, arguments = PROGRAMS[name]
    return shlo_disc.compile(function, args=arguments, target="cuda:sm_80")


class TestRuns:
    """Each iteration computes what it selects."""

    pytestmark = needs_mock_driver

    def test_a_branch_in_a_scan(self, client: Client) -> None:
        run = loaded(compiled("scanned"), client)
        for size in (1, 33):
            given = vector(size), np.array([1, 100, -100], np.float32)
            assert_close(jax.tree.map(np.asarray, run(*given)), scanned_by_numpy(*given), size)

    @pytest.mark.parametrize("size", [1, 32, 100])
    def test_a_loop_in_a_loop(self, client: Client, size: int) -> None:
        run = loaded(compiled("nested"), client)
        assert_close(np.asarray(run(vector(size))), nested_by_numpy(vector(size)), size)

    @pytest.mark.parametrize("size", [3, 64])
    def test_breadth_first_search(self, client: Client, size: int) -> None:
        run = loaded(compiled("depths"), client)
        edges = np.random.default_rng(size).integers(0, size, (2, 2 * size)).astype(np.int32)
        marks = np.where(np.arange(size) == 0, 0, 1 << 20).astype(np.int32)
        assert_close(jax.tree.map(np.asarray, run(*edges, marks)), depths_by_numpy(*edges, marks), size)


@needs_libdevice
@pytest.mark.ptxas
@pytest.mark.parametrize(
    "name", ["scanned", *(pytest.param(n, marks=pytest.mark.slow) for n in PROGRAMS if n != "scanned")]
)
def test_kernels_assemble(name: str) -> None:
    assert assemble(compiled(name).as_text("ptx"), "sm_80").startswith(b"\x7fELF")
