# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs every page, notebook and example where nothing but this package is installed, as a new user has it.

Run: `python -m scripts.check_install [--wheel PATH] [--python PATH] [STAGE ...]`, or `make check-install`. It makes a
virtual environment and installs this clone or a wheel into it; each stage adds what its pages tell readers to install,
and runs what that is for. Prints the time of each, and ends with 1 and a list when some fail. Needs a package index,
and the standard library alone. Stages: {stages}.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from scripts.make_wheels import build, environment, install, try_bare
from tests.docs import page

ROOT = page.ROOT
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
SAVED = "saved"
"""The stage that loads saved programs beside NumPy alone."""
TIMEOUT = 900
"""Seconds that one page, notebook or example may take."""


@dataclass(frozen=True)
class Task:
    """A command to run in a folder, with additions to the environment; or why it is skipped."""

    name: str
    command: tuple[str, ...] = ()
    folder: str = "examples-only"
    variables: dict[str, str] = field(default_factory=dict)
    skipped: str = ""


@dataclass(frozen=True)
class Stage:
    """A stage of the check: the extra or the packages that are installed, and the tasks that run then."""

    name: str
    extra: str
    packages: tuple[str, ...]
    tasks: Callable[[], Iterator[Task]]


def pages(needed: str = "") -> Iterator[Task]:
    """Checks of the pages that need a module, or of all."""
    for name in page.programs():
        found = page.read(name)
        if needed and needed not in found.needs:
            continue
        if not needed and all("needs" in block.marks for block in found.blocks if block.can_run):
            continue  # a later stage installs what all of its programs need
        needs_compiler = any(block.language in ("c", "cpp") and "file" in block.marks for block in found.blocks)
        if needs_compiler and shutil.which("cc") is None:
            yield Task(name, skipped="there is no C compiler")
        else:
            yield Task(name, ("python", str(ROOT / "tests" / "docs" / "page.py"), name))


def notebooks(with_torch: bool = False) -> Iterator[Task]:
    """Checks of the notebooks: those of PyTorch, or the others."""
    for path in NOTEBOOKS:
        if ("torch" in path.stem) == with_torch:
            yield Task(str(path.relative_to(ROOT)), ("python", str(ROOT / "tests" / "docs" / "notebook.py"), str(path)))


def plain() -> Iterator[Task]:
    """The tasks that need nothing but the package; programs in C++ and Rust need their compilers."""
    yield Task("shlo_disc doctor", ("shlo_disc", "doctor"))
    yield from pages()
    yield Task("examples/demo.py", ("python", "-m", "examples.demo", "--quick", "--shapes", "6"))
    yield Task("examples/bert.py", ("python", "-m", "examples.bert"))
    for source in ("score.cpp", "pjrt_client.cpp", "score.rs"):
        yield native(source)


def native(source: str) -> Task:
    """A program of examples/c, by the commands at its head."""
    compiler = "rustc" if source.endswith(".rs") else "g++"
    if shutil.which(compiler) is None:
        return Task(f"examples/c/{source}", skipped=f"{compiler} is not installed")
    commands = re.findall(r"^//!? {3,}(.+)$", (ROOT / "examples" / "c" / source).read_text(), re.MULTILINE)
    return Task(f"examples/c/{source}", ("bash", "-euo", "pipefail", "-c", "\n".join(commands)), "clone/examples/c")


def training() -> Iterator[Task]:
    """The training loops on the plugin, by the command of docs/plugin.md."""
    for name in ("train_flax", "train_equinox"):
        command = ("python", "-m", f"examples.{name}", "--check", "--steps", "12")
        yield Task(f"examples/{name}.py", command, variables={"JAX_PLATFORMS": "shlo_disc,cpu"})


def with_torch() -> Iterator[Task]:
    """The tasks that need PyTorch."""
    yield from pages("torch")
    yield from notebooks(with_torch=True)
    yield Task("examples/torch", ("python", "-m", "examples.torch", "bert", "tagger"))


STAGES = (
    Stage("plain", "", (), plain),
    Stage("notebooks", "", ("nbclient", "ipykernel"), notebooks),
    Stage("pypjrt", "", ("pypjrt",), lambda: pages("pypjrt")),
    Stage("examples", "examples", (), training),
    Stage("torch", "torch", ("nbclient", "ipykernel", "transformers"), with_torch),
)


def clean_environment(first: Path) -> dict[str, str]:
    """This process's variables without what a new user lacks: settings of Python and of ours, and a CUDA toolkit.

    first: the folder in which programs are looked for first.
    """
    hidden = ("SHLO_DISC_", "PYTHON", "CUDA_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    folders = [folder for folder in kept.get("PATH", "").split(os.pathsep) if not has_cuda(Path(folder))]
    return {**kept, "PATH": os.pathsep.join([str(first), *folders])}


def has_cuda(folder: Path) -> bool:
    """Tells whether a folder of programs has those of a CUDA toolkit."""
    return any((folder / name).exists() for name in ("nvcc", "ptxas"))


class Check:
    """An environment, what runs in it, and what failed."""

    def __init__(self, python: str, wheel: Path, folder: Path) -> None:
        self.wheel, self.folder = wheel, folder
        self.python = environment(python, folder / "environment")
        self.failed: list[str] = []
        # The package's sources in the folder where Python starts would hide the installed package.
        for name in ("examples-only/examples", "examples-only/benchmarks", "clone/examples/c"):
            source = ROOT / name.partition("/")[2]
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))

    def stage(self, stage: Stage) -> None:
        """Install what a stage needs, and run it."""
        start = time.perf_counter()
        print(f"{stage.name}: {' '.join([f'shlo_disc[{stage.extra}]', *stage.packages]).replace('[]', '')}", flush=True)
        wheel = f"{self.wheel}[{stage.extra}]" if stage.extra else str(self.wheel)
        install(self.python, wheel, *stage.packages)
        print(f"  installed  {time.perf_counter() - start:6.1f} s", flush=True)
        for task in stage.tasks():
            self.run(task)

    def run(self, task: Task) -> None:
        """Run a task, and print how it went."""
        if task.skipped:
            print(f"  skipped             {task.name}: {task.skipped}", flush=True)
            return
        start = time.perf_counter()
        error = self.error_of(task)
        print(f"  {'FAILED' if error else 'ok':9}  {time.perf_counter() - start:6.1f} s  {task.name}", flush=True)
        if error:
            self.failed.append(task.name)
            print("\n".join(f"    | {line}" for line in error.splitlines()[-30:]), flush=True)

    def loads_alone(self, python: str) -> None:
        """Load and call saved programs in an environment of NumPy and the package without what it depends on."""
        start, name = time.perf_counter(), "saved programs, with NumPy alone"
        try:
            try_bare(python, self.wheel, self.folder / "bare")
        except subprocess.CalledProcessError:
            self.failed.append(name)
        state = "FAILED" if name in self.failed else "ok"
        print(f"  {state:9}  {time.perf_counter() - start:6.1f} s  {name}", flush=True)

    def error_of(self, task: Task) -> str:
        """The output of a task that fails; empty when it succeeds."""
        variables = {**clean_environment(self.python.parent), "JAX_PLATFORMS": "cpu", **task.variables}
        where = self.folder / task.folder
        try:
            done = subprocess.run(  # noqa: S603
                task.command, cwd=where, env=variables, capture_output=True, text=True, timeout=TIMEOUT, check=False
            )
        except subprocess.TimeoutExpired:
            return f"it took more than {TIMEOUT} s"
        return (done.stdout + done.stderr or f"status {done.returncode}") if done.returncode else ""


def main() -> int:
    """Installs and runs; returns the exit status."""
    names = [SAVED, *(stage.name for stage in STAGES)]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=f"of {', '.join(names)}; by default all, in order")
    parser.add_argument("--wheel", type=Path, help="what is installed; by default a wheel of this clone, built first")
    parser.add_argument("--python", default=sys.executable, metavar="PATH", help="the interpreter")
    options = parser.parse_args()
    if unknown := set(options.stages) - set(names):
        parser.error(f"no stage is called {', '.join(sorted(unknown))}: there are {', '.join(names)}")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        wheel = options.wheel or build(options.python, folder)
        check = Check(options.python, wheel.resolve(), folder)
        if not options.stages or SAVED in options.stages:
            check.loads_alone(options.python)
        for stage in STAGES:
            if not options.stages or stage.name in options.stages:
                check.stage(stage)
    print(f"{time.perf_counter() - start:.0f} s in total; {len(check.failed)} failed", flush=True)
    for name in check.failed:
        print(f"failed: {name}")
    return int(bool(check.failed))


if __name__ == "__main__":
    sys.exit(main())
