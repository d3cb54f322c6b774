# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every wrong call raises before anything runs, with a text that names the argument and the rule.

Where jax.export has a wording, the texts are compared with what the installed JAX says for the same call.
"""

from __future__ import annotations

import collections
import re
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import export

from shlo_disc.errors import ArgumentTypeError, DiscError, ShapeError
from shlo_disc.runtime import Client, TreeSpec
from tests.run.bad_calls import words_of_jax

from .programs import identity, symbol

CLIENT = Client(threads=1)
S_MAX = {
    "kind": "constraint",
    "message": "Input shapes do not match the symbolic shape constraint s <= 512. "
    "Expected '- s + 512' to be greater or equal to 0, but found {0}.",
    "operands": [],
}


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


def ours_and_jax(shapes: list[str], program: Any, constraints: tuple[str, ...] = ()) -> tuple[Any, Any]:
    scope = export.SymbolicScope(constraints)
    specs = [jax.ShapeDtypeStruct(export.symbolic_shape(text, scope=scope), jnp.float32) for text in shapes]
    exported = export.export(jax.jit(lambda *arrays: tuple(arrays)))(*specs)
    return CLIENT.load(program), exported


@pytest.fixture(scope="module")
def pair() -> tuple[Any, Any]:
    """x[b, 3], y[b, s] with s <= 512, in both systems."""
    program = identity(
        [("args[0]", [{"b": 1}, 3], "f32"), ("args[1]", [{"b": 1}, {"s": 1}], "f32")],
        [symbol("b", 0, 0), symbol("s", 1, 1)],
        checks=[("b", "sge", 1, _at_least_one("b")), ("s", "sge", 1, _at_least_one("s"))],
    )
    return ours_and_jax(["b, 3", "b, s"], program)


def _at_least_one(name: str) -> dict[str, Any]:
    message = (
        "Input shapes do not match the polymorphic shapes specification. "
        f"Expected value >= 1 for dimension variable '{name}'."
    )
    return {"kind": "min", "message": message, "operands": []}


BAD_CALLS = {
    "inconsistent": (zeros(2, 3), zeros(4, 5)),
    "inconsistent the other way": (zeros(4, 3), zeros(2, 5)),
    "static dimension": (zeros(2, 4), zeros(2, 5)),
    "rank too high": (zeros(2, 3, 1), zeros(2, 5)),
    "rank too low": (zeros(2), zeros(2, 5)),
    "rank zero": (zeros(), zeros(2, 5)),
    "rank of the second": (zeros(2, 3), zeros(5)),
    "dtype int32": (zeros(2, 3, dtype=np.int32), zeros(2, 5)),
    "dtype bfloat16": (zeros(2, 3, dtype=ml_dtypes.bfloat16), zeros(2, 5)),
    "dtype float16": (zeros(2, 3), zeros(2, 5, dtype=np.float16)),
    "dtype bool": (zeros(2, 3, dtype=np.bool_), zeros(2, 5)),
    "dtype float8": (zeros(2, 3, dtype=ml_dtypes.float8_e4m3fn), zeros(2, 5)),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_same_text_as_jax(pair: tuple[Any, Any], name: str) -> None:
    ours, exported = pair
    arguments = BAD_CALLS[name]
    with pytest.raises(ValueError) as theirs:
        exported.call(*arguments)
    with pytest.raises(DiscError) as mine:
        ours(*arguments)
    given = words_of_jax(mine.value.message)
    text = re.sub(
        r": convert it by args\[\d\]\.astype\('\w+'\)(, or compile the program for \w+)?$",
        "",
        given,
    )
    assert text == str(theirs.value).rstrip()
    assert isinstance(mine.value, ArgumentTypeError if "dtype" in name else ShapeError)


def test_same_text_for_a_zero_size(pair: tuple[Any, Any]) -> None:
    ours, exported = pair
    with pytest.raises(ValueError) as theirs:
        exported.call(zeros(0, 3), zeros(0, 5))
    with pytest.raises(ShapeError) as mine:
        ours(zeros(0, 3), zeros(0, 5))
    # JAX's list ends with the variable that failed.
    assert str(theirs.value).split(" Obtained")[0] == words_of_jax(mine.value.message).split(" Obtained")[0]


@pytest.mark.parametrize("size", [4, 1])
def test_division_texts(size: int) -> None:
    program = identity(
        [("args[0]", [{"b": 1}, 3], "f32"), ("args[1]", [{"s": 2, "": 1}, 4], "f32")],
        [symbol("b", 0, 0), symbol("s", 1, 0, scale=2, offset=1)],
    )
    ours, exported = ours_and_jax(["b, 3", "2*s + 1, 4"], program)
    with pytest.raises(ValueError) as theirs:
        exported.call(zeros(2, 3), zeros(size, 4))
    with pytest.raises(ShapeError) as mine:
        ours(zeros(2, 3), zeros(size, 4))
    assert words_of_jax(mine.value.message) == str(theirs.value).rstrip()


def test_constraint_text() -> None:
    # The operand is a word of the plan: here the arena's, set to what JAX prints for s == 600.
    check = {**S_MAX, "operands": [0]}
    program = identity(
        [("args[0]", [{"b": 1}, {"s": 1}], "f32")],
        [symbol("b", 0, 0), symbol("s", 0, 1)],
        arena=-88,
        checks=[("s", "sle", 512, check)],
    )
    ours, exported = ours_and_jax(["b, s"], program, ("s <= 512",))
    with pytest.raises(ValueError) as theirs:
        exported.call(zeros(2, 600))
    with pytest.raises(ShapeError) as mine:
        ours(zeros(2, 600))
    assert words_of_jax(mine.value.message) == str(theirs.value).rstrip()


def test_a_maximum_in_the_header_holds_even_when_the_plan_does_not_check_it() -> None:
    program = identity([("args[0]", [{"b": 1}], "f32")], [symbol("b", 0, 0, max=4)])
    ours = CLIENT.load(program)
    ours(zeros(4))
    with pytest.raises(ShapeError, match="Expected value <= 4 for dimension variable 'b'"):
        ours(zeros(5))


def test_symbols_in_messages() -> None:
    check = {"kind": "constraint", "message": "b is {b}, other {c}, word {0}, none {7}, {", "operands": [1]}
    program = identity([("args[0]", [{"b": 1}], "f32")], [symbol("b", 0, 0)], checks=[("b", "sle", 2, check)])
    with pytest.raises(ShapeError, match=r"^b is 3, other \{c\}, word 3, none \{7\}, \{"):
        CLIENT.load(program)(zeros(3))


def test_negative_scale_and_offset() -> None:
    program = identity(
        [("args[0]", [{"b": -1, "": 10}], "f32")], [symbol("b", 0, 0, scale=-1, offset=10, max=10)], name="f"
    )
    ours = CLIENT.load(program)
    assert ours(zeros(4)).shape == (4,)
    with pytest.raises(ShapeError, match="Expected value >= 1 for dimension variable 'b'"):
        ours(zeros(10))


Point = collections.namedtuple("Point", "x y")

TREE = {"a": np.float32(0), "b": [np.float32(0), (np.float32(0), None)], "p": Point(np.float32(0), np.float32(0))}
BAD_TREES = {
    "missing argument": ((), {}),
    "one argument too many": ((TREE, 1.0), {}),
    "keyword": ((TREE,), {"k": 1.0}),
    "leaf for a node": ((1.0,), {}),
    "node for a leaf": (({**TREE, "a": [1.0]},), {}),
    "none for a leaf": (({**TREE, "a": None},), {}),
    "leaf for none": (({**TREE, "b": [1.0, (1.0, 2.0)]},), {}),
    "tuple for a list": (({**TREE, "b": (1.0, (1.0, None))},), {}),
    "list too long": (({**TREE, "b": [1.0, (1.0, None), 2.0]},), {}),
    "missing key": (({"a": 1.0, "b": TREE["b"]},), {}),
    "other key": (({"a": 1.0, "b": TREE["b"], "q": TREE["p"]},), {}),
    "additional key": (({**TREE, "z": 1.0},), {}),
    "tuple for a namedtuple": (({**TREE, "p": (1.0, 2.0)},), {}),
}


@pytest.fixture(scope="module")
def tree_program() -> tuple[Any, Any]:
    in_tree = jax.tree_util.tree_structure(((TREE,), {}))
    exported = export.export(jax.jit(lambda tree: tree))(TREE)
    program = identity([(f"args[{i}]", [], "f32") for i in range(5)], name=exported.fun_name)
    out_tree = jax.tree_util.tree_structure(TREE)
    return CLIENT.load(program, in_tree=in_tree, out_tree=out_tree), exported


@pytest.mark.parametrize("name", BAD_TREES)
def test_structure_text(tree_program: tuple[Any, Any], name: str) -> None:
    ours, exported = tree_program
    args, kwargs = BAD_TREES[name]
    with pytest.raises(ValueError) as theirs:
        exported.call(*args, **kwargs)
    with pytest.raises(ArgumentTypeError) as mine:
        ours(*args, **kwargs)
    # JAX compares trees whose leaves are all the int 0; we name the type of the caller's own leaf.
    text = str(theirs.value).replace("a <class 'int'> when exported", "a pytree leaf when exported")
    assert words_of_jax(mine.value.message).replace("<class 'float'> in", "<class 'int'> in") == text.rstrip()


def test_trees_round_trip(tree_program: tuple[Any, Any]) -> None:
    ours, _ = tree_program
    result = ours(TREE)
    assert jax.tree_util.tree_structure(result) == jax.tree_util.tree_structure(TREE)
    for tree in (ours.in_tree, ours.out_tree):
        assert TreeSpec.from_json(tree.to_json()) == tree


BAD_NUMBERS = [
    ("f32", True, "a Python bool"),
    ("f32", 2**24 + 1, "exactly"),
    ("f64", 2**60 + 1, "exactly"),
    ("f32", 10**400, "exactly"),
    ("f16", 70000, "exactly"),
    ("bf16", 257, "exactly"),
    ("i32", 1.0, "a Python float"),
    ("i32", True, "a Python bool"),
    ("i8", 128, "128"),
    ("i8", -129, "-129"),
    ("u8", -1, "cannot hold"),
    ("u8", 256, "256"),
    ("i64", 2**63, "cannot hold"),
    ("u64", 2**64, "cannot hold"),
    ("i1", 1, "a Python int"),
    ("i1", 1.0, "a Python float"),
    ("f32", 1j, "complex"),
    ("f32", "text", "str"),
    ("f32", object(), "object"),
    ("f32", np.float64(1), "float64"),
    ("i32", np.int64(1), "int64"),
    ("f32", np.array(1j), "complex128"),
    ("f32", np.array("x"), "<U1"),
    ("f32", np.array(None), "object"),
    ("i64", np.array(0, "M8[s]"), "datetime64"),
    ("f32", jax.random.key(0), "args"),
]


@pytest.mark.parametrize("case", range(len(BAD_NUMBERS)))
def test_numbers_that_do_not_fit(case: int) -> None:
    dtype, value, text = BAD_NUMBERS[case]
    ours = CLIENT.load(identity([("args[0]['w']", [], dtype)]))
    with pytest.raises(ArgumentTypeError, match=text) as error:
        ours(value)
    assert "args[0]['w']" in str(error.value)


def test_a_number_for_an_array() -> None:
    ours = CLIENT.load(identity([("args[0]", [3], "f32")]))
    with pytest.raises(ShapeError, match=r"Rank mismatch for args\[0\]: expected \(3,\) and called with \(\)"):
        ours(1.0)


def test_tracers_are_refused_where_arguments_are_bound() -> None:
    ours = CLIENT.load(identity([("args[0]", [3], "f32")]))
    with pytest.raises(ArgumentTypeError, match="inside a function that JAX is tracing"):
        jax.jit(ours.bind)(jnp.zeros(3))


def test_nothing_is_allocated_by_a_refused_call(pair: tuple[Any, Any]) -> None:
    ours, _ = pair
    before = CLIENT.devices()[0].memory_stats()
    for arguments in BAD_CALLS.values():
        with pytest.raises(DiscError):
            ours(*arguments)
    assert CLIENT.devices()[0].memory_stats() == before


def test_sizes_that_overflow() -> None:
    """Results whose bytes or sizes do not fit 64 bits are refused before anything is allocated."""
    big = {"b": 2**40}
    program = identity([("args[0]", [{"b": 1}, 0], "f32")], [symbol("b", 0, 0)])
    header = dict(program.header)
    grown = identity([("args[0]", [{"b": 1}], "f32"), ("args[1]", [big, big], "f32")], [symbol("b", 0, 0)])
    executable = CLIENT.load(grown)
    with pytest.raises(ShapeError, match=r"bytes of result\[1\] .* do not fit 64 bits"):
        executable.output_shapes(b=1)
    with pytest.raises(ShapeError, match="negative"):
        executable.output_shapes(b=2**23)
    assert header["plan_words"] == 5


def test_a_broadcast_view_too_large_to_copy() -> None:
    ours = CLIENT.load(identity([("args[0]", [{"b": 1}, {"s": 1}], "f32")], [symbol("b", 0, 0), symbol("s", 0, 1)]))
    view = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (2**20, 2**40), (0, 0))
    with pytest.raises((ShapeError, MemoryError)):
        ours(view)
    assert (ours(np.broadcast_to(np.float32(3), (2, 5))) == 3).all()
