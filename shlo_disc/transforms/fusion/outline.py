# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Turns clusters into fusions: a private function that holds the ops, and a call where the values are needed.

The function's attribute `disc.fusion` is what the later stages read (`shape_dialect/dialect/fusion.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Sequence

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect.build import view
from shlo_disc.shape_dialect.dialect.fusion import (
    KINDS,
    Convolution,
    Dot,
    Fusion,
    Loop,
    Recurrence,
    Reduce,
    RowReduce,
    Scan,
    Scatter,
    Update,
    set_fusion,
)
from shlo_disc.shape_dialect.dialect.ops import BindOp
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops import BARRIER, BROADCASTS, CONTROL, GENERATORS, RESHAPES
from shlo_disc.shape_dialect.ops.access import defining_op, is_free
from shlo_disc.shape_dialect.ops.nested_blocks import nested_blocks
from shlo_disc.shape_dialect.ops.views import root
from shlo_disc.shape_dialect.utils.regions import is_condition, is_constant, terminator_of
from shlo_disc.transforms.decisions import Decisions
from shlo_disc.transforms.fusion import cumulative, recurrence
from shlo_disc.transforms.fusion.body import Body, ClonedBody, CollapsedBody
from shlo_disc.transforms.fusion.cluster import Cluster, Graph
from shlo_disc.transforms.fusion.columns import has_columns
from shlo_disc.transforms.fusion.convolution_product import match_convolution
from shlo_disc.transforms.fusion.grouping import group
from shlo_disc.transforms.fusion.matrix_product import match_product, narrow_arguments
from shlo_disc.transforms.fusion.shared_functions import SharedFunctions

_UPDATES = frozenset({"stablehlo.scatter", "stablehlo.dynamic_update_slice"})
"""The ops that change some elements."""


_VIEWING = RESHAPES | {"disc.shape"}


class Outliner:
    """Rewrites a block: clusters become fusions, in an order that respects their dependencies.

    The blocks of a loop or branch have outliners of their own. What they use from outside, the outliner of the block
    that defines it makes available before the loop or branch: the `anchor` of the inner one.
    """

    def __init__(
        self,
        module: ir.Module,
        block: ir.Block,
        graph: Graph,
        decisions: Decisions,
        outer: Outliner | None = None,
        anchor: ir.Operation | None = None,
    ):
        self.module = module
        self.block = block
        self.outer = outer
        self.anchor = anchor
        self.names: Iterator[int] = itertools.count() if outer is None else outer.names
        self.functions: SharedFunctions = SharedFunctions(module) if outer is None else outer.functions
        self.graph = graph
        self.decisions = decisions
        self.old = list(block.operations)
        self.position = {op.operation: i for i, op in enumerate(self.old)}
        self.materialized: dict[ir.Value, ir.Value] = {a: a for a in block.arguments}
        self.done: set[int] = set()

    def run(self) -> None:
        """Replace the block's ops."""
        terminator = self.old[-1]
        kept = {self.position[c.members[0]] for c in self.graph.clusters.values() if c.kind == "control"}
        with ir.InsertionPoint(terminator), terminator.location:
            ordered = sorted(self.graph.clusters.values(), key=self._last_position)
            for cluster in ordered:
                self._emit(cluster)
            self._return(terminator)
        for position, op in reversed(list(enumerate(self.old[:-1]))):
            is_buffer = is_constant(op) and op.results[0] in self.materialized
            if not is_buffer and position not in kept:
                op.operation.erase()
        self._erase_unread_views()
        if self.outer is None:
            self.functions.erase_left()

    def _erase_unread_views(self) -> None:
        """Kernels read what lies behind a view where that has the sizes they want."""
        for op in reversed(list(self.block.operations)):
            if op.operation.name in _VIEWING and not any(True for _ in op.results[0].uses):
                op.operation.erase()

    def _last_position(self, cluster: Cluster) -> int:
        return max(self.position[m] for m in cluster.members)

    def _return(self, terminator: ir.OpView) -> None:
        """Every value that is made in the block and leaves it is in a buffer of its own.

        A condition is only looked at, wherever it is.
        """
        returned: set[ir.Value] = set()
        only_looked_at = is_condition(self.block)
        for position, value in enumerate(terminator.operands):
            new = self.materialize(value)
            source = root(new)
            is_copied = source in returned or not self._may_leave(source, position) or self._is_sized_later(new, source)
            if not only_looked_at and is_copied:
                new = self._copy(new)
            returned.add(root(new))
            terminator.operands[position] = new

    def _may_leave(self, source: ir.Value, position: int) -> bool:
        """A result of a kernel, loop or branch; in a loop or branch also a value from outside, or carried unchanged."""
        owner = defining_op(source)
        if (source.owner if owner is None else owner.block) != self.block:
            return True
        if owner is None:
            return self.outer is not None and list(self.block.arguments)[position : position + 1] == [source]
        return owner.name in CONTROL | {"func.call"}

    def _is_sized_later(self, view: ir.Value, source: ir.Value) -> bool:
        """Tells whether the sizes of a view may be read from data after the buffer is written."""
        of_view, of_source = ({name for d in dims_of(v) for name in d.symbols()} for v in (view, source))
        return not (of_view & self.graph.binds.keys()) <= of_source

    def _copy(self, value: ir.Value) -> ir.Value:
        function = self._function(f"loop_{next(self.names)}", [value], [value.type])
        with ir.InsertionPoint(function.entry_block):
            func.ReturnOp([function.entry_block.arguments[0]])
        set_fusion(function, Loop())
        return func.CallOp(self.functions.add(function), [value]).results[0]

    def materialize(self, value: ir.Value) -> ir.Value:
        """The value at the top level: a fusion's result, an argument, a constant, or a view of one."""
        known = self.materialized.get(value)
        if known is not None:
            return known
        op = defining_op(value)
        if op is None or op not in self.position:
            self.materialized[value] = self._from_outside(value)
        elif op in self.graph.of_op:
            self._emit(self.graph.of_op[op])
        elif op.name in RESHAPES:
            self.materialized[value] = view(self.materialize(op.operands[0]), dims_of(value))
        elif is_constant(op) and not is_free(op):
            op.move_before(next(iter(self._outermost().block.operations)).operation)
            self.materialized[value] = value
        else:
            self._emit_body("loop", ClonedBody([op]), [value], op.location)
        return self.materialized[value]

    def _from_outside(self, value: ir.Value) -> ir.Value:
        if self.outer is None or self.anchor is None:
            raise ValueError("a block argument of another block cannot be materialised")
        with ir.InsertionPoint(self.anchor):
            return self.outer.materialize(value)

    def _outermost(self) -> Outliner:
        return self if self.outer is None else self.outer._outermost()

    def _emit(self, cluster: Cluster) -> None:
        if cluster.number in self.done:
            return
        self.done.add(cluster.number)
        for member in cluster.members:
            for reader in self.graph.readers_of_sizes(member):
                self._emit(reader)
        if cluster.kind == "bind":
            (member,) = cluster.members
            BindOp(self.materialize(member.operands[0]), member.attributes["symbols"], loc=member.location)
            return
        if cluster.kind == "control":
            self._emit_control(cluster.members[0])
            return
        if cluster.kind == "barrier":
            self._emit_barrier(cluster.members[0])
            return
        cluster.members.sort(key=self.position.__getitem__)
        body: Body = CollapsedBody.create(cluster, self.graph) or ClonedBody(cluster.members, _reads_buffers(cluster))
        outputs = self._outputs(cluster)
        self._emit_body(cluster.kind, body, outputs, cluster.members[-1].location, cluster.columns)

    def _emit_control(self, op: ir.Operation) -> None:
        """A loop or branch stays an op: it reads buffers, and its blocks are outlined one by one.

        It moves to the insertion point, which is before another loop where that one needs its results.
        """
        for position, value in enumerate(op.operands):
            if _is_generated(value):
                self.materialized.pop(value, None)  # a loop overwrites what it starts from
            op.operands[position] = self.materialize(value)
        follower = ir.InsertionPoint.current.ref_operation
        if follower is None:
            raise CompilerError("fuse: a loop or branch has to stand before another op")
        op.move_before(follower.operation)
        for nested in nested_blocks(op):
            Outliner(self.module, nested, group(nested, self.decisions), self.decisions, self, op).run()
        self.materialized.update({result: result for result in op.results})

    def _emit_barrier(self, op: ir.Operation) -> None:
        """A barrier stays an op, which reads buffers."""
        operands = [self.materialize(v) for v in op.operands]
        barrier = ir.Operation.create(BARRIER, [v.type for v in operands], operands, loc=op.location)
        self.materialized.update(zip(op.results, barrier.results, strict=True))

    def _outputs(self, cluster: Cluster) -> list[ir.Value]:
        """The outputs of the kernel. A scatter or sort writes all of its results, a sort a second copy to work in.

        A library function writes all of its results too, and a recurrence all but its counters.
        """
        if cluster.kind == "library":
            return list(cluster.members[0].results)
        if cluster.kind == "recurrence":
            return [r for r in cluster.members[0].results if dims_of(r)]
        if cluster.kind not in ("scatter", "sort"):
            return [r for m in cluster.members for r in m.results if self._leaves(r, cluster)]
        results = next(list(m.results) for m in cluster.members if m.name == f"stablehlo.{cluster.kind}")
        return [*results, *results] if cluster.kind == "sort" else results

    def _leaves(self, value: ir.Value, cluster: Cluster) -> bool:
        """Tells whether a member's result is read outside its cluster, looking through free ops."""
        for use in value.uses:
            user = use.owner.operation
            if self.graph.of_op.get(user) is cluster:
                continue
            if not is_free(user):
                return True
            if self._leaves(user.results[0], cluster):
                return True
        return False

    def _emit_body(
        self, kind: str, body: Body, outputs: Sequence[ir.Value], location: ir.Location, columns: int = 0
    ) -> None:
        collapsed = isinstance(body, CollapsedBody)
        if isinstance(body, CollapsedBody):
            columns = body.columns
        inputs = body.inputs()
        with location:
            operands = [view(self.materialize(value), dims) for value, dims in inputs]
            types = [tensor_type(body.output_dims(v), element_type_of(v)) for v in outputs]
            name = f"{kind}_{next(self.names)}"

            def make() -> func.FuncOp:
                function = self._function(name, operands, types)
                block = function.entry_block
                with ir.InsertionPoint(block):
                    func.ReturnOp(body.build(dict(zip(inputs, block.arguments, strict=True)), outputs))
                set_fusion(function, _described(KINDS[kind], function, collapsed, columns))
                return self.functions.add(function)

            def key() -> Hashable:
                line = self.functions.line
                types_of_inputs = tuple(v.type for v in operands)
                return kind, columns, types_of_inputs, tuple(types), line(location), body.key(inputs, outputs, line)

            # Recurrences keep functions of their own, as two calls of them may become one.
            function = make() if kind == "recurrence" else self.functions.once(key(), make)
            call = func.CallOp(function, operands)
            for old, new in zip(outputs, call.results, strict=True):
                if old not in self.materialized:
                    self.materialized[old] = view(new, dims_of(old))

    def _function(self, name: str, operands: Sequence[ir.Value], types: Sequence[ir.Type]) -> func.FuncOp:
        """An empty private function."""
        with ir.InsertionPoint(self.module.body):
            type_ = ir.FunctionType.get([v.type for v in operands], list(types))
            function = func.FuncOp(name, type_, visibility="private")
        function.add_entry_block()
        return function


def _reads_buffers(cluster: Cluster) -> bool:
    """Tells whether every operand is a buffer: of a call of a function."""
    return cluster.members[0].name == "stablehlo.custom_call"


def _described(kind: type[Fusion], function: func.FuncOp, collapsed: bool, columns: int) -> Fusion:
    """The description of a finished function for the later stages."""
    if kind is RowReduce:
        return RowReduce(collapsed, columns)
    if kind is Reduce:
        return Reduce(collapsed, has_columns(function))
    if kind in (Scatter, Update):
        return kind(updates=tuple(_updated_arguments(function.entry_block)))
    if kind is Recurrence:
        return Recurrence(loops=tuple(recurrence.described(op) for op in _ops(function, "stablehlo.while")))
    if kind is Scan:
        return cumulative.described(next(_ops(function, "stablehlo.reduce_window")))
    if kind is Dot:
        return Dot(product=match_product(function), narrow=narrow_arguments(function))
    if kind is Convolution:
        return Convolution(product=match_convolution(function))
    return kind(collapsed)


def _ops(function: func.FuncOp, name: str) -> Iterator[ir.OpView]:
    return (op for op in function.entry_block.operations if op.operation.name == name)


def _updated_arguments(block: ir.Block) -> list[int]:
    """For each result the argument that it is with some elements changed, or -1."""
    arguments = list(block.arguments)
    found = []
    for value in terminator_of(block).operands:
        op = defining_op(value)
        start = None
        if op is not None and op.name in _UPDATES:
            start = op.operands[list(op.results).index(value)]
        found.append(arguments.index(start) if start in arguments else -1)
    return found


def _is_generated(value: ir.Value) -> bool:
    """Made from nothing: a repeated scalar, an iota."""
    op = defining_op(value)
    if op is None or not is_free(op):
        return False
    return op.name in GENERATORS or (op.name in BROADCASTS and _is_generated(op.operands[0]))
