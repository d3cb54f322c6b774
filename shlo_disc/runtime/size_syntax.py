# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Texts of shapes that JAX's parser of symbolic sizes does not read: what to write in their place."""

from __future__ import annotations

import ast
import operator
import re
import tokenize
from typing import Any

import jax
from jax import export

_GENERAL = (
    "sizes are numbers, names, and sums and products of these, such as 'b', '2*b + 1' or 'n - 1', with commas between "
    "them"
)
_COMMA = r",(?![^(]*\))"
_OPERATORS: dict[type[ast.operator], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_FUNCTIONS = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": jax.core.max_dim,
    "min": jax.core.min_dim,
}


def syntax_advice(text: str, rank: int | None = None) -> str:
    """The advice on a text that JAX cannot read as sizes; "" for one that it reads.

    `_` and `...` are sizes here. rank: the number of sizes, where it is known.
    """
    if _is_read(text):
        return ""
    separated = _separated(text)
    if separated and rank in (None, separated.count(",") + 1):
        return f"commas separate sizes: write {separated!r}"
    plain = text.strip(" []")
    for inner in (plain, _opened(plain)):
        sizes = [size.strip() for size in re.split(_COMMA, inner)]
        wanted = ", ".join(map(rewritten, sizes))
        if _is_read(wanted):
            unsolved = next((size for size in sizes if re.search(r"/|%|\*\*|\^", size)), "")
            return _on_quotient(unsolved, wanted) if unsolved else f"write {wanted!r}"
    return _GENERAL


def rewritten(size: str) -> str:
    """A size in JAX's words, with its functions for Python's operators; as it is where JAX reads it, or nobody does."""
    if _is_read(size):
        return size
    text = re.sub(r"(?<![\w.])(\d+)\s*(?=[a-zA-Z_(])", r"\1*", size).replace("^", "**")
    try:
        return str(_value(ast.parse(text, mode="eval").body, export.SymbolicScope()))
    except (ArithmeticError, SyntaxError, TypeError, ValueError):
        return size


def _is_read(text: str) -> bool:
    """Tells whether JAX's parser reads a text as sizes."""
    every = re.split(_COMMA, _opened(text.strip()).removesuffix(","))
    sizes = [size for size in every if size.strip() not in ("_", "...")]
    try:
        return all(len(export.symbolic_shape(size)) == 1 for size in sizes)
    except (ValueError, tokenize.TokenError):
        return False


def _opened(text: str) -> str:
    """A text without the parentheses around it."""
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text


def _separated(text: str) -> str:
    """The sizes of a text that lacks commas, with commas; "" for other texts."""
    plain = text.strip(" ()[]")
    if "," in plain and ";" not in plain and not re.search(r"\w\s+\w", plain):
        return ""
    sizes = [size for size in re.split(r"[\s,;]+", plain) if size]
    if len(sizes) > 2 and all(size in ("x", "×") for size in sizes[1::2]):
        sizes = sizes[::2]
    is_plain = all(re.fullmatch(r"[a-zA-Z_]\w*|\d+|\.\.\.", size) for size in sizes)
    return ", ".join(sizes) if is_plain and len(sizes) > 1 else ""


def _on_quotient(size: str, wanted: str) -> str:
    """Advice on a size that is a quotient, a remainder or a power, from which JAX cannot compute its name."""
    names = sorted(set(re.findall(r"[a-zA-Z_]\w*", size)) - _FUNCTIONS.keys())
    owner = f"another argument has the size {names[0]}" if len(names) == 1 else "other arguments have the sizes in it"
    start = f"write {wanted!r} if {owner}; otherwise name this size, as by"
    if found := re.fullmatch(r"(\w+)\s*//?\s*(\d+)", size):
        name, number = found.groups()
        return f"{start} {name!r}, and write '{number}*{name}' for its multiple"
    return f"{start} {(names or ['b'])[0]!r}"


def _value(node: ast.expr, scope: export.SymbolicScope) -> Any:
    """The size that an expression is. Raises ValueError for what is no expression of sizes."""
    match node:
        case ast.Name(id=name):
            return export.symbolic_shape(name, scope=scope)[0]
        case ast.Constant(value=int(number)):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, scope)
        case ast.BinOp(left=ast.Constant(), op=ast.Div()):
            pass  # of a fraction, such as 1/2*b, nothing would be left
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _OPERATORS[type(sign)](_value(left, scope), _value(right, scope))
        case ast.Call(func=ast.Name(id=name), args=[left, right], keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](_value(left, scope), _value(right, scope))
    raise ValueError(ast.unparse(node))


__all__ = ["rewritten", "syntax_advice"]
