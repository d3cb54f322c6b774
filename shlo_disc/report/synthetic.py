# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs without their pytrees, and arguments for them that nobody had to give."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from shlo_disc.errors import OptionError, ShapeError
from shlo_disc.runtime import Artifact, BoundExecutable, Client, LoadedExecutable, TreeSpec
from shlo_disc.runtime.axes import in_users_order
from shlo_disc.runtime.described import tensor_text
from shlo_disc.runtime.dims import integer_of
from shlo_disc.runtime.native_module import available_memory
from shlo_disc.runtime.words_of_calls import in_own_words
from shlo_disc.shape_dialect.dtypes import BY_NAME, numpy_dtype
from shlo_disc.shape_dialect.symbolic.expr import Expr

_LEAST_BYTES = 4  # of an element while it is made
_FLOATS = ("f16", "bf16", "f32", "f64")


def load_flat(client: Client, artifact: Artifact) -> LoadedExecutable:
    """The program with one positional argument a leaf and a tuple of results, whatever its own trees are.

    It takes weights of PyTorch in its own order of axes.
    """
    arguments, results = (
        TreeSpec("tuple", (TreeSpec("leaf"),) * len(artifact.header[key])) for key in ("arguments", "results")
    )
    call = TreeSpec("tuple", (arguments, TreeSpec("dict")))
    loaded = client.load(artifact, in_tree=call, out_tree=results)
    loaded.parameter_names = replace(loaded.parameter_names, turned=())
    return loaded


def check_dims(dims: Mapping[str, int], *headers: Mapping[str, Any]) -> None:
    """Raises OptionError for the size of a symbol that none of some programs has."""
    known = sorted({symbol["name"] for header in headers for symbol in header["symbols"]})
    for name in dims:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            instead = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known) or 'none'}"
            raise OptionError(f"no program has a dimension variable {name!r}; {instead}")


def synthetic_arguments(header: Mapping[str, Any], dims: Mapping[str, int], seed: int = 0) -> list[np.ndarray]:
    """Arguments of the given sizes, a leaf each: zeros and ones for integers, for floats values between 0 and 1.

    Raises OptionError when a size is missing, negative or no integer, or when an argument does not fit in memory.
    """
    random = np.random.default_rng(seed)
    shapes = [_sizes(row, dims) for row in header["arguments"]]
    left = available_memory()
    for row, shape in zip(header["arguments"], shapes, strict=True):
        left -= math.prod(shape) * max(numpy_dtype(BY_NAME[row["dtype"]]).itemsize, _LEAST_BYTES)
        if left < 0:
            raise OptionError(f"{tensor_text(row)} of the shape {shape} does not fit in memory")
    return [_array(random, row, shape) for row, shape in zip(header["arguments"], shapes, strict=True)]


def argument_shapes(header: Mapping[str, Any], dims: Mapping[str, int]) -> list[tuple[int, ...]]:
    """The shapes of the arguments, as callers see them, for values of all symbols, admissible or not."""
    shapes = [tuple(size.evaluate(dims) for size in _expressions(row)) for row in header["arguments"]]
    return [
        in_users_order(shape[: -1 if "key" in row else None], row.get("axes", ()))
        for row, shape in zip(header["arguments"], shapes, strict=True)
    ]


def synthetic_call(artifact: Artifact, on: Client, dims: Mapping[str, int]) -> tuple[BoundExecutable, list[np.ndarray]]:
    """A program on a client, its right-hand sides of products packed as serving does, and the arguments that are left.

    Raises ShapeError when the sizes are not admissible, and what `synthetic_arguments` raises.
    """
    loaded = load_flat(on, artifact)
    try:
        loaded.dims_of(*argument_shapes(artifact.header, dims))  # are the values admissible?
    except ShapeError as error:
        raise in_own_words(error, ()) from None
    arguments = synthetic_arguments(artifact.header, dims)
    packed = [p["buffer"] for p in artifact.header.get("packs", ()) if p["buffer"] < len(arguments)]
    count = max(packed, default=-1) + 1
    return BoundExecutable(loaded, tuple(arguments[:count])), arguments[count:]


def _expressions(row: Mapping[str, Any]) -> list[Expr]:
    return [Expr.const(size) if isinstance(size, int) else Expr.parse(size) for size in row["shape"]]


def _sizes(row: Mapping[str, Any], dims: Mapping[str, int]) -> tuple[int, ...]:
    sizes = _expressions(row)
    missing = sorted({name for size in sizes for name in size.symbols()} - set(dims))
    if missing:
        raise OptionError(f"{tensor_text(row)} needs --dims with {', '.join(f'{name}=...' for name in missing)}")
    for name in dims:
        if integer_of(dims[name]) is None:
            raise OptionError(f"the value of the dimension variable '{name}' is no 64-bit integer: {dims[name]!r}")
    values = tuple(size.evaluate(dims) for size in sizes)
    if any(value < 0 for value in values):
        raise OptionError(f"{tensor_text(row)} would have the shape {values}")
    return values


def _array(random: np.random.Generator, row: Mapping[str, Any], shape: tuple[int, ...]) -> np.ndarray:
    kind = numpy_dtype(BY_NAME[row["dtype"]])
    try:
        if row["dtype"] in _FLOATS:
            return random.random(shape, np.float32).astype(kind, copy=False)
        return random.integers(0, 2, shape).astype(kind)
    except (MemoryError, ValueError):
        raise OptionError(f"{tensor_text(row)} of the shape {shape} does not fit in memory") from None


__all__ = ["check_dims", "load_flat", "synthetic_arguments", "synthetic_call"]
