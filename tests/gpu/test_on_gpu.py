# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The recorded programs on the GPU of this machine: `make gpu-test`. Skipped where there is none."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from benchmarks.gpu.backends.ours import Ours
from benchmarks.gpu.bundle import Bundle, Refusal
from benchmarks.gpu.recording import Source, record
from benchmarks.gpu.replay import check
from benchmarks.gpu.run import FAMILIES
from shlo_disc.driver.compiler import named_target
from shlo_disc.errors import DeviceError
from shlo_disc.options import CUDA
from tests.gpu.no_driver import has_driver
from tests.gpu.recorded_programs import sources

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not has_driver(), reason="there is no NVIDIA driver; `make gpu-bundle` takes programs to one"),
]


@functools.cache
def target() -> str:
    """The GPU of this machine."""
    return named_target(CUDA)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Any:
    try:
        return Ours(Bundle(tmp_path_factory.mktemp("bundle")))
    except DeviceError as error:
        pytest.skip(str(error))


def groups() -> list[Any]:
    """Without a GPU one row stands for all, for to list the ops takes seconds."""
    found = sources(FAMILIES) if has_driver() else iter(())
    return [pytest.param(group, id=group[0].name) for group in found]


@pytest.mark.parametrize("group", groups())
def test_a_recorded_program_gives_the_same_on_a_gpu(ours: Ours, group: list[Source]) -> None:
    for source in group:
        program = record(source, target(), ours.bundle)
        if isinstance(program, Refusal):
            pytest.skip(f"refused: {program.reason}")
        assert check(ours.bundle, program, ours)["wrong"] == []
