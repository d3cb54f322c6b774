# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process in which programs are tried: it compiles one, runs it, and says how it fails, unless it dies of it.

Programs come as bytecode that MLIR has verified. Compiled plainly, with no fusion and no reuse of buffers, a program is
what it is compared with (`shlo_disc.tools.bisect` compares likewise).
"""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shlo_disc.driver.artifact_header import artifact_of
from shlo_disc.driver.compiler import import_stage, run_pipeline
from shlo_disc.driver.recovery import PLAIN, Attempts, Choice, Outcome, is_internal
from shlo_disc.errors import DiscError, OptionError
from shlo_disc.importer.child import Message, serve
from shlo_disc.importer.parse import parse_trusted
from shlo_disc.importer.programs import TextProgram
from shlo_disc.options import CPU, Options
from shlo_disc.report.synthetic import argument_shapes, load_flat, synthetic_arguments
from shlo_disc.runtime import Client
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir, passmanager
from shlo_disc.tools.bisect.search import difference

_CHANGING = re.compile(r"'[^']*'|\"[^\"]*\"|<[^>]*>|[%@#]?[\w.#]*\d[\w.#]*")
"""Parts of a message that depend on the program: names and types in quotes, values, numbers."""


def pattern_of(error: BaseException) -> str:
    """The type of an error and the first line of its message, without what depends on the program."""
    first = next(iter((error.message if isinstance(error, DiscError) else str(error)).splitlines()), "")
    return f"{type(error).__name__}: {_CHANGING.sub('_', first)}"


def check(header: dict[str, Any], data: bytes) -> Message:
    """Find how a program fails: "kind" is "error", "wrong", "refused" (by what is no internal error) or "none"."""
    options = replace(Options.from_json(header["options"]), strict=True)
    read = TextProgram(data, trusted=True)
    try:
        attempts, outcome = _compile(read, header["target"], options)
        if outcome.error is not None:
            return _error(outcome.error), b""
        if not header["runs"] or header["target"] != CPU:
            return {"kind": "none"}, b""
        plain = attempts.compile(PLAIN)
    except Exception as error:  # what the program is at fault for
        return {"kind": "refused", "text": str(error)}, b""
    if plain.error is not None:
        return _error(plain.error), b""
    artifacts = [artifact_of(made) for made in (outcome.compilation, plain.compilation) if made is not None]
    return _compare(artifacts, header, options), b""


def _compile(read: TextProgram, target: str, options: Options) -> tuple[Attempts, Outcome]:
    """A compile; without hints where a symbol that they are for is not there any more."""
    attempts = Attempts(lambda: import_stage(read, target, options), run_pipeline)
    try:
        return attempts, attempts.compile(Choice())
    except OptionError:
        if not options.hints:
            raise
    return _compile(read, target, replace(options, hints={}))


def _error(error: BaseException) -> dict[str, Any]:
    return {"kind": "error", "pattern": pattern_of(error), "text": f"{type(error).__name__}: {error}"}


def _compare(artifacts: Sequence[Any], header: dict[str, Any], options: Options) -> dict[str, Any]:
    program = artifacts[0].header
    symbols = [symbol["name"] for symbol in program["symbols"]]
    client = _client(options.threads)
    ours, plain = (load_flat(client, artifact) for artifact in artifacts)
    for dims in assignments(symbols, header["dims"], header["sizes"]):
        try:
            arrays = synthetic_arguments(program, dims, header["seed"])
            expected = [np.asarray(result) for result in plain(*arrays)]
        except DiscError:  # not a call of this program
            continue
        try:
            problem = difference([np.asarray(result) for result in ours(*arrays)], expected)
        except DiscError as error:
            problem = f"{type(error).__name__}: {error}"
        if problem:
            shapes = argument_shapes(program, dims)
            return {"kind": "wrong", "pattern": "", "text": problem, "dims": dims, "shapes": shapes}
    return {"kind": "none"}


def assignments(
    symbols: Sequence[str], given: Sequence[Mapping[str, int]], sizes: Sequence[int]
) -> Iterator[dict[str, int]]:
    """Values for all symbols: what is given for them, and for those that it does not name each of its values in turn.

    sizes: the values where nothing is given.
    """
    found: list[dict[str, int]] = []
    for dims in given or [{}]:
        for value in dict.fromkeys(dims.values() or sizes):
            chosen = {name: dims.get(name, value) for name in symbols}
            if chosen not in found:
                found.append(chosen)
                yield chosen


@functools.cache
def _client(threads: int) -> Client:
    return Client(threads=threads, guard_pages=True)


def run_passes(header: dict[str, Any], data: bytes) -> Message:
    """Run MLIR's passes on a program: "kind" is "made" or "refused"."""
    module = parse_trusted(data, make_context())
    try:
        with module.context:
            passmanager.PassManager.parse(f"builtin.module({header['passes']})").run(module.operation)
    except (ir.MLIRError, ValueError) as error:
        return {"kind": "refused", "text": str(error)}, b""
    return {"kind": "made"}, bytecode_of(module.operation)


def bytecode_of(module: ir.Operation) -> bytes:
    """A module in MLIR's bytecode."""
    buffer = io.BytesIO()
    module.write_bytecode(buffer)
    return buffer.getvalue()


def answer(header: dict[str, Any], data: bytes) -> Message:
    """The answer to a request."""
    try:
        return {"check": check, "passes": run_passes}[header["task"]](header, data)
    except Exception as error:  # a defect of what stands around the compiler
        if not is_internal(error):
            return {"kind": "refused", "text": str(error)}, b""
        return _error(error), b""


def main() -> None:
    """Answer requests until there are no more."""
    serve(answer)


if __name__ == "__main__":
    main()
