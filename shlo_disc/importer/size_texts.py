# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Texts of sizes that have names: `str(n)` and `f"{n}"` are the name in a trace, and the number in a program.

Printing them is no fault. Where the user's code compares such a text with that of a number, or looks it up, the
function asks an equality of sizes.
"""

from __future__ import annotations

import ast
import re
import sys
import types
from collections.abc import Callable, Mapping, Set
from typing import Any, TypeGuard

from jax import export

from shlo_disc.errors import ProgramError
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .held_errors import refuse
from .look_ups import UNKNOWN, known_value, look_up_parts
from .user_code import Place, expression_at

Answer = Callable[[Any, int, types.FrameType], bool]
"""The answer to an equality of a size and a number that a frame asks."""

_MOST_KEYS = 64
_NUMBER_READ = re.compile(r"(?:invalid literal for int\(\) with base \d+|could not convert string to float): '(.*)'")


class SizeText(str):
    """The name of a size. Comparisons with the texts of numbers are those of the size."""

    _size: Any
    _answer: Answer

    def __new__(cls, text: str, size: Any, answer: Answer) -> SizeText:
        """The text of a size. answer: what a comparison with a number asks."""
        made = super().__new__(cls, text)
        made._size, made._answer = size, answer
        return made

    def __eq__(self, other: object) -> bool:
        """The equality of texts; that of the size where the other is the text of a number."""
        if str.__eq__(self, other) is True:
            return True
        return _is_number(other) and self._answer(self._size, int(other), sys._getframe(1))

    def __ne__(self, other: object) -> bool:
        """The opposite of `==`."""
        if str.__eq__(self, other) is True:
            return False
        return not (_is_number(other) and self._answer(self._size, int(other), sys._getframe(1)))

    def __hash__(self) -> int:
        """The hash of the text. A look-up asks whether the size is one of the numbers among the keys."""
        frame = sys._getframe(1)
        for number in _keys_at(frame):
            self._answer(self._size, number, frame)
        return str.__hash__(self)

    def __int__(self) -> int:
        """The number that the text does not have. Raises ValueError, as for other names."""
        refuse(ValueError(f"invalid literal for int() with base 10: {str.__repr__(self)}"), sys._getframe(1))

    def __float__(self) -> float:
        """The number that the text does not have. Raises ValueError, as for other names."""
        refuse(ValueError(f"could not convert string to float: {str.__repr__(self)}"), sys._getframe(1))

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle of the text alone."""
        return str, (str.__str__(self),)


def _is_number(text: object) -> TypeGuard[str]:
    return isinstance(text, str) and text.isascii() and text.isdecimal()


def _keys_at(frame: types.FrameType) -> list[int]:
    """The numbers whose texts are keys of the container in which a frame looks something up just now."""
    node = expression_at(frame, frame.f_lasti)
    parts = None if node is None else look_up_parts(node)
    if parts is None:
        return []
    container = known_value(parts[1], frame)
    if container is UNKNOWN or not isinstance(container, Set | Mapping):
        return []
    keys = [int(key) for key in container if type(key) is str and _is_number(key)]
    return keys if len(keys) <= _MOST_KEYS else []


def fault_of_name(error: Exception, place: Place | None) -> str:
    """The fault of code that looks a size up, or reads its text as a number, and what to write; "" of other errors."""
    key = error.args[0] if isinstance(error, KeyError) and error.args else None
    if key is not None and (export.is_symbolic_dim(key) or isinstance(key, SizeText)):
        expression = place.expression if place else None
        table, index = "table", str(key)
        if isinstance(expression, ast.Subscript):
            table, index = ast.unparse(expression.value), ast.unparse(expression.slice)
        if isinstance(key, SizeText):
            return (
                f"the size {key} is not an int while the function is traced, and its text is its name: have numbers as "
                f"the keys of {table}, and choose by jax.lax.cond or jax.numpy.select"
            )
        return (
            f"the size {key} is not an int while the function is traced, and no key of {table}: choose by "
            f"jax.numpy.select([jax.numpy.asarray({index}) == key for key in {table}], list({table}.values())), or "
            "give shlo_disc.jit compile_once=False, which compiles a program for the sizes of each call"
        )
    if (found := _NUMBER_READ.match(str(error))) and _is_size(found[1]):
        return (
            f"the size {found[1]} is not an int while the function is traced, and its text is its name: leave out "
            "str() and int(), for a size is taken as it is in shapes, slices and arithmetic"
        )
    return ""


def _is_size(text: str) -> bool:
    """Tells whether a text is that of a size with a name in it."""
    try:
        return bool(Expr.parse(text).symbols())
    except ProgramError:
        return False


__all__ = ["SizeText", "fault_of_name"]
