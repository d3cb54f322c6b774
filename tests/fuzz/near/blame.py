# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The first decision with which a program is wrong, or does not compile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shlo_disc.driver.artifact_header import artifact_of
from shlo_disc.driver.compiler import import_stage, run_pipeline
from shlo_disc.driver.recovery import PLAIN, Attempts, Choice, find_fault
from shlo_disc.errors import DiscError
from shlo_disc.importer.program import read
from shlo_disc.options import Options
from shlo_disc.report.synthetic import load_flat
from shlo_disc.runtime.clients import client

Results = Sequence[np.ndarray]


def blame(exported: Any, options: Options, say: Callable[[str], None],
          is_wrong: Callable[[list[np.ndarray]], bool] | None, arrays: Results) -> str:  # fmt: skip
    """In words. Without `is_wrong` it is the compile that fails."""
    attempts = Attempts(lambda: import_stage(read(exported), "cpu", options), run_pipeline)
    device = client(options.threads, True)

    def wrong(choice: Choice) -> bool:
        say(f"compiling with {choice.limits}")
        try:
            outcome = attempts.compile(choice)
        except DiscError:  # of the program itself
            return True
        if outcome.error is not None or outcome.compilation is None:
            return True
        if is_wrong is None:
            return False
        return is_wrong([np.asarray(r) for r in load_flat(device, artifact_of(outcome.compilation))(*arrays)])

    if wrong(PLAIN):
        return "the plain pipeline"
    fault = find_fault(wrong, attempts)
    return "all decisions together" if fault is None else str(fault)
