# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc check` on modules that pass, fail in every way, or end their process."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from shlo_disc.shape_dialect.dense import array_of
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.dtypes import BY_MLIR, numpy_dtype
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.tools.check import runner
from shlo_disc.tools.check.comparison import Comparison, comparison, ulp_distance
from shlo_disc.tools.check.modules import Case, cases_of, program_of
from shlo_disc.tools.cli import main

HERE = Path(__file__).parent


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit status and the output of the command."""
    status = main(["check", "--opt-level", "0", *arguments])
    return status, capsys.readouterr().out


def test_what_holds_passes(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(HERE / name) for name in ("split.mlir", "inputs.mlir")]
    assert run(capsys, *files) == (0, "6 of 6 pass (100.00%), 0 skipped\n")
    status, output = run(capsys, *files, "--json")
    found = json.loads(output)
    assert (status, found["pass"], found["failed"]) == (0, 6, 0)
    rows = found["results"]
    assert [row["case"] for row in rows] == ["main", "calls", "exact", "generic_form", "near", "sizes_stay_constant"]
    assert rows[0]["ops"] == ["stablehlo.broadcast_in_dim", "stablehlo.multiply"]


def test_each_failure_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    status, output = run(capsys, str(HERE / "failing.mlir"), "-j", "2")
    assert status == 1
    failures = {line.split(":")[1]: line for line in output.splitlines() if line.startswith("FAIL")}
    assert "wrong result: expect_eq: 1 of 2 elements, at [1] 4, not 5" in failures["wrong_expectation"]
    assert "wrong result: expect_close: 1 of 2 elements" in failures["too_far"]
    assert "unsupported: stablehlo.custom_call @nobody_knows" in failures["no_lowering"]
    assert "unreadable: ProgramError" in failures["no_program"]
    assert "0 of 4 pass (0.00%), 1 skipped" in output
    assert "skipped: needs other participants  [failing:participants]" in output
    assert "1 of     1 stablehlo.multiply" in output


def test_sizes_become_symbols(capsys: pytest.CaptureFixture[str]) -> None:
    status, output = run(capsys, str(HERE / "symbolic.mlir"), "--symbolic")
    assert (status, output) == (0, "2 of 2 pass (100.00%), 0 skipped\n      1 ran with symbols\n")


def test_a_match_selects_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, str(HERE), "--match", "split.mlir:near")[1].startswith("1 of 1 pass")


def test_a_directory_without_modules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path)]) == 1
    assert "no .mlir file" in capsys.readouterr().err


def test_inputs_are_arguments() -> None:
    """A constant input would be folded, and the op under test never run."""
    path = HERE / "inputs.mlir"
    (case,) = cases_of(path.name, path.read_text())
    program = program_of(case, make_context())
    assert [a.shape for a in program.arguments] == [(2, 3), (3,)]
    assert "@main(%arg0: tensor<2x3xf32>, %arg1: tensor<3xf32>) -> tensor<2x3xf32>" in program.text
    assert "stablehlo.constant" not in program.text
    assert isinstance(program.checks[0].expected, np.ndarray)


@pytest.mark.parametrize(
    ("program", "status", "reason"),
    [
        ("import os, sys; sys.stdin.buffer.read(8); os.abort()", "crash", "SIGABRT"),
        ("import sys; sys.stdin.buffer.read(8); sys.exit('LLVM ERROR: no such thing')", "crash", "LLVM ERROR: no such"),
        ("import time; time.sleep(60)", "time limit", "not done after 1 s"),
    ],
)
def test_a_worker_that_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, status: str, reason: str
) -> None:
    (tmp_path / "ending_worker.py").write_text(program)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(runner, "WORKER", "ending_worker")
    seen: list[runner.Result] = []
    cases = [Case("file", "a", ""), Case("file", "b", "", "a reason")]
    results = runner.run_cases(cases, {}, jobs=1, limit=1 if status == "time limit" else 30, done=seen.append)
    assert results == seen
    assert [r.status for r in results] == [status, "skipped"]
    assert reason in results[0].reasons[0]


# ---- comparisons -----------------------------------------------------------------------------------------------------


def test_ulp_distance() -> None:
    a = np.array([1, 1, -0.0, 0.0, np.inf, np.nan, np.nan, -np.inf], np.float32)
    b = np.array([1, np.nextafter(np.float32(1), 2), 0.0, -1e-45, 3e38, np.nan, 1, np.inf], np.float32)
    most = np.iinfo(np.uint64).max
    assert ulp_distance(a, b).tolist() == [0, 1, 0, 1, most, 0, most, most]


def test_equality_is_of_values() -> None:
    zero, nan = np.array([0.0, -0.0]), np.array([np.nan])
    assert Comparison("eq").problem(zero, -zero) == ""
    assert Comparison("eq").problem(nan, nan) == ""
    assert Comparison("eq").problem(nan, -nan) == "1 of 1 elements, at [0] nan, not nan"
    assert Comparison("almost_eq").problem(nan, nan) == ""
    assert Comparison("eq").problem(np.zeros(2, np.int8), np.zeros(2, np.uint8)) == "int8[2], not uint8[2]"
    assert Comparison("eq").problem(np.zeros(2), np.zeros((2, 1))) == "float64[2], not float64[2, 1]"


def test_complex_numbers_compare_by_part() -> None:
    a, b = np.array([1 + 2j], np.complex64), np.array([1 + 2.001j], np.complex64)
    assert Comparison("almost_eq", tolerance=0.01).problem(a, b) == ""
    assert Comparison("almost_eq").problem(a, b)
    assert Comparison("close", max_ulps=10).problem(a, b)
    assert Comparison("close", max_ulps=10).problem(a, a.copy()) == ""


def test_defaults() -> None:
    assert comparison("expect_close", {}, as_call=True, is_integer=False).max_ulps == 3
    assert comparison("expect_close", {}, as_call=False, is_integer=False).max_ulps == 1
    assert comparison("expect_almost_eq", {}, as_call=True, is_integer=False).tolerance == 1e-3
    assert comparison("eq", {}, as_call=True, is_integer=True).kind == "eq"
    assert comparison("eq", {}, as_call=True, is_integer=False).tolerance == 1e-4


# ---- constants -------------------------------------------------------------------------------------------------------

CONSTANTS = {
    "dense<[1.0, 0x7F]> : tensor<2xf8E4M3FN>": np.array([1, np.nan], ml_dtypes.float8_e4m3fn),
    "dense<[-1, 1]> : tensor<2xi2>": np.array([-1, 1], ml_dtypes.int2),
    "dense<[[true], [false]]> : tensor<2x1xi1>": np.array([[True], [False]]),
    "dense<-3> : tensor<0x2xi4>": np.zeros((0, 2), ml_dtypes.int4),
    "dense<(1.0, 0x7FC00000)> : tensor<1x1xcomplex<f32>>": np.array([[complex(1, np.nan)]], np.complex64),
    "dense<[(1.0, 2.0), (0.1, -0.0)]> : tensor<2xcomplex<f64>>": np.array([1 + 2j, complex(0.1, -0.0)]),
    "dense<> : tensor<0xi64>": np.zeros(0, np.int64),
    "dense<0xFF80> : tensor<bf16>": np.array(-np.inf, ml_dtypes.bfloat16),
    "dense<7> : tensor<3xui64>": np.full(3, 7, np.uint64),
    'dense<"0x0100FFFF"> : tensor<2xi16>': np.array([1, -1], np.int16),
}


@pytest.mark.parametrize("text", CONSTANTS)
def test_constants_as_arrays(text: str) -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(f"%x = stablehlo.constant {text}")
        got = array_of(module.body.operations[0])
    want = CONSTANTS[text]
    assert (got.dtype, got.shape, got.tobytes()) == (want.dtype, want.shape, want.tobytes())


def test_many_elements_are_printed_as_bytes() -> None:
    for name, dtype in ((name, numpy_dtype(known)) for name, known in BY_MLIR.items()):
        if dtype.kind not in "iuf":
            continue
        data = (np.arange(200) % 100).astype(dtype)
        text = ", ".join(f"{x}" if dtype.kind in "iu" else f"{float(x):e}" for x in data)
        with make_context(), ir.Location.unknown():
            module = ir.Module.parse(f"%x = stablehlo.constant dense<[{text}]> : tensor<200x{name}>")
            assert array_of(module.body.operations[0]).tobytes() == data.tobytes()


def test_the_other_commands_take_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "add.mlir"
    kind = "tensor<4xf32>"
    program.write_text(
        f"func.func @main(%x: {kind}) -> {kind} {{ %y = stablehlo.add %x, %x : {kind}\n return %y : {kind} }}"
    )
    assert main(["info", str(program), "--symbolic"]) == 0
    assert "args[0]: f32[arg0_d0]" in capsys.readouterr().out
