# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GPUs of several processes, over mocks of the driver and of NCCL: programs of `gpu_process_programs.py`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.gpu.marks import needs_mock_driver
from tests.pjrt.plugin import ROOT, program_names
from tests.pjrt.process_launch import free_port, outcomes_apart

pytestmark = needs_mock_driver
MISTAKES = "mistakes"
SECONDS = 60  # that a collective waits for others, where nothing is said of it
CHECKS = program_names("gpu_process_programs.py")
OF_PROCESSORS = ("devices_of_all_processes", "arrays_of_all_processes", "utilities", "one_program_for_all_shapes")
QUICK = ("reductions", "gathers", "scatters", "exchanges", "permutations", "positions")
MORE = ("element_types", "booleans", "collectives_in_a_loop", "devices_in_another_order", "data_parallel_training",
        "tensor_parallel_training", "fully_sharded_training", "elementwise_and_products", "loops_and_branches",
        "random_numbers")  # fmt: skip


def launch(folder: Path, processes: int, gpus: int, *names: str, seconds: int = SECONDS) -> list[dict[str, str] | None]:
    """The outcomes that each process reports; None for one that is lost."""
    flags = f"--xla_force_host_platform_device_count=4 --xla_gpu_nccl_termination_timeout_seconds={seconds}"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "shlo_disc_cuda,cpu", "XLA_FLAGS": flags}
    env |= {"GPUS": str(gpus), "TMPDIR": str(folder)}
    module = "tests.pjrt.gpu_process_programs"
    command = [sys.executable, "-m", module, str(free_port()), str(folder / "outcomes"), *names]
    return outcomes_apart(folder, processes, env, command, 300)


def expect_ok(folder: Path, found: list[dict[str, str] | None], *names: str) -> None:
    """All processes report success, and made no mistake."""
    wanted = {**dict.fromkeys(names, "ok"), MISTAKES: ""}
    for number, outcomes in enumerate(found):
        assert outcomes == wanted, (number, outcomes, (folder / f"output.{number}").read_text()[-3000:])


def test_two_processes(tmp_path: Path) -> None:
    expect_ok(tmp_path, launch(tmp_path, 2, 2, "reductions"), "reductions")


@pytest.mark.slow
def test_two_processes_with_several_programs(tmp_path: Path) -> None:
    names = ("devices_of_all_processes", "reductions", "permutations")
    expect_ok(tmp_path, launch(tmp_path, 2, 2, *names), *names)


@pytest.mark.slow
def test_four_processes(tmp_path: Path) -> None:
    names = (*OF_PROCESSORS, *CHECKS, *QUICK, *MORE)
    expect_ok(tmp_path, launch(tmp_path, 4, 1, *names), *names)


@pytest.mark.slow
def test_more_programs_of_two_processes(tmp_path: Path) -> None:
    names = (*OF_PROCESSORS, *CHECKS, *QUICK, *MORE)
    expect_ok(tmp_path, launch(tmp_path, 2, 2, *names), *names)


@pytest.mark.parametrize(
    "name",
    ["versions_differ", "there_is_no_id", "an_id_leads_nowhere", "there_is_no_nccl", "nccl_fails_in_one_process",
     "processes_that_part", "a_process_fails"],
)  # fmt: skip
def test_what_goes_wrong(tmp_path: Path, name: str) -> None:
    expect_ok(tmp_path, launch(tmp_path, 2, 1, name), name)


LOST = [f"a_process_is_lost_{where}" for where in ("in_a_collective", "between_programs", "at_the_connection")]


@pytest.mark.slow
def test_a_process_that_is_killed(tmp_path: Path) -> None:
    *others, last = launch(tmp_path, 3, 1, LOST[0])
    expect_ok(tmp_path, others, LOST[0])
    assert last is None


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(5))
@pytest.mark.parametrize("name", LOST)
def test_a_process_that_is_killed_again(tmp_path: Path, name: str, attempt: int) -> None:
    *others, last = launch(tmp_path, 4, 2, name)
    expect_ok(tmp_path, others, name)
    assert last is None


@pytest.mark.parametrize(("name", "gpus"), [("a_process_comes_late", 1), ("a_gpu_is_slow", 1), ("a_gpu_is_slow", 2)])
def test_who_is_late_is_named(tmp_path: Path, name: str, gpus: int) -> None:
    expect_ok(tmp_path, launch(tmp_path, 3, gpus, name, seconds=3), name)


@pytest.mark.slow
def test_three_processes(tmp_path: Path) -> None:
    names = ("some_exchange_nothing", "collectives_of_all_sizes")
    expect_ok(tmp_path, launch(tmp_path, 3, 1, *names), *names)
