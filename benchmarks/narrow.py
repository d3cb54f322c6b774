# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Narrow elements: BERT in bf16 against f32, with its error, and the speed of products of each element type.

`python -m benchmarks.narrow` runs jax.jit and ours with bound weights in f32 and in bf16, in turns in one process, and
prints the times relative to jax.jit's in f32, and the largest error relative to the largest result in f32. `--products`
prints GFLOP/s of products with packed right-hand sides instead.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.tables import geometric_mean, table
from benchmarks.timing import interleaved, limit_threads
from examples import bert
from examples.model import function

SHAPES = ((1, 16), (1, 64), (1, 128), (2, 256), (4, 128), (1, 512), (8, 64))
ROWS = (1, 8, 64, 512)
MATRICES = ((768, 768), (768, 3072), (3072, 768))
DTYPES = ("float32", "bfloat16", "float16", "int8", "uint8", "int32")


def in_bf16(tree: Any) -> Any:
    """The f32 leaves of a tree, arrays or their types, in bf16."""

    def leaf(x: Any) -> Any:
        if x.dtype != jnp.float32:
            return x
        return (
            jax.ShapeDtypeStruct(x.shape, jnp.bfloat16)
            if isinstance(x, jax.ShapeDtypeStruct)
            else x.astype(jnp.bfloat16)
        )

    return jax.tree.map(leaf, tree)


def models(config: bert.Config, threads: int) -> dict[str, Callable[..., Any]]:
    """Backends by name: each a function of tokens, segments and mask."""
    import shlo_disc

    forward, exported = function(bert, config), bert.export(config)
    avals = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in exported.in_avals]
    (args, _) = jax.tree.unflatten(exported.in_tree, avals)
    params = jax.tree.map(jnp.asarray, bert.init(config))
    halves = in_bf16(params)
    jitted, options = jax.jit(forward), shlo_disc.Options(threads=threads)
    narrow = jax.export.export(jitted)(*in_bf16(args))
    ours, ours_narrow = (
        shlo_disc.compile(p, options=options).bind(w) for p, w in ((exported, params), (narrow, halves))
    )
    return {
        "jit f32": lambda *inputs: jitted(params, *inputs),
        "jit bf16": lambda *inputs: jitted(halves, *inputs),
        "ours f32": ours,
        "ours bf16": ours_narrow,
    }


def compare_models(config: bert.Config, shapes: tuple[tuple[int, ...], ...], threads: int, rounds: int) -> None:
    """Print the table of times and errors."""
    backends = models(config, threads)
    rows, ratios = [], []
    for shape in shapes:
        inputs = [jnp.asarray(x) for x in bert.make_inputs(config, *shape)]
        calls = {name: functools.partial(call, *inputs) for name, call in backends.items()}
        want = np.asarray(calls["jit f32"]())
        errors = {name: np.abs(np.float32(call()) - want).max() / np.abs(want).max() for name, call in calls.items()}
        times = interleaved(calls, rounds)
        base = times["jit f32"]
        ratios.append({name: time / base for name, time in times.items()})
        rows.append(
            [str(shape), f"{base * 1e3:.1f}", *(f"{ratios[-1][n]:.2f} ({errors[n]:.0e})" for n in list(calls)[1:])]
        )
    names = list(backends)
    print(table(["(b, s)", "jit f32 ms", *(f"{name} (error)" for name in names[1:])], rows))
    print("geometric means: " + ", ".join(f"{n} {geometric_mean(r[n] for r in ratios):.3f}" for n in names[1:]))


def product(dtype: str, k: int, n: int, threads: int) -> Callable[[np.ndarray], Any]:
    """A product with a bound right-hand side, of any number of rows; integers have sums of 32 bits, halves of f32."""
    import shlo_disc

    wide = {"int8": jnp.int32, "uint8": jnp.uint32, "int32": jnp.int32}.get(dtype, jnp.float32)
    program = shlo_disc.compile(
        lambda w, x: jnp.dot(x, w, preferred_element_type=wide),
        args=((f"{k}, {n}", dtype), (f"m, {k}", dtype)),
        options=shlo_disc.Options(threads=threads, output="buffer"),
    )
    return program.bind(np.ones((k, n), dtype))


def compare_products(threads: int, rounds: int) -> None:
    """Print the table of speeds."""
    rows = []
    for k, n in MATRICES:
        products = {dtype: product(dtype, k, n, threads) for dtype in DTYPES}
        for m in ROWS:
            calls = {d: functools.partial(call, np.ones((m, k), d)) for d, call in products.items()}
            times = interleaved(calls, rounds, warmup=3)
            rows.append([str((m, n, k)), *(f"{2e-9 * m * n * k / times[d]:.0f}" for d in DTYPES)])
    print(table(["(m, n, k)", *DTYPES], rows))


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.narrow", description=__doc__)
    parser.add_argument("--products", action="store_true", help="products instead of the model")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--small", action="store_true", help="a small model at one shape: does it run?")
    options = parser.parse_args()
    limit_threads(options.threads)
    if options.products:
        compare_products(options.threads, options.rounds)
    elif options.small:
        compare_models(bert.SMALL, ((2, 17),), options.threads, 2)
    else:
        compare_models(bert.BASE, SHAPES, options.threads, options.rounds)


if __name__ == "__main__":
    main()
