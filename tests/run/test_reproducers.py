# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A stage that fails inside leaves the program and a command, which compiles it again where nothing fails."""

from __future__ import annotations

import importlib
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import shlo_disc
from shlo_disc import artifact_header, codegen, passes
from shlo_disc.cli import main
from shlo_disc.passes import PIPELINES
from shlo_disc.programs import TextProgram
from shlo_disc.stages import STAGES

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
    run = passes.run_element
    if stage == "artifact":
        monkeypatch.setattr(artifact_header, "artifact_of", fail)
    elif stage == "import":
        monkeypatch.setattr(importlib.import_module("shlo_disc.import.import_program"), "normalise", fail)
    elif stage == "LLVM":
        monkeypatch.setattr(codegen, "compile_to_object", fail)
    else:
        monkeypatch.setattr(
            passes,
            "run_element",
            lambda c, element, name, after: (fail if name == stage else run)(c, element, name, after),
        )


def failure_of(program: Any, options: shlo_disc.Options = STRICT) -> tuple[str, list[str], Path]:
    """What is said, the words of the command, and the directory of the files."""
    with pytest.raises(shlo_disc.CompilerError) as caught:
        shlo_disc.compile(program, options=options)
    said, line = str(caught.value).rsplit("\nTo see it again: ", 1)
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
    assert report["error"].endswith(said) and "planted" in "".join(report["traceback"])
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
