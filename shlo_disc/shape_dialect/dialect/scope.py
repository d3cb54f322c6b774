# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The information for rules of the verifier: the module's stage, symbols, functions and arenas."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from shlo_disc.shape_dialect.dialect.declarations import facts_of
from shlo_disc.shape_dialect.dialect.names import STAGE
from shlo_disc.shape_dialect.dialect.records import Malformed, as_kind, read_size
from shlo_disc.shape_dialect.dialect.signature import Declared, declared_signature
from shlo_disc.shape_dialect.dialect.types import Dims
from shlo_disc.shape_dialect.mlir import func, ir, memref
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts

ORDER = ("import", "annotate", "simplify", "fuse", "plan", "kernels", "host")
"""The stages after which a module has the dialect."""


class Scope:
    """A module under verification. `symbols` are those that it declares, `arenas` the sizes of its arenas.

    kernels: how many buffers and sizes each has, None for one of a GPU. runtime_sizes: of those that are told the
    runtime, which size that is. constants: the names of the `memref.global`s.
    """

    def __init__(self, module: ir.Module):
        self.module = module
        attributes = module.operation.attributes
        self.stage = ir.StringAttr(attributes[STAGE]).value if STAGE in attributes else ""
        self.functions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
        self.symbols: set[str] = set()
        self.arenas: Dims = ()
        self.kernels: dict[str, tuple[int, int] | None] = {}
        self.runtime_sizes: dict[str, int] = {}
        self.constants = {op.sym_name.value for op in module.body.operations if isinstance(op, memref.GlobalOp)}
        self._types: set[ir.Type] = set()

    @cached_property
    def declared(self) -> Declared:
        """The contents of the module's `disc.signature`. Raises Malformed."""
        return declared_signature(self.module)

    @cached_property
    def facts(self) -> Facts:
        """The module's declared facts on its sizes. Raises Malformed, or ProgramError where it contradicts itself."""
        return facts_of(self.module)

    def are_equal(self, some: Sequence[Expr], others: Sequence[Expr]) -> bool:
        """Tells whether sizes are proved to be equal one by one, however they are written."""
        alike = tuple(some) == tuple(others)
        return alike or (len(some) == len(others) and all(map(self.facts.equal, some, others)))

    def has_run(self, stage: str, is_between: bool = False) -> bool:
        """Tells whether a stage has run, or in part where `is_between`."""
        return self.stage in ORDER and ORDER.index(self.stage) + is_between >= ORDER.index(stage)

    def check_type(self, type_: ir.Type) -> None:
        """Check a type's sizes against what its encoding says of them."""
        if type_ in self._types or not isinstance(type_, ir.RankedTensorType):
            return
        if type_.encoding is not None:
            self._check_encoding(type_, type_.encoding)
        elif self.has_run("annotate") and not type_.has_static_shape:
            raise Malformed(f"the type {type_} has a size without a symbol")
        self._types.add(type_)

    def _check_encoding(self, type_: ir.RankedTensorType, encoding: ir.Attribute) -> None:
        entries = [read_size(entry) for entry in as_kind(ir.ArrayAttr, encoding, "an array of sizes")]
        if len(entries) != type_.rank:
            raise Malformed(f"the encoding of {type_} has {len(entries)} sizes for {type_.rank} dimensions")
        for axis, size in enumerate(entries):
            stated = None if type_.is_dynamic_dim(axis) else type_.shape[axis]
            if size.constant != stated:
                raise Malformed(f"the encoding of {type_} says {size} of dimension {axis}")
        self.check_sizes(entries)

    def check_sizes(self, sizes: Sequence[Expr]) -> None:
        """Check that sizes name declared symbols."""
        for size in sizes:
            missing = size.symbols() - self.symbols
            if missing:
                known = ", ".join(sorted(self.symbols)) or "none"
                raise Malformed(f"the size {size} names {sorted(missing)[0]}, which is no symbol; there are {known}")


def is_private(function: ir.OpView) -> bool:
    """Tells whether a function is not the entry."""
    visibility = function.attributes.get("sym_visibility")
    return visibility is not None and ir.StringAttr(visibility).value == "private"
