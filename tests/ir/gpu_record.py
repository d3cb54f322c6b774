# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tests.ir.gpu_record FILE.npz`: record the calls of the GPU target's programs, for `gpu_replay.py`.

The compiler and NVIDIA's libdevice are needed here, a GPU is not: nothing runs but XLA on the CPU, for the results that
are right.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

import shlo_disc
from shlo_disc.mlir import ir
from tests.ir.gpu_cases import CASES, Run, arrays, launches_of, lowered

TARGET = "cuda:sm_90"

CALLS = ({"b": 1, "s": 1}, {"b": 3, "s": 7}, {"b": 2, "s": 33}, {"b": 2, "s": 531}, {"b": 17, "s": 1024})

TIMED = {
    "softmax": {"b": 16384, "s": 2048}, "layer_norm": {"b": 512, "s": 1024}, "gelu_bias": {"b": 8192, "s": 1365},
    "gelu_tanh": {"b": 16384, "s": 2048}, "transpose": {"b": 1024, "s": 2048}, "columns": {"b": 1024, "s": 4096},
    "whole": {"b": 16384, "s": 2048},
}  # fmt: skip
"""Sizes at which a program of f32 moves some hundreds of megabytes."""


class Recorder:
    """Takes a program's launches and runs none.

    A pointer is the number of the block of memory that it is in, and how many bytes from its beginning.
    """

    def __init__(self) -> None:
        self.blocks: list[np.ndarray] = []
        self.launches: list[dict[str, Any]] = []

    def launch(self, name: str, blocks: int, pointers: Sequence[np.ndarray], sizes: Sequence[int]) -> None:
        """One kernel's launch."""
        places = [self.place(pointer) for pointer in pointers]
        self.launches.append({"kernel": name, "blocks": blocks, "pointers": places, "sizes": list(sizes)})

    def place(self, pointer: np.ndarray) -> list[int]:
        """The block that an array is in, and its distance from the block's beginning in bytes."""
        base = pointer
        while isinstance(base.base, np.ndarray):
            base = base.base
        known = next((i for i, b in enumerate(self.blocks) if b is base), None)
        if known is None:
            known = len(self.blocks)
            self.blocks.append(base)
        return [known, pointer.ctypes.data - base.ctypes.data]


def record(name: str, dims: dict[str, int], is_timed: bool, out: dict[str, np.ndarray]) -> dict[str, Any]:
    """One call as data; its arrays go to `out`. A call that is timed keeps the sizes of its arrays alone."""
    case, c, key = CASES[name], lowered(name), f"{name}-{dims['b']}-{dims['s']}"
    given = [np.zeros(a.shape, a.dtype) for a in arrays(case, dims)] if is_timed else arrays(case, dims)
    known = {symbol.name for symbol in c.signature.symbols}
    recorder = Recorder()
    with c.context, ir.Location.unknown():
        got = Run(c, {k: v for k, v in dims.items() if k in known}, recorder)(given)
    results = [recorder.place(g)[0] for g in got]
    call: dict[str, Any] = {"key": key, "launches": recorder.launches, "results": results, "tolerance": case.tolerance}
    call["bytes"] = [block.nbytes for block in recorder.blocks]
    call["moved"] = sum(a.nbytes for a in given) + sum(g.nbytes for g in got)
    if not is_timed:
        want = [np.asarray(w) for w in jax.tree.leaves(jax.jit(case.function)(*given))]
        call["dtypes"] = [w.dtype.name for w in want]
        out |= {f"{key}/want/{i}": w.reshape(-1).view(np.uint8) for i, w in enumerate(want)}
        out |= {f"{key}/block/{i}": b.reshape(-1).view(np.uint8) for i, b in enumerate(recorder.blocks)}
    return call


def write(path: Path) -> None:
    """Every program's PTX, and its calls, as one file. JAX has to have 64-bit types enabled."""
    out: dict[str, np.ndarray] = {}
    programs = []
    for name, case in CASES.items():
        threads = {launch.name: launch.threads for launch in launches_of(lowered(name))}
        compiled = shlo_disc.compile(case.function, target=TARGET, args=case.arguments)
        calls = [record(name, dims, False, out) for dims in CALLS]
        timed = [record(name, TIMED[name], True, out)] if name in TIMED else []
        programs.append({"name": name, "threads": threads, "calls": calls, "timed": timed})
        out[f"{name}/ptx"] = np.frombuffer(compiled.as_text("ptx").encode(), np.uint8)
    out["programs"] = np.frombuffer(json.dumps(programs).encode(), np.uint8)
    np.savez_compressed(path, **out)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    write(Path(sys.argv[1]))
