# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs of programs whose kernels are told tensor maps: as graphs, where a map cannot be made, and on several GPUs."""

from __future__ import annotations

import functools
import gc
import threading
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import DeviceError
from shlo_disc.runtime import Client
from tests.gpu.emulated import fresh_client, install, loaded
from tests.gpu.marks import needs_mock_driver
from tests.gpu.mock_blas import MockBlas
from tests.gpu.mock_driver import MockDriver
from tests.gpu.mock_streams import INVALID_VALUE, OUT_OF_MEMORY, Refused
from tests.gpu.test_hopper import by_maps
from tests.gpu.test_hopper_epilogues import wide
from tests.gpu.test_products import blas as blas
from tests.ir.gpu_cases import EXACT, assert_close
from tests.run.op_check import random_array

pytestmark = needs_mock_driver

BF16, F32 = "bfloat16", "float32"


@pytest.fixture
def driver(driver: MockDriver) -> Iterator[MockDriver]:
    """The driver; graphs of other tests have ended."""
    gc.collect()
    yield driver


def perceptron(x: Any, w: Any, v: Any) -> Any:
    return wide(jax.nn.gelu(wide(x, w)).astype(jnp.bfloat16), v) + 1


@functools.cache
def program() -> shlo_disc.Executable:
    arguments = (("b, 8", BF16), ("8, 24", BF16), ("24, 16", BF16))
    return shlo_disc.compile(perceptron, target="cuda:sm_90a", options=EXACT, args=arguments)


def given(b: int, seed: int = 0) -> list[np.ndarray]:
    return [random_array(shape, BF16, seed + i) for i, shape in enumerate(((b, 8), (8, 24), (24, 16)))]


def check(found: Any, arguments: list[np.ndarray]) -> None:
    assert_close(found, jax.jit(perceptron)(*arguments), 5e-3)


# ---- graphs ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_replay_reads_what_is_there_now(driver: MockDriver) -> None:
    client = fresh_client()
    run = loaded(program(), client)
    for seed in range(6):
        check(run(*given(5, seed)), given(5, seed))
    assert client.device(0).launch_stats()["replays"] >= 3
    assert by_maps(driver) == [True] * 12


@pytest.mark.slow
def test_arguments_elsewhere_have_other_maps(driver: MockDriver) -> None:
    """A graph holds the maps that it was captured with, so it is used for the same addresses only."""
    client = fresh_client()
    run = loaded(program(), client)
    all_ = [given(5, seed) for seed in (0, 10, 20)]
    there: list[list[Any]] = [[client.buffer_from_host(array) for array in one] for one in all_]
    for number in (0, 0, 0, 1, 0, 1, 1, 2, 0, 2, 1, 2, 0):
        found = run.execute(there[number], output="buffer")
        check(np.asarray(found), all_[number])
        del found
    assert client.device(0).launch_stats()["graphs"] >= 3
    assert len({one.address for one in driver.maps}) >= 3 * 3
    assert set(by_maps(driver)) == {True}


@pytest.mark.slow
def test_arguments_that_take_turns(driver: MockDriver) -> None:
    """The same shapes at the same addresses, but one time as the left side and one time as the right one."""
    client = fresh_client()
    run = loaded(shlo_disc.compile(lambda x, y: (wide(x, y) + 1, wide(y, x)), target="cuda:sm_90a", options=EXACT,
                                   args=(("n, n", BF16), ("n, n", BF16))), client)  # fmt: skip
    host = [random_array((24, 24), BF16, seed) for seed in range(2)]
    there: list[Any] = [client.buffer_from_host(array) for array in host]
    for turn in (0, 0, 0, 1, 1, 1, 0, 1):
        x, y = (host[turn ^ i].astype(np.float32) for i in range(2))
        assert_close(run(there[turn], there[1 - turn]), (x @ y + 1, y @ x), 2e-5)
    assert client.device(0).launch_stats()["replays"] >= 2


# ---- maps that cannot be made ---------------------------------------------------------------------------------------


class Refusing(list):
    """The maps of a driver that refuses one of them, by its number."""

    def __init__(self, number: int):
        self.left = number

    def append(self, one: Any) -> None:
        self.left -= 1
        if self.left < 0:
            raise Refused(INVALID_VALUE)
        super().append(one)


@pytest.mark.parametrize("number", [0, 1], ids=["lhs", "rhs"])
def test_what_the_driver_does_not_describe_takes_the_other_kernel(
    driver: MockDriver, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = (("m, k", BF16), ("k, n", BF16), ("n", F32))
    run = loaded(_biased(texts), fresh_client())
    arguments = [random_array(s, t, 0) for s, t in (((9, 16), BF16), ((16, 8), BF16), ((8,), F32))]
    for maps in (Refusing(number), []):
        monkeypatch.setattr(driver, "maps", maps)
        assert_close(run(*arguments), jax.jit(_bias)(*arguments), 2e-5)
        assert by_maps(driver) == [not isinstance(maps, Refusing)]


@pytest.mark.slow
def test_other_errors_are_told(driver: MockDriver) -> None:
    run = loaded(program(), fresh_client())
    driver.fails["cuTensorMapEncodeTiled"] = OUT_OF_MEMORY
    with pytest.raises(DeviceError, match="describe a matrix to the GPU"):
        run(*given(3))
    check(run(*given(3)), given(3))


@pytest.mark.parametrize("sizes", [(4, 1, 8), (1, 9, 8), (1, 1, 8), (3, 9, 8)], ids=str)
def test_nothing_to_multiply(driver: MockDriver, sizes: tuple[int, int, int]) -> None:
    """Sums over nothing are zeros, which something follows; results without elements are not computed."""
    texts = (("m - 1, k - 1", BF16), ("k - 1, n", BF16), ("n", F32))
    m, k, n = sizes
    run = loaded(_biased(texts), fresh_client())
    arguments = [random_array(s, t, 0) for s, t in (((m - 1, k - 1), BF16), ((k - 1, n), BF16), ((n,), F32))]
    assert_close(run(*arguments), jax.jit(_bias)(*arguments), 2e-5)
    assert by_maps(driver) == ([] if m == 1 else [k > 1])


def _bias(x: Any, w: Any, b: Any) -> Any:
    return wide(x, w) + b


@functools.cache
def _biased(texts: tuple[tuple[str, str], ...]) -> shlo_disc.Executable:
    return shlo_disc.compile(_bias, target="cuda:sm_90a", options=EXACT, args=texts)


# ---- buffers, libraries, GPUs ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_residual_that_is_donated(driver: MockDriver) -> None:
    """The result takes its place, each element after it has been read."""
    function = jax.jit(lambda x, w, r: wide(x, w) + r, donate_argnums=2)
    arguments = (("m, k", BF16), ("k, n", BF16), ("m, n", F32))
    client = fresh_client()
    run = loaded(shlo_disc.compile(function, target="cuda:sm_90a", options=EXACT, args=arguments), client)
    for m, k, n in ((65, 8, 136), (1, 16, 8), (3, 7, 5)):
        x, w, r = random_array((m, k), BF16, 0), random_array((k, n), BF16, 1), random_array((m, n), F32, 2)
        want = x.astype(np.float32) @ w.astype(np.float32) + r
        there: list[Any] = [client.buffer_from_host(array) for array in (x, w, r)]
        found = run.execute(there, output="buffer")
        assert_close(np.asarray(found), want, 2e-5)
        assert by_maps(driver) == [k % 8 == n % 8 == 0]


def test_a_library_goes_first(driver: MockDriver, blas: MockBlas) -> None:
    run = loaded(program(), fresh_client(uses_libraries=True, fuses_products=False))
    check(run(*given(3)), given(3))
    assert len(blas.products) == 2 and by_maps(driver) == []
    blas.refuses = True
    run = loaded(program(), fresh_client(uses_libraries=True, fuses_products=False))
    check(run(*given(3)), given(3))
    assert by_maps(driver) == [True, True]


def test_an_artifact_of_a_file(driver: MockDriver, tmp_path: Any) -> None:
    path = tmp_path / "program.shlodisc"
    path.write_bytes(program().artifact.serialize())
    install(program())
    check(fresh_client().load(path.read_bytes(), trust=True)(*given(4)), given(4))
    assert by_maps(driver) == [True, True]


def test_threads_on_several_gpus(driver: MockDriver) -> None:
    """Each thread has maps of its own, and each GPU its kernels, which are allowed shared memory."""
    clients: list[Client] = [fresh_client(), fresh_client()]
    runs = [loaded(program(), client) for client in (*clients, clients[0])]
    wrong: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for b in range(number + 1, number + 4):
                check(runs[number](*given(b, number)), given(b, number))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert by_maps(driver) == [True] * 18
