# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Four models on ragged batches, and jax.jit on the same batches padded, as padding grows.

`python -m benchmarks.padding` prints milliseconds of a call by the ratio of padded to real sizes: of shlo_disc, one
program of each model for all batches, and of jax.jit, which has a program for each padded size. Numbers of both sides
are compared first. Both take turns in one process, compiles do not count, and medians do. `benchmarks.page_pictures`
draws the table in docs/benchmarks.md.

All batches of a model have about as many values, in rows whose lengths are a power of their rank: the longest row is as
many times the mean as the padded batch is larger. Graphs are padded as a whole, to so many nodes and edges.
"""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import shlo_disc
from benchmarks import packed_bert, ragged_models
from benchmarks.ragged import padded as reduce_padded
from benchmarks.tables import Table, markdown_table
from benchmarks.timing import environment, interleaved, limit_threads
from shlo_disc import ragged

PAUSE = 0.05
"""Seconds before each measurement, in which the other side's threads stop spinning."""

FACTORS = (1, 2, 4, 8)
"""Padded sizes, in real ones."""

SEQUENCES, MEAN_SEQUENCE = 16, 64
EXPERTS, TOKENS, MODEL, HIDDEN = 16, 512, 256, 512
USERS, MEAN_BAG = 512, 16

Arguments = tuple[Any, ...]


class Model(NamedTuple):
    """A model on ragged and on padded batches, whose first argument are its weights.

    specs: of the ragged batch. batch: for a ratio of padded to real sizes, the arguments of both sides, and what makes
    their results comparable.
    """

    weights: Any
    ours: Callable[..., Any]
    specs: Arguments
    padded: Callable[[int], Callable[..., Any]]
    batch: Callable[[int], tuple[Arguments, Arguments, Callable[[Any], Any]]]


def lengths(rng: np.random.Generator, count: int, mean: int, factor: float) -> np.ndarray:
    """Lengths, at least 1, of about this mean, whose largest is `factor` times that: powers of their rank."""
    ranks = np.arange(1, count + 1) / count
    low, high = 0.0, 1e3
    for _ in range(60):
        power = (low + high) / 2
        low, high = (power, high) if 1 / np.mean(ranks**power) < factor else (low, power)
    return rng.permutation(np.maximum(np.round(factor * mean * ranks**high), 1).astype(int))


def bert() -> Model:
    """A BERT on sequences: packed into one row, or padded to the longest."""
    rng = np.random.default_rng(1)

    def batch(factor: int) -> tuple[Arguments, Arguments, Callable[[Any], Any]]:
        sizes = lengths(rng, SEQUENCES, MEAN_SEQUENCE, factor)
        rows = [(rng.integers(0, packed_bert.VOCABULARY, n), np.zeros(n, int)) for n in sizes]
        wide = packed_bert.padded(rows, int(sizes.max()))
        is_token = np.asarray(wide.segments) > 0
        return (packed_bert.packed(rows),), (wide,), lambda found: found[is_token][None]

    specs = (packed_bert.Tokens(*[("1, t", "int32")] * 4),)
    return Model(packed_bert.initial_weights(rng), packed_bert.bert, specs, lambda _: packed_bert.bert, batch)


def experts() -> Model:
    """A mixture of experts whose loads are given: rows sorted by expert, or padded to the largest load."""
    rng = np.random.default_rng(2)
    shapes = ((EXPERTS, MODEL, HIDDEN), (EXPERTS, HIDDEN, MODEL))
    weights = [(rng.standard_normal(shape) / np.sqrt(shape[1])).astype(np.float32) for shape in shapes]
    mean = 2 * TOKENS // EXPERTS

    def batch(factor: int) -> tuple[Arguments, Arguments, Callable[[Any], Any]]:
        loads = lengths(rng, EXPERTS, mean, factor)
        chosen = rng.permutation(np.repeat(np.arange(EXPERTS, dtype=np.int32), loads))
        chosen = chosen[: len(chosen) // 2 * 2].reshape(-1, 2)
        x, gates = (rng.standard_normal((len(chosen), n)).astype(np.float32) for n in (MODEL, 2))
        return (x, chosen, gates), (x, chosen, gates), lambda found: found

    specs = ((f"t, {MODEL}", "float32"), ("t, 2", "int32"), ("t, 2", "float32"))
    ours = lambda weights, *given: ragged_models.through_experts(*weights, *given)  # noqa: E731

    def padded(factor: int) -> Callable[..., Any]:
        function = functools.partial(ragged_models.through_padded_experts, factor * mean)
        return lambda weights, *given: function(*weights, *given)

    return Model(weights, ours, specs, padded, batch)


def molecules() -> Model:
    """Energies and forces of molecules: graphs one behind the other, or with nodes and edges that do not count."""
    rng = np.random.default_rng(3)

    def batch(factor: int) -> tuple[Arguments, Arguments, Callable[[Any], Any]]:
        graphs = ragged_models.molecules(rng, ragged_models.MOLECULES, True)
        atoms = len(graphs.kinds)
        nodes, edges = max(factor * atoms, atoms + 2), factor * len(graphs.senders)
        return (graphs,), (ragged_models.padded(graphs, nodes, edges),), lambda found: (found[0], found[1][:atoms])

    specs = (ragged_models.Graphs(("n", "int32"), ("n, 3", "float32"), ("e", "int32"), ("e", "int32"), ("n", "int32")),)
    padded = functools.partial(ragged_models.energies_and_forces, padding=1)
    weights = ragged_models.potential_weights(rng)
    return Model(weights, ragged_models.energies_and_forces, specs, lambda _: padded, batch)


def recommender() -> Model:
    """Clicks of users with jagged features: sums of embeddings of ragged rows, or of padded ones."""
    rng = np.random.default_rng(4)
    keys = ragged_models.KEYS

    def ours(weights: Any, numbers: Any, features: Any) -> Any:
        bags = {key: ragged.sum(ids.with_values(weights[key][ids.values])) for key, ids in features.items()}
        return ragged_models.clicks(weights, numbers, bags)

    def padded(weights: Any, numbers: Any, features: Any) -> Any:
        bags = {key: reduce_padded("sum", weights[key][ids], sizes) for key, (ids, sizes) in features.items()}
        return ragged_models.clicks(weights, numbers, bags)

    def batch(factor: int) -> tuple[Arguments, Arguments, Callable[[Any], Any]]:
        sizes = {key: lengths(rng, USERS, MEAN_BAG, factor) for key in keys}
        rows = {key: [rng.integers(0, ragged_models.ITEMS, n, np.int32) for n in sizes[key]] for key in keys}
        given = {key: ragged.from_rows(rows[key]) for key in keys}
        wide = {key: (ragged.pad(given[key], int(sizes[key].max())), sizes[key].astype(np.int32)) for key in keys}
        numbers = rng.standard_normal((USERS, ragged_models.NUMBERS)).astype(np.float32)
        return (numbers, given), (numbers, wide), lambda found: found

    features = {key: ragged.Ragged((f"{key}_ids", "int32"), ("r + 1", "int32")) for key in keys}
    specs = ((f"r, {ragged_models.NUMBERS}", "float32"), features)
    return Model(ragged_models.click_weights(rng), ours, specs, lambda _: padded, batch)


MODELS = {"packed BERT": bert, "experts": experts, "molecules": molecules, "recommender": recommender}


def measure(name: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Median seconds of both sides for each ratio of padded to real sizes."""
    model = MODELS[name]()
    weights = jax.tree.map(jnp.asarray, model.weights)
    shapes = jax.tree.map(lambda w: jax.ShapeDtypeStruct(w.shape, w.dtype), weights)
    chosen = shlo_disc.Options(threads=options.threads)
    ours = shlo_disc.compile(model.ours, args=(shapes, *model.specs), options=chosen)
    for factor in options.factors:
        given, wide, as_ours = model.batch(factor)
        given, wide = jax.tree.map(jnp.asarray, (given, wide))
        jitted = jax.jit(model.padded(factor))
        check(ours(weights, *given), as_ours(jitted(weights, *wide)))
        calls = {
            "shlo_disc": functools.partial(ours, weights, *given),
            "jax.jit": functools.partial(jitted, weights, *wide),
        }
        yield {"model": name, "factor": factor} | interleaved(calls, options.rounds, warmup=2, pause=PAUSE)


def check(mine: Any, others: Any) -> None:
    """Raises AssertionError where the sides differ."""
    for found, other in zip(jax.tree.leaves(mine), jax.tree.leaves(others), strict=True):
        np.testing.assert_allclose(found, other, rtol=2e-3, atol=2e-4 * float(np.abs(other).max()))


def report(found: list[dict[str, Any]]) -> str:
    """A line for each ratio of padded to real sizes, in Markdown: milliseconds of both sides of each model."""
    sides = ("shlo_disc", "jax.jit")
    head = ["padded", *(f"{name}, {side}" for name in dict.fromkeys(row["model"] for row in found) for side in sides)]
    by_factor: dict[int, list[float]] = {}
    for row in found:
        by_factor.setdefault(row["factor"], []).extend(row[side] * 1e3 for side in sides)
    cells = [[str(factor), *(f"{value:.1f}" for value in values)] for factor, values in by_factor.items()]
    places = [(line, place) for line, values in enumerate(by_factor.values()) for place in range(0, len(values), 2)]
    rows = list(by_factor.values())
    lost = {(line, place + 1) for line, place in places if rows[line][place] > rows[line][place + 1]}
    return markdown_table(Table("", "", head, cells, lost))


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.padding", description=__doc__)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--factors", type=int, nargs="+", default=FACTORS, help="padded sizes, in real ones (1 2 4 8)")
    parser.add_argument("--rounds", type=int, default=9, help="of both sides (9)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--output", type=Path, default=Path("build/padding.json"), help="the JSON file to write")
    options = parser.parse_args()
    limit_threads(options.threads)
    found = [row for name in options.models for row in measure(name, options)]
    print(report(found))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"environment": environment(), "cases": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
