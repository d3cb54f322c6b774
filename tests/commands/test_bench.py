# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`bench`: what is timed, by which turns, and what the numbers are."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from shlo_disc.errors import OptionError
from shlo_disc.report import timing
from shlo_disc.report.synthetic import load_flat
from shlo_disc.runtime import Artifact
from shlo_disc.runtime.clients import client
from shlo_disc.tools.cli import main

from .executable import DIMS


def bench(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert main(["bench", "--trust", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_numbers_of_a_shape(artifact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = bench(capsys, artifact, artifact, "--dims", DIMS, "--dims", "arg0_d0=64", "--rounds", "9", "--json")
    shapes = json.loads(out)["shapes"]
    assert [shape["dims"] for shape in shapes] == [{"arg0_d0": 5}, {"arg0_d0": 64}]
    for rows, size in zip(shapes, (5, 64), strict=True):
        first, second = rows["files"]
        assert first["file"] == second["file"] == str(artifact)
        assert first["ratio"] == 1 and second["ratio"] > 0
        assert 0 < first["p10_seconds"] <= first["median_seconds"] <= first["p90_seconds"]
        assert first["calls"] == 9 and first["first_seconds"] > 0
        assert first["bytes_accessed"] == 4 * (size * 8 * 2 + 64)
        assert first["flops"] == 2 * size * 8 * 8 + 2 * size * 8
        assert first["flops_per_second"] == pytest.approx(first["flops"] / first["median_seconds"])


def test_the_table_has_a_row_a_file(artifact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = bench(capsys, artifact, artifact, "--dims", DIMS, "--rounds", "2").splitlines()
    assert lines[0] == "arg0_d0=5" and lines[1].split()[:3] == ["file", "first", "us"]
    assert len(lines) == 4 and lines[2].split()[5] == "1.000"


def test_files_are_called_by_turns(artifact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[int] = []
    programs: list[Any] = []

    def load() -> Any:
        programs.append(load_flat(client(1), Artifact.open(artifact, trust=True)))
        return programs[-1]

    def seconds(program: Any, arguments: Any) -> float:
        order.append(next(n for n, known in enumerate(programs) if known is program))
        return 2.0 + order[-1]

    monkeypatch.setattr(timing, "_seconds", seconds)
    first, second = timing.time_programs([load, load], {"arg0_d0": 3}, 4)
    warm = order[2 * timing.FIRST_CALLS :]
    assert warm == [0, 1, 1, 0, 0, 1, 1, 0]
    assert (first.median_seconds, second.median_seconds, second.ratio) == (2, 3, 1.5)
    # Each first call is of a program that was loaded for it.
    assert sorted(order[: 2 * timing.FIRST_CALLS]) == list(range(2, 2 + 2 * timing.FIRST_CALLS))


def test_sizes_and_rounds_are_checked(artifact: Path) -> None:
    load = partial(load_flat, client(1), Artifact.open(artifact, trust=True))
    with pytest.raises(OptionError, match="no program has a dimension variable 'n'; there are arg0_d0"):
        timing.time_programs([load], {"arg0_d0": 3, "n": 1}, 1)
    with pytest.raises(OptionError, match="needs --dims with arg0_d0"):
        timing.time_programs([load], {}, 1)
    with pytest.raises(OptionError, match="at least one round"):
        timing.time_programs([load], {"arg0_d0": 3}, 0)


def test_a_program_whose_sizes_are_data_has_no_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "wide.mlir"
    program.write_text("""
func.func @main(%x: tensor<?xf32>, %n: tensor<1xi32>) -> tensor<?xf32> {
  %c = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.dynamic_broadcast_in_dim %c, %n, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
""")
    out = bench(capsys, program, "--dims", "arg0_d0=4", "--rounds", "2", "--json")
    (row,) = json.loads(out)["shapes"][0]["files"]
    assert row["flops"] is None and row["flops_per_second"] is None and row["median_seconds"] > 0
