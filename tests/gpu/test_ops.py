# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of ops on GPUs, row by row: what it says is lowered computes XLA's numbers, and the rest is refused."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import UnsupportedError
from shlo_disc.shape_dialect.dtypes import BY_MLIR, numpy_dtype
from shlo_disc.shape_dialect.ops import TABLE
from shlo_disc.shape_dialect.ops.element_types import NARROW_FLOAT, NARROW_INT
from tests.gpu.checks import TARGET, compiled
from tests.gpu.emulated import loaded, shared_client
from tests.gpu.marks import needs_mock_driver
from tests.gpu.mock_driver import MockDriver
from tests.gpu.op_program import Program, Tensor
from tests.gpu.op_rows import FORMS, WITHOUT, pairs, row_of
from tests.run.op_check import assert_same, refine, run_xla_text

pytestmark = needs_mock_driver

PAIRS = [pair for pair in pairs() if pair[0] not in WITHOUT]
NARROW = NARROW_INT | NARROW_FLOAT


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


def wanted(program: Program, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """XLA's results; those of our program for CPUs where XLA has no such op, or rounds differently."""
    if program.by_xla and not program.elements & NARROW:
        text = refine(program.text, tuple((a.shape, a.dtype.name) for a in arrays))
        return run_xla_text(text, arrays)
    return [np.asarray(r) for r in jax.tree.leaves(shlo_disc.compile(program.text)(*arrays))]


def comparable(result: Any) -> np.ndarray:
    """Numbers of a byte or less as wider ones, which hold them exactly."""
    found = np.asarray(result)
    if found.dtype.itemsize > 1:
        return found
    is_float = found.dtype.name.startswith("float")
    return found.astype(np.float32 if is_float else np.int32)


@pytest.mark.parametrize(("op", "element"), PAIRS, ids=[f"{op}-{element}" for op, element in PAIRS])
def test_row(driver: MockDriver, op: str, element: str) -> None:
    program = FORMS[op](element)
    if element not in row_of(op).on_gpus:
        with pytest.raises(UnsupportedError):
            compiled(program.text)
        return
    run = loaded(compiled(program.text), shared_client())
    for n in (1, 37):
        arrays = [array(a, n, i, program) for i, a in enumerate(program.arguments)]
        got = [comparable(r) for r in jax.tree.leaves(run(*arrays))]
        assert_same(got, [comparable(r) for r in wanted(program, arrays)], program.ulps, floor=1.0)


def test_every_compiled_op_has_a_program() -> None:
    compiled_ops = {row.name.removeprefix("stablehlo.") for row in TABLE.values() if row.lowering and row.spec}
    assert compiled_ops == set(FORMS) | set(WITHOUT)
    assert not set(FORMS) & set(WITHOUT)


def test_what_is_refused_names_the_op_and_the_line() -> None:
    text = FORMS["cholesky"]("f32").text
    with pytest.raises(UnsupportedError) as caught:
        shlo_disc.compile(text, target=TARGET)
    (found,) = caught.value.constructs
    assert "potrf" in found.op and "target='cpu'" in found.suggestion
