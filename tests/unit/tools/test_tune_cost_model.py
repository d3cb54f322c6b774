# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cost model: what it learns of fields, kinds and sizes, and the order in which it puts recorded forms.

`tune_samples.json` has the forms of 34 kernels of DIEN, CRNN, seq2seq and the speech encoder, as `tune` measured them
on a Zen 4 with two threads.
"""

from __future__ import annotations

import json
import statistics
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from shlo_disc import KernelSchedule
from shlo_disc.tools.tune.cost_model import CostModel, Sample
from shlo_disc.tools.tune.space import DEFAULT, features_of, forms_of

RECORDED = json.loads((Path(__file__).parent / "tune_samples.json").read_text())


def sample(kind: str, form: KernelSchedule, ratio: float, seconds: float = 1e-3) -> Sample:
    return Sample(features_of(kind, form, seconds), ratio)


def test_nothing_is_known_without_samples() -> None:
    model = CostModel()
    assert {model.predict(features_of("loop", form, 1e-3)) for form in forms_of("loop")} == {1.0}


def test_the_default_is_as_fast_as_itself() -> None:
    model = CostModel([sample("loop", KernelSchedule(unroll=4), 0.5)])
    assert model.predict(features_of("loop", DEFAULT, 1e-3)) == 1.0


def test_a_form_is_predicted_from_the_same_form_of_other_kernels() -> None:
    model = CostModel(
        [sample("loop", KernelSchedule(unroll=4), ratio) for ratio in (0.7, 0.75, 0.8)]
        + [sample("loop", KernelSchedule(unroll=1), ratio) for ratio in (1.2, 1.3)]
    )
    fast, slow = (model.predict(features_of("loop", KernelSchedule(unroll=u), 1e-3)) for u in (4, 1))
    assert 0.65 < fast < 0.9 < 1.1 < slow < 1.4


def test_kinds_and_sizes_are_told_apart() -> None:
    narrow = KernelSchedule(registers=1)
    model = CostModel(
        [sample("attention", narrow, 0.7)] * 3 + [sample("epilogue", narrow, 0.9, 1e-5)] * 6
        + [sample("epilogue", narrow, 1.4, 1e-2)] * 6
    )  # fmt: skip
    attention, small, large = (
        model.predict(features_of(kind, narrow, seconds))
        for kind, seconds in (("attention", 1e-3), ("epilogue", 1e-5), ("epilogue", 1e-2))
    )
    assert attention < small < large


def test_fields_add_up() -> None:
    """A form that was never measured is predicted from its parts."""
    model = CostModel(
        [sample("recurrence", KernelSchedule(unroll=1), 0.8), sample("recurrence", KernelSchedule(pieces=2), 0.8)] * 4
    )
    both = model.predict(features_of("recurrence", KernelSchedule(unroll=1, pieces=2), 1e-3))
    assert both < 0.75


def test_every_sample_is_a_time() -> None:
    with pytest.raises(ValueError):
        CostModel([sample("loop", KernelSchedule(unroll=4), 0.0)])


def recorded(row: dict[str, Any]) -> list[Sample]:
    """The samples of a kernel."""
    forms = [({name: value for name, value in form.items() if name != "ratio"}, form["ratio"]) for form in row["forms"]]
    return [sample(row["kind"], KernelSchedule(**form), ratio, row["seconds"]) for form, ratio in forms]


def test_other_kernels_order_the_forms_of_a_kernel() -> None:
    """The first choice is better than the mean of a kernel's forms, and more pairs are in the right order than not."""
    first, mean, right = [], [], []
    for number, row in enumerate(RECORDED):
        others = [found for other, kernel in enumerate(RECORDED) if other != number for found in recorded(kernel)]
        model, own = CostModel(others), recorded(row)
        first.append(min(own, key=lambda found: model.predict(found.features)).ratio)
        mean.append(statistics.geometric_mean(found.ratio for found in own))
        for a, b in combinations(own, 2):
            predicted = model.predict(a.features) - model.predict(b.features)
            if a.ratio != b.ratio and abs(predicted) > 1e-9:
                right.append((predicted < 0) == (a.ratio < b.ratio))
    assert statistics.geometric_mean(first) < 0.97 * statistics.geometric_mean(mean)
    assert statistics.mean(right) > 0.55
