# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs for GPUs against XLA on the CPU: compiled once, called at several sizes over the mock driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np

import shlo_disc
from tests.gpu.emulated import loaded, shared_client
from tests.gpu.mock_driver import mock_driver
from tests.run.op_check import (
    Inputs,
    Sizes,
    Spec,
    assert_same,
    is_float,
    random_array,
    refine,
    run_xla,
    run_xla_text,
    shape_of,
)

TARGET = "cuda:sm_90"


def compiled(
    program: Callable[..., Any] | str, specs: Sequence[Spec] = (), target: str = TARGET, **options: Any
) -> shlo_disc.Executable:
    """A JAX function with symbolic sizes, or StableHLO text, which may have `?`. Products take all bits by default."""
    chosen = shlo_disc.Options(**{"matmul_precision": "highest", **options})
    with jax.enable_x64(True):
        if isinstance(program, str):
            return shlo_disc.compile(program, target=target, options=chosen)
        return shlo_disc.compile(program, target=target, args=tuple(specs), options=chosen)


def run_on_gpu(executable: shlo_disc.Executable, calls: Iterable[Sequence[np.ndarray]]) -> list[Any]:
    """The results of each call; the runtime makes no mistake with the driver."""
    driver = mock_driver()
    driver.mistakes.clear()
    run = loaded(executable, shared_client())
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
    scaled: bool = False,
    floor: float = 0.0,
    **options: Any,
) -> shlo_disc.Executable:
    """Compile once, run at every one of `sizes`, compare with XLA; as `tests.run.op_check.check`."""
    executable, sizes = compiled(function, specs, **options), list(sizes)
    calls = [
        [inputs(shape_of(text, size), dtype, number + 10 * i) for i, (text, dtype) in enumerate(specs)]
        for number, size in enumerate(sizes)
    ]
    for size, arrays, got in zip(sizes, calls, run_on_gpu(executable, calls), strict=True):
        want = run_xla(function, arrays)
        scale = run_xla(function, [_magnitude(a) for a in arrays]) if scaled else None
        try:
            assert_same(got, want, ulps, scale, floor)
        except AssertionError as error:
            raise AssertionError(f"at {size}: {error}") from None
    return executable


def _magnitude(array: np.ndarray) -> np.ndarray:
    return np.abs(array).astype(array.dtype) if is_float(array.dtype) else array


def check_text(
    text: str, calls: Iterable[Sequence[np.ndarray]], ulps: float = 0.0, floor: float = 0.0, **options: Any
) -> shlo_disc.Executable:
    """The same for StableHLO text."""
    executable, calls = compiled(text, **options), [list(arrays) for arrays in calls]
    for arrays, got in zip(calls, run_on_gpu(executable, calls), strict=True):
        refined = refine(text, tuple((a.shape, a.dtype.name) for a in arrays))
        try:
            assert_same(got, run_xla_text(refined, arrays), ulps, floor=floor)
        except AssertionError as error:
            raise AssertionError(f"at {[a.shape for a in arrays]}: {error}") from None
    return executable
