# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks of words that the host program fills for the runtime, entry by entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shlo_disc.errors import CompilerError
from shlo_disc.runtime import c_declarations
from shlo_disc.shape_dialect.dialect.host import KernelUse
from shlo_disc.shape_dialect.dialect.problems import MatrixProduct
from shlo_disc.shape_dialect.symbolic.expr import Expr


@dataclass(frozen=True)
class Buffer:
    """The address of operand `number` of the op; null for -1."""

    number: int


@dataclass(frozen=True)
class Symbol:
    """The address of a function; null for ""."""

    name: str


@dataclass(frozen=True)
class Word:
    """The address of another word of the block; null for -1."""

    number: int


@dataclass(frozen=True)
class Runtime:
    """The address of the runtime."""


Entry = Expr | int | Buffer | Symbol | Word | Runtime
"""A word of a block: a size, or an address."""

Entries = Mapping[str, "Entry | Sequence[Entry]"]


def sizes_of_product(problem: MatrixProduct) -> dict[str, Entry | Sequence[Entry]]:
    """The sizes and strides of one matrix, in which the blocks of all targets agree."""
    m, n, k = problem.m, problem.n, problem.k
    return {
        "m": m.size,
        "n": n.size,
        "k": k.size,
        "a_m": m.lhs,
        "a_k": k.lhs,
        "b_k": k.rhs,
        "b_n": n.rhs,
        "c_m": m.result,
    }


def laid_out(struct: c_declarations.Struct, entries: Entries) -> list[Entry]:
    """The words of a structure. Raises CompilerError where a field is missing, or has another number of elements."""
    if list(entries) != list(struct.fields):
        raise CompilerError(f"host: {struct.name} is told {list(entries)} instead of {list(struct.fields)}")
    words: list[Entry] = []
    for field in struct.fields.values():
        entry = entries[field.name]
        values = list(entry) if isinstance(entry, Sequence) else [entry]
        if len(values) != field.count * field.words:
            raise CompilerError(f"host: {struct.name}.{field.name} is told {len(values)} words")
        words += values
    return words


def kernel_arguments(use: KernelUse, buffers: Sequence[int], given: Entry = 0) -> list[Entry]:
    """Those of a kernel: its buffers, and its sizes, `given` where the runtime tells them."""
    sizes: list[Entry] = list(use.sizes)
    for place in use.given:
        sizes.insert(place, given)
    return [*map(Buffer, buffers), *sizes]
