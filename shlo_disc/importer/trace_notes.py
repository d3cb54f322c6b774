# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Advice on what JAX raises while it traces a function of symbolic sizes: what to write in terms of shlo_disc.

Errors that are about symbolic sizes become ProgramErrors, which name the user's line. Others stay those of JAX and of
the user's function, with a note.
"""

from __future__ import annotations

import ast
import contextlib
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import jax

from shlo_disc.errors import DiscError, ProgramError
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts_relation import Relation

from . import comparisons, wanted_numbers
from .comparisons import written
from .held_errors import ADVICE as HELD
from .held_errors import is_held
from .shape_mismatches import cut_in, names_shapes, on_cut, on_mismatch
from .size_texts import fault_of_name
from .sliced_tables import fault_of_slice, is_of_slice, note_of_slice, note_of_table, size_of_index
from .trace_state import current_trace, tracing_with
from .unrolled_loops import on_unrolled
from .user_code import Equation, Place, equation_of, is_of_place, place_of

OF_SIZES = ("DISC-P110", "DISC-P111")
"""The codes of errors about what a function does with sizes, and not with its specifications."""

_COMPARISON = re.compile(r"(?:^|Details: )Symbolic dimension comparison '(.*?)' (>=|<=|>|<|==|!=) '(.*?)' is inconclus")
_DIVISION = re.compile(r"The remainder mod\((.*), ?(?:- ?)?([\w*]+)\) should be 0")
_NUMBER_WANTED = (
    "_DimExpr",
    "used in a context that requires a constant",
    "expected a sequence of integers or a single integer, got '",
    "Symbolic dimension cannot be raised to",
    "with a symbolic number of sections",
    "Evaluation rule for 'dim_as_value' is not implemented",
    wanted_numbers.NO_TRACE,
)
_OF_DATA = re.compile(
    r"The size argument of jnp\.(nonzero|flatnonzero|argwhere|where|unique) must be statically"
    r"|arose for the first argument of jnp\.(unique)\(\)"
)
_IS_ASKED = "Attempted boolean conversion of traced array"
_SLICED_BY_VALUE = (
    "for a size that is read from data, write shlo_disc.numpy.boolean_index(x, jax.numpy.arange(x.shape[0]) < "
    "stop) in place of x[:stop]; a slice of a known size is jax.lax.dynamic_slice_in_dim(x, start, size)"
)
_ADVICE = {
    "Array boolean indices must be concrete": (
        "for a size that is read from data, write shlo_disc.numpy.boolean_index(x, mask) in place of x[mask]"
    ),
    "Slice entries must be static integers": _SLICED_BY_VALUE,
    "Array slice indices must have static start/stop/step": _SLICED_BY_VALUE,
    "the total number of repeats must be static": (
        "say how many elements there are in all by total_repeat_length=: a number, or the size of an argument, such as "
        "total_repeat_length=y.shape[0]"
    ),
    "`num_segments` argument": (
        "say how many segments there are by num_segments=: a number, or the size of an argument, such as "
        "num_segments=y.shape[0]"
    ),
    "argument 'x' of jnp.bincount": (
        "say how many counts there are by length=: a number, or the size of an argument, such as length=y.shape[0]"
    ),
    _IS_ASKED: (
        "choose by values with jax.numpy.where(condition, a, b), or run one of two functions with jax.lax.cond; and "
        "write jax.numpy.arange for numpy.arange, as NumPy's functions take no sizes that have names"
    ),
}
"""Advice against errors by a part of their texts."""

_ALONE = "shlo_disc.jit with compile_once=False compiles a program for the sizes of each call"
_UNSUPPORTED = {
    "associative scan over axis of non-constant size": (
        "use jax.numpy.cumsum, jax.numpy.cumprod, jax.lax.cummax, jax.lax.cummin or jax.lax.cumlogsumexp if the "
        "function is one of these, and jax.lax.scan otherwise; or give the size as a number in args=. " + _ALONE
    ),
    "shape polymorphism for `permutation`": (
        "sort by random numbers: x[jax.numpy.argsort(jax.random.uniform(key, x.shape[:1]))]. " + _ALONE
    ),
    "jnp.squeeze with axis=None": (
        "name the axes, as in jax.numpy.squeeze(x, axis=1). jax.numpy.cov and corrcoef name none: with c = x - "
        "x.mean(1, keepdims=True), the covariance is c @ c.T / (x.shape[1] - 1)"
    ),
    "In arange with non-constant arguments all of": (
        "steps are whole numbers: write jax.numpy.arange(2 * size) / 2 in place of jax.numpy.arange(0, size, 0.5)"
    ),
}
"""Advice by a part of the text with which a function of JAX refuses sizes that have names."""

_LIST_REPEATED = re.compile(r"unsupported operand type\(s\) for \*: .*'list'")
_PADDING_LENGTH = re.compile(
    r"Shape polymorphism is supported for jnp\.pad .*axis size \(= (.*?)\) .*length \(= (.*?)\)\."
)

_OF_PADDINGS = "paddings of a convolution are numbers, 'SAME' or 'VALID': for others, pad by jax.numpy.pad before it"
_OF_STRIDES = (
    "the gradient of a strided convolution needs the rest of a size divided by the stride: name each size as a "
    'multiple of the product of all strides that it passes, such as "2*h + 1" for one layer of stride 2 and "4*h" or '
    '"4*h + 1" for two; for \'VALID\', also state that all windows fit, such as constraints=("h >= 4",). Or use '
    "jax.jit with the plugin (docs/plugin.md)"
)
_PADDING = re.compile(r"padding argument to conv_general_dilated should be a string .*?, got (.*)", re.DOTALL)

_ADVICE_ON_SIZES = {
    "The problem arose with the `int` function": wanted_numbers.INTEGER_ARITHMETIC,
    "It arose in the jnp.arange argument": (
        "jax.numpy.arange takes numbers and sizes, such as x.shape[0] // 2, and no arrays or fractions of sizes. "
        "jax.scipy.signal.stft computes such fractions: cut the frames by x[starts[:, None] + "
        "jax.numpy.arange(width)], and transform them by jax.numpy.fft.rfft"
    ),
}
"""Advice where the number that is wanted was computed of sizes, and not of the values of arguments."""

_VALUE = re.compile(r"depends on the values? of the arguments? (.+?)\.\s")
_CONVERSIONS = ("__array__() was called on traced", "in the item() method of", "The problem arose with the `")
_SIZE = re.compile(r"Symbolic dimension '(.*?)' used in a context that requires a constant")
_FRACTIONS = (
    "Got slice(None, JitTracer(~float",
    "concrete values of integer type, got (JitTracer(~float",
)
_INDEX = re.compile(r"integer or boolean arrays are valid indices(?:\. Got (.*))?")
_COUNT_WANTED = (
    "Shapes must be 1D sequences of concrete values",
    "where concrete value is expected",
    "__index__() method was called on traced array",
    "was not hashable: (JitTracer",
)
_KEEP_ARRAY = (
    "an array has no value while the function is traced: leave out float(), int() and .item(), for arithmetic takes an "
    "array of shape () as it takes a number, and write jax.numpy's functions in place of those of NumPy and math"
)

_UNEVEN = re.compile(r"array split does not result in an equal division: rest is mod\((\w+), (\d+)\)")


@contextlib.contextmanager
def noted_traces() -> Iterator[None]:
    """Raise ProgramError from JAX's errors about symbolic sizes, and add notes to others that options of shlo_disc, or
    functions of it, mend."""
    try:
        yield
    except DiscError:
        raise
    except Exception as error:
        place = place_of(error)
        lowered = equation_of(error)
        fault = on_unrolled(str(error), place, lowered) or _fault_of_sizes(error, place)
        if fault := fault or _fault_of_lowering(error, place, lowered):
            line = str(place or (lowered.line if lowered else ""))
            fault = f"{fault}. {HELD}" if is_held(error) else fault
            raise ProgramError(f"{line}: {fault}" if line else fault) from error
        if note := note_on(str(error), place):
            if (static := _advice_of_call().static) and "x[:stop]" in note:
                note = (
                    f"if the size is the Python number of the call, make it static by {static} of shlo_disc.jit; {note}"
                )
            error.add_note(f"shlo_disc: {note}. {HELD}" if is_held(error) else f"shlo_disc: {note}")
        raise


def _fault_of_sizes(error: Exception, place: Place | None) -> str:
    """The fault of a function that asks for more about symbolic sizes than is known, and what to write; or ""."""
    message = str(error)
    if cut := cut_in(message):
        return on_cut(cut)
    if is_of_slice(message, place) and (sliced := fault_of_slice(place)):
        return sliced
    if name := fault_of_name(error, place):
        return name
    if found := _COMPARISON.search(message):
        left, operator, right = found.groups()
        advice = "" if comparisons.is_extreme(place) else wanted_numbers.on_numpy(place)
        advice = advice or comparisons.advice(left, operator, right, place, is_own=is_of_place(error, place))
        advice = advice or wanted_numbers.instead_of(place)
        text = f"JAX cannot decide {left} {operator} {right} for all sizes while it traces"
    elif any(words in message for words in _NUMBER_WANTED):
        size = f"the size {found[1]}" if (found := _SIZE.search(message)) else "a size that has a name"
        advice = note_of_slice(place) if is_of_slice(message, place) else wanted_numbers.advice(place, message)
        text = f"{size} is not an int while the function is traced"
    elif (found := _INDEX.search(message)) and (size := found[1] or size_of_index(place)) and _is_size(size):
        advice = wanted_numbers.on_index(place)
        text = f"the size {size} is not an int while the function is traced"
    elif (refused := _on_refused(message, place)) is not None:
        advice = refused
        is_list = place is not None and isinstance(place.expression, ast.BinOp)
        called = "a list that is repeated" if is_list else place.called() if place else ""
        named = called or f"a function of JAX ({message.splitlines()[0].partition('. ')[0]})"
        text = f"{named} cannot be traced with sizes that have names, as it is called here"
    elif type(error).__name__ == "InconclusiveDimensionOperation":  # which JAX derives from no other class
        advice = note_on(message, place)
        text = f"JAX cannot compute with sizes that have names: {message.splitlines()[0]}"
    else:
        return ""
    return f"{text}: {advice}" if advice else text


def _fault_of_lowering(error: Exception, place: Place | None, lowered: Equation | None) -> str:
    """The fault of an operation that JAX lowers for sizes that are numbers alone; "" of other errors."""
    if place is not None or lowered is None or not lowered.has_names:
        return ""
    said = " ".join(str(error).partition("\n")[0].split()).rstrip(".")
    text = f"{lowered.primitive} of JAX cannot be traced with sizes that have names, as it is called here"
    return f"{text} ({type(error).__name__}: {said}): give these sizes as numbers in args=. {_ALONE}"


def _on_refused(message: str, place: Place | None) -> str | None:
    """Advice where a function of JAX refuses sizes that have names; None where it does not."""
    if found := _UNEVEN.search(message):
        return _on_division(*found.groups())
    if found := _PADDING_LENGTH.search(message):
        return comparisons.on_padding(*found.groups())
    if _LIST_REPEATED.match(message):
        if repeated := wanted_numbers.on_repeated(place):
            return repeated
        return wanted_numbers.instead_of(place) or None
    return _of(_UNSUPPORTED, message) or None


class CallAdvice(NamedTuple):
    """Advice on options of the call for which a function is traced, for notes.

    static: the option that makes a Python number of the call static. shared: on a `dynamic` of one string, for shapes
    that do not go together. Each is "" for none.
    """

    static: str = ""
    shared: str = ""


_NO_ADVICE = CallAdvice()


@contextlib.contextmanager
def advice_of_call(advice: CallAdvice) -> Iterator[None]:
    """While this lasts, notes have this advice."""
    with tracing_with(replace(current_trace(), advice=advice)):
        yield


def _advice_of_call() -> CallAdvice:
    return current_trace().advice or _NO_ADVICE


def note_on(message: str, place: Place | None = None) -> str:
    """Advice against an error of that text; "" where there is none."""
    if is_of_slice(message, place):
        return note_of_slice(place)
    if found := _DIVISION.search(message):
        return _on_division(*found.groups())
    if names_shapes(message):
        return "; ".join(filter(None, (on_mismatch(message), _advice_of_call().shared)))
    if found := _OF_DATA.search(message):
        name = found[1] or found[2]
        if name == "nonzero" and place and place.called() == "jax.numpy.where":
            name = "where"
        return f"for a size that is read from data, write shlo_disc.numpy.{name} in place of jax.numpy.{name}"
    if found := _PADDING.search(message):
        is_gradient = re.search(r"floordiv|max\(", found[1]) is not None
        return f"{_OF_STRIDES}. Otherwise, {_OF_PADDINGS}" if is_gradient else _OF_PADDINGS
    if any(words in message for words in _CONVERSIONS) and (instead := _instead_of_conversion(place)):
        return instead
    if any(words in message for words in _FRACTIONS):
        return wanted_numbers.INTEGER_ARITHMETIC
    if place and (advice := _on_fraction(place, message)):
        return advice
    advice = _of(_ADVICE, message)
    if not advice or _IS_ASKED in message:
        advice = _on_setting(message, place) or advice
    return advice or _on_value(message) or _of(_ADVICE_ON_SIZES, message)


def _is_size(text: str) -> bool:
    """Tells whether a text is that of a size with a name in it."""
    try:
        return bool(Expr.parse(text).symbols())
    except ProgramError:
        return False


def _instead_of_conversion(place: Place | None) -> str:
    """Advice where a table or a function of NumPy, or one of math, is given a traced array; "" elsewhere."""
    if indexed := note_of_table(place):
        return indexed
    module, _, name = place.called().rpartition(".") if place else ("", "", "")
    if module not in ("numpy", "math") or not hasattr(jax.numpy, name) or name in ("ceil", "floor", "trunc"):
        return ""
    return f"functions of {module} take no traced arrays: write jax.numpy.{name} in place of {module}.{name}"


def _on_fraction(place: Place, message: str) -> str:
    """Advice where a number is wanted of an array that was computed of sizes, as n / 2 is; "" elsewhere."""
    if _VALUE.search(f"{message} ") or not any(words in message for words in (*_CONVERSIONS, "boolean conversion of")):
        return ""
    is_pythons = place.called().startswith("math.") or place.called() in ("builtins.float", "builtins.complex")
    if is_pythons or isinstance(place.expression, ast.Compare):
        return wanted_numbers.advice(place, message)
    return wanted_numbers.on_numpy(place)


def _of(advice: dict[str, str], message: str) -> str:
    return next((text for words, text in advice.items() if words in message), "")


def _on_setting(message: str, place: Place | None) -> str:
    """Advice where an argument chooses what a function does, as axis= does, and is traced as an array; "" elsewhere."""
    if "Non-hashable static arguments" in message and "Tracer" in message:
        return (
            "an argument that is a setting, such as keepdims=True, is traced as an array: make it static by "
            "static_argnames='keepdims' of shlo_disc.jit, or fix it, as in jit(lambda x: function(x, keepdims=True))"
        )
    name, is_asked = _argument(message), _IS_ASKED in message
    if not name or not is_asked and not any(words in message for words in _COUNT_WANTED):
        return ""
    static = f"make it static by static_argnames={name!r} of shlo_disc.jit, or fix it, as in "
    static += f"jit(lambda x: function(x, {name}=...))"
    if place is None:
        return f"{name} is a setting of the function, and is traced as an array: {static}"
    asked = place.expression.test if isinstance(place.expression, ast.IfExp) else place.expression
    if is_asked and isinstance(asked, ast.Name) and asked.id == name:
        return f"where {name} is a setting, {static}; otherwise {_of(_ADVICE, message)}"
    return ""


def _argument(message: str) -> str:
    """The name of the argument, or of the tuple as which it is given, on whose value an error depends; or ""."""
    found = _VALUE.search(f"{message} ")
    name = re.fullmatch(r"([^\W\d]\w*)(\[\d+\])?", found[1]) if found else None
    return name[1] if name else ""


def _on_value(message: str) -> str:
    """Advice where the value of an array is wanted while the function is traced; "" where a size is."""
    found = _VALUE.search(f"{message} ")
    if found and any(words in message for words in _CONVERSIONS):
        return _KEEP_ARRAY
    if not found and "JitTracer" not in message or not any(words in message for words in _COUNT_WANTED):
        return ""
    name = _argument(message)
    static = f"static_argnames={name!r}" if name else "static_argnames="
    return (
        f"the value of {name or 'an array'} is not known while the function is traced: for a size or a count, pass an "
        f"array of that size and write y.shape[0], or fix the number by {static} of shlo_disc.jit or by "
        f"functools.partial(function, {name or 'n'}=...); docs/guides/data-sizes.md is about sizes read from data"
    )


def _on_division(text: str, divisor: str) -> str:
    """Advice on a size `text` that JAX cannot divide by `divisor`."""
    try:
        size = Expr.parse(text)
    except ProgramError:
        return ""
    size, divisor = _cancelled(size, divisor)
    if "mod(" in text and divisor.isdecimal():
        return (
            f"round with //, not %: n up to a multiple is -(-n // {divisor}) * {divisor}, so pad by -(-n // {divisor}) "
            f"* {divisor} - n; down it is n // {divisor} * {divisor}"
        )
    (_, monomial), *rest = size.terms
    names = [str(atom) for atom, power in monomial if power == 1 and str(atom).isidentifier()]
    is_linear = divisor.isdecimal() and names and all(not others for _, others in rest)
    if is_linear and (named := _multiple(size, names[-1], int(divisor))):
        return f'declare the size as a multiple: write "{named}" in place of "{names[-1]}" in args= or dynamic='
    if "*" in divisor:
        return ""
    return f"write the quotient in place of -1: x.reshape(x.size // {divisor}, {divisor}), which each call checks"


def _cancelled(size: Expr, divisor: str) -> tuple[Expr, str]:
    """A size and what divides it, without the symbols that are factors of both."""
    number, *names = sorted(divisor.split("*"), key=lambda part: not part.isdecimal())
    if not number.isdecimal() or len(size.terms) != 1 or not all(name.isidentifier() for name in names):
        return size, divisor
    (factor, monomial), *_ = size.terms
    left = dict(monomial)
    for atom in list(left):
        if str(atom) in names and left[atom] == 1:
            del left[atom]
            names.remove(str(atom))
    return (Expr.from_terms([(factor, tuple(left.items()))]), number) if not names else (size, divisor)


def _multiple(size: Expr, name: str, divisor: int) -> str:
    """The text for a symbol with which `divisor` divides a size of one monomial and a constant; "" where none does."""
    (factor, _), *_ = size.terms
    step = divisor // math.gcd(factor, divisor)
    rest = next((r for r in range(step) if (size.constant_term - factor * r) % divisor == 0), None)
    if rest is None or rest and size.terms[0][1][1:]:
        return ""
    return f"{step}*{name}" + (f" - {rest}" if rest else "")


def comparison_in(error: BaseException) -> Relation | None:
    """The comparison of sizes that JAX could not decide, where an error came of that; None of other errors."""
    message = str(error.__cause__) if error.__cause__ is not None else ""
    if cut := cut_in(message):
        return cut.relations[0]
    if (found := _COMPARISON.search(message)) is None:
        return None
    left, operator, right = found.groups()
    try:
        return Relation(operator, Expr.parse(left), Expr.parse(right))
    except ProgramError:
        return None


__all__ = ["OF_SIZES", "CallAdvice", "advice_of_call", "comparison_in", "note_on", "noted_traces", "written"]
