# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes programs into a folder: two files for each, whose name depends on nothing but the program."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
import platform
import re
import threading
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from shlo_disc.errors import DiscError
from shlo_disc.importer.parse import parse_program
from shlo_disc.importer.programs import JaxProgram
from shlo_disc.importer.reader.artifacts import rewritten
from shlo_disc.importer.reader.formats import BYTECODE_MAGIC
from shlo_disc.importer.reader.shardy import remove_shardy

from .elide import elide_constants

MOST_BYTES = 256 << 20  # of a folder
MOST_PROGRAM_BYTES = 16 << 20
MOST_FILES = 4000
SCHEMA = 1

_PACKAGES = ("shlo_disc", "jax", "jaxlib", "torch", "torch-mlir", "numpy")
_log = logging.getLogger("shlo_disc")
_full: set[str] = set()


class _Recorded(NamedTuple):
    """A program without large constants. suffix: how its file's name ends. elided: what was taken out."""

    data: bytes
    suffix: str
    name: str
    arguments: list[str]
    results: list[str]
    elided: list[dict[str, str]]


def record(folder: str, read: Any, front: str) -> Path | None:
    """Write a program that a front end has read; the file that describes it, None where it could not be written."""
    try:
        recorded = _of_exported(read.exported) if isinstance(read, JaxProgram) else _of_data(read.data)
        return _write(Path(folder), recorded, front)
    except (DiscError, OSError, ValueError) as error:
        _log.warning("a program is not recorded: %s", error)
        return None


def _of_exported(exported: Any) -> _Recorded:
    """A `jax.export.Exported`; as its module where its pytrees cannot be written."""
    module = _of_data(exported.mlir_module_serialized)
    without = dataclasses.replace(exported, mlir_module_serialized=module.data)
    try:
        return module._replace(data=bytes(without.serialize()), suffix=".jax")
    except (ValueError, TypeError):
        return module


def _of_data(data: str | bytes) -> _Recorded:
    if isinstance(data, bytes) and data.startswith(BYTECODE_MAGIC):
        return _of_artifact(data)
    return _of_text(data if isinstance(data, str) else data.decode())


def _of_artifact(data: bytes) -> _Recorded:
    """A portable artifact, read by JAX's bindings, which know what JAX puts into it. Shardings are left out."""
    from jaxlib.mlir import ir

    described: list[Any] = []

    def rewrite(module: Any) -> None:
        remove_shardy(module)
        described.extend([elide_constants(module, ir), *_signature(module, ir)])

    made = rewritten(data, rewrite)
    elided, name, arguments, results = described
    return _Recorded(made, ".mlirbc", name, arguments, results, elided)


def _of_text(text: str) -> _Recorded:
    """Text, which may have ops of ours."""
    from shlo_disc.shape_dialect.dialect.context import make_context
    from shlo_disc.shape_dialect.mlir import ir

    context = make_context()
    with context:
        module = parse_program(text, context)
        elided = elide_constants(module, ir)
        name, arguments, results = _signature(module, ir)
        made = str(module) if elided else text
    return _Recorded(made.encode(), ".mlir", name, arguments, results, elided)


def _signature(module: Any, ir: Any) -> tuple[str, list[str], list[str]]:
    """A module's name, and the types of the arguments and results of its entry."""
    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    names = [ir.StringAttr(op.attributes["sym_name"]).value for op in functions]
    entry = functions[names.index("main")] if "main" in names else functions[0]
    signature = ir.FunctionType(ir.TypeAttr(entry.attributes["function_type"]).value)
    attributes = module.operation.attributes
    name = names[functions.index(entry)]
    if "sym_name" in attributes:
        name = ir.StringAttr(attributes["sym_name"]).value
    return name, [str(kind) for kind in signature.inputs], [str(kind) for kind in signature.results]


def _write(folder: Path, recorded: _Recorded, front: str) -> Path | None:
    if len(recorded.data) > MOST_PROGRAM_BYTES:
        raise ValueError(f"{recorded.name} takes {len(recorded.data)} bytes without its constants")
    digest = hashlib.sha256(recorded.data).hexdigest()[:16]
    stem = f"{re.sub(r'[^A-Za-z0-9_.-]', '_', recorded.name)[:80]}-{digest}"
    about = folder / f"{stem}.json"
    if about.exists():
        return about
    folder.mkdir(parents=True, exist_ok=True)
    if _is_full(folder, len(recorded.data)):
        return None
    _replace(folder / f"{stem}{recorded.suffix}", recorded.data)
    described = {
        "schema": SCHEMA,
        "program": f"{stem}{recorded.suffix}",
        "front": front,
        "name": recorded.name,
        "arguments": recorded.arguments,
        "results": recorded.results,
        "elided": recorded.elided,
        "versions": {name: found for name in _PACKAGES if (found := _version(name))},
        "machine": platform.machine(),
    }
    _replace(about, json.dumps(described, indent=1).encode())
    return about


def _is_full(folder: Path, more: int) -> bool:
    """Tells whether a folder may take no more; that is told once."""
    sizes = [entry.stat().st_size for entry in os.scandir(folder) if entry.is_file()]
    is_full = len(sizes) + 2 > MOST_FILES or sum(sizes) + more > MOST_BYTES
    if is_full and str(folder) not in _full:
        _full.add(str(folder))
        _log.warning("%s has %d files and %d bytes: no more programs are recorded", folder, len(sizes), sum(sizes))
    return is_full


def _replace(path: Path, data: bytes) -> None:
    """Write a file at once, whoever else writes it."""
    new = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    new.write_bytes(data)
    new.replace(path)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


__all__ = ["MOST_BYTES", "MOST_FILES", "MOST_PROGRAM_BYTES", "SCHEMA", "record"]
