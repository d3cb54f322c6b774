# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `import` stage: any program -> one normalised `func.func @main` and its `Signature`."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shlo_disc.errors import ArtifactError, OptionError, ProgramError
from shlo_disc.importer.programs import DescribedProgram, Importable, JaxProgram, TextProgram
from shlo_disc.importer.reader import BYTECODE_MAGIC, read_program
from shlo_disc.importer.reader.artifacts import without_sharding_rules
from shlo_disc.runtime import TreeSpec
from shlo_disc.shape_dialect.dialect.declarations import declare_symbols
from shlo_disc.shape_dialect.dialect.names import LAYOUT, PARTICIPANTS, STAGE
from shlo_disc.shape_dialect.dialect.records import Malformed, as_kind
from shlo_disc.shape_dialect.dialect.signature import Signature, TensorSpec, dtype_of, read_signature, write_signature
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, has_dims
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.ops.values import bound_elements
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.shape_dialect.utils.collectives import counts_of
from shlo_disc.shape_dialect.utils.regions import terminator_of

from .data_sizes import open_data_sizes
from .entry_arguments import functions_as_arguments
from .normalise import choose_platform, entry_function, global_constant_names, normalise
from .parse import name_of, parse_program, parse_trusted
from .support import check_signature_supported, check_supported
from .symbolic import make_symbolic
from .tokens import tokens_as_arrays, without_tokens


@dataclass
class ImportedProgram:
    """A normalised module, which declares its signature and symbols, and the signature with the caller's pytrees.

    stage: the last stage that has run, where the program was what a stage had printed.
    """

    module: ir.Module
    signature: Signature
    stage: str = "import"


def import_program(
    program: Importable,
    context: ir.Context,
    symbolic: bool = False,
    platforms: Sequence[str] = ("cpu",),
    resume: bool = False,
) -> ImportedProgram:
    """Import a program that `program.read` has read.

    symbolic: a static StableHLO program's argument sizes become symbols where its ops leave them free.
    platforms: those of JAX that an Exported may be for, best first.
    resume: what a stage has printed goes on; else it is refused, for it says where buffers lie and what kernels read.

    Raises ProgramError when it cannot be parsed or verified, UnsupportedError listing every construct that cannot be
    compiled.
    """
    if isinstance(program, JaxProgram):
        if symbolic:
            raise OptionError("the option symbolic is for StableHLO; a JAX function or Exported has symbols")
        program = describe(program, platforms)
    if isinstance(program, DescribedProgram):
        return _import_described(program, context)
    module = _parse(program, context)
    with context, ir.Location.unknown():
        if STAGE in module.operation.attributes:
            return _resumed(module, resume)
        mark_participants(module, program.participants)
        return _finish(module, None, symbolic, of=program)


def _resumed(module: ir.Module, may_resume: bool) -> ImportedProgram:
    """Read what a stage has printed and continue with it as it is."""
    if not may_resume:
        raise ProgramError("a stage has printed the program: `python -m shlo_disc opt` takes it, and nothing runs it")
    try:
        stage = as_kind(ir.StringAttr, module.operation.attributes[STAGE], f"a stage as {STAGE}").value
        return ImportedProgram(module, read_signature(module, _tree), stage)
    except Malformed as error:
        raise ProgramError(f"the program is not what a stage prints: {error}") from None


def _tree(text: str) -> TreeSpec:
    try:
        return TreeSpec.from_json(json.loads(text))
    except (ArtifactError, json.JSONDecodeError) as error:
        raise Malformed(f"{text} is no pytree: {error}") from None


def _parse(program: TextProgram, context: ir.Context) -> ir.Module:
    if program.trusted and isinstance(program.data, bytes) and program.data.startswith(BYTECODE_MAGIC):
        module = parse_trusted(program.data, context)
    else:
        module = parse_program(program.data, context, program.source, program.limits)
    if program.has_tokens:
        tokens_as_arrays(entry_function(module))
    return module


def mark_participants(module: ir.Module, participants: int) -> None:
    """Write on a program for several devices that they are there."""
    if participants == 1:
        return
    stated = counts_of(module.operation)
    if stated.total != participants:
        raise ProgramError(f"the program is for {stated.total} participants, and compiled for {participants}")
    module.operation.attributes[PARTICIPANTS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), participants)


_NONE: Mapping[int, str] = {}
_UNNAMED = TextProgram("")


def describe(program: JaxProgram, platforms: Sequence[str]) -> DescribedProgram:
    """The description of an Exported's module. Raises ProgramError when it is for none of the platforms."""
    from . import jax_program, jax_signature

    exported = program.exported
    platform = jax_program.platform_index(exported, platforms)
    signature, hidden = jax_signature.signature_of(exported, program.sizes)
    signature = replace(signature, parameters=program.parameters)
    data, count = bytes(exported.mlir_module_serialized), len(exported.platforms)
    is_ordered = bool(exported.ordered_effects)
    return DescribedProgram(data, signature, hidden, platform, count, is_ordered, program.source, program.limits)


def _import_described(program: DescribedProgram, context: ir.Context) -> ImportedProgram:
    module = parse_trusted(_module_of(program), context)
    signature, hidden = program.signature, program.hidden
    check_signature_supported(signature)
    with context, ir.Location.unknown():
        if program.platform_count > 1:
            choose_platform(module, program.platform)
        if program.is_ordered:
            without_tokens(entry_function(module))
        _check_fits(signature.name, signature, module, hidden)
        return _finish(module, _with_donations(signature, module, hidden), hidden=hidden)


def _module_of(program: DescribedProgram) -> bytes:
    """The module of an Exported, without sharding rules. Raises ProgramError when it is from outside, and damaged."""
    if program.source is None:
        return without_sharding_rules(program.data)
    return read_program(program.data, name_of(program.source), program.limits)


def _check_fits(name: str, signature: Signature, module: ir.Module, hidden: Collection[int]) -> None:
    """Raise ProgramError when what an Exported says of its module is not so, as in one that was damaged on the way."""
    block = entry_function(module).regions[0].blocks[0]
    arguments = [a for i, a in enumerate(block.arguments) if i not in hidden]
    pairs = (
        ([signature.arguments[leaf] for leaf in signature.kept], arguments),
        (signature.results, list(terminator_of(block).operands)),
    )
    for specs, values in pairs:
        fits = len(specs) == len(values) and all(map(_is_of, values, specs))
        if not fits:
            raise ProgramError(f"the exported program {name!r} is damaged: its module has other types than it says")


def _is_of(value: ir.Value, spec: TensorSpec) -> bool:
    tensor = value.type
    if not isinstance(tensor, ir.RankedTensorType) or tensor.rank != len(spec.dims) or dtype_of(value) != spec.dtype:
        return False
    sizes = [None if tensor.is_dynamic_dim(i) else size for i, size in enumerate(tensor.shape)]
    return all(size is None or dim.constant in (None, size) for dim, size in zip(spec.dims, sizes, strict=True))


def _with_donations(signature: Signature, module: ir.Module, hidden: Collection[int]) -> Signature:
    """The signature, with the arguments that JAX says may be used up."""
    function = entry_function(module)
    arguments = list(signature.arguments)
    said = _attributes(function, "arg_attrs", len(function.regions[0].blocks[0].arguments))
    shown = [attributes for i, attributes in enumerate(said) if i not in hidden]
    for leaf, attributes in zip(signature.kept, shown, strict=True):
        if any(name in attributes for name in _DONATED):
            arguments[leaf] = replace(arguments[leaf], donated=True)
    return replace(signature, arguments=tuple(arguments))


def _finish(
    module: ir.Module,
    signature: Signature | None,
    symbolic: bool = False,
    hidden: Mapping[int, str] = _NONE,
    of: TextProgram = _UNNAMED,
) -> ImportedProgram:
    """`hidden`: the positions of arguments that are there for their size only, and the symbols of these sizes.

    `of`: what names the arguments, and states their orders of axes, for a program without a signature.
    """
    names = global_constant_names(module)
    normalise(module)
    functions_as_arguments(entry_function(module), of.functions)
    if symbolic:
        make_symbolic(entry_function(module))
    check_supported(module, entry_function(module), of.is_own)
    counts = open_data_sizes(entry_function(module), hidden, _names_of(signature))
    if signature is None:
        arguments = entry_function(module).regions[0].blocks[0].arguments
        signature = plain_signature(module, [_shape(a, i, names) for i, a in enumerate(arguments)])
        specs = signature.arguments
        if of.parameters:
            specs = tuple(replace(a, path=name or a.path) for a, name in zip(specs, of.parameters, strict=True))
        if of.axes:
            specs = tuple(replace(a, axes=own) for a, own in zip(specs, of.axes, strict=True))
        signature = replace(signature, arguments=specs, parameters=of.parameters, weights=of.weights)
    facts = Facts()
    for name in sorted({name for spec in signature.arguments for d in spec.dims for name in d.symbols()}, key=_order):
        facts.declare(name, min=signature.least)
    for name in dict.fromkeys((*counts, *_bound_names(entry_function(module)))):
        facts.declare(name, min=0 if name in counts else None, data=True)
    declare(module, signature, facts)
    return ImportedProgram(module, signature)


def _names_of(signature: Signature | None) -> set[str]:
    """The symbols of the arguments' sizes."""
    specs = () if signature is None else signature.arguments
    return {name for spec in specs for d in spec.dims for name in d.symbols()}


def _bound_names(function: ir.OpView) -> list[str]:
    """The symbols that the program itself reads from data."""
    blocks = all_blocks(function.regions[0].blocks[0])
    binds = [op for block in blocks for op in block.operations if op.operation.name == "disc.bind"]
    return list(dict.fromkeys(name for op in binds for size in bound_elements(op) for name in sorted(size.symbols())))


def declare(module: ir.Module, signature: Signature, facts: Facts) -> None:
    """Write a signature and the symbols of `facts` into a module."""
    declare_symbols(module, facts)
    write_signature(module, signature, *map(tree_text, (signature.in_tree, signature.out_tree)))


def tree_text(tree: Any) -> str:
    """A pytree as JSON, which it may be already; "" for plain signatures and for dicts whose keys JSON cannot hold."""
    if tree is None or isinstance(tree, str):
        return tree or ""
    try:
        return json.dumps(TreeSpec.from_jax(tree).to_json())
    except ArtifactError:
        return ""


def _order(name: str) -> tuple[bool, int, int, str]:
    """Names by the alphabet; those that we have given come last, in the order of the arguments."""
    given = _GIVEN.fullmatch(name)
    return (True, int(given[1]), int(given[2]), name) if given else (False, 0, 0, name)


_GIVEN = re.compile(r"arg(\d+)_d(\d+)")


def _shape(argument: ir.Value, position: int, names: dict[tuple[int, int], str]) -> Dims:
    """The sizes that an encoding gives, or that jax.export recorded; others are named after the argument."""
    tensor = ir.RankedTensorType(argument.type)
    if has_dims(tensor):
        return dims_of(argument)
    return tuple(
        Expr.symbol(names.get((position, axis), f"arg{position}_d{axis}"))
        if tensor.is_dynamic_dim(axis)
        else Expr.const(size)
        for axis, size in enumerate(tensor.shape)
    )


_DONATED = ("tf.aliasing_output", "jax.buffer_donor")
_MEMORY = "mhlo.memory_kind"


def _attributes(function: ir.OpView, key: str, count: int) -> list[ir.DictAttr]:
    """The JAX attributes of each argument ("arg_attrs") or result ("res_attrs")."""
    if key not in function.attributes:
        return [ir.DictAttr.get({})] * count
    return [ir.DictAttr(entry) for entry in ir.ArrayAttr(function.attributes[key])]


def _memory_of(attributes: ir.DictAttr) -> str:
    return ir.StringAttr(attributes[_MEMORY]).value if _MEMORY in attributes else ""


def _layout_of(attributes: ir.DictAttr) -> tuple[int, ...]:
    return (
        tuple(ir.IntegerAttr(axis).value for axis in ir.ArrayAttr(attributes[LAYOUT])) if LAYOUT in attributes else ()
    )


def plain_signature(module: ir.Module, shapes: Sequence[Dims]) -> Signature:
    """The calling convention of StableHLO: flat arguments of these sizes and results, with no names of their own."""
    function = entry_function(module)
    block = function.regions[0].blocks[0]
    terminator = block.operations[len(block.operations) - 1]
    said = _attributes(function, "arg_attrs", len(block.arguments))
    arguments = tuple(
        TensorSpec(
            path=f"args[{i}]",
            dtype=dtype_of(a),
            dims=shapes[i],
            donated=any(name in said[i] for name in _DONATED),
            memory=_memory_of(said[i]),
            layout=_layout_of(said[i]),
        )
        for i, a in enumerate(block.arguments)
    )
    many = len(terminator.operands) != 1
    said = _attributes(function, "res_attrs", len(terminator.operands))
    results = tuple(
        TensorSpec(
            path=f"result[{i}]" if many else "result",
            dtype=dtype_of(v),
            dims=(),
            memory=_memory_of(said[i]),
            layout=_layout_of(said[i]),
        )
        for i, v in enumerate(terminator.operands)
    )
    attributes = module.operation.attributes
    name = ir.StringAttr(attributes["sym_name"]).value if "sym_name" in attributes else "main"
    return Signature(name, arguments, results, tuple(range(len(arguments))))
