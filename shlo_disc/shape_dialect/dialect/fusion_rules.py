# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules for each kind of fusion. The first line of a rule's docstring is what `docs/dialect.md` says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from shlo_disc.shape_dialect.dialect import fusion as kinds
from shlo_disc.shape_dialect.dialect.library import LIBRARY
from shlo_disc.shape_dialect.dialect.problems import Axis, MatrixProduct
from shlo_disc.shape_dialect.dialect.records import Malformed
from shlo_disc.shape_dialect.dialect.scope import Scope
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.symbolic.expr import Expr


def _arguments(function: func.FuncOp) -> list[ir.Value]:
    return list(function.entry_block.arguments)


def _results(function: func.FuncOp) -> list[ir.Value]:
    block = function.entry_block
    return list(block.operations[len(block.operations) - 1].operands)


def _index(name: str, number: int, count: int, *, least: int = 0) -> None:
    if not least <= number < count:
        raise Malformed(f"{kinds.FUSION}: {name} = {number} is none of {count}")


def _check_row_reduce(v: Scope, function: func.FuncOp, what: kinds.RowReduce) -> None:
    """`columns` is at most the number of axes, and `accumulators` is the number of a result."""
    values = (value for op in function.entry_block.operations for value in (*op.operands, *op.results))
    rank = max((ir.RankedTensorType(value.type).rank for value in values), default=0)
    _index("columns", what.columns, rank + 1)
    if what.accumulators is not None:
        _index("accumulators", what.accumulators, len(_results(function)), least=-1)


def _check_reduce(v: Scope, function: func.FuncOp, what: kinds.Reduce) -> None:
    """There is a reduction in a fusion `by_columns`."""
    is_reduction = (op.operation.name == "stablehlo.reduce" for op in function.entry_block.operations)
    if what.by_columns and not any(is_reduction):
        raise Malformed(f"{kinds.FUSION}: by_columns is said of a fusion without reductions")


def _check_epilogue(v: Scope, function: func.FuncOp, what: kinds.Epilogue) -> None:
    """`sums` is the number of an argument, and `accumulators` that of a result."""
    _index("sums", what.sums, len(_arguments(function)))
    if what.accumulators is not None:
        _index("accumulators", what.accumulators, len(_results(function)), least=-1)
    v.check_sizes([what.row])


def _check_updates(v: Scope, function: func.FuncOp, what: kinds.Scatter | kinds.Update) -> None:
    """Each result starts from an argument of the same type."""
    results, arguments = _results(function), _arguments(function)
    if len(what.updates) != len(results):
        raise Malformed(f"{kinds.FUSION}: {len(what.updates)} updates for {len(results)} results")
    for number, result in zip(what.updates, results, strict=True):
        _index("updates", number, len(arguments), least=-1)
        if number >= 0 and arguments[number].type != result.type:
            raise Malformed(f"{kinds.FUSION}: a result {result.type} starts from a {arguments[number].type}")


def _check_recurrence(v: Scope, function: func.FuncOp, what: kinds.Recurrence) -> None:
    """`loops` has one entry for each loop, and each carried value has a role: scalar, rows, or updated stack."""
    whiles = [op for op in function.entry_block.operations if op.operation.name == "stablehlo.while"]
    if len(what.loops) != len(whiles):
        raise Malformed(f"{kinds.FUSION}: {len(what.loops)} loops are said of {len(whiles)}")
    for said, loop in zip(what.loops, whiles, strict=True):
        _check_loop(v, loop, said)


def _check_loop(v: Scope, loop: ir.OpView, said: kinds.RecurrentLoop) -> None:
    body = loop.regions[1].blocks[0]
    carried = list(body.arguments)
    if sorted((*said.states, *said.scalars, *said.stacks)) != list(range(len(carried))) or not said.states:
        raise Malformed(f"{kinds.FUSION}: states, scalars and stacks are not the {len(carried)} carried values")
    if len(said.windows) != len(said.stacks) or not set(said.covered) <= set(said.stacks):
        raise Malformed(f"{kinds.FUSION}: windows or covered are not of the stacks {list(said.stacks)}")
    if any(dims_of(carried[i]) for i in said.scalars) or not all(dims_of(carried[i]) for i in said.states):
        raise Malformed(f"{kinds.FUSION}: a scalar has axes, or a state has none")
    rows = dims_of(carried[said.states[0]])[0]
    if any(dims_of(carried[i])[0] != rows for i in said.states):
        raise Malformed(f"{kinds.FUSION}: states have different numbers of rows")
    for stack, axis in zip(said.stacks, said.windows, strict=True):
        update = body.operations[len(body.operations) - 1].operands[stack].owner
        if isinstance(update, ir.Block) or update.operation.name != "stablehlo.dynamic_update_slice":
            raise Malformed(f"{kinds.FUSION}: the stack {stack} is not updated")
        window = dims_of(update.operation.operands[1])
        _index("windows", axis, len(window))
        if update.operation.operands[0] != carried[stack] or window[axis] != rows:
            raise Malformed(f"{kinds.FUSION}: the stack {stack} is no stack of windows of {rows} rows")
    if said.trip is not None:
        v.check_sizes([said.trip])


def _check_scan(v: Scope, function: func.FuncOp, what: kinds.Scan) -> None:
    """It has a window op, and `axis` is one of its axes."""
    op = next((op for op in function.entry_block.operations if op.operation.name == "stablehlo.reduce_window"), None)
    if op is None:
        raise Malformed(f"{kinds.FUSION}: a fusion of kind scan has no windows")
    _index("axis", what.axis, len(dims_of(op.operands[0])))


def _check_dot(v: Scope, function: func.FuncOp, what: kinds.Dot) -> None:
    """The loops cover all elements of the operands and of the result, and the operands have the element type."""
    for number in what.narrow:
        _index("narrow", number, len(_arguments(function)))
    if what.product is not None:
        _check_gemm(v, function, what.product, ("lhs",) if what.product.rhs in what.narrow else ("lhs", "rhs"))
        (result,) = kinds.results_of(function)
        if not what.narrow:
            _check_covered(v, what.product, "rhs", _arguments(function)[what.product.rhs])
        _check_covered(v, what.product, "lhs", _arguments(function)[what.product.lhs])
        _check_covered(v, what.product, "result", result)


def _check_gemm(v: Scope, function: func.FuncOp, gemm: MatrixProduct, sides: Sequence[str] = ("lhs", "rhs")) -> None:
    arguments = _arguments(function)
    for name in sides:
        _index(name, getattr(gemm, name), len(arguments))
        element = str(element_type_of(arguments[getattr(gemm, name)]))
        if element != gemm.element:
            raise Malformed(f"{kinds.FUSION}: a GEMM of {gemm.element} has elements of {element} as {name}")
    for axis in _axes(gemm):
        v.check_sizes([axis.size, axis.lhs, axis.rhs, axis.result])


def _axes(gemm: MatrixProduct) -> Iterator[Axis]:
    yield from (*gemm.batch, gemm.m, gemm.n, gemm.k)


def _check_covered(v: Scope, gemm: MatrixProduct, side: str, value: ir.Value) -> None:
    """The loops that go along an operand, or the result, go through all of its elements."""
    covered = product(axis.size for axis in _axes(gemm) if getattr(axis, side) != Expr.const(0))
    elements = product(dims_of(value))
    if not v.are_equal([covered], [elements]) and elements.constant != 0:
        raise Malformed(f"{kinds.FUSION}: a GEMM goes through {covered} elements of its {side}, a {value.type}")


def _check_convolution(v: Scope, function: func.FuncOp, what: kinds.Convolution) -> None:
    """Input and result have the same sizes as those of the function."""
    if what.product is None:
        return
    _check_gemm(v, function, what.product.product)
    dims = (("input", dims_of(_arguments(function)[0])), ("result", dims_of(_results(function)[0])))
    for name, stated in dims:
        if not v.are_equal(getattr(what.product, name), stated):
            raise Malformed(f"{kinds.FUSION}: {name} has other sizes than the function's")


def _check_attention(v: Scope, function: func.FuncOp, what: kinds.Attention) -> None:
    """`rows` is a row kernel with as many operands, one of which is the scores; `online` attentions have bounds."""
    arguments = _arguments(function)
    if what.rows not in v.functions or kinds.kind_of(v.functions[what.rows]) != kinds.RowReduce.kind:
        raise Malformed(f"{kinds.FUSION}: @{what.rows} is no row kernel of the module")
    if len(what.row_operands) != len(_arguments(v.functions[what.rows])) or what.row_operands.count(-1) != 1:
        raise Malformed(f"{kinds.FUSION}: row_operands = {list(what.row_operands)} are no operands of @{what.rows}")
    for number in what.row_operands:
        _index("row_operands", number, len(arguments), least=-1)
    if what.problem is None:
        raise Malformed(f"{kinds.FUSION}: problem is missing")
    causal = what.problem.causal
    if causal is not None and (causal.bound is not None, causal.magnitude == 0) != (what.online, what.online):
        raise Malformed(f"{kinds.FUSION}: a bound is there where rows are processed in pieces, else a magnitude")
    if what.problem.visible is not None:
        if causal is not None or what.online:
            raise Malformed(f"{kinds.FUSION}: visible is said of columns that are counted otherwise")
        _index("first", what.problem.visible.first, len(arguments))
        _index("end", what.problem.visible.end, len(arguments))
    if what.hides and not what.online:
        raise Malformed(f"{kinds.FUSION}: hides is said of rows that are not processed in pieces")
    for name in ("query", "key", "value"):
        _index(name, getattr(what.problem, name).number, len(arguments))


def _check_attention_gradient(v: Scope, function: func.FuncOp, what: kinds.AttentionGradient) -> None:
    """Both kernels are row kernels with as many operands and results, and their operands and buffers exist."""
    if what.problem is None:
        raise Malformed(f"{kinds.FUSION}: problem is missing")
    if not 3 <= what.buffers <= kinds.MOST_BUFFERS or not 0 < what.weights < what.buffers:
        raise Malformed(f"{kinds.FUSION}: weights = {what.weights} is none of {what.buffers} buffers")
    values = len(_arguments(function)) + len(_results(function))
    for name, operands in ((what.rows, what.row_operands), (what.gradient_rows, what.gradient_operands)):
        if name not in v.functions or kinds.kind_of(v.functions[name]) != kinds.RowReduce.kind:
            raise Malformed(f"{kinds.FUSION}: @{name} is no row kernel of the module")
        if len(operands) != len(_arguments(v.functions[name])) + len(_results(v.functions[name])):
            raise Malformed(f"{kinds.FUSION}: {list(operands)} are no operands and results of @{name}")
        for number in operands:
            _index("operand", number, values, least=-what.buffers)
    problem = what.problem
    for matrices in (problem.query, problem.key, problem.value, problem.upstream):
        _index("matrices", matrices.number, len(_arguments(function)))
    for matrices in (problem.query_gradient, problem.key_gradient, problem.value_gradient):
        _index("gradient", matrices.number, len(_results(function)))
    _index("first", problem.visible.first, len(_arguments(function)))
    _index("end", problem.visible.end, len(_arguments(function)))


def _check_library_call(v: Scope, function: func.FuncOp, what: kinds.Library) -> None:
    """Its first op is a call with `disc.library`."""
    op = next(iter(function.entry_block.operations))
    if LIBRARY not in op.attributes:
        raise Malformed(f"{kinds.FUSION}: a fusion of kind library does not begin with a call that says {LIBRARY}")


FUSIONS: dict[type[kinds.Fusion], Callable[..., None]] = {
    kinds.RowReduce: _check_row_reduce,
    kinds.Reduce: _check_reduce,
    kinds.Epilogue: _check_epilogue,
    kinds.Scatter: _check_updates,
    kinds.Update: _check_updates,
    kinds.Recurrence: _check_recurrence,
    kinds.Scan: _check_scan,
    kinds.Dot: _check_dot,
    kinds.Convolution: _check_convolution,
    kinds.Attention: _check_attention,
    kinds.AttentionGradient: _check_attention_gradient,
    kinds.Library: _check_library_call,
}
