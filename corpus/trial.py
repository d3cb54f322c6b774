# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Entries of one client: `python -m corpus.trial SECONDS CLIENT NAME...` prints what came of each, as JSON.

The client is imported once; each entry runs in a process of its own, which is forked from that one, for so many seconds
at most. The arguments are made on XLA's CPU. Then the function is compiled and called at each size, on XLA's CPU and
through the plugin, with new functions for both, so that neither finds what the other has traced.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from corpus.apart import each_apart
from corpus.outcomes import RIGHT, refusal, shortened
from corpus.registry import SIZES, Entry, find_entry, is_key

MARK = "corpus outcome: "
PLATFORM = "shlo_disc"

_TOLERANCES = {
    "float16": 5e-3,
    "bfloat16": 3e-2,
    "float32": 2e-4,
    "complex64": 2e-4,
    "float64": 1e-9,
    "complex128": 1e-9,
}
_KERNELS = re.compile(r'backend_config="([^"]*)"')
_MICRO_KERNEL = re.compile(r"gemm_\w+")  # one for each number of rows of a tile, so that registers decide how many
_LEAST = 1e-3  # of the largest element of all results: smaller ones are compared with that


def run_entry(client: str, name: str, sizes: Sequence[int]) -> dict[str, Any]:
    """Run an entry at some sizes; the fields of `outcomes.Outcome`."""
    entry = find_entry(client, name)
    run = _run_jax if entry.mode == "jax" else _run_torch
    left_out = _LeftOut()
    outcome = run(entry, [entry.sizes(size) for size in sizes])
    if left_out.messages and outcome["outcome"] == RIGHT:
        return {**outcome, "outcome": "recovered", "note": shortened(left_out.messages[0])}
    return outcome


class _LeftOut(logging.Handler):
    """The decisions that compiles have left out after an internal error, as the logger `shlo_disc` tells."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []
        logging.getLogger("shlo_disc").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if "after an internal error" in text:
            self.messages.append(text)


def _run_jax(entry: Entry, sizes: Sequence[int]) -> dict[str, Any]:
    import jax

    cpu, ours = jax.devices("cpu")[0], jax.devices(PLATFORM)[0]
    theirs = _called(_built(entry, sizes), cpu)
    if theirs.error:
        return refusal("reference fails", theirs.error)
    calls = _called(_built(entry, sizes), ours)
    if calls.error:
        return refusal("refused" if "UNIMPLEMENTED" in calls.error else "error", calls.error)
    return {
        **_compared(calls.results, theirs.results, entry.tolerance),
        "programs": calls.programs,
        "kernels": _kernels_of(calls.text),
        "seconds": calls.seconds,
        "reference_seconds": theirs.seconds,
    }


def _kernels_of(text: str) -> int:
    """The kernels that a compiled program names: those that all processors have."""
    found = _KERNELS.search(text)
    return sum(not _MICRO_KERNEL.fullmatch(name.strip()) for name in found[1].split(",")) if found else 0


@dataclass
class _Calls:
    """Calls at each size: their results, the seconds of the processor, the programs that were compiled for them, the
    text of the last one, and an error."""

    results: list[Any] = field(default_factory=list)
    seconds: float = 0.0
    programs: int = 0
    text: str = ""
    error: str = ""


def _built(entry: Entry, sizes: Sequence[int]) -> list[tuple[Any, Any]]:
    """The functions, and their arguments as NumPy has them, so that they lie nowhere yet."""
    import jax

    with jax.default_device(jax.devices("cpu")[0]):
        return [(function, jax.tree.map(_plain, arguments)) for function, arguments in map(entry.build, sizes)]


def _plain(leaf: Any) -> Any:
    return leaf if hasattr(leaf, "dtype") and is_key(leaf) else np.asarray(leaf)


def _called(built: Sequence[tuple[Any, Any]], device: Any) -> _Calls:
    """Compile and call on a device. What a function computes while it is traced is none of its programs."""
    import jax

    calls = _Calls()
    for function, arguments in built:
        start = time.process_time()
        try:
            with jax.default_device(device):
                lowered = jax.jit(function).lower(*arguments)
                before = _program_count()
                compiled = lowered.compile()
                calls.programs += _program_count() - before
                result = jax.block_until_ready(compiled(*arguments))
        except Exception as error:  # whatever it is, it is the outcome
            calls.error = f"{type(error).__name__}: {error}"
            return calls
        calls.seconds += time.process_time() - start
        calls.results.append([np.asarray(leaf) for leaf in jax.tree.leaves(result)])
        calls.text = compiled.as_text() if device.platform == PLATFORM else ""
    return calls


def _program_count() -> int:
    from shlo_disc.runtime.native_module import plugin_programs

    counts = plugin_programs().counts
    return counts["compiled"] + counts["compiled_symbolic"]


def _run_torch(entry: Entry, sizes: Sequence[int]) -> dict[str, Any]:
    """Here, as PyTorch is not installed where clients of JAX alone are tried."""
    from corpus.torch_trial import run_model

    return run_model(entry, sizes)


def _compared(found: Sequence[Any], wanted: Sequence[Any], tolerance: float | None) -> dict[str, str]:
    for at, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
        if len(ours) != len(theirs):
            return {"outcome": "wrong", "note": f"call {at}: {len(ours)} results, not {len(theirs)}"}
        least = _LEAST * max((_size(np.asarray(b)) for b in theirs), default=0.0)
        for leaf, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            if wrong := _difference(np.asarray(a), np.asarray(b), tolerance, least):
                return {"outcome": "wrong", "note": f"call {at}, result {leaf}: {wrong}"}
    return {"outcome": "right", "note": ""}


def _size(array: Any) -> float:
    """The largest finite element of floats."""
    if array.dtype.kind not in "fc":
        return 0.0
    return float(np.max(np.abs(array[np.isfinite(array)]), initial=0.0))


def _difference(ours: Any, theirs: Any, tolerance: float | None, least: float = 0.0) -> str:
    """Describes how an array differs from another one; "" where it does not, within the tolerance of its dtype.

    least: what the elements are compared with where they are smaller, such as gradients that are 0 but for rounding.
    """
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"{ours.dtype}{list(ours.shape)}, not {theirs.dtype}{list(theirs.shape)}"
    allowed = _TOLERANCES.get(str(theirs.dtype))
    if allowed is None:
        return "" if np.array_equal(ours, theirs) else f"{int(np.sum(ours != theirs))} elements differ"
    if tolerance is not None and theirs.dtype == np.float32:
        allowed = tolerance
    wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
    a, b = ours.astype(wide), theirs.astype(wide)
    is_finite = np.isfinite(b)
    if not np.array_equal(np.isfinite(a), is_finite) or not np.array_equal(
        a[~is_finite], b[~is_finite], equal_nan=True
    ):
        return "other elements are finite"
    scale = np.max(np.abs(b[is_finite]), initial=max(least, 1e-6))
    worst = np.max(np.abs(a[is_finite] - b[is_finite]), initial=0.0) / scale
    return "" if worst <= allowed else f"differs by {worst:.1e} of its size"


if __name__ == "__main__":
    each_apart("corpus.trial", MARK, lambda client, name: run_entry(client, name, SIZES))
