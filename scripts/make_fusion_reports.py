# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes what `fuse` decides about each example, and what that saves, as files that a test compares.

Run: `python -m scripts.make_fusion_reports`. It writes `tests/report/fusions/`; look at what changed.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.works import all_works
from shlo_disc.driver.compiler import import_stage, run_pipeline
from shlo_disc.options import Options
from shlo_disc.report.decisions import FusionReport, fusion_report

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "report" / "fusions"


def report_of(name: str) -> FusionReport:
    """The report of a small configuration of an example, for processors with vectors of 512 bits."""
    program = all_works()[name](True).export()
    return fusion_report(run_pipeline(import_stage(program, "cpu", Options(cpu="x86-64-v4")), "simplify"))


def main() -> None:
    """Entry point."""
    FOLDER.mkdir(exist_ok=True)
    for name in all_works():
        (FOLDER / f"{name}.txt").write_text(f"{report_of(name)}\n")
        print(name)


if __name__ == "__main__":
    main()
