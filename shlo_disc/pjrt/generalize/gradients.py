# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes to which gradients bring back what strides have left out.

The gradient of a slice with a stride is a padding with holes, that of a convolution one with holes, that of a sum over
windows a padding with holes before another sum. The padding is chosen such that the size is the one of before: from it
follows a padding that is the same in the samples, but not at other sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.utils.convolution import convolution_of

from .samples import Samples

_KEEP_KERNEL = ("stablehlo.reverse", "stablehlo.transpose")


class Classes(Protocol):
    """Classes of numbers that are equal."""

    samples: Samples

    def root(self, number: int) -> int:
        """The representative of a number's class."""

    def join(self, a: int, b: int) -> None:
        """The two are one class, if they are equal in all programs."""


class Returned(NamedTuple):
    """The forward op of a gradient: the number of its size, and of the padding at its beginning if it has one.

    more: by how much the size that the gradient's padding makes is larger.
    """

    size: int
    low: int | None
    more: int


class _Axis(NamedTuple):
    """An axis of which every `step`-th element or window is taken, or the one that holes make of what was taken.

    size: the number of the axis. taken: that of what is taken. of: what else is the same in both directions.
    low, more: of what is taken, as `Returned` has them.
    """

    size: int
    taken: int
    step: int
    of: object
    low: int | None = None
    more: int = 0


def join_gradients(classes: Classes) -> dict[int, Returned]:
    """Join the sizes of what strides were over with those to which gradients return.

    What paddings are chosen for, by the numbers of the sizes that they make.
    """
    samples, found = classes.samples, {}
    taken: dict[object, list[_Axis]] = {}
    for axis in _axes(samples, _TAKEN):
        taken.setdefault((axis.step, axis.of), []).append(axis)
    for back in _axes(samples, _BACK):
        for axis in taken.get((back.step, back.of), []):
            pairs = zip(samples.values[back.size], samples.values[axis.size], strict=True)
            if {a - b for a, b in pairs} == {axis.more} and _is_same(classes, axis.taken, back.taken):
                classes.join(axis.size, back.size)
                found[back.size] = Returned(axis.size, axis.low, axis.more)
                break
    return found


def _is_same(classes: Classes, a: int, b: int) -> bool:
    """Tells whether two numbers are known to be equal, or are 1: those may be broadcast and are never joined."""
    values = classes.samples.values
    return classes.root(a) == classes.root(b) or set(values[a]) == set(values[b]) == {1}


def _axes(samples: Samples, kinds: dict[str, Callable[[_Op], Iterator[_Axis]]]) -> Iterator[_Axis]:
    for position, op in enumerate(samples.operations):
        if op.operation.name in kinds and position not in samples.plain:
            yield from (axis for axis in kinds[op.operation.name](_Op(samples, op, position)) if axis.step > 1)


class _Op:
    """The numbers of an op."""

    def __init__(self, samples: Samples, op: ir.OpView, position: int):
        self.samples, self.op, self._position = samples, op, position
        self.used = samples.operands.get((position, 0), samples.dims.get(op.operands[0], []))
        self.results = samples.dims.get(op.results[0], [])

    def numbers(self, name: str) -> list[int]:
        """The numbers of an attribute; none if the op has no such attribute."""
        return self.samples.attributes.get((self._position, name), [])

    def steps(self, name: str) -> list[int]:
        """The values of an attribute that are the same in all samples, 0 for others."""
        fixed, values = self.samples.is_fixed, self.samples.values
        return [values[n][0] if fixed(n) else 0 for n in self.numbers(name)]

    def values(self, name: str) -> list[object]:
        """The values of an attribute in all samples."""
        return [self.samples.values[n] for n in self.numbers(name)]

    def kernel(self) -> ir.Value:
        """The value from which the second operand is reversed and transposed."""
        value: ir.Value = self.op.operands[1]
        while (position := self.samples.position.get(value.owner)) is not None:
            op = self.samples.operations[position]
            if op.operation.name not in _KEEP_KERNEL:
                break
            value = op.operands[0]
        return value


def _slice(op: _Op) -> Iterator[_Axis]:
    yield from map(_Axis, op.used, op.results, op.steps("strides"), op.values("start_indices"))


def _pad(op: _Op) -> Iterator[_Axis]:
    rows = zip(op.results, op.used, op.steps("interior_padding"), op.values("edge_padding_low"), strict=True)
    for result, size, hole, low in rows:
        yield _Axis(result, size, hole + 1, low)
        yield _Axis(result, size, hole + 1, "window")


def _window(op: _Op) -> Iterator[_Axis]:
    windows, dilations = op.steps("window_dimensions"), op.steps("window_dilations") or [1] * len(op.used)
    lows: Sequence[int | None] = op.numbers("padding")[::2] or [None] * len(op.used)
    for axis, step in enumerate(op.steps("window_strides")):
        more = (windows[axis] - 1) * dilations[axis]
        yield _Axis(op.used[axis], op.results[axis], step, "window", lows[axis], more)


def _convolution(op: _Op) -> Iterator[_Axis]:
    axes, lows = convolution_of(op.op), op.numbers("padding")[::2]
    for i, step in enumerate(op.steps("window_strides")):
        low = lows[i] if lows else None
        yield _Axis(op.used[axes.input[1 + i]], op.results[axes.output[1 + i]], step, (op.kernel(), i), low)


def _transposed(op: _Op) -> Iterator[_Axis]:
    axes = convolution_of(op.op)
    for i, step in enumerate(op.steps("lhs_dilation")):
        yield _Axis(op.results[axes.output[1 + i]], op.used[axes.input[1 + i]], step, (op.kernel(), i))


_TAKEN: dict[str, Callable[[_Op], Iterator[_Axis]]] = {
    "stablehlo.convolution": _convolution,
    "stablehlo.reduce_window": _window,
    "stablehlo.slice": _slice,
}
_BACK: dict[str, Callable[[_Op], Iterator[_Axis]]] = {
    "stablehlo.convolution": _transposed,
    "stablehlo.pad": _pad,
}

__all__ = ["Classes", "Returned", "join_gradients"]
