# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program in the making."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from tests.fuzz.near.program import (
    SYMBOLS,
    Argument,
    Program,
    Rejected,
    Step,
    Type,
    argument_type,
    infer,
)

Dim = str | int
CONSTANTS = (1, 2, 3, 4, 5, 8, 12, 16, 17)
USUAL = 0.6
"""Probability that a choice is the first one, which makes what the pattern is for."""


class Builder:
    """Adds steps one by one, each checked by JAX. Every random choice comes from `rng`."""

    def __init__(self, rng: random.Random, dtype: str = "float32"):
        self.rng = rng
        self.dtype = dtype
        self.arguments: list[Argument] = []
        self.steps: list[Step] = []
        self.types: dict[int, Type] = {}
        self.reuse = 0.0

    # ---- values -----------------------------------------------------------------------------------------------------

    def arg(self, *dims: Dim, dtype: str = "float", fill: str = "normal") -> int:
        """A new argument; with `reuse`, at times a value that is there, of the same type."""
        argument = Argument(len(self.types), tuple(map(str, dims)), dtype, fill)
        type_ = argument_type(argument, self.dtype)
        if self.reuse and fill in ("normal", "weight", "positive") and self.rng.random() < self.reuse:
            found = [i for i, t in self.types.items() if (t.shape, t.dtype) == (type_.shape, type_.dtype)]
            if found:
                return self.rng.choice(found[-6:])
        self.arguments.append(argument)
        self.types[argument.id] = type_
        return argument.id

    def add(self, op: str, *inputs: int, count: int = 1, **params: Any) -> Any:
        """A step: the id of its result, or a tuple of `count` ids. Raises Rejected."""
        outputs = tuple(range(len(self.types), len(self.types) + count))
        step = Step(op, inputs, outputs, params)
        made = infer(step, [self.types[i] for i in inputs], self.dtype)
        self.types.update(zip(outputs, made, strict=True))
        self.steps.append(step)
        return outputs[0] if count == 1 else outputs

    __call__ = add

    def f(self, name: str, x: int) -> int:
        """An elementwise function of one value."""
        return self.add("unary", x, f=name)

    def two(self, name: str, x: int, y: int, lift: Sequence[int] = ()) -> int:
        """An elementwise function of two; the second one gets sizes of 1 at the places `lift`."""
        return self.add("binary", x, y, f=name, lift=list(lift))

    def body(self, *types: tuple[Sequence[Any], Any] | Type) -> Builder:
        """The builder of a body whose arguments have these types."""
        inner = Builder(self.rng, self.dtype)
        for type_ in types:
            shape, dtype = (type_.shape, type_.dtype) if isinstance(type_, Type) else type_
            name = "float" if str(dtype) == self.dtype else str(dtype)
            inner.arg(*map(str, shape), dtype=name)
        return inner

    def shape(self, value: int) -> tuple[Any, ...]:
        """The sizes of a value."""
        return tuple(self.types[value].shape)

    def rank(self, value: int) -> int:
        """The number of sizes."""
        return len(self.types[value].shape)

    def is_float(self, value: int) -> bool:
        """Tells whether a value is of floats."""
        return self.types[value].dtype.name.startswith(("float", "bfloat"))

    # ---- choices ----------------------------------------------------------------------------------------------------

    def pick(self, *options: Any) -> Any:
        """One of these, the first one more often than not."""
        return options[0] if self.rng.random() < USUAL or len(options) == 1 else self.rng.choice(options[1:])

    def any(self, options: Sequence[Any]) -> Any:
        """One of these."""
        if not options:
            raise Rejected("nothing to choose from")
        return self.rng.choice(list(options))

    def flip(self, chance: float = 0.5) -> bool:
        """True as often as that."""
        return self.rng.random() < chance

    def dim(self, usual: Dim | None = None) -> Dim:
        """A size; mostly the one given."""
        if usual is not None and self.rng.random() < USUAL:
            return usual
        return self.rng.choice(SYMBOLS) if self.rng.random() < 0.45 else self.rng.choice(CONSTANTS)

    def some(self, fits: Callable[[Type], bool] = lambda t: True, late: float = 0.6) -> int:
        """A value, mostly a late one. Raises Rejected when none fits."""
        found = [i for i, t in self.types.items() if fits(t)]
        return self.any(found[-4:] if self.rng.random() < late else found)

    def floats(self, rank: int | None = None, least: int = 0) -> int:
        """A value of floats."""
        return self.some(
            lambda t: t.dtype.name == self.dtype and len(t.shape) >= least and rank in (None, len(t.shape))
        )

    def axis(self, value: int) -> int:
        """One of a value's axes."""
        return self.rng.randrange(self.rank(value)) if self.rank(value) else self.any([])

    # ---- the end ----------------------------------------------------------------------------------------------------

    def finish(self, results: Sequence[int]) -> Program:
        """The program with these results."""
        return Program(tuple(self.arguments), tuple(self.steps), tuple(results), self.dtype).live()

    def leaves(self) -> list[int]:
        """The values that nothing reads."""
        read = {i for s in self.steps for i in s.inputs}
        return [i for s in self.steps for i in s.outputs if i not in read]
