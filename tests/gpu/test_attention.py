# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of whole programs over the mock driver: one launch, which no size of the scores is part of."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.runtime import Client
from tests.gpu.emulated import loaded
from tests.gpu.marks import needs_mock_driver
from tests.ir.gpu_cases import EXACT, assert_close
from tests.run.op_check import random_array

pytestmark = needs_mock_driver


def layers(x: Any, weights: Any) -> Any:
    """Two layers of causal attention with a residual, whose kernel they share."""
    for w in weights:
        q, k, v = jnp.split(jnp.einsum("bsd,dnhe->bsnhe", x, w), 3, axis=2)
        q, k, v = (jnp.squeeze(part, 2) for part in (q, k, v))
        x = x + jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape)
    return x


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("bfloat16", 5e-2)])
def test_layers_share_a_kernel(client: Client, dtype: str, tolerance: float) -> None:
    weights = tuple(random_array((16, 3, 2, 8), dtype, i) * np.array(0.2, dtype) for i in range(2))
    specs = (("b, s, 16", dtype), tuple(jax.ShapeDtypeStruct(w.shape, w.dtype) for w in weights))
    executable = shlo_disc.compile(layers, target="cuda:sm_90", options=EXACT, args=specs)
    names = [row["name"] for row in executable.artifact.header["kernels"]]
    assert [name for name in names if name.startswith("attention")] == [
        f"attention_0_{'bf16' if dtype != 'float32' else 'f32'}_8"
    ]
    run = loaded(executable, client)
    for b, s in ((1, 1), (2, 5), (1, 67)):
        x = random_array((b, s, 16), dtype, 7)
        assert_close(run(x, weights), jax.jit(layers)(x, weights), tolerance)


@pytest.mark.slow
def test_a_growing_cache(client: Client) -> None:
    """One query more than keys before it: what is behind its position is hidden by lengths."""

    def step(q: Any, k: Any, v: Any, length: Any) -> Any:
        return jax.nn.dot_product_attention(q, k, v, key_value_seq_lengths=length)

    cache = ("b, t, 2, 8", "bfloat16")
    executable = shlo_disc.compile(
        step, target="cuda:sm_90", args=(("b, 1, 2, 8", "bfloat16"), cache, cache, ("b", "int32"))
    )
    run = loaded(executable, client)
    for b, t in ((1, 1), (3, 66)):
        given = [random_array((b, n, 2, 8), "bfloat16", n) for n in (1, t, t)]
        lengths = np.arange(1, b + 1, dtype=np.int32) * t // b
        assert_close(run(*given, lengths), jax.jit(step)(*given, lengths), 5e-2)
