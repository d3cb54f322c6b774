# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of support: the table of ops, read once per import, so that everything unsupported is reported together."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

from shlo_disc.errors import ProgramError, Unsupported, UnsupportedError
from shlo_disc.shape_dialect.dialect.remembered import remembered
from shlo_disc.shape_dialect.dialect.signature import DTYPES, Signature
from shlo_disc.shape_dialect.dialect.types import dims_of_attr, storage_type
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import ELEMENTWISE, TABLE
from shlo_disc.shape_dialect.utils.collectives import COLLECTIVES, groups_of, reduction_of, runs_on_all
from shlo_disc.shape_dialect.utils.locations import operation_name, source_line
from shlo_disc.shape_dialect.utils.regions import all_values, called_function, captured, constant_of

from .library_calls import ADVICE, custom_call_problem, fft_problem
from .resolve import participants

STRUCTURAL = {"func.func", "func.return", "stablehlo.return", "builtin.module"}

OWN = frozenset({"disc.bind", "disc.nonzero"})
"""Ops that our own translations have: in a program from outside they could say sizes that are none."""

SUGGESTIONS = {
    "func.call": "give the function a body",
    "cf.br": "write the function as one block",
    "cf.cond_br": "write the function as one block",
}
_CONVERT = "convert to a supported dtype first"
_NO_LOWERING = "this op has no lowering"


def check_supported(module: ir.Module, entry: ir.OpView, is_own: bool = False) -> None:
    """Raise UnsupportedError listing every construct of `module` that cannot be compiled.

    is_own: the program is a translation of ours.
    Raises ProgramError on an encoding that is not a list of the type's sizes, and on a type with a negative size or
    with more elements than 64 bits can count.
    """
    found = _argument_problems(entry)
    for op in _operations(module.operation):
        if not (is_own and op.operation.name in OWN):
            found += _op_problems(op)
    if found:
        raise UnsupportedError(list(dict.fromkeys(found)))
    for value in all_values(entry.regions[0].blocks[0]):
        tensor = ir.RankedTensorType(value.type)
        _check_elements(tensor)
        _check_encoding(tensor)


def check_signature_supported(signature: Signature) -> None:
    """Raise UnsupportedError on leaves of a dtype that calls cannot pass, even where the program drops them."""
    leaves = [*signature.arguments, *signature.results]
    found = [
        Unsupported(leaf.path, leaf.dtype, signature.name, "this dtype has no lowering", _CONVERT)
        for leaf in leaves
        if leaf.dtype not in DTYPES.values()
    ]
    if found:
        raise UnsupportedError(found)


def _argument_problems(entry: ir.OpView) -> list[Unsupported]:
    where = source_line(entry.location)
    return [
        Unsupported(f"argument {position}", dtype, where, "this dtype has no lowering", _CONVERT)
        for position, argument in enumerate(entry.regions[0].blocks[0].arguments)
        for dtype in sorted(_foreign_dtypes([argument], DTYPES, quantized=True))
    ]


def _check_elements(tensor: ir.RankedTensorType) -> None:
    """Sizes count something, and products of them, in bits as well, have to fit 64 bits."""
    static = [tensor.get_dim_size(i) for i in range(tensor.rank) if not tensor.is_dynamic_dim(i)]
    if any(size < 0 for size in static):
        raise ProgramError(f"{tensor} has a negative size")
    if math.prod(size for size in static if size > 0) > _MOST_ELEMENTS:
        raise ProgramError(f"{tensor} has more elements than can be counted")


_MOST_ELEMENTS = 1 << 52


def _check_encoding(tensor: ir.RankedTensorType) -> None:
    """Symbolic sizes come as `[@b, 768]`, one entry a dimension, in agreement with the type's own sizes."""
    encoding = tensor.encoding
    if encoding is None:
        return
    parts = list(ir.ArrayAttr(encoding)) if isinstance(encoding, ir.ArrayAttr) else []
    if not isinstance(encoding, ir.ArrayAttr) or not all(isinstance(p, _SIZE_ATTRIBUTES) for p in parts):
        raise ProgramError(f"the encoding of {tensor} is not a list of sizes such as [@b, 768]")
    dims = dims_of_attr(encoding)
    sizes = [None if tensor.is_dynamic_dim(i) else size for i, size in enumerate(tensor.shape)]
    agree = len(dims) == len(sizes) and all(d.constant == s for d, s in zip(dims, sizes, strict=True))
    if not agree:
        raise ProgramError(f"the encoding of {tensor} does not have one size for each dimension, equal where static")


_SIZE_ATTRIBUTES = (ir.IntegerAttr, ir.FlatSymbolRefAttr)


def _operations(op: ir.Operation) -> Iterator[ir.OpView]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner
                yield from _operations(inner.operation)


def _op_problems(op: ir.OpView) -> list[Unsupported]:
    name = op.operation.name
    if name == "stablehlo.custom_call":
        name = "@" + ir.StringAttr(op.attributes["call_target_name"]).value
        if name not in TABLE:
            reason = custom_call_problem(op)
            return [_problem(op, reason, ADVICE.get(reason, ""))] if reason else []
    if name in STRUCTURAL:
        lowered: Collection[str] = DTYPES
    elif name in TABLE and TABLE[name].lowering:
        lowered = TABLE[name].dtypes
    else:
        row = TABLE.get(name)
        reason, instead = (row.reason, row.instead) if row else (_NO_LOWERING, SUGGESTIONS.get(name, ""))
        return [_problem(op, reason, instead)]
    problems = [
        _problem(op, "this dtype has no lowering", _CONVERT, dtype)
        for dtype in sorted(_foreign_dtypes([*op.operands, *op.results], lowered, _takes_quantized(op, name)))
    ]
    if name in _EXTRA_CHECKS and not problems:
        reason = _EXTRA_CHECKS[name](op)
        if reason:
            problems.append(_problem(op, reason))
    return problems


def _problem(op: ir.OpView, reason: str, instead: str = "", dtype: str = "") -> Unsupported:
    shown = op.operation.name
    label = operation_name(op.location)
    if label:
        shown += f" ({label})"
    if shown.startswith("stablehlo.custom_call"):
        shown += f" @{ir.StringAttr(op.attributes['call_target_name']).value}"
    return Unsupported(shown, dtype, source_line(op.location), reason, instead)


def _takes_quantized(op: ir.OpView, name: str) -> bool:
    """Ops on quantized tensors compute with the floats that those stand for; a body would have to, too."""
    in_place = name in STRUCTURAL or name in ("stablehlo.uniform_dequantize", "stablehlo.uniform_quantize")
    return in_place or (name.startswith("stablehlo.") and TABLE[name].lowering != "import" and not len(op.regions))


def _foreign_dtypes(values: Sequence[ir.Value], lowered: Collection[str], quantized: bool) -> set[str]:
    """The element types that are not `lowered`; quantized ones need their integers to have a lowering somewhere."""
    dtypes = set()
    for value in values:
        if not isinstance(value.type, ir.RankedTensorType):
            dtypes.add(str(value.type))
            continue
        element, storage = _element_and_storage(value.type)
        if element not in lowered and not (quantized and storage != element and storage in DTYPES):
            dtypes.add(element)
    return dtypes


@remembered
def _element_and_storage(tensor: ir.RankedTensorType) -> tuple[str, str]:
    """The names of a tensor's element type, and of the integers that hold it where it is quantized."""
    return str(tensor.element_type), str(storage_type(tensor.element_type))


def _check_constant(op: ir.OpView) -> str | None:
    if isinstance(ir.RankedTensorType(op.results[0].type).element_type, ir.ComplexType):
        inline = " dense<" in op.operation.get_asm(use_local_scope=True)  # the bindings cannot read the attribute
    else:
        inline = isinstance(op.attributes["value"], ir.DenseElementsAttr)
    return None if inline else "a constant whose elements are not in the program has no lowering"


def _check_dot(op: ir.OpView) -> str | None:
    lhs, rhs = (ir.RankedTensorType(v.type).element_type for v in list(op.operands)[:2])
    by_floats = any(storage_type(element) != element for element in (lhs, rhs))  # quantized
    is_one_kind = any(isinstance(lhs, k) and isinstance(rhs, k) for k in (ir.FloatType, ir.IntegerType, ir.ComplexType))
    return None if by_floats or is_one_kind else f"operands of different kinds ({lhs} and {rhs}) have no lowering"


def _check_body(op: ir.OpView) -> str | None:
    """The bodies of a map, reduction, scatter or sort: scalar ops on their own arguments and constants."""
    for region in op.regions:
        blocks = list(region.blocks)
        if len(blocks) != 1:
            return "a body of several blocks has no lowering"
        names = {inner.operation.name for inner in blocks[0].operations}
        foreign = sorted(names - ELEMENTWISE - {"stablehlo.constant", "stablehlo.return", "func.return"})
        if foreign:
            return f"a body with {', '.join(foreign)} has no lowering"
        if any(constant_of(value) is None for _, _, value in captured(blocks[0])):
            return "a body that uses values from outside has no lowering"
    return None


def _check_called_body(op: ir.OpView) -> str | None:
    """The function that a custom call names as its body."""
    if "called_computations" not in op.attributes:
        return "a custom call without its computation has no lowering"
    return _check_body(called_function(op))


def _check_map(op: ir.OpView) -> str | None:
    """As `_check_body`; a map of no tensors would have no size."""
    return _check_body(op) if op.operands else "a map without operands has no lowering"


def _check_nonzero(op: ir.OpView) -> str | None:
    outside = op.operation.parent.operation.name == "func.func"
    return None if outside else "a size that depends on data cannot be read inside of a loop or branch"


def _check_participants(op: ir.OpView) -> str | None:
    """A collective that `resolve` could not remove."""
    if runs_on_all(op):
        return _check_collective(op)
    count = participants(op)
    if count > 1:
        return f"it is for {count} participants; a program runs on one"
    return "the participant that the program runs on is in none of its groups"


_UNEVEN = ("stablehlo.all_reduce", "stablehlo.collective_broadcast", "stablehlo.collective_permute")
_OLDER = ("stablehlo.collective_reduce", "stablehlo.cross-replica-sum")


def _check_collective(op: ir.OpView) -> str | None:
    """A collective of a program that several devices run."""
    name = op.operation.name
    if name in ("stablehlo.partition_id", "stablehlo.replica_id"):
        return None
    if name in _OLDER:
        return "between several participants it has no lowering"
    if any(storage_type(e := ir.RankedTensorType(v.type).element_type) != e for v in op.operands):
        return "quantized elements have no lowering here"
    try:
        groups = groups_of(op)
    except ValueError as error:
        return str(error)
    if name not in _UNEVEN and len({len(group) for group in groups}) != 1:
        return "groups of different sizes have no lowering"
    if len(op.regions) and reduction_of(op) is None:
        return "a reduction other than add, multiply, maximum, minimum, and, or, xor has no lowering"
    return None


def _check_approx_top_k(op: ir.OpView) -> str | None:
    name = "mhlo.backend_config"
    stated = name in op.attributes and isinstance(op.attributes[name], ir.DictAttr)
    stated = stated and "reduction_dim" in op.attributes[name]
    if not stated:
        return "a top-k that does not name its dimension has no lowering"
    selected = list(op.operands)[: len(op.results)]
    if len({ir.RankedTensorType(v.type).rank for v in (*selected, *op.results)}) != 1:
        return "a top-k of operands or results of several ranks has no lowering"
    return _check_called_body(op)


def _check_top_k(op: ir.OpView) -> str | None:
    """The count is an attribute; so is the order, unless it is that of the largest."""
    name = "mhlo.attributes"
    stated = op.attributes[name] if name in op.attributes else ir.DictAttr.get({})
    if not isinstance(stated, ir.DictAttr) or "k" not in stated or not isinstance(stated["k"], ir.IntegerAttr):
        return "a top-k without its number k has no lowering"
    if "largest" in stated and not isinstance(stated["largest"], ir.BoolAttr):
        return "largest is true or false"
    return None


def _check_einsum(op: ir.OpView) -> str | None:
    """One letter a dimension, each once in an operand."""
    config = ir.StringAttr(op.attributes["einsum_config"]).value
    terms = config.replace("->", ",").split(",")
    ranks = [ir.RankedTensorType(v.type).rank for v in [*op.operands, *op.results]]
    plain = all(t.isalpha() and len(set(t)) == len(t) or not t for t in terms)
    fits = [len(t) for t in terms] == ranks and set(terms[-1]) <= set("".join(terms[:-1]))
    return None if plain and fits else f"an einsum of {config!r} has no lowering"


_STATES = {"THREE_FRY": (2,), "PHILOX": (2, 3), "DEFAULT": (2, 3)}
"""The words of 64 bits that a state has."""


def _check_random_state(op: ir.OpView) -> str | None:
    if "rng_algorithm" not in op.attributes:
        return "it has no rng_algorithm"
    algorithm = str(op.attributes["rng_algorithm"]).split()[-1].rstrip(">")
    counts = next((n for name, n in _STATES.items() if name in algorithm), ())
    types = {str(v.type) for v in (op.operands[0], op.results[0]) if ir.RankedTensorType(v.type).has_static_shape}
    states = [f"tensor<{n}xui64>" for n in counts]
    return None if types and types <= set(states) else f"a state of {algorithm} is {' or '.join(states)}"


_EXTRA_CHECKS = {
    "@shlo_disc.fft": fft_problem,
    **dict.fromkeys(COLLECTIVES, _check_participants),
    "@ApproxTopK": _check_approx_top_k,
    "@stablehlo.dynamic_approx_top_k": _check_approx_top_k,
    "@mhlo.topk": _check_top_k,
    "@shlo_disc.nonzero": _check_nonzero,
    "@stablehlo.dynamic_reduce_window": _check_called_body,
    "@stablehlo.dynamic_rng_bit_generator": _check_random_state,
    "stablehlo.constant": _check_constant,
    "stablehlo.convolution": _check_dot,
    "stablehlo.dot_general": _check_dot,
    "stablehlo.dynamic_conv": _check_dot,
    "stablehlo.einsum": _check_einsum,
    "stablehlo.map": _check_map,
    "stablehlo.reduce": _check_body,
    "stablehlo.reduce_window": _check_body,
    "stablehlo.rng_bit_generator": _check_random_state,
    "stablehlo.scatter": _check_body,
    "stablehlo.select_and_scatter": _check_body,
    "stablehlo.sort": _check_body,
    "stablehlo.unary_einsum": _check_einsum,
}
