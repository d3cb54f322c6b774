# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The steps of a host program: what is called in which order, with which buffers and sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from shlo_disc.lowering_cpu.gemm_kernel import Tile
from shlo_disc.shape_dialect.symbolic.expr import Expr


@dataclass(frozen=True)
class Place:
    """Where a buffer is at run time: `space` is "buffer" with an index, or "arena" with an offset in bytes.

    The index of an arena is its segment's number.
    """

    space: str
    index: int = 0
    offset: Expr = field(default_factory=lambda: Expr.const(0))


@dataclass(frozen=True)
class Launch:
    """One kernel launch: buffers, then sizes, over [0, total) in ranges of at least `grain`."""

    kernel: str
    buffers: tuple[Place, ...]
    sizes: tuple[Expr, ...]
    total: Expr
    grain: Expr


@dataclass(frozen=True)
class Epilogue:
    """The kernel that takes up a product's sums. Its buffers, of which the sums' own may have no place, then its sizes.

    `sums` and `tile` are the words in which it is told where a tile of sums is and which one it is; they are None for
    a kernel that takes whole rows from where the product has written them.
    """

    kernel: str
    buffers: tuple[Place | None, ...]
    sizes: tuple[Expr, ...]
    grain: Expr
    sums: int | None
    tile: int | None


@dataclass(frozen=True)
class Product:
    """One product of a call of the runtime's dot: the fields of DiscDot before the pointers, and its buffers.

    `packed` is where the packed form of rhs may be. There is no result where only the epilogue sees it.
    """

    words: tuple[Expr, ...]
    lhs: Place
    rhs: Place
    result: Place | None
    packed: Place | None = None
    epilogue: Epilogue | None = None


@dataclass(frozen=True)
class DotCall:
    """One call of the runtime's dot: products of one left-hand side."""

    products: tuple[Product, ...]
    tile: Tile

    @property
    def name(self) -> str:
        """The functions that it runs."""
        epilogues = [p.epilogue.kernel for p in self.products if p.epilogue is not None]
        return "+".join(dict.fromkeys([self.tile.name, *epilogues]))


@dataclass(frozen=True)
class ConvolutionCall:
    """One call of the runtime's convolution: its product, whose lhs is the input, and the further sizes.

    `may_transform`: Winograd's algorithm is allowed.
    """

    product: DotCall
    words: tuple[Expr, ...]
    may_transform: bool

    @property
    def name(self) -> str:
        """The functions that it runs."""
        return self.product.name


@dataclass(frozen=True)
class AttentionCall:
    """One call of the runtime's attention: the fields of DiscAttention before the pointers, then those.

    `buffers`: query, key, value, result and room for a row of scores. `rows` is the row kernel, with its buffers (None:
    the scores) and sizes (None: how many columns count). `causal`: offset, reach and magnitude of its mask.
    """

    words: tuple[Expr, ...]
    buffers: tuple[Place, ...]
    tile: Tile
    rows: str
    row_buffers: tuple[Place | None, ...]
    row_sizes: tuple[Expr | None, ...]
    causal: tuple[Expr, Expr, Expr]


@dataclass(frozen=True)
class LibraryCall:
    """One call of a library function: its index in the header, and each operand and result with its sizes."""

    index: int
    tensors: tuple[tuple[Place, tuple[Expr, ...]], ...]


@dataclass(frozen=True)
class Copy:
    """The contents of one buffer to another."""

    source: Place
    target: Place
    bytes: Expr


@dataclass(frozen=True)
class Clear:
    """Zeros in all of a buffer."""

    target: Place
    bytes: Expr


@dataclass(frozen=True)
class Loop:
    """Steps that compute the condition, a byte at `condition`; while it is not 0 the body's steps follow."""

    before: tuple[Step, ...]
    condition: Place
    body: tuple[Step, ...]


@dataclass(frozen=True)
class Branch:
    """The steps of one branch, chosen by an integer of `bits` at `index`; the last one for any other index."""

    index: Place
    bits: int
    branches: tuple[tuple[Step, ...], ...]


@dataclass(frozen=True)
class ReadSizes:
    """Reads the elements of an integer tensor, of `bits` each, as the values of the symbols at `positions`."""

    source: Place
    bits: int
    is_unsigned: bool
    positions: tuple[int, ...]


Step = Launch | DotCall | ConvolutionCall | AttentionCall | LibraryCall | Copy | Clear | Loop | Branch | ReadSizes


def count_steps(steps: Sequence[Step]) -> int:
    """How many of `steps`, and of those inside of loops and branches, have a number: all that do some work."""
    count = 0
    for step in steps:
        if isinstance(step, Loop):
            count += count_steps(step.before) + count_steps(step.body)
        elif isinstance(step, Branch):
            count += sum(map(count_steps, step.branches))
        else:
            count += not isinstance(step, ReadSizes)
    return count
