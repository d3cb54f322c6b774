# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process that reads bytecode: bytes on standard input, text on standard output.

Exit status 0: standard output is the program as text. 1: it is the reason why the bytes cannot be read. Anything else,
a signal above all, means that MLIR's reader did not survive them.
"""

from __future__ import annotations

import sys

from shlo_disc.mlir import ir, stablehlo
from shlo_disc.shape_dialect.dialect import make_context


def read(data: bytes, context: ir.Context) -> ir.Module:
    """A portable artifact, or bytecode of ordinary StableHLO. Raises ValueError with the first reason."""
    reasons: list[str] = []

    def note(diagnostic: ir.Diagnostic) -> bool:
        reasons.append(str(diagnostic))
        return True

    handler = context.attach_diagnostic_handler(note)
    try:
        return stablehlo.deserialize_portable_artifact(context, data)
    except ValueError:
        pass
    finally:
        handler.detach()
    try:
        return ir.Module.parse(data, context)
    except ir.MLIRError as error:
        raise ValueError(reasons[0] if reasons else str(error)) from None


def main() -> int:
    """Read, verify and print the program."""
    try:
        module = read(sys.stdin.buffer.read(), make_context())
        module.operation.verify()
        text = module.operation.get_asm(enable_debug_info=True)
    except (ir.MLIRError, RuntimeError, ValueError) as error:
        sys.stdout.write(str(error))
        return 1
    sys.stdout.buffer.write(text.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
