# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tests.fuzz --sizes`: the chains of the seeds N to N+M-1, each at twelve sizes."""

from __future__ import annotations

import argparse
import collections
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tests.fuzz.sizes.chains import chain_of
from tests.pjrt.streams import Stream

MOST_PROGRAMS = 3


class Chain(NamedTuple):
    """The outcome of a chain. how: as the table of programs served each size. wrong: "" where all sizes are right."""

    text: str
    how: list[str]
    wrong: str
    reasons: list[str]

    @property
    def is_general(self) -> bool:
        """Tells whether there is one program for each structure that JAX writes, and at most two more.

        What the first sizes suggest may be wrong; two symbolic programs have to do.
        """
        symbolic, structures = self.how.count("compiled_symbolic"), self.how.count("compiled")
        return not self.reasons and symbolic <= (MOST_PROGRAMS - 1) * structures


def examine(seed: int) -> Chain:
    """Run the chain of a seed at its sizes, under a table of its own, and compare with XLA."""
    text, function, sizes = chain_of(seed)
    stream, wrong = Stream(function), ""
    for size in sizes:
        try:
            stream.check(np.random.default_rng(size).standard_normal(size, dtype=np.float32))
        except Exception as error:  # whatever it is, it is a finding
            wrong = f"{size}: {type(error).__name__}: {error}"
            break
    return Chain(text, stream.how, wrong, stream.reasons)


def run(arguments: Sequence[str]) -> int:
    """Exit status 1 when a chain was wrong, or had too many programs."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz --sizes", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=40, help="how many seeds")
    parser.add_argument("--minutes", type=float, default=1e9, help="start no chain after so long")
    options = parser.parse_args([a for a in arguments if a != "--sizes"])
    start, counts, found = time.monotonic(), collections.Counter[str](), []
    for seed in range(options.seed, options.seed + options.count):
        if time.monotonic() - start > 60 * options.minutes:
            break
        chain = examine(seed)
        counts.update(chain.how)
        if chain.wrong or not chain.is_general:
            found.append(seed)
            what = chain.wrong or "; ".join(chain.reasons) or "too many programs"
            print(f"seed {seed}: {what[:300]}: {chain.text}: {', '.join(chain.how)}", flush=True)
    print(f"programs: {dict(counts)}; findings: {found or 'none'}")
    return 1 if found else 0


__all__ = ["examine", "run"]
