# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes that are called by themselves compile for CPUs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shlo_disc.lowering_cpu.policy import CPU_POLICY
from shlo_disc.shape_dialect.compile_state import compiling_for


@pytest.fixture(autouse=True)
def _for_cpus() -> Iterator[None]:
    with compiling_for(CPU_POLICY):
        yield
