# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A stage that fails inside leaves the program and a command, which compiles it again where nothing fails."""

from __future__ import annotations

import importlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

import shlo_disc
from shlo_disc.driver import artifact_header, pass_pipelines
from shlo_disc.driver.pass_pipelines import PIPELINES
from shlo_disc.driver.reproducer import KEPT, remove_old_reproducers
from shlo_disc.driver.stages import STAGES
from shlo_disc.importer.programs import TextProgram
from shlo_disc.lowering import codegen
from shlo_disc.tools.cli import main

PROGRAM = """module @scaled {
  func.func @main(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
    %1 = stablehlo.tanh %0 : tensor<?x8xf32>
    return %1 : tensor<?x8xf32>
  }
}
"""  # noqa: E501
STRICT = shlo_disc.Options(strict=True, opt_level=0)


def fail(*_: Any, **__: Any) -> Any:
    """Takes the place of what works."""
    raise KeyError("planted")


def plant(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = pass_pipelines.run_element
    if stage == "artifact":
        monkeypatch.setattr(artifact_header, "artifact_of", fail)
    elif stage == "import":
        monkeypatch.setattr(importlib.import_module("shlo_disc.importer.import_program"), "normalise", fail)
    elif stage == "LLVM":
        monkeypatch.setattr(codegen, "compile_with_routines", fail)
    else:
        monkeypatch.setattr(
            pass_pipelines,
            "run_element",
            lambda c, element, name, after: (fail if name == stage else run)(c, element, name, after),
        )


def failure_of(program: Any, options: shlo_disc.Options = STRICT) -> tuple[str, list[str], Path]:
    """The message of the error, the words of the command, and the directory of the files."""
    with pytest.raises(shlo_disc.CompilerError) as caught:
        shlo_disc.compile(program, options=options)
    said, line = caught.value.message.rsplit("\nTo see it again: ", 1)
    words = shlex.split(line)
    assert words[:4] == ["python", "-m", "shlo_disc", "opt"]
    return said, words, Path(words[4]).parent


def run(words: list[str]) -> str:
    done = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("stage", [*STAGES, "LLVM", "artifact"])
def test_each_stage_leaves_a_reproducer(
    stage: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(stage, monkeypatch)
    said, words, directory = failure_of(PROGRAM)
    name = "codegen" if stage in ("LLVM", "artifact") else stage
    assert said == ("" if stage == "artifact" else f"the stage {name} failed: ") + "KeyError: 'planted'"
    assert Path(words[4]).name == "program.mlir" and Path(words[4]).read_text() == PROGRAM
    assert "llvm.func" in run(words)
    report = json.loads((directory / "report.json").read_text())
    assert said in report["error"] and "planted" in "".join(report["traceback"])
    assert report["pipeline"] == PIPELINES and report["command"] == shlex.join(words)
    assert {"shlo_disc", "jax", "torch-mlir", "llvmlite", "numpy", "python"} <= set(report["versions"])
    assert report["stage"] == (None if stage == "import" else name)
    before = STAGES if stage == "artifact" else STAGES[: STAGES.index(name)]
    left = {p.name for p in directory.glob("after-*.mlir")}
    assert left == {f"after-{s}.mlir" for s in (*before[:1], *before[-1:])}
    if before and stage != "artifact":
        monkeypatch.undo()
        assert main(["opt", str(directory / f"after-{before[-1]}.mlir"), "--stage", "codegen"]) == 0
        assert "llvm.func" in capsys.readouterr().out


def test_options_are_in_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    schedule = shlo_disc.Schedule({"fused": shlo_disc.KernelSchedule(unroll=2)})
    plant("codegen", monkeypatch)
    chosen = shlo_disc.Options(
        strict=True, opt_level=0, cpu="x86-64-v3", hints={"arg0_d0": 4}, schedule=schedule, reuse=False, max_fusions=3
    )
    _, words, directory = failure_of(PROGRAM, chosen)
    text = " ".join(words[5:])
    for flags in ("--opt-level 0", "--cpu x86-64-v3", "--hints arg0_d0=4", "--no-reuse", "--max-fusions 3", "--strict"):
        assert flags in text
    assert shlo_disc.Schedule.load(directory / "schedule.json") == schedule
    assert f"--schedule {directory / 'schedule.json'}" in text
    monkeypatch.undo()
    assert main(words[3:]) == 0 and "llvm.func" in capsys.readouterr().out


def test_programs_that_no_file_holds_go_on_from_their_import(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant("fuse", monkeypatch)
    _, words, _ = failure_of(TextProgram(PROGRAM, is_own=True))
    assert Path(words[4]).name == "after-import.mlir"
    monkeypatch.undo()
    assert main(words[3:]) == 0 and "llvm.func" in capsys.readouterr().out


# ---- how many there are ----------------------------------------------------------------------------------------------


def directory_of(parent: Path, number: int, *, age: float = 0.0, files: tuple[str, ...] = ("command.txt",)) -> Path:
    """One that a compile has left `age` seconds ago."""
    made = parent / f"shlo_disc-failure-{number:08d}"
    made.mkdir(parents=True)
    for name in ("program.mlir", "after-import.mlir", "report.json", *files):
        (made / name).write_text(name)
    then = time.time() - age
    os.utime(made, (then, then))
    return made


def names(parent: Path) -> set[str]:
    return {path.name for path in parent.iterdir()}


def test_the_newest_directories_stay(tmp_path: Path) -> None:
    made = [directory_of(tmp_path, number, age=10.0 * number) for number in range(9)]
    remove_old_reproducers(tmp_path, kept=4)
    assert names(tmp_path) == {path.name for path in made[:4]}
    remove_old_reproducers(tmp_path, kept=4)
    assert len(names(tmp_path)) == 4
    remove_old_reproducers(tmp_path / "absent")


def test_failed_compiles_remove_old_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(importlib.import_module("shlo_disc.importer.import_program"), "normalise", fail)
    for number in range(KEPT + 3):
        directory_of(tmp_path, number, age=100.0 + number)
    _, _, directory = failure_of(PROGRAM)
    assert directory.parent == tmp_path and len(names(tmp_path)) == KEPT
    assert names(tmp_path) == {directory.name, *(f"shlo_disc-failure-{number:08d}" for number in range(KEPT - 1))}


def test_what_is_no_reproducer_stays(tmp_path: Path) -> None:
    """A folder with a user's file or folder, one that is being written, links, files, and other names."""
    old = 7000.0
    parent, elsewhere = tmp_path / "tmp", tmp_path / "elsewhere"
    kept = [
        directory_of(parent, 1, age=old, files=("command.txt", "notes.txt")),
        directory_of(parent, 2, age=60.0, files=()),
    ]
    (directory_of(parent, 3, age=old) / "after-fuse.mlir").mkdir()
    os.utime(parent / "shlo_disc-failure-00000003", (1.0, 1.0))
    target = directory_of(elsewhere, 4, age=old)
    (parent / "shlo_disc-failure-00000004").symlink_to(target)
    (parent / "shlo_disc-failure-00000005").write_text("a file")
    directory_of(parent, 6, age=old).rename(parent / "shlo_disc-failure-of-mine")
    abandoned = directory_of(parent, 7, age=old, files=())
    linked = directory_of(parent, 8, age=old)
    (linked / "program.mlir").unlink()
    (linked / "program.mlir").symlink_to(target / "program.mlir")
    os.utime(linked, (1.0, 1.0))
    before = names(parent)
    remove_old_reproducers(parent, kept=0)
    assert names(parent) == before - {abandoned.name, linked.name}
    assert all((path / "program.mlir").read_text() for path in [*kept, target])


def test_processes_remove_directories_at_once(tmp_path: Path) -> None:
    for number in range(300):
        directory_of(tmp_path, number, age=10.0 * number)
    script = """
import pathlib, sys
from shlo_disc.driver.reproducer import remove_old_reproducers
remove_old_reproducers(pathlib.Path(sys.argv[1]))
"""
    others = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path)]) for _ in range(3)]
    assert [other.wait(timeout=120) for other in others] == [0, 0, 0]
    assert names(tmp_path) == {f"shlo_disc-failure-{number:08d}" for number in range(KEPT)}


def test_a_directory_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    monkeypatch.setattr(importlib.import_module("shlo_disc.importer.import_program"), "normalise", fail)
    with pytest.raises(shlo_disc.CompilerError, match="planted'\nWhat it takes to see it again could not be written: "):
        shlo_disc.compile(PROGRAM, options=STRICT)
