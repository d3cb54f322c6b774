# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Making a failing program small: fewer results, fewer ops, fewer calls, smaller sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.fuzz.program import Program

Fails = Callable[[Program], bool]


def shrink(program: Program, fails: Fails, budget: int = 150) -> Program:
    """The smallest program found for which `fails` still holds, after at most `budget` trials."""
    changed = True
    while changed and budget > 0:
        changed = False
        for candidate in _smaller(program):
            budget -= 1
            if fails(candidate):
                program, changed = candidate, True
                break
            if budget <= 0:
                break
    return program


def _smaller(program: Program) -> Iterator[Program]:
    """Programs with one thing less."""
    if len(program.sizes) > 1:
        for sizes in program.sizes:
            yield replace(program, sizes=[sizes])
    if len(program.results) > 1:
        for value in program.results:
            yield replace(program, results=[value]).live()
        for value in program.results:
            yield replace(program, results=[r for r in program.results if r is not value]).live()
    yield from _fewer_steps(program)
    yield from _smaller_sizes(program)


def _fewer_steps(program: Program) -> Iterator[Program]:
    """An op that is left out becomes an argument: its operands are needed no more. Results move to what made them."""
    made = {r for s in program.steps for r in s.results}
    for step in reversed(program.steps):
        if not any(r in program.results for r in step.results):
            yield replace(program, steps=[s for s in program.steps if s is not step]).live()
        elif inputs := [v for v in step.operands if v in made]:
            yield replace(program, results=inputs).live()


def _smaller_sizes(program: Program) -> Iterator[Program]:
    for sizes in program.sizes:
        for name, size in sizes.items():
            for smaller in {1, 2, size // 2, size - 1}:
                if 0 < smaller < size and _admits(program, {**sizes, name: smaller}):
                    yield replace(program, sizes=[{**sizes, name: smaller}])


def _admits(program: Program, sizes: dict[str, int]) -> bool:
    values = [v for s in program.steps for v in (*s.operands, *s.results)]
    dims = [d for v in values for d in v.dims]
    return all(d.evaluate(sizes) >= 0 for d in [*dims, *program.required])
