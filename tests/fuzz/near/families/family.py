# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of families."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.fuzz.near.builder import Builder
from tests.fuzz.near.program import Program

Build = Callable[[Builder], Sequence[int]]

FAMILIES: dict[str, Family] = {}
"""All families by name."""


@dataclass(frozen=True)
class Family:
    """`patterns`: the beginnings of the names of the patterns that its programs are for."""

    name: str
    build: Build
    patterns: tuple[str, ...]

    def program(self, rng: random.Random, dtype: str) -> Program:
        """One of its programs. Raises Rejected."""
        b = Builder(rng, dtype)
        return b.finish(list(self.build(b)))


def family(name: str, *patterns: str) -> Callable[[Build], Build]:
    """Makes a function that builds a program and gives its results a family."""

    def add(build: Build) -> Build:
        FAMILIES[name] = Family(name, build, patterns)
        return build

    return add
