# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that hold an error about a size back do not silently take their other way for every size."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import ProgramError

NUMBERS: dict[str, Callable[[Any], Any]] = {
    "int": int,
    "float": float,
    "index": operator.index,
    "range": lambda n: len(range(n)),
    "math": math.sqrt,
    "round": round,
    "abs": abs,
    "bits": lambda n: n >> 1,
    "bits on the right": lambda n: 1 << n,
    "complement": lambda n: -~n,
    "format": lambda n: int(f"{n:d}"),
    "text": lambda n: int(str(n)),
    "text as float": lambda n: float(f"{n}"),
    "zeros": lambda n: np.zeros(n).shape[0],
    "zeros of a tuple": lambda n: np.zeros((n, 2)).shape[0],
    "element of a list": lambda n: [0, 1, 2, 3, 4, 5][n],
    "slice of a list": lambda n: len([0, 1, 2, 3, 4, 5][:n]),
    "element of an array": lambda n: float(np.arange(9)[n]),
    "slice of an array": lambda n: len(np.arange(9)[:n]),
}


def held(number: Callable[[Any], Any], kind: type[Exception] = Exception) -> Callable[[Any], Any]:
    """A function that has the number 2 where the other cannot be had."""

    def scaled(x: Any) -> Any:
        try:
            k = number(x.shape[0])
        except kind:
            k = 2
        return x * k

    return scaled


@pytest.mark.parametrize("name", NUMBERS)
def test_a_wanted_number_does_not_take_the_fallback(name: str) -> None:
    scaled = held(NUMBERS[name])
    with pytest.raises(ProgramError, match=r"test_held_errors.py:\d+: .* holds this error back, by try"):
        shlo_disc.compile(scaled, args=(("n", "float32"),))
    compiled = shlo_disc.jit(scaled, dynamic=("n",), compile_once=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in (4, 3, 5):
            x = np.ones(n, np.float32)
            np.testing.assert_allclose(compiled(x), scaled(x), rtol=1e-6)


def test_suppressed_errors_and_numbers_computed_of_sizes() -> None:
    def suppressed(x: Any) -> Any:
        k = 2
        with contextlib.suppress(TypeError):
            k = operator.index(x.shape[0])
        return x * k

    with pytest.raises(ProgramError, match="holds this error back"):
        shlo_disc.compile(suppressed, args=(("n", "float32"),))
    for number, advice in (
        (lambda n: int(n * 0.5), "integer arithmetic keeps a size a size"),
        (lambda n: len(np.arange(n)), "write jax.numpy.arange in place of np.arange"),
    ):
        with pytest.raises(jax.errors.ConcretizationTypeError) as caught:
            shlo_disc.compile(held(number, TypeError), args=(("n", "float32"),))
        assert advice in caught.value.__notes__[-1]
        assert "holds this error back" in caught.value.__notes__[-1]


def test_comparisons_and_divisions() -> None:
    def branched(x: Any) -> Any:
        try:
            return x * 3 if x.shape[0] > 4 else -x
        except Exception:
            return x

    with pytest.raises(ProgramError, match=r"cannot decide n > 4 .* holds this error back"):
        shlo_disc.compile(branched, args=(("n", "float32"),))
    with pytest.raises(ProgramError, match="holds this error back"):
        shlo_disc.compile(
            lambda x: x * held(lambda _: x.reshape(-1, 3).shape[1])(jnp.ones(1)), args=(("n", "float32"),)
        )
    compiled = shlo_disc.jit(branched, dynamic=("n",), compile_once=False)
    assert [float(compiled(np.ones(n, np.float32))[0]) for n in (4, 5, 6)] == [-1, 3, 3]
    assert compiled.compile_count == 2


def test_a_key_that_is_not_there_asks_whether_the_size_is_another() -> None:
    def scaled(x: Any) -> Any:
        try:
            k = {3: 5}[x.shape[0]]
        except KeyError:
            k = 2
        return x * k

    with pytest.warns(UserWarning, match="takes n == 3 to be false"):
        executable = shlo_disc.compile(scaled, args=(("n", "float32"),))
    np.testing.assert_array_equal(executable(np.ones(4, np.float32)), np.full(4, 2))
    with pytest.raises(shlo_disc.ShapeError):
        executable(np.ones(3, np.float32))
    compiled = shlo_disc.jit(scaled, dynamic=("n",), compile_once=False)
    assert [float(compiled(np.ones(n, np.float32))[0]) for n in (4, 3, 5)] == [2, 5, 2]


LIBRARY = """
import operator

def size(n):
    try:
        return operator.index(n)
    except TypeError:
        return n
"""


@pytest.mark.filterwarnings("error")
def test_libraries_tell_sizes_from_numbers(tmp_path: Any) -> None:
    file = tmp_path / "site-packages" / "library.py"
    file.parent.mkdir()
    file.write_text(LIBRARY)
    spec = importlib.util.spec_from_file_location("library", file)
    assert spec is not None and spec.loader is not None
    library: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(library)
    executable = shlo_disc.compile(lambda x: x + jnp.zeros(library.size(x.shape[0])), args=(("n", "float32"),))
    np.testing.assert_array_equal(executable(np.ones(3, np.float32)), np.ones(3))


@pytest.mark.filterwarnings("error")
def test_values_of_arrays_and_errors_that_are_no_question() -> None:
    def of_values(x: Any) -> Any:
        try:
            k = float(x.sum())
        except jax.errors.ConcretizationTypeError:
            k = 2.0
        try:
            k += float(jnp.ones(3).sum())
        except jax.errors.ConcretizationTypeError:
            k += 1.0
        return x * k

    x = np.ones(3, np.float32)
    np.testing.assert_array_equal(shlo_disc.compile(of_values, args=(("n", "float32"),))(x), jax.jit(of_values)(x))


@pytest.mark.filterwarnings("error")
def test_sets_of_lengths_in_flax() -> None:
    linen = pytest.importorskip("flax.linen")
    layer = linen.RNN(linen.LSTMCell(4))
    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype(np.float32)
    variables = layer.init(jax.random.key(0), x)
    executable = shlo_disc.compile(lambda x: layer.apply(variables, x), args=(("b, t, 8", "float32"),))
    np.testing.assert_allclose(executable(x), layer.apply(variables, x), rtol=1e-4, atol=1e-5)
