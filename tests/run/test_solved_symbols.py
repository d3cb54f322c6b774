# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Symbols that no argument's size is by itself: `s` and `s + p` give `p`, as in `jax.export`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import shlo_disc
from shlo_disc.errors import ProgramError, ShapeError
from tests.c import c_api
from tests.run.op_check import random_array


def attend(new: jax.Array, cache: jax.Array) -> jax.Array:
    """Queries of the new rows, keys of these and of those before."""
    return jax.nn.softmax(new @ cache.T, axis=-1) @ cache + jnp.float32(cache.shape[0] - new.shape[0])


def summed(*arrays: jax.Array) -> jax.Array:
    return sum((jnp.sum(a) * (i + 1) + a.shape[0] for i, a in enumerate(arrays)), jnp.float32(0))


Shapes = tuple[str, ...]
Sizes = Callable[..., tuple[int, ...]]
SYSTEMS: dict[str, tuple[Shapes, int, Sizes]] = {
    "difference": (("s", "s + p"), 2, lambda s, p: (s, s + p)),
    "the sum first": (("s + p", "s"), 2, lambda s, p: (s + p, s)),
    "multiple": (("2*b + 1", "b + 3*c"), 2, lambda b, c: (2 * b + 1, b + 3 * c)),
    "quotient of a solved one": (("b", "floordiv(b, 2) + c"), 2, lambda b, c: (b, b // 2 + c)),
    "remainder of a solved one": (("mod(b, 3) + c", "b"), 2, lambda b, c: (b % 3 + c, b)),
    "product of solved ones": (("b", "c", "b*c + 2*d"), 3, lambda b, c, d: (b, c, b * c + 2 * d)),
    "maximum of solved ones": (("b", "c", "max(b, c) + d"), 3, lambda b, c, d: (b, c, max(b, c) + d)),
    "chain": (("a + b", "b + c", "c"), 3, lambda a, b, c: (a + b, b + c, c)),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_that_jax_solves(name: str) -> None:
    shapes, count, sizes_of = SYSTEMS[name]
    run = shlo_disc.compile(summed, args=tuple((shape, "float32") for shape in shapes))
    scope = export.SymbolicScope()
    specs = [jax.ShapeDtypeStruct(export.symbolic_shape(f"{s},", scope=scope), jnp.float32) for s in shapes]
    exported = export.export(jax.jit(summed))(*specs)
    rng = np.random.default_rng(0)
    for _ in range(4):
        sizes = sizes_of(*(int(n) for n in rng.integers(1, 40, count)))
        arrays = [random_array((size,), "float32", i) for i, size in enumerate(sizes)]
        np.testing.assert_allclose(run(*arrays), exported.call(*arrays), rtol=1e-5)
    for sizes in ((1,) * len(shapes), (2, 3, 5)[: len(shapes)], (7, 2, 1)[: len(shapes)]):
        _refuse_alike(run, exported, [random_array((size,), "float32") for size in sizes])


def _refuse_alike(run: Any, exported: Any, arrays: list[np.ndarray]) -> None:
    """Both take a call, or both refuse it with the same finding."""
    try:
        want = exported.call(*arrays)
    except ValueError as error:
        with pytest.raises(ShapeError) as caught:
            run(*arrays)
        finding = str(error).partition(" Using the following")[0]
        assert finding in str(caught.value)
    else:
        np.testing.assert_allclose(run(*arrays), want, rtol=1e-5)


def test_prefill_with_a_cache(tmp_path: Path) -> None:
    run = shlo_disc.compile(attend, args=(("s, 16", "float32"), ("s + p, 16", "float32")))
    run.save(tmp_path / "attend.disc")
    loaded = shlo_disc.load(tmp_path / "attend.disc", trust=True)
    from_c = c_api.Program((tmp_path / "attend.disc").read_bytes())
    for s, p in ((1, 1), (1, 15), (5, 12), (17, 16)):
        new, cache = random_array((s, 16), "float32"), random_array((s + p, 16), "float32", 1)
        for got in (run(new, cache), loaded(new, cache), from_c(new, cache)[0]):
            np.testing.assert_allclose(got, attend(new, cache), rtol=1e-5, atol=1e-5)
    assert run.artifact.header["format"] == 2
    new, cache = random_array((4, 16), "float32"), random_array((3, 16), "float32")
    with pytest.raises(ShapeError, match=r"Expected value >= 1 for dimension variable 'p'.*for dimension args\[1\]"):
        run(new, cache)
    inside = (
        jax.jit(lambda a, b: run.in_jax(a, b) * 2) if hasattr(run, "in_jax") else jax.jit(lambda a, b: run(a, b) * 2)
    )
    new, cache = random_array((3, 16), "float32"), random_array((8, 16), "float32", 1)
    np.testing.assert_allclose(inside(new, cache), attend(new, cache) * 2, rtol=1e-5, atol=1e-5)


TEXT = """module { func.func @main(%x: tensor<?xf32, [@"A"]>, %y: tensor<?xf32, [@"B"]>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %a = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<?xf32, [@"A"]>, tensor<f32>) -> tensor<f32>
  %b = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<?xf32, [@"B"]>, tensor<f32>) -> tensor<f32>
  %c = stablehlo.subtract %a, %b : tensor<f32>
  return %c : tensor<f32>
} }"""


def test_a_sum_and_a_difference() -> None:
    """A case that `jax.export` does not solve: both sizes together give both symbols."""
    run = shlo_disc.compile(TEXT.replace('"A"', '"a + b"').replace('"B"', '"a - b"'))
    for a, b in ((5, 2), (9, 9), (40, 1)):
        x, y = random_array((a + b,), "float32"), random_array((a - b,), "float32", 1)
        np.testing.assert_allclose(run(x, y), x.sum() - y.sum(), rtol=1e-5, atol=1e-5)
    with pytest.raises(ShapeError, match="Division had remainder 1 when computing the value of 'a'"):
        run(np.ones(4, np.float32), np.ones(3, np.float32))


def test_what_cannot_be_solved_names_the_arguments() -> None:
    with pytest.raises(
        ProgramError, match=r"do not determine the symbols \['a', 'b'\], which are in .*shape\[0\] = a\*b"
    ):
        shlo_disc.compile(TEXT.replace('"A"', '"a*b"').replace('"B"', '"2*a*b"'))
