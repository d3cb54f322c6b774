# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The streams of clients: each entry built and called at eight sizes, constructors and random seeds included.

`python -m corpus.streams SECONDS CLIENT NAME...` does that on the platform that JAX_PLATFORMS names, and prints JSON.
"""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from corpus.apart import each_apart, run_apart
from corpus.registry import STREAM_SIZES, find_entry, use_real_weights

MARK = "corpus stream: "


def run_stream(client: str, name: str, sizes: Sequence[int]) -> dict[str, Any]:
    """Build and call an entry at some sizes: the seconds of the processor, and the programs of each function."""
    import jax

    from shlo_disc.driver.ledger.book import LEDGER
    from shlo_disc.runtime.native_module import observe_programs

    entry = find_entry(client, name)
    observe_programs(True)
    start = time.process_time()
    for size in sizes:
        function, arguments = entry.build(entry.sizes(size))
        jax.block_until_ready(jax.jit(function)(*arguments))
    seconds = time.process_time() - start
    rows = [[row.name, row.is_users, row.forms, len(row.programs)] for row in LEDGER.rows()]
    return {"seconds": seconds, "functions": rows}


@dataclass(frozen=True)
class Stream:
    """A client's entries together: the programs of the function that has most, and the seconds."""

    client: str
    entries: int
    failed: int
    most: int
    worst: str
    seconds: float
    reference_seconds: float


def print_streams(names: Sequence[tuple[str, str]], limit: float) -> int:
    """Print the table of the clients' streams in Markdown. limit: the seconds that an entry may take."""
    clients = sorted({client for client, _ in names if client != "torch"})
    streams = []
    print("| client | programs | most programs of a function | shlo_disc | jax.jit | ratio |\n|--|--|--|--|--|--|")
    for client in clients:
        found = _stream(client, [name for owner, name in names if owner == client], limit)
        ratio = found.seconds / found.reference_seconds if found.reference_seconds else math.nan
        failed = f", {found.failed} failed" if found.failed else ""
        print(
            f"| {client} | {found.entries}{failed} | {found.most} ({found.worst}) | {found.seconds:.1f} | "
            f"{found.reference_seconds:.1f} | {ratio:.2f} |",
            flush=True,
        )
        streams.append(ratio)
    known = [ratio for ratio in streams if ratio > 0]
    if known:
        print(f"\nGeometric mean: {math.exp(sum(map(math.log, known)) / len(known)):.2f}")
    return 0


def _stream(client: str, names: Sequence[str], limit: float) -> Stream:
    seconds = reference = 0.0
    most, worst, failed = 0, "", 0
    found = [
        dict(run_apart("corpus.streams", MARK, client, names, limit, {"JAX_PLATFORMS": platforms}))
        for platforms in ("shlo_disc,cpu", "cpu")
    ]
    for name in names:
        ours, theirs = (one.get(name, {}) for one in found)
        if "error" in ours or "error" in theirs or not ours or not theirs:
            failed += 1
            continue
        seconds, reference = seconds + ours["seconds"], reference + theirs["seconds"]
        for function, _, forms, programs in ours["functions"]:
            if math.ceil(programs / forms) > most:
                most, worst = math.ceil(programs / forms), function
    return Stream(client, len(names), failed, most, worst, seconds, reference)


def load_compiler() -> None:
    """Import what compiles, before entries are forked: a process does so once, whatever it runs."""
    for name in ("pjrt.compile", "pjrt.generalize", "compiler", "lowering_cpu"):
        importlib.import_module(f"shlo_disc.{name}")


if __name__ == "__main__":
    load_compiler()
    use_real_weights()
    each_apart("corpus.streams", MARK, lambda client, name: run_stream(client, name, STREAM_SIZES))
