# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Headers of artifacts with one value changed, whose checksums are right again; and what becomes of such a program.

python -m tests.c.forging ARTIFACT ARGUMENTS.npz    prints the changes with which it is loaded and is right
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from shlo_disc.errors import DiscError
from shlo_disc.runtime import Artifact, Client

from .c_api import CError, Program

Path_ = tuple[str | int, ...]
"""Keys of objects and places in lists, from the whole header on."""


def values_in(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Each value of a header, and where it stands."""
    if path:
        yield path, value
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from values_in(item, (*path, key))


def others_for(value: Any) -> Iterator[tuple[str, Any]]:
    """Values of the same type, and what the change is called."""
    if isinstance(value, bool):
        yield "not", not value
    elif isinstance(value, int):
        yield from ((f"{number}", number) for number in {0, 1, -1, value + 1, value - 1, 2 * value, 1 << 62} - {value})
    elif isinstance(value, str):
        yield from ((repr(text), text) for text in {"", "x", "f64", "i8", "n0", "2*b", "b + 1"} - {value})
    elif isinstance(value, list) and value:
        yield "emptied", []
        yield "shortened", value[:-1]
        yield "lengthened", [*value, value[-1]]
        if value[::-1] != value:
            yield "reversed", value[::-1]
    elif isinstance(value, dict) and value:
        yield "emptied", {}
    if value is not None:
        yield "null", None


def forged(header: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every change of one value, by what it is called, and the header with it."""
    for path, value in values_in(header):
        name = ".".join(map(str, path))
        if isinstance(path[-1], str):
            yield f"{name} removed", _changed(header, path)
        for what, other in others_for(value):
            yield f"{name} {what}", _changed(header, path, other)


def _changed(header: dict[str, Any], path: Path_, *value: Any) -> dict[str, Any]:
    made = copy.deepcopy(header)
    place: Any = made
    for key in path[:-1]:
        place = place[key]
    if value:
        place[path[-1]] = value[0]
    else:
        del place[path[-1]]
    return made


def sealed(artifact: Artifact, header: dict[str, Any]) -> bytes:
    """The artifact with another header."""
    return Artifact(header, artifact.sections).serialize()


def call_python(data: bytes, arguments: list[np.ndarray]) -> list[np.ndarray] | None:
    """The flat results; None where the program is refused."""
    try:
        results = Client(threads=1).load(data, trust=True)(*arguments)
    except (DiscError, ValueError) as error:
        print(type(error).__name__, str(error)[:150], file=sys.stderr)
        return None
    return list(results) if isinstance(results, tuple | list) else [results]


def call_c(path: Path, arguments: list[np.ndarray]) -> list[np.ndarray] | None:
    """The same by the C API."""
    try:
        return list(Program(path)(*arguments))
    except CError:
        return None


def main(file: str, given: str) -> None:
    """Try all changes. Ends with a failed assertion where a program is loaded and is wrong."""
    artifact, forgery = Artifact.deserialize(Path(file).read_bytes()), Path(file).with_suffix(".forged")
    arguments = [np.load(given)[name] for name in np.load(given).files]
    wanted = call_python(sealed(artifact, dict(artifact.header)), arguments)
    assert wanted is not None
    for name, header in forged(json.loads(artifact.header_text)):
        print(f"trying {name}", file=sys.stderr, flush=True)
        forgery.write_bytes(sealed(artifact, header))
        for how, found in (
            ("Python", call_python(forgery.read_bytes(), arguments)),
            ("C", call_c(forgery, arguments)),
        ):
            if found is None:
                continue
            assert [f.shape for f in found] == [w.shape for w in wanted], (name, how)
            assert all(map(np.array_equal, found, wanted)), (name, how)
            print(f"{how}: {name}")


if __name__ == "__main__":
    main(*sys.argv[1:])
