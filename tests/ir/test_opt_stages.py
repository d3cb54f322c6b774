# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc opt`: the text of every stage parses again, and is the expected one for small programs."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from shlo_disc.driver.compiler import STAGES
from shlo_disc.runtime import Artifact
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.tools.cli import main

BERT = Path(__file__).resolve().parents[2] / "examples" / "bert.mlir"

PROGRAMS = {
    # Two arguments of one size; the text of an exporter that names no symbols.
    "add": """
func.func @main(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = stablehlo.add %x, %y : tensor<?x4xf32>
  %1 = stablehlo.tanh %0 : tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}
""",
    # Sizes computed from sizes: a concatenation, and a reshape that flattens it.
    "flatten": """
func.func @main(%x: tensor<?x8xf32>) -> tensor<?xf32> {
  %0 = stablehlo.concatenate %x, %x, dim = 0 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %n = stablehlo.get_dimension_size %0, dim = 0 : (tensor<?x8xf32>) -> tensor<i32>
  %8 = stablehlo.constant dense<8> : tensor<i32>
  %m = stablehlo.multiply %n, %8 : tensor<i32>
  %s = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
  %1 = stablehlo.dynamic_reshape %0, %s : (tensor<?x8xf32>, tensor<1xi32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}
""",
    # Named symbols, a product, and a reduction over its rows: an arena.
    "rows": """
func.func @main(%x: tensor<?x?xf32, [@b, @s]>, %w: tensor<?x16xf32, [@s, 16]>) -> tensor<?xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<?x?xf32, [@b, @s]>, tensor<?x16xf32, [@s, 16]>) -> tensor<?x16xf32>
  %e = stablehlo.exponential %0 : tensor<?x16xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [1]
    : (tensor<?x16xf32>, tensor<f32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}
""",
    # A recurrent cell over %x: the product of its input is hoisted, and the loop becomes one kernel.
    "scan": """
func.func @main(%x: tensor<?x3x4xf32>, %w: tensor<4x8xf32>, %u: tensor<8x8xf32>, %h: tensor<3x8xf32>)
    -> tensor<3x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3x4xf32>) -> tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %s = %h) : tensor<i32>, tensor<3x8xf32>
  cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %row = stablehlo.dynamic_slice %x, %i, %zero, %zero, sizes = [1, 3, 4]
      : (tensor<?x3x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x4xf32>
    %r = stablehlo.reshape %row : (tensor<1x3x4xf32>) -> tensor<3x4xf32>
    %p = stablehlo.dot_general %r, %w, contracting_dims = [1] x [0]
      : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    %q = stablehlo.dot_general %s, %u, contracting_dims = [1] x [0]
      : (tensor<3x8xf32>, tensor<8x8xf32>) -> tensor<3x8xf32>
    %sum = stablehlo.add %p, %q : tensor<3x8xf32>
    %new = stablehlo.tanh %sum : tensor<3x8xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %new : tensor<i32>, tensor<3x8xf32>
  }
  return %0#1 : tensor<3x8xf32>
}
""",
}


def opt(tmp_path: Path, program: Path, stage: str) -> str:
    """The output of `opt --stage`."""
    output = tmp_path / "out.mlir"
    assert main(["opt", str(program), "--stage", stage, "-o", str(output)]) == 0
    return output.read_text()


def reprinted(text: str) -> str:
    """The text parsed and verified in a context that has seen nothing else, and printed again."""
    module = ir.Module.parse(text, make_context())
    assert module.operation.verify()
    return str(module)


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_of_bert_parses_again(tmp_path: Path, stage: str) -> None:
    text = opt(tmp_path, BERT, stage)
    assert reprinted(text) == text


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_stage_of_a_small_program_parses_again(tmp_path: Path, name: str, stage: str) -> None:
    program = tmp_path / f"{name}.mlir"
    program.write_text(PROGRAMS[name])
    text = opt(tmp_path, program, stage)
    assert reprinted(text) == text


@pytest.mark.parametrize("stage", ["annotate", "simplify", "fuse", "plan"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_expected_text(tmp_path: Path, golden: Callable[[str, str], None], name: str, stage: str) -> None:
    program = tmp_path / f"{name}.mlir"
    program.write_text(PROGRAMS[name])
    golden(f"{name}.{stage}.mlir", opt(tmp_path, program, stage))


@pytest.mark.parametrize(("view", "start"), [("llvm", "; ModuleID"), ("optimized-llvm", "; ModuleID"), ("asm", "\t")])
def test_views_below_mlir(tmp_path: Path, view: str, start: str) -> None:
    text = opt(tmp_path, BERT, view)
    assert text.startswith(start)
    assert "disc_plan" in text and "disc_run" in text


def test_dump_writes_one_file_a_stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["opt", str(BERT), "--stage", "all", "--dump", str(tmp_path / "dump")]) == 0
    names = [f"{number}-{stage}.mlir" for number, stage in enumerate(STAGES)] + [f"{len(STAGES)}-codegen.ll"]
    assert sorted(path.name for path in (tmp_path / "dump").iterdir()) == names
    assert [Path(line).name for line in capsys.readouterr().out.splitlines()] == names
    for name in names[:-1]:
        reprinted((tmp_path / "dump" / name).read_text())


def test_without_an_output_file_the_text_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["opt", str(BERT), "--stage", "fuse"]) == 0
    assert capsys.readouterr().out == opt(tmp_path, BERT, "fuse")


# ---- compile, info, run ------------------------------------------------------------------------------------------


@pytest.fixture
def add(tmp_path: Path) -> Path:
    """The program `add` as a file."""
    path = tmp_path / "add.mlir"
    path.write_text(PROGRAMS["add"])
    return path


def test_compile_writes_an_artifact_that_runs(tmp_path: Path, add: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifact = tmp_path / "add.disc"
    assert main(["compile", str(add), "-o", str(artifact)]) == 0
    assert Artifact.deserialize(artifact.read_bytes()).header["name"] == "main"
    x, y = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4), np.ones((3, 4), np.float32)
    np.savez(tmp_path / "in.npz", x, y)
    for program in ([str(artifact), "--trust"], [str(add)]):
        command = ["run", *program, "--inputs", str(tmp_path / "in.npz"), "--outputs", str(tmp_path / "out.npz")]
        assert main(command) == 0
        with np.load(tmp_path / "out.npz") as results:
            np.testing.assert_allclose(results["arr_0"], np.tanh(x + y), rtol=1e-6)
    assert capsys.readouterr().out.count("result: float32[3, 4] mean magnitude 0.6") == 2


def test_synthetic_arguments_are_repeatable(add: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = []
    for seed in (1, 1, 2):
        assert main(["run", str(add), "--dims", "arg0_d0=5", "--seed", str(seed)]) == 0
        lines.append(capsys.readouterr().out.splitlines()[0])
    assert lines[0] == lines[1] != lines[2]
    assert lines[0].startswith("result: float32[5, 4] ")


def test_info_of_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(BERT)]) == 0
    text = capsys.readouterr().out
    for line in (
        "arguments     40",
        "  args[37]: i32[b, s]",
        "  result: f32[b, s, 64]",
        "symbols       2",
        "  s <= 48",
        "peak memory   ",
        "timings       ",
    ):
        assert f"\n{line}" in text
    assert [line.split(":")[0].strip() for line in text.splitlines()[-len(STAGES) :]] == list(STAGES)


def test_info_of_an_artifact_loads_no_code(tmp_path: Path, add: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifact = tmp_path / "add.disc"
    assert main(["compile", str(add), "-o", str(artifact)]) == 0
    capsys.readouterr()
    assert main(["info", str(artifact)]) == 0
    text = capsys.readouterr().out
    assert "  args[1]: f32[arg0_d0, 4]\n" in text
    assert "  0 <= arg0_d0, from dimension 0 of args[0]\n" in text


# ---- errors ------------------------------------------------------------------------------------------------------

FAULTS = {
    "no file": (["opt", "nowhere.mlir"], "cannot read the program 'nowhere.mlir': No such file or directory"),
    "no file for info": (["info", "nowhere.mlir"], "nowhere.mlir: No such file or directory"),
    "no such stage": (
        ["opt", "add.mlir", "--stage", "nope"],
        "no stage 'nope'; stages are import, annotate, simplify, fuse, plan, kernels, host, codegen, llvm, "
        "optimized-llvm, asm, all",
    ),
    "all without a directory": (["opt", "add.mlir", "--stage", "all"], "--stage all needs --dump DIR"),
    "no such target": (
        ["opt", "add.mlir", "--target", "tpu"],
        "unknown target 'tpu'; targets are 'cpu', 'cuda', 'cuda:sm_80', 'cuda:sm_90', 'cuda:sm_90a'",
    ),
    "no such directory": (
        ["opt", "add.mlir", "-o", "nowhere/x"],
        "nowhere/x: there is no folder 'nowhere': create it first",
    ),
    "bad program": (
        ["compile", "bad.mlir", "-o", "bad.disc"],
        "the program 'bad.mlir' cannot be parsed: line 2, column 10: use of undeclared SSA value name",
    ),
    "bad level": (["info", "add.mlir", "--opt-level", "9"], "opt_level must be 0, 1, 2 or 3, not 9"),
    "bad hint": (
        ["info", "add.mlir", "--hints", "q=1"],
        "the hint for 'q' names no symbol; the symbols are ['arg0_d0']",
    ),
    "missing dims": (["run", "add.mlir"], "args[0]: f32[arg0_d0, 4] needs --dims with arg0_d0=..."),
    "negative dims": (
        ["run", "add.mlir", "--dims", "arg0_d0=-1"],
        "args[0]: f32[arg0_d0, 4] would have the shape (-1, 4)",
    ),
    "damaged artifact": (
        ["info", "cut.disc"],
        "the artifact is truncated, it has 8 bytes: copy the file again, or compile the program again",
    ),
    "artifact as a program": (
        ["opt", "cut.disc"],
        "the program 'cut.disc' is a compiled artifact, which is not compiled again: call "
        "shlo_disc.load('cut.disc', trust=True), or use `python -m shlo_disc inspect cut.disc` or `python -m shlo_disc "
        "run cut.disc --trust --dims ...`",
    ),
    "no such symbol": (
        ["explain", "add.mlir", "--dims", "q=1"],
        "expected values for the dimension variables ['arg0_d0'], got ['q']: they are given by name, as in arg0_d0=1, "
        "or --dims arg0_d0=1",
    ),
    "no archive": (["run", "add.mlir", "--inputs", "bad.mlir"], "bad.mlir: not an archive of arrays: "),
}

OF_FILES = {
    "no file", "no file for info", "no such directory", "bad program", "damaged artifact", "artifact as a program",
    "no archive",
}  # fmt: skip
"""Those of them that a program or a file is at fault for, and not the command line."""


@pytest.mark.parametrize("name", FAULTS)
def test_faults(
    tmp_path: Path, add: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    head = "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {"
    (tmp_path / "bad.mlir").write_text(f"{head}\n  return %y : tensor<?xf32>\n}}")
    (tmp_path / "cut.disc").write_bytes(b"SHLODISC")
    before = sorted(tmp_path.iterdir())
    arguments, message = FAULTS[name]
    assert main(arguments) == (1 if name in OF_FILES else 2)
    output = capsys.readouterr()
    assert output.out == ""
    said = re.sub(r"^shlo_disc: error(\[DISC-[A-Z]\d{3}\])?: ", "", output.err)
    if message.endswith(": "):
        assert said.startswith(message)
    else:
        assert said == f"{message}\n"
    assert sorted(tmp_path.iterdir()) == before


def test_untrusted_code_is_not_run(tmp_path: Path, add: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifact = tmp_path / "add.disc"
    assert main(["compile", str(add), "-o", str(artifact)]) == 0
    assert main(["run", str(artifact), "--dims", "arg0_d0=3"]) == 1
    assert "pass --trust if you know who made it" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [[], ["opt"], ["nope"], ["compile", "x"], ["opt", "x", "--nope"], ["run", "x", "--dims", "b"]]
)
def test_wrong_command_lines(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as status:
        main(arguments)
    assert status.value.code == 2
    assert capsys.readouterr().err.startswith("usage: shlo_disc")


def test_the_module_is_a_program(tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "shlo_disc", *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=BERT.parents[1], timeout=120)

    done = run("opt", str(BERT), "--stage", "plan")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("module @jit_forward attributes {disc.arenas = [")
    failed = run("opt", str(tmp_path))
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr == f"shlo_disc: error[DISC-P103]: cannot read the program {str(tmp_path)!r}: Is a directory\n"
    assert run().returncode == 2
