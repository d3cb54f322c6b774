# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Answers of the compiler in the compile cache, from which the plugin without Python serves programs by itself."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from tests.pjrt.clients import build_client, call, numbers, opened
from tests.pjrt.plugin import run_python
from tests.pjrt.standalone_programs import TANH, dynamic_softmax, softmax, wanted
from tests.pjrt.streams import VERSION, artifact

errors: Any = pytest.importorskip("pypjrt.errors")

ASK_FOR_IT = """
import sys
from tests.pjrt.clients import made, numbers
from tests.pjrt.standalone_programs import softmax
from tests.pjrt.streams import artifact
from pypjrt import errors
with made(sys.argv[1], compiler="/nowhere") as client:
    try:
        client.compile(artifact(softmax, [numbers(6, 3)]))
        print("served")
    except errors.FailedPrecondition:
        print("not served")
"""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SHLO_DISC_COMPILER", sys.executable)
    monkeypatch.setenv("SHLO_DISC_CACHE_DIR", str(tmp_path / "cache"))


def eighths(b: int, s: int) -> np.ndarray:
    return np.arange(b * s, dtype=np.float32).reshape(b, s) / 8


def programs_of(folder: Path) -> list[Path]:
    """Answers of the compiler that hold a program."""
    return [file for file in folder.glob("*.answer") if b"disc_header_digest" in file.read_bytes()]


def run_client(binary: Path, *arguments: str, **variables: str) -> list[np.ndarray]:
    """The results of the client in C++, which has no environment but this."""
    command = [str(binary), shlo_disc.get_pjrt_plugin(), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
    assert done.returncode == 0, done.stderr
    return [np.array(line.split(), np.float32).reshape(-1, 3) for line in done.stdout.splitlines()]


def test_a_program_in_cpp(tmp_path: Path) -> None:
    """It compiles, and runs what the cache has when there is no compiler, also at shapes that it has not seen."""
    binary, cache = build_client(tmp_path), tmp_path / "cache"
    needed = subprocess.run(["ldd", binary, shlo_disc.get_pjrt_plugin()], capture_output=True, text=True, check=True)
    folder = f"python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    assert "python" not in needed.stdout.replace(folder, "")
    variables = {"SHLO_DISC_CACHE_DIR": str(cache), "HOME": str(tmp_path), "SHLO_DISC_COMPILER": sys.executable}
    program = tmp_path / "dynamic.mlirbc"
    program.write_bytes(dynamic_softmax())
    calls = [word for n in (2, 5, 9) for word in (str(program), str(n), "3")]
    for n, found in zip((2, 5, 9), run_client(binary, *calls, **variables), strict=True):
        np.testing.assert_allclose(found, wanted(eighths(n, 3)), rtol=2e-6, atol=1e-6)
    assert len(programs_of(cache)) == 1
    for n in (2, 5, 9, 11):
        (tmp_path / f"{n}.mlirbc").write_bytes(artifact(softmax, [eighths(n, 3)]))
    calls += [word for n in (2, 5, 9) for word in (str(tmp_path / f"{n}.mlirbc"), str(n), "3")]
    for n, found in zip((2, 5, 9) * 2, run_client(binary, *calls, **variables), strict=True):
        np.testing.assert_allclose(found, wanted(eighths(n, 3)), rtol=2e-6, atol=1e-6)
    assert len(programs_of(cache)) == 3  # that with symbols, one shape, and all shapes
    variables["SHLO_DISC_COMPILER"] = ""
    last = [word for n in (11, 9, 2) for word in (str(tmp_path / f"{n}.mlirbc"), str(n), "3")]
    for n, found in zip((2, 5, 9, 11, 9, 2), run_client(binary, *calls[:9], *last, **variables), strict=True):
        np.testing.assert_allclose(found, wanted(eighths(n, 3)), rtol=2e-6, atol=1e-6)


def test_damaged_answers_are_not_served(tmp_path: Path) -> None:
    program, x = artifact(softmax, [numbers(6, 3)]), numbers(6, 3)
    with opened() as client:
        client.compile(program)
    (file,) = programs_of(tmp_path / "cache")
    whole, nothing = file.read_bytes(), {"compiler": "/nowhere"}
    with opened(**nothing) as client:
        np.testing.assert_allclose(call(client, client.compile(program), x)[0], wanted(x), rtol=2e-6, atol=1e-6)
        with pytest.raises(errors.FailedPrecondition, match="cannot be started"):
            client.compile(artifact(lambda x: jnp.cos(x), [x]))
    for damaged in (whole[:-1] + bytes([whole[-1] ^ 1]), whole[:40], b""):
        file.write_bytes(damaged)
        with opened(**nothing) as client, pytest.raises(errors.FailedPrecondition, match="cannot be started"):
            client.compile(program)
    with opened() as client:
        client.compile(program)
    assert programs_of(tmp_path / "cache") == [file] and file.read_bytes()[:32] == whole[:32]


def test_answers_of_others_are_refused(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    words = r"native code, and other users may write to .*\[DISC-O103\]"
    with opened() as client, pytest.raises(errors.InvalidArgument, match=words):
        client.compile(artifact(softmax, [numbers(6, 3)]))


def asked(plugin: str | Path, **variables: str) -> str:
    """The words of another process that has no compiler."""
    done = run_python("-c", ASK_FOR_IT, str(plugin), **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
def test_another_compiler_or_processor_is_noticed(tmp_path: Path) -> None:
    """A plugin that lies alone takes what any compiler of its release has answered."""
    plugin, package = Path(shlo_disc.get_pjrt_plugin()), tmp_path / "changed" / "shlo_disc"
    with opened() as client:
        client.compile(artifact(softmax, [numbers(6, 3)]))
    assert asked(plugin, SHLO_DISC_CPU="x86-64-v3") == "not served"
    ignored = shutil.ignore_patterns("__pycache__", "*.so*", "*.a", "pages")
    shutil.copytree(Path(shlo_disc.__file__).parent, package, ignore=ignored)
    (package / "lib").mkdir(exist_ok=True)
    copies = [shutil.copy(plugin, tmp_path), shutil.copy(plugin, package / "lib")]
    assert [asked(copy) for copy in (plugin, *copies)] == ["served"] * 3
    with open(package / "errors.py", "a") as file:
        file.write("\n")
    assert [asked(copy) for copy in copies] == ["served", "not served"]


def test_text_is_kept_as_well() -> None:
    module = ir.Module.parse(TANH.format(n=4), make_context())
    portable = bytes(stablehlo.serialize_portable_artifact(module, VERSION))
    with opened() as client:
        client.compile(TANH.format(n=4))
    with opened(compiler="/nowhere") as client:
        x = numbers(4, 3)
        for program in (TANH.format(n=4), portable):
            found = call(client, client.compile(program), x)[0]
            np.testing.assert_allclose(found, np.tanh(x), rtol=2e-6, atol=1e-6)
