# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases: a program with the sizes of its calls and the options it is compiled with; what a file of a finding holds."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jax._src.export.shape_poly import UnexpectedDimVar

import tests.fuzz.near.pieces  # noqa: F401  # fills the table of pieces
from tests.fuzz.near.composite import composite
from tests.fuzz.near.families import FAMILIES
from tests.fuzz.near.mutate import mutated, with_gradient
from tests.fuzz.near.program import SYMBOLS, Program, Rejected, Type, size_at

Sizes = dict[str, int]

FRONTS = ("compile", "bound", "jit", "plugin")
COMPOSITE = "composite"
"""The name of the family without a pattern."""

DTYPES = ("float32",) * 14 + ("float64", "float64", "bfloat16", "float16")
SMALL = (1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 37, 61)
"""Both sides of vectors of 8 and 16 lanes, primes, small numbers."""
LARGE = (64, 65, 97, 127, 128, 130)
MOST_ELEMENTS = 40_000


@dataclass(frozen=True)
class Case:
    """`options` are those of shlo_disc.Options that differ from the fuzzer's."""

    family: str
    seed: int
    program: Program
    sizes: tuple[Sizes, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    front: str = "compile"

    def to_json(self) -> dict[str, Any]:
        """The case as JSON."""
        return {
            "family": self.family, "seed": self.seed, "front": self.front, "options": dict(self.options),
            "sizes": list(self.sizes), "program": self.program.to_json(),
        }  # fmt: skip

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Case:
        """The inverse of `to_json`."""
        program = Program.from_json(data["program"])
        return Case(data["family"], data["seed"], program, tuple(data["sizes"]), data["options"], data["front"])


def load(path: Path) -> Case:
    """The case of a file."""
    return Case.from_json(json.loads(path.read_text()))


def save(path: Path, case: Case, note: str) -> None:
    """Write a case with what was found, for the reader the program as text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shown = {"found": note, "shown": case.program.text().splitlines(), **case.to_json()}
    path.write_text(json.dumps(shown, indent=1) + "\n")


def names() -> list[str]:
    """All families."""
    return [*FAMILIES, COMPOSITE]


def case_of(seed: int, family: str, front: str = "compile", gradients: float = 0.2) -> Case:
    """The case of a seed. Raises Rejected after many tries."""
    rng = random.Random(f"{family} {seed}")
    for _ in range(40):
        try:
            return _case(rng, seed, family, front, gradients)
        except Rejected:
            continue
    raise Rejected(f"no program of {family} for the seed {seed}")


def _case(rng: random.Random, seed: int, family: str, front: str, gradients: float) -> Case:
    dtype = rng.choice(DTYPES)
    if family == COMPOSITE:
        program = composite(rng, dtype)
    else:
        program = mutated(FAMILIES[family].program(rng, dtype), rng, rng.choice((0, 1, 1, 1, 1, 2, 2, 3)))
    if rng.random() < gradients:
        program = with_gradient(program, rng)
    types = list(program.types_at_all_depths())
    sizes = tuple(sizes_of(program, types, rng, least=0 if front == "plugin" else 1))
    if not sizes:
        raise Rejected("no sizes fit")
    options: dict[str, Any] = {}
    if rng.random() < 0.2:
        options["opt_level"] = 1
        if rng.random() < 0.6:
            options["cpu"] = "x86-64-v3"
    if rng.random() < 0.15:
        options["threads"] = 2
    return Case(family, seed, program, sizes, options, front)


def sizes_of(program: Program, types: Sequence[Type], rng: random.Random, least: int) -> Iterator[Sizes]:
    """Sizes of up to five calls, `least` and more, at which no value is too large; at one of them some may be empty."""
    named = [d for a in program.arguments for d in (*a.dims, a.fill.partition(":")[2])]
    symbols = [s for s in SYMBOLS if any(s in d for d in named)]
    if not symbols:
        yield {}
        return
    seen = []
    for call in range(30):
        if len(seen) == 5:
            return
        is_tiny = call == 3
        choice = (least, 1, 2) if is_tiny else LARGE if rng.random() < 0.12 else SMALL
        sizes = {name: rng.choice(choice) for name in symbols}
        if call == 1 and len(symbols) > 1:
            sizes = dict.fromkeys(symbols, rng.choice((1, 2, 5, 8, 16, 17)))
        if sizes not in seen and _admits(types, sizes, 0 if is_tiny else 1):
            seen.append(sizes)
            yield sizes


def _admits(types: Sequence[Type], sizes: Sizes, least: int) -> bool:
    elements = 0
    for type_ in types:
        count = 1
        for dim in type_.shape:
            try:
                size = size_at(dim, sizes)
            except UnexpectedDimVar:
                raise Rejected("a body has a size of no argument") from None
            if size < least:
                return False
            count *= size
        elements = max(elements, count)
    return elements <= MOST_ELEMENTS


def with_sizes(case: Case, sizes: Sizes) -> Case:
    """The case with one call only."""
    return replace(case, sizes=(sizes,))
