# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that `test_max_programs.py` calls in a process of its own; prints what each call came to, as JSON."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

LENGTHS = {3: 7, 4: 9, 5: 12, 6: 20}


@jax.jit
def general(x: Any) -> Any:
    return jnp.sin(x) * 2


@jax.jit
def unrolled(x: Any) -> Any:
    for _ in range(x.shape[0]):
        x = x * 2
    return x


@jax.jit
def no_expression(x: Any) -> Any:
    return jnp.zeros(LENGTHS[x.shape[0]]) + x.sum()


@jax.jit
def strided(x: Any) -> Any:
    return jax.lax.conv_general_dilated(x[None, None], ones(1, 1, 2), (x.shape[0] - 1,), "VALID")


@jax.jit
def other_axis(x: Any) -> Any:
    return jnp.cumsum(x, axis=1)


def ones(*sizes: int) -> Any:
    return np.ones(sizes, np.float32)


def called(function: Callable[..., Any], shapes: list[tuple[int, ...]]) -> list[str]:
    found = []
    for sizes in shapes:
        try:
            function(ones(*sizes))
            found.append("")
        except jax.errors.JaxRuntimeError as error:
            found.append(str(error))
    return found


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


if __name__ == "__main__":
    told = Lines()
    logging.getLogger("shlo_disc.pjrt.generalize").addHandler(told)
    lengths = [(3,), (4,), (5,), (6,)]
    print(
        json.dumps(
            {
                "general": called(general, lengths),
                "unrolled": called(unrolled, lengths),
                "no_expression": called(no_expression, lengths),
                "strided": called(strided, lengths),
                "other_axis": called(other_axis, [(3, 4), (5, 4), (5, 6)]),
                "eager": [str(jnp.cumsum(ones(n)).shape) for n in (3, 4, 5, 6)],
                "told": told.lines,
            }
        )
    )
