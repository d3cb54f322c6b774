# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The times of single commands on GPUs, and `explain` and `run` for them, over the mock driver: a microsecond each."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import DeviceError
from shlo_disc.report import machine as ceilings
from shlo_disc.report.synthetic import load_flat
from shlo_disc.runtime import Client, LoadedExecutable
from shlo_disc.tools.cli import main
from tests.gpu.emulated import fresh_client, install, loaded
from tests.gpu.loop_programs import LOOPS, ROWS, rows
from tests.gpu.marks import needs_mock_driver
from tests.gpu.mock_driver import MockDriver
from tests.ir.gpu_cases import assert_close

pytestmark = needs_mock_driver

MICROSECOND = 1e-6


@pytest.fixture
def only_gpu(client: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    """The GPU that programs go to by themselves. Its products and copies are small, for the sake of the emulator."""
    monkeypatch.setattr("shlo_disc.driver.executable.gpu_client", lambda *_: client)
    monkeypatch.setattr("shlo_disc.runtime.clients.gpu_client", lambda *_: client)
    monkeypatch.setitem(ceilings.PRODUCT_SIZES, "cuda", (16, 16))
    monkeypatch.setattr(ceilings, "_SIZES", (1 << 10, 1 << 12))
    monkeypatch.setattr(ceilings.Machine, "_load", lambda _, text: emulated(text, client))
    return client


def emulated(text: str, client: Client) -> LoadedExecutable:
    """A program that the driver knows."""
    compiled = shlo_disc.compile(text, target="cuda:sm_90")
    install(compiled)
    return load_flat(client, compiled.artifact)


def normalized(x: jax.Array) -> jax.Array:
    return jnp.sort(x, axis=1) / jnp.sum(x)


def test_each_command_is_timed_by_the_gpu(client: Client) -> None:
    compiled = shlo_disc.compile(normalized, target="cuda:sm_90", args=ROWS)
    times = loaded(compiled, client).profile([rows(3, 20)])
    assert len(times) == len(compiled.kernels) > 1
    assert [t.calls for t in times] == [1] * len(times)
    assert [t.seconds for t in times] == pytest.approx([MICROSECOND] * len(times))


def test_commands_without_work_take_no_time(client: Client) -> None:
    compiled = shlo_disc.compile(
        "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
        "  %y = stablehlo.tanh %x : tensor<?xf32>\n  return %y : tensor<?xf32>\n}",
        target="cuda:sm_90",
    )
    for size, seconds in ((0, 0), (5, MICROSECOND)):
        times = loaded(compiled, client).profile([np.ones(size, np.float32)])
        assert [t.seconds for t in times] == pytest.approx([seconds])


def test_a_bound_program_is_timed_as_well(client: Client) -> None:
    arguments = (*ROWS, *ROWS)
    run = loaded(shlo_disc.compile(lambda w, x: jnp.sort(x + w, axis=1), target="cuda:sm_90", args=arguments), client)
    times = run.bind(rows(3, 20)).profile([rows(3, 20)])
    assert sum(t.seconds for t in times) == pytest.approx(MICROSECOND * len(times))


@pytest.mark.slow
def test_commands_of_loops_add_up(client: Client) -> None:
    def f(x: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 700, lambda _, v: jnp.cumsum(v, axis=1) * 0.5, x)

    run = loaded(shlo_disc.compile(f, target="cuda:sm_90", args=ROWS), client)
    most = max(run.profile([rows(1, 2)]), key=lambda t: t.calls)
    assert most.calls >= 700, "more than are kept at a time"
    assert most.seconds == pytest.approx(MICROSECOND * most.calls)


def test_a_loop_that_reads_the_gpu_goes_on_under_the_clock(client: Client) -> None:
    function, arguments, make = LOOPS["while"]
    run = loaded(shlo_disc.compile(function, target="cuda:sm_90", args=arguments), client)
    given = make(3, 7)
    assert sum(t.calls for t in run.profile(given)) > 0
    assert_close(run(*given), jax.jit(function)(*given), 1e-5)


@pytest.mark.parametrize("function", ["cuEventElapsedTime", "cuEventRecord"])
def test_a_clock_that_fails_says_so(driver: MockDriver, function: str) -> None:
    run = loaded(shlo_disc.compile(normalized, target="cuda:sm_90", args=ROWS), fresh_client())
    driver.fails[function] = 999
    with pytest.raises(DeviceError, match="time the work|record an event"):
        run.profile([rows(3, 20)])


def test_explain_on_a_gpu(only_gpu: Client) -> None:
    compiled = shlo_disc.compile(normalized, target="cuda:sm_90", args=ROWS)
    install(compiled)
    found = compiled.explain(b=3, s=20)
    assert [k.name for k in found.kernels] == [k.name for k in compiled.kernels]
    assert all(k.runs == 1 and k.seconds == pytest.approx(MICROSECOND) for k in found.kernels)
    assert all(k.estimated_seconds is not None for k in found.kernels)
    assert only_gpu.devices()[0].device_kind in str(found).splitlines()[0]
    assert found.to_json()["machine"]["name"] == only_gpu.devices()[0].device_kind


def test_explain_says_whether_several_blocks_share_a_result(only_gpu: Client) -> None:
    compiled = shlo_disc.compile(lambda x: x.sum(-1), target="cuda:sm_90", args=(("b, s", "float32"),))
    install(compiled)
    assert "several blocks for each result" in str(compiled.explain(b=2, s=8192))
    assert "one block for each result" in str(compiled.explain(b=2, s=8191))


def test_one_block_is_a_launch_like_any_other(only_gpu: Client) -> None:
    compiled = shlo_disc.compile(lambda x: jnp.exp(x), target="cuda:sm_90", args=(("4", "float32"),))
    install(compiled)
    assert [k.runs for k in compiled.explain().kernels] == [1]


@pytest.mark.slow
def test_run_and_info_of_a_program_for_gpus(
    only_gpu: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled = shlo_disc.compile(normalized, target="cuda:sm_90", args=ROWS)
    install(compiled)
    path = tmp_path / "program.disc"
    compiled.save(path)
    given = rows(3, 20)
    np.savez(tmp_path / "in.npz", given)
    outputs = tmp_path / "out.npz"
    assert main(["run", str(path), "--trust", "--inputs", str(tmp_path / "in.npz"), "--outputs", str(outputs)]) == 0
    with np.load(outputs) as archive:
        assert_close(archive[archive.files[0]], jax.jit(normalized)(given), 1e-5)
    assert main(["info", str(path)]) == 0
    assert "cuda:sm_90" in capsys.readouterr().out
    dims = ",".join(f"{symbol['name']}=3" for symbol in compiled.artifact.header["symbols"])
    assert main(["bench", str(path), str(path), "--trust", "--dims", dims, "--rounds", "2", "--json"]) == 0
    timed = json.loads(capsys.readouterr().out)["shapes"][0]["files"]
    assert [row["calls"] for row in timed] == [2, 2] and min(row["median_seconds"] for row in timed) > 0
