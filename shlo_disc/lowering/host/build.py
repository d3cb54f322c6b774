# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The stage `host`: a planned module whose calls are kernels becomes a program of `disc_host`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.host import device_products
from shlo_disc.lowering.host.prepacked import with_columns
from shlo_disc.lowering.host.products import Operands, PackedOperand, Products, RuntimeCall, TileOf
from shlo_disc.lowering.host.segments import function_name, plans_of
from shlo_disc.lowering.kernel_module import kernel_module_of
from shlo_disc.shape_dialect.dialect.buffers import ResultBuffer, arenas_of, buffers_of
from shlo_disc.shape_dialect.dialect.fusion import (
    Attention,
    AttentionGradient,
    Convolution,
    Dot,
    Gemm,
    Library,
    fusion_of,
    kind_of,
    updates_of,
)
from shlo_disc.shape_dialect.dialect.host import (
    FUSION,
    GUARDS,
    KERNEL,
    TILE_REGISTERS,
    AttentionCall,
    AttentionGradientCall,
    Bind,
    Bytes,
    Check,
    Constant,
    Guard,
    LibraryCall,
    Packed,
    Size,
    buffer_type,
    kernel_of,
    write_op,
)
from shlo_disc.shape_dialect.dialect.library import library_function_of
from shlo_disc.shape_dialect.dialect.names import FLOPS
from shlo_disc.shape_dialect.dialect.parts import part_of
from shlo_disc.shape_dialect.dialect.problems import Matrices
from shlo_disc.shape_dialect.dialect.records import FunctionName, codec_of
from shlo_disc.shape_dialect.dialect.signature import Signature
from shlo_disc.shape_dialect.dialect.types import Dims, bytes_of, dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import arith, func, ir, memref
from shlo_disc.shape_dialect.ops import CONTROL
from shlo_disc.shape_dialect.ops.data_sizes import bound_symbols
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks, nested_blocks
from shlo_disc.shape_dialect.ops.segments import segment_of
from shlo_disc.shape_dialect.ops.variants import allocations_of, variant_taken, variants_in
from shlo_disc.shape_dialect.ops.views import PIECE, root
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.shape_dialect.utils.regions import callee_of, entry_block, is_constant, terminator_of

DECLARATIONS = ("disc.signature", "disc.symbol", "disc.dim", "disc.constraint")
"""Ops that a program takes from the module that it is made of, besides its kernels."""

_GUARDS = codec_of(tuple[Guard, ...])


@dataclass(frozen=True)
class Allocation:
    """The location of a value: argument `index` of the functions, a constant, or a part of a segment's arena."""

    space: str
    index: int
    offset: Expr = Expr.const(0)
    bytes: Expr = Expr.const(0)


def build_host(
    module: ir.Module, facts: Facts, signature: Signature, checks: Sequence[Check], tile_of: TileOf
) -> ir.Module:
    """The program of a planned module with kernels, which stays as it is.

    tile_of: the micro-kernel of products of an element type.
    """
    with ir.Location.unknown():
        target = ir.Module.create()
        target.operation.attributes[FLOPS] = module.operation.attributes[FLOPS]
        with ir.InsertionPoint(target.body):
            for op in module.body.operations:
                if op.operation.name in DECLARATIONS:
                    op.operation.clone()
            writer = _Program(module, facts, signature, tile_of)
            writer.write_constants()
            for number, plan in enumerate(plans_of(module, signature, checks, writer.first_written())):
                write_op("plan", plan)
                writer.write(number)
        target.body.append(kernel_module_of(module).clone(ip=False))
    return target


class _Program:
    """The functions of one program."""

    def __init__(self, module: ir.Module, facts: Facts, signature: Signature, tile_of: TileOf):
        self.block = entry_block(module)
        self.facts = facts
        self.fusions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
        self.results = range(len(signature.arguments), len(signature.arguments) + len(signature.results))
        self.segments = len(allocations_of(module))
        self.variants = variants_in(module)
        first = arenas_of(module.operation)[0] if self.variants is not None else None
        self.places = _places(self.block, signature.kept, self.results.start, first)
        self.variant = variant_taken(module) if self.variants is not None else Expr.const(0)
        self.products = Products(tile_of, self.fusions)
        self._forms: list[PackedOperand] | None = None

    def first_written(self) -> dict[int, int]:
        """The first segment that writes each result."""
        written: dict[int, int] = {}
        for op in self.block.operations:
            for result in op.results:
                place = self.places.get(result)
                if place is not None and place.space == "argument" and place.index in self.results:
                    written.setdefault(place.index - self.results.start, segment_of(op))
        return written

    def packed_rows(self, table: ir.Value) -> Packed | None:
        """The packed form of a matrix whose columns are its rows, if a product has one."""
        if self._forms is None:
            self._forms = list(self._packed_operands())
        rows, depth = (dim.constant for dim in dims_of(table))
        wanted = (rows, depth, depth, 1)
        forms = (operand.form for operand in self._forms if root(operand.value) == table)
        return next((f for f in forms if (f.n, f.k, f.n_stride, f.k_stride) == wanted), None)

    def _packed_operands(self) -> Iterator[PackedOperand]:
        """All that the products of the program read in packed form."""
        ops = (op for block in all_blocks(self.block) for op in block.operations)
        for call in (op for op in ops if op.operation.name == "func.call"):
            fusion = self.fusions[callee_of(call)]
            what, inputs, outputs = fusion_of(fusion), list(call.operands), list(call.results)
            if isinstance(what, Gemm):
                found = self.products.several(fusion, inputs, outputs)
            elif isinstance(what, Dot) and what.product is not None:
                found = self.products.single(what.product, inputs, outputs)
            else:
                continue
            yield from (operand for operand in found.operands.values if isinstance(operand, PackedOperand))

    def write_constants(self) -> None:
        """The constants of the program, at the insertion point."""
        for value, place in self.places.items():
            if place.space == "constant":
                constant = value.owner
                if not isinstance(constant, ir.Block):
                    _write_constant(constant_name(place.index), constant.attributes["value"])

    def write(self, segment: int) -> None:
        """The function of a segment, at the insertion point."""
        arguments = self.results.stop + self.segments
        type_ = ir.FunctionType.get([buffer_type()] * arguments, [])
        function = func.FuncOp(function_name("disc_run", segment), type_)
        with ir.InsertionPoint(function.add_entry_block()):
            _Run(self, function).write([op for op in self.block.operations if segment_of(op) == segment])
            func.ReturnOp([])


def _places(block: ir.Block, kept: Sequence[int], first_result: int, behind: Expr | None) -> dict[ir.Value, Allocation]:
    """The location of every value of the entry function.

    behind: of a program with variants, the bytes after which the arena of a variant begins.
    """
    places: dict[ir.Value, Allocation] = {
        value: Allocation("argument", leaf) for value, leaf in zip(block.arguments, kept, strict=True)
    }
    found = 0
    for op in (op for inner in all_blocks(block) for op in inner.operations):
        if is_constant(op):
            places[op.results[0]] = Allocation("constant", found)
            found += 1
        elif op.operation.name in CONTROL | {"func.call"}:
            for result, buffer in zip(op.results, buffers_of(op), strict=True):
                if isinstance(buffer, ResultBuffer):
                    places[result] = Allocation("argument", first_result + buffer.index)
                else:
                    number, offset = buffer.segment, buffer.offset
                    if behind is not None and number:
                        number, offset = 0, behind + offset
                    places[result] = Allocation("arena", number, offset, buffer.bytes)
            for nested in nested_blocks(op):
                places.update({a: places[r] for a, r in zip(nested.arguments, op.results, strict=False)})
    return places


def constant_name(number: int) -> str:
    """The name of the `memref.global` that holds a constant."""
    return f"constant_{number}"


def _write_constant(name: str, value: ir.Attribute) -> None:
    tensor = ir.RankedTensorType(ir.DenseElementsAttr(value).type)
    type_ = ir.MemRefType.get(tensor.shape, tensor.element_type)
    memref.GlobalOp(name, type_, sym_visibility="private", initial_value=value, constant=True)


class _Run:
    """The function of a segment.

    Sizes, buffers and constants are written once, before the outermost loop or branch that needs them.
    """

    def __init__(self, program: _Program, function: func.FuncOp):
        self.program = program
        self.facts = program.facts
        self.arguments = list(function.arguments)
        self.known: dict[object, ir.Value] = {}
        self.outside: ir.InsertionPoint | None = None
        self.index = ir.IndexType.get()

    def write(self, ops: Iterable[ir.OpView]) -> None:
        """Calls, loops and branches, and reading sizes, at the insertion point."""
        for op in ops:
            with op.location:
                if op.operation.name == "disc.bind":
                    element = element_type_of(op.operands[0])
                    write_op("bind", Bind(tuple(bound_symbols(op)), element), [self.buffer(op.operands[0])])
                elif op.operation.name == "func.call":
                    self._call(op)
                elif op.operation.name == "stablehlo.while":
                    self._loop(op)
                elif self.program.variants is not None and op.operation == self.program.variants:
                    self._variants(op)
                elif op.operation.name in CONTROL:
                    self._branch(op)

    # ---- values -----------------------------------------------------------------------------------------------------

    def _once(self, key: object, make: Callable[[], ir.Value]) -> ir.Value:
        if key not in self.known:
            with self.outside or nullcontext():
                self.known[key] = make()
        return self.known[key]

    def size(self, size: Expr) -> ir.Value:
        """A size as an index."""
        number = size.constant
        if number is not None:
            return self._once(size, lambda: arith.constant(self.index, number))
        return self._once(size, lambda: write_op("size", Size(size), results=[self.index]).results[0])

    def buffer(self, value: ir.Value) -> ir.Value:
        """The buffer of a value of the planned module."""
        owner = root(value).owner
        if not isinstance(owner, ir.Block) and owner.operation.name == PIECE:
            return self._piece(owner.operation)
        place = self.program.places[root(value)]
        if place.space == "argument":
            return self.arguments[place.index]
        if place.space == "constant":
            call = Constant(FunctionName(constant_name(place.index)))
            return self._once(place, lambda: write_op("constant", call, results=[buffer_type()]).results[0])
        operands = [
            self.arguments[self.program.results.stop + place.index],
            *map(self.size, (place.offset, place.bytes)),
        ]
        return self._once(place, lambda: ir.Operation.create("memref.view", [buffer_type()], operands).results[0])

    def _piece(self, op: ir.Operation) -> ir.Value:
        """The array that a piece is of, from where the piece begins when it is read."""
        buffers = [self.buffer(value) for value in op.operands]
        return write_op("part", part_of(op), buffers, results=[buffer_type()]).results[0]

    def _loaded(self, value: ir.Value, bits: int) -> ir.Value:
        """The one element of a buffer."""
        integer = ir.IntegerType.get_signless(bits)
        view = memref.ViewOp(ir.MemRefType.get([], integer), self.buffer(value), self.size(Expr.const(0)), [])
        return memref.LoadOp(view.result, []).result

    def _truth(self, value: ir.Value) -> ir.Value:
        byte = self._loaded(value, 8)
        zero = self._once("zero byte", lambda: arith.constant(ir.IntegerType.get_signless(8), 0))
        return arith.cmpi(arith.CmpIPredicate.ne, byte, zero)

    # ---- loops and branches -----------------------------------------------------------------------------------------

    @contextmanager
    def _nested(self, op: ir.Operation) -> Iterator[None]:
        """Place the sizes and buffers of what is written inside, in blocks of the op, before the outermost such op."""
        before, self.outside = self.outside, self.outside or ir.InsertionPoint(op)
        yield
        self.outside = before

    def _loop(self, op: ir.OpView) -> None:
        condition, body = nested_blocks(op)
        self._copy(op.operands, op.results)
        loop = ir.Operation.create("scf.while", regions=2)
        with self._nested(loop):
            with ir.InsertionPoint(loop.regions[0].blocks.append()):
                self.write(condition.operations)
                goes_on = self._truth(terminator_of(condition).operands[0])
                ir.Operation.create("scf.condition", operands=[goes_on])
            with ir.InsertionPoint(loop.regions[1].blocks.append()):
                self.write(body.operations)
                self._copy(terminator_of(body).operands, op.results)
                ir.Operation.create("scf.yield")

    def _branch(self, op: ir.OpView) -> None:
        blocks = nested_blocks(op)
        if op.operation.name == "stablehlo.if":
            branch = ir.Operation.create("scf.if", operands=[self._truth(op.operands[0])], regions=2)
        else:
            index = arith.index_cast(self.index, self._loaded(op.operands[0], 32))
            branch = _index_switch(index, len(blocks))
            blocks = [blocks[-1], *blocks[:-1]]  # the default comes first
        with self._nested(branch):
            for region, block in zip(branch.regions, blocks, strict=True):
                with ir.InsertionPoint(region.blocks.append()):
                    self.write(block.operations)
                    self._copy(terminator_of(block).operands, op.results)
                    ir.Operation.create("scf.yield")

    def _variants(self, op: ir.OpView) -> None:
        """A switch by sizes, each branch of which has its own sizes and buffers."""
        index = self.size(self.program.variant)
        blocks = nested_blocks(op)
        switch = _index_switch(index, len(blocks))
        before = self.known
        for region, block in zip(switch.regions, (blocks[-1], *blocks[:-1]), strict=True):
            self.known = dict(before)
            with ir.InsertionPoint(region.blocks.append()):
                self.write(block.operations)
                self._copy(terminator_of(block).operands, op.results)
                ir.Operation.create("scf.yield")
        self.known = before

    def _copy(self, sources: Iterable[ir.Value], targets: Iterable[ir.Value]) -> None:
        """Copy what is not yet where it has to be."""
        places = self.program.places
        for source, target in zip(sources, targets, strict=True):
            if places[root(source)] != places[target]:
                write_op("copy", self._bytes(target), [self.buffer(source), self.buffer(target)])

    def _bytes(self, value: ir.Value) -> Bytes:
        return Bytes(self.facts.simplify(product(dims_of(value)) * bytes_of(element_type_of(value))))

    # ---- calls ------------------------------------------------------------------------------------------------------

    def _call(self, call: ir.OpView) -> None:
        name = callee_of(call)
        fusion = self.program.fusions[name]
        what = fusion_of(fusion)
        more: dict[str, ir.Attribute] = {FUSION: ir.StringAttr.get(name)}
        if isinstance(what, Library):
            self._library(call, fusion, more)
        elif isinstance(what, Attention) and not what.online:
            self._attention(call, what, more)
        elif isinstance(what, AttentionGradient):
            self._attention_gradient(call, what, more)
        elif isinstance(what, Gemm) and device_products.is_on_device(fusion):
            self._write_product(device_products.followed(fusion, self.program.fusions, *self._values(call)), more)
        elif isinstance(what, Gemm):
            self._write_product(self.program.products.several(fusion, *self._values(call)), more)
        elif isinstance(what, Dot) and what.product is not None and KERNEL in call.attributes:
            self._write_product(device_products.single(call, fusion), more)
        elif KERNEL in call.attributes:
            self._launch(call, fusion, more)
        elif isinstance(what, Dot) and what.product is not None:
            self._write_product(self.program.products.single(what.product, *self._values(call)), more)
        elif isinstance(what, Convolution) and what.product is not None:
            self._write_product(self.program.products.convolution(what.product, *self._values(call)), more)
        else:
            raise CompilerError(f"host: @{name} is no kernel, and nothing that the runtime computes")

    def _values(self, call: ir.OpView) -> tuple[list[ir.Value], list[ir.Value]]:
        return list(call.operands), list(call.results)

    def _write_product(self, found: RuntimeCall, more: dict[str, ir.Attribute]) -> None:
        operands = [self._packed(v) if isinstance(v, PackedOperand) else self.buffer(v) for v in found.operands.values]
        write_op(found.name, found.call, operands, more=more | _guards(found.guards))

    def _packed(self, operand: PackedOperand) -> ir.Value:
        rhs = self.buffer(operand.value)
        key = (rhs, operand.form)
        return self._once(key, lambda: write_op("packed", operand.form, [rhs], [buffer_type()]).results[0])

    def _launch(self, call: ir.OpView, fusion: func.FuncOp, more: dict[str, ir.Attribute]) -> None:
        """A kernel, behind what its results start from: copies of operands, or zeros."""
        chosen = kernel_of(call)
        updated = zip(call.results, updates_of(fusion), strict=False)
        started = [(result, call.operands[number]) for result, number in updated if number >= 0]
        self._copy([source for _, source in started], [result for result, _ in started])
        for result in (call.results[number] for number in chosen.clears):
            write_op("clear", self._bytes(result), [self.buffer(result)])
        buffers = [self.buffer(value) for value in (*call.operands, *call.results)]
        forms = [self.program.packed_rows(root(call.operands[panels.operand])) for panels in chosen.use.panels]
        for panels, form in zip(chosen.use.panels, forms, strict=True):
            table = call.operands[panels.operand]
            buffers.append(self.buffer(table) if form is None else self._packed(PackedOperand(table, form)))
        use = with_columns(chosen.use, [1 if form is None else form.tile.columns for form in forms])
        kind = {"kind": ir.StringAttr.get(kind_of(fusion))}
        write_op("launch", use, buffers, more=more | kind | _guards(chosen.guards))

    def _attention(self, call: ir.OpView, what: Attention, more: dict[str, ir.Attribute]) -> None:
        if what.problem is None:
            raise CompilerError(f"host: {more[FUSION]} does not say what its attention is")
        chosen, problem, operands = kernel_of(call), what.problem, Operands()
        inputs, (result, scratch) = list(call.operands), call.results
        query, key, value = (
            replace(side, number=operands.number(inputs[side.number]))
            for side in (problem.query, problem.key, problem.value)
        )
        if problem.visible is not None:
            first, end = (operands.number(inputs[i]) for i in (problem.visible.first, problem.visible.end))
            problem = replace(problem, visible=replace(problem.visible, first=first, end=end))
        rows = (*(-1 if i < 0 else operands.number(inputs[i]) for i in what.row_operands), -1)
        told = AttentionCall(
            self.program.products.tile_of(problem.element, chosen.registers),
            replace(problem, query=query, key=key, value=value),
            operands.number(result),
            operands.number(scratch),
            chosen.use,
            rows,
        )
        self._write_product(RuntimeCall("attention", told, operands, chosen.guards), more)

    def _attention_gradient(self, call: ir.OpView, what: AttentionGradient, more: dict[str, ir.Attribute]) -> None:
        fusion = self.program.fusions[callee_of(call)]
        if what.problem is None:
            raise CompilerError(f"host: {more[FUSION]} does not say what its gradient is")
        operands, values = Operands(), [*call.operands, *call.results]
        results = len(call.operands)

        def told(matrices: Matrices, first: int = 0) -> Matrices:
            return replace(matrices, number=operands.number(values[first + matrices.number]))

        def buffers(numbers: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(i if i < 0 else operands.number(values[i]) for i in numbers)

        problem, visible = what.problem, what.problem.visible
        first, end = (operands.number(call.operands[i]) for i in (visible.first, visible.end))
        problem = replace(
            problem,
            query=told(problem.query),
            key=told(problem.key),
            value=told(problem.value),
            upstream=told(problem.upstream),
            query_gradient=told(problem.query_gradient, results),
            key_gradient=told(problem.key_gradient, results),
            value_gradient=told(problem.value_gradient, results),
            visible=replace(visible, first=first, end=end),
        )
        inner = {callee_of(op): op for op in fusion.entry_block.operations if KERNEL in op.attributes}
        rows, gradient = (kernel_of(inner[name]) for name in (what.rows, what.gradient_rows))
        gradients = AttentionGradientCall(
            self.program.products.tile_of(problem.element, TILE_REGISTERS), problem, operands.number(call.results[-1]),
            rows.use, gradient.use, buffers(what.row_operands), buffers(what.gradient_operands),
            what.weights, what.buffers,
        )  # fmt: skip
        guards = tuple(dict.fromkeys((*rows.guards, *gradient.guards)))
        self._write_product(RuntimeCall("attention_gradient", gradients, operands, guards), more)

    def _library(self, call: ir.OpView, fusion: func.FuncOp, more: dict[str, ir.Attribute]) -> None:
        op = next(iter(fusion.entry_block.operations))
        arguments = list(fusion.entry_block.arguments)
        inputs = [call.operands[arguments.index(v)] for v in op.operands]
        function = library_function_of(op)
        elements = [str(t) for t in (*function.operands, *function.results)]
        dims = tuple(_dims(v, e) for v, e in zip([*op.operands, *op.results], elements, strict=True))
        target = ir.StringAttr(op.attributes["call_target_name"]).value
        buffers = [self.buffer(value) for value in (*inputs, *call.results)]
        write_op("library", LibraryCall(target, function, dims), buffers, more=more)


def _index_switch(index: ir.Value, branches: int) -> ir.Operation:
    """A switch whose first region is that of the last branch, the default."""
    cases: dict[str, ir.Attribute] = {"cases": ir.DenseI64ArrayAttr.get(list(range(branches - 1)))}
    return ir.Operation.create("scf.index_switch", [], [index], cases, regions=branches)


def _dims(value: ir.Value, element: str) -> Dims:
    """The sizes as a library function sees them: complex numbers lie in memory as a last axis of two reals."""
    dims = dims_of(value)
    is_pair = "complex" in element and "complex" not in str(value.type)
    return dims[:-1] if is_pair else dims


def _guards(guards: tuple[Guard, ...]) -> dict[str, ir.Attribute]:
    return {GUARDS: _GUARDS.write(guards)} if guards else {}
