# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of a call beside XLA's, and the ratio that FusionStitching (Zheng et al., 2020) reports for such programs.

`python -m benchmarks.kernel_counts` counts the kernels that run: for XLA the instructions of the optimised module that
compute, those of a loop once for each trip. FusionStitching's figures are for GPUs, its ratios are to XLA of its time.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

import jax

import shlo_disc
from benchmarks.backends.jax_jit import NOT_KERNELS
from benchmarks.tables import table
from examples.model import function

PROGRAMS = {
    "bert": ((2, 16), 77 / 277),
    "transformer_train": ((2, 16), 98 / 200),
    "dien_train": ((4, 20), 2109 / 6842),
    "crnn": ((2, 40), 311 / 993),
}
"""A shape of each program, and FusionStitching's ratio for one of its kind."""

_INSTRUCTION = re.compile(r"^ +(?:ROOT )?%?\S+ = .*? ([a-z][\w-]*)\((.*)$")
_CALLED = re.compile(r"(?:to_apply|body|condition)=%?([\w.-]+)")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')


def executed(hlo: str) -> int:
    """The instructions of an HLO module that run and compute, a loop's as often as it is known to run."""
    bodies: dict[str, list[str]] = {}
    entry = ""
    for block in filter(str.strip, hlo.split("\n\n")[1:]):
        header, *lines = block.strip("\n").splitlines()
        name = header.removeprefix("ENTRY ").split(" ", 1)[0].removeprefix("%")
        entry = name if header.startswith("ENTRY ") else entry
        bodies[name] = lines

    def count(name: str) -> int:
        found = 0
        for opcode, rest in (m.groups() for m in map(_INSTRUCTION.match, bodies[name]) if m is not None):
            if opcode in ("call", "while"):
                trips = _TRIPS.search(rest)
                found += (int(trips[1]) if trips else 1) * sum(map(count, _CALLED.findall(rest)))
            elif opcode not in NOT_KERNELS:
                found += 1
        return found

    return count(entry)


def counted(name: str) -> tuple[int, int]:
    """The kernels of a call of a program, ours and XLA's."""
    model: Any = importlib.import_module(f"examples.{name}")
    arguments = model.init(model.SMALL), *model.make_inputs(model.SMALL, *PROGRAMS[name][0])
    ours = shlo_disc.compile(model.export(model.SMALL)).launches
    hlo = jax.jit(function(model, model.SMALL)).lower(*arguments).compile().as_text()
    return len(ours), executed(hlo or "")


def main() -> None:
    """Print the table."""
    rows = []
    for name, (_, ratio) in PROGRAMS.items():
        ours, xla = counted(name)
        rows.append([name, str(ours), str(xla), f"{ours / xla:.2f}", f"{ratio:.2f}"])
    print(table(["program", "ours", "XLA", "ratio", "FusionStitching"], rows))


if __name__ == "__main__":
    main()
