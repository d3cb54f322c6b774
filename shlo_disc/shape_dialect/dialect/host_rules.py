# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules for kernels and host programs. `docs/dialect.md` says the first line of a rule's docstring."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from shlo_disc.shape_dialect.dialect.declarations import symbols_in
from shlo_disc.shape_dialect.dialect.host import (
    DYNAMIC_DIMS,
    KERNEL,
    PRECISIONS,
    RECORDS,
    RUNTIME_SIZE,
    AttentionCall,
    AttentionGradientCall,
    Bind,
    Bytes,
    Constant,
    ConvolutionCall,
    DeviceEpilogue,
    DeviceProduct,
    Gemm,
    GemmProduct,
    KernelUse,
    LibraryCall,
    Plan,
    Size,
    call_of,
    kernel_of,
)
from shlo_disc.shape_dialect.dialect.ops import LOCAL
from shlo_disc.shape_dialect.dialect.parts import Part
from shlo_disc.shape_dialect.dialect.problems import MatrixProduct
from shlo_disc.shape_dialect.dialect.records import Malformed, as_kind
from shlo_disc.shape_dialect.dialect.scope import Scope
from shlo_disc.shape_dialect.mlir import arith, ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

_LIBRARY_EPILOGUES = ("f32", "f16", "bf16")
"""Element types of sides that a library's own epilogues are for."""

_EPILOGUE_SIZES = 3
"""The sizes that an epilogue of tiles is told by the runtime: step, first column and the one past the last."""


def _is_told(op: ir.OpView) -> None:
    """Its `call` has the right entries."""
    call_of(op)


LOCAL.update(dict.fromkeys(RECORDS, _is_told))


# ---- kernels --------------------------------------------------------------------------------------------------------


def check_kernel_function(function: ir.Operation) -> None:
    """Each `?` of a kernel's buffers is one of its sizes."""
    types = list(ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs)
    memrefs = [ir.MemRefType(type_) for type_ in types if isinstance(type_, ir.MemRefType)]
    numbers = list(
        as_kind(ir.DenseI64ArrayAttr, function.attributes[DYNAMIC_DIMS], f"array<i64: ...> as {DYNAMIC_DIMS}")
    )
    dynamic = sum(memref.is_dynamic_dim(axis) for memref in memrefs for axis in range(memref.rank))
    sizes = len(types) - len(memrefs) - 2
    if len(numbers) != dynamic or any(not 0 <= number < sizes for number in numbers):
        raise Malformed(f"{DYNAMIC_DIMS} = {numbers} are not {dynamic} of {sizes} sizes")


def runtime_size_of(function: ir.Operation, sizes: int) -> int:
    """The number of the kernel's size that is the runtime's address. Raises Malformed."""
    number: int = as_kind(ir.IntegerAttr, function.attributes[RUNTIME_SIZE], f"i64 as {RUNTIME_SIZE}").value
    if not 0 <= number < sizes:
        raise Malformed(f"{RUNTIME_SIZE} = {number} is none of {sizes} sizes")
    return number


def check_use(v: Scope, use: KernelUse, buffers: int) -> None:
    """A kernel of the module has so many buffers and sizes."""
    if use.kernel not in v.kernels:
        raise Malformed(f"@{use.kernel} is no kernel of the module")
    expected = v.kernels[use.kernel]
    if expected is not None and expected != (buffers, len(use.sizes) + len(use.given)):
        raise Malformed(
            f"@{use.kernel} has {expected[0]} buffers and {expected[1]} sizes, and is given {buffers} and "
            f"{len(use.sizes) + len(use.given)}"
        )
    if any(not 0 <= place < len(use.sizes) + len(use.given) for place in use.given):
        raise Malformed(f"given = {list(use.given)} are no sizes of @{use.kernel}")
    v.check_sizes([*use.sizes, use.items, use.grain])


def check_choice(v: Scope, op: ir.Operation) -> None:
    """The kernel of a call: `#disc.kernel<...>`, one of `@kernels`, with a value for each of its sizes."""
    chosen = kernel_of(op)
    use = chosen.use
    if use.kernel not in v.kernels:
        raise Malformed(f"{KERNEL}: @{use.kernel} is no kernel of the module")
    if any(not 0 <= number < len(op.results) for number in chosen.clears):
        raise Malformed(f"{KERNEL}: clears = {list(chosen.clears)} are none of {len(op.results)} results")
    v.check_sizes([*use.sizes, use.items, use.grain])


# ---- the host program -----------------------------------------------------------------------------------------------


def _size(v: Scope, op: ir.Operation) -> None:
    """Its symbols are declared."""
    call: Size = call_of(op)
    v.check_sizes([call.value])


def _constant(v: Scope, op: ir.Operation) -> None:
    """A `memref.global` has its name."""
    call: Constant = call_of(op)
    if call.name not in v.constants:
        raise Malformed(f"there is no constant @{call.name}")


def _plan(v: Scope, op: ir.Operation) -> None:
    """Its symbols are declared, and the results that it writes exist."""
    call: Plan = call_of(op)
    sizes = [call.arena]
    for check in call.checks:
        sizes += [check.relation.lhs, check.relation.rhs, *check.operands]
    v.check_sizes([*sizes, *map(Expr.symbol, call.reads)])
    results = len(v.declared.results)
    if any(not 0 <= result < results for result in call.writes):
        raise Malformed(f"it writes the results {list(call.writes)} of {results}")


def _launch(v: Scope, op: ir.Operation) -> None:
    """Its kernel is in `@kernels` and has as many buffers and sizes. Its symbols are declared."""
    call: KernelUse = call_of(op)
    told = [v.runtime_sizes[call.kernel]] if call.kernel in v.runtime_sizes else []
    if list(call.given) != told:
        raise Malformed(f"given = {list(call.given)} of a kernel that is launched by itself, which takes {told}")
    check_use(v, call, len(op.operands))


def _gemm(v: Scope, op: ir.Operation) -> None:
    """Operand numbers are in range, all products have one left-hand side, and epilogues are kernels."""
    call: Gemm = call_of(op)
    if not call.products or len({product.problem.lhs for product in call.products}) != 1:
        raise Malformed("it is no product, or those of several left-hand sides")
    for product in call.products:
        _product(v, op, product)


def _device_product(v: Scope, op: ir.Operation) -> None:
    """Its result is row-major, its kernel is in `@kernels` and gets the sizes of the problem. Its epilogue reads it."""
    call: DeviceProduct = call_of(op)
    problem = call.problem
    if (problem.lhs, problem.rhs) != (0, 1) or problem.n.result.constant != 1:
        raise Malformed("its sides are not operands 0 and 1, or its result lies in columns")
    sides = (problem.m.lhs, problem.k.lhs), (problem.k.rhs, problem.n.rhs)
    if any(1 not in (stride.constant for stride in strides) for strides in sides):
        raise Malformed("the elements of a side are neighbours along neither axis")
    told = call.kernel.sizes if call.epilogue is None else call.kernel.sizes[: len(call.kernel_numbers)]
    if told != call.kernel_numbers or call.kernel.given:
        raise Malformed(f"@{call.kernel.kernel} is told another problem")
    if call.rounded and not problem.rounds_to(problem.element):
        raise Malformed(f"sums of {problem.element} are not rounded")
    if call.precision not in PRECISIONS:
        raise Malformed(f"there is no precision {call.precision!r}; there are {', '.join(PRECISIONS)}")
    _numbers(op, [2])
    _numbers(op, [call.partials], least=-1)
    _numbers(op, call.narrow)
    if call.epilogue is None and len(op.operands) != len({*call.kernel_operands, 1}):
        raise Malformed(f"a product without an epilogue has {len(op.operands)} operands")
    if call.epilogue is not None:
        _device_epilogue(v, op, call, call.epilogue)
    check_use(v, call.kernel, len(call.kernel_operands))


def _device_epilogue(v: Scope, op: ir.Operation, call: DeviceProduct, epilogue: DeviceEpilogue) -> None:
    if not call.problem.is_row_major:
        raise Malformed("sums that an epilogue reads do not lie in the order of rows")
    _numbers(op, epilogue.operands)
    if not 0 <= epilogue.sums < len(epilogue.operands) or epilogue.operands[epilogue.sums] != 2:
        raise Malformed(f"@{epilogue.kernel.kernel} does not read the product's result as buffer {epilogue.sums}")
    if epilogue.kernel.given:
        raise Malformed(f"nobody tells @{epilogue.kernel.kernel} any sizes")
    check_use(v, epilogue.kernel, len(epilogue.operands))
    library = epilogue.library
    if library is None:
        return
    _numbers(op, [library.result])
    _numbers(op, [library.bias], least=-1)
    if call.rounded or call.problem.element not in _LIBRARY_EPILOGUES:
        raise Malformed(f"no library adds to sums of {call.problem.element}, or to rounded ones")
    if library.rounded and not call.problem.rounds_to(call.problem.element):
        raise Malformed(f"sums of {call.problem.element} are not rounded")


def _convolution(v: Scope, op: ir.Operation) -> None:
    """Operand numbers are in range, an epilogue is a kernel, and the GEMM is the product of the problem."""
    call: ConvolutionCall = call_of(op)
    _product(v, op, call.gemm)
    problem = call.problem
    if replace(call.gemm.problem, lhs=problem.product.lhs, rhs=problem.product.rhs) != problem.product:
        raise Malformed("its GEMM is not the product that its problem has")
    v.check_sizes([*problem.input, *problem.result, *problem.window, *problem.padding])


def _product(v: Scope, op: ir.Operation, product: GemmProduct) -> None:
    _numbers(op, [product.problem.lhs, product.problem.rhs])
    _numbers(op, [product.result, product.packed], least=-1)
    v.check_sizes(list(_sizes_of(product.problem)))
    epilogue = product.epilogue
    if epilogue is None:
        if product.result < 0:
            raise Malformed("a product without an epilogue has no result")
        return
    _numbers(op, epilogue.operands, least=-1)
    is_tile = len(epilogue.use.given) == _EPILOGUE_SIZES
    if (
        epilogue.operands.count(-1) != is_tile
        or (epilogue.use.given and not is_tile)
        or is_tile == (product.result >= 0)
    ):
        raise Malformed(f"@{epilogue.use.kernel} reads neither tiles of sums nor the rows of a result")
    check_use(v, epilogue.use, len(epilogue.operands))


def _sizes_of(problem: MatrixProduct) -> Iterator[Expr]:
    for axis in (*problem.batch, problem.m, problem.n, problem.k):
        yield from (axis.size, axis.lhs, axis.rhs, axis.result)


_COLUMN_SIZES = 2
"""The first column that counts, and the number of those up to the last one."""


def _attention(v: Scope, op: ir.Operation) -> None:
    """Operand numbers are in range, and `rows` is a kernel that reads the scores and writes the weights."""
    call: AttentionCall = call_of(op)
    problem = call.problem
    _numbers(op, [problem.query.number, problem.key.number, problem.value.number, call.result, call.scratch])
    _numbers(op, call.row_operands, least=-1)
    if problem.visible is not None:
        _numbers(op, [problem.visible.first, problem.visible.end])
    given = _COLUMN_SIZES if problem.visible is not None else int(problem.causal is not None)
    if call.row_operands.count(-1) != 2 or len(call.rows.given) != given:
        raise Malformed(f"@{call.rows.kernel} is not given scores and a place for weights")
    check_use(v, call.rows, len(call.row_operands))
    v.check_sizes([problem.columns, problem.depth, problem.width, problem.rows.size])


def _attention_gradient(v: Scope, op: ir.Operation) -> None:
    """Operand numbers are in range, and both kernels have as many buffers and sizes."""
    call: AttentionGradientCall = call_of(op)
    problem = call.problem
    matrices = (
        problem.query, problem.key, problem.value, problem.upstream,
        problem.query_gradient, problem.key_gradient, problem.value_gradient,
    )  # fmt: skip
    _numbers(op, [*(m.number for m in matrices), problem.visible.first, problem.visible.end, call.scratch])
    for use, operands in ((call.rows, call.row_operands), (call.gradient_rows, call.gradient_operands)):
        _numbers(op, operands, least=-call.buffers)
        if len(use.given) != _COLUMN_SIZES:
            raise Malformed(f"@{use.kernel} is not given the columns that count")
        check_use(v, use, len(operands))
    v.check_sizes([*problem.batch, problem.rows, problem.columns, problem.depth, problem.width])


def _library(v: Scope, op: ir.Operation) -> None:
    """It has the sizes of each operand, and their symbols are declared."""
    call: LibraryCall = call_of(op)
    if not len(call.dims) == len(op.operands) == len(call.function.operands) + len(call.function.results):
        raise Malformed(f"sizes of {len(call.dims)} arrays are given for {len(op.operands)}")
    for dims in call.dims:
        v.check_sizes(dims)


def _bytes(v: Scope, op: ir.Operation) -> None:
    """Its symbols are declared."""
    call: Bytes = call_of(op)
    v.check_sizes([call.bytes])


def check_part(v: Scope, op: ir.Operation, part: Part) -> None:
    """An op has an operand for each start of its part besides the array, and the symbols are declared."""
    if len(op.operands) != 1 + len(part.starts):
        raise Malformed(f"it has {len(op.operands) - 1} integers for {len(part.starts)} starts")
    if any(start.bits not in (32, 64) or start.element < 0 for start in part.starts):
        raise Malformed("a start is no integer of 32 or 64 bits")
    v.check_sizes([part.offset, *(size for start in part.starts for size in (start.most, start.step))])


def _part(v: Scope, op: ir.Operation) -> None:
    """It has an operand for each start besides the buffer, and its symbols are declared."""
    check_part(v, op, call_of(op))


def _bind(v: Scope, op: ir.Operation) -> None:
    """It reads integers, and its symbols are declared as read from data."""
    call: Bind = call_of(op)
    if not isinstance(call.element, ir.IntegerType):
        raise Malformed(f"it reads {call.element}, no integers")
    data = {name for name, symbol in symbols_in(v.module).items() if symbol.data}
    if not set(call.symbols) <= data:
        raise Malformed(f"{', '.join(sorted(set(call.symbols) - data))} is not read from data")


def _numbers(op: ir.Operation, numbers: Iterable[int], least: int = 0) -> None:
    for number in numbers:
        if not least <= number < len(op.operands):
            raise Malformed(f"it has no operand {number}")


def check_program(v: Scope, functions: Sequence[ir.Operation]) -> None:
    """A segment is a function of the buffers of all arguments and results, and of the arena of each segment."""
    plans = sum(op.operation.name == "disc_host.plan" for op in v.module.body.operations)
    if plans != len(functions):
        raise Malformed(f"there are {plans} plans for {len(functions)} functions")
    count = v.declared.buffers + plans
    for function in functions:
        types = list(ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs)
        if len(types) != count or any(str(type_) != "memref<?xi8>" for type_ in types):
            raise Malformed(f"a segment has {len(types)} arguments, and not {count} buffers")


# ---- stock ops, of which a host program has these forms only -------------------------------------------------------


def _view(v: Scope, op: ir.Operation) -> None:
    """A part of an arena, or the one element at the beginning of a buffer."""
    base, rank = op.operands[0], ir.MemRefType(op.results[0].type).rank
    if rank == 0:
        if _number(op.operands[1]) != 0:
            raise Malformed("it is an element that is not the first one")
    elif not isinstance(base.owner, ir.Block) or ir.BlockArgument(base).arg_number < v.declared.buffers:
        raise Malformed("it is a part of something else than an arena")


def _load(v: Scope, op: ir.Operation) -> None:
    """The one element of a view."""
    if _maker(op.operands[0]) != "memref.view" or len(op.operands) != 1:
        raise Malformed("it loads no single element of a view")


def _compare(v: Scope, op: ir.Operation) -> None:
    """Tells whether a byte that was loaded is not 0."""
    is_unequal = ir.IntegerAttr(op.attributes["predicate"]).value == arith.CmpIPredicate.ne
    if not is_unequal or _maker(op.operands[0]) != "memref.load" or _number(op.operands[1]) != 0:
        raise Malformed("it does not ask whether a byte that was loaded is not 0")


def _cast(v: Scope, op: ir.Operation) -> None:
    """A number that was loaded."""
    if _maker(op.operands[0]) != "memref.load":
        raise Malformed("it makes an index of something else than a number that was loaded")


def _control(v: Scope, op: ir.Operation) -> None:
    """Values go through memory: it takes none but its choice, and gives none."""
    choices = {"scf.if": "arith.cmpi", "scf.condition": "arith.cmpi", "scf.index_switch": "arith.index_cast"}
    wanted = [choices[op.name]] if op.name in choices else []
    makers = [_maker(value) for value in op.operands]
    if op.name == "scf.index_switch" and makers == ["disc_host.size"]:
        makers = wanted  # the variant that a call takes
    if makers != wanted or op.results:
        raise Malformed(f"it takes values other than {wanted or 'none'}, or gives some")


def _maker(value: ir.Value) -> str:
    owner = value.owner
    return "" if isinstance(owner, ir.Block) else owner.operation.name


def _number(value: ir.Value) -> int | None:
    """The constant that a value is; None for any other."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return None
    return ir.IntegerAttr(owner.attributes["value"]).value


HOST_RULES: dict[str, Callable[[Scope, ir.Operation], None]] = {
    "disc_host.plan": _plan,
    "disc_host.size": _size,
    "disc_host.constant": _constant,
    "disc_host.part": _part,
    "disc_host.launch": _launch,
    "disc_host.gemm": _gemm,
    "disc_host.product": _device_product,
    "disc_host.convolution": _convolution,
    "disc_host.attention": _attention,
    "disc_host.attention_gradient": _attention_gradient,
    "disc_host.library": _library,
    "disc_host.copy": _bytes,
    "disc_host.clear": _bytes,
    "disc_host.bind": _bind,
    "memref.view": _view,
    "memref.load": _load,
    "arith.cmpi": _compare,
    "arith.index_cast": _cast,
    **dict.fromkeys(("scf.condition", "scf.if", "scf.index_switch", "scf.while", "scf.yield"), _control),
}
"""Checks of the ops of a host program, besides `_is_told`, the check of the ops of `disc_host`."""
