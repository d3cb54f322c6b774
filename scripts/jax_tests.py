# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs JAX's own test files on a platform, and compares what passes there with what passes on another.

    git clone --depth 1 --branch jax-v0.10.2 https://github.com/jax-ml/jax jax-source
    python scripts/jax_tests.py run --source jax-source --kind cpu --output ours.json
    python scripts/jax_tests.py run --source jax-source --kind cpu --output xla.json --library xla=PLUGIN.so
    python scripts/jax_tests.py compare ours.json xla.json

The source has to be that of the installed JAX. Each file runs in a process of its own; when that dies, the test that
was running counts as a failure ("died") and a new process goes on behind it. `--library NAME=PATH` runs on a PJRT
plugin that JAX is only told the path of. `--part K/N` runs the K-th of N shares of the tests, drawn by a hash of their
names, and adds them to the output file; `--rest` runs those that have not passed or been skipped yet.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FILES = (
    "lax_test", "lax_numpy_test", "lax_numpy_operators_test", "lax_numpy_indexing_test", "lax_numpy_reducers_test",
    "lax_control_flow_test", "lax_autodiff_test", "api_test", "array_test", "nn_test", "random_test", "random_lax_test",
    "linalg_test", "export_test", "aot_test", "layout_test", "dtypes_test",
)  # fmt: skip
HERE = Path(__file__).parent
Outcomes = dict[str, dict[str, Any]]


def environment(options: argparse.Namespace, record: Path, done: Path) -> dict[str, str]:
    """The environment of the tests: few generated cases, our recorder, and the platform before the processor."""
    platform, _, library = options.library.partition("=")
    changed = {
        "JAX_PLATFORMS": f"{platform},cpu",
        "JAX_NUM_GENERATED_CASES": "10",
        "JAX_SKIP_SLOW_TESTS": "true",
        "PYTHONPATH": str(HERE),
        "RECORD_FILE": str(record),
        "RECORD_SKIP": str(done),
        "RECORD_PART": options.part or "0/1",
        "RECORD_KIND": options.kind,
    }
    if library:
        changed["PJRT_NAMES_AND_LIBRARY_PATHS"] = f"{platform}:{library}"
    return os.environ | changed


def read(record: Path) -> tuple[Outcomes, str | None]:
    """The outcomes of the tests that have ended, and the test that began last when it has not."""
    outcomes: Outcomes = {}
    running = None
    for line in record.read_text().splitlines():
        row = json.loads(line)
        if "outcome" in row:
            outcomes[row["test"]] = {key: row[key] for key in ("outcome", "reason", "seconds")}
            running = None
        else:
            running = row["test"]
    return outcomes, running


def run_file(options: argparse.Namespace, name: str, known: Outcomes) -> Outcomes:
    """The outcomes of a file's tests, with those known already, which do not run.

    Starts again behind a test that ends the process, or that takes `options.idle` seconds.
    """
    found = dict(known)
    platform = options.library.partition("=")[0]
    with tempfile.TemporaryDirectory() as folder:
        record, done = Path(folder) / "record", Path(folder) / "done"
        while True:
            record.write_text("")
            done.write_text("\n".join(found))
            command = [sys.executable, "-m", "pytest", f"tests/{name}.py", "-q", "--tb=short", "-p", "record_outcomes"]
            command += ["-p", "no:cacheprovider", "-W", f"ignore:Platform '{platform}':UserWarning"]
            with open(Path(folder) / "log", "w") as log:
                process = subprocess.Popen(  # noqa: S603 - this interpreter, and names from the command line
                    command, cwd=options.source, env=environment(options, record, done), stdout=log, stderr=log
                )
                hung = wait(process, record, options.idle)
            outcomes, running = read(record)
            found |= outcomes
            if running is not None:
                why = f"no end after {options.idle:.0f} s" if hung else f"the process died ({process.returncode})"
                found[running] = {"outcome": "died", "reason": why, "seconds": 0.0}
            elif process.returncode in _ENDS:
                return found
            else:
                print(f"{name}: exit status {process.returncode} between tests", flush=True)
                if not outcomes:
                    raise SystemExit(f"{name}: no test ran\n" + (Path(folder) / "log").read_text()[-3000:])


_ENDS = (0, 1, 5)  # of pytest: all passed, some failed, none was left to run


def wait(process: subprocess.Popen[bytes], record: Path, idle: float) -> bool:
    """Waits for the end; ends the process itself when nothing was recorded for `idle` seconds, and says so."""
    while process.poll() is None:
        time.sleep(0.2)
        if time.time() - record.stat().st_mtime > idle:
            process.kill()
            process.wait()
            return True
    return False


def count(outcomes: Outcomes) -> str:
    """`3 passed, 1 failed`."""
    counts = collections.Counter(row["outcome"] for row in outcomes.values())
    return ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()))


def run(options: argparse.Namespace) -> int:
    """Runs files, and adds them to the output file one by one."""
    results: dict[str, Outcomes] = json.loads(options.output.read_text()) if options.output.exists() else {}
    options.source = options.source.absolute()
    for name in options.files or FILES:
        start = time.time()
        before = results.get(name, {}) if options.part or options.rest else {}
        good = {test: row for test, row in before.items() if row["outcome"] in ("passed", "skipped")}
        results[name] = before | run_file(options, name, good if options.rest else {})
        options.output.write_text(json.dumps(results, indent=1) + "\n")
        print(f"{name}: {count(results[name])} in {time.time() - start:.0f} s", flush=True)
    return 0


def reason(text: str) -> str:
    """The line of a report that says most, without numbers and addresses, so that equal reasons read equal."""
    lines = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")] or text.splitlines()[-1:]
    return re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?(e[-+]\d+)?", "#", lines[0] if lines else "")[:160]


def compare(options: argparse.Namespace) -> int:
    """Prints how many of the tests that pass on the second platform pass on the first, and why the others do not.

    Tests that JAX skips on the first platform, as it does by the platform's name, do not count.
    """
    ours, theirs = (json.loads(path.read_text()) for path in (options.ours, options.theirs))
    print("| file | ran on both | pass there | skipped here | pass here | share | died |\n|--|--|--|--|--|--|--|")
    reasons: collections.Counter[tuple[str, str]] = collections.Counter()
    for name in (file for file in theirs if file in ours):
        both = theirs[name].keys() & ours[name].keys()
        here = {test: ours[name][test] for test in both if theirs[name][test]["outcome"] == "passed"}
        skipped = sum(row["outcome"] == "skipped" for row in here.values())
        lost = {test: row for test, row in here.items() if row["outcome"] not in ("passed", "skipped")}
        died = sum(row["outcome"] == "died" for row in ours[name].values())
        kept = len(here) - skipped - len(lost)
        share = kept / max(len(here) - skipped, 1)
        print(f"| {name} | {len(both)} | {len(here)} | {skipped} | {kept} | {share:.1%} | {died} |")
        reasons.update((name, reason(row["reason"])) for row in lost.values())
        if options.verbose:
            for test, row in lost.items():
                print(f"    {test}: {row['outcome']}: {reason(row['reason'])}")
    for (name, text), number in reasons.most_common(options.reasons):
        print(f"{number:5d}  {name}: {text}")
    return 0


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    runs = commands.add_parser("run", help="run test files, write their outcomes")
    runs.add_argument("--source", type=Path, required=True, help="a checkout of JAX's source")
    runs.add_argument("--output", type=Path, required=True, help="the JSON file to write, or to add files to")
    runs.add_argument("--library", default="shlo_disc", help="NAME=PATH of another PJRT plugin")
    runs.add_argument("--kind", default="", help="the device that the tests are told of, such as cpu")
    runs.add_argument("--part", metavar="K/N", help="only the K-th of N shares of the tests, from 0")
    runs.add_argument("--rest", action="store_true", help="only the tests that the output file has not as passed")
    runs.add_argument("--idle", type=float, default=300.0, help="seconds after which a test is given up")
    runs.add_argument("files", nargs="*", help=f"default: {' '.join(FILES)}")
    runs.set_defaults(do=run)
    compares = commands.add_parser("compare", help="rates and reasons, from two files of outcomes")
    compares.add_argument("ours", type=Path)
    compares.add_argument("theirs", type=Path)
    compares.add_argument("--verbose", action="store_true", help="name each test that is lost")
    compares.add_argument("--reasons", type=int, default=40, help="how many kinds of failure to print")
    compares.set_defaults(do=compare)
    options = parser.parse_args()
    return int(options.do(options))


if __name__ == "__main__":
    sys.exit(main())
