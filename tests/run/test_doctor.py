# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc doctor` and `--version`, through the real command."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from typing import Any

import pytest

from shlo_disc import doctor
from shlo_disc.cli import main
from shlo_disc.errors import DiscError


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
