# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Expr: the normal form, the text form and the agreement with jax.export dimension expressions."""

from __future__ import annotations

import random

import pytest

from shlo_disc.errors import ProgramError
from shlo_disc.shape_dialect.symbolic.expr import Expr, FloorDiv, Symbol, ceildiv, round_up

a, b, s = (Expr.symbol(name) for name in "abs")


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("0", "0"),
        ("-3", "-3"),
        ("1 + 2*b", "2*b + 1"),
        ("- s + 512", "- s + 512"),
        ("-1*s + 512", "- s + 512"),
        ("b*a*b", "a*b^2"),
        ("a^2", "a^2"),
        ("a^0", "1"),
        ("2^3", "8"),
        ("a + b - a", "b"),
        ("floordiv(b, 2)", "floordiv(b, 2)"),
        ("mod(b, 2)", "mod(b, 2)"),
        ("mod(-1*b, 4)", "mod(- b, 4)"),
        ("max(b, a)", "max(a, b)"),
        ("min(a, b)", "min(a, b)"),
        ("max(a, -2)", "max(- 2, a)"),
        ("max(a, max(s, b))", "max(max(a, b), s)"),
        ("b*floordiv(s, 2)*2 - 7", "2*b*floordiv(s, 2) - 7"),
        ("floordiv(b, a)", "floordiv(b, a)"),
    ],
)
def test_text(text: str, printed: str) -> None:
    e = Expr.parse(text)
    assert str(e) == printed
    assert Expr.parse(printed) == e


@pytest.mark.parametrize(
    ("text", "simplified"),
    [
        ("floordiv(6*b + 3, 3)", "2*b + 1"),
        ("mod(6*b, 3)", "0"),
        ("floordiv(4*b*s, 4)", "b*s"),
        ("floordiv(b + 9, 4)", "floordiv(b + 1, 4) + 2"),
        ("floordiv(2*b + 3, 4)", "floordiv(b + 1, 2)"),
        ("mod(2*b + 3, 4)", "2*mod(b + 1, 2) + 1"),
        ("floordiv(b, 1)", "b"),
        ("floordiv(b, -1)", "- b"),
        ("floordiv(b, -2)", "floordiv(- b, 2)"),
        ("mod(b, -3)", "- mod(- b, 3)"),
        ("mod(b, 1)", "0"),
        ("mod(5*b, 3)", "mod(2*b, 3)"),
        ("floordiv(floordiv(b, 2) + 1, 3)", "floordiv(b + 2, 6)"),
        ("mod(mod(b, 8), 4)", "mod(b, 4)"),
        ("mod(b + mod(a, 4), 4)", "mod(b + a, 4)"),
        ("floordiv(mod(b, 4), 4)", "0"),
        ("mod(mod(b, 4), 8)", "mod(b, 4)"),
        ("floordiv(2*a, 2*b)", "floordiv(a, b)"),
        ("mod(2*a, 2*b)", "2*mod(a, b)"),
        ("floordiv(7, -2)", "-4"),
        ("mod(7, -2)", "-1"),
        ("max(3, 5)", "5"),
        ("max(b, b + 1)", "b + 1"),
        ("min(b, b + 1)", "b"),
        ("max(b, b)", "b"),
        ("min(max(a, b), a)", "a"),
        ("max(1, max(b, 3))", "max(3, b)"),
    ],
)
def test_local_rules(text: str, simplified: str) -> None:
    assert str(Expr.parse(text)) == str(Expr.parse(simplified))
    assert Expr.parse(text) == Expr.parse(simplified)


@pytest.mark.parametrize("text", ["floordiv(b*s, s)", "floordiv(b, b)", "mod(b, b)", "floordiv(b, 0)", "mod(1, 0)"])
def test_a_division_that_can_fail_stays(text: str) -> None:
    e = Expr.parse(text)
    with pytest.raises(ZeroDivisionError):
        e.evaluate({"b": 0, "s": 0})


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("2*", 2),
        ("a b", 2),
        ("a^b", 2),
        ("a^65", 2),
        ("max(a)", 5),
        ("max(a, b, c)", 8),
        ("(a)", 0),
        ("1.5", 1),
        ("_", 0),
        ("a $ b", 2),
        ("", 0),
        ("  ", 2),
        ("mod", 3),
        ("1__0", 0),
        ("max(" * 200 + "a", 404),
        ("9" * 200, 0),
    ],
)
def test_parse_errors_have_a_position(text: str, position: int) -> None:
    with pytest.raises(ProgramError, match=rf"at position {position} \[DISC-P100\]$"):
        Expr.parse(text)


def test_names_are_checked() -> None:
    for name in ("", "1a", "mod", "a b", "_"):
        with pytest.raises(ProgramError):
            Expr.symbol(name)


def test_properties() -> None:
    e = 2 * a * a * b + (s // 4) - 3
    assert e.symbols() == {"a", "b", "s"}
    assert e.constant is None and Expr.const(4).constant == 4 and (a - a).constant == 0
    assert a.is_symbol == "a" and (2 * a).is_symbol is None
    quotient = FloorDiv(s, Expr.const(4))
    assert e.terms == ((1, ((quotient, 1),)), (2, ((Symbol("a"), 2), (Symbol("b"), 1))), (-3, ()))
    assert (a - a).terms == ()
    assert e.evaluate({"a": 2, "b": 3, "s": 9}) == 23
    assert Expr.const(5) == 5 and hash(Expr.const(5)) == hash(5) and a != 5
    assert len({a, Expr.symbol("a"), a + 0}) == 1
    with pytest.raises(TypeError):
        bool(a)
    with pytest.raises(TypeError):
        a + 1.5
    with pytest.raises(KeyError):
        a.evaluate({})


def test_operators_with_int_on_either_side() -> None:
    env = {"a": 7}
    assert (3 - a).evaluate(env) == -4 and (3 * a).evaluate(env) == 21 and (1 + a).evaluate(env) == 8
    assert (50 // a).evaluate(env) == 7 and (50 % a).evaluate(env) == 1
    assert (-a).evaluate(env) == -7 and (a**3).evaluate(env) == 343
    with pytest.raises(ValueError, match="negative power"):
        a**-1


def test_substitute_is_simultaneous() -> None:
    assert (a + 2 * b).substitute({"a": b, "b": a}) == b + 2 * a
    assert (a // 4).substitute({"a": 4 * b + 1}) == b
    assert Expr.maximum(a, b).substitute({"a": 3, "b": 5}) == 5
    assert (a // b).substitute({"b": 2}) == a // 2


def test_rounding_helpers() -> None:
    assert round_up(4 * a, 4) == 4 * a
    assert str(round_up(a, 4)) == "4*floordiv(a + 3, 4)"
    for value in range(-9, 10):
        assert ceildiv(a, 4).evaluate({"a": value}) == -(-value // 4)
        assert ceildiv(b, a).evaluate({"a": -3, "b": value}) == -(-value // -3)
        assert round_up(a, 4).evaluate({"a": value}) == -(-value // 4) * 4
    with pytest.raises(ValueError, match="multiple of 0"):
        round_up(a, 0)


def test_order_does_not_depend_on_construction() -> None:
    terms = [a, b, s, a * b, b * s, a // 2, s % 3, Expr.maximum(a, b), Expr.const(7)]
    rng = random.Random(3)
    texts = set()
    for _ in range(50):
        rng.shuffle(terms)
        total = Expr.const(0)
        for term in terms:
            total = total + term
        texts.add(str(total))
    assert len(texts) == 1


def _random_text(rng: random.Random, depth: int) -> str:
    if depth == 0:
        return rng.choice(["a", "b", "s", str(rng.randint(0, 6))])
    kind = rng.choice(["floordiv", "mod", "max", "min", "+", "-", "*"])
    left = _random_text(rng, depth - 1)
    if kind in ("+", "-"):
        return f"{left} {kind} {_random_text(rng, depth - 1)}"
    if kind == "*":
        return f"{rng.choice(['a', 'b', '2', '-3', 'a^2'])}*{rng.choice(['s', 'b', 'max(a, s)', 'floordiv(s, 2)'])}"
    right = _random_text(rng, depth - 1) if kind in ("max", "min") or rng.random() < 0.2 else str(rng.randint(1, 5))
    return f"{kind}({left}, {right})"


def _evaluate_or_none(evaluate: object, env: dict[str, int]) -> int | None:
    try:
        return int(evaluate(env))  # type: ignore[operator]
    except ZeroDivisionError:
        return None


def _jax_value(dim: object, env: dict[str, int]) -> int:
    return dim if isinstance(dim, int) else dim._evaluate(env)  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_agrees_with_jax_export() -> None:
    """Same values, each reads the other's text, and the text of polynomials is the same."""
    export = pytest.importorskip("jax.export")
    scope = export.SymbolicScope()
    rng = random.Random(11)
    points = [{name: rng.randint(1, 40) for name in "abs"} for _ in range(12)]
    for _ in range(1500):
        text = _random_text(rng, rng.choice([1, 2, 3]))
        (dim,) = export.symbolic_shape(text, scope=scope)
        e = Expr.parse(text)
        assert Expr.parse(str(dim)) == e or "max" in text or "min" in text, (text, str(dim), str(e))
        (again,) = export.symbolic_shape(str(e), scope=scope)
        assert str(Expr.parse(str(e))) == str(e)
        from_jax = Expr.parse(str(dim))
        for env in points:
            # Each side may be defined where the other is not; NumPy scalars inside JAX may make x // 0 a 0.
            expected = _evaluate_or_none(e.evaluate, env)
            if expected is None or _evaluate_or_none(from_jax.evaluate, env) is None:
                continue
            for form in (dim, again):
                value = _evaluate_or_none(lambda env, form=form: _jax_value(form, env), env)
                assert value in (expected, None), (text, env)
            assert from_jax.evaluate(env) == expected, (text, env)


def test_polynomials_print_as_in_jax() -> None:
    export = pytest.importorskip("jax.export")
    scope = export.SymbolicScope()
    rng = random.Random(12)
    for _ in range(800):
        terms = [
            "*".join(
                rng.choice(["a", "b", "s", "a^2", "floordiv(s, 3)", "mod(b, 7)", str(rng.randint(2, 9))]) for _ in r
            )
            for r in (range(rng.randint(1, 4)) for _ in range(rng.randint(1, 5)))
        ]
        text = " + ".join(terms) + rng.choice(["", " - 3", " - 2*s", " - 8*a*b"])
        (dim,) = export.symbolic_shape(text, scope=scope)
        assert str(Expr.parse(text)) == str(dim)


def test_signs_agree_with_python() -> None:
    for x in range(-9, 10):
        for y in range(-5, 6):
            env = {"a": x, "b": y}
            assert Expr.maximum(a, b).evaluate(env) == max(x, y)
            assert Expr.minimum(a, b).evaluate(env) == min(x, y)
            if y:
                for dividend, value in ((a, x), (2 * a + 3, 2 * x + 3), (-a - 5, -x - 5)):
                    assert (dividend // b).evaluate(env) == (dividend // y).evaluate(env) == value // y
                    assert (dividend % b).evaluate(env) == (dividend % y).evaluate(env) == value % y
