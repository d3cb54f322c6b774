# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Notes on what JAX raises while it traces a function of symbolic sizes: what to write in terms of shlo_disc.

The errors stay those of JAX and of the user's function, with their tracebacks.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator

_COMPARISON = re.compile(r"^Symbolic dimension comparison '(.*?)' (>=|<=|>|<|==|!=) '(.*?)' is inconclusive")
_DIVISION = re.compile(r"The remainder mod\((?:(\d+)\*)?(\w+), ?-? ?(\d+)\) should be 0")
_BOTH_WAYS = {">": (">= {more}", "<= {value}"), ">=": (">= {value}", "<= {less}")}
_BOTH_WAYS |= {"<": ("<= {less}", ">= {value}"), "<=": ("<= {value}", ">= {more}")}
_NUMBER_WANTED = (
    "_DimExpr",
    "used in a context that requires a constant",
    "expected a sequence of integers or a single integer, got '",
    "Symbolic dimension cannot be raised to",
    "with a symbolic number of sections",
)
_TWO_SHAPES = re.compile(
    r"shapes for broadcasting: (?P<left>\(.*?\)), (?P<right>\(.*?\))"
    r"|shapes for broadcasting: shapes=\[(?P<shapes>.*)\]"
    r"|contracting dimensions to have the same shape, got (?P<of_left>\(.*?\)) and (?P<of_right>\(.*?\))"
    r"|concatenating along dimension \d+ for shapes (?P<parts>.*\))"
)
_SHAPE = re.compile(r"\(((?:[^()]|\([^()]*\))*)\)")
_OF_DATA = re.compile(
    r"The size argument of jnp\.(nonzero|flatnonzero|argwhere|where|unique) must be statically"
    r"|arose for the first argument of jnp\.(unique)\(\)"
)
_ADVICE = {
    "Array boolean indices must be concrete": (
        "for a size that is read from data, write shlo_disc.numpy.boolean_index(x, mask) in place of x[mask]"
    ),
    "Slice entries must be static integers": (
        "for a size that is read from data, write shlo_disc.numpy.boolean_index(x, jax.numpy.arange(x.shape[0]) < "
        "stop) in place of x[:stop]; a slice of a known size is jax.lax.dynamic_slice_in_dim(x, start, size)"
    ),
    "the total number of repeats must be static": (
        "say how many elements there are in all by total_repeat_length=: a number, or the size of an argument, such as "
        "total_repeat_length=y.shape[0]"
    ),
    "associative scan over axis of non-constant size": (
        "use jax.numpy.cumsum, jax.numpy.cumprod, jax.lax.cummax, jax.lax.cummin or jax.lax.cumlogsumexp if the "
        "function is one of these, and jax.lax.scan otherwise; or give the size as a number in args="
    ),
    "It arose in the jnp.arange argument": (
        "jax.numpy.arange takes numbers and sizes, such as x.shape[0] // 2, and no arrays or fractions of sizes. "
        "jax.scipy.signal.stft computes such fractions: cut the frames by x[starts[:, None] + "
        "jax.numpy.arange(width)], and transform them by jax.numpy.fft.rfft"
    ),
    "shape polymorphism for `permutation`": (
        "sort by random numbers: x[jax.numpy.argsort(jax.random.uniform(key, x.shape[:1]))]"
    ),
    "The problem arose with the `int` function": (
        "integer arithmetic keeps a size a size: x.shape[0] // 2 or x.shape[0] * 3 // 4 in place of "
        "int(x.shape[0] * 0.5)"
    ),
    "Attempted boolean conversion of traced array": (
        "choose by values with jax.numpy.where(condition, a, b), or run one of two functions with jax.lax.cond; and "
        "write jax.numpy.arange for numpy.arange, as NumPy's functions take no sizes that have names"
    ),
    "padding argument to conv_general_dilated should be a string": (
        "JAX has no gradient of a strided convolution at these sizes: name them as multiples of the stride and a rest, "
        'such as "2*h + 1", or use jax.jit with the plugin (docs/plugin.md)'
    ),
}
"""Advice against errors by a part of their texts."""

_NO_NUMBER = (
    "a size that has a name is not an int while the function is traced: in place of functions of NumPy and math, use "
    "those of jax.numpy, as in jax.numpy.sqrt(size), and in place of jax.numpy.searchsorted and interp those of "
    "shlo_disc.numpy; make it an array by jax.numpy.asarray(size), loop by jax.lax.fori_loop(0, size, ...), or give "
    "the size as a number in args=. With the plugin (docs/plugin.md), jax.jit runs functions that need a number, too"
)
_UNEVEN = re.compile(r"array split does not result in an equal division: rest is mod\((\w+), (\d+)\)")


@contextlib.contextmanager
def noted_traces() -> Iterator[None]:
    """Add a note to an error of JAX's that asks for something which options of shlo_disc state."""
    try:
        yield
    except Exception as error:
        if note := note_on(str(error)):
            error.add_note(f"shlo_disc: {note}")
        raise


def note_on(message: str) -> str:
    """Advice against an error of that text; "" where there is none."""
    if found := _COMPARISON.match(message):
        return _on_comparison(*found.groups())
    if found := _DIVISION.search(message):
        factor, name, divisor = int(found[1] or 1), found[2], int(found[3])
        return _on_division(name, divisor // math.gcd(factor, divisor))
    if found := _UNEVEN.search(message):
        return _on_division(found[1], int(found[2]))
    if any(text in message for text in _NUMBER_WANTED):
        return _NO_NUMBER
    if found := _TWO_SHAPES.search(message):
        return _on_shapes("".join(text for text in found.groups() if text))
    if found := _OF_DATA.search(message):
        name = found[1] or found[2]
        return f"for a size that is read from data, write shlo_disc.numpy.{name} in place of jax.numpy.{name}"
    return next((advice for words, advice in _ADVICE.items() if words in message), "")


def _on_division(name: str, divisor: int) -> str:
    return f'declare the size as a multiple: write "{divisor}*{name}" in place of "{name}" in args= or dynamic='


def _on_shapes(text: str) -> str:
    """Advice on shapes that do not go together, where two sizes of symbols may be meant to be equal; or ""."""
    shapes = [[size.strip() for size in shape[1].split(",") if size.strip()] for shape in _SHAPE.finditer(text)]
    for sizes in zip(*(reversed(shape) for shape in shapes), strict=False):
        names = sorted({size for size in sizes if size.isidentifier()})
        numbers = sorted({size for size in sizes if size.isdecimal() and size != "1"})
        if len(names) > 1:
            one, other = names[:2]
            return (
                f"where {one} and {other} are equal, give both one name in args= or dynamic=, or state "
                f'constraints=("{one} == {other}",)'
            )
        if names and numbers:
            return f"where {names[0]} is always {numbers[0]}, write that number in its place in args= or dynamic="
    return ""


def _on_comparison(left: str, op: str, right: str) -> str:
    if op not in _BOTH_WAYS:
        return f'where it always holds, state it: constraints=("{left} == {right}",)'
    more, less = (f"{right} {sign} 1" for sign in "+-")
    if right.isdecimal():
        more, less = str(int(right) + 1), str(int(right) - 1)
    holds, fails = (f"{left} {text.format(value=right, more=more, less=less)}" for text in _BOTH_WAYS[op])
    return f'where it always holds, state it: constraints=("{holds}",); where it never does, constraints=("{fails}",)'


__all__ = ["note_on", "noted_traces"]
