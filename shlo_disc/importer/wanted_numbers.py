# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Advice where a traced function needs a Python number, and a size is a symbol: what to write in that expression."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

import jax
import numpy as np

from .look_ups import known_value
from .user_code import Place

INTEGER_ARITHMETIC = (
    "integer arithmetic keeps a size a size: x.shape[0] // 2 or x.shape[0] * 3 // 4 in place of int(x.shape[0] * 0.5), "
    "and -(-x.shape[0] // 2) to round up"
)
AS_TEXT = (
    "leave out the format, as in f'{size}' or '%s' % size, which write the name of the size; "
    "jax.debug.print('{}', size) prints the number in each call"
)
_FIXED = (
    "give the size as a number in args=, or _ for it in dynamic=. With the plugin (docs/plugin.md), jax.jit runs "
    "functions that need a number, too"
)
GENERAL = (
    "in place of len(x) write x.shape[0]; in place of functions of NumPy and math, use those of jax.numpy, as in "
    "jax.numpy.sqrt(size), and in place of jax.numpy.searchsorted and interp those of shlo_disc.numpy; make it an "
    f"array by jax.numpy.asarray(size), loop by jax.lax.fori_loop(0, size, ...), or {_FIXED}"
)
_ON_BITS = (
    "write n // 2 for n >> 1, n * 2 for n << 1, n % 8 for n & 7, -n - 1 for ~n, and functions such as "
    "jax.numpy.bitwise_or(n, 1), whose results are arrays, for other operators on bits"
)
NO_TRACE = "'NoneType' object has no attribute 'process_primitive'"
"""The text of JAX from 0.12 on, where it needs the number of the rows of an array outside of what it traces."""

_BY_TEXT = {
    "_DimExpr.__format__": AS_TEXT,
    **{f"for {operator}": _ON_BITS for operator in ("&", "|", "^", "<<", ">>", "unary ~")},
    "bad operand type for abs()": "write jax.core.max_dim(size, -size) in place of abs(size)",
    "doesn't define __round__": "leave out round(), for a size is a whole number",
}
"""Advice by a part of the error's text, where the source of the line is not known."""

_THROUGH_ARRAYS = ("list", "tuple", "sum", "zip", "enumerate", "map", "iter", "sorted", "any", "all", "max", "min")
"""Functions of Python that go through an array."""


def advice(place: Place | None, message: str) -> str:
    """The advice for an error at a place, whose message is about a size in place of a number."""
    expression = place.expression if place else None
    if place is None or expression is None:
        return next((text for words, text in _BY_TEXT.items() if words in message), GENERAL)
    match expression:
        case ast.Call():
            return _on_call(place, expression)
        case ast.JoinedStr() | ast.FormattedValue() | ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod()):
            return AS_TEXT
        case ast.BinOp(op=operator) if type(operator) in _BITWISE:
            return _on_bits(expression, place)
        case ast.BinOp(op=ast.Pow(), left=base, right=power):
            value = f"jax.numpy.power({ast.unparse(base)}, {ast.unparse(power)})"
            return f"write {value}, or jax.numpy.sqrt(size) for a square root"
        case ast.UnaryOp(op=ast.Invert(), operand=size):
            return f"write (-{_operand(size)} - 1) in place of {ast.unparse(expression)}"
        case ast.Attribute(attr=name):
            return (
                f"a size has no {name}: for a value write functions of jax.numpy, such as "
                f"jax.numpy.ceil(jax.numpy.log2(size)); for a size, {_FIXED}"
            )
        case ast.Compare():
            return "compare sizes with whole numbers: write size >= 3 in place of size > 2.5"
        case ast.Subscript():
            return on_index(place)
        case ast.ListComp() | ast.GeneratorExp():
            return _on_rows(ast.unparse(expression.generators[0].iter))
        case ast.Name() | ast.Starred() | ast.Tuple() if "requires a constant" in message or NO_TRACE in message:
            return _on_rows(expression.id if isinstance(expression, ast.Name) else "x")
    return GENERAL


def on_index(place: Place | None) -> str:
    """Advice on an index that is computed of sizes."""
    text = "make an index that is computed of sizes an array"
    expression = place.expression if place else None
    if not isinstance(expression, ast.Subscript) or isinstance(expression.slice, ast.Tuple | ast.Slice) or not place:
        return f"{text}, as in x[jax.numpy.asarray(x.shape[0] - 1)], or write x[-1] for the last"
    indexed, index = ast.unparse(expression.value), ast.unparse(expression.slice)
    known = known_value(expression.value, place.frame)
    if isinstance(known, list | tuple) and known and all(callable(part) for part in known):
        return f"write jax.lax.switch({index}, {indexed}, *arguments), which calls one of the functions"
    if isinstance(expression.value, ast.List | ast.Tuple) or isinstance(known, list | tuple | np.ndarray):
        return f"{text}, and what it is taken of, too: write jax.numpy.asarray({indexed})[jax.numpy.asarray({index})]"
    last = f", or {indexed}[-1]" if index == f"{indexed}.shape[0] - 1" else ""
    return f"{text}: write {indexed}[jax.numpy.asarray({index})]{last}"


def _on_call(place: Place, call: ast.Call) -> str:
    """Advice on a call that takes numbers only."""
    if isinstance(call.func, ast.Call) and place.value_of(call.func.func) is jax.pmap:
        return f"jax.pmap has as many rows as there are devices: write {ast.unparse(call).replace('pmap', 'vmap', 1)}"
    written, arguments = ast.unparse(call.func), [ast.unparse(argument) for argument in call.args]
    if isinstance(call.func, ast.Attribute) and call.func.attr == "format":
        return AS_TEXT
    module, _, name = place.called().rpartition(".")
    match module:
        case "builtins" if name == "len":
            value = place.value_of(call.args[0])
            return _on_len(arguments[0]) if value is None or hasattr(value, "shape") else GENERAL
        case "builtins" if name in _THROUGH_ARRAYS:
            return _on_rows(arguments[0])
        case "builtins" | "operator":
            on_builtin = _ON_BUILTINS.get(name)
            return on_builtin(arguments) if on_builtin and arguments else GENERAL
        case "math":
            return _on_math(call, written, arguments)
        case "numpy" if text := on_numpy(place):
            return text
        case "numpy.random":
            return (
                f"NumPy's functions take numbers only: in place of {written} write a function of jax.random, which "
                "takes a key and a shape, such as jax.random.uniform(key, x.shape)"
            )
        case "":
            return GENERAL
    on_jax = _ON_JAX.get(f"{module}.{name}")
    return on_jax(call, arguments) if on_jax else f"{module}.{name} takes numbers only (docs/limits.md): {_FIXED}"


def instead_of(place: Place | None) -> str:
    """Advice on a call that JAX computes with numbers only, and what to write in its place; "" on others."""
    if place is None or place.expression is None:
        return ""
    if place.called() == "jax.numpy.pad" and "'wrap'" not in ast.unparse(place.expression):
        return ""
    return _INSTEAD.get(place.called(), "")


_INSTEAD = {
    "jax.numpy.array_split": (
        "in place of jax.numpy.array_split(x, 3) write jax.numpy.split(x, [(n + 2) // 3, (n + 2) // 3 + (n + 1) // 3]) "
        "with n = x.shape[0]"
    ),
    "jax.numpy.pad": (
        "in place of mode='wrap' take the elements by their indices: to have 2 before and 1 after x, write "
        "x[jax.numpy.arange(-2, x.shape[0] + 1) % x.shape[0]]"
    ),
}


def on_repeated(place: Place | None) -> str:
    """Advice on a list of one element that is repeated, as in [0.0] * n; "" elsewhere."""
    match place.expression if place else None:
        case ast.BinOp(left=ast.List(elts=[element]), op=ast.Mult(), right=size) as whole:
            pass
        case ast.BinOp(left=size, op=ast.Mult(), right=ast.List(elts=[element])) as whole:
            pass
        case _:
            return ""
    return f"write jax.numpy.full({ast.unparse(size)}, {ast.unparse(element)}) in place of {ast.unparse(whole)}"


def on_numpy(place: Place | None) -> str:
    """Advice where a function of NumPy is called that jax.numpy has, too; "" elsewhere."""
    module, _, name = place.called().rpartition(".") if place else ("", "", "")
    if module != "numpy" or not hasattr(jax.numpy, name) or not place or not isinstance(place.expression, ast.Call):
        return ""
    called = ast.unparse(place.expression.func)
    return f"NumPy's functions take numbers only: write jax.numpy.{name} in place of {called}"


def _on_len(array: str) -> str:
    return f"write {array}.shape[0] in place of len({array})"


def _on_rows(array: str) -> str:
    """Advice where Python goes through an array, or a function returns a list of its parts."""
    return (
        f"Python cannot take an array of that size apart: jax.vmap(function)({array}) computes a result for each row, "
        f"jax.lax.scan(step, carry, {array}) passes a value from row to row, and {array}.sum(0) adds them"
    )


def _on_range(arguments: Sequence[str]) -> str:
    """Advice on `range`, which takes one to three arguments."""
    values = f"jax.numpy.arange({', '.join(arguments)})"
    if len(arguments) > 2:
        loop = f"jax.lax.scan(lambda carry, i: ..., start, {values})"
    else:
        first, end = ("0", *arguments)[-2:]
        loop = f"jax.lax.fori_loop({first}, {end}, lambda i, carry: ..., start)"
    result = f"jax.vmap(function)({values}) for a result for each i"
    return f"in place of range({', '.join(arguments)}) write {loop}, or {result}"


_ON_BUILTINS: dict[str, Callable[[Sequence[str]], str]] = {
    "abs": lambda a: f"write jax.core.max_dim({a[0]}, -({a[0]})) in place of abs({a[0]})",
    "range": _on_range,
    "int": lambda a: f"leave out int(): {a[0]} is taken as it is in shapes, slices and arithmetic",
    "index": lambda a: f"leave out operator.index(): {a[0]} is taken as it is in shapes, slices and arithmetic",
    "round": lambda a: f"leave out round(): {a[0]} is a whole number",
    "float": lambda a: (
        f"leave out float(): arithmetic takes {a[0]} as it is, and jax.numpy.float32({a[0]}) makes it an array"
    ),
    "complex": lambda a: (
        f"leave out complex(): arithmetic takes {a[0]} as it is, and jax.numpy.complex64({a[0]}) makes it an array"
    ),
    "format": lambda _: AS_TEXT,
}
"""Advice by the name of a function of Python."""


def _on_math(call: ast.Call, written: str, arguments: Sequence[str]) -> str:
    """Advice on a function of the module `math`."""
    name, whole = written.rpartition(".")[2], ", ".join(arguments)
    match call.args:
        case [ast.BinOp(left=size, op=ast.Div(), right=divisor)] if name in ("ceil", "floor", "trunc"):
            quotient = ast.BinOp(size, ast.FloorDiv(), divisor)
            if name == "ceil":
                quotient = ast.BinOp(ast.UnaryOp(ast.USub(), size), ast.FloorDiv(), divisor)
            rounded = ast.unparse(quotient)
            return f"write {f'-({rounded})' if name == 'ceil' else rounded} in place of {written}({whole})"
    if name in ("ceil", "floor", "trunc"):
        return INTEGER_ARITHMETIC
    if name == "isqrt":
        return f"for a value, and not for a size, write jax.numpy.floor(jax.numpy.sqrt({whole})); for a size, {_FIXED}"
    if name == "log" and len(arguments) == 2:
        logarithms = " / ".join(f"jax.numpy.log({argument})" for argument in arguments)
        return f"functions of math take numbers only: write {logarithms} in place of {written}({whole})"
    if name == "factorial":
        name = "scipy.special.factorial"
        return f"functions of math take numbers only: write jax.{name}({whole}) in place of {written}({whole})"
    if not hasattr(jax.numpy, name):
        return f"{written} takes numbers only: {_FIXED}"
    return f"functions of math take numbers only: write jax.numpy.{name}({whole}) in place of {written}({whole})"


def _on_bits(expression: ast.BinOp, place: Place) -> str:
    """Advice on operators on bits, which sizes do not have."""
    whole, left, right = (ast.unparse(e) for e in (expression, expression.left, expression.right))
    if isinstance(expression.op, ast.BitAnd) and _integer(expression.left, place) is not None:
        expression = ast.BinOp(expression.right, expression.op, expression.left)
    size, number = _operand(expression.left), _integer(expression.right, place)
    match expression.op:
        case ast.RShift() if number is not None and number >= 0:
            return f"write {size} // {2**number} in place of {whole}"
        case ast.LShift() if number is not None and number >= 0:
            return f"write {size} * {2**number} in place of {whole}"
        case ast.BitAnd() if number is not None and number >= 0 and number & (number + 1) == 0:
            return f"write {size} % {number + 1} in place of {whole}"
        case ast.BitAnd() if number is not None and number < 0 and -number & (-number - 1) == 0:
            return f"write {size} // {-number} * {-number} in place of {whole}"
    value = f"jax.numpy.{_BITWISE[type(expression.op)]}({left}, {right})"
    return (
        f"write {value}, which is an array, in place of {whole}. To branch on it, write jax.lax.cond({value} != 0, "
        f"...), whose branches have results of the same shape; for a size, {_FIXED}"
    )


_BITWISE: dict[type[ast.operator], str] = {
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.LShift: "left_shift",
    ast.RShift: "right_shift",
}
"""Names of operators on bits in jax.numpy."""


def _integer(expression: ast.expr, place: Place) -> int | None:
    """The value of an expression of integers and of names of such; None for others."""
    match expression:
        case ast.Constant(value=int(value)):
            return int(value)
        case ast.Name():
            found = place.value_of(expression)
            return found if isinstance(found, int) else None
        case ast.UnaryOp(op=ast.USub() | ast.Invert() as operator, operand=inner):
            found = _integer(inner, place)
            return None if found is None else -found - isinstance(operator, ast.Invert)
        case ast.BinOp(op=ast.Sub(), left=first, right=second):
            left, right = _integer(first, place), _integer(second, place)
            return None if left is None or right is None else left - right
    return None


def _operand(node: ast.expr) -> str:
    """The text of an operand, in parentheses where operators are in it."""
    return f"({ast.unparse(node)})" if isinstance(node, ast.BinOp | ast.UnaryOp) else ast.unparse(node)


def _on_permutation(_: ast.Call, arguments: Sequence[str]) -> str:
    key, size = arguments if len(arguments) == 2 else ("key", "size")
    return f"sort by random numbers: jax.numpy.argsort(jax.random.uniform({key}, ({size},)))"


def _on_choice(call: ast.Call, arguments: Sequence[str]) -> str:
    key, size, *shape = arguments if len(arguments) > 1 else ("key", "size")
    if any(keyword.arg in ("replace", "p") for keyword in call.keywords) or len(arguments) > 3:
        return (
            f"to choose each number once, take the first of jax.numpy.argsort(jax.random.uniform({key}, ({size},))); "
            f"jax.random.randint({key}, shape, 0, {size}) chooses them more than once"
        )
    return f"write jax.random.randint({key}, {shape[0] if shape else 'shape'}, 0, {size})"


def _on_scan(call: ast.Call, _: Sequence[str]) -> str:
    length = next((ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg == "length"), "size")
    if len(call.args) > 3:
        length = ast.unparse(call.args[3])
    return f"in place of length= give an array of that size: jax.lax.scan(step, carry, jax.numpy.arange({length}))"


def _on_product(_: ast.Call, arguments: Sequence[str]) -> str:
    rows = arguments[0] if arguments else "x"
    return (
        f"its gradient needs the number: multiply row by row, by jax.lax.scan(lambda carry, row: (carry * row, None), "
        f"jax.numpy.ones({_operand_of_text(rows)}.shape[1:]), {rows})[0], with .ravel() of an array whose axes are all "
        "multiplied; or give shlo_disc.jit compile_once=False, which compiles a program for the sizes of each call"
    )


def _operand_of_text(text: str) -> str:
    return text if text.replace(".", "").isidentifier() else f"({text})"


def _on_parts(_: ast.Call, arguments: Sequence[str]) -> str:
    rows = _on_rows(arguments[0] if arguments else "x")
    return f"{rows}; shlo_disc.jit with compile_once=False compiles a program for the sizes of each call"


_ON_JAX: dict[str, Callable[[ast.Call, Sequence[str]], str]] = {
    "jax.random.permutation": _on_permutation,
    "jax.numpy.diag_indices": lambda _, a: f"write (i, i) with i = jax.numpy.arange({a[0] if a else 'n'})",
    "jax.random.choice": _on_choice,
    "jax.lax.scan": _on_scan,
    "jax.numpy.prod": _on_product,
    **{f"jax.numpy.{name}": _on_parts for name in ("split", "array_split", "hsplit", "vsplit", "dsplit", "unstack")},
    "jax.numpy.searchsorted": lambda *_: "write shlo_disc.numpy.searchsorted in place of jax.numpy.searchsorted",
    "jax.numpy.interp": lambda *_: "write shlo_disc.numpy.interp in place of jax.numpy.interp",
}
"""Advice by the name of a function of JAX."""

__all__ = ["AS_TEXT", "GENERAL", "INTEGER_ARITHMETIC", "advice", "instead_of", "on_index", "on_numpy", "on_repeated"]
