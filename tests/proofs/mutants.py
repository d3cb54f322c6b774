# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wrong rules: the source of a rule, and of the functions that it calls in its module, with one place changed.

A precondition is dropped, a composition of axes left out, a comparison or an order turned round, a number changed. And
wrong results: the attributes of one op that a rule made changed, or its operands exchanged.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.transforms.simplify.data_movement import Pattern

Edit = Callable[[], str]
"""Changes a tree in place and describes the change."""


def mutants(pattern: Pattern) -> Iterator[tuple[str, Pattern]]:
    """Each wrong form of a rule that is a function of its module, with what was changed."""
    module = sys.modules[pattern.__module__]
    tree = ast.parse(inspect.getsource(module))
    if all(pattern.__name__ != f.name for f in tree.body if isinstance(f, ast.FunctionDef)):
        return
    reached = _reached(tree, pattern.__name__)
    count = len(list(_edits(tree, reached)))
    for number in range(count):
        changed = copy.deepcopy(tree)
        edit = list(_edits(changed, reached))[number]
        text = edit()
        namespace: dict[str, Any] = {"__name__": module.__name__}
        exec(compile(ast.fix_missing_locations(changed), module.__file__ or "", "exec"), namespace)  # noqa: S102
        yield text, namespace[pattern.__name__]


def _reached(tree: ast.Module, name: str) -> set[str]:
    """The names of the functions of a module that one of them calls, and its own."""
    functions = {f.name: f for f in tree.body if isinstance(f, ast.FunctionDef)}
    pending, seen = [name], set[str]()
    while pending:
        name = pending.pop()
        if name in functions and name not in seen:
            seen.add(name)
            pending += [n.id for n in ast.walk(functions[name]) if isinstance(n, ast.Name)]
    return seen


def _edits(tree: ast.Module, names: set[str]) -> Iterator[Edit]:
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.name in names:
            for parent in (node for statement in function.body for node in ast.walk(statement)):
                yield from _conditions_dropped(parent)
                yield from _expressions_changed(parent)


def _conditions_dropped(node: ast.AST) -> Iterator[Edit]:
    """Guards that return or skip, and each condition of several."""
    if isinstance(node, ast.If) and isinstance(node.body[-1], (ast.Return, ast.Continue)):
        yield lambda: _set(node, "test", ast.Constant(False))
    if isinstance(node, ast.BoolOp):
        for position in range(len(node.values)):
            neutral = ast.Constant(isinstance(node.op, ast.And))
            yield lambda position=position, neutral=neutral: _set_item(node.values, position, neutral)  # type: ignore[misc]


def _expressions_changed(node: ast.AST) -> Iterator[Edit]:
    for field, value in ast.iter_fields(node):
        items = value if isinstance(value, list) else [value]
        for position, item in enumerate(items):
            for other in _others(item):

                def edit(position: int = position, other: ast.expr = other, field: str = field) -> str:
                    held = getattr(node, field)
                    return _set_item(held, position, other) if isinstance(held, list) else _set(node, field, other)

                yield edit


def _others(node: Any) -> Iterator[ast.expr]:
    """Wrong forms of an expression."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node.slice  # A composition of axes is left out.
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and isinstance(node.ctx, ast.Load):
        yield node.value  # An order is not turned round, or all is taken for a part.
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        opposite = {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Lt: ast.GtE}
        if type(node.ops[0]) in opposite:
            yield ast.Compare(node.left, [opposite[type(node.ops[0])]()], node.comparators)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield ast.Constant(node.value + 1)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "index" and node.args:
        yield node.args[0]
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        yield node.left
    if isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) == 2 and isinstance(node.ctx, ast.Load):
        yield type(node)(node.elts[::-1], node.ctx)


# ---- wrong results -------------------------------------------------------------------------------------------------


def wrong_results(module: ir.Module) -> Iterator[str]:
    """Changes a module in place, one change after another, each of which is taken back, and describes it."""
    main = next(op for op in module.body.operations if ir.StringAttr(op.attributes["sym_name"]).value == "main")
    for op in list(main.regions[0].blocks[0].operations)[:-1]:
        for name in list(op.attributes):
            held = op.attributes[name]
            for other in _other_attributes(held):
                op.attributes[name] = other
                yield f"{op.operation.name}: {held} -> {other}"
                op.attributes[name] = held
        if len(op.operands) > 1 and op.operands[0].type == op.operands[1].type:
            first, second = op.operands[:2]
            op.operands[0], op.operands[1] = second, first
            yield f"{op.operation.name}: operands exchanged"
            op.operands[0], op.operands[1] = first, second


def _other_attributes(attribute: ir.Attribute) -> Iterator[ir.Attribute]:
    if isinstance(attribute, ir.DenseI64ArrayAttr):
        numbers = list(attribute)
        for i in range(len(numbers) - 1):
            yield ir.DenseI64ArrayAttr.get([*numbers[:i], numbers[i + 1], numbers[i], *numbers[i + 2 :]])
        for i, n in enumerate(numbers):
            yield ir.DenseI64ArrayAttr.get([*numbers[:i], n + 1, *numbers[i + 1 :]])
    elif isinstance(attribute, ir.IntegerAttr):
        yield ir.IntegerAttr.get(attribute.type, attribute.value + 1)
    elif isinstance(attribute, ir.ArrayAttr):
        items = list(attribute)
        for i in range(len(items) - 1):
            yield ir.ArrayAttr.get([*items[:i], items[i + 1], items[i], *items[i + 2 :]])
    elif "dimensions = [" in str(attribute):
        text = str(attribute)
        for found in re.finditer(r"\d+", text):
            for other in {0, 1, 2} - {int(found[0])}:
                with contextlib.suppress(ir.MLIRError, ValueError):
                    yield ir.Attribute.parse(text[: found.start()] + str(other) + text[found.end() :])


# ---- edits of a tree -------------------------------------------------------------------------------------------------


def _set(node: ast.AST, field: str, value: ast.expr) -> str:
    before = ast.unparse(getattr(node, field))
    setattr(node, field, value)
    return f"{before} -> {ast.unparse(value)}"


def _set_item(values: list[Any], position: int, value: ast.expr) -> str:
    before = ast.unparse(values[position])
    values[position] = value
    return f"{before} -> {ast.unparse(value)}"
