# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An expression of a few symbols for every number of a program, such that it gives all samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

from shlo_disc.shape_dialect.dialect.types import Dims
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.shape_dialect.utils.called_operations import CALLS

from .elements import choose_elements
from .formulas import FORMULAS, Sizes, feature_groups
from .op_numbers import OpNumbers
from .paddings import PADDED, are_strides_padded, choose_padding
from .relations import Relations
from .samples import NotGeneralError, Samples
from .search import Found, Search, Values
from .slices import choose_bounds, choose_chunks, choose_prefixes
from .symbols import choose_symbols, constants_of

_MOST_BASES = 24  # expressions that a number may be made of
_MOST_GIVEN = 16  # symbols that are sizes of no argument
_STATED = 1.8
"""Cost of an expression that another attribute has, or of its difference from a constant: the padding of a gradient."""


class Expressions:
    """The symbols are sizes of arguments (`symbols.choose_symbols`).

    A number that no expression gives, or only one that costs more than `most_cost`, is a symbol, too: a size that the
    program's caller has chosen, as that of `jnp.zeros(n)`.
    """

    def __init__(self, samples: Samples, relations: Relations, most_cost: float = inf):
        self.samples = samples
        self.relations = relations
        self.symbols: dict[str, int] = {}
        """The number that each symbol is."""
        self.given: list[str] = []
        """The symbols that are sizes of no argument."""
        self.facts = Facts()
        """Symbols are at least 1."""
        self.contested: set[int] = set()
        """Sizes that are known as those of prefixes, and prefixes that are: they are as large in the samples only."""
        self.separate: set[int] = set()
        """Numbers that are equal in the samples only: of a slice, then, and of where something is cut."""
        self.pads_to_strides = are_strides_padded(samples)
        """True if the padding of some windows with strides changes."""
        self._known: dict[int, Expr] = {}
        self._stated: list[Expr] = []  # by attributes
        self._visited: set[str] = set()
        self._most_cost = most_cost
        self.main = relations.callee("main")
        for number in choose_symbols(samples, relations):
            name = f"s{len(self.symbols)}"
            self.symbols[name] = number
            self._known[relations.root(number)] = Expr.symbol(name)
            self.facts.declare(name, min=1)
        self.bases = [Expr.symbol(name) for name in self.symbols]
        """Expressions that other sizes may be made of."""
        self._sizes = {relations.root(n) for n in range(len(samples.values)) if not samples.is_attribute(n)}
        self._search = Search(self._environments(), constants_of(samples, relations, self.symbols.values()))
        elements = {number for numbers in samples.elements.values() for number in numbers}
        sizes = {values for number, values in enumerate(samples.values) if number not in elements}
        self._search.learn_divisors(sizes, self.bases)
        self._function("main")
        self.hidden = [position for position in samples.elements if not choose_elements(self, position)]
        """The positions of the constants that are arguments."""

    def of(self, number: int) -> Expr:
        """The expression of a number, the simplest that fits if none was chosen. Raises NotGeneralError."""
        if not self.is_known(number):
            self.choose(number, self.find(self.samples.values[number]))
        return self._known[self.relations.root(number)]

    def dims(self, value: ir.Value) -> Dims:
        """The sizes of a value."""
        return tuple(self.of(number) for number in self.samples.dims.get(value, []))

    def attribute(self, position: int, name: str) -> Dims:
        """The numbers of an attribute; none if the op has no such attribute, or an empty one."""
        return tuple(self.of(number) for number in self.samples.attributes.get((position, name), []))

    def is_broadcast(self, size: int, used: int) -> bool:
        """Tells whether a value with the first number as a size is broadcast where it is used with the second one.

        A size of 1 is broadcast, of any other a prefix is taken. Raises NotGeneralError when the samples do both.
        """
        if self.of(size).constant is not None:
            return self.of(size).constant == 1
        pairs = [*zip(self.samples.values[size], self.samples.values[used], strict=True)]
        if all(a in (1, b) for a, b in pairs):
            return any(a == 1 for a, _ in pairs)
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

    def _environments(self) -> list[dict[str, int]]:
        """The symbols' values in each sample."""
        count = len(self.samples.values[0]) if self.samples.values else 0
        return [{s: self.samples.values[n][i] for s, n in self.symbols.items()} for i in range(count)]

    def _function(self, name: str) -> None:
        """A function's body, those of what it calls where it calls them."""
        if name in self._visited:
            return
        self._visited.add(name)
        self._block(self.relations.callee(name).regions[0].blocks[0])

    def _block(self, block: ir.Block) -> None:
        for argument in block.arguments:
            for number in self.samples.dims.get(argument, []):
                self.choose(number, self.find(self.samples.values[number]))
        for op in block.operations:
            for name in CALLS:
                if name in op.attributes:
                    self._function(ir.FlatSymbolRefAttr(op.attributes[name]).value)
            for region in op.regions:
                for inner in region.blocks:
                    self._block(inner)
            self._operation(op)

    def _operation(self, op: ir.OpView) -> None:
        position = self.samples.position[op.operation]
        if position in self.samples.plain:  # what uses it may have a formula for its sizes
            return
        at = OpNumbers(self, op, position)
        if op.operation.name == "stablehlo.reshape":
            choose_chunks(op, at)
        for index in range(len(op.operands)):
            choose_prefixes(at, at.operand_numbers(index))
        operands = [at.choose_all(at.operand_numbers(index)) for index in range(len(op.operands))]
        sizes = Sizes(operands, at.attribute, at.result, self.facts)
        for axis in PADDED[op.operation.name](op, sizes, at) if op.operation.name in PADDED else ():
            choose_padding(at, axis)
        if op.operation.name == "stablehlo.slice":
            choose_bounds(at)
        if op.operation.name == "stablehlo.convolution" and (groups := feature_groups(op, sizes)) is not None:
            at.set(at.attribute_numbers("feature_group_count")[0], groups)
        for name in self.samples.attribute_names.get(position, []):
            at.choose_all(self.samples.attributes[position, name])
        formula = FORMULAS.get(op.operation.name)
        at.choose_results(formula(op, sizes) if formula else {})

    def is_known(self, number: int) -> bool:
        """Tells whether a number has its expression."""
        return self.relations.root(number) in self._known

    def fits(self, expression: Expr, number: int) -> bool:
        """Tells whether an expression is the number in all samples."""
        return self._search.fits(expression, self.samples.values[number])

    def evaluate(self, expression: Expr) -> Values | None:
        """The value of an expression in each sample; None where that divides by zero."""
        return self._search.values(expression)

    def find(
        self, values: Values, near: Sequence[Expr] = (), divisors: Iterable[int] = (), is_stated: bool = False
    ) -> Found | None:
        """The simplest expression of values, of sizes that are near and of those that were found before.

        is_stated: by an attribute, so that it may be what another attribute states.
        """
        found = self._search.find(values, near, self.bases, divisors)
        if found and found.cost > self._most_cost:
            found = None
        if not is_stated or (found and found.cost < _STATED):
            return found
        lines = (line for e in self._stated for line in self._search.mirrored(values, e))
        same = next(lines, None)
        return found if same is None else Found(_STATED, same)

    def choose(self, number: int, found: Found | None) -> None:
        """Decide on what was found for a number, unless it has an expression. Raises NotGeneralError."""
        if self.is_known(number):
            return
        if found is None and self._may_be_given(number):
            self._add_symbol(number)
        elif found is None:
            text = ", ".join(map(str, self.samples.values[number]))
            raise NotGeneralError(
                f"{self.samples.describe(number)} is {text}, which no expression of sizes gives",
                self.samples.place(number),
            )
        else:
            self.set(number, found.expression)

    def compare(self, number: int, expression: Expr) -> None:
        """Note a size that its op makes larger or smaller than it is known to be, though not in the samples."""
        known = self.of(number)
        if known == expression or not self.fits(expression, number):
            return
        if self._search.is_less(known, expression):
            self.contested.add(number)
        elif self._search.is_less(expression, known):
            root = self.relations.root
            self.separate |= {n for n in range(len(self.samples.values)) if root(n) == root(number)}

    def least(self, name: str) -> int:
        """The smallest value of a symbol: 1 of a size, 0 of what only attributes state."""
        if name not in self.given:
            return 1
        root = self.relations.root(self.symbols[name])
        same = (n for n in range(len(self.samples.values)) if self.relations.root(n) == root)
        return 0 if all(map(self.samples.is_attribute, same)) else 1

    def is_given(self, expression: Expr) -> bool:
        """Tells whether an expression is a symbol that is a size of no argument."""
        return expression in map(Expr.symbol, self.given)

    def give(self, number: int) -> None:
        """Make a number that has no expression such a symbol, if that can be, one that has its values if there is."""
        known = map(Expr.symbol, self.given)
        same = next((symbol for symbol in known if self.fits(symbol, number)), None)
        if same is not None:
            self.set(number, same)
        elif self._may_be_given(number):
            self._add_symbol(number)

    def _may_be_given(self, number: int) -> bool:
        return len(self.given) < _MOST_GIVEN and min(self.samples.values[number]) >= 1

    def _add_symbol(self, number: int) -> None:
        name = f"s{len(self.symbols)}"
        self.symbols[name] = number
        self.given.append(name)
        self.facts.declare(name, min=self.least(name))
        self._search.add_symbol(name, self.samples.values[number])
        self.set(number, Expr.symbol(name))

    def state(self, number: int, expression: Expr) -> None:
        """Decide on the expression of a number that no size is made of, such as a constant's element."""
        self._known[self.relations.root(number)] = expression

    def set(self, number: int, expression: Expr) -> None:
        """Decide on the expression of a number's class.

        Sizes may be made of it if it is one: what an attribute has, such as a remainder, is equal by chance too often.
        """
        self._known[self.relations.root(number)] = expression
        bases = self.bases if self.relations.root(number) in self._sizes else self._stated
        if expression.constant is None and expression not in bases and len(bases) < _MOST_BASES:
            bases.append(expression)


__all__ = ["Expressions"]
