# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Right-hand sides of products that can be packed once: arguments and constants of static size.

A packed form has a place in the table of buffers, behind the constants. It is null in a call whose weights are not
known to be those of the last call; the runtime fills it for constants, for arguments that were bound, and for arrays
that come again as they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from shlo_disc.dtypes import BY_MLIR
from shlo_disc.lowering_cpu.gemm_format import FORMATS
from shlo_disc.lowering_cpu.gemm_kernel import Tile
from shlo_disc.lowering_cpu.steps import (
    AttentionCall,
    Branch,
    Clear,
    ConvolutionCall,
    Copy,
    DotCall,
    Launch,
    LibraryCall,
    Loop,
    Place,
    Product,
    ReadSizes,
    Step,
)
from shlo_disc.shape_dialect.dialect.problems import MatrixProduct

FEWEST_ELEMENTS = 1024
"""Smaller right-hand sides are packed, if at all, in less time than it takes to look for their packed form."""


@dataclass
class Packs:
    """The packed forms of one program: `first` is the index of the first in the table of buffers.

    `temporary` are the indices of results, which are never packed.
    """

    first: int
    temporary: range
    rows: list[dict[str, Any]] = field(default_factory=list)

    def place(self, product: MatrixProduct, right: Place, tile: Tile) -> Place | None:
        """Where the packed form of a product's right-hand side is, or None when it cannot have one."""
        if not self.is_packable(product, right):
            return None
        k, n, k_stride, n_stride = _sizes(product)
        row = {
            "buffer": right.index, "dtype": BY_MLIR[product.element].name, "format": FORMATS.index(tile.format), "k": k,
            "n": n, "k_stride": k_stride, "n_stride": n_stride, "columns": tile.columns,
        }  # fmt: skip
        if row not in self.rows:
            self.rows.append(row)
        return Place("buffer", self.first + self.rows.index(row))

    def is_packable(self, product: MatrixProduct, right: Place) -> bool:
        """Whether a product's right-hand side can have a packed form."""
        if right.space != "buffer" or right.index in self.temporary or product.batch:
            return False
        k, n, *strides = _sizes(product)
        return k is not None and n is not None and None not in strides and k * n >= FEWEST_ELEMENTS

    def header(self, steps: Sequence[Step]) -> dict[str, Any]:
        """What the artifact's header says: the packed forms, and the buffers that nothing reads where they are used."""
        read = set(_buffers_read(steps))
        only = sorted({row["buffer"] for row in self.rows} - read)
        return {"packs": self.rows, "packed_only": only}


def _sizes(product: MatrixProduct) -> list[int | None]:
    return [size.constant for size in (product.k.size, product.n.size, product.k.rhs, product.n.rhs)]


def _buffers_read(steps: Sequence[Step]) -> Iterator[int]:
    """The buffers that steps touch, packed right-hand sides aside."""
    for step in steps:
        if isinstance(step, Loop):
            yield from _buffers_read([*step.before, *step.body])
        elif isinstance(step, Branch):
            for branch in step.branches:
                yield from _buffers_read(branch)
        yield from (place.index for place in _places_of(step) if place.space == "buffer")


def _places_of(step: Step) -> Sequence[Place]:
    if isinstance(step, Launch):
        return step.buffers
    if isinstance(step, DotCall):
        return [place for product in step.products for place in _places_of_product(product)]
    if isinstance(step, ConvolutionCall):
        return _places_of(step.product)
    if isinstance(step, AttentionCall):
        return [*step.buffers, *(place for place in step.row_buffers if place is not None)]
    if isinstance(step, LibraryCall):
        return [place for place, _ in step.tensors]
    if isinstance(step, Copy):
        return (step.source, step.target)
    if isinstance(step, Clear):
        return (step.target,)
    if isinstance(step, ReadSizes):
        return (step.source,)
    return (step.condition,) if isinstance(step, Loop) else (step.index,)


def _places_of_product(product: Product) -> Iterator[Place]:
    """What a product touches when it finds the packed form of its right-hand side, if that may have one."""
    places = [product.lhs, product.result, None if product.packed is not None else product.rhs]
    places += [] if product.epilogue is None else product.epilogue.buffers
    yield from (place for place in places if place is not None)
