# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plugin's GPUs, over the mock driver: see `gpu_programs`."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path

import pytest

from tests.gpu.marks import needs_mock_driver
from tests.pjrt.gpu_conformance import OF_PROCESSORS, REFUSED
from tests.pjrt.plugin import program_names, program_outcomes, program_rows, run_python

pytestmark = needs_mock_driver
_DRIVER = "the driver is used as it asks"


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest) -> dict[str, str | None]:
    """The failures of the checks that this session runs; None for what has none."""
    script = Path(__file__).with_name("gpu_programs.py")
    done = run_python(str(script), *program_rows(request), JAX_PLATFORMS="shlo_disc_cuda,cpu")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("name", program_names("gpu_programs.py"))
def test_check(name: str, results: dict[str, str | None]) -> None:
    assert results[name] is None, results[name]
    assert results[_DRIVER] is None, results[_DRIVER]


@functools.cache
def _conformance() -> dict[str, str]:
    return program_outcomes("tests.pjrt.gpu_conformance", devices=2, platform="shlo_disc_cuda")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(program_names("jax_programs.py", "layout_programs.py")) - OF_PROCESSORS))
def test_jaxs_programs_of_processors_run_or_are_refused_by_name(name: str) -> None:
    said, expected = _conformance()[name], REFUSED.get(name)
    if expected is None:
        assert said == "ok", said
    else:
        assert "UNIMPLEMENTED" in said and expected in said, said


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


def test_a_kernel_that_fails_is_named_with_the_line_of_the_user() -> None:
    script = """
import jax
import jax.numpy as jnp
import numpy as np
from tests.gpu.mock_driver import Image, mock_driver
from tests.gpu.mock_streams import Refused
from tests.gpu.test_graphs import Failing
from tests.pjrt.gpu_programs import over_mock_driver

over_mock_driver()
from shlo_disc.runtime import clients
from shlo_disc.pjrt import compile as of_plugin

driver, kernels, load = mock_driver(), [], of_plugin._loaded


def load_failing(executable, gpu):
    load(executable, gpu)
    image = bytes(executable.artifact.sections["ptx"])
    made = {name: Failing(kernel) for name, (_, kernel) in driver.images[image].kernels.items()}
    kernels.extend(made.values())
    driver.images[image] = Image({name: (len(kernel.types), kernel) for name, kernel in made.items()})
    return clients.gpu_client(gpu).load(executable.artifact)


of_plugin._loaded = load_failing
function = jax.jit(lambda x: jnp.tanh(x) * 2)
given = np.ones(5, np.float32)
np.testing.assert_allclose(function(given), 2 * np.tanh(given), rtol=1e-6)
for kernel in kernels:
    kernel.fails = True
result = function(given)
try:
    result.block_until_ready()
except Exception as error:
    print(type(error).__name__, error)
"""
    done = run_python("-c", script, JAX_PLATFORMS="shlo_disc_cuda,cpu")
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in done.stdout, done.stderr
    assert re.search(r"the last kernels before it: .*tanh.*\(<string>:\d+\)", done.stdout), done.stdout
