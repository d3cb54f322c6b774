# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs near to patterns, of fixed seeds and of fixed defects; and the fuzzer itself."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from tests.fuzz.near import line_coverage
from tests.fuzz.near.arrays import arrays_for
from tests.fuzz.near.case import COMPOSITE, Case, case_of, load, names, save
from tests.fuzz.near.compare import difference
from tests.fuzz.near.composite import composite
from tests.fuzz.near.families import FAMILIES
from tests.fuzz.near.mutate import mutated
from tests.fuzz.near.program import PIECES, Program, Rejected, at_numbers
from tests.fuzz.near.reference import interpret
from tests.fuzz.near.shrink import shrink
from tests.fuzz.near.worker import Seed, Setup, Worker

REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.json"))


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    made = Worker(Setup(xla_every=10**9, plain_every=10**9))
    yield made
    made.close()


def examine(worker: Worker, family: str, seed: int) -> None:
    finding = worker.examine(Seed(seed, family, "compile")).report.finding
    replay = f"python -m tests.fuzz --near --families {family} --seed {seed} --count 1"
    assert finding is None, f"{finding}; to see it: {replay}"


@pytest.mark.parametrize("family", names())
def test_family(family: str, worker: Worker) -> None:
    examine(worker, family, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 21))
@pytest.mark.parametrize("family", names())
def test_families_at_length(family: str, seed: int, worker: Worker) -> None:
    examine(worker, family, seed)


@pytest.mark.parametrize("path", REGRESSIONS, ids=[p.stem for p in REGRESSIONS])
def test_fixed_defect(path: Path, worker: Worker) -> None:
    assert worker.examine(load(path)).report.finding is None


# ---- the reference --------------------------------------------------------------------------------------------------


def program_and_results(family: str, seed: int) -> None:
    """XLA agrees with the reference about a program."""
    case = case_of(seed, family, gradients=0.3)
    with jax.enable_x64(case.program.x64):
        traced = jax.jit(case.program.run).trace(*case.program.types_of_arguments())
        arrays = arrays_for(case.program, case.sizes[0], [seed])
        want = interpret(traced.jaxpr, arrays, case.sizes[0])
        with at_numbers(case.sizes[0]):
            got = [np.asarray(r) for r in jax.jit(case.program.run)(*arrays)]
    dtypes = [v.aval.dtype.name for v in traced.jaxpr.jaxpr.outvars]
    assert difference(got, want, dtypes) is None, case.program.text()


@pytest.mark.parametrize("family", ["recurrence", COMPOSITE])
def test_reference(family: str) -> None:
    program_and_results(family, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("family", names())
def test_reference_at_length(family: str, seed: int) -> None:
    program_and_results(family, seed)


# ---- the fuzzer -----------------------------------------------------------------------------------------------------


def test_a_seed_is_one_case() -> None:
    assert case_of(3, "gemm").to_json() == case_of(3, "gemm").to_json() != case_of(4, "gemm").to_json()


@pytest.mark.parametrize("family", names())
def test_every_family_makes_programs(family: str) -> None:
    assert len({case_of(seed, family).program.text() for seed in range(4)}) > 2


@pytest.mark.slow
def test_every_piece_turns_up() -> None:
    def pieces_of(program: Program) -> set[str]:
        inner = [p for s in program.steps for p in s.params.values() if isinstance(p, Program)]
        return {s.op for s in program.steps}.union(*map(pieces_of, inner))

    rng = random.Random(0)
    seen: set[str] = set()
    for number in range(1500):
        family = list(FAMILIES.values())[number % len(FAMILIES)]
        try:
            made = family.program(rng, "float32") if number % 3 else composite(rng, length=8)
            seen |= pieces_of(mutated(made, rng, 1))
        except Rejected:
            continue
        if seen >= set(PIECES) - NOT_DRAWN:
            return
    assert set(PIECES) - seen == NOT_DRAWN


NOT_DRAWN = {"axpy", "iota", "one_hot", "take_along"}


def test_a_case_is_written_and_read_again(tmp_path: Path) -> None:
    case = case_of(5, "loops", gradients=1.0)
    save(tmp_path / "case.json", case, "nothing")
    assert load(tmp_path / "case.json") == case
    assert load(tmp_path / "case.json").program.text() == case.program.text()


def test_a_wrong_answer_is_found_and_made_small(worker: Worker) -> None:
    """The compiler is given another program than the reference, by way of the order of the results."""
    case = case_of(0, "chains")

    def fails(candidate: Case) -> bool:
        return any(s.op == "binary" for s in candidate.program.steps)

    small = shrink(case, fails)
    assert [s.op for s in small.program.steps] == ["binary"]
    assert len(small.sizes) == 1


def test_a_result_that_is_off_is_a_difference() -> None:
    case = case_of(0, "gemm", gradients=0.0)
    program = replace(case.program, dtype="float32")
    traced = jax.jit(program.run).trace(*program.types_of_arguments())
    arrays = arrays_for(program, case.sizes[0], [0])
    want = interpret(traced.jaxpr, arrays, case.sizes[0])
    dtypes = [v.aval.dtype.name for v in traced.jaxpr.jaxpr.outvars]
    got = [w.value.astype(d) for w, d in zip(want, dtypes, strict=True)]
    assert difference(got, want, dtypes) is None
    off = [np.where(np.arange(g.size).reshape(g.shape) == 0, g + g.dtype.type(0.01), g) for g in got]
    assert difference(off, want, dtypes) is not None
    missing = [np.where(np.arange(g.size).reshape(g.shape) == 0, g.dtype.type(np.nan), g) for g in got]
    found = difference(missing, want, dtypes)
    assert found is not None
    assert found.kind == "nan"


def test_a_signal_is_a_finding_and_not_the_end(worker: Worker) -> None:
    worker.send(Seed(0, "gemm", "compile"))
    worker.kill()
    finding = worker.wait().report.finding
    assert finding is not None
    assert finding.kind == "signal"
    assert worker.examine(Seed(0, "gemm", "compile")).report.finding is None


def test_the_files_whose_lines_are_counted_are_there() -> None:
    assert [path for path in line_coverage.FILES if not path.is_file()] == []
