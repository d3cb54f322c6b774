# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with what follows them in programs for sm_90a, by the kernel with tensor maps and by the other one, against
XLA."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from tests.gpu.emulated import fresh_client, loaded
from tests.gpu.marks import needs_mock_driver
from tests.gpu.mock_driver import MockDriver
from tests.gpu.test_hopper import by_maps
from tests.ir.gpu_cases import EXACT, assert_close
from tests.run.op_check import random_array

pytestmark = needs_mock_driver

BF16, F16, F32 = "bfloat16", "float16", "float32"
Texts = tuple[tuple[str, str], ...]


def wide(x: Any, w: Any) -> Any:
    return jax.lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32)


def attention_mask(x: Any, w: Any, lengths: Any) -> Any:
    """Columns from a length of each row on are hidden."""
    scores = wide(x, w)
    return jnp.where(jax.lax.broadcasted_iota(jnp.int32, scores.shape, 1) < lengths[:, None], scores, -jnp.inf)


def sides(kind: str, *more: tuple[str, str]) -> Texts:
    return (("m, k", kind), ("k, n", kind), *more)


PROGRAMS: dict[str, tuple[Any, Texts]] = {
    "bias": (lambda x, w, b: wide(x, w) + b, sides(BF16, ("n", F32))),
    "rounded_bias": (lambda x, w, b: x @ w + b, sides(BF16, ("n", BF16))),
    "gelu": (lambda x, w, b: jax.nn.gelu(x @ w + b), sides(F16, ("n", F16))),
    "erf_gelu": (lambda x, w: jax.nn.gelu(wide(x, w), approximate=False).astype(jnp.bfloat16), sides(BF16)),
    "residual": (lambda x, w, b, r: wide(x, w) + b + r, sides(BF16, ("n", F32), ("m, n", F32))),
    "mask": (attention_mask, sides(BF16, ("m", "int32"))),
    "causal": (lambda x, w: jnp.tril(wide(x, w)), sides(BF16)),
    "compared": (lambda x, w, b: wide(x, w) > b, sides(F16, ("n", F32))),
    "two_results": (lambda x, w, b: ((y := wide(x, w) + b), y.astype(jnp.float16)), sides(F16, ("n", F32))),
    "columns": (lambda x, w, b: wide(x.T, w.T) * b[:, None], (("k, m", F16), ("n, k", F16), ("m", F32))),
    "batch": (
        lambda x, y, r: jnp.tanh(jnp.einsum("bmk,bkn->bmn", x, y, preferred_element_type=jnp.float32) + r),
        (("2, m, k", BF16), ("2, k, n", BF16), ("2, m, n", F32)),
    ),
    "shared": (
        lambda x, y, r: jnp.einsum("bcmk,ckn->bcmn", x, y, preferred_element_type=jnp.float32) + r,
        (("2, 3, m, k", BF16), ("3, k, n", BF16), ("2, 3, 1, n", F32)),
    ),
}  # fmt: skip


@functools.cache
def program(name: str) -> shlo_disc.Executable:
    function, arguments = PROGRAMS[name]
    return shlo_disc.compile(function, target="cuda:sm_90a", options=EXACT, args=arguments)


def given(name: str, sizes: tuple[int, int, int]) -> list[np.ndarray]:
    dims = dict(zip("mnk", sizes, strict=True))
    shapes = [tuple(dims[d] if d in dims else int(d) for d in text.split(", ")) for text, _ in PROGRAMS[name][1]]
    kinds = [kind for _, kind in PROGRAMS[name][1]]
    return [
        np.arange(shape[0], dtype=kind) * 7 % (sizes[1] + 1) if kind == "int32" else random_array(shape, kind, i)
        for i, (shape, kind) in enumerate(zip(shapes, kinds, strict=True))
    ]


def check(name: str, sizes: tuple[int, int, int], client: Any = None) -> None:
    arguments = given(name, sizes)
    # XLA on processors has no such product of bf16.
    same = [a.astype(F32) if a.dtype == BF16 else a for a in arguments] if name == "shared" else arguments
    found, wanted = loaded(program(name), client or fresh_client())(*arguments), jax.jit(PROGRAMS[name][0])(*same)
    if name == "compared":  # sums in another order may be on the other side
        x, w, b = (a.astype(np.float64) for a in arguments)
        near = np.abs(x @ w - b) < 1e-4 * np.abs(x @ w).max(initial=1)
        assert ((np.asarray(found) == np.asarray(wanted)) | near).all()
        return
    assert_close(jax.tree.map(_finite, found), jax.tree.map(_finite, wanted), 2e-2 if "16" in _result(name) else 2e-5)


def _finite(array: Any) -> np.ndarray:
    """Infinities, which are compared as well, as a large number."""
    array = np.asarray(array)
    return np.where(np.isneginf(array), np.asarray(-9, array.dtype), array)


def _result(name: str) -> str:
    return str(program(name).artifact.header["results"])


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("sizes", [(1, 8, 8), (63, 64, 64), (65, 72, 136)], ids=str)
def test_by_maps(driver: MockDriver, name: str, sizes: tuple[int, int, int]) -> None:
    if name == "columns" and sizes[0] % 8:
        sizes = (sizes[0] // 8 * 8 + 8, *sizes[1:])
    check(name, sizes)
    assert len(driver.launches) == (2 if name == "shared" else 1)
    assert by_maps(driver) == [True]


@pytest.mark.parametrize("name", ["bias", "gelu", "residual", "mask", "columns"])
@pytest.mark.parametrize("sizes", [(2, 1, 3), (17, 131, 24), (65, 64, 63)], ids=str)
def test_sides_that_no_map_describes(driver: MockDriver, name: str, sizes: tuple[int, int, int]) -> None:
    check(name, sizes)
    assert by_maps(driver) == [False]


@pytest.mark.parametrize("n", [127, 128, 129, 193])
@pytest.mark.parametrize("m", [1, 64, 129])
def test_sizes_around_tiles(driver: MockDriver, m: int, n: int) -> None:
    """The right side lies in columns here, so that any n may be."""
    function = lambda x, w, b: jax.nn.relu(wide(x, w.T) + b)  # noqa: E731
    run = loaded(_transposed(), fresh_client())
    arguments = [random_array((m, 24), BF16, 0), random_array((n, 24), BF16, 1), random_array((n,), F32, 2)]
    assert_close(run(*arguments), jax.jit(function)(*arguments), 2e-5)
    assert by_maps(driver) == [True]


@functools.cache
def _transposed() -> shlo_disc.Executable:
    arguments = (("m, 24", BF16), ("n, 24", BF16), ("n", F32))
    return shlo_disc.compile(
        lambda x, w, b: jax.nn.relu(wide(x, w.T) + b), target="cuda:sm_90a", options=EXACT, args=arguments
    )


def test_nothing_to_do(driver: MockDriver) -> None:
    """No rows are left, and no kernel is started."""
    run = loaded(
        shlo_disc.compile(
            lambda x, w, b: wide(x[1:], w) + b, target="cuda:sm_90a", options=EXACT, args=sides(BF16, ("n", F32))
        ),
        fresh_client(),
    )
    found = run(*(random_array(shape, kind, 0) for shape, kind in (((1, 8), BF16), ((8, 8), BF16), ((8,), F32))))
    assert np.asarray(found).shape == (0, 8) and by_maps(driver) == []


def test_what_the_header_says() -> None:
    """The kernel is named after the other one, which is told the same words."""
    (row,) = [row for row in program("gelu").artifact.header["kernels"] if "by_maps" in row]
    assert row["by_maps"]["name"] == row["name"] + "_by_maps" and row["threads"] == 256
    assert row["by_maps"]["threads"] == 384 and "fusion" in row
