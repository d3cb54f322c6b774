# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imports go one way: each room of the package uses those above it in `ORDER` only, lazily or for types as well."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import shlo_disc

ROOT = Path(shlo_disc.__file__).parent

ORDER = (
    # What everything stands on.
    "error_codes", "errors", "installed", "progress", "garbage", "text_diff", "function_texts", "dtypes", "stages",
    "target", "mlir", "schedule", "options", "registry",
    # What is known of shapes.
    "shape_dialect/symbolic", "runtime", "shape_dialect/dialect", "dense", "shape_dialect/utils",
    "shape_dialect/inference",
    # The way down.
    "transforms", "codegen", "lowering", "lowering_cpu", "lowering_gpu", "verify", "reader", "child", "programs",
    "import", "importing",
    # The pipeline.
    "ledger", "compilation", "call_checks", "artifact_header", "passes", "pass_pipelines", "compiler",
    # What users see.
    "clients", "loading", "export_library", "stage_text", "report", "listing", "executable", "cache", "reproducer",
    "recovery", "isolated", "call_types", "recording", "compiling", "lowered", "torch", "jitted", "filtered", "api",
    "numpy", "check", "bisect", "reduce", "tune", "doctor", "pjrt", "commands", "cli", "__init__", "__main__",
)  # fmt: skip
"""The rooms: files and folders of the package, and those of `shape_dialect`."""


def room_of(parts: tuple[str, ...]) -> str:
    """The room of a module of the package, by the parts of its name."""
    if parts[:1] == ("shape_dialect",):
        return "/".join(parts[:2]) if len(parts) > 1 else "shape_dialect/symbolic"
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
            and node.value.startswith("shlo_disc.import.")
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


@pytest.mark.parametrize("room", ORDER)
def test_imports_go_one_way(room: str) -> None:
    allowed = ORDER[: ORDER.index(room) + 1]
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {'.'.join(module) or 'shlo_disc'}"
        for path in files()[room]
        for module, line in imported(path)
        if room_of(module) not in allowed
    ]
    assert not wrong, "\n".join(wrong)


NATIVE = ROOT / "runtime" / "native"

NATIVE_ORDER = (
    "core", "kernels", "collectives", "program", "cuda", "artifact", "capi", "python", "pjrt", "module.cpp",
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
