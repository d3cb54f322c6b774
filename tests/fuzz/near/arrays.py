# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The numbers of arguments.

| fill | numbers |
|--|--|
| normal | a bell of width 1, cut at 3 |
| weight | the same over the root of all sizes but the last |
| positive | 0.5 to 1.5 |
| ints | integers from -3 to 3, with ties, in any type |
| distinct | integers, all different |
| bool | half of them |
| index:N | from 0 to N - 1, N an expression of sizes |
| wild:N | the same and some on both sides out of it |
| count:N | from 0 to N |
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tests.fuzz.near.program import Argument, Program, dims_of, resolve_dtype, size_at


def arrays_for(program: Program, sizes: Mapping[str, int], seed: Sequence[int]) -> list[np.ndarray]:
    """Arrays for a call at these sizes."""
    return [_array(a, program.dtype, sizes, [*seed, n]) for n, a in enumerate(program.arguments)]


def _array(argument: Argument, own: str, sizes: Mapping[str, int], seed: Sequence[int]) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shape = tuple(size_at(d, sizes) for d in dims_of(argument.dims))
    dtype = resolve_dtype(argument.dtype, own)
    kind, _, limit = argument.fill.partition(":")
    if dtype.name == "bool":
        return rng.random(shape) < 0.5
    if limit:
        most = size_at(dims_of([limit])[0], sizes)
        low, high = {"index": (0, most), "wild": (-2, most + 3), "count": (0, most + 1)}[kind]
        return np.asarray(rng.integers(low, max(high, low + 1), shape)).astype(dtype)
    if kind == "ints" or not np.issubdtype(dtype, np.inexact) and dtype.name != "bfloat16":
        return np.asarray(rng.integers(-3, 4, shape)).astype(dtype)
    if kind == "distinct":
        return rng.permutation(math.prod(shape)).reshape(shape).astype(dtype)
    if kind == "positive":
        return rng.uniform(0.5, 1.5, shape).astype(dtype)
    values = np.clip(rng.standard_normal(shape), -3, 3)
    if kind == "weight":
        values = values / math.sqrt(max(math.prod(shape[:-1]), 1))
    return np.asarray(values).astype(dtype)
