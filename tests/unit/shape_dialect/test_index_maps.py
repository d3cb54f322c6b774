# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Index maps, evaluated element by element, beside the StableHLO reference interpreter and beside each other."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import INDEX_MAPS, index_map_of
from shlo_disc.shape_dialect.ops.index_maps import Amount, Coordinate, Entry, Read, Regrouped, Start, result_axis
from tests.fuzz.oracles import Interpreter

PROGRAMS = 40
"""Random programs of each op."""


# ---- an evaluator of index maps ----------------------------------------------------------------------------------


class Evaluator:
    """The result of an op, from its index map alone."""

    def __init__(self, op: ir.OpView, operands: Sequence[np.ndarray]) -> None:
        self.reads = index_map_of(op)
        self.operands = operands
        self.shape = tuple(ir.RankedTensorType(op.results[0].type).shape)

    def run(self) -> np.ndarray:
        """All elements."""
        result = np.empty(self.shape, self.operands[0].dtype)
        for index in np.ndindex(*self.shape):
            result[index] = self.element(list(index))
        return result

    def element(self, index: list[int]) -> Any:
        """The element at an index of the result."""
        for read in self.reads:
            operand = self.operands[read.operand]
            place = self.place(read, index, operand.shape)
            if read.until is not None:
                if index[read.until] < operand.shape[read.until]:
                    return operand[tuple(place)]
                index[read.until] -= operand.shape[read.until]
            elif all(place[axis] is not None for axis in read.within):
                assert all(0 <= p < size for p, size in zip(place, operand.shape, strict=True)), "a read outside"
                return operand[tuple(place)]
        raise AssertionError("no read lies inside of its operand")

    def place(self, read: Read, index: Sequence[int], dims: Sequence[int]) -> list[int | None]:
        """The position of a read; None along an axis where there is no element."""
        place: list[int | None] = []
        for axis, coordinate in enumerate(read.at):
            if isinstance(coordinate, Regrouped):
                place.append(self.regrouped(coordinate, index, dims))
                continue
            before = self.before_step(coordinate, index, dims[axis])
            here, rest = divmod(before, self.amount(coordinate.step))
            inside = not rest and 0 <= here < dims[axis]
            place.append(here if inside or axis not in read.within else None)
        return place

    def before_step(self, c: Coordinate, index: Sequence[int], size: int) -> int:
        """The position along an axis, before it is divided."""
        position = 0 if c.axis is None else index[c.axis]
        if c.one is not None and size == 1:
            position = 0
        if c.is_mirrored:
            position = size - 1 - position
        return position * self.amount(c.stride) - self.start(c.minus, index) + self.start(c.plus, index)

    def regrouped(self, c: Regrouped, index: Sequence[int], dims: Sequence[int]) -> int:
        """The position along an axis of a reshape's operand."""
        offset = np.ravel_multi_index([index[a] for a in c.axes], [self.shape[a] for a in c.axes])
        digits = np.unravel_index(offset, [dims[a] for a in c.group])
        return int(digits[c.group.index(c.axis)])

    def start(self, amount: Amount | Start, index: Sequence[int]) -> int:
        """An amount, or the clamped beginning of a window."""
        if not isinstance(amount, Start):
            return self.amount(amount)
        indices = self.operands[amount.operand]
        at = tuple(self.before_step(c, index, size) for c, size in zip(amount.at, indices.shape, strict=True))
        last = (self.amount(amount.extent) - 1) * self.amount(amount.stride)
        return min(max(int(indices[at]), 0), self.amount(amount.size) - 1 - last)

    def amount(self, amount: Amount) -> int:
        """A number of elements."""
        if isinstance(amount, Entry):
            return int(self.operands[amount.operand][amount.number]) + amount.more
        assert amount.constant is not None
        return amount.constant


# ---- random programs ---------------------------------------------------------------------------------------------


class Program:
    """One op on arguments: its text, and the arguments.

    known: the sizes, starts and strides among the operands are constants.
    """

    def __init__(self, text: str, result: Sequence[int], *operands: np.ndarray, known: bool = False) -> None:
        named = [(f"%{i}", v, type_of(v)) for i, v in enumerate(operands)]
        constants = [known and v.ndim == 1 and v.dtype == np.int64 for v in operands]
        self.arguments = [v for v, constant in zip(operands, constants, strict=True) if not constant]
        arguments = ", ".join(f"{n}: {kind}" for (n, _, kind), c in zip(named, constants, strict=True) if not c)
        lines = [
            f"{name} = stablehlo.constant dense<{value.tolist()}> : {kind}"
            for (name, value, kind), constant in zip(named, constants, strict=True)
            if constant
        ]
        kind, types = tensor(result), ", ".join(kind for *_, kind in named)
        lines += ["%r = " + text.format(*(n for n, *_ in named), types=types, result=kind), f"return %r : {kind}"]
        self.text = f"func.func @main({arguments}) -> {kind} {{\n  " + "\n  ".join(lines) + "\n}"
        self.operands = operands
        self.result = result


def tensor(shape: Sequence[int], element: str = "f32") -> str:
    return "tensor<" + "".join(f"{size}x" for size in shape) + f"{element}>"


def type_of(value: np.ndarray) -> str:
    return tensor(value.shape, "f32" if value.dtype == np.float32 else "i64")


def values(*shape: int) -> np.ndarray:
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)


def shape_of(rng: random.Random, least: int = 0) -> list[int]:
    return [rng.randint(least, 4) for _ in range(rng.randint(1, 3))]


def listed(numbers: Sequence[int]) -> str:
    return "array<i64" + (": " + ", ".join(map(str, numbers)) if numbers else "") + ">"


def vector(numbers: Sequence[int]) -> np.ndarray:
    return np.array(numbers, np.int64)


def transpose(rng: random.Random) -> Program:
    shape = shape_of(rng)
    order = rng.sample(range(len(shape)), len(shape))
    text = f'"stablehlo.transpose"({{}}) {{{{permutation = {listed(order)}}}}} : ({{types}}) -> {{result}}'
    return Program(text, [shape[i] for i in order], values(*shape))


def reverse(rng: random.Random) -> Program:
    shape = shape_of(rng)
    axes = sorted(rng.sample(range(len(shape)), rng.randint(0, len(shape))))
    text = f'"stablehlo.reverse"({{}}) {{{{dimensions = {listed(axes)}}}}} : ({{types}}) -> {{result}}'
    return Program(text, shape, values(*shape))


def reshape(rng: random.Random) -> Program:
    parts = [rng.choice((1, 2, 3, 4)) for _ in range(rng.randint(1, 4))]
    source, result = (_joined(rng, parts) for _ in range(2))
    return Program('"stablehlo.reshape"({}) : ({types}) -> {result}', result, values(*source))


def _joined(rng: random.Random, parts: Sequence[int]) -> list[int]:
    """The parts, some neighbours multiplied, and sizes of 1 between."""
    shape: list[int] = []
    for part in parts:
        if shape and rng.random() < 0.4:
            shape[-1] *= part
        else:
            shape += [1] * rng.randint(0, 1) + [part]
    return shape


def broadcast_in_dim(rng: random.Random) -> Program:
    result = shape_of(rng)
    targets = sorted(rng.sample(range(len(result)), rng.randint(0, len(result))))
    source = [rng.choice((1, result[t])) for t in targets]
    names = f"broadcast_dimensions = {listed(targets)}"
    return Program(
        f'"stablehlo.broadcast_in_dim"({{}}) {{{{{names}}}}} : ({{types}}) -> {{result}}', result, values(*source)
    )


def _slice_of(rng: random.Random, size: int) -> tuple[int, int, int, int]:
    start = rng.randint(0, size)
    limit, stride = rng.randint(start, size), rng.randint(1, 3)
    return start, limit, stride, -(-(limit - start) // stride)


def slice_(rng: random.Random) -> Program:
    shape = shape_of(rng)
    starts, limits, strides, result = (list(c) for c in zip(*(_slice_of(rng, n) for n in shape), strict=True))
    names = f"start_indices = {listed(starts)}, limit_indices = {listed(limits)}, strides = {listed(strides)}"
    return Program(f'"stablehlo.slice"({{}}) {{{{{names}}}}} : ({{types}}) -> {{result}}', result, values(*shape))


def real_dynamic_slice(rng: random.Random) -> Program:
    """Starts that are data, which this program's limits agree with."""
    shape = shape_of(rng, 1)
    starts, limits, strides, result = (list(c) for c in zip(*(_slice_of(rng, n) for n in shape), strict=True))
    text = '"stablehlo.real_dynamic_slice"({}, {}, {}, {}) : ({types}) -> {result}'
    return Program(text, result, values(*shape), *map(vector, (starts, limits, strides)), known=rng.random() < 0.5)


def dynamic_slice(rng: random.Random) -> Program:
    shape = shape_of(rng)
    sizes = [rng.randint(0, n) for n in shape]
    starts = [np.array(rng.randint(-2, n + 1)) for n in shape]
    operands = ", ".join(["{}"] * (1 + len(shape)))
    text = f'"stablehlo.dynamic_slice"({operands}) {{{{slice_sizes = {listed(sizes)}}}}} : ({{types}}) -> {{result}}'
    return Program(text, sizes, values(*shape), *starts)


def dynamic_update_slice(rng: random.Random) -> Program:
    shape = shape_of(rng)
    update = [rng.randint(0, n) for n in shape]
    starts = [np.array(rng.randint(-2, n + 1)) for n in shape]
    operands = ", ".join(["{}"] * (2 + len(shape)))
    text = f'"stablehlo.dynamic_update_slice"({operands}) : ({{types}}) -> {{result}}'
    return Program(text, shape, values(*shape), -values(*update), *starts)


def concatenate(rng: random.Random) -> Program:
    shape = shape_of(rng)
    axis = rng.randrange(len(shape))
    pieces = [values(*shape[:axis], rng.randint(0, 3), *shape[axis + 1 :]) * (10**i) for i in range(rng.randint(1, 4))]
    shape[axis] = sum(p.shape[axis] for p in pieces)
    operands = ", ".join(["{}"] * len(pieces))
    text = f'"stablehlo.concatenate"({operands}) {{{{dimension = {axis} : i64}}}} : ({{types}}) -> {{result}}'
    return Program(text, shape, *pieces)


def _padding(rng: random.Random) -> tuple[list[int], list[list[int]], list[int]]:
    """The shape, low, high and interior padding, and the padded shape."""
    while True:
        shape = shape_of(rng)
        padding = [[rng.choice((-1, 0, 0, 1, 2)) for _ in shape] for _ in range(2)]
        padding.append([rng.choice((0, 0, 1, 2)) for _ in shape])
        result = [n + low + high + inner * max(n - 1, 0) for n, low, high, inner in zip(shape, *padding, strict=True)]
        if min(result) >= 0:
            return shape, padding, result


def pad(rng: random.Random) -> Program:
    shape, padding, result = _padding(rng)
    names = zip(("edge_padding_low", "edge_padding_high", "interior_padding"), padding, strict=True)
    attributes = ", ".join(f"{name} = {listed(numbers)}" for name, numbers in names)
    text = f'"stablehlo.pad"({{}}, {{}}) {{{{{attributes}}}}} : ({{types}}) -> {{result}}'
    return Program(text, result, values(*shape), np.array(-1, np.float32))


def dynamic_pad(rng: random.Random) -> Program:
    shape, padding, result = _padding(rng)
    text = '"stablehlo.dynamic_pad"({}, {}, {}, {}, {}) : ({types}) -> {result}'
    known = rng.random() < 0.5
    return Program(text, result, values(*shape), np.array(-1, np.float32), *map(vector, padding), known=known)


def dynamic_reshape(rng: random.Random) -> Program:
    program = reshape(rng)
    text = '"stablehlo.dynamic_reshape"({}, {}) : ({types}) -> {result}'
    return Program(text, program.result, *program.operands, vector(program.result))


def dynamic_broadcast_in_dim(rng: random.Random) -> Program:
    result = shape_of(rng)
    targets = sorted(rng.sample(range(len(result)), rng.randint(0, len(result))))
    source = [rng.choice((1, result[t])) for t in targets]
    names = f"broadcast_dimensions = {listed(targets)}"
    text = f'"stablehlo.dynamic_broadcast_in_dim"({{}}, {{}}) {{{{{names}}}}} : ({{types}}) -> {{result}}'
    return Program(text, result, values(*source), vector(result))


def _gathered(rng: random.Random) -> tuple[str, list[int], np.ndarray, np.ndarray, list[int]]:
    """Dimension numbers, the result's sizes, the operand, the indices and the sizes of the slices."""
    shape = shape_of(rng, 1)
    rank = len(shape)
    batching = [0] if rank > 1 and rng.random() < 0.4 else []
    others = [a for a in range(rank) if a not in batching]
    collapsed = sorted(rng.sample(others, rng.randint(0, len(others))))
    sizes = [1 if a in batching or a in collapsed else rng.randint(0, shape[a]) for a in range(rank)]
    mapped = rng.sample(others, rng.randint(0, len(others)))
    batch = ([shape[0]] if batching else []) + [rng.randint(0, 3) for _ in range(rng.randint(0, 2))]
    vector_axis = rng.randint(1 if batching else 0, len(batch))
    has_axis = len(mapped) != 1 or rng.random() < 0.6
    if not has_axis:
        vector_axis = len(batch)
    places = [*batch[:vector_axis], len(mapped), *batch[vector_axis:]] if has_axis else batch
    indices = np.array([rng.randint(-2, 5) for _ in range(int(np.prod(places)))], np.int64).reshape(places)
    kept = [a for a in others if a not in collapsed]
    offset_dims = sorted(rng.sample(range(len(batch) + len(kept)), len(kept)))
    result, offsets, left = [], iter(kept), iter(batch)
    for axis in range(len(batch) + len(kept)):
        result.append(sizes[next(offsets)] if axis in offset_dims else next(left))
    numbers = (
        f"offset_dims = {offset_dims}, collapsed_slice_dims = {collapsed}, operand_batching_dims = {batching}, "
        f"start_indices_batching_dims = {batching}, start_index_map = {mapped}, index_vector_dim = {vector_axis}"
    )
    return f"dimension_numbers = #stablehlo.gather<{numbers}>", result, values(*shape), indices, sizes


def gather(rng: random.Random) -> Program:
    numbers, result, operand, indices, sizes = _gathered(rng)
    attributes = f"{numbers}, slice_sizes = {listed(sizes)}"
    return Program(
        f'"stablehlo.gather"({{}}, {{}}) {{{{{attributes}}}}} : ({{types}}) -> {{result}}', result, operand, indices
    )


def dynamic_gather(rng: random.Random) -> Program:
    numbers, result, operand, indices, sizes = _gathered(rng)
    text = f'"stablehlo.dynamic_gather"({{}}, {{}}, {{}}) {{{{{numbers}}}}} : ({{types}}) -> {{result}}'
    return Program(text, result, operand, indices, vector(sizes))


MAKERS: dict[str, Callable[[random.Random], Program]] = {
    "stablehlo.broadcast_in_dim": broadcast_in_dim,
    "stablehlo.concatenate": concatenate,
    "stablehlo.dynamic_broadcast_in_dim": dynamic_broadcast_in_dim,
    "stablehlo.dynamic_gather": dynamic_gather,
    "stablehlo.dynamic_pad": dynamic_pad,
    "stablehlo.dynamic_reshape": dynamic_reshape,
    "stablehlo.dynamic_slice": dynamic_slice,
    "stablehlo.dynamic_update_slice": dynamic_update_slice,
    "stablehlo.gather": gather,
    "stablehlo.pad": pad,
    "stablehlo.real_dynamic_slice": real_dynamic_slice,
    "stablehlo.reshape": reshape,
    "stablehlo.reverse": reverse,
    "stablehlo.slice": slice_,
    "stablehlo.transpose": transpose,
}


@pytest.fixture(autouse=True)
def _context() -> Iterator[None]:
    with make_context(), ir.Location.unknown():
        yield


def parsed(program: Program) -> tuple[ir.Module, ir.OpView]:
    module = ir.Module.parse(program.text)
    operations = module.body.operations[0].regions[0].blocks[0].operations
    return module, operations[len(operations) - 2]


@pytest.fixture(scope="module", name="interpreter")
def _interpreter() -> Iterator[Interpreter]:
    found = Interpreter()
    yield found
    found.close()


def programs(name: str) -> Iterator[Program]:
    return (MAKERS[name](random.Random(seed)) for seed in range(PROGRAMS))


# ---- tests -------------------------------------------------------------------------------------------------------


def test_every_map_is_tested() -> None:
    assert set(MAKERS) == set(INDEX_MAPS)


def expected_of(name: str, program: Program, interpreter: Interpreter, like: np.ndarray) -> np.ndarray | None:
    """The interpreter's result; NumPy's of the one op that the interpreter does not know."""
    if name == "stablehlo.real_dynamic_slice":
        whole, *bounds = program.operands
        return whole[tuple(slice(*map(int, axis)) for axis in zip(*bounds, strict=True))]
    found = interpreter.run(program.text, program.arguments, [like])
    return None if found is None else found[0]


@pytest.mark.parametrize("name", MAKERS)
def test_a_map_gives_what_the_interpreter_gives(name: str, interpreter: Interpreter) -> None:
    compared = 0
    for program in programs(name):
        module, op = parsed(program)
        assert op.operation.name == name
        found = Evaluator(op, program.operands).run()
        del module
        expected = expected_of(name, program, interpreter, found)
        if expected is not None:
            compared += 1
            np.testing.assert_array_equal(found, expected, err_msg=program.text)
    assert 2 * compared > PROGRAMS


@pytest.mark.parametrize("name", MAKERS)
def test_an_axis_that_is_followed(name: str) -> None:
    """Element i along the axis reaches element i of the result, and no other."""
    followed = 0
    for program in programs(name):
        module, op = parsed(program)
        first = program.operands[0]
        before = Evaluator(op, program.operands).run()
        for axis, size in enumerate(first.shape):
            target = result_axis(index_map_of(op), [axis, *[None] * (len(program.operands) - 1)])
            if target is None:
                continue
            followed += 1
            for row in range(size):
                changed = first.copy()
                np.moveaxis(changed, axis, 0)[row] += 1000
                after = Evaluator(op, [changed, *program.operands[1:]]).run()
                same = np.moveaxis(after == before, target, 0)
                assert all(same[other].all() for other in range(len(same)) if other != row), program.text
        del module
    assert followed
