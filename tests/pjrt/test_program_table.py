# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The native table of programs, with a compiler that only tells what it was asked."""

from __future__ import annotations

import threading
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shlo_disc.pjrt.generalize.steps import Steps
from shlo_disc.runtime.native_module import ProgramTable, evaluate_steps, read_program
from shlo_disc.shape_dialect.symbolic.expr import Expr
from tests.pjrt.streams import artifact

ANY = -1


def program(size: int, function: Any = jnp.tanh) -> bytes:
    """A program all of whose numbers are one size."""
    return artifact(function, [jax.ShapeDtypeStruct((size,), jnp.float32)])


class Compiler:
    """Notes the calls; every number of a symbolic program is the first one."""

    def __init__(self, **answer: Any):
        self.compiled: list[bytes] = []
        self.generalized: list[int] = []
        self.answer = answer

    def compile(self, program: bytes, options: bytes) -> Any:
        self.compiled.append(program)
        return f"program {len(self.compiled)}"

    def generalize(self, programs: list[bytes], options: bytes) -> Any:
        self.generalized.append(len(programs))
        if "none" in self.answer:
            return None
        count = len(read_program(programs[0])["numbers"])
        found = {"symbols": [0], "steps": [(1, 0, 0)], "expected": [0] * count, "hidden": [], **self.answer}
        parts = {**found, "least": [1] * len(found["symbols"]), "given": []}
        return (f"symbolic {len(self.generalized)}", *parts.values())


def ask(table: ProgramTable, compiler: Compiler, size: int, **more: Any) -> tuple[Any, str]:
    """The executable that serves the program of a size, and the way it was obtained."""
    executable, _, how = table.compile(program(size, **more), b"", compiler.compile, compiler.generalize)
    return executable, how


def test_compiled_once_and_generalised_once() -> None:
    """The first program as it is, the second with symbols, the others not at all."""
    table, compiler = ProgramTable(1 << 20), Compiler()
    assert ask(table, compiler, 3) == ("program 1", "compiled")
    assert ask(table, compiler, 3) == ("program 1", "known")
    assert ask(table, compiler, 4) == ("symbolic 1", "compiled_symbolic")
    assert ask(table, compiler, 5) == ("symbolic 1", "instance")
    assert (len(compiler.compiled), compiler.generalized) == (1, [2])
    counts = {"compiled": 1, "compiled_symbolic": 1, "known": 1, "instances": 1}
    assert table.counts == {"unreadable": 0, "not_general": 0, "interpreted": 0, **counts}


def test_options_and_skeletons_are_apart() -> None:
    """Programs that differ in an op, or are compiled with other options, have nothing in common."""
    table, compiler = ProgramTable(1 << 20), Compiler()
    ask(table, compiler, 3)
    assert ask(table, compiler, 4, function=jnp.sin)[1] == "compiled"
    assert table.compile(program(4), b"other", compiler.compile, compiler.generalize)[2] == "compiled"


def test_without_symbolic_programs() -> None:
    """The compiler is asked a few times, then after twice as many programs each time, with the last eight of them."""
    table, compiler = ProgramTable(1 << 20), Compiler(none=True)
    attempts = []
    for size in range(2, 40):
        before = len(compiler.generalized)
        assert ask(table, compiler, size)[1] == "compiled"
        attempts += [size] if len(compiler.generalized) > before else []
    assert attempts == [3, 4, 5, 7, 11, 19, 35]
    assert compiler.generalized == [2, 3, 4, 6, 9, 9, 9]
    assert table.counts["not_general"] == 7


WRONG: dict[str, dict[str, Any]] = {
    "another value": {"steps": [(0, 7, 0)]},
    "no such step": {"expected": [5] * 100},
    "too few numbers": {"expected": [0]},
    "no such number": {"symbols": [1000]},
    "no such symbol": {"steps": [(1, 3, 0)]},
    "a later step": {"steps": [(2, 0, 1), (1, 0, 0)]},
    "no such operation": {"steps": [(99, 0, 0)]},
    "no such constant": {"hidden": [8]},
    "overflow": {"steps": [(1, 0, 0), (0, 2**62, 0), (3, 1, 1)]},
    "division by zero": {"steps": [(1, 0, 0), (0, 0, 0), (4, 0, 1)]},
}


@pytest.mark.parametrize("name", WRONG)
def test_a_symbolic_program_that_does_not_fit(name: str) -> None:
    """It is not used, whatever it says."""
    table, compiler = ProgramTable(1 << 20), Compiler(**WRONG[name])
    assert [ask(table, compiler, size)[1] for size in (3, 4, 5)] == ["compiled"] * 3


def test_no_size_of_zero() -> None:
    """Symbols are at least 1."""
    table, compiler = ProgramTable(1 << 20), Compiler()
    assert [ask(table, compiler, size)[1] for size in (3, 4, 0, 1)] == [
        "compiled", "compiled_symbolic", "compiled", "instance"]  # fmt: skip


def test_errors_reach_the_caller() -> None:
    """And the table goes on afterwards."""
    table, compiler = ProgramTable(1 << 20), Compiler()

    def fail(*_: Any) -> Any:
        raise OSError("no disk")

    for size in (3, 4):
        with pytest.raises(OSError, match="no disk"):
            table.compile(program(size), b"", fail, fail)
    ask(table, compiler, 3)
    with pytest.raises(OSError, match="no disk"):
        table.compile(program(4), b"", compiler.compile, fail)
    assert ask(table, compiler, 4)[1] == "compiled_symbolic"


def test_what_cannot_be_read_is_compiled() -> None:
    """And not kept."""
    table, compiler = ProgramTable(1 << 20), Compiler()
    for _ in range(2):
        assert table.compile(b"something", b"", compiler.compile, compiler.generalize)[2] == "compiled"
    assert table.counts["unreadable"] == 2
    assert table.bytes == 0


def test_memory_is_bounded() -> None:
    """The least recently used program is dropped."""
    compiler = Compiler()
    table = ProgramTable(1 << 30)
    ask(table, compiler, 3, function=jnp.sin)
    table = ProgramTable(int(2.5 * table.bytes))
    for function in (jnp.sin, jnp.cos, jnp.sin, jnp.tan):
        ask(table, compiler, 3, function=function)
        assert table.bytes <= 1 << 14
    assert ask(table, compiler, 3, function=jnp.sin)[1] == "known"
    assert ask(table, compiler, 3, function=jnp.cos)[1] == "compiled"
    table.clear()
    assert table.bytes == 0
    assert ask(table, compiler, 3, function=jnp.sin)[1] == "compiled"


def test_threads() -> None:
    """However many ask at once, each program is compiled once."""
    table, compiler = ProgramTable(1 << 20), Compiler()
    programs = [program(size) for size in range(2, 12)]
    seen: list[str] = []

    def work(start: int) -> None:
        for i in range(200):
            data = programs[(start + i) % len(programs)]
            seen.append(table.compile(data, b"", compiler.compile, compiler.generalize)[2])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(compiler.compiled), len(compiler.generalized)) == (1, 1)
    assert len(seen) == 1600
    assert seen.count("compiled") == seen.count("compiled_symbolic") == 1


EXPRESSIONS = st.recursive(
    st.integers(-9, 9).map(Expr.const) | st.sampled_from("ab").map(Expr.symbol),
    lambda e: st.builds(
        lambda f, x, y: f(x, y),
        st.sampled_from([
            Expr.__add__, Expr.__mul__, Expr.__sub__, Expr.__floordiv__, Expr.__mod__, Expr.minimum, Expr.maximum]),
        e,
        e,
    ),
    max_leaves=12,
)  # fmt: skip


@given(st.data())
def test_steps_compute_expressions(data: st.DataObject) -> None:
    """As Python does, rounding and signs included; nothing where Python divides by zero."""
    try:
        expression = data.draw(EXPRESSIONS)
    except ZeroDivisionError:
        return
    values = [data.draw(st.integers(-20, 20)) for _ in "ab"]
    steps = Steps("ab")
    place = steps.of(expression)
    found = evaluate_steps(steps.rows, values)
    try:
        want = expression.evaluate(dict(zip("ab", values, strict=True)))
    except ZeroDivisionError:
        assert found is None
        return
    assert found is None or found[place] == want
    assert found is not None or abs(want) > 2**40
