# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The calling convention of a program: arguments, results, pytrees and the symbols they are solved from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from shlo_disc.dtypes import BY_MLIR
from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.expr import Expr
from shlo_disc.shape_dialect.types import Dims, dims_of, element_type_of, storage_type

DTYPES = {dtype.mlir: dtype.name for dtype in BY_MLIR.values()}
"""The runtime's names of element types."""


@dataclass(frozen=True)
class TensorSpec:
    """One leaf: its path in the caller's pytree, its dtype and its symbolic shape.

    memory: the kind of memory that JAX wants it in, "" where it does not say.
    layout: the axis that each axis is to JAX, in an order other than row-major; () where they are the same.
    key: the implementation of the PRNG keys whose data this is, a key in the last dim; "" for numbers.
    """

    path: str
    dtype: str
    dims: Dims
    donated: bool = False
    memory: str = ""
    layout: tuple[int, ...] = ()
    key: str = ""

    def __str__(self) -> str:
        if self.key:
            return f"{self.path}: key<{self.key}>[{', '.join(str(d) for d in self.dims[:-1])}]"
        return f"{self.path}: {self.dtype}[{', '.join(str(d) for d in self.dims)}]"


@dataclass(frozen=True)
class SymbolSource:
    """How a symbol is solved from an argument's size: `size == scale * symbol + offset`."""

    name: str
    argument: int
    dim: int
    scale: int
    offset: int


@dataclass(frozen=True)
class Signature:
    """The arguments and results of a program.

    `kept` maps each argument of the module's entry function to its leaf in `arguments`: jax.export drops arguments that
    the program does not read, but a caller still passes them. `where` is what holds of the sizes that the program reads
    from data: each call checks it.
    """

    name: str
    arguments: tuple[TensorSpec, ...]
    results: tuple[TensorSpec, ...] = ()
    kept: tuple[int, ...] = ()
    in_tree: Any = None
    out_tree: Any = None
    symbols: tuple[SymbolSource, ...] = field(default=())
    where: tuple[str, ...] = ()

    def __str__(self) -> str:
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
        return replace(
            self, arguments=tuple(arguments), results=tuple(results), symbols=symbol_sources(tuple(arguments))
        )


def dtype_of(value: ir.Value) -> str:
    """The runtime's name of a value's dtype, e.g. "f32" or "u8"; that of the integers of a quantized type."""
    return DTYPES[str(storage_type(element_type_of(value)))]


def linear_in_one_symbol(dim: Expr) -> tuple[str, int, int] | None:
    """(symbol, scale, offset) when dim == scale * symbol + offset with scale >= 1, else None."""
    names = dim.symbols()
    if len(names) != 1:
        return None
    (name,) = names
    offset = dim.substitute({name: 0}).constant
    one = dim.substitute({name: 1}).constant
    if offset is None or one is None or one - offset < 1:
        return None
    scale = one - offset
    return (name, scale, offset) if dim == scale * Expr.symbol(name) + offset else None


def symbol_sources(arguments: tuple[TensorSpec, ...]) -> tuple[SymbolSource, ...]:
    """For each symbol the argument size it is solved from, plain sizes first (as jax.export does)."""
    best: dict[str, SymbolSource] = {}
    for position, spec in enumerate(arguments):
        for axis, dim in enumerate(spec.dims):
            linear = linear_in_one_symbol(dim)
            if linear is None:
                continue
            source = SymbolSource(linear[0], position, axis, linear[1], linear[2])
            known = best.get(source.name)
            if known is None or (known.scale, known.offset) != (1, 0) == (source.scale, source.offset):
                best[source.name] = source
    return tuple(best.values())
