# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The padded step of decoding has, row by row, the numbers of `examples.gpt2_decode`; and how rows are padded."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from benchmarks import padded_decode
from benchmarks.serving_jit import _buckets, up
from examples import gpt2, gpt2_decode

CONFIG = gpt2.SMALL
LENGTHS = (1, 7, 8, 16)


@pytest.mark.parametrize("columns", [16, 17])
@pytest.mark.parametrize("behind", [0.0, 50.0])
@pytest.mark.slow
def test_numbers_are_those_of_each_row_alone(columns: int, behind: float) -> None:
    """Numbers of each row alone, whatever lies behind the valid keys."""
    params = gpt2.init(CONFIG)
    rows = [gpt2_decode.make_inputs(CONFIG, 1, n, seed=n) for n in LENGTHS]
    cache = [
        tuple(padded_decode.padded([row[1][i][j] for row in rows], len(rows), columns) for j in range(2))
        for i in range(CONFIG.layers)
    ]
    for pair in cache:
        for part in pair:
            for row, n in zip(part, LENGTHS, strict=True):
                row[n:] = behind
    tokens = np.concatenate([row[0] for row in rows])
    lengths = np.array(LENGTHS, np.int32)
    logits, own = jax.jit(padded_decode.forward, static_argnames="config")(
        params, tokens, lengths, cache, config=CONFIG
    )
    for i, (token, before) in enumerate(rows):
        wanted, grown = gpt2_decode.forward(params, token, before, config=CONFIG)
        np.testing.assert_allclose(logits[i : i + 1], wanted, rtol=1e-4, atol=1e-4)
        for new, pair in zip(own, grown, strict=True):
            for part, whole in zip(new, pair, strict=True):
                np.testing.assert_allclose(part[i : i + 1], whole[:, -1:], rtol=1e-4, atol=1e-4)


def test_rows_are_padded() -> None:
    first, second = np.full((1, 2, 3), 1.0), np.full((2, 4, 3), 2.0)
    whole = padded_decode.padded([first, second], 4, 5)
    assert whole.shape == (4, 5, 3)
    assert whole[:, :, 0].tolist() == [[1, 1, 0, 0, 0], [2, 2, 2, 2, 0], [2, 2, 2, 2, 0], [0] * 5]


def test_every_call_has_a_bucket() -> None:
    for most, longest in ((16, 512), (16, 511), (5, 40)):
        buckets = _buckets(most, longest)
        assert len(set(buckets)) == len(buckets)
        for rows in range(1, most + 1):
            for length in (1, 8, 9, longest // 2 + 1, longest):
                assert (up(rows), min(max(8, up(length)), longest)) in buckets
