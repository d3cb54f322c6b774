# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs: values with symbolic shapes, steps that make them, and their text.

A program prints as StableHLO with `?`, with or without the names of its sizes, and at given sizes as static StableHLO.
The two texts come from the same steps and share nothing else, so the static one is a reference for the dynamic one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from shlo_disc.shape_dialect.symbolic.expr import Expr
from tests.fuzz.ranges import Range

Dims = tuple[Expr, ...]
Sizes = dict[str, int]


@dataclass(frozen=True, eq=False)
class Value:
    """One tensor. `dtype` is MLIR's element type."""

    dtype: str
    dims: Dims
    range: Range

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dims)

    def shape(self, sizes: Sizes) -> tuple[int, ...]:
        """Its shape at given sizes."""
        return tuple(d.evaluate(sizes) for d in self.dims)


Render = Callable[["Printer", list[str], list[str]], None]


@dataclass(frozen=True, eq=False)
class Step:
    """One op: `render(printer, operand names, result names)` prints it.

    required: expressions that are not negative in an admissible call.
    """

    op: str
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    render: Render
    required: tuple[Expr, ...] = ()


@dataclass
class Program:
    """Steps in order. What no step makes is an argument.

    sizes: the calls that it is tested with.
    named: whether the text names its sizes.
    """

    steps: list[Step]
    results: list[Value]
    sizes: list[Sizes]
    named: bool = True

    def arguments(self) -> list[Value]:
        """The values that steps and results use and no step makes, in the order of use, then carriers of sizes."""
        made = {r for s in self.steps for r in s.results}
        used = [v for s in self.steps for v in s.operands] + self.results
        found = list(dict.fromkeys(v for v in used if v not in made))
        return found + self._carriers(found)

    def symbols(self) -> list[str]:
        """The names of all sizes."""
        values = [v for s in self.steps for v in (*s.operands, *s.results)] + self.results
        return sorted({name for v in values for d in v.dims for name in d.symbols()})

    @property
    def required(self) -> list[Expr]:
        """The expressions that must not be negative in an admissible call."""
        return [e for step in self.steps for e in step.required]

    def _carriers(self, arguments: list[Value]) -> list[Value]:
        solved = {d.is_symbol for v in arguments for d in v.dims}
        lost = [name for name in self.symbols() if name not in solved]
        return [self._carrier(name) for name in lost]

    def _carrier(self, name: str) -> Value:
        if name not in self._made_carriers:
            self._made_carriers[name] = Value("i1", (Expr.symbol(name),), Range(0, 1))
        return self._made_carriers[name]

    _made_carriers: dict[str, Value] = field(default_factory=dict)

    def live(self) -> Program:
        """This program without the steps that no result needs."""
        needed, kept = set(self.results), []
        for step in reversed(self.steps):
            if needed.intersection(step.results):
                needed.update(step.operands)
                kept.append(step)
        return Program(kept[::-1], self.results, self.sizes, self.named)

    def text(self, sizes: Sizes | None = None, bits: bool = False) -> str:
        """StableHLO, static when `sizes` are given. `bits`: i1 passes in and out as ui8, f16 and bf16 as ui16."""
        return Printer(self, sizes, bits).module()


CARRIED = {"i1": "ui8", "f16": "ui16", "bf16": "ui16"}
"""Substitutes for the types that the interpreter's bindings do not exchange, in its inputs and outputs."""


class Printer:
    """Prints one program; steps print themselves through it."""

    def __init__(self, program: Program, sizes: Sizes | None, bits: bool):
        self.program = program
        self.sizes = sizes
        self.bits = bits
        self.lines: list[str] = []
        self.functions: list[str] = []
        self._names: dict[Value, str] = {}
        self._count = 0
        self._known: dict[str, str] = {}

    @property
    def static(self) -> bool:
        """Tells whether all types are static."""
        return self.sizes is not None

    # ---- types --------------------------------------------------------------------------------------------------

    def type(self, value: Value) -> str:
        """`tensor<?x4xf32>`, with encoding where the program names its sizes."""
        return self.type_of(value.dims, value.dtype)

    def type_of(self, dims: Sequence[Expr], dtype: str) -> str:
        """The type of a tensor of these sizes."""
        if self.sizes is not None:
            return tensor([str(d.evaluate(self.sizes)) for d in dims], dtype)
        shape = ["?" if d.constant is None else str(d.constant) for d in dims]
        if not self.program.named or "?" not in shape:
            return tensor(shape, dtype)
        named = [str(d.constant) if d.constant is not None else f'@"{d}"' for d in dims]
        return f"tensor<{'x'.join([*shape, dtype])}, [{', '.join(named)}]>"

    # ---- ops ----------------------------------------------------------------------------------------------------

    def fresh(self) -> str:
        """A new name."""
        self._count += 1
        return f"%t{self._count}"

    def op(self, name: str, operands: Sequence[str], types: Sequence[str], results: Sequence[str],
           result_types: Sequence[str], attributes: str = "", regions: str = "") -> None:  # fmt: skip
        """One op in MLIR's generic form."""
        assigned = f"{', '.join(results)} = " if results else ""
        inside = f" <{{{attributes}}}>" if attributes else ""
        body = f" ({regions})" if regions else ""
        signature = f"({', '.join(types)}) -> ({', '.join(result_types)})"
        self.lines.append(f'{assigned}"stablehlo.{name}"({", ".join(operands)}){inside}{body} : {signature}')

    def made(self, name: str, operands: Sequence[str], types: Sequence[str], type_: str, attributes: str = "") -> str:
        """The fresh result of an op."""
        result = self.fresh()
        self.op(name, operands, types, [result], [type_], attributes)
        return result

    def region(self, arguments: Sequence[str], types: Sequence[str], body: Callable[[], None]) -> str:
        """A region of one block, whose ops `body` prints, what `returns` prints last."""
        outside, known = self.lines, dict(self._known)
        self.lines = []
        body()
        listed = ", ".join(f"{name}: {type_}" for name, type_ in zip(arguments, types, strict=True))
        inside = "\n    ".join([f"^bb0({listed}):" if arguments else "", *self.lines])
        self.lines, self._known = outside, known
        return f"{{{inside}}}"

    def returns(self, names: Sequence[str], types: Sequence[str]) -> None:
        """The end of a region."""
        self.op("return", names, types, [], [])

    def constant(self, text: str, type_: str) -> str:
        """A constant."""
        return self.made("constant", [], [], type_, f"value = dense<{text}> : {type_}")

    # ---- sizes --------------------------------------------------------------------------------------------------

    def size(self, expr: Expr) -> str:
        """A tensor<i32> with the value of an expression of sizes."""
        text = str(expr)
        if text not in self._known:
            self._known[text] = self._size(expr)
        return self._known[text]

    def shape(self, dims: Sequence[Expr]) -> str:
        """A tensor<Nxi32> with the values of the expressions."""
        if not dims:
            return self.constant("", "tensor<0xi32>")
        parts = [self.made("reshape", [self.size(d)], ["tensor<i32>"], "tensor<1xi32>") for d in dims]
        if len(parts) == 1:
            return parts[0]
        return self.made("concatenate", parts, ["tensor<1xi32>"] * len(parts), f"tensor<{len(parts)}xi32>",
                         "dimension = 0 : i64")  # fmt: skip

    def _size(self, expr: Expr) -> str:
        if self.sizes is not None:
            return self.constant(str(expr.evaluate(self.sizes)), "tensor<i32>")
        if expr.constant is not None:
            return self.constant(str(expr.constant), "tensor<i32>")
        if name := expr.is_symbol:
            return self._symbol(name)
        if atom := expr.single_atom:
            op = {"floordiv": "divide", "mod": "remainder", "max": "maximum", "min": "minimum"}[atom.kind]
            parts = [self.size(operand) for operand in atom.operands]
            return self._fold(op, parts)
        terms = []
        for coefficient, monomial in expr.terms:
            factors = [self.size(Expr.of_atom(atom)) for atom, power in monomial for _ in range(power)]
            if coefficient != 1 or not factors:
                factors.append(self.size(Expr.const(coefficient)))
            terms.append(self._fold("multiply", factors))
        return self._fold("add", terms)

    def _fold(self, op: str, parts: list[str]) -> str:
        total = parts[0]
        for part in parts[1:]:
            total = self.made(op, [total, part], ["tensor<i32>"] * 2, "tensor<i32>")
        return total

    def _symbol(self, name: str) -> str:
        for value in self.program.arguments():
            for axis, dim in enumerate(value.dims):
                if dim.is_symbol == name:
                    return self.made("get_dimension_size", [self._names[value]], [self.type(value)], "tensor<i32>",
                                     f"dimension = {axis} : i64")  # fmt: skip
        raise AssertionError(f"no argument has the size {name}")

    # ---- the module ---------------------------------------------------------------------------------------------

    def module(self) -> str:
        """The whole text."""
        arguments = self.program.arguments()
        signature = []
        for number, value in enumerate(arguments):
            signature.append(f"%x{number}: {self._passed(value)}")
            self._names[value] = f"%x{number}"
            if self.bits and value.dtype in CARRIED:
                self._names[value] = self._unpacked(f"%x{number}", value)
        for step in self.program.steps:
            names = [self.fresh() for _ in step.results]
            step.render(self, [self._names[v] for v in step.operands], names)
            self._names.update(zip(step.results, names, strict=True))
        returned = [self._packed(v) if self.bits and v.dtype in CARRIED else self._names[v]
                    for v in self.program.results]  # fmt: skip
        types = ", ".join(self._passed(v) for v in self.program.results)
        body = "\n  ".join([*self.lines, f"return {', '.join(returned)} : {types}"])
        main = f"func.func public @main({', '.join(signature)}) -> ({types}) {{\n  {body}\n}}\n"
        return main + "".join(self.functions)

    def _passed(self, value: Value) -> str:
        return self.type_of(value.dims, CARRIED.get(value.dtype, value.dtype) if self.bits else value.dtype)

    def _unpacked(self, name: str, value: Value) -> str:
        op = "convert" if value.dtype == "i1" else "bitcast_convert"
        return self.made(op, [name], [self._passed(value)], self.type(value))

    def _packed(self, value: Value) -> str:
        op = "convert" if value.dtype == "i1" else "bitcast_convert"
        return self.made(op, [self._names[value]], [self.type(value)], self._passed(value))


def tensor(shape: Sequence[str], dtype: str) -> str:
    """`tensor<2x?xf32>`."""
    return f"tensor<{'x'.join([*shape, dtype])}>"
