# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Equalities and truth values of sizes in the user's code, which JAX answers without deciding them."""

from __future__ import annotations

import ast
import functools
import re
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import ProgramError, ShapeError

ONE = np.ones(1, np.float32)
THREE = np.ones(3, np.float32)


def special(x: Any) -> Any:
    return 2 * x if x.shape[0] == 1 else -x


UNDECIDED: dict[str, tuple[Callable[..., Any], str]] = {
    "a number": (special, "n == 1 to be false"),
    "other than": (lambda x: -x if x.shape[0] != 1 else 2 * x, "n == 1 to be false"),
    "a remainder": (lambda x: 2 * x if x.shape[0] % 2 == 0 else -x, r"mod\(n, 2\) == 0 to be false"),
    "one of several": (lambda x: 2 * x if x.shape[0] in (1, 2) else -x, "n == 1 to be false"),
    "shapes": (lambda x: 2 * x if x.shape == (1,) else -x, "n == 1 to be false"),
}


@pytest.mark.parametrize("name", UNDECIDED)
def test_an_equality_that_is_not_decided(name: str) -> None:
    function, text = UNDECIDED[name]
    for compiled in (
        lambda: shlo_disc.compile(function, args=(("n", "float32"),)),
        lambda: shlo_disc.jit(function, dynamic="n")(THREE),
    ):
        jax.clear_caches()
        with pytest.warns(UserWarning, match=text) as warned:
            compiled()
        assert len(warned) == (2 if name == "one of several" else 1)
        assert {each.filename for each in warned} == {__file__}


def test_rests_of_batches() -> None:
    """JAX's loops ask for them, and may be told that there is one where it is empty."""

    def batched(x: Any) -> Any:
        return jax.lax.map(lambda row: jnp.sin(row).sum(), x, batch_size=4)

    executable = shlo_disc.compile(batched, args=[("n, 3", "float32")], constraints=["n >= 4"])
    for n in (4, 5, 7, 8, 9, 16):
        x = np.linspace(0, 1, 3 * n, dtype=np.float32).reshape(n, 3)
        np.testing.assert_allclose(executable(x), np.sin(x).sum(1), rtol=1e-5)


@functools.partial(jax.jit, static_argnums=1)
def scaled(x: Any, size: Any) -> Any:
    return x * jnp.asarray(size, jnp.float32)


class Scaled:
    scaled = functools.partial(jax.jit, static_argnums=(0, 2))(lambda self, x, size: scaled(x, size))


def looked_up(x: Any) -> Any:
    """Functions of jax.jit in which a size is static, each called with several sizes: traced and other arguments."""
    n, number, methods = x.shape[0], np.float32(1), Scaled()
    sizes = (n % 3, -n % 3, n - n // 3 * 3)
    padded = [jnp.pad(x, (0, size)) for size in sizes]
    numbers = [scaled(x, size) + scaled(number, size) + methods.scaled(number, size) for size in sizes]
    tiled = [jnp.repeat(x, 2, total_repeat_length=2 * n + size) for size in sizes]
    return padded, numbers, tiled


@pytest.mark.filterwarnings("error")
def test_look_ups_in_caches_of_jax() -> None:
    """They compare keys whose hashes are alike in a few bits: here they all are, elsewhere one in some dozens."""
    kind = type(jax.export.symbolic_shape("n")[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "__hash__", lambda self: 7)
        program = shlo_disc.compile(looked_up, args=(("m", "float32"),))
    jax.clear_caches()
    for n in (1, 4, 5, 15):
        x = np.arange(n, dtype=np.float32)
        jax.tree.map(np.testing.assert_array_equal, program(x), looked_up(x))


@pytest.mark.filterwarnings("error")
def test_equalities_that_always_hold() -> None:
    """JAX takes them to be false, as it compares what is left of a difference of sums."""

    def rounded(x: Any) -> Any:
        n = x.shape[0]
        rest = -(-n // 4) * 4 - n
        return jnp.pad(x, (0, rest)) if -n % 4 == rest and max(n, 1) == n else -x

    program = shlo_disc.compile(rounded, args=(("n", "float32"),))
    for n in (1, 3, 4, 5):
        x = np.ones(n, np.float32)
        np.testing.assert_array_equal(program(x), np.pad(x, (0, -n % 4)))
    stated = ["m + n >= 7", "m + n <= 7"]
    sums = lambda x, y: 2 * x if x.shape[0] + y.shape[0] == 7 else -x  # noqa: E731
    program = shlo_disc.compile(sums, args=(("n", "float32"), ("m", "float32")), constraints=stated)
    np.testing.assert_array_equal(program(np.ones(3, np.float32), np.ones(4, np.float32)), 2 * THREE)


def test_remainders_that_jax_asks_for() -> None:
    """JAX computes something else by the answer, where it takes an equality with 1 or 0 for a chance to do less."""
    frequencies = lambda x: jnp.fft.rfftfreq(x.shape[0])  # noqa: E731
    with pytest.warns(UserWarning, match=r"mod\(n, 2\) == 0 to be false") as warned:
        program = shlo_disc.compile(frequencies, args=(("n", "float32"),))
    assert {each.filename for each in warned} == {__file__}
    np.testing.assert_array_equal(program(THREE), np.fft.rfftfreq(3).astype(np.float32))
    with pytest.raises(ShapeError, match=r"mod\(n, 2\) != 0"):
        program(np.ones(4, np.float32))
    with pytest.raises(ProgramError, match=r"test_size_equalities.py:\d+: the truth value of the size mod\(n, 8\)"):
        shlo_disc.compile(lambda x: jnp.packbits(x > 0), args=(("n", "float32"),))
    decided = shlo_disc.jit(frequencies, dynamic="n", compile_once=False)
    for n in (3, 4, 5, 8, 4):
        np.testing.assert_array_equal(decided(np.ones(n, np.float32)), np.fft.rfftfreq(n).astype(np.float32))
    assert decided.compile_count == 2


@pytest.mark.filterwarnings("ignore:JAX takes")
def test_equalities_that_jax_computes_by() -> None:
    gradient = shlo_disc.compile(jax.grad(lambda a: jnp.linalg.det(a) ** 2), args=(("n, n", "float32"),))
    for n in (2, 3, 4, 7):
        a = np.random.default_rng(n).standard_normal((n, n)).astype(np.float32)
        wanted = jax.grad(lambda a: jnp.linalg.det(a) ** 2)(a)
        np.testing.assert_allclose(gradient(a), wanted, atol=2e-5 * float(abs(wanted).max()))
    with pytest.raises(ShapeError, match="n != 1"):
        gradient(np.ones((1, 1), np.float32))
    equal = shlo_disc.compile(jnp.array_equal, args=(("n", "float32"), ("m", "float32")))
    assert not equal(ONE, THREE)
    with pytest.raises(ShapeError, match="n != m"):
        equal(THREE, THREE)


def centred(x: Any) -> Any:
    for axis in range(x.ndim):
        if x.shape[axis] == 1:
            continue
        x = x - x.mean(axis, keepdims=True)
    return x


def is_one(size: Any) -> bool:
    return bool(size == 1)


SEVERAL: dict[str, tuple[Callable[..., Any], str, tuple[int, ...]]] = {
    "axes in a loop": (centred, "n, m", (2, 1)),
    "two sizes of one": (lambda x: 2 * x if x.shape[0] == 1 or x.shape[0] == 2 else -x, "n", (2,)),
    "a tuple": (lambda x: 2 * x if x.shape[0] in (1, 2) else -x, "n", (2,)),
    "any of the sizes": (lambda x: 2 * x if any(d == 1 for d in x.shape) else -x, "n, m", (3, 1)),
    "in a shape": (lambda x: 2 * x if 1 in x.shape else -x, "n, m", (3, 1)),
    "a helper": (lambda x: 2 * x if is_one(x.shape[0]) or is_one(x.shape[1]) else -x, "n, m", (3, 1)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SEVERAL)
def test_each_equality_of_a_line_is_checked(name: str) -> None:
    """The first one is false for the sizes of the call, another is true."""
    function, dynamic, sizes = SEVERAL[name]
    with pytest.raises(ProgramError, match="but it is true for the sizes of this call") as caught:
        shlo_disc.jit(function, dynamic=dynamic)(np.ones(sizes, np.float32))
    assert caught.value.code == "DISC-P110"


@pytest.mark.filterwarnings("error")
def test_equalities_that_are_decided() -> None:
    for constraint in ("n >= 2", "n == 1"):
        shlo_disc.compile(special, args=(("n", "float32"),), constraints=(constraint,))
    shlo_disc.compile(lambda x: x if x.shape[1] == 4 and x.shape[0] == x.shape[0] else -x, args=(("n, 4", "float32"),))
    shlo_disc.compile(lambda x: x if x.shape[0] + 1 == x.shape[0] else -x, args=(("n", "float32"),))
    shlo_disc.compile(lambda x: x if x.shape[0] == "n" else -x, args=(("n", "float32"),))


@pytest.mark.filterwarnings("error")
def test_what_the_warning_says_to_write() -> None:
    chosen = shlo_disc.compile(
        lambda x: jax.lax.cond(jnp.asarray(x.shape[0]) == 1, lambda: 2 * x, lambda: -x), args=(("n", "float32"),)
    )
    np.testing.assert_array_equal(chosen(ONE), 2 * ONE)
    np.testing.assert_array_equal(chosen(THREE), -THREE)
    with pytest.raises(ProgramError, match="cannot decide n <= 1"):
        shlo_disc.compile(lambda x: 2 * x if x.shape[0] <= 1 else -x, args=(("n", "float32"),))
    fixed = shlo_disc.compile(special, args=(("n", "float32"),), constraints=("n >= 2",))
    np.testing.assert_array_equal(fixed(THREE), -THREE)
    with pytest.raises(shlo_disc.ShapeError):
        fixed(ONE)


def test_libraries_may_compare_sizes() -> None:
    """JAX and NumPy do, as do dicts."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shlo_disc.compile(lambda x, y: jnp.einsum("nd,md->nm", x, y), args=(("n, 4", "float32"), ("m, 4", "float32")))
        shlo_disc.compile(lambda x: x + {x.shape[0]: 1.0}[x.shape[0]], args=(("n", "float32"),))


def test_an_equality_that_holds_for_the_first_call() -> None:
    """`jit` has the sizes of that call, by symbols alone or with a factor and a constant."""
    cases: list[tuple[Callable[..., Any], Any, str]] = [
        (special, "n", "n == 1 .* n = 1: choose by"),
        (lambda x: 2 * x if x.shape[0] % 2 == 1 else -x, "n", r"mod\(n, 2\) == 1 .* n = 1: choose by"),
        (lambda x: 2 * x if x.shape[0] == 1 else -x, "2*n - 1", r"2\*n - 1 == 1 .* n = 1: choose by"),
    ]
    for function, dynamic, text in cases:
        with pytest.raises(ProgramError, match=f"test_size_equalities.py:.*{text}"):
            shlo_disc.jit(function, dynamic=dynamic)(ONE)
    with pytest.raises(ProgramError, match="n == m .* m = 3, n = 3: choose by"):
        shlo_disc.jit(lambda x, y: x + y if x.shape == y.shape else x, dynamic=("n", "m"))(THREE, THREE)


def test_advice_by_order_only_at_a_bound() -> None:
    cases: list[tuple[Callable[..., Any], bool]] = [
        (special, True),
        (lambda x: x if x.shape[0] == 3 else -x, False),
        (lambda x: x if x.shape[0] % 2 == 0 else -x, True),
    ]
    for function, is_bound in cases:
        with pytest.warns(UserWarning) as warned:
            shlo_disc.compile(function, args=(("n", "float32"),))
        assert ("means the same" in str(warned[0].message)) == is_bound


def halved(x: Any) -> Any:
    r = x.shape[0] % 2
    return x[:-1] if r else x


TRUTHS: dict[str, Callable[..., Any]] = {
    "if": halved,
    "not": lambda x: x if not x.shape[0] % 2 else x[:-1],
    "and": lambda x: x[:-1] if x.shape[0] % 2 and x.shape[0] >= 1 else x,
    "or": lambda x: jnp.zeros(x.shape[0] // 2 or 1),
    "bool": lambda x: x if bool(x.shape[0] - 1) else -x,
    "all": lambda x: x if all((x.shape[0], x.shape[0] - 1)) else -x,
}


@pytest.mark.parametrize("name", TRUTHS)
def test_a_truth_value_that_is_not_decided(name: str) -> None:
    function = TRUTHS[name]
    text = r"test_size_equalities\.py:\d+: the truth value of the size"
    with pytest.raises(ProgramError, match=text) as caught:
        shlo_disc.compile(function, args=(("n", "float32"),))
    assert caught.value.code == "DISC-P110"
    with pytest.raises(ProgramError, match=text):
        shlo_disc.jit(function, dynamic="n")(THREE)
    with pytest.raises(ProgramError, match=text):
        _ = shlo_disc.jit(function, dynamic="n").trace(THREE).jaxpr


@pytest.mark.filterwarnings("error")
def test_truth_values_that_are_decided() -> None:
    for size, constraint, count in (
        ("n", "mod(n, 2) <= 0", 4), ("n", "mod(n, 2) == 0", 4), ("n", "mod(n, 2) >= 1", 3), ("2*n", "", 4),
        ("2*n + 1", "", 3),
    ):  # fmt: skip
        compiled = shlo_disc.compile(halved, args=((size, "float32"),), constraints=(constraint,) if constraint else ())
        x = np.arange(count, dtype=np.float32)
        np.testing.assert_array_equal(compiled(x), x[: count // 2 * 2])
    shlo_disc.compile(lambda x: x if x.shape[0] and all(x.shape) else 1 / 0, args=(("n, m", "float32"),))


def test_constraints_that_the_errors_propose() -> None:
    differing: list[Callable[..., Any]] = [
        lambda x: x if x.shape[0] - 2 else -x, lambda x: x if 2 * x.shape[0] - 4 else -x,
        lambda x: x if x.shape[0] // 2 else -x, lambda x: x if x.shape[0] == 1 else -x,
        lambda x: x if x.shape[0] + 1 == 3 else -x, lambda x: x if x.shape[0] // 3 == 0 else -x,
    ]  # fmt: skip
    for function in differing:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            text = ""
            try:
                shlo_disc.compile(function, args=(("n", "float32"),))
            except ProgramError as error:
                text = str(error)
        found = re.findall(r'constraints=\("(.*?)",\)', text or str(caught[0].message))
        assert found
        for constraint in found:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                shlo_disc.compile(function, args=(("n", "float32"),), constraints=(constraint,))


def test_what_the_error_of_a_truth_value_says_to_write() -> None:
    with pytest.raises(ProgramError) as caught:
        shlo_disc.compile(halved, args=(("n", "float32"),))
    even = re.search(
        r'constraints=(\("mod\(n, 2\) == 0",\)) or constraints=(\("mod\(n, 2\) >= 1",\))', str(caught.value)
    )
    named = re.search(r'name the size "(2\*n)"', str(caught.value))
    assert even and named and "jax.numpy.asarray(size) != 0" in str(caught.value)
    assert "jax.core.max_dim(size, 1) in place of `size or 1`" in str(caught.value)
    four = np.ones(4, np.float32)
    for constraints, x in zip(map(ast.literal_eval, even.groups()), (four, THREE), strict=True):
        shlo_disc.compile(halved, args=(("n", "float32"),), constraints=constraints)(x)
    np.testing.assert_array_equal(shlo_disc.compile(halved, args=((named[1], "float32"),))(four), four)
    zeros = shlo_disc.compile(lambda x: jnp.zeros(jax.core.max_dim(x.shape[0] // 2, 1)), args=(("n", "float32"),))
    assert zeros(ONE).shape == zeros(THREE).shape == (1,)
    chosen = shlo_disc.compile(
        lambda x: jax.lax.cond(jnp.asarray(x.shape[0] % 2) != 0, lambda: 2 * x, lambda: -x), args=(("n", "float32"),)
    )
    np.testing.assert_array_equal(chosen(THREE), 2 * THREE)
    np.testing.assert_array_equal(chosen(four), -four)


def test_errors_of_sizes_come_before_those_of_static_arguments() -> None:
    """A static argument of a function of jax.jit may look like the shape of one that is not."""
    function = jax.jit(lambda x, mode: halved(x) if mode == "relu" else x[: len(x)], static_argnums=1)
    for mode, code in (("relu", "DISC-P110"), ("b, 4", "DISC-P111")):
        with pytest.raises(ProgramError) as caught:
            shlo_disc.compile(function, args=(("n", "float32"), mode))
        assert caught.value.code == code


def test_a_size_for_a_number_where_the_source_is_not_known() -> None:
    """As of programs on standard input: the advice is general."""
    names: dict[str, Any] = {}
    exec("def f(x):\n    return x * len(x)", names)  # noqa: S102
    with pytest.raises(ProgramError, match=r"^<string>:2: .* in place of len\(x\) write x\.shape\[0\]") as caught:
        shlo_disc.compile(names["f"], args=(("n", "float32"),))
    assert caught.value.code == "DISC-P111"
    np.testing.assert_array_equal(
        shlo_disc.compile(lambda x: x * x.shape[0], args=(("n", "float32"),))(THREE), 3 * THREE
    )
