# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The numbers of a program that are the same at all sizes, as far as its ops tell.

What is found need not hold: a program is served by a symbolic one only where all its numbers agree. But the more is
found, the more programs that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from itertools import combinations
from math import lcm, prod

from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.ops import TABLE
from shlo_disc.shape_dialect.ops.gathers import window_axes
from shlo_disc.shape_dialect.ops.size_relations import Size, SizeRelations, rank, reshape_groups
from shlo_disc.shape_dialect.utils.called_operations import name_of
from shlo_disc.shape_dialect.utils.convolution import GROUP_COUNTS, convolution_of

from .gradients import join_gradients
from .pieces import join_cuts, join_loops
from .samples import Samples

_TOP_K = "mhlo.backend_config"
"""The attribute in which `ApproxTopK` has a number, its count, and no other call has any."""


class Relations(SizeRelations):
    """Classes of equal numbers."""

    def __init__(
        self,
        samples: Samples,
        contested: AbstractSet[int] = frozenset(),
        separate: AbstractSet[int] = frozenset(),
    ):
        """contested: sizes that are used as prefixes, though they are as large in all samples, and such prefixes.

        separate: numbers at which values are cut, but not all at one place.
        """
        self.samples = samples
        self._contested = contested
        self._parents = list(range(len(samples.values)))
        self._functions = {name_of(op): op for op in samples.operations if op.operation.name == "func.func"}
        self.stretches: list[tuple[int, int]] = []
        """Sizes of 1, of a value and of what it is used as: by a broadcast to anything else at other sizes, perhaps."""
        self.ones: list[int] = []
        """Sizes of 1 that an op states, so that they are 1 at other sizes, too, unless something else is known."""
        self._divided: list[tuple[int, int]] = []
        self._used: dict[ir.Value, list[int]] = {}
        for (position, index), numbers in samples.operands.items():
            self._use(samples.dims[samples.operations[position].operands[index]], numbers)
        for position, op in enumerate(samples.operations):
            name = op.operation.name
            self._used = {v: samples.operands.get((position, i), []) for i, v in enumerate(op.operands)}
            relate = TABLE[name].relate if name in TABLE else None
            if relate is not None and not self._is_idle(op, position):
                relate(self, op)
            if name in _MORE:
                _MORE[name](self, op, position)
            if name in _WRITE_ONES and rank(op.operands[0]):
                self.ones += [n for n in samples.dims.get(op.results[0], []) if set(samples.values[n]) == {1}]
        join_cuts(self, separate)
        join_loops(self)
        self.returned = join_gradients(self)
        """The forward ops of gradients, by the sizes that their paddings make."""

    def _is_idle(self, op: ir.OpView, position: int) -> bool:
        """Tells whether an op pads nothing in all samples. No program has it for that: at other sizes it does."""
        names = self.samples.attribute_names.get(position, []) if op.operation.name == "stablehlo.pad" else []
        numbers = [n for name in names for n in self.samples.attributes[position, name]]
        return bool(numbers) and all(set(self.samples.values[n]) == {0} for n in numbers)

    def _use(self, sizes: list[int], used: list[int]) -> None:
        for a, b in zip(sizes, used, strict=True):
            if set(self.samples.values[a]) == {1}:
                self.stretches.append((a, b))
            elif self._contested.isdisjoint((a, b)):
                self.join(a, b)

    def root(self, number: int) -> int:
        """The representative of a number's class."""
        path = []
        while (parent := self._parents[number]) != number:
            path.append(number)
            number = parent
        for passed in path:
            self._parents[passed] = number
        return number

    def join(self, a: int, b: int) -> None:
        """The two are one class, if they are equal in all programs. The first number of a class represents it."""
        if self.samples.values[a] == self.samples.values[b]:
            first, second = sorted((self.root(a), self.root(b)))
            self._parents[second] = first

    def divide(self, number: int, divisor: int) -> None:
        """The number is a multiple of the divisor at all sizes."""
        self._divided.append((number, divisor))

    def divisor(self, number: int) -> int:
        """The divisors of a number, as far as the ops tell."""
        same = (k for other, k in self._divided if self.root(other) == self.root(number))
        return lcm(*same)

    def join_all(self, left: Iterable[int], right: Iterable[int]) -> None:
        """The pairs of two lists of one length are equal."""
        for a, b in zip(left, right, strict=True):
            self.join(a, b)

    def callee(self, name: str) -> ir.OpView:
        """The function of a name."""
        return self._functions[name]

    def operand(self, op: ir.OpView, position: int, index: int) -> list[int]:
        """The sizes with which an op uses an operand."""
        return self.samples.operands.get((position, index), self.samples.dims.get(op.operands[index], []))

    # What the rules call.

    def same(self, a: Size, b: Size) -> None:
        left, right = self._dims(a.value), self._dims(b.value)
        if left and right:
            self.join(left[a.axis], right[b.axis])

    def computed(self, result: Size, sources: Iterable[Size]) -> None:
        """The sizes that are computed have formulas (`formulas.py`)."""

    def fix(self, value: ir.Value, axes: Iterable[int] | None = None) -> None:
        """A size that nothing else is equal to is in a class of its own."""

    def _dims(self, value: ir.Value) -> list[int]:
        """As the op at hand uses the value; none of a broadcast that nothing uses."""
        return self._used.get(value) or self.samples.dims.get(value, [])


def terminator(block: ir.Block) -> ir.OpView:
    """The last operation of a block."""
    return block.operations[len(block.operations) - 1]


def _call(attribute: str) -> Callable[[Relations, ir.OpView, int], None]:
    def rule(r: Relations, op: ir.OpView, position: int) -> None:
        block = r.callee(ir.FlatSymbolRefAttr(op.attributes[attribute]).value).regions[0].blocks[0]
        pairs = [*zip(op.operands, block.arguments, strict=True)]
        pairs += zip(op.results, terminator(block).operands, strict=True)
        for a, b in pairs:
            r.same_shape([a, b])

    return rule


def _constant(r: Relations, op: ir.OpView, position: int) -> None:
    r.join_all(r.samples.attributes.get((position, "value"), []), r.samples.dims.get(op.results[0], []))


def _convolution(r: Relations, op: ir.OpView, position: int) -> None:
    """The sizes that groups follow, such as a number of kernels: those of both operands are the same."""
    axes, values, is_fixed = convolution_of(op), r.samples.values, r.samples.is_fixed
    for name, axis in zip(GROUP_COUNTS, (axes.input[-1], axes.input[0]), strict=True):
        (count,) = r.samples.attributes[position, name]
        parts = [*_parts(r, op, position, 0, axis), *_parts(r, op, position, 1, axes.kernel[-1])]
        moving = [] if is_fixed(count) else [n for n in parts if not is_fixed(n) and min(values[n])]
        followed = [n for n in moving if not any(a % b for a, b in zip(values[count], values[n], strict=True))]
        for a, b in combinations([count, *followed], 2):
            r.join(a, b)


def _parts(r: Relations, op: ir.OpView, position: int, index: int, axis: int) -> list[int]:
    """The size of an operand along an axis, and those that a reshape makes it of."""
    value = op.operands[index]
    numbers = [r.operand(op, position, index)[axis]]
    if isinstance(value.owner, ir.Block) or value.owner.name != "stablehlo.reshape":
        return numbers
    reshape = value.owner.opview
    sources = r.operand(reshape, r.samples.position[value.owner], 0)
    shapes = (ir.RankedTensorType(v.type).shape for v in (reshape.operands[0], value))
    return numbers + [sources[i] for group, axes in reshape_groups(*shapes) if axes == [axis] for i in group]


def _custom_call(r: Relations, op: ir.OpView, position: int) -> None:
    """A result that lies where an operand does has its shape. A call for the largest elements states how many."""
    for count in r.samples.attributes.get((position, _TOP_K), []):
        axis = ir.IntegerAttr(ir.DictAttr(op.attributes[_TOP_K])["reduction_dim"]).value
        r.join_all([count] * len(op.results), [r.samples.dims[result][axis] for result in op.results])
    if "output_operand_aliases" not in op.attributes:
        return
    for attribute in ir.ArrayAttr(op.attributes["output_operand_aliases"]):
        alias = stablehlo.OutputOperandAlias(attribute)
        places = list(alias.output_tuple_indices)
        r.same_shape([op.operands[int(alias.operand_index)], op.results[places[0] if places else 0]])


def _whole(r: Relations, stated: Iterable[int], value: ir.Value) -> None:
    """The numbers that an attribute states for each axis are a value's sizes where they look so."""
    r.join_all(stated, r.samples.dims.get(value, []))


def _slice(r: Relations, op: ir.OpView, position: int) -> None:
    if position not in r.samples.plain:
        _whole(r, r.samples.attributes[position, "limit_indices"], op.operands[0])


def _dynamic_slice(r: Relations, op: ir.OpView, position: int) -> None:
    _whole(r, r.samples.attributes[position, "slice_sizes"], op.results[0])
    _whole(r, r.samples.attributes[position, "slice_sizes"], op.operands[0])


def _dynamic_update_slice(r: Relations, op: ir.OpView, position: int) -> None:
    _whole(r, r.samples.dims.get(op.operands[1], []), op.operands[0])


def _fft(r: Relations, op: ir.OpView, position: int) -> None:
    """The lengths are sizes of the operand and of the result, but for the last one of a result or operand of halves."""
    lengths = r.samples.attributes[position, "fft_length"]
    kind = str(stablehlo.FftTypeAttr(op.attributes["fft_type"]).value)
    operand, result = r.operand(op, position, 0), r.samples.dims[op.results[0]]
    for sizes, halved in ((operand, "IRFFT"), (result, "RFFT")):
        whole = slice(-1 if kind == halved else None)
        r.join_all(lengths[whole], sizes[-len(lengths) :][whole])


def _gather(r: Relations, op: ir.OpView, position: int) -> None:
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    stated = r.samples.attributes[position, "slice_sizes"]
    _whole(r, stated, op.operands[0])
    result = r.samples.dims.get(op.results[0], [])
    kept = window_axes(numbers, rank(op.operands[0]))
    r.join_all([stated[axis] for axis in kept], [result[offset] for offset in numbers.offset_dims])


def _reshape(r: Relations, op: ir.OpView, position: int) -> None:
    """Leading sizes that are equal are the same, those of 1 among them. What is split is a multiple of its parts."""
    _split(r, op, position)
    for a, b in zip(*(r.samples.dims.get(v, []) for v in (op.operands[0], op.results[0])), strict=False):
        if r.samples.values[a] != r.samples.values[b]:
            break
        r.join(a, b)


def _split(r: Relations, op: ir.OpView, position: int) -> None:
    sources = r.operand(op, position, 0)
    results = r.samples.dims.get(op.results[0], [])
    shapes = (ir.RankedTensorType(v.type).shape for v in (op.operands[0], op.results[0]))
    for group, axes in reshape_groups(*shapes):
        parts = [r.samples.values[results[axis]][0] for axis in axes if r.samples.is_fixed(results[axis])]
        if len(group) == 1 and (divisor := prod(parts)) > 1:
            r.divide(sources[group[0]], divisor)


_MORE: dict[str, Callable[[Relations, ir.OpView, int], None]] = {
    "func.call": _call("callee"),
    "stablehlo.composite": _call("decomposition"),
    "stablehlo.constant": _constant,
    "stablehlo.convolution": _convolution,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.fft": _fft,
    "stablehlo.gather": _gather,
    "stablehlo.reshape": _reshape,
    "stablehlo.slice": _slice,
}

_WRITE_ONES = tuple("stablehlo." + name for name in ("broadcast_in_dim", "dynamic_slice", "gather", "reshape", "slice"))

__all__ = ["Relations", "rank", "terminator", "window_axes"]
