# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The calling convention of a program: arguments, results, pytrees and the symbols they are solved from.

It stands in the module as a `disc.signature`, whose attributes are the fields of `Declared`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from shlo_disc.shape_dialect.dialect.ops import SignatureOp
from shlo_disc.shape_dialect.dialect.records import Malformed, entries_of, from_entries, to_entries
from shlo_disc.shape_dialect.dialect.symbol_sources import SymbolSource, symbol_sources
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, storage_type
from shlo_disc.shape_dialect.dtypes import BY_MLIR
from shlo_disc.shape_dialect.mlir import ir

DTYPES = {dtype.mlir: dtype.name for dtype in BY_MLIR.values()}
"""The runtime's names of element types."""


@dataclass(frozen=True)
class TensorSpec:
    """One leaf: its path in the pytree of the caller, its dtype and its symbolic shape.

    memory: the memory kind that JAX requests, or "" for none.
    layout: for each axis, the axis that it is in JAX, if the order is not row-major; else ().
    key: the implementation, if this is the data of PRNG keys (the last dimension is a key); "" for numbers.
    axes: for each axis, the axis that it is in the user's weight, if the program takes another order; else ().
    """

    path: str
    dtype: str
    dims: Dims
    donated: bool = False
    memory: str = ""
    layout: tuple[int, ...] = ()
    key: str = ""
    axes: tuple[int, ...] = ()

    def __repr__(self) -> str:
        if self.key:
            return f"{self.path}: key<{self.key}>[{', '.join(str(d) for d in self.dims[:-1])}]"
        dims = [self.dims[self.axes.index(axis)] for axis in range(len(self.axes))] or self.dims
        return f"{self.path}: {self.dtype}[{', '.join(str(d) for d in dims)}]"


@dataclass(frozen=True)
class Signature:
    """The arguments and results of a program.

    `kept` maps each argument of the module's entry function to its leaf in `arguments`: jax.export drops arguments that
    the program does not read, but a caller still passes them. `least` is the smallest size that a symbol stands for: 1
    in programs of JAX. `where` is what holds of the sizes that the program reads from data: each call checks it.

    parameters: the names of the positional arguments, "" for one that is not passed by name; () where there are none.
    weights: how many of the first arguments are weights of a PyTorch program.
    in_tree, out_tree: of the arguments (args, kwargs) and of the results, PyTreeDefs of JAX, TreeSpecs or these as
    JSON; None for flat lists.
    """

    name: str
    arguments: tuple[TensorSpec, ...]
    results: tuple[TensorSpec, ...] = ()
    kept: tuple[int, ...] = ()
    least: int = 0
    in_tree: Any = None
    out_tree: Any = None
    symbols: tuple[SymbolSource, ...] = field(default=())
    where: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    weights: int = 0

    def __repr__(self) -> str:
        arguments = ", ".join(str(a) for a in self.arguments)
        results = ", ".join(str(r) for r in self.results)
        where = f" where {', '.join(self.where)}" if self.where else ""
        return f"{self.name}({arguments}) -> ({results}){where}"

    def with_shapes(self, block: ir.Block) -> Signature:
        """This signature with the symbolic shapes of an annotated entry block, and each symbol's source."""
        arguments = list(self.arguments)
        for leaf, value in zip(self.kept, block.arguments, strict=True):
            arguments[leaf] = replace(arguments[leaf], dims=dims_of(value))
        terminator = block.operations[len(block.operations) - 1]
        results = [
            replace(spec, dims=dims_of(value), dtype=dtype_of(value))
            for spec, value in zip(self.results, terminator.operands, strict=True)
        ]
        sources = symbol_sources([spec.dims for spec in arguments])
        return replace(self, arguments=tuple(arguments), results=tuple(results), symbols=sources)


def dtype_of(value: ir.Value) -> str:
    """The runtime's name of a value's dtype, e.g. "f32" or "u8"; that of the integers of a quantized type."""
    return DTYPES[str(storage_type(element_type_of(value)))]


# ---- in the module --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Declared:
    """The attributes of a `disc.signature` besides its name: a Signature, with trees as JSON ("" for none)."""

    arguments: tuple[TensorSpec, ...] = ()
    results: tuple[TensorSpec, ...] = ()
    kept: tuple[int, ...] = ()
    least: int = 0
    in_tree: str = ""
    out_tree: str = ""
    parameters: tuple[str, ...] = ()
    weights: int = 0

    @property
    def buffers(self) -> int:
        """The number of buffers of a call: arguments, those that are not read among them, and results."""
        return len(self.arguments) + len(self.results)


def write_signature(module: ir.Module, signature: Signature, in_tree: str = "", out_tree: str = "") -> None:
    """Write a signature into a module, in the place of the one that is there, whose trees stay."""
    known = _signature_op(module)
    declared = Declared(
        signature.arguments, signature.results, signature.kept, signature.least, in_tree, out_tree,
        signature.parameters, signature.weights,
    )  # fmt: skip
    if known is not None:
        old = declaration_of(known)
        declared = replace(declared, in_tree=in_tree or old.in_tree, out_tree=out_tree or old.out_tree)
        known.operation.erase()
    with ir.InsertionPoint.at_block_begin(module.body), ir.Location.unknown(module.context):
        op = SignatureOp(ir.StringAttr.get(signature.name))
        for name, attribute in to_entries(declared).items():
            op.attributes[name] = attribute


def declared_signature(module: ir.Module) -> Declared:
    """The contents of a module's `disc.signature`. Raises Malformed."""
    return declaration_of(_required(module))


def read_signature(module: ir.Module, read_tree: Callable[[str], Any]) -> Signature:
    """The signature that a module declares; `read_tree` reads JSON. Raises Malformed."""
    op = _required(module)
    said = declaration_of(op)
    in_tree, out_tree = (read_tree(text) if text else None for text in (said.in_tree, said.out_tree))
    name = ir.StringAttr(op.attributes["name"]).value
    symbols = symbol_sources([spec.dims for spec in said.arguments])
    return Signature(
        name, said.arguments, said.results, said.kept, said.least, in_tree, out_tree, symbols,
        parameters=said.parameters, weights=said.weights,
    )  # fmt: skip


def _required(module: ir.Module) -> ir.OpView:
    op = _signature_op(module)
    if op is None:
        raise Malformed("the module has no disc.signature")
    return op


def argument_shapes(module: ir.Module) -> list[Dims]:
    """The sizes of the entry function's arguments by the module's signature. Raises Malformed."""
    op = _signature_op(module)
    if op is None:
        return []
    said = declaration_of(op)
    return [said.arguments[leaf].dims for leaf in said.kept]


def declaration_of(op: ir.OpView) -> Declared:
    """The contents of a `disc.signature`. Raises Malformed."""
    return from_entries(Declared, entries_of(op, but="name"))


def _signature_op(module: ir.Module) -> ir.OpView | None:
    return next((op for op in module.body.operations if op.operation.name == "disc.signature"), None)
