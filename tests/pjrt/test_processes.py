# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several processes: how clients find each other, and programs of `process_programs.py` started with mpiexec."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from shlo_disc.pjrt import register
from tests.pjrt.plugin import ROOT, library, program_names
from tests.pjrt.process_launch import free_port, outcomes_apart

pypjrt: Any = pytest.importorskip("pypjrt")
client_module: Any = pytest.importorskip("pypjrt.client")
options_module: Any = pytest.importorskip("pypjrt.compile_options")
errors: Any = pytest.importorskip("pypjrt.errors")
abi: Any = pytest.importorskip("pypjrt._abi.pjrt_0_114")

F32 = abi.PJRT_Buffer_Type_F32
ALONE = {"mapped_over_devices"}  # pmap takes the arrays of one process
LAST = (
    "a_process_fails",
    "a_process_ends",
    "processes_that_part",
    "programs_of_one_name_that_part",
)  # after them, nothing works
CHECKS = [n for n in program_names("process_programs.py") if n not in LAST]
QUICK = ("reductions", "large_sums_are_repeatable", "gathers", "scatters", "exchanges", "permutations", "positions")
PROGRAMS = tuple(n for n in program_names("device_programs.py") if n not in ALONE)

GATHER = """module attributes {mhlo.num_replicas = 3 : i32} {
  func.func @main(%x: tensor<2xf32>) -> tensor<6xf32> {
    %g = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64,
      replica_groups = dense<[[0, 1, 2]]> : tensor<1x3xi64>}> : (tensor<2xf32>) -> tensor<6xf32>
    return %g : tensor<6xf32> } }"""


def launch(folder: Path, processes: int, devices: int, *names: str) -> list[dict[str, str]]:
    """The outcomes of the programs that each process reports."""
    mpiexec = shutil.which("mpiexec", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    if mpiexec is None or importlib.util.find_spec("mpi4py") is None:
        pytest.skip("the extra 'mpi' is not installed")
    flags = f"--xla_force_host_platform_device_count={devices} --xla_cpu_collective_timeout_seconds=60"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "shlo_disc,cpu", "XLA_FLAGS": flags}
    command = [sys.executable, "-m", "tests.pjrt.process_programs", str(free_port()), str(folder / "outcomes"), *names]
    done = subprocess.run(
        [mpiexec, "-n", str(processes), *command], capture_output=True, text=True, timeout=300, env=env
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return [json.loads((folder / f"outcomes.{index}").read_text()) for index in range(processes)]


def launch_apart(folder: Path, processes: int, devices: int, *names: str) -> list[dict[str, str] | None]:
    """As `launch`, without mpiexec: processes find each other through JAX's coordinator. None for one that is lost."""
    flags = f"--xla_force_host_platform_device_count={devices} --xla_cpu_collective_timeout_seconds=60"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "shlo_disc,cpu", "XLA_FLAGS": flags}
    command = [sys.executable, "-m", "tests.pjrt.process_programs", str(free_port()), str(folder / "outcomes"), *names]
    return outcomes_apart(folder, processes, env, command, 200)


def expect_ok(outcomes: list[dict[str, str]], *names: str) -> None:
    for found in outcomes:
        assert found == dict.fromkeys(names, "ok"), "\n".join(text for text in found.values() if text != "ok")


@pytest.mark.slow
def test_two_processes_of_two_devices(tmp_path: Path) -> None:
    names = (*CHECKS, *QUICK, "a_process_fails")
    expect_ok(launch(tmp_path, 2, 4, *names), *names)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a_process_ends", "processes_that_part", "programs_of_one_name_that_part"])
def test_what_goes_wrong(tmp_path: Path, name: str) -> None:
    expect_ok(launch(tmp_path, 3, 1, name), name)


@pytest.mark.slow
@pytest.mark.parametrize("processes, names", [(2, PROGRAMS), (4, QUICK)])
def test_programs(tmp_path: Path, processes: int, names: tuple[str, ...]) -> None:
    expect_ok(launch(tmp_path, processes, 4, *names), *names)


# ---- without MPI ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plugin() -> Any:
    made = pypjrt.Plugin(library())
    made.initialize()
    return made


class Store:
    """Keys and values as the other processes of a job would have them."""

    def __init__(self, others: bytes):
        self.others = others
        self.values: dict[str, bytes] = {}

    def put(self, key: str, value: bytes) -> None:
        assert key not in self.values
        self.values[key] = value

    def get(self, key: str, timeout_ms: int) -> bytes:
        assert timeout_ms > 0
        return self.values.get(key, self.others)


def told(device_count: int, place: str = "") -> bytes:
    """An introduction of another process, which has no MPI."""
    return f"{device_count}\n{place}\nnot tried\n{'' if place else 'no address'}".encode()


def job(plugin: Any, node: int, device_count: int, others: bytes) -> Any:
    """The client of one of two processes."""
    options = {"num_nodes": 2, "node_id": node, "mpi_failure": "not tried", "device_count": device_count}
    return client_module.Client(plugin, options=options, kv_store=Store(others))


def all_devices(plugin: Any, client: Any) -> list[Any]:
    """Those of other processes included."""
    args = plugin.args("PJRT_Client_Devices_Args", client=client.address)
    plugin.call("PJRT_Client_Devices", args)
    addresses = ctypes.cast(args.devices, ctypes.POINTER(ctypes.c_void_p))
    return [client_module.Device(plugin, addresses[i]) for i in range(args.num_devices)]


def test_clients_find_each_other(plugin: Any) -> None:
    first, second = job(plugin, 0, 1, told(2)), job(plugin, 1, 2, told(1))
    assert (first.process_index, second.process_index) == (0, 1)
    for client in first, second:
        assert [d.id for d in all_devices(plugin, client)] == [0, 1, 2]
        assert [d.process_index for d in all_devices(plugin, client)] == [0, 1, 1]
    with first.devices() as devices:
        assert [(d.id, d.local_hardware_id) for d in devices] == [(0, 0)]
    with second.devices() as devices:
        assert [(d.id, d.local_hardware_id) for d in devices] == [(1, 0), (2, 1)]
    with pytest.raises(errors.InvalidArgument, match="device 2 is one of process 1"):
        first.buffer_from_host(memoryview(bytearray(4)), F32, [1], all_devices(plugin, first)[2])
    first.close()
    second.close()


def test_an_introduction_that_is_none(plugin: Any) -> None:
    gpus = (b"2\tMock GPU\n\n\n", b"2\tMock GPU\t9.0\n\n\n", b"0\t\n\n\n")
    for others in (b"", b"2", b"many\n\n\n", b"0\n\n\n", b"-1\n\n\n", b"2\n\n\n\n", b"2 ", b"2\n\n", *gpus):
        with pytest.raises(errors.InvalidArgument):
            job(plugin, 0, 1, others)


def test_collectives_without_a_transport(plugin: Any) -> None:
    client = job(plugin, 0, 1, told(2))
    with pytest.raises(errors.PjrtError, match="(?s)needs an exchange.*process 0: not tried.*give the option address"):
        client.compile(GATHER, options=options_module.CompileOptions(num_replicas=3))
    client.close()


def test_addresses_of_processes(plugin: Any) -> None:
    options = {"num_nodes": 2, "node_id": 0, "mpi_failure": "not tried", "device_count": 1}
    for address in ("localhost.", "nowhere", "300.0.0.1"):
        client = client_module.Client(plugin, options={**options, "address": address}, kv_store=Store(told(2, "x 1 y")))
        with pytest.raises(errors.PjrtError, match="is no address of a machine"):
            client.compile(GATHER, options=options_module.CompileOptions(num_replicas=3))
        client.close()
    others = Store(told(2, "somewhere without a secret"))
    client = client_module.Client(plugin, options={**options, "node_id": 1, "address": "127.0.0.1"}, kv_store=others)
    with pytest.raises(errors.PjrtError, match="a process has no address"):
        client.compile(GATHER, options=options_module.CompileOptions(num_replicas=3))
    client.close()


def test_mpi_is_left_alone_where_the_platform_is_not_asked_for() -> None:
    assert register._load_mpi(register.PLATFORM) == "JAX_PLATFORMS does not name shlo_disc"
    assert "mpi4py" not in sys.modules


def test_options_of_a_job(plugin: Any) -> None:
    def refused(message: str, store: Any, **options: int) -> None:
        with pytest.raises(errors.InvalidArgument, match=message):
            client_module.Client(plugin, options=options, kv_store=store)

    refused("node_id is 2, and there are 2 nodes", Store(told(1)), num_nodes=2, node_id=2)
    refused("num_nodes is a number from 1", Store(told(1)), num_nodes=0)
    refused("needs the callbacks", None, num_nodes=2, node_id=0)


# ---- over TCP -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [["sums_in_the_order_of_devices"],
     pytest.param(["devices_of_all_processes", "one_program_for_all_shapes"], marks=pytest.mark.slow)],
    ids=len,
)  # fmt: skip
def test_two_processes_without_mpi(tmp_path: Path, names: list[str]) -> None:
    found = launch_apart(tmp_path, 2, 2, *names)
    assert found == [dict.fromkeys(names, "ok")] * 2, (found, (tmp_path / "output.0").read_text()[-3000:])


@pytest.mark.slow
def test_four_processes_without_mpi(tmp_path: Path) -> None:
    names = (*CHECKS, *PROGRAMS)
    found = launch_apart(tmp_path, 4, 4, *names)
    assert found == [dict.fromkeys(names, "ok")] * 4, (found, (tmp_path / "output.0").read_text()[-3000:])


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(20))
def test_a_process_that_is_killed(tmp_path: Path, attempt: int) -> None:
    name = "a_process_is_lost"
    begin = time.monotonic()
    found = launch_apart(tmp_path, 4, 1, name)
    assert found == [*[{name: "ok"}] * 3, None], (found, (tmp_path / "output.0").read_text()[-3000:])
    assert time.monotonic() - begin < 90
