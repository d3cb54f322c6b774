# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the columns that a mask lets rows see, by numbers: what is said to be hidden is changed, and nothing follows.

At some sizes, masks get random integers and scores random numbers. The kernel that finds the columns of each row is
computed, and so are the row kernels, once more with other scores outside of these columns. Rows that see a column have
to come out the same, with zeros outside. What fuses proves that for all sizes, from ranges of numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect.dialect.fusion import Attention, AttentionGradient, fusion_of
from shlo_disc.shape_dialect.dialect.types import dims_of, dims_of_attr, element_type_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops import GENERATORS, IOTAS
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import callee_of

Array = np.ndarray[Any, Any]
Sizes = Mapping[str, int]

_NUMBERS = {"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f32": np.float32,
            "f64": np.float64}  # fmt: skip

_SIZES, _LARGE = ((7, 1), (4, 2)), 900.0
"""The first size and the step from one to the next; and hidden scores, below the least magnitude of a proof."""

_SCALE, _MOST_SCALINGS = 4, 8
"""Sizes are so many times larger, again and again, where an expression of them, as behind convolutions, is below 1."""

_MOST_ELEMENTS = 1 << 22
"""The size of an array of a trial, at most."""


class _Unknown(Exception):
    """An op that is not computed here, or sizes that do not fit it."""


class _TooSmall(Exception):
    """A size of some symbols is below 1."""

    def __init__(self, symbols: set[str]):
        super().__init__()
        self.symbols = symbols


def verify_visible_columns(call: ir.Operation, function: func.FuncOp, kernels: Mapping[str, func.FuncOp]) -> None:
    """Check a call of an attention, or of a gradient of one. Raises CompilerError where hidden columns show."""
    what = fusion_of(function)
    problem = getattr(what, "problem", None)
    if problem is None or problem.visible is None:
        return
    for first, step in _SIZES:
        try:
            is_right = _trial(call, kernels, first, step).is_right(what, problem.visible)
        except _Unknown:
            return
        if not is_right:
            text = "columns that it says are hidden show in its weights or gradients"
            raise CompilerError(f"fuse: the fusion @{function.name.value} is wrong: {text}")


def _trial(call: ir.Operation, kernels: Mapping[str, func.FuncOp], first: int, step: int) -> _Trial:
    """A trial of sizes at which nothing is empty."""
    scales: dict[str, int] = {}
    for _ in range(_MOST_SCALINGS):
        try:
            return _Trial(call, kernels, first, step, scales)
        except _TooSmall as small:
            scales |= {name: _SCALE * scales.get(name, 1) for name in small.symbols}
    raise _Unknown


class _Trial:
    """One set of sizes, with numbers for what a call reads."""

    def __init__(
        self,
        call: ir.Operation,
        kernels: Mapping[str, func.FuncOp],
        first: int,
        step: int,
        scales: Mapping[str, int],
    ):
        self.call, self.kernels = call, kernels
        self.rng = np.random.default_rng(first)
        self.first, self.step, self.scales = first, step, scales
        self.sizes: dict[str, int] = {}
        self.read = {v: self._numbers(v) for v in call.operands}

    def _numbers(self, value: ir.Value) -> Array:
        shape = [self._size(d) for d in dims_of(value)]
        if small := [d for d, size in zip(dims_of(value), shape, strict=True) if size < 1]:
            raise _TooSmall({name for d in small for name in d.symbols()})
        if math.prod(shape) > _MOST_ELEMENTS:
            raise _Unknown
        kind = _NUMBERS.get(str(element_type_of(value)))
        if kind is None:
            raise _Unknown
        if np.issubdtype(kind, np.floating):
            return self.rng.standard_normal(shape).astype(kind)
        return self.rng.integers(0, 2 if kind is np.bool_ else 4, shape).astype(kind)

    def _size(self, dim: Any) -> int:
        for name in sorted(dim.symbols()):
            size = self.first + self.step * len(self.sizes)
            self.sizes.setdefault(name, size * self.scales.get(name, 1))
        return int(dim.evaluate(self.sizes))

    def is_right(self, what: Any, visible: Any) -> bool:
        """Tells whether rows that see a column come out the same whatever the others hold."""
        first, end = (self._computed(self.call.operands[number]) for number in (visible.first, visible.end))
        rows = self.kernels[what.rows]
        argument = what.row_operands.index(-1)
        shape = [self._size(d) for d in dims_of(rows.entry_block.arguments[argument])]
        seen = self._seen(first, end, shape, _axes(what))
        if isinstance(what, Attention):
            return _agree(seen, *(self._rows(what, scores) for scores in self._pair(seen)))
        pairs = zip(self._pair(seen), self._pair(seen), strict=True)
        found = [self._gradients(what, scores, upstream) for scores, upstream in pairs]
        return all(_agree(seen.reshape(one.shape), one, other) for one, other in zip(*found, strict=True))

    def _computed(self, value: ir.Value) -> Array:
        """The result of the kernel that makes a value, from the numbers that the call reads."""
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.operation.name != "func.call":
            raise _Unknown
        maker = owner.operation
        if any(v not in self.read for v in maker.operands):
            raise _Unknown
        results = _evaluated(self.kernels[callee_of(maker)], [self.read[v] for v in maker.operands], self.sizes)
        return results[list(maker.results).index(value)]

    def _seen(self, first: Array, end: Array, shape: Sequence[int], axes: list[tuple[Expr, Expr]]) -> Array:
        """The columns that count, for each row, as scores of this shape; all of a row that sees none."""
        place = np.zeros((), np.int64)
        for size, stride in axes:
            place = place[..., None] + np.arange(self._size(size)) * self._size(stride)
        low, high = (bound.reshape(-1)[place].reshape(-1, 1) for bound in (first, end))
        column = np.arange(shape[-1])
        return (((low <= column) & (column < high)) | (low >= high)).reshape(shape)

    def _pair(self, seen: Array) -> tuple[Array, Array]:
        """Two scores that agree where they are seen."""
        scores = self.rng.standard_normal(seen.shape)
        return np.asarray(scores), np.where(seen, scores, self.rng.uniform(-_LARGE, _LARGE, seen.shape))

    def _rows(self, what: Attention, scores: Array) -> Array:
        """The weights."""
        read = [None if number < 0 else self.read[self.call.operands[number]] for number in what.row_operands]
        return _evaluated(self.kernels[what.rows], self._arguments(what.rows, read, scores), self.sizes)[0]

    def _gradients(self, what: AttentionGradient, scores: Array, upstream: Array) -> tuple[Array, Array]:
        """The weights and the gradients of scores."""
        known: dict[int, Array] = {i: self.read[v] for i, v in enumerate(self.call.operands)}
        rows, gradient = self.kernels[what.rows], self.kernels[what.gradient_rows]
        read = what.row_operands[: len(rows.entry_block.arguments)]
        arguments = self._arguments(what.rows, [known.get(i) for i in read], scores)
        made = _evaluated(rows, arguments, self.sizes)
        known.update(zip(what.row_operands[len(read) :], made, strict=True))
        read = what.gradient_operands[: len(gradient.entry_block.arguments)]
        arguments = self._arguments(what.gradient_rows, [known.get(i) for i in read], upstream)
        return known[-1 - what.weights], _evaluated(gradient, arguments, self.sizes)[0]

    def _arguments(self, name: str, given: Sequence[Array | None], scores: Array) -> list[Array]:
        """The arguments of a row kernel, with the sizes that it has them in; what is not given is the scores."""
        arguments = self.kernels[name].entry_block.arguments
        found = []
        for value, array in zip(arguments, given, strict=True):
            shape = [self._size(d) for d in dims_of(value)]
            source = scores.astype(_NUMBERS[str(element_type_of(value))]) if array is None else array
            if source.size != np.prod(shape, dtype=int):
                raise _Unknown
            found.append(source.reshape(shape))
        return found


def _axes(what: Attention | AttentionGradient) -> list[tuple[Expr, Expr]]:
    """The sizes of the axes of rows, and their strides in what says which columns rows see."""
    problem: Any = what.problem
    if isinstance(what, Attention):
        return [(axis.size, axis.visible) for axis in (*problem.batch, problem.rows)]
    strides = (*problem.visible_batch, problem.visible_row)
    return list(zip((*problem.batch, problem.rows), strides, strict=True))


def _agree(seen: Array, one: Array, other: Array) -> bool:
    """Tells whether two results are alike, and 0 where nothing is seen; rows of NaN are alike."""
    seen = seen.reshape(one.shape)
    nan = np.isnan(one).any(-1, keepdims=True)
    is_zero = (other == 0) | seen | nan
    return bool(is_zero.all() and np.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True))


# ---- kernels, computed ----------------------------------------------------------------------------------------------


def _evaluated(function: func.FuncOp, arguments: Sequence[Array], sizes: Sizes) -> list[Array]:
    """The results of a kernel. Raises _Unknown for ops that are not computed here."""
    known = dict(zip(function.entry_block.arguments, arguments, strict=True))
    *operations, last = (op.operation for op in function.entry_block.operations)
    with np.errstate(all="ignore"):
        for op in operations:
            known[op.results[0]] = _result(op, [known.get(v) for v in op.operands], sizes)
    return [known[v] for v in last.operands]


def _result(op: ir.Operation, operands: Sequence[Any], sizes: Sizes) -> Array:
    kind = _NUMBERS.get(str(element_type_of(op.results[0])))
    try:
        shape = [int(d.evaluate(sizes)) for d in dims_of(op.results[0])]
    except KeyError:
        raise _Unknown from None
    if kind is None:
        raise _Unknown
    name = op.name.removeprefix("stablehlo.").removeprefix("dynamic_")
    if op.name in GENERATORS:
        return _generated(op, shape, kind, sizes)
    if name in ("broadcast_in_dim", "reshape", "transpose"):
        return _moved(op, name, operands[0], shape)
    if name == "reduce":
        return _reduced(op, operands)
    if name == "compare":
        direction = str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")
        return np.asarray(_COMPARISONS[direction](*operands))
    if name not in _RULES or (name == "divide" and np.issubdtype(kind, np.integer)):
        raise _Unknown
    return np.asarray(_RULES[name](*operands)).astype(kind)


def _generated(op: ir.Operation, shape: list[int], kind: Any, sizes: Sizes) -> Array:
    if op.name == "disc.shape":
        return np.array([int(d.evaluate(sizes)) for d in dims_of_attr(op.attributes["dims"])], kind).reshape(shape)
    if op.name in IOTAS:
        axis = ir.IntegerAttr(op.attributes["iota_dimension"]).value
        places = [1] * axis + [-1] + [1] * (len(shape) - axis - 1)
        return np.broadcast_to(np.arange(shape[axis], dtype=kind).reshape(places), shape)
    elements = ir.DenseElementsAttr(op.attributes["value"])
    if not elements.is_splat:
        raise _Unknown
    return np.full(shape, elements.get_splat_value().value, kind)


def _moved(op: ir.Operation, name: str, value: Array, shape: list[int]) -> Array:
    if name == "transpose":
        return np.asarray(value.transpose(list(ir.DenseI64ArrayAttr(op.attributes["permutation"]))))
    if name == "reshape":
        return value.reshape(shape)
    places = [1] * len(shape)
    axes = ir.DenseI64ArrayAttr(op.attributes["broadcast_dimensions"])
    for axis, size in zip(axes, value.shape, strict=True):
        places[axis] = size
    return np.broadcast_to(value.reshape(places), shape)


def _reduced(op: ir.Operation, operands: Sequence[Array]) -> Array:
    axes = tuple(ir.DenseI64ArrayAttr(op.attributes["dimensions"]))
    inner = [o.operation.name.removeprefix("stablehlo.") for o in op.regions[0].blocks[0].operations]
    if len(operands) != 2 or len(inner) != 2 or inner[0] not in _REDUCTIONS:
        raise _Unknown
    return np.asarray(_REDUCTIONS[inner[0]].reduce(operands[0], axis=axes, initial=operands[1][()]))


_REDUCTIONS: dict[str, np.ufunc] = {"add": np.add, "maximum": np.maximum, "minimum": np.minimum}

_COMPARISONS: dict[str, Callable[..., Any]] = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
}  # fmt: skip

_RULES: dict[str, Callable[..., Any]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "divide": lambda a, b: a / b, "exponential": np.exp, "tanh": np.tanh, "negate": np.negative, "abs": np.abs,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert, "convert": lambda a: a,
    "select": lambda c, a, b: np.where(c, a, b), "sqrt": np.sqrt,
}  # fmt: skip
