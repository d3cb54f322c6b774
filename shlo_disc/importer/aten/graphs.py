# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A graph of PyTorch's ops -> StableHLO.

Every node of a graph that was exported or traced says in `meta["val"]` which dtype and symbolic sizes it has, so that
types are exact from the start and nothing is inferred here. A size is an expression over the symbols of the arguments.
"""

from __future__ import annotations

import functools
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import sympy
import torch
from torch._ops import HigherOrderOperator
from torch.fx import Node
from torch.utils import _pytree

from shlo_disc.errors import Unsupported, UnsupportedError
from shlo_disc.shape_dialect.build import shape_tensor
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.dialect.symbol_sources import symbol_sources
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

from . import table
from .assumed import asserted, equations, is_assumed
from .control import HIGHER
from .graph import LEAVE, Graph, Spec
from .index_ranges import ends_of_literal
from .lines import line_of, location
from .random_numbers import DRAWING
from .relations import LARGEST, assert_holds, bind, check_ends, check_relation
from .rounded import bind_rounded
from .sizes import NoSize, Sizes
from .stored import stored_order


@dataclass
class Translated:
    """A graph as StableHLO text. Its function takes the `captured` tensors, then the graph's placeholders.

    draws: there is one argument more, the key of its random numbers (ui64[2]).
    orders: of the captured tensors, then of the placeholders in the order that the function takes them in, the order of
    axes that each is taken in; None for its own.
    outputs: for each value that the graph returns the number of the function's result, or the constant that it is.
    """

    text: str
    captured: list[torch.Tensor] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    draws: bool = False
    orders: list[tuple[int, ...] | None] = field(default_factory=list)


@dataclass(frozen=True)
class Output:
    """The value that a graph returns at one place: a function result, which is a size where `is_size`; else `constant`.

    permutation: the order in which the result's axes are those of the tensor, where that is another one in memory.
    """

    result: int | None = None
    is_size: bool = False
    constant: Any = None
    permutation: tuple[int, ...] | None = None


def translate(
    module: torch.fx.GraphModule,
    name: str = "main",
    ranges: Iterable[Any] = (),
    first: Sequence[str] = (),
    bound: int = 0,
    has_strides: bool = False,
    relations: Iterable[Any] = (),
    names: Mapping[Any, str] = MappingProxyType({}),
    literals: Mapping[str, torch.Tensor] = MappingProxyType({}),
    origins: Mapping[Any, str] = MappingProxyType({}),
) -> Translated:
    """The graph of a module whose nodes have been traced with symbolic sizes.

    ranges: pairs of a SymPy symbol and PyTorch's range of it, which each call checks. first: names of placeholders that
    come before the others, in this order. bound: how many of these are the same in many calls, as the captured tensors
    are. has_strides: arguments and results lie in memory in the order of axes that PyTorch says. relations: of sizes,
    in SymPy's terms, that the graph is right for; each call checks them. names: the user's, of SymPy's symbols.
    literals: tensors of numbers in the user's code, by their placeholders. origins: what made PyTorch take a relation,
    or an end of a range, to hold, in messages.
    Placeholders that stand for None, a bool, a str or another constant are no arguments of the function.
    Raises UnsupportedError listing every op that has no translation, with the user's lines.
    """
    _check_supported(module)
    symbols = {symbol: Expr.symbol(own) for symbol, own in names.items()}
    with make_context() as context, ir.Location.unknown():
        walk = _Walk(module, Graph(context, Sizes(symbols)), name, first, has_strides)
        walk.graph.origins = origins
        return walk.run(ranges, relations, bound, literals)


def _check_supported(module: torch.fx.GraphModule) -> None:
    known = table.rows()
    found = [
        Unsupported(_shown(n), "", line_of(n), *_why(n, known))
        for part in [module, *(m for m in module.modules() if isinstance(m, torch.fx.GraphModule) and m is not module)]
        for n in part.graph.nodes
        if n.op == "call_function"
        and _is_tensor_op(n)
        and table.translation(table.name_of(n.target), is_complex(n)) is None
        and table.name_of(n.target) not in _CHECKS
    ]
    if found:
        raise UnsupportedError(list(dict.fromkeys(found)))


def _why(node: Node, known: Container[str]) -> tuple[str, str]:
    """The reason that an op is not supported, and what to do."""
    name = table.name_of(node.target)
    if name.startswith("_foreach_"):
        return _UNKNOWN, "give the optimizer foreach=False, or write a loop over the tensors"
    return (_COMPLEX if name in known else _UNKNOWN), LEAVE


_UNKNOWN, _COMPLEX = "this op has no translation", "this op has no translation of complex numbers"

_CHECKS = frozenset(
    {"_assert_async.msg", "_assert_scalar.default", "_assert_tensor_metadata.default", "sym_constrain_range.default",
     "sym_constrain_range_for_size.default"}
)  # fmt: skip
"""Ops that say what holds of sizes, dtypes and elements. What they say of elements is not looked at."""


def _is_tensor_op(node: Node) -> bool:
    """Tells whether a call is of an op on tensors, and not of Python's arithmetic on sizes or tuples."""
    return isinstance(node.target, torch._ops.OpOverload) and table.name_of(node.target) not in _READ_OFF


_READ_OFF = frozenset({"sym_size.int", "sym_stride.int", "sym_numel.default", "sym_storage_offset.default"})
"""Ops whose results are sizes, which stand in the graph."""


def is_complex(node: Node) -> bool:
    """Tells whether a tensor that an op takes or returns, or a number that it takes, is complex."""
    values = _pytree.tree_leaves([node.meta.get("val"), [n.meta.get("val") for n in node.all_input_nodes]])
    numbers = _pytree.tree_leaves([node.args, node.kwargs])
    return any(isinstance(v, torch.Tensor) and v.is_complex() for v in values) or any(
        isinstance(n, complex) for n in numbers
    )


def is_constant(node: Node) -> bool:
    """Tells whether a placeholder stands for one value in all calls, which PyTorch has written into the graph."""
    value = node.meta.get("val")
    return node.op == "placeholder" and (value is None or isinstance(value, bool | int | float | str))


def _shown(node: Node) -> str:
    """An op's name, with that of the op that PyTorch has taken apart into it."""
    whole = node.meta.get("original_aten")
    return f"{node.target}, of {whole}" if whole is not None and str(whole) != str(node.target) else str(node.target)


def _attribute(module: torch.fx.GraphModule, node: Node) -> Any:
    found: Any = module
    for part in str(node.target).split("."):
        found = getattr(found, part)
    return found


class _Walk:
    """The translation of one module."""

    def __init__(self, module: torch.fx.GraphModule, graph: Graph, name: str, first: Sequence[str], has_strides: bool):
        self.module = module
        self.name = name
        self.has_strides = has_strides
        self.first = {name: position for position, name in enumerate(first)}
        self.graph, self.sizes = graph, graph.sizes
        self.values: dict[Node, Any] = {}
        self.captured: dict[Node, torch.Tensor] = {}
        self.graphs: dict[Node, torch.fx.GraphModule] = {}
        self.orders: dict[Node, tuple[int, ...] | None] = {}

    def run(
        self, ranges: Iterable[Any], relations: Iterable[Any], bound: int, literals: Mapping[str, torch.Tensor]
    ) -> Translated:
        """The whole."""
        nodes = list(self.module.graph.nodes)
        self.captured = dict(self._tensors_of(self.module))
        self.values |= {n: n.meta.get("val") for n in nodes if is_constant(n)}
        taken = [n for n in nodes if n.op == "placeholder" and n not in self.values]
        given = sorted(taken, key=lambda n: self.first.get(n.name, len(nodes)))
        placeholders = [*self.captured, *given]
        for place, node in enumerate(placeholders):
            self.orders[node] = self._order_of(node, is_bound=place < len(self.captured) + bound)
            self.graph.literals |= ends_of_literal(place, self.captured.get(node, literals.get(node.name)))
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            self.graph.stated = self._stated(placeholders)
            types = [self._argument_type(n) for n in placeholders]
            parts = [nodes, *(graph.graph.nodes for graph in self.graphs.values())]
            draws = any(table.name_of(n.target) in DRAWING for part in parts for n in part if n.op == "call_function")
            if draws:
                types.append(ir.RankedTensorType.get([2], self.graph.element(torch.uint64)))
            function = func.FuncOp("main", ir.FunctionType.get(types, []))
        block = function.add_entry_block()
        with ir.InsertionPoint(block):
            arguments = list(block.arguments)
            self.graph.key = arguments.pop() if draws else None
            self._take_arguments(placeholders, arguments)
            relations = list(relations)
            self.sizes.named |= bind_rounded(self.graph, self._expressions(parts, relations), self.graph.stated)
            known = self.graph.stated | self.graph.bound
            self._check_ranges(ranges, known)
            for relation in relations:
                check_relation(self.graph, relation)
            self._walk(self.module)
            self._check_ranges(ranges, self.graph.bound - known)
            results, outputs = self._outputs(next(n for n in nodes if n.op == "output"))
            func.ReturnOp(results)
        type_ = ir.FunctionType.get(types, [v.type for v in results])
        function.attributes["function_type"] = ir.TypeAttr.get(type_)
        module.operation.attributes["sym_name"] = ir.StringAttr.get(self.name)
        text = module.operation.get_asm(enable_debug_info=True)
        return Translated(text, list(self.captured.values()), outputs, draws, list(self.orders.values()))

    @staticmethod
    def _expressions(parts: Iterable[Iterable[Node]], relations: Sequence[Any]) -> Iterator[Any]:
        """All expressions of SymPy that the graph and what is stated of it hold."""
        yield from relations
        values = _pytree.tree_leaves([node.meta.get("val") for part in parts for node in part])
        for value in values:
            numbers = value.shape if isinstance(value, torch.Tensor) else [value]
            yield from (n.node.expr for n in numbers if isinstance(n, torch.SymInt | torch.SymFloat | torch.SymBool))

    def _check_ranges(self, ranges: Iterable[Any], names: Set[str]) -> None:
        """Emit the checks of the ranges of these symbols that each call makes."""
        for size, limits in ranges:
            if all(str(self.sizes.size_of(symbol)) in names for symbol in size.free_symbols):
                self._check_range(size, limits)

    # ---- arguments --------------------------------------------------------------------------------------------------

    def _tensors_of(self, module: torch.fx.GraphModule) -> Iterator[tuple[Node, torch.Tensor]]:
        """The tensors that are attributes of a module, and of the graphs of its branches and loops."""
        for node in module.graph.nodes:
            found = _attribute(module, node) if node.op == "get_attr" else None
            if isinstance(found, torch.fx.GraphModule):
                self.graphs[node] = found
                yield from self._tensors_of(found)
            elif isinstance(found, torch.Tensor):
                yield node, found

    def _example(self, node: Node) -> Any:
        return self.captured[node] if node in self.captured else node.meta.get("val")

    def _stated(self, nodes: Sequence[Node]) -> set[str]:
        """The symbols that the sizes of arguments determine: none of integers that may be negative, as no size is."""
        shapes: list[Dims] = []
        signed = self._signed(nodes)
        for node in nodes:
            self._enter(node)
            value = self._example(node)
            dims = Spec(value, self.sizes).dims if isinstance(value, torch.Tensor) else ()
            shapes.append(tuple(d for d in dims if signed.isdisjoint(d.symbols())))
        return {source.name for source in symbol_sources(shapes)}

    def _signed(self, nodes: Sequence[Node]) -> set[str]:
        """The symbols of arguments that are integers and may be negative."""
        values = [self._example(node) for node in nodes]
        symbols = [v.node.expr for v in values if isinstance(v, torch.SymInt) and not _limits(v).lower >= 0]
        return {str(self.sizes.size_of(symbol)) for symbol in symbols if isinstance(symbol, sympy.Symbol)}

    def _order_of(self, node: Node, is_bound: bool) -> tuple[int, ...] | None:
        """The order of axes that an argument is taken in; None for its own."""
        order, value = stored_order(node) if is_bound else None, self._example(node)
        if order is None and self.has_strides and isinstance(value, torch.Tensor):
            return memory_order(value, self.sizes)
        return order

    def _argument_type(self, node: Node) -> ir.Type:
        self._enter(node)
        value = self._example(node)
        if isinstance(value, torch.Tensor):
            spec = Spec(value, self.sizes)
            dims = [
                d if d.symbols() <= self.graph.stated else _unsolved(node, axis) for axis, d in enumerate(spec.dims)
            ]
            dims = [dims[axis] for axis in self.orders.get(node) or range(len(dims))]
            return tensor_type(dims, self.graph.element(spec.dtype))
        if isinstance(value, torch.SymInt):
            return tensor_type((), ir.IntegerType.get_signless(64))
        if isinstance(value, torch.SymFloat):
            return tensor_type((), ir.F64Type.get())
        raise self.graph.refuse(f"an argument of type {type(value).__name__} has no lowering", "pass a tensor")

    def _take_arguments(self, nodes: Sequence[Node], arguments: Sequence[ir.Value]) -> None:
        """The placeholders' values. A symbol that is no size of a tensor is read from the argument that has it."""
        stated = self.graph.stated
        for node, argument in zip(nodes, arguments, strict=True):
            value: Any = node.meta.get("val")
            if isinstance(value, torch.SymFloat):
                self.graph.reals[value.node.expr] = argument
            if not isinstance(value, torch.SymInt):
                self.values[node] = argument
                continue
            size = self._size(value)
            self.values[node] = size
            if size.is_symbol and size.is_symbol not in stated:
                stated.add(size.is_symbol)
                with location(node):
                    self._bind(argument, value, size)
        for node, argument in zip(nodes, arguments, strict=True):
            value = self._example(node)
            if isinstance(value, torch.Tensor):
                order = self.orders.get(node) or range(value.dim())
                own = self.graph.transpose(argument, [list(order).index(axis) for axis in range(value.dim())])
                self.values[node] = _of_sizes(self.graph, own, Spec(value, self.sizes).dims)

    def _bind(self, argument: ir.Value, value: Any, size: Expr) -> None:
        """Read the symbol of an argument that is an integer. What PyTorch assumed of its sign, each call checks."""
        limits = _limits(value)
        may_be_negative = not limits.lower >= 0
        bind(self.graph, argument, size, may_be_negative=may_be_negative)
        if may_be_negative:
            symbol = value.node.expr
            check_ends(self.graph, symbol, limits, least=-LARGEST)

    def _check_range(self, size: Any, limits: Any) -> None:
        """Each call checks a range that the user gave, of a symbol or of `2*h`. No size is below 0."""
        check_ends(self.graph, size, limits, least=0)

    # ---- nodes ------------------------------------------------------------------------------------------------------

    def _walk(self, module: torch.fx.GraphModule) -> None:
        """Translate the nodes of a graph whose placeholders have values."""
        for node in module.graph.nodes:
            if node.op == "call_function":
                with location(node):
                    self._enter(node)
                    self.values[node] = self._call(node)

    def _run(self, module: torch.fx.GraphModule, values: Sequence[Any]) -> list[Any]:
        """Translate the graph of a branch or loop at the insertion point."""
        outer = dict(self.values)
        nodes = list(module.graph.nodes)
        self.values |= zip((n for n in nodes if n.op == "placeholder"), values, strict=True)
        self._walk(module)
        returned = next(n for n in nodes if n.op == "output").args[0]
        found = [self._value(a) for a in (returned if isinstance(returned, list | tuple) else [returned])]
        self.values = outer
        return found

    def _enter(self, node: Node) -> None:
        """Make a node the one that is translated."""
        value = node.meta.get("val")
        parts = value if isinstance(value, tuple | list) else [value]
        self.graph.node, self.graph.line = node, line_of(node)
        try:
            self.graph.outs = [Spec(v, self.sizes) for v in parts if isinstance(v, torch.Tensor)]
        except NoSize as error:
            raise self.graph.refuse(str(error)) from None

    def _call(self, node: Node) -> Any:
        value = node.meta.get("val")
        name = table.name_of(node.target)
        if isinstance(value, torch.SymInt) and name != "_local_scalar_dense.default":
            return self._size(value)
        if isinstance(value, torch.SymFloat | torch.SymBool | bool | int | float) and name not in table.rows():
            return value
        if name in _CHECKS:
            return self._check(node)
        translate = table.translation(name, is_complex(node))
        if translate is not None:
            return translate(self.graph, *self._arguments(node))
        higher = HIGHER.get(str(node.target)) if isinstance(node.target, HigherOrderOperator) else None
        arguments = [self._value(a) for a in node.args]
        if higher is not None:
            return higher(self.graph, self._run, *arguments)
        if getattr(node.target, "__name__", "") == "getitem":
            return arguments[0][arguments[1]]
        raise self.graph.refuse("this function has no translation")

    def _check(self, node: Node) -> None:
        condition = asserted(node)
        if condition is None or not self._is_of_values(condition.node.expr):
            return
        if not is_assumed(condition, self._equations):
            assert_holds(self.graph, condition.node.expr)

    @functools.cached_property
    def _equations(self) -> dict[Any, Any]:
        return equations(self.module, self.graph.stated, self.sizes)

    def _is_of_values(self, relation: Any) -> bool:
        """Tells whether a relation is one of values: that of where a tensor starts in memory is not."""
        symbols = (symbol for symbol in relation.free_symbols if symbol.is_integer)
        return all(self.graph.knows(self.sizes.size_of(symbol)) for symbol in symbols)

    def _arguments(self, node: Node) -> list[Any]:
        """The op's arguments in the order of its schema."""
        schema = node.target._schema.arguments
        found = []
        for position, argument in enumerate(schema):
            if position < len(node.args):
                value = node.args[position]
            else:
                value = node.kwargs.get(argument.name, argument.default_value)
            found.append(self._value(value))
        return found

    def _value(self, argument: Any) -> Any:
        """The value of an argument: a value for a tensor, an expression for a size, else itself."""
        if isinstance(argument, Node):
            return self.graphs[argument] if argument in self.graphs else self.values[argument]
        if isinstance(argument, list | tuple):
            return [self._value(a) for a in argument]
        return self._size(argument) if isinstance(argument, torch.SymInt) else argument

    def _size(self, value: Any) -> Expr:
        try:
            return self.sizes.size_of(value)
        except NoSize as error:
            raise self.graph.refuse(str(error)) from None

    # ---- results ----------------------------------------------------------------------------------------------------

    def _outputs(self, node: Node) -> tuple[list[ir.Value], list[Output]]:
        self.graph.node = node
        results: list[ir.Value] = []
        outputs = []
        for argument in node.args[0]:
            value = self._value(argument)
            if isinstance(value, Expr):
                outputs.append(Output(len(results), is_size=True))
                results.append(self.graph.size(value))
            elif isinstance(value, ir.Value):
                order = memory_order(argument.meta["val"], self.sizes) if self.has_strides else None
                inverse = None if order is None else tuple(order.index(axis) for axis in range(len(order)))
                outputs.append(Output(len(results), permutation=inverse))
                results.append(value if order is None else self.graph.transpose(value, order))
            else:
                outputs.append(Output(constant=value))
        return results, outputs


def _unsolved(node: Node, axis: int) -> Expr:
    """A symbol for a size of an argument from which its own symbols do not follow, such as s // 2 + 1."""
    return Expr.symbol(f"{node.name}_size_{axis}")


def _of_sizes(t: Graph, x: ir.Value, dims: Dims) -> ir.Value:
    """An argument in the sizes that PyTorch says it has."""
    if dims_of(x) == dims:
        return x
    bounds = ([Expr.const(0)] * len(dims), dims, [Expr.const(1)] * len(dims))
    return t.op("real_dynamic_slice", [x, *map(shape_tensor, bounds)], dims, element_type_of(x))


def _limits(value: Any) -> Any:
    """The bounds of a symbolic integer, as far as PyTorch knows."""
    return value.node.shape_env.bound_sympy(value.node.expr)


def memory_order(value: torch.Tensor, sizes: Sizes) -> tuple[int, ...] | None:
    """The axes of a dense tensor from the slowest to the fastest in memory; None for the order they have."""
    try:
        strides, dims = sizes.sizes_of(value.stride()), sizes.sizes_of(value.shape)
    except NoSize:
        return None
    rank = len(dims)
    order = sorted(range(rank), key=lambda a: (-_hint(value.stride()[a]), a))
    if order == list(range(rank)):
        return None
    reach = Expr.const(1)
    for axis in reversed(order):
        if dims[axis].constant != 1 and strides[axis] != reach:
            return None
        reach = reach * dims[axis]
    return tuple(order)


def _hint(size: Any) -> int:
    """The value that a size had in the example."""
    return size if isinstance(size, int) else int(size.node.hint or 0)
