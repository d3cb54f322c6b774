# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules change how kernels are written and not what they compute; tuning picks the fastest."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import shlo_disc
from shlo_disc import KernelSchedule, OptionError, Options, Schedule
from shlo_disc.driver.cache import TunedMachine
from shlo_disc.runtime import Artifact
from shlo_disc.tools.cli import main
from shlo_disc.tools.tune import Tuning, tune
from shlo_disc.tools.tune.measure import Job, Times
from shlo_disc.tools.tune.programs import PlannedProgram
from shlo_disc.tools.tune.spread import RayMeasurer
from tests.run.op_check import random_array, shape_of

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


def built(function: Any, specs: list[tuple[str, str]], options: Options | None = None) -> shlo_disc.Executable:
    with jax.enable_x64(True):
        return shlo_disc.compile(function, args=tuple(specs), options=options)


def fused(q: jax.Array, k: jax.Array, w: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
    weights = jax.nn.softmax(q @ k.T, axis=-1)
    return weights @ k, jax.nn.gelu(q @ w + 1), jnp.tanh(q @ v), jax.nn.softmax(q @ w, axis=-1)


MORE_TYPES = [("float64", None), ("float64", "x86-64-v3"), ("bfloat16", "x86-64-v3")]


@pytest.mark.parametrize(
    ("dtype", "cpu"),
    [
        ("float32", None),
        ("float32", "x86-64-v3"),
        ("bfloat16", None),
        *(pytest.param(*s, marks=pytest.mark.slow) for s in MORE_TYPES),
    ],
)
def test_narrow_tiles_compute_the_same(dtype: str, cpu: str | None) -> None:
    specs = [("m, 24", dtype), ("n, 24", dtype), ("24, 70", dtype), ("24, 33", dtype)]
    levels: dict[str, Any] = {} if cpu is None else {"cpu": cpu}
    schedule = Schedule(default=KernelSchedule(registers=1))
    options = Options(schedule=schedule, guard_pages=True, strict=True, **levels)
    narrow, default = built(fused, specs, options), built(fused, specs, Options(**levels))
    if dtype != "bfloat16":
        assert "registers = 1" in narrow.as_text("host") and "registers" not in default.as_text("host")
    for m in (1, 2, 11, 12, 13, 27, 28, 29, 57, 300):
        sizes = {"m": m, "n": max(1, m - 1)}
        arguments = [random_array(shape_of(text, sizes), kind, i) for i, (text, kind) in enumerate(specs)]
        tolerance = 2e-2 if dtype == "bfloat16" else 2e-5
        for got, want in zip(narrow(*arguments), default(*arguments), strict=True):
            np.testing.assert_allclose(np.float64(got), np.float64(want), rtol=tolerance, atol=tolerance)


def convolved(x: jax.Array, w: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
    """Convolutions with epilogues: one that may use Winograd's algorithm, and one that has a kernel of its own."""
    layout = ("NHWC", "HWIO", "NHWC")
    plain = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layout)
    strided = jax.lax.conv_general_dilated(x, v, (2, 2), "SAME", dimension_numbers=layout)
    return jax.nn.relu(plain + 1), jnp.tanh(strided)


def test_narrow_tiles_of_convolutions_compute_the_same() -> None:
    specs = [("b, h, 13, 32", "float32"), ("3, 3, 32, 40", "float32"), ("3, 3, 32, 33", "float32")]
    schedule = Schedule(default=KernelSchedule(registers=1))
    narrow, default = built(convolved, specs, Options(schedule=schedule, guard_pages=True)), built(convolved, specs)
    assert [launch.tile for launch in narrow.launches if launch.tile] == ["gemm_f32_by_1"]
    for b, h in ((1, 1), (1, 4), (2, 5), (3, 30)):
        arguments = [random_array(shape_of(text, {"b": b, "h": h}), kind, i) for i, (text, kind) in enumerate(specs)]
        for got, want in zip(narrow(*arguments), default(*arguments), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_weights_are_packed_for_narrow_tiles() -> None:
    def f(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.tanh(x @ w)

    specs = [("100, 70", "float32"), ("m, 100", "float32")]
    schedule = Schedule(default=KernelSchedule(registers=1))
    narrow, default = built(f, specs, Options(schedule=schedule, guard_pages=True)), built(f, specs)
    w = random_array((100, 70), "float32")
    columns = [executable.artifact.header["packs"][0]["columns"] for executable in (narrow, default)]
    assert 2 * columns[0] == columns[1]
    bound, usual = narrow.bind(w), default.bind(w)
    for m in (1, 2, 27, 28, 29, 100):
        x = random_array((m, 100), "float32", m)
        np.testing.assert_allclose(bound(x), usual(x), rtol=1e-5, atol=1e-5)


def test_products_that_run_together_have_one_tile() -> None:
    def f(x: jax.Array, w: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
        return jnp.tanh(x @ w), jax.nn.gelu(x @ v + 1)

    specs = [("m, 24", "float32"), ("24, 70", "float32"), ("24, 64", "float32")]
    default = built(f, specs)
    (launch,) = default.launches
    arguments = [random_array(shape_of(text, {"m": 50}), kind, i) for i, (text, kind) in enumerate(specs)]
    for names, is_narrow in ((launch.functions[1:], True), (launch.functions[1:2], False), ((), False)):
        schedule = Schedule({name: KernelSchedule(registers=1) for name in names})
        executable = built(f, specs, Options(schedule=schedule, guard_pages=True))
        assert executable.launches[0].functions[0].endswith("_by_1") == is_narrow
        for got, want in zip(executable(*arguments), default(*arguments), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("pieces", [1, 4, 32])
def test_rows_of_a_recurrence_in_any_pieces_compute_the_same(pieces: int) -> None:
    def f(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda h, row: (jnp.tanh(row + h @ w),) * 2, jnp.zeros_like(x[0]), x)[1]

    specs = [("t, b, 9", "float32"), ("9, 9", "float32")]
    options = Options(schedule=Schedule(default=KernelSchedule(pieces=pieces)), guard_pages=True)
    executable, default = built(f, specs, options), built(f, specs)
    assert [k.kind for k in executable.kernels] == ["recurrence"]
    for b in (1, 2, 5, 6, 7, 8, 23, 24, 25, 100):
        x, w = (random_array(shape_of(text, {"t": 3, "b": b}), kind, i) for i, (text, kind) in enumerate(specs))
        np.testing.assert_array_equal(executable(x, w), default(x, w))


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
     '{"format": 1, "kernels": {"k": {"registers": 3}}, "default": {}}',
     '{"format": 1, "kernels": {"k": {"pieces": true}}, "default": {}}',
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


make_artifact = PlannedProgram.artifact
artifacts: dict[str, Artifact] = {}


def artifact(planned: PlannedProgram, schedule: Schedule) -> Artifact:
    """The artifact of a form, which tests that tune the same program share."""
    key = f"{planned.header} {planned._contents()} {schedule.key()}"
    if key not in artifacts:
        artifacts[key] = make_artifact(planned, schedule)
    return artifacts[key]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the records."""
    monkeypatch.setattr(PlannedProgram, "artifact", artifact)
    monkeypatch.setenv("SHLO_DISC_TUNING_DIR", str(tmp_path / "tuning"))
    return tmp_path / "tuning"


class Pretending:
    """Runs no jobs: whatever is not the default takes `factor` of the default's time at the shape of so large a `b`."""

    width = 2

    def __init__(self, factors: dict[int, float]):
        self.factors = factors
        self.jobs: list[Job] = []

    def measure(self, jobs: Sequence[Job]) -> list[Any]:
        self.jobs += jobs
        return [self._pair(job) for job in jobs]

    def _pair(self, job: Job) -> tuple[Times, Times]:
        is_default = job.default == job.candidate
        factors = [1.0 if is_default else self.factors[shape.dims["b"]] for shape in job.shapes]
        return Times([[1.0]] * len(factors), [[1.0]] * len(factors)), Times(
            [[f] for f in factors], [[f] for f in factors]
        )


def tuned(factors: dict[int, float], **options: Any) -> Tuning:
    shapes = [({"b": b, "s": 9}, weight) for b, weight in ((1, 1), (8, 3))]
    specs = (("b, s", "float32"),)
    return tune(lambda x: jnp.tanh(x) + 1, shapes, args=specs, measurer=Pretending(factors), **options)


def test_what_is_faster_is_kept(folder: Path) -> None:
    found = tuned({1: 0.9, 8: 0.7})
    (name,) = found.schedule.kernels
    assert found.gains == {name: pytest.approx(0.75)} and found.measured > 3
    assert [(dict(shape.dims), ratio) for shape, ratio in found.ratios] == [
        ({"b": 1, "s": 9}, 0.9),
        ({"b": 8, "s": 9}, 0.7),
    ]
    assert "0.75 of the time" in str(found) and found.to_json()["ratios"][1]["weight"] == 0.75


@pytest.mark.parametrize("factors", [{1: 1.2, 8: 0.5}, {1: 0.99, 8: 0.98}])
def test_nothing_slower_is_kept(factors: dict[int, float], folder: Path) -> None:
    found = tuned(factors)
    assert found.schedule == Schedule() and not found.gains and str(found) == "nothing is faster than the default"


def test_a_kernel_that_loses_when_it_is_checked_is_dropped(folder: Path) -> None:
    class Changing(Pretending):
        def measure(self, jobs: Sequence[Job]) -> list[Any]:
            if len(jobs) > self.width:
                self.factors = {1: 1.1, 8: 0.5}
            return super().measure(jobs)

    shapes = [{"b": 1, "s": 9}, {"b": 8, "s": 9}]
    measurer = Changing({1: 0.5, 8: 0.5})
    found = tune(lambda x: jnp.tanh(x) + 1, shapes, args=(("b, s", "float32"),), measurer=measurer)
    assert found.schedule == Schedule() and found.measured > 3


def test_calls_that_are_slower_as_a_whole_keep_the_default(folder: Path) -> None:
    """Kernels gain alone, and lose together: nothing is left at the end."""

    class Together(Pretending):
        def _pair(self, job: Job) -> tuple[Times, Times]:
            old, new = super()._pair(job)
            return old, Times(new.commands, [[1.02 * seconds for seconds in row] for row in old.calls])

    shapes = [{"b": 1, "s": 9}, {"b": 8, "s": 9}]
    measurer = Together({1: 0.9, 8: 0.9})
    found = tune(lambda x: jnp.tanh(x) + 1, shapes, args=(("b, s", "float32"),), measurer=measurer)
    assert found.schedule == Schedule() and found.measured > 3


def test_findings_are_recorded_and_used(folder: Path) -> None:
    ((name, chosen),) = tuned({1: 0.9, 8: 0.7}).schedule.kernels.items()
    executable = shlo_disc.compile(
        lambda rows: jnp.tanh(rows) + 1, args=(("n, m", "float32"),), options=Options(tuned=True)
    )
    stated = shlo_disc.compile(
        lambda rows: jnp.tanh(rows) + 1, args=(("n, m", "float32"),), options=Options(schedule=Schedule({name: chosen}))
    )
    assert executable.artifact.sections == stated.artifact.sections
    assert len(list(folder.iterdir())) == 1


def test_nothing_is_recorded_without_records(folder: Path) -> None:
    tuned({1: 0.9, 8: 0.7}, keep=False)
    assert not folder.exists()


def test_machines_that_measured_nothing(folder: Path) -> None:
    class Elsewhere(Pretending):
        def measure(self, jobs: Sequence[Job]) -> list[Any]:
            return [None for _ in jobs]

    with pytest.raises(OptionError, match="no machine"):
        tune(lambda x: x + 1, [{"b": 2}], args=(("b", "float32"),), measurer=Elsewhere({}))


@pytest.mark.parametrize("budget", [0, -1.0, float("nan"), float("inf")])
def test_a_budget_that_is_none(budget: float) -> None:
    with pytest.raises(OptionError, match="budget"):
        tune(program(), [{"b": 2, "s": 3}], budget=budget)


def test_tuning(folder: Path) -> None:
    said: list[str] = []
    shapes = [{"b": 4, "s": 65}, {"b": 1, "s": 300}]
    found = tune(program(), shapes, budget=2, say=said.append)
    names = {name for launch in shlo_disc.compile(program()).launches for name in launch.kernels}
    assert set(found.schedule.kernels) == set(found.gains) <= names and len(said) >= 3
    assert all(gain < 1 for gain in found.gains.values()) and str(found)
    with pytest.raises(OptionError, match="at least one shape"):
        tune(program(), [])


def test_shapes_that_were_seen() -> None:
    executable = shlo_disc.compile(program())
    for b, s in ((2, 3), (1, 7)):
        executable(np.zeros((b, s), np.float32), np.zeros((s, 70), np.float32))
    assert executable.seen_shapes() == [{"b": 1, "s": 7}, {"b": 2, "s": 3}]


def test_the_command(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, schedule, shapes = tmp_path / "f.mlir", tmp_path / "f.schedule", tmp_path / "shapes.json"
    path.write_text(PROGRAM)
    names: list[Any] = [s["name"] for s in shlo_disc.compile(path).artifact.header["symbols"]]
    shapes.write_text(json.dumps([{"dims": dict.fromkeys(names, 20), "weight": 2}]))
    dims = ",".join(f"{name}=30" for name in names)
    stated = ["--dims", f"{dims}:0.5", "--shapes", str(shapes), "--budget", "1"]
    assert main(["tune", str(path), *stated, "-o", str(schedule), "--progress"]) == 0
    assert "measuring" in capsys.readouterr().err and json.loads(schedule.read_text())["format"] == 1
    assert main(["compile", str(path), "--schedule", str(schedule), "-o", str(tmp_path / "f.bin")]) == 0
    assert main(["compile", str(path), "--tuned", "-o", str(tmp_path / "f.bin")]) == 0
    assert main(["compile", str(path), "--schedule", str(path), "-o", str(tmp_path / "f.bin")]) == 1
    capsys.readouterr()
    assert main(["tune", str(path), "-o", str(schedule)]) == 2
    assert "--dims" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["tune", str(path), "--dims", "b=1:x", "-o", str(schedule)])


def test_a_cluster_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(OptionError, match=r"pip install 'shlo_disc\[ray\]'"):
        RayMeasurer("auto", Options(threads=2))


class Remote:
    """A function of a fake Ray, which runs at once."""

    def __init__(self, function: Any):
        self.remote = function


def fake_ray(processors: int) -> Any:
    nodes = [{"Alive": True, "Resources": {"CPU": processors}}, {"Alive": False, "Resources": {"CPU": 64}}]
    return types.SimpleNamespace(
        is_initialized=lambda: False,
        init=lambda **stated: None,
        nodes=lambda: [*nodes, {"Alive": True, "Resources": {}}],
        remote=lambda **stated: Remote,
        get=list,
    )


def test_jobs_of_a_cluster(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", fake_ray(2))
    options = Options(threads=2)
    measurer = RayMeasurer("auto", options)
    assert measurer.width == 1
    shapes = [{"b": 2}]
    tune(lambda x: jnp.tanh(x), shapes, args=(("b", "float32"),), options=options, budget=0.2, measurer=measurer)
    job = Job(b"", b"", (), TunedMachine("another processor", "x86-64-v3", 2), 1.0)
    assert measurer.measure([job]) == [None]
    monkeypatch.setitem(sys.modules, "ray", fake_ray(1))
    with pytest.raises(OptionError, match="2 processors"):
        RayMeasurer("auto", options)
