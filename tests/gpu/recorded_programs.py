# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs that are checked on a GPU: the cases of the kernels' tests, loops, linear algebra, single ops, and what
is timed.

The ops are JAX's own harnesses, one use of one primitive each, mapped over a symbolic dimension.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

import shlo_disc
from benchmarks.gpu.recording import Bounds, Source, largest, within
from benchmarks.gpu.works import sources_of, works
from tests.gpu.loop_programs import LOOPS, Loop
from tests.gpu.solver_programs import SOLVERS
from tests.ir.gpu_cases import CASES, Case, arrays
from tests.run.jax_harnesses import BATCHES, NOT_UNIQUE, ROUGH, SUMS, _stacked, harnesses, sample, unique_results

SIZES = ({"b": 1, "s": 1}, {"b": 3, "s": 7}, {"b": 2, "s": 33}, {"b": 2, "s": 531}, {"b": 5, "s": 1024})
MOST_BYTES = 4 << 20
"""Limit for a case's arguments at one of these sizes, which a bundle carries; matrices that grow both ways are more."""

LOOSER = 4
"""Times JAX's tolerances, which are for processors: libdevice's functions are off by up to 4 units, some by more."""


def sources(families: Sequence[str], stride: int = 40) -> Iterator[list[Source]]:
    """Groups of programs; where one of a group is refused, those after it would be as well.

    stride: of the ops, the first of each primitive and every so many-th are taken.
    """
    if "cases" in families:
        yield from ([case_source(name, case)] for name, case in CASES.items())
    if "loops" in families:
        yield from ([loop_source("loops", name, loop, 1e-5)] for name, loop in LOOPS.items())
    if "solvers" in families:
        yield from ([loop_source("solvers", name, loop, 1e-4)] for name, loop in SOLVERS.items())
    if "ops" in families:
        found = harnesses()
        yield from ([op_source(n, found[n])] for n in sample(stride) if is_comparable(found[n]))
    yield from (sources_of(name) for name, (family, _) in works().items() if family in families)


def _compiled(function: Callable[..., Any], arguments: Any) -> Callable[[str, shlo_disc.Options], Any]:
    return lambda target, options: shlo_disc.compile(function, target=target, args=arguments, options=options)


def case_source(name: str, case: Case) -> Source:
    """A case of `tests/ir/gpu_cases.py`."""

    def calls() -> Iterator[tuple[str, tuple[Any, ...]]]:
        for dims in SIZES:
            given = tuple(arrays(case, dims))
            if sum(array.nbytes for array in given) <= MOST_BYTES:
                yield ", ".join(f"{key}={value}" for key, value in dims.items()), given

    compiled, bounds = _compiled(case.function, case.arguments), within(case.tolerance)
    return Source(f"cases-{name}", "cases", name, case.function, compiled, calls, bounds, has_doubles=True)


def loop_source(family: str, name: str, loop: Loop, tolerance: float) -> Source:
    """A program with a loop or branches, or of linear algebra."""

    def calls() -> Iterator[tuple[str, tuple[Any, ...]]]:
        for b, s in ((1, 1), (3, 7), (2, 33), (5, 531)):
            yield f"b={b}, s={s}", loop.make(b, s)

    compiled = _compiled(loop.function, loop.arguments)
    return Source(f"{family}-{name}", family, name, loop.function, compiled, calls, within(tolerance))


# ---- ops ------------------------------------------------------------------------------------------------------------


def is_comparable(harness: Any) -> bool:
    """Tells whether results can be compared as they are: factors of matrices are not unique, and keys are no arrays."""
    if harness.group_name in NOT_UNIQUE or harness.group_name == "cholesky":
        return False
    leaves = jax.tree.leaves(harness.dyn_args_maker(np.random.RandomState(7)))
    return not any(
        isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.extended) for leaf in leaves
    )


def op_source(position: int, harness: Any) -> Source:
    """A harness, mapped over a symbolic dimension; `position` is its place among all."""
    arguments = harness.dyn_args_maker(np.random.RandomState(7))
    function = jax.vmap(harness.dyn_fun)
    (batch,) = jax.export.symbolic_shape("b")
    specs = jax.tree.map(lambda a: jax.ShapeDtypeStruct((batch, *np.shape(a)), np.asarray(a).dtype), arguments)

    def calls() -> Iterator[tuple[str, tuple[Any, ...]]]:
        for size in BATCHES:
            yield f"b={size}", tuple(_stacked(arguments, size))

    compiled, bounds = _compiled(function, specs), _op_bounds(harness)
    return Source(f"ops-{position:04}", "ops", harness.fullname, function, compiled, calls, bounds, has_doubles=True)


def _op_bounds(harness: Any) -> Bounds:
    """JAX's tolerances, looser; for sums relative to the largest result."""
    public = importlib.import_module("jax._src.public_test_util")
    unique, is_sum = unique_results(harness), harness.group_name in SUMS

    def bound(number: int, array: np.ndarray) -> tuple[float, float]:
        if array.dtype.kind in "iub":
            return (0.0, 0.0) if number < unique else (0.0, np.inf)
        rough = 20 if f"{harness.group_name}_{array.dtype}" in ROUGH else 1
        tolerance = LOOSER * rough * float(public.tolerance(array.dtype))
        return tolerance, tolerance * (largest(array) if is_sum else 1.0) if number < unique else np.inf

    return lambda want: [bound(number, array) for number, array in enumerate(want)]
