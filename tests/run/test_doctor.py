# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc doctor` and `--version`, through the real command."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from typing import Any

import pytest

from shlo_disc.errors import DiscError
from shlo_disc.tools import doctor
from shlo_disc.tools.cli import main


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "shlo_disc", *arguments], capture_output=True, text=True, timeout=300)


def test_the_command_says_what_works() -> None:
    done = run("doctor", "--json")
    assert done.returncode == 0, done.stderr
    found = {finding["topic"]: finding for finding in json.loads(done.stdout)["findings"]}
    for topic in ("versions", "processor", "compile and run", "JAX", "plugin for jax.jit", "BLAS", "C library"):
        assert found[topic]["state"] == "works", found[topic]
    assert f"jax {metadata.version('jax')}" in found["versions"]["detail"]
    for finding in found.values():
        assert finding["state"] == "works" or finding["fix"], finding


HIDDEN = """
import sys
sys.modules.update(dict.fromkeys(sys.argv.pop(1).split(",")))
from shlo_disc.tools.cli import main
sys.exit(main())
"""


WITHOUT = {"compile and run": "absent", "JAX": "absent", "plugin for jax.jit": "absent", "code for GPUs": "absent"}


def check_what_is_not_installed(hidden: str, status: int, states: dict[str, str]) -> None:
    """The findings of some topics where modules are hidden."""
    command = [sys.executable, "-c", HIDDEN, hidden, "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == status, done.stderr
    found = {finding["topic"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert {topic: found[topic]["state"] for topic in states} == states
    assert all(found[topic]["fix"] for topic in states if states[topic] != "works")
    assert found["versions"]["state"] == found["processor"]["state"] == "works"


def test_without_the_compiler_saved_programs_run() -> None:
    check_what_is_not_installed("jax,jaxlib,torch_mlir,llvmlite", 0, WITHOUT | {"files of jax.export": "absent"})
    check_what_is_not_installed("torch_mlir,llvmlite", 0, WITHOUT)


def test_with_a_part_of_the_compiler_the_installation_is_broken() -> None:
    check_what_is_not_installed("llvmlite", 1, {"compile and run": "broken"})


def test_jax_export_needs_flatbuffers_for_its_files() -> None:
    check_what_is_not_installed("flatbuffers", 0, {"files of jax.export": "absent", "compile and run": "works"})


def test_the_version() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"shlo_disc {metadata.version('shlo_disc')}\n")


def fails() -> str:
    raise DiscError("it is not there\nand that is all")


@pytest.mark.parametrize(("is_needed", "state", "status"), [(True, "broken", 1), (False, "absent", 0)])
def test_what_is_missing_is_told_with_what_helps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_needed: bool, state: str, status: int
) -> None:
    checks: Any = (("a thing", "install it", is_needed, fails), ("another", "", True, lambda: "is there"))
    monkeypatch.setattr(doctor, "_CHECKS", checks)
    assert main(["doctor"]) == status
    first, second, third = capsys.readouterr().out.splitlines()
    assert first.split() == [state, "a", "thing", "it", "is", "not", "there"]
    assert second.strip() == "-> install it" and third.split() == ["works", "another", "is", "there"]


OLD = [("", "is not installed"), ("2.9.1+cpu", r"2\.9\.1\+cpu is older than 2\.13")]


@pytest.mark.parametrize(("version", "words"), OLD)
def test_pytorch_that_is_missing_or_old(version: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_version", lambda _: version)
    with pytest.raises(DiscError, match=words):
        doctor._torch()
    (advice,) = (fix for topic, fix, _, _ in doctor._CHECKS if topic == "PyTorch")
    assert "pip install 'torch>=2.13'" in advice
