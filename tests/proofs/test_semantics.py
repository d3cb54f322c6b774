# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The semantics that proofs rely on, beside StableHLO's reference interpreter, on random programs with numbers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import z3

from shlo_disc.shape_dialect.mlir import ir
from tests.fuzz.oracles import Interpreter
from tests.proofs.elements import literal
from tests.proofs.moves import MOVES
from tests.proofs.rules import RULES
from tests.proofs.scope import Index, Scope, Term, number
from tests.proofs.semantics import Tensor, element_of, evaluated
from tests.proofs.template import prepared
from tests.unit.shape_dialect.test_index_maps import MAKERS, expected_of

PROGRAMS = 8
"""Random programs of each op."""


@pytest.fixture(scope="module", name="interpreter")
def _interpreter() -> Iterator[Interpreter]:
    found = Interpreter()
    yield found
    found.close()


def _held(value: np.ndarray, element: str, scope: Scope) -> Tensor:
    """An argument whose elements are numbers, to be read at indices that are numbers."""

    def at(index: Index) -> Term:
        place = tuple(z3.simplify(i).as_long() for i in index)
        inside = all(0 <= i < size for i, size in zip(place, value.shape, strict=True))
        return literal(value[place].item() if inside else 0, element, scope)

    return Tensor(tuple(map(number, value.shape)), element, at)


def _results(text: str, arguments: list[np.ndarray], like: np.ndarray) -> np.ndarray:
    scope = Scope({})
    module = ir.Module.parse(text)
    block = module.body.operations[0].regions[0].blocks[0]
    values: dict[Any, Tensor] = {
        a: _held(v, element_of(a.type), scope) for a, v in zip(block.arguments, arguments, strict=True)
    }
    (result,) = evaluated(block, values, scope, RULES)
    found = np.empty_like(like)
    for place in np.ndindex(*like.shape):
        element = z3.simplify(result.at(tuple(map(number, place))))
        found[place] = float(element.as_fraction())
    return found


@pytest.mark.parametrize("name", MAKERS)
def test_moves(name: str, interpreter: Interpreter) -> None:
    assert name.removeprefix("stablehlo.") in MOVES
    compared = 0
    for seed in range(PROGRAMS):
        program = MAKERS[name](random.Random(seed))
        expected = expected_of(name, program, interpreter, np.empty(program.result, np.float32))
        if expected is None:
            continue
        with prepared():
            np.testing.assert_array_equal(_results(program.text, program.arguments, expected), expected, program.text)
        compared += 1
    assert compared
