# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases: a program's texts with the arrays of its calls; plain data that goes from one process to another."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from tests.fuzz.builder import DTYPES, Builder
from tests.fuzz.families import OPS
from tests.fuzz.families.random import NOT_INTERPRETED
from tests.fuzz.program import CARRIED, Program, Sizes, Value
from tests.fuzz.ranges import integer_limits, is_float

_FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}


@dataclass(frozen=True)
class Call:
    """One call: its arrays, and the static program at its sizes, as XLA reads it and as the interpreter does.

    The latter is "" when the interpreter cannot run it.
    """

    sizes: Sizes
    arrays: list[np.ndarray]
    static: str
    carried: str


@dataclass(frozen=True)
class Case:
    """errors: for each result the most that two correct answers differ; 0 for the exact ones.

    refused: arrays of calls that break the program's requirements.
    """

    text: str
    errors: list[float]
    calls: list[Call]
    refused: list[list[np.ndarray]]
    ops: list[str]
    opt_level: int
    threads: int


def numpy_dtype(dtype: str) -> np.dtype:
    """The NumPy dtype of an MLIR element type."""
    if dtype in _FLOATS:
        return np.dtype(_FLOATS[dtype])
    return np.dtype(bool) if dtype == "i1" else np.dtype(dtype.replace("ui", "uint").replace("i", "int", 1)
                                                         if dtype[0] == "i" else f"uint{dtype[2:]}")  # fmt: skip


def program_of(seed: int, favoured: Sequence[str] = ()) -> Program:
    """The random program of a seed; about half of its ops are `favoured` ones, if any are."""
    rng, every = random.Random(seed), list(OPS)
    while True:
        builder = Builder(rng)
        wanted = rng.choice((1, 2, 3, 4, 5, 6, 8, 10))
        for _ in range(4 * wanted):
            builder.required = []
            OPS[rng.choice(favoured if favoured and rng.random() < 0.5 else every)](builder)
            if len(builder.steps) >= wanted and any(r.dtype in DTYPES for s in builder.steps for r in s.results):
                program = builder.finish()
                if program.results:
                    return program
                break  # all that could be returned is read by what cannot be


def random_elements(value: Value, sizes: Sizes, seed: list[int]) -> np.ndarray:
    """An argument's elements, within its range and on its grid."""
    rng = np.random.default_rng(seed)
    if value.dtype.startswith("complex"):
        inner = value.dtype[8:-1]
        parts = [random_elements(Value(inner, value.dims, value.range), sizes, [*seed, i]) for i in range(2)]
        return np.asarray(parts[0] + 1j * parts[1])
    shape, kind = value.shape(sizes), numpy_dtype(value.dtype)
    r = value.range
    if not is_float(value.dtype):
        least, largest = integer_limits(value.dtype)
        return rng.integers(max(int(r.lo), least), min(int(r.hi), largest), shape, np.int64 if least else np.uint64,
                            endpoint=True).astype(kind)  # fmt: skip
    if r.wild:
        special = np.array([np.inf, -np.inf, np.nan, 0, 1, -1.5, 2, 3], kind)
        return special[rng.integers(0, len(special), shape)]
    step = 3 if r.step is None else r.step
    lo, hi = np.ceil(r.lo * 2.0**step), np.floor(r.hi * 2.0**step)
    return np.asarray(rng.integers(int(lo), int(hi), shape, endpoint=True) / 2.0**step).astype(kind)


def case_of(program: Program, seed: int) -> Case:
    """A program with arrays for all its calls, and for some that must be refused."""
    rng = random.Random(seed)
    arguments = program.arguments()
    interpreted = not any(step.op in NOT_INTERPRETED for step in program.steps)
    calls = []
    for number, sizes in enumerate(program.sizes):
        arrays = [random_elements(v, sizes, [seed, number, i]) for i, v in enumerate(arguments)]
        carried = program.text(sizes, bits=True) if interpreted else ""
        calls.append(Call(sizes, arrays, program.text(sizes), carried))
    errors = [2 * v.range.error for v in program.results]
    refused = []
    for sizes in _broken(program, rng):
        refused.append([random_elements(v, sizes, [seed, 99, i]) for i, v in enumerate(arguments)])
    return Case(program.text(), errors, calls, refused, [s.op for s in program.steps], rng.choice((1, 1, 1, 3)),
                rng.choice((1, 1, 2)))  # fmt: skip


def _broken(program: Program, rng: random.Random) -> list[Sizes]:
    """Sizes that make a required expression negative while every argument still has a shape."""
    symbols = program.symbols()
    tries = [{name: rng.choice((0, 1, 2, 3)) for name in symbols} for _ in range(6)]
    arguments = program.arguments()
    return [
        sizes for sizes in tries
        if any(e.evaluate(sizes) < 0 for e in program.required)
        and all(d.evaluate(sizes) >= 0 for v in arguments for d in v.dims)
    ][:1]  # fmt: skip


__all__ = ["CARRIED", "Call", "Case", "case_of", "numpy_dtype", "program_of", "random_elements"]
