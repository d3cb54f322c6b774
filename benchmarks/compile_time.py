# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compile times: `python -m benchmarks.compile_time`, in processor seconds, beside XLA's at static sizes.

The first table has programs that are many of one kind, or deeply nested (`compile_programs.py`), with the processor
milliseconds of each stage, its verification included. The others have programs of more and more ops, and of more and
more symbols, with the line that fits them best. What is timed is `shlo_disc.compile` of an exported program, without a
compile cache, and XLA's `compile()` of a lowered one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

from benchmarks.compile_programs import Program, chain, one, programs, softmaxes, symbols
from benchmarks.tables import table

OPS = (100, 200, 500, 1000, 2000, 5000)
SYMBOLS = (1, 2, 4, 8, 16, 32, 64)
STAGES = ("import", "annotate", "simplify", "fuse", "plan", "kernels", "host", "codegen")
BOUND = 3.0
"""Limit for a program of the first table, as a multiple of XLA's processor seconds."""


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


def ours(program: Program) -> dict[str, float]:
    """Processor seconds of our compile by stage, up to where the next one begins, and of `all`."""
    import shlo_disc
    from shlo_disc.lowering.progress import watching

    exported = _exported(program)
    options = shlo_disc.Options(cache_dir="")
    begun: dict[str, float] = {}

    def watch(stage: str, ended: float | None) -> None:
        if ended is None:
            begun[stage] = time.process_time()

    start = time.process_time()
    with watching(watch):
        shlo_disc.compile(exported, options=options)
    end = time.process_time()
    laps = [start, *(begun[stage] for stage in STAGES[1:]), end]
    return dict(zip(STAGES, np.diff(laps), strict=True)) | {"all": end - start}


def xla(program: Program) -> float:
    """Processor seconds of XLA's compile for one size."""
    lowered = jax.jit(program.function).lower(*_static(program))
    return seconds(lowered.compile)


def fastest(program: Program, rounds: int) -> tuple[dict[str, float], float]:
    """The fastest of `rounds` compiles, ours by stage and XLA's, in turns."""
    found, other = ours(program), xla(program)
    for _ in range(rounds - 1):
        found = min(found, ours(program), key=lambda each: each["all"])
        jax.clear_caches()
        other = min(other, xla(program))
    return found, other


def measured(names: Sequence[str], rounds: int) -> Iterator[list[str]]:
    """A row for each of the programs named: seconds, their ratio, and our milliseconds by stage."""
    known = programs()
    for name in names:
        own, other = fastest(known[name], rounds)
        ratio = own["all"] / other
        mark = " *" if ratio > BOUND else ""
        stages = [f"{1e3 * own[stage]:.0f}" for stage in STAGES]
        yield [name, f"{own['all']:.2f}", f"{other:.2f}", f"{ratio:.2f}{mark}", *stages]


def grown(make: Callable[[int], Program], counts: Sequence[int], most_for_xla: int) -> Iterator[list[str]]:
    """A row for each count, with XLA up to `most_for_xla`, and the line that fits best, in milliseconds."""
    times = []
    for count in counts:
        times.append(ours(make(count))["all"])
        other = xla(make(count)) if count <= most_for_xla else None
        ratio = ("", "") if other is None else (f"{other:.2f}", f"{times[-1] / other:.2f}")
        yield [str(count), f"{times[-1]:.2f}", *ratio]
    slope, constant = np.polyfit(counts, times, 1)
    exponent = np.polyfit(np.log(counts[-3:]), np.log(times[-3:]), 1)[0]
    yield ["line", f"{1e3 * constant:.0f} ms + {1e3 * slope:.2f} ms each", "", f"grows as n^{exponent:.2f} at the end"]


def _first_table(names: Sequence[str], rounds: int) -> None:
    """Print a line as soon as it is measured, under the head of the table."""
    width = max(map(len, names))
    head = ["ours s", "XLA s", "ours / XLA", *STAGES]
    line = lambda row: "  ".join([row[0].rjust(width), *(cell.rjust(10) for cell in row[1:])])  # noqa: E731
    print(line(["program", *head]), flush=True)
    for row in measured(names, rounds):
        print(line(row), flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="of the first table; default: all, and growth")
    parser.add_argument("--growth", action="store_true", help="only the tables over the ops and the symbols")
    parser.add_argument("--no-growth", action="store_true", help="only the first table")
    parser.add_argument("--rounds", type=int, default=1, help="compiles of each program, of which the fastest counts")
    parser.add_argument("--ops", type=int, nargs="+", default=OPS, help="counts of ops")
    parser.add_argument("--symbols", type=int, nargs="+", default=SYMBOLS, help="counts of symbols")
    options = parser.parse_args(arguments)
    ours(one(jnp.tanh))
    xla(one(jnp.tanh))
    if not options.growth:
        _first_table(options.programs or list(programs()), options.rounds)
    if options.growth or not (options.programs or options.no_growth):
        _growth_tables(options.ops, options.symbols)
    return 0


def _growth_tables(ops: Sequence[int], counts: Sequence[int]) -> None:
    """Print the tables over ops and symbols."""
    head = ("ours s", "XLA s", "ours / XLA")
    kinds: dict[str, tuple[Callable[[int], Program], int]] = {
        "chain": (lambda count: one(chain(count)), 5000),
        "softmax": (lambda count: one(softmaxes(count // 10)), 200),
    }
    for name, (make, most) in kinds.items():
        print(table((f"ops, {name}", *head), list(grown(make, ops, most))), flush=True)
    print(table(("symbols", *head), list(grown(symbols, counts, 64))), flush=True)


if __name__ == "__main__":
    sys.exit(main())
