# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The inputs of a compiled program, as one SHA-256: the program, the options, the processor and the compiler."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import platform
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from shlo_disc.importer.jax_program import without_locations
from shlo_disc.importer.programs import Program, TextProgram
from shlo_disc.options import Options
from shlo_disc.runtime import _native
from shlo_disc.runtime.cpu_features import usable_features
from shlo_disc.runtime.digests import digest_of
from shlo_disc.runtime.native_module import read_program
from shlo_disc.shape_dialect.custom_calls import registered_conventions

from .tuning import recorded_schedules

_PACKAGE = Path(__file__).resolve().parents[2]
_COMPILED_WITH = ("llvmlite", "torch-mlir")


def cache_key(program: Program, options: Options) -> str:
    """The key of a program that has been read, in hexadecimal.

    A program of JAX or of the plugin is taken without its source locations, as JAX's own compilation cache does by
    default. Options that change only how a program is called are left out, and machines of one level of processors have
    the same key.
    """
    parts = _program_parts(program)
    machine = (platform.machine(), *(usable_features() if "host" in options.cpus else ()))
    recorded = [sorted(recorded_schedules(replace(options, cpu=cpu)).items()) for cpu in options.cpus]
    calls = [call for call in registered_conventions() if call[0].encode() in parts[1]]
    return digest_of([*parts, *map(_bytes, (options.code_key(), recorded, machine, calls)), _compiler()])


def _program_parts(program: Program) -> list[bytes]:
    if isinstance(program, TextProgram):
        stated = program.participants, program.parameters, program.axes, program.weights, len(program.functions)
        data = _bytes(program.data)
        return [b"text", without_places(data) if program.trusted else data, *map(_bytes, stated)]
    exported = program.exported
    code = bytes(exported.mlir_module_serialized)
    if program.source is None:  # bytecode of others is not read here
        code = without_locations(exported)
    call = (exported.fun_name, exported.in_tree, exported.in_avals, exported.out_tree, exported.out_avals)
    module = (exported.module_kept_var_idx, exported.platforms, tuple(program.sizes), program.parameters)
    return [b"jax", code, *map(_bytes, (*call, *module))]


def without_places(program: bytes) -> bytes:
    """A program's content without source locations and names, as the plugin compares programs; others as they are."""
    try:
        seen = read_program(program, with_places=False)
    except ValueError:
        return program
    skeleton = seen["skeleton"]
    return b"%d:%b%b" % (len(skeleton), skeleton, _bytes(seen["numbers"]))


def _bytes(part: Any) -> bytes:
    return part if isinstance(part, bytes) else str(part).encode(errors="surrogatepass")


@functools.cache
def package_digest(package: Path = _PACKAGE) -> str:
    """The SHA-256 of a package's sources, in hexadecimal: of their names and texts, each behind its length.

    `runtime/native/pjrt/standalone/kept_answers.cpp` computes the same without Python.
    """
    digest = hashlib.sha256()
    for name in sorted(file.relative_to(package).as_posix() for file in package.rglob("*.py")):
        for part in (name.encode(), (package / name).read_bytes()):
            digest.update(b"%d:" % len(part))
            digest.update(part)
    return digest.hexdigest()


@functools.cache
def _compiler() -> bytes:
    """The contents of this package and the versions of what it compiles with."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in _COMPILED_WITH]
    native = Path(_native.__file__).read_bytes()
    return digest_of([sys.version.encode(), *map(_bytes, versions), package_digest().encode(), native]).encode()
