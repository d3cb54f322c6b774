# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs for the GPU of this machine, and for one generation alone, over the mock driver."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import shlo_disc
from shlo_disc.driver.compiler import named_target
from shlo_disc.errors import ArtifactError
from shlo_disc.lowering.codegen import assemble
from tests.gpu.emulated import fresh_client, install, loaded
from tests.gpu.marks import needs_no_driver
from tests.gpu.mock_driver import ATTRIBUTES, mock_driver

pytestmark = needs_no_driver

ROWS = (("b, s", "float32"),)


def halves(x: Any) -> Any:
    return x * 0.5


@pytest.fixture
def compiled() -> shlo_disc.Executable:
    mock_driver()
    return shlo_disc.compile(halves, target="cuda", args=ROWS)


def test_the_gpu_that_is_found_says_what_is_compiled(compiled: shlo_disc.Executable) -> None:
    """The mock is an H100, and code for it alone may use all that it has."""
    assert compiled.target == "cuda:sm_90a"
    assert ".target sm_90a" in compiled.as_text("ptx")
    given = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(loaded(compiled, fresh_client())(given), given * 0.5)


@pytest.mark.ptxas
def test_its_code_assembles(compiled: shlo_disc.Executable) -> None:
    assert assemble(compiled.as_text("ptx"), "sm_90a").startswith(b"\x7fELF")


def test_code_for_one_generation_is_refused_by_the_next(
    compiled: shlo_disc.Executable, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(compiled)
    monkeypatch.setitem(ATTRIBUTES, 75, 10)
    later = fresh_client()
    with pytest.raises(ArtifactError, match="made for cuda:sm_90a; Mock GPU is an sm_100"):
        later.load(compiled.artifact)
    general = shlo_disc.compile(halves, target="cuda:sm_90", args=ROWS)
    install(general)
    later.load(general.artifact)


def test_other_targets_are_what_they_are() -> None:
    assert [named_target(name) for name in ("cpu", "cuda:sm_80", "cuda:sm_90a")] == ["cpu", "cuda:sm_80", "cuda:sm_90a"]


def test_a_machine_without_a_gpu_says_how_to_compile_for_one() -> None:
    """In a process of its own, for this one has the mock."""
    script = "from shlo_disc.driver.compiler import named_target; named_target('cuda')"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stderr
    assert "the target 'cuda' is the GPU of this machine" in said
    assert "such as target='cuda:sm_90': there is no GPU to run on" in said
