# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A cost model that is learned from what was measured: which form of a kernel to try next.

Ridge regression of the logarithm of a form's time over the default's. The default has no features, so its prediction
is 0; a form of which nothing like it was measured is predicted to be as fast as the default.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

PENALTY = 0.5


class Sample(NamedTuple):
    """The features of a form of a kernel, and its measured time over that of the default form."""

    features: Mapping[str, float]
    ratio: float


class CostModel:
    """Predictions from samples; `penalty` is the weight of the squares of the coefficients."""

    def __init__(self, samples: Sequence[Sample] = (), penalty: float = PENALTY):
        names = sorted({name for sample in samples for name in sample.features})
        self._coefficients: dict[str, float] = {}
        if not names:
            return
        places = {name: place for place, name in enumerate(names)}
        rows, targets = np.zeros((len(samples), len(names))), np.empty(len(samples))
        for row, sample in enumerate(samples):
            targets[row] = math.log(sample.ratio)
            for name, value in sample.features.items():
                rows[row, places[name]] = value
        found = np.linalg.solve(rows.T @ rows + penalty * np.eye(len(names)), rows.T @ targets)
        self._coefficients = dict(zip(names, map(float, found), strict=True))

    def predict(self, features: Mapping[str, float]) -> float:
        """The predicted time of a form over that of the default form."""
        return math.exp(sum(self._coefficients.get(name, 0.0) * value for name, value in features.items()))


__all__ = ["CostModel", "Sample"]
