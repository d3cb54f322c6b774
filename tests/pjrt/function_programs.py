# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Public functions of JAX, and their gradients, under `jax.jit` on the plugin's platform, beside XLA's CPU.

`python -m tests.pjrt.function_programs` reads names of rows, one a line, and prints a line of JSON for each: the row,
the number of its calls, and its faults.
"""

from __future__ import annotations

import json
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from shlo_disc.driver.ledger.book import LEDGER
from shlo_disc.runtime.native_module import plugin_programs
from tests.pjrt.array_variants import ARRAYS
from tests.pjrt.lax_variants import OPS
from tests.pjrt.program_table import PLATFORM
from tests.pjrt.transform_variants import TRANSFORMED
from tests.pjrt.variants import Make, of
from tests.run.functions_of_jax import FORMS, FUNCTIONS, weighted

Sizes = Sequence[tuple[int, int]]
"""n and m of each call."""

SIZES: Sizes = ((5, 6), (7, 9), (3, 8), (4, 2), (8, 5), (2, 3), (1, 4), (17, 1), (33, 12))
FEW_SIZES: Sizes = ((5, 6), (7, 9), (3, 8), (1, 4), (33, 1))
NO_ELEMENTS: Sizes = ((5, 6), (7, 9), (0, 8), (4, 0), (0, 0))

VARIANTS = ARRAYS | OPS | TRANSFORMED
TYPES = ("bfloat16", "float16", "int32", "complex64")
WIDE = {"float32": np.float64, "int32": np.int64, "complex64": np.complex128}

MOST_PROGRAMS = 3
"""The first one, the symbolic one, and one more where the first sizes suggest what others refute.

What JAX traces to other ops for some sizes has as many again, less one.
"""
MORE_PROGRAMS = dict.fromkeys(
    (
        "fft n", "gather windows", "index steps", "lax.slice", "pad maximum to a multiple", "pad mean to a multiple",
        "pad median to a multiple", "pad minimum to a multiple", "resize", "roll -7", "scatter windows",
        "reduce_window SAME_LOWER 2", "scipy.linalg.lu_factor", "scipy.signal.stft",
    ),
    5,
)  # fmt: skip
"""The most programs of functions with several numbers, each of which small sizes give by several expressions."""


class Subject(NamedTuple):
    """A function with its arguments at n and m, and these for each call."""

    title: str
    function: Callable[..., Any]
    make: Make
    sizes: Sizes = SIZES


def public(name: str) -> Iterator[Subject]:
    """A public function and its gradient in each form."""
    for form in (*FORMS, ("n, m",)):
        yield Subject("; ".join(form), FUNCTIONS[name], of(*form))
        yield Subject(f"gradient of {'; '.join(form)}", weighted(FUNCTIONS[name]), of(*form))


def public_otherwise(name: str) -> Iterator[Subject]:
    """A public function of other element types, of complex numbers its gradient, too, and of no elements."""
    function = FUNCTIONS[name]
    for form in FORMS:
        title = "; ".join(form)
        for dtype in TYPES:
            yield Subject(f"{title} of {dtype}", function, of(*form, dtype=np.dtype(dtype)), FEW_SIZES)
        complexes = of(*form, dtype=np.complex64)
        yield Subject(f"gradient of {title} of complex64", weighted(function), complexes, FEW_SIZES)
        yield Subject(f"{title} without elements", function, of(*form), NO_ELEMENTS)


def variant(name: str) -> Iterator[Subject]:
    """A variant and its gradient, if it is none itself."""
    function, make = VARIANTS[name]
    yield Subject("", function, make)
    if "gradient" not in name:
        yield Subject("gradient", weighted(function), make)


def variant_otherwise(name: str) -> Iterator[Subject]:
    """A variant of no elements, and with JAX's wide types."""
    function, make = VARIANTS[name]
    yield Subject("without elements", function, make, NO_ELEMENTS)
    with jax.enable_x64(True):
        wide = lambda n, m: [x.astype(WIDE.get(x.dtype.name, x.dtype)) for x in make(n, m)]  # noqa: E731
        yield Subject("of 64 bits", function, wide, FEW_SIZES)


ROWS: dict[str, tuple[Callable[[str], Iterator[Subject]], str]] = {
    **{name: (public, name) for name in FUNCTIONS},
    **{f"{name}, otherwise": (public_otherwise, name) for name in FUNCTIONS},
    **{name: (variant, name) for name in VARIANTS},
    **{f"{name}, otherwise": (variant_otherwise, name) for name in VARIANTS},
}
"""The subjects of each row, and the name of their function."""


def results(platform: str, function: Callable[..., Any], inputs: Sequence[Any]) -> list[np.ndarray]:
    with jax.default_device(jax.devices(platform)[0]):
        return [np.asarray(x) for x in jax.tree.leaves(function(*inputs))]


def difference(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> str:
    """The difference between results, "" for none."""
    kinds, expected = ([(x.shape, x.dtype.name) for x in found] for found in (ours, theirs))
    if kinds != expected:
        return f"{kinds}, where XLA has {expected}"
    for a, b in zip(ours, theirs, strict=True):
        if a.dtype.kind in "biu":
            if not np.array_equal(a, b):
                return f"{a.tolist()}, where XLA has {b.tolist()}"[:1000]
            continue
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        tolerance = 5e-2 if a.dtype.itemsize < 4 else 5e-3
        x, y = a.astype(wide), b.astype(wide)
        scale = max(1.0, float(np.abs(y[np.isfinite(y)]).max(initial=0)))
        if not np.allclose(x, y, rtol=tolerance, atol=tolerance / 10 * scale, equal_nan=True):
            return f"{a.tolist()}, where XLA has {b.tolist()}"[:1000]
    return ""


def check(subject: Subject, most_programs: int) -> tuple[int, list[str]]:
    """The number of calls that XLA does not refuse, and the faults of a subject."""

    def called(*inputs: Any) -> Any:
        return subject.function(*inputs)

    def expected(*inputs: Any) -> Any:
        return subject.function(*inputs)

    plugin_programs().clear()
    ours, theirs, calls, faults = jax.jit(called), jax.jit(expected), 0, []
    for index, (n, m) in enumerate(subject.sizes):
        inputs = subject.make(n, m)
        try:
            wanted = results("cpu", theirs, inputs)
        except Exception:  # whatever a function raises for what it does not take
            wanted = []
        if not wanted and index == 1 and not calls:
            break
        if not wanted:
            continue
        calls += 1
        try:
            wrong = difference(results(PLATFORM, ours, inputs), wanted)
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        if wrong:
            faults.append(f"{subject.title} at {n, m}: {wrong}")
    if calls and subject.sizes is not NO_ELEMENTS:
        faults += too_many_programs(subject.title, most_programs)
    return calls, faults


def too_many_programs(title: str, most: int) -> list[str]:
    """Tell of the programs of `called`, if they are too many; those that only return an argument have another line."""
    found = [row.programs for row in LEDGER.rows() if row.name == "called"]
    faults = [] if found else [f"{title}: no program is counted"]
    for programs in found:
        others = sum("traced to other ops" in program.why for program in programs)
        if len(programs) > most + (most - 1) * others:
            told = [(program.shapes, program.is_symbolic, program.why) for program in programs]
            faults.append(f"{title}: {len(programs)} programs: {told}")
    return faults


def run(row: str) -> dict[str, Any]:
    """The outcome of a row. What its subjects raise is a fault of it."""
    subjects, name = ROWS[row]
    calls, faults = 0, []
    try:
        for subject in subjects(name):
            more, wrong = check(subject, MORE_PROGRAMS.get(name, MOST_PROGRAMS))
            calls, faults = calls + more, faults + wrong
    except Exception:
        faults.append(traceback.format_exc())
    if not calls and subjects is variant:
        faults.append("XLA refuses all calls")
    jax.clear_caches()
    return {"row": row, "calls": calls, "faults": faults}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        print(json.dumps(run(line.rstrip("\n"))), flush=True)
