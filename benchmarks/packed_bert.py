# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small BERT on sequences of long-tailed lengths, packed into one whose attention is masked by segment ids.

`python -m benchmarks.packed_bert` prints thousands of tokens a second of a forward pass and of a step of training: of
ours on packed sequences, one program for all batches, and ratios to jax.jit of sequences padded to the longest that may
come, and of sequences in buckets of powers of two. Tokens of padding are not counted. Compiles do not count, all take
turns in one process, and the least time of each counts. Numbers of all sides are compared first.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.tables import table
from benchmarks.timing import environment, limit_threads, seconds

PAUSE = 0.05
"""Seconds before each measurement, in which the other side's threads stop spinning."""

LAYERS, WIDTH, HEADS, VOCABULARY, CLASSES = 4, 256, 4, 1000, 64
LONGEST, SEQUENCES, RATE = 512, 16, 1e-3
"""The longest sequence, sequences of a batch, whose mean length is a quarter of that, and the rate of learning."""


class Tokens(NamedTuple):
    """Tokens (b, s), their positions in their sequence, the sequences that they belong to (0: padding), and classes."""

    tokens: Any
    positions: Any
    segments: Any
    classes: Any


def initial_weights(rng: np.random.Generator) -> dict[str, Any]:
    """Random weights, in f32."""

    def matrix(*shape: int) -> Any:
        return (rng.standard_normal(shape) / np.sqrt(shape[-2])).astype(np.float32)

    names = {"q": (WIDTH, WIDTH), "k": (WIDTH, WIDTH), "v": (WIDTH, WIDTH), "o": (WIDTH, WIDTH),
             "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}  # fmt: skip
    layers = [{name: matrix(*shape) for name, shape in names.items()} for _ in range(LAYERS)]
    embeddings = {"tokens": matrix(VOCABULARY, WIDTH), "positions": matrix(LONGEST, WIDTH)}
    return {**embeddings, "layers": layers, "classes": matrix(WIDTH, CLASSES)}


def bert(weights: Any, given: Tokens) -> Any:
    """Logits of each token's class, (b, s, CLASSES): tokens see those of their sequence."""
    h = weights["tokens"][given.tokens] + weights["positions"][given.positions]
    mask = given.segments[:, None, :, None] == given.segments[:, None, None, :]
    for layer in weights["layers"]:
        x = _normalised(h)
        q, k, v = (_heads(x @ layer[name]) for name in ("q", "k", "v"))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * np.float32((WIDTH // HEADS) ** -0.5)
        attention = jax.nn.softmax(jnp.where(mask, scores, np.float32(-1e9)), axis=-1)
        context = jnp.einsum("bhqk,bkhd->bqhd", attention, v)
        h = h + context.reshape(*context.shape[:2], WIDTH) @ layer["o"]
        h = h + jax.nn.gelu(_normalised(h) @ layer["up"]) @ layer["down"]
    return _normalised(h) @ weights["classes"]


def _heads(x: Any) -> Any:
    return x.reshape(*x.shape[:2], HEADS, WIDTH // HEADS)


def _normalised(x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def loss(weights: Any, given: Tokens) -> Any:
    """The sum of the tokens' cross entropies."""
    found = jax.nn.log_softmax(bert(weights, given), axis=-1)
    chosen = jnp.take_along_axis(found, given.classes[..., None], axis=-1)[..., 0]
    return -jnp.where(given.segments > 0, chosen, 0.0).sum()


def step(weights: Any, given: Tokens) -> tuple[Any, Any]:
    """Weights after a step of gradient descent, and the loss before it."""
    value, gradient = jax.value_and_grad(loss)(weights, given)
    return jax.tree.map(lambda w, g: w - np.float32(RATE) * g, weights, gradient), value


# ---- batches --------------------------------------------------------------------------------------------------------


def sequences(rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    """Tokens and classes of sequences whose lengths are exponential, but for the longest ones."""
    lengths = np.clip(rng.exponential(LONGEST / 4, SEQUENCES), 1, LONGEST).astype(int)
    return [(rng.integers(0, VOCABULARY, n), rng.integers(0, CLASSES, n)) for n in lengths]


def packed(batch: list[tuple[np.ndarray, np.ndarray]]) -> Tokens:
    """All sequences in one row."""
    lengths = [len(tokens) for tokens, _ in batch]
    rows = [np.concatenate(column) for column in zip(*batch, strict=True)]
    positions = np.concatenate([np.arange(n) for n in lengths])
    return _as_tokens(rows[0], positions, np.repeat(np.arange(1, len(batch) + 1), lengths), rows[1])


def padded(batch: list[tuple[np.ndarray, np.ndarray]], length: int) -> Tokens:
    """A row for each sequence, all of one length."""
    columns = [np.zeros((len(batch), length), int) for _ in range(3)]
    for row, (tokens, classes) in enumerate(batch):
        for column, values in zip(columns, (tokens, np.ones_like(tokens), classes), strict=True):
            column[row, : len(tokens)] = values
    positions = np.broadcast_to(np.arange(length), columns[0].shape)
    return _as_tokens(columns[0], positions, columns[1], columns[2])


def _as_tokens(*columns: np.ndarray) -> Tokens:
    return Tokens(*(jnp.asarray(np.atleast_2d(c).astype(np.int32)) for c in columns))


def bucketed(batch: list[tuple[np.ndarray, np.ndarray]]) -> list[Tokens]:
    """Sequences by the power of two that they are padded to, from 32 on."""
    buckets: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
    for sequence in batch:
        buckets.setdefault(max(32, 1 << (len(sequence[0]) - 1).bit_length()), []).append(sequence)
    return [padded(bucket, length) for length, bucket in sorted(buckets.items())]


# ---- measuring ------------------------------------------------------------------------------------------------------


def _by_buckets(weights: Any, buckets: list[Tokens]) -> tuple[Any, Any]:
    """A step whose gradients are summed over buckets."""
    found = [_value_and_gradient(weights, bucket) for bucket in buckets]
    return _updated(weights, [gradient for _, gradient in found]), sum(value for value, _ in found)


_value_and_gradient = jax.jit(jax.value_and_grad(loss))


@jax.jit
def _updated(weights: Any, gradients: list[Any]) -> Any:
    return jax.tree.map(lambda w, *g: w - np.float32(RATE) * sum(g), weights, *gradients)


def measure(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Tokens a second of each side for a stream of batches."""
    import shlo_disc

    rng = np.random.default_rng(3)
    weights = jax.tree.map(jnp.asarray, initial_weights(rng))
    batches = [sequences(rng) for _ in range(options.batches)]
    tokens = sum(len(t) for batch in batches for t, _ in batch)
    sides: dict[str, list[Any]] = {
        "ours": [packed(b) for b in batches],
        "padded": [padded(b, LONGEST) for b in batches],
        "buckets": [bucketed(b) for b in batches],
    }
    chosen = shlo_disc.Options(threads=options.threads)
    for what, function in (("forward", bert), ("train", step)):
        ours = shlo_disc.jit(function, dynamic=(None, Tokens(*["1, t"] * 4)), options=chosen)
        jitted = jax.jit(function)
        by_buckets = _by_buckets if what == "train" else lambda w, buckets: [jitted(w, b) for b in buckets]  # noqa: B023
        functions: dict[str, Callable[..., Any]] = {"ours": ours, "padded": jitted, "buckets": by_buckets}
        check(what, functions, weights, {side: given[0] for side, given in sides.items()})
        calls = {side: _stream(functions[side], weights, given) for side, given in sides.items()}
        taken = _least(calls, options)
        yield {"what": what, "programs": ours.compile_count, **{side: tokens / s for side, s in taken.items()}}


def check(what: str, functions: dict[str, Callable[..., Any]], weights: Any, given: dict[str, Any]) -> None:
    """Raises AssertionError where packed and padded sequences differ, or those in buckets."""
    ours, other = (functions[side](weights, given[side]) for side in ("ours", "padded"))
    if what == "forward":
        np.testing.assert_allclose(ours[0], other[np.asarray(given["padded"].segments) > 0], rtol=2e-3, atol=2e-4)
        return
    for theirs in (other, functions["buckets"](weights, given["buckets"])):
        for mine, others in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            np.testing.assert_allclose(mine, others, rtol=2e-3, atol=2e-4 * float(np.abs(others).max()))


def _stream(function: Callable[..., Any], weights: Any, batches: list[Any]) -> Callable[[], Any]:
    return lambda: [function(weights, batch) for batch in batches]


def _least(calls: dict[str, Callable[[], Any]], options: argparse.Namespace) -> dict[str, float]:
    """Seconds of each side, its least of all turns but the first."""
    turns = []
    for _ in range(options.turns + 1):
        turn = {}
        for side, call in calls.items():
            time.sleep(PAUSE)
            turn[side] = seconds(call)
        turns.append(turn)
    return {side: min(turn[side] for turn in turns[1:]) for side in calls}


def report(found: list[dict[str, Any]]) -> str:
    """A line for each case: thousands of tokens a second of ours, and ratios to each other side."""
    cells = [
        [f["what"], str(f["programs"]), f"{f['ours'] / 1e3:.1f}"]
        + [f"{f['ours'] / f[side]:.2f}" for side in ("padded", "buckets")]
        for f in found
    ]
    return table(["", "programs", "thousands a second", "to jit, padded", "to jit, buckets"], cells)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.packed_bert", description=__doc__)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--output", type=Path, default=Path("build/packed_bert.json"), help="the JSON file to write")
    options = parser.parse_args()
    limit_threads(options.threads)
    found = list(measure(options))
    print(report(found))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"environment": environment(), "cases": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
