# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A worker of `Options(isolate=True)` with a stage that aborts, sleeps or fails as the program's name says."""

from __future__ import annotations

import logging
import os
import sys
import time

from shlo_disc.driver import pass_pipelines
from shlo_disc.driver.compilation import Compilation
from shlo_disc.driver.isolated.worker import main

run = pass_pipelines.run_element


def faulty(c: Compilation, element: pass_pipelines.Element, stage: str, after: pass_pipelines.After | None) -> None:
    """Takes the place of what runs a pass."""
    if stage == "fuse":
        fault(c.signature.name)
    run(c, element, stage, after)


def fault(name: str) -> None:
    """Causes the fault that a program is named after."""
    if name == "aborts":
        print("LLVM ERROR: Cannot select 0x1234", file=sys.stderr, flush=True)
        os.abort()
    if name == "sleeps":
        time.sleep(600)
    if name == "takes_memory":
        bytearray(8 << 30)
    if name == "fails":
        raise KeyError("tile")
    if name == "warns":
        logging.getLogger("shlo_disc").warning("something was left out")


if __name__ == "__main__":
    pass_pipelines.run_element = faulty  # type: ignore[assignment]
    main()
