# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Index maps, each proved for all sizes beside the semantics of its op; strides and paddings are numbers or data."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import INDEX_MAPS, index_map_of
from shlo_disc.shape_dialect.ops.index_maps import IndexMap
from tests.proofs import prover
from tests.proofs.index_maps import compare_map, wrong_maps
from tests.proofs.template import Template, prepared


def _program(name: str, operands: str, result: str, attributes: str = "", shape: str = "") -> Template:
    """One op on arguments, and on `%s`, the shape; `operands` are types between semicolons, S for the shape."""
    types = [t.strip() for t in operands.split(";") if t.strip()]
    letters = iter("abcdefgh")
    names = ["%s" if t == "S" else f"%{next(letters)}" for t in types]
    rank = len(shape.split())
    given = [f"tensor<{rank}xi64>" if t == "S" else t for t in types]
    lines = [f"%s = S({shape})"] if shape else []
    lines += [f'%0 = "stablehlo.{name}"({", ".join(names)}) {{{attributes}}} : ({", ".join(given)}) -> {result}']
    lines += [f"return %0 : {result}"]
    return Template(name, tuple(t for t in types if t != "S"), "\n".join(lines))


def _ints(name: str, *numbers: int) -> str:
    return f"{name} = array<i64" + (": " + ", ".join(map(str, numbers)) if numbers else "") + ">"


def _plain() -> Iterator[Template]:
    for dims, order in (("b k", (1, 0)), ("b k n", (2, 0, 1)), ("b k n 4", (3, 1, 0, 2)), ("b b 1", (1, 2, 0))):
        result = " ".join(dims.split()[i] for i in order)
        yield _program("transpose", f"T({dims})", f"T({result})", _ints("permutation", *order))
    for dims, axes in (("b k n", (0, 2)), ("b", (0,)), ("b 4", ())):
        yield _program("reverse", f"T({dims})", f"T({dims})", _ints("dimensions", *axes))
    for source, result in (("2 6", "3 4"), ("2 3 4", "6 4"), ("1 6", "2 3 1")):
        yield _program("reshape", f"T({source})", f"T({result})")
    for source, result in (
        ("b k", "b*k"), ("b*k", "b k"), ("b 6", "b 2 3"), ("b k", "k b"), ("b 1 k", "1 b k"), ("n b k", "n k 1 b"), ("b k 4", "b*k 4"),
        ("2 b k n", "b 2 n k"),
    ):  # fmt: skip
        yield _program("dynamic_reshape", f"T({source}); S", f"T({result})", shape=result)
    for source, result, targets in (
        ("s t", "m n", (0, 1)), ("s", "m n", (0,)), ("m 1", "m n", (0, 1)), ("", "m n", ()), ("s t", "m n q", (2, 0)), ("1 t", "3 t", (0, 1)),
    ):  # fmt: skip
        yield _program(
            "dynamic_broadcast_in_dim",
            f"T({source}); S",
            f"T({result})",
            _ints("broadcast_dimensions", *targets),
            result,
        )
    for source, result, targets in (("3", "2 3", (1,)), ("1 3", "2 3", (0, 1)), ("3 2", "2 4 3", (2, 0))):
        yield _program("broadcast_in_dim", f"T({source})", f"T({result})", _ints("broadcast_dimensions", *targets))
    for operands, result, axis in (
        ("T(b k); T(c k)", "T(b+c k)", 0), ("T(b k); T(b n); T(b 2)", "T(b k+n+2)", 1), ("T(b)", "T(b)", 0), ("T(b 0); T(b k)", "T(b k)", 1),
    ):  # fmt: skip
        yield _program("concatenate", operands, result, f"dimension = {axis} : i64")


def _slices() -> Iterator[Template]:
    for shape, starts, limits, strides, result in (
        ("8 6", (1, 2), (7, 6), (2, 1), "3 4"), ("9 b", (0, 0), (9, 4), (4, 3), "3 2"), ("b", (2,), (9,), (3,), "3"),
    ):  # fmt: skip
        attributes = ", ".join(
            _ints(*pair) for pair in (("start_indices", *starts), ("limit_indices", *limits), ("strides", *strides))
        )
        yield _program("slice", f"T({shape})", f"T({result})", attributes)
    vector = "tensor<2xi64>"
    yield _program("real_dynamic_slice", f"T(b k); {vector}; {vector}; {vector}", "T(m n)")
    yield _program("real_dynamic_slice", f"T(b k); S; {vector}; {vector}", "T(m n)", shape="p q")
    yield Template("real_dynamic_slice", ("T(b k)",), """
        %s = S(p 1)
        %l = S(b q)
        %t = S(1 3)
        %0 = "stablehlo.real_dynamic_slice"(%a, %s, %l, %t) : (T(b k), tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> T(b-1*p n)
        return %0 : T(b-1*p n)""")  # fmt: skip
    scalar = "tensor<i32>"
    for whole, part in (("b k", (3, 2)), ("b 4", (1, 4)), ("8 b", (8, 1))):
        result = " ".join(map(str, part))
        yield _program("dynamic_slice", f"T({whole}); {scalar}; {scalar}", f"T({result})", _ints("slice_sizes", *part))
    for whole, update in (("b k", "m n"), ("b k", "b n"), ("b k", "b k"), ("b k", "3 k")):
        yield _program("dynamic_update_slice", f"T({whole}); T({update}); {scalar}; {scalar}", f"T({whole})")


def _pads() -> Iterator[Template]:
    for source, low, high, interior, result in (
        ("b k", (1, 2), (0, 3), (0, 0), "b+1 k+5"), ("b", (1,), (1,), (2,), "m"), ("b 5", (-1, 0), (-2, 1), (0, 1), "b-3 10"),
        ("5 b", (2, 0), (-3, 0), (1, 0), "8 b"), ("4", (-1,), (-1,), (1,), "5"),
    ):  # fmt: skip
        names = zip(("edge_padding_low", "edge_padding_high", "interior_padding"), (low, high, interior), strict=True)
        attributes = ", ".join(_ints(name, *numbers) for name, numbers in names)
        yield _program("pad", f"T({source}); T()", f"T({result})", attributes)
    vector = "tensor<2xi64>"
    yield _program("dynamic_pad", f"T(b k); T(); S; {vector}; S", "T(m n)", shape="0 0")
    yield Template("dynamic_pad", ("T(b k)", "T()", vector, vector), f"""
        %s = S(0 2)
        %0 = "stablehlo.dynamic_pad"(%a, %b, %c, %d, %s) : (T(b k), T(), {vector}, {vector}, {vector}) -> T(m n)
        return %0 : T(m n)""")  # fmt: skip
    yield Template("dynamic_pad", ("T(b)", "T()", "tensor<1xi64>", "tensor<1xi64>", "tensor<1xi64>"), """
        %0 = "stablehlo.dynamic_pad"(%a, %b, %c, %d, %e) : (T(b), T(), tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> T(m)
        return %0 : T(m)""")  # fmt: skip


def _gathers() -> Iterator[Template]:
    for whole, indices, sizes, result, numbers in (
        ("b k", "n 1", (1, 4), "n 4", "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"),
        ("b k n", "2 p q", (1, 3, 2), "p 3 q 2", "offset_dims = [1, 3], collapsed_slice_dims = [0], start_index_map = [2, 0], index_vector_dim = 0"),
        ("b k", "p", (1, 1), "p", "offset_dims = [], collapsed_slice_dims = [0, 1], start_index_map = [1], index_vector_dim = 1"),
        ("b k n", "b p 1", (1, 1, 2), "b p 2", "offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2"),
    ):  # fmt: skip
        attributes = f"dimension_numbers = #stablehlo.gather<{numbers}>"
        yield _program(
            "gather", f"T({whole}); T({indices}, i32)", f"T({result})", f"{attributes}, {_ints('slice_sizes', *sizes)}"
        )
        shape = " ".join(map(str, sizes))
        yield _program("dynamic_gather", f"T({whole}); T({indices}, i32); S", f"T({result})", attributes, shape)
    numbers = "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
    yield _program(
        "dynamic_gather", "T(b k); T(n 1, i32); S", "T(n k)", f"dimension_numbers = #stablehlo.gather<{numbers}>", "1 k"
    )


TEMPLATES = [*_plain(), *_slices(), *_pads(), *_gathers()]


def _map_of(template: Template) -> tuple[ir.Module, ir.OpView, IndexMap]:
    module = ir.Module.parse(template.text)
    operations = module.body.operations[0].regions[0].blocks[0].operations
    op = operations[len(operations) - 2]
    reads = index_map_of(op)
    assert reads is not None
    return module, op, reads


def test_every_map_has_a_template() -> None:
    assert {f"stablehlo.{t.rule}" for t in TEMPLATES} == set(INDEX_MAPS)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda t: t.rule)
def test_map(template: Template) -> None:
    with prepared():
        module, _, reads = _map_of(template)
        outcome = compare_map(module, reads)
        assert outcome.kind == "proved", f"{outcome}\n{module}\n{reads}"


@pytest.mark.parametrize("name", INDEX_MAPS)
def test_wrong_maps_are_refuted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prover, "SECONDS", 1)
    refuted = 0
    for template in TEMPLATES:
        if f"stablehlo.{template.rule}" != name:
            continue
        with prepared():
            module, op, reads = _map_of(template)
            rank = ir.RankedTensorType(op.results[0].type).rank
            for _, wrong in wrong_maps(reads, max(rank, 1)):
                refuted += compare_map(module, wrong).kind == "refuted"
        if refuted >= 2:
            return
    raise AssertionError(f"{refuted} wrong maps of {name} are refuted")
