# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cuFFT without a GPU: a shared library of the functions that the runtime uses, over the mock driver and NumPy.

Transforms are computed as late as their stream allows, in double precision. Inverse ones are not divided. The workspace
and the operand of a transform to real numbers are spoilt. What no caller may do (a plan without a workspace, another
stream, arrays that are not there, no context) is kept in `mistakes`.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.gpu.mock_driver import mock_driver
from tests.gpu.mock_library import MockFunctions, make_library

ALLOC_FAILED, INVALID_VALUE, INTERNAL_ERROR = 2, 4, 5
TYPES = {0: np.float32, 1: np.float64, 4: np.complex64, 5: np.complex128}
WORKSPACE = 512
FORWARD, INVERSE = -1, 1


@dataclass
class Side:
    """Arrays of a plan: their sizes along the axes, the steps between elements and between arrays, and their type."""

    sizes: tuple[int, ...]
    stride: int
    distance: int
    type: int

    def arrays(self, address: int, lengths: Sequence[int], batch: int) -> np.ndarray:
        """[batch, *lengths], where they lie."""
        dtype = np.dtype(TYPES[self.type])
        steps = [self.stride * int(np.prod(self.sizes[i + 1 :])) for i in range(len(self.sizes))]
        reach = (batch - 1) * self.distance + sum((n - 1) * step for n, step in zip(lengths, steps, strict=True)) + 1
        data = mock_driver().view(address, reach * dtype.itemsize).view(dtype)
        strides = tuple(step * dtype.itemsize for step in (self.distance, *steps))
        return np.lib.stride_tricks.as_strided(data, (batch, *lengths), strides)


@dataclass
class Plan:
    """A plan, as far as it has been made."""

    allocates: bool = True
    lengths: tuple[int, ...] = ()
    sides: list[Side] = field(default_factory=list)
    batch: int = 0
    workspace: int = 0
    stream: int = 0


def _int(word: int) -> int:
    return ctypes.c_int(word & 0xFFFFFFFF).value


def _longs(address: int, count: int) -> tuple[int, ...]:
    return tuple((ctypes.c_longlong * count).from_address(address))


class MockFft(MockFunctions):
    """The library."""

    INVALID, INTERNAL = INVALID_VALUE, INTERNAL_ERROR

    def __init__(self) -> None:
        super().__init__()
        self.plans: dict[int, Plan] = {}
        self._numbers = itertools.count(1)

    def call(self, name: str, arguments: Sequence[int]) -> int:
        """Calls the library's function `name` in the thread's context, and returns its status."""
        if not getattr(mock_driver()._thread, "contexts", None):
            self.mistakes.append(f"{name} without a context")
        return super().call(name, arguments)

    def _plan(self, number: int) -> Plan:
        self.require(_int(number) in self.plans, "no plan")
        return self.plans[_int(number)]

    # ---- functions --------------------------------------------------------------------------------------------------

    def cufftCreate(self, out: int) -> None:
        number = next(self._numbers)
        self.plans[number] = Plan()
        ctypes.c_int.from_address(out).value = number

    def cufftDestroy(self, plan: int) -> None:
        self._plan(plan)
        del self.plans[_int(plan)]

    def cufftSetAutoAllocation(self, plan: int, allocates: int) -> None:
        self.require(not self._plan(plan).lengths, "the plan is made already")
        self._plan(plan).allocates = bool(_int(allocates))

    def cufftXtMakePlanMany(
        self, plan: int, rank: int, lengths: int, source_sizes: int, source_stride: int, source_distance: int,
        source: int, target_sizes: int, target_stride: int, target_distance: int, target: int, batch: int,
        workspace: int, computed: int,
    ) -> None:  # fmt: skip
        made, count = self._plan(plan), _int(rank)
        self.require(1 <= count <= 3 and batch > 0, f"{count} axes, {batch} transforms")
        made.lengths, made.batch = _longs(lengths, count), batch
        types = _int(source), _int(target)
        sizes = _longs(source_sizes, count), _longs(target_sizes, count)
        steps = (source_stride, source_distance), (target_stride, target_distance)
        made.sides = [Side(s, *step, type_) for s, step, type_ in zip(sizes, steps, types, strict=True)]
        wide = _int(computed) == 5
        self.require(types in ({(4, 4), (0, 4), (4, 0)}, {(5, 5), (1, 5), (5, 1)})[wide], f"types {types}")
        self.require(min(made.lengths) > 0 and min(s.stride for s in made.sides) > 0, "nothing to transform")
        half = made.lengths[-1] // 2 + 1
        for side, is_half in zip(made.sides, (types[1] < 4, types[0] < 4), strict=True):
            wanted = (*made.lengths[:-1], half if is_half else made.lengths[-1])
            self.require(side.sizes == wanted, f"an array of {side.sizes} for {wanted}")
        ctypes.c_size_t.from_address(workspace).value = WORKSPACE

    def cufftSetStream(self, plan: int, stream: int) -> None:
        self._plan(plan).stream = stream

    def cufftSetWorkArea(self, plan: int, workspace: int) -> None:
        self._plan(plan).workspace = workspace

    def cufftXtExec(self, plan: int, source: int, target: int, direction: int) -> None:
        made = self._plan(plan)
        self.require(not made.allocates and bool(made.workspace) and bool(made.stream), "no workspace, or no stream")
        self.require(_int(direction) in (FORWARD, INVERSE) and source != target, "no direction, or in place")
        workspace, stream = made.workspace, made.stream

        def work() -> None:
            mock_driver().view(workspace, WORKSPACE).fill(0xA5)
            _transform(made, source, target, _int(direction))

        mock_driver()._give(stream, work)


def _transform(plan: Plan, source: int, target: int, direction: int) -> None:
    axes = tuple(range(1, 1 + len(plan.lengths)))
    half = (*plan.lengths[:-1], plan.lengths[-1] // 2 + 1)
    to_real, from_real = (side.type < 2 for side in reversed(plan.sides))
    given = plan.sides[0].arrays(source, half if to_real else plan.lengths, plan.batch)
    found = plan.sides[1].arrays(target, half if from_real else plan.lengths, plan.batch)
    count = np.prod(plan.lengths)
    if from_real:
        found[...] = np.fft.rfftn(given, axes=axes)
    elif to_real:
        found[...] = np.fft.irfftn(given, plan.lengths, axes=axes) * count
        given[...] = np.nan
    else:
        found[...] = np.fft.fftn(given, axes=axes) if direction == FORWARD else np.fft.ifftn(given, axes=axes) * count


FUNCTIONS = [name for name in vars(MockFft) if name.startswith("cufft")]


def _dispatch(name: str, *arguments: int) -> int:
    return mock_fft().call(name, arguments)


@functools.cache
def library() -> Path:
    """The library, whose functions call the mock."""
    return make_library("libcufft.so.12", FUNCTIONS, _dispatch, closed=INTERNAL_ERROR)


@functools.cache
def mock_fft() -> MockFft:
    """The library of this process."""
    library()
    return MockFft()
