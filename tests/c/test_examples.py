# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples in C++ and Rust are built, and print what Python computes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import jax
import numpy as np
import pytest

import shlo_disc

EXAMPLES = Path(__file__).parents[2] / "examples" / "c"


@pytest.fixture(scope="module")
def softmax(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "softmax.disc"
    shlo_disc.compile(jax.nn.softmax, args=(("b, s", "float32"),)).save(path)
    return path


@pytest.fixture(scope="module", params=["score.cpp", "score.rs"])
def binary(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    source, made = EXAMPLES / request.param, tmp_path_factory.mktemp("built") / "score"
    rustc = shutil.which("rustc") or str(Path.home() / ".cargo" / "bin" / "rustc")
    compiler = shutil.which("g++") if source.suffix == ".cpp" else shutil.which(rustc)
    if compiler is None:
        pytest.skip(f"there is no compiler for {source.name}")
    folder = Path(shlo_disc.get_library()).parent
    flags = {
        ".cpp": ["-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{shlo_disc.get_include()}", f"-Wl,-rpath,{folder}"],
        ".rs": ["--edition", "2021", "-D", "warnings", "-C", f"link-arg=-Wl,-rpath,{folder}"],
    }[source.suffix]
    links = ["-L", str(folder), "-l", "shlo_disc_runtime", "-o", str(made)]
    subprocess.run([compiler, *flags, str(source), *links], check=True)
    return made


@pytest.mark.parametrize("sizes", [(1, 1), (2, 3), (5, 67)])
def test_they_print_the_numbers(binary: Path, softmax: Path, sizes: tuple[int, int]) -> None:
    told = subprocess.run([binary, softmax, *map(str, sizes)], capture_output=True, text=True, check=True).stdout
    x = np.arange(sizes[0] * sizes[1], dtype=np.float32).reshape(sizes) / 8
    wanted = shlo_disc.load(softmax, trust=True)(x)
    np.testing.assert_array_equal(np.array(told.split(), np.float32).reshape(sizes), wanted)


def test_they_tell_what_is_wrong(binary: Path, softmax: Path) -> None:
    found = subprocess.run([binary, softmax, "0", "3"], capture_output=True, text=True, check=False)
    assert found.returncode == 1 and found.stderr.startswith("ShapeError: b has to be >= 1. The program")
    found = subprocess.run([binary, "/nowhere", "1", "1"], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (1, "OSError: [Errno 2] No such file or directory: '/nowhere'\n")
    found = subprocess.run([binary], capture_output=True, text=True, check=False)
    assert found.returncode and found.stderr.startswith("usage: ") and "ARTIFACT" in found.stderr
