# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Everything that can be chosen about a compilation, in one object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Options:
    """Compilation options.

    threads: size of the thread pool; 0 means the processors this process may use.
    hints: likely values of symbols, e.g. {"s": 128}; they steer cost estimates, never correctness.
    verify: check the IR after every stage.
    opt_level: LLVM's optimisation level, 0 to 3.
    output: "numpy", "jax" or "buffer" results; None gives jax.Arrays when an argument is one, else NumPy arrays.
    dump: a directory that receives every stage's text.
    """

    threads: int = 0
    hints: Mapping[str, int] = field(default_factory=dict)
    verify: bool = True
    opt_level: int = 3
    output: str | None = None
    dump: str | None = None
