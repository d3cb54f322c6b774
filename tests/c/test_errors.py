# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of the C API have the codes of Python's, and speak of functions and options of C."""

from __future__ import annotations

import ctypes
import io
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import C_CODES, CODES, ArtifactError, Code
from shlo_disc.runtime import Artifact

from .building import build_c
from .c_api import CError, Program, library

PAGES = Path(__file__).parents[2] / "docs" / "errors"
ROWS = Path(__file__).parents[2] / "shlo_disc" / "runtime" / "native" / "capi" / "error_codes.cpp"
KINDS = {"ShapeError", "ArgumentTypeError", "AllocationError", "CustomCallError", "DeviceError", "ArtifactError"}


def test_the_table_is_that_of_python() -> None:
    rows = re.findall(r'\{"(DISC-\w+)", "(\w+)", R"\((.*)\)"\}', ROWS.read_text())
    codes = [*(code for code in CODES if code.error in KINDS), *C_CODES]
    assert rows == [(code.name, code.error, code.words) for code in codes]


@pytest.mark.parametrize("code", C_CODES, ids=lambda code: code.name)
def test_each_example_of_a_code_of_c_prints_its_error(code: Code, tmp_path: Path) -> None:
    page = (PAGES / f"{code.name}.md").read_text()
    assert page.startswith(f"# {code.name}: {code.title}\n\nRaised as `{code.error}`.\n\n")
    parts = dict(re.findall(r"^```(python|c|text)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    if "python" in parts:
        subprocess.run([sys.executable, "-c", parts["python"]], cwd=tmp_path, check=True)
    (tmp_path / "example.c").write_text(parts["c"])
    printed = subprocess.run([build_c(tmp_path / "example.c", tmp_path)], cwd=tmp_path, capture_output=True, check=True)
    assert printed.stdout.decode() == parts["text"] and f"[{code.name}]" in parts["text"]


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    """x + y for f32[b, 4] and f32[b, 4], where b <= 8."""
    shapes = ("b, 4", "float32"), ("b, 4", "float32")
    return shlo_disc.compile(lambda x, y: x + y, args=shapes, constraints=["b <= 8"]).artifact


def changed(artifact: Artifact, **entries: object) -> bytes:
    return Artifact({**artifact.header, **entries}, artifact.sections).serialize()


@pytest.mark.parametrize(("code", "sizes"), [("DISC-S103", (9,)), ("DISC-S104", (3, 4))])
def test_pages_show_what_c_prints(code: str, sizes: tuple[int, ...]) -> None:
    page = (PAGES / f"{code}.md").read_text()
    (example,) = re.findall(r"^```python\n(.*\n)executable\(.*^```$", page, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(example, names)  # noqa: S102 - the page of this repository
    with pytest.raises(CError) as caught:
        Program(names["executable"].artifact.serialize()).plan(*sizes)
    assert (
        f"\n```\n{caught.value.text}\n```\n" in page and f"`disc_error_argument` is `{caught.value.argument}`" in page
    )
    assert caught.value.code == code


def flipped(data: bytes) -> bytes:
    """The bytes with another one in the code, which is in the middle."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


Call = Callable[[Artifact], object]
CASES: dict[str, tuple[Call, str, str]] = {
    "trust": (lambda a: Program(a.serialize(), trust=0), "DISC-A101", r"set trust of disc_load_options"),
    "a section": (
        lambda a: Program(flipped(a.serialize())),
        "DISC-A100",
        r"its checksum does not match: copy the file again, or compile the program again$",
    ),
    "damage": (lambda a: Program(a.serialize()[:-1]), "DISC-A100", r"truncated|damaged"),
    "a version": (lambda a: Program(changed(a, format=9)), "DISC-A102", r"reads formats"),
    "a processor": (lambda a: Program(changed(a, target={"triple": "aarch64-x"})), "DISC-A103", r"made for"),
    "a GPU": (
        lambda a: Program(changed(a, target={**a.header["target"], "name": "cuda:sm_90"})),
        "DISC-A103",
        r"^made for cuda:sm_90, and programs of the C API run on the CPU: .* --target cpu -o FILE`",
    ),
    "a rank": (lambda a: Program(a.serialize())(ones(2), ones(2, 4)), "DISC-S101", r"^Rank mismatch for args\[0\]"),
    "a size": (lambda a: Program(a.serialize())(ones(2, 4), ones(2, 3)), "DISC-S102", r"^Shape mismatch"),
    "a constraint": (
        lambda a: Program(a.serialize()).plan(9, 4, 9, 4),
        "DISC-S103",
        r"^the sizes do not satisfy b <= 8",
    ),
    "two sizes": (
        lambda a: Program(a.serialize()).plan(3, 4, 2, 4),
        "DISC-S104",
        r"^args\[1\].* is 2, and b is 3",
    ),
    "a dtype": (lambda a: Program(a.serialize())(ones(2, 4), np.ones((2, 4))), "DISC-T101", r"^Dtype mismatch"),
    "a number of arguments": (
        lambda a: Program(a.serialize())(ones(2, 4)),
        "DISC-T100",
        r"has 2 arguments, and 1 was given$",
    ),
    "memory": (lambda a: Program(a.serialize(), memory_limit=1)(ones(2, 4), ones(2, 4)), "DISC-M101", r"allocate"),
    "no file": (lambda a: Program(Path("/nowhere")), "", r"No such file"),
    "another number of sizes": (
        lambda a: Program(a.serialize()).plan(3),
        "DISC-V100",
        r"^disc_plan: the arguments have 4 sizes in all "
        r"\(args\[0\] of \(b, 4\), args\[1\] of \(b, 4\)\), and 1 was given$",
    ),
    "another number of values": (
        lambda a: Program(a.serialize()).plan_symbols(3, 4),
        "DISC-V100",
        r"^disc_plan_symbols: .* has 1 symbol \(b\), and 2 values were given$",
    ),
    "more than bind left": (
        lambda a: Program(a.serialize()).bind(ones(2, 4))(ones(2, 4), ones(2, 4)),
        "DISC-T100",
        r"has 1 argument besides the 1 that disc_bind has fixed, and 2 were given$",
    ),
    "sizes of bound arguments": (
        lambda a: Program(a.serialize()).bind(ones(2, 4)).plan(2, 4, 2, 4),
        "DISC-V100",
        r"^disc_plan: the arguments besides the 1 that disc_bind has fixed have 2 sizes in all "
        r"\(args\[1\] of \(b, 4\)\), and 4 were given$",
    ),
    "a value": (lambda a: Program(a.serialize()).plan_symbols(9), "DISC-S103", r"satisfy b <= 8\. .*; here b = 9$"),
    "an option": (lambda a: Program(a.serialize(), threads=-1), "DISC-V100", r"must not be negative"),
    "an option of a newer header": (
        lambda a: Program(a.serialize(), unknown=1),
        "DISC-V100",
        r"struct_size of disc_load_options is 64, and this library has 56 bytes.*a newer release.*leave the option 0",
    ),
}
OF_PYTHON = re.compile(r"jax|trust=True|shlo_disc\.|SciPy|register_custom_call(?<!disc_register_custom_call)")


@pytest.mark.parametrize("name", CASES)
def test_codes_and_words(artifact: Artifact, name: str) -> None:
    call, code, words = CASES[name]
    with pytest.raises(CError) as caught:
        call(artifact)
    assert caught.value.code == code
    assert re.search(words, caught.value.text), caught.value.text
    assert not OF_PYTHON.search(caught.value.text)


CALL = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @tests.of_c(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


def test_missing_functions() -> None:
    function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda call: None)
    shlo_disc.register_custom_call("tests.of_c", function)
    calling = shlo_disc.compile(CALL).artifact.serialize()
    factoring = shlo_disc.compile(jnp.linalg.cholesky, args=(("n, n", "float32"),)).artifact.serialize()
    for data, code, words in [
        (calling, "DISC-A104", r"'tests\.of_c'.*: call disc_register_custom_call first$"),
        (factoring, "DISC-A107", r"LAPACK.*libopenblas\.so\.0, to disc_open_blas first$"),
    ]:
        with pytest.raises(CError, match=words) as caught:
            Program(data)
        assert (caught.value.kind, caught.value.code) == (ArtifactError.__name__, code)
        assert not OF_PYTHON.search(caught.value.text)


PROGRAM = "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }"
OTHER_FILES = {
    "nothing": (lambda: b"", r"is empty, it has 0 bytes: copy the file again"),
    "a piece": (lambda: b"SHLO", r"is truncated, it has 4 bytes: copy the file again"),
    "a zip": (
        lambda: b"PK\x03\x04" + bytes(40),
        r"but a zip archive: if torch\.export\.save wrote it, .* in Python, and save",
    ),
    "weights": (
        lambda: _npz(w=np.ones(3)),
        r"an \.npz file of arrays, .* disc_load reads the program, and disc_bind takes",
    ),
    "a cut archive of weights": (lambda: _npz(w=np.ones(3))[:31], r"but a zip archive"),
    "a library": (
        lambda: Path(shlo_disc.get_library()).read_bytes()[:4096],
        r"but a library or another binary in ELF: if Executable.export_library wrote it, link with it",
    ),
    "a pointer": (lambda: b"version https://git-lfs.github.com/spec/v1\n", r"Git LFS pointer, .*git lfs pull"),
    "numbers": (lambda: bytes(range(64)), r"`python -m shlo_disc compile PROGRAM -o FILE`, and load FILE"),
}


def _npz(**arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


@pytest.mark.parametrize("name", OTHER_FILES)
def test_files_of_other_kinds(name: str, tmp_path: Path) -> None:
    data, words = OTHER_FILES[name]
    path = tmp_path / "model.disc"
    path.write_bytes(data())
    with pytest.raises(CError, match=words) as caught:
        Program(path)
    assert caught.value.code == "DISC-A100" and caught.value.text.endswith(f"(in the file '{path}')")
    assert not re.search(r"jax|trust=True", caught.value.text)
    assert "zip archive" in words or "shlo_disc.compile" not in caught.value.text


def _bytecode() -> bytes:
    shape = jax.ShapeDtypeStruct(jax.export.symbolic_shape("b"), jnp.float32)
    return bytes(jax.export.export(jax.jit(lambda x: x * 1))(shape).mlir_module_serialized)


def _exported() -> bytes:
    shape = jax.ShapeDtypeStruct(jax.export.symbolic_shape("b"), jnp.float32)
    return bytes(jax.export.export(jax.jit(lambda x: x * 1))(shape).serialize())


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (PROGRAM.encode, "MLIR as text"),
        (_bytecode, "MLIR bytecode"),
        (_exported, r"a program of jax\.export"),
    ],
    ids=["text", "bytecode", "exported"],
)
def test_programs_that_are_not_compiled(made: Callable[[], bytes], words: str, tmp_path: Path) -> None:
    """The command of the text makes a file that loads."""
    path, file = tmp_path / "model", tmp_path / "model.disc"
    path.write_bytes(made())
    with pytest.raises(CError, match=f"but {words}, which is not compiled yet: compile it by `python") as caught:
        Program(path)
    (said,) = re.findall(r"`python (-m shlo_disc compile PROGRAM -o FILE)`, and load FILE", caught.value.text)
    words_of_shell = said.replace("PROGRAM", str(path)).replace("FILE", str(file)).split()
    subprocess.run([sys.executable, *words_of_shell], check=True, capture_output=True)
    np.testing.assert_array_equal(Program(file)(ones(3))[0], ones(3))


OF_C_ALONE = re.compile(r"\bIn C\b|\bC API\b|`?disc_\w+")
NOT_IN_C = {"DISC-T102", "DISC-T103", "DISC-A105", "DISC-A106"}
"""Codes about pytrees, static arguments and Python functions, which C does not have."""


def test_pages_of_codes_that_c_has_say_what_to_do_in_c() -> None:
    names = {code.name for code in (*CODES, *C_CODES) if code.error in KINDS or code in C_CODES} - NOT_IN_C
    assert [name for name in sorted(names) if not OF_C_ALONE.search((PAGES / f"{name}.md").read_text())] == []


def test_no_error_has_no_code() -> None:
    assert library().disc_error_code(None) == b""


def test_the_argument_at_fault(artifact: Artifact) -> None:
    program = Program(artifact.serialize())
    for sizes, argument in (((9, 4, 9, 4), "args[0]"), ((0, 4, 0, 4), "args[0]"), ((3, 4, 2, 4), "args[1]")):
        with pytest.raises(CError) as caught:
            program.plan(*sizes)
        assert caught.value.argument == argument
