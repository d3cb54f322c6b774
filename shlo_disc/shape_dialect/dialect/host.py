# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parameters of kernels and of the ops of `disc_host`: one dataclass an op, in its attribute `call`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from shlo_disc.shape_dialect.dialect.library import LibraryFunction
from shlo_disc.shape_dialect.dialect.ops import KernelAttr
from shlo_disc.shape_dialect.dialect.parts import Part
from shlo_disc.shape_dialect.dialect.problems import (
    AttentionProblem,
    ConvolutionProduct,
    GradientProblem,
    MatrixProduct,
)
from shlo_disc.shape_dialect.dialect.records import FunctionName, from_attribute, read_typed, to_attribute
from shlo_disc.shape_dialect.dialect.remembered import remembered
from shlo_disc.shape_dialect.dialect.types import DYNAMIC, Dims
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import ONE, ZERO, Expr
from shlo_disc.shape_dialect.symbolic.facts import Relation

KERNEL = "disc.kernel"
"""On a call of a planned module: the kernel that it is."""

DYNAMIC_DIMS = "disc.dynamic_dims"
"""On a kernel of a CPU: for each `?` of its buffers' types, in order, the number of the size that it is."""

RUNTIME_SIZE = "disc.runtime_size"
"""On a kernel of a CPU that asks whether the run has ended: the number of the size that is the runtime's address."""

KERNELS = "kernels"
"""The name of the module, within a program's, in which its kernels are."""

CALL = "call"
"""The attribute with what an op of `disc_host` is told."""

GUARDS = "guards"
"""The attribute with the choices that a call's kernels make at run time, an array; for information only."""

FUSION = "fusion"
"""The name of the fusion that an op runs, a string; its kind is `kind`."""


# ---- kernels --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Guard:
    """A choice that generated code makes at run time, because no fact decides it: `variant` if `conditions` hold.

    of_size: the conditions depend on how large a call is; they are not constraints that a program could state.
    """

    variant: str
    otherwise: str
    conditions: tuple[Relation, ...]
    of_size: bool = False

    def __str__(self) -> str:
        conditions = [str(c) for c in self.conditions if c.symbols() or not c.evaluate({})]
        return f"{self.variant} where {' and '.join(conditions)}, else {self.otherwise}"

    def substitute(self, meaning: Mapping[str, Expr]) -> Guard:
        """The guard over other names."""
        return replace(self, conditions=tuple(c.substitute(meaning) for c in self.conditions)) if meaning else self

    def choice(self, dims: Mapping[str, int]) -> str:
        """The variant that is chosen at values of the symbols."""
        return self.variant if all(c.evaluate(dims) for c in self.conditions) else self.otherwise


@dataclass(frozen=True)
class Panels:
    """An operand of a kernel that reads it from panels where its address is null: its packed form is a buffer of the
    kernel as well, behind those of its operands and results. columns: the number of the size that is the columns of a
    panel, which a call leaves out of its sizes and the host program has among them.
    """

    operand: int
    columns: int


@dataclass(frozen=True)
class KernelUse:
    """A kernel, a function of the module `@kernels`, with its arguments besides the buffers.

    sizes: its arguments after the buffers and the range of work. given: the positions among these of values that the
    runtime fills in during the call and that `sizes` leaves out; for a kernel that is launched alone, the address of
    the runtime. panels: operands that it may have to read from the panels of a packed form. items: the amount of work,
    of which threads take at least `grain` at a time; on GPUs, an item is a block of `threads`.
    """

    kernel: FunctionName
    sizes: Dims
    items: Expr
    grain: Expr
    given: tuple[int, ...] = ()
    threads: int = 0
    panels: tuple[Panels, ...] = ()


TILE_REGISTERS = 2
"""Vector registers in a row of a tile, unless a schedule says otherwise."""


@dataclass(frozen=True)
class ChosenKernel:
    """The attribute `disc.kernel` of a call: the kernel, and its choices at run time.

    clears: the numbers of the results that must be zero before it runs. registers: those in a row of the tiles of the
    product or attention that it is a part of.
    """

    use: KernelUse
    guards: tuple[Guard, ...] = ()
    clears: tuple[int, ...] = ()
    registers: int = TILE_REGISTERS


def kernel_of(call: ir.OpView | ir.Operation) -> ChosenKernel:
    """The kernel that a call is. Raises Malformed."""
    return read_typed(ChosenKernel, call.attributes[KERNEL], KernelAttr, "choice", KERNEL)


def kernel_attribute(chosen: ChosenKernel) -> ir.Attribute:
    """The attribute `disc.kernel`."""
    return KernelAttr.get(to_attribute(chosen))


# ---- what the ops are told ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Check:
    """A condition on sizes and the text of its error. `kind` is that of the artifact's header.

    In the text, `{i}` stands for the value of operand i.
    """

    kind: str
    relation: Relation
    message: str
    operands: Dims = ()

    def symbols(self) -> set[str]:
        """The symbols that the condition and its text name."""
        return {*self.relation.symbols(), *(name for e in self.operands for name in e.symbols())}


@dataclass(frozen=True)
class Plan:
    """The plan of a segment: the bytes of its arena, and its checks.

    reads: the symbols that are read from data for this segment. writes: the results that this segment is the first to
    write.
    """

    arena: Expr
    checks: tuple[Check, ...]
    writes: tuple[int, ...]
    reads: tuple[str, ...] = ()


@dataclass(frozen=True)
class Size:
    """A size."""

    value: Expr


@dataclass(frozen=True)
class Constant:
    """The name of the `memref.global`."""

    name: FunctionName


@dataclass(frozen=True)
class PackedFormat:
    """The computation of matrix products of an element type: `multiplier` multiplies the words of a packed form."""

    element: str
    multiplier: str


@dataclass(frozen=True)
class GemmTile:
    """The micro-kernel of a GEMM: at most `rows` by `columns` accumulators, `registers` of `lanes` for each row."""

    format: PackedFormat
    lanes: int
    rows: int
    is_x86: bool = False
    registers: int = TILE_REGISTERS

    @property
    def columns(self) -> int:
        """Columns of a tile."""
        return self.registers * self.lanes

    @property
    def name(self) -> str:
        """The function that computes a tile of any number of rows."""
        name = f"gemm_{self.format.multiplier}"
        return name if self.registers == TILE_REGISTERS else f"{name}_by_{self.registers}"


@dataclass(frozen=True)
class Packed:
    """A right-hand side of `k` by `n` elements of a type, packed for a tile."""

    element: str
    tile: GemmTile
    k: int
    n: int
    k_stride: int
    n_stride: int


@dataclass(frozen=True)
class GemmEpilogue:
    """The kernel that reads the accumulators of a product. `operands` are operand numbers of the op, -1 for these.

    If the kernel reads tiles (`use.given` has their step, first column and end column), the accumulators have no
    buffer; else it reads whole rows of the result of the product.
    """

    use: KernelUse
    operands: tuple[int, ...]


@dataclass(frozen=True)
class GemmProduct:
    """One product of a GEMM. Its operands are those of the op; `result` and `packed` are -1 if there is none."""

    problem: MatrixProduct
    result: int = -1
    packed: int = -1
    epilogue: GemmEpilogue | None = None


@dataclass(frozen=True)
class Gemm:
    """Products that share a left-hand side."""

    tile: GemmTile
    products: tuple[GemmProduct, ...]


PRECISIONS = ("full", "tf32", "tf32x3")
"""Precisions of a GEMM's sides on a device: all of their bits, those of TF32, or two parts of TF32 each, in three
products."""


@dataclass(frozen=True)
class LibraryEpilogue:
    """An epilogue that a library computes itself. The library writes operand `result` only.

    bias: an operand to add, with one element for each column, of the element type of the result; -1 for none. rounded:
    the result has the element type of both sides, to which the library rounds once, after the addition.
    """

    result: int
    bias: int = -1
    rounded: bool = False


@dataclass(frozen=True)
class DeviceEpilogue:
    """A loop over the elements of the result of a product, which is row-major.

    kernel: the loop as a separate kernel. operands: its buffers, as operand numbers of the op; number `sums` of these
    is the result of the product. library: the same epilogue, if a library can compute it.
    """

    kernel: KernelUse
    operands: tuple[int, ...]
    sums: int
    library: LibraryEpilogue | None = None


@dataclass(frozen=True)
class DeviceProduct:
    """One row-major product on a GPU: operands 0 and 1 are its sides, operand 2 is its result.

    A library computes it or, if no library supports it, `kernel`. precision: one of `PRECISIONS`, for
    f32 elements. rounded: the result has the element type of both sides, to which each sum is rounded once.

    epilogue: the ops after the product. `kernel` computes them too, and does not store the sums: its buffers are both
    sides, and those of the epilogue except the sums. After a library, which stores the sums, the kernel of the epilogue
    runs.

    narrow: the operands that `kernel` reads in place of operand 1: a side of narrow integers, its scales and zero
    points. written: 1 where operand 1 has that side as floats, for a library; 0 where there is only the kernel.

    partials: the operand that is the scratch memory of `kernel`, its last buffer, or -1 for none. parts: how many parts
    of the depth blocks have, behind the problem the next size of `kernel`; 0 where they have all of it.
    """

    problem: MatrixProduct
    kernel: KernelUse
    precision: str = "full"
    rounded: bool = False
    epilogue: DeviceEpilogue | None = None
    narrow: tuple[int, ...] = ()
    written: Expr = ONE
    partials: int = -1
    parts: Expr = ZERO

    @property
    def kernel_operands(self) -> tuple[int, ...]:
        """The operands that are the buffers of `kernel`."""
        memory, sides = () if self.partials < 0 else (self.partials,), (0, *(self.narrow or (1,)))
        if self.epilogue is None:
            return (*sides, 2, *memory)
        others = (number for i, number in enumerate(self.epilogue.operands) if i != self.epilogue.sums)
        return (*sides, *others, *memory)

    @property
    def kernel_numbers(self) -> Dims:
        """The first sizes of `kernel`: those of the problem, and the number of parts."""
        return (*self.problem.numbers, *(() if self.partials < 0 else (self.parts,)))


@dataclass(frozen=True)
class ConvolutionCall:
    """A convolution as a GEMM. `gemm` repeats its product, with the operand numbers of the op."""

    tile: GemmTile
    problem: ConvolutionProduct
    gemm: GemmProduct


@dataclass(frozen=True)
class AttentionCall:
    """An attention; operands are numbered as in the op. `scratch` holds a row of scores.

    rows: the kernel that turns scores into weights; `row_operands` are its buffers, -1 for the scores and for the
    weights after them. `rows.given` has the number of columns that count, if a mask hides the others, and before it
    the first of them, if they do not begin with the row.
    """

    tile: GemmTile
    problem: AttentionProblem
    result: int
    scratch: int
    rows: KernelUse
    row_operands: tuple[int, ...]


@dataclass(frozen=True)
class AttentionGradientCall:
    """The gradients of an attention; operands are numbered as in the op. `scratch` holds a row in each of `buffers`.

    rows, gradient_rows: kernels, whose buffers are `row_operands` and `gradient_operands`, -1 - n for buffer n of a
    block of rows: 0 the scores, `weights` the weights, the last two upstream scores and score gradients. `given` of
    both has the first column that counts, and the number of those up to the last one.
    """

    tile: GemmTile
    problem: GradientProblem
    scratch: int
    rows: KernelUse
    gradient_rows: KernelUse
    row_operands: tuple[int, ...]
    gradient_operands: tuple[int, ...]
    weights: int
    buffers: int


@dataclass(frozen=True)
class LibraryCall:
    """A library function: its parameters, and the sizes of each operand and result."""

    target: str
    function: LibraryFunction
    dims: tuple[Dims, ...]


@dataclass(frozen=True)
class Bytes:
    """The number of bytes that are copied or cleared."""

    bytes: Expr


@dataclass(frozen=True)
class Bind:
    """The symbols whose values are in a tensor of integers of type `element`."""

    symbols: tuple[str, ...]
    element: ir.Type = field(hash=False)


RECORDS: dict[str, type] = {
    "disc_host.plan": Plan,
    "disc_host.size": Size,
    "disc_host.constant": Constant,
    "disc_host.part": Part,
    "disc_host.packed": Packed,
    "disc_host.launch": KernelUse,
    "disc_host.gemm": Gemm,
    "disc_host.product": DeviceProduct,
    "disc_host.convolution": ConvolutionCall,
    "disc_host.attention": AttentionCall,
    "disc_host.attention_gradient": AttentionGradientCall,
    "disc_host.library": LibraryCall,
    "disc_host.copy": Bytes,
    "disc_host.clear": Bytes,
    "disc_host.bind": Bind,
}
"""The dataclass of each op's `call`."""


# ---- reading and writing --------------------------------------------------------------------------------------------

_READERS: dict[type, Callable[[ir.Attribute], Any]] = {
    cls: remembered(partial(from_attribute, cls)) for cls in set(RECORDS.values())
}


def call_of(op: ir.OpView | ir.Operation) -> Any:
    """The parameters of an op of `disc_host`, one of `RECORDS`. Raises Malformed."""
    return _READERS[RECORDS[op.operation.name]](op.attributes[CALL])


def buffer_type() -> ir.Type:
    """`memref<?xi8>`."""
    return ir.MemRefType.get([DYNAMIC], ir.IntegerType.get_signless(8))


_written = remembered(to_attribute)
"""The attribute of parameters that many calls have alike."""


def write_op(
    name: str,
    call: Any,
    operands: Sequence[ir.Value] = (),
    results: Sequence[ir.Type] = (),
    more: dict[str, ir.Attribute] | None = None,
) -> ir.Operation:
    """Create an op of `disc_host` at the insertion point."""
    written = _written(call) if isinstance(call, Gemm | ConvolutionCall) else to_attribute(call)
    attributes = {CALL: written, **(more or {})}
    return ir.Operation.create(f"disc_host.{name}", list(results), list(operands), attributes)


__all__ = [
    "CALL", "DYNAMIC_DIMS", "FUSION", "GUARDS", "KERNEL", "KERNELS", "PRECISIONS", "RECORDS", "RUNTIME_SIZE",
    "TILE_REGISTERS", "AttentionCall", "AttentionGradientCall", "Bind", "Bytes", "Check", "ChosenKernel", "Constant",
    "ConvolutionCall", "DeviceEpilogue", "DeviceProduct", "Gemm", "GemmEpilogue", "GemmProduct", "GemmTile",
    "Guard", "KernelUse", "LibraryCall", "LibraryEpilogue", "Packed", "PackedFormat", "Plan", "Size",
    "buffer_type", "call_of", "kernel_attribute", "kernel_of", "write_op",
]  # fmt: skip
