# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plugin's GPUs, over the mock driver: see `gpu_programs`."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest

from tests.gpu.marks import needs_mock_driver
from tests.pjrt.plugin import program_names, run_python

pytestmark = needs_mock_driver
_DRIVER = "the driver is used as it asks"


@functools.cache
def _results() -> dict[str, str | None]:
    script = Path(__file__).with_name("gpu_programs.py")
    done = run_python(str(script), JAX_PLATFORMS="shlo_disc_cuda,cpu")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("name", [*program_names("gpu_programs.py"), _DRIVER])
def test_check(name: str) -> None:
    assert _results()[name] is None, _results()[name]


def test_gpus_are_chosen_as_jax_has_it() -> None:
    script = """
import jax
from tests.pjrt.gpu_programs import over_mock_driver
over_mock_driver()
jax.config.update("jax_cuda_visible_devices", "1")
(device,) = jax.devices()
print(device.id, device.local_hardware_id, jax.numpy.ones(3).devices() == {device})
"""
    done = run_python("-c", script, JAX_PLATFORMS="shlo_disc_cuda,cpu")
    assert (done.returncode, done.stdout) == (0, "0 1 True\n"), done.stderr
