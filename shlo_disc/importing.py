# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the rest of the package uses of the folder `import`, whose name no import statement can say, with its types.

`read`, `traced_flatnonzero` and `without_locations` need no MLIR.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from shlo_disc.programs import DescribedProgram, Importable, JaxProgram, Program
from shlo_disc.reader import Limits

if TYPE_CHECKING:
    from shlo_disc.mlir import ir
    from shlo_disc.shape_dialect.dialect.signature import Signature
    from shlo_disc.shape_dialect.dialect.types import Dims
    from shlo_disc.shape_dialect.symbolic.facts import Facts


def _module(name: str) -> Any:
    return importlib.import_module(f"shlo_disc.import.{name}")


def read(
    program: Any, args: Any = None, kwargs: Any = None, constraints: Sequence[str] = (), limits: Limits | None = None
) -> Program:
    """`import/program.py`: what a user hands over as a program, read or traced."""
    return cast(Program, _module("program").read(program, args, kwargs, constraints, limits))


def import_program(
    program: Importable, context: ir.Context, symbolic: bool, platforms: Sequence[str], resume: bool
) -> tuple[ir.Module, Signature, str]:
    """`import/import_program.py`: a normalised module, its signature, and the last stage that it has been through."""
    imported = _module("import_program").import_program(program, context, symbolic, platforms, resume)
    return imported.module, imported.signature, imported.stage


def describe(program: JaxProgram, platforms: Sequence[str]) -> DescribedProgram:
    """`import/import_program.py`: what an Exported says of its module, as data. Raises ProgramError."""
    return cast(DescribedProgram, _module("import_program").describe(program, platforms))


def tree_text(tree: Any) -> str:
    """`import/import_program.py`: a pytree as JSON; "" for those that JSON cannot hold, and where there is none."""
    return cast(str, _module("import_program").tree_text(tree))


def parse_program(text: str | bytes, context: ir.Context) -> ir.Module:
    """`import/parse.py`: a module from outside. Raises ProgramError."""
    return cast("ir.Module", _module("parse").parse_program(text, context))


def parse_trusted(data: bytes, context: ir.Context) -> ir.Module:
    """`import/parse.py`: a module whose bytecode is known to be whole."""
    return cast("ir.Module", _module("parse").parse_trusted(data, context))


def entry_function(module: ir.Module) -> ir.OpView:
    """`import/normalise.py`: the function that a program begins with. Raises ProgramError."""
    return cast("ir.OpView", _module("normalise").entry_function(module))


def normalise(module: ir.Module) -> None:
    """`import/normalise.py`: one function, of no legacy ops, with no shape assertions."""
    _module("normalise").normalise(module)


def tokens_as_arrays(function: ir.OpView) -> None:
    """`import/tokens.py`: tokens in a function's signature become arrays without elements."""
    _module("tokens").tokens_as_arrays(function)


def check_supported(module: ir.Module, entry: ir.OpView) -> None:
    """`import/support.py`: raises UnsupportedError listing every construct that cannot be compiled."""
    _module("support").check_supported(module, entry)


def plain_signature(module: ir.Module, shapes: Sequence[Dims]) -> Signature:
    """`import/import_program.py`: the signature of a module whose arguments have no names or trees."""
    return cast("Signature", _module("import_program").plain_signature(module, shapes))


def declare(module: ir.Module, signature: Signature, facts: Facts) -> None:
    """`import/import_program.py`: write a signature and the symbols of `facts` into a module."""
    _module("import_program").declare(module, signature, facts)


def traced_flatnonzero(mask: Any) -> Any:
    """`import/requested_sizes.py`: `flatnonzero` inside a function that is traced for us."""
    return _module("requested_sizes").traced_flatnonzero(mask)


def without_locations(exported: Any) -> bytes:
    """`import/jax_program.py`: an Exported's module, without its source locations."""
    return cast(bytes, _module("jax_program").without_locations(exported))


def translate_graph(module: Any, name: str, **options: Any) -> Any:
    """`import/aten/graphs.py`: a graph of PyTorch's as StableHLO, a `Translated`. Raises UnsupportedError."""
    return _module("aten.graphs").translate(module, name, **options)


def is_constant_of_torch(node: Any) -> bool:
    """`import/aten/graphs.py`: whether a placeholder of a graph of PyTorch's stands for one value in all calls."""
    return bool(_module("aten.graphs").is_constant(node))


def torch_decompositions() -> dict[Any, Any]:
    """`import/aten/decompositions.py`: what PyTorch takes apart, by op."""
    return cast("dict[Any, Any]", _module("aten.decompositions").for_exporting())


def torch_ops_page() -> str:
    """`import/aten/page.py`: the page of the ops that have a translation."""
    return cast(str, _module("aten.page").page())
