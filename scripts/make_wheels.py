# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds a wheel for each Python from 3.11 to 3.13 that this machine has, and tries each where nothing else is.

Run: `python scripts/make_wheels.py [--python PATH ...] [--runtime-only]`, or `make wheels`. The wheels go to `dist/`.
Each is installed twice: beside NumPy alone, where it loads and calls the programs of `tests/golden/`; and with its
dependencies, where it compiles one. Needs a C++ compiler, CMake, a package index, and the standard library alone.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.12", "3.13")

LOADS = """
import sys
from pathlib import Path
import numpy as np
import shlo_disc

for path in sorted(Path(sys.argv[1]).glob("*/*.disc")):
    program, recorded = shlo_disc.load(path, trust=True), np.load(path.with_suffix(".npz"))
    if program.name == "layers":  # the arguments' pytree: a dict, in sorted order, and an array
        bias, weights, x = (recorded[f"0-argument-{i}"] for i in range(3))
        found = list(program({"w": weights, "b": bias}, x).values())
    else:
        found = program(*(recorded[n] for n in sorted(recorded.files) if n.startswith("0-argument")))
    for i, result in enumerate(found if isinstance(found, list | tuple) else [found]):
        np.testing.assert_allclose(result, recorded[f"0-result-{i}"], rtol=2e-5, atol=2e-5)
others = {"jax", "scipy", "torch_mlir", "llvmlite", "ml_dtypes"} & set(sys.modules)
assert not others, others
assert (Path(shlo_disc.__file__).parent / "py.typed").is_file()
assert Path(shlo_disc.get_library()).is_file() and Path(shlo_disc.get_pjrt_plugin()).is_file()
assert (Path(shlo_disc.get_include()) / "shlo_disc.h").is_file()
"""
"""With NumPy alone; the argument is the folder of recorded programs."""

COMPILES = """
import numpy as np
import shlo_disc

program = shlo_disc.compile(lambda x: x * 2, args=(("n", "float32"),))
np.testing.assert_array_equal(program(np.arange(5, dtype=np.float32)), np.arange(5) * 2)
"""


def main() -> int:
    """Builds and tries; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--python", action="append", metavar="PATH", help="an interpreter; by default all that are found"
    )
    parser.add_argument("--output", type=Path, default=ROOT / "dist", metavar="FOLDER")
    parser.add_argument("--runtime-only", action="store_true", help="do not try the wheels with their dependencies")
    options = parser.parse_args()
    pythons = options.python or found_pythons()
    if not pythons:
        print(f"no Python of {', '.join(VERSIONS)} was found: name one by --python", file=sys.stderr)
        return 1
    for python in pythons:
        with tempfile.TemporaryDirectory() as folder:
            wheel = build(python, Path(folder), options.output)
            print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
            try_bare(python, wheel, Path(folder) / "bare")
            print("  loads and calls programs beside NumPy alone", flush=True)
            if not options.runtime_only:
                try_whole(python, wheel, Path(folder) / "whole")
                print("  compiles with its dependencies", flush=True)
    return 0


def found_pythons() -> list[str]:
    """An interpreter for each version, from the path or from pyenv."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = []
    for version in VERSIONS:
        places = [*sorted(versions.glob(f"{version}.*/bin/python")), shutil.which(f"python{version}")]
        works = (str(place) for place in places if place and runs(str(place), version))
        found += [next(works, "")]
    return [python for python in found if python]


def runs(python: str, version: str) -> bool:
    """Whether an interpreter is there, of the version, and can make environments."""
    script = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout.strip() == version


def environment(python: str, folder: Path) -> Path:
    """A new environment of an interpreter; its Python."""
    if python == sys.executable:
        venv.create(folder, with_pip=True)
    else:
        run(python, "-m", "venv", str(folder))
    return folder / "bin" / "python"


def build(python: str, folder: Path, output: Path) -> Path:
    """The wheel for an interpreter."""
    inside = environment(python, folder / "build")
    made = folder / "wheel"
    run(str(inside), "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(made), str(ROOT))
    (wheel,) = made.glob("*.whl")
    output.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(wheel, output))


def try_bare(python: str, wheel: Path, folder: Path) -> None:
    """Load and call programs where there is NumPy and nothing else."""
    inside = str(environment(python, folder))
    run(inside, "-m", "pip", "install", "--quiet", "numpy")
    run(inside, "-m", "pip", "install", "--quiet", "--no-deps", str(wheel))
    run(inside, "-c", LOADS, str(ROOT / "tests" / "golden"), cwd=folder)


def try_whole(python: str, wheel: Path, folder: Path) -> None:
    """Compile a program."""
    inside = str(environment(python, folder))
    run(inside, "-m", "pip", "install", "--quiet", str(wheel))
    run(inside, "-c", COMPILES, cwd=folder)


def run(*command: str, cwd: Path | None = None) -> None:
    """Run a command, which has to succeed. Raises CalledProcessError."""
    subprocess.run(command, check=True, cwd=cwd, env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"})  # noqa: S603


if __name__ == "__main__":
    sys.exit(main())
