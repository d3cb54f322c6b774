# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each command through the real executable: its exit status, its text, its JSON."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import export

from shlo_disc.tools import cli
from shlo_disc.tools.cli import main, parser

from ..c import bare
from .executable import BEFORE, DIMS, run

slow = pytest.mark.slow

COMMANDS = {
    "info artifact": ("program", 0),
    "inspect artifact": ("functions", 0),
    f"run artifact --trust --dims {DIMS}": ("results", 0),
    f"bench artifact --trust --dims {DIMS} --rounds 3": ("shapes", 0),
    "disasm artifact": ("kernels", 0),
    "diff artifact artifact": ("hunks", 0),
    "opt --list-passes": ("passes", 0),
    "ops": ("ops", 0),
    "why S101": ("codes", 0),
    "compile program -o out": ("signature", 0),
    "inspect program": ("peak_memory", 0),
    "disasm program --stage llvm": ("kernels", 0),
    "diff program other": ("hunks", 1),
    f"explain program --dims {DIMS}": ("kernels", 0),
    f"tune program --dims {DIMS} --rounds 1 -o schedule": ("ratios", 0),
    f"bisect program --dims {DIMS}": ("difference", 0),
    f"report program --dims {DIMS} -o out": ("page", 0),
    "reduce program --test true": ("program", 0),
    "check checked": ("results", 0),
    "doctor": ("findings", 0),
}
"""Commands, and a key of their document, and their exit status."""

QUICK = 9
"""So many at the start need no compiler."""


@pytest.mark.parametrize("command", [pytest.param(c, marks=[] if n < QUICK else slow) for n, c in enumerate(COMMANDS)])
def test_each_prints_one_json_document(command: str, folder: Path, tmp_path: Path) -> None:
    files = {
        "artifact": folder / "before.disc",
        "program": folder / "before.mlir",
        "other": folder / "after.mlir",
        "out": tmp_path / "out",
        "schedule": tmp_path / "schedule",
        "checked": Path(__file__).parents[1] / "check" / "split.mlir",
    }
    status, out, err = run(*(files.get(word, word) for word in command.split()), "--json")
    key, expected = COMMANDS[command]
    assert status == expected, err
    document = json.loads(out)
    assert key in document and "error" not in document


def test_version_and_help() -> None:
    assert run("--version") == (0, "shlo_disc 0.1.0\n", "")
    for name in COMMANDS:
        with pytest.raises(SystemExit) as exit:
            main([name.split()[0], "--help"])
        assert exit.value.code == 0


def test_help_names_every_command() -> None:
    names = list(parser()._subparsers._group_actions[0].choices)
    text = cli.__doc__ or ""
    assert [name for name in names if f"\n    {name} " not in text] == []
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    assert [name for name in names if f"\n## {name}" not in page] == []


def test_commands_of_the_documentation_are_well_formed() -> None:
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    shown = [line.removeprefix("$ ") for line in page.splitlines() if line.startswith("$ shlo_disc ")]
    for line in shown:
        for command in line.partition("#")[0].split(" | "):
            words = shlex.split(command.partition(" > ")[0])
            assert words[0] == "shlo_disc"
            parser().parse_args(words[1:])
    assert len(shown) > 15


def test_the_command_line_is_at_fault() -> None:
    assert run("nothing")[0] == 2
    status, out, err = run("run", "x", "--dims", "b")
    assert (status, out) == (2, "") and "'b' is not of the form b=2,s=16" in err


def test_a_file_is_at_fault(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    status, out, err = run("info", missing)
    assert (status, out, err) == (1, "", f"shlo_disc: error: {missing}: No such file or directory\n")
    status, out, err = run("info", missing, "--json")
    assert status == 1 and err.startswith("shlo_disc: error: ")
    expected = {"kind": "FileNotFoundError", "code": "", "message": f"{missing}: No such file or directory"}
    assert json.loads(out) == {"error": expected}


def test_documents_have_no_numbers_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "nan.mlir"
    program.write_text("""
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.subtract %x, %x : tensor<?xf32>
  %1 = stablehlo.divide %0, %0 : tensor<?xf32>
  return %1 : tensor<?xf32>
}
""")
    assert main(["run", str(program), "--dims", DIMS, "--json"]) == 0
    out = capsys.readouterr().out
    assert "NaN" not in out and json.loads(out)["results"][0]["mean_magnitude"] is None


def test_an_artifact_is_not_run_untrusted(artifact: Path) -> None:
    for command in ("run", "bench"):
        status, out, err = run(command, artifact, "--dims", DIMS)
        assert (status, out) == (1, "") and "pass --trust if you know who made it" in err


@pytest.mark.parametrize(
    "form", ["text", "artifact", pytest.param("bytecode", marks=slow), pytest.param("jax", marks=slow)]
)
def test_files_come_from_standard_input(form: str, artifact: Path) -> None:
    b = export.symbolic_shape("b")
    specs = jax.ShapeDtypeStruct((*b, 3), jnp.float32)
    given: dict[str, Any] = {
        "text": lambda: BEFORE,
        "artifact": artifact.read_bytes,
        "bytecode": lambda: export.export(jax.jit(jnp.tanh))(specs).mlir_module_serialized,
        "jax": lambda: export.export(jax.jit(jnp.tanh))(specs).serialize(),
    }
    status, out, err = run("info", "-", "--json", given=given[form]())
    assert status == 0, err
    assert json.loads(out)["arguments"][0]["shape"][1] == (8 if form in ("text", "artifact") else 3)


def test_progress_is_told_when_asked(program: Path, tmp_path: Path) -> None:
    status, _, err = run("compile", program, "-o", tmp_path / "out", "--progress")
    stages = [line.split()[0] for line in err.splitlines()]
    assert (status, stages) == (0, ["import", "annotate", "simplify", "fuse", "plan", "kernels", "host", "codegen"])


@slow
def test_progress_is_told_on_a_terminal(program: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "shlo_disc", "compile", str(program), "-o", str(tmp_path / "out")]
    subprocess.run(command, stderr=theirs, check=True, timeout=300)
    os.close(theirs)
    assert b"codegen" in os.read(ours, 10_000)
    os.close(ours)


@slow
def test_tune_tells_nothing_unasked(program: Path, tmp_path: Path) -> None:
    command = ["tune", program, "--dims", DIMS, "--rounds", "1", "-o", tmp_path / "schedule"]
    status, out, err = run(*command)
    assert (status, err) == (0, "") and out
    assert "compiling for" in run(*command, "--progress")[2]


def test_programs_need_a_compiler(program: Path) -> None:
    status, out, err = run("info", program, is_bare=True)
    assert (status, out) == (1, "") and "is not installed: pip install jax torch-mlir" in err


BARE = ("info", "inspect", f"run --trust --dims {DIMS}", f"bench --trust --rounds 2 --dims {DIMS}", "disasm", "diff")


@pytest.mark.parametrize("command", BARE)
def test_artifacts_need_no_compiler(command: str, artifact: Path) -> None:
    name, *more = command.split()
    files = [artifact, artifact] if name == "diff" else [artifact]
    status, out, err = run(name, *files, *more, is_bare=True)
    assert (status, err) == (0, "") and bool(out) == (name != "diff")
    expected = {
        "info": "arg0_d0",
        "inspect": "kinds of kernels, guards, the memory formula, source lines",
        "run": "mean magnitude",
        "bench": "GFLOP/s",
        "disasm": "gemm_f32:",
        "diff": "",
    }
    assert expected[name] in out


@slow
def test_an_environment_with_numpy_alone(artifact: Path, tmp_path: Path) -> None:
    python = bare.make(tmp_path / "bare")
    for name, *more in (command.split() for command in BARE):
        files = [artifact, artifact] if name == "diff" else [artifact]
        command = [python, "-m", "shlo_disc", name, *files, *more]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=300)
        assert (done.returncode, done.stderr) == (0, ""), command
    done = subprocess.run(
        [python, "-m", "shlo_disc", "doctor"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "")
    states = {line[8:29].strip(): line[:7].strip() for line in done.stdout.splitlines() if not line.startswith(" ")}
    assert states == {
        "versions": "works", "processor": "works", "compile and run": "absent", "JAX": "absent",
        "files of jax.export": "absent", "plugin for jax.jit": "absent", "BLAS": "absent", "C library": "works",
        "code for GPUs": "absent", "GPU": "absent", "PyTorch": "absent",
    }  # fmt: skip


def test_a_reader_of_a_pipe_may_leave(artifact: Path) -> None:
    listing = subprocess.Popen(
        [sys.executable, "-m", "shlo_disc", "disasm", str(artifact)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert listing.stdout is not None and listing.stderr is not None
    assert listing.stdout.read(10)
    listing.stdout.close()
    assert listing.stderr.read() == b""
    assert listing.wait(timeout=60) == 0
    listing.stderr.close()
