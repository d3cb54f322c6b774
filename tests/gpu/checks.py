# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs for GPUs against XLA: compiled once, loaded over the mock driver, called at several sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np

import shlo_disc
from shlo_disc.codegen import cuda_toolkit
from shlo_disc.errors import DiscError
from shlo_disc.runtime import Client
from tests.gpu.emulated import loaded
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


def has_libdevice() -> bool:
    """Whether a program for GPUs can be compiled to PTX here."""
    try:
        cuda_toolkit.find_libdevice()
    except DiscError:
        return False
    return True


def compiled(function: Any, specs: Sequence[Spec] | None = None) -> shlo_disc.Executable:
    """A function, or StableHLO text, for GPUs."""
    with jax.enable_x64(True):
        if specs is None:
            return shlo_disc.compile(function, target=TARGET)
        return shlo_disc.compile(function, target=TARGET, args=tuple(specs))


def check(
    client: Client,
    function: Callable[..., Any],
    specs: Sequence[Spec],
    sizes: Iterable[Sizes],
    *,
    inputs: Inputs = random_array,
    ulps: float = 0.0,
    scaled: bool = False,
    floor: float = 0.0,
) -> shlo_disc.Executable:
    """Compile once, run at every one of `sizes`, compare with XLA; as `tests.run.op_check.check`."""
    executable = compiled(function, specs)
    run = loaded(executable, client)
    for number, size in enumerate(sizes):
        arrays = [inputs(shape_of(text, size), dtype, number + 10 * i) for i, (text, dtype) in enumerate(specs)]
        want = run_xla(function, arrays)
        scale = (
            run_xla(function, [np.abs(a).astype(a.dtype) if is_float(a.dtype) else a for a in arrays])
            if scaled
            else None
        )
        try:
            assert_same(run(*arrays), want, ulps, scale, floor)
        except AssertionError as error:
            raise AssertionError(f"at {size}: {error}") from None
    return executable


def check_text(
    client: Client, text: str, calls: Iterable[Sequence[np.ndarray]], ulps: float = 0.0, floor: float = 0.0
) -> shlo_disc.Executable:
    """Compile `text`, which may have `?`, and compare every call with XLA."""
    executable = compiled(text)
    run = loaded(executable, client)
    for arrays in calls:
        refined = refine(text, tuple((a.shape, a.dtype.name) for a in arrays))
        try:
            assert_same(run(*arrays), run_xla_text(refined, list(arrays)), ulps, floor=floor)
        except AssertionError as error:
            raise AssertionError(f"at {[a.shape for a in arrays]}: {error}") from None
    return executable
