# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An internal error of one decision costs that decision; of anything else it is an error that can be seen again."""

from __future__ import annotations

import json
import logging
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.driver.recovery import KINDS, PLAIN, Attempts, Choice, find_fault
from shlo_disc.lowering.host_llvm import program
from shlo_disc.lowering_cpu import kernels
from shlo_disc.transforms import decisions

SPECS = [("n, 8", "float32"), ("8, 8", "float32")]
LENIENT = shlo_disc.Options(strict=False, guard_pages=True)


def two_layers(x: Any, w: Any) -> Any:
    return jnp.tanh(x @ w) @ w, (x * 2).sum(1)


@pytest.fixture
def broken_epilogues(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(frame: Any) -> None:
        raise KeyError("tile")

    monkeypatch.setitem(kernels.OWN_KERNELS, "epilogue", fail)


def check(executable: Any, function: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    for n in (1, 17):
        x, w = rng.standard_normal((n, 8), dtype=np.float32), rng.standard_normal((8, 8), dtype=np.float32)
        for ours, theirs in zip(executable(x, w), jax.jit(function)(x, w), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("broken_epilogues")
def test_the_decision_at_fault_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "shlo_disc"):
        executable = shlo_disc.compile(two_layers, args=SPECS, options=LENIENT)
    (warning,) = [r.getMessage() for r in caplog.records]
    assert re.search(r"fusion \d+ \(epilogue\).*is left out after an internal error", warning)
    assert "KeyError: 'tile'" in warning
    assert len([k for k in executable.kernels if k.kind == "row_reduce"]) == 1
    check(executable, two_layers)


@pytest.mark.usefixtures("broken_epilogues")
def test_strict_raises_with_a_reproducer_that_runs() -> None:
    with pytest.raises(shlo_disc.CompilerError, match="KeyError: 'tile'") as raised:
        shlo_disc.compile(two_layers, args=SPECS, options=shlo_disc.Options(strict=True, opt_level=0))
    command = shlex.split(raised.value.message.rsplit("To see it again: ", 1)[1])
    report = json.loads((Path(command[4]).parent / "report.json").read_text())
    assert report["error"].startswith("CompilerError: the stage kernels failed")
    assert report["versions"]["jax"] == jax.__version__
    assert command[:3] == ["python", "-m", "shlo_disc"] and command[command.index("--opt-level") + 1] == "0"
    done = subprocess.run([sys.executable, *command[1:]], capture_output=True, text=True, check=True)
    assert "llvm.func" in done.stdout


def test_a_fault_that_no_decision_has_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("no")

    monkeypatch.setattr(program, "write_plan", fail)
    with pytest.raises(shlo_disc.CompilerError, match="the stage codegen failed: ValueError: no\nTo see it again: "):
        shlo_disc.compile(two_layers, args=SPECS, options=LENIENT)


def test_what_a_pattern_raises_is_no_match(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: Any) -> bool:
        raise IndexError("out of range")

    pattern = decisions.PATTERNS["epilogue"]
    monkeypatch.setattr(pattern, "conditions", [decisions.Condition("broken", "epilogue.broken", "", fail)])
    with caplog.at_level(logging.WARNING, "shlo_disc"):
        executable = shlo_disc.compile(two_layers, args=SPECS, options=LENIENT)
    assert "the pattern epilogue failed and is not used here: IndexError: out of range" in caplog.text
    check(executable, two_layers)
    with pytest.raises(shlo_disc.CompilerError, match="the pattern epilogue failed"):
        shlo_disc.compile(two_layers, args=SPECS, options=shlo_disc.Options(strict=True))


class Counted:
    """Stands for a compilation that makes `count` decisions of each kind."""

    def __init__(self, count: int):
        self.count = count
        self.decisions = {kind: decisions.Decisions() for kind in KINDS}


def run_counted(c: Any) -> None:
    for made in c.decisions.values():
        for number in range(c.count):
            made.take(f"pattern-{number}")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("count", "fault"), [(1, 0), (2, 1), (3, 0), (8, 7), (9, 8), (100, 63), (100, 64), (100, 99)])
def test_the_first_faulty_decision_is_found(kind: str, count: int, fault: int) -> None:
    attempts = Attempts(lambda: Counted(count), run_counted)  # type: ignore[arg-type,return-value]
    asked: list[Choice] = []

    def is_wrong(choice: Choice) -> bool:
        asked.append(choice)
        made: Any = attempts.compile(choice).compilation
        return any(d.number == fault for d in made.decisions[kind].made)

    found = find_fault(is_wrong, attempts)
    assert found is not None
    assert (found.kind, found.number, found.pattern) == (kind, fault, f"pattern-{fault}")
    assert len(asked) <= 4 + 2 * count.bit_length()
    assert find_fault(lambda choice: choice == PLAIN, attempts) is None
