# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with weights of 8 and 4 bits in the forms of programs: `python -m benchmarks.narrow_forms [--small]`.

For each form and number of rows: the time with integers that are read as they are, and its ratios to a weight that is
written as floats, and to jax.jit. Calls take turns; times are medians.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.tables import table
from benchmarks.timing import interleaved, limit_threads

ROWS = (1, 4, 16, 64, 256)
GROUP = 32
"""Rows of a weight that share a scale."""
BLOCK = 128
"""Rows, and columns, of a block that shares one."""

Weight = Callable[..., Any]
Form = tuple[Weight, tuple[np.ndarray, ...], Callable[[Any, Any], Any]]
"""The weight of a form, what it is computed of, and what rows and a weight give."""


def plain(x: Any, w: Any) -> Any:
    """Rows times a weight."""
    return x @ w


def both_ways(x: Any, w: Any) -> Any:
    """Rows times a weight, and the result times the same weight."""
    return (x @ w) @ w.T


def of_experts(x: Any, w: Any) -> Any:
    """Rows of each expert times the weight of that expert."""
    return jnp.einsum("ebk,ekn->ebn", x, w)


def grouped(values: Any, s: Any) -> Any:
    """A weight (..., k, n) with a scale (..., k / GROUP, n) for each group of rows."""
    *outer, k, n = values.shape
    return (values.reshape(*outer, k // GROUP, GROUP, n) * s[..., None, :]).reshape(values.shape)


def halves(q: Any) -> Any:
    """Rows (k, n) of pairs (k / 2, n)."""
    return jnp.stack([q & 15, q >> 4], 1).reshape(-1, q.shape[1])


def forms(n: int, experts: int, expert: int) -> dict[str, Form]:
    """Forms by name, with weights of n rows and columns, or of `experts` times `expert` rows and columns."""
    rng = np.random.default_rng(0)
    q, pairs = rng.integers(-128, 128, (n, n), np.int8), rng.integers(0, 256, (n // 2, n), np.uint8)
    s, groups = rng.uniform(0.5, 1.5, n).astype(np.float32), rng.uniform(0.5, 1.5, (n // GROUP, n)).astype(np.float32)
    blocks = rng.uniform(0.5, 1.5, (n // BLOCK, 1, n // BLOCK, 1)).astype(np.float32)
    many = rng.integers(-128, 128, (experts, expert, expert), np.int8)
    scales = rng.uniform(0.5, 1.5, (experts, 1, expert)).astype(np.float32)
    nf4 = np.linspace(-1, 1, 16, dtype=np.float32) ** 3
    f32, bf16 = jnp.float32, jnp.bfloat16
    return {
        "columns": (lambda q, s: q.astype(f32) * s, (q, s), plain),
        "experts": (lambda q, s: q.astype(f32) * s, (many, scales), of_experts),
        "experts, bf16": (lambda q, s: q.astype(bf16) * s.astype(bf16), (many, scales), of_experts),
        "two products": (lambda q, s: q.astype(f32) * s, (q, s), both_ways),
        "rows": (lambda q, s: q.astype(f32) * s[:, None], (q, s), plain),
        "groups of columns": (lambda q, s: grouped(q.astype(f32), s).T, (q, groups), plain),
        "pairs of columns": (lambda q, s: grouped(halves(q).astype(f32) - 8, s).T, (pairs, groups), plain),
        "blocks": (lambda q, s: (q.reshape(n // BLOCK, BLOCK, -1, BLOCK) * s).reshape(n, n), (q, blocks), plain),
        "quotients": (lambda q, s: q.astype(f32) / s, (q, s), plain),
        "groups and a bias": (lambda q, s: grouped(q.astype(f32), s) + s[0], (q, groups), plain),
        "NF4": (lambda q, s, t: grouped(t[halves(q)], s), (pairs, groups, nf4), plain),
    }


def compare_forms(found: dict[str, Form], names: list[str], threads: int, rounds: int) -> None:
    """Print the table of times."""
    import shlo_disc

    options, rows = shlo_disc.Options(threads=threads, output="buffer"), []
    for name in names:
        weight, arrays, multiply = found[name]
        dtype = jnp.bfloat16 if "bf16" in name else jnp.float32
        terms = arrays[0].shape[-2 if multiply is of_experts else -1]
        outer = arrays[0].shape[:1] if multiply is of_experts else ()

        def narrow(x: Any, *arrays: Any, weight: Weight = weight, multiply: Any = multiply) -> Any:
            return multiply(x, weight(*arrays))

        def written(x: Any, *arrays: Any, weight: Weight = weight, multiply: Any = multiply) -> Any:
            w = weight(*arrays)  # that something else reads
            return multiply(x, w), w.ravel()[:1]

        dims = ", ".join([*map(str, outer), "m", str(terms)])
        specs = ((dims, np.dtype(dtype).name), *((", ".join(map(str, a.shape)), a.dtype.name) for a in arrays))
        ours, theirs = (shlo_disc.compile(f, args=specs, options=options) for f in (narrow, written))
        jitted, passed = jax.jit(narrow), [jnp.asarray(a) for a in arrays]
        for m in ROWS:
            x = jnp.ones((*outer, m, terms), dtype)
            calls = {
                "narrow": lambda ours=ours, x=x, passed=passed: ours(x, *passed),
                "written": lambda theirs=theirs, x=x, passed=passed: theirs(x, *passed),
                "jax.jit": lambda jitted=jitted, x=x, passed=passed: jitted(x, *passed),
            }
            times = interleaved(calls, rounds, 2)
            first = times["narrow"]
            rows.append(
                [name, str(m), f"{first * 1e3:.2f}", *(f"{first / times[k]:.2f}" for k in ("written", "jax.jit"))]
            )
    print(table(["form", "rows", "ms", "to a written weight", "to jax.jit"], rows))


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.narrow_forms", description=__doc__)
    parser.add_argument("--forms", nargs="*", help="names of forms (all of them)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--small", action="store_true", help="small weights: does it run?")
    options = parser.parse_args()
    limit_threads(options.threads)
    found = forms(256, 2, 64) if options.small else forms(2048, 8, 1024)
    compare_forms(found, options.forms or list(found), options.threads, options.rounds)


if __name__ == "__main__":
    main()
