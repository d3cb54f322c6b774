# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The semantics of the ops of StableHLO that combine elements: reductions, products, windows, sorts and `map`.

A product is exact, and rounded once, to the type of the result. The combining op of a reduction is taken to be
commutative and associative, as StableHLO asks where the order of evaluation is to make no difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import z3

from shlo_disc.shape_dialect.mlir import ir
from tests.proofs.elements import binary, is_float, literal, opaque, rounded
from tests.proofs.scope import Index, Term, constant_of, number, quotient
from tests.proofs.semantics import Call, Rule, Tensor, compare, constant, convert, evaluated, numbers_in


def _combining(block: ir.Block, element: str) -> tuple[str, Callable[[Term, Term], Term]]:
    """The name of the one op that a body consists of, and that op on two elements."""
    op, last = block.operations
    if set(op.operands) != set(block.arguments) or list(last.operands) != [op.results[0]]:
        raise ValueError(f"a body of more than an op: {block}")
    name = op.operation.name.removeprefix("stablehlo.")

    def combine(a: Term, b: Term) -> Term:
        found = binary(name, a, b, element)
        return opaque(name, a.sort(), a, b) if found is None else found

    return name, combine


def reduce(call: Call) -> Tensor:
    """`reduce` of one tensor."""
    axes, source = call.numbers("dimensions"), call.operands[0]
    kept = [axis for axis in range(len(source.dims)) if axis not in axes]
    call.same("sizes", call.dims, [source.dims[axis] for axis in kept])
    name, combine = _combining(call.op.regions[0].blocks[0], call.element)

    def at(index: Index) -> Term:
        def body(inner: Index) -> list[Term]:
            places = dict(zip([*axes, *kept], [*inner, *index], strict=True))
            return [call.read(0, tuple(places[axis] for axis in range(len(places))))]

        return call.scope.fold(name, [source.dims[axis] for axis in axes], body, [call.read(1, ())], combine)

    return call.tensor(at)


def sum_of(call: Call, bounds: Sequence[Term], body: Callable[[Index], Term], element: str) -> Term:
    """The sum of exact values, which are rounded to an element type at the end."""
    zero = literal(0, element, call.scope)
    total = call.scope.fold("add", bounds, lambda inner: [body(inner)], [zero], lambda a, b: a + b)
    return rounded(total, element, call.scope)


def _value(term: Term, element: str, call: Call) -> Term:
    """An operand's element as a number of the result's sort."""
    if call.scope.has_bits or is_float(element) == is_float(call.element):
        return term
    return z3.ToReal(term) if is_float(call.element) else opaque("to an integer", z3.IntSort(), term)


def dot_general(call: Call) -> Tensor:
    """`dot_general`: [batch, free of the left, free of the right]."""
    names = ("batching_dimensions", "contracting_dimensions")
    text = str(call.op.attributes["dot_dimension_numbers"])
    sides = [[numbers_in(text, f"{side}_{name}") for name in names] for side in ("lhs", "rhs")]
    return _product(call, *sides[0], *sides[1])


def _product(
    call: Call, lhs_batch: Sequence[int], lhs_inner: Sequence[int], rhs_batch: Sequence[int], rhs_inner: Sequence[int]
) -> Tensor:
    left, right = call.operands[0].dims, call.operands[1].dims
    free = [
        [axis for axis in range(len(dims)) if axis not in used]
        for dims, used in ((left, {*lhs_batch, *lhs_inner}), (right, {*rhs_batch, *rhs_inner}))
    ]
    call.same("batches", [left[a] for a in lhs_batch], [right[a] for a in rhs_batch])
    call.same("contracted sizes", [left[a] for a in lhs_inner], [right[a] for a in rhs_inner])
    sizes = [*(left[a] for a in (*lhs_batch, *free[0])), *(right[a] for a in free[1])]
    call.same("sizes", call.dims, sizes)
    first = len(lhs_batch) + len(free[0])

    def at(index: Index) -> Term:
        batch, rows, columns = index[: len(lhs_batch)], index[len(lhs_batch) : first], index[first:]

        def body(inner: Index) -> Term:
            sides = []
            for number_, axes, values in (
                (0, (*lhs_batch, *free[0], *lhs_inner), (*batch, *rows, *inner)),
                (1, (*rhs_batch, *free[1], *rhs_inner), (*batch, *columns, *inner)),
            ):
                places = dict(zip(axes, values, strict=True))
                element = call.read(number_, tuple(places[a] for a in range(len(places))))
                sides.append(_value(element, call.operands[number_].element, call))
            return sides[0] * sides[1]

        return sum_of(call, [left[a] for a in lhs_inner], body, call.element)

    return call.tensor(at)


def dot(call: Call) -> Tensor:
    """`dot`: the last axis of the left by the first of the right."""
    return _product(call, [], [len(call.operands[0].dims) - 1], [], [0])


def einsum(call: Call) -> Tensor:
    """`einsum` and `unary_einsum` without repeated letters: the sum over letters that the result has not."""
    config = ir.StringAttr(call.op.attributes["einsum_config"]).value
    *terms, result = config.replace("->", ",").split(",")
    sizes: dict[str, Term] = {}
    for term, value in zip(terms, call.operands, strict=True):
        for letter, size in zip(term, value.dims, strict=True):
            call.same("sizes of a letter", [sizes.setdefault(letter, size)], [size])
    call.same("sizes", call.dims, [sizes[letter] for letter in result])
    summed = [letter for letter in sizes if letter not in result]

    def at(index: Index) -> Term:
        def body(inner: Index) -> Term:
            places = dict(zip([*result, *summed], [*index, *inner], strict=True))
            factors = [call.read(i, tuple(places[letter] for letter in term)) for i, term in enumerate(terms)]
            return factors[0] if len(factors) == 1 else factors[0] * factors[1]

        return sum_of(call, [sizes[letter] for letter in summed], body, call.element)

    return call.tensor(at)


# ---- windows -----------------------------------------------------------------------------------------------------


def _window_place(
    base: Term, inner: Term, size: Term, stride: Term, holes: Term, spread: Term, low: Term
) -> tuple[Term, Term]:
    """The position that a window's element has in its operand, and the condition that there is one.

    holes: the dilation of the operand. spread: that of the window.
    """
    padded = base * stride + inner * spread - low
    place = padded if constant_of(holes) == 1 else padded / holes
    return place, z3.And(place * holes == padded, place >= 0, place < size)


def _window_extent(size: Term, window: Term, stride: Term, holes: Term, spread: Term, low: Term, high: Term) -> Term:
    dilated = z3.If(size == 0, 0, (size - 1) * holes + 1) + low + high
    reach = z3.If(window == 0, 0, (window - 1) * spread + 1)
    return z3.If(z3.Or(dilated == 0, reach > dilated), 0, quotient(dilated - reach, stride) + 1)


def reduce_window(call: Call) -> Tensor:
    """`reduce_window` of one tensor: elements around and between the operand's are those that the fold starts with."""
    rank = len(call.dims)
    window, strides, holes, spreads = (
        [number(n) for n in call.numbers(name, 1)]
        for name in ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    )
    padding = call.numbers("padding") or [0] * (2 * rank)
    return _windows(call, window, strides, holes, spreads, list(map(number, padding)), call.op.regions[0].blocks[0])


def dynamic_reduce_window(call: Call) -> Tensor:
    """The custom call of jax.export for a `reduce_window` whose window is an operand."""
    name = ir.FlatSymbolRefAttr(ir.ArrayAttr(call.op.attributes["called_computations"])[0]).value
    module = call.op.parent.parent
    function = next(
        f for f in module.regions[0].blocks[0].operations if ir.StringAttr(f.attributes["sym_name"]).value == name
    )
    window, strides, holes, spreads = (call.entries(i) for i in range(2, 6))
    rank = len(call.dims)
    padding = [call.read(6, (number(i), number(j))) for i in range(rank) for j in range(2)]
    return _windows(call, window, strides, holes, spreads, padding, function.regions[0].blocks[0])


def _windows(
    call: Call,
    window: Sequence[Term],
    strides: Sequence[Term],
    holes: Sequence[Term],
    spreads: Sequence[Term],
    padding: Sequence[Term],
    block: ir.Block,
) -> Tensor:
    source = call.operands[0].dims
    low, high = padding[::2], padding[1::2]
    columns = list(zip(source, window, strides, holes, spreads, low, high, strict=True))
    call.same("sizes", call.dims, [_window_extent(*column) for column in columns])
    name, combine = _combining(block, call.element)

    def at(index: Index) -> Term:
        start = call.read(1, ())

        def body(inner: Index) -> list[Term]:
            found = [
                _window_place(i, k, size, stride, hole, spread, before)
                for i, k, (size, _, stride, hole, spread, before, _) in zip(index, inner, columns, strict=True)
            ]
            lies = z3.And([condition for _, condition in found])
            with call.scope.under(lies):
                element = call.read(0, tuple(place for place, _ in found))
            return [z3.If(lies, element, start)]

        return call.scope.fold(name, window, body, [start], combine)

    return call.tensor(at)


def convolution(call: Call) -> Tensor:
    """`convolution`, and `dynamic_conv`, whose padding is an operand."""
    text = str(call.op.attributes["dimension_numbers"])
    (batch, feature, space), (inner_axis, outer_axis, window_axes), (out_batch, out_feature, out_space) = _layout(text)
    rank = len(space)
    strides, holes, spreads = (
        _or_ones(call.numbers(n), rank) for n in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    has_operand = len(call.operands) == 3
    padding = [call.read(2, (number(i), number(j))) for i in range(rank) for j in range(2)] if has_operand else []
    padding = padding or [number(n) for n in call.numbers("padding") or [0] * (2 * rank)]
    reversal = call.op.attributes["window_reversal"] if "window_reversal" in call.op.attributes else [False] * rank
    mirrored = [bool(b) for b in reversal]
    groups, batches = number(call.number("feature_group_count")), number(call.number("batch_group_count"))
    lhs, rhs = call.operands[0].dims, call.operands[1].dims
    inputs, outputs = rhs[inner_axis], rhs[outer_axis]
    call.same("input features", [lhs[feature]], [inputs * groups])
    call.require("groups of outputs", outputs % (groups * batches) == 0, lhs[batch] % batches == 0)
    extents = [
        _window_extent(lhs[a], rhs[w], number(s), number(h), number(d), padding[2 * i], padding[2 * i + 1])
        for i, (a, w, s, h, d) in enumerate(zip(space, window_axes, strides, holes, spreads, strict=True))
    ]
    call.same("sizes", [call.dims[a] for a in out_space], extents)
    call.same("outputs", [call.dims[out_feature]], [outputs])
    call.require("batches", call.dims[out_batch] * batches == lhs[batch])

    def at(index: Index) -> Term:
        # Feature groups take their part of the input features, batch groups their part of the batch.
        group = number(0) if _is_one(groups) else quotient(index[out_feature], quotient(outputs, groups))
        part = number(0) if _is_one(batches) else quotient(index[out_feature], quotient(outputs, batches))

        def body(inner: Index) -> Term:
            *window, k = inner
            source, kernel, conditions = [number(0)] * len(lhs), [number(0)] * len(rhs), []
            for i, (a, w) in enumerate(zip(space, window_axes, strict=True)):
                place, lies = _window_place(
                    index[out_space[i]], window[i], lhs[a], number(strides[i]), number(holes[i]), number(spreads[i]),
                    padding[2 * i],
                )  # fmt: skip
                source[a] = place
                conditions.append(lies)
                kernel[w] = rhs[w] - 1 - window[i] if mirrored[i] else window[i]
            source[batch] = index[out_batch] + part * call.dims[out_batch]
            source[feature] = k + group * inputs
            kernel[inner_axis], kernel[outer_axis] = k, index[out_feature]
            lies = z3.And(conditions)
            with call.scope.under(lies):
                left = _value(call.read(0, tuple(source)), call.operands[0].element, call)
            right = _value(call.read(1, tuple(kernel)), call.operands[1].element, call)
            return z3.If(lies, left * right, literal(0, call.element, call.scope))

        return sum_of(call, [*(rhs[a] for a in window_axes), inputs], body, call.element)

    return call.tensor(at)


def _is_one(term: Term) -> bool:
    return constant_of(term) == 1


def _or_ones(numbers: list[int], rank: int) -> list[int]:
    return numbers or [1] * rank


def _layout(text: str) -> list[tuple[int, int, list[int]]]:
    """The axes `b`, `f`, or `i`, `o`, and those of space, of the operands and the result, from `[b, 0, f]x...`."""
    found = []
    for part in re.findall(r"\[([^\]]*)\]", text)[:3]:
        letters = [letter.strip() for letter in part.split(",")]
        pair = ("i", "o") if "o" in letters else ("b", "f")
        space = [letters.index(str(n)) for n in range(len(letters) - 2)]
        found.append((letters.index(pair[0]), letters.index(pair[1]), space))
    return found


# ---- sorts, map ----------------------------------------------------------------------------------------------------


def sort(call: Call) -> list[Tensor]:
    """`sort`: an element of a sorted line is a function of the line, the comparator and the position."""
    last = len(call.dims) - 1
    axis = call.number("dimension", last) % (last + 1)
    stable = "is_stable" in call.op.attributes and ir.BoolAttr(call.op.attributes["is_stable"]).value
    comparator = re.sub(r"%\w+", "%", " ".join(str(o) for o in call.op.regions[0].blocks[0].operations))

    def result(position: int) -> Tensor:
        operand = call.operands[position]

        def at(index: Index) -> Term:
            def line(inner: Index) -> list[Term]:
                places = (*index[:axis], inner[0], *index[axis + 1 :])
                order = [position, *(i for i in range(len(call.operands)) if i != position)]
                return [call.read(i, places) for i in order]

            kind = f"ordered {position} {stable} {comparator}"
            return call.scope.fold(kind, [operand.dims[axis]], line, [index[axis]])

        return Tensor(operand.dims, operand.element, at)

    return [result(i) for i in range(len(call.operands))]


def _map(call: Call) -> Tensor:
    """`map`: the body on scalars."""
    body = call.op.regions[0].blocks[0]
    for operand in call.operands:
        call.same("sizes", operand.dims, call.dims)

    def at(index: Index) -> Term:
        scalars: dict[Any, Tensor] = {
            a: Tensor((), v.element, lambda _, v=v: call.element_of(v, index))  # type: ignore[misc]
            for a, v in zip(body.arguments, call.operands, strict=True)
        }
        (result,) = evaluated(body, scalars, call.scope, SCALARS)
        return result.at(())

    return call.tensor(at)


def custom_call(call: Call) -> Tensor:
    """The one custom call that is a reduction."""
    if ir.StringAttr(call.op.attributes["call_target_name"]).value != "stablehlo.dynamic_reduce_window":
        raise ValueError(f"no semantics: {call.op}")
    return dynamic_reduce_window(call)


SCALARS: dict[str, Rule] = {"compare": compare, "constant": constant, "convert": convert}
"""Rules of ops on scalars, elementwise ones aside, in the bodies of ops."""

SUMS: dict[str, Rule] = {
    "convolution": convolution,
    "custom_call": custom_call,
    "dot": dot,
    "dot_general": dot_general,
    "dynamic_conv": convolution,
    "einsum": einsum,
    "map": _map,
    "reduce": reduce,
    "reduce_window": reduce_window,
    "sort": sort,
    "unary_einsum": einsum,
}
"""Rules by the names of the ops."""
