# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The common parts of the training examples: batches of changing sizes, a comparison with XLA, and a report."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import numpy as np

VOCABULARY = 50
Train = Callable[[int, Path], list[float]]
"""Trains for so many steps on the default device, with checkpoints in a directory; returns the loss of each step."""


def sequences(steps: int, seed: int = 0) -> Iterator[np.ndarray]:
    """Batches [b, s] of arithmetic progressions modulo the vocabulary, i32; b and s differ from step to step."""
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        b, s = rng.integers(3, 13), rng.integers(9, 48)
        start, stride = rng.integers(0, VOCABULARY, (b, 1)), rng.integers(1, 5, (b, 1))
        yield ((start + stride * np.arange(s)) % VOCABULARY).astype(np.int32)


def main(train: Train) -> None:
    """Train on the default device and print how it went. `--check` trains on XLA's CPU as well, and compares."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--check", action="store_true", help="compare with XLA's CPU")
    options = parser.parse_args()

    losses = _run(train, options.steps)
    for step in range(0, options.steps, max(1, options.steps // 10)):
        print(f"step {step:4}  loss {losses[step]:.4f}")
    print(f"last       loss {losses[-1]:.4f} on {jax.devices()[0].platform}")
    if jax.devices()[0].platform == "shlo_disc":
        from shlo_disc.runtime.native_module import plugin_programs

        print("programs:", ", ".join(f"{count} {name}" for name, count in plugin_programs().counts.items() if count))
    if options.check:
        with jax.default_device(jax.devices("cpu")[0]):
            expected = _run(train, options.steps)
        difference = float(np.max(np.abs(np.array(losses) / np.array(expected) - 1)))
        print(f"largest relative difference of a loss from XLA's CPU: {difference:.1e}")
        if not difference < 1e-4:
            raise SystemExit("the losses differ")


def _run(train: Train, steps: int) -> list[float]:
    with tempfile.TemporaryDirectory() as directory:
        return train(steps, Path(directory))
