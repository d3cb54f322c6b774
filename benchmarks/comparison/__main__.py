# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures streams of shapes, and writes the tables of docs/comparison.md from what was measured."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.backends import BACKENDS, THREADS
from benchmarks.comparison.page import PAGE, RESULTS, tables, with_tables

WHO = (
    "ours", "ours_bound", "ours_plugin", "ours_backend", "jit", "jit_buckets", "torch_eager", "torch_compile",
    "onnxruntime", "iree", "iree_torch",
)  # fmt: skip


def main(arguments: list[str]) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparison", description=__doc__)
    parser.add_argument("streams", nargs="*", metavar="STREAM", help="mlp, encoder, speech (default: all)")
    parser.add_argument("--backends", nargs="*", default=list(WHO), choices=list(BACKENDS), metavar="WHO")
    parser.add_argument("--rounds", type=int, default=3, help="fresh processes of each backend (3)")
    parser.add_argument("--budget", type=float, default=0.1, help="seconds of warm calls a backend and shape (0.1)")
    parser.add_argument("--small", action="store_true", help="small models and three shapes: does everything run?")
    parser.add_argument("--add", action="store_true", help="keep the figures of a stream's other backends")
    parser.add_argument("--output", type=Path, default=RESULTS, help="the JSON file; other streams in it are kept")
    parser.add_argument("--page", action="store_true", help="measure nothing; write the tables into docs/comparison.md")
    options = parser.parse_args(arguments)
    if options.page:
        PAGE.write_text(with_tables(PAGE.read_text(), json.loads(options.output.read_text())))
        return 0
    return run(options)


def run(options: argparse.Namespace) -> int:
    """Measures the streams named, or all of them, writes the JSON file after each and prints its tables."""
    from benchmarks.comparison.measure import measure
    from benchmarks.comparison.streams import STREAMS
    from benchmarks.timing import limit_threads

    unknown = [name for name in options.streams if name not in STREAMS]
    if unknown:
        print(f"no stream {unknown[0]!r}; streams are {', '.join(STREAMS)}", file=sys.stderr)
        return 2
    for name in options.backends:
        if BACKENDS[name].missing():
            print(f"{BACKENDS[name].title} is left out: {BACKENDS[name].missing()} is not installed")
    names = [name for name in options.backends if not BACKENDS[name].missing()]
    limit_threads(THREADS)
    kept = json.loads(options.output.read_text()) if options.output.exists() else {}
    for name in options.streams or STREAMS:
        with tempfile.TemporaryDirectory() as folder:
            work = STREAMS[name](options.small)
            measured = measure(work, Path(folder), names, options.rounds, options.budget, _log)
        rows = (kept.get(name, {}).get("backends", {}) if options.add else {}) | measured["backends"]
        in_order = sorted(rows, key=list(BACKENDS).index)
        kept[name] = measured | {"backends": {who: rows[who] for who in in_order}}
        results = {stream: kept[stream] for stream in STREAMS if stream in kept}
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(results, indent=1) + "\n")
    print("\n\n".join(tables(results).values()))
    return 0


def _log(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
