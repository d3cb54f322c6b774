# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C API: programs in C run artifacts as Python does, and refuse the same damage in the same words."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import ArtifactError, ShapeError
from shlo_disc.runtime import Artifact, Client

from .c_api import CError, Program, without_remedy

COMPILERS = ("gcc", "g++")


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """y = 2 sin(x) + x for x: f32[b, s]."""
    program = shlo_disc.compile(lambda x: 2 * jnp.sin(x) + x, args=(("b, s", "float32"),))
    path = tmp_path_factory.mktemp("artifact") / "program.disc"
    path.write_bytes(program.artifact.serialize())
    return path


@pytest.fixture(scope="module", params=COMPILERS)
def run_c(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program in add.c, compiled as C99 or C++."""
    compiler = shutil.which(request.param)
    if compiler is None:
        pytest.skip(f"there is no {request.param}")
    library = Path(shlo_disc.get_library())
    binary = tmp_path_factory.mktemp(request.param) / "add"
    source = Path(__file__).with_name("add.c")
    language = ["-std=c99", "-pedantic"] if request.param == "gcc" else ["-x", "c++"]
    links = [f"-L{library.parent}", f"-Wl,-rpath,{library.parent}", "-lshlo_disc_runtime"]
    command = [
        compiler,
        *language,
        "-Wall",
        f"-I{shlo_disc.get_include()}",
        str(source),
        "-x",
        "none",
        "-o",
        str(binary),
        *links,
    ]
    subprocess.run(command, check=True)
    return binary


@pytest.mark.parametrize("shape", [(1, 1), (1, 15), (3, 16), (17, 17), (131, 97)])
def test_c_equals_python(artifact: Path, run_c: Path, shape: tuple[int, int]) -> None:
    result = subprocess.run([run_c, artifact, *map(str, shape)], capture_output=True)
    assert result.returncode == 0, result.stdout[:500]
    x = (np.arange(shape[0] * shape[1], dtype=np.float32) / np.float32(7)).reshape(shape)
    expected = Client().load(artifact.read_bytes(), trust=True)(x)
    assert result.stdout == expected.tobytes()


def test_shape_errors_name_the_sizes(artifact: Path, run_c: Path) -> None:
    result = subprocess.run([run_c, artifact, "0", "3"], capture_output=True, text=True)
    kind, _, text = result.stdout.split("|", 2)
    with pytest.raises(ShapeError, match="Expected value >= 1 for dimension variable 'b'"):
        Client().load(artifact.read_bytes(), trust=True)(np.zeros((0, 3), np.float32))
    assert (result.returncode, kind) == (1, "ShapeError")
    assert text.startswith("b has to be >= 1. The program takes args[0] of (b, s); here b = 0 (from args[0].shape[0])")


def test_missing_files_are_os_errors(run_c: Path) -> None:
    result = subprocess.run([run_c, "/nowhere/x", "1", "1"], capture_output=True, text=True)
    assert result.stdout == "OSError||[Errno 2] No such file or directory: '/nowhere/x'"


def c_verdict(data: bytes, trust: bool = True) -> str | None:
    """None where the C API loads the bytes, else its kind of error and text."""
    try:
        Program(data, trust=int(trust))
    except CError as error:
        return str(error)
    return None


def python_verdict(data: bytes, trust: bool = True) -> str | None:
    try:
        Client(threads=1).load(data, trust=trust)
    except ArtifactError as error:
        return f"ArtifactError: {error.message}"
    return None


def test_c_and_python_refuse_the_same_damage(artifact: Path) -> None:
    good = artifact.read_bytes()
    rng = random.Random(0)
    damaged = [good[:length] for length in (0, 7, 23, 24, 100, len(good) - 1)] + [good + b"\0"]
    for place in [*range(24), *(rng.randrange(len(good)) for _ in range(200))]:
        flipped = bytearray(good)
        flipped[place] ^= 1 << rng.randrange(8)
        damaged.append(bytes(flipped))
    for data in damaged:
        assert python_verdict(data) is not None
        assert without_remedy(str(c_verdict(data))) == without_remedy(str(python_verdict(data)))
    assert c_verdict(good) is None and python_verdict(good) is None
    assert "pass trust=True if you" in str(python_verdict(good, trust=False))
    assert "set trust of disc_load_options if you" in str(c_verdict(good, trust=False))


@pytest.mark.parametrize(
    "change",
    [
        {"format": 3}, {"target": None}, {"target": {"triple": "riscv64-x"}},
        {"target": {"triple": "x86_64-x", "features": ["+nothing", "-sse", "+abc"]}}, {"plan_words": 1},
        {"plan_words": "x"}, {"entry": {"plan": "disc_plan", "run": "absent"}},
        {"constants": [{"offset": 1, "bytes": 1}]},
    ],
)  # fmt: skip
def test_c_and_python_refuse_the_same_headers(artifact: Path, change: dict[str, object]) -> None:
    good = Artifact.deserialize(artifact.read_bytes())
    data = Artifact({**good.header, **change}, good.sections).serialize()
    assert python_verdict(data) is not None
    assert c_verdict(data) == python_verdict(data)


def test_the_page_names_every_function() -> None:
    """All functions and options of the header, and no others."""
    header = (Path(shlo_disc.get_include()) / "shlo_disc.h").read_text()
    page = (Path(__file__).resolve().parents[2] / "docs" / "c-api.md").read_text()
    functions = set(re.findall(r"^\S.*?\b(disc_\w+)\(", header, re.MULTILINE)) | {
        "disc_error_code",
        "disc_error_argument",
    }
    functions |= set(re.findall(r"^\S.*?\*(disc_\w+)\(", header, re.MULTILINE))
    named = set(re.findall(r"\b(disc_\w+)\b", page)) | {f"disc_error{part}" for part in re.findall(r"`(_\w+)`", page)}
    assert functions <= named, functions - named
    options = re.search(r"typedef struct disc_load_options \{(.*?)\}", header, re.DOTALL)
    assert options is not None
    for option in re.findall(r"^  \S.*?(\w+);", options[1], re.MULTILINE):
        assert f"`{option}`" in page, option
