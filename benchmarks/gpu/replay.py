# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The recorded calls of a program, made again on a GPU, and what is wrong with their results."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.gpu.backends.ours import Ours
from benchmarks.gpu.bundle import Bundle, Call, Program, Result

RUNS = 2
"""Number of runs of each call. Results that differ between runs are reported; each has to be right."""


def check(bundle: Bundle, program: Program, ours: Ours) -> dict[str, Any]:
    """Make all calls. "wrong": what is wrong, in words. "error": the largest, as a share of what is allowed.

    "unsteady": the calls whose bits differed from run to run. "load_seconds": until the program could be called.
    """
    start = time.perf_counter()
    executable = ours.executable(program.name)
    seconds, read = time.perf_counter() - start, bundle.archive(program.name)
    wrong: list[str] = []
    unsteady: list[str] = []
    worst = 0.0
    for call in program.calls:
        arguments = [read(array) for array in call.arguments]
        runs = [executable.execute(arguments, output="numpy") for _ in range(RUNS)]
        for number, result in enumerate(call.results):
            got = [np.asarray(run[number]) for run in runs]
            found = [difference(array, read(result.array), result) for array in got]
            worst = max(worst, *(share for share, _ in found))
            wrong += [f"{call.dims}: result {number} {text}" for _, text in found[:1] if text] or [
                f"{call.dims}, called again: result {number} {text}" for _, text in found[1:] if text
            ]
            unsteady += _unsteady(call, number, got)
    return {"calls": len(program.calls), "wrong": wrong, "unsteady": unsteady, "error": worst, "load_seconds": seconds}


def _unsteady(call: Call, number: int, got: list[np.ndarray]) -> list[str]:
    same = all(array.tobytes() == got[0].tobytes() for array in got)
    return [] if same else [f"{call.dims}: result {number} differs from run to run"]


def difference(got: np.ndarray, want: np.ndarray, result: Result) -> tuple[float, str]:
    """The largest error as a share of what is allowed, and what is wrong in words; "" for nothing."""
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return np.inf, f"is {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
    if np.isinf(result.absolute):
        return 0.0, ""  # it is not determined
    if want.dtype.kind in "iub":
        count = int((got != want).sum())
        return (np.inf, f"has {count} of {want.size} wrong elements") if count else (0.0, "")
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    got, want = got.astype(wide), want.astype(wide)
    with np.errstate(all="ignore"):
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        off = np.where(same, 0.0, np.abs(got - want))
        share = np.where(same, 0.0, off / (result.absolute + result.relative * np.abs(want)))
    share[np.isnan(share)] = np.inf  # one of both is NaN, or infinite
    worst = float(share.max(initial=0.0))
    if worst <= 1:
        return worst, ""
    place = np.unravel_index(int(share.argmax()), share.shape)
    where, count = [int(i) for i in place], int((share > 1).sum())
    return worst, f"has {count} of {want.size} wrong elements, at {where} {got[place]:.8g} and not {want[place]:.8g}"
