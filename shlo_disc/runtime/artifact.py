# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled program as data: a header, and sections such as object code, constants, and the program it came from.

File format (all integers little-endian, 64-bit unless noted):
  magic "SHLODISC", 32-bit format version, 32-bit number of sections, file length,
  then one row a section: 8-byte name padded with zeros, offset, length, SHA-256 of the contents,
  then the SHA-256 of everything before it, then the sections, each starting at a multiple of 64, zeros between.
The code of one program for several levels of processors is in sections "object", "object1", "object2" and so on, from
the least demanding one on, each with a header of its own, "header1" and so on, and with constants where these differ.
"packed", "packed1" and so on have the constants as products of a level read them, where the artifact is `prepacked`.
There is exactly one way to write a given artifact, and nothing that is not covered by a checksum or checked to be zero.
Artifacts are written here and read by the native core (`native/artifact/`), for C as for Python.
"""

from __future__ import annotations

import contextlib
import hashlib
import html
import json
import mmap
import os
import secrets
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from shlo_disc.errors import ArtifactError, check_folder, reading
from shlo_disc.shape_dialect.custom_calls import OF_THIS_PROCESS

from . import _native
from .described import program_table, program_text, size_text, target_row
from .native_owner import NativeOwner
from .weight_files import check_ending, kind_of_weights

MAGIC = b"SHLODISC"
FORMAT_VERSION = 1
ALIGNMENT = 64  # bytes; constants are used where they lie
HEADER_DIGEST = "disc_header_digest"
"""The symbol of an object that has its header's digest."""

_PREFIX = struct.Struct("<8sIIQ")
_ROW = struct.Struct("<8sQQ32s")
_DIGEST_BYTES = hashlib.sha256().digest_size
_HEADER = "header"
_LEVELLED = ("header", "object", "consts", "packed")
"""The sections that each level may have."""

WRITTEN_BY = "compiled files are written by `save` of an executable, and by `python -m shlo_disc compile`"
_MOST_LEVELS = 9
_MOST_SECTIONS = 64

Bytes = bytes | bytearray | memoryview


@dataclass(frozen=True)
class Artifact(NativeOwner):
    """One compiled program.

    `header` is JSON data, as the native interface defines it. Sections are written in order; a name has up to 8 ASCII
    characters.
    """

    header: Mapping[str, Any]
    sections: Mapping[str, Bytes]
    trusted: bool = field(default=True, compare=False)
    """False for artifacts read from bytes without `trust=True`: their native code is never loaded."""
    _read: bytes = field(default=b"", init=False, compare=False)  # the header as it was read; not that of a copy

    def __repr__(self) -> str:
        sections = ", ".join(f"{name}: {size_text(len(data))}" for name, data in self.sections.items() if len(data))
        return f"<Artifact of {self._program()}; {sections}{'' if self.trusted else '; not trusted'}>"

    def _program(self) -> str:
        """The program in a line. The header of bytes from outside may be any JSON data."""
        try:
            return program_text(self.header)
        except (KeyError, TypeError, AttributeError):
            return "a malformed header"

    def _repr_html_(self) -> str:
        sizes = [(f"section {name}", size_text(len(data))) for name, data in self.sections.items()]
        try:
            return program_table(f"Artifact {self.header['name']}", self.header, [target_row(self.header), *sizes])
        except (KeyError, TypeError, AttributeError):
            return html.escape(repr(self))

    @classmethod
    def of(cls, header: Mapping[str, Any], code: Bytes, constants: Bytes = b"", portable: Bytes = b"") -> Artifact:
        """A program for CPUs: an ELF relocatable object, the block with the constants of the header and, optionally,
        the StableHLO portable artifact."""
        return cls(header, {"object": code, "consts": constants, "portable": portable})

    @property
    def object(self) -> Bytes:
        """The object code for CPUs; empty if there is none."""
        return self.sections.get("object", b"")

    @property
    def constants(self) -> Bytes:
        """The block with the constants of the header."""
        return self.sections.get("consts", b"")

    @property
    def packed(self) -> Bytes:
        """The constants in the layout that matrix products read; empty if they are packed when the program is
        loaded."""
        return self.sections.get("packed", b"")

    def prepacked(self) -> Artifact:
        """The same program with prepacked constants, which loading would otherwise pack in its own memory.

        Constants that only matrix products read are stored in packed form only. Processes that map the same file share
        all constants. Programs without such constants, and programs for GPUs, do not change. Raises ArtifactError for a
        malformed header.
        """
        made = Artifact.of_levels([level._with_packed() for level in self.levels()])
        return self._with(b"", made.header, made.sections)

    def _with_packed(self) -> Artifact:
        """One level as `prepacked` has it."""
        if self.header.get("prepacked") or not self.header.get("packs"):
            return self
        packed = _native.pack_constants(self.header_text, self.constants)
        if not packed:
            return self
        first = len(self.header["arguments"]) + len(self.header["results"])
        unread = {buffer - first for buffer in self.header["packed_only"]}
        rows, constants, moved = [], bytearray(), {}
        for number, row in enumerate(self.header["constants"]):
            place, length = (row["offset"], row["bytes"]) if number not in unread else (0, 0)
            if length and (place, length) not in moved:
                constants += bytes(_round_up(len(constants)) - len(constants))
                moved[place, length] = len(constants)
                constants += self.constants[place : place + length]
            rows.append({**row, "offset": moved.get((place, length), 0), "bytes": length})
        header = {**self.header, "constants": rows, "prepacked": True}
        return Artifact(header, {**self.sections, "consts": bytes(constants), "packed": packed})

    @property
    def portable(self) -> Bytes:
        """The StableHLO portable artifact; empty if it was left out."""
        return self.sections.get("portable", b"")

    @classmethod
    def of_levels(cls, levels: Sequence[Artifact]) -> Artifact:
        """One program compiled for several levels of processors, the least demanding one first.

        Sections other than code and constants are those of the first level. Raises ArtifactError for more than nine
        levels.
        """
        first, *others = levels
        if len(levels) > _MOST_LEVELS:
            raise ArtifactError(f"an artifact has code for {_MOST_LEVELS} levels at most, not for {len(levels)}")
        sections = dict(first.sections)
        for number, level in enumerate(others, 1):
            sections |= {f"header{number}": level.header_text, f"object{number}": level.object}
            if level.constants != first.constants:
                sections[f"consts{number}"] = level.constants
            if level.packed:
                sections[f"packed{number}"] = level.packed
        return cls(first.header, sections)

    def levels(self) -> list[Artifact]:
        """The program for each level of processors in the artifact, the least demanding one first.

        Raises ArtifactError for a malformed header.
        """
        others = [name for name in self.sections if name[:-1] in _LEVELLED and name[-1:].isdigit()]
        common = {name: data for name, data in self.sections.items() if name not in others}
        first = self if not others else self._with(self.header_text, self.header, common)
        found = [first]
        while f"header{len(found)}" in self.sections:
            own = {n: self.sections[k] for n in _LEVELLED if (k := f"{n}{len(found)}") in self.sections}
            text = bytes(own.pop("header"))
            found.append(self._with(text, _decode_header(text), {**common, "object": b"", "packed": b"", **own}))
        return found

    def level(self, cpu: str = "", to_run: bool = True) -> Artifact:
        """The program for the best level that this processor supports, or for the level `cpu`.

        to_run: it is not only to be read. Raises ArtifactError if there is no code for it, or, to run, where another
        level runs here and this one does not.
        """
        return self.levels()[self.level_number(cpu, to_run)]

    def level_number(self, cpu: str = "", to_run: bool = True) -> int:
        """The position of that level in `levels`. Raises the same errors as `level`."""
        return _native.choose_level([level.header_text for level in self.levels()], cpu, to_run)

    def _with(self, text: bytes, header: Mapping[str, Any], sections: Mapping[str, Bytes]) -> Artifact:
        """Another artifact, as trusted as this one."""
        made = Artifact(header, sections, trusted=self.trusted)
        object.__setattr__(made, "_read", text)
        return made

    def check_portable(self) -> None:
        """Raise ArtifactError for a program that calls functions that exist only in this process."""
        for name, what in OF_THIS_PROCESS.items():
            if f'"target":"{name}"'.encode() in self.header_text:
                raise ArtifactError(
                    f"the program calls {what}, which no other process has: compile the function where it is to run"
                )

    def __reduce__(self) -> Any:
        """For pickle. What is read back is not trusted, as no artifact from outside is."""
        self.check_portable()
        return Artifact.deserialize, (self.serialize(),)

    @property
    def header_text(self) -> bytes:
        """The header as JSON. Raises ArtifactError if it is not JSON data."""
        return self._read or _encode_header(self.header)

    def header_digest(self) -> bytes:
        """The digest of the header, which the object code contains as `HEADER_DIGEST`, so that it runs with no other
        one.

        It does not change with `prepacked`, nor when the plugin serializes the artifact.
        """
        digest: bytes = _native.header_digest(self.header_text)
        return digest

    def serialize(self) -> bytes:
        """The artifact as bytes. Raises ArtifactError if the header is not JSON data, or for an invalid section
        name."""
        sections = {_HEADER: self.header_text, **self.sections}
        wrong = [n for n in self.sections if n == _HEADER or not (n.isascii() and 0 < len(n) <= 8 and "\0" not in n)]
        if wrong or len(sections) > _MOST_SECTIONS:
            raise ArtifactError(f"{wrong[0]!r} is no name of a section" if wrong else "the artifact has many sections")
        first = offset = _table_bytes(len(sections))
        rows, parts = b"", []
        for name, contents in sections.items():
            offset = _round_up(offset)
            view = memoryview(contents).cast("B")
            rows += _ROW.pack(name.encode(), offset, view.nbytes, hashlib.sha256(view).digest())
            parts.append((offset, view))
            offset += view.nbytes
        table = _PREFIX.pack(MAGIC, FORMAT_VERSION, len(sections), offset) + rows
        data = bytearray(offset)
        data[:first] = table + hashlib.sha256(table).digest()
        for start, view in parts:
            data[start : start + view.nbytes] = view
        return bytes(data)

    @classmethod
    def deserialize(cls, data: Bytes, *, trust: bool = False) -> Artifact:
        """Read and check an artifact. Raises ArtifactError if it is damaged or has another format version.

        The bytes may contain native code, which can do anything that this process can: pass `trust=True` only if you
        know who made them. Without it you can read the header and the portable program, but not load the program.
        """
        view = memoryview(data).cast("B")
        sections = {name: view[start : start + length] for name, start, length in _native.sections_of(view)}
        text = bytes(sections.pop(_HEADER))
        artifact = cls(_decode_header(text), sections, trusted=trust)
        object.__setattr__(artifact, "_read", text)
        return artifact

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the artifact to a file atomically: until then, readers get the previous file.

        Raises ArtifactError as `serialize` and `check_portable` do, OptionError for a path with the ending of another
        format, such as .npz, and OSError.
        """
        check_ending(path, ".disc")
        self.check_portable()
        data = self.serialize()
        with replacing(path) as file:
            file.write(data)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, trust: bool = False) -> Artifact:
        """Read a file of `save`. The file is mapped, so processes that load it share its constants.

        Do not change the file in place while the program is in use; `save` replaces the file. `trust` and the errors
        are those of `deserialize`, and OSError.
        """
        with reading(path, WRITTEN_BY), Path(path).open("rb") as file:
            try:
                data: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except ValueError:  # it is empty
                data = b""
        if data[: len(MAGIC)] != MAGIC and (kind := kind_of_weights(path)):
            raise ArtifactError(
                f"{os.fspath(path)!r} is {kind}, which holds weights and no program: load the program, a file that "
                "`save` wrote, and bind the weights by bind(weights=...)"
            )
        return cls.deserialize(data, trust=trust)

    def fingerprint(self) -> str:
        """The SHA-256 of the serialized artifact, in hexadecimal."""
        return hashlib.sha256(self.serialize()).hexdigest()


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of the one at `path` at the end. Raises OSError, which names `path`."""
    target = Path(path)
    check_folder(target)
    unfinished = target.with_name(f".{target.name}-{secrets.token_hex(8)}")
    try:
        with open(os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666), "w+b") as file:
            yield file
        os.replace(unfinished, target)
    except OSError as error:
        if error.filename not in (None, str(unfinished)):  # one that the body raises for another file
            raise
        raise type(error)(error.errno, error.strerror, str(target)) from None
    finally:
        unfinished.unlink(missing_ok=True)


def _round_up(offset: int) -> int:
    return (offset + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def _table_bytes(count: int) -> int:
    return _PREFIX.size + _ROW.size * count + _DIGEST_BYTES


def _decode_header(text: bytes) -> Any:
    """A header's JSON. Raises ArtifactError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"the header is not JSON data: {error}") from None


def _encode_header(header: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise ArtifactError(f"the header is not JSON data: {error}") from error
    except RecursionError:
        raise ArtifactError("the header is not JSON data: it is too deep") from None
