# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fused program as a graph: what it calls, loops and branches, and the values between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from shlo_disc.driver.compilation import Compilation
from shlo_disc.lowering.launches import Launched, launches_in
from shlo_disc.report.page.document import Edge, Excerpt, Node
from shlo_disc.report.page.layout import layout
from shlo_disc.report.page.places import sources_of
from shlo_disc.report.page.texts import Texts
from shlo_disc.report.work import work_of
from shlo_disc.shape_dialect.dialect.fusion import fusion_of, is_fusion
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops import CONTROL
from shlo_disc.shape_dialect.ops.nested_blocks import nested_blocks
from shlo_disc.shape_dialect.ops.views import root
from shlo_disc.shape_dialect.utils.regions import callee_of, entry_block, terminator_of
from shlo_disc.transforms.flops import repeated_ops

MOST_SOURCES = 24
"""Lines of the user's that a node names."""


def graph_of(c: Compilation, texts: Texts) -> tuple[tuple[Node, ...], tuple[Edge, ...]]:
    """The nodes and edges of a finished compilation, each edge to a later node.

    Arguments are nodes where a size of theirs is a symbol, or all of them where none is; the others, such as weights,
    are named by the nodes that read them. What a loop hands on to its next iteration has no edge.
    """
    builder = _Builder(c, texts)
    builder.block(entry_block(c.snapshots["plan"]))
    builder.results()
    nodes, pairs = builder.nodes, sorted(builder.edges)
    arguments = [number for number, node in enumerate(nodes) if node.kind == "argument"]
    placed = layout(len(nodes), pairs, arguments)
    edges = tuple(
        Edge(*pair, ", ".join(builder.edges[pair]), bends) for pair, bends in zip(pairs, placed.bends, strict=True)
    )
    at = zip(nodes, placed.nodes, placed.trunks, strict=True)
    whole = tuple(
        replace(node, x=round(x), y=round(y), trunk=tuple((round(u), round(v)) for u, v in trunk))
        for node, (x, y), trunk in at
    )
    return whole, edges


@dataclass
class _Builder:
    """Walks the program and notes, for each value, the nodes that make it: several for the result of a branch."""

    c: Compilation
    texts: Texts
    nodes: list[Node] = field(default_factory=list)
    edges: dict[tuple[int, int], list[str]] = field(default_factory=dict)
    makers: dict[ir.Value, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        module = self.c.snapshots["plan"]
        self.functions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
        self.launches: dict[str, list[Launched]] = {}
        for launched in launches_in(self.c.snapshots["host"]):
            self.launches.setdefault(launched.fusion, []).append(launched)
        arguments = entry_block(module).arguments
        leaves, kept = self.c.signature.arguments, self.c.signature.kept
        self.names: dict[ir.Value, str] = {v: leaves[leaf].path for v, leaf in zip(arguments, kept, strict=True)}
        symbolic = [v for v in arguments if any(d.constant is None for d in dims_of(v))]
        for value in symbolic or arguments:
            self.makers[value] = (self._add(Node(self.names[value], "argument", 0, 0, outputs=(_type(value),))),)

    def _add(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def _read(self, node: int, values: Iterable[ir.Value]) -> None:
        for value in dict.fromkeys(root(v) for v in values):
            for maker in self.makers.get(value, ()):
                labels = self.edges.setdefault((maker, node), []) if maker != node else []
                if _type(value) not in labels:
                    labels.append(_type(value))

    def block(self, block: ir.Block) -> None:
        """Take in the ops of a block."""
        for op in block.operations:
            name = op.operation.name
            if name == "func.call":
                node = self._add(self._call(op))
                self._read(node, op.operands)
                self.makers.update(dict.fromkeys(op.results, (node,)))
            elif name in CONTROL:
                self._control(op)
            elif op.operands and op.results:
                makers = dict.fromkeys(m for v in op.operands for m in self.makers.get(root(v), ()))
                self.makers.update(dict.fromkeys(op.results, tuple(makers)))

    def _control(self, op: ir.OpView) -> None:
        """A loop or branch is a node above those in it; its results are made by what its blocks return."""
        name = f"{op.operation.name.removeprefix('stablehlo.')} {sum(n.kind == 'control' for n in self.nodes)}"
        sources = sources_of([op], MOST_SOURCES)
        node = self._add(Node(name, "control", 0, 0, outputs=tuple(map(_type, op.results)), sources=sources))
        self._read(node, op.operands)
        blocks = nested_blocks(op)
        for block in blocks:
            self.makers.update(dict.fromkeys(block.arguments, (node,)))
            self.block(block)
        returning = blocks[1:] if op.operation.name == "stablehlo.while" else blocks
        for position, result in enumerate(op.results):
            values = [root(terminator_of(block).operands[position]) for block in returning]
            self.makers[result] = tuple(dict.fromkeys(m for v in values for m in self.makers.get(v, (node,))))

    def _call(self, call: ir.OpView) -> Node:
        name = callee_of(call)
        function = self.functions[name]
        ops = [op for op, _ in repeated_ops(function.entry_block, self.functions)]
        inner = [callee_of(op) for op in ops if op.operation.name == "func.call"]
        launches = self.launches.get(name, [])
        kernels = tuple(dict.fromkeys(kernel for launched in launches for kernel in launched.functions))
        plan = self.texts.functions("plan")
        excerpts: dict[str, tuple[Excerpt, ...]] = {
            "ops": tuple(plan[n] for n in dict.fromkeys([name, *inner]) if n in plan),
            "kernel": self.texts.kernel(kernels),
            "code": self.texts.code(kernels),
        }
        return Node(
            name,
            fusion_of(function).kind if is_fusion(function) else "call",
            0,
            0,
            ops=work_of(function, self.functions).ops,
            kernels=kernels,
            guards=tuple(dict.fromkeys(text for launched in launches for text in guard_texts(launched))),
            inputs=tuple(self._input(v) for v in call.operands),
            outputs=tuple(map(_type, call.results)),
            sources=sources_of([*ops, call], MOST_SOURCES),
            excerpts=excerpts,
        )

    def _input(self, value: ir.Value) -> str:
        name = self.names.get(root(value), "")
        makers = [self.nodes[m].name for m in self.makers.get(root(value), ())]
        return f"{_type(value)} of {name or ' or '.join(makers) or 'the program'}"

    def results(self) -> None:
        """Add what the program gives."""
        values = terminator_of(entry_block(self.c.snapshots["plan"])).operands
        for spec, value in zip(self.c.signature.results, values, strict=True):
            node = self._add(Node(spec.path, "result", 0, 0, inputs=(_type(value),)))
            self._read(node, [value])


def guard_texts(launched: Launched) -> Iterator[str]:
    """The choices at run time: "whole vectors if mod(s, 32) == 0, else a masked last vector"."""
    for guard in launched.guards:
        yield f"{guard.variant} if {' and '.join(map(str, guard.conditions))}, else {guard.otherwise}"


def _type(value: ir.Value) -> str:
    return f"{element_type_of(value)}[{', '.join(map(str, dims_of(value)))}]"


__all__ = ["graph_of", "guard_texts"]
