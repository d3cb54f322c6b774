# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler of the plugin in processes without Python, which start this module and ask it through a socket.

The other end is `runtime/native/pjrt/standalone/compiler_process.cpp`. A request names a task. Its data are parts,
whose sizes are in the header: what the task works on, then the names of functions that programs may call. Programs are
not trusted: each is read in a process of its own before it is compiled.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import logging
import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shlo_disc.driver.cache.files import CacheDirectory
from shlo_disc.driver.cache.key import package_digest
from shlo_disc.driver.cache.shared import flush_stores, shared_entries
from shlo_disc.driver.cache.store import ENVIRONMENT_VARIABLE
from shlo_disc.errors import ArtifactError, OptionError
from shlo_disc.importer.child import Message, serve
from shlo_disc.importer.reader import frames
from shlo_disc.options import Options
from shlo_disc.runtime import Artifact
from shlo_disc.runtime.native_module import read_program, release
from shlo_disc.shape_dialect.custom_calls import declare_conventions

from . import compile as compiler

_LOGGER = logging.getLogger("shlo_disc")
Answer = tuple[dict[str, Any], list[bytes]]


@dataclass(frozen=True)
class Request:
    """A request: its header, the parts that the task works on, and the names of functions of XLA's FFI."""

    header: dict[str, Any]
    parts: list[bytes]
    functions: list[str]


def hello(request: Request) -> Answer:
    """The release that compiles."""
    return {"release": release}, []


def read(request: Request) -> Answer:
    """A program of any form as a portable artifact for one device, if it can be one."""
    return {}, [_plain(request.parts[0])]


def compile_program(request: Request) -> Answer:
    """The artifact of a program."""
    most, participants = request.header["max_programs"], request.header["participants"]
    program = _plain(request.parts[0], participants)
    with _noted(program, "compiled", most):
        return {}, [compiler.artifact_of_program(program, most, participants).serialize()]


def generalize(request: Request) -> Answer:
    """The artifact of a program with symbols, and its parts as the table has them; nothing where there is none."""
    most, participants = request.header["max_programs"], request.header["participants"]
    programs = [_plain(program, participants) for program in request.parts]
    if any(_numbers(plain) != _numbers(given) for plain, given in zip(programs, request.parts, strict=True)):
        return {}, []
    with _noted(programs[-1], "compiled_symbolic", most):
        found = compiler.symbolic_program(programs, max_programs=most, participants=participants)
    if found is None:
        return {}, []
    symbols, steps, expected, hidden, least, given = found.for_table()
    lists = {"symbols": symbols, "expected": expected, "hidden": hidden, "least": least, "given": given}
    return {**lists, "steps": list(itertools.chain(*steps))}, [found.artifact.serialize()]


def for_devices(request: Request) -> Answer:
    """The program that each of several devices runs, and the attributes of its module that say how arrays lie."""
    program = compiler.read_untrusted(request.parts[0])
    each, attributes = compiler.for_devices(program, request.header["replicas"], request.header["partitions"])
    return {"attributes": attributes}, [each]


def serialize(request: Request) -> Answer:
    """The bytes of an executable."""
    data, program, options, *hidden = request.parts
    artifact = Artifact.deserialize(data, trust=True)
    return {}, [compiler.serialize(artifact, program, options, request.header["symbols"], hidden)]


_TASKS: dict[str, Callable[[Request], Answer]] = {
    "hello": hello, "read": read, "compile": compile_program, "generalize": generalize,
    "for_devices": for_devices, "serialize": serialize,
}  # fmt: skip


def _plain(program: bytes, participants: int = 1) -> bytes:
    """A program from outside that is known to be whole, for one device, or for each of several."""
    program = compiler.read_untrusted(program)
    is_placed = participants == 1 and compiler.states_placement(program)
    return compiler.for_one_device(program) if is_placed else program


def _numbers(program: bytes) -> tuple[bytes, list[int]]:
    """A program as the table of the plugin sees it."""
    seen = read_program(program, with_places=False)
    return seen["skeleton"], seen["numbers"]


@contextlib.contextmanager
def _noted(program: bytes, how: str, max_programs: int) -> Iterator[None]:
    """Record a program, where the user has asked for that, and count it where functions may have so many."""
    start = time.perf_counter()
    compiler.record_program(program)
    yield
    if max_programs:
        compiler.note_program(program, how, time.perf_counter() - start)


# ---- messages --------------------------------------------------------------------------------------------------------


def answer(header: dict[str, Any], data: bytes) -> Message:
    """The answer to a request, or the error that there was. The compile cache keeps answers of requests with a key."""
    if header["key"] and (shared := _shared_answer(header["key"])):
        return shared
    request = _request(header, data)
    declare_conventions((name, "ffi") for name in request.functions)
    try:
        said, parts = _TASKS[header["task"]](request)
    except Exception as error:  # raised again where the program came from
        return {"error": list(compiler.describe_error(error))}, b""
    message = {**said, "sizes": [len(part) for part in parts]}, b"".join(parts)
    if header["key"] and parts:
        _keep(header["key"], *message)
    return message


def _request(header: dict[str, Any], data: bytes) -> Request:
    ends = list(itertools.accumulate(header["sizes"]))
    parts = [data[end - size : end] for end, size in zip(ends, header["sizes"], strict=True)]
    count = len(parts) - header["functions"]
    return Request(header, parts[:count], [name.decode(errors="replace") for name in parts[count:]])


# ---- the compile cache -----------------------------------------------------------------------------------------------


class AnswerCache(CacheDirectory):
    """Answers, each behind its SHA-256. `standalone/kept_answers.cpp` makes the keys and reads the files."""

    suffix = ".answer"


_directory = ""


def _cache() -> AnswerCache | None:
    if not _directory:
        return None
    options = Options()
    cache = AnswerCache(Path(_directory).expanduser(), options.cache_bytes, shared_entries(options))
    cache.prepare()
    return cache


def _keep(key: str, header: dict[str, Any], data: bytes) -> None:
    """Keep an answer with the digest of the compiler that gave it. What cannot be written is not kept."""
    text = json.dumps({**header, "compiler": package_digest()}).encode()
    contents = frames.packed(text, data)
    try:
        if cache := _cache():
            cache.write(key, hashlib.sha256(contents).digest() + contents)
    except (OSError, OptionError, ArtifactError) as error:
        _LOGGER.warning("compile cache %r: an answer cannot be written: %s", _directory, error)


def _shared_answer(key: str) -> Message | None:
    """The answer of this very compiler on another machine. The plugin has looked into the directory already."""
    try:
        cache = _cache()
        found = cache.read_shared(key) if cache else None
    except (OSError, OptionError) as error:
        _LOGGER.warning("compile cache %r: an answer cannot be read: %s", _directory, error)
        return None
    if found is None:
        return None
    text, data = frames.unpacked(found[hashlib.sha256().digest_size :], 2)  # whole, for it was signed
    header = json.loads(text)
    return (header, data) if header.pop("compiler") == package_digest() else None


def _end_with_parent() -> None:
    """End this process when nobody is at the other end of the socket, also in the middle of a compile."""
    watched = select.poll()
    watched.register(0, 0)  # hang-ups alone, which are always told
    watched.poll()
    flush_stores()
    os._exit(0)


def main() -> None:
    """Answer requests until there are no more."""
    global _directory
    if _directory := os.environ.get(ENVIRONMENT_VARIABLE, ""):
        os.environ[ENVIRONMENT_VARIABLE] = ""  # it keeps answers, and no programs besides
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(ConnectionError):
        serve(answer)


if __name__ == "__main__":
    main()
