# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The number of programs over ten mixed shapes, sizes of 1 and squares among them: that of docs/guides/jit.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.pjrt.streams import Stream

W = np.random.default_rng(0).standard_normal((8, 8), dtype=np.float32)
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "layer": lambda x: jax.nn.gelu(x @ W) + 1,
    "products of batches": lambda x: x + jnp.einsum("bsd,btd->bst", x, x) @ x,
    "a slice": lambda x: jnp.sort(x, axis=1)[:, -1:],
    "gradient": jax.grad(lambda x: (jax.nn.softmax(jnp.tanh(x @ W)) ** 2).mean()),
}
SHAPES = {
    "none of 1": [(2, 5), (3, 7), (4, 9), (5, 11), (6, 13), (7, 3), (8, 10), (9, 12), (10, 4), (3, 14)],
    "squares": [(5, 5), (3, 7), (4, 4), (7, 7), (6, 13), (7, 3), (8, 8), (9, 12), (10, 10), (3, 14)],
    "sizes of 1": [(2, 5), (1, 7), (4, 1), (1, 1), (6, 13), (7, 1), (1, 10), (9, 12), (10, 4), (1, 3)],
    "one axis first": [(4, 16), (1, 16), (16, 16), (1, 1), (8, 5), (5, 8), (16, 1), (7, 7), (2, 3), (3, 2)],
}
MOST = {"layer": 3, "products of batches": 5, "a slice": 5, "gradient": 7}
"""The most programs with sizes of 1 among the shapes. There are two without them."""


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_few_programs_for_mixed_shapes(name: str, shapes: str) -> None:
    stream = Stream(FUNCTIONS[name])
    draw = np.random.default_rng(1).standard_normal
    how = [stream.check(draw((*shape, 8), dtype=np.float32)) for shape in SHAPES[shapes]]
    programs = how.count("compiled") + how.count("compiled_symbolic")
    assert not stream.reasons and programs <= (MOST[name] if any(1 in shape for shape in SHAPES[shapes]) else 2), how
