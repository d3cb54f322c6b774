# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A worker of `shlo_disc reduce` whose compiler dies of sorts that come after exponentials."""

from __future__ import annotations

import os
import sys

from shlo_disc.driver import pass_pipelines
from shlo_disc.driver.compilation import Compilation
from shlo_disc.tools.reduce.worker import main

run = pass_pipelines.run_element


def die(c: Compilation, *arguments: object) -> None:
    """Takes the place of what runs a pass."""
    text = str(c.module)
    if 0 <= text.find("stablehlo.exponential") < text.find("stablehlo.sort"):
        print("LLVM ERROR: Cannot select 0x1234", file=sys.stderr, flush=True)
        os.abort()
    run(c, *arguments)  # type: ignore[arg-type]


if __name__ == "__main__":
    pass_pipelines.run_element = die  # type: ignore[assignment]
    main()
