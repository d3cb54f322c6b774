# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors about sizes that code of the user holds back while JAX traces, by `try` or contextlib.suppress.

The function would take its other way for every size: `try: k = int(n)` has the number of its `except` in a program
whose n has a name. Libraries, JAX among them, tell sizes from numbers so, and go on as they do.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import jax
from jax import export

from .trace_state import current_trace, tracing_with
from .user_code import is_users

ADVICE = (
    "The function holds this error back, by try or contextlib.suppress, and goes on in the same way for every size: "
    "leave that out, or ask jax.export.is_symbolic_dim(size) where both ways have the same result. shlo_disc.jit with "
    "compile_once=False compiles a program for the sizes of each call"
)

_MOST_KEPT = 64


class Raised(NamedTuple):
    """An error. frame, instruction, line: where a number was wanted; None and 0 for errors that JAX raised."""

    error: BaseException
    frame: types.FrameType | None
    instruction: int
    line: int


@contextlib.contextmanager
def no_held_errors() -> Iterator[None]:
    """Raise at the end the first error about a size that was raised meanwhile, and that code of the user held back."""
    _install()
    raised: list[Raised] = []
    with tracing_with(replace(current_trace(), raised=raised)):
        yield
    for each in raised:
        if _is_held(each):
            error = _with_place(each)
            setattr(error, _MARK, True)
            raise error


_MARK = "_shlo_disc_held_back"


def is_held(error: BaseException) -> bool:
    """Tells whether an error is one that `no_held_errors` raises."""
    return getattr(error, _MARK, False)


def _is_held(raised: Raised) -> bool:
    """Tells whether code of the user stopped an error. The outermost frame of the traceback is the one that did."""
    trace = raised.error.__traceback__
    stopped = trace.tb_frame if trace is not None else raised.frame  # None: a function in C did, and raised its own
    return stopped is not None and is_users(stopped.f_code.co_filename)


def _with_place(raised: Raised) -> BaseException:
    """The error, whose traceback has the line where the number was wanted."""
    trace, frame = raised.error.__traceback__, raised.frame
    if frame is not None and trace is None:
        trace = types.TracebackType(None, frame, raised.instruction, raised.line)
    return raised.error.with_traceback(trace)


def _keep(error: BaseException, frame: types.FrameType | None = None) -> None:
    """Note an error of a trace. Those that were stopped elsewhere are forgotten, with what their frames hold."""
    if (raised := current_trace().raised) is None:
        return
    if len(raised) >= _MOST_KEPT:
        raised[:] = [*filter(_is_held, raised[:-8]), *raised[-8:]]
    place = (frame, frame.f_lasti, frame.f_lineno) if frame is not None else (None, 0, 0)
    raised.append(Raised(error, *place))


_TEXTS = {
    "__index__": "'_DimExpr' object cannot be interpreted as an integer",
    "__float__": "float() argument must be a string or a real number, not '_DimExpr'",
    "__complex__": "complex() first argument must be a string or a number, not '_DimExpr'",
    "__round__": "type _DimExpr doesn't define __round__ method",
    "__trunc__": "type _DimExpr doesn't define __trunc__ method",
    "__abs__": "bad operand type for abs(): '_DimExpr'",
    "__invert__": "bad operand type for unary ~: '_DimExpr'",
}
"""The texts of Python's own errors, by the method that a size lacks."""

_BITWISE = {"and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>"}


@functools.cache
def _install() -> None:
    """Make JAX's errors about sizes, and those of Python where it wants a number, known to a trace of ours."""
    kind: Any = type(export.symbolic_shape("n")[0])
    _note_made(jax.errors.InconclusiveDimensionOperation, lambda _: True)
    for error in _OF_ARRAYS:
        _note_made(error, lambda made: bool(made) and _is_computed_of_sizes(made[0]))
    for name, text in _TEXTS.items():
        if not hasattr(kind, name):
            setattr(kind, name, _conversion(text))
    for name, sign in _BITWISE.items():
        if not hasattr(kind, f"__{name}__"):
            setattr(kind, f"__{name}__", _on_bits(kind, f"unsupported operand type(s) for {sign}: '_DimExpr' and "))
            setattr(kind, f"__r{name}__", _on_bits(kind, f"unsupported operand type(s) for {sign}: "))
    kind.__format__ = _format(kind.__format__)


_OF_ARRAYS = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerBoolConversionError,
    jax.errors.TracerIntegerConversionError,
)


def _note_made(kind: Any, is_noted: Callable[[Sequence[Any]], bool]) -> None:
    """Make errors of JAX known when they are made. is_noted: tells by what they are made of which ones are."""
    plain = kind.__init__

    @functools.wraps(plain)
    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        plain(self, *args, **kwargs)
        if current_trace().raised is not None and is_noted(args):
            _keep(self)

    kind.__init__ = make


def _is_computed_of_sizes(array: Any) -> bool:
    """Tells whether a traced array is computed of sizes and numbers alone, as n / 2 is."""
    seen, found, left = set(), False, [array]
    while left:
        each = left.pop()
        if id(each) in seen or _is_literal(each):
            continue
        seen.add(id(each))
        made_by = getattr(each, "parent", None)
        if made_by is None or len(seen) > _MOST_STEPS:
            return False
        found = found or made_by.primitive.name == "dim_as_value"
        left.extend(made_by.in_tracers)
    return found


def _is_literal(array: Any) -> bool:
    """Tells whether a traced array is a number: JAX's literals have a value, its variables have none."""
    return hasattr(getattr(array, "val", None), "val")


_MOST_STEPS = 1000


def _format(plain: Callable[..., str]) -> Callable[..., str]:
    """The method by which a size is written as a text."""

    def write(self: Any, form: str) -> str:
        if form:
            refuse(TypeError("unsupported format string passed to _DimExpr.__format__"), sys._getframe(1))
        return plain(self, form)

    return write


def refuse(error: Exception, frame: types.FrameType) -> NoReturn:
    """Raise an error where a frame wants a number of a size, and note it."""
    _keep(error, frame)
    raise error


def _conversion(text: str) -> Callable[..., Any]:
    """A method that wants a number."""

    def convert(self: Any, *_: Any) -> Any:
        refuse(TypeError(text), sys._getframe(1))

    return convert


def _on_bits(kind: Any, text: str) -> Callable[..., Any]:
    """An operator on bits. Arrays have their own."""
    is_left = text.endswith("and ")

    def operate(self: Any, other: Any) -> Any:
        if not isinstance(other, int | kind):
            return NotImplemented
        named = f"'{type(other).__name__}'"
        refuse(TypeError(f"{text}{named}" if is_left else f"{text}{named} and '_DimExpr'"), sys._getframe(1))

    return operate


__all__ = ["ADVICE", "Raised", "is_held", "no_held_errors", "refuse"]
