# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes of the user's in `compile` and `jit`: `Options(passes=...)`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shlo_disc
from shlo_disc import OptionError, Options
from shlo_disc.driver.compilation import Compilation, made
from shlo_disc.driver.passes import PASSES, Pass
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.utils.regions import entry_block, terminator_of

STAGES: list[str] = []
"""The stages in which `negate-becomes-abs` has run, in order."""

X = np.array([1.0, -2.0, 3.0], np.float32)
ARGS = (("n", "float32"), ("n, n", "float32"))


def program(x: Any, y: Any) -> Any:
    return -x + 0 * y.sum()


def negate_becomes_abs(c: Compilation) -> None:
    """Replace negations by absolute values, so that results show whether the pass has run."""
    STAGES.append(c.stage)
    for op in list(entry_block(made(c.module)).operations):
        if op.operation.name == "stablehlo.negate":
            with ir.InsertionPoint(op), op.location:
                new = ir.Operation.create("stablehlo.abs", [op.results[0].type], [op.operands[0]])
            op.results[0].replace_all_uses_with(new.results[0])
            op.operation.erase()


def leave_it_broken(c: Compilation) -> None:
    """Return a value of another type than the function says."""
    block = entry_block(made(c.module))
    terminator_of(block).operands[0] = list(block.arguments)[1]


def fail(_: Compilation) -> None:
    """Raise an error."""
    raise KeyError("planted")


@pytest.fixture(autouse=True)
def own_passes() -> Iterator[None]:
    STAGES.clear()
    own = {"negate-becomes-abs": negate_becomes_abs, "leave-it-broken": leave_it_broken, "fail": fail}
    PASSES.update({name: Pass(name, "simplify", run, ()) for name, run in own.items()})
    yield
    for name in own:
        del PASSES[name]


def compiled(passes: dict[str, str], **more: Any) -> shlo_disc.Executable:
    return shlo_disc.compile(program, args=ARGS, options=Options(passes=passes, **more))


@pytest.mark.parametrize("place", ["annotate", "infer-sizes", "simplify", "materialize-shapes"])
def test_a_pass_runs_after_a_stage_or_a_pass(place: str) -> None:
    executable = compiled({place: "negate-becomes-abs"})
    np.testing.assert_array_equal(executable(X, np.ones((3, 3), np.float32)), np.abs(X))
    assert ["annotate" if place in ("annotate", "infer-sizes") else "simplify"] == STAGES
    assert "stablehlo.abs" in executable.as_text(STAGES[0])


def test_jit_and_pipelines_of_several_passes() -> None:
    options = Options(passes={"annotate": "negate-becomes-abs,func.func(canonicalize{max-iterations=1},cse)"})
    function = shlo_disc.jit(program, dynamic=("n", "n, n"), options=options)
    for n in (3, 2):
        np.testing.assert_array_equal(function(X[:n], np.ones((n, n), np.float32)), np.abs(X[:n]))


def test_a_cache_is_left_alone(tmp_path: Path) -> None:
    y = np.ones((3, 3), np.float32)
    np.testing.assert_array_equal(compiled({}, cache_dir=tmp_path)(X, y), -X)
    np.testing.assert_array_equal(compiled({"simplify": "negate-becomes-abs"}, cache_dir=tmp_path)(X, y), np.abs(X))
    np.testing.assert_array_equal(compiled({}, cache_dir=tmp_path)(X, y), -X)


@pytest.mark.parametrize(("passes", "said"), [
    ({"simplify": "fail"}, r"^the pass fail, which the options add after simplify, failed: KeyError: 'planted'"),
    ({"simplify": "leave-it-broken"}, r"the pass leave-it-broken, .* failed: the program does not verify after leave-"),
    ({"simplify": "no-such-pass"}, r"'no-such-pass' is no pass of ours, nor of MLIR"),
    ({"simplify": "fuse"}, r"'fuse' is a stage, and no pass of ours to run after 'simplify'"),
    ({"no-such-place": "fail"}, r"^no stage or pass 'no-such-place' to run others after; there are annotate, simplify"),
])  # fmt: skip
def test_what_fails_names_the_pass(passes: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        compiled(passes)


@pytest.mark.parametrize("passes", ["simplify", {"simplify": fail}])
def test_passes_are_names(passes: Any) -> None:
    with pytest.raises(OptionError, match="passes must map names to pipelines"):
        Options(passes=passes)


def test_a_process_of_its_own_has_no_passes_of_this_one() -> None:
    with pytest.raises(OptionError, match="passes are registered in this process"):
        Options(passes={"simplify": "fail"}, isolate=True)
