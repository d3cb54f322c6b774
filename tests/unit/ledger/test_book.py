# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs by the functions that they came from. Nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from shlo_disc.driver.ledger.book import DEFECT, VALUE, Ledger
from shlo_disc.driver.ledger.differences import first_difference
from shlo_disc.driver.ledger.identity import read_identity
from shlo_disc.errors import RecompileError
from shlo_disc.runtime.native_module import CallCount
from tests.pjrt.streams import artifact

HERE = __file__


def plain(x: Any) -> Any:
    return jnp.tanh(x) * 2


def unrolled(x: Any) -> Any:
    for _ in range(x.shape[0]):
        x = x * 2
    return x


def deep(x: Any) -> Any:
    """The ops are more than ten calls down, where JAX cuts the list of calls."""

    def down(x: Any, left: int) -> Any:
        return down(x, left - 1) if left else jnp.sin(x)

    return down(x, 12) + 1


class Model:
    def apply(self, x: Any) -> Any:
        return x - 1


def ones(*sizes: int, dtype: Any = np.float32) -> Any:
    return np.ones(sizes, dtype)


def line_of(text: str) -> int:
    """The number of the first line of this file that has a text."""
    with open(HERE) as file:
        return next(number for number, line in enumerate(file, 1) if text in line)


def note(ledger: Ledger, function: Callable[..., Any], *args: Any, most: int = 0) -> None:
    """As the plugin does for a program that is compiled for its own sizes."""
    program = artifact(function, args)
    ledger.admit(program, most)
    ledger.explain(program)
    ledger.note(program, "compiled", 1.0, CallCount())


@pytest.mark.parametrize(
    ("function", "name", "text"),
    [
        (plain, "plain", "def plain("),
        (unrolled, "unrolled", "def unrolled("),
        (deep, "deep", "def deep("),
        (jax.grad(lambda x: jnp.sum(plain(x) ** 2)), "_lambda", "(jax.grad(lambda x"),
        (Model().apply, "apply", "def apply("),
        (jax.vmap(plain), "plain", "def plain("),
    ],
)
def test_a_function_is_found(function: Any, name: str, text: str) -> None:
    found = read_identity(artifact(function, (ones(3),))).identity
    assert (found.name.strip("_"), found.file) == (name.strip("_"), HERE)
    assert found.line == line_of(text) and found.is_users and found.place == f"{HERE}:{found.line}"


def test_arguments_have_names_and_sizes() -> None:
    found = read_identity(artifact(lambda x, y: (x + 1, y["a"] * 2), (ones(3, 4), {"a": ones(2, dtype=np.int32)})))
    assert [str(argument) for argument in found.arguments] == ["f32[3,4]", "i32[2]"]
    assert found.arguments[0].name == "x" and "a" in found.arguments[1].name


def test_what_jax_runs_by_itself_is_not_the_users() -> None:
    found = read_identity(artifact(jnp.cumsum, (ones(3),))).identity
    assert not found.is_users
    ledger = Ledger()
    for size in (3, 4, 5):
        note(ledger, jnp.cumsum, ones(size), most=1)


def test_functions_of_one_name_are_told_apart() -> None:
    def make(number: int) -> Any:
        if number:
            return lambda x: x + 1
        return lambda x: x - 1

    ledger = Ledger()
    note(ledger, make(0), ones(3), most=1)
    note(ledger, make(1), ones(3), most=1)
    assert [len(row.programs) for row in ledger.rows()] == [1, 1]


def test_element_types_and_ranks_are_no_sizes() -> None:
    ledger = Ledger()
    for argument in (ones(3), ones(3, dtype=np.int32), ones(3, 3), ones()):
        note(ledger, plain, argument, most=1)
    (row,) = ledger.rows()
    assert (row.forms, len(row.programs), row.shape_count) == (4, 4, 4)
    assert row.why == "4 kinds of arguments"


def test_a_function_that_is_traced_to_other_ops_is_refused() -> None:
    ledger = Ledger()
    note(ledger, unrolled, ones(3), most=2)
    note(ledger, unrolled, ones(4), most=2)
    with pytest.raises(RecompileError) as caught:
        note(ledger, unrolled, ones(5), most=2)
    said = str(caught.value)
    assert "more than 2 programs" in said and f"'unrolled' ({HERE}:{line_of('def unrolled(')})" in said
    assert "x: f32[5] after x: f32[3]; x: f32[4]" in said and f"{HERE}:{line_of('x = x * 2')}" in said
    assert "Remedy: where Python decides by sizes" in said and caught.value.code == "DISC-R102"


def test_a_list_that_grows_is_one_form() -> None:
    def total(arrays: Any) -> Any:
        return sum(jnp.sum(x) for x in arrays)

    ledger = Ledger()
    note(ledger, total, [ones(3)], most=2)
    note(ledger, total, [ones(3)] * 2, most=2)
    with pytest.raises(RecompileError, match="traced to other ops"):
        note(ledger, total, [ones(3)] * 3, most=2)


def test_the_first_difference_has_both_lines() -> None:
    def branch(x: Any) -> Any:
        if x.shape[0] > 3:
            return jnp.sin(x) + 1
        return jnp.cos(x) + 1

    found = first_difference([artifact(branch, (ones(3),))], artifact(branch, (ones(4),)))
    assert f": sine (f32[4]) at {HERE}:{line_of('return jnp.sin(x) + 1')}" in found
    assert f"has cosine (f32[3]) at {HERE}:{line_of('return jnp.cos(x) + 1')}" in found


def test_sizes_of_1_are_a_reason() -> None:
    def scaled(x: Any) -> Any:
        return jnp.sin(x) + 1 if x.shape[0] == 1 else x * 2

    ledger = Ledger()
    note(ledger, scaled, ones(3), most=2)
    note(ledger, scaled, ones(4), most=2)
    with pytest.raises(RecompileError) as caught:
        note(ledger, scaled, ones(1), most=2)
    said = str(caught.value)
    assert "axis 0 of x is 1 here" in said and "Remedy: pad sizes of 1, or name the sizes in shlo_disc.jit" in said


def test_several_symbolic_programs_do_not_serve_all_sizes_by_one() -> None:
    ledger = Ledger()
    for how, size in (("compiled", 3), ("compiled_symbolic", 4), ("compiled_symbolic", 5)):
        ledger.note(artifact(plain, (ones(size),)), how, 0.5, CallCount())
    assert ledger.rows()[0].why == "2 programs serve several sizes each"


def test_programs_of_one_skeleton_do_not_differ() -> None:
    assert first_difference([artifact(plain, (ones(3),))], artifact(plain, (ones(4),))) == ""


def test_the_most_similar_program_is_compared_with() -> None:
    earlier = [artifact(unrolled, (ones(size),)) for size in (2, 9, 3)]
    assert "(f32[9])" in first_difference(earlier, artifact(unrolled, (ones(4),)))


def test_calls_and_programs_are_counted() -> None:
    ledger = Ledger()
    for how, size in (("compiled", 3), ("compiled_symbolic", 4), ("instance", 5), ("known", 3)):
        ledger.note(artifact(plain, (ones(size),)), how, 0.5, CallCount())
    (row,) = ledger.rows()
    assert (len(row.programs), row.shape_count, row.seconds, row.calls) == (2, 3, 1.0, 0)
    assert row.why == "one program serves all sizes"


def test_a_refusal_of_the_generaliser_is_told_once() -> None:
    ledger = Ledger()
    note(ledger, plain, ones(3))
    program = artifact(plain, (ones(4),))
    assert "no expression. Remedy: compute the value" in ledger.refuse(program, "no expression", VALUE)
    assert ledger.explain(program) == ""


def test_programs_show_the_arguments_that_change() -> None:
    """The first program has them as well, though nothing was compared with it."""

    def layers(weights: list[Any], x: Any) -> Any:
        return sum(x @ w for w in weights)

    ledger = Ledger()
    for rows in (2, 3):
        note(ledger, layers, [ones(4, 4)] * 6, ones(rows, 4))
    (row,) = ledger.rows()
    assert [program.shapes for program in row.programs] == ["x: f32[2,4]", "x: f32[3,4]"]


def test_a_program_compiles_though_it_cannot_be_explained() -> None:
    def failing(program: bytes) -> None:
        raise RuntimeError("broken")

    ledger = Ledger()
    note(ledger, plain, ones(3))
    ledger.note_symbolic(artifact(plain, (ones(4),)), failing)
    told = ledger.explain(artifact(plain, (ones(5),)))
    assert "an unexpected error: RuntimeError('broken')" in told and DEFECT in told
