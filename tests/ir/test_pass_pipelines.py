# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`opt --pass-pipeline`: stages, passes of ours and MLIR's, by name and in any order that makes sense."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import shlo_disc
from shlo_disc.driver.pass_pipelines import PIPELINES, parse_pipeline
from shlo_disc.driver.passes import PASSES, passes_table
from shlo_disc.driver.stages import STAGES
from shlo_disc.tools.cli import main
from tests.ir.test_opt_stages import PROGRAMS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "scan.mlir"
    path.write_text(PROGRAMS["scan"])
    return path


def opt(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    """The text that `opt` writes to standard output and standard error."""
    assert main(["opt", *arguments]) == 0, capsys.readouterr().err
    done = capsys.readouterr()
    return done.out, done.err


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Errors of `opt` for a pipeline that does not exist, or that breaks the program."""
    status = main(["opt", *arguments])
    said = capsys.readouterr().err
    assert status == (1 if "[DISC-C100]" in said else 2), said
    return said


@pytest.mark.parametrize("stage", STAGES[1:-1])
def test_a_stage_is_its_passes(program: Path, capsys: pytest.CaptureFixture[str], stage: str) -> None:
    """Each pass by its name, one after the other, gives the stage's text."""
    before = STAGES[1 : STAGES.index(stage)]
    by_name = ",".join([*before, PIPELINES[stage]])
    assert opt(capsys, str(program), "--pass-pipeline", by_name)[0] == opt(capsys, str(program), "--stage", stage)[0]


def test_every_pass_is_in_one_stage() -> None:
    """And the pipelines name nothing else of ours."""
    named = {e.name: stage for stage, text in PIPELINES.items() for e in parse_pipeline(text) if e.name in PASSES}
    known = {p.name: p.stage for p in PASSES.values()}
    assert {**named, "isolate-regions": "simplify"} == known
    assert list(PIPELINES) == list(STAGES[1:])
    assert all(p.text.endswith(".") for p in PASSES.values())


def test_a_pipeline_goes_on_from_what_was_printed(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In another process, from standard input."""

    def run(text: str, *arguments: str) -> str:
        command = [sys.executable, "-m", "shlo_disc", "opt", "-", *arguments]
        done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=ROOT, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    fused = run(program.read_text(), "--pass-pipeline=annotate,simplify,fuse")
    assert run(fused, "--pass-pipeline=plan,kernels,host") == opt(capsys, str(program), "--stage", "host")[0]


def test_options_of_a_pass(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    none, _ = opt(capsys, str(program), "--pass-pipeline", "annotate,simplify{max-fusions=0},fuse")
    assert none == opt(capsys, str(program), "--max-fusions", "0", "--stage", "fuse")[0]
    assert none != opt(capsys, str(program), "--stage", "fuse")[0]
    hinted, _ = opt(capsys, str(program), "--pass-pipeline", "annotate{hints=arg0_d0:9}")
    assert "hints = array<i64: 9>" in hinted
    kept, _ = opt(capsys, str(program), "--pass-pipeline", "annotate,simplify,fuse,plan{reuse=false}")
    assert kept == opt(capsys, str(program), "--no-reuse", "--stage", "plan")[0]


def test_passes_of_mlir(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "annotate,func.func(cse,canonicalize{max-iterations=2}),simplify-control-flow,simplify"
    assert "stablehlo.while" in opt(capsys, str(program), "--pass-pipeline", text)[0]


def test_modules_after_passes_and_their_times(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "annotate,simplify,fuse"
    _, chosen = opt(capsys, str(program), "--pass-pipeline", text, "--print-after", "fuse-groups,infer-sizes")
    assert [line for line in chosen.splitlines() if line.startswith("// ---")] == [
        "// ----- after infer-sizes", "// ----- after fuse-groups"
    ]  # fmt: skip
    _, every = opt(capsys, str(program), "--stage", "annotate", "--print-after", "all")
    assert every.count("// ----- after") == len(parse_pipeline(PIPELINES["annotate"]))
    _, times = opt(capsys, str(program), "--stage", "simplify", "--timing")
    assert times.count(" ms  simplify/hoist-invariants\n") == 1 and times.endswith(" ms  all passes\n")


LOOP = """func.func @main(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %acc = %x) : tensor<i32>, tensor<?x8xf32>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
    %sum = stablehlo.add %acc, %p : tensor<?x8xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %sum : tensor<i32>, tensor<?x8xf32>
  }
  return %r#1 : tensor<?x8xf32>
}
"""


def test_what_is_always_the_same_stays_in_its_loop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loop = tmp_path / "loop.mlir"
    loop.write_text(LOOP)
    stages = "annotate,simplify{hoist=false}"
    kept, _ = opt(capsys, str(loop), "--pass-pipeline", stages)
    assert kept == opt(capsys, str(loop), "--no-hoist", "--stage", "simplify")[0]
    before = [text.partition("stablehlo.while")[0] for text in (opt(capsys, str(loop), "--stage", "simplify")[0], kept)]
    assert ["dot_general" in text for text in before] == [True, False]
    with pytest.raises(shlo_disc.OptionError, match="hoist must be one of"):
        shlo_disc.Options(hoist="no")  # type: ignore[arg-type]


def test_the_list_and_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    """`docs/passes.md` is written by `python -m shlo_disc opt --list-passes`."""
    listed, _ = opt(capsys, "--list-passes")
    assert listed == passes_table() == (ROOT / "docs" / "passes.md").read_text()


FAULTS = {
    "annotate,nope": "'nope' is no pass of ours, nor of MLIR (",
    "simplify": "after import comes annotate, and not simplify",
    "annotate,annotate": "after annotate comes simplify, and not annotate",
    "annotate{max-fusions=3}": "annotate has no option 'max-fusions'; it has hints",
    "set-argument-sizes{x=3}": "set-argument-sizes has no option 'x'; it has none",
    "annotate,simplify{max-fusions=many}": "max_fusions must be an integer, not 'many'",
    "annotate,simplify,fuse,plan{reuse=perhaps}": "reuse must be true or false, not 'perhaps'",
    "annotate,simplify{max-fusions=-1}": "max_fusions must be an integer of at least 0 or None, not -1",
    "annotate,func.func(cse": "the brackets of the pipeline 'annotate,func.func(cse' do not match",
    "annotate{hints=s:1} x": "'annotate{hints=s:1} x' does not end with a brace",
    "assign-buffers": "the program does not verify after assign-buffers",
}


@pytest.mark.parametrize("text", FAULTS)
def test_faults_of_pipelines(program: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert FAULTS[text] in refused(capsys, str(program), "--pass-pipeline", text)


def test_a_stage_and_a_pipeline(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = refused(capsys, str(program), "--pass-pipeline", "annotate", "--stage", "plan")
    assert "--stage and --pass-pipeline are two ways to say the same; use one" in message
