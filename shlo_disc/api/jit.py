# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that are compiled when they are first called: what `shlo_disc.jit` gives."""

from __future__ import annotations

import contextlib
import functools
import html
import inspect
import itertools
import operator
import re
import threading
import types
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shlo_disc.api.named_sizes import NamedSizes, by_name_instead, count_fault
from shlo_disc.errors import ArgumentTypeError, DiscError, OptionError, RecompileError, ShapeError
from shlo_disc.options import Options
from shlo_disc.runtime.described import count_text

if TYPE_CHECKING:
    from shlo_disc.api.lowered import Lowered, Traced
    from shlo_disc.driver.executable import Executable
    from shlo_disc.importer.programs import Program
    from shlo_disc.runtime.call_types import WeakTypes

Compile = Callable[..., "Executable"]
Call = tuple[tuple[Any, ...], dict[str, Any]]
_Statics = tuple[tuple[tuple[int, type, Hashable], ...], tuple[tuple[str, type, Hashable], ...]]
"""Values of static arguments by position and by name. 1 and 1.0 are equal, and not the same."""


@dataclass(frozen=True)
class Arguments:
    """Arguments of a function that are told apart by position or by name."""

    numbers: frozenset[int] = frozenset()
    names: frozenset[str] = frozenset()

    @staticmethod
    def of(function: Callable[..., Any], numbers: Any, names: Any, option: str) -> Arguments:
        """From what `jax.jit` takes: an integer or several, negative ones from the end, and a string or several.

        Where only one of the two is given, the function's signature says what the other is. Raises OptionError for what
        is neither, and for arguments that the function does not have.
        """
        try:
            found_numbers = {operator.index(n) for n in ([numbers] if isinstance(numbers, int) else numbers or ())}
        except TypeError:
            raise OptionError(f"{option}nums are integers, not {numbers!r}") from None
        given = [names] if isinstance(names, str) else names or ()
        if not isinstance(given, Iterable) or any(not isinstance(name, str) for name in given):
            raise OptionError(f"{option}names are strings, not {names!r}")
        found_names = set(given)
        known = _Parameters.of(function)
        if known is None:
            return Arguments(frozenset(found_numbers), frozenset(found_names))
        places = {n: n + len(known.positional) if n < 0 else n for n in found_numbers}
        takes = f"it takes {', '.join(known.every)}" if known.every else "it takes none"
        for number, place in sorted(places.items()):
            if not known.has_number(place):
                raise OptionError(f"{option}nums={numbers!r}: the function has no argument {number}; {takes}")
        if not known.takes_names and (unknown := sorted(found_names - known.names)):
            raise OptionError(f"{option}names={names!r}: the function has no argument {unknown[0]!r}; {takes}")
        found_numbers = set(places.values())
        if not names:
            found_names |= {known.positional[n] for n in found_numbers if n < len(known.positional)} & known.names
        elif numbers is None:
            found_numbers |= {known.positional.index(name) for name in found_names if name in known.positional}
        return Arguments(frozenset(found_numbers), frozenset(found_names))

    def with_those_of_jax(self, function: Callable[..., Any]) -> Arguments:
        """With the static arguments of a function that `jax.jit` made, such as the `axis` of `jnp.sort`."""
        info = getattr(function, "_jit_info", None)
        numbers, names = (getattr(info, name, None) or None for name in ("static_argnums", "static_argnames"))
        theirs = Arguments.of(function, numbers, names, "static_arg")
        return Arguments(self.numbers | theirs.numbers, self.names | theirs.names)


@dataclass(frozen=True)
class _Parameters:
    """Those of a function: what may be given by position, and by name, and whether more may be."""

    positional: list[str]
    names: frozenset[str]
    takes_numbers: bool
    takes_names: bool

    @staticmethod
    def of(function: Callable[..., Any]) -> _Parameters | None:
        """None where Python does not know them."""
        try:
            found = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            return None
        kinds = {p.kind for p in found}
        return _Parameters(
            [p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)],
            frozenset(p.name for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)),
            inspect.Parameter.VAR_POSITIONAL in kinds,
            inspect.Parameter.VAR_KEYWORD in kinds,
        )

    @property
    def every(self) -> list[str]:
        """The names of all, those given by position first."""
        return [*self.positional, *sorted(self.names.difference(self.positional))]

    def has_number(self, number: int) -> bool:
        """Tells whether there is an argument at a position."""
        return number >= 0 and (self.takes_numbers or number < len(self.positional))


class Jitted:
    """A JAX function that is compiled on first use; see `shlo_disc.jit`. In a class it is a method."""

    def __init__(
        self,
        function: Callable[..., Any],
        compile: Compile,
        *,
        dynamic: Any,
        constraints: Sequence[str],
        options: Options | None,
        compile_once: bool,
        static: Arguments,
        donated: frozenset[int],
    ):
        from shlo_disc.importer.constraints import constraint_fault

        functools.update_wrapper(self, function)
        dynamic = sizes_by_name(function, dynamic)
        if clash := sorted(static.numbers & donated):
            raise OptionError(f"argument {clash[0]} is static, and cannot be donated")
        self._function, self._static, self._donated = function, static, donated
        self._dynamic = dynamic
        names = re.findall(r"[a-zA-Z_]\w*", str(dynamic))
        if fault := constraint_fault(constraints, names, "dynamic="):
            raise OptionError(fault)
        self._compiler = _Compiler(compile, tuple(constraints), options, compile_once)
        self._compile_once = compile_once
        self._lock = threading.Lock()
        self._programs: dict[_Statics, _Program] = {}

    def __repr__(self) -> str:
        name = getattr(self._function, "__name__", repr(self._function))
        return f"<shlo_disc.jit of {name}, compiled {count_text(self.compile_count, 'time')}>"

    def _repr_html_(self) -> str:
        tables = (executable._repr_html_() for executable in self._executables())
        return "".join([f"<p>{html.escape(repr(self)[1:-1])}</p>", *tables])

    def __reduce__(self) -> str:
        """Pickled and copied by name, as functions are."""
        return str(getattr(self, "__qualname__", type(self).__qualname__))

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    if not TYPE_CHECKING:  # to a checker it would be an attribute of any name

        def __getattr__(self, name: str) -> Any:
            """Raises AttributeError, which says where the compiled program has the attribute."""
            raise missing_attribute(self, name)

    @property
    def compile_count(self) -> int:
        """The number of times that this function was compiled."""
        return len(self._executables())

    @property
    def executable(self) -> Executable:
        """The newest executable. Raises OptionError before the first call."""
        found = self._executables()
        if not found:
            name = getattr(self._function, "__name__", repr(self._function))
            raise OptionError(f"no call has compiled {name!r} yet: call it first, or use .lower(...).compile()")
        return found[-1]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function. The first call exports and compiles it; later calls at any allowed size only run it.

        You can also call it in functions that JAX traces (docs/in-jax.md); it is then compiled during tracing. Types
        are those of `jax.jit`: 64-bit dtypes become 32-bit ones unless jax_enable_x64 is set, and a Python number has
        another type than an array. Each combination of values of static arguments has a separate program.
        """
        if not (self._static.numbers or self._static.names):
            return self._program(((), ()), (args, kwargs)).call((args, kwargs))
        statics, rest = self._split(args, kwargs)
        return self._program(statics, (args, kwargs)).call(rest)

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace the function for these arguments (arrays or `jax.ShapeDtypeStruct`s) without compiling it."""
        statics, rest = self._split(args, kwargs)
        return self._program(statics, (args, kwargs)).trace(rest)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Lower the function to StableHLO for arguments as in `trace`; `compile` of the result returns an Executable.

        Calls of the function do not use that Executable.
        """
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The results for arguments as in `trace`, with a `jax.ShapeDtypeStruct` at each leaf, as of `jax.jit`.

        The sizes are those of these arguments. Nothing is compiled and nothing runs.
        """
        import jax

        statics, (rest, named) = self._split(args, kwargs)
        function = self._function if statics == ((), ()) else _with_statics(self._function, statics)
        return jax.eval_shape(function, *rest, **named)

    def clear_cache(self) -> None:
        """Forget the compiled programs, as of `jax.jit`: the next call compiles, and `compile_count` begins at 0."""
        with self._lock:
            self._programs = {}

    def _executables(self) -> list[Executable]:
        return [e for program in list(self._programs.values()) for _, e in program.executables]

    def _split(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[_Statics, Call]:
        """The static arguments, and the others. Raises ArgumentTypeError for a static one that has no hash."""
        numbers, names = self._static.numbers, self._static.names
        fixed = tuple((i, type(value), value) for i, value in enumerate(args) if i in numbers)
        named = tuple((name, type(kwargs[name]), kwargs[name]) for name in sorted(kwargs) if name in names)
        for where, _, value in (*fixed, *named):
            try:
                hash(value)
            except TypeError:
                raise ArgumentTypeError(
                    f"the static argument {where!r} has to be hashable, and {type(value).__name__} is not"
                ) from None
        rest = tuple(value for i, value in enumerate(args) if i not in numbers)
        return (fixed, named), (rest, {name: value for name, value in kwargs.items() if name not in names})

    def _program(self, statics: _Statics, call: Call) -> _Program:
        found = self._programs.get(statics)
        if found is None:
            with self._lock:
                found = self._programs.get(statics)
                if found is None:
                    found = self._programs[statics] = self._new_program(statics, call)
        return found

    def _new_program(self, statics: _Statics, call: Call) -> _Program:
        count = len(call[0])
        fixed = {i for i, _, _ in statics[0]}
        others = [i for i in range(count) if i not in fixed]
        function = self._function if statics == ((), ()) else _with_statics(self._function, statics)
        donated = [place for place, i in enumerate(others) if i in self._donated]
        if donated:
            import jax

            function = jax.jit(function, donate_argnums=donated)
        shapes = self._shapes(others, call)
        self._check_lists(shapes, others, call)
        return _Program(function, shapes, self._compiler, self._compile_once)

    def _check_lists(self, shapes: Any, others: Sequence[int], call: Call) -> None:
        """Raises OptionError for lists of numbers that `dynamic` has the sizes of an array for."""
        if shapes is None:
            return
        from shlo_disc.api.call_structure import list_fault

        args, kwargs = call[0], {name: value for name, value in call[1].items() if name not in self._static.names}
        whole = isinstance(shapes, str)
        entries, named = ([shapes] * len(others), dict.fromkeys(kwargs, shapes)) if whole else shapes
        by_place = dict(zip(others, entries, strict=False))
        if fault := list_fault(
            self._function, [by_place.get(i) for i in range(len(args))], named or {}, (args, kwargs)
        ):
            raise OptionError(fault)

    def _shapes(self, others: Sequence[int], call: Call) -> Any:
        """The entries of `dynamic` for the arguments that are not static."""
        count = len(call[0])
        if isinstance(self._dynamic, NamedSizes):
            return self._dynamic.of_calls(count, set(range(count)) - set(others))
        if self._dynamic is None or isinstance(self._dynamic, str):
            return self._dynamic
        if len(self._dynamic) == len(others):
            return (tuple(self._dynamic), None)
        if len(self._dynamic) != count:
            raise OptionError(count_fault(self._function, self._dynamic, call))
        return (tuple(self._dynamic[i] for i in others), None)


def sizes_by_name(function: Callable[..., Any], dynamic: Any) -> Any:
    """`dynamic`, whose entries by name are checked.

    Raises OptionError for names that the function does not have, and for what has no sizes.
    """
    if dynamic is None or isinstance(dynamic, str | Sequence | NamedSizes):
        return dynamic
    if not isinstance(dynamic, Mapping):
        raise OptionError(
            f"dynamic must be a string, a sequence or a dict of strings, or None, not {dynamic!r}"
            + by_name_instead(function, dynamic)
        )
    known = _Parameters.of(function)
    if known is None:
        raise OptionError("dynamic= has entries by name, and the function has no signature: give one for each position")
    return NamedSizes.of(dynamic, known.positional, sorted(known.names), known.takes_names)


def missing_attribute(function: Any, name: str) -> AttributeError:
    """The error for an attribute that a function of `shlo_disc.jit` lacks, and its compiled program may have."""
    text = f"{type(function).__name__!r} object has no attribute {name!r}"
    if name.startswith("_"):
        return AttributeError(text, name=name, obj=function)
    from shlo_disc.driver.executable import Executable

    if hasattr(Executable, name):
        text = f"a function of shlo_disc.jit has no {name!r}, but its program has: call it, then use .executable.{name}"
    return AttributeError(text, name=name, obj=function)


_OF_SIZES = ("DISC-P110", "DISC-P111")
"""Codes of errors about functions that cannot be traced with symbols for sizes."""


@dataclass(frozen=True)
class _Compiler:
    """The settings with which a function is compiled."""

    compile: Compile
    constraints: tuple[str, ...]
    options: Options | None
    compile_once: bool

    def specifications(self, call: Call, shapes: Any, decided: Sequence[str] = ()) -> Call:
        """The specifications that it is compiled for. decided: constraints beside the stated ones."""
        from shlo_disc.runtime.call_types import specifications

        specs: Call = specifications(*call, shapes, (*self.constraints, *decided))
        return specs

    def compiled(self, function: Callable[..., Any], call: Call, shapes: Any, is_first: bool = True) -> Executable:
        """The program for a call. is_first: no other call has been compiled for these shapes.

        Where more programs may be compiled, a call decides the comparisons of sizes that the function makes. A function
        that cannot be traced with symbols is compiled for the sizes of the call alone, as `jax.jit` does.
        """
        from shlo_disc.importer.size_equalities import NewConstraint, sizes_of_call, symbols_of_call
        from shlo_disc.importer.trace_notes import CallAdvice, advice_of_call
        from shlo_disc.runtime.call_types import shared_entry

        decided: list[str] = []
        while True:
            try:
                args, kwargs = self.specifications(call, shapes, decided)
                if not self.compile_once and min(symbols_of_call((args, kwargs), call).values(), default=1) < 1:
                    return self._alone(function, call)
            except OptionError:
                if self.compile_once or is_first:
                    raise
                return self._alone(function, call)
            stated = None if self.compile_once else decided
            try:
                advice = CallAdvice(_option_of_number(function, call), shared_entry(call, shapes))
                with sizes_of_call((args, kwargs), call, stated), advice_of_call(advice):
                    return self.compile(function, args=args, kwargs=kwargs, options=self.options)
            except NewConstraint as constraint:
                decided.append(str(constraint))
            except Exception as error:
                of_sizes = not isinstance(error, DiscError) or error.code in _OF_SIZES
                if self.compile_once or shapes is None or not of_sizes:
                    raise
                alone = self._alone(function, call)  # raises what is no fault of the symbols
                why = str(error).partition("\n")[0]
                text = f"compiled for the sizes of this call alone, as it cannot be with symbols: {why}"
                warnings.warn(text, UserWarning, stacklevel=2)
                return alone

    def _alone(self, function: Callable[..., Any], call: Call) -> Executable:
        """The program for the very sizes of a call."""
        from shlo_disc.runtime.call_types import specifications

        args, kwargs = specifications(*call, None, ())
        return self.compile(function, args=args, kwargs=kwargs, options=self.options)

    def finish(self, program: Program) -> Executable:
        """A program that has been read."""
        return self.compile(program, options=self.options)


class _Program:
    """A function for some values of its static arguments, and what it was compiled to."""

    def __init__(self, function: Callable[..., Any], shapes: Any, compiler: _Compiler, compile_once: bool):
        self._function, self._shapes = function, shapes
        self._compiler, self._compile_once = compiler, compile_once
        self._lock = threading.Lock()
        self.executables: list[tuple[WeakTypes, Executable]] = []

    def trace(self, call: Call) -> Traced:
        """The function on its way to an executable."""
        from shlo_disc.api.lowered import Traced

        return Traced(self._function, self._compiler.finish, self._compiler.specifications(call, self._shapes))

    def call(self, call: Call) -> Any:
        """Run it; the first time, compile it before that."""
        from shlo_disc.runtime.call_types import difference, weak_types

        weak = weak_types(call)
        if not self.executables:
            with self._lock:
                if not self.executables:
                    self.executables.append((weak, self._compiler.compiled(self._function, call, self._shapes)))
        for compiled, executable in self.executables:
            try:
                if compiled == weak:
                    return _call_canonical(executable, *call)
                if self._compile_once:
                    raise ArgumentTypeError(difference(call, compiled, _rows(executable)))
            except (ShapeError, ArgumentTypeError) as error:
                if self._compile_once:
                    raise RecompileError(self._misfit(call, executable, error)) from error
        executable = self._compiler.compiled(self._function, call, self._shapes, is_first=False)
        self.executables.append((weak, executable))
        return _call_canonical(executable, *call)

    def _misfit(self, call: Call, executable: Executable, error: ShapeError | ArgumentTypeError) -> str:
        """The difference between a call and the program that was compiled, and what to write."""
        from shlo_disc.api.call_structure import structure_fault
        from shlo_disc.runtime.call_types import remedy, shared_entry
        from shlo_disc.runtime.words_of_calls import ASKED

        start = "this call does not fit the one compiled program"
        if fault := structure_fault(self._function, *call, executable.loaded):
            return f"{start}: {fault}"
        self._check_arrays(call)
        is_told = error.code == "DISC-S103" or ASKED.search(error.message)
        hint = "" if is_told else remedy(call, _rows(executable), self._shapes)
        if isinstance(error, ShapeError) and (shared := shared_entry(call, self._shapes)):
            hint = f"{hint}\n{shared}" if hint else shared
        own, _, theirs = error.message.partition("\n")
        return "\n".join(filter(None, (f"{start}: {own}", hint, theirs)))

    def _check_arrays(self, call: Call) -> None:
        """Raises ArgumentTypeError for what no program could take; that is not for want of a second one."""
        with contextlib.suppress(OptionError, OverflowError):  # what the refused call tells of in better words
            self._compiler.specifications(call, self._shapes)


def _option_of_number(function: Callable[..., Any], call: Call) -> str:
    """The option that makes the first Python integer of a call static; "" without one, or beside static arguments."""
    if hasattr(function, "static_values"):
        return ""
    by_place = (f"static_argnums={i}" for i, value in enumerate(call[0]) if type(value) is int)
    by_name = (f"static_argnames={name!r}" for name, value in call[1].items() if type(value) is int)
    return next(itertools.chain(by_place, by_name), "")


def _rows(executable: Executable) -> Any:
    """The arguments in a program's header."""
    return executable.loaded.header["arguments"]


def _with_statics(function: Callable[..., Any], statics: _Statics) -> Callable[..., Any]:
    """The function of its other arguments."""
    fixed = {number: value for number, _, value in statics[0]}
    named = {name: value for name, _, value in statics[1]}

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        rest = iter(args)
        positions = range(len(args) + len(fixed))
        return function(*(fixed[i] if i in fixed else next(rest) for i in positions), **kwargs, **named)

    del call.__wrapped__  # its signature is another one
    call.static_values = statics  # type: ignore[attr-defined]
    return call


def _call_canonical(executable: Executable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call; when its dtypes are refused, one more with those that JAX gives them."""
    from shlo_disc.runtime.call_types import canonical

    try:
        return executable(*args, **kwargs)
    except ArgumentTypeError:
        new_args, new_kwargs = canonical((args, kwargs))
        return executable(*new_args, **new_kwargs)


__all__ = ["Arguments", "Jitted", "missing_attribute", "sizes_by_name"]
