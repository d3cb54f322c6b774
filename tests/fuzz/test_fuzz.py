# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs of fixed seeds, the programs of fixed defects, and the fuzzer itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from shlo_disc.shape_dialect.ops import TABLE
from tests.fuzz.case import Case, case_of, program_of
from tests.fuzz.families import OPS, WITHOUT
from tests.fuzz.kept import describe, load
from tests.fuzz.program import Program
from tests.fuzz.shrink import shrink
from tests.fuzz.worker import Worker, differences

REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.mlir"))


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    made = Worker()
    yield made
    made.close()


@pytest.mark.parametrize("seed", range(90))
def test_random_program(seed: int, worker: Worker) -> None:
    finding = worker.examine((seed, ())).finding
    assert finding is None, f"{finding}; to see it: python -m tests.fuzz --seed {seed} --count 1"


@pytest.mark.parametrize("path", REGRESSIONS, ids=[p.stem for p in REGRESSIONS])
def test_fixed_defect(path: Path, worker: Worker) -> None:
    assert worker.examine(load(path)).finding is None


@pytest.fixture(scope="module")
def interpreting() -> Iterator[Worker]:
    """A process in which the plugin interprets nearly all programs; the variable is read when its client is made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHLO_DISC_INTERPRETED_MICROSECONDS", "1000000")
        made = Worker(plugin=True)
        made.examine((0, ()))
    yield made
    made.close()


def test_random_programs_are_interpreted(interpreting: Worker) -> None:
    reports = [interpreting.examine((seed, ())) for seed in range(1000, 1020)]
    assert [report.finding for report in reports if report.finding] == []
    assert sum(report.programs["interpreted"] for report in reports) > 40


# ---- the fuzzer ------------------------------------------------------------------------------------------------------


def test_every_compiled_op_is_generated() -> None:
    compiled = {row.name.removeprefix("stablehlo.") for row in TABLE.values() if row.lowering not in ("", "import")}
    missing = compiled - set(OPS) - set(WITHOUT)
    assert not missing, "add a generator to tests/fuzz/families, or a reason to NOT_GENERATED in tests/op_programs"


def test_nothing_is_generated_that_is_not_compiled() -> None:
    assert not {name for name in OPS if not TABLE[f"stablehlo.{name}"].lowering}
    assert not set(OPS) & set(WITHOUT)


def test_every_op_turns_up() -> None:
    seen = {step.op for seed in range(1500) for step in program_of(seed).steps}
    assert seen == set(OPS)


def test_a_seed_is_one_program() -> None:
    assert program_of(7).text() == program_of(7).text() != program_of(8).text()


def wrong_case(seed: int) -> Case:
    """A case whose arrays are not those that the dynamic program gets the right answer for."""
    case = case_of(program_of(seed), seed)
    text = case.text.replace("stablehlo.add", "stablehlo.subtract")
    assert text != case.text
    return Case(text, case.errors, case.calls, [], case.ops, case.opt_level, case.threads)


def seed_with(op: str, steps: int) -> int:
    """The first seed whose program has the op and is small."""
    return next(s for s in range(5000) if op in (made := [x.op for x in program_of(s).steps]) and len(made) <= steps)


def test_a_wrong_answer_is_found(worker: Worker) -> None:
    finding = worker.examine(wrong_case(seed_with("add", 1))).finding
    assert finding is not None
    assert finding.kind == "mismatch"


@pytest.mark.slow
def test_a_signal_is_a_finding_and_not_the_end(worker: Worker) -> None:
    worker.send((0, ()))
    worker.kill()
    report = worker.wait()
    assert report.finding is not None
    assert report.finding.kind == "signal"
    assert worker.examine((0, ())).finding is None


def test_a_written_program_is_read_again(tmp_path: Path) -> None:
    program = program_of(11)
    path = tmp_path / "program.mlir"
    path.write_text(describe(program, 11))
    case, again = case_of(program, 11), load(path)
    assert (again.text.endswith(case.text), again.errors) == (True, case.errors)
    for call, other in zip(case.calls, again.calls, strict=True):
        for a, b in zip(call.arrays, other.arrays, strict=True):
            np.testing.assert_array_equal(a, b)


def test_shrinking_keeps_what_fails() -> None:
    program = program_of(seed_with("transpose", 9))

    def fails(candidate: Program) -> bool:
        return any(step.op == "transpose" for step in candidate.steps)

    small = shrink(program, fails)
    assert [step.op for step in small.steps] == ["transpose"]
    assert len(small.sizes) == 1


@pytest.mark.parametrize(
    ("got", "want", "error", "same"),
    [
        ([1.0, np.nan], [1.0, np.nan], 0, True),
        ([0.0], [-0.0], 0, True),
        ([1.0], [1.0 + 2**-20], 0, False),
        ([1.0], [1.0 + 2**-20], 2**-20, True),
        ([np.inf], [1.0], 0.5, False),
        ([np.nan], [1.0], 0.5, False),
    ],
)
def test_comparison(got: list[float], want: list[float], error: float, same: bool) -> None:
    a, b = np.array(got, np.float32), np.array(want, np.float32)
    assert (differences([a], [b], [error]) == "") is same


def test_shapes_and_dtypes_are_compared() -> None:
    x = np.zeros((2, 0), np.float32)
    assert differences([x], [x.T], [0])
    assert differences([x], [x.astype(np.int32)], [0])
