# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole programs for sm_90a through the mock driver: products by the kernel with tensor maps, and by the other."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from tests.gpu.emulated import fresh_client, loaded
from tests.gpu.marks import needs_mock_driver
from tests.gpu.mock_driver import FIRST_CONTEXT, MockDriver
from tests.gpu.mock_streams import INVALID_VALUE
from tests.run.op_check import random_array, small_integers

pytestmark = needs_mock_driver


def wide(x: Any, w: Any) -> Any:
    return jax.lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32)


def integers(x: Any, w: Any) -> Any:
    kind = jnp.int32 if x.dtype == jnp.int8 else jnp.uint32
    return jax.lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=kind)


def heads(q: Any, k: Any) -> Any:
    """Heads between rows and features: a batch of strides that are none of a stack of matrices."""
    return jnp.einsum("bshd,bthd->bhst", q, k, preferred_element_type=jnp.float32)


def four_axes(x: Any, y: Any) -> Any:
    return jnp.einsum("abcdmk,abcdkn->abcdmn", x.transpose(3, 2, 1, 0, 4, 5), y.transpose(3, 2, 1, 0, 4, 5))


def repeated(x: Any, w: Any) -> Any:
    return jax.lax.fori_loop(0, 3, lambda _, y: jnp.tanh(y @ w), x)


PROGRAMS: dict[str, tuple[Any, tuple[tuple[str, str], ...]]] = {
    "bfloats": (wide, (("m, k", "bfloat16"), ("k, n", "bfloat16"))),
    "rounded": (jnp.dot, (("m, k", "bfloat16"), ("k, n", "bfloat16"))),
    "halves": (lambda x, w: wide(x.T, w.T), (("k, m", "float16"), ("n, k", "float16"))),
    "heads": (heads, (("m, n, 2, 16", "bfloat16"), ("m, k, 2, 16", "bfloat16"))),
    "four_axes": (four_axes, (("2, 2, 2, 2, m, k", "float16"), ("2, 2, 2, 2, k, n", "float16"))),
    "loop": (repeated, (("m, k", "bfloat16"), ("k, k", "bfloat16"))),
    "bytes": (lambda x, w: integers(x, w.T), (("m, k", "int8"), ("n, k", "int8"))),
    "bytes_in_rows": (integers, (("m, k", "int8"), ("k, n", "int8"))),
    "scaled_bytes": (
        lambda x, w, b: (integers(x, w.T) + b).astype(jnp.float32) * 0.5,
        (("m, k", "uint8"), ("n, k", "uint8"), ("n", "uint32")),
    ),
    "shorter": (lambda x, w: wide(x[:, 1:], w[1:]), (("m, k", "bfloat16"), ("k, n", "bfloat16"))),
    "fewer": (lambda x, w: wide(x[1:], w), (("m, k", "bfloat16"), ("k, n", "bfloat16"))),
}


@functools.cache
def program(name: str, target: str = "cuda:sm_90a") -> shlo_disc.Executable:
    function, arguments = PROGRAMS[name]
    return shlo_disc.compile(function, target=target, args=arguments)


def arguments(name: str, dims: dict[str, int]) -> list[np.ndarray]:
    """Whole numbers up to 4, so that sums are exact in any order."""
    shapes = [
        (tuple(dims[d] if d in dims else int(d) for d in shape.split(", ")), kind) for shape, kind in PROGRAMS[name][1]
    ]
    return [small_integers(shape, kind, i) for i, (shape, kind) in enumerate(shapes)]


def check(name: str, m: int, n: int, k: int, client: Any = None) -> None:
    given = arguments(name, {"m": m, "n": n, "k": k})
    got = loaded(program(name), client or fresh_client())(*given)
    np.testing.assert_array_equal(np.asarray(got), np.asarray(jax.jit(PROGRAMS[name][0])(*given)))


def by_maps(driver: MockDriver) -> list[bool]:
    """Flags of the launched GEMMs: true for each that loads by tensor maps."""
    found = [name.endswith("_by_maps") for name in driver.launches if name.startswith("product_")]
    driver.launches.clear()
    return found


@pytest.mark.parametrize("name", ["bytes", "scaled_bytes"])
@pytest.mark.parametrize("sizes", [(1, 1, 16), (63, 65, 128), (5, 9, 144), (65, 129, 48)], ids=str)
def test_integers_along_the_depth(driver: MockDriver, name: str, sizes: tuple[int, int, int]) -> None:
    check(name, *sizes)
    assert by_maps(driver) == [True]
    assert {given.box for given in driver.maps[-2:]} == {(128, 64)}


@pytest.mark.parametrize(("name", "k"), [("bytes", 24), ("bytes", 17), ("scaled_bytes", 8), ("bytes_in_rows", 16)])
def test_other_integers_take_the_other_kernel(driver: MockDriver, name: str, k: int) -> None:
    check(name, 5, 16, k)
    assert by_maps(driver) == [False]


@pytest.mark.parametrize("name", ["bfloats", "rounded", "halves"])
@pytest.mark.parametrize("sizes", [(8, 8, 8), (64, 72, 64), (72, 136, 200)], ids=str)
def test_rows_at_multiples_of_16_bytes(driver: MockDriver, name: str, sizes: tuple[int, int, int]) -> None:
    check(name, *sizes)
    assert by_maps(driver) == [True]


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("bfloats", (5, 8, 7)), ("bfloats", (5, 7, 8)), ("bfloats", (17, 129, 8)), ("rounded", (64, 64, 63)),
        ("halves", (7, 8, 8)), ("halves", (8, 8, 12)), ("shorter", (8, 8, 1)),
        ("shorter", (8, 8, 16)), ("four_axes", (8, 8, 8)),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_other_rows_take_the_other_kernel(driver: MockDriver, name: str, sizes: tuple[int, int, int]) -> None:
    check(name, *sizes)
    assert by_maps(driver) == [False]


def test_one_row_may_have_any_stride(driver: MockDriver) -> None:
    check("bfloats", 1, 8, 37)
    assert by_maps(driver) == [True]


def test_nothing_to_do(driver: MockDriver) -> None:
    check("fewer", 1, 8, 8)
    assert by_maps(driver) == []


@pytest.mark.slow
def test_batches_of_any_strides(driver: MockDriver) -> None:
    check("heads", 3, 5, 7)
    assert by_maps(driver) == [True]
    assert [given.sizes for given in driver.maps[-2:]] == [(16, 5, 2, 3), (16, 7, 2, 3)]
    assert driver.maps[-1].strides == (64, 32, 7 * 64)


def test_what_the_header_says(driver: MockDriver) -> None:
    executable = program("bfloats")
    (row,) = executable.artifact.header["kernels"]
    assert row["by_maps"]["name"] == row["name"] + "_by_maps"
    assert row["by_maps"]["threads"] == 384 and row["by_maps"]["shared_bytes"] <= 227 << 10


@pytest.mark.slow
def test_a_loop_is_captured_with_its_maps(driver: MockDriver) -> None:
    client = fresh_client()
    run = loaded(program("loop"), client)
    given = [random_array((16, 24), "bfloat16", 0), random_array((24, 24), "bfloat16", 1)]
    expected = np.asarray(jax.jit(repeated)(*given)).astype(np.float32)
    for _ in range(4):
        np.testing.assert_allclose(np.asarray(run(*given)).astype(np.float32), expected, atol=0.02)
    assert set(by_maps(driver)) == {True}


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90"])
def test_other_targets_have_one_kernel(target: str) -> None:
    executable = program("bfloats", target)
    assert "by_maps" not in executable.as_text("ptx") + str(executable.artifact.header["kernels"])


# ---- the mock refuses what the driver does --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "mistake"),
    [
        ({}, None),
        ({"address": 8}, "a tensor at a multiple of 16 bytes"),
        ({"sizes": (0, 5)}, "sizes"),
        ({"strides": (40,)}, "strides"),
        ({"strides": (1 << 40,)}, "strides"),
        ({"strides": (0,)}, "strides"),
        ({"strides": (16,)}, "rows that do not overlap"),
        ({"box": (257, 1)}, "sizes of a box"),
        ({"box": (128, 1)}, "rows of a box as long as the swizzle"),
        ({"box": (4, 1)}, "a box of whole pieces"),
        ({"shift": 8}, "a map at a multiple of 64 bytes"),
        ({"type": 16}, "type"),
    ],
)
def test_rules_of_maps(driver: MockDriver, changes: dict[str, Any], mistake: str | None) -> None:
    room = (ctypes.c_uint64 * 32)()
    out = -(-ctypes.addressof(room) // 64) * 64 + changes.get("shift", 0)
    sizes = (ctypes.c_uint64 * 2)(*changes.get("sizes", (16, 5)))
    strides = (ctypes.c_uint64 * 1)(*changes.get("strides", (48,)))
    box, steps = (ctypes.c_uint32 * 2)(*changes.get("box", (64, 64))), (ctypes.c_uint32 * 2)(1, 1)
    where = [ctypes.addressof(array) for array in (sizes, strides, box, steps)]
    given = [out, changes.get("type", 1), 2, changes.get("address", 1 << 20), *where, 0, 3, 3, 0]
    assert driver.call("cuCtxPushCurrent_v2", [FIRST_CONTEXT]) == 0
    assert driver.call("cuTensorMapEncodeTiled", given) == (INVALID_VALUE if mistake else 0)
    driver.call("cuCtxPopCurrent_v2", [ctypes.addressof(room)])
    found = driver.mistakes.copy()
    driver.mistakes.clear()
    assert mistake in found if mistake else not found
