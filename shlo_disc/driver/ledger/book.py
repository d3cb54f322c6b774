# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of a process whose programs the plugin was given, and how many programs each has come to."""

from __future__ import annotations

import dataclasses
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from shlo_disc.errors import ProgramError, RecompileError

from .differences import first_difference
from .document import FunctionRow, ProgramRow
from .identity import Argument, Form, Identity, Reading, read_identity

MAX_PROGRAMS_VARIABLE = "SHLO_DISC_MAX_PROGRAMS"

_MOST_KEPT = 4  # programs of a form that others are compared with
_KEPT_BYTES = 16 << 20  # of a program that is kept
_MOST_READINGS = 64
_MOST_SHAPES = 4  # that a message lists

TRACED = (
    "where Python decides by sizes, use jax.lax.cond, jax.lax.fori_loop or jax.lax.scan, or give static arguments few "
    "values"
)
ONES = f"pad sizes of 1, or name the sizes in shlo_disc.jit, which traces none of them as 1; {TRACED}"
VALUE = "compute the value from sizes inside of the function, or pass it as an array; else pad the sizes to a few"
DEFECT = "this is a defect of shlo_disc: SHLO_DISC_RECORD=folder writes the programs down for a report"
FIXED = "one more compile makes a symbol of it; where both sizes are one size by chance, call once with others first"


Miss = tuple[str, bool]
"""The reason that a program is no instance of a symbolic one, and whether that is a size of an argument."""


class Count(Protocol):
    """The number of calls of a program."""

    @property
    def value(self) -> int:
        """The number of calls so far."""


@dataclass
class _Form:
    """The programs of a function for arguments of the same element types and ranks, on the same devices.

    programs: rows without shapes; compiled_for: the arguments of each, of which those are shown that change.
    """

    shapes: dict[tuple[Argument, ...], None] = field(default_factory=dict)
    programs: list[ProgramRow] = field(default_factory=list)
    compiled_for: list[tuple[Argument, ...]] = field(default_factory=list)
    kept: list[bytes] = field(default_factory=list)
    misses: list[Callable[[bytes], Miss | None]] = field(default_factory=list)
    reason: str = ""
    remedy: str = ""
    told: bytes = b""  # the program that the reason is of

    def tell(self, program: bytes, reason: str, remedy: str) -> None:
        self.reason, self.remedy, self.told = reason, remedy, _digest(program)


@dataclass
class _Function:
    identity: Identity
    forms: dict[Form, _Form] = field(default_factory=dict)
    counts: list[Count] = field(default_factory=list)


class Ledger:
    """The information on each function. Any number of threads may use it; MLIR is used by one of them at a time."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._functions: dict[tuple[str, str, int], _Function] = {}
        self._readings: OrderedDict[bytes, Reading] = OrderedDict()

    def admit(self, program: bytes, most: int) -> None:
        """Let a program be compiled. most: the programs that a function may have, 0 for any number.

        Raises RecompileError where its function has as many already, and is none of JAX's own.
        """
        with self._lock:
            reading, form = self._form(program)
            if most < 1 or not reading.identity.is_users or len(form.programs) < most:
                return
            self._explain(form, program)
            raise RecompileError(_refusal(reading, form, most))

    def refuse(self, program: bytes, reason: str, remedy: str) -> str:
        """Note why a program has no symbolic program together with the earlier ones; returns all that is to be told."""
        with self._lock:
            reading, form = self._form(program)
            form.tell(program, reason, remedy)
            return _told(reading, form)

    def note_symbolic(self, program: bytes, miss: Callable[[bytes], Miss | None]) -> None:
        """Note a symbolic program. miss: says why another program is no instance of it, None where it is one."""
        with self._lock:
            self._form(program)[1].misses.append(miss)

    def explain(self, program: bytes) -> str:
        """The reason that a program to be compiled is none of those that its function has.

        "" for the first one of a form, and where it was told before.
        """
        with self._lock:
            reading, form = self._form(program)
            if not form.programs or form.told == _digest(program):
                return ""
            self._explain(form, program)
            return _told(reading, form)

    def origin(self, program: bytes) -> Identity:
        """The function that a program is of."""
        with self._lock:
            return self._read(program).identity

    def note(self, program: bytes, how: str, seconds: float, count: Count) -> None:
        """Note that a program was served. how: "compiled", "compiled_symbolic", "known" or "instance"."""
        with self._lock:
            reading, form = self._form(program)
            function = self._functions[reading.identity.key]
            function.counts.append(count)
            form.shapes[reading.arguments] = None
            if how not in ("compiled", "compiled_symbolic"):
                return
            why = form.reason if form.programs and how == "compiled" else ""
            form.programs.append(ProgramRow(how == "compiled_symbolic", seconds, "", why))
            form.compiled_for.append(reading.arguments)
            if len(program) <= _KEPT_BYTES:
                form.kept = [*form.kept[1 - _MOST_KEPT :], program]

    def rows(self) -> list[FunctionRow]:
        """The functions, those with most seconds in compiles first."""
        with self._lock:
            rows = [_row(function) for function in self._functions.values()]
        return sorted(rows, key=lambda row: (-row.seconds, row.name, row.place))

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._functions.clear()
            self._readings.clear()

    def _form(self, program: bytes) -> tuple[Reading, _Form]:
        reading = self._read(program)
        function = self._functions.setdefault(reading.identity.key, _Function(reading.identity))
        return reading, function.forms.setdefault(reading.form, _Form())

    def _read(self, program: bytes) -> Reading:
        digest = _digest(program)
        if digest not in self._readings:
            try:
                self._readings[digest] = read_identity(program)
            except ProgramError:  # the compiler tells what is wrong with it
                self._readings[digest] = Reading(Identity("", "", 0, ""), ())
            while len(self._readings) > _MOST_READINGS:
                self._readings.popitem(last=False)
        return self._readings[digest]

    def _explain(self, form: _Form, program: bytes) -> None:
        """Note the reason why a program is none of its form's, where the generaliser has not given it."""
        if form.told == _digest(program):
            return
        try:
            self._find_reason(form, program)
        except Exception as error:  # what compiles must not fail because of what is told of it
            form.tell(program, f"an unexpected error: {error!r}", DEFECT)

    def _find_reason(self, form: _Form, program: bytes) -> None:
        parted = first_difference(form.kept, program) if form.kept else ""
        if parted:
            ones = _new_ones(self._read(program).arguments, [*form.shapes])
            form.tell(program, f"{parted}{f'; {ones}' if ones else ''}", ONES if ones else TRACED)
            return
        missed = [found for found in (miss(program) for miss in form.misses) if found]
        if missed:
            reason, is_argument = missed[-1]
            form.tell(program, reason, FIXED if is_argument else VALUE)
        elif not form.reason:
            form.tell(program, "no symbolic program serves it", VALUE)


def _new_ones(arguments: tuple[Argument, ...], earlier: Sequence[tuple[Argument, ...]]) -> str:
    """The axes that have a size of 1 in these arguments alone, or in all others: JAX often traces other ops for those.

    "" where other arguments had the same ones.
    """
    ones, *others = (
        frozenset((i, axis) for i, a in enumerate(one) for axis, size in enumerate(a.sizes) if size == 1)
        for one in (arguments, *earlier)
    )
    if not others or ones in others:
        return ""
    changed = min((sorted(ones ^ other) for other in others), key=len)[:_MOST_SHAPES]
    texts = []
    for i, axis in changed:
        now = "is 1" if (i, axis) in ones else "is not 1"
        name = arguments[i].name if i < len(arguments) and arguments[i].name else f"argument {i}"
        texts.append(f"axis {axis} of {name} {now}")
    return f"{', '.join(texts)} here, and JAX traces sizes of 1 to ops of their own"


def _digest(program: bytes) -> bytes:
    return hashlib.blake2b(program, digest_size=16).digest()


def _changing(shapes: Sequence[tuple[Argument, ...]]) -> list[int]:
    """The arguments that are not the same in all; the first ones where there is nothing to compare."""
    first = shapes[0]
    if any(len(one) != len(first) for one in shapes):
        return [*range(max(map(len, shapes)))]
    found = [i for i in range(len(first)) if any(one[i] != first[i] for one in shapes)]
    return found or [*range(min(len(first), _MOST_SHAPES))]


def _shapes(shapes: Sequence[tuple[Argument, ...]], shown: Sequence[int]) -> str:
    texts = []
    for arguments in shapes[:_MOST_SHAPES]:
        few = [arguments[i] for i in shown if i < len(arguments)][:_MOST_SHAPES]
        texts.append(", ".join(f"{a.name}: {a}" if a.name else str(a) for a in few))
    if len(shapes) > _MOST_SHAPES:
        texts.append(f"and {len(shapes) - _MOST_SHAPES} more")
    return "; ".join(texts)


def _named(identity: Identity) -> str:
    where = f" ({identity.place})" if identity.place else ""
    return f"the function {identity.name!r}{where}"


def _told(reading: Reading, form: _Form) -> str:
    shapes = [*form.shapes, reading.arguments]
    shown = _changing(shapes)
    called = f", called at {reading.identity.caller}" if reading.identity.caller and reading.identity.file else ""
    seen = f" after {_shapes([*form.shapes], shown)}" if form.shapes else ""
    return (
        f"{_named(reading.identity)}{called}, with {_shapes([reading.arguments], shown)}{seen}: {form.reason}. "
        f"Remedy: {form.remedy}"
    )


def _refusal(reading: Reading, form: _Form, most: int) -> str:
    limit = f"{MAX_PROGRAMS_VARIABLE} or the client's option max_programs"
    return f"a function would have more than {most} programs, the most by {limit}: {_told(reading, form)}"


def _row(function: _Function) -> FunctionRow:
    identity, forms = function.identity, [*function.forms.values()]
    programs = tuple(program for form in forms for program in _program_rows(form))
    shapes = tuple(_shapes([*form.shapes], _changing([*form.shapes])) for form in forms if form.shapes)
    return FunctionRow(
        name=identity.name,
        place=identity.place,
        is_users=identity.is_users,
        calls=sum(count.value for count in function.counts),
        forms=len(forms),
        shape_count=sum(len(form.shapes) for form in forms),
        shapes=shapes,
        programs=programs,
        why=_why(forms),
    )


def _program_rows(form: _Form) -> list[ProgramRow]:
    """The programs of a form with their shapes: those of the arguments that change between all that were seen."""
    shown = _changing([*form.shapes]) if form.shapes else []
    pairs = zip(form.programs, form.compiled_for, strict=True)
    return [dataclasses.replace(row, shapes=_shapes([arguments], shown)) for row, arguments in pairs]


def _why(forms: Sequence[_Form]) -> str:
    """The reason that a function has more than one program, in the words of what was found last, and what to do."""
    reasons = [(p.why, form) for form in forms for p in form.programs if p.why]
    if reasons:
        why, form = reasons[-1]
        return f"{why}; {form.remedy}" if why == form.reason and form.remedy else why
    kinds = f"{len(forms)} kinds of arguments" if len(forms) > 1 else ""
    symbolic = [sum(p.is_symbolic for p in form.programs) for form in forms]
    serves = ""
    if any(symbolic):
        are_last = all(form.programs[-1].is_symbolic for form, n in zip(forms, symbolic, strict=True) if n)
        is_one = max(symbolic) == 1 and are_last
        serves = "one program serves all sizes" if is_one else f"{sum(symbolic)} programs serve several sizes each"
    return "; ".join(text for text in (kinds, serves) if text)


LEDGER = Ledger()
"""The ledger of this process."""

__all__ = ["DEFECT", "LEDGER", "VALUE", "MAX_PROGRAMS_VARIABLE", "Count", "Ledger"]
