# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions of many elements to few on GPUs, in parts: sizes around the number of parts, and what is near."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.driver.compiler import Compilation, import_stage, run_pipeline
from shlo_disc.lowering_gpu.backend import GpuBackend
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.transforms.decisions import OUTCOMES
from shlo_disc.transforms.simplify.split_reductions import FEWEST_PARTS, SPLIT
from tests.ir.gpu_cases import TARGETS, assert_close, emulated, launches_of
from tests.run.op_check import random_array

PARTS = 64
SMALL = replace(GPU_POLICY, split_results=PARTS, split_elements=8, blocks=0)
"""So few that an emulator gets through with them. Blocks do not split them further (`test_gpu_parts.py`)."""

LOW = jnp.float32(-jnp.inf)
Program = tuple[Callable[..., Any], str, str]


def moments(x: Any) -> Any:
    """Two sums of what others read as well, and a result that has all elements."""
    scaled = x * 2 - 1
    norm = jnp.sqrt(jnp.sum(scaled * scaled))
    return scaled / norm, scaled.mean()


PROGRAMS: dict[str, Program] = {
    "all": (lambda x: jnp.sum(jnp.exp(x) * x), "n, m", "float32"),
    "line": (lambda x: jnp.max(x), "n", "float32"),
    "columns": (lambda x: (x * 2).sum((0, 1)), "n, m, 5", "float32"),
    "rows": (lambda x: x.min((1, 2)), "3, n, m", "float32"),
    "middle": (lambda x: x.sum(1), "2, n, 3", "float32"),
    "apart": (lambda x: x.mean((0, 2, 3)), "n, 4, m, 2", "float32"),
    "moments": (moments, "n, m", "float32"),
    "bias": (lambda x: jnp.sum(x + jnp.arange(3.0)), "n, 3", "float32"),
    "integers": (lambda x: (x.sum(), x.min(), x.max(), jnp.bitwise_xor.reduce(x, axis=None)), "n, m", "int32"),
    "bytes": (lambda x: (jnp.max(x), jnp.min(x)), "n, m", "uint8"),
    "booleans": (lambda x: (x.all(), x.any()), "n, m", "bool"),
    "halves": (lambda x: jax.lax.reduce(x, x.dtype.type(0), jax.lax.add, (0, 1)), "n, m", "bfloat16"),
    "largest_half": (lambda x: jnp.max(x), "n, m", "float16"),
    "in_a_loop": (lambda x: jax.lax.fori_loop(0, 3, lambda i, a: a + jnp.sum(x * a), jnp.float32(0.5)), "n", "float32"),
    "compared": (lambda x: (jnp.sum(x > 0), jnp.any(jnp.isnan(x * 2))), "n, m", "float32"),
    "clamped": (lambda x: jnp.sum(jnp.where(x > 0, jnp.clip(x, -0.5, 0.5), x.astype(jnp.int32))), "n, m", "float32"),
    "until": (lambda x: jax.lax.while_loop(lambda a: jnp.any(a < 4), lambda a: a + 1, x), "n, m", "float32"),
    "from_one": (lambda x: jax.lax.reduce(x, np.float32(1), jax.lax.add, (0,)), "n", "float32"),
    "argmax": (lambda x: jnp.argmax(x), "n", "float32"),
}  # fmt: skip

NOT_SPLIT = {"from_one", "argmax"}
LOOPS = {"in_a_loop", "until"}
"""These need a host program, which `tests/gpu/test_programs.py` has."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(GpuBackend, "policy", SMALL)
    yield


@functools.cache
def lowered(name: str, policy: Any = SMALL) -> Compilation:
    """A program, which is compiled by the policy that tests set."""
    function, shape, dtype = PROGRAMS[name]
    return run_pipeline(import_stage(function, TARGETS[0], shlo_disc.Options(), ((shape, dtype),), None, ()), "host")


def dims_and_array(name: str, n: int, m: int) -> tuple[dict[str, int], np.ndarray]:
    """Sizes of the symbols that a program has, and its argument."""
    _, shape, dtype = PROGRAMS[name]
    sizes = {"n": n, "m": m}
    array = random_array(
        tuple(sizes.get(d) or int(d) if d not in sizes else sizes[d] for d in shape.split(", ")), dtype
    )
    return {k: v for k, v in sizes.items() if k in shape}, array


@pytest.mark.parametrize(("n", "m"), [(1, 1), (7, 9), (8, 8), (13, 5), (1, 129), (31, 67)], ids=str)
@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in LOOPS])
def test_sizes_around_the_number_of_parts(small: None, name: str, n: int, m: int) -> None:
    dims, array = dims_and_array(name, n, m)
    wanted = jax.jit(PROGRAMS[name][0])(array)
    if name == "halves":  # XLA rounds on the way
        wanted = array.astype(np.float64).sum().astype(array.dtype)
    if name == "from_one":  # XLA forgets where it starts for one element
        wanted = np.float32(1 + array.astype(np.float64).sum())
    assert_close(emulated(lowered(name), dims, [array]), wanted, 2e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_which_are_split(small: None, name: str) -> None:
    made = [d for decisions in lowered(name).decisions.values() for d in decisions.made]
    assert any(d.pattern == SPLIT.name for d in made) == (name not in NOT_SPLIT)


def test_nothing_is_added_up(small: None) -> None:
    function = lambda x: (jnp.sum(x), jnp.prod(x, 0))  # noqa: E731
    arguments = (("n - 1, 3", "float32"),)
    c = run_pipeline(import_stage(function, TARGETS[0], shlo_disc.Options(), arguments, None, ()), "host")
    for n in (1, 2, 70):
        array = random_array((n - 1, 3), "float32")
        assert_close(emulated(c, {"n": n}, [array]), function(array), 2e-6)


def test_a_sum_of_halves_is_rounded_once(small: None) -> None:
    array = np.full((40, 41), 1, jnp.bfloat16)
    (got,) = emulated(lowered("halves"), {"n": 40, "m": 41}, [array])
    assert got == jnp.bfloat16(40 * 41)


def test_values_that_are_no_numbers_come_through(small: None) -> None:
    array = np.full(131, -np.inf, np.float32)
    assert emulated(lowered("line"), {"n": 131}, [array])[0] == -np.inf
    array[130] = np.nan
    assert np.isnan(emulated(lowered("line"), {"n": 131}, [array])[0])


@pytest.mark.parametrize(("results", "is_split"), [(PARTS // FEWEST_PARTS, True), (PARTS // FEWEST_PARTS + 1, False)])
def test_each_result_has_enough_parts(small: None, results: int, is_split: bool) -> None:
    before = OUTCOMES["split-reductions.has-few-results", is_split]
    arguments = ((f"n, {results}", "float32"),)
    function = lambda x: x.sum(0)  # noqa: E731
    c = run_pipeline(import_stage(function, TARGETS[0], shlo_disc.Options(), arguments, None, ()), "host")
    assert OUTCOMES["split-reductions.has-few-results", is_split] == before + 1
    array = random_array((67, results), "float32")
    assert_close(emulated(c, {"n": 67}, [array]), function(array), 2e-6)


def test_what_is_short_is_not_split(small: None) -> None:
    before = OUTCOMES["split-reductions.may-be-long", False]
    c = run_pipeline(import_stage(jnp.sum, TARGETS[0], shlo_disc.Options(), (("8", "float32"),), None, ()), "host")
    assert OUTCOMES["split-reductions.may-be-long", False] == before + 1 and len(launches_of(c)) == 1


def test_a_sum_over_a_tensor_has_hundreds_of_blocks() -> None:
    c = lowered("all", GPU_POLICY)
    first, second = launches_of(c)
    sizes = {"n": 1024, "m": 4096}
    assert (first.blocks.evaluate(sizes), second.blocks.evaluate(sizes)) == (256, 1)
    dims, array = dims_and_array("all", 129, 67)
    assert_close(emulated(c, dims, [array]), jax.jit(PROGRAMS["all"][0])(array), 2e-6)


def test_indices_are_not_divided(small: None) -> None:
    """Elementwise ops are made of views of one axis."""
    _, kernel, _ = str(lowered("all").snapshots["host"]).split("gpu.func")
    assert "arith.muli" in kernel and "arith.divui" not in kernel and "arith.remui" not in kernel


def test_processors_do_without() -> None:
    c = run_pipeline(import_stage(jnp.sum, "cpu", shlo_disc.Options(), (("n, m", "float32"),), None, ()), "fuse")
    assert not any(d.pattern == SPLIT.name for decisions in c.decisions.values() for d in decisions.made)
