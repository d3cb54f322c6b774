# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Guards of programs: relations of sizes that a branch in Python has assumed while JAX traced."""

from __future__ import annotations

import collections
import functools
import itertools
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import shlo_disc
from shlo_disc.importer.size_guards import SizeGuard, with_guards
from shlo_disc.shape_dialect.symbolic.facts_relation import Relation

RELATIONS = (
    "n != 1", "n + m != 5", "2*n - 3 != m", "mod(n, 3) != 2", "mod(n - 10, 4) != m", "floordiv(n, 2) != m",
    "floordiv(n - 10, 3) != 0 - m", "max(n, m) != 3", "min(2*n - m, m*n) != 4", "n*m^2 != 12", "n <= 4", "m < n",
    "n >= 3", "n > 2*m", "mod(n, 2) == 1",
)  # fmt: skip


def ones(*sizes: int) -> np.ndarray[Any, Any]:
    return np.ones(sizes, np.float32)


@pytest.mark.parametrize("text", RELATIONS)
def test_a_program_refuses_exactly_the_sizes_that_break_its_guard(text: str) -> None:
    n, m = export.symbolic_shape("n, m")
    specs = [jax.ShapeDtypeStruct((size,), np.float32) for size in (n, m)]
    relation = Relation.parse(text)
    guarded = with_guards(export.export(jax.jit(lambda x, y: x.sum() + y))(*specs), [SizeGuard(relation, "No.")])
    compiled = shlo_disc.compile(guarded)
    outcomes = set()
    for sizes in itertools.product((1, 2, 3, 4, 5, 6, 7, 9, 13, 16), (1, 2, 3, 4, 5)):
        holds = relation.evaluate(dict(zip("nm", sizes, strict=True)))
        outcomes.add(holds)
        if holds:
            np.testing.assert_array_equal(compiled(*map(ones, sizes)), sizes[0] + ones(sizes[1]))
        else:
            with pytest.raises(shlo_disc.ShapeError, match="No"):
                compiled(*map(ones, sizes))
    assert outcomes == {True, False}


def test_jax_checks_a_guard_as_well() -> None:
    (n,) = export.symbolic_shape("n")
    exported = export.export(jax.jit(lambda x: -x))(jax.ShapeDtypeStruct((n,), np.float32))
    guarded = with_guards(exported, [SizeGuard(Relation.parse("mod(n, 3) != 1"), "No.")])
    np.testing.assert_array_equal(guarded.call(ones(3)), -ones(3))
    with pytest.raises(Exception, match="refining shapes"):
        guarded.call(ones(4))


def special(x: Any) -> Any:
    return 2 * x if x.shape[0] == 1 else -x


@pytest.mark.filterwarnings("ignore:JAX takes")
def test_an_equality_that_was_taken_to_be_false(tmp_path: Path) -> None:
    """The guard stays with the program: in files, in another process, in derivatives, and where JAX traces nothing."""
    compiled = shlo_disc.compile(special, args=(("n", "float32"),))
    compiled.save(tmp_path / "special.disc")
    loaded = shlo_disc.load(tmp_path / "special.disc", trust=True)
    apart = shlo_disc.compile(special, args=(("n", "float32"),), options=shlo_disc.Options(isolate=True))
    lowered = shlo_disc.jit(special, dynamic="n").lower(ones(3))
    exported = export.deserialize(bytearray(lowered.exported.serialize()))
    for program in (compiled, loaded, apart, lowered.compile(), shlo_disc.compile(exported)):
        np.testing.assert_array_equal(program(ones(3)), -ones(3))
        with pytest.raises(shlo_disc.ShapeError, match=r"Expected n != 1, as .*test_size_guards\.py:\d+ was compiled"):
            program(ones(1))
    gradient = jax.grad(lambda x: compiled(x).sum())
    np.testing.assert_array_equal(gradient(jnp.ones(3)), -ones(3))
    with pytest.raises(shlo_disc.ShapeError):
        gradient(jnp.ones(1))


@pytest.mark.filterwarnings("ignore:JAX takes")
def test_a_function_that_jax_has_traced_for_the_same_symbols() -> None:
    (n,) = export.symbolic_shape("n")
    spec = jax.ShapeDtypeStruct((n,), np.float32)
    inner = jax.jit(special)
    export.export(inner)(spec)
    for function in (inner, lambda x: inner(x) + 1, inner):
        with pytest.raises(shlo_disc.ShapeError):
            shlo_disc.compile(function, args=(spec,))(ones(1))
    np.testing.assert_array_equal(shlo_disc.compile(lambda x: x + 1, args=(spec,))(ones(1)), 2 * ones(1))


def padded(x: Any) -> Any:
    if x.shape[0] < 4:
        return jnp.pad(x, (0, 4 - x.shape[0]))
    if x.shape[0] > 6 or x.shape[0] == 5:
        return 3 * x
    return x[:4]


def caught(x: Any) -> Any:
    try:
        return 2 * x if x.shape[0] == 1 else -x
    except Exception:
        return x


BRANCHES: dict[str, tuple[Callable[..., Any], int]] = {
    "an equality": (special, 2),
    "a size of 1 that is taken away": (lambda x: jnp.squeeze(x, 0) if x.shape[0] == 1 else x.sum(), 2),
    "a truth value": (lambda x: x[1:] if x.shape[0] % 2 else 2 * x, 2),
    "orders": (padded, 4),
    "max": (lambda x: jnp.zeros(max(x.shape[0], 3)) + x.sum(), 2),
    "a quotient": (lambda x: 2 * x if x.shape[0] // 2 > 1 else x, 2),
    "one of several": (lambda x: 2 * x if x.shape[0] in (1, 2, 5) else -x, 4),
    "an inner function": (lambda x: jax.jit(special)(x) + 1, 2),
    "except": (caught, 2),
    "in a scan": (lambda x: jax.lax.scan(lambda c, v: (c + v * (3 if x.shape[0] == 2 else 1), c), 0.0, x)[1], 2),
}


def of_library(condition: str, **names: Any) -> Callable[..., Any]:
    """A function in a package that is installed, with a branch."""
    code = f"def branch(x):\n    return 2 * x if {condition} else -x\n"
    exec(compile(code, "/x/site-packages/lib.py", "exec"), names)  # noqa: S102
    function: Callable[..., Any] = names["branch"]
    return function


class Table:
    """Numbers behind a property."""

    @property
    def learned(self) -> dict[int, float]:
        return LEARNED


def matched(x: Any) -> Any:
    match x.shape[0]:
        case 1 | 3:
            return 2 * x
        case _:
            return -x


def named(x: Any) -> Any:
    name = str(x.shape[0])
    return x * TEXTS.get(name, 1.0)


NUMBERS = {1, 2}
TEXTS = {"3": 5.0, "b": 2.0}
LEARNED = {1: 5.0}
SHAPES = {(1,): 5.0, (3,): 7.0}
DEFAULT = collections.defaultdict(lambda: 1.0, LEARNED)
CONFIG = SimpleNamespace(learned=LEARNED, listed=[1, 2], numbers=frozenset(NUMBERS), table=Table())
BRANCHES |= {
    "a set": (lambda x: 2 * x if x.shape[0] in {1, 2} else -x, 3),
    "a set with a name": (lambda x: 2 * x if x.shape[0] not in NUMBERS else -x, 3),
    "a dict": (lambda x: x * LEARNED.get(x.shape[0], 1.0), 2),
    "the names of a dict": (lambda x: 2 * x if x.shape[0] in LEARNED else -x, 2),
    "a library": (of_library("x.shape[0] == 1 or x.shape[0] > 6"), 3),
    "shapes in NumPy": (lambda x: 2 * x if np.array_equal(x.shape, (1,)) else -x, 2),
    "a comparison of JAX's": (lambda x: jax.lax.top_k(x, min(3, x.shape[0]))[0], 3),
    "an attribute": (lambda x: x * CONFIG.learned.get(x.shape[0], 1.0), 2),
    "a set that is an attribute": (lambda x: 2 * x if x.shape[0] in CONFIG.numbers else -x, 3),
    "a shape in a dict": (lambda x: x * SHAPES.get(x.shape, 1.0), 3),
    "a shape in a set": (lambda x: 2 * x if x.shape in {(3,)} else -x, 2),
    "a shape in a list": (lambda x: 2 * x if x.shape in [(1,), (3,)] else -x, 3),
    "an inner function that looks up": (lambda x: jax.jit(lambda y: 2 * y if y.shape in {(3,)} else -y)(x), 2),
    "a float": (lambda x: 2 * x if x.shape[0] == 3.0 else -x, 2),
    "an integer of NumPy": (lambda x: 2 * x if np.int64(3) == x.shape[0] else -x, 2),
    "an array": (lambda x: 2 * x if np.any(np.array([1, 3]) == x.shape[0]) else -x, 3),
    "isin": (lambda x: 2 * x if np.isin(x.shape[0], [1, 3]) else -x, 3),
    "a count": (lambda x: 2 * x if [1, 3.0].count(x.shape[0]) else -x, 3),
    "match": (matched, 3),
    "a frozenset": (lambda x: 2 * x if x.shape[0] in frozenset([1, 2]) else -x, 3),
    "a set of a list": (lambda x: 2 * x if x.shape[0] in set(CONFIG.listed) else -x, 3),
    "a text": (lambda x: 2 * x if str(x.shape[0]) == "3" else -x, 2),
    "another text": (lambda x: 2 * x if f"{x.shape[0] - 1}" != "3" else -x, 2),
    "one of several texts": (lambda x: 2 * x if f"{x.shape[0]}" in ("1", "3") else -x, 3),
    "a text in a dict": (named, 2),
    "another one of JAX's": (lambda x: jnp.linspace(0, 1, x.shape[0]) + x, 2),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", BRANCHES)
def test_each_outcome_has_a_program_where_a_function_may_be_compiled_again(name: str) -> None:
    function, count = BRANCHES[name]
    for order in ((3, 1, 4, 2, 5, 8, 7, 6), (1, 2, 3, 4, 5, 6, 7, 8)):
        compiled = shlo_disc.jit(function, dynamic="n", compile_once=False)
        for n in (*order, *order):
            x = np.arange(n, dtype=np.float32)
            np.testing.assert_allclose(compiled(x), function(jnp.asarray(x)))
        assert compiled.compile_count <= count + (name == "one of several")


ALONE: dict[str, Callable[..., Any]] = {
    "an array of NumPy": lambda x: x + np.zeros(x.shape[0], np.float32),
    "a loop in Python": lambda x: sum((x[i] for i in range(x.shape[0])), jnp.float32(0)),
    "int": lambda x: x * int(x.shape[0]),
    "len": lambda x: x * len(x),
    "a float of it": lambda x: x[: int(x.shape[0] * 0.5)],
    "a rounded quotient": lambda x: jnp.zeros(math.ceil(x.shape[0] / 8)) + x.sum(),
    "a quotient": lambda x: 2 * x if x.shape[0] / 2 > 1 else -x,
    "a range of NumPy": lambda x: x + np.arange(x.shape[0], dtype=np.float32),
    "bits": lambda x: 2 * x if x.shape[0] & 1 else -x,
    "parts": lambda x: jnp.stack([part.sum() for part in jnp.array_split(x, min(3, x.shape[0]))]),
    "a property": lambda x: x * CONFIG.table.learned.get(x.shape[0], 1.0),
    "a set of digits": lambda x: 2 * x if x.shape[0] in set(map(int, "13")) else -x,
    "a text of it": lambda x: x * int(str(x.shape[0])),
    "a set of powers": lambda x: 2 * x if x.shape[0] in {2**i for i in range(3)} else -x,
    "keys of a sequence": lambda x: 2 * x if x.shape[0] in dict.fromkeys([1, 3]) else -x,
    "the length of a set": lambda x: 2 * x if len({x.shape[0], 3}) == 1 else -x,
    "sets that are equal": lambda x: 2 * x if frozenset([x.shape[0]]) == frozenset([3]) else -x,
    "a part of a set": lambda x: 2 * x if {x.shape[0]} <= {1, 3} else -x,
    "a number that is lacking": lambda x: x * (1 + collections.Counter([1, 3])[x.shape[0]]),
    "a random permutation": lambda x: jax.random.permutation(jax.random.key(0), x.shape[0]) + x,
}


@pytest.mark.parametrize("name", ALONE)
def test_sizes_that_have_to_be_numbers_have_programs_of_their_own(name: str) -> None:
    function = ALONE[name]
    compiled = shlo_disc.jit(function, dynamic="n", compile_once=False)
    for n in (3, 1, 3):
        x = np.arange(n, dtype=np.float32)
        with warnings.catch_warnings(record=True) as caught_now:
            warnings.simplefilter("always")
            np.testing.assert_allclose(compiled(x), function(jnp.asarray(x)))
        assert all("compiled for the sizes of this call alone" in str(each.message) for each in caught_now)
    assert compiled.compile_count == 2
    with pytest.raises(Exception) as refused:
        shlo_disc.jit(function, dynamic="n")(ones(3))
    assert isinstance(refused.value, shlo_disc.ProgramError) or "shlo_disc: " in "".join(refused.value.__notes__)


def test_calls_that_fit_no_symbols_have_programs_of_their_own() -> None:
    """Sizes of 0, and other ranks."""
    compiled = shlo_disc.jit(lambda x: 2 * x, dynamic="b, n", compile_once=False)
    for sizes in ((2, 3), (0, 3), (3,), (), (4, 5), (3,)):
        np.testing.assert_array_equal(compiled(ones(*sizes)), 2 * ones(*sizes))
    assert compiled.compile_count == 4
    with pytest.raises(shlo_disc.OptionError):
        shlo_disc.jit(lambda x: 2 * x, dynamic="b, n", compile_once=False)(ones(3))


def test_a_table_that_is_cut_has_one_program() -> None:
    table = jnp.arange(20, dtype=jnp.float32)
    compiled = shlo_disc.jit(lambda x: x + table[: x.shape[0]], dynamic="n", compile_once=False)
    for n in (3, 20, 7):
        np.testing.assert_array_equal(compiled(ones(n)), 1 + np.arange(n))
    assert compiled.compile_count == 1
    with pytest.raises(TypeError, match="incompatible shapes"):
        compiled(ones(21))


@pytest.mark.parametrize(("size", "stated"), [(3, "n <= 4"), (6, "n >= 5")])
def test_the_outcome_of_the_call_is_named(size: int, stated: str) -> None:
    with pytest.raises(shlo_disc.ProgramError, match="cannot decide n > 4") as refused:
        shlo_disc.jit(lambda x: x if x.shape[0] > 4 else -x, dynamic="n")(ones(size))
    assert refused.value.__notes__[-1] == f"shlo_disc: for the sizes of this call, {stated}"


REFUSED: dict[str, tuple[Callable[..., Any], int]] = {
    "a set": (lambda x: 2 * x if x.shape[0] in {1, 2} else -x, 2),
    "a dict": (lambda x: x * {2: 5.0}.get(x.shape[0], 1.0), 2),
    "a library": (of_library("x.shape[0] == 1"), 1),
    "shapes in NumPy": (lambda x: 2 * x if np.array_equal(x.shape, (1,)) else -x, 1),
    "an attribute": (lambda x: x * CONFIG.learned.get(x.shape[0], 1.0), 1),
    "a shape": (lambda x: x * SHAPES.get(x.shape, 1.0), 3),
    "a dict with a default": (lambda x: x * DEFAULT[x.shape[0]], 1),
    "a float": (lambda x: 2 * x if x.shape[0] != 3.0 else -x, 3),
    "an array": (lambda x: 2 * x if np.any(x.shape[0] == np.array([1, 4])) else -x, 4),
    "a frozenset": (lambda x: 2 * x if x.shape[0] in frozenset([4]) else -x, 4),
    "a text": (lambda x: 2 * x if str(x.shape[0]) == "3" else -x, 3),
    "a text in a dict": (named, 3),
}


@pytest.mark.filterwarnings("error")
def test_texts_of_sizes_that_are_printed_are_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    def printed(x: Any) -> Any:
        n = x.shape[0]
        print(n, f"{n}", str(n), x.shape)
        assert str(n) != "other" and {str(n): 1}[str(n)], f"size {n}"
        with jax.named_scope(f"{n}"):
            return 2 * x

    np.testing.assert_array_equal(shlo_disc.compile(printed, args=(("n", "float32"),))(ones(3)), 2 * ones(3))
    assert capsys.readouterr().out == "n n n (n,)\n"


def test_a_hash_of_a_size() -> None:
    with pytest.warns(UserWarning, match=r"hash\(n\) is that of the name of the size"):
        shlo_disc.compile(lambda x: x * (hash(x.shape) % 8), args=(("n", "float32"),))
    compiled = shlo_disc.jit(lambda x: x * (hash(x.shape) % 8), dynamic="n", compile_once=False)
    for n in (3, 5):
        np.testing.assert_array_equal(compiled(ones(n)), hash((n,)) % 8 * ones(n))


@pytest.mark.filterwarnings("ignore:JAX takes")
@pytest.mark.parametrize("name", REFUSED)
def test_look_ups_are_equalities(name: str) -> None:
    function, size = REFUSED[name]
    compiled = shlo_disc.compile(function, args=(("n", "float32"),))
    np.testing.assert_array_equal(compiled(ones(5)), function(ones(5)))
    with pytest.raises(shlo_disc.ShapeError, match=f"Expected n != {size}"):
        compiled(ones(size))


@pytest.mark.filterwarnings("error")
def test_look_ups_of_symbols_are_left_alone() -> None:
    """Caches by shape, whose keys are symbols or other things, and look-ups that end in KeyError."""
    cache: dict[Any, Any] = {}

    @functools.cache
    def remembered(n: Any) -> int:
        return 1

    def cached(x: Any) -> Any:
        n = x.shape[0]
        if n not in cache:
            cache[n] = jnp.ones(x.shape)
        return x + cache[n] + (0 if n in {"n": 1} else 1) + remembered(n) + {n: 1}[n]

    compiled = shlo_disc.compile(cached, args=(("n", "float32"),))
    np.testing.assert_array_equal(compiled(ones(1)), 5 * ones(1))


def test_look_ups_in_what_is_not_known() -> None:
    """An error in the user's code, and a warning in that of libraries."""
    many = set(range(1000))
    conditions: dict[str, Callable[..., Any]] = {
        "x.shape[0] in set(map(int, '13'))": lambda x: 2 * x if x.shape[0] in set(map(int, "13")) else -x,
        "len({x.shape[0], 3}) == 1": lambda x: 2 * x if len({x.shape[0], 3}) == 1 else -x,
        "x.shape[0] in many": lambda x: 2 * x if x.shape[0] in many else -x,
    }
    for condition, function in conditions.items():
        with pytest.raises(shlo_disc.ProgramError, match=r"the look-up of n by its hash .*DISC-P110"):
            shlo_disc.compile(function, args=(("n", "float32"),))
        with pytest.warns(UserWarning, match="the look-up of n by its hash"):
            compiled = shlo_disc.compile(of_library(condition, many=many), args=(("n", "float32"),))
        np.testing.assert_array_equal(compiled(ones(5)), -ones(5))
    with pytest.warns(UserWarning, match="the look-up of n by its hash"):
        shlo_disc.compile(of_library("many.get(x.shape[0])", many={1: 2}), args=(("n", "float32"),))


def test_sizes_that_are_equal_have_a_program() -> None:
    def joined(x: Any, y: Any) -> Any:
        return x + y if x.shape == y.shape else jnp.concatenate([x, y])

    compiled = shlo_disc.jit(joined, dynamic=("n", "m"), compile_once=False)
    for n, m in ((3, 4), (3, 3), (4, 4), (1, 1), (2, 1)):
        np.testing.assert_array_equal(compiled(ones(n), ones(m)), joined(ones(n), ones(m)) if n == m else ones(n + m))
    assert compiled.compile_count == 2
