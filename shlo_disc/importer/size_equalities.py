# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of equalities and truth values of sizes in a traced function, which JAX answers where it cannot decide them.

JAX raises an error for `n < 4` where sizes go both ways. For `n == 4` it says False, as `==` of sizes also serves to
find them in dicts, and any size that has a name is true, as in `if n % 2`. The function would silently be compiled for
some of the sizes only. Here an equality becomes a guard of the program, which refuses the sizes for which it is true.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import export

from shlo_disc.errors import ProgramError
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts_relation import Relation

from . import held_errors
from .constraints import is_satisfiable
from .look_ups import equalities_at, equalities_of_raising, hash_is_asked, looks_in_cache
from .requested_sizes import new_trace
from .size_guards import SizeGuard
from .size_texts import SizeText
from .trace_notes import comparison_in, written
from .trace_state import current_trace, tracing_with
from .user_code import is_of_jax, is_of_python, is_users

_Equality = tuple[str, int, str, str]
"""A file, a line, and the sides of an equality that it asks."""


class NewConstraint(BaseException):
    """A call decides a comparison of sizes, and the function is to be traced again under this constraint.

    No `except Exception` on the way may hold it back.
    """


class CallSizes(NamedTuple):
    """The sizes of a call that the function is compiled for, in a scope of their own.

    stated: the constraints of comparisons that the call has decided; None where it decides none.
    """

    values: Mapping[str, int]
    stated: Sequence[str] | None


class _Line(NamedTuple):
    """The rest of a frame that has gone on."""

    f_code: Any
    f_lineno: int
    f_lasti: int
    f_back: None = None


class Equalities(dict[_Equality, SizeGuard]):
    """The equalities of a trace. raised: those asked by look-ups that raise KeyError where none holds."""

    def __init__(self) -> None:
        super().__init__()
        self.raised: list[tuple[list[tuple[Any, Any]], _Line]] = []


_REMAINDER = re.compile(r"mod\(([a-zA-Z_]\w*), (\d+)\)")


@contextlib.contextmanager
def checked_sizes(traces_anew: bool = False) -> Iterator[Mapping[_Equality, SizeGuard]]:
    """While this lasts, what JAX answers about sizes without deciding it does not pass unnoticed, but in JAX itself.

    An equality causes a UserWarning at its line, and raises ProgramError where the answer is wrong for the sizes of
    `sizes_of_call`; the result has a guard for each, which a program has to be given. A truth value raises
    ProgramError.

    traces_anew: JAX may have traced a part of the function for these very sizes, in which it would ask nothing again.
    """
    _install()
    seen = Equalities()
    with tracing_with(replace(current_trace(), equalities=seen)):
        anew = new_trace() if traces_anew and current_trace().sizes is None else contextlib.nullcontext()
        with anew, held_errors.no_held_errors():
            yield seen
        for pairs, line in seen.raised:  # the user's code held the KeyError back
            all(_is_equal(one, other, seen, line) for one, other in pairs)


def _unseen() -> contextlib.AbstractContextManager[None]:
    """While this lasts, what sizes are asked is not noted: comparisons and dicts use equalities themselves."""
    return tracing_with(replace(current_trace(), equalities=None))


@contextlib.contextmanager
def sizes_of_call(specs: Any, call: Any, stated: Sequence[str] | None = None) -> Iterator[None]:
    """While this lasts, a function is compiled for a call whose arguments have these specifications.

    stated: comparisons of sizes that are not decided, also those of JAX and of libraries, have the outcome that is
    right for the call, and the program refuses other sizes. Raises NewConstraint for each that is not among those
    stated.
    """
    sizes = symbols_of_call(specs, call)
    with tracing_with(replace(current_trace(), sizes=CallSizes(sizes, stated))):
        try:
            yield
        except ProgramError as error:
            compared = comparison_in(error)
            if compared is None or not compared.symbols() <= sizes.keys():
                raise
            text = _as_constraint(compared if compared.evaluate(sizes) else compared.negate())
            if text and stated is None:
                error.add_note(f"shlo_disc: for the sizes of this call, {text}")
            if not text or stated is None or text in stated:
                raise
            raise NewConstraint(text) from None


def symbols_of_call(specs: Any, call: Any) -> dict[str, int]:
    """The values of the symbols that are sizes of arguments, or parts of sizes that have no other symbol."""
    found: dict[str, int] = {}
    for spec, leaf in zip(jax.tree.leaves(specs), jax.tree.leaves(call), strict=True):
        for stated, size in zip(spec.shape, np.shape(leaf), strict=True):
            if not export.is_symbolic_dim(stated) or not isinstance(size, int):
                continue
            terms = [(factor, monomial) for factor, monomial in Expr.parse(str(stated)).terms if monomial]
            if len(terms) == 1 and len(terms[0][1]) == 1 and str(name := terms[0][1][0][0]).isidentifier():
                constant = Expr.parse(str(stated)).constant_term
                if terms[0][1][0][1] == 1 and (size - constant) % terms[0][0] == 0:
                    found[str(name)] = (size - constant) // terms[0][0]
    return found


@functools.cache
def _install() -> None:
    """Make `==`, `bool`, `hash`, `str` and comparisons of symbolic sizes look whether a trace of ours is under way."""
    kind: Any = type(export.symbolic_shape("n")[0])
    plain, plain_hash, plain_text = kind.__eq__, kind.__hash__, kind.__str__

    def equal(self: Any, other: Any) -> Any:
        result = plain(self, other)
        if result is not False or (seen := current_trace().equalities) is None:
            return result
        frame = sys._getframe(1)
        if isinstance(other, np.ndarray):  # JAX says False for the whole array
            answers = [_answer(self, part, seen, frame) for part in other.flat]
            return np.array(answers, bool).reshape(other.shape)
        return _answer(self, other, seen, frame)

    def truth(self: Any) -> bool:
        return (seen := current_trace().equalities) is None or _truth(self, seen, sys._getframe(1))

    def hashed(self: Any) -> int:
        if (seen := current_trace().equalities) is not None and not is_of_jax(sys._getframe(1).f_code.co_filename):
            _look_up(self, seen, sys._getframe(1))
        found: int = plain_hash(self)
        return found

    def text(self: Any) -> str:
        found: str = plain_text(self)
        frame: Any = sys._getframe(1)
        frame = frame.f_back if frame.f_code.co_filename == held_errors.__file__ else frame  # from its __format__
        is_seen = current_trace().equalities is not None and is_users(frame.f_code.co_filename)
        return SizeText(found, self, _answer_of_text) if is_seen else found

    kind.__eq__ = equal
    kind.__str__ = text
    kind.__hash__ = hashed
    kind.__bool__ = truth
    for operator, name in _COMPARISONS.items():
        setattr(kind, name, _comparing(getattr(kind, name), operator))


_COMPARISONS = {">=": "__ge__", "<=": "__le__", ">": "__gt__", "<": "__lt__"}


def _comparing(plain: Any, operator: str) -> Any:
    """A comparison of sizes that a call decides where JAX cannot and `sizes_of_call` says so."""

    @functools.wraps(plain)
    def compare(self: Any, other: Any) -> Any:
        try:
            return plain(self, other)
        except Exception as error:
            if type(error).__name__ != "InconclusiveDimensionOperation" or (seen := current_trace().equalities) is None:
                raise
            answer = _decide(self, operator, other, seen, sys._getframe(1))
            if answer is None:
                raise
            return answer

    return compare


def _decide(one: Any, operator: str, other: Any, seen: Equalities, frame: Any) -> bool | None:
    """The outcome of a comparison for the call that decides, which the program then requires; None without one."""
    call, (file, line) = current_trace().sizes, (frame.f_code.co_filename, frame.f_lineno)
    if call is None or call.stated is None or is_of_jax(file):
        return None
    relation = Relation(operator, Expr.parse(str(one)), Expr.parse(str(other)))
    if not relation.symbols() <= call.values.keys():
        return None
    is_true = relation.evaluate(call.values)
    kept = relation if is_true else relation.negate()
    if (text := _as_constraint(kept)) and text not in call.stated:
        raise NewConstraint(text)
    seen[file, line, str(relation), ""] = SizeGuard(kept, f"Expected {kept}, which decides a branch at {file}:{line}.")
    return is_true


_AT_MOST_ONE = re.compile(r"^(\w+) <= 1$")
"""A symbol that is 1, as those of JAX are at least 1; by an equality JAX puts the number in its place."""


def _as_constraint(relation: Relation) -> str:
    """A relation as a constraint of JAX's; "" where JAX cannot state it."""
    text = _AT_MOST_ONE.sub(r"\1 == 1", written(relation))
    try:
        export.SymbolicScope((text,))
    except ValueError:
        return ""
    return text


def _responsible(frame: Any, *sizes: Any) -> Any:
    """The frame whose line is told of an answer about sizes; None where JAX asks, and is right whatever it is told.

    JAX asks whether sizes are equal, or 0, where it may do less work if they are. Whoever asks for a remainder, and the
    functions of `_COMPUTE_BY_IT`, compute something else by the answer: the line that called JAX is told. A look-up in
    a cache of JAX's may ask for sizes whose hashes differ, and is right whatever it is told.
    """
    if frame is not None and looks_in_cache(frame):
        return None
    if frame is None or not is_of_jax(file := frame.f_code.co_filename):
        return frame
    asked_by, is_computed = frame.f_code.co_name, file.startswith(_SIZES_OF_JAX)
    has_remainder = any(_HAS_REMAINDER.search(str(size)) for size in sizes)
    is_harmless = not has_remainder or is_computed or asked_by in _TAKE_NO_REST
    if is_harmless and asked_by not in _COMPUTE_BY_IT:
        return None
    caller = frame
    while caller is not None and is_of_jax(caller.f_code.co_filename):
        caller = caller.f_back
    return caller or frame


_HAS_REMAINDER = re.compile(r"\bmod\(")
_SIZES_OF_JAX = tuple(str(Path(jax.__file__).parent / "_src" / name) for name in ("export", "core.py"))
"""Files of JAX that compute with sizes, and simplify them."""
_TAKE_NO_REST = frozenset({"_scan_impl", "_batch_and_remainder"})
"""Functions of JAX's loops that do the rest of some turns apart, and the same where no turn is left."""
_COMPUTE_BY_IT = frozenset({"array_equal", "array_equiv", "_cofactor_solve"})
"""Functions of JAX: the last one is of the gradients of determinants, and has a case of its own for one row."""


def _answer(one: Any, other: Any, seen: Equalities, frame: Any) -> bool:
    """The answer to an equality that JAX takes to be false."""
    while frame is not None and (frame.f_code.co_name in ("__eq__", "__ne__") or is_of_python(frame)):
        frame = frame.f_back
    if (frame := _responsible(frame, one, other)) is None:
        return False
    place = frame.f_code.co_filename, frame.f_lineno
    if isinstance(other, int | float | np.integer | np.floating) and float(other).is_integer():  # 3.0 is 3
        other = int(other)
    equality = (*place, str(one), str(other))
    if equality in seen or _is_decided(one, other):
        return False
    if _is_always(one, other):
        return True
    if (answer := _decide(one, "==", other, seen, frame)) is not None:
        return answer
    where = f"{place[0]}:{place[1]}"
    sides = [Expr.parse(str(size)) for size in (one, other)]
    sizes = call.values if (call := current_trace().sizes) else {}
    values = [_value(side, sizes) for side in sides]
    text, advice = f"JAX takes {one} == {other} to be false while it traces", _equality_advice(one, other)
    if None not in values and values[0] == values[1]:
        symbols = sorted(sides[0].symbols() | sides[1].symbols())
        called = "for the sizes of this call, " + ", ".join(f"{name} = {sizes[name]}" for name in symbols)
        raise ProgramError(f"{where}: {text}, and so for every size, but it is true {called}: {advice}{_BOTH}")
    relation = Relation("!=", *sides)
    seen[equality] = SizeGuard(relation, f"Expected {relation}, as {where} was compiled: {_choice(one, other)}.")
    refused = "so the program refuses the sizes for which it is true. To serve them as well"
    warnings.warn_explicit(f"{text}, {refused}, {advice}{_BOTH} (docs/limits.md)", UserWarning, *place)
    return False


def _answer_of_text(size: Any, number: int, frame: Any) -> bool:
    """The answer to an equality of the texts of a size and a number."""
    seen = current_trace().equalities
    return seen is not None and is_users(frame.f_code.co_filename) and _answer(size, number, seen, frame)


_BOTH = "; or give shlo_disc.jit compile_once=False, which compiles a program for each outcome"


def _look_up(size: Any, seen: Equalities, frame: Any) -> None:
    """Ask the equalities of a look-up that wants the hash of a size.

    Where they are not known, a call that decides has a program for its very size. Else raises ProgramError in the
    user's code, and warns in libraries.
    """
    with _unseen():
        equalities = equalities_at(frame, size)
        raised = equalities_of_raising(frame, size) if is_users(frame.f_code.co_filename) else ()
    seen.raised += [(pairs, _Line(frame.f_code, frame.f_lineno, frame.f_lasti)) for pairs in raised]
    for pairs in equalities or ():
        all(_is_equal(one, other, seen, frame) for one, other in pairs)
    is_asked = is_users(frame.f_code.co_filename) and hash_is_asked(frame)
    if equalities is not None and not is_asked:
        return
    _fix(size)
    file, line = frame.f_code.co_filename, frame.f_lineno
    if is_asked:
        text = f"hash({size}) is that of the name of the size while JAX traces, and the same for all sizes"
        warnings.warn_explicit(f"{text}: compute with the size itself{_BOTH} (docs/limits.md)", UserWarning, file, line)
        return
    text = f"JAX takes the look-up of {size} by its hash to be false while it traces, whatever the size is"
    text += f": compare it, as in any({size} == number for number in numbers){_BOTH}"
    if is_users(file):
        raise ProgramError(f"{file}:{line}: {text}")
    warnings.warn_explicit(f"{text} (docs/limits.md)", UserWarning, file, line)


def _fix(size: Any) -> None:
    """Raise NewConstraint where a call decides, so that the function is compiled for its very size."""
    call = current_trace().sizes
    if call is not None and call.stated is not None:
        expr = Expr.parse(str(size))
        value = _value(expr, call.values)
        if value is not None and (text := _as_constraint(Relation.eq(expr, value))) and text not in call.stated:
            raise NewConstraint(text)


def _is_equal(one: Any, other: Any, seen: Equalities, frame: Any) -> bool:
    """The answer to an equality of a look-up, of sizes or numbers."""
    with _unseen():
        is_equal = bool(one == other)
    return is_equal or export.is_symbolic_dim(one) and _answer(one, other, seen, frame)


def _value(size: Expr, sizes: Mapping[str, int]) -> int | None:
    """The value of a size where the symbols have these values; None where one is not known."""
    return size.evaluate(sizes) if size.symbols() <= sizes.keys() else None


def _truth(size: Any, seen: Equalities, frame: Any) -> bool:
    """The truth value of a size. Raises ProgramError where it depends on symbols."""
    with _unseen():
        decided = [_decided(lambda: size >= 1), _decided(lambda: size <= -1)]
    if True in decided:
        return True
    if None not in decided:
        return False
    if (frame := _responsible(frame, size)) is None:
        return True
    place = frame.f_code.co_filename, frame.f_lineno
    if (is_zero := _decide(size, "==", 0, seen, frame)) is not None:
        return not is_zero
    raise ProgramError(
        f"{place[0]}:{place[1]}: the truth value of the size {size} is not the same for all sizes, for it may be 0: "
        f"{_choice(size)}, or state a constraint that decides it: {_constraint(size, '==', 0)} or "
        f"{_constraint(size, '>=', 1)}{_BOTH}"
    )


def _equality_advice(one: Any, other: Any) -> str:
    """Advice on an equality that is not decided."""
    with _unseen():
        equal = _constraint(one, "==", other)
        sides = {">=": _decided(lambda: one >= other), "<=": _decided(lambda: one <= other)}
        bound = next((operator for operator, holds in sides.items() if holds), "")
        if not bound:
            return f"{_choice(one, other)}, or state a constraint that decides it, such as {equal}"
        beyond = _constraint(one, bound, other + 1 if bound == ">=" else other - 1)
        opposite = {">=": "<=", "<=": ">="}[bound]
        return (
            f"{_choice(one, other)}, or state a constraint that decides it: {equal} or {beyond}; "
            f"{one} {opposite} {other} means the same, and is an error where it is not decided"
        )


def _constraint(one: Any, operator: str, other: Any) -> str:
    """The option that states a relation of sizes."""
    return f'constraints=("{written(Relation(operator, Expr.parse(str(one)), Expr.parse(str(other))))}",)'


def _choice(size: Any, value: Any = None) -> str:
    """Advice that needs no constraint: a branch that each call takes, and names that decide a remainder."""
    condition = f"jax.numpy.asarray(size) {'!= 0' if value is None else f'== {value}'}"
    text = f"choose by jax.lax.cond({condition}, ...), whose branches have results of the same shape"
    if value is None:
        text += ", write jax.core.max_dim(size, 1) in place of `size or 1`"
    if found := _REMAINDER.fullmatch(str(size)):
        name, divisor = found.groups()
        text += f', or name the size "{divisor}*{name}" if it is always a multiple of {divisor}'
    return text


def _decided(comparison: Any) -> bool | None:
    """The outcome of a comparison of sizes; None where JAX does not decide it, or for sizes of different scopes."""
    try:
        return bool(comparison())
    except Exception:  # JAX's errors have no class in its public API
        return None


def _is_decided(one: Any, other: Any) -> bool:
    """Tells whether the sizes differ for all values of the symbols, by the constraints that were stated."""
    if not (export.is_symbolic_dim(other) or isinstance(other, int)):
        return True
    with _unseen():
        return bool(_decided(lambda: one < other or one > other))


def _is_always(one: Any, other: Any) -> bool:
    """Tells whether sizes are known to be equal for all values of the symbols, though they are written otherwise."""
    with _unseen():
        if _decided(lambda: one >= other and one <= other):  # by the constraints that were stated
            return True
        return not is_satisfiable([Relation("!=", Expr.parse(str(one)), Expr.parse(str(other)))])


__all__ = ["CallSizes", "Equalities", "NewConstraint", "checked_sizes", "sizes_of_call", "symbols_of_call"]
