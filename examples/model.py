# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The common parts of the example models: their interface, their exports and the measure of error used on them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import jax
import jax.export
import numpy as np

Params = Any
"""A pytree of float32 arrays."""


class Model(Protocol):
    """The face of every example module: `examples.bert`, `examples.gpt2` and so on.

    SMALL, BASE  a configuration for tests, and that of the published model
    DIMS         the symbolic sizes in the order of `make_inputs`, such as "b, s"
    init         (config, seed=0) -> Params; the same seed gives the same bits
    forward      (params, *inputs, config) -> results; the function that is exported
    make_inputs  (config, *sizes, seed=0) -> NumPy inputs of these sizes, one size a symbol
    limits       (config) -> the largest size to try for each symbol
    export       (config, dims=DIMS) -> the program; dims such as "2, 7" fix the sizes
    """

    SMALL: Any
    BASE: Any
    DIMS: str

    @property
    def init(self) -> Callable[..., Params]: ...

    @property
    def forward(self) -> Callable[..., Any]: ...

    @property
    def make_inputs(self) -> Callable[..., tuple[np.ndarray, ...]]: ...

    @property
    def limits(self) -> Callable[..., tuple[int, ...]]: ...

    @property
    def export(self) -> Callable[..., jax.export.Exported]: ...


def function(model: Model, config: Any) -> Callable[..., Any]:
    """The model's forward function with its configuration bound: `f(params, *inputs)`."""
    return functools.partial(model.forward, config=config)


def export_function(
    fun: Callable[..., Any], params: Params, inputs: Sequence[jax.ShapeDtypeStruct]
) -> jax.export.Exported:
    """Exports `fun(params, *inputs)` for the CPU; only the shapes and dtypes of `params` matter."""
    specs = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), params)
    return jax.export.export(jax.jit(fun), platforms=["cpu"])(specs, *inputs)


def symbolic_sizes(dims: str, constraints: Sequence[str] = ()) -> tuple[Any, ...]:
    """Sizes from text: "b, s" gives two symbols that obey `constraints`, "2, 7" gives the integers 2 and 7.

    Raises ValueError when the text does not parse (`jax.export.symbolic_shape`).
    """
    fixed = all(part.strip().isdecimal() for part in dims.split(","))
    return tuple(jax.export.symbolic_shape(dims, constraints=() if fixed else tuple(constraints)))


def relative_error(got: Any, want: Any) -> float:
    """The largest absolute difference between two results, over the size of the reference result.

    Both are pytrees of one structure. Per leaf the error is `max|got - want| / scale` where scale is the largest
    magnitude in the reference leaf (at least 1e-30). Leaves held in one dict or list, such as the gradients of a
    model, form a group: a leaf far smaller than its group is compared with 1/100 of the group's largest magnitude,
    because its rounding noise comes from sums over the larger values. The result is the largest error of all leaves;
    it is infinite when shapes or dtypes differ or when NaNs sit at different places.
    """
    got_groups, want_groups = _groups(got), _groups(want)
    if len(got_groups) != len(want_groups):
        return float("inf")
    return max((_group_error(g, w) for g, w in zip(got_groups, want_groups, strict=True)), default=0.0)


def _groups(result: Any) -> list[list[np.ndarray]]:
    members = result if isinstance(result, tuple) else (result,)
    return [[np.asarray(leaf) for leaf in jax.tree.leaves(member)] for member in members]


def _group_error(got: list[np.ndarray], want: list[np.ndarray]) -> float:
    if len(got) != len(want):
        return float("inf")
    largest = [_magnitude(leaf) for leaf in want]
    floor = max(0.01 * max(largest, default=0.0), 1e-30)
    pairs = zip(got, want, largest, strict=True)
    return max((_leaf_error(g, w, max(size, floor)) for g, w, size in pairs), default=0.0)


def _magnitude(leaf: np.ndarray) -> float:
    finite = np.abs(leaf[np.isfinite(leaf)].astype(np.float64))
    return float(finite.max(initial=0.0))


def _leaf_error(got: np.ndarray, want: np.ndarray, scale: float) -> float:
    if got.shape != want.shape or got.dtype != want.dtype:
        return float("inf")
    if not np.array_equal(np.isnan(got), np.isnan(want)):
        return float("inf")
    same = (got == want) | np.isnan(want)
    difference = np.abs(np.where(same, 0, got).astype(np.float64) - np.where(same, 0, want).astype(np.float64))
    return float(difference.max(initial=0.0)) / scale


def parameter_count(params: Params) -> int:
    """The number of elements in the pytree."""
    return sum(int(leaf.size) for leaf in jax.tree.leaves(params))


def describe(sizes: Sequence[int], names: str) -> Mapping[str, int]:
    """Pairs the symbols of `names` with `sizes`: describe((2, 7), "b, s") is {"b": 2, "s": 7}."""
    return dict(zip((name.strip() for name in names.split(",")), sizes, strict=True))
