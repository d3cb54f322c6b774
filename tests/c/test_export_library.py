# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program and the runtime in one shared library, called by the types in its header from C and C++."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
import shlo_disc.numpy as snp
from shlo_disc.errors import OptionError

from .c_api import tensors_of

MAIN = """
#include "scorer.h"
#include <stdio.h>
#include <stdlib.h>

static void check(disc_error_t *error) {
  if (error == NULL)
    return;
  printf("%s: %s\\n", disc_error_kind(error), disc_error_text(error));
  disc_free_error(error);
  exit(1);
}

int main(int argc, char **argv) {
  int64_t b = atoll(argv[1]), s = atoll(argv[2]);
  disc_plan_t *plan;
  check(scorer_plan(b, s, &plan));
  float *x = (float *)malloc((size_t)(b * s) * 4 + 1);
  float *y = (float *)malloc((size_t)disc_plan_result_bytes(plan, 0) + 1);
  int32_t *scale = (int32_t *)malloc((size_t)s * 4 + 1);
  uint8_t *signs = (uint8_t *)malloc((size_t)disc_plan_result_bytes(plan, 1) + 1);
  for (int64_t i = 0; i < b * s; ++i)
    x[i] = (float)(i % 11) - 5.0f;
  for (int64_t i = 0; i < s; ++i)
    scale[i] = (int32_t)(i + 1);
  check(scorer_run(plan, x, scale, y, signs));
  for (int64_t i = 0; i < b; ++i)
    printf("%.9g %d\\n", y[i], signs[i]);
  disc_free_plan(plan);
  return argc != 3;
}
"""


def score(inputs: dict[str, jax.Array], scale: jax.Array) -> tuple[jax.Array, jax.Array]:
    """({"int": f32[b, s]}, i32[s]) -> (f32[b], bool[b])."""
    y = jnp.tanh(inputs["int"] * scale).sum(1) + np.arange(64, dtype=np.float32).sum()
    return y, y > 1


@pytest.fixture(scope="module")
def executable() -> shlo_disc.Executable:
    made: shlo_disc.Executable = shlo_disc.compile(score, args=({"int": ("b, s", "float32")}, ("s", "int32")))
    return made


@pytest.fixture(scope="module")
def folder(executable: shlo_disc.Executable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cc") is None:
        pytest.skip("there is no cc")
    path = tmp_path_factory.mktemp("exported")
    executable.export_library(path / "libscorer.so")
    return path


def test_what_is_written(folder: Path) -> None:
    names = {"libscorer.so", "scorer.h", "shlo_disc.h", "shlo_disc_custom_call.h"}
    assert {path.name for path in folder.iterdir()} == names
    text = (folder / "scorer.h").read_text()
    assert "disc_error_t *scorer_plan(int64_t b, int64_t s, disc_plan_t **plan);" in text
    for row in (
        "const float *args_0_int /* inputs['int']: f32[b, s] */",
        "const int32_t *args_1 /* scale: i32[s] */",
        "uint8_t *result_1 /* i1[b] */",
    ):
        assert row in text


@pytest.mark.parametrize(("compiler", "flags"), [("cc", ["-std=c11"]), ("g++", ["-x", "c++"])])
def test_it_is_called_by_its_types(
    executable: Any, folder: Path, compiler: str, flags: list[str], tmp_path: Path
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    (tmp_path / "main.c").write_text(MAIN)
    command = [compiler, *flags, "-Wall", "-Wextra", "-Werror", f"-I{folder}", str(tmp_path / "main.c"), "-x", "none",
               str(folder / "libscorer.so"), f"-Wl,-rpath,{folder}", "-o", str(tmp_path / "main")]  # fmt: skip
    subprocess.run(command, check=True)
    for b, s in ((1, 1), (3, 17), (64, 5)):
        told = subprocess.run([tmp_path / "main", str(b), str(s)], capture_output=True, text=True, check=True).stdout
        x = (np.arange(b * s) % 11 - 5).astype(np.float32).reshape(b, s)
        y, signs = executable({"int": x}, np.arange(1, s + 1, dtype=np.int32))
        found = np.array([line.split() for line in told.splitlines()])
        np.testing.assert_array_equal(found[:, 0].astype(np.float32), y)
        np.testing.assert_array_equal(found[:, 1].astype(int), signs)
    wrong = subprocess.run([tmp_path / "main", "0", "3"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 1 and wrong.stdout.startswith("ShapeError: b has to be >= 1. The program")


def test_it_stands_alone(folder: Path) -> None:
    """It exports its own functions and the runtime's, and needs nothing of ours."""
    library = ctypes.CDLL(str(folder / "libscorer.so"))
    assert library.scorer_run and library.disc_load
    with pytest.raises(AttributeError):
        _ = library.scorer_artifact
    needed = subprocess.run(
        ["readelf", "-d", folder / "libscorer.so"], capture_output=True, text=True, check=True
    ).stdout
    assert "shlo_disc" not in needed


def test_a_program_that_needs_neither_sizes_nor_arguments(tmp_path: Path) -> None:
    shlo_disc.compile(lambda: jnp.arange(5, dtype=jnp.float32) * 2, args=()).export_library(tmp_path / "m.so", "five")
    library = ctypes.CDLL(str(tmp_path / "m.so"))
    plan, out = ctypes.c_void_p(), np.zeros(5, np.float32)
    library.five_plan.restype = library.five_run.restype = ctypes.c_void_p
    assert library.five_plan(ctypes.byref(plan)) is None
    assert library.five_run(plan, ctypes.c_void_p(out.ctypes.data)) is None
    np.testing.assert_array_equal(out, [0, 2, 4, 6, 8])


def test_without_a_compiler(executable: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(FileNotFoundError, match="needs a C compiler, and there is no 'no-such-compiler'"):
        executable.export_library(tmp_path / "m.so")
    monkeypatch.setenv("CC", "false")
    with pytest.raises(OSError, match="could not make the library"):
        executable.export_library(tmp_path / "m.so")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["int", "a-b", "2x", ""])
def test_names_are_checked(executable: Any, name: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="is no name for functions in C"):
        executable.export_library(tmp_path / "m.so", name)


@pytest.mark.parametrize("name", ["disc", "disc_free", "shlo_disc", "SHLO_DISC", "shlo_disc_custom_call", "stdint"])
def test_names_of_the_libraries_functions_and_headers(executable: Any, name: str, tmp_path: Path) -> None:
    for file, given in ((f"lib{name}.so", None), ("libm.so", name)):
        with pytest.raises(OptionError, match=r"shlo_disc\.h|would hide the one of that name"):
            executable.export_library(tmp_path / file, given)
    assert not list(tmp_path.iterdir())


def test_its_program_binds(executable: Any, folder: Path) -> None:
    """As docs/guides/deployment.md says: the library has the functions of shlo_disc.h, and gives its program."""
    library = ctypes.CDLL(str(folder / "libscorer.so"))
    library.scorer_program.restype = library.disc_bind.restype = ctypes.c_void_p
    program, bound = ctypes.c_void_p(), ctypes.c_void_p()
    assert library.scorer_program(ctypes.byref(program)) is None
    tensors = tensors_of([np.ones((2, 3), np.float32)])
    assert library.disc_bind(program, tensors, ctypes.c_size_t(1), ctypes.byref(bound)) is None
    library.disc_argument_count.restype = ctypes.c_size_t
    assert [library.disc_argument_count(given) for given in (program, bound)] == [2, 1]
    library.disc_free_program(bound)


def test_sizes_from_data(tmp_path: Path) -> None:
    function = shlo_disc.compile(lambda x: x[snp.nonzero(x)[0]], args=(("n", "float32"),))
    with pytest.raises(OptionError, match=r"save\(path\), and call it from C by disc_load and disc_call"):
        function.export_library(tmp_path / "m.so")


@pytest.mark.parametrize(
    ("file", "prefix"), [("lib my-tag.so", "_my_tag"), ("libx, y.so", "x__y"), ("m-v1.2.so", "m_v1")]
)
def test_names_of_files(executable: Any, file: str, prefix: str, tmp_path: Path) -> None:
    executable.export_library(tmp_path / file)
    assert getattr(ctypes.CDLL(str(tmp_path / file)), f"{prefix}_plan") and (tmp_path / f"{prefix}.h").exists()
    told = subprocess.run(["readelf", "-d", tmp_path / file], capture_output=True, text=True, check=True).stdout
    assert f"[{file}]" in told


def test_names_of_symbols_and_arguments(tmp_path: Path) -> None:
    """Names of macros, keywords, types and of what the generated source has."""
    symbols = "values, error, NULL, i, int, plan, INT64_MAX, disc_plan_t, fill, end"

    def f(given: Any, taken: Any) -> Any:
        return given.sum() + taken

    executable = shlo_disc.compile(f, args=((symbols, "float32"),), kwargs={"taken": ("values", "float32")})
    executable.export_library(tmp_path / "libnames.so")
    (tmp_path / "main.c").write_text('#include "names.h"\nint main(void) { return names_program(0) == 0; }\n')
    for compiler in (["cc", "-std=c11", "-pedantic"], ["g++", "-x", "c++"]):
        command = [*compiler, "-Wall", "-Wextra", "-Werror", f"-I{tmp_path}", "-c", "main.c", "-o", "main.o"]
        subprocess.run(command, check=True, cwd=tmp_path)
    library, plan = ctypes.CDLL(str(tmp_path / "libnames.so")), ctypes.c_void_p()
    library.names_plan.restype = library.names_run.restype = ctypes.c_void_p
    sizes = [ctypes.c_int64(n) for n in (3, 1, 2, 1, 1, 1, 1, 1, 1, 1)]
    assert library.names_plan(*sizes, ctypes.byref(plan)) is None
    x, y, out = np.arange(6, dtype=np.float32), np.ones(3, np.float32), np.zeros(3, np.float32)
    assert library.names_run(plan, *(ctypes.c_void_p(a.ctypes.data) for a in (x, y, out))) is None
    np.testing.assert_array_equal(out, [16, 16, 16])


def test_names_that_end_a_comment(tmp_path: Path) -> None:
    args = ({"*/ int x; /*": ("n", "float32"), "a\n\\": ("n", "float32")},)
    shlo_disc.compile(lambda inputs: sum(inputs.values()), args=args).export_library(tmp_path / "libkeys.so")
    (tmp_path / "main.c").write_text('#include "keys.h"\nint main(void) { return 0; }\n')
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{tmp_path}", "-c", "main.c", "-o", "main.o"]
    subprocess.run(command, check=True, cwd=tmp_path)


def test_plans_of_other_libraries(tmp_path: Path) -> None:
    def twice(x: Any) -> Any:
        return 2 * x

    libraries = []
    for name, function in (("one", jnp.negative), ("two", twice)):
        shlo_disc.compile(function, args=(("n", "float32"),)).export_library(tmp_path / f"lib{name}.so")
        libraries.append(ctypes.CDLL(str(tmp_path / f"lib{name}.so")))
    one, two = libraries
    one.one_run.restype = two.two_plan.restype = ctypes.c_void_p
    one.disc_error_text.restype, one.disc_error_text.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
    plan, out = ctypes.c_void_p(), np.zeros(2, np.float32)
    assert two.two_plan(ctypes.c_int64(2), ctypes.byref(plan)) is None
    error = one.one_run(plan, ctypes.c_void_p(out.ctypes.data), ctypes.c_void_p(out.ctypes.data))
    assert one.disc_error_text(error) == (
        b"one_run: the plan is of another program, 'twice', and not of 'negative': make it by one_plan"
    )
    for function in (one.one_run, one.one_plan, one.one_program):
        function.restype = ctypes.c_void_p
    for error, parameter in (
        (one.one_run(None, None, None), b"one_run: plan"),
        (one.one_plan(ctypes.c_int64(2), None), b"one_plan: plan"),
        (one.one_program(None), b"one_program: program"),
    ):
        assert one.disc_error_text(error) == parameter + b" is NULL"


def test_plans_of_another_load(executable: Any, folder: Path, tmp_path: Path) -> None:
    """The error names the load, as the program is the same one, and the function that makes plans."""
    library = ctypes.CDLL(str(folder / "libscorer.so"))
    library.scorer_run.restype = library.disc_load.restype = library.disc_plan_symbols.restype = ctypes.c_void_p
    library.disc_error_text.restype, library.disc_error_text.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
    executable.save(tmp_path / "score.disc")
    program, plan, options = ctypes.c_void_p(), ctypes.c_void_p(), (ctypes.c_int64 * 7)(56, 1)
    assert library.disc_load(str(tmp_path / "score.disc").encode(), options, ctypes.byref(program)) is None
    assert (
        library.disc_plan_symbols(program, (ctypes.c_int64 * 2)(2, 3), ctypes.c_size_t(2), ctypes.byref(plan)) is None
    )
    error = library.scorer_run(plan, None, None, None, None)
    assert library.disc_error_text(error) == (
        b"scorer_run: the plan is of another load of 'score': make it by scorer_plan"
    )


IN_A_PROCESS = """
import _ctypes, ctypes, os, shutil, sys
import numpy as np

def run(path):
    library, plan = ctypes.CDLL(path), ctypes.c_void_p()
    library.m_plan.restype = library.m_run.restype = ctypes.c_void_p
    assert library.m_plan(ctypes.c_int64(1 << 20), ctypes.byref(plan)) is None
    x, y = np.ones(1 << 20, np.float32), np.zeros(1 << 20, np.float32)
    assert library.m_run(plan, ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data)) is None
    _ctypes.dlclose(library._handle)
    return y[0]

os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(sys.argv[1])])
before = len(os.listdir("/proc/self/task"))
first = run("./libm.so")
threads = 1 + len(os.listdir("/proc/self/task")) - before
os.replace("new/libm.so", "libm.so")
print(first, run("./libm.so"), threads)
"""


@pytest.mark.parametrize("processors", [1, 2])
def test_a_file_that_is_replaced_and_the_number_of_threads(processors: int, tmp_path: Path) -> None:
    """The library stays, as docs/guides/deployment.md says, and has a thread for each processor of the process."""
    if len(os.sched_getaffinity(0)) < processors:
        pytest.skip("the process has one processor")
    (tmp_path / "new").mkdir()
    for folder, function in ((tmp_path, jnp.negative), (tmp_path / "new", jnp.tanh)):
        shlo_disc.compile(function, args=(("n", "float32"),)).export_library(folder / "libm.so")
    command = [sys.executable, "-c", IN_A_PROCESS, str(processors)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    told = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout
    assert told.split() == ["-1.0", "-1.0", str(processors)]


def test_a_folder_that_is_not_there(executable: Any, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        executable.export_library(tmp_path / "no" / "libx.so")
    assert caught.value.filename == str(tmp_path / "no" / "libx.so")
