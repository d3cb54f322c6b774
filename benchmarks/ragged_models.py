# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models whose sizes differ inside a batch: molecules, a mixture of experts, and a recommender.

`python -m benchmarks.ragged_models` prints, for a stream of batches, milliseconds of ours in all and ratios: of
molecules to jax.jit of graphs padded to the next power of two in nodes and edges and to jax.jit of those padded to the
largest batch, of experts to jax.jit of the same module. All take turns in one process, nobody's compiles count, and
the least time of each counts. The mixture of experts is a module of Flax. `benchmarks.padding` has the recommender.
"""

from __future__ import annotations

import argparse
import functools
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

WIDTH, LAYERS, RADIAL, KINDS = 64, 3, 16, 10
"""Features of an atom, interaction blocks, radial functions of a distance, and kinds of atoms."""

BATCHES, MOLECULES, DEGREE = 12, 64, 12
"""Batches of a stream, molecules of a batch, and the mean number of neighbours of an atom."""

Call = Callable[[], Any]


class Graphs(NamedTuple):
    """Molecules one behind the other: kinds (n,), positions (n, 3), edges (e,) as atoms, molecules of atoms (n,)."""

    kinds: Any
    positions: Any
    senders: Any
    receivers: Any
    molecule: Any


def molecules(rng: np.random.Generator, count: int, is_sorted: bool) -> Graphs:
    """Random molecules of 5 to 40 atoms; their edges by receivers, or in any order."""
    atoms = np.minimum(5 + rng.geometric(1 / 13, count), 40)
    n = int(atoms.sum())
    first = np.repeat(np.cumsum(atoms) - atoms, atoms)
    of_molecule = np.repeat(np.arange(count), atoms)
    degrees = np.minimum(rng.poisson(DEGREE, n), atoms[of_molecule] - 1)
    receivers = np.repeat(np.arange(n), degrees)
    step = 1 + rng.integers(0, 1 << 30, len(receivers)) % (atoms[of_molecule[receivers]] - 1)
    inside = (receivers - first[receivers] + step) % atoms[of_molecule[receivers]]
    senders = first[receivers] + inside
    order = np.arange(len(receivers)) if is_sorted else rng.permutation(len(receivers))
    indices = (senders[order], receivers[order], of_molecule)
    positions = rng.standard_normal((n, 3)).astype(np.float32) * 2
    return Graphs(rng.integers(0, KINDS, n).astype(np.int32), positions, *(i.astype(np.int32) for i in indices))


def padded(graphs: Graphs, nodes: int, edges: int) -> Graphs:
    """Further atoms in a molecule of their own, and edges from the first to the second of them: the usual padding."""
    n, e = len(graphs.kinds), len(graphs.senders)
    more, outside = nodes - n, int(graphs.molecule[-1]) + 1
    return Graphs(
        np.append(graphs.kinds, np.zeros(more, np.int32)),
        np.concatenate([graphs.positions, np.arange(3 * more, dtype=np.float32).reshape(more, 3)]),
        np.append(graphs.senders, np.full(edges - e, n, np.int32)),
        np.append(graphs.receivers, np.full(edges - e, n + 1, np.int32)),
        np.append(graphs.molecule, np.full(more, outside, np.int32)),
    )


def potential_weights(rng: np.random.Generator) -> dict[str, Any]:
    """Random weights of the potential, in f32."""

    def matrix(*shape: int) -> Any:
        return (rng.standard_normal(shape) / np.sqrt(shape[-2])).astype(np.float32)

    layer = {"filter": (RADIAL, WIDTH), "filter2": (WIDTH, WIDTH), "into": (WIDTH, WIDTH), "out": (WIDTH, WIDTH)}
    layers = [{name: matrix(*shape) for name, shape in layer.items()} for _ in range(LAYERS)]
    return {"kinds": matrix(KINDS, WIDTH), "layers": layers, "energy": matrix(WIDTH, 1)}


def energies(weights: Any, graphs: Graphs, count: int) -> Any:
    """Energies of `count` molecules: continuous filters of distances, as in SchNet (Schuett et al., 2017)."""
    offset = graphs.positions[graphs.senders] - graphs.positions[graphs.receivers]
    distance = jnp.sqrt((offset**2).sum(-1) + 1e-6)
    radial = jnp.exp(-((distance[:, None] - jnp.linspace(0, 6, RADIAL)) ** 2))
    h = weights["kinds"][graphs.kinds]
    for layer in weights["layers"]:
        filters = jax.nn.softplus(radial @ layer["filter"]) @ layer["filter2"]
        messages = (h @ layer["into"])[graphs.senders] * filters
        received = jax.ops.segment_sum(messages, graphs.receivers, h.shape[0])
        h = h + jax.nn.softplus(received) @ layer["out"]
    return jax.ops.segment_sum((h @ weights["energy"])[:, 0], graphs.molecule, count)


def energies_and_forces(weights: Any, graphs: Graphs, padding: int = 0) -> tuple[Any, Any]:
    """Energies of the molecules, and the force on each atom. padding: molecules that follow and do not count."""

    def total(positions: Any) -> tuple[Any, Any]:
        found = energies(weights, graphs._replace(positions=positions), MOLECULES + padding)[:MOLECULES]
        return found.sum(), found

    (_, each), gradient = jax.value_and_grad(total, has_aux=True)(graphs.positions)
    return each, -gradient


def measure_molecules(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Seconds of each side for a stream of batches."""
    import shlo_disc

    for is_sorted in (True, False):
        rng = np.random.default_rng(7)
        weights = jax.tree.map(jnp.asarray, potential_weights(rng))
        batches = [molecules(rng, MOLECULES, is_sorted) for _ in range(options.batches)]
        nodes, edges = (max(len(getattr(b, name)) for b in batches) for name in ("kinds", "senders"))
        sides = {
            "ours": [jax.tree.map(jnp.asarray, b) for b in batches],
            "powers": [_on_device(padded(b, *map(_power, _sizes(b)))) for b in batches],
            "largest": [_on_device(padded(b, nodes + 2, edges)) for b in batches],
        }
        spec = Graphs(("n", "int32"), ("n, 3", "float32"), ("e", "int32"), ("e", "int32"), ("n", "int32"))
        shapes = jax.tree.map(lambda w: jax.ShapeDtypeStruct(w.shape, w.dtype), weights)
        chosen = shlo_disc.Options(threads=options.threads)
        ours = shlo_disc.compile(energies_and_forces, args=(shapes, spec), options=chosen)
        jitted = jax.jit(functools.partial(energies_and_forces, padding=1))
        functions = {"ours": ours, "powers": jitted, "largest": jitted}
        check(ours, jitted, weights, sides)
        calls = {side: _stream(functions[side], weights, given) for side, given in sides.items()}
        yield {"what": "molecules", "case": "sorted edges" if is_sorted else "edges in any order"} | _least(
            calls, options
        )


def _sizes(graphs: Graphs) -> tuple[int, int]:
    return len(graphs.kinds) + 2, len(graphs.senders)


def _power(size: int) -> int:
    return 1 << (size - 1).bit_length()


def _on_device(graphs: Graphs) -> Graphs:
    return jax.tree.map(jnp.asarray, graphs)


def check(ours: Any, jitted: Any, weights: Any, sides: dict[str, list[Graphs]]) -> None:
    """Raises AssertionError where the sides differ."""
    for mine, theirs in zip(sides["ours"], sides["powers"], strict=True):
        energy, force = ours(weights, mine)
        other_energy, other_force = jitted(weights, theirs)
        for found, other in ((energy, other_energy), (force, other_force[: len(force)])):
            scale = float(np.abs(other).max())
            np.testing.assert_allclose(found, other, rtol=0, atol=2e-5 * scale)


def through_experts(up: Any, down: Any, x: Any, chosen: Any, gates: Any) -> Any:
    """The sum of two experts' results for each token, (t, width). up, down: (e, ., .); chosen and gates: (t, 2)."""
    order = jnp.argsort(chosen.reshape(-1))
    sizes = jnp.bincount(chosen.reshape(-1), length=up.shape[0])
    hidden = jax.nn.silu(jax.lax.ragged_dot(x[order // 2], up, sizes))
    out = jax.lax.ragged_dot(hidden, down, sizes) * gates.reshape(-1)[order][:, None]
    return jnp.zeros_like(x).at[order // 2].add(out)


def through_padded_experts(capacity: int, up: Any, down: Any, x: Any, chosen: Any, gates: Any) -> Any:
    """The same with each expert's tokens padded to `capacity`, which no load exceeds."""
    flat = chosen.reshape(-1)
    order = jnp.argsort(flat)
    sizes = jnp.bincount(flat, length=up.shape[0])
    expert = flat[order]
    slot = jnp.arange(len(flat)) - (jnp.cumsum(sizes) - sizes)[expert]
    rows = jnp.zeros((up.shape[0], capacity, x.shape[1]), x.dtype).at[expert, slot].set(x[order // 2])
    hidden = jax.nn.silu(jnp.einsum("ecd,edh->ech", rows, up))
    out = jnp.einsum("ech,ehd->ecd", hidden, down)[expert, slot] * gates.reshape(-1)[order][:, None]
    return jnp.zeros_like(x).at[order // 2].add(out)


KEYS, ITEMS, NUMBERS = ("viewed", "bought", "searched", "tags"), 20000, 13
"""Jagged features of a user, rows of the table of each, and numbers that every user has."""


def click_weights(rng: np.random.Generator) -> dict[str, Any]:
    """Random weights of the recommender, in f32."""
    pairs = len(KEYS) * (len(KEYS) + 1) // 2
    shapes = {"numbers": (NUMBERS, WIDTH), "up": (WIDTH + pairs, 256), "down": (256, 1)}
    shapes |= dict.fromkeys(KEYS, (ITEMS, WIDTH))
    return {name: (rng.standard_normal(shape) * 0.1).astype(np.float32) for name, shape in shapes.items()}


def clicks(weights: Any, numbers: Any, bags: dict[str, Any]) -> Any:
    """Logits of a click of each user, (r,): products of pooled embeddings, as in DLRM (Naumov et al., 2019).

    numbers: (r, NUMBERS). bags: for each key, the sums of a user's embeddings, (r, WIDTH).
    """
    vectors = jnp.stack([jnp.tanh(numbers @ weights["numbers"]), *(bags[key] for key in KEYS)], 1)
    products = jnp.einsum("rik,rjk->rij", vectors, vectors)[:, *np.triu_indices(len(KEYS) + 1, 1)]
    hidden = jax.nn.relu(jnp.concatenate([vectors[:, 0], products], 1) @ weights["up"])
    return (hidden @ weights["down"])[:, 0]


def measure_experts(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Seconds of each side for a stream of batches of tokens."""
    from flax import linen as nn

    import shlo_disc

    class Experts(nn.Module):
        """Two experts for each token, of a feed-forward net each."""

        count: int
        width: int
        hidden: int

        @nn.compact
        def __call__(self, x: Any) -> Any:
            initial = nn.initializers.lecun_normal(batch_axis=(0,))
            up = self.param("up", initial, (self.count, self.width, self.hidden))
            down = self.param("down", initial, (self.count, self.hidden, self.width))
            scores, chosen = jax.lax.top_k(nn.Dense(self.count, use_bias=False)(x), 2)
            return through_experts(up, down, x, chosen, nn.softmax(scores))

    for count in (8, 64):
        module = Experts(count, 256, 512)
        rng = np.random.default_rng(count)
        batches = [jnp.asarray(rng.standard_normal((t, 256)), "float32") for t in (64, 200, 512, 1000)]
        weights = jax.jit(module.init)(jax.random.key(0), batches[0])
        chosen = shlo_disc.Options(threads=options.threads)
        ours = shlo_disc.jit(module.apply, dynamic=(None, "t, 256"), options=chosen)
        jitted = jax.jit(module.apply)
        for x in batches:
            np.testing.assert_allclose(ours(weights, x), jitted(weights, x), rtol=1e-3, atol=1e-3)
        calls = {"ours": _stream(ours, weights, batches), "jit": _stream(jitted, weights, batches)}
        yield {"what": "experts", "case": f"{count}, top 2", "programs": ours.compile_count} | _least(calls, options)


def _stream(function: Any, weights: Any, batches: list[Any]) -> Call:
    return lambda: [function(weights, batch) for batch in batches]


def _least(calls: dict[str, Call], options: argparse.Namespace) -> dict[str, float]:
    """Seconds of each side, its least of all turns but the first."""
    turns = []
    for _ in range(options.turns + 1):
        turn = {}
        for side, call in calls.items():
            time.sleep(PAUSE)
            turn[side] = min(seconds(call), seconds(call))
        turns.append(turn)
    return {side: min(turn[side] for turn in turns[1:]) for side in calls}


def report(found: list[dict[str, Any]]) -> str:
    """A line for each case: milliseconds of ours, and its ratio to each other side."""
    sides = ("powers", "largest", "jit")
    cells = [
        [f["what"], f["case"], f"{f['ours'] * 1e3:.1f}"] + [f"{f['ours'] / f[s]:.2f}" if s in f else "" for s in sides]
        for f in found
    ]
    return table(["", "", "ours ms", "of jit, powers of two", "of jit, largest", "of jit"], cells)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ragged_models", description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--batches", type=int, default=BATCHES)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", choices=["molecules", "experts"], help="the experts need Flax")
    parser.add_argument("--output", type=Path, default=Path("build/ragged_models.json"), help="the JSON file to write")
    options = parser.parse_args()
    limit_threads(options.threads)
    works = {"molecules": measure_molecules, "experts": measure_experts}
    found = [row for name, work in works.items() if options.only in (None, name) for row in work(options)]
    print(report(found))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"environment": environment(), "cases": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
