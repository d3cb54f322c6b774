# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the fusions of GEMMs with what follows them: what one hands over is what the next one reads, and no more.

Between the calls in such a fusion a value has no buffer, or one that another value reuses in place. So nothing but the
call that follows may read it, and that call must read it row by row, or element by element, as it is handed over.

A kernel of rows goes through the rows of its first reduction. So all of its reductions have to be along the same rows,
and its results are of rows, or of the elements in them. The windows of a scan are all prefixes, or all suffixes, of its
axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NoReturn

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect.dialect.declarations import facts_of
from shlo_disc.shape_dialect.dialect.fusion import (
    Epilogue,
    Scan,
    Sort,
    accumulators_of,
    columns_of,
    fusion_of,
    is_by_columns,
    is_fusion,
    kind_of,
    partials_of,
    product_of,
    results_of,
)
from shlo_disc.shape_dialect.dialect.library import is_narrow_product, library_function_of
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import func, ir, stablehlo
from shlo_disc.shape_dialect.ops import RESHAPES
from shlo_disc.shape_dialect.ops.element_types import SUM_TYPES
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.shape_dialect.utils.regions import callee_of
from shlo_disc.shape_dialect.utils.windows import window_of
from shlo_disc.verify.accesses import Walk, reads_of
from shlo_disc.verify.attention import verify_attention
from shlo_disc.verify.recurrences import verify_recurrence
from shlo_disc.verify.visible_columns import verify_visible_columns

Kernels = Mapping[str, func.FuncOp]
Rows = tuple[Expr, Expr | None]
"""The elements of a row, and how many rows there are, where that is known."""

_GEMMS = ("dot", "convolution")


def verify_fusions(module: ir.Module, facts: Facts | None = None) -> None:
    """Check the fusions of products, rows, attentions and recurrences of a module. Raises CompilerError on a wrong one.

    facts: what is known of its sizes; by default what it declares. Sizes that are made of others are compared by them.
    """
    kernels = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
    facts = facts_of(module) if facts is None else facts
    for function in kernels.values():
        if _kind(function) == "gemm":
            _verify_product(function, kernels, facts)
        if _kind(function) == "attention":
            verify_attention(function, kernels)
        if _kind(function) == "recurrence":
            verify_recurrence(function)
        if not is_fusion(function):
            _verify_calls(function.entry_block, kernels)
        if _kind(function) == "row_reduce" and columns_of(function):
            _verify_rows(function)
        if _kind(function) == "reduce" and is_by_columns(function):
            _verify_columns(function)
        if _kind(function) == "scan":
            _verify_scan(function, facts)
        if _kind(function) == "sort":
            _verify_sort(function)
        if is_fusion(function) and partials_of(function):
            _verify_memory(function, kernels)


def _verify_memory(function: func.FuncOp, kernels: Kernels) -> None:
    """Check the scratch memory of a fusion that is split over blocks."""
    kind, memory = _kind(function), _memory_of(function)
    if len({dims_of(m)[:1] for m in memory}) != 1:
        _fail(function, "its blocks do not have room for each value that they leave")
    if kind == "nonzero" and any(len(dims_of(m)) != 1 for m in memory):
        _fail(function, "its blocks have room for more than how many elements are true")
    if kind in ("reduce", "row_reduce"):
        _verify_partials(function)
    if kind == "top_k":
        _verify_best(function)
    if kind == "dot":
        _verify_depth(function)
    if kind == "gemm" and not all(_is_of_product(m, kernels) for m in memory):
        _fail(function, "its last results are not the scratch memory of its products")


def _verify_calls(block: ir.Block, kernels: Kernels) -> None:
    """Check what calls of attentions say of columns that other calls have computed."""
    for op in block.operations:
        if op.operation.name == "func.call" and _kind(kernels[callee_of(op)]) in ("attention", "attention_gradient"):
            verify_visible_columns(op.operation, kernels[callee_of(op)], kernels)
        for region in op.operation.regions:
            for inner in region.blocks:
                _verify_calls(inner, kernels)


def _verify_rows(function: func.FuncOp) -> None:
    reduces = [op for op in function.entry_block.operations if op.operation.name == "stablehlo.reduce"]
    walks = {_rows_and_columns(op.operation) for op in reduces}
    if len(walks) != 1 or None in walks:
        _fail(function, "its reductions are not along the same rows")
    rows, columns = walks.pop() or ((), ())
    if any(_wide(dims_of(v)) not in (rows, rows + columns) for v in results_of(function)):
        _fail(function, "a result is neither of its rows nor of their elements")


def _verify_columns(function: func.FuncOp) -> None:
    *ops, _ = function.entry_block.operations
    made: set[ir.Value] = set()
    walks = set()
    for op in ops:
        is_reduction = op.operation.name == "stablehlo.reduce"
        if is_reduction:
            along = sorted(ir.DenseI64ArrayAttr(op.attributes["dimensions"]))
            if not along or along[-1] - along[0] + 1 != len(along) or along[-1] + 1 == len(dims_of(op.operands[0])):
                _fail(function, "it reduces along other axes than neighbours before the last one")
            walks.add((dims_of(op.operands[0]), tuple(along)))
            if made.intersection(op.operands):
                _fail(function, "a reduction needs what another one makes")
        if is_reduction or made.intersection(op.operands):
            made.update(op.results)
    if len(walks) != 1:
        _fail(function, "its reductions are not down the same columns")
    ((dims, axes),) = walks
    columns = _wide(tuple(size for axis, size in enumerate(dims) if axis not in axes))
    if any(_wide(dims_of(v)) != columns for v in results_of(function)):
        _fail(function, "a result has other sizes than its reduction's")


def _memory_of(function: func.FuncOp) -> list[ir.Value]:
    """The scratch memory of a fusion that is split over blocks."""
    *_, last = function.entry_block.operations
    return list(last.operands)[len(results_of(function)) :]


def _verify_partials(function: func.FuncOp) -> None:
    ops = [op for op in function.entry_block.operations if op.operation.name == "stablehlo.reduce"]
    memory = _memory_of(function)
    values = [value for op in ops for value in op.results]
    if len(memory) != len(values):
        _fail(function, "its blocks do not have room for each value that they leave")
    if any(dims_of(m)[1:] != dims_of(v) for m, v in zip(memory, values, strict=True)):
        _fail(function, "the room for what its blocks leave has other sizes than the values")
    if {axis for v in results_of(function) for axis in _wide(dims_of(v))} - set(_wide(dims_of(values[0]))):
        _fail(function, "a result goes along what its blocks have parts of")


def _verify_best(function: func.FuncOp) -> None:
    op = next(op for op in function.entry_block.operations if op.operation.name == "stablehlo.sort")
    lines, count = product(dims_of(op.operands[0])[:-1]), dims_of(results_of(function)[0])[-1]
    if [dims_of(m)[1:] for m in _memory_of(function)] != [(lines, count)] * len(op.operands):
        _fail(function, "its blocks do not have room for the first elements of each line")


def _verify_sort(function: func.FuncOp) -> None:
    what = fusion_of(function)
    op = next(op for op in function.entry_block.operations if op.operation.name == "stablehlo.sort")
    known = {symbol for size in dims_of(op.operands[0]) for symbol in size.symbols()}
    if isinstance(what, Sort) and not known.issuperset(what.parts.symbols()):
        _fail(function, "its parts have other sizes than its lines")


def _verify_depth(function: func.FuncOp) -> None:
    memory, problem = _memory_of(function), product_of(function)
    sums = "" if problem is None else SUM_TYPES[problem.element]
    if [(len(dims_of(m)), str(element_type_of(m))) for m in memory] != [(2, sums)]:
        _fail(function, "its blocks do not have room for the sums of each tile")


def _is_of_product(value: ir.Value, kernels: Kernels) -> bool:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "func.call":
        return False
    kernel = _callee(owner.operation, kernels)
    return _kind(kernel) == "dot" and list(owner.results).index(value) >= len(results_of(kernel))


def _verify_scan(function: func.FuncOp, facts: Facts) -> None:
    what = fusion_of(function)
    op = next(op for op in function.entry_block.operations if op.operation.name == "stablehlo.reduce_window")
    window, dims, one, nothing = window_of(op), dims_of(op.operands[0]), Expr.const(1), Expr.const(0)
    if not isinstance(what, Scan) or dims_of(op.results[0]) != dims:
        _fail(function, "its windows are not as many as the elements")
    lines = product(size for axis, size in enumerate(dims) if axis != what.axis)
    if any(dims_of(m)[1:] != (lines,) for m in _memory_of(function)):
        _fail(function, "the room for what its blocks leave has other sizes than its lines")
    for axis, size in enumerate(dims):
        steps = (window.stride[axis], window.base_dilation[axis], window.dilation[axis])
        before, after = (size - 1, nothing) if axis == what.axis else (nothing, nothing)
        if axis == what.axis and what.reverse:
            before, after = after, before
        stated = (window.size[axis], window.low[axis], window.high[axis])
        whole = (size if axis == what.axis else one, before, after)
        if not all(map(facts.equal, stated, whole)) or (axis == what.axis and set(steps) != {one}):
            _fail(function, f"its windows along {axis} are not those of a scan along {what.axis}")


def _rows_and_columns(op: ir.Operation) -> tuple[Dims, Dims] | None:
    """The sizes of rows and columns of a reduction, without those of 1; None where the last ones are not columns."""
    dims = dims_of(op.operands[0])
    along = set(ir.DenseI64ArrayAttr(op.attributes["dimensions"]))
    wide = [axis for axis, size in enumerate(dims) if size.constant != 1]
    kept = [axis for axis in wide if axis not in along]
    if not along.intersection(wide) or kept != wide[: len(kept)]:
        return None
    return tuple(dims[axis] for axis in kept), tuple(dims[axis] for axis in wide[len(kept) :])


def _wide(dims: Dims) -> Dims:
    return tuple(size for size in dims if size.constant != 1)


def _kind(function: func.FuncOp) -> str:
    return kind_of(function) if is_fusion(function) else ""


def _callee(call: ir.Operation, kernels: Kernels) -> func.FuncOp:
    return kernels[callee_of(call)]


def _verify_product(function: func.FuncOp, kernels: Kernels, facts: Facts) -> None:
    calls = [op.operation for op in function.entry_block.operations if op.operation.name == "func.call"]
    lefts = set()
    for number, call in enumerate(calls):
        kernel = _callee(call, kernels)
        if _kind(kernel) not in _GEMMS:
            continue
        lefts.add(_root(call.operands[_left_of(kernel)]))
        follower = calls[number + 1] if number + 1 < len(calls) else None
        follower = None if follower is None or _kind(_callee(follower, kernels)) in _GEMMS else follower
        _verify_gemm(function, call, follower, kernels, facts)
    if len(lefts) > 1:
        _fail(function, "its products read different left-hand sides")


def _verify_gemm(
    function: func.FuncOp, call: ir.Operation, follower: ir.Operation | None, kernels: Kernels, facts: Facts
) -> None:
    result = call.results[0]
    readers = list(_readers(result))
    returns = [op for op, _ in readers if op.name == "func.return"]
    others = [(op, number) for op, number in readers if op.name != "func.return"]
    if follower is None:
        if others or len(returns) != 1:
            _fail(function, "a product without an epilogue is not exactly one of its results")
        return
    if len(others) != 1 or others[0][0] != follower:
        _fail(function, "a product is read by something else than its one epilogue")
    epilogue = _callee(follower, kernels)
    _verify_hand_over(function, epilogue, others[0][1], _rows_of(_callee(call, kernels)), facts)
    has_room = _has_tiles(epilogue) or _sums(function, epilogue) >= 0
    if len(returns) != (0 if has_room else 1):
        _fail(function, "sums without a buffer are returned, or sums that need one are not")


def _verify_hand_over(
    function: func.FuncOp, epilogue: func.FuncOp, number: int, rows: list[Rows], facts: Facts
) -> None:
    walk, sums = Walk.of(epilogue), epilogue.entry_block.arguments[number]
    if walk is None or len([d for d in dims_of(sums) if d.constant != 1]) != walk.rank:
        _fail(function, f"@{epilogue.name.value} does not read its sums along all that it goes through")
    if _kind(epilogue) == "epilogue":
        what = fusion_of(epilogue)
        if not (isinstance(what, Epilogue) and what.sums == number and _is_row(what.row, rows, facts)):
            _fail(function, f"@{epilogue.name.value} takes other sums, or other rows, than the product makes")
        if any(not walk.allows(read, sums) for read in reads_of(epilogue)[sums]):
            _fail(function, f"@{epilogue.name.value} reads its sums elsewhere than where it writes")
    else:
        columns = columns_of(epilogue)
        count, length = product(dims_of(sums)[:-columns]), product(dims_of(sums)[-columns:])
        if not any(facts.equal(length, one) and (many is None or facts.equal(many, count)) for one, many in rows):
            _fail(function, f"@{epilogue.name.value} goes through other rows than the product makes")
    if not _has_tiles(epilogue):
        _verify_buffer(function, epilogue, sums, walk)


def _is_row(size: Expr, rows: list[Rows], facts: Facts) -> bool:
    """Tells whether a row may have this size."""
    return any(facts.equal(size, length) for length, _ in rows)


def _has_tiles(epilogue: func.FuncOp) -> bool:
    """Tells whether the sums that it reads never have a buffer."""
    return _kind(epilogue) == "epilogue" and accumulators_of(epilogue) is None


def _verify_buffer(function: func.FuncOp, epilogue: func.FuncOp, sums: ir.Value, walk: Walk) -> None:
    *_, last = epilogue.entry_block.operations
    held = _sums(function, epilogue)
    if held >= 0 and any(not walk.allows(read, last.operands[held]) for read in reads_of(epilogue)[sums]):
        _fail(function, f"@{epilogue.name.value} writes over sums that it has yet to read")
    if held >= 0 and last.operands[held].type != sums.type:
        _fail(function, f"@{epilogue.name.value} has sums in the buffer of a result of another type")


def _sums(function: func.FuncOp, epilogue: func.FuncOp) -> int:
    found = accumulators_of(epilogue)
    if found is None:
        _fail(function, f"@{epilogue.name.value} does not say where its sums are")
    return found


def _left_of(kernel: func.FuncOp) -> int:
    """The argument that is the left-hand side."""
    op = next(iter(kernel.entry_block.operations))
    return list(kernel.entry_block.arguments).index(op.operands[0])


def _rows_of(kernel: func.FuncOp) -> list[Rows]:
    """The possible rows of a product: its last axes, as far as one operand has them alone."""
    op = next(iter(kernel.entry_block.operations)).operation
    if is_narrow_product(op):
        columns, elements = library_function_of(op).parameters["n"], product(dims_of(op.results[0]))
        return [(Expr.const(1), elements), (Expr.const(columns), elements // columns)]
    right = dims_of(op.operands[1])
    if op.name == "stablehlo.convolution":
        return [(right[-1], None)]
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    dims = dims_of(op.results[0])
    batch = len(list(numbers.lhs_batching_dimensions))
    first_of_right = len(dims) - (len(right) - batch - len(list(numbers.rhs_contracting_dimensions)))
    owners = [0] * batch + [1] * (first_of_right - batch) + [2] * (len(dims) - first_of_right)
    outer = [axis for axis in _axes_of_result(kernel, op) if dims[axis].constant != 1]
    found: list[Rows] = [(Expr.const(1), product([dims[axis] for axis in outer]))]
    owner = owners[outer[-1]] if outer else 0
    while outer and owner and owners[outer[-1]] == owner:
        length = found[-1][0] * dims[outer.pop()]
        found.append((length, product([dims[axis] for axis in outer])))
    return found


def _axes_of_result(kernel: func.FuncOp, op: ir.Operation) -> list[int]:
    """The axes of a product in the order in which its kernel writes them."""
    *_, last = kernel.entry_block.operations
    made = last.operands[0].owner
    if isinstance(made, ir.Block) or made.operation.name != "stablehlo.transpose":
        return list(range(len(dims_of(op.results[0]))))
    return list(ir.DenseI64ArrayAttr(made.operation.attributes["permutation"]))


def _root(value: ir.Value) -> ir.Value:
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in RESHAPES:
        value = value.owner.operands[0]
    return value


def _readers(value: ir.Value) -> Iterator[tuple[ir.Operation, int]]:
    for use in value.uses:
        op = use.owner.operation
        if op.name in RESHAPES:
            yield from _readers(op.results[0])
        else:
            yield op, use.operand_number


def _fail(function: func.FuncOp, text: str) -> NoReturn:
    raise CompilerError(f"fuse: the fusion @{function.name.value} is wrong: {text}")
