# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m corpus`: run the entries, each in a process of its own, and compare the outcomes with `outcomes.csv`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from corpus.apart import ROOT, run_apart
from corpus.outcomes import Outcome, differences, read_table, table_text
from corpus.registry import entry_names
from corpus.streams import ALL_COMPILED, print_streams
from corpus.trial import MARK

TABLE = Path(__file__).with_name("outcomes.csv")
RESULTS = ROOT / "build" / "corpus"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line says; 1 where something is worse than in the table."""
    parser = argparse.ArgumentParser(prog="python -m corpus", description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="CLIENT[.PROGRAM]", help="may be given often")
    parser.add_argument("--resume", action="store_true", help="keep the outcomes of a run that was ended")
    parser.add_argument("--accept", action="store_true", help="write the outcomes into the table")
    parser.add_argument(
        "--streams", action="store_true", help="the streams of the clients over eight sizes, as a table"
    )
    parser.add_argument("--seconds", type=float, default=600.0, help="the most that an entry may take")
    parser.add_argument("--list", action="store_true", help="print the names of the entries")
    options = parser.parse_args(arguments)
    names = [name for name in entry_names() if _is_wanted(name, options.only)]
    if options.list:
        print("\n".join(" ".join(name) for name in names))
        return 0
    if options.streams:
        return print_streams(names, options.seconds)
    found = list(_outcomes(names, options.seconds, options.resume))
    known = read_table(TABLE)
    changed, worse = differences(known, found)
    print("\n".join([*changed, f"{len(found)} entries, {len(changed)} other than in the table, {len(worse)} worse"]))
    if options.accept:
        ran = {outcome.key for outcome in found}
        TABLE.write_text(table_text([*found, *(outcome for outcome in known if outcome.key not in ran)]))
        return 0
    return 1 if worse else 0


def _is_wanted(name: tuple[str, str], only: Sequence[str]) -> bool:
    return not only or any(name[0] == one or ".".join(name) == one for one in only)


def _outcomes(names: Sequence[tuple[str, str]], seconds: float, resume: bool) -> Iterator[Outcome]:
    for client in sorted({client for client, _ in names}):
        mine = [name for owner, name in names if owner == client]
        known = {name: path for name in mine if (path := RESULTS / f"{client}.{name}.json").exists() and resume}
        for path in known.values():
            yield Outcome.from_row(json.loads(path.read_text()))
        for name, found in _run(client, [name for name in mine if name not in known], seconds):
            outcome = _outcome(client, name, found)
            (RESULTS / f"{client}.{name}.json").write_text(json.dumps(vars(outcome)))
            print(
                f"{client} {name}: {outcome.outcome}, {outcome.programs} programs, {outcome.kernels} kernels, "
                f"{outcome.seconds:.2f} s of {outcome.reference_seconds:.2f} {outcome.note}",
                flush=True,
            )
            yield outcome


def _run(client: str, names: Sequence[str], seconds: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run entries of a client, whose programs are compiled, small ones too, and recorded."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    environment = {
        "JAX_PLATFORMS": "shlo_disc,cpu",
        "SHLO_DISC_RECORD": str(RESULTS / "recorded" / client),
        **ALL_COMPILED,
    }
    return run_apart("corpus.trial", MARK, client, names, seconds, environment) if names else iter(())


def _outcome(client: str, name: str, found: dict[str, Any]) -> Outcome:
    nothing = {"programs": 0, "kernels": 0, "seconds": 0.0, "reference_seconds": 0.0}
    if "error" in found:
        found = {"outcome": found["error"], "note": found["note"], **nothing}
    return Outcome.from_row({"client": client, "program": name, **found})


if __name__ == "__main__":
    sys.exit(main())
