# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Streams of shapes over four processor devices of the plugin: compiles, numbers, and the time beside fixed shapes.

`python -m benchmarks.devices` runs BERT and a train step, each data parallel, tensor parallel and both, under plain
`jax.jit`. It compares the results with those on one device, and prints how many programs were compiled (as they were,
and with symbols), the time of a new shape, and the ratio of warm calls to calls of a program for the shape alone.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.tables import geometric_mean, table
from shlo_disc.runtime.native_module import plugin_programs

DEVICES = 4
COMPARED = 4
"""Shapes that are compiled for themselves, too."""

LAYOUTS = {"data parallel": (4, 1), "tensor parallel": (1, 4), "both": (2, 2)}
"""Devices along the batch, and along the features."""

Call = Callable[..., Any]


def shapes_of(count: int, batches: int, longest: int) -> list[tuple[int, int]]:
    """Batches that are multiples of the devices along them, and lengths, no two of them the same."""
    rng = np.random.default_rng(0)
    found: dict[tuple[int, int], None] = {}
    while len(found) < count:
        found[batches * int(rng.integers(1, 5)), int(rng.integers(2, longest + 1))] = None
    return list(found)


def programs(is_small: bool) -> dict[str, tuple[Call, Any, Call, int]]:
    """For each program the function, its weights, its inputs of a batch and a length, and the longest length."""
    from examples import bert, transformer_train

    model = bert.SMALL if is_small else bert.Config(layers=4, width=256, heads=4, hidden=1024, vocabulary=8192)
    train = transformer_train.SMALL if is_small else transformer_train.BASE
    return {
        "BERT": (partial(bert.forward, config=model), bert.init(model), partial(bert.make_inputs, model), 24),
        "train step": (
            partial(_step, partial(transformer_train.loss, config=train)),
            transformer_train.init(train),
            partial(transformer_train.make_inputs, train),
            24,
        ),
    }


def _step(loss: Call, weights: Any, *inputs: Any) -> Any:
    import jax

    value, gradients = jax.value_and_grad(loss)(weights, *inputs)
    return value, jax.tree.map(lambda w, g: w - 0.01 * g, weights, gradients)


def lay(weights: Any, mesh: Any) -> Any:
    """Weights on a mesh: matrices divided by columns into the features, and by rows out of them, the rest whole."""
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    parts = mesh.shape["m"]

    def one(path: Any, leaf: Any) -> Any:
        sizes, spec = np.shape(leaf), PartitionSpec()
        is_last = any(name in str(path) for name in ("output", "down", "out"))
        axis = 0 if is_last else len(sizes) - 1
        if len(sizes) == 2 and "token" not in str(path) and "position" not in str(path) and sizes[axis] % parts == 0:
            spec = PartitionSpec(*("m" if a == axis else None for a in range(2)))
        return jax.device_put(leaf, NamedSharding(mesh, spec))

    return jax.tree_util.tree_map_with_path(one, weights)


def measure(name: str, layout: str, count: int, budget: float, is_small: bool) -> list[str]:
    """The row of a table for one program in one layout."""
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    function, weights, make_inputs, longest = programs(is_small)[name]
    devices = jax.devices("shlo_disc")[:DEVICES]
    mesh = Mesh(np.array(devices).reshape(LAYOUTS[layout]), ("d", "m"))
    rows = NamedSharding(mesh, PartitionSpec("d"))
    shapes = shapes_of(count, LAYOUTS[layout][0], longest)
    inputs = {shape: [jax.device_put(x, rows) for x in make_inputs(*shape)] for shape in shapes}
    alone = {shape: [jax.device_put(x, devices[0]) for x in make_inputs(*shape)] for shape in shapes}
    several, laid = jax.jit(function), lay(weights, mesh)
    found, seconds, compiled = _stream(several, laid, inputs)
    expected, _, of_one = _stream(jax.jit(partial(function)), jax.device_put(weights, devices[0]), alone)
    error = max(_difference(found[shape], expected[shape]) for shape in inputs)
    ratios = []
    for shape in list(inputs)[-COMPARED:]:
        plugin_programs().clear()
        fixed = jax.jit(partial(function))
        jax.block_until_ready(fixed(laid, *inputs[shape]))
        ratios.append(_ratio(several, fixed, (laid, *inputs[shape]), budget))
    new = statistics.median(seconds[len(seconds) // 2 :]) * 1e3
    return [
        name, layout, str(len(inputs)), compiled, of_one, f"{new:.0f}", f"{geometric_mean(ratios):.2f}", f"{error:.1e}",
    ]  # fmt: skip


def _stream(function: Call, weights: Any, inputs: dict[Any, Any]) -> tuple[dict[Any, Any], list[float], str]:
    """The results at all shapes, the seconds of each first call, and the programs: as they were, and with symbols."""
    import jax

    plugin_programs().clear()
    before, seconds, found = dict(plugin_programs().counts), [], {}
    for shape, own in inputs.items():
        start = time.perf_counter()
        found[shape] = jax.block_until_ready(function(weights, *own))
        seconds.append(time.perf_counter() - start)
    counts = plugin_programs().counts
    compiled, symbolic = (counts[key] - before[key] for key in ("compiled", "compiled_symbolic"))
    return found, seconds, f"{compiled} + {symbolic}"


def _difference(found: Any, expected: Any) -> float:
    """The largest difference relative to the largest magnitude of an array."""
    import jax

    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(*map(jax.tree.leaves, (found, expected)), strict=True)]
    return max(float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)) for a, b in pairs)


def _ratio(first: Call, second: Call, arguments: Any, budget: float) -> float:
    """The ratio of the median times of two functions, which take turns."""
    import jax

    times: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + 2 * budget
    while time.perf_counter() < end or len(times[0]) < 7:
        for function, own in zip((first, second), times, strict=True):
            start = time.perf_counter()
            jax.block_until_ready(function(*arguments))
            own.append(time.perf_counter() - start)
    return statistics.median(times[0]) / statistics.median(times[1])


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.devices", description=__doc__)
    parser.add_argument("--shapes", type=int, default=20)
    parser.add_argument("--budget", type=float, default=1.0, help="seconds for each side at each compared shape (1.0)")
    parser.add_argument("--small", action="store_true", help="small programs: does it run?")
    options = parser.parse_args()
    os.environ["JAX_PLATFORMS"] = "shlo_disc,cpu"
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
    rows = []
    for name in ("BERT", "train step"):
        for layout in LAYOUTS:
            rows.append(measure(name, layout, options.shapes, options.budget, options.small))
            print(" | ".join(rows[-1]), flush=True)
    heads = ["program", "layout", "shapes", "programs", "on one device", "new shape ms", "warm / fixed", "error"]
    print(table(heads, rows))


if __name__ == "__main__":
    main()
