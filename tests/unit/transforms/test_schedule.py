# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules of random programs: what is read has been made, the peak is what it says, and it only falls."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, cast

import pytest

from shlo_disc.transforms.memory.schedule import Costs, Schedule, Step, Version


@dataclass(frozen=True)
class Op:
    """An op as schedules see one."""

    name: str
    results: tuple[str, ...]


def drawn(seed: int) -> Schedule:
    """A random program of some calls, the last of which returns some values."""
    draw = random.Random(seed)
    steps: list[Step] = []
    values: list[str] = []
    for number in range(draw.randint(2, 24)):
        op = cast(Any, Op(f"op{number}", tuple(f"v{number}.{k}" for k in range(draw.randint(1, 3)))))
        read = draw.sample(values, min(len(values), draw.randint(0, 3)))
        steps.append(Step(op, 0, [Version(cast(Any, value)) for value in read]))
        values += op.results
    returned = draw.sample(values, draw.randint(1, 2))
    last = cast(Any, Op("return", ()))
    bytes_ = cast(Any, {value: draw.choice((0, 1, 4, 16, 64)) for value in values})
    seconds = {step.op: draw.random() for step in steps if draw.random() < 0.8}
    costs = Costs(bytes_, frozenset(cast(Any, returned)), seconds)
    return Schedule([*steps, Step(last, 0, [Version(cast(Any, value)) for value in returned])], costs)


def peak_of(schedule: Schedule) -> int:
    """The peak, step by step."""
    needed = [set(step.reads) for step in schedule.steps]
    return max(
        sum(
            schedule.costs.bytes_of(version)
            for made, step in enumerate(schedule.steps[: now + 1])
            for version in step.makes
            if made == now or any(version in needed[later] for later in range(now, len(needed)))
        )
        for now in range(len(needed))
    )


@pytest.mark.parametrize("seed", range(200))
def test_random_programs(seed: int) -> None:
    schedule = drawn(seed)
    before = peak_of(schedule)
    assert schedule.peak()[0] == before
    original = {step.op: [version.value for version in step.reads] for step in schedule.steps}
    shrunk = schedule.copy()
    shrunk.shrink(int(before * random.Random(seed).random()))
    assert shrunk.peak()[0] == peak_of(shrunk) <= before
    assert [step.run for step in schedule.steps] == [0] * len(schedule.steps), "the copy shares no step"
    made: set[Version] = set()
    for step in shrunk.steps:
        assert made.issuperset(step.reads)
        assert [version.value for version in step.reads] == original[step.op]
        assert made.isdisjoint(step.makes)
        assert step.run == 0 or step.op in schedule.costs.seconds
        made.update(step.makes)
    assert shrunk.steps[-1].op == schedule.steps[-1].op
    assert all(version.run == 0 for version in shrunk.steps[-1].reads), "results are made where they stay"


def test_a_value_that_is_needed_late_is_made_late() -> None:
    """Nothing reads it before, so it costs no second run."""
    a, b, c = (cast(Any, Op(name, (name,))) for name in "abc")
    last = cast(Any, Op("return", ()))
    steps = [Step(a, 0, []), Step(b, 0, []), Step(c, 0, [Version(cast(Any, "b"))])]
    costs = Costs(cast(Any, {"a": 8, "b": 8, "c": 8}), frozenset(), {a: 1.0})
    both = [Version(cast(Any, "a")), Version(cast(Any, "c"))]
    schedule = Schedule([*steps, Step(last, 0, both)], costs)
    schedule.shrink(16)
    assert [step.op.name for step in schedule.steps] == ["b", "c", "a", "return"]
