# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Why a program is no instance of a symbolic one."""

from __future__ import annotations

from typing import NamedTuple, Protocol

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


class Symbolic(Protocol):
    """A symbolic program, as `SymbolicProgram` describes it."""

    symbols: tuple[int, ...]
    least: tuple[int, ...]
    steps: tuple[Step, ...]
    expected: tuple[int, ...]


def first_miss(symbolic: Symbolic, program: bytes) -> Miss | None:
    """The first number of a program that is not what a symbolic one has at its sizes, with its source line.

    Sizes of arguments come first, and then what has a line. None where all are, or the program has another skeleton.
    """
    numbers = read_program(program)["numbers"]
    expected = symbolic.expected
    if len(numbers) != len(expected):
        return None
    sizes = [numbers[symbol] for symbol in symbolic.symbols]
    is_large = all(size >= least for size, least in zip(sizes, symbolic.least, strict=True))
    values = evaluate_steps(symbolic.steps, sizes) if is_large else None
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
