# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls within a limit of memory: the same bits with less memory, and an error where no variant fits."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc import Executable, Options
from shlo_disc.errors import OptionError, ShapeError
from shlo_disc.shape_dialect.ops.variants import variants_in

FRACTIONS = (0.9, 0.75, 0.6, 0.5)


def check(plain: Executable, limited: Executable, limit: int, arguments: list[Any], dims: dict[str, int]) -> bool:
    """Compares a call with one without a limit. Tells whether it recomputes something."""
    if plain.peak_memory(dims) <= limit:
        assert limited.peak_memory(dims) == plain.peak_memory(dims)
    assert limited.peak_memory(dims) <= limit
    for left, right in zip(jax.tree.leaves(limited(*arguments)), jax.tree.leaves(plain(*arguments)), strict=True):
        np.testing.assert_array_equal(np.asarray(left), np.asarray(right))
    return limited.peak_memory(dims) < plain.peak_memory(dims)


@pytest.mark.parametrize("name", ["transformer_train", "dien_train", "asr_train"])
def test_train_steps(name: str) -> None:
    model = importlib.import_module(f"examples.{name}")
    exported = model.export(model.SMALL)
    plain = shlo_disc.compile(exported, options=Options(strict=True))
    names = [symbol.name for symbol in plain.signature.symbols]
    params = model.init(model.SMALL)
    largest = (3, 24, 7)[: len(names)]
    need = plain.peak_memory(dict(zip(names, largest, strict=True)))
    recomputed = 0
    for fraction in FRACTIONS:
        limit = int(fraction * need)
        limited = shlo_disc.compile(exported, options=Options(strict=True, memory_limit=limit, guard_pages=True))
        for sizes in (largest, (1, 1, 1)[: len(names)], (2, 17, 3)[: len(names)], (3, 23, 5)[: len(names)]):
            dims = dict(zip(names, sizes, strict=True))
            try:
                arguments = [params, *model.make_inputs(model.SMALL, *sizes)]
                recomputed += check(plain, limited, limit, arguments, dims)
            except ShapeError as error:
                assert "memory_limit" in str(error) and fraction < 0.9
    assert recomputed > 0


def layers(count: int) -> Any:
    def loss(weights: list[jax.Array], x: jax.Array) -> jax.Array:
        for w in weights:
            x = jnp.tanh(x @ w) + x
        return (x * x).sum()

    return loss


def compiled(count: int, limit: int | None) -> Executable:
    specs = ([jax.ShapeDtypeStruct((32, 32), np.float32)] * count, ("b, 32", "float32"))
    function = jax.value_and_grad(layers(count))
    return shlo_disc.compile(function, args=specs, options=Options(strict=True, memory_limit=limit))


def test_sizes_around_each_limit() -> None:
    """The first variant serves all sizes that fit it, to the byte; beyond the last one is an error that says so."""
    plain = compiled(8, None)
    largest = 96
    limit = plain.peak_memory(b=largest)
    limited = compiled(8, limit)
    weights = [np.random.default_rng(n).standard_normal((32, 32), np.float32) / 8 for n in range(8)]
    most = limited.max_dim("b", memory=limit)
    assert plain.max_dim("b", memory=limit) == largest < most
    found = []
    for b in (1, largest - 1, largest, largest + 1, (largest + most) // 2, most):
        x = np.random.default_rng(b).standard_normal((b, 32), np.float32)
        found.append(check(plain, limited, limit, [weights, x], {"b": b}))
    assert found == [False, False, False, True, True, True]
    with pytest.raises(ShapeError, match=rf"at most {limit} bytes, the memory_limit; it needs \d+ bytes"):
        limited(weights, np.zeros((most + 1, 32), np.float32))
    with pytest.raises(ShapeError, match="memory_limit"):
        limited.peak_memory(b=most + 1)


def test_saved_and_loaded(tmp_path: Path) -> None:
    plain = compiled(4, None)
    limit = plain.peak_memory(b=64)
    compiled(4, limit).save(tmp_path / "limited")
    loaded = shlo_disc.load(tmp_path / "limited", trust=True)
    weights = [np.random.default_rng(n).standard_normal((32, 32), np.float32) / 8 for n in range(4)]
    for b in (64, 70):
        x = np.random.default_rng(b).standard_normal((b, 32), np.float32)
        assert loaded.peak_memory(b=b) <= limit
        for left, right in zip(jax.tree.leaves(loaded(weights, x)), jax.tree.leaves(plain(weights, x)), strict=True):
            np.testing.assert_array_equal(np.asarray(left), np.asarray(right))


def test_loops_and_branches_are_parts_of_variants() -> None:
    def f(x: jax.Array, w: jax.Array) -> Any:
        kept = [jnp.tanh(x @ w * k) for k in range(1, 6)]
        y = jax.lax.fori_loop(0, 3, lambda _, v: jnp.tanh(v @ w) + kept[0], kept[-1])
        y = jax.lax.cond(y.sum() > 0, lambda v: v @ w, lambda v: v - kept[1], y)
        for k in reversed(kept):
            y = jnp.sin(y @ w) * k
        return y, x + 1, x

    specs = (("b, 32", "float32"), ("32, 32", "float32"))
    plain = shlo_disc.compile(f, args=specs, options=Options(strict=True))
    limit = plain.peak_memory(b=50)
    limited = shlo_disc.compile(f, args=specs, options=Options(strict=True, memory_limit=limit))
    w = np.random.default_rng(0).standard_normal((32, 32), np.float32) / 8
    found = []
    for b in (1, 50, limited.max_dim("b", memory=limit)):
        x = np.random.default_rng(b).standard_normal((b, 32), np.float32)
        found.append(check(plain, limited, limit, [x, w], {"b": b}))
    assert found == [False, False, True]


def test_a_program_that_keeps_nothing_has_no_variants() -> None:
    executable = shlo_disc.compile(
        lambda x: jnp.tanh(x) + 1, args=(("b", "float32"),), options=Options(strict=True, memory_limit=4096)
    )
    assert variants_in(executable._at("plan").snapshots["plan"]) is None
    np.testing.assert_allclose(executable(np.zeros(1024, np.float32)), np.ones(1024))
    with pytest.raises(ShapeError, match="at most 4096 bytes, the memory_limit; it needs 4100 bytes"):
        executable(np.zeros(1025, np.float32))


def test_sizes_from_data_are_refused() -> None:
    import shlo_disc.numpy as snp

    with pytest.raises(OptionError, match="memory_limit is for programs that read no sizes from data"):
        shlo_disc.compile(
            lambda x: snp.nonzero(x)[0] * 2, args=(("b", "float32"),), options=Options(memory_limit=1 << 20)
        )


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "1GB"])
def test_limits_that_are_none(limit: Any) -> None:
    with pytest.raises(OptionError, match="memory_limit must be an integer of at least 1 or None"):
        Options(memory_limit=limit)
