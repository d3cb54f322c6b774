# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process that compiles for others: it may die of it."""

from __future__ import annotations

from typing import Any

from shlo_disc.driver.recovery import compile_program
from shlo_disc.importer.child import Message, limit_memory, serve
from shlo_disc.options import Options
from shlo_disc.shape_dialect.custom_calls import declare_conventions

from .messages import error_message, read_program_message, recorded


def answer(header: dict[str, Any], data: bytes) -> Message:
    """A program compiled: its artifact, timings and log records; or the error that there was."""
    with recorded(header["level"]) as records:
        try:
            said, made = _compiled(header, data)
        except Exception as error:  # raised again where the program came from
            said, made = {"error": error_message(error)}, b""
        finally:
            limit_memory(None)
    return {**said, "records": records}, made


def _compiled(header: dict[str, Any], data: bytes) -> Message:
    declare_conventions(header["conventions"])
    options = Options.from_json(header["options"])
    read = read_program_message(header["program"], data)
    limit_memory(options.compile_bytes)
    c, artifact = compile_program(read, options, header["target"])
    return {"timings": c.timings, "compile_count": c.compile_count}, artifact.serialize()


def main() -> None:
    """Answer requests until there are no more."""
    serve(answer)


if __name__ == "__main__":
    main()
