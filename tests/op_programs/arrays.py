# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arguments that programs of one op are called with, their results by XLA, and how results are compared."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from shlo_disc.shape_dialect.dtypes import BY_MLIR, numpy_dtype
from shlo_disc.shape_dialect.ops.element_types import NARROW_FLOAT, NARROW_INT
from tests.op_programs.program import Program, Tensor
from tests.run.op_check import assert_same, refine, run_xla_text

NARROW = NARROW_INT | NARROW_FLOAT
SIZES = (1, 37)


def arrays_of(program: Program, n: int) -> list[np.ndarray]:
    """The arguments at a size."""
    return [array(of, n, seed, program) for seed, of in enumerate(program.arguments)]


def array(of: Tensor, n: int, seed: int, program: Program) -> np.ndarray:
    """Numbers of a normal distribution, or from the whole range; indices near zero."""
    dims, element = of
    shape = tuple(n if d == "n" else int(d) for d in dims)
    kind, rng = numpy_dtype(BY_MLIR[element]), np.random.default_rng([seed, n])
    if element == "i1":
        return rng.random(shape) < 0.5
    if kind.kind == "c":
        return ((whole if program.small else normal)(rng, shape) + 1j * whole(rng, shape)).astype(kind)
    if element == "f8E8M0FNU":
        return np.exp2(rng.integers(0, 3, shape)).astype(kind)
    if element[0] in "fb":
        return (whole if program.small else normal)(rng, shape).astype(kind)
    is_index = seed > 0 and element == "i32"
    low, high = (-1, 5) if is_index else (0, 2) if program.small else range_of(element)
    return np.asarray(rng.integers(low, high, shape, element_of_draw(element), endpoint=True)).astype(kind)


def element_of_draw(element: str) -> Any:
    return np.uint64 if element == "ui64" else np.int64


def range_of(element: str) -> tuple[int, int]:
    bits = BY_MLIR[element].bits
    return (0, 2**bits - 1) if element.startswith("ui") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def whole(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.integers(-2, 3, shape).astype(np.float64)


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.standard_normal(shape)


def is_run_by_xla(program: Program) -> bool:
    """Tells whether XLA has the op, and rounds as the specification says."""
    return program.by_xla and not program.elements & NARROW


def results_of_xla(program: Program, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The results of the program at the arguments' sizes."""
    return run_xla_text(refine(program.text, tuple((a.shape, a.dtype.name) for a in arrays)), arrays)


def check(got: Any, want: Any, program: Program) -> None:
    """Compare results within the program's tolerance."""
    leaves = [[comparable(r) for r in jax.tree.leaves(results)] for results in (got, want)]
    assert_same(*leaves, program.ulps, floor=1.0)


def comparable(result: Any) -> np.ndarray:
    """Numbers of a byte or less as wider ones, which hold them exactly."""
    found = np.asarray(result)
    if found.dtype.itemsize > 1:
        return found
    is_float = found.dtype.name.startswith("float")
    return found.astype(np.float32 if is_float else np.int32)
