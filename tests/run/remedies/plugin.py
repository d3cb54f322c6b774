# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Refusals of the PJRT plugin, in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from .case import Case, Numbers

ROOT = Path(__file__).parents[3]

SCRIPT = """
import jax
import numpy as np


@jax.jit
def doubled(x):
    {body}


for size in (3, 4, 5, 6):
    result = doubled(np.ones(size, np.float32))
np.save("result.npy", result)
"""


class ScriptFailed(Exception):
    """A script has ended with an error; the text is what it printed on standard error."""


class TooManyPrograms(Case):
    error = ScriptFailed
    remedy = r"doubled.*Remedy: where Python decides by sizes, use .*jax\.lax\.(fori_loop).*\[DISC-R102\]"

    def provoke(self) -> Any:
        return self.run("for _ in range(len(x)): x = x * 2\n    return x")

    def follow(self, found: re.Match[str]) -> Numbers:
        return self.run(f"return jax.lax.{found[1]}(0, len(x), lambda _, y: y * 2, x)"), np.full(6, 64)

    @staticmethod
    def run(body: str) -> Any:
        """The last result of a script."""
        Path("script.py").write_text(SCRIPT.format(body=body))
        environment = os.environ | {
            "JAX_PLATFORMS": "shlo_disc,cpu", "SHLO_DISC_MAX_PROGRAMS": "2", "PYTHONPATH": str(ROOT),
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "script.py"], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ScriptFailed(done.stderr)
        return np.load("result.npy")
