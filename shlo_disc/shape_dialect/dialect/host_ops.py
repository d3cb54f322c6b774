# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `disc_host` dialect: what a program does when it is called, in the order in which it does it.

The stage `kernels` writes on each call which kernel it is; the stage `host` makes a program of that. A segment of the
program is a function over buffers, `memref<?xi8>`: those of all arguments, then of all results, then the segments'
arenas. Parts of an arena are `memref.view`s of it, loops and branches are `scf`; the rest are ops of this dialect. What
an op is told stands in one attribute, `call`, a dictionary with one dataclass an op.

| op | operands | meaning |
|--|--|--|
| `disc_host.plan` | | what a segment computes and checks before it runs |
| `disc_host.size` | | a size, as an `index` |
| `disc_host.constant` | | the buffer of a `memref.global` |
| `disc_host.part` | a buffer, integers | the buffer from where the integers say on |
| `disc_host.packed` | a right-hand side | its packed form, where the runtime has one |
| `disc_host.launch` | inputs, outputs | runs a kernel |
| `disc_host.gemm`, `.convolution`, `.attention`, `.attention_gradient` | as the call says | one call of the runtime |
| `disc_host.product` | two sides, result, those of an epilogue | a matrix product on a device |
| `disc_host.library` | inputs, outputs | calls a function of a library |
| `disc_host.copy` | from, to | copies bytes |
| `disc_host.clear` | to | writes zeros |
| `disc_host.bind` | an integer tensor | its elements are the values of symbols |
"""

from collections.abc import Sequence
from typing import Any

from shlo_disc.shape_dialect.dialect.ops import make_once, verify_by
from shlo_disc.shape_dialect.mlir import ext, ir


class DiscHost(ext.Dialect, name="disc_host"):
    """The dialect object; `context.py` loads it."""


class PlanOp(DiscHost.Operation, name="plan"):
    """The sizes that a segment computes, and its checks, before it runs. The n-th plan belongs to the n-th segment."""

    call: ir.DictAttr
    verify_invariants = staticmethod(verify_by)


class SizeOp(DiscHost.Operation, name="size", traits=[ext.Pure]):
    """A size that the plan of the segment has computed."""

    call: ir.DictAttr
    result: ir.OpResult[Any]
    verify_invariants = staticmethod(verify_by)


class ConstantOp(DiscHost.Operation, name="constant", traits=[ext.Pure]):
    """The buffer of a constant."""

    call: ir.DictAttr
    result: ir.OpResult[Any]
    verify_invariants = staticmethod(verify_by)


class PartOp(DiscHost.Operation, name="part", traits=[ext.Pure]):
    """A buffer from a place on that sizes, or integers in other buffers when it is read, say."""

    buffers: Sequence[ext.Operand[Any]]
    call: ir.DictAttr
    result: ir.OpResult[Any]
    verify_invariants = staticmethod(verify_by)


class PackedOp(DiscHost.Operation, name="packed", traits=[ext.Pure]):
    """The packed form of the right-hand side of matrix products, or nothing if a call has none."""

    rhs: ext.Operand[Any]
    call: ir.DictAttr
    result: ir.OpResult[Any]
    verify_invariants = staticmethod(verify_by)


class LaunchOp(DiscHost.Operation, name="launch"):
    """Runs a kernel on its inputs and outputs."""

    buffers: Sequence[ext.Operand[Any]]
    call: ir.DictAttr
    verify_invariants = staticmethod(verify_by)


class GemmOp(DiscHost.Operation, name="gemm"):
    """Matrix products that share a left-hand side, each with its epilogue."""

    buffers: Sequence[ext.Operand[Any]]
    call: ir.DictAttr
    verify_invariants = staticmethod(verify_by)


class ProductOp(DiscHost.Operation, name="product"):
    """A matrix product on a GPU with its epilogue, computed by a library, a kernel, or both."""

    buffers: Sequence[ext.Operand[Any]]
    call: ir.DictAttr
    verify_invariants = staticmethod(verify_by)


class ConvolutionOp(DiscHost.Operation, name="convolution"):
    """A convolution that the runtime computes as a GEMM, or by Winograd's algorithm."""

    buffers: Sequence[ext.Operand[Any]]
    call: ir.DictAttr
    verify_invariants = staticmethod(verify_by)


class AttentionGradientOp(DiscHost.Operation, name="attention_gradient"):
    """The gradients of an attention in query, key and value, for which its scores are computed again."""

    buffers: Sequence[ext.Operand[Any]]
    call: ir.DictAttr
    verify_invariants = staticmethod(verify_by)


class AttentionOp(DiscHost.Operation, name="attention"):
    """Two matrix products and the row kernel between them."""

    buffers: Sequence[ext.Operand[Any]]
    call: ir.DictAttr
    verify_invariants = staticmethod(verify_by)


class LibraryOp(DiscHost.Operation, name="library"):
    """A call of a library function on whole buffers."""

    buffers: Sequence[ext.Operand[Any]]
    call: ir.DictAttr
    verify_invariants = staticmethod(verify_by)


class CopyOp(DiscHost.Operation, name="copy"):
    """Copies the first bytes of a buffer to another."""

    source: ext.Operand[Any]
    target: ext.Operand[Any]
    call: ir.DictAttr
    verify_invariants = staticmethod(verify_by)


class ClearOp(DiscHost.Operation, name="clear"):
    """Writes zeros to the first bytes of a buffer."""

    target: ext.Operand[Any]
    call: ir.DictAttr
    verify_invariants = staticmethod(verify_by)


class BindOp(DiscHost.Operation, name="bind"):
    """Reads the values of symbols from data, for the plans of later segments."""

    source: ext.Operand[Any]
    call: ir.DictAttr
    verify_invariants = staticmethod(verify_by)


make_once(DiscHost)
