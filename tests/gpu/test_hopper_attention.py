# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of whole programs for sm_90a through the mock driver: by the kernel with tensor maps, and by the other."""

from __future__ import annotations

import copy
import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import DiscError
from tests.gpu.emulated import fresh_client, install, loaded
from tests.gpu.marks import needs_mock_driver
from tests.gpu.mock_driver import MockDriver
from tests.gpu.test_hopper_runs import Refusing
from tests.ir.gpu_cases import EXACT, assert_close
from tests.run.op_check import random_array

pytestmark = needs_mock_driver

BF16 = "bfloat16"


def attention(q: Any, k: Any, v: Any) -> Any:
    """Causal attention of [batch, rows, heads, elements]."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * 0.25
    row, column = (jax.lax.broadcasted_iota(jnp.int32, scores.shape, axis) for axis in (2, 3))
    weights = jax.nn.softmax(jnp.where(column <= row, scores, -jnp.inf)).astype(q.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def without_mask(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(q.dtype), v)


def shorter(q: Any, k: Any, v: Any) -> Any:
    """Attention of heads without their first element: these begin at no multiples of 16 bytes."""
    return attention(q[..., 1:], k[..., 1:], v[..., 1:])


def split(x: Any) -> Any:
    """Attention of queries, keys and values that lie together."""
    return attention(*(part.reshape(*part.shape[:2], 2, 16) for part in jnp.split(x * 2, 3, axis=-1)))


FUNCTIONS = {"attention": attention, "without mask": without_mask, "shorter": shorter}


@functools.cache
def program(name: str, depth: int, target: str = "cuda:sm_90a") -> shlo_disc.Executable:
    arguments = tuple((f"b, {size}, 2, {depth}", BF16) for size in "qkk")
    return shlo_disc.compile(FUNCTIONS[name], target=target, options=EXACT, args=arguments)


def arguments(b: int, q: int, k: int, depth: int) -> list[np.ndarray]:
    return [random_array((b, size, 2, depth), BF16, i) for i, size in enumerate((q, k, k))]


def by_maps(driver: MockDriver) -> list[bool]:
    """Flags of the launched attentions: true for each that loads by tensor maps."""
    found = [name.endswith("_by_maps") for name in driver.launches if name.startswith("attention")]
    driver.launches.clear()
    return found


def check(name: str, b: int, q: int, k: int, depth: int, client: Any = None) -> None:
    given = arguments(b, q, k, depth)
    found = loaded(program(name, depth), client or fresh_client())(*given)
    assert_close(found, jax.jit(FUNCTIONS[name])(*given), 5e-2)


@pytest.mark.parametrize("name", ["attention", "without mask"])
@pytest.mark.parametrize(("b", "q", "k"), [(1, 17, 1), (2, 67, 130), (1, 129, 129)])
def test_rows_at_multiples_of_16_bytes(driver: MockDriver, name: str, b: int, q: int, k: int) -> None:
    check(name, b, q, k, 16)
    assert by_maps(driver) == [True]
    query, key, value = driver.maps[-3:]
    assert {one.box for one in (query, key, value)} == {(64, 64, 1, 1)}
    assert [query.sizes, key.sizes] == [(16, q, 2, b), (16, k, 2, b)] and value.sizes == key.sizes


@pytest.mark.parametrize("depth", [4, 7, 20])
def test_other_heads_take_the_other_kernel(driver: MockDriver, depth: int) -> None:
    check("attention", 1, 33, 40, depth)
    assert by_maps(driver) == [False]


@pytest.mark.slow
def test_heads_that_begin_elsewhere_take_the_other_kernel(driver: MockDriver) -> None:
    check("shorter", 1, 33, 40, 17)
    assert by_maps(driver) == [False]


@pytest.mark.parametrize("q", [1, 16, 17])
def test_few_queries_take_the_other_kernel(driver: MockDriver, q: int) -> None:
    check("attention", 2, q, 40, 16)
    assert by_maps(driver) == [q > 16]


@pytest.mark.slow
def test_matrices_that_lie_together(driver: MockDriver) -> None:
    executable = shlo_disc.compile(split, target="cuda:sm_90a", options=EXACT, args=(("b, s, 96", BF16),))
    x = random_array((2, 67, 96), BF16, 0)
    assert_close(loaded(executable, fresh_client())(x), jax.jit(split)(x), 5e-2)
    assert by_maps(driver) == [True]
    first, *others = (one.address for one in driver.maps[-3:])
    assert [address - first for address in others] == [64, 128]


@pytest.mark.slow
def test_nothing_to_do(driver: MockDriver) -> None:
    """No keys, which no map describes, are the other kernel's."""

    def function(q: Any, k: Any, v: Any) -> Any:
        return without_mask(q, k[:, 1:], v[:, 1:])

    arguments_ = tuple((f"b, {size}, 2, 16", BF16) for size in "qkk")
    executable = shlo_disc.compile(function, target="cuda:sm_90a", options=EXACT, args=arguments_)
    assert not np.asarray(loaded(executable, fresh_client())(*arguments(1, 20, 1, 16))).astype(np.float32).any()
    assert by_maps(driver) == [False]


@pytest.mark.parametrize("number", range(3))
def test_what_the_driver_does_not_describe_takes_the_other_kernel(
    driver: MockDriver, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for maps in (Refusing(number), []):
        monkeypatch.setattr(driver, "maps", maps)
        check("without mask", 1, 20, 30, 16)
        assert by_maps(driver) == [not isinstance(maps, Refusing)]


def test_what_the_header_says(driver: MockDriver) -> None:
    """Blocks of equally long tiles take one after the other."""
    for name, is_persistent in (("attention", 0), ("without mask", 1)):
        (row,) = program(name, 16).artifact.header["kernels"]
        more = row["by_maps_of_words"]
        assert more["name"] == row["name"] + "_by_maps" and more["is_persistent"] == is_persistent
        assert more["threads"] == 384 and row["threads"] == 256 and more["shared_bytes"] <= 227 << 10
        assert more["least_rows"] == 17 and [one["pointer"] for one in more["operands"]] == [0, 1, 2]


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90"])
def test_other_targets_have_one_kernel(target: str) -> None:
    executable = program("attention", 16, target)
    assert "by_maps" not in executable.as_text("ptx") + str(executable.artifact.header["kernels"])


@pytest.mark.slow
def test_a_replay_reads_what_is_there_now(driver: MockDriver) -> None:
    def doubled(q: Any, k: Any, v: Any) -> Any:
        return attention(q * 2, k, v)

    arguments_ = tuple((f"b, {size}, 2, 16", BF16) for size in "qkk")
    client = fresh_client()
    run = loaded(shlo_disc.compile(doubled, target="cuda:sm_90a", options=EXACT, args=arguments_), client)
    for seed in range(6):
        given = [random_array((1, 20, 2, 16), BF16, seed + i) for i in range(3)]
        assert_close(run(*given), jax.jit(doubled)(*given), 5e-2)
    assert client.device(0).launch_stats()["replays"] >= 2
    assert by_maps(driver) == [True] * 6


# ---- headers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda row: row.pop("least_rows"), "'least_rows' is missing"),
        (lambda row: row.update(operands=[]), "has no operands"),
        (lambda row: row["operands"][0].update(axes=[[1, 2, 3]]), "has 3 numbers"),
        (lambda row: row["operands"][1].update(axes=[[-1, 2, -1, 1]]), "has no rows"),
        (lambda row: row.update(threads="many"), "'threads'"),
    ],
)
def test_headers_that_are_wrong(driver: MockDriver, change: Any, text: str) -> None:
    install(program("without mask", 16))
    artifact = program("without mask", 16).artifact
    header = copy.deepcopy(dict(artifact.header))
    change(header["kernels"][0]["by_maps_of_words"])
    with pytest.raises(DiscError, match=text):
        fresh_client().load(dataclasses.replace(artifact, header=header))
