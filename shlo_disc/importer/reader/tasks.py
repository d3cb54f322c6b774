# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tasks on bytes from outside: MLIR reads and verifies them, writes the program anew, and reads that again.

Runs in a process that may die of it. What comes out is what MLIR wrote of a module that it had found correct.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from shlo_disc.errors import ProgramError
from shlo_disc.shape_dialect.mlir import ir, load_chlo, stablehlo

from . import artifacts
from .formats import BYTECODE_MAGIC, portable_version, uses_chlo
from .text import check_literals, check_nesting, check_strings, decode, mentions_chlo, position_of

_FEW = 16  # elements of a constant to print
_JAX_MLIR = ("jaxlib.mlir.ir", "jaxlib.mlir.dialects.sdy", "jaxlib.mlir.dialects.stablehlo")


class Request(NamedTuple):
    """A program to read, what messages call it, and two contexts that nothing was read in."""

    data: bytes
    what: str
    contexts: tuple[ir.Context, ir.Context]


def read_program(request: Request) -> bytes:
    """StableHLO text or bytecode as bytecode; a portable artifact as one of its version, without JAX's sharding rules.

    Raises ProgramError.
    """
    data, what, contexts = request
    if portable_version(data):
        with _refusing(what):
            data = artifacts.without_sharding_rules(data)
    if data[:4] != BYTECODE_MAGIC:
        return _again(_parse_text(decode(data, what), contexts[0], what), "", what, contexts[1])
    return _again(_parse_bytecode(data, contexts[0], what), portable_version(data), what, contexts[1])


def read_sharded(request: Request) -> bytes:
    """A program with shardings or layouts, text or a portable artifact, as a portable artifact for JAX's bindings.

    Raises ProgramError.
    """
    with _refusing(request.what):
        data = artifacts.rewritten(request.data, _verify, keeps_shardy=True)
        check_strings(data, request.what)
        artifacts.rewritten(data, _verify, keeps_shardy=True)
    return data


def check_exported(request: Request) -> bytes:
    """Tells whether `jax.export` gets to an end with what `Exported.serialize` is said to have written; no bytes.

    What it raises, it raises again where the types of the user are known.
    """
    with contextlib.suppress(Exception):  # damaged bytes make JAX's reader fail in many ways
        from jax import export

        export.deserialize(bytearray(request.data))
    return b""


TASKS: dict[str, Callable[[Request], bytes]] = {
    task.__name__: task for task in (read_program, read_sharded, check_exported)
}


def needed(task: str, data: bytes) -> tuple[str, ...]:
    """The modules that a task imports and that take long to import."""
    if task == "check_exported":
        return ("jax.export",)
    return _JAX_MLIR if task == "read_sharded" or b"sdy" in data or _is_newer(portable_version(data)) else ()


@contextlib.contextmanager
def _refusing(what: str) -> Iterator[None]:
    """Raises ProgramError for what the bindings raise, with the positions that they tell."""
    try:
        yield
    except ir.MLIRError as error:
        found = [f"{position_of(str(d.location))}{d.message.strip()}" for d in error.error_diagnostics]
        raise ProgramError(f"{what} cannot be parsed: {'; '.join(found) or error}") from None
    except (RuntimeError, ValueError) as error:
        raise ProgramError(f"{what} cannot be parsed: {error}") from None


def _parse_text(text: str, context: ir.Context, what: str) -> ir.Module:
    if not text.strip():
        raise ProgramError(f"{what} is empty")
    check_nesting(text, what)
    check_literals(text, what)
    if mentions_chlo(text):
        load_chlo(context)
    with _refusing(what):
        return ir.Module.parse(text, context)


def _parse_bytecode(data: bytes, context: ir.Context, what: str) -> ir.Module:
    """A portable artifact, or bytecode of ordinary StableHLO. Raises ProgramError with the first reason."""
    try:
        return _deserialize(data, context)
    except ValueError as error:
        reason = str(error)
    version = portable_version(data)
    if _is_newer(version):
        return _parse_newer(data, context, what, reason)
    if version:
        raise ProgramError(f"{what} cannot be parsed: {reason}")
    if uses_chlo(data):
        load_chlo(context)
    try:
        return ir.Module.parse(data, context)
    except ir.MLIRError:
        raise ProgramError(f"{what} cannot be parsed: {reason}") from None


def _deserialize(data: bytes, context: ir.Context) -> ir.Module:
    """Read a portable artifact. Raises ValueError with the first reason."""
    reasons: list[str] = []

    def note(diagnostic: ir.Diagnostic) -> bool:
        reasons.append(str(diagnostic))
        return True

    handler = context.attach_diagnostic_handler(note)
    try:
        return stablehlo.deserialize_portable_artifact(context, data)
    except ValueError as error:
        raise ValueError(reasons[0] if reasons else str(error)) from None
    finally:
        handler.detach()


def _is_newer(version: str) -> bool:
    """Tells whether a version of StableHLO, or "", is newer than that of the compiler's bindings."""
    newest = stablehlo.get_current_version()
    return version not in ("", newest) and stablehlo.get_smaller_version(version, newest) == newest


def _parse_newer(data: bytes, context: ir.Context, what: str, reason: str) -> ir.Module:
    """A portable artifact of a newer StableHLO, rewritten by JAX's bindings where they read it.

    Raises ProgramError with the reason why the compiler's bindings did not read it.
    """
    with contextlib.suppress(ProgramError, ValueError):
        return _deserialize(artifacts.rewritten(data, _verify), context)
    version, newest = portable_version(data), stablehlo.get_current_version()
    raise ProgramError(
        f"{what} cannot be parsed: it is a portable artifact of StableHLO {version}, and the compiler reads {newest}, "
        f"which lacks parts of it ({reason}); serialize it for {artifacts.STABLEHLO_VERSION}"
    )


def _again(module: ir.Module, version: str, what: str, context: ir.Context) -> bytes:
    """The module as MLIR writes it, after a look at whether that can be read.

    version: of the portable artifact; "" for bytecode.
    """
    with _refusing(what):
        module.operation.verify()
        data = _portable(module, version) if version else _bytecode(module)
        if not version and b"vhlo\0" in data:
            raise ValueError("it is a portable artifact, but does not begin as one")
        check_strings(data, what)
        if uses_chlo(data):
            load_chlo(context)
        again = stablehlo.deserialize_portable_artifact(context, data) if version else ir.Module.parse(data, context)
        again.operation.verify()
        again.operation.get_asm(large_elements_limit=_FEW)  # types that hold one twice may be too long for it
    return data


def _portable(module: ir.Module, version: str) -> bytes:
    oldest, newest = stablehlo.get_minimum_version(), stablehlo.get_current_version()
    is_known = stablehlo.get_smaller_version(version, oldest) == oldest
    version = stablehlo.get_smaller_version(version, newest) if is_known else newest
    return bytes(stablehlo.serialize_portable_artifact(module, version))


def _bytecode(module: ir.Module) -> bytes:
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def _verify(module: Any) -> None:
    module.operation.verify()


__all__ = ["TASKS", "Request", "needed"]
