# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Questions of C programs to a loaded program, and to the installed package."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import shlo_disc
from shlo_disc.runtime.described import argument_names

from .c_api import Options, library

CMAKE = shutil.which("cmake")


class ArrayInfo(ctypes.Structure):
    """disc_array_info."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t), ("path", ctypes.c_char_p), ("dtype", ctypes.c_char_p),
        ("type", ctypes.c_uint32), ("rank", ctypes.c_size_t), ("sizes", ctypes.c_void_p),
        ("size_texts", ctypes.c_void_p), ("name", ctypes.c_char_p),
    ]  # fmt: skip


def loaded(executable: Any, path: Path, cpu: str = "") -> ctypes.c_void_p:
    executable.save(path)
    options = Options(struct_size=Options.unknown.offset, trust=1, cpu=cpu.encode())
    program = ctypes.c_void_p()
    assert not library().disc_load(str(path).encode(), ctypes.byref(options), ctypes.byref(program))
    return program


def info_of(program: ctypes.c_void_p, what: str, index: int, size: int = ctypes.sizeof(ArrayInfo)) -> ArrayInfo:
    info = ArrayInfo(struct_size=size)
    assert not getattr(library(), f"disc_describe_{what}")(program, ctypes.c_size_t(index), ctypes.byref(info))
    return info


def test_arguments_have_the_names_of_python(tmp_path: Path) -> None:
    def score(params: Any, tokens: Any, scale: Any, *, bias: Any) -> Any:
        return tokens @ params["w"] * scale + bias + params["layers"][0].sum()

    f32 = "float32"
    specs = ({"w": ("4, 3", f32), "layers": [("2,", f32)]}, ("b, 4", f32), ((), f32))
    executable = shlo_disc.compile(score, args=specs, kwargs={"bias": ("3,", f32)})
    program = loaded(executable, tmp_path / "score.disc")
    names = [info_of(program, "argument", i).name.decode() for i in range(5)]
    assert names == argument_names(executable.loaded.header)
    assert names[:4] == ["params['layers'][0]", "params['w']", "tokens", "scale"]
    assert info_of(program, "result", 0).name == b""
    assert info_of(program, "argument", 1, ArrayInfo.name.offset).name is None
    library().disc_free_program(program)


def test_the_level_that_runs(tmp_path: Path) -> None:
    native = library()
    native.disc_level.restype = ctypes.c_char_p
    native.disc_level.argtypes = [ctypes.c_void_p]
    options = shlo_disc.Options(cpu=("x86-64-v3", "x86-64-v4"))
    executable = shlo_disc.compile(lambda x: x + 1, args=(("b", "float32"),), options=options)
    best = ("x86-64-v3", "x86-64-v4")[executable.artifact.level_number()]
    for cpu, expected in (("x86-64-v3", "x86-64-v3"), ("", best)):
        program = loaded(executable, tmp_path / "levels.disc", cpu)
        assert native.disc_level(program) == expected.encode()
        native.disc_free_program(program)
    program = loaded(shlo_disc.compile(lambda x: x + 1, args=(("b", "float32"),)), tmp_path / "here.disc")
    assert native.disc_level(program) == b""
    native.disc_free_program(program)
    assert native.disc_level(None) is None


def test_the_cmake_package_has_the_version_of_the_package() -> None:
    text = (Path(shlo_disc.get_cmake_dir()) / "shlo_disc-config-version.cmake").read_text()
    assert re.findall(r'set\(PACKAGE_VERSION "(.*)"\)', text) == [shlo_disc.__version__]


@pytest.mark.skipif(CMAKE is None, reason="there is no cmake")
@pytest.mark.parametrize(("wanted", "is_found"), [("", True), ("0.1", True), ("0.1.0 EXACT", True), ("9.0", False)])
def test_cmake_finds_the_package(wanted: str, is_found: bool, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(
        '#include <shlo_disc.h>\n#include <stdio.h>\nint main(void) { return printf("%u\\n", disc_version()) < 0; }\n'
    )
    (tmp_path / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.20)\nproject(p LANGUAGES C)\nfind_package(shlo_disc {wanted} REQUIRED)\n"
        "add_executable(main main.c)\ntarget_link_libraries(main PRIVATE shlo_disc::runtime)\n"
    )
    assert CMAKE is not None
    configure = [CMAKE, "-S", ".", "-B", "built", f"-Dshlo_disc_DIR={shlo_disc.get_cmake_dir()}"]
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    configured = subprocess.run(configure, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (configured.returncode == 0) == is_found, configured.stderr
    if is_found:
        subprocess.run([CMAKE, "--build", "built"], cwd=tmp_path, check=True, capture_output=True)
        ran = subprocess.run([tmp_path / "built" / "main"], check=True, capture_output=True, text=True)
        assert int(ran.stdout) == library().disc_version()


STATIC = """
#include <shlo_disc.h>
#include <stdio.h>

int main(int argc, char **argv) {
  disc_load_options options = {.struct_size = sizeof options, .trust = 1};
  disc_program_t *program = NULL;
  disc_results_t *results = NULL;
  float data[3] = {1, 2, 3};
  int64_t sizes[] = {3};
  DLTensor x = {data, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, sizes, NULL, 0};
  if (argc != 2 || disc_load(argv[1], &options, &program) || disc_call(program, &x, 1, &results))
    return 1;
  printf("%g\\n", ((const float *)disc_result(results, 0)->data)[2]);
  disc_free_results(results);
  disc_free_program(program);
  return 0;
}
"""


@pytest.mark.skipif(CMAKE is None, reason="there is no cmake")
def test_cmake_links_the_static_library(tmp_path: Path) -> None:
    shlo_disc.compile(lambda x: x * 2, args=(("b", "float32"),)).save(tmp_path / "twice.disc")
    (tmp_path / "main.c").write_text(STATIC)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(p LANGUAGES C)\nfind_package(shlo_disc REQUIRED)\n"
        "add_executable(main main.c)\ntarget_link_libraries(main PRIVATE shlo_disc::runtime_static)\n"
    )
    assert CMAKE is not None
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    configure = [CMAKE, "-S", ".", "-B", "built", f"-Dshlo_disc_DIR={shlo_disc.get_cmake_dir()}"]
    for command in (configure, [CMAKE, "--build", "built"]):
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    binary = tmp_path / "built" / "main"
    ran = subprocess.run([binary, "twice.disc"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert ran.stdout == "6\n"
    needed = subprocess.run(["readelf", "-d", binary], check=True, capture_output=True, text=True).stdout
    assert "libshlo_disc" not in needed
