# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`shlo_disc.jit`: one compilation for every size, and the promise to keep it at one."""

from __future__ import annotations

import threading
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import RecompileError


def mlp(x: Any, w: Any) -> Any:
    """Two products with something between them."""
    return jnp.tanh(x @ w) @ w.T


def test_jit_compiles_once_for_fifty_sizes() -> None:
    traces = []

    @shlo_disc.jit(dynamic="b, ...")
    def rows(x: Any) -> Any:
        """Sums."""
        traces.append(x.shape)
        return jnp.exp(x).sum(1)

    assert (rows.__name__, rows.__doc__, rows.compile_count) == ("rows", "Sums.", 0)
    with pytest.raises(ValueError, match="has not been called yet"):
        _ = rows.executable
    for size in range(1, 51):
        x = np.linspace(-1, 1, size * 7, dtype=np.float32).reshape(size, 7)
        np.testing.assert_allclose(rows(x), np.exp(x).sum(1), rtol=1e-5)
    assert rows.compile_count == len(traces) == 1
    assert rows.executable.compile_count == 1


def test_jit_with_one_specification_for_each_argument() -> None:
    function = shlo_disc.jit(mlp, dynamic=("b, ...", None), constraints=("b <= 64",))
    w = np.ones((32, 48), np.float32)
    for size in (1, 5, 64):
        assert function(np.ones((size, 32), np.float32), w).shape == (size, 32)
    with pytest.raises(RecompileError, match="b <= 64"):
        function(np.ones((65, 32), np.float32), w)
    assert function.compile_count == 1


@pytest.mark.parametrize(
    "argument",
    [np.ones((3, 8), np.float32), np.ones((3, 7), np.float16), np.ones(3, np.float32)],
    ids=["size", "dtype", "rank"],
)
def test_compile_once_is_a_promise(argument: np.ndarray) -> None:
    function = shlo_disc.jit(lambda x: x * 2, dynamic="b, ...")
    function(np.ones((2, 7), np.float32))
    with pytest.raises(RecompileError, match="^this call does not fit the one compiled program: "):
        function(argument)
    assert function.compile_count == 1
    again = shlo_disc.jit(lambda x: x * 2, dynamic="b, ...", compile_once=False)
    again(np.ones((2, 7), np.float32))
    if argument.ndim == 2:
        np.testing.assert_array_equal(again(argument), argument * 2)
        assert again.compile_count == 2
        again(np.ones((9, 7), np.float32))
        assert again.compile_count == 2


def test_first_calls_from_many_threads_compile_once() -> None:
    function = shlo_disc.jit(lambda x: jnp.tanh(x), dynamic="b")
    failures: list[BaseException] = []

    def call(size: int) -> None:
        try:
            np.testing.assert_allclose(function(np.ones(size, np.float32)), np.tanh(np.ones(size)), rtol=1e-6)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=call, args=(size,)) for size in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert function.compile_count == 1
