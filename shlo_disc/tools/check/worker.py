# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One process that compiles and runs cases as they come."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from shlo_disc.api.compile import compile as build
from shlo_disc.errors import DiscError, ProgramError, UnsupportedError
from shlo_disc.importer.child import Message, serve
from shlo_disc.options import Options
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.tools.check.modules import Case, Expectation, Program, program_of


@dataclass
class Outcome:
    """The outcome of a case.

    status: "pass", "unsupported", "wrong result", "unreadable", "compile error", "call error", "crash", "time limit" or
    "skipped". reasons: one line each. ops: those of the checked function. symbols: how many sizes of its arguments are
    symbols.
    """

    status: str
    reasons: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    symbols: int = 0


def run_case(case: Case, options: Options) -> Outcome:
    """Compile a case, call it and check its results; only what ends the process is not an Outcome."""
    try:
        program = program_of(case, make_context())
    except ProgramError as error:
        return Outcome("unreadable", (_line(error),))
    try:
        executable = build(program.text, options=options)
    except UnsupportedError as error:
        kinds = {f"{c.op.split(' (')[0]}{f' on {c.dtype}' if c.dtype else ''}: {c.reason}" for c in error.constructs}
        return Outcome("unsupported", tuple(sorted(kinds)), program.ops)
    except Exception as error:  # the tool's purpose is to report whatever goes wrong in the compiler
        return Outcome("compile error", (_line(error),), program.ops)
    try:
        results = executable(*program.arguments)
    except DiscError as error:
        return Outcome("call error", (_line(error),), program.ops)
    values = list(results) if isinstance(results, tuple | list) else [results]
    problems = tuple(_problems(program, values))
    symbols = len(executable.signature.symbols)
    return Outcome("wrong result" if problems else "pass", problems, program.ops, symbols)


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}"


def _problems(program: Program, results: list[Any]) -> list[str]:
    found = []
    for check in program.checks:
        actual, expected = _values(check, results)
        problem = check.comparison.problem(actual, expected)
        if problem:
            found.append(f"{check.name}: {problem}")
    return found


def _values(check: Expectation, results: list[Any]) -> tuple[Any, Any]:
    actual, expected = (results[side] if isinstance(side, int) else side for side in (check.actual, check.expected))
    return actual, expected


def answer(header: dict[str, Any], data: bytes) -> Message:
    """The outcome of a case; `data` is empty both ways."""
    return asdict(run_case(Case(**header["case"]), Options(**header["options"]))), data


def main() -> None:
    """Answer requests until there are no more."""
    serve(answer)


if __name__ == "__main__":
    main()
