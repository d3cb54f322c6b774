# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs compiled for a GPU and recorded with what XLA computes on this machine's processor. Needs no GPU.

Recorded are the artifact, the arguments of some calls, and the results that are right, each with how far a GPU's may be
off: its functions (libdevice's) and its order of sums are others.
"""

from __future__ import annotations

import hashlib
import os
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

import shlo_disc
from benchmarks.gpu.bundle import Array, Bundle, Call, Program, Refusal, Result, Timing
from benchmarks.works import Work
from shlo_disc.errors import DiscError, UnsupportedError
from shlo_disc.runtime import Artifact

OPTIONS = shlo_disc.Options(cpu="x86-64-v3", matmul_precision="highest")
"""Host functions run on any x86-64 server, for nobody knows which one the GPU is in. Products of f32 take all bits, as
those of processors, of PyTorch, and of the program that XLA compiles for a GPU (`_exported`)."""

Compile = Callable[[str, shlo_disc.Options], shlo_disc.Executable]
Bounds = Callable[[Sequence[np.ndarray]], list[tuple[float, float]]]


@dataclass(frozen=True)
class Source:
    """A program to be recorded.

    function: what XLA runs. compile: the executable for a target. calls: the sizes and the positional arguments of each
    call. bounds: how far each result may be off, relative to the element and absolutely. work: what is timed, if any.
    """

    name: str
    family: str
    title: str
    function: Callable[..., Any]
    compile: Compile
    calls: Callable[[], Iterable[tuple[str, tuple[Any, ...]]]]
    bounds: Bounds
    has_doubles: bool = False
    work: Work | None = None


def within(tolerance: float) -> Bounds:
    """Floats may be off by `tolerance` of the largest magnitude of their result; all else is exact."""

    def bounds(want: Sequence[np.ndarray]) -> list[tuple[float, float]]:
        return [(0.0, 0.0 if array.dtype.kind in "iub" else tolerance * largest(array)) for array in want]

    return bounds


def largest(array: np.ndarray, least: float = 1.0) -> float:
    """The largest finite magnitude, at least `least`."""
    wide = np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
    return float(wide[np.isfinite(wide)].max(initial=least))


class _Archive:
    """Arrays by their contents, so that weights are kept once."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def add(self, value: Any) -> Array:
        array = np.asarray(value)
        data = array.tobytes()
        key = hashlib.sha256(data).hexdigest()[:20]
        self.arrays[key] = np.frombuffer(data, np.uint8)
        return Array(key, array.dtype.name, list(array.shape))


def record(source: Source, target: str, bundle: Bundle) -> Program | Refusal:
    """Write a program into a bundle; or why there is none of it."""
    with jax.enable_x64(True) if source.has_doubles else nullcontext():
        try:
            return _record(source, target, bundle)
        except Exception as error:  # one program of many: the others are recorded, and this one is listed
            return Refusal(source.name, source.family, source.title, _reason(error))


def _record(source: Source, target: str, bundle: Bundle) -> Program:
    start = time.perf_counter()
    executable = source.compile(target, OPTIONS)
    launches = len(executable.kernels)
    seconds = time.perf_counter() - start
    archive = _Archive()
    calls = [_call(source, archive, dims, arguments) for dims, arguments in source.calls()]
    timing = _timing(source.work, executable.artifact, archive) if source.work else None
    title, family, name = source.title, source.family, source.name
    program = Program(name, family, title, executable.target, launches, seconds, calls, timing)
    bundle.write(program, executable.artifact, archive.arrays, _exported(source.work) if source.work else b"")
    return program


def _reason(error: Exception) -> str:
    """The first op that is not supported, and why, without the user's line; or what went wrong, in JAX or here."""
    if isinstance(error, UnsupportedError) and error.constructs:
        first = error.constructs[0]
        return f"{first.op.split(' (')[0]}: {first.reason}"
    text = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:200]}"
    raised_in = traceback.extract_tb(error.__traceback__)[-1].filename
    return f"JAX: {text}" if not isinstance(error, DiscError) and f"{os.sep}jax{os.sep}" in raised_in else text


def _call(source: Source, archive: _Archive, dims: str, arguments: tuple[Any, ...]) -> Call:
    want = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(source.function)(*arguments))]
    bounds = source.bounds(want)
    results = [Result(archive.add(array), *bound) for array, bound in zip(want, bounds, strict=True)]
    return Call(dims, [archive.add(leaf) for leaf in jax.tree.leaves(arguments)], results)


def _timing(work: Work, artifact: Artifact, archive: _Archive) -> Timing:
    weights = len(artifact.header["arguments"]) - len(jax.tree.leaves(work.make_inputs(*work.shapes[0])))
    return Timing(
        symbols=work.dims.split(", "),
        shapes=[list(shape) for shape in work.shapes],
        integers=[_integers(work, shape, weights, archive) for shape in work.shapes],
        weights=weights,
        tree=artifact.header["pytree"]["in"],
        torch_model=work.torch_model,
        config=work.config,
        pullback=work.pullback,
        trains=work.trains,
    )


def _integers(work: Work, shape: Sequence[int], weights: int, archive: _Archive) -> dict[str, Array]:
    """The inputs at a shape that are no floats, by the argument's number."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(work.make_inputs(*shape))]
    return {str(n): archive.add(a) for n, a in enumerate(leaves, start=weights) if a.dtype.kind in "iub"}


def _exported(work: Work) -> bytes:
    """The work for XLA, on GPUs and, for tests, on processors."""
    for_cpu = work.export()
    args, kwargs = jax.tree.unflatten(
        for_cpu.in_tree, [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in for_cpu.in_avals]
    )
    with jax.default_matmul_precision("highest"):
        return bytes(jax.export.export(jax.jit(work.function), platforms=["cpu", "cuda"])(*args, **kwargs).serialize())
