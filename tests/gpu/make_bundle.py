# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tests.gpu.make_bundle`: what a machine with a GPU needs to check and time programs, as two files.

build/gpu-bundle-1.tar has the runtime as plain files, its native core for this Python and for others that are found,
and most programs; build/gpu-bundle-2.tar has the example models and the single ops. Both are unpacked into one folder,
where `python run.py` does the rest: NumPy is all that it needs. No GPU is needed here.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.gpu.bundle import Bundle, Refusal
from benchmarks.gpu.native import build
from benchmarks.gpu.recording import Source, record
from benchmarks.gpu.run import FAMILIES
from shlo_disc.runtime import _native
from tests.gpu.recorded_programs import sources

ROOT = Path(__file__).resolve().parents[2]

MOST_BYTES = 60_000_000
"""Size limit of each file."""
SECOND = ("models", "ops")
"""The families whose programs are in the second file."""

PACKAGE = (
    "__init__.py", "errors.py", "options", "runtime", "shape_dialect/__init__.py",
    "shape_dialect/compile_state.py", "shape_dialect/custom_calls.py", "shape_dialect/dtypes.py",
    "shape_dialect/policy.py", "shape_dialect/symbolic",
)  # fmt: skip
"""The part of shlo_disc that loads and calls programs."""
BENCHMARKS = (
    "__init__.py", "data.py", "tables.py", "torch_models", "gpu/__init__.py", "gpu/bundle.py", "gpu/backends",
    "gpu/native.py", "gpu/process.py", "gpu/replay.py", "gpu/report.py", "gpu/run.py", "gpu/worker.py",
)  # fmt: skip
SOURCE = ("CMakeLists.txt", "shlo_disc/runtime/include", "shlo_disc/runtime/native")

RUN = '''"""Checks and times the programs that lie here on this machine's GPU: `python run.py --help`."""
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from benchmarks.gpu.native import NativeMissing, ensure  # noqa: E402

if __name__ == "__main__":
    try:
        ensure(HERE)
    except NativeMissing as missing:
        print(f"nothing can run here: {missing}")
        sys.exit(2)
    from benchmarks.gpu.run import main

    sys.exit(main(sys.argv[1:], HERE))
'''


def write_runtime(folder: Path) -> None:
    """The runtime, what runs and reports, and the source of the native core, as plain files."""
    for top, parts in (("shlo_disc", PACKAGE), ("benchmarks", BENCHMARKS), (".", SOURCE)):
        into = folder / ("source" if top == "." else top)
        for part in parts:
            _copy(ROOT / top / part, into / part)
    shutil.rmtree(folder / "shlo_disc" / "runtime" / "native")
    own = Path(str(_native.__file__))
    shutil.copy2(own, folder / "shlo_disc" / "runtime" / own.name)
    (folder / "run.py").write_text(RUN)


def _copy(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.copytree(path, to, ignore=shutil.ignore_patterns("__pycache__", "*.so"), dirs_exist_ok=True)
    else:
        shutil.copy2(path, to)


def find_python(name: str) -> str | None:
    """A Python that runs, by its command: on the PATH, or one of pyenv's."""
    places = [shutil.which(name), *sorted(map(str, Path.home().glob(f".pyenv/versions/*/bin/{name}")))]
    for place in filter(None, places):
        if subprocess.run([place, "--version"], capture_output=True, check=False).returncode == 0:
            return place
    return None


def write_native(folder: Path, python: str, scratch: Path) -> None:
    """The native core for another Python, built in an environment of its own in `scratch`, which is kept."""
    environment = scratch / "venv" / "bin" / "python"
    if not environment.exists():
        subprocess.run([python, "-m", "venv", scratch / "venv"], check=True)
    pip = [environment, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "numpy>=2.0", "nanobind>=2.4"], check=True)
    made = build(ROOT, environment.absolute(), scratch / "build", folder / "shlo_disc" / "runtime")
    subprocess.run(["strip", "--strip-unneeded", made], check=True)


def write_programs(bundle: Bundle, groups: Iterator[list[Source]], target: str) -> int:
    """Compile and record programs, and list those that are refused; how many there are."""
    refused: list[Refusal] = []
    made: dict[str, int] = {}
    for group in groups:
        for source in group:
            result = record(source, target, bundle)
            if isinstance(result, Refusal):
                refused.append(result)
                print(f"{source.name} ({source.title}) is left out: {result.reason}", flush=True)
                break
            made[source.family] = made.get(source.family, 0) + 1
    bundle.write_refused(refused)
    counts = ", ".join(f"{count} {family}" for family, count in made.items())
    print(f"recorded: {counts}; refused: {len(refused)}", flush=True)
    return sum(made.values())


def pack(folder: Path, stem: Path) -> list[Path]:
    """The folder as two tar files. Raises SystemExit where one is too large."""
    names = ("1", "2")
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]
    written = []
    for name in names:
        target = stem.with_name(f"{stem.name}-{name}.tar")
        with tarfile.open(target, "w") as archive:
            for path in files:
                if _part(path) == name:
                    archive.add(path, path.relative_to(folder))
        written.append(target)
        if target.stat().st_size > MOST_BYTES:
            sizes = sorted(((p.stat().st_size, p.name) for p in files if _part(p) == name), reverse=True)
            sys.exit(f"{target} has {target.stat().st_size} bytes; the largest of its files are {sizes[:5]}")
    return written


def _part(path: Path) -> str:
    return "2" if path.parent.name == "programs" and path.name.startswith(SECOND) else "1"


def main(arguments: Sequence[str]) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="cuda:sm_90a", help="what programs are compiled for (cuda:sm_90a)")
    parser.add_argument(
        "--families", nargs="*", default=FAMILIES, choices=FAMILIES, metavar="FAMILY", help=str(FAMILIES)
    )
    parser.add_argument(
        "--stride", type=int, default=40, help="every so many-th op besides the first of each kind (40)"
    )
    parser.add_argument("--pythons", nargs="*", default=["python3.12"], help="other Pythons that the core is built for")
    parser.add_argument("--output", type=Path, default=ROOT / "build", help="where the files go (build)")
    options = parser.parse_args(arguments)
    folder = options.output / "gpu-bundle"
    shutil.rmtree(folder, ignore_errors=True)
    write_runtime(folder)
    for python in options.pythons:
        found = find_python(python)
        if found is None:
            print(f"{python} is not here: where that is used, the core is built from its source", flush=True)
            continue
        write_native(folder, found, options.output / f"gpu-native-{Path(python).name}")
    if not write_programs(Bundle(folder), sources(options.families, options.stride), options.target):
        print("no program could be compiled: there is nothing to check or time")
        return 1
    for path in pack(folder, folder):
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
