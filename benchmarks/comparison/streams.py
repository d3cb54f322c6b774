# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Defines three models that exist in JAX and in PyTorch with the same weights, and a stream of shapes for each."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.comparison import mlp
from benchmarks.works import Shapes, Work
from examples import asr, bert
from examples.model import function

SHAPES = 20
"""Number of different shapes of a stream."""
CALLS = 2 * SHAPES
"""Number of its calls: each shape comes twice."""

MLP = mlp.Config(inputs=256, width=1024, layers=3, outputs=64)
ENCODER = bert.Config(layers=4, width=256, heads=4, hidden=1024, vocabulary=8192, max_length=256)
SPEECH = asr.Config(layers=4, width=256, heads=4, hidden=1024, bands=80, channels=32, tokens=500, max_steps=200)


def order(count: int, seed: int = 0) -> list[int]:
    """The shapes' numbers in the order of the calls: each twice, at random places."""
    return [int(index) for index in np.random.default_rng(seed).permutation(np.repeat(np.arange(count), 2))]


def _stream(name: str, title: str, model: Any, config: Any, shapes: Shapes, padded: tuple[str, ...]) -> Work:
    return Work(
        name=name,
        title=title,
        dims=model.DIMS,
        shapes=shapes,
        function=function(model, config),
        export=functools.partial(model.export, config),
        init=functools.partial(model.init, config),
        make_inputs=functools.partial(model.make_inputs, config),
        limits=model.limits(config),
        torch_model=model.__name__.rpartition(".")[2],
        small=False,
        config=dataclasses.asdict(config),
        padded=padded,
    )


def _chosen(stream: Callable[[Any, Shapes], Work], config: Any, small: Any, shapes: Shapes) -> Callable[[bool], Work]:
    """The stream as a function of whether it is to be small: a small model with three of the shapes."""

    def make(is_small: bool) -> Work:
        if not is_small:
            return stream(config, shapes)
        few = [tuple(1 + (size - 1) % 7 for size in shape) for shape in shapes]
        return dataclasses.replace(stream(small, list(dict.fromkeys(few))[:3]), small=True)

    return make


def _mlp(config: mlp.Config, shapes: Shapes) -> Work:
    return _stream("mlp", "perceptron", mlp, config, shapes, ("b",))


def _encoder(config: bert.Config, shapes: Shapes) -> Work:
    return _stream("encoder", "text encoder", bert, config, shapes, ("b", "s"))


def _speech(config: asr.Config, shapes: Shapes) -> Work:
    return _stream("speech", "speech encoder", asr, config, shapes, ("b", "t"))


def _batches(count: int, most: int) -> Shapes:
    """`count` different batches from 1 to `most`, evenly spread in their logarithm but for the smallest."""
    spread = {int(size) for size in np.geomspace(1, most, 4 * count).round()}
    picked = sorted(spread)
    return [(picked[index * (len(picked) - 1) // (count - 1)],) for index in range(count)]


def _batches_of_lengths(count: int, batch: int, lengths: tuple[int, int], elements: int, seed: int) -> Shapes:
    """`count` different (b, s) with b * s of at most `elements`; lengths are drawn evenly in their logarithm."""
    random = np.random.default_rng(seed)
    least, most = lengths
    found: dict[tuple[int, int], None] = {(1, most): None}
    while len(found) < count:
        shape = int(random.integers(1, batch + 1)), int(np.exp(random.uniform(np.log(least), np.log(most + 1))))
        if shape[0] * shape[1] <= elements:
            found[shape] = None
    return list(found)


STREAMS: dict[str, Callable[[bool], Work]] = {
    "mlp": _chosen(_mlp, MLP, mlp.SMALL, _batches(SHAPES, 512)),
    "encoder": _chosen(_encoder, ENCODER, bert.SMALL, _batches_of_lengths(SHAPES, 8, (4, 256), 1024, seed=0)),
    "speech": _chosen(_speech, SPEECH, asr.SMALL, _batches_of_lengths(SHAPES, 4, (5, 200), 400, seed=1)),
}
"""The streams by name; the argument chooses a small one, for tests."""
