# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules change how kernels are written and not what they compute; tuning picks the fastest."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import shlo_disc
from shlo_disc import KernelSchedule, OptionError, Options, Schedule
from shlo_disc.tools.cli import main
from shlo_disc.tools.tune import CANDIDATES, _choose, tune

LENGTHS = (1, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 300)
PROGRAM = """
func.func @main(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %y = stablehlo.tanh %x : tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
"""


def program() -> export.Exported:
    def f(x: jax.Array, w: jax.Array) -> tuple[jax.Array, ...]:
        return jax.nn.softmax(x, axis=-1), jnp.tanh(x + 1).T, jax.nn.gelu(x @ w + 1)

    b, s = export.symbolic_shape("b, s")
    x, w = jax.ShapeDtypeStruct((b, s), np.float32), jax.ShapeDtypeStruct((s, 70), np.float32)
    return export.export(jax.jit(f))(x, w)


@pytest.mark.parametrize("unroll", [1, 4, 8])
def test_unrolled_kernels_compute_the_same(unroll: int) -> None:
    schedule = Schedule(default=KernelSchedule(unroll=unroll, serial_work=1000))
    executable = shlo_disc.compile(program(), options=Options(schedule=schedule, guard_pages=True))
    default = shlo_disc.compile(program())
    assert executable.as_text("host") != default.as_text("host")
    for n in LENGTHS:
        random = np.random.default_rng(n)
        x, w = random.standard_normal((3, n), np.float32), random.standard_normal((n, 70), np.float32)
        for got, want in zip(executable(x, w), default(x, w), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def test_a_schedule_of_one_kernel_changes_that_kernel_only() -> None:
    default = shlo_disc.compile(program())
    name = next(k.name for k in default.kernels if k.kind == "row_reduce")
    changed = shlo_disc.compile(program(), options=Options(schedule=Schedule({name: KernelSchedule(unroll=1)})))
    assert [k.name for k in changed.kernels] == [k.name for k in default.kernels]
    texts = [_functions(e.as_text("host")) for e in (default, changed)]
    assert {n for n in texts[0] if texts[0][n] != texts[1][n]} == {name}


def _functions(text: str) -> dict[str, str]:
    parts = text.split("func.func private @")[1:]
    return {part[: part.index("(")]: part for part in parts}


def test_schedules_as_json(tmp_path: Path) -> None:
    schedule = Schedule({"loop_tanh": KernelSchedule(4, 9)}, KernelSchedule(1))
    schedule.save(tmp_path / "s.json")
    assert Schedule.load(tmp_path / "s.json") == schedule


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"format": 2, "kernels": {}, "default": {}}', '{"format": 1, "kernels": 3, "default": {}}',
     '{"format": 1, "kernels": {"k": {"unroll": 3}}, "default": {}}',
     '{"format": 1, "kernels": {"k": {"rows": 3}}, "default": {}}',
     '{"format": 1, "kernels": {}, "default": {"serial_work": "x"}}'],
)  # fmt: skip
def test_what_is_no_schedule(text: str, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(text)
    with pytest.raises(OptionError):
        Schedule.load(path)


def test_the_cache_tells_schedules_apart(tmp_path: Path) -> None:
    for schedule, count in ((Schedule(), 1), (Schedule(default=KernelSchedule(unroll=1)), 1), (Schedule(), 0)):
        options = Options(cache_dir=tmp_path, schedule=schedule)
        assert shlo_disc.compile(program(), options=options).compile_count == count


def test_the_fastest_candidate_is_chosen_where_it_is_worth_it() -> None:
    fast, slow = {"a": [1.0, 1.0], "b": [1.0], "c": [math.inf]}, {"a": [2.0, 2.0], "b": [1.01], "c": [math.inf]}
    found: list[list[dict[str, list[float]]]] = [[slow, slow] for _ in CANDIDATES]
    found[2] = [fast, fast]
    found[3] = [fast, slow]
    chosen, gains = _choose(found)
    assert chosen == {"a": CANDIDATES[2]} and gains == {"a": 0.5}


@pytest.mark.slow
def test_tuning() -> None:
    said: list[str] = []
    shapes = [{"b": 4, "s": 65}, {"b": 1, "s": 300}]
    found = tune(program(), shapes, rounds=3, say=said.append)
    names = {k.name for k in shlo_disc.compile(program()).kernels}
    assert set(found.schedule.kernels) == set(found.gains) <= names and len(said) >= len(CANDIDATES) + len(shapes)
    assert all(gain < 1 for gain in found.gains.values()) and str(found)
    with pytest.raises(OptionError, match="at least one shape"):
        tune(program(), [])


def test_shapes_that_were_seen() -> None:
    executable = shlo_disc.compile(program())
    for b, s in ((2, 3), (1, 7)):
        executable(np.zeros((b, s), np.float32), np.zeros((s, 70), np.float32))
    assert executable.seen_shapes() == [{"b": 1, "s": 7}, {"b": 2, "s": 3}]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, schedule = tmp_path / "f.mlir", tmp_path / "f.schedule"
    path.write_text(PROGRAM)
    names: list[Any] = [s["name"] for s in shlo_disc.compile(path).artifact.header["symbols"]]
    dims = ",".join(f"{name}=30" for name in names)
    shapes = ["--dims", dims, "--dims", dims]
    assert main(["tune", str(path), *shapes, "--rounds", "2", "-o", str(schedule), "--progress"]) == 0
    assert "measuring" in capsys.readouterr().err and json.loads(schedule.read_text())["format"] == 1
    assert main(["compile", str(path), "--schedule", str(schedule), "-o", str(tmp_path / "f.bin")]) == 0
    assert main(["compile", str(path), "--schedule", str(path), "-o", str(tmp_path / "f.bin")]) == 1
