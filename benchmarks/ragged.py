# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of groups of rows, each with a matrix of its own (`jax.lax.ragged_dot`), and reductions of ragged rows.

`python -m benchmarks.ragged` prints milliseconds of ours, and ratios: to the dense product of the same arithmetic and
its gradients (ours), to jax.jit's `ragged_dot`, to a loop of NumPy's products over the groups, and to PyTorch's
`grouped_mm`, eager, where PyTorch is installed. All take turns in one process, and the least time of each counts.
jax.jit is left out with `--no-jit`, or where it would take more than a minute (it computes a product for each group, of
all rows). Then reductions of `shlo_disc.ragged`, with geometric lengths of up to eight times the mean: ratios to the
same function under jax.jit, and to jax.jit of padded rows.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.tables import table
from benchmarks.timing import environment, limit_threads, seconds

ROWS, SIZE = 4096, 1024
GROUPS = (4, 32, 256)
MOST_WORK = 256 * ROWS
"""Rows that jax.jit multiplies, at most: groups times rows."""

PAUSE = 0.05
"""Seconds before each measurement: the other side's threads stop spinning, and one call fetches what it reads."""

Call = Callable[[], Any]


def uniform(groups: int, rows: int) -> np.ndarray:
    """Sizes that are the same."""
    return np.full(groups, rows // groups)


def zipf(groups: int, rows: int) -> np.ndarray:
    """Sizes as 1, 1/2, 1/3, ..., of all rows."""
    weights = 1 / np.arange(1, groups + 1)
    ends = np.round(np.cumsum(weights) / weights.sum() * rows).astype(int)
    return np.diff(ends, prepend=0)


def one_hot(groups: int, rows: int) -> np.ndarray:
    """One group with all rows."""
    sizes = np.zeros(groups, int)
    sizes[groups // 2] = rows
    return sizes


DISTRIBUTIONS = (uniform, zipf, one_hot)


def ragged(x: Any, w: Any, sizes: Any) -> Any:
    """The product."""
    return jax.lax.ragged_dot(x, w, sizes)


def gradients(x: Any, w: Any, sizes: Any, y: Any) -> Any:
    """The gradients of both sides, for one of the result."""
    return jax.vjp(lambda x, w: ragged(x, w, sizes), x, w)[1](y)


def dense(x: Any, w: Any) -> Any:
    """The same arithmetic with one matrix."""
    return x @ w


def dense_gradients(x: Any, w: Any, y: Any) -> Any:
    """Its gradients."""
    return jax.vjp(dense, x, w)[1](y)


def backends(groups: int, options: argparse.Namespace) -> Iterator[tuple[str, Callable[[Any], dict[str, Call]]]]:
    """The product and its gradients: what makes the calls of each side for sizes."""
    import shlo_disc

    rows, size = options.rows, options.size
    chosen = shlo_disc.Options(threads=options.threads)
    rng = np.random.default_rng(groups)
    x = jnp.asarray(rng.standard_normal((rows, size)), "float32")
    w = jnp.asarray(rng.standard_normal((groups, size, size)), "float32")
    rows_of_x, square = (f"m, {size}", "float32"), (f"{size}, {size}", "float32")
    args = (rows_of_x, (f"{groups}, {size}, {size}", "float32"), (str(groups), "int32"))
    ours = shlo_disc.compile(ragged, args=args, options=chosen)
    plain = shlo_disc.compile(dense, args=(rows_of_x, square), options=chosen)
    jitted = jax.jit(ragged)
    ours_back = shlo_disc.compile(gradients, args=(*args, rows_of_x), options=chosen)
    plain_back = shlo_disc.compile(dense_gradients, args=(rows_of_x, square, rows_of_x), options=chosen)
    jitted_back = jax.jit(gradients)
    by_numpy = np.asarray(x), np.asarray(w)
    by_torch = _by_torch(*by_numpy, options.threads)

    def calls(sizes: Any) -> dict[str, Call]:
        loop = lambda: _loop(*by_numpy, np.asarray(sizes))  # noqa: E731
        return {
            "ours": lambda: ours(x, w, sizes), "dense": lambda: plain(x, w[0]), "loop": loop,
            "jit": lambda: jitted(x, w, sizes), **by_torch(np.asarray(sizes)),
        }  # fmt: skip

    def calls_back(sizes: Any) -> dict[str, Call]:
        return {
            "ours": lambda: ours_back(x, w, sizes, x), "dense": lambda: plain_back(x, w[0], x),
            "jit": lambda: jitted_back(x, w, sizes, x),
        }  # fmt: skip

    yield "product", calls
    yield "gradients", calls_back


def _loop(x: np.ndarray, w: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    result = np.zeros((len(x), w.shape[2]), np.float32)
    first = 0
    for matrix, size in zip(w, sizes, strict=True):
        result[first : first + size] = x[first : first + size] @ matrix
        first += size
    return result


def _by_torch(x: np.ndarray, w: np.ndarray, threads: int) -> Callable[[np.ndarray], dict[str, Call]]:
    """PyTorch's product of groups for sizes; nothing where PyTorch is not installed."""
    if importlib.util.find_spec("torch") is None:
        return lambda sizes: {}
    torch = importlib.import_module("torch")
    torch.set_num_threads(threads)
    rows, matrices = torch.from_numpy(x.copy()), torch.from_numpy(w.copy())

    def calls(sizes: np.ndarray) -> dict[str, Call]:
        ends = torch.from_numpy(np.cumsum(sizes).astype(np.int32))
        return {"torch": lambda: torch.nn.functional.grouped_mm(rows, matrices, offs=ends).numpy()}

    return calls


def measure(groups: int, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Milliseconds of each side, for each distribution of sizes."""
    for what, calls_of in backends(groups, options):
        for distribution in DISTRIBUTIONS:
            sizes = jnp.asarray(distribution(groups, options.rows), "int32")
            calls = calls_of(sizes)
            if not options.jit or groups * options.rows > MOST_WORK:
                del calls["jit"]
            least = dict.fromkeys(calls, float("inf"))
            for turn in range(options.turns + 1):
                for name, call in calls.items():
                    if name != "jit" or turn < 2 or least["jit"] < 1:
                        time.sleep(PAUSE)
                        found = min(seconds(call), seconds(call) if name != "jit" else float("inf"))
                        least[name] = min(least[name], found) if turn else least[name]
            yield {"what": what, "groups": groups, "sizes": distribution.__name__, **least}


JAGGED = ((3000, 100, 8), (200, 1000, 16), (100000, 5, 4))
"""Rows, their mean length, and the features of a value."""


def padded(name: str, rows: Any, lengths: Any) -> Any:
    """A reduction of padded rows, (r, width, features)."""
    is_value = (jnp.arange(rows.shape[1])[None, :] < lengths[:, None])[..., None]
    if name == "sum":
        return jnp.where(is_value, rows, 0).sum(1)
    hidden = jnp.where(is_value, rows, -jnp.inf)
    return hidden.max(1) if name == "max" else jax.nn.softmax(hidden, axis=1)


def measure_reductions(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Seconds of each side."""
    import shlo_disc
    from shlo_disc import ragged as rows_of

    for rows, mean, features in ((30, 5, 4),) if options.small else JAGGED:
        rng = np.random.default_rng(rows)
        lengths = np.minimum(rng.geometric(1 / mean, rows), 8 * mean)
        values = jnp.asarray(rng.standard_normal((lengths.sum(), features)), "float32")
        given = rows_of.from_lengths(values, jnp.asarray(lengths, "int32"))
        spec = rows_of.Ragged((f"t, {features}", "float32"), ("r + 1", "int32"))
        wide, sizes = rows_of.pad(given, int(lengths.max())), given.lengths
        for name in ("sum", "max", "softmax"):
            function = getattr(rows_of, name)
            ours = shlo_disc.compile(function, args=(spec,), options=shlo_disc.Options(threads=options.threads))
            calls: dict[str, Call] = {
                "ours": functools.partial(ours, given),
                "jit": functools.partial(jax.jit(function), given),
                "padded": functools.partial(jax.jit(functools.partial(padded, name)), wide, sizes),
            }
            turns = [{side: seconds(call) for side, call in calls.items()} for _ in range(options.turns + 1)]
            least = {side: min(turn[side] for turn in turns[1:]) for side in calls}
            yield {"what": name, "rows": rows, "mean": mean, "features": features, **least}


def report_reductions(found: list[dict[str, Any]]) -> str:
    """A line for each case: milliseconds of ours, and its ratio to each other side."""
    cells = [
        [f["what"], *(str(f[name]) for name in ("rows", "mean", "features")), f"{f['ours'] * 1e3:.2f}"]
        + [f"{f['ours'] / f[side]:.2f}" for side in ("jit", "padded")]
        for f in found
    ]
    return table(["", "rows", "mean length", "features", "ours ms", "of jit", "of jit, padded"], cells)


def report(found: list[dict[str, Any]]) -> str:
    """A line for each case: milliseconds of ours, and its ratio to each other side."""
    sides = ("dense", "jit", "loop", "torch")
    cells = [
        [f["what"], str(f["groups"]), f["sizes"], f"{f['ours'] * 1e3:.1f}"]
        + [f"{f['ours'] / f[side]:.3f}" if side in f else "" for side in sides]
        for f in found
    ]
    return table(["", "groups", "sizes", "ours ms", "of dense", "of jit", "of a loop", "of torch"], cells)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ragged", description=__doc__)
    parser.add_argument("--groups", type=int, nargs="+", default=GROUPS)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--size", type=int, default=SIZE, help="rows and columns of each matrix (1024)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=5, help="of each side (5)")
    parser.add_argument("--no-jit", dest="jit", action="store_false", help="leave jax.jit out")
    parser.add_argument("--small", action="store_true", help="a small case: does it run?")
    parser.add_argument("--output", type=Path, default=Path("build/ragged.json"), help="the JSON file to write")
    options = parser.parse_args()
    limit_threads(options.threads)
    if options.small:
        options.groups, options.rows, options.size, options.turns = (3,), 30, 16, 1
    found = [row for groups in options.groups for row in measure(groups, options)]
    print(report(found), flush=True)
    reductions = list(measure_reductions(options))
    print(report_reductions(reductions))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(
        json.dumps({"environment": environment(), "cases": found, "reductions": reductions}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main()
