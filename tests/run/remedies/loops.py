# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops over sizes that have names, of which some turns are to be one."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .case import Case, Numbers
from .traced import VALUES, compiled


def summed(x: Any, **options: Any) -> Any:
    """The sums up to each element."""

    def step(total: Any, value: Any) -> Any:
        return total + value, total + value

    return jax.lax.scan(step, 0.0, x, **options)[1]


class UnrolledScan(Case):
    remedy = r'leave out unroll=, .*, or name the size as a multiple: write "(2\*n)" in place of "n"'

    def provoke(self) -> Any:
        return compiled(lambda x: summed(x, unroll=2))

    def follow(self, found: re.Match[str]) -> Numbers:
        even = compiled(lambda x: summed(x, unroll=2), (found[1], "float32"))
        return [compiled(summed)(VALUES), even(VALUES)], [np.cumsum(VALUES), np.cumsum(VALUES)]


class UnrolledScanOfLibrary(UnrolledScan):
    """The loop is of a function that the user's code calls."""

    def provoke(self) -> Any:
        return compiled(jax.grad(lambda x: summed(x, unroll=2).sum()))


class ScanUnrolledWhole(Case):
    remedy = r"unroll= of a loop .*: leave out unroll=, which changes no result \["

    def provoke(self) -> Any:
        return compiled(lambda x: summed(x, unroll=True))

    def follow(self, found: re.Match[str]) -> Numbers:
        return compiled(summed)(VALUES), np.cumsum(VALUES)


class UnrolledLoop(ScanUnrolledWhole):
    def provoke(self) -> Any:
        return compiled(lambda x: jax.lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], 0.0, unroll=2))


class BatchesOfMap(Case):
    remedy = r'constraints=\("(n >= 4)",\)'

    def provoke(self) -> Any:
        return compiled(lambda x: jax.lax.map(jnp.sin, x, batch_size=4))

    def follow(self, found: re.Match[str]) -> Numbers:
        return compiled(lambda x: jax.lax.map(jnp.sin, x, batch_size=4), constraints=[found[1]])(VALUES), np.sin(VALUES)
