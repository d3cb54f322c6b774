# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules by measuring: which of a few ways to write each kernel is the fastest over the shapes that matter.

As in DietCode (Zheng et al., 2022) the candidates do not depend on the shape, and a kernel is chosen for all shapes
together. The program is compiled once for each candidate, applied to all kernels, and every command is timed at every
shape; since kernels do not influence each other, the best candidate of each is taken for itself, and the whole is
compared with the default at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shlo_disc.api.compile import compile as build
from shlo_disc.driver.executable import Executable
from shlo_disc.errors import OptionError
from shlo_disc.options import KernelSchedule, Options, Schedule
from shlo_disc.report.synthetic import check_dims, load_flat, synthetic_arguments
from shlo_disc.runtime.clients import client

CANDIDATES = (
    KernelSchedule(),
    KernelSchedule(unroll=1),
    KernelSchedule(unroll=2),
    KernelSchedule(unroll=4),
    KernelSchedule(serial_work=75_000),
    KernelSchedule(serial_work=1_200_000),
)
"""Schedules to try; the first one is the default."""

LEAST_GAIN = 0.03
"""The part of its time that a kernel has to save over the default."""

Shape = Mapping[str, int]
Times = dict[str, list[float]]
"""Seconds of each kernel, a number for each of its commands at each shape."""


@dataclass(frozen=True)
class Tuning:
    """The findings: the schedule, and the time of whole calls with it over that with the default, for each shape.

    `gains`: for each kernel that is not left as it is, its time over the default's (geometric mean over commands and
    shapes).
    """

    schedule: Schedule
    gains: dict[str, float]
    ratios: tuple[tuple[Shape, float], ...]

    def to_json(self) -> dict[str, Any]:
        """Everything as numbers, texts, lists and dicts."""
        ratios = [{"dims": dict(shape), "ratio": ratio} for shape, ratio in self.ratios]
        return {"schedule": self.schedule.to_json(), "gains": self.gains, "ratios": ratios}

    def __str__(self) -> str:
        lines = [f"{name}: {self.schedule.of(name)}, {gain:.2f} of the time" for name, gain in self.gains.items()]
        sizes = [", ".join(f"{name}={value}" for name, value in shape.items()) for shape, _ in self.ratios]
        lines += [f"{size}: {ratio:.2f} of the time" for size, (_, ratio) in zip(sizes, self.ratios, strict=True)]
        return "\n".join(lines or ["nothing is faster than the default"])


def tune(
    program: Any,
    shapes: Sequence[Shape],
    *,
    options: Options | None = None,
    rounds: int = 15,
    say: Callable[[str], None] = lambda text: None,
    **compile_arguments: Any,
) -> Tuning:
    """Find a schedule for a program, as `compile` takes it, over shapes such as [{"b": 1, "s": 7}, {"b": 8, "s": 64}].

    Give `Executable.seen_shapes()` for those that a program has met. Each candidate is compiled once and run `rounds`
    times at every shape, in turns, on synthetic arguments; `say` is told what is going on. The result goes into
    `Options(schedule=...)` or a file. Raises OptionError without shapes, and what `compile` and a call raise.
    """
    if not shapes:
        raise OptionError("tune needs at least one shape, e.g. {'b': 8, 's': 64}")
    base = Options() if options is None else options

    def compiled(schedule: Schedule) -> Executable:
        return build(program, options=replace(base, schedule=schedule, cache_dir=""), **compile_arguments)

    executables = []
    for candidate in CANDIDATES:
        say(f"compiling for {candidate}")
        executables.append(compiled(Schedule(default=candidate)))
    for shape in shapes:
        check_dims(shape, executables[0].artifact.header)
    times = _measure(executables, shapes, rounds, say)
    chosen, gains = _choose(times)
    if not chosen:
        return Tuning(Schedule(), {}, ())
    schedule = Schedule(chosen)
    say(f"compiling with {len(chosen)} kernels changed")
    default, tuned = (_totals(found) for found in _measure([executables[0], compiled(schedule)], shapes, rounds, say))
    ratios = [new / old for new, old in zip(tuned, default, strict=True)]
    if _geometric_mean(ratios) >= 1:
        return Tuning(Schedule(), {}, ())
    return Tuning(schedule, gains, tuple(zip(shapes, ratios, strict=True)))


def _measure(
    executables: Sequence[Executable], shapes: Sequence[Shape], rounds: int, say: Callable[[str], None]
) -> list[list[Times]]:
    """For each executable and shape, the least seconds of each command, by kernel."""
    loaded = [load_flat(client(e.options.threads), e.artifact) for e in executables]
    names = [[launch.name for launch in e.kernels] for e in executables]
    found: list[list[Times]] = [[] for _ in executables]
    for shape in shapes:
        say(f"measuring at {', '.join(f'{name}={value}' for name, value in shape.items())}")
        arguments = synthetic_arguments(executables[0].artifact.header, shape)
        least = [[math.inf] * len(own) for own in names]
        for _ in range(rounds):
            for program, seconds in zip(loaded, least, strict=True):
                for number, command in enumerate(program.profile(arguments)):
                    if command.calls:
                        seconds[number] = min(seconds[number], command.seconds)
        for own, seconds, result in zip(names, least, found, strict=True):
            times: Times = {}
            for name, value in zip(own, seconds, strict=True):
                times.setdefault(name, []).append(value)
            result.append(times)
    return found


def _choose(found: Sequence[Sequence[Times]]) -> tuple[dict[str, KernelSchedule], dict[str, float]]:
    """The best candidate of each kernel whose gain is worth it."""
    chosen: dict[str, KernelSchedule] = {}
    gains: dict[str, float] = {}
    names = dict.fromkeys(name for times in found[0] for name in times)
    for name in names:
        default = [t for times in found[0] for t in times[name]]
        ratios = {}
        for candidate, shapes in zip(CANDIDATES[1:], found[1:], strict=True):
            own = [t for times in shapes for t in times[name]]
            timed = [
                a / b for a, b in zip(own, default, strict=True) if math.isfinite(a) and math.isfinite(b) and b > 0
            ]
            if timed:
                ratios[candidate] = _geometric_mean(timed)
        best = min(ratios, key=lambda c: ratios[c], default=None)
        if best is not None and ratios[best] < 1 - LEAST_GAIN:
            chosen[name], gains[name] = best, ratios[best]
    return chosen, gains


def _totals(shapes: Sequence[Times]) -> list[float]:
    """Seconds of all timed commands at each shape."""
    return [sum(t for own in times.values() for t in own if math.isfinite(t)) for times in shapes]


def _geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


__all__ = ["CANDIDATES", "Tuning", "tune"]
