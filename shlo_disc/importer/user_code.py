# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The user's code in tracebacks: the innermost line of it, and the expression there that failed."""

from __future__ import annotations

import ast
import builtins
import functools
import itertools
import linecache
import math
import operator
import site
import sysconfig
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jaxlib
import numpy as np

_PACKAGE = str(Path(__file__).parents[1])
_MODULES = (builtins, math, operator, itertools, np, np.random, jax.numpy, jax.lax, jax.random)
"""The modules whose functions have names for `Place.called`."""


class Place(NamedTuple):
    """A line of a file. expression: the part of it that failed; None where its source is not known."""

    file: str
    line: int
    expression: ast.expr | None
    frame: types.FrameType

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def called(self) -> str:
        """The name of the function that the expression calls, such as "numpy.zeros", by whatever name it does.

        "" for other expressions, and for functions that are not in `_MODULES`.
        """
        if not isinstance(self.expression, ast.Call):
            return ""
        found = self.value_of(self.expression.func)
        name = getattr(found, "__name__", "")
        return next((f"{m.__name__}.{name}" for m in _MODULES if name and getattr(m, name, None) is found), "")

    def value_of(self, node: ast.expr) -> Any:
        """The value of a name, or of an attribute of a module; None for other expressions."""
        if isinstance(node, ast.Attribute):
            module = self.value_of(node.value)
            return getattr(module, node.attr, None) if isinstance(module, types.ModuleType) else None
        if not isinstance(node, ast.Name):
            return None
        places = (self.frame.f_locals, self.frame.f_globals, vars(builtins))
        return next((names[node.id] for names in places if node.id in names), None)


def place_of(error: BaseException) -> Place | None:
    """The innermost line of the user's code in an error's traceback; None where there is none."""
    found, trace = None, error.__traceback__
    while trace is not None:
        if is_users(trace.tb_frame.f_code.co_filename):
            found = trace
        trace = trace.tb_next
    if found is None:
        return None
    frame = found.tb_frame
    return Place(frame.f_code.co_filename, found.tb_lineno, expression_at(frame, found.tb_lasti), frame)


def is_of_place(error: BaseException, place: Place | None) -> bool:
    """Tells whether an error about sizes was raised by an operator at a place, and not by a function called there."""
    if place is None:
        return False
    if any("removed its internal frames" in note for note in getattr(error, "__notes__", ())):
        return isinstance(place.expression, ast.Compare) or place.called().startswith("builtins.")
    trace = error.__traceback__
    while trace is not None and trace.tb_frame is not place.frame:
        trace = trace.tb_next
    while trace is not None and (trace := trace.tb_next) is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(_PACKAGE) and Path(file).name != "shape_poly.py":
            return False
    return True


class Equation(NamedTuple):
    """An operation of a traced function. line: the user's, such as "model.py:12"; "" where none is known.

    has_names: whether sizes of its arguments have names.
    """

    line: str
    primitive: str
    parameters: Mapping[str, Any]
    has_names: bool


_CALLS = ("jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call")
"""Operations of JAX that are functions, whose own operations may have no lines."""


def equation_of(error: BaseException) -> Equation | None:
    """The operation that JAX was lowering when an error was raised: the innermost one that has a line of the user's, or
    the one in it if that is a function; None where there was none."""
    trace, found = error.__traceback__, None
    while trace is not None:
        equation: Any = trace.tb_frame.f_locals.get("eqn")
        source = getattr(equation, "source_info", None)
        frames = getattr(getattr(source, "traceback", None), "frames", ())
        line = next((f"{frame.file_name}:{frame.line_num}" for frame in frames if is_users(frame.file_name)), "")
        if source is not None and (line or found is None or found.primitive in _CALLS):
            shapes = (getattr(argument.aval, "shape", ()) for argument in equation.invars)
            has_names = any(not isinstance(size, int) for shape in shapes for size in shape)
            line = line or (found.line if found is not None else "")
            found = Equation(line, equation.primitive.name, equation.params, has_names)
        trace = trace.tb_next
    return found


def expression_at(frame: types.FrameType, instruction: int) -> ast.expr | None:
    """The expression that a frame evaluates at an offset in its bytecode; None where its source is not there."""
    code = frame.f_code
    positions = next(itertools.islice(code.co_positions(), instruction // 2, None), (None,) * 4)
    first, last, start, end = positions
    if first is None or last is None or start is None or end is None:
        return None
    lines = [linecache.getline(code.co_filename, n, frame.f_globals).encode() for n in range(first, last + 1)]
    if not all(lines):
        return None
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    text = b"".join(lines).decode()
    try:
        return ast.parse(f"({text})", mode="eval").body
    except (SyntaxError, ValueError):
        return _augmented(text)


def _augmented(text: str) -> ast.expr | None:
    """The operation of an assignment such as `n &= 7`; None of other texts."""
    try:
        statement = ast.parse(text).body[0]
    except (SyntaxError, ValueError, IndexError):
        return None
    if not isinstance(statement, ast.AugAssign):
        return None
    return ast.BinOp(ast.parse(ast.unparse(statement.target), mode="eval").body, statement.op, statement.value)


@functools.cache
def is_users(file: str) -> bool:
    """Tells whether a file belongs to no installed package, to Python or to this package."""
    installed = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), *site.getsitepackages(), _PACKAGE)
    if file.startswith(("<frozen", "<__array", *installed)) or file.endswith(".pyx"):
        return False
    return "site-packages" not in Path(file).parts


_OF_JAX = tuple(str(Path(module.__file__ or "").parent) for module in (jax, jaxlib)) + (_PACKAGE,)


@functools.cache
def is_of_jax(file: str) -> bool:
    """Tells whether a file belongs to JAX, to Python or to this package."""
    return file.startswith(("<frozen", "<__array", sysconfig.get_path("stdlib"), *_OF_JAX)) and not _is_of_library(file)


def _is_of_library(file: str) -> bool:
    """Tells whether a file in the standard library's folder belongs to a package that is installed there."""
    return "site-packages" in Path(file).parts and not file.startswith(_OF_JAX)


_NUMPY = str(Path(np.__file__).parent)


def is_of_python(frame: types.FrameType) -> bool:
    """Tells whether a frame is of NumPy or of Python's library, which compare for whoever calls them."""
    file = frame.f_code.co_filename
    in_library = file.startswith(sysconfig.get_path("stdlib")) and "site-packages" not in Path(file).parts
    return file.startswith(_NUMPY) or in_library


__all__ = [
    "Equation", "Place", "equation_of", "expression_at", "is_of_jax", "is_of_place", "is_of_python", "is_users",
    "place_of",
]  # fmt: skip
