# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imports go one way: each room of the package uses those above it in `ORDER` only, lazily or for types as well."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import shlo_disc

ROOT = Path(shlo_disc.__file__).parent

FLOORS = (
    ("errors", "options"),  # what everything stands on
    ("shape_dialect",),  # what is known of shapes and ops
    (
        "runtime",
        "transforms",
        "verify",
    ),  # loading and running without MLIR; rewriting; checks that share nothing with it
    ("importer", "lowering"),  # front ends; what targets share
    ("lowering_cpu", "lowering_gpu"),  # what a target does in its own way
    ("driver",),  # one program from source to artifact
    ("report", "torch"),  # explanations, listings and the page; PyTorch's front door
    ("api",),  # what users call
    ("numpy", "pjrt"),  # what is built of it; JAX's other front door
    ("tools",),  # programs about programs
    ("__init__", "__main__"),
)
"""The rooms, files and folders of the package, from the ground up. A room uses those of lower floors, and a room of its
floor that stands before it."""

ORDER = tuple(room for floor in FLOORS for room in floor)

UPWARDS = {("driver", "report")}
"""`Executable` asks for its explanation, when it is wanted."""

PARTS = (
    "policy", "compile_state", "symbolic", "custom_calls", "dtypes", "mlir", "dialect", "dense", "utils", "ops",
    "build", "verifier", "inference",
)  # fmt: skip
"""The same of the parts of `shape_dialect`."""


LOWERINGS = ("lowering", "lowering_cpu", "lowering_gpu")
"""The rooms that decide nothing: they read from the module what `transforms` has written there."""


def room_of(parts: tuple[str, ...]) -> str:
    """The room of a module of the package, by the parts of its name."""
    return parts[0] if parts else "__init__"


def imported(path: Path) -> Iterator[tuple[tuple[str, ...], int]]:
    """The modules of the package that a file imports anywhere in it, `importlib` included, and the lines."""
    inside = ("shlo_disc", *path.relative_to(ROOT).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            base = inside[: len(inside) - node.level + 1] if node.level else ()
            module = (*base, *(node.module or "").split("."))
            names = [(*(part for part in module if part), alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [tuple(alias.name.split(".")) for alias in node.names]
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.startswith("shlo_disc.importer.")
        ):
            names = [tuple(node.value.split("."))]
        else:
            continue
        yield from ((existing(name[1:]), node.lineno) for name in names if name[0] == "shlo_disc")


def existing(name: tuple[str, ...]) -> tuple[str, ...]:
    """The module that a dotted name begins with: the rest names something in it."""
    while name and not (ROOT.joinpath(*name).is_dir() or ROOT.joinpath(*name).with_suffix(".py").is_file()):
        name = name[:-1]
    return name


def files() -> dict[str, list[Path]]:
    """The files of each room."""
    found: dict[str, list[Path]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found.setdefault(room_of(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts), []).append(path)
    return found


def test_every_room_has_its_place() -> None:
    assert sorted(files()) == sorted(ORDER) and len(set(ORDER)) == len(ORDER)
    assert len(FLOORS) <= 11


@pytest.mark.parametrize("room", ORDER)
def test_imports_go_one_way(room: str) -> None:
    allowed = ORDER[: ORDER.index(room) + 1]
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {'.'.join(module) or 'shlo_disc'}"
        for path in files()[room]
        for module, line in imported(path)
        if room_of(module) not in allowed and (room, room_of(module)) not in UPWARDS
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("room", LOWERINGS)
def test_lowering_reads_decisions_from_the_module(room: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {'.'.join(module)}"
        for path in files()[room]
        for module, line in imported(path)
        if room_of(module) == "transforms"
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("part", PARTS)
def test_imports_in_the_dialect_go_one_way(part: str) -> None:
    allowed = PARTS[: PARTS.index(part) + 1]
    place = ROOT / "shape_dialect" / part
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {'.'.join(module)}"
        for path in (place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")])
        for module, line in imported(path)
        if module[:1] == ("shape_dialect",) and len(module) > 1 and module[1] not in allowed
    ]
    assert not wrong, "\n".join(wrong)
    names = {path.stem for path in (ROOT / "shape_dialect").iterdir() if not path.name.startswith("__")}
    assert names == set(PARTS)


NATIVE = ROOT / "runtime" / "native"

NATIVE_ORDER = (
    "core", "kernels", "collectives", "program", "cuda", "artifact", "capi", "triton", "python", "bytecode",
    "interpreter", "pjrt", "module.cpp",
)  # fmt: skip
"""The rooms of the native runtime: what memory and threads are, products and the like, ..., the module of them all."""


def included(path: Path) -> Iterator[tuple[str, int]]:
    """The rooms that a file of the native runtime includes headers of, and the lines."""
    for line, text in enumerate(path.read_text().splitlines(), 1):
        if text.startswith('#include "') and "/" in text:
            yield text.split('"')[1].split("/")[0], line


@pytest.mark.skipif(not NATIVE.is_dir(), reason="the sources of the native runtime are not installed")
@pytest.mark.parametrize("room", NATIVE_ORDER)
def test_native_includes_go_one_way(room: str) -> None:
    allowed = NATIVE_ORDER[: NATIVE_ORDER.index(room) + 1]
    paths = [path for path in sorted((NATIVE / room).rglob("*")) if path.is_file()] or [NATIVE / room]
    wrong = [f"{path}:{line}" for path in paths for name, line in included(path) if name not in allowed]
    assert paths and not wrong, wrong
    assert sorted(path.name for path in NATIVE.iterdir()) == sorted(NATIVE_ORDER)
