# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `annotate` stage: every dynamic size gets a symbol, and the module says what is known of it.

The sizes of the arguments are those of the module's signature. One forward walk derives all other sizes from the shape
computations, collecting the equalities that ops imply; a second step writes canonical sizes into the types, so that
equal sizes share one symbol.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from shlo_disc.errors import CompilerError, OptionError, ProgramError, Unsupported, UnsupportedError
from shlo_disc.shape_dialect.dialect.declarations import Constraint, facts_of, write_declarations
from shlo_disc.shape_dialect.dialect.signature import argument_shapes
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.inference.sizes_inside import check_sizes_inside, limit_count
from shlo_disc.shape_dialect.inference.skipped import skipped_where
from shlo_disc.shape_dialect.inference.unify_sizes import unify_sizes
from shlo_disc.shape_dialect.inference.unused_sizes import erase_unused_sizes
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import VALUE_RULES, size_rule_of
from shlo_disc.shape_dialect.ops.nested_blocks import all_values, nested_blocks
from shlo_disc.shape_dialect.ops.propagation import DataDependentSize, Propagation
from shlo_disc.shape_dialect.ops.values import SymbolicValues
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation
from shlo_disc.shape_dialect.utils.locations import source_line
from shlo_disc.shape_dialect.utils.regions import entry_block, main_function, terminator_of


def set_argument_sizes(module: ir.Module) -> None:
    """Give the arguments of the entry function the sizes that the module's signature states, in place."""
    for argument, dims in zip(entry_block(module).arguments, argument_shapes(module), strict=True):
        argument.set_type(tensor_type(dims, element_type_of(argument)))
    _write_function_type(module)


def infer_sizes(module: ir.Module, hints: Mapping[str, int] = MappingProxyType({})) -> None:
    """Give every dynamic size of a module whose arguments have theirs a symbol or an expression, in place.

    hints: likely values of symbols. Raises ProgramError on sizes that can never agree, UnsupportedError on sizes that
    depend on data and OptionError on a hint for no symbol.
    """
    facts = facts_of(module)
    block = entry_block(module)
    propagation = Propagation(facts, SymbolicValues(facts, VALUE_RULES))
    constraints = _propagate(block, propagation)
    constraints += [Constraint(r, "", (), origin) for r, origin in propagation.implied]
    erase_unused_sizes(block)  # what the assertions read
    unify_sizes(block, facts)
    _write_function_type(module)
    _declare(module, facts, constraints, hints)


def _propagate(block: ir.Block, p: Propagation) -> list[Constraint]:
    constraints = []
    data_dependent = []
    for op in list(block.operations):
        name = op.operation.name
        is_assertion = name == "stablehlo.custom_call" and _target(op) == "shape_assertion"
        if not op.results and not is_assertion:
            if name == "disc.bind" and p.is_nested:
                limit_count(op, p.facts)
            p.values.visit(op)
            continue
        try:
            if is_assertion:
                constraints += _assertion(op, p)
                op.operation.erase()
                continue
            if nested_blocks(op):
                constraints += _propagate_control(op, p)
                continue
            _infer(op, p)
        except DataDependentSize:
            data_dependent.append(op)
            break
        p.values.visit(op)
    if data_dependent:
        op = data_dependent[0]
        reason = "its size depends on the elements of a tensor, not on the sizes of the arguments"
        advice = "compute the size from argument shapes, or from at most 64 integers outside of loops and branches"
        raise UnsupportedError([Unsupported(op.operation.name, "", source_line(op.location), reason, advice)])
    return constraints


def _infer(op: ir.OpView, p: Propagation) -> None:
    types = [ir.RankedTensorType(r.type) for r in op.results]
    if not _has_parameters(op) and all(t.has_static_shape for t in types):
        _learn_from_static(op, p)
        return
    for result, dims in zip(op.results, _sizes_of_results(op, p), strict=True):
        tensor = ir.RankedTensorType(result.type)
        for axis, dim in enumerate(dims):
            if not tensor.is_dynamic_dim(axis):
                p.equal(dim, Expr.const(tensor.shape[axis]), op)
            else:
                p.require(Relation.ge(dim, 0), op)
        simplified = [p.facts.simplify(d) for d in dims]
        known = [
            d if tensor.is_dynamic_dim(axis) else Expr.const(tensor.shape[axis]) for axis, d in enumerate(simplified)
        ]
        result.set_type(tensor_type(known, tensor.element_type))


def _sizes_of_results(op: ir.OpView, p: Propagation) -> list[Dims]:
    rule = size_rule_of(op)
    if rule is None:
        raise CompilerError(f"annotate: {op.operation.name} has no rule for its sizes")
    found = rule(p, op)
    ranks = (ir.RankedTensorType(result.type).rank for result in op.results)
    if any(len(dims) != rank for dims, rank in zip(found, ranks, strict=False)):
        raise ProgramError(f"{_place(op)}: a result has another rank than the op gives it")
    if len(found) != len(op.results):
        raise ProgramError(f"{_place(op)}: it has {len(found)} results, not {len(op.results)}")
    return found


def _place(op: ir.OpView) -> str:
    return f"{op.operation.name} at {source_line(op.location)}"


def _has_parameters(op: ir.OpView) -> bool:
    """Tells whether operands say more than the sizes of the results: their data is read even if these are known."""
    is_window = op.operation.name == "stablehlo.custom_call" and _target(op) == "stablehlo.dynamic_reduce_window"
    return is_window or op.operation.name in _PARAMETERS


_PARAMETERS = frozenset({"stablehlo.dynamic_conv", "stablehlo.dynamic_reshape", "stablehlo.real_dynamic_slice"})


def _propagate_control(op: ir.OpView, p: Propagation) -> list[Constraint]:
    """Through a loop or a branch: its results have the sizes that every way through it gives them."""
    blocks = nested_blocks(op)
    for block in blocks:
        for argument, start in zip(block.arguments, op.operands, strict=False):
            _set_dims(argument, dims_of(start), op, p)
    reads_data, skipped, is_nested = p.reads_data, p.skipped, p.is_nested
    p.reads_data, p.is_nested = False, True
    constraints = []
    for block, never in zip(blocks, skipped_where(op, p.values), strict=True):
        p.skipped = skipped if never is None else (*skipped, never)
        constraints += _propagate(block, p)
    p.reads_data, p.skipped, p.is_nested = reads_data, skipped, is_nested
    check_sizes_inside(op, p.facts)
    is_loop = op.operation.name == "stablehlo.while"
    sources = list(op.operands) if is_loop else list(terminator_of(blocks[0]).operands)
    for result, source in zip(op.results, sources, strict=True):
        _set_dims(result, dims_of(source), op, p)
    for block in blocks[1:]:
        for result, returned in zip(op.results, terminator_of(block).operands, strict=True):
            for a, b in zip(dims_of(returned), dims_of(result), strict=True):
                p.equal(a, b, op)
    return constraints


def _set_dims(value: ir.Value, dims: Dims, op: ir.OpView, p: Propagation) -> None:
    """Give `value`, an argument or a result of `op`, the sizes `dims`; what its type states of them must agree."""
    tensor = ir.RankedTensorType(value.type)
    if tensor.has_static_shape and all(d.constant is not None for d in dims):
        return
    known = []
    for axis, dim in enumerate(dims):
        if not tensor.is_dynamic_dim(axis):
            p.equal(dim, Expr.const(tensor.shape[axis]), op)
            dim = Expr.const(tensor.shape[axis])
        known.append(p.facts.simplify(dim))
    value.set_type(tensor_type(known, tensor.element_type))


def _learn_from_static(op: ir.OpView, p: Propagation) -> None:
    """A static result of dynamic operands states equalities too: `add(?, ?) -> 4` means both are 4."""
    # MLIR has verified static sizes, except those of custom calls.
    verified = op.operation.name != "stablehlo.custom_call"
    if verified and all(ir.RankedTensorType(v.type).has_static_shape for v in op.operands):
        return
    reads_data, p.reads_data = p.reads_data, False
    try:
        inferred = _sizes_of_results(op, p)
    except DataDependentSize:
        return
    finally:
        p.reads_data = reads_data
    for result, dims in zip(op.results, inferred, strict=True):
        for a, b in zip(dims, dims_of(result), strict=True):
            p.equal(a, b, op)


def _target(op: ir.OpView) -> str:
    return ir.StringAttr(op.attributes["call_target_name"]).value


def _assertion(op: ir.OpView, p: Propagation) -> list[Constraint]:
    """The constraint of a `custom_call @shape_assertion`; [] when the facts prove it."""
    relation = p.values.relation(op.operands[0])
    elements = p.values.get(op.operands[0])
    operands = [p.values.get(v) for v in list(op.operands)[1:]]
    if elements is None or any(o is None for o in operands):
        raise DataDependentSize
    relation = relation or Relation.eq(elements[0], 1)
    proved = p.facts.prove(relation)
    if proved is True:
        return []
    message = ir.StringAttr(op.attributes["error_message"]).value
    if proved is False:
        raise ProgramError(f"{source_line(op.location)}: no call can satisfy {relation}, which the program asserts")
    p.check_is_planned(relation, op)
    p.facts.add(relation)
    return [Constraint(relation, message, tuple(o[0] for o in operands if o), source_line(op.location))]


def _write_function_type(module: ir.Module) -> None:
    function = main_function(module)
    block = function.regions[0].blocks[0]
    terminator = block.operations[len(block.operations) - 1]
    inputs = [a.type for a in block.arguments]
    results = [v.type for v in terminator.operands]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def _declare(module: ir.Module, facts: Facts, constraints: list[Constraint], hints: Mapping[str, int]) -> None:
    """Write what is known of the sizes into the module."""
    constraints = [_rewritten(c, facts) for c in constraints]
    constraints = [c for c in constraints if c.relation.operator != "==" or c.relation.lhs != c.relation.rhs]
    sizes = {d for value in all_values(entry_block(module)) for d in dims_of(value)}
    used = {name for d in sizes for name in d.symbols()} | {n for c in constraints for n in c.relation.symbols()}
    used |= set(facts.data_symbols)
    for name, value in hints.items():
        if name not in used:
            symbols = [known for known in facts.symbols if known in used]
            raise OptionError(f"the hint for {name!r} names no symbol; the symbols are {symbols}")
        known = facts.symbols[name]
        facts.declare(name, min=known.min, max=known.max, hints=(value,))
    write_declarations(module, facts, used, sizes, constraints)


def _rewritten(constraint: Constraint, facts: Facts) -> Constraint:
    """The constraint over the symbols that the types still have.

    An equality whose symbol was replaced everywhere by the other side becomes trivial: the types state it. Nothing else
    that the facts know is used, for `mod(b, 4) == 0` or `b*s == 15` is stated by no argument's type, and every call
    must be checked. A symbol that is read from data keeps its name: what is read must be checked.
    """
    names = {*constraint.relation.symbols(), *(n for o in constraint.operands for n in o.symbols())}
    names -= set(facts.data_symbols)
    replaced = {name: facts.canonical(Expr.symbol(name)) for name in names}
    return replace(
        constraint,
        relation=constraint.relation.substitute(replaced),
        operands=tuple(o.substitute(replaced) for o in constraint.operands),
    )
