# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parsing a program: StableHLO text, MLIR bytecode or a portable artifact.

What comes from outside has been read in another process before it is read here (`shlo_disc.importer.reader`).
"""

from __future__ import annotations

from shlo_disc.errors import ProgramError
from shlo_disc.importer.reader import Limits, portable_version, read_program, uses_chlo
from shlo_disc.shape_dialect.mlir import ir, load_chlo, stablehlo


def parse_program(data: str | bytes, context: ir.Context, source: str = "", limits: Limits | None = None) -> ir.Module:
    """Parse StableHLO text, MLIR bytecode or a portable artifact from outside; `source` is the path, for messages.

    Raises ProgramError with the position.
    """
    if isinstance(data, str):
        data = data.encode(errors="surrogatepass")
    return parse_trusted(read_program(data, name_of(source), limits), context)


def parse_trusted(data: bytes, context: ir.Context) -> ir.Module:
    """Parse bytecode, or a portable artifact, that this process made, or `shlo_disc.importer.reader`.

    Raises ProgramError on a dialect we lack.
    """
    if not portable_version(data):
        if uses_chlo(data):
            load_chlo(context)
        return ir.Module.parse(data, context)
    with context:
        try:
            return stablehlo.deserialize_portable_artifact(context, data)
        except ValueError:
            raise ProgramError(
                "the exported program uses ops or attributes outside of StableHLO (such as the sharding rules that JAX "
                "attaches to its custom calls); they have no lowering"
            ) from None


def name_of(source: str | None) -> str:
    """The name in messages of a program that was read from a path; "" when it was given directly."""
    return f"the program {source!r}" if source else "the program"


__all__ = ["name_of", "parse_program", "parse_trusted"]
