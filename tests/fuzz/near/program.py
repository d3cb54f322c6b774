# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs as data: arguments, steps and results, each step a *piece* (a line of JAX) with parameters.

Bodies of loops and branches are programs themselves. Everything is JSON, so that a program can be changed, made smaller
and kept in a file.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import export

SYMBOLS = ("b", "s", "t")
_SCOPE = export.SymbolicScope()

Params = Mapping[str, Any]
Type = jax.ShapeDtypeStruct
Apply = Callable[..., Any]

PIECES: dict[str, Piece] = {}
"""All pieces by name."""


class Rejected(Exception):
    """A program that JAX does not take: sizes that do not fit, a gradient that does not exist."""


@dataclass(frozen=True)
class Piece:
    """A kind of step. `apply(arrays, params)` gives an array or a tuple of them.

    `variants(params, types)` gives parameters that might be taken instead. `suggest(builder)` adds such a step to a
    random program, or raises Rejected.
    """

    name: str
    apply: Apply
    variants: Callable[[Params, Sequence[Type]], list[dict[str, Any]]]
    suggest: Callable[[Any], Any] | None = None


def piece(name: str, variants: Any = None, suggest: Any = None) -> Callable[[Apply], Apply]:
    """Makes a function of arrays and parameters a piece."""

    def add(apply: Apply) -> Apply:
        PIECES[name] = Piece(name, apply, variants or (lambda params, types: []), suggest)
        return apply

    return add


@dataclass(frozen=True)
class Argument:
    """`dtype` "float" is the program's own. `fill` says which numbers: see arrays.py."""

    id: int
    dims: tuple[str, ...]
    dtype: str = "float"
    fill: str = "normal"


@dataclass(frozen=True)
class Step:
    """One piece: the ids of what it reads and of what it makes."""

    op: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Program:
    """Ids are unique within a program; those of a body stand for themselves."""

    arguments: tuple[Argument, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]
    dtype: str = "float32"

    # ---- what it is -------------------------------------------------------------------------------------------------

    @property
    def x64(self) -> bool:
        """Tells whether it needs JAX's 64 bits."""
        return self.dtype == "float64"

    def text(self) -> str:
        """A line a step, for messages."""
        args = [f"%{a.id}: {a.dtype if a.dtype != 'float' else self.dtype}[{','.join(a.dims)}]" for a in self.arguments]
        lines = [f"({', '.join(args)})"]
        for s in self.steps:
            made = ", ".join(f"%{i}" for i in s.outputs)
            read = ", ".join(f"%{i}" for i in s.inputs)
            shown = {k: v for k, v in s.params.items() if not isinstance(v, Program)}
            lines.append(f"  {made} = {s.op}({read}) {shown or ''}".rstrip())
            for key, body in s.params.items():
                if isinstance(body, Program):
                    lines += [f"    {key}: {line}" if n == 0 else f"    {line}" for n, line in enumerate(_lines(body))]
        lines.append("  return " + ", ".join(f"%{i}" for i in self.results))
        return "\n".join(lines)

    def size(self) -> int:
        """The number of steps, those of bodies among them."""
        return sum(1 + sum(p.size() for p in _bodies(s)) for s in self.steps)

    def fresh(self) -> int:
        """An id that is free."""
        used = [a.id for a in self.arguments] + [i for s in self.steps for i in s.outputs]
        return max(used, default=-1) + 1

    def live(self) -> Program:
        """The program without steps and arguments that no result needs; it keeps one argument at least."""
        needed = set(self.results)
        steps = []
        for step in reversed(self.steps):
            if needed & set(step.outputs):
                steps.append(step)
                needed |= set(step.inputs)
        kept = tuple(a for a in self.arguments if a.id in needed) or self.arguments[:1]
        return replace(self, arguments=kept, steps=tuple(reversed(steps)))

    # ---- running it -------------------------------------------------------------------------------------------------

    def types_of_arguments(self) -> list[Type]:
        """The types of the arguments; sizes are symbols of one scope."""
        return [argument_type(a, self.dtype) for a in self.arguments]

    def types(self) -> dict[int, Type]:
        """The types of all values. Raises Rejected."""
        types = dict(zip([a.id for a in self.arguments], self.types_of_arguments(), strict=True))
        for step in self.steps:
            types.update(zip(step.outputs, infer(step, [types[i] for i in step.inputs], self.dtype), strict=True))
        if any(i not in types for i in self.results):
            raise Rejected("a result that is not there")
        return types

    def types_at_all_depths(self) -> Iterator[Type]:
        """The types of all values, those of bodies among them. Raises Rejected."""
        yield from self.types().values()
        for step in self.steps:
            for body in _bodies(step):
                yield from body.types_at_all_depths()

    def run(self, *arrays: Any) -> tuple[Any, ...]:
        """The program as a JAX function."""
        return self.run_as(self.dtype, arrays)

    def run_as(self, dtype: str, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """The same with `dtype` for "float"."""
        known = dict(zip([a.id for a in self.arguments], arrays, strict=True))
        for step in self.steps:
            made = apply(step, [known[i] for i in step.inputs], dtype)
            known.update(zip(step.outputs, made, strict=True))
        return tuple(known[i] for i in self.results)

    # ---- JSON -------------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """The program as JSON."""
        return {
            "dtype": self.dtype,
            "arguments": [[a.id, list(a.dims), a.dtype, a.fill] for a in self.arguments],
            "steps": [[s.op, list(s.inputs), list(s.outputs), _params_to_json(s.params)] for s in self.steps],
            "results": list(self.results),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Program:
        """The inverse of `to_json`."""
        arguments = tuple(Argument(i, tuple(dims), dtype, fill) for i, dims, dtype, fill in data["arguments"])
        steps = tuple(Step(op, tuple(i), tuple(o), _params_of_json(p)) for op, i, o, p in data["steps"])
        return Program(arguments, steps, tuple(data["results"]), data["dtype"])


def _lines(body: Program) -> list[str]:
    return body.text().splitlines()


def _bodies(step: Step) -> Iterator[Program]:
    for value in step.params.values():
        if isinstance(value, Program):
            yield value


def _params_to_json(params: Params) -> dict[str, Any]:
    return {k: {"program": v.to_json()} if isinstance(v, Program) else v for k, v in params.items()}


def _params_of_json(params: Params) -> dict[str, Any]:
    return {
        k: Program.from_json(v["program"]) if isinstance(v, Mapping) and "program" in v else v
        for k, v in params.items()
    }


_NUMBERS: ContextVar[Mapping[str, int] | None] = ContextVar("numbers", default=None)


@contextmanager
def at_numbers(sizes: Mapping[str, int]) -> Iterator[None]:
    """Inside, programs run with numbers for symbols: a loop that counts to a symbol then has a bound."""
    token = _NUMBERS.set(sizes)
    try:
        yield
    finally:
        _NUMBERS.reset(token)


def dims_of(texts: Sequence[str]) -> tuple[Any, ...]:
    """Sizes as JAX has them."""
    dims, sizes = tuple(_dim(t) for t in texts), _NUMBERS.get()
    return dims if sizes is None else tuple(size_at(dim, sizes) for dim in dims)


_DIMS: dict[str, Any] = {}


def _dim(text: str) -> Any:
    if text not in _DIMS:
        _DIMS[text] = int(text) if text.lstrip("-").isdigit() else export.symbolic_shape(text, scope=_SCOPE)[0]
    return _DIMS[text]


def size_at(dim: Any, sizes: Mapping[str, int]) -> int:
    """A size at values of the symbols."""
    return dim if isinstance(dim, int) else int(dim._evaluate(dict(sizes)))


def resolve_dtype(dtype: str, own: str) -> Any:
    """The dtype of a name; "float" is the program's own."""
    return jnp.dtype(own if dtype == "float" else dtype)


def argument_type(argument: Argument, own: str) -> Type:
    """The type of an argument."""
    return Type(dims_of(argument.dims), resolve_dtype(argument.dtype, own))


def apply(step: Step, arrays: Sequence[Any], dtype: str) -> tuple[Any, ...]:
    """The results of a step."""
    made = PIECES[step.op].apply(list(arrays), {**step.params, "float": dtype})
    return tuple(made) if isinstance(made, tuple | list) else (made,)


_INFERRED: dict[Any, list[Type] | Rejected] = {}
_MOST_INFERRED = 50_000


def infer(step: Step, types: Sequence[Type], dtype: str) -> list[Type]:
    """The types of a step's results. Raises Rejected."""
    key = (step.op, dtype, len(step.outputs), tuple((t.shape, str(t.dtype)) for t in types), repr(step.params))
    found = _INFERRED.get(key)
    if found is None:
        try:
            found = _inferred(step, types, dtype)
        except Rejected as error:
            found = error
        if len(_INFERRED) >= _MOST_INFERRED:
            _INFERRED.clear()
        _INFERRED[key] = found
    if isinstance(found, Rejected):
        raise Rejected(*found.args)
    return found


def _inferred(step: Step, types: Sequence[Type], dtype: str) -> list[Type]:
    with warnings.catch_warnings(), jax.enable_x64(dtype == "float64"):
        warnings.simplefilter("ignore")  # of 64 bits that are not on here, and of constants that a type does not hold
        try:
            made = jax.eval_shape(lambda *arrays: apply(step, arrays, dtype), *types)
        except Rejected:
            raise
        except Exception as error:  # JAX refuses in many ways what does not fit
            raise Rejected(f"{step.op}: {type(error).__name__}: {error}") from None
    if len(made) != len(step.outputs):
        raise Rejected(f"{step.op} has {len(made)} results")
    return list(made)
