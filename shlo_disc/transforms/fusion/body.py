# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the regions of fusions.

Two forms. `CollapsedBody` is for clusters whose every read runs along the iteration space: neighbouring axes that are
always read together become one (a bias + gelu over [b, s, 3072] iterates over [b*s, 3072]), so kernels of different
ranks become the same kernel. `ClonedBody` keeps the ops as they are, for clusters that also move data.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.build import broadcast, shape_tensor
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, product, tensor_type
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import BROADCASTS, ELEMENTWISE, IOTAS, RESHAPES
from shlo_disc.shape_dialect.ops.access import Access, defining_op, is_free, is_scalar_constant
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks, nested_blocks
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import is_constant
from shlo_disc.shape_dialect.utils.structure import Numbering
from shlo_disc.transforms.fusion.cluster import Cluster, Graph

Groups = tuple[int, ...]
"""Indices of collapsed axes of the iteration space."""

Line = Callable[[ir.Location], str]
"""The user's line of a location."""


@dataclass(frozen=True)
class DomainAccess:
    """A read in terms of the iteration space: for each size of the value the domain axis, None for sizes of 1."""

    value: ir.Value
    axes: tuple[int | None, ...]

    @property
    def used(self) -> frozenset[int]:
        """The domain axes the read depends on."""
        return frozenset(a for a in self.axes if a is not None)


def member_accesses(
    op: ir.Operation, axes: tuple[int | None, ...], cluster: Cluster, reads: Iterable[Access]
) -> list[DomainAccess] | None:
    """The reads of a member in terms of the iteration space, or None when one does not run along it."""
    accesses = []
    own = reading_axes(op, axes, cluster)
    for read in reads:
        access = _in_domain(read, own)
        if access is None:
            return None
        accesses.append(access)
    return accesses


def reading_axes(op: ir.Operation, axes: tuple[int | None, ...], cluster: Cluster) -> tuple[int | None, ...]:
    """The domain axes that the axes of a member's reads stand for."""
    if op.name != "stablehlo.reduce":
        return axes
    return tuple(_reduce_input_axes(op, axes, cluster, len(dims_of(op.operands[0]))))


def _reduce_input_axes(
    op: ir.Operation, axes: tuple[int | None, ...], cluster: Cluster, rank: int
) -> Iterable[int | None]:
    """Domain axes of a row reduction's input: the rows of the result, then the columns."""
    yield from axes
    dims = dims_of(op.operands[0])
    columns = iter([a for a in range(cluster.rows, len(cluster.domain)) if cluster.domain[a].constant != 1])
    for i in range(len(axes), rank):
        yield None if dims[i].constant == 1 else next(columns)


def _in_domain(access: Access, reader_axes: Sequence[int | None]) -> DomainAccess | None:
    op = access.made_by
    if op is not None and is_scalar_constant(op):
        return DomainAccess(access.value, ())
    if access.axes is None:
        return None
    axes = tuple(None if a is None else reader_axes[a] for a in access.axes)
    used = [a for a in axes if a is not None]
    if used != sorted(set(used)):
        return None
    if op is not None and op.name == "disc.shape" and axes:
        return None
    if op is not None and op.name in IOTAS:
        axis = axes[ir.IntegerAttr(op.attributes["iota_dimension"]).value]
        return DomainAccess(access.value, () if axis is None else (axis,))
    return DomainAccess(access.value, axes)


class CollapsedBody:
    """The region of an aligned cluster over its collapsed iteration space."""

    def __init__(self, cluster: Cluster, graph: Graph, accesses: dict[ir.Operation, list[DomainAccess]]):
        self.cluster = cluster
        self.graph = graph
        self.accesses = accesses
        self.groups = self._collapse()
        self._sizes = [product(cluster.domain[a] for a in group) for group in self.groups]
        self._values: dict[ir.Value, tuple[ir.Value, Groups]] = {}
        self._generated: dict[tuple[ir.Value, Groups], tuple[ir.Value, Groups]] = {}
        self._broadcasts: dict[tuple[ir.Value, Groups, Groups], ir.Value] = {}
        self._shapes: dict[Dims, ir.Value] = {}

    @staticmethod
    def create(cluster: Cluster, graph: Graph) -> CollapsedBody | None:
        """None when the cluster cannot be collapsed."""
        if not cluster.is_aligned or cluster.kind not in ("loop", "row_reduce"):
            return None
        accesses = {}
        for op in cluster.members:
            if op.name not in ELEMENTWISE and op.name != "stablehlo.reduce":
                return None
            found = member_accesses(op, cluster.axes[op], cluster, graph.reads_of(op))
            if found is None:
                return None
            accesses[op] = found
        return CollapsedBody(cluster, graph, accesses)

    def _collapse(self) -> list[list[int]]:
        """Runs of neighbouring domain axes that every read uses together or not at all."""
        domain = self.cluster.domain
        axes = [a for a, d in enumerate(domain) if d.constant != 1]
        used = [a.used for accesses in self.accesses.values() for a in accesses]
        used += [frozenset(a for a in m if a is not None) for m in self.cluster.axes.values()]
        groups: list[list[int]] = []
        for axis in axes:
            together = bool(groups) and all((groups[-1][-1] in u) == (axis in u) for u in used)
            crosses = bool(groups) and groups[-1][-1] < self.cluster.rows <= axis
            if together and not crosses:
                groups[-1].append(axis)
            else:
                groups.append([axis])
        return groups

    @property
    def columns(self) -> int:
        """The number of collapsed axes that are reduced along."""
        return sum(1 for g in self.groups if g[0] >= self.cluster.rows)

    def dims(self, groups: Groups) -> Dims:
        """The sizes of a value over `groups`."""
        return tuple(self._sizes[g] for g in groups)

    def groups_of(self, used: Iterable[int | None]) -> Groups:
        """The collapsed axes that contain the given domain axes."""
        axes = set(used)
        return tuple(i for i, g in enumerate(self.groups) if g[0] in axes)

    def inputs(self) -> list[tuple[ir.Value, Dims]]:
        """The values loaded from memory, each with its collapsed sizes."""
        members = set(self.cluster.members)
        found: dict[tuple[ir.Value, Dims], None] = {}
        for accesses in self.accesses.values():
            for access in accesses:
                op = defining_op(access.value)
                if op is not None and (op in members or self._is_generated(op)):
                    continue
                found[access.value, self.dims(self.groups_of(access.axes))] = None
        return list(found)

    def output_dims(self, value: ir.Value) -> Dims:
        """The collapsed sizes of a member's result."""
        owner = defining_op(value)
        if owner is None:
            raise ValueError("an argument is not a member's result")
        return self.dims(self.groups_of(self.cluster.axes[owner]))

    def key(self, inputs: Sequence[tuple[ir.Value, Dims]], outputs: Sequence[ir.Value], line: Line) -> Hashable:
        """Equal for bodies that `build` makes equal of equal types of inputs, from the same lines of the user's."""
        numbers = {read: number for number, read in enumerate(inputs)}
        made: dict[ir.Value, int] = {}
        ops = []
        for op in self.cluster.members:
            reads = tuple(self._key_of_read(access, numbers, made, line) for access in self.accesses[op])
            scalars = tuple(not dims_of(operand) for operand in op.operands)
            own = self.groups_of(self.cluster.axes[op])
            elements = tuple(element_type_of(result) for result in op.results)
            made.update((result, len(made) + i) for i, result in enumerate(op.results))
            ops.append((op.name, Numbering().parts(op), reads, scalars, own, elements, line(op.location)))
        return tuple(self._sizes), self.columns, tuple(ops), tuple(made[v] for v in outputs)

    def _key_of_read(
        self, access: DomainAccess, numbers: dict[tuple[ir.Value, Dims], int], made: dict[ir.Value, int], line: Line
    ) -> Hashable:
        """The key of what `_read` returns: a member's result, an input, or something made from nothing."""
        if access.value in made:
            return "member", made[access.value]
        groups = self.groups_of(access.axes)
        op = defining_op(access.value)
        if op is None or not self._is_generated(op):
            return "input", numbers[access.value, self.dims(groups)], groups
        operands = op.operands if op.name in ELEMENTWISE else ()
        reads = tuple(self._key_of_read(DomainAccess(value, ()), numbers, made, line) for value in operands)
        return op.name, Numbering().parts(op), op.results[0].type, groups, reads, line(op.location)

    def build(self, arguments: dict[tuple[ir.Value, Dims], ir.Value], outputs: Sequence[ir.Value]) -> list[ir.Value]:
        """Emit the members at the insertion point; returns the values of `outputs`."""
        for op in self.cluster.members:
            with op.location:
                self._build_member(op, arguments)
        return [self._values[v][0] for v in outputs]

    def _build_member(self, op: ir.Operation, arguments: dict[tuple[ir.Value, Dims], ir.Value]) -> None:
        own = self.groups_of(self.cluster.axes[op])
        is_reduce = op.name == "stablehlo.reduce"
        wide = tuple(sorted({*own, *range(len(self.groups) - self.columns, len(self.groups))})) if is_reduce else own
        operands = []
        for access, operand in zip(self.accesses[op], op.operands, strict=True):
            value, groups = self._read(access, arguments)
            scalar_operand = not dims_of(operand)
            operands.append(value if scalar_operand else self._stretch(value, groups, wide))
        clone = op.clone()
        for position, value in enumerate(operands):
            clone.operands[position] = value
        if is_reduce:
            reduced = [i for i, g in enumerate(wide) if g not in own]
            clone.attributes["dimensions"] = ir.DenseI64ArrayAttr.get(reduced)
        for result, old in zip(clone.results, op.results, strict=True):
            result.set_type(tensor_type(self.dims(own), element_type_of(old)))
            self._values[old] = (result, own)

    def _read(self, access: DomainAccess, arguments: dict[tuple[ir.Value, Dims], ir.Value]) -> tuple[ir.Value, Groups]:
        known = self._values.get(access.value)
        if known is not None:
            return known
        groups = self.groups_of(access.axes)
        op = defining_op(access.value)
        if op is None or not self._is_generated(op):
            return arguments[access.value, self.dims(groups)], groups
        key = (access.value, groups)
        if key not in self._generated:
            self._generated[key] = self._generate(op, groups)
        return self._generated[key]

    def _is_generated(self, op: ir.Operation) -> bool:
        """Computed inside the kernel from nothing."""
        return self.graph.is_free(op) and op.name not in BROADCASTS and op.name not in RESHAPES

    def _generate(self, op: ir.Operation, groups: Groups) -> tuple[ir.Value, Groups]:
        if is_constant(op):
            return scalar_constant(op), ()
        if op.name == "disc.shape":
            return op.clone().results[0], ()
        if op.name in ELEMENTWISE:
            return self._generate_scalar(op), ()
        if not groups:
            return _zero(element_type_of(op.results[0])), ()
        dims = self.dims(groups)
        result = tensor_type(dims, element_type_of(op.results[0]))
        attributes: dict[str, ir.Attribute] = {"iota_dimension": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)}
        is_static = result.has_static_shape
        name, operands = ("stablehlo.iota", []) if is_static else ("stablehlo.dynamic_iota", [self._shape(dims)])
        iota = ir.Operation.create(name, results=[result], operands=operands, attributes=attributes)
        return iota.results[0], groups

    def _generate_scalar(self, op: ir.Operation) -> ir.Value:
        operands = [self._read(DomainAccess(value, ()), {})[0] for value in op.operands]
        clone = op.clone()
        for position, value in enumerate(operands):
            clone.operands[position] = value
        return clone.results[0]

    def _stretch(self, value: ir.Value, groups: Groups, target: Groups) -> ir.Value:
        if groups == target:
            return value
        key = (value, groups, target)
        if key not in self._broadcasts:
            positions = [target.index(g) for g in groups]
            self._broadcasts[key] = broadcast(value, self.dims(target), positions, self._shape)
        return self._broadcasts[key]

    def _shape(self, dims: Sequence[Expr]) -> ir.Value:
        """The tensor of some sizes."""
        key = tuple(dims)
        if key not in self._shapes:
            self._shapes[key] = shape_tensor(key)
        return self._shapes[key]


def scalar_constant(op: ir.Operation) -> ir.Value:
    """The repeated element of a splat constant as a rank-0 constant at the insertion point."""
    attribute = ir.DenseElementsAttr(op.attributes["value"])
    scalar = ir.RankedTensorType.get([], element_type_of(op.results[0]))
    value = ir.DenseElementsAttr.get_splat(scalar, attribute.get_splat_value())
    return build.dense(value)


def _zero(element: ir.Type) -> ir.Value:
    """The one element of an iota of size 1, as a rank-0 constant at the insertion point."""
    scalar = ir.RankedTensorType.get([], element)
    number = ir.FloatAttr.get(element, 0.0) if isinstance(element, ir.FloatType) else ir.IntegerAttr.get(element, 0)
    attributes: dict[str, ir.Attribute] = {"value": ir.DenseElementsAttr.get_splat(scalar, number)}
    return ir.Operation.create("stablehlo.constant", results=[scalar], attributes=attributes).results[0]


@dataclass
class ClonedBody:
    """The region of a cluster that moves data: members and the free ops they read, copied as they are.

    With `from_memory`, every operand is loaded from memory: the members are library functions.
    """

    members: list[ir.Operation]
    from_memory: bool = False
    _mapping: dict[ir.Value, ir.Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._inside = frozenset(self.members)

    def inputs(self) -> list[tuple[ir.Value, Dims]]:
        """The values loaded from memory."""
        found: dict[ir.Value, None] = {}
        for op in self.members:
            for value in _values_used(op):
                self._collect(value, found)
        return [(v, dims_of(v)) for v in found]

    def _collect(self, value: ir.Value, found: dict[ir.Value, None]) -> None:
        op = defining_op(value)
        if op is not None and op in self._inside:
            return
        if op is None or not self._is_inside(op):
            found[value] = None
            return
        for operand in op.operands:
            self._collect(operand, found)

    def _is_inside(self, op: ir.Operation) -> bool:
        """Tells whether a free op is copied into the kernel. A reshape of an outside value is a view, outside."""
        if self.from_memory or not is_free(op):
            return False
        return op.name not in RESHAPES or self._reads_member(op.operands[0])

    def _reads_member(self, value: ir.Value) -> bool:
        op = defining_op(value)
        if op is None:
            return False
        return op in self._inside or (is_free(op) and any(self._reads_member(v) for v in op.operands))

    def output_dims(self, value: ir.Value) -> Dims:
        """The sizes of a member's result."""
        return dims_of(value)

    def key(self, inputs: Sequence[tuple[ir.Value, Dims]], outputs: Sequence[ir.Value], line: Line) -> Hashable:
        """Equal for bodies that `build` makes equal of equal types of inputs, from the same lines of the user's."""
        numbering = Numbering(value for value, _ in inputs)
        ops: list[Hashable] = []

        def visit(op: ir.Operation) -> None:
            for value in _values_used(op):
                owner = defining_op(value)
                if value not in numbering.numbers and owner is not None:
                    visit(owner)
            ops.append((numbering.op(op), line(op.location)))

        for op in self.members:
            visit(op)
        return tuple(ops), tuple(numbering.numbers[v] for v in outputs)

    def build(self, arguments: dict[tuple[ir.Value, Dims], ir.Value], outputs: Sequence[ir.Value]) -> list[ir.Value]:
        """Emit the members at the insertion point; returns the values of `outputs`."""
        self._mapping = {value: argument for (value, _), argument in arguments.items()}
        for op in self.members:
            self._clone(op)
        return [self._mapping[v] for v in outputs]

    def _clone(self, op: ir.Operation) -> None:
        for value in _values_used(op):
            if value not in self._mapping:
                owner = defining_op(value)
                if owner is None:
                    raise ValueError(f"{op.name} reads a value that is not an input of its fusion")
                self._clone(owner)
        clone = op.clone()
        blocks = [block for nested in nested_blocks(clone) for block in all_blocks(nested)]
        for part in (clone, *(i.operation for block in blocks for i in block.operations)):
            for position, value in enumerate(part.operands):
                if value in self._mapping:
                    part.operands[position] = self._mapping[value]
        for old, new in zip(op.results, clone.results, strict=True):
            self._mapping[old] = new


def _values_used(op: ir.Operation) -> list[ir.Value]:
    """The operands of an op, and what the regions of a loop use from outside."""
    blocks = [block for nested in nested_blocks(op) for block in all_blocks(nested)]
    own = {v for block in blocks for v in (*block.arguments, *(r for i in block.operations for r in i.results))}
    inner = [v for block in blocks for i in block.operations for v in i.operands]
    return [*op.operands, *dict.fromkeys(v for v in inner if v not in own)]


Body = CollapsedBody | ClonedBody
Materialize = Callable[[ir.Value], ir.Value]

__all__ = ["Body", "ClonedBody", "CollapsedBody", "Materialize"]
