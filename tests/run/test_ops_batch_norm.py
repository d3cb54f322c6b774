# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Normalisation of batches: StableHLO's three ops, over any axis of features, at symbolic sizes."""

from __future__ import annotations

import numpy as np
import pytest

import shlo_disc
from tests.run.op_check import different, dtype_of, mlir_dtype, random_array, refine, run_xla_text

SHAPES = [(1, 1, 1), (2, 3, 5), (3, 16, 17), (5, 17, 16), (2, 33, 31)]


def program(name: str, dtype: str, axis: int, rank: int = 3, features: str = "?") -> str:
    """`@main` around one op: operand, then one tensor a feature, then for a gradient the operand's shape again."""
    kind = mlir_dtype(dtype)
    whole, per = f"tensor<{'?x' * rank}{kind}>", f"tensor<{features}x{kind}>"
    types = {"training": [whole, per, per], "inference": [whole, *[per] * 4], "grad": [whole, *[per] * 3, whole]}[name]
    arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(types))
    operands = ", ".join(f"%a{i}" for i in range(len(types)))
    results = [whole] if name == "inference" else [whole, per, per]
    returned = ", ".join(f"%r#{i}" for i in range(len(results))) if len(results) > 1 else "%r"
    left = f"%r:{len(results)}" if len(results) > 1 else "%r"
    return f"""func.func @main({arguments}) -> ({", ".join(results)}) {{
      {left} = "stablehlo.batch_norm_{name}"({operands}) <{{epsilon = 0.01 : f32, feature_index = {axis} : i64}}>
        : ({", ".join(types)}) -> ({", ".join(results)})
      return {returned} : {", ".join(results)} }}"""


def arguments_of(name: str, dtype: str, shape: tuple[int, ...], axis: int) -> list[np.ndarray]:
    """Values from -4 to 4; variances are positive."""
    per = (shape[axis],)
    whole = random_array(shape, dtype, 1)
    scale, offset, mean = (random_array(per, dtype, seed) for seed in (2, 3, 4))
    variance = np.abs(random_array(per, dtype, 5)) + dtype_of(dtype).type(0.5)
    kinds = {
        "training": [whole, scale, offset],
        "inference": [whole, scale, offset, mean, variance],
        "grad": [whole, scale, mean, variance, random_array(shape, dtype, 6)],
    }
    return [np.asarray(a, dtype_of(dtype)) for a in kinds[name]]


@pytest.mark.parametrize("name", ("training", "inference", "grad"))
@pytest.mark.parametrize(
    ("dtype", "axis"),
    [("float32", 0), ("float32", 1), ("float32", 2), ("float64", 2), ("float16", 1), ("bfloat16", 2)],
)
def test_agrees_with_xla(name: str, dtype: str, axis: int) -> None:
    """Relative to the largest element of each result, since sums cancel. Each step of a half float is rounded."""
    text = program(name, dtype, axis)
    bound = 64 if dtype in ("float32", "float64") else 16
    executable = shlo_disc.compile(text)
    for shape in SHAPES[1::2] if dtype == "float32" else SHAPES[2:3]:
        arguments = arguments_of(name, dtype, shape, axis)
        refined = refine(text, tuple((a.shape, a.dtype.name) for a in arguments))
        got, want = executable(*arguments), run_xla_text(refined, arguments)
        got = got if isinstance(got, (tuple, list)) else [got]
        static = shlo_disc.compile(refined)(*arguments)
        static = static if isinstance(static, (tuple, list)) else [static]
        for g, s, w in zip(got, static, want, strict=True):
            scale = np.full(w.shape, np.abs(w.astype(np.float64)).max())
            assert not different(np.asarray(g), w, bound, scale).any()
            assert not different(np.asarray(s), w, bound, scale).any()
