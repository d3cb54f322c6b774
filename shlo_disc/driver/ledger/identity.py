# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The function of the user's that a program came from, and the arrays that it takes, from the program's own text."""

from __future__ import annotations

import ast
import importlib.util
import linecache
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from shlo_disc.importer.parse import parse_trusted
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.dtypes import BY_MLIR
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.utils.locations import Frame, frames

_PREFIX = re.compile(r"^(jit|pmap|shard_map|xla_computation)_")
_SHARDINGS = ("mhlo.num_partitions", "mhlo.num_replicas", "mhlo.spmd_output_sharding", "mhlo.spmd_parameters_shardings")
_MOST_OPS = 20_000  # that are looked at to find a function
_LIBRARIES = ("jax", "jaxlib")
_INSTALLED = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class Argument:
    """An array that a program takes: its name in the user's function, where that is known, element type and sizes."""

    name: str
    dtype: str
    sizes: tuple[int, ...]

    def __str__(self) -> str:
        dtype = BY_MLIR[self.dtype].name if self.dtype in BY_MLIR else self.dtype
        return f"{dtype}[{','.join('?' if size < 0 else str(size) for size in self.sizes)}]"


@dataclass(frozen=True)
class Identity:
    """A function as users know it.

    module: the name of the program's module, such as "jit_step". file, line: where the function is defined, "" and 0
    where that is not known, or it is one of JAX's own. caller: the line that called it, "" where that is not known.
    """

    module: str
    file: str
    line: int
    caller: str

    @property
    def name(self) -> str:
        """The function's name."""
        return _PREFIX.sub("", self.module)

    @property
    def key(self) -> tuple[str, str, int]:
        """The key that distinguishes functions."""
        return self.module, self.file, self.line

    @property
    def is_users(self) -> bool:
        """Tells whether a user or a library wrote it, not JAX (ops that it runs eagerly, its helper functions)."""
        return bool(self.file) and not any(Path(self.file).is_relative_to(place) for place in _library_folders())

    @property
    def package(self) -> str:
        """The installed package that the function is of, such as "equinox"; "" for a user's own, or an unknown one."""
        if not self.is_users:
            return _LIBRARIES[0] if self.file or self.caller else ""
        parts = Path(self.file).parts
        inside = [parts[i + 1] for i, part in enumerate(parts[:-1]) if part in _INSTALLED]
        return inside[-1].removesuffix(".py") if inside else ""

    @property
    def place(self) -> str:
        """`train.py:8`, the caller's line where the function's is not known, or ""."""
        if not self.file:
            return self.caller
        return f"{self.file}:{self.line}" if self.line else self.file


Form = tuple[frozenset[tuple[str, int]], str]


@dataclass(frozen=True)
class Reading:
    """The identity and the arguments of a program, as the program states them, and how they lie on several devices."""

    identity: Identity
    arguments: tuple[Argument, ...]
    shardings: str = ""

    @property
    def form(self) -> Form:
        """The element types and ranks of its arguments, and how they lie on devices.

        Where these differ, programs are others at all sizes.
        """
        return frozenset((argument.dtype, len(argument.sizes)) for argument in self.arguments), self.shardings


def read_identity(program: bytes) -> Reading:
    """Read the identity and arguments of bytecode or a portable artifact known to be whole. Raises ProgramError."""
    context = make_context()
    with context:
        module = parse_trusted(program, context)
        return Reading(_identity(module), _arguments(module), _shardings(module))


def _entry(module: ir.Module) -> ir.OpView:
    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    return next((f for f in functions if ir.StringAttr(f.attributes["sym_name"]).value == "main"), functions[0])


def _arguments(module: ir.Module) -> tuple[Argument, ...]:
    entry = _entry(module)
    signature = ir.FunctionType(ir.TypeAttr(entry.attributes["function_type"]).value)
    values = entry.regions[0].blocks[0].arguments
    return tuple(_argument(kind, value) for kind, value in zip(signature.inputs, values, strict=True))


def _shardings(module: ir.Module) -> str:
    """The shardings of a program that several devices run, as it states them."""
    attributes = module.operation.attributes
    stated = (attributes[name] for name in sorted(_SHARDINGS) if name in attributes)
    return " ".join(map(str, stated))


def _argument(kind: ir.Type, value: ir.Value) -> Argument:
    location = value.location
    return array_of_type(kind, location.name_str if isinstance(location, ir.NameLoc) else "")


def array_of_type(kind: ir.Type, name: str = "") -> Argument:
    """The element type and the sizes of a type."""
    if not isinstance(kind, ir.RankedTensorType):
        return Argument(name, str(kind), ())
    sizes = tuple(-1 if kind.is_dynamic_dim(axis) else kind.get_dim_size(axis) for axis in range(kind.rank))
    return Argument(name, str(kind.element_type), sizes)


def _identity(module: ir.Module) -> Identity:
    attributes = module.operation.attributes
    name = ir.StringAttr(attributes["sym_name"]).value if "sym_name" in attributes else ""
    body = [*_entry(module).regions[0].blocks[0].operations]
    callers = [*frames(body[-1].location)]
    caller = f"{callers[0].file}:{callers[0].line}" if callers else ""
    found = _function_frame(_PREFIX.sub("", name), callers, _operations(module))
    if found is None:
        return Identity(name, "", 0, caller)
    return Identity(name, found.file, definition_line(found), caller)


def _operations(module: ir.Module) -> Iterator[ir.OpView]:
    """The entry's operations, then those of other functions, outside in."""
    entry = _entry(module)
    yield from _nested(entry)
    for op in module.body.operations:
        if op.operation != entry.operation:
            yield from _nested(op)


def _nested(op: ir.OpView) -> Iterator[ir.OpView]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner
                yield from _nested(inner)


def _function_frame(name: str, callers: list[Frame], operations: Iterable[ir.OpView]) -> Frame | None:
    """A frame of the function that was jitted: the outermost one below the callers that has its name, or any."""
    first: Frame | None = None
    for _, op in zip(range(_MOST_OPS), operations, strict=False):
        chain = [*frames(op.location)]
        inside = chain[: chain.index(callers[0])] if callers and callers[0] in chain else chain
        named = [frame for frame in inside if _plain(frame.function) == _plain(name)]
        if named:
            return named[-1]
        if first is None and inside:
            first = inside[-1]
    return first


def _plain(name: str) -> str:
    """A function's last name as JAX writes it in the name of a module."""
    return re.sub(r"\W+", "_", name.rpartition(".")[2]).strip("_")


@lru_cache(maxsize=4096)
def definition_line(frame: Frame) -> int:
    """The line on which the function of a frame is defined; 0 where its file cannot be read."""
    name = frame.function.rpartition(".")[2]
    around = [(first, last) for first, last, found in _definitions(frame.file) if found == name]
    return max((first for first, last in around if first <= frame.line <= last), default=0)


@cache
def _definitions(file: str) -> tuple[tuple[int, int, str], ...]:
    """The first and last line of each function in a file, and its name."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return ()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    nodes = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    return tuple((node.lineno, node.end_lineno or node.lineno, getattr(node, "name", "<lambda>")) for node in nodes)


@cache
def _library_folders() -> tuple[str, ...]:
    specs = (importlib.util.find_spec(name) for name in _LIBRARIES)
    return tuple(place for spec in specs if spec for place in spec.submodule_search_locations or ())


__all__ = ["Argument", "Identity", "Reading", "array_of_type", "definition_line", "read_identity"]
