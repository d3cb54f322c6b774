# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints, as JSON, by how many bytes the process grows over calls, donating calls and compiled programs.

`python -m tests.pjrt.leak_programs CALLS PROGRAMS`; the plugin's platform has to be the default.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp

from shlo_disc.runtime.native_module import plugin_programs


def resident_bytes() -> int:
    """The bytes of memory that the process has, after the C library has released free pages.

    Pages of files are not counted: those of the compiler's code are released and come back.
    """
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    lines = Path("/proc/self/status").read_text().splitlines()
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith("RssAnon:"))
    return int(kilobytes) << 10


def growth(work: Callable[[int], None], count: int) -> int:
    """Bytes by which the process grows over `count` rounds; those before them fill pools and caches."""
    first = max(count // 10, 25)
    for number in range(first):
        work(number)
    before = resident_bytes()
    for number in range(first, first + count):
        work(number)
    return resident_bytes() - before


def calls(count: int) -> int:
    """Calls of a jitted function."""
    function, x = jax.jit(lambda x: x * 2 + 1), jnp.arange(8.0)

    def call(_: int) -> None:
        function(x)

    return growth(call, count)


def donations(count: int) -> int:
    """Calls that give their argument away."""
    function, state = jax.jit(lambda x: x * 0.5 + 1, donate_argnums=0), [jnp.arange(8.0)]

    def step(_: int) -> None:
        state[0] = function(state[0])

    return growth(step, count)


def programs(count: int) -> int:
    """Programs that are compiled, run and forgotten."""

    def compile_one(number: int) -> None:
        chosen = [jnp.sin if number >> bit & 1 else jnp.exp for bit in range(10)]
        jax.jit(lambda x: sum(function(x + bit) for bit, function in enumerate(chosen)))(jnp.arange(8.0))
        jax.clear_caches()
        plugin_programs().clear()

    return growth(compile_one, count)


if __name__ == "__main__":
    rounds, compiled = map(int, sys.argv[1:])
    print(json.dumps({"calls": calls(rounds), "donations": donations(rounds), "programs": programs(compiled)}))
