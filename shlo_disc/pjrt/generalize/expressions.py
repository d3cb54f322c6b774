# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An expression of a few symbols for every number of a program, such that it gives all samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement

from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.dialect.types import Dims
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .formulas import FORMULAS
from .relations import Relations
from .samples import NotGeneralError, Samples

_MOST_BASES = 24  # expressions that a number is compared with
_LARGEST_OFFSET = 8  # of an integer constant from a size


class Expressions:
    """The symbols are sizes of the arguments that change, and those before them in the same argument.

    A size before one that changes is no symbol if an argument that does not change has it, too: that may be a weight.
    The first size of both is none of a weight, but counts the elements of a batch.
    """

    def __init__(self, samples: Samples, relations: Relations):
        self.samples = samples
        self.relations = relations
        self.symbols: dict[str, int] = {}
        """The number that each symbol is."""
        self.hidden: list[int] = []
        """The positions of the constants that are arguments."""
        self._known: dict[int, Expr] = {}
        self._bases: list[Expr] = []
        self._environments: list[dict[str, int]] = []
        self._visited: set[str] = set()
        self.main = relations.callee("main")
        self._declare()
        self._function("main")
        for position in samples.elements:
            self._constant(position)

    def of(self, number: int) -> Expr:
        """The expression of a number."""
        return self._known[self.relations.root(number)]

    def dims(self, value: ir.Value) -> Dims:
        """The sizes of a value."""
        return tuple(self.of(number) for number in self.samples.dims.get(value, []))

    def attribute(self, position: int, name: str) -> Dims:
        """The numbers of an attribute."""
        return tuple(self.of(number) for number in self.samples.attributes[position, name])

    def is_broadcast(self, size: int, used: int) -> bool:
        """Whether a value with the first number as a size is broadcast where it is used with the second one.

        A size of 1 is broadcast, of any other a prefix is taken. Raises NotGeneralError when the samples do both.
        """
        if self.of(size).constant is not None:
            return self.of(size).constant == 1
        pairs = [*zip(self.samples.values[size], self.samples.values[used], strict=True)]
        if all(a in (1, b) for a, b in pairs):
            return True
        if any(a < b for a, b in pairs):
            raise NotGeneralError(
                f"{self.samples.describe(used)} is a broadcast's in one program, a slice's in another",
                self.samples.place(used),
            )
        return False

    def use(self, size: int, used: int) -> Expr:
        """The expression of the second number, if at the sizes at hand the use is what `is_broadcast` says.

        Otherwise the value is another one than that of the second number.
        """
        known, wanted = self.of(size), self.of(used)
        if known == wanted or known.constant is not None:
            return wanted
        return (Expr.maximum if self.is_broadcast(size, used) else Expr.minimum)(known, wanted)

    def _declare(self) -> None:
        arguments = [self.samples.dims.get(a, []) for a in self.main.regions[0].blocks[0].arguments]
        moving = [[axis for axis, n in enumerate(dims) if not self.samples.is_fixed(n)] for dims in arguments]
        free = [(n, axis in axes) for dims, axes in zip(arguments, moving, strict=True) if axes
                for axis, n in enumerate(dims[: axes[-1] + 1]) if min(self.samples.values[n])]  # fmt: skip
        self._stretch([number for number, _ in free])
        still = [dims for dims, axes in zip(arguments, moving, strict=True) if not axes]
        root = self.relations.root
        first, others = {root(dims[0]) for dims in still if dims}, {root(n) for dims in still for n in dims[1:]}
        batch = {root(dims[0]) for dims, axes in zip(arguments, moving, strict=True) if axes}
        for number, moves in free:
            is_weight = root(number) in others or (root(number) in first and root(number) not in batch)
            if root(number) not in self._known and (moves or not is_weight):
                name = f"s{len(self.symbols)}"
                self.symbols[name] = number
                self._known[root(number)] = Expr.symbol(name)
        count = len(self.samples.values[0]) if self.samples.values else 0
        self._environments = [{s: self.samples.values[n][i] for s, n in self.symbols.items()} for i in range(count)]
        self._bases = [Expr.symbol(name) for name in self.symbols]

    def _stretch(self, free: Sequence[int]) -> None:
        """Decide which sizes of 1 are broadcast: not those that may be symbols, and not those that nobody wrote."""
        root, values = self.relations.root, self.samples.values
        pairs = [*self.relations.stretches, *self._broadcasts()]
        arguments = self.main.regions[0].blocks[0].arguments
        fixed = [n for a in arguments for n in self.samples.dims.get(a, []) if n not in free]
        joined = True
        while joined:
            joined = False
            symbols, ones = {root(n) for n in free}, {root(n) for n in [*self.relations.ones, *fixed]}
            for source, result in pairs:
                is_same = root(source) in symbols or root(source) not in ones
                if root(source) != root(result) and is_same and values[source] == values[result]:
                    self.relations.join(source, result)
                    joined = True

    def _broadcasts(self) -> Iterable[tuple[int, int]]:
        for op in self.samples.operations:
            if op.operation.name == "stablehlo.broadcast_in_dim":
                is_plain = self.samples.position[op.operation] in self.samples.plain
                operand = self.samples.origin(op.operands[0]) if is_plain else op.operands[0]
                source, result = (self.samples.dims.get(v, []) for v in (operand, op.results[0]))
                targets = ir.DenseI64ArrayAttr(op.attributes["broadcast_dimensions"])
                yield from ((source[axis], result[target]) for axis, target in enumerate(targets) if result)

    def _function(self, name: str) -> None:
        """A function's body, those of what it calls where it calls them."""
        if name in self._visited:
            return
        self._visited.add(name)
        function = self.relations.callee(name)
        self._block(function.regions[0].blocks[0])
        for number in self.samples.attributes.get((self.samples.position[function.operation], "function_type"), []):
            self._choose(number)

    def _block(self, block: ir.Block) -> None:
        for argument in block.arguments:
            for number in self.samples.dims.get(argument, []):
                self._choose(number)
        for op in block.operations:
            for name in ("callee", "decomposition"):
                if name in op.attributes:
                    self._function(ir.FlatSymbolRefAttr(op.attributes[name]).value)
            for region in op.regions:
                for inner in region.blocks:
                    self._block(inner)
            self._operation(op)

    def _operation(self, op: ir.OpView) -> None:
        position = self.samples.position[op.operation]
        near = [d for v in op.operands for d in self.dims(v) if d.constant is None]
        for name in self.samples.attribute_names.get(position, []):
            for number in self.samples.attributes[position, name]:
                self._choose(number, near)
        operands = []
        for index, value in enumerate(op.operands):
            numbers = self.samples.operands.get((position, index), self.samples.dims.get(value, []))
            for number in numbers:
                self._choose(number, near)
            operands.append(tuple(self.of(number) for number in numbers))
        formula = None if position in self.samples.plain else FORMULAS.get(op.operation.name)
        sizes = formula(op, operands, lambda name: self.attribute(position, name)) if formula else {}
        for result in op.results:
            for axis, number in enumerate(self.samples.dims.get(result, [])):
                self._choose(number, [sizes[axis], *near] if axis in sizes else near, first=axis in sizes)

    def _choose(self, number: int, near: Sequence[Expr] = (), first: bool = False) -> None:
        """Find an expression for a number's class. `first`: the first that is near is right if it fits."""
        root = self.relations.root(number)
        if root in self._known:
            return
        values = self.samples.values[number]
        if first and self._fits(near[0], values):
            found: Expr | None = near[0]
        elif self.samples.is_fixed(number):
            found = Expr.const(values[0])
        else:
            found = self._find(values, [*near, *self._bases])
        if found is None:
            text = ", ".join(map(str, values))
            raise NotGeneralError(
                f"{self.samples.describe(number)} is {text}, which no expression of sizes gives",
                self.samples.place(number),
            )
        self._known[root] = found
        if found.constant is None and found not in self._bases and len(self._bases) < _MOST_BASES:
            self._bases.append(found)

    def _fits(self, expression: Expr, values: Sequence[int]) -> bool:
        try:
            return all(expression.evaluate(e) == v for e, v in zip(self._environments, values, strict=True))
        except ZeroDivisionError:
            return False

    def _find(self, values: Sequence[int], bases: Sequence[Expr]) -> Expr | None:
        for candidate in bases:
            if self._fits(candidate, values):
                return candidate
        return next((e for e in self._candidates(values, bases) if self._fits(e, values)), None)

    def _candidates(self, values: Sequence[int], bases: Sequence[Expr]) -> Iterable[Expr]:
        """Simple ones first: a*e + c, e*f, a*e*f, (e + c) // k."""
        for e in bases:
            if (line := self._line(e, values)) is not None:
                yield line
        for e, f in combinations_with_replacement(bases, 2):
            yield e * f
        for e, f in combinations_with_replacement(bases, 2):
            if (line := self._line(e * f, values)) is not None:
                yield line
        for e in bases:
            for divisor in (2, 3, 4, 5, 6, 7, 8, 16, 32, 64):
                for offset in (0, divisor - 1, -1, -2, 1):
                    yield (e + offset) // divisor
                    yield (e + offset) // divisor + 1

    def _line(self, e: Expr, values: Sequence[int]) -> Expr | None:
        """a*e + c through the first two samples in which e differs."""
        known = [e.evaluate(environment) for environment in self._environments]
        other = next((i for i in range(1, len(known)) if known[i] != known[0]), None)
        if other is None or (values[other] - values[0]) % (known[other] - known[0]):
            return None
        slope = (values[other] - values[0]) // (known[other] - known[0])
        return slope * e + (values[0] - slope * known[0])

    def _constant(self, position: int) -> None:
        """A constant's elements: the same in all programs, a size, or else an argument."""
        numbers = self.samples.elements[position]
        if all(self.samples.is_fixed(n) for n in numbers):
            for number in numbers:
                self._known[self.relations.root(number)] = Expr.const(self.samples.values[number][0])
            return
        element = ir.RankedTensorType(self.samples.operations[position].results[0].type).element_type
        if position in self.samples.splats and str(element) in ("i32", "i64"):
            found = self._integer(self.samples.values[numbers[0]])
            if found is not None:
                self._known[self.relations.root(numbers[0])] = found
                return
        if isinstance(element, ir.IntegerType) and element.width in (2, 4):
            raise NotGeneralError("a constant of 2 or 4 bits changes", self.samples.place(numbers[0]))
        self.hidden.append(position)

    def _integer(self, values: Sequence[int]) -> Expr | None:
        """A size, a size and a little, or a product of two."""
        nearby = (e + c for e in self._bases for c in range(-_LARGEST_OFFSET, _LARGEST_OFFSET + 1))
        products = (e * f for e, f in combinations_with_replacement(self._bases, 2))
        candidates = [*self._bases, *nearby, *products]
        return next((e for e in candidates if self._fits(e, values)), None)


__all__ = ["Expressions"]
