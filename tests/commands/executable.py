# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The real executable, and the same where nothing but NumPy is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BARE = """
import sys
sys.modules.update(dict.fromkeys(["jax", "jaxlib", "torch_mlir", "llvmlite", "scipy", "torch"]))
from shlo_disc.tools.cli import main
sys.exit(main())
"""

BEFORE = """
func.func @main(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %0 = stablehlo.dot %x, %w : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %1 = stablehlo.tanh %0 : tensor<?x8xf32>
  %2 = stablehlo.subtract %0, %1 : tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}
"""

AFTER = BEFORE.replace("stablehlo.tanh", "stablehlo.exponential")

DIMS = "arg0_d0=5"


def run(*arguments: str | Path, given: str | bytes = b"", is_bare: bool = False) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of `python -m shlo_disc`. given: its standard input."""
    start = ["-c", BARE] if is_bare else ["-m", "shlo_disc"]
    data = given.encode() if isinstance(given, str) else given
    command = [sys.executable, *start, *map(str, arguments)]
    done = subprocess.run(command, input=data, capture_output=True, check=False, timeout=300)
    return done.returncode, done.stdout.decode(), done.stderr.decode()
