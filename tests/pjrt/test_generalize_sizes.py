# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of no argument, and what is equal at some sizes by chance: few programs for eight sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.fft
import numpy as np
import pytest
from jax import lax

from shlo_disc.driver.ledger.book import LEDGER
from shlo_disc.runtime.native_module import plugin_programs
from tests.pjrt.streams import Stream, artifact

SIZES = (9, 10, 11, 12, 13, 14, 17, 20)
KEY = np.array([0, 7], np.uint32)


def draw(*shape: int) -> np.ndarray:
    """Normal numbers."""
    return np.random.default_rng(len(shape)).standard_normal(shape, dtype=np.float32)


def other(n: int) -> int:
    """A size that no expression of n gives."""
    return n * n % 7 + 2


def served(make: Callable[[int], tuple[Callable[..., Any], tuple[Any, ...]]]) -> list[str]:
    """Counts of how the programs of eight sizes are served, with the results of XLA."""
    stream, how = Stream(jnp.sin), []
    for n in SIZES:
        stream.function, arguments = make(n)
        how.append(stream.check(*arguments))
    assert not stream.reasons
    return how


CONSTRUCTORS: dict[str, Callable[[int], tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    "zeros": lambda n: (lambda: jnp.zeros(n), ()),
    "eye": lambda n: (lambda: jnp.eye(n), ()),
    "linspace": lambda n: (lambda a, b: jnp.linspace(a, b, n), (np.float32(0), np.float32(1))),
    "split": lambda n: (lambda key: jax.random.split(key, n), (KEY,)),
    "uniform and ones": lambda n: (lambda key: (jax.random.uniform(key, (n, 4)), jnp.ones((4, n))), (KEY,)),
}
STATIC: dict[str, Callable[[int], tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    "normal": lambda n: (lambda key: jax.random.normal(key, (n, other(n))), (KEY,)),
    "top_k": lambda n: (lambda x: lax.top_k(x, other(n)), (draw(n),)),
    "start": lambda n: (lambda x: x[other(n) - 1 :], (draw(n),)),
    "both bounds": lambda n: (lambda x: x[n // 4 : n // 4 + other(n)], (draw(n),)),
    "roll": lambda n: (lambda x: jnp.roll(x, other(n)), (draw(n),)),
    "update": lambda n: (lambda x: jnp.zeros(n + other(n)).at[2 : 2 + n].set(x), (draw(n),)),
}


@pytest.mark.parametrize("name", [n if n == "zeros" else pytest.param(n, marks=pytest.mark.slow) for n in CONSTRUCTORS])
def test_a_size_of_no_argument_is_a_symbol(name: str) -> None:
    assert served(CONSTRUCTORS[name]) == ["compiled", "compiled_symbolic", *["instance"] * 6]


@pytest.mark.parametrize("name", [n if n == "start" else pytest.param(n, marks=pytest.mark.slow) for n in STATIC])
def test_a_size_that_is_no_expression_of_others_is_a_symbol(name: str) -> None:
    """Two samples suggest an expression, which another one refutes."""
    how = served(STATIC[name])
    assert how.count("compiled") == 1 and how.count("compiled_symbolic") <= 2, how


def test_a_miss_where_a_function_is_called_twice() -> None:
    """The number of a program of which JAX shares a function between two calls has its place."""
    rolled = lambda k: lambda x, y: (jnp.roll(x, 2), jnp.roll(y, 2), jnp.zeros(k))  # noqa: E731
    stream = Stream(rolled(3))
    for n, m in ((9, 4), (10, 6)):
        stream.check(draw(n), draw(m))
    miss = stream.symbolic[-1].explain_miss(artifact(rolled(4), [draw(9), draw(9)]))
    assert miss is not None and "is 4, where the symbolic program has 3" in miss.text


def test_constants_that_are_one_by_chance() -> None:
    """Two constants that are one at 4, as JAX hands them out, or two."""
    stream = Stream(lambda x: (x.sum() / x.shape[0], (x * 4.0).sum()))
    assert [stream.check(draw(n)) for n in (4, 6, 9)] == ["compiled", "compiled_symbolic", "instance"]


def test_a_padding_to_a_multiple() -> None:
    """Samples that are all short of it by one, which the reshape behind it tells apart from a padding of one."""
    stream = Stream(lambda x: jnp.pad(x, (0, -x.shape[0] % 3)).reshape(3, -1).sum(0))
    assert [stream.check(draw(n)) for n in (5, 11, 8, 10)] == [
        "compiled", "compiled_symbolic", "instance", "instance"]  # fmt: skip


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_a_kernel_that_changes_with_the_array(mode: str) -> None:
    """Both ends are padded by one expression of the kernel, or are a half of it each."""
    stream = Stream(lambda x, w: jnp.convolve(x, w, mode))
    how = [stream.check(draw(n), draw(k)) for n, k in ((6, 5), (9, 7), (8, 3), (5, 4), (12, 2), (4, 1))]
    assert how.count("compiled") == 1 and how.count("compiled_symbolic") <= 1 + (mode == "same"), how


@pytest.mark.parametrize("transform", [jax.scipy.fft.dct, jax.scipy.fft.idct, jnp.fft.rfft2, jnp.fft.fft])
def test_transforms_of_squares(transform: Callable[..., Any]) -> None:
    """A length is that of the lines, whichever other sizes it equals in the samples."""
    stream = Stream(lambda x: transform(jnp.concatenate([x[:, ::2], x[:, 1::2]], 1)))
    how = [stream.check(draw(n, n)) for n in (5, 8, 7, 10)]
    assert how == ["compiled", "compiled_symbolic", "instance", "instance"]


def test_an_array_in_the_middle_of_a_padding() -> None:
    """Each end has a half of what the result's size leaves."""

    def centred(x: Any) -> Any:
        left = 64 - x.shape[0]
        return jnp.pad(x, (left // 2, left - left // 2))

    stream = Stream(centred)
    how = [stream.check(draw(n)) for n in (5, 7, 4, 1, 18)]
    assert how == ["compiled", "compiled_symbolic", "instance", "instance", "instance"]


def test_clearing_forgets_the_functions() -> None:
    LEDGER.explain(artifact(jnp.sin, [draw(3)]))
    assert LEDGER.rows()
    import shlo_disc.pjrt.observation  # noqa: F401  # what tells the table whom to clear

    plugin_programs().clear()
    assert not LEDGER.rows()
