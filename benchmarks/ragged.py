# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of groups of rows, each with a matrix of its own (`jax.lax.ragged_dot`), and reductions of ragged rows.

`python -m benchmarks.ragged` prints milliseconds of ours, and ratios: to the dense product of the same arithmetic and
its gradients (ours), to jax.jit's `ragged_dot`, to a loop of NumPy's products over the groups, and to PyTorch's
`grouped_mm` and its gradients, eager, where PyTorch is installed ("refused" where it has none of the element type). All
take turns in one process, and the least time of each counts. Numbers of ours, of the loop and of PyTorch are compared
first. jax.jit is left out with `--no-jit`, or where it would take more than a minute (it computes a product for each
group, of all rows). "memory" is a bound of the ratio to the dense product: the seconds in which a copy of a large array
reads and writes as many bytes as operands and results have, but for matrices of groups without rows.

Then reductions of `shlo_disc.ragged`, with geometric lengths of up to eight times the mean: ratios to the same function
under jax.jit, and to jax.jit of padded rows.
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
Sides = dict[str, Call | None]
"""By name, what calls a side; None where it refuses the element type."""


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


def backends(groups: int, options: argparse.Namespace) -> Iterator[tuple[str, Callable[[Any], Sides]]]:
    """The product and its gradients: what makes the calls of each side for sizes."""
    import shlo_disc

    rows, size, dtype = options.rows, options.size, options.dtype
    chosen = shlo_disc.Options(threads=options.threads)
    rng = np.random.default_rng(groups)
    x = jnp.asarray(rng.standard_normal((rows, size)), dtype)
    w = jnp.asarray(rng.standard_normal((groups, size, size)), dtype)
    rows_of_x, square = (f"m, {size}", dtype), (f"{size}, {size}", dtype)
    args = (rows_of_x, (f"{groups}, {size}, {size}", dtype), (str(groups), "int32"))
    ours = shlo_disc.compile(ragged, args=args, options=chosen)
    plain = shlo_disc.compile(dense, args=(rows_of_x, square), options=chosen)
    jitted = jax.jit(ragged)
    ours_back = shlo_disc.compile(gradients, args=(*args, rows_of_x), options=chosen)
    plain_back = shlo_disc.compile(dense_gradients, args=(rows_of_x, square, rows_of_x), options=chosen)
    jitted_back = jax.jit(gradients)
    by_numpy = np.asarray(x), np.asarray(w)
    by_torch = _by_torch(*by_numpy, options.threads)

    def calls(sizes: Any) -> Sides:
        loop = {"loop": lambda: _loop(*by_numpy, np.asarray(sizes))} if dtype.startswith("float") else {}
        return {
            "ours": lambda: ours(x, w, sizes), "dense": lambda: plain(x, w[0]), **loop,
            "jit": lambda: jitted(x, w, sizes), **by_torch(np.asarray(sizes), False),
        }  # fmt: skip

    def calls_back(sizes: Any) -> Sides:
        return {
            "ours": lambda: ours_back(x, w, sizes, x), "dense": lambda: plain_back(x, w[0], x),
            "jit": lambda: jitted_back(x, w, sizes, x), **by_torch(np.asarray(sizes), True),
        }  # fmt: skip

    yield "product", calls
    yield "gradients", calls_back


def _loop(x: np.ndarray, w: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    result = np.zeros((len(x), w.shape[2]), x.dtype)
    first = 0
    for matrix, size in zip(w, sizes, strict=True):
        result[first : first + size] = x[first : first + size] @ matrix
        first += size
    return result


def _by_torch(x: np.ndarray, w: np.ndarray, threads: int) -> Callable[[np.ndarray, bool], Sides]:
    """PyTorch's product of groups, or its gradients, for sizes; nothing where PyTorch is not installed."""
    if importlib.util.find_spec("torch") is None:
        return lambda sizes, is_gradient: {}
    torch = importlib.import_module("torch")
    torch.set_num_threads(threads)
    dtype = getattr(torch, x.dtype.name)
    wide = np.float64 if x.dtype == np.float64 else np.float32
    rows, matrices = (torch.from_numpy(a.astype(wide)).to(dtype).requires_grad_() for a in (x, w))

    def calls(sizes: np.ndarray, is_gradient: bool) -> Sides:
        ends = torch.from_numpy(np.cumsum(sizes).astype(np.int32))

        def product() -> Any:
            with torch.no_grad():
                return torch.nn.functional.grouped_mm(rows, matrices, offs=ends)

        def back() -> Any:
            """As a gradient takes what the product before it has kept, that product is computed once, outside."""
            return torch.autograd.grad(result, (rows, matrices), rows.detach(), retain_graph=True)

        try:
            result = torch.nn.functional.grouped_mm(rows, matrices, offs=ends)
        except RuntimeError as error:  # "Expected mat_a to be Float32, BFloat16 or Float16 matrix, got Double"
            if "Expected mat_a" not in str(error):
                raise
            return {"torch": None}
        return {"torch": back if is_gradient else product}

    return calls


def bandwidth(options: argparse.Namespace) -> float:
    """Bytes that a copy of a large array reads and writes in a second."""
    import shlo_disc

    given = jnp.ones(max(1 << 16, 32 * options.rows * options.size), "float32")
    copy = shlo_disc.compile(jnp.negative, args=(("n", "float32"),), options=shlo_disc.Options(threads=options.threads))
    least = min(seconds(lambda: copy(given)) for _ in range(options.turns + 3))
    return 2 * given.nbytes / least


def bytes_moved(what: str, sizes: np.ndarray, options: argparse.Namespace) -> int:
    """Bytes of operands and results, but for matrices that are read and whose group has no rows."""
    rows, matrix = options.rows * options.size, options.size**2
    read = np.count_nonzero(sizes) * matrix
    elements = 2 * rows + read if what == "product" else 3 * rows + read + len(sizes) * matrix
    return int(elements) * jnp.dtype(options.dtype).itemsize


def compare(calls: dict[str, Call]) -> None:
    """Raises AssertionError where the numbers of the loop or of PyTorch are not ours."""
    ours = jax.tree.leaves(calls["ours"]())
    for name in calls.keys() & {"loop", "torch"}:
        found = calls[name]()
        for mine, other in zip(ours, found if isinstance(found, tuple) else (found,), strict=True):
            theirs = np.asarray(other if name == "loop" else other.float().numpy(), np.float32)
            scale = float(np.abs(theirs).max())
            error = 1e-5 if mine.dtype in (np.float32, np.float64) else 2e-2
            np.testing.assert_allclose(np.asarray(mine, np.float32), theirs, rtol=error, atol=error * scale)


def measure(groups: int, options: argparse.Namespace, bytes_a_second: float) -> Iterator[dict[str, Any]]:
    """Seconds of each side, for each distribution of sizes."""
    for what, calls_of in backends(groups, options):
        for distribution in DISTRIBUTIONS:
            sizes = distribution(groups, options.rows)
            sides = calls_of(jnp.asarray(sizes, "int32"))
            if not options.jit or groups * options.rows > MOST_WORK:
                del sides["jit"]
            refused = [name for name, call in sides.items() if call is None]
            calls = {name: call for name, call in sides.items() if call is not None}
            compare(calls)
            memory = bytes_moved(what, sizes, options) / bytes_a_second
            case = {"what": what, "groups": groups, "sizes": distribution.__name__, "memory": memory}
            yield case | _least(calls, options) | dict.fromkeys(refused)


def _least(calls: dict[str, Call], options: argparse.Namespace) -> dict[str, float]:
    """Seconds of each side, its least of all turns but the first. jax.jit has few turns where it takes long."""
    least = dict.fromkeys(calls, float("inf"))
    for turn in range(options.turns + 1):
        for name, call in calls.items():
            if name != "jit" or turn < 2 or least["jit"] < 1:
                time.sleep(PAUSE)
                found = min(seconds(call), seconds(call) if name != "jit" else float("inf"))
                least[name] = min(least[name], found) if turn else least[name]
    return least


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
    """A line for each case: milliseconds of ours, its ratio to each other side, and memory's to the dense product."""
    cells = [
        [f["what"], str(f["groups"]), f["sizes"], f"{f['ours'] * 1e3:.1f}", _ratio(f, "ours", "dense")]
        + [_ratio(f, "memory", "dense"), *(_ratio(f, "ours", side) for side in ("jit", "loop", "torch"))]
        for f in found
    ]
    head = ["", "groups", "sizes", "ours ms", "of dense", "memory, of dense", "of jit", "of a loop", "of torch"]
    return table(head, cells)


def _ratio(found: dict[str, Any], side: str, other: str) -> str:
    if other not in found:
        return ""
    return "refused" if found[other] is None else f"{found[side] / found[other]:.3f}"


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ragged", description=__doc__)
    parser.add_argument("--groups", type=int, nargs="+", default=GROUPS)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--size", type=int, default=SIZE, help="rows and columns of each matrix (1024)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=5, help="of each side (5)")
    parser.add_argument("--dtype", choices=["float32", "float64", "bfloat16", "float16"], default="float32")
    parser.add_argument("--no-jit", dest="jit", action="store_false", help="leave jax.jit out")
    parser.add_argument("--small", action="store_true", help="a small case: does it run?")
    parser.add_argument("--output", type=Path, default=Path("build/ragged.json"), help="the JSON file to write")
    options = parser.parse_args()
    limit_threads(options.threads)
    if options.small:
        options.groups, options.rows, options.size, options.turns = (3,), 30, 16, 1
    jax.config.update("jax_enable_x64", options.dtype == "float64")
    speed = bandwidth(options)
    found = [row for groups in options.groups for row in measure(groups, options, speed)]
    print(report(found), flush=True)
    reductions = list(measure_reductions(options))
    print(report_reductions(reductions))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    result = {"environment": environment(), "bandwidth": speed, "cases": found, "reductions": reductions}
    options.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
