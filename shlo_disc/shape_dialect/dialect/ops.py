# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `disc` dialect: symbols, derived sizes and constraints at module level, shapes in the body.

| op | where | meaning |
|--|--|--|
| `disc.symbol` | module | a size chosen by the caller, or read from data: name, min, max, divisor, hints, data |
| `disc.dim` | module | a derived size; its name *is* its canonical expression, e.g. `@"2*b + 1"` |
| `disc.constraint` | module | a relation that every admissible call satisfies, with the text of its error |
| `disc.shape` | body | an integer tensor (rank 0 or 1) whose elements are sizes; the only shape arithmetic left |
| `disc.bind` | body | gives symbols the values of an integer tensor's elements: sizes that are read from data |
| `disc.nonzero` | body | the positions of the true elements of a mask; the result's size is a symbol read from data |
| `disc.piece` | body, from `plan` on | a part of an array, which products read where it lies |

Fusions are private functions with a `disc.kind` and calls to them: IRDL, which defines this dialect, gives all values
of a variadic operand group one type, so an op of ours could not take the inputs of a kernel.

Dynamic tensor types carry their sizes in the encoding: `tensor<?x?x768xf32, [@b, @s, 768]>`.
"""

from collections.abc import Callable, Sequence
from typing import Any

from shlo_disc.shape_dialect.mlir import ext, ir


def make_once(dialect: Any) -> None:
    """Have a dialect's IRDL made once in a process, and read for each context, which takes a quarter of the time."""
    make: Callable[[], ir.Module] = dialect._emit_module
    texts: list[str] = []

    def emit() -> ir.Module:
        if texts:
            return ir.Module.parse(texts[0])
        module = make()
        texts.append(str(module))
        return module

    dialect._emit_module = emit


class Disc(ext.Dialect, name="disc"):
    """The dialect object; `context.py` loads it."""


make_once(Disc)


LOCAL: dict[str, Callable[[ir.OpView], None]] = {}
"""Checks of each op of the dialect by itself, which raise ValueError; `verifier.py` fills it in."""


def verify_by(op: ir.OpView) -> bool:
    """Verify an op of ours by its check in `LOCAL`; MLIR calls this."""
    check = LOCAL.get(op.operation.name)
    try:
        if check is not None:
            check(op)
    except ValueError as error:
        op.location.emit_error(str(error))
        return False
    return True


class FusionAttr(Disc.Attribute, name="fusion"):
    """The description of a fusion: `#disc.fusion<"kind", {entries}>`, see `fusion.py`."""

    kind: ir.StringAttr
    roles: ir.DictAttr


class BufferAttr(Disc.Attribute, name="buffer"):
    """The buffer of a value: `#disc.buffer<"arena", {entries}>` or `<"result", {entries}>`, see `buffers.py`."""

    space: ir.StringAttr
    place: ir.DictAttr


class KernelAttr(Disc.Attribute, name="kernel"):
    """The kernel that a call is: `#disc.kernel<{entries}>`, see `host.py`."""

    choice: ir.DictAttr


class LibraryAttr(Disc.Attribute, name="library"):
    """The data that a call of a library function passes: `#disc.library<{entries}>`, see `library.py`."""

    call: ir.DictAttr


class WindowAttr(Disc.Attribute, name="window"):
    """Windows whose parameters are sizes: `#disc.window<{entries}>`, see `window.py`."""

    window: ir.DictAttr


class SymbolOp(Disc.Operation, name="symbol"):
    """A size that the caller chooses, or that a `disc.bind` reads from data."""

    name: ir.StringAttr
    verify_invariants = staticmethod(verify_by)


class DimOp(Disc.Operation, name="dim"):
    """A derived size, named by its canonical expression over the symbols."""

    name: ir.StringAttr
    verify_invariants = staticmethod(verify_by)


class ConstraintOp(Disc.Operation, name="constraint"):
    """`lhs relation rhs` over symbols, e.g. "s <= 512"."""

    relation: ir.StringAttr
    verify_invariants = staticmethod(verify_by)


class SignatureOp(Disc.Operation, name="signature"):
    """The calling convention of the program."""

    name: ir.StringAttr
    verify_invariants = staticmethod(verify_by)


class ShapeOp(Disc.Operation, name="shape", traits=[ext.Pure]):
    """The sizes `dims` as an integer tensor of rank 1, or of rank 0 when there is a single one."""

    dims: ir.ArrayAttr
    result: ir.OpResult[Any]
    verify_invariants = staticmethod(verify_by)


class BindOp(Disc.Operation, name="bind"):
    """The elements of `value` are the values of `symbols`, in row-major order. Uses of the symbols come later."""

    value: ext.Operand[Any]
    symbols: ir.ArrayAttr
    verify_invariants = staticmethod(verify_by)


class NonzeroOp(Disc.Operation, name="nonzero", traits=[ext.Pure]):
    """The positions of the true elements of a vector `mask`, in order."""

    mask: ext.Operand[Any]
    result: ir.OpResult[Any]
    verify_invariants = staticmethod(verify_by)


class PieceOp(Disc.Operation, name="piece", traits=[ext.Pure]):
    """A part of an array whose elements lie side by side: a view of it, from where sizes and data say on."""

    source: ext.Operand[Any]
    starts: Sequence[ext.Operand[Any]]
    part: ir.DictAttr
    result: ir.OpResult[Any]
    verify_invariants = staticmethod(verify_by)


def integer_attr(value: int) -> ir.IntegerAttr:
    """An i64 attribute."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


__all__ = [
    "BindOp",
    "ConstraintOp",
    "DimOp",
    "Disc",
    "NonzeroOp",
    "ShapeOp",
    "SymbolOp",
    "integer_attr",
    "verify_by",
]
