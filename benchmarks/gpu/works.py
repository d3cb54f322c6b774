# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The works timed on a GPU: memory-bound programs of `examples.micro` with their gradients, movements and reductions
of one kernel each, and the example models."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

import shlo_disc
from benchmarks.gpu.recording import Bounds, Source, largest
from benchmarks.micro_works import WORKS as MICRO
from benchmarks.works import MODELS, Work
from examples.model import export_function, symbolic_sizes

ROWS = [(1, 1024), (64, 129), (128, 768), (2048, 1024), (512, 50257), (8192, 4095), (16384, 2048)]
"""Rows and columns: one row, some that nothing divides, a vocabulary, and those that fill a GPU."""
MOST_SHAPES = 7
"""At which a work is timed."""
CHECKED_ROWS = [(1, 64), (7, 20), (33, 130), (5, 1031), (257, 512)]


@dataclasses.dataclass(frozen=True)
class Plain:
    """A program on one float32 array; PyTorch's is in `benchmarks.torch_models.plain`, by the same name."""

    title: str
    dims: str
    shape: str
    function: Callable[[jax.Array], Any]
    shapes: Sequence[tuple[int, ...]]
    checked: Sequence[tuple[int, ...]]


PLAIN = {
    "transpose": Plain("transpose of the last axes", "b, s", "b, s, 16", lambda x: x.transpose(0, 2, 1),
                       [(16, 333), (1024, 2048)], [(1, 1), (3, 33), (5, 130)]),
    "matrix_transpose": Plain("transpose of a matrix", "n, d", "n, d", lambda x: x.T,
                              [(1000, 778), (8192, 4095), (16384, 2048)], [(1, 1), (31, 33), (130, 257)]),
    "column_sums": Plain("sums over columns", "n, d", "n, d", lambda x: x.sum(0),
                         ROWS, CHECKED_ROWS),
    "row_sums": Plain("sums over rows", "n, d", "n, d", lambda x: x.sum(1), ROWS, CHECKED_ROWS),
    "narrow_sums": Plain("sums over the first axis, maxima over the second", "b, s", "b, s, 5",
                         lambda x: (x.sum(0), x.max(1)), [(16, 333), (1024, 4096)], [(1, 1), (3, 33), (65, 130)]),
    "whole": Plain("sum and maximum of all", "n, d", "n, d", lambda x: (x.sum(), x.max()), ROWS, CHECKED_ROWS),
    "add": Plain("x + 1", "n", "n", lambda x: x + 1, [(8,), (100_003,), (1 << 25,)], [(1,), (33,), (1025,)]),
}  # fmt: skip


def plain_work(name: str, small: bool) -> Work:
    """A program of `PLAIN`, at the sizes that are checked when it is `small`."""
    plain = PLAIN[name]

    def function(params: Any, x: jax.Array) -> Any:
        return plain.function(x)

    def export(dims: str = plain.dims) -> jax.export.Exported:
        sizes = dict(zip(plain.dims.split(", "), symbolic_sizes(dims), strict=True))
        return export_function(function, {}, [jax.ShapeDtypeStruct(_shape(plain, sizes), jnp.float32)])

    def make_inputs(*sizes: int) -> tuple[np.ndarray, ...]:
        shape = _shape(plain, dict(zip(plain.dims.split(", "), sizes, strict=True)))
        return (np.random.default_rng(0).standard_normal(shape, np.float32),)

    return Work(
        name=name,
        title=plain.title,
        dims=plain.dims,
        shapes=plain.checked if small else plain.shapes,
        function=function,
        export=export,
        init=dict,
        make_inputs=make_inputs,
        limits=(),
        torch_model="plain",
        small=small,
        config={"program": name},
    )


def _shape(plain: Plain, sizes: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(sizes[part] if part in sizes else int(part) for part in plain.shape.split(", "))


def micro_work(name: str, small: bool) -> Work:
    """A program of `examples.micro`, or its gradient."""
    work = MICRO[name](small)
    halved = 2 if name.startswith("rmsnorm_rope") else 1
    rows = CHECKED_ROWS if small else ROWS
    return dataclasses.replace(work, shapes=[(n, d // halved) for n, d in rows])


def works() -> dict[str, tuple[str, Callable[[bool], Work]]]:
    """Each work's family and maker, by name; the argument chooses what is checked, and not timed."""

    def maker(make: Callable[[str, bool], Work], name: str) -> Callable[[bool], Work]:
        return lambda small: make(name, small)

    return {
        **{name: ("micro", maker(micro_work, name)) for name in MICRO},
        **{name: ("plain", maker(plain_work, name)) for name in PLAIN},
        **{name: ("models", make) for name, make in MODELS.items() if name != "increment"},
    }


def sources_of(name: str) -> list[Source]:
    """The programs recorded for a work: one that is checked and timed, or two where those differ in their weights.

    Where the first is refused, the second is, too.
    """
    family, make = works()[name]
    small, large = make(True), make(False)
    large = dataclasses.replace(large, shapes=large.shapes[:: -(-len(large.shapes) // MOST_SHAPES)])
    if family != "models":
        return [_source(name, family, small, large)]
    return [_source(f"{name}-small", family, small, None), _source(name, family, None, large)]


def _source(name: str, family: str, checked: Work | None, timed: Work | None) -> Source:
    work = checked or timed
    assert work is not None

    def compile_for(target: str, options: shlo_disc.Options) -> Any:
        return shlo_disc.compile(work.export(), target=target, options=options)

    def calls() -> Any:
        params = checked.init() if checked else None
        for shape in checked.shapes if checked else ():
            dims = ", ".join(f"{d}={size}" for d, size in zip(work.dims.split(", "), shape, strict=True))
            yield dims, (params, *work.make_inputs(*shape))

    tolerance = 1e-4 if family == "models" else 2e-5
    return Source(
        f"{family}-{name}", family, work.title, work.function, compile_for, calls, _of_group(tolerance), work=timed
    )


def _of_group(tolerance: float) -> Bounds:
    """Floats may be off by `tolerance` of their result's largest magnitude, or of a hundredth of that of all results:
    what is far smaller than its group, as gradients may be, has the rounding errors of larger values."""

    def bounds(want: Sequence[np.ndarray]) -> list[tuple[float, float]]:
        sizes = [0.0 if array.dtype.kind in "iub" else largest(array, 1e-30) for array in want]
        least = max(sizes, default=0.0) / 100
        return [(0.0, tolerance * max(size, least) if size else 0.0) for size in sizes]

    return bounds
