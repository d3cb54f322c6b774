# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs with the numbers of another one's instances that do not fulfil what its ops need."""

from __future__ import annotations

import json

import pytest

from tests.pjrt.plugin import run_python


@pytest.mark.parametrize("orders", ["1", "0 2 3"])
@pytest.mark.slow
def test_short_arrays_after_long_ones(orders: str) -> None:
    done = run_python("-m", "tests.pjrt.truncated_programs", *orders.split(), JAX_PLATFORMS="shlo_disc,cpu")
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout.splitlines()[-1]) == []
