# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C API: bound weights, and memory for results."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

import shlo_disc

from .c_api import CError, Program, checked, tensors_of


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """w, x -> x @ w for w: f32[24, 40], x: f32[b, 24]."""
    path = tmp_path_factory.mktemp("saved") / "product.disc"
    shlo_disc.compile(lambda w, x: x @ w, args=(("24, 40", "float32"), ("b, 24", "float32"))).save(path)
    return path


def test_bound_weights_and_memory_of_results(saved: Path) -> None:
    rng = np.random.default_rng(0)
    w, program = rng.standard_normal((24, 40), np.float32), Program(saved)
    with pytest.raises(CError) as caught:
        program.bind(w.view(np.int32))
    path = shlo_disc.load(saved, trust=True).artifact.header["arguments"][0]["path"]
    assert (caught.value.kind, caught.value.argument) == ("ArgumentTypeError", path)
    bound, kept = program.bind(w), w.copy()
    w[:] = np.nan
    executable = shlo_disc.load(saved, trust=True)
    for rows in (1, 2, 7, 65):
        x, plan = rng.standard_normal((rows, 24), np.float32), bound.plan(rows, 24)
        for shift in (0, 1):  # one of both is not aligned to 64 bytes
            out = np.zeros(rows * 40 + 1, np.float32)[shift:][: rows * 40].reshape(rows, 40)
            plan.run([x], [out])
            np.testing.assert_allclose(out, executable.bind(kept)(x), rtol=2e-5, atol=2e-6)
        big = np.zeros(rows * 40 + 24, np.float32)
        with pytest.raises(CError, match=r"the memory for result overlaps that of args\[1\]$") as caught:
            plan.run([big[: rows * 24].reshape(rows, 24)], [big[4:][: rows * 40].reshape(rows, 40)])
        assert caught.value.kind == "ValueError" and not big.any()


@pytest.mark.parametrize("strides", [(1, 3), (-24, 1), (48, 2), (0, 0)], ids=str)
def test_strided_arguments(saved: Path, strides: tuple[int, int]) -> None:
    program = Program(saved)
    w = np.random.default_rng(0).standard_normal((24, 40)).astype(np.float32)
    memory = np.random.default_rng(1).standard_normal(512).astype(np.float32)
    x = np.lib.stride_tricks.as_strided(memory[200:], (3, 24), [4 * s for s in strides])
    given, results = tensors_of([w, x]), ctypes.c_void_p()
    np.testing.assert_allclose(program(w, x)[0], x @ w, rtol=2e-5, atol=1e-5)
    given[1].strides = (ctypes.c_int64 * 2)(1 << 62, 1)
    with pytest.raises(CError) as caught:
        checked("disc_call", program.pointer, given, ctypes.c_size_t(2), ctypes.byref(results))
    assert (caught.value.kind, caught.value.argument) == ("ShapeError", "args[1]")
