# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long compiling takes: `python -m benchmarks.compile_time`, in processor seconds, beside XLA's at static sizes.

The first table has programs whose kernels could grow without bound: long chains, unrolled steps, many pieces. The
others have programs of more and more ops, and of more and more symbols, with the line that fits them best. What is
timed is `shlo_disc.compile` of an exported program, without a compile cache, and XLA's `compile()` of a lowered one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

from benchmarks.tables import table

Function = Callable[..., Any]

OPS = (100, 200, 500, 1000, 2000, 5000)
SYMBOLS = (1, 2, 4, 8, 16, 32, 64)


class Program(NamedTuple):
    """A function, the symbolic shapes of its arguments, and the sizes for which XLA compiles it."""

    function: Function
    shapes: Sequence[str]
    sizes: dict[str, int]


def _one(function: Function, shape: str = "b, d") -> Program:
    return Program(function, [shape], {"b": 16, "d": 64})


def _of_count(make: Callable[[int], Function]) -> Callable[[int], Program]:
    return lambda count: _one(make(count))


def steps(count: int) -> Function:
    """`count` steps x + sin(x) / 10."""

    def function(x: jax.Array) -> jax.Array:
        for _ in range(count):
            x = x + 0.1 * jnp.sin(x)
        return x

    return function


def sum_of(function: Function, count: int) -> Function:
    """The sum of `function` at `count` multiples of x."""
    return lambda x: sum(function(x * (0.01 * i)) for i in range(1, count + 1))


def runge_kutta(count: int) -> Function:
    """`count` unrolled steps of the classical Runge-Kutta method for a damped pendulum (angle and speed stacked)."""

    def derivative(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        angle, speed = state
        return speed, -jnp.sin(angle) - 0.1 * speed

    def along(state: Any, slope: Any, step: float) -> Any:
        return jax.tree.map(lambda s, k: s + step * k, state, slope)

    def function(angle: jax.Array) -> jax.Array:
        state = (angle, jnp.zeros_like(angle))
        for _ in range(count):
            k1 = derivative(state)
            k2 = derivative(along(state, k1, 0.05))
            k3 = derivative(along(state, k2, 0.05))
            k4 = derivative(along(state, k3, 0.1))
            for weight, slope in ((1, k1), (2, k2), (2, k3), (1, k4)):
                state = along(state, slope, weight * 0.1 / 6)
        return state[0]

    return function


def rolled(count: int) -> Function:
    """x + roll(x), `count` times over."""

    def function(x: jax.Array) -> jax.Array:
        for i in range(1, count + 1):
            x = x + jnp.roll(x, i)
        return x

    return function


def chain(count: int) -> Function:
    """`count` elementwise ops one after the other."""

    def function(x: jax.Array) -> jax.Array:
        for i in range(count):
            x = x * 0.99 if i % 2 else x + 0.5
        return x

    return function


def layers(count: int) -> Function:
    """About `count` ops: layers of a product with a row, a softmax and a residual, some ten ops each."""

    def function(x: jax.Array) -> jax.Array:
        for i in range(count // 10):
            x = x + jax.nn.softmax(x * (1.0 + 0.01 * i), axis=-1) - jnp.mean(x, axis=-1, keepdims=True)
        return x

    return function


def symbols(count: int) -> Program:
    """The norms of `count` matrices, each with rows of its own size."""
    shapes = [f"n{i}, d" for i in range(count)]
    sizes = {"d": 64} | {f"n{i}": 16 + i for i in range(count)}
    return Program(lambda *xs: sum(jnp.sqrt(jnp.sum(jnp.tanh(x) ** 2, axis=0)) for x in xs), shapes, sizes)


def programs() -> dict[str, Program]:
    """What the first table is of."""
    two = {"b": 16, "d": 64}
    rows = lambda x: [x[i : i + 1] for i in range(200)]  # noqa: E731
    return {
        "40 x (x + sin x / 10)": _one(steps(40)),
        "100 x (x + sin x / 10)": _one(steps(100)),
        "100 sines": _one(sum_of(jnp.sin, 100)),
        "100 exponentials": _one(sum_of(jnp.exp, 100)),
        "100 hyperbolic tangents": _one(sum_of(jnp.tanh, 100)),
        "100 logarithms": _one(sum_of(jnp.log, 100)),
        "100 powers": _one(sum_of(lambda x: jnp.abs(x) ** 1.3, 100)),
        "10 steps of Runge-Kutta": _one(runge_kutta(10)),
        "25 steps of Runge-Kutta": _one(runge_kutta(25)),
        "concatenation of 200 slices": _one(lambda x: jnp.concatenate([x[:, i % 7 :] for i in range(200)], 1), "b, 64"),
        "concatenation of 200 rows": Program(lambda x: jnp.concatenate(rows(x)[::-1], 0), ["256, d"], two),
        "concatenation of 200 arguments": Program(lambda *xs: jnp.concatenate(xs, 0), ["b, d"] * 200, two),
        "concatenation of 200 expressions": _one(lambda x: jnp.concatenate([x * (1.0 + i) for i in range(200)], 1)),
        "100 rolls": _one(rolled(100)),
        "sum of 100 rolls": _one(lambda x: sum(jnp.roll(x, i) for i in range(100))),
        "chain of 100": _one(chain(100)),
        "100 softmax": _one(layers(1000)),
    }


def _exported(program: Program) -> jax.export.Exported:
    scope = jax.export.SymbolicScope()
    shapes = [jax.export.symbolic_shape(s, scope=scope) for s in program.shapes]
    return jax.export.export(jax.jit(program.function))(*(jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes))


def _static(program: Program) -> list[jax.ShapeDtypeStruct]:
    names = [[part.strip() for part in shape.split(",")] for shape in program.shapes]
    return [jax.ShapeDtypeStruct([program.sizes.get(n) or int(n) for n in dims], jnp.float32) for dims in names]


def seconds(work: Callable[[], object]) -> float:
    """Processor seconds of this process, all of its threads."""
    start = time.process_time()
    work()
    return time.process_time() - start


def ours(program: Program) -> float:
    """Processor seconds of our compile."""
    import shlo_disc

    exported = _exported(program)
    options = shlo_disc.Options(cache_dir="")
    return seconds(lambda: shlo_disc.compile(exported, options=options))


def xla(program: Program) -> float:
    """Processor seconds of XLA's compile for one size."""
    lowered = jax.jit(program.function).lower(*_static(program))
    return seconds(lowered.compile)


def measured(names: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    """A row for each of the programs named."""
    for name in names:
        program = programs()[name]
        own, other = ours(program), xla(program)
        yield name, f"{own:.2f}", f"{other:.2f}", f"{own / other:.2f}"


def grown(
    make: Callable[[int], Program], counts: Sequence[int], most_for_xla: int
) -> Iterator[tuple[str, str, str, str]]:
    """A row for each count, with XLA up to `most_for_xla`, and the line that fits best, in milliseconds."""
    times = []
    for count in counts:
        times.append(ours(make(count)))
        other = xla(make(count)) if count <= most_for_xla else None
        ratio = ("", "") if other is None else (f"{other:.2f}", f"{times[-1] / other:.2f}")
        yield str(count), f"{times[-1]:.2f}", *ratio
    slope, constant = np.polyfit(counts, times, 1)
    exponent = np.polyfit(np.log(counts[-3:]), np.log(times[-3:]), 1)[0]
    yield "line", f"{1e3 * constant:.0f} ms + {1e3 * slope:.2f} ms each", "", f"grows as n^{exponent:.2f} at the end"


def main(arguments: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="of the first table; default: all, and growth")
    parser.add_argument("--growth", action="store_true", help="only the tables over the ops and the symbols")
    parser.add_argument("--ops", type=int, nargs="+", default=OPS, help="counts of ops")
    parser.add_argument("--symbols", type=int, nargs="+", default=SYMBOLS, help="counts of symbols")
    options = parser.parse_args(arguments)
    ours(_one(jnp.tanh))
    xla(_one(jnp.tanh))
    head = ("ours s", "XLA s", "ours / XLA")
    if not options.growth:
        print(table(("program", *head), list(measured(options.programs or list(programs())))), flush=True)
    if options.growth or not options.programs:
        for name, make, most in (("chain", chain, 5000), ("layers", layers, 200)):
            rows = grown(_of_count(make), options.ops, most)
            print(table((f"ops, {name}", *head), list(rows)), flush=True)
        print(table(("symbols", *head), list(grown(symbols, options.symbols, 64))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
