# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `import` stage: any program -> one normalised `func.func @main` and its `Signature`.

The folder's name is a Python keyword: reach it with `importlib.import_module("shlo_disc.import")`.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shlo_disc.errors import OptionError, ProgramError
from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.expr import Expr
from shlo_disc.shape_dialect.facts import Facts
from shlo_disc.shape_dialect.types import Dims, dims_of, has_dims

from .data_sizes import open_data_sizes
from .normalise import entry_function, global_constant_names, normalise
from .parse import parse_program, parse_trusted, read_program
from .signature import Signature, TensorSpec, dtype_of
from .support import check_signature_supported, check_supported
from .symbolic import make_symbolic


@dataclass
class ImportedProgram:
    """A normalised module, its signature, the declared symbols, and the argument shapes that the producer named.

    `shapes` has an entry for each argument of the entry function; None where the producer named no size.
    """

    module: ir.Module
    signature: Signature
    facts: Facts
    shapes: list[Dims | None]


def import_program(
    program: Any,
    context: ir.Context,
    *,
    args: Sequence[Any] | None = None,
    kwargs: dict[str, Any] | None = None,
    constraints: Sequence[str] = (),
    symbolic: bool = False,
) -> ImportedProgram:
    """Import a jax.export.Exported, StableHLO (text, bytecode, portable artifact, or a path), or a JAX function.

    symbolic: a static StableHLO program's argument sizes become symbols where its ops leave them free.

    Raises ProgramError when it cannot be parsed or verified, UnsupportedError listing every construct that cannot be
    compiled.
    """
    exported = _as_exported(program, args, kwargs, constraints)
    if exported is not None:
        if symbolic:
            raise OptionError("the option symbolic is for StableHLO; a JAX function or Exported has symbols")
        return _import_exported(*exported, context)
    if args is not None or kwargs is not None or constraints:
        raise OptionError("args=, kwargs= and constraints= apply to a JAX function; this program states its own shapes")
    data, source = read_program(program)
    module = parse_program(data, context, source)
    with context, ir.Location.unknown():
        return _finish(module, None, symbolic)


_NONE: Mapping[int, str] = {}

_SOURCES = "a program is a jax.export.Exported, StableHLO (str, bytes or a path), or a JAX function with args="


def _as_exported(program: Any, args: Any, kwargs: Any, constraints: Sequence[str]) -> tuple[Any, Sequence[str]] | None:
    """A `jax.export.Exported`, and the names of the sizes that its hidden arguments stand for."""
    if isinstance(program, str | bytes | os.PathLike):
        return None
    if "jax" not in sys.modules and not callable(program):
        raise ProgramError(f"cannot compile an object of type {type(program).__name__}: {_SOURCES}")
    jax_program = importlib.import_module(".jax_program", __name__)
    if jax_program.is_exported(program):
        if args is not None or kwargs is not None or constraints:
            raise OptionError("args=, kwargs= and constraints= apply to a JAX function; an Exported has its own")
        return program, ()
    if not callable(program):
        raise ProgramError(f"cannot compile an object of type {type(program).__name__}: {_SOURCES}")
    if args is None and kwargs is None:
        raise ProgramError('a JAX function needs args=, e.g. args=(("b, 768", "float32"),)')
    exported: tuple[Any, Sequence[str]] = jax_program.export_function(program, args or (), kwargs or {}, constraints)
    return exported


def _import_exported(exported: Any, sizes: Sequence[str], context: ir.Context) -> ImportedProgram:
    jax_program = importlib.import_module(".jax_program", __name__)
    module = parse_trusted(jax_program.portable_artifact(exported), context)
    signature, hidden = jax_program.signature_of(exported, sizes)
    check_signature_supported(signature)
    with context, ir.Location.unknown():
        return _finish(module, signature, hidden=hidden)


def _finish(
    module: ir.Module,
    signature: Signature | None,
    symbolic: bool = False,
    hidden: Mapping[int, str] = _NONE,
) -> ImportedProgram:
    """`hidden`: the positions of arguments that are there for their size only, and the symbols of these sizes."""
    names = global_constant_names(module)
    normalise(module)
    if symbolic:
        make_symbolic(entry_function(module))
    check_supported(module, entry_function(module))
    open_data_sizes(entry_function(module), hidden)
    facts = Facts()
    block = entry_function(module).regions[0].blocks[0]
    if signature is None:
        shapes = [_named_shape(a, i, names) for i, a in enumerate(block.arguments)]
        signature = _plain_signature(module)
    else:
        shapes = [signature.arguments[leaf].dims for leaf in signature.kept]
    declared = [d for spec in signature.arguments for d in spec.dims] or [d for s in shapes if s for d in s]
    for name in sorted({name for d in declared for name in d.symbols()}):
        facts.declare(name, min=1 if signature.in_tree is not None else 0)
    for name in hidden.values():
        facts.declare(name, min=0, data=True)
    return ImportedProgram(module, signature, facts, shapes)


def _named_shape(argument: ir.Value, position: int, names: dict[tuple[int, int], str]) -> Dims | None:
    """The sizes that an encoding gives, or that jax.export recorded; None when nothing is named."""
    tensor = ir.RankedTensorType(argument.type)
    if has_dims(tensor):
        return dims_of(argument)
    if not any((position, axis) in names for axis in range(tensor.rank)):
        return None
    return tuple(
        Expr.symbol(names.get((position, axis), f"arg{position}_d{axis}"))
        if tensor.is_dynamic_dim(axis)
        else Expr.const(size)
        for axis, size in enumerate(tensor.shape)
    )


def _plain_signature(module: ir.Module) -> Signature:
    function = entry_function(module)
    block = function.regions[0].blocks[0]
    terminator = block.operations[len(block.operations) - 1]
    arguments = tuple(TensorSpec(f"args[{i}]", dtype_of(a), ()) for i, a in enumerate(block.arguments))
    many = len(terminator.operands) != 1
    results = tuple(
        TensorSpec(f"result[{i}]" if many else "result", dtype_of(v), ()) for i, v in enumerate(terminator.operands)
    )
    attributes = module.operation.attributes
    name = ir.StringAttr(attributes["sym_name"]).value if "sym_name" in attributes else "main"
    return Signature(name, arguments, results, tuple(range(len(arguments))))
