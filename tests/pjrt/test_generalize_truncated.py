# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs with the numbers of another one's instances that do not fulfil what its ops need."""

from __future__ import annotations

import json

from tests.pjrt.plugin import run_python


def test_short_arrays_after_long_ones() -> None:
    done = run_python("-m", "tests.pjrt.truncated_programs", JAX_PLATFORMS="shlo_disc,cpu")
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout.splitlines()[-1]) == []
