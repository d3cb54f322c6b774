# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs without their pytrees, and arguments for them that nobody had to give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from shlo_disc.dtypes import BY_NAME, numpy_dtype
from shlo_disc.errors import OptionError
from shlo_disc.runtime import Artifact, Client, LoadedExecutable, TreeSpec
from shlo_disc.shape_dialect.expr import Expr

_FLOATS = ("f16", "bf16", "f32", "f64")


def load_flat(client: Client, artifact: Artifact) -> LoadedExecutable:
    """The program with one positional argument a leaf and a tuple of results, whatever its own trees are."""
    arguments, results = (
        TreeSpec("tuple", (TreeSpec("leaf"),) * len(artifact.header[key])) for key in ("arguments", "results")
    )
    call = TreeSpec("tuple", (arguments, TreeSpec("dict")))
    return client.load(artifact, in_tree=call, out_tree=results)


def made_up_arguments(header: Mapping[str, Any], dims: Mapping[str, int], seed: int = 0) -> list[np.ndarray]:
    """Arguments of the given sizes, a leaf each: zeros and ones for integers, for floats values between 0 and 1.

    Raises OptionError when a size is missing or negative.
    """
    random = np.random.default_rng(seed)
    return [_array(random, row["dtype"], _sizes(row, dims)) for row in header["arguments"]]


def tensor_text(row: Mapping[str, Any]) -> str:
    """`x: f32[b, 768]` for a row of an artifact's header."""
    return f"{row['path']}: {row['dtype']}[{', '.join(map(str, row['shape']))}]"


def _sizes(row: Mapping[str, Any], dims: Mapping[str, int]) -> tuple[int, ...]:
    sizes = [Expr.const(size) if isinstance(size, int) else Expr.parse(size) for size in row["shape"]]
    missing = sorted({name for size in sizes for name in size.symbols()} - set(dims))
    if missing:
        raise OptionError(f"{tensor_text(row)} needs --dims with {', '.join(f'{name}=...' for name in missing)}")
    values = tuple(size.evaluate(dims) for size in sizes)
    if any(value < 0 for value in values):
        raise OptionError(f"{tensor_text(row)} would have the shape {values}")
    return values


def _array(random: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    kind = numpy_dtype(BY_NAME[dtype])
    if dtype in _FLOATS:
        return random.random(shape, np.float32).astype(kind)
    return random.integers(0, 2, shape).astype(kind)


__all__ = ["load_flat", "made_up_arguments", "tensor_text"]
