# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The streams of clients: each entry built and called at eight sizes, constructors and random seeds included.

`python -m corpus.streams SECONDS CLIENT NAME...` does that on the platform that JAX_PLATFORMS names, and prints JSON.
"""

from __future__ import annotations

import importlib
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corpus.apart import each_apart, run_apart
from corpus.registry import STREAM_SIZES, find_entry, use_real_weights

MARK = "corpus stream: "
ALL_COMPILED = {"SHLO_DISC_INTERPRETED_MICROSECONDS": "0"}
"""The environment in which programs are counted: small ones are compiled as well."""


Turn = tuple[float, float]
"""Seconds of a size, on the wall clock and of the processor."""


def run_stream(client: str, name: str, sizes: Sequence[int]) -> dict[str, Any]:
    """Build and call an entry at some sizes: the seconds of each, and the programs of functions if all are compiled."""
    import jax

    from shlo_disc.driver.ledger.book import LEDGER
    from shlo_disc.runtime.native_module import observe_programs

    entry = find_entry(client, name)
    observe_programs(ALL_COMPILED.items() <= os.environ.items())
    turns: list[Turn] = []
    for size in sizes:
        start = time.perf_counter(), time.process_time()
        function, arguments = entry.build(entry.sizes(size))
        jax.block_until_ready(jax.jit(function)(*arguments))
        turns.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    rows = [[row.name, row.is_users, row.forms, len(row.programs)] for row in LEDGER.rows()]
    return {"turns": turns, "functions": rows}


@dataclass(frozen=True)
class Stream:
    """A client's entries together: the programs of the function that has most, and the seconds of each size."""

    client: str
    entries: int
    failed: int
    most: int
    worst: str
    turns: tuple[Turn, ...]
    reference_turns: tuple[Turn, ...]

    @property
    def seconds(self) -> tuple[float, float]:
        """The seconds of the processor for all sizes, of ours and of the reference."""
        return sum(turn[1] for turn in self.turns), sum(turn[1] for turn in self.reference_turns)

    def ratio(self, first: int, last: int | None = None) -> float:
        """The ratio on the wall clock over the sizes from the first to before the last position."""
        theirs = sum(turn[0] for turn in self.reference_turns[first:last])
        return sum(turn[0] for turn in self.turns[first:last]) / theirs if theirs else math.nan


def print_streams(names: Sequence[tuple[str, str]], limit: float) -> int:
    """Print the table of the clients' streams in Markdown. limit: the seconds that an entry may take."""
    clients = sorted({client for client, _ in names if client != "torch"})
    ratios = []
    print("| client | programs | most of a function | shlo_disc | jax.jit | ratio | first size | from the third on |")
    print("|--|--|--|--|--|--|--|--|")
    for client in clients:
        found = _stream(client, [name for owner, name in names if owner == client], limit)
        ours, theirs = found.seconds
        row = (ours / theirs if theirs else math.nan, found.ratio(0, 1), found.ratio(2))
        failed = f", {found.failed} failed" if found.failed else ""
        print(
            f"| {client} | {found.entries}{failed} | {found.most} ({found.worst}) | {ours:.1f} | {theirs:.1f} | "
            f"{row[0]:.2f} | {row[1]:.2f} | {row[2]:.2f} |",
            flush=True,
        )
        ratios.append(row)
    columns = [[value for value in column if value > 0] for column in zip(*ratios, strict=True)]
    if all(columns):
        means = [math.exp(sum(map(math.log, column)) / len(column)) for column in columns]
        print("\nGeometric means: {:.2f}, first size {:.2f}, from the third on {:.2f}".format(*means))
    return 0


def _stream(client: str, names: Sequence[str], limit: float) -> Stream:
    environments = ({"JAX_PLATFORMS": "shlo_disc,cpu"}, {"JAX_PLATFORMS": "cpu"},
                    {"JAX_PLATFORMS": "shlo_disc,cpu", **ALL_COMPILED})  # fmt: skip
    return joined(
        client, names, *(dict(run_apart("corpus.streams", MARK, client, names, limit, one)) for one in environments)
    )


def joined(
    client: str, names: Sequence[str], ours: Mapping[str, Any], reference: Mapping[str, Any], counted: Mapping[str, Any]
) -> Stream:
    """Join what `run_stream` has said of a client's entries: on both platforms, and where programs are counted.

    Those that failed in one of these are left out.
    """
    whole = [name for name in names if all("turns" in of.get(name, {}) for of in (ours, reference, counted))]
    most, worst = 0, ""
    for name in whole:
        for function, _, forms, programs in counted[name]["functions"]:
            if math.ceil(programs / forms) > most:
                most, worst = math.ceil(programs / forms), function
    sums = (_sums([of[name]["turns"] for name in whole]) for of in (ours, reference))
    return Stream(client, len(names), len(names) - len(whole), most, worst, *sums)


def _sums(streams: Sequence[Sequence[Turn]]) -> tuple[Turn, ...]:
    """The seconds of several streams, size by size."""
    return tuple((sum(t[0] for t in turns), sum(t[1] for t in turns)) for turns in zip(*streams, strict=True))


def load_compiler() -> None:
    """Import what compiles, before entries are forked: a process does so once, whatever it runs."""
    for name in ("pjrt.compile", "pjrt.generalize", "driver.compiler", "lowering_cpu"):
        importlib.import_module(f"shlo_disc.{name}")


if __name__ == "__main__":
    load_compiler()
    use_real_weights()
    each_apart("corpus.streams", MARK, lambda client, name: run_stream(client, name, STREAM_SIZES))
