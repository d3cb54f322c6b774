# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The symbols of a program, which are sizes of its arguments, and the numbers that count as its constants."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from shlo_disc.shape_dialect.mlir import ir

from .relations import Relations
from .samples import Samples

_LARGEST_CONSTANT = 1 << 12  # of those that count as strides, windows, or sizes that others are rounded to


def choose_symbols(samples: Samples, relations: Relations) -> list[int]:
    """Choose the sizes of the arguments that change, and those before them in the same argument, one of each class.

    A size before one that changes is no symbol if an argument that does not change has it, too: that may be a weight.
    The first size of both is none of a weight, but counts the elements of a batch.
    """
    arguments = _argument_sizes(samples, relations)
    moving = [[axis for axis, n in enumerate(dims) if not samples.is_fixed(n)] for dims in arguments]
    free = [(n, axis in axes) for dims, axes in zip(arguments, moving, strict=True) if axes
            for axis, n in enumerate(dims[: axes[-1] + 1]) if min(samples.values[n])]  # fmt: skip
    _stretch(samples, relations, [number for number, _ in free])
    still = [dims for dims, axes in zip(arguments, moving, strict=True) if not axes]
    root = relations.root
    first, others = {root(dims[0]) for dims in still if dims}, {root(n) for dims in still for n in dims[1:]}
    batch = {root(dims[0]) for dims, axes in zip(arguments, moving, strict=True) if axes}
    chosen: dict[int, int] = {}
    for number, moves in free:
        is_weight = root(number) in others or (root(number) in first and root(number) not in batch)
        if moves or not is_weight:
            chosen.setdefault(root(number), number)
    return list(chosen.values())


def constants_of(samples: Samples, relations: Relations, symbols: Collection[int]) -> set[int]:
    """The numbers that are the same in all samples, such as strides; as one more, too, where they are holes.

    Those of symbols are not: that the samples have as many rows says nothing of columns.
    """
    root = relations.root
    free = {root(n) for n in symbols}
    functions = {n for position in samples.functions for n in samples.elements[position]}
    same = (n for n in range(len(samples.values)) if samples.is_fixed(n) and root(n) not in free and n not in functions)
    fixed = {samples.values[n][0] for n in same}
    holes = [n for (_, name), numbers in samples.attributes.items() if name == "interior_padding" for n in numbers]
    fixed |= {samples.values[n][0] + 1 for n in holes if samples.is_fixed(n)}
    return {n for n in fixed if 1 < n <= _LARGEST_CONSTANT}


def _argument_sizes(samples: Samples, relations: Relations) -> list[list[int]]:
    return [samples.dims.get(a, []) for a in relations.callee("main").regions[0].blocks[0].arguments]


def _stretch(samples: Samples, relations: Relations, free: Sequence[int]) -> None:
    """Decide which sizes of 1 are broadcast: not those that may be symbols, and not those that nobody wrote."""
    root, values = relations.root, samples.values
    pairs = [*relations.stretches, *_broadcasts(samples)]
    fixed = [n for dims in _argument_sizes(samples, relations) for n in dims if n not in free]
    joined = True
    while joined:
        joined = False
        symbols, ones = {root(n) for n in free}, {root(n) for n in [*relations.ones, *fixed]}
        for source, result in pairs:
            is_same = root(source) in symbols or root(source) not in ones
            if root(source) != root(result) and is_same and values[source] == values[result]:
                relations.join(source, result)
                joined = True


def _broadcasts(samples: Samples) -> Iterable[tuple[int, int]]:
    for op in samples.operations:
        if op.operation.name == "stablehlo.broadcast_in_dim":
            position = samples.position[op.operation]
            is_plain = position in samples.plain
            operand = samples.origin(op.operands[0]) if is_plain else op.operands[0]
            source, result = (samples.dims.get(v, []) for v in (operand, op.results[0]))
            source = samples.operands.get((position, 0), source)
            targets = ir.DenseI64ArrayAttr(op.attributes["broadcast_dimensions"])
            yield from ((source[axis], result[target]) for axis, target in enumerate(targets) if result)


__all__ = ["choose_symbols", "constants_of"]
