# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Find whether a program fails, and how."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from shlo_disc.errors import OptionError
from shlo_disc.importer.child import Child, ChildEnded
from shlo_disc.options import Options
from shlo_disc.shape_dialect.mlir import ir

from .worker import bytecode_of

WORKER = f"{__package__}.worker"
KINDS = ("wrong", "error", "crash")
SIZES = (3, 1, 2, 16, 17, 37)
"""Sizes of symbols without given values."""
_LEAST_LIMIT, _PATIENCE = 10.0, 20.0
"""A program may take so many seconds, and as many times as long as the first one that the process answered for."""


class Failure(NamedTuple):
    """The failure of a program.

    kind: "error", an internal error of the compiler; "wrong", other results than the plain program's; "crash", the end
    of the process, by a signal or the time limit; "test", what a user's command finds. pattern: what two failures of
    one kind have in common. dims, shapes: where results are wrong, the symbols' values and the arguments' shapes.
    """

    kind: str
    pattern: str
    text: str
    dims: Mapping[str, int] = {}
    shapes: Sequence[Sequence[int]] = ()

    def __str__(self) -> str:
        sizes = ", ".join(f"{name}={value}" for name, value in self.dims.items())
        return f"{self.kind}{f' at {sizes}' if sizes else ''}: {self.text.splitlines()[0] if self.text else ''}"

    def is_like(self, other: Failure) -> bool:
        """Tells whether two programs fail alike."""
        return (self.kind, self.pattern) == (other.kind, other.pattern)


class Failing(Protocol):
    """A test that decides whether a program fails."""

    def failure(self, module: ir.Operation) -> Failure | None:
        """The failure of a program; None where it does not fail."""
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...


class CompilerFailure:
    """Compiles programs, and compares their results with those of the plain program, in a process of its own."""

    def __init__(
        self,
        options: Options,
        *,
        target: str = "cpu",
        dims: Sequence[Mapping[str, int]] = (),
        kind: str | None = None,
        seed: int = 0,
        limit: float = 60.0,
        worker: str = WORKER,
    ):
        """dims: values of symbols to run a program at. kind: the only failure that counts, one of `KINDS`.

        limit: the most seconds that a program may take. worker: the module that the process runs.
        """
        if kind is not None and kind not in KINDS:
            raise OptionError(f"the failures that are looked for are {', '.join(KINDS)}, not {kind!r}")
        self._kind, self._limit = kind, limit
        self._request: dict[str, Any] = {
            "task": "check",
            "options": options.to_json(),
            "target": target,
            "dims": [dict(d) for d in dims],
            "sizes": list(SIZES),
            "seed": seed,
            "runs": kind != "error",
        }
        self._child = Child(worker)

    def failure(self, module: ir.Operation) -> Failure | None:
        """The failure of a program; None where it does not fail, or not so."""
        start = time.monotonic()
        try:
            answer, _ = self._child.ask(self._request, bytecode_of(module), self._limit)
        except ChildEnded as ended:
            found = Failure("crash", ended.how, str(ended))
        else:
            # What is smaller takes no longer, unless it is a loop without an end.
            self._limit = min(self._limit, _LEAST_LIMIT + _PATIENCE * (time.monotonic() - start))
            if answer["kind"] not in KINDS:
                return None
            found = Failure(**answer)
        return found if self._kind in (None, found.kind) else None

    def close(self) -> None:
        """End the process."""
        self._child.close()


class Command:
    """A user's command decides: it gets a file with the program, and its exit status is 0 where that still fails."""

    def __init__(self, words: Sequence[str], limit: float = 60.0):
        """words: the program and its arguments; the file's path comes last. limit: seconds for one run."""
        if not words:
            raise OptionError("the command that tests a program is empty")
        self._words, self._limit = list(words), limit
        self._directory = tempfile.TemporaryDirectory(prefix="shlo_disc-reduce-")
        self._file = Path(self._directory.name) / "candidate.mlir"

    def failure(self, module: ir.Operation) -> Failure | None:
        """A failure where the command says so. Raises OptionError where it cannot be run."""
        self._file.write_text(f"{module}\n")
        try:
            # The user names the command; there is no shell.
            done = subprocess.run(  # noqa: S603
                [*self._words, str(self._file)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self._limit,
            )
        except subprocess.TimeoutExpired:
            return None
        except OSError as error:
            raise OptionError(f"the command {self._words[0]!r} cannot be run: {error.strerror}") from None
        return Failure("test", "", "the command exits with 0") if done.returncode == 0 else None

    def close(self) -> None:
        """Remove the files."""
        self._directory.cleanup()


__all__ = ["KINDS", "Command", "CompilerFailure", "Failing", "Failure"]
