# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compile for a GPU, call over the mock driver and the emulator, and compare with XLA on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np
import pytest

import shlo_disc
from shlo_disc.codegen import cuda_toolkit
from shlo_disc.errors import DiscError
from tests.gpu.emulated import fresh_client, loaded
from tests.gpu.mock_driver import mock_driver
from tests.gpu.no_driver import has_driver
from tests.run.op_check import Inputs, Sizes, Spec, assert_same, random_array, refine, run_xla, run_xla_text, shape_of


def has_libdevice() -> bool:
    """Whether a program for GPUs can be compiled to PTX here."""
    try:
        cuda_toolkit.find_libdevice()
    except DiscError:
        return False
    return True


needs_mock_driver = [
    pytest.mark.skipif(has_driver(), reason="NVIDIA's own driver is here; a process has one"),
    pytest.mark.skipif(not has_libdevice(), reason="libdevice is absent: pip install 'shlo_disc[cuda]'"),
]


def compile_for_gpu(
    program: Callable[..., Any] | str, specs: Sequence[Spec] = (), target: str = "cuda:sm_90", **options: Any
) -> shlo_disc.Executable:
    """A JAX function with symbolic sizes, or StableHLO text."""
    chosen = shlo_disc.Options(**options)
    if isinstance(program, str):
        return shlo_disc.compile(program, target=target, options=chosen)
    with jax.enable_x64(True):
        return shlo_disc.compile(program, target=target, args=tuple(specs), options=chosen)


def run_on_gpu(executable: shlo_disc.Executable, calls: Iterable[Sequence[np.ndarray]]) -> list[Any]:
    """The results of each call on a GPU of its own; the runtime makes no mistake with the driver."""
    driver = mock_driver()
    driver.mistakes.clear()
    run = loaded(executable, fresh_client())
    results = [jax.tree.map(np.asarray, run(*arrays)) for arrays in calls]
    assert driver.mistakes == []
    return results


def check(
    function: Callable[..., Any],
    specs: Sequence[Spec],
    sizes: Iterable[Sizes],
    *,
    inputs: Inputs = random_array,
    ulps: float = 0.0,
    floor: float = 0.0,
    **options: Any,
) -> shlo_disc.Executable:
    """Compile once, run at every one of `sizes`, compare with XLA."""
    executable, sizes = compile_for_gpu(function, specs, **options), list(sizes)
    calls = [
        [inputs(shape_of(text, size), dtype, number + 10 * i) for i, (text, dtype) in enumerate(specs)]
        for number, size in enumerate(sizes)
    ]
    for size, arrays, got in zip(sizes, calls, run_on_gpu(executable, calls), strict=True):
        try:
            assert_same(got, run_xla(function, arrays), ulps, floor=floor)
        except AssertionError as error:
            raise AssertionError(f"at {size}: {error}") from None
    return executable


def check_text(text: str, calls: Iterable[Sequence[np.ndarray]], **options: Any) -> shlo_disc.Executable:
    """The same for StableHLO text, bit by bit."""
    executable, calls = compile_for_gpu(text, **options), [list(arrays) for arrays in calls]
    for arrays, got in zip(calls, run_on_gpu(executable, calls), strict=True):
        refined = refine(text, tuple((a.shape, a.dtype.name) for a in arrays))
        assert_same(got, run_xla_text(refined, arrays))
    return executable
