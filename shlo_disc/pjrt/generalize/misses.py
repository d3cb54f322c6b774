# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Why a program is no instance of a symbolic one."""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.runtime.native_module import evaluate_steps, read_program
from shlo_disc.shape_dialect.dialect.context import make_context

from .samples import Samples
from .steps import Step


def first_miss(symbols: Sequence[int], steps: Sequence[Step], expected: Sequence[int], program: bytes) -> str:
    """The first number of a program that is not what the steps give at its sizes, with its source line.

    "" where all are, or the program has another skeleton.
    """
    numbers = read_program(program)["numbers"]
    if len(numbers) != len(expected):
        return ""
    sizes = [numbers[symbol] for symbol in symbols]
    values = evaluate_steps(steps, sizes) if min(sizes, default=1) > 0 else None
    if values is None:
        return "a size is 0, or an expression of the sizes does not fit 64 bits"
    wrong = [i for i, step in enumerate(expected) if step >= 0 and values[step] != numbers[i]]
    if not wrong:
        return ""
    samples = Samples([program], make_context())
    where = samples.place(wrong[0])
    found = f"{samples.describe(wrong[0])} is {numbers[wrong[0]]}, where the symbolic program has {values[expected[wrong[0]]]}"
    return f"{found} ({where})" if where else found


__all__ = ["first_miss"]
