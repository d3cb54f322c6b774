# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles on after an internal error: the decision that led to it is found and left out.

Whatever the compiler decides by choice, it can decide not to do. A compile that fails inside is tried again with fewer
decisions; halving their number finds the first one that it fails with (as `-opt-bisect-limit` does for LLVM), and the
program is compiled without it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from shlo_disc.driver.stages import STAGES
from shlo_disc.errors import CompilerError, DiscError
from shlo_disc.options import Options

if TYPE_CHECKING:
    from shlo_disc.driver.compiler import Compilation
    from shlo_disc.runtime import Artifact

LOGGER = logging.getLogger("shlo_disc")

MOST_LEFT_OUT = 3
"""Decisions at fault that are looked for; a program with more of them is compiled without any."""

MOST_DECISIONS = 1 << 20
"""More are made for no program."""


KINDS = ("hoist", "fusion", "reuse")
"""The decisions of `simplify`, of `fuse` and of `plan`, in the order in which they are made."""


class Choice(NamedTuple):
    """The decisions that may be made: how many of each of `KINDS` (None: all), and which of them are not."""

    limits: tuple[int | None, int | None, int | None] = (None, None, None)
    left_out: frozenset[tuple[str, int]] = frozenset()

    def apply(self, c: Compilation) -> Compilation:
        """Have an imported program compiled with these decisions only."""
        from shlo_disc.transforms.decisions import Decisions

        for kind, limit in zip(KINDS, self.limits, strict=True):
            numbers = frozenset(number for k, number in self.left_out if k == kind)
            c.decisions[kind] = Decisions(_least(c.decisions[kind].limit, limit), numbers)
        return c


def _least(a: int | None, b: int | None) -> int | None:
    return a if b is None else b if a is None else min(a, b)


PLAIN = Choice((0, 0, 0))
"""No decision at all: each op a kernel, and each value a buffer of its own."""


class Outcome(NamedTuple):
    """A compile: how far it went, and the internal error that it ended with."""

    compilation: Compilation | None
    error: Exception | None


class Attempts:
    """Compiles of one program: `start` imports it anew, `run` takes it through the stages."""

    def __init__(self, start: Callable[[], Compilation], run: Callable[[Compilation], Any]):
        self._start = start
        self._run = run

    def compile(self, choice: Choice) -> Outcome:
        """A compile with these decisions. Raises what is not an internal error."""
        compilation: Compilation | None = None
        try:
            compilation = choice.apply(self._start())
            self._run(compilation)
        except Exception as error:
            if not is_internal(error):
                raise
            return Outcome(compilation, error)
        return Outcome(compilation, None)

    def fails(self, choice: Choice) -> bool:
        """Tells whether a compile with these decisions ends with an internal error."""
        return self.compile(choice).error is not None


def is_internal(error: BaseException) -> bool:
    """Tells whether an error is a defect of the compiler, not of a program, an option or a machine."""
    if isinstance(error, DiscError):
        return isinstance(error, CompilerError)
    return isinstance(error, Exception) and not isinstance(error, OSError | MemoryError)


def compile_program(read: Any, options: Options, target: str, context: Any = None) -> tuple[Compilation, Artifact]:
    """A program that has been read, taken through all stages by `compile_on`, which says what is raised."""
    from shlo_disc.driver.artifact_header import artifact_of
    from shlo_disc.driver.compiler import import_stage, run_pipeline

    start = time.perf_counter()
    attempts = Attempts(lambda: import_stage(read, target, options, context=context), run_pipeline)
    compilation = compile_on(attempts, options, read, target)
    if LOGGER.isEnabledFor(logging.INFO):
        LOGGER.info("%s", _summary(compilation, time.perf_counter() - start))
    try:
        return compilation, artifact_of(compilation)
    except Exception as error:
        if not is_internal(error):
            raise
        raise with_reproducer(error, read, options, target, compilation) from error


def _summary(c: Compilation, seconds: float) -> str:
    from shlo_disc.lowering.launches import launches_in

    ops = sum(_count_ops(op) for op in c.snapshots[STAGES[0]].regions[0].blocks[0].operations)
    kernels = len(launches_in(c.snapshots["host"]))
    return f"compiled {c.signature.name} for {c.target} in {seconds:.3f} s: {ops} ops, {kernels} kernels"


def _count_ops(op: Any) -> int:
    """The ops in an op's regions, terminators not counted."""
    return sum(len(b.operations) - 1 + sum(map(_count_ops, b.operations)) for r in op.regions for b in r.blocks)


def compile_on(attempts: Attempts, options: Options, read: Any, target: str) -> Compilation:
    """The compiled program, without the decisions that it fails with.

    Raises CompilerError, which names a reproducer, where no decision is at fault, or with `Options(strict=True)`; and
    what the program or an option is at fault for.
    """
    first = attempts.compile(Choice())
    if first.error is None and first.compilation is not None:
        return first.compilation
    error = first.error or CompilerError("the compile ended without a program")
    text = with_reproducer(error, read, options, target, first.compilation).message
    if options.is_strict:
        raise CompilerError(text) from error
    return _without(attempts, error, text)


def with_reproducer(
    error: Exception, read: Any, options: Options, target: str, compilation: Compilation | None = None
) -> CompilerError:
    """An internal error as one that names the command to see it again, whose files are written if they can be.

    compilation: how far the compile went.
    """
    from shlo_disc.driver.reproducer import write_reproducer

    try:
        place = write_reproducer(read, options, target, error, compilation)
    except OSError as obstacle:
        return CompilerError(f"{_text(error)}\nWhat it takes to see it again could not be written: {obstacle}")
    return CompilerError(f"{_text(error)}\nTo see it again: {(place / 'command.txt').read_text().strip()}")


def _without(attempts: Attempts, error: Exception, text: str) -> Compilation:
    plain = attempts.compile(PLAIN)
    if plain.error is not None or plain.compilation is None:
        raise CompilerError(text) from error
    left_out: frozenset[tuple[str, int]] = frozenset()
    for _ in range(MOST_LEFT_OUT):
        fault = find_fault(attempts.fails, attempts, left_out)
        if fault is None:
            break
        left_out |= {(fault.kind, fault.number)}
        made = attempts.compile(Choice(left_out=left_out))
        LOGGER.warning("%s is left out after an internal error: %s", fault, text)
        if made.error is None and made.compilation is not None:
            return made.compilation
    LOGGER.warning("the program is compiled without any fusion after an internal error: %s", text)
    return plain.compilation


class Fault(NamedTuple):
    """The decision with which a program is first wrong: one of `KINDS`, by its number."""

    kind: str
    number: int
    pattern: str
    location: str

    def __str__(self) -> str:
        where = f" at {self.location}" if self.location else ""
        return f"{self.kind} {self.number} ({self.pattern}){where}"


def find_fault(
    is_wrong: Callable[[Choice], bool], attempts: Attempts, left_out: frozenset[tuple[str, int]] = frozenset()
) -> Fault | None:
    """The first decision with which `is_wrong` answers True; None when it does so without any, or with all not.

    It is asked about 2 log2(n) times for n decisions.
    """
    if not is_wrong(Choice(left_out=left_out)) or is_wrong(PLAIN):
        return None
    position = next((n for n in range(len(KINDS) - 1) if is_wrong(_first(n, None, left_out))), len(KINDS) - 1)

    def choice(limit: int) -> Choice:
        return _first(position, limit, left_out)

    high = 1
    while high < MOST_DECISIONS and not is_wrong(choice(high)):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_wrong(choice(middle)) else (middle, high)
    number = high - 1
    compilation = attempts.compile(choice(high)).compilation
    made = [] if compilation is None else compilation.decisions[KINDS[position]].made
    found = next((d for d in made if d.number == number), None)
    return Fault(KINDS[position], number, found.pattern if found else "unknown", found.location if found else "")


def _first(position: int, limit: int | None, left_out: frozenset[tuple[str, int]]) -> Choice:
    """All decisions of the kinds before `position`, `limit` of that kind, and none of those after it."""
    limits: list[int | None] = [None, None, None]
    limits[position:] = [limit, *([0] * (len(KINDS) - 1 - position))]
    return Choice((limits[0], limits[1], limits[2]), left_out)


def _text(error: Exception) -> str:
    return error.message if isinstance(error, CompilerError) else f"{type(error).__name__}: {error}"
