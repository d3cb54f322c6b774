# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that use one op on one element type, and the parts that they are written of."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

Dims = tuple[int | str, ...]
Tensor = tuple[Dims, str]
"""Sizes, of which "n" is unknown, and element type."""

ALIKE = ("n",)

LEGACY = "an op of older versions, rewritten into newer ones that are generated"
"""The reason that the fuzzer does not generate an op."""


class Program(NamedTuple):
    """`body` computes what is `returned` from %a0, %a1, ...; `functions` are those that it calls.

    ulps: the tolerance, in units of the last place of the result or of 1. small: arguments are whole numbers near
    zero, so that sums are exact. by_xla: XLA compiles the program, too.
    """

    arguments: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    body: str
    ulps: float = 0
    small: bool = False
    by_xla: bool = True
    functions: str = ""
    returned: str = "%r0, %r1, %r2"

    @property
    def text(self) -> str:
        """The module."""
        parameters = ", ".join(f"%a{i}: {tensor(*t)}" for i, t in enumerate(self.arguments))
        types = ", ".join(tensor(*t) for t in self.results)
        returned = ", ".join(self.returned.split(", ")[: len(self.results)])
        main = f"func.func @main({parameters}) -> ({types}) {{\n  {self.body}\n  return {returned} : {types}\n}}"
        return f"{self.functions}\n{main}"

    @property
    def elements(self) -> set[str]:
        """The element types of arguments and results."""
        return {element for _, element in (*self.arguments, *self.results)}


def tensor(dims: Dims, element: str) -> str:
    """`tensor<?x3xf32>`."""
    sizes = ["?" if d == "n" else str(d) for d in dims]
    return f"tensor<{'x'.join([*sizes, element])}>"


def scalar(t: str, number: int) -> str:
    """A constant of any element type."""
    if t.startswith("complex"):
        return f"dense<({number}.0, 0.0)> : tensor<{t}>"
    if t == "i1":
        return f"dense<{'true' if number else 'false'}> : tensor<i1>"
    return f"dense<{number}{'.0' if t[0] in 'fb' else ''}> : tensor<{t}>"


def region(op: str, t: str) -> str:
    """The body of a reduction by one op."""
    e = f"tensor<{t}>"
    return f"""({{ ^bb0(%p: {e}, %q: {e}):
      %s = stablehlo.{op} %p, %q : {e}
      stablehlo.return %s : {e} }})"""


def below(t: str, others: tuple[str, ...] = (), direction: str = "LT") -> str:
    """The comparator of a sort by the first operand."""
    types = [f"tensor<{x}>" for x in (t, t, *(o for other in others for o in (other, other)))]
    arguments = ", ".join(f"%p{i}: {x}" for i, x in enumerate(types))
    part = real_of(t)
    if part == t:
        compare = f"%s = stablehlo.compare {direction}, %p0, %p1 : ({types[0]}, {types[0]}) -> tensor<i1>"
    else:
        compare = "\n".join(f"%x{i} = stablehlo.real %p{i} : ({types[0]}) -> tensor<{part}>" for i in range(2))
        compare += f"\n%s = stablehlo.compare {direction}, %x0, %x1 : (tensor<{part}>, tensor<{part}>) -> tensor<i1>"
    return f"({arguments}):\n      {compare}\n"


def real_of(t: str) -> str:
    """The type of the parts of a complex number; any other type itself."""
    return t[8:-1] if t.startswith("complex") else t


def is_float(t: str) -> bool:
    """Any float, of whatever width."""
    return t[0] == "f" or t == "bf16"


Form = Callable[[str], Program]


def unary(op: str, ulps: float = 0, result: Callable[[str], str] = lambda t: t, attributes: str = "") -> Form:
    def made(t: str) -> Program:
        r = result(t)
        types = tensor(ALIKE, t) if r == t else f"({tensor(ALIKE, t)}) -> {tensor(ALIKE, r)}"
        return Program(((ALIKE, t),), ((ALIKE, r),), f"%r0 = stablehlo.{op} %a0{attributes} : {types}", ulps)

    return made


def binary(op: str, ulps: float = 0) -> Form:
    def made(t: str) -> Program:
        return Program(
            ((ALIKE, t), (ALIKE, t)), ((ALIKE, t),), f"%r0 = stablehlo.{op} %a0, %a1 : {tensor(ALIKE, t)}", ulps
        )

    return made


def moved(body: str, result: Dims, argument: Dims = ("n", 4), more: tuple[Tensor, ...] = ()) -> Form:
    """An op that arranges the elements of `argument`; in `body`, X and R are the types, S that of an element."""

    def made(t: str) -> Program:
        types = {"X": tensor(argument, t), "R": tensor(result, t), "S": f"tensor<{t}>"}
        text = re.sub(r"\b[XRS]\b", lambda found: types[found.group()], body)
        zero = f"%z = stablehlo.constant {scalar(t, 1)}\n  " if "%z" in text else ""
        return Program(((argument, t), *more), ((result, t),), zero + text)

    return made


def without_xla(form: Form, lacks: Callable[[str], bool]) -> Form:
    """A form of an op that XLA does not have on some types, or wrongly."""

    def made(t: str) -> Program:
        return form(t)._replace(by_xla=not lacks(t))

    return made
