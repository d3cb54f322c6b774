# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`shlo_disc watch` runs a script unchanged, and tells of its functions."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from shlo_disc.driver.ledger.document import FunctionRow
from shlo_disc.driver.ledger.page import lines

from .executable import run

SCRIPT = """
import sys
import jax, jax.numpy as jnp, numpy as np

@jax.jit
def step(x):
    return jnp.tanh(x) * 2

@jax.jit
def unrolled(x):
    for _ in range(x.shape[0]):
        x = x + 1
    return x

for size in (3, 4, 5):
    for _ in range(2):
        step(np.ones(size, np.float32))
    unrolled(np.ones(size, np.float32))
print(__name__, sys.argv[1:], jax.devices()[0].platform)
sys.exit(3)
"""


KILLED = "import os, time; time.sleep(1.1); step(np.ones((2, 2))); os.kill(os.getpid(), 9)"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def test_lines_page_and_status(script: Path) -> None:
    page = script.with_name("page.html")
    status, out, err = run("watch", "--page", page, script, "--epochs", "2")
    assert (status, out) == (3, "__main__ ['--epochs', '2'] shlo_disc\n"), err
    rows = {line.split()[0]: line.split() for line in err.splitlines() if line.strip()}
    assert rows["step"][1].endswith("train.py:6") and rows["step"][2:5] == ["6", "3", "2"]
    assert rows["unrolled"][2:5] == ["3", "3", "3"] and "traced to other ops" in " ".join(rows["unrolled"])
    text = page.read_text()
    assert text.startswith("<!doctype html>") and "unrolled" in text and "train.py:10" in text


@pytest.mark.slow
def test_a_module_and_json(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(script.parent)
    status, out, _ = run("watch", "--json", "-m", "train")
    head, _, rest = out.partition("\n")
    functions = {row["name"]: row for row in json.loads(rest)["functions"] if row["is_users"]}
    assert status == 3 and head == "__main__ [] shlo_disc"
    assert (functions["step"]["calls"], len(functions["step"]["programs"])) == (6, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "status"),
    [("1 / 0", 1), ("import os; os.kill(os.getpid(), 9)", 137), ("import os; os._exit(7)", 7), ("", 0)],
)
def test_the_status_is_the_scripts(tmp_path: Path, source: str, status: int) -> None:
    path = tmp_path / "other.py"
    path.write_text(source)
    found, out, err = run("watch", path)
    assert (found, out) == (status, "") and ("no program came to the plugin" in err) == (not status)
    assert ("TORCH_LOGS=shlo_disc,recompiles" in err) == (not status)


@pytest.mark.slow
def test_a_process_that_is_killed_has_told_what_it_did(script: Path) -> None:
    script.write_text(SCRIPT.replace("sys.exit(3)", KILLED))
    status, _, err = run("watch", script)
    assert status == 137 and "step" in err


def test_a_process_that_is_terminated(script: Path) -> None:
    """The table is printed, with what ran in the second after the ledger was written before."""
    waiting = SCRIPT.replace("sys.exit(3)", "time.sleep(1.2); print('ready', flush=True); time.sleep(60)")
    script.write_text(f"import time\n{waiting}")
    command = [sys.executable, "-m", "shlo_disc", "watch", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while "ready" not in process.stdout.readline():
            assert process.poll() is None
        process.terminate()
        _, err = process.communicate(timeout=60)
    rows = {line.split()[0]: line.split() for line in err.splitlines() if line.strip()}
    assert process.returncode == 128 + signal.SIGTERM
    assert rows["step"][2:5] == ["6", "3", "2"] and rows["unrolled"][2:5] == ["3", "3", "3"]


def test_long_texts_are_below_the_table() -> None:
    long = "an op differs between sizes: " + "write jax.numpy.where in its place, " * 9
    rows = [FunctionRow(name, "a.py:1", True, 1, 1, 1, (), (), why) for name, why in (("f", long), ("g", "short"))]
    heading, first, second, empty, note = lines(rows)
    assert max(map(len, (heading, first, second))) < 150 and empty == ""
    assert first.endswith("sizes: write jax.numpy.where in its place [1]") and second.endswith("short")
    assert note == f"[1] f: {long}"
    assert len(lines(rows[1:])) == 2


def test_without_a_script() -> None:
    status, out, err = run("watch")
    assert (status, out) == (2, "") and "name a script" in err


def test_a_script_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = run("watch", "trian.py")
    assert (status, out) == (2, "") and err.splitlines() == [
        "shlo_disc watch: there is no script 'trian.py'; options go before its name, a module is -m NAME"
    ]
