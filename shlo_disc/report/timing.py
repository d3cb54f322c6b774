# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs timed side by side at given sizes: the first call of a shape, and calls by turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from shlo_disc.errors import OptionError
from shlo_disc.report.synthetic import check_dims, synthetic_arguments
from shlo_disc.runtime import LoadedExecutable

FIRST_CALLS = 5
"""First calls of each program, which is loaded anew for each; the median counts."""


@dataclass(frozen=True)
class Timing:
    """Seconds of a program's calls at one shape.

    `first_seconds`: of a call that evaluates the plan of a new shape and takes its memory; the others are those of warm
    calls. `ratio`: the median over all turns of its time over that of the first program in the same turn. `flops`
    and `bytes_accessed` are those of a call by `cost_analysis`, None where sizes are read from data.
    """

    first_seconds: float
    median_seconds: float
    p10_seconds: float
    p90_seconds: float
    calls: int
    ratio: float
    flops: float | None
    bytes_accessed: float | None

    @property
    def flops_per_second(self) -> float | None:
        """The arithmetic of a call over its median time."""
        return None if self.flops is None else self.flops / self.median_seconds

    @property
    def bytes_per_second(self) -> float | None:
        """The arguments and results of a call over its median time."""
        return None if self.bytes_accessed is None else self.bytes_accessed / self.median_seconds

    def to_json(self) -> dict[str, Any]:
        """All of it as numbers."""
        rates = {"flops_per_second": self.flops_per_second, "bytes_per_second": self.bytes_per_second}
        return {**asdict(self), **rates}


def time_programs(
    loads: Sequence[Callable[[], LoadedExecutable]], dims: Mapping[str, int], rounds: int, seed: int = 0
) -> list[Timing]:
    """Time programs at synthetic arguments of the given sizes. Each of `loads` loads one, by `load_flat`.

    In each round every program is called once, another one first each time, so that what else goes on in the machine
    meets all alike. On a GPU the arguments lie there before, and a call ends when its results are there. Raises
    OptionError for a size that is missing or that no program has, ShapeError where sizes are not admissible.
    """
    if rounds < 1:
        raise OptionError(f"a program is timed over at least one round, not {rounds}")
    programs = [load() for load in loads]
    check_dims(dims, *(program.artifact.header for program in programs))
    arguments = [_arguments(program, dims, seed) for program in programs]
    for program, given in zip(programs, arguments, strict=True):
        _call(program, given)
    first = _by_turns([partial(_first_call, *each) for each in zip(loads, arguments, strict=True)], FIRST_CALLS)
    times = _by_turns([partial(_seconds, *each) for each in zip(programs, arguments, strict=True)], rounds)
    ratios = np.median(times / times[:, :1], axis=0)
    return [
        Timing(float(np.median(first[:, n])), *_quantiles(times[:, n]), rounds, float(ratios[n]), *_cost(program, dims))
        for n, program in enumerate(programs)
    ]


def _arguments(program: LoadedExecutable, dims: Mapping[str, int], seed: int) -> list[Any]:
    arrays = synthetic_arguments(program.artifact.header, dims, seed)
    is_on_cpu = program.client.platform == "cpu"
    return list(arrays) if is_on_cpu else [program.client.buffer_from_host(array) for array in arrays]


def _call(program: LoadedExecutable, arguments: Sequence[Any]) -> None:
    """A call of the program that ends with its results."""
    if program.client.platform == "cpu":
        program(*arguments)
        return
    for result in program.execute(arguments, output="buffer"):
        result.block_until_ready()


def _seconds(program: LoadedExecutable, arguments: Sequence[Any]) -> float:
    start = time.perf_counter()
    _call(program, arguments)
    return time.perf_counter() - start


def _first_call(load: Callable[[], LoadedExecutable], arguments: Sequence[Any]) -> float:
    """Seconds of the call of a program that knows no shape and finds no memory that others have left."""
    program = load()
    program.client.trim()
    return _seconds(program, arguments)


def _by_turns(timed: Sequence[Callable[[], float]], rounds: int) -> np.ndarray:
    """Seconds of each, a row a round: all in turn, another one first each time."""
    times = np.empty((rounds, len(timed)))
    for turn in range(rounds):
        for place in range(len(timed)):
            number = (turn + place) % len(timed)
            times[turn, number] = timed[number]()
    return times


def _quantiles(times: np.ndarray) -> tuple[float, float, float]:
    median, low, high = np.quantile(times, (0.5, 0.1, 0.9))
    return float(median), float(low), float(high)


def _cost(program: LoadedExecutable, dims: Mapping[str, int]) -> tuple[float | None, float | None]:
    """The flops of a call, and the bytes of its arguments and results."""
    header = program.artifact.header
    if header.get("segments"):
        return None, None
    cost = program.cost_analysis(**{symbol["name"]: dims[symbol["name"]] for symbol in header["symbols"]})
    return cost.get("flops"), cost["bytes accessed"]


__all__ = ["Timing", "time_programs"]
