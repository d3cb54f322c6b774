# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Records of schedules: kept by machine and content, used where the options say so, and never believed unread."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc import KernelSchedule, OptionError, Options, Schedule
from shlo_disc.driver.cache import CacheWarning, TunedMachine, TuningRecord, TuningRecords, recorded_schedules, tuning
from shlo_disc.tools.tune.programs import PlannedProgram

HERE = TunedMachine("a processor", "x86-64-v4", 2)
RECORD = TuningRecord("loop", 1e-3, KernelSchedule(unroll=4), ((KernelSchedule(unroll=4), 0.9),))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(tuning.ENVIRONMENT_VARIABLE, str(tmp_path / "tuning"))
    return tmp_path / "tuning"


def records() -> TuningRecords:
    found = TuningRecords.here()
    assert found is not None
    return found


def compiled(**options: Any) -> shlo_disc.Executable:
    return shlo_disc.compile(function, args=(("b, s", "float32"),), options=Options(threads=2, **options))


def function(x: Any) -> Any:
    return jnp.tanh(x) + 1


def test_records_come_back(folder: Path) -> None:
    assert records().load(HERE) == {}
    records().store(HERE, {"k": RECORD})
    records().store(HERE, {"l": RECORD})
    assert records().load(HERE) == {"k": RECORD, "l": RECORD}
    assert [file.stat().st_mode & 0o777 for file in folder.iterdir()] == [0o600]


def test_machines_are_kept_apart(folder: Path) -> None:
    records().store(HERE, {"k": RECORD})
    for other in (HERE._replace(processor="b"), HERE._replace(level="x86-64-v3"), HERE._replace(threads=3)):
        assert records().load(other) == {}
    (file,) = folder.iterdir()
    file.rename(folder / f"{other.key}.json")
    with pytest.warns(CacheWarning, match="another machine"):
        assert records().load(other) == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda d: "", lambda d: "[]", lambda d: json.dumps({**d, "format": 0}),
        lambda d: json.dumps({**d, "kernels": {"k": {}}}), lambda d: json.dumps({**d, "kernels": 3}),
        lambda d: json.dumps(d).replace('"unroll": 4', '"unroll": 3'), lambda d: json.dumps(d).replace("0.9", "-1"),
        lambda d: json.dumps(d).replace("0.9", "NaN"), lambda d: json.dumps(d).replace("0.001", "true"),
        lambda d: json.dumps(d).replace('"unroll"', '"rows"'),
    ],
)  # fmt: skip
def test_damaged_records_are_ignored(change: Any, folder: Path) -> None:
    records().store(HERE, {"k": RECORD})
    (file,) = folder.iterdir()
    file.write_text(change(json.loads(file.read_text())))
    with pytest.warns(CacheWarning, match="ignored"):
        assert records().load(HERE) == {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        records().store(HERE, {"k": RECORD})
    assert records().load(HERE) == {"k": RECORD}


def test_the_last_ones_are_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "MOST_KERNELS", 2)
    records().store(HERE, {"k": RECORD, "l": RECORD})
    records().store(HERE, {"k": RECORD, "m": RECORD})
    assert list(records().load(HERE)) == ["k", "m"]


def test_a_directory_of_others_is_refused(folder: Path) -> None:
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    with pytest.raises(OptionError, match="other users"):
        TuningRecords.here()


def test_no_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(tuning.ENVIRONMENT_VARIABLE, "")
    assert TuningRecords.here() is None and recorded_schedules(Options(tuned=True)) == {}


def test_a_compile_uses_what_was_recorded(folder: Path) -> None:
    default = compiled()
    planned = PlannedProgram(function, Options(threads=2), args=(("b, s", "float32"),))
    (kernel,) = planned.kernels
    assert compiled(tuned=True).as_text("kernels") == default.as_text("kernels")
    machine = TunedMachine.here(Options(threads=2))
    records().store(machine, {kernel.content: TuningRecord("loop", 1e-3, KernelSchedule(unroll=8))})
    tuned, stated = compiled(tuned=True), compiled(schedule=Schedule({kernel.name: KernelSchedule(unroll=8)}))
    assert compiled().as_text("kernels") == default.as_text("kernels") != tuned.as_text("kernels")
    assert tuned.as_text("kernels") == stated.as_text("kernels")
    named = compiled(tuned=True, schedule=Schedule({kernel.name: KernelSchedule()}))
    assert named.as_text("kernels") == default.as_text("kernels")
    x = np.linspace(-2, 2, 35, dtype=np.float32).reshape(5, 7)
    np.testing.assert_array_equal(tuned(x), default(x))


def test_names_are_no_part_of_a_kernel(folder: Path) -> None:
    def other(rows: Any) -> Any:
        return jnp.tanh(rows) + 1

    def different(x: Any) -> Any:
        return jnp.tanh(x) + 2

    f32, f16 = "float32", "float16"
    specs = [(function, ("b, s", f32)), (other, ("n, m", f32)), (different, ("b, s", f32)), (function, ("b, s", f16))]
    contents = [PlannedProgram(f, Options(), args=(spec,)).kernels[0].content for f, spec in specs]
    assert contents[0] == contents[1] and len(set(contents)) == 3


def test_records_are_part_of_the_cache_key(folder: Path, tmp_path: Path) -> None:
    def count(**options: Any) -> int:
        return compiled(cache_dir=tmp_path / "programs", **options).compile_count

    assert [count(), count(tuned=True), count(tuned=True), count()] == [1, 1, 0, 0]
    records().store(TunedMachine.here(Options(threads=2)), {"k": RECORD})
    assert [count(), count(tuned=True), count(tuned=True)] == [0, 1, 0]


def test_several_levels_are_refused() -> None:
    with pytest.raises(OptionError, match="one level"):
        TunedMachine.here(Options(cpu=("x86-64-v3", "x86-64-v4")))
