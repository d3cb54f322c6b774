# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads, or traces, what the user hands over as a program. Needs no MLIR."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shlo_disc.errors import OptionError, ProgramError, similar_file
from shlo_disc.importer.programs import JaxProgram, Program, TextProgram
from shlo_disc.importer.reader import Limits, check_exported
from shlo_disc.options import CPU
from shlo_disc.runtime.artifact import MAGIC
from shlo_disc.runtime.weight_files import advice_on_file

_SOURCES = (
    "a program is a jax.export.Exported, StableHLO or a serialized Exported (str, bytes or a path), or a JAX function "
    "with args="
)


def read(
    program: Any,
    args: Sequence[Any] | None = None,
    kwargs: dict[str, Any] | None = None,
    constraints: Sequence[str] = (),
    limits: Limits | None = None,
    target: str = CPU,
) -> Program:
    """A jax.export.Exported or what its `serialize` wrote, StableHLO (text, bytecode, portable artifact), a path of
    either, or a JAX function, which is traced for the platform of a target. limits: those of reading what is from
    outside.

    Raises ProgramError when it is none of them or cannot be read.
    """
    if isinstance(program, JaxProgram | TextProgram):
        return program
    if isinstance(program, bytearray | memoryview):
        program = bytes(program)
    if not isinstance(program, str | bytes | os.PathLike):
        return _read_jax(program, args, kwargs, constraints, target)
    if args is not None or kwargs is not None or constraints:
        raise OptionError("args=, kwargs= and constraints= apply to a JAX function; this program states its own shapes")
    text = _read_text(program)._replace(limits=limits)
    _refuse_artifact(text)
    if isinstance(text.data, bytes) and _is_serialized_export(text.data):
        return _read_export(text.data, text.source, limits)
    if text.source and (kind := advice_on_file(text.source)):
        raise ProgramError(f"the program {text.source!r} is neither text nor MLIR bytecode, but {kind}")
    return text


def _refuse_artifact(program: TextProgram) -> None:
    """Raises ProgramError, with what takes it, for a compiled program."""
    if not isinstance(program.data, bytes) or not program.data.startswith(MAGIC):
        return
    if not program.source:
        raise ProgramError(
            "the program is a compiled artifact, which is not compiled again: write the bytes to a file, and call "
            "shlo_disc.load(file, trust=True)"
        )
    file = shlex.quote(program.source)
    raise ProgramError(
        f"the program {program.source!r} is a compiled artifact, which is not compiled again: call "
        f"shlo_disc.load({program.source!r}, trust=True), or use `python -m shlo_disc inspect {file}` or "
        f"`python -m shlo_disc run {file} --trust --dims ...`"
    )


def _is_serialized_export(data: bytes) -> bool:
    """Tells whether bytes are what `Exported.serialize` writes: a FlatBuffer whose first field is a version number."""

    def number(position: int, size: int) -> int:
        return int.from_bytes(data[position : position + size], "little", signed=size == 4)

    root = number(0, 4)
    if not 4 <= root <= len(data) - 4:
        return False
    table = root - number(root, 4)
    if not 4 <= table <= len(data) - 6 or number(table, 2) < 6:
        return False
    field = number(table + 4, 2)
    return 4 <= field <= len(data) - root - 2 and 1 <= number(root + field, 2) <= _MOST_VERSIONS


_MOST_VERSIONS = 1000  # JAX 0.10 writes version 6


def _read_export(data: bytes, source: str, limits: Limits | None) -> JaxProgram:
    """The program that `Exported.serialize` wrote. Raises ProgramError when JAX cannot read it."""
    what = f"the program {source!r}" if source else "the program"
    check_exported(data, what, limits)
    try:
        from jax import export

        return JaxProgram(export.deserialize(bytearray(data)), source=source, limits=limits)
    except ImportError as error:
        raise ProgramError(f"{what} was written by jax.export, which cannot be used here: {error}") from None
    except Exception as error:  # damaged bytes make JAX's reader fail in many ways
        raise ProgramError(f"{what} was written by jax.export, which cannot read it: {error}") from None


def _read_jax(program: Any, args: Any, kwargs: Any, constraints: Sequence[str], target: str) -> JaxProgram:
    if "jax" not in sys.modules and not callable(program):
        raise ProgramError(f"cannot compile an object of type {type(program).__name__}: {_SOURCES}")
    from . import jax_program

    if jax_program.is_exported(program):
        if args is not None or kwargs is not None or constraints:
            raise OptionError("args=, kwargs= and constraints= apply to a JAX function; an Exported has its own")
        return JaxProgram(program)
    if not callable(program):
        raise ProgramError(f"cannot compile an object of type {type(program).__name__}: {_SOURCES}")
    if args is None and kwargs is None:
        raise ProgramError('a JAX function needs args=, e.g. args=(("b, 768", "float32"),)')
    from .jax_platforms import platform_of

    given = () if args is None else args
    return jax_program.export_function(program, given, kwargs or {}, constraints, platform_of(target))


def _read_text(program: str | bytes | os.PathLike[str]) -> TextProgram:
    """The program's text or bytes.

    A string is a path when it names a file, or when it cannot be a program: every module has a bracket.
    Raises ProgramError when the file cannot be read.
    """
    if isinstance(program, bytes):
        return TextProgram(program)
    if isinstance(program, str) and _is_text(program):
        return TextProgram(program)
    path = os.fspath(program)
    if not path:
        raise ProgramError("the program is empty")
    try:
        return TextProgram(Path(path).read_bytes(), path)
    except OSError as error:
        near = similar_file(path) if isinstance(error, FileNotFoundError) else ""
        text = f"cannot read the program {path!r}: {error.strerror}"
        raise ProgramError(f"{text}; {near}" if near else text) from None
    except ValueError as error:
        raise ProgramError(f"cannot read the program {path!r}: {error}") from None


def _is_text(program: str) -> bool:
    if "\n" in program:
        return True
    return any(bracket in program for bracket in "{(") and not os.path.exists(program)
