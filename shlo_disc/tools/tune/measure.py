# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measuring: programs that are loaded anew, called in turns, so that what else goes on in the machine meets all alike.

Where a program's memory lies changes the time of a kernel by several per cent, and stays as it is while the program is
loaded. So a form is measured in several jobs, each of which loads its programs anew, and the median counts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from shlo_disc.driver.cache import TunedMachine
from shlo_disc.report.synthetic import synthetic_call
from shlo_disc.runtime import Artifact
from shlo_disc.runtime.clients import client
from shlo_disc.tools.tune.shapes import WeightedShape

FEWEST_ROUNDS, MOST_ROUNDS = 3, 50


class Job(NamedTuple):
    """Two programs to measure at some shapes, within some seconds if that allows of `FEWEST_ROUNDS` calls each.

    machine: the kind of machine that it is for.
    """

    default: bytes
    candidate: bytes
    shapes: Sequence[WeightedShape]
    machine: TunedMachine
    seconds: float


class Times(NamedTuple):
    """The least seconds of each command at each shape, 0 where it did not run, and those of each whole call in turn."""

    commands: list[list[float]]
    calls: list[list[float]]


Pair = tuple[Times, Times]
"""The times of the default program, and of the candidate."""


class Measurer(Protocol):
    """Runs jobs. `width`: so many at a time."""

    width: int

    def measure(self, jobs: Sequence[Job]) -> list[Pair | None]:
        """The times of each job; None where no machine of its kind has run it."""


class LocalMeasurer:
    """Runs jobs in this process, one after the other."""

    width = 1

    def measure(self, jobs: Sequence[Job]) -> list[Pair | None]:
        """The times of each job."""
        return [run(job) for job in jobs]


def run(job: Job) -> Pair:
    """Run a job here. Raises what loading and calling a program raises."""
    on = client(job.machine.threads)
    artifacts = [Artifact.deserialize(data, trust=True) for data in (job.default, job.candidate)]
    found = Times([], []), Times([], [])
    for shape in job.shapes:
        programs = [synthetic_call(artifact, on, shape.dims) for artifact in artifacts]
        for program, arguments in programs:
            program(*arguments)
        commands: list[list[float]] = [[], []]
        calls: list[list[float]] = [[], []]
        end = time.perf_counter() + job.seconds / len(job.shapes)
        rounds = 0
        while rounds < MOST_ROUNDS and (rounds < FEWEST_ROUNDS or time.perf_counter() < end):
            for place in range(2):
                number = (rounds + place) % 2
                program, arguments = programs[number]
                start = time.perf_counter()
                program(*arguments)
                calls[number].append(time.perf_counter() - start)
                seconds = [c.seconds if c.calls else 0.0 for c in program.profile(arguments)]
                commands[number] = [min(pair) for pair in zip(seconds, commands[number] or seconds, strict=True)]
            rounds += 1
        for times, least, whole in zip(found, commands, calls, strict=True):
            times.commands.append(least)
            times.calls.append(whole)
    return found


__all__ = ["Job", "LocalMeasurer", "Measurer", "Pair", "Times", "run"]
