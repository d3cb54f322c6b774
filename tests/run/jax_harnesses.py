# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""JAX's own harnesses, one use of one primitive each, compiled here and by `jax.jit`; as they are, or batched.

    python -m tests.run.jax_harnesses --stride 20 --jobs 2 --batched

runs every 20th and prints a table of what became of them. Each harness is "ok", "unsupported" (refused with our own
error), "jax" (JAX itself does not export it), "wrong", "error" (any other exception), or "signal". Batched ones are
mapped over a symbolic dimension, compiled once, and called at several batch sizes.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import multiprocessing
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from multiprocessing import connection
from typing import Any, NamedTuple

import jax
import numpy as np

import shlo_disc
from shlo_disc.errors import DiscError, UnsupportedError

BATCHES = (1, 3, 17)
GOOD = ("ok", "unsupported", "jax")
TIME_LIMIT = 120.0

SUMS = {"cholesky", "conv_general_dilated", "cumlogsumexp", "cumprod", "cumsum", "dot_general", "fft", "reduce_sum",
        "reduce_window_add", "triangular_solve"}  # fmt: skip
"""Groups whose rounding errors are those of the partial sums: here the tolerance is relative to the largest result.

XLA solves triangles of bf16 in bf16, and is 3% off where our f32 is right to the last place.
"""

NOT_UNIQUE = {"eig", "eigh", "qr", "svd", "schur"}
"""Groups whose results are unique only up to signs or order: here their shapes and dtypes are compared."""

ROUGH = {"atanh_float64", "igamma_float64", "igammac_float64", "lgamma_float64", "log1p_complex128", "log1p_float64",
         "pow_complex128", "pow_complex64"}  # fmt: skip
"""Groups and dtypes where the errors of `jax.jit` itself, of log1p in f64 79 units of the last place, exceed JAX's
tolerance: here it is 20 times that."""


class Outcome(NamedTuple):
    """The outcome of one harness."""

    name: str
    status: str
    reason: str


def harnesses() -> list[Any]:
    """All that JAX itself runs on a CPU, in its order. Needs absl, which JAX's test utilities import."""
    with jax.enable_x64(True):
        module = importlib.import_module("jax._src.internal_test_util.test_harnesses")
        return [h for h in module.all_harnesses if h.filter("cpu")]


def sample(stride: int) -> list[int]:
    """The positions of the first harness of each group, and of every `stride`-th."""
    found, seen = [], set()
    for position, harness in enumerate(harnesses()):
        if harness.group_name not in seen or position % stride == 0:
            found.append(position)
        seen.add(harness.group_name)
    return found


# ---- one harness ----------------------------------------------------------------------------------------------------


def examine(harness: Any, batched: bool) -> Outcome:
    """Compile and run one harness and compare with `jax.jit`."""
    with jax.enable_x64(True):
        return _examine(harness, batched)


def _examine(harness: Any, batched: bool) -> Outcome:
    name = harness.fullname
    try:
        args = harness.dyn_args_maker(np.random.RandomState(7))
        function = jax.vmap(harness.dyn_fun) if batched else harness.dyn_fun
        batch = jax.export.symbolic_shape("b") if batched else ()
        specs = jax.tree.map(lambda a: jax.ShapeDtypeStruct((*batch, *np.shape(a)), np.asarray(a).dtype), args)
        calls = [_stacked(args, n) for n in BATCHES] if batched else [args]
        wanted = [jax.tree.map(np.asarray, jax.jit(function)(*call)) for call in calls]
    except Exception as error:  # whatever JAX raises, it does not come from here
        return Outcome(name, "jax", _first_line(error))
    try:
        executable = shlo_disc.compile(function, args=specs)
        for call, want in zip(calls, wanted, strict=True):
            got = jax.tree.map(np.asarray, executable(*jax.tree.map(np.asarray, call)))
            if differ := difference(got, want, harness.group_name, unique_results(harness)):
                return Outcome(name, "wrong", differ)
    except UnsupportedError as error:
        found = error.constructs[0]
        dtype = f" on {found.dtype}" if found.dtype else ""
        return Outcome(name, "unsupported", f"{found.op.split(' (')[0]}{dtype}: {found.reason}")
    except Exception as error:  # a defect, unless the trace of the function is what fails
        status = "jax" if _raised_by_jax(error) else "error"
        return Outcome(name, status, f"{type(error).__name__}: {_first_line(error)}")
    return Outcome(name, "ok", "")


def _raised_by_jax(error: Exception) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    return not isinstance(error, DiscError) and f"{os.sep}jax{os.sep}" in frames[-1].filename


def unique_results(harness: Any) -> int:
    """The number of the first results that are determined; of the others shapes and dtypes are compared.

    Equal keys may come in any order, with what goes with them, where nobody asks for a stable sort.
    """
    if harness.group_name in NOT_UNIQUE:
        return 0
    if harness.group_name == "approx_top_k":
        return 1
    if harness.group_name == "sort" and not harness.params["is_stable"]:
        return int(harness.params["num_keys"])
    return sys.maxsize


def difference(got: Any, want: Any, group: str, unique: int = sys.maxsize) -> str:
    """Describes where two pytrees differ by more than JAX's default tolerance for their dtypes; "" nowhere."""
    public = importlib.import_module("jax._src.public_test_util")
    if jax.tree.structure(got) != jax.tree.structure(want):
        return f"the results are {jax.tree.structure(got)}, not {jax.tree.structure(want)}"
    for number, (a, b) in enumerate(zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True)):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"result {number} is {a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}"
        tolerance = public.tolerance(b.dtype) * (20 if f"{group}_{b.dtype}" in ROUGH else 1)
        wide = np.complex128 if b.dtype.kind == "c" else b.dtype if b.dtype.kind in "iub" else np.float64
        a, b = a.astype(wide), b.astype(wide)
        if group == "cholesky":  # the factor of a matrix that is nearly singular is as good as its product
            a, b = a @ a.conj().swapaxes(-1, -2), b @ b.conj().swapaxes(-1, -2)
        finite = np.abs(b[np.isfinite(b)])
        least = tolerance * max(1, finite.max(initial=0) if group in SUMS else 1)
        wrong = ~np.isclose(a, b, tolerance, least, equal_nan=True)
        if number < unique and wrong.any():
            with np.errstate(all="ignore"):
                return f"result {number} is off by {np.abs(a - b)[wrong].max():.3g}"
    return ""


def _stacked(args: Any, size: int) -> Any:
    return jax.tree.map(lambda a: np.stack([np.roll(np.asarray(a), i) for i in range(size)]), args)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:160]


# ---- many, in processes of their own --------------------------------------------------------------------------------


def _serve(pipe: Any, batched: bool) -> None:
    found = harnesses()
    while True:
        try:
            pipe.send(examine(found[pipe.recv()], batched))
        except EOFError:
            return


class _Process:
    def __init__(self, batched: bool):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, batched), daemon=True)
        self._process.start()
        theirs.close()

    def result(self, name: str) -> Outcome:
        """The outcome that was sent, or the status that ended the process."""
        try:
            return self.pipe.recv()
        except EOFError:
            self._process.join()
            return Outcome(name, "signal", f"exit status {self._process.exitcode}")

    @property
    def is_alive(self) -> bool:
        self._process.join(0)
        return self._process.is_alive()

    def close(self) -> None:
        self.pipe.close()
        self._process.join(2)
        if self._process.is_alive():
            self._process.kill()


def examine_all(positions: Iterable[int], batched: bool, jobs: int) -> Iterator[Outcome]:
    """The outcomes, as they come; a signal ends a process, not the run."""
    names = [h.fullname for h in harnesses()]
    waiting, working = iter(positions), {}
    idle = [_Process(batched) for _ in range(jobs)]
    while True:
        while idle and (position := next(waiting, None)) is not None:
            process = idle.pop()
            process.pipe.send(position)
            working[process.pipe] = process, position
        if not working:
            break
        ready = connection.wait(list(working), timeout=TIME_LIMIT) or list(working)[:1]
        for pipe in ready:
            process, position = working.pop(pipe)
            if process.is_alive and not pipe.poll():
                process.close()
                yield Outcome(names[position], "hang", f"no answer after {TIME_LIMIT:.0f} s")
            else:
                yield process.result(names[position])
            idle.append(process if process.is_alive else _Process(batched))
    for process in idle:
        process.close()


def table(outcomes: Iterable[Outcome]) -> str:
    """Counts by status, and by reason with an example."""
    by_reason: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    for outcome in outcomes:
        by_reason[outcome.status, outcome.reason].append(outcome.name)
    totals: collections.Counter[str] = collections.Counter()
    for (status, _), names in by_reason.items():
        totals[status] += len(names)
    rows = sorted(by_reason.items(), key=lambda item: (item[0][0], -len(item[1])))
    lines = [f"{len(names):5} {status}: {reason} (e.g. {names[0]})" for (status, reason), names in rows if reason]
    return "\n".join([", ".join(f"{count} {status}" for status, count in totals.most_common()), *lines])


def main() -> int:
    """Exit status 1 when an outcome is not good."""
    parser = argparse.ArgumentParser(prog="python -m tests.run.jax_harnesses", description=__doc__)
    parser.add_argument("--stride", type=int, default=1, help="of all harnesses run every Nth, and one of each group")
    parser.add_argument("--only", default="", help="run those whose name contains this")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--batched", action="store_true", help="map over a symbolic dimension")
    options = parser.parse_args()
    names = [h.fullname for h in harnesses()]
    positions = [p for p in sample(options.stride) if options.only in names[p]]
    outcomes = []
    for outcome in examine_all(positions, options.batched, options.jobs):
        outcomes.append(outcome)
        if outcome.status not in GOOD:
            print(f"{outcome.name}: {outcome.status}: {outcome.reason}", file=sys.stderr, flush=True)
    print(table(outcomes))
    return 0 if all(o.status in GOOD for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
