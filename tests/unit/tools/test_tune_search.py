# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The search for forms of kernels, on times that are made up instead of measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from shlo_disc import KernelSchedule, Schedule
from shlo_disc.driver.cache import TuningRecord
from shlo_disc.lowering.launches import Launched
from shlo_disc.tools.tune.measure import Pair, Times
from shlo_disc.tools.tune.search import CONFIRMATIONS, PATIENCE, Search
from shlo_disc.tools.tune.shapes import WeightedShape
from shlo_disc.tools.tune.space import DEFAULT, TunedKernel, forms_of, tuned_kernels

SHAPES = [WeightedShape({"b": 1}, 0.25), WeightedShape({"b": 8}, 0.75)]
Cost = Callable[[str, KernelSchedule, int], float]


def kernel(name: str, kind: str, command: int) -> TunedKernel:
    return TunedKernel((name,), kind, f"content of {name}", [command])


KERNELS = [kernel("a", "recurrence", 0), kernel("b", "loop", 1), kernel("c", "loop", 2)]


def pair(cost: Cost, schedule: Schedule) -> Pair:
    def times(chosen: Schedule) -> Times:
        rows = [[cost(k.name, chosen.of(k.name), place) for k in KERNELS] for place in range(len(SHAPES))]
        return Times(rows, [[sum(row)] for row in rows])

    return times(Schedule()), times(schedule)


def searched(cost: Cost, records: Mapping[str, TuningRecord] | None = None, rounds: int = 200) -> Search:
    search = Search(KERNELS, SHAPES, pair(cost, Schedule()), records or {})
    for _ in range(rounds):
        schedules = search.next_schedules(1)
        if not schedules:
            return search
        search.add(schedules[0], pair(cost, schedules[0]))
    return search


def times_of(gains: Mapping[str, Callable[[KernelSchedule, int], float]]) -> Cost:
    """`a` and `b` take 1 s, `c` next to nothing; `gains` are factors of a kernel's forms at a shape."""

    def cost(name: str, form: KernelSchedule, place: int) -> float:
        seconds = 1e-4 if name == "c" else 1.0
        return seconds if form == DEFAULT or name not in gains else seconds * gains[name](form, place)

    return cost


def test_the_best_form_of_each_kernel_is_found() -> None:
    cost = times_of(
        {"a": lambda form, _: 0.8 if form.pieces == 4 else 1.1, "b": lambda form, _: 1 if form.unroll != 4 else 0.9}
    )
    best = searched(cost).best()
    assert best["a",].pieces == 4 and best["b",].unroll == 4 and set(best) == {("a",), ("b",)}


def test_what_takes_no_time_is_not_searched() -> None:
    search = searched(times_of({"c": lambda form, _: 0.1}))
    assert [own.kernel.name for own in search.searches] == ["a", "b"] and not search.best()


def test_a_form_that_loses_at_a_shape_is_not_chosen() -> None:
    """However much it gains at the others."""
    cost = times_of({"a": lambda form, place: (1.05, 0.5)[place], "b": lambda form, place: (1.02, 0.5)[place]})
    assert set(searched(cost).best()) == {("b",)}


def test_the_objective_is_the_weighted_time() -> None:
    """The shape of weight 0.75 decides between a gain at one and a gain at the other."""

    def gain(form: KernelSchedule, place: int) -> float:
        return {2: (0.6, 1.0), 4: (1.0, 0.8)}.get(form.pieces or 0, (1.0, 1.0))[place]

    search = searched(times_of({"a": gain}))
    assert search.best()["a",].pieces == 4
    assert search.ratio(("a",)) == pytest.approx(0.25 + 0.75 * 0.8)


def test_gains_below_the_least_are_left() -> None:
    assert not searched(times_of({"a": lambda form, _: 0.98})).best()


def test_a_gain_that_another_measurement_does_not_confirm() -> None:
    """Memory that lies well in one load: the median of several counts."""
    lucky: dict[KernelSchedule, int] = {}

    def gain(form: KernelSchedule, place: int) -> float:
        lucky[form] = lucky.get(form, 0) + (place == 0)
        return 0.7 if lucky[form] == 1 else 1.0

    search = searched(times_of({"a": gain}))
    counts = {len(measured) for own in search.searches for measured in own.measured.values()}
    assert not search.best() and counts == {CONFIRMATIONS}


def test_a_loss_that_another_measurement_does_not_confirm() -> None:
    """Other work of the machine makes a good form look bad once."""
    seen: set[KernelSchedule] = set()

    def gain(form: KernelSchedule, place: int) -> float:
        if place == len(SHAPES) - 1 and form not in seen:
            seen.add(form)
            return 3.0
        return 0.8 if form.pieces == 4 else 1.0

    assert searched(times_of({"a": gain})).best()["a",].pieces == 4


def test_a_search_without_gains_ends() -> None:
    search = searched(times_of({}))
    assert search.measured_count() == 2 * PATIENCE


def test_records_begin_the_search_and_their_samples_order_it() -> None:
    forms = forms_of("recurrence")
    hint, good = forms[-1], next(form for form in forms if form.pieces == 16 and form.unroll is None)
    record = TuningRecord("recurrence", 1.0, hint, ((good, 0.5), *((form, 1.5) for form in forms[1:] if form != good)))
    search = Search(KERNELS, SHAPES, pair(times_of({}), Schedule()), {"content of a": record})
    (first,) = search.next_schedules(1)
    assert first.of("a") == hint
    search.add(first, pair(times_of({}), first))
    (second,) = search.next_schedules(1)
    assert second.of("a") == good
    kept = search.finish({})["content of a"]
    assert len(kept.samples) == len(forms) - 1 and dict(kept.samples)[hint] == 1.0 and kept.schedule == DEFAULT


def test_several_machines_measure_different_forms() -> None:
    search = Search(KERNELS, SHAPES, pair(times_of({}), Schedule()), {})
    found = search.next_schedules(3)
    assert len({schedule.of("b") for schedule in found}) == 3


def test_kernels_of_commands() -> None:
    launches = [
        Launched("gemm_f32+e", "dot", "g0", functions=("gemm_f32", "e"), tile="gemm_f32"),
        Launched("gemm_f32", "dot", "g1", functions=("gemm_f32",), tile="gemm_f32"),
        Launched("attention_r", "attention", "a0", functions=("r", "gemm_f32"), tile="gemm_f32"),
        Launched("copy_bytes", "copy"),
        Launched("gemm_f32+e+f", "dot", "g2", functions=("gemm_f32", "e", "f"), tile="gemm_f32"),
        Launched("loop", "loop", "l0", functions=("loop",)),
    ]
    found = tuned_kernels(launches, {name: name.upper() for name in ("g0", "g1", "a0", "g2", "l0")})
    assert [(k.name, k.kind, k.content, k.commands) for k in found] == [
        ("e", "epilogue", "G0", [0, 4]),
        ("r", "attention", "A0", [2]),
        ("loop", "loop", "L0", [5]),
    ]
