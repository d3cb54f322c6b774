# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks attentions whose rows come in pieces: what their row kernel does has to be a softmax of the scores.

The kernel is read from its beginning to its end, where what fuses reads it backwards. Each value gets a role; a value
that has none makes those roleless that are made of it. The weights have to come out with the role of weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect.dialect.fusion import Attention, fusion_of
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, product
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops import BROADCASTS, ELEMENTWISE, GENERATORS
from shlo_disc.shape_dialect.utils.regions import callee_of
from shlo_disc.verify.hidden_columns import wrong_mask

_FLOATS = ("f32", "f16", "bf16")


@dataclass(frozen=True)
class _Role:
    """The role of a value: `name`, of which elements `of`.

    "given" is made of no score, "element" of the score where it stands. number: what all elements of a given value are,
    where it is known. spread: a value of a row is repeated along it. guarded: there is a number instead where the row
    is nothing but -inf.
    """

    name: str
    of: ir.Value | None = None
    number: float | None = None
    spread: bool = False
    guarded: bool = False


_Roles = dict[ir.Value, _Role]
_GIVEN_ROLE = _Role("given")


def verify_attention(function: func.FuncOp, kernels: Mapping[str, func.FuncOp]) -> None:
    """Check a fusion of kind "attention". Raises CompilerError on one that is wrong."""
    what = fusion_of(function)
    if not isinstance(what, Attention) or not what.online:
        return
    calls = [op.operation for op in function.entry_block.operations if op.operation.name == "func.call"]
    rows = kernels[what.rows]
    found = [op for op in calls if callee_of(op) == what.rows]
    if len(found) != 1 or what.row_operands.count(-1) != 1:
        _fail(function, "its row kernel is not called once, with the scores once")
    arguments = list(function.entry_block.arguments)
    for number, value in zip(what.row_operands, found[0].operands, strict=True):
        if (number < 0) == (value in arguments) or (number >= 0 and arguments[number] != value):
            _fail(function, "its row kernel reads other operands than it says")
    weights = _weights(rows, what.row_operands.index(-1))
    if weights is None or weights.of is None:
        _fail(function, f"@{what.rows} is no softmax of the scores along their last axis")
    reductions = (op for op in rows.entry_block.operations if op.operation.name == "stablehlo.reduce")
    if next(reductions).operands[0] != weights.of:
        _fail(function, f"@{what.rows} first reduces something else than what the softmax is of")
    if what.hides != weights.guarded:
        _fail(function, f"@{what.rows} gives other weights to rows of nothing but -inf than it says")
    if what.problem is not None and what.problem.causal is not None:
        wrong = wrong_mask(rows, weights.of, what.problem)
        if wrong:
            _fail(function, wrong)
    if what.partials:
        _verify_partials(function, what)


def _verify_partials(function: func.FuncOp, what: Attention) -> None:
    """Blocks have room for two numbers of each row, and for what a row weighs."""
    *_, last = function.entry_block.operations
    memory = list(last.operands)[-what.partials :]
    problem = what.problem
    rows = None if problem is None else product(a.size for a in problem.batch) * problem.rows.size
    rooms = [] if rows is None or problem is None else [(rows,), (rows,), (rows, problem.width)]
    if [dims_of(m)[1:] for m in memory] != rooms:
        _fail(function, "the room for what its blocks leave has other sizes than rows and what they weigh")


def _fail(function: func.FuncOp, text: str) -> NoReturn:
    raise CompilerError(f"fuse: the fusion @{function.name.value} is wrong: {text}")


def _weights(rows: func.FuncOp, scores: int) -> _Role | None:
    """The role of the weights that a softmax returns; None for any other kernel."""
    block = rows.entry_block
    roles: _Roles = dict.fromkeys(block.arguments, _GIVEN_ROLE)
    whole = dims_of(block.arguments[scores])
    roles[block.arguments[scores]] = _Role("element")
    *operations, last = block.operations
    for op in operations:
        role = _role(op.operation, roles, whole)
        if role is not None:
            roles.update(dict.fromkeys(op.results, role))
    weights = roles.get(last.operands[0])
    is_softmax = weights is not None and weights.name == "weight" and dims_of(last.operands[0]) == whole
    return weights if is_softmax else None


def _role(op: ir.Operation, roles: _Roles, whole: Dims) -> _Role | None:
    """The role of an op's result; None where it has none."""
    if op.name in GENERATORS:
        return replace(_GIVEN_ROLE, number=_number(op))
    operands = [roles.get(v) for v in op.operands]
    if op.name in BROADCASTS:
        return None if operands[0] is None else _spread(op, operands[0], whole)
    if any(role is None for role in operands):
        return None
    known = [role for role in operands if role is not None]
    if op.name == "stablehlo.reduce":
        return _reduced(op, known, whole)
    rule = _RULES.get(op.name.removeprefix("stablehlo."))
    found = None if rule is None else rule(op, *known)
    if found is not None or op.name not in ELEMENTWISE or any(r.name not in ("given", "element") for r in known):
        return found
    return _Role("element" if any(r.name == "element" for r in known) else "given")


def _number(op: ir.Operation) -> float | None:
    if op.name != "stablehlo.constant" or not ir.DenseElementsAttr(op.attributes["value"]).is_splat:
        return None
    value = ir.DenseElementsAttr(op.attributes["value"]).get_splat_value()
    return float(value.value) if isinstance(value, ir.FloatAttr | ir.IntegerAttr) else None


def _spread(op: ir.Operation, role: _Role, whole: Dims) -> _Role | None:
    """A value that is given may be repeated anyhow; one of rows along its row alone, and no element."""
    if role.name == "given":
        return role
    axes = list(ir.DenseI64ArrayAttr(op.attributes["broadcast_dimensions"]))
    is_row = (
        dims_of(op.operands[0]) == whole[:-1] and dims_of(op.results[0]) == whole and axes == list(range(len(axes)))
    )
    return replace(role, spread=True) if is_row and role.name in ("peak", "total") and not role.spread else None


def _reduced(op: ir.Operation, operands: list[_Role], whole: Dims) -> _Role | None:
    """The largest element of a row, or the sum of its powers."""
    along = list(ir.DenseI64ArrayAttr(op.attributes["dimensions"]))
    body = [inner.operation for inner in op.regions[0].blocks[0].operations]
    if len(operands) != 2 or dims_of(op.operands[0]) != whole or along != [len(whole) - 1] or len(body) != 2:
        return None
    is_plain = (
        set(body[0].operands) == set(op.regions[0].blocks[0].arguments) and body[1].operands[0] == body[0].results[0]
    )
    value, start = operands
    if is_plain and body[0].name == "stablehlo.maximum" and value.name == "element" and start.number == -math.inf:
        return _Role("peak", op.operands[0])
    if is_plain and body[0].name == "stablehlo.add" and value.name == "power" and start.number == 0:
        return _Role("total", value.of)
    return None


# ---- elementwise ----------------------------------------------------------------------------------------------------


def _maximum(op: ir.Operation, left: _Role, right: _Role) -> _Role | None:
    for one, other in ((left, right), (right, left)):
        if one.number == -math.inf and other.name == "peak":
            return other
    return None


def _subtract(op: ir.Operation, left: _Role, right: _Role) -> _Role | None:
    is_less = right.name == "peak" and right.spread and left.name == "element" and right.of == op.operands[0]
    return replace(right, name="exponent", spread=False) if is_less else None


def _exponential(op: ir.Operation, x: _Role) -> _Role | None:
    return replace(x, name="power") if x.name == "exponent" else None


def _convert(op: ir.Operation, x: _Role) -> _Role | None:
    source, result = (str(ir.RankedTensorType(v.type).element_type) for v in (op.operands[0], op.results[0]))
    is_number = source in ("i32", "i64") and x.number is not None
    return x if result in _FLOATS and (source in _FLOATS or is_number) else None


def _compare(op: ir.Operation, left: _Role, right: _Role) -> _Role | None:
    """Tells whether the largest element is -inf."""
    is_equal = "EQ" in str(op.attributes["comparison_direction"])
    is_guard = is_equal and left.name == "peak" and not left.spread and right.number == -math.inf
    return _Role("guard", left.of) if is_guard else None


def _select(op: ir.Operation, choice: _Role, yes: _Role, no: _Role) -> _Role | None:
    """0 in place of a largest element of -inf, 1 in place of the sum of such a row."""
    is_guarded = choice.name == "guard" and (no.name, yes.number) in (("peak", 0), ("total", 1))
    return replace(no, guarded=True) if is_guarded and no.of == choice.of else None


def _divide(op: ir.Operation, left: _Role, right: _Role) -> _Role | None:
    is_weight = left.name == "power" and right.name == "total" and right.spread and left.of == right.of
    return _Role("weight", left.of, guarded=left.guarded and right.guarded) if is_weight else None


_RULES: dict[str, Callable[..., _Role | None]] = {
    "maximum": _maximum,
    "subtract": _subtract,
    "exponential": _exponential,
    "convert": _convert,
    "compare": _compare,
    "select": _select,
    "divide": _divide,
}
