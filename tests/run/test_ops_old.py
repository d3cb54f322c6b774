# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops of older StableHLO versions, which their text form still has."""

from __future__ import annotations

import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import ShapeError, UnsupportedError
from tests.run.op_check import assert_same, random_array, small_integers, tensor_text


def program(op: str, arguments: list[int], result: int, dtype: str = "float32") -> str:
    """`op` on %a, %b of these ranks, all sizes unknown."""
    names = [f"%{name}: {tensor_text('?' * rank, dtype)}" for name, rank in zip("ab", arguments, strict=False)]
    types = ", ".join(tensor_text("?" * rank, dtype) for rank in arguments)
    out = tensor_text("?" * result, dtype)
    return f"func.func @main({', '.join(names)}) -> {out} {{\n%r = {op} : ({types}) -> {out}\n return %r : {out} }}"


EINSUMS = [
    "ab,bc->ac",
    "ab,bc->ca",
    "ab,ab->ab",
    "ab,ab->b",
    "abc,acd->abd",
    "ab,cd->dbca",
    "ab,bc->",
    "abc,b->ca",
    ",ab->ba",
]


@pytest.mark.parametrize("config", EINSUMS)
def test_einsum(config: str) -> None:
    *terms, result = config.replace("->", ",").split(",")
    op = f'"stablehlo.einsum"(%a, %b) {{einsum_config = "{config}"}}'
    executable = shlo_disc.compile(program(op, [len(t) for t in terms], len(result)))
    for sizes in ({"a": 1, "b": 2, "c": 3, "d": 1}, {"a": 17, "b": 3, "c": 16, "d": 5}):
        arrays = [small_integers(tuple(sizes[c] for c in term), "float32", i) for i, term in enumerate(terms)]
        assert_same(executable(*arrays), np.einsum(config, *arrays))


@pytest.mark.parametrize("config", ("ab->ba", "ab->a", "ab->", "abc->ca"))
def test_unary_einsum(config: str) -> None:
    term, result = config.split("->")
    op = f'"stablehlo.unary_einsum"(%a) {{einsum_config = "{config}"}}'
    executable = shlo_disc.compile(program(op, [len(term)], len(result)))
    for shape in ((1, 2, 3), (17, 16, 5)):
        x = small_integers(shape[: len(term)], "float32")
        assert_same(executable(x), np.asarray(np.einsum(config, x)))


def test_sizes_of_an_einsum_agree() -> None:
    op = '"stablehlo.einsum"(%a, %b) {einsum_config = "ab,bc->ac"}'
    executable = shlo_disc.compile(program(op, [2, 2], 2))
    with pytest.raises(ShapeError, match="inconsistency"):
        executable(random_array((2, 3), "float32"), random_array((4, 2), "float32"))


@pytest.mark.parametrize("config", ("aa->a", "ab,bc->ad", "...a->a"))
def test_refused_einsums(config: str) -> None:
    operands, ranks = ("%a, %b", [2, 2]) if "," in config else ("%a", [2])
    name = "einsum" if "," in config else "unary_einsum"
    op = f'"stablehlo.{name}"({operands}) {{einsum_config = "{config}"}}'
    with pytest.raises(UnsupportedError, match="einsum"):
        shlo_disc.compile(program(op, ranks, config.split("->")[1].__len__()))


def test_dot() -> None:
    for ranks, result in (([2, 2], 2), ([2, 1], 1), ([1, 1], 0)):
        executable = shlo_disc.compile(program("stablehlo.dot %a, %b", ranks, result))
        x, y = small_integers((3, 17)[-ranks[0] :], "float32"), small_integers((17, 5)[: ranks[1]], "float32", 1)
        assert_same(executable(x, y), np.asarray(x @ y))


def test_broadcast() -> None:
    op = '"stablehlo.broadcast"(%a) {broadcast_sizes = array<i64: 2, 3>}'
    text = program(op, [1], 3).replace("tensor<?x?x?xf32>", "tensor<2x3x?xf32>")
    x = random_array((17,), "float32")
    assert_same(shlo_disc.compile(text)(x), np.broadcast_to(x, (2, 3, 17)).copy())


def test_torch_index_select() -> None:
    table, index = (
        random_array((5, 17, 3), "float32"),
        np.array([[4, 0, 2], [1, 1, 16], [0, 3, 3], [2, 2, 2], [9, 0, 1]], np.int32),
    )
    for axis, batch in ((0, 0), (1, 0), (2, 0), (1, 1), (2, 1)):
        count = 3 + 2 - 1 - batch
        result = tensor_text("?" * count, "float32")
        text = f"""func.func @main(%a: tensor<?x?x?xf32>, %i: tensor<?x?xi32>) -> {result} {{
          %r = "stablehlo.torch_index_select"(%a, %i) <{{dim = {axis} : i64, batch_dims = {batch} : i64}}>
            : (tensor<?x?x?xf32>, tensor<?x?xi32>) -> {result}
          return %r : {result} }}"""
        inside = np.minimum(index, table.shape[axis] - 1)
        if batch:
            want = np.stack([np.take(t, i, axis - 1) for t, i in zip(table, inside, strict=True)])
        else:
            want = np.take(table, inside, axis)
        assert_same(shlo_disc.compile(text)(table, index), want)
