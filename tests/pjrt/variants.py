# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of functions with their arguments at n and m, for `function_programs.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.run.functions_of_jax import arrays

Make = Callable[[int, int], Sequence[Any]]
Variant = tuple[Callable[..., Any], Make]


def of(*form: str, dtype: Any = np.float32) -> Make:
    """Arguments of shapes in n and m."""
    return lambda n, m: arrays(form, n, m, dtype)


def with_indices(*form: str) -> Make:
    """Arrays, and as many indices as m into the first axis, a few of them out of its bounds."""
    return lambda n, m: [*arrays(form, n, m), np.random.default_rng(n).integers(-n - 2, n + 3, m).astype(np.int32)]
