# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m benchmarks [WORK ...]` measures; `python -m benchmarks report FILE` makes tables and the page again."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.backends import BACKENDS, THREADS
from benchmarks.page import write_page
from benchmarks.report import markdown

if TYPE_CHECKING:
    from benchmarks.works import Work

Result = dict[str, Any]


def main(arguments: list[str]) -> int:
    """Entry point."""
    if arguments[:1] == ["report"]:
        return report(arguments[1:])
    return run(arguments)


def run(arguments: list[str]) -> int:
    """Measures the works named, or all of them, and writes the JSON file after each."""
    from benchmarks.driver import measure
    from benchmarks.machine import AVX2, machine
    from benchmarks.timing import limit_threads
    from benchmarks.works import all_works, find

    works = list(all_works())
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("works", nargs="*", metavar="WORK", help=f"any of {', '.join(works)} (default: all)")
    parser.add_argument("--backends", nargs="*", default=list(BACKENDS), choices=list(BACKENDS), metavar="WHO")
    parser.add_argument(
        "--small", action="store_true", help="small models and few shapes: a smoke test, no measurement"
    )
    parser.add_argument("--shapes", type=int, help="only so many shapes of each work")
    parser.add_argument("--budget", type=float, default=0.25, help="seconds of warm calls a backend and shape (0.25)")
    parser.add_argument("--avx2", action="store_true", help="hold all but ONNX Runtime, which has no switch, to AVX2")
    parser.add_argument("--output", type=Path, default=Path("build/benchmarks.json"), help="the JSON file to write")
    parser.add_argument("--update", action="store_true", help="keep what the JSON file holds of other works")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.works if name not in works]
    if unknown:
        parser.error(f"no work {unknown[0]!r}; works are {', '.join(works)}")
    if options.avx2:
        os.environ.update(AVX2)
    limit_threads(THREADS)
    kept = json.loads(options.output.read_text())["works"] if options.update and options.output.exists() else {}
    result: Result = {
        "small": options.small,
        "machine": machine(options.small, AVX2 if options.avx2 else {}),
        "works": kept,
    }
    budget = min(options.budget, 0.02) if options.small else options.budget
    for name in options.works or works:
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            work = find(name, options.small)
            measured = measure(_thinned(work, options.shapes), Path(folder), options.backends, budget, _log)
            result["works"][name] = measured | {"measuring_seconds": time.perf_counter() - start}
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(result, indent=1) + "\n")
    return report([str(options.output)])


def _thinned(work: Work, count: int | None) -> Work:
    """The work with `count` of its shapes, evenly spread; with all for None."""
    total = len(work.shapes)
    if count is None or count >= total:
        return work
    return dataclasses.replace(work, shapes=[work.shapes[index * total // count] for index in range(count)])


def report(arguments: list[str]) -> int:
    """Prints the tables of a JSON file, and writes the page and its pictures beside it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks report", description=report.__doc__)
    parser.add_argument("file", type=Path, help="what `python -m benchmarks` has written")
    file = parser.parse_args(arguments).file
    result = json.loads(file.read_text())
    print(markdown(result))
    for path in write_page(result, file):
        print(f"written: {path}", file=sys.stderr)
    return 0


def _log(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
