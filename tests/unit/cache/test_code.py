# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The directory of objects: what is kept between programs and processes, and what is never taken from it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc import Options
from shlo_disc.driver.cache import code, open_code_cache
from shlo_disc.driver.cache.code import CodeCache
from shlo_disc.lowering.codegen import routines
from shlo_disc.lowering.codegen.object_store import stored

LIMIT = 1 << 20


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of this test, of which the process has nothing in memory."""
    monkeypatch.setenv(code.ENVIRONMENT_VARIABLE, str(tmp_path / "code"))
    routines.routines_object.cache_clear()
    return tmp_path / "code"


def compiled(scale: float = 1.0, **options: Any) -> shlo_disc.Executable:
    spec = (("b, 64", "float32"), ("64, 48", "float32"))
    return shlo_disc.compile(lambda x, w: jnp.tanh(x @ w) * scale, args=spec, options=Options(**options))


def entries(folder: Path) -> dict[str, int]:
    return {file.name: file.stat().st_size for file in folder.glob("*.o")}


def test_equal_programs_are_taken_and_others_are_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compiled()
    kept = entries(folder)
    assert len(kept) >= 2  # the program, and the micro-kernels that it shares with others
    made: list[str] = []
    compile_to_object = routines.compile_to_object

    def counted(text: str, *rest: Any, **more: Any) -> bytes:
        made.append(text)
        return compile_to_object(text, *rest, **more)

    counted.__name__ = compile_to_object.__name__
    monkeypatch.setattr(routines, "compile_to_object", counted)
    routines.routines_object.cache_clear()
    again = compiled()
    assert made == []
    assert again.artifact.sections["object"] == first.artifact.sections["object"]
    other = compiled(3.0)
    assert len(made) == 1
    assert entries(folder).keys() > kept.keys()
    x, w = np.ones((3, 64), np.float32), np.full((64, 48), 0.01, np.float32)
    np.testing.assert_allclose(again(x, w), np.tanh(x @ w), rtol=1e-6)
    np.testing.assert_allclose(other(x, w), np.tanh(x @ w) * 3, rtol=1e-6)


@pytest.mark.parametrize("options", [{"opt_level": 0}, {"cpu": "x86-64-v4"}])
def test_other_options_are_other_objects(folder: Path, options: dict[str, Any]) -> None:
    level = {"cpu": "x86-64-v3"}  # stated, as the tests' default may be either of the two
    compiled(**level)
    kept = entries(folder)
    compiled(**level | options)
    assert entries(folder).keys() > kept.keys()


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-1], lambda b: b[:40] + b"x" + b[41:], lambda b: b"", lambda b: b[:20]]
)
def test_a_damaged_object_is_made_again(folder: Path, damage: Any) -> None:
    first = compiled()
    for file in folder.glob("*.o"):
        file.write_bytes(damage(file.read_bytes()))
    routines.routines_object.cache_clear()
    assert compiled().artifact.sections["object"] == first.artifact.sections["object"]
    sizes = entries(folder)
    routines.routines_object.cache_clear()
    compiled()
    assert entries(folder) == sizes


def test_no_cache_is_no_code_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(cache_dir="")
    assert entries(folder) == {}
    monkeypatch.setenv(code.ENVIRONMENT_VARIABLE, "")
    assert open_code_cache(Options()) is None


def test_the_default_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(code.ENVIRONMENT_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = open_code_cache(Options())
    assert found is not None
    assert found.directory == tmp_path / "shlo_disc" / "code"
    assert found.directory.stat().st_mode & 0o777 == 0o700
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    found = open_code_cache(Options())
    assert found is not None
    assert found.directory == tmp_path / "home" / ".cache" / "shlo_disc" / "code"


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(code.ENVIRONMENT_VARIABLE, "~nobody-has-this-name/code")
    assert open_code_cache(Options()) is None
    assert list(tmp_path.iterdir()) == []


def test_what_others_may_write_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    monkeypatch.setenv(code.ENVIRONMENT_VARIABLE, str(open_to_all))
    assert open_code_cache(Options()) is None
    compiled()
    assert list(open_to_all.iterdir()) == []
    not_a_directory = tmp_path / "file"
    not_a_directory.write_text("")
    monkeypatch.setenv(code.ENVIRONMENT_VARIABLE, str(not_a_directory))
    assert open_code_cache(Options()) is None


def test_an_object_that_others_may_write_is_not_taken(folder: Path) -> None:
    compiled()
    cache = CodeCache(folder, LIMIT)
    key = next(iter(entries(folder))).removesuffix(".o")
    assert cache.load(key) is not None
    (folder / f"{key}.o").chmod(0o666)
    assert cache.load(key) is None


def test_the_size_is_bounded(tmp_path: Path) -> None:
    cache = CodeCache(tmp_path, 10_000)
    for i in range(200):
        cache.store(f"{i}", bytes(1000))
    assert sum(entries(tmp_path).values()) <= 10_000 + 32 * 1032
    assert cache.load("199") == bytes(1000)
    cache.store("large", bytes(20_000))
    assert cache.load("large") is None


def test_a_key_depends_on_every_argument(tmp_path: Path) -> None:
    cache = CodeCache(tmp_path, LIMIT)

    def make(*arguments: Any) -> bytes:
        return repr(arguments).encode()

    calls = [("a", "bc"), ("ab", "c"), ("a", ("b", "c")), ("a", {"b": b"c"}), ("a",), ("a", None)]
    for _ in range(2):
        for arguments in calls:
            assert stored(cache, make, *arguments) == make(*arguments)
    assert len(entries(tmp_path)) == len(calls)
    assert stored(cache, make, {"x", "y", "z"}) == stored(cache, make, {"z", "y", "x"})
    assert stored(None, make, 1) == make(1)


def test_another_process_finds_it(folder: Path) -> None:
    """Names of sets come in another order there."""
    program = (
        "import sys, shlo_disc, jax.numpy as jnp\n"
        "e = shlo_disc.compile(lambda x: jnp.sin(x) * 2, args=(('n', 'float32'),))\n"
        "sys.stdout.write(str(e(jnp.ones(3))))"
    )
    counts = []
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", program], check=True, env=environment, capture_output=True)
        counts.append(len(entries(folder)))
    assert counts[0] > 0
    assert len(set(counts)) == 1
