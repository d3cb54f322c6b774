# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a short list of tests in each environment that is given, with the versions of packages that it has.

Run: `python -m scripts.check_versions [--jobs N] PYTHON ...`, or `make check-versions PYTHONS='...'`. Each PYTHON is
the interpreter of an environment with this package and pytest. The tests are copied to a folder without the package, so
they test what is installed. Tests of PyTorch run where it is installed; an environment without this package, JAX or
pytest is skipped, with the reason. Prints a line for each environment and ends with 1 if tests fail in one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("benchmarks", "corpus", "docs", "examples", "scripts", "tests")
"""Folders that the tests import or read."""

WITH_JAX = (
    "tests/filecheck", "tests/pjrt/test_client.py", "tests/pjrt/test_interpreted.py", "tests/pjrt/test_interpreter.py",
    "tests/pjrt/test_interpreter_reductions.py", "tests/pjrt/test_jax.py", "tests/run/test_api.py",
    "tests/run/test_callbacks.py", "tests/run/test_exported.py", "tests/run/test_in_jax.py", "tests/run/test_jit.py",
    "tests/run/test_newer_artifacts.py", "tests/run/test_ops_random.py", "tests/run/test_remedies.py",
)  # fmt: skip
WITH_TORCH = ("tests/pytorch/test_backend.py", "tests/pytorch/test_programs.py", "tests/pytorch/test_views.py")
NEEDED = ("shlo_disc", "jax", "pytest")

ASKED = """
import importlib.util, json, platform
from importlib.metadata import version
found = {"python": platform.python_version()}
for name in ("jax", "torch", "pytest"):
    if importlib.util.find_spec(name):
        found[name] = version(name)
try:
    import shlo_disc.runtime._native
    found["shlo_disc"] = shlo_disc.__file__
except ImportError as error:
    found["missing"] = str(error)
if "shlo_disc" in found and "jax" in found:
    from jaxlib.mlir.dialects import stablehlo as of_jax
    from shlo_disc.shape_dialect.mlir import stablehlo
    found["stablehlo"] = f"{of_jax.get_current_version()}, read up to {stablehlo.get_current_version()}"
print(json.dumps(found))
"""
"""Program that prints what an environment has: versions by name."""


class Outcome(NamedTuple):
    """The versions of an environment as text, and how its tests went: "passed", "failed" or "skipped", and why."""

    versions: str
    state: str
    reason: str = ""


def versions_of(python: str, folder: Path) -> dict[str, str]:
    """The versions that an environment has; "missing" is why it cannot run tests."""
    try:
        done = subprocess.run(  # noqa: S603
            [python, "-c", ASKED], cwd=folder, env=variables(), capture_output=True, text=True, check=False
        )
    except OSError as error:
        return {"missing": str(error)}
    if done.returncode:
        return {"missing": (done.stderr.strip() or f"status {done.returncode}").splitlines()[-1]}
    found: dict[str, str] = json.loads(done.stdout)
    return found


def missing_in(found: dict[str, str]) -> str:
    """The reason why an environment cannot run the tests; "" if it can."""
    absent = [name for name in NEEDED if name not in found]
    return found.get("missing", "") or (f"{', '.join(absent)} not installed" if absent else "")


def variables() -> dict[str, str]:
    """This process's variables for the tests, whose reference is XLA on the processor."""
    return {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONDONTWRITEBYTECODE": "1"}


def tests_for(found: dict[str, str]) -> tuple[str, ...]:
    """The tests for the packages that an environment has."""
    return WITH_JAX + (WITH_TORCH if "torch" in found else ())


def described(found: dict[str, str]) -> str:
    """The versions as one text."""
    names = {"python": "Python", "jax": "JAX", "stablehlo": "StableHLO", "torch": "PyTorch"}
    return ", ".join(f"{text} {found[name]}" for name, text in names.items() if name in found)


def check(python: str, folder: Path, jobs: int) -> Outcome:
    """Run the tests in an environment. The tests' own output goes to standard output when they fail."""
    found = versions_of(python, folder)
    if reason := missing_in(found):
        return Outcome(described(found), "skipped", reason)
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *tests_for(found)]
    if jobs > 1:
        command += ["-n", str(jobs)]
    done = subprocess.run(  # noqa: S603
        command, cwd=folder, env=variables(), capture_output=True, text=True, check=False
    )
    lines = (done.stdout + done.stderr).strip().splitlines()
    if done.returncode:
        print("\n".join(f"    | {line}" for line in lines[-60:]), flush=True)
    return Outcome(described(found), "failed" if done.returncode else "passed", lines[-1] if lines else "")


def copy_tests(folder: Path) -> None:
    """Copy the tests, and what they read, without the package."""
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)


def main() -> int:
    """Checks each environment; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pythons", nargs="+", metavar="PYTHON", help="the interpreter of an environment")
    parser.add_argument("--jobs", type=int, default=1, help="processes of tests at a time, which needs pytest-xdist")
    options = parser.parse_args()
    states = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        copy_tests(folder)
        for python in options.pythons:
            start = time.perf_counter()
            outcome = check(python, folder, options.jobs)
            spent = time.perf_counter() - start
            print(f"{outcome.state:7}  {spent:6.1f} s  {outcome.versions or python}: {outcome.reason}", flush=True)
            states.append(outcome.state)
    if set(states) == {"skipped"}:
        print("no environment could run the tests", file=sys.stderr)
    return int("failed" in states or "passed" not in states)


if __name__ == "__main__":
    sys.exit(main())
