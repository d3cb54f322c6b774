# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of calls in PyTorch's words: names of `forward`'s arguments, Dims and `dynamic_shapes`.

The runtime words what does not fit as jax.export does, by positions that only the translated program has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from shlo_disc.errors import ArgumentTypeError, DiscError, ShapeError

_PATH = re.compile(r"args\[(\d+)\]")
_SHAPES = re.compile(
    r"^(.*?) *Using the following polymorphic shapes specifications: (.*)\. Obtained dimension", re.DOTALL
)
_OBTAINED = re.compile(r"'(\w+)' = (-?\d+) from specification '.*?' for dimension (\S+) \(= -?\d+\), ")
_FIXED = re.compile(r"^Shape mismatch for (\S+)\.shape\[(\d+)\] \(expected same constant\): (.*)$", re.DOTALL)
_TWO_SIZES = re.compile(
    r"Found inconsistency between dimension size (\S+) \(= (\d+)\) and the specification '(.*?)' \(= (\d+)\)\."
)
_REMAINDER = re.compile(r"Division had remainder \d+ when computing the value of '(.*?)'\.")
_LEAST = re.compile(r"Expected value >= (\d+) for dimension variable '(.*?)'\.")
_DTYPE = re.compile(r"^Dtype mismatch for (\S+): expected (\w+) and called with (\w+)$")
_ASKED = re.compile(r"Expected (.*?), which (?:\S+ at )?(.*?) requires\.")
_EXPORT = "other sizes take an export with other dynamic_shapes="


def in_words_of_torch(error: DiscError, names: Mapping[int, str]) -> DiscError:
    """The same error for a program of PyTorch. names: what the user calls the arguments, by their positions."""
    message = _PATH.sub(lambda found: names.get(int(found[1]), found[0]), error.message)
    if isinstance(error, ShapeError):
        return ShapeError(_of_sizes(message))
    if isinstance(error, ArgumentTypeError) and (found := _DTYPE.match(message)):
        return ArgumentTypeError(f"{message}: convert it by {found[1]}.to(torch.{found[2]})")
    return type(error)(message) if isinstance(error, ArgumentTypeError) else error


def _of_sizes(message: str) -> str:
    if found := _FIXED.match(message):
        name, axis, sizes = found.groups()
        shapes = f"={{{name!r}: {{{axis}: Dim.AUTO}}}}" if name.isidentifier() else "= in which it is a Dim"
        return (
            f"Shape mismatch for {name}.shape[{axis}], which was fixed when the program was exported: {sizes}; where "
            f"the module allows other sizes, export it with dynamic_shapes{shapes}"
        )
    found = _SHAPES.match(message)
    if found is None:
        return message
    finding = found[1].removeprefix("Input shapes do not match the polymorphic shapes specification. ")
    obtained = [f"{name} = {value} ({where})" for name, value, where in _OBTAINED.findall(message)]
    here = f"; here {', '.join(obtained)}" if obtained else ""
    return f"{_finding(finding)}. The program was exported for {_shapes(found[2])}{here}: {_EXPORT}"


def _finding(text: str) -> str:
    if found := _TWO_SIZES.search(text):
        return f"{found[1]} is {found[2]}, and {found[3]} is {found[4]}"
    if found := _REMAINDER.search(text):
        return f"the sizes leave no whole number for {found[1]}"
    if found := _LEAST.search(text):
        return f"{found[2]} has to be at least {found[1]}"
    if found := _ASKED.search(text):
        return f"{found[2]} asks that {found[1]}"
    if "is above its range" in text or "is below its range" in text:
        return f"{text.strip()}, as max= and min= of its Dim say"
    return text.strip().rstrip(".")


def _shapes(text: str) -> str:
    """`x.shape = (2, b),y.shape = (b,)` as `x of (2, b) and y of (b,)`."""
    return " and ".join(part.replace(".shape = ", " of ") for part in re.split(r",(?=[^,()]+\.shape = )", text))


__all__ = ["in_words_of_torch"]
