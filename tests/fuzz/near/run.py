# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tests.fuzz --near`: examine the programs of the seeds N to N+M-1, the families in turn."""

from __future__ import annotations

import argparse
import collections
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from multiprocessing import connection
from pathlib import Path
from typing import Any

import shlo_disc.driver.compiler  # noqa: F401  # fills the table of patterns
from shlo_disc.transforms import decisions
from tests.fuzz.near import line_coverage
from tests.fuzz.near.case import COMPOSITE, FRONTS, Case, case_of, load, names, save
from tests.fuzz.near.examine import PLAIN, Finding
from tests.fuzz.near.shrink import shrink
from tests.fuzz.near.worker import Answer, Seed, Setup, Trial, Worker

MOST_ALIKE = 3
"""So many findings that look alike are made small."""


def main(arguments: Sequence[str]) -> int:
    """Exit status 1 when anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz --near", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=100, help="how many seeds")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--minutes", type=float, default=1e9, help="start no program after so long")
    parser.add_argument("--families", type=lambda t: t.split(","), default=[], help="only these, e.g. gemm,attention")
    parser.add_argument("--front", choices=FRONTS, default="", help="only this way in; else mostly compile")
    parser.add_argument("--gradients", type=float, default=0.2, help="the share of gradients")
    parser.add_argument("--xla", type=int, default=25, help="one of so many programs is given to XLA as well")
    parser.add_argument("--plain", type=int, default=25, help="one of so many is compiled without any pattern as well")
    parser.add_argument("--coverage", action="store_true", help="which lines of the matchers ran")
    parser.add_argument("--no-shrink", action="store_true", help="write findings down as they are")
    parser.add_argument("--show", action="store_true", help="print the program of --seed and leave")
    parser.add_argument("--replay", type=Path, help="examine the case of a file")
    parser.add_argument("--out", type=Path, default=Path("fuzz_out"), help="where failing cases are written")
    options = parser.parse_args(arguments)
    unknown = set(options.families) - set(names())
    if unknown:
        parser.error(f"no families {sorted(unknown)}; there are {', '.join(names())}")
    if options.replay:
        return _replay(options)
    if options.show:
        for job in _seeds(options):
            print(case_of(job.seed, job.family, job.front, options.gradients).program.text())
            return 0
    summary = Run(options).run()
    print(summary.text())
    return 1 if summary.findings else 0


def _replay(options: argparse.Namespace) -> int:
    case = load(options.replay)
    print(case.program.text(), *case.sizes, dict(case.options), sep="\n")
    worker = Worker(Setup(plugin=case.front == "plugin", xla_every=1))
    finding = worker.examine(case).report.finding
    worker.close()
    print(f"{finding.kind}: {finding.text}\nat fault: {finding.blame}" if finding else "nothing found")
    return 1 if finding else 0


def _seeds(options: argparse.Namespace) -> Iterator[Seed]:
    """The families in turn, the composite ones every third time."""
    chosen = options.families or [n for n in names() if n != COMPOSITE]
    mixed = not options.families
    for number in range(options.seed, options.seed + options.count):
        family = COMPOSITE if mixed and number % 3 == 2 else chosen[(number - number // 3 * mixed) % len(chosen)]
        yield Seed(number, family, options.front or _front_of(number))


class Summary:
    """Counts over a run."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.findings: dict[int, tuple[str, Finding]] = {}
        self.counts: collections.Counter[str] = collections.Counter()
        self.unpredictable: collections.Counter[str] = collections.Counter()
        self.families: collections.Counter[str] = collections.Counter()
        self.decisions: collections.Counter[str] = collections.Counter()
        self.served: collections.Counter[str] = collections.Counter()
        self.lines: dict[str, set[int]] = {}
        self.cpu = 0.0

    def add(self, seed: Seed, answer: Answer) -> None:
        """Count one answer."""
        report = answer.report
        self.counts.update(programs=1, calls=report.calls, xla=report.xla_calls, wrong=report.xla_errors)
        self.counts.update(loose=report.loose > 0.5)
        if not report.calls and not report.finding:
            self.counts.update(not_run=1)
        self.families.update([seed.family])
        self.cpu += answer.seconds
        self.decisions.update(report.decisions)
        self.served.update(report.served)
        decisions.OUTCOMES.update(report.outcomes)
        if report.unpredictable:
            self.unpredictable.update([report.unpredictable[:100]])
        for name, lines in answer.lines.items():
            self.lines.setdefault(name, set()).update(lines)
        if report.finding is not None:
            self.findings[seed.seed] = (seed.family, report.finding)

    def line(self) -> str:
        """The progress so far."""
        seconds = max(time.monotonic() - self.start, 1e-3)
        done = self.counts["programs"]
        return (
            f"{done} programs, {self.counts['calls']} calls, {done / seconds:.2f} programs/s "
            f"({self.cpu / max(done, 1):.2f} s each), {len(self.findings)} findings"
        )

    def text(self) -> str:
        """The end of a run."""
        kinds = collections.Counter(f.kind for _, f in self.findings.values())
        rows = [
            self.line(),
            f"calls given to XLA: {self.counts['xla']}, of which it is wrong in {self.counts['wrong']}; programs "
            f"without a result to compare: {self.counts['not_run']}; with loose bounds: {self.counts['loose']}",
            f"not comparable: {dict(self.unpredictable.most_common(8))}",
            f"decisions: {dict(self.decisions.most_common())}",
            *([f"programs of the plugin: {dict(self.served)}"] if self.served else []),
            *self._coverage(),
            f"findings: {dict(kinds)}",
        ]
        found = sorted(self.findings.items(), key=lambda item: (item[1][1].kind, item[1][1].blame, item[0]))
        rows += [f"  {family} {seed}: {f.kind}: {f.text[:200]} [{f.blame[:120]}]" for seed, (family, f) in found]
        return "\n".join(rows)

    def _coverage(self) -> Iterator[str]:
        missing = list(decisions.conditions_seen_one_way())
        total = sum(len(p.conditions) for p in decisions.PATTERNS.values())
        yield f"conditions of patterns: {total}; seen one way only: {len(missing)}"
        yield from (f"  {name} was never {'true' if outcome else 'false'}" for name, outcome in missing)
        if self.lines:
            yield "lines of the matchers:"
            yield line_coverage.report(self.lines)


class Run:
    """The loop over the seeds."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.summary = Summary()
        setup = Setup(
            plugin=options.front == "plugin", xla_every=options.xla, plain_every=options.plain,
            coverage=options.coverage, gradients=options.gradients,
        )  # fmt: skip
        self.idle = [Worker(setup) for _ in range(options.jobs)]
        self.busy: dict[Worker, Seed] = {}
        self.shrinking: list[threading.Thread] = []
        self.seen: collections.Counter[tuple[str, str, str]] = collections.Counter()

    def run(self) -> Summary:
        """Examine the programs of the seeds, shrink those that fail, write them down."""
        seeds, shown = _seeds(self.options), time.monotonic()
        while True:
            self._start(seeds)
            if not self.busy and not any(t.is_alive() for t in self.shrinking):
                break
            connection.wait([w.connection for w in self.busy], timeout=0.2 if self.shrinking else 1.0)
            for worker in list(self.busy):
                if (answer := worker.take()) is not None:
                    self._finish(worker, answer)
            if time.monotonic() - shown > 20:
                shown = time.monotonic()
                print(self.summary.line(), file=sys.stderr, flush=True)
        for worker in self.idle:
            worker.close()
        return self.summary

    def _start(self, seeds: Iterator[Seed]) -> None:
        while self.idle and time.monotonic() - self.summary.start < 60 * self.options.minutes:
            seed = next(seeds, None)
            if seed is None:
                return
            worker = self.idle.pop()
            worker.send(seed)
            self.busy[worker] = seed

    def _finish(self, worker: Worker, answer: Answer) -> None:
        seed = self.busy.pop(worker)
        self.summary.add(seed, answer)
        finding = answer.report.finding
        if finding is None:
            self.idle.append(worker)
            return
        print(f"{seed.family} {seed.seed}: {finding.kind}: {finding.text[:300]} [{finding.blame}]", flush=True)
        case = answer.case or case_of(seed.seed, seed.family, seed.front, self.options.gradients)
        defect = (finding.kind, finding.blame.split(" at ")[0].split(":")[-1], finding.text.split(":")[1])
        self.seen.update([defect])
        if self.options.no_shrink or self.seen[defect] > MOST_ALIKE:
            _write(self.options.out, case, finding)
            self.idle.append(worker)
        else:
            thread = threading.Thread(target=self._keep, args=(worker, case, finding))
            self.shrinking.append(thread)
            thread.start()

    def _keep(self, worker: Worker, case: Case, finding: Finding) -> None:
        """Shrink a failing case and write it down."""

        def fails(candidate: Case) -> bool:
            return finding.same_defect(worker.examine(Trial(candidate)).report.finding)

        try:
            _write(self.options.out, case, finding)
            small = shrink(case, fails)
            if finding.kind in ("signal", "timeout"):
                finding = replace(finding, blame=_blame(worker, small))
            elif small is not case:
                finding = worker.examine(small).report.finding or finding
            _write(self.options.out, small, finding)
        finally:
            self.idle.append(worker)


def _front_of(number: int) -> str:
    """Mostly `compile`."""
    return "jit" if number % 23 == 7 else "bound" if number % 11 == 5 else "compile"


def _write(folder: Path, case: Case, found: Finding) -> None:
    note = f"{found.kind}: {found.text} [{found.blame}]"
    save(folder / f"{case.family}-{case.seed}.json", case, note)
    print("  " + case.program.text().replace("\n", "\n  ") + f"\n  {note}", flush=True)


def _blame(worker: Worker, case: Case) -> str:
    """Names the options that make a program that kills its process behave."""

    def dies(**options: Any) -> bool:
        changed = replace(case, options={**case.options, **options})
        return worker.examine(Trial(changed)).report.finding is not None

    if dies(**PLAIN):
        return "the plain pipeline"
    if not dies(reuse=False):
        return "a reuse of memory"
    least = next((n for n in range(1, 65) if dies(max_fusions=n, reuse=False)), 0)
    return f"decision {least}"


def run(arguments: Any) -> int:
    """`main`, for `python -m tests.fuzz`."""
    return main([a for a in arguments if a != "--near"])
