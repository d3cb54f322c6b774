# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the text of `jax.export` dimension expressions.

expr   := ['+' | '-'] term (('+' | '-') term)*
term   := factor ['^' number] ('*' factor ['^' number])*
factor := name | ['-'] number | ('floordiv' | 'mod' | 'max' | 'min') '(' expr ',' expr ')'
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from shlo_disc.errors import ProgramError
from shlo_disc.shape_dialect.symbolic.expr import Expr

_TOKEN = re.compile(r"\s*(?:(?P<number>\d[\d_]*)|(?P<name>[^\W\d]\w*)|(?P<mark>[-+*^(),]))")
_OPERATIONS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "max": Expr.maximum,
    "min": Expr.minimum,
}
# Texts beyond these limits are not sizes; the limits keep a hostile text from exhausting the stack or the memory.
_MAX_DEPTH = 100
_MAX_POWER = 64
_MAX_DIGITS = 100


_SHORT = 256
_LONG = 8192
"""Characters of texts whose meaning is kept: each stage reads the sizes of a program again, and the sizes of convolved
images are long. There are two memories, so that both are bounded and long texts do not drive out the short ones."""


def parse_expr(text: str) -> Expr:
    """The expression that `text` denotes. Raises ProgramError with the position of the first wrong character."""
    if len(text) <= _SHORT:
        return _read_once(text)
    return _read_long_once(text) if len(text) <= _LONG else _read(text)


def _read(text: str) -> Expr:
    parser = _Parser(text)
    e = parser.expr(0)
    if parser.kind != "end":
        raise parser.error("expected '+', '-', '*' or the end")
    return e


_read_once = functools.lru_cache(maxsize=65536)(_read)
_read_long_once = functools.lru_cache(maxsize=1024)(_read)


class _Parser:
    """Recursive descent with one token of look-ahead in `kind` and `token`, which starts at `start`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.end = 0
        self.advance()

    def advance(self) -> None:
        match = _TOKEN.match(self.text, self.end)
        if match is None:
            rest = self.text[self.end :]
            self.start = self.end + len(rest) - len(rest.lstrip())
            self.kind, self.token = ("end", "") if not rest.strip() else ("unknown", rest.lstrip()[0])
            return
        self.kind = str(match.lastgroup)
        self.token = match.group(self.kind)
        self.start, self.end = match.start(self.kind), match.end()

    def error(self, message: str) -> ProgramError:
        found = "the end" if self.kind == "end" else f"'{self.token}'"
        return ProgramError(
            f"cannot read the dimension expression '{self.text}': {message}, found {found} at position {self.start}"
        )

    def take(self, mark: str) -> bool:
        if self.kind == "mark" and self.token == mark:
            self.advance()
            return True
        return False

    def expect(self, mark: str) -> None:
        if not self.take(mark):
            raise self.error(f"expected '{mark}'")

    def expr(self, depth: int) -> Expr:
        if depth > _MAX_DEPTH:
            raise self.error(f"nested deeper than {_MAX_DEPTH}")
        negative = self.take("-")
        if not negative:
            self.take("+")
        total = -self.term(depth) if negative else self.term(depth)
        while True:
            if self.take("+"):
                total = total + self.term(depth)
            elif self.take("-"):
                total = total - self.term(depth)
            else:
                return total

    def term(self, depth: int) -> Expr:
        product = self.power(depth)
        while self.take("*"):
            product = product * self.power(depth)
        return product

    def power(self, depth: int) -> Expr:
        factor = self.factor(depth)
        if not self.take("^"):
            return factor
        if self.kind != "number" or len(self.token) > 2 or int(self.token) > _MAX_POWER:
            raise self.error(f"expected a power from 0 to {_MAX_POWER}")
        return factor ** self.number()

    def factor(self, depth: int) -> Expr:
        if self.kind == "name":
            name = self.token
            if name in _OPERATIONS:
                return self.operation(name, depth)
            if name == "_":
                raise self.error("'_' stands for an unknown dimension; expected an expression")
            self.advance()
            return Expr.symbol(name)
        negative = self.take("-")
        if self.kind != "number":
            raise self.error("expected a number" if negative else "expected a name, a number or an operation")
        value = self.number()
        return Expr.const(-value if negative else value)

    def number(self) -> int:
        if len(self.token) > _MAX_DIGITS:
            raise self.error(f"expected at most {_MAX_DIGITS} digits")
        try:
            value = int(self.token)
        except ValueError:
            raise self.error("expected an integer") from None
        self.advance()
        return value

    def operation(self, name: str, depth: int) -> Expr:
        self.advance()
        self.expect("(")
        left = self.expr(depth + 1)
        self.expect(",")
        right = self.expr(depth + 1)
        self.expect(")")
        return _OPERATIONS[name](left, right)
