# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs, errors and log records as data that passes between processes: JSON and bytes, no code."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import Any

from shlo_disc import errors
from shlo_disc.errors import CompilerError, DiscError, Unsupported, UnsupportedError
from shlo_disc.importer.import_program import describe, tree_text
from shlo_disc.importer.programs import DescribedProgram, Importable, JaxProgram, TextProgram
from shlo_disc.importer.reader import Limits
from shlo_disc.options import jax_platforms
from shlo_disc.shape_dialect.dialect.signature import Signature, TensorSpec
from shlo_disc.shape_dialect.symbolic.expr import Expr

LOGGER = logging.getLogger("shlo_disc")


# ---- programs --------------------------------------------------------------------------------------------------------


def program_message(read: Importable, target: str) -> tuple[dict[str, Any], bytes]:
    """A program that has been read. Raises ProgramError when an Exported is for other platforms than the target's."""
    if isinstance(read, JaxProgram):
        read = describe(read, jax_platforms(target))
    said = read._asdict()
    data = said.pop("data")
    said["is_text"] = isinstance(data, str)
    if isinstance(read, DescribedProgram):
        said |= {"signature": _signature_message(read.signature), "hidden": list(read.hidden.items())}
    return said, data.encode(errors="surrogatepass") if isinstance(data, str) else bytes(data)


def read_program_message(said: dict[str, Any], data: bytes) -> Importable:
    """The program that `program_message` was given."""
    is_text = said.pop("is_text")
    said["limits"] = None if said["limits"] is None else Limits(*said["limits"])
    if "signature" not in said:
        said |= {"parameters": tuple(said["parameters"]), "axes": tuple(map(tuple, said["axes"]))}
        said["functions"] = tuple(said["functions"])
        return TextProgram(data.decode(errors="surrogatepass") if is_text else data, **said)
    hidden = {int(position): str(name) for position, name in said.pop("hidden")}
    return DescribedProgram(data, _read_signature(said.pop("signature")), hidden, **said)


def _signature_message(signature: Signature) -> dict[str, Any]:
    return {
        "name": signature.name,
        "arguments": [_spec_message(spec) for spec in signature.arguments],
        "results": [_spec_message(spec) for spec in signature.results],
        "kept": list(signature.kept),
        "least": signature.least,
        "in_tree": tree_text(signature.in_tree),
        "out_tree": tree_text(signature.out_tree),
        "parameters": list(signature.parameters),
        "weights": signature.weights,
    }


def _spec_message(spec: TensorSpec) -> dict[str, Any]:
    return {f.name: getattr(spec, f.name) for f in fields(spec)} | {"dims": [str(d) for d in spec.dims]}


def _read_signature(said: dict[str, Any]) -> Signature:
    arguments, results = (tuple(map(_read_spec, said[key])) for key in ("arguments", "results"))
    trees = said["in_tree"], said["out_tree"]
    names = tuple(said["parameters"])
    return Signature(
        said["name"], arguments, results, tuple(said["kept"]), said["least"], *trees, parameters=names,
        weights=said["weights"],
    )  # fmt: skip


def _read_spec(said: dict[str, Any]) -> TensorSpec:
    dims = tuple(Expr.parse(text) for text in said["dims"])
    return TensorSpec(**{**said, "dims": dims, "layout": tuple(said["layout"]), "axes": tuple(said["axes"])})


# ---- errors ----------------------------------------------------------------------------------------------------------


def error_message(error: BaseException) -> dict[str, Any]:
    """The data needed to raise an error again."""
    said: dict[str, Any] = {
        "type": type(error).__name__,
        "text": error.message if isinstance(error, DiscError) else str(error),
    }
    if isinstance(error, UnsupportedError):
        said["constructs"] = [asdict(c) for c in error.constructs]
    if isinstance(error, OSError):
        said["system"] = [error.errno, error.strerror, error.filename]
    return said


def read_error(said: dict[str, Any]) -> Exception:
    """The error that `error_message` was given; a CompilerError for what is none of ours, nor the system's."""
    if "constructs" in said:
        return UnsupportedError([Unsupported(**row) for row in said["constructs"]])
    if "system" in said:
        number, text, name = said["system"]
        return OSError(number, text, name)
    kind = getattr(errors, said["type"], None)
    if isinstance(kind, type) and issubclass(kind, DiscError):
        return kind(said["text"])
    return CompilerError(f"{said['type']}: {said['text']}")


# ---- log records -----------------------------------------------------------------------------------------------------


class _Recorder(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[tuple[int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        self.records.append((record.levelno, record.getMessage()))


@contextmanager
def recorded(level: int) -> Iterator[list[tuple[int, str]]]:
    """The records that the logger `shlo_disc` receives, from a level on."""
    recorder = _Recorder()
    LOGGER.setLevel(level)
    LOGGER.propagate = False
    LOGGER.addHandler(recorder)
    try:
        yield recorder.records
    finally:
        LOGGER.removeHandler(recorder)


def log_again(records: list[tuple[int, str]]) -> None:
    """Tell the logger of this process what that of another was told."""
    for level, text in records:
        LOGGER.log(level, "%s", text)


__all__ = [
    "LOGGER", "error_message", "log_again", "program_message", "read_error", "read_program_message", "recorded",
]  # fmt: skip
