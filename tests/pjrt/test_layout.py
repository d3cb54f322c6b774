# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Our declarations of PJRT's C API against those of an independent client, field by field."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.pjrt.plugin import ROOT

abi: Any = pytest.importorskip("pypjrt._abi.pjrt_0_114")
HEADERS = ROOT / "shlo_disc/runtime/include/pjrt"
EXTENDED = ROOT / "shlo_disc/runtime/native/pjrt"
ARRAY_OF_FUNCTIONS = "PJRT_Api"
EXTENSIONS = (
    "PJRT_Layouts_Extension",
    "PJRT_FFI_Extension",
    "PJRT_MemoryDescriptions_Extension",
)  # their functions have names of our own


def declared() -> list[str]:
    """The structures of the C API that we declare."""
    paths = (HEADERS / "pjrt_c_api_types.h", HEADERS / "pjrt_c_api.h", EXTENDED / "pjrt_c_api_extensions.h")
    text = "".join(path.read_text() for path in paths)
    return [name for name in re.findall(r"^struct (PJRT_\w+)(?: : PJRT_Head)? \{", text, re.MULTILINE) if known(name)]


def known(name: str) -> bool:
    return isinstance(getattr(abi, name, None), type) and name != ARRAY_OF_FUNCTIONS


def fields_of(structure: Any) -> list[str]:
    """The names of the fields; those of nameless unions are found in these."""
    return [field[0] for field in structure._fields_ if not field[0].startswith("_")]


def program() -> str:
    """A program that writes the size of every structure and the place of each of its fields."""
    rows = []
    for name in declared():
        rows.append(f'row("{name}", "", sizeof({name}));')
        if name not in EXTENSIONS:
            rows += [f'row("{name}", "{field}", place(&{name}::{field}));' for field in fields_of(getattr(abi, name))]
    return (
        '#include "pjrt_c_api_extensions.h"\n#include <cstdio>\n'
        'void row(const char *a, const char *b, size_t n) { std::printf("%s %s %zu\\n", a, b, n); }\n'
        "template <typename S, typename F> size_t place(F S::*field) {\n"
        "  S s{}; return size_t(reinterpret_cast<char *>(&(s.*field)) - reinterpret_cast<char *>(&s)); }\n"
        f'int main() {{ {" ".join(rows)} row("PJRT_Api", "", sizeof(PJRT_Api)); }}\n'
    )


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], int]:
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    folder: Path = tmp_path_factory.mktemp("layout")
    (folder / "layout.cpp").write_text(program())
    includes = [f"-I{HEADERS}", f"-I{EXTENDED}"]
    command = [compiler, "-std=c++20", *includes, str(folder / "layout.cpp"), "-o", str(folder / "layout")]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    out = subprocess.run([str(folder / "layout")], check=True, capture_output=True, text=True, timeout=60).stdout
    rows = [line.split(" ") for line in out.splitlines()]
    return {(name, field): int(number) for name, field, number in rows}


def test_structures_are_as_large(layout: dict[tuple[str, str], int]) -> None:
    assert len(declared()) > 100
    ours = {name: layout[name, ""] for name in declared()}
    assert ours == {name: ctypes.sizeof(getattr(abi, name)) for name in declared()}


def test_fields_lie_where_they_should(layout: dict[tuple[str, str], int]) -> None:
    ours = {key: offset for key, offset in layout.items() if key[1]}
    assert len(ours) > 400
    assert ours == {(name, field): getattr(getattr(abi, name), field).offset for name, field in ours}


def test_the_table_has_the_functions_in_their_order(layout: dict[tuple[str, str], int]) -> None:
    assert layout["PJRT_Api", ""] == abi.PJRT_Api_STRUCT_SIZE
    text = (HEADERS / "pjrt_c_api.h").read_text()
    names = [f"PJRT_{name}" for name in re.findall(r" F\((\w+)\)", text)]
    assert names == list(abi.FUNCTIONS)


def test_numbers_of_enumerations() -> None:
    text = (HEADERS / "pjrt_c_api_types.h").read_text()
    numbers = {name: int(value) for name, value in re.findall(r"\b(PJRT_\w+) = (\d+)", text)}
    assert len(numbers) > 50
    module: ModuleType = abi
    assert numbers == {name: getattr(module, name) for name in numbers}
