# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Relations between symbolic sizes, in the text form of `jax.export` constraints."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from shlo_disc.errors import ProgramError
from shlo_disc.shape_dialect.symbolic.expr import Expr, ExprLike, FloorDiv, as_expr

_OPERATOR = re.compile(r"==|>=|<=|!=|>|<")
_HOLDS: dict[str, Callable[[int], bool]] = {
    "==": lambda d: d == 0,
    "!=": lambda d: d != 0,
    ">=": lambda d: d >= 0,
    "<=": lambda d: d <= 0,
    ">": lambda d: d > 0,
    "<": lambda d: d < 0,
}
_NEGATED = {"==": "!=", "!=": "==", ">=": "<", "<": ">=", "<=": ">", ">": "<="}
_FLIPPED = {"==": "==", "!=": "!=", ">=": "<=", "<=": ">=", ">": "<", "<": ">"}


@dataclass(frozen=True)
class Relation:
    """`lhs operator rhs`, where operator is one of ==, !=, >=, <=, > and <."""

    operator: str
    lhs: Expr
    rhs: Expr

    @staticmethod
    def eq(a: ExprLike, b: ExprLike) -> Relation:
        """`a == b`."""
        return Relation("==", as_expr(a), as_expr(b))

    @staticmethod
    def ne(a: ExprLike, b: ExprLike) -> Relation:
        """`a != b`."""
        return Relation("!=", as_expr(a), as_expr(b))

    @staticmethod
    def ge(a: ExprLike, b: ExprLike) -> Relation:
        """`a >= b`."""
        return Relation(">=", as_expr(a), as_expr(b))

    @staticmethod
    def le(a: ExprLike, b: ExprLike) -> Relation:
        """`a <= b`."""
        return Relation("<=", as_expr(a), as_expr(b))

    @staticmethod
    def gt(a: ExprLike, b: ExprLike) -> Relation:
        """`a > b`."""
        return Relation(">", as_expr(a), as_expr(b))

    @staticmethod
    def lt(a: ExprLike, b: ExprLike) -> Relation:
        """`a < b`."""
        return Relation("<", as_expr(a), as_expr(b))

    @staticmethod
    def parse(text: str) -> Relation:
        """Reads texts such as `s<=512` or `mod(b, 4) == 0`. Raises ProgramError with the position."""
        match = _OPERATOR.search(text)
        if match is None:
            raise ProgramError(f"cannot read the constraint '{text}': it needs one of == != >= <= > <")
        try:
            lhs = Expr.parse(text[: match.start()])
            rhs = Expr.parse(text[match.end() :])
        except ProgramError as error:
            raise ProgramError(f"in the constraint '{text}', operator at position {match.start()}: {error}") from None
        return Relation(match.group(), lhs, rhs)

    def symbols(self) -> frozenset[str]:
        """Names of the symbols on both sides."""
        return self.lhs.symbols() | self.rhs.symbols()

    def evaluate(self, env: Mapping[str, int]) -> bool:
        """Tells whether the relation holds. Raises ZeroDivisionError on a division by zero."""
        return _HOLDS[self.operator](self.lhs.evaluate(env) - self.rhs.evaluate(env))

    def substitute(self, env: Mapping[str, ExprLike]) -> Relation:
        """The relation with symbols replaced on both sides."""
        return Relation(self.operator, self.lhs.substitute(env), self.rhs.substitute(env))

    def negate(self) -> Relation:
        """The relation that holds exactly where this one does not."""
        return Relation(_NEGATED[self.operator], self.lhs, self.rhs)

    def normal(self) -> tuple[str, Expr]:
        """The relation as (`==`, `!=` or `>=`, e), meaning e == 0, e != 0 or e >= 0."""
        difference = self.lhs - self.rhs
        if self.operator in ("==", "!=", ">="):
            return self.operator, difference
        if self.operator == "<=":
            return ">=", -difference
        return (">=", difference - 1) if self.operator == ">" else (">=", -difference - 1)

    def balanced(self) -> Relation:
        """The relation as people write it: `s <= 512` for `- s + 512 >= 0`.

        That `s` is a multiple of 8 is `mod(s, 8) == 0`, also where JAX has `8*floordiv(s, 8) == s`. Others stay as they
        are.
        """
        if self.operator == "==" and (remainder := _remainder(self.lhs - self.rhs)) is not None:
            return Relation.eq(remainder, 0)
        if all(c >= 0 for side in (self.lhs, self.rhs) for c, _ in side.terms):
            return self
        terms = (self.lhs - self.rhs).terms
        left = Expr.from_terms((c, m) for c, m in terms if c > 0)
        right = Expr.from_terms((-c, m) for c, m in terms if c < 0)
        if left.constant is None:
            return Relation(self.operator, left, right)
        return Relation(_FLIPPED[self.operator], right, left)

    def __str__(self) -> str:
        return f"{self.lhs} {self.operator} {self.rhs}"


def _remainder(difference: Expr) -> Expr | None:
    """`mod(e, k)` for a multiple of `k*floordiv(e, k) - e`, the form that JAX gives `mod(e, k) == 0`; else None."""
    for coefficient, monomial in difference.terms:
        for atom, _ in monomial:
            if not isinstance(atom, FloorDiv) or not (divisor := atom.divisor.constant) or coefficient % divisor:
                continue
            rounded = Expr.of_atom(atom) * divisor
            if difference == (rounded - atom.dividend) * (coefficient // divisor):
                return atom.dividend % divisor
    return None
