# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of calls in PyTorch's words: names of `forward`'s arguments, Dims and `dynamic_shapes`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from shlo_disc.errors import ArgumentTypeError, DiscError, ShapeError

_PATH = re.compile(r"args\[(\d+)\]")
_FIXED = re.compile(r"^Shape mismatch for (\S+)\.shape\[(\d+)\] \(expected same constant\): (.*)$", re.DOTALL)
_DTYPE = re.compile(r"^Dtype mismatch for (\S+): expected (\w+) and called with (\w+)$")
_ASKED = re.compile(r"Expected (.*?), which (?:\S+ at )?(.*?) requires")


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
    finding, takes, rest = message.partition(". The program takes ")
    if not takes:
        return message
    if "is above its range" in finding or "is below its range" in finding:
        finding = f"{finding}, as max= and min= of its Dim say"
    finding = _ASKED.sub(lambda found: f"{found[2]} asks that {found[1]}", finding)
    return f"{finding}. The program was exported for {rest}: other sizes take an export with other dynamic_shapes="


__all__ = ["in_words_of_torch"]
