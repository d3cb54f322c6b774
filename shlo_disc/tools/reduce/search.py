# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds a small program that fails as a large one does.

Delta debugging as Zeller and Hildebrandt describe it ("Simplifying and isolating failure-inducing input", 2002): an
edit is tried at all its places, then at halves, quarters, ... of them, and at each by itself; what still fails is gone
on with. Edits that leave out most come first, as in hierarchical delta debugging (Misherghi and Su, 2006). All is tried
again until nothing changes: then no single edit can be made any more. The order is fixed, so that the same program
gives the same small one.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from shlo_disc.errors import OptionError
from shlo_disc.importer.child import Child, ChildEnded
from shlo_disc.importer.parse import parse_program, parse_trusted
from shlo_disc.importer.program import read
from shlo_disc.importer.programs import JaxProgram
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir

from .edits import EDITS, Edit
from .failing import WORKER, Failing, Failure
from .rewriting import body_of, main_of, ops_in
from .sizes import smaller_sizes, static_pipelines
from .worker import bytecode_of

Say = Callable[[str], None]
_PASS_SECONDS = 60.0
PASSES = Child(WORKER)
"""The process in which MLIR's passes run; one for all searches."""


@dataclass(frozen=True)
class Reduced:
    """A reduced program.

    text: MLIR. failure: how it fails. ops, ops_before: how many it has, and had, terminators not counted. trials: how
    many programs were tried. is_complete: False where the time was over, or somebody interrupted the search, before it
    had come to its end.
    """

    text: str
    failure: Failure
    ops: int
    ops_before: int
    trials: int
    seconds: float
    is_complete: bool


def reduce(
    program: Any,
    failing: Failing,
    *,
    sizes: Sequence[int] = (),
    seconds: float | None = None,
    say: Say = lambda _: None,
) -> Reduced:
    """The smallest program found that fails as `program` does.

    program: whatever `shlo_disc.compile` takes without `args`. failing: a `CompilerFailure` or a `Command`, which is
    closed at the end. sizes: values of symbols to try in place of them. seconds: for the whole search.

    Raises OptionError where the program does not fail, and ProgramError where it is none.
    """
    search = _Search(_module_of(program), failing, seconds, say)
    try:
        return search.run(sizes)
    finally:
        failing.close()


def _module_of(program: Any) -> ir.Operation:
    source = read(program)
    data = bytes(source.exported.mlir_module_serialized) if isinstance(source, JaxProgram) else source.data
    return parse_program(data, make_context()).operation


class _TimeUp(Exception):
    """The search has taken as long as it may."""


class _Search:
    def __init__(self, module: ir.Operation, failing: Failing, seconds: float | None, say: Say):
        self.module = module
        self._failing, self._say = failing, say
        self._start = time.monotonic()
        self._end = None if seconds is None else self._start + seconds
        self._tried: set[bytes] = set()
        self._trials = 0
        self._failure: Failure | None = None

    def run(self, sizes: Sequence[int]) -> Reduced:
        """Reduce the module as far as it goes."""
        before = len(ops_in(self.module))
        first = self._failing.failure(self.module)
        self._trials += 1
        if first is None:
            what = "--dims, --check and --test say what fails"
            raise OptionError(f"the program does not fail: there is nothing to reduce; {what}")
        self._failure = first
        self._say(f"{first}\n{self._counts()}")
        is_complete = True
        try:
            self._reduce(sizes)
        except (_TimeUp, KeyboardInterrupt):
            is_complete = False
        self._say(self._counts())
        return Reduced(
            f"{self.module}\n", self._failure, len(ops_in(self.module)), before, self._trials,
            time.monotonic() - self._start, is_complete,
        )  # fmt: skip

    def _reduce(self, sizes: Sequence[int]) -> None:
        self._with_passes("strip-debuginfo")
        self._with_passes("inline,symbol-dce")
        changed = True
        while changed:
            changed = self._make_static(sizes)
            for edit in EDITS:
                changed |= self._sweep(edit)
            changed |= self._shrink_sizes()

    # ---- ways to a smaller program ---------------------------------------------------------------------------------

    def _sweep(self, edit: Edit) -> bool:
        """Make an edit at as many places as possible, from the last to the first; whether it was made at any."""
        changed = False
        size = len(edit.places(self.module))
        while size:
            position = len(edit.places(self.module))
            while position > 0:
                chosen = range(max(position - size, 0), position)
                if self._try(_edited(self.module, edit, chosen)):
                    changed = True
                position = min(chosen.start, len(edit.places(self.module)))
            size //= 2
        return changed

    def _make_static(self, sizes: Sequence[int]) -> bool:
        assert self._failure is not None  # noqa: S101 - there was a first trial
        return any(self._with_passes(passes) for passes in static_pipelines(self.module, self._failure, sizes))

    def _shrink_sizes(self) -> bool:
        changed = False
        while self._try_first(smaller_sizes(self.module.get_asm(print_generic_op_form=True))):
            changed = True
        return changed

    def _try_first(self, texts: Iterator[str]) -> bool:
        return any(self._try(_parsed(text, self.module.context)) for text in texts)

    def _with_passes(self, passes: str) -> bool:
        """Try what MLIR's passes make of the program, in a process that may die of them."""
        header = {"task": "passes", "passes": passes}
        try:
            answer, made = PASSES.ask(header, bytecode_of(self.module), _PASS_SECONDS)
        except ChildEnded:
            return False
        return answer["kind"] == "made" and self._try(parse_trusted(made, make_context()).operation)

    # ---- trials ----------------------------------------------------------------------------------------------------

    def _try(self, candidate: ir.Operation | None) -> bool:
        """Go on with a program if it is one, is another than all before, and still fails alike."""
        if self._end is not None and time.monotonic() > self._end:
            raise _TimeUp
        if candidate is None or not _verifies(candidate):
            return False
        key = hashlib.sha256(bytecode_of(candidate)).digest()
        if key in self._tried:
            return False
        self._tried.add(key)
        self._trials += 1
        found = self._failing.failure(candidate)
        if found is None or self._failure is None or not found.is_like(self._failure):
            return False
        self.module, self._failure = candidate, found
        self._say(self._counts())
        return True

    def _counts(self) -> str:
        arguments = len(body_of(main_of(self.module)).arguments)
        seconds = time.monotonic() - self._start
        ops = len(ops_in(self.module))
        return f"{ops} ops, {arguments} arguments; {self._trials} programs tried in {seconds:.1f} s"


def _edited(module: ir.Operation, edit: Edit, chosen: range) -> ir.Operation:
    with module.context, ir.Location.unknown():
        copy = module.clone(ip=False)
    edit.apply(copy, chosen)
    return copy


def _parsed(text: str, context: ir.Context) -> ir.Operation | None:
    try:
        return ir.Module.parse(text, context).operation
    except ir.MLIRError:
        return None


def _verifies(module: ir.Operation) -> bool:
    try:
        return bool(module.verify())
    except ir.MLIRError:
        return False


__all__ = ["Reduced", "reduce"]
