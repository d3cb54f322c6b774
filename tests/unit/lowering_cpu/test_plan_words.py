# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The words of a plan: machine code against exact integers, at small sizes and at the ends of 64 bits."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pytest

from shlo_disc.lowering.codegen import CpuTarget, compile_to_object, lower_to_llvm, to_llvm_ir
from shlo_disc.lowering.host_llvm.builder import LlvmDialect
from shlo_disc.lowering.host_llvm.plan import Words, write_plan
from shlo_disc.runtime._native import ObjectCode
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.dialect.host import Check
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts_relation import Relation

SYMBOLS = ["a", "b", "c"]
SMALLEST, LARGEST = -(2**63), 2**63 - 1
CONSTANTS = [-7, -2, -1, 1, 2, 3, 8, 64]
ENDS = [SMALLEST, SMALLEST + 1, -(2**62), -(2**32), -1, 0, 1, 2**31, 2**62, LARGEST]


class Plan:
    """`disc_plan` of some sizes, and of checks of symbols, in this process."""

    def __init__(self, sizes: Sequence[Expr], least: Mapping[str, int] = MappingProxyType({})):
        self.sizes = sizes
        checks = [Check("min", Relation.ge(Expr.symbol(name), number), "") for name, number in least.items()]
        with make_context(), ir.Location.unknown():
            module = ir.Module.create()
            module.body.append(write_plan(LlvmDialect(), SYMBOLS, checks, Words(list(sizes))))
            self.text = str(module)
            llvm_ir = to_llvm_ir(lower_to_llvm(module))
        self._code = ObjectCode(compile_to_object(llvm_ir, CpuTarget.host(), 1))
        words = ctypes.POINTER(ctypes.c_int64)
        self._function = ctypes.CFUNCTYPE(ctypes.c_int64, words, words)(self._code.function("disc_plan"))

    def __call__(self, values: Sequence[int]) -> list[int] | None:
        """The sizes; None where the plan says that one does not fit, or is undefined."""
        given = (ctypes.c_int64 * len(values))(*values)
        words = (ctypes.c_int64 * len(self.sizes))()
        return None if self._function(given, words) else list(words)


def exact(sizes: Sequence[Expr], values: Sequence[int]) -> list[int] | None:
    try:
        return [size.evaluate(dict(zip(SYMBOLS, values, strict=True))) for size in sizes]
    except ZeroDivisionError:
        return None


def size_of(rng: random.Random, depth: int) -> Expr:
    if depth == 0 or rng.random() < 0.15:
        return Expr.symbol(rng.choice(SYMBOLS)) if rng.random() < 0.7 else Expr.const(rng.choice(CONSTANTS))
    a, b = size_of(rng, depth - 1), size_of(rng, depth - 1)
    kind = rng.randrange(7)
    if kind < 4:
        return (a + b, a - b, a * b, a - rng.choice(CONSTANTS) * b)[kind]
    if kind == 4:
        return rng.choice([Expr.maximum, Expr.minimum])(a, b)
    return a // b if kind == 5 else a % b


def sizes_of(seed: int) -> list[Expr]:
    rng = random.Random(seed)
    found: list[Expr] = []
    while len(found) < 8:
        try:
            found.append(size_of(rng, 3))
        except ZeroDivisionError:
            continue
    return found


@pytest.mark.parametrize("seed", range(24))
def test_words_are_exact(seed: int) -> None:
    rng = random.Random(seed)
    sizes = sizes_of(seed)
    for size in sizes:
        plan = Plan([size])
        for _ in range(40):
            values = [rng.randint(-20, 20) for _ in SYMBOLS]
            assert plan(values) == exact([size], values), (str(size), values)
        for _ in range(40):
            values = [rng.choice(ENDS) for _ in SYMBOLS]
            words = plan(values)
            assert words is None or words == exact([size], values), (str(size), values)


@pytest.mark.parametrize("least", [0, 1, -2])
@pytest.mark.parametrize("seed", range(8))
def test_words_are_exact_where_symbols_have_minima(seed: int, least: int) -> None:
    """Several sizes of one plan share values, and checks leave out what negative numbers need."""
    rng = random.Random(seed)
    sizes = [size * factor for size in sizes_of(100 + seed) for factor in (3, 1, 2, -2)]
    plan = Plan(sizes, {"a": least, "b": least, "c": -5})
    for choose in (lambda: rng.randint(-7, 20), lambda: rng.choice(ENDS)):
        for _ in range(100):
            values = [choose() for _ in SYMBOLS]
            words = plan(values)
            if min(values[:2]) < least or values[2] < -5:
                assert words is None
            elif max(map(abs, values)) <= 20:
                assert words == exact(sizes, values), ([str(size) for size in sizes], values)
            else:
                assert words is None or words == exact(sizes, values), ([str(size) for size in sizes], values)


def test_multiples_are_checked_up_to_the_largest() -> None:
    product = Expr.symbol("a") * Expr.symbol("b")
    for factors in ((6, 4, 2), (2, 4, 6), (-6, -2, 3)):
        plan = Plan([product * factor for factor in factors])
        assert plan.text.count("smul.with.overflow") == 1 + (3 if factors[0] == 2 else 1 + (factors[0] < 0))
        for n in (1, LARGEST // 6, LARGEST // 6 + 1, LARGEST // 4, LARGEST // 3, LARGEST // 2, LARGEST // 2 + 1):
            values = [number * n for number in factors]
            fits = all(SMALLEST <= value <= LARGEST for value in values)
            assert plan([n, 1, 0]) == (values if fits else None)


@pytest.mark.parametrize("text", ["floordiv(a, b)", "mod(a, b)", "mod(7, b)", "mod(a, -3)", "floordiv(-7, b)"])
def test_all_signs(text: str) -> None:
    plan = Plan([Expr.parse(text)])
    for a in range(-9, 10):
        for b in range(-4, 5):
            assert plan([a, b, 0]) == exact(plan.sizes, [a, b, 0])


def test_what_does_not_fit_is_said() -> None:
    quotient = Plan([Expr.symbol("a") // Expr.symbol("b"), Expr.symbol("a") // -1])
    assert quotient([SMALLEST, 1, 0]) is None and quotient([SMALLEST, -1, 0]) is None
    assert quotient([LARGEST, -1, 0]) == [-LARGEST, -LARGEST]
    difference = Plan([Expr.symbol("a") - Expr.symbol("b")])
    assert difference([SMALLEST, 1, 0]) is None and difference([-1, LARGEST, 0]) == [SMALLEST]


def test_a_quotient_and_its_remainder_share_a_division() -> None:
    a, b = Expr.symbol("a"), Expr.symbol("b")
    assert Plan([a // b, a % b]).text.count("llvm.srem") == 1
