# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reasons that a program is no instance of a symbolic one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from shlo_disc.runtime.native_module import evaluate_steps, read_program
from shlo_disc.shape_dialect.dialect.context import make_context

from .samples import Samples
from .steps import Step


class Miss(NamedTuple):
    """A number of a program that is not what a symbolic one has there.

    is_argument: it is a size of an argument of the program, which may be a symbol the next time.
    """

    text: str
    is_argument: bool


def first_miss(
    symbols: Sequence[int], least: Sequence[int], steps: Sequence[Step], expected: Sequence[int], program: bytes
) -> Miss | None:
    """The first number of a program that is not what a symbolic one has at its sizes, with its source line.

    Sizes of arguments come first, and then what has a line. None where all are, or the program has another skeleton.
    """
    numbers = read_program(program)["numbers"]
    if len(numbers) != len(expected):
        return None
    sizes = [numbers[symbol] for symbol in symbols]
    is_large = all(size >= bound for size, bound in zip(sizes, least, strict=True))
    values = evaluate_steps(steps, sizes) if is_large else None
    if values is None:
        return Miss("a size is 0, or an expression of the sizes does not fit 64 bits", False)
    wrong = [i for i, step in enumerate(expected) if step >= 0 and values[step] != numbers[i]]
    if not wrong:
        return None
    samples = Samples([program], make_context())
    arguments = [i for i in wrong if samples.is_argument(i)]
    number = (arguments or [i for i in wrong if samples.place(i)] or wrong)[0]
    where = samples.place(number)
    text = f"{samples.describe(number)} is {numbers[number]}, where the symbolic program has {values[expected[number]]}"
    return Miss(f"{text} ({where})" if where else text, bool(arguments))


__all__ = ["Miss", "first_miss"]
