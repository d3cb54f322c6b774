# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compile cache end to end: what is found again, what is not, and that it is the same program."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.driver.cache import CacheWarning, cache_key
from shlo_disc.importer.program import read
from shlo_disc.options import Options

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "def f(x, w):\n    return {'y': jnp.tanh(x @ w), 'z': (x * 2).sum(1)}\n"
SPECS = (("b, 6", "float32"), ("6, 9", "float32"))


def function_of(source: str = SOURCE) -> Callable[..., Any]:
    """The function `f` of a text."""
    names: dict[str, Any] = {"jnp": jnp}
    exec(source, names)  # noqa: S102 - a text of this file
    return names["f"]  # type: ignore[no-any-return]


def build(directory: Path, source: str = SOURCE, **options: Any) -> shlo_disc.Executable:
    """The function compiled with a cache."""
    return shlo_disc.compile(function_of(source), args=SPECS, options=Options(cache_dir=directory, **options))


def arguments(b: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Arguments of the function."""
    random = np.random.default_rng(b)
    return random.standard_normal((b, 6), np.float32), random.standard_normal((6, 9), np.float32)


def test_the_second_compile_generates_nothing(tmp_path: Path) -> None:
    first, second = build(tmp_path), build(tmp_path)
    assert (first.compile_count, second.compile_count) == (1, 0)
    assert list(second.timings) == ["cache"]
    assert first.artifact.serialize() == second.artifact.serialize()
    for b in (1, 5, 16, 33):
        for a, z in zip(jax.tree.leaves(first(*arguments(b))), jax.tree.leaves(second(*arguments(b))), strict=True):
            np.testing.assert_array_equal(a, z)
    assert first(*arguments()).keys() == second(*arguments()).keys()


def test_a_program_from_the_cache_can_be_looked_at(tmp_path: Path) -> None:
    first, second = build(tmp_path), build(tmp_path)
    assert str(second.signature) == str(first.signature)
    assert second.out_shape(b=7) == first.out_shape(b=7)
    assert second.peak_memory_formula == first.peak_memory_formula
    assert second.peak_memory(b=7) == first.peak_memory(b=7)
    assert second.kernels == first.kernels
    assert [second.as_text(stage) for stage in second.stages] == [first.as_text(stage) for stage in first.stages]
    assert second.compile_count == 0


def test_what_is_compiled_anew(tmp_path: Path) -> None:
    """Each of these differs from all before it in something that the code depends on."""
    assert build(tmp_path).compile_count == 1
    assert build(tmp_path, SOURCE.replace("* 2", "* 3")).compile_count == 1
    assert build(tmp_path, SOURCE.replace("'z'", "'u'")).compile_count == 1
    assert build(tmp_path, opt_level=1).compile_count == 1
    assert build(tmp_path, hints={"b": 3}).compile_count == 1
    assert build(tmp_path / "elsewhere").compile_count == 1


def test_what_is_found_again(tmp_path: Path) -> None:
    build(tmp_path)
    assert build(tmp_path, "\n# moved by two lines\n" + SOURCE).compile_count == 0
    for options in ({"threads": 1}, {"output": "buffer"}, {"verify": False}, {"cache_bytes": 1 << 20}):
        assert build(tmp_path, **options).compile_count == 0


def test_the_key_knows_the_compiler_and_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    key_module = importlib.import_module("shlo_disc.driver.cache.key")
    program, host, level = read(function_of(), SPECS), Options(cpu="host"), Options(cpu="x86-64-v3")
    key, key_of_level = cache_key(program, host), cache_key(program, level)
    assert key == cache_key(read(function_of(), SPECS), host) != key_of_level
    monkeypatch.setattr(key_module, "usable_features", lambda: ("avx",))
    other = cache_key(program, host)
    assert cache_key(program, level) == key_of_level  # any processor compiles the same code for it
    monkeypatch.setattr(key_module, "_compiler", lambda: b"another")
    assert len({key, other, key_of_level, cache_key(program, host), cache_key(program, level)}) == 5


def test_stablehlo_text(tmp_path: Path) -> None:
    text = str(jax.jit(lambda x: jnp.exp(x) + 1).lower(jnp.ones((4, 3))).as_text())
    options = Options(cache_dir=tmp_path, symbolic=True)
    first, second = shlo_disc.compile(text, options=options), shlo_disc.compile(text, options=options)
    assert (first.compile_count, second.compile_count) == (1, 0)
    assert shlo_disc.compile(text, options=Options(cache_dir=tmp_path)).compile_count == 1
    x = np.ones((7, 5), np.float32)
    np.testing.assert_array_equal(first(x), second(x))


def test_sizes_from_data(tmp_path: Path) -> None:
    def positives(x: Any) -> Any:
        return jnp.cumsum(x[shlo_disc_numpy.nonzero(x > 0)[0]])

    shlo_disc_numpy = importlib.import_module("shlo_disc.numpy")
    first, second = (
        shlo_disc.compile(positives, args=(("n", "float32"),), options=Options(cache_dir=tmp_path)) for _ in range(2)
    )
    assert (first.compile_count, second.compile_count) == (1, 0)
    x = np.array([3, -1, 4, -2, 5], np.float32)
    np.testing.assert_array_equal(second(x), first(x))
    assert second(x).shape == (3,)


class Pair:
    """A pytree node that only JAX knows."""

    def __init__(self, a: Any, b: Any):
        self.a, self.b = a, b


jax.tree_util.register_pytree_node(Pair, lambda pair: ((pair.a, pair.b), None), lambda _, children: Pair(*children))


def test_pytree_nodes_of_the_user(tmp_path: Path) -> None:
    spec = Pair(jax.ShapeDtypeStruct((3,), jnp.float32), jax.ShapeDtypeStruct((3,), jnp.float32))
    build = lambda: shlo_disc.compile(  # noqa: E731
        lambda pair: Pair(pair.b, pair.a + 1), args=(spec,), options=Options(cache_dir=tmp_path)
    )
    build()
    executable = build()
    assert executable.compile_count == 0
    result = executable(Pair(np.zeros(3, np.float32), np.ones(3, np.float32)))
    assert isinstance(result, Pair) and list(result.a) == [1] * 3 and list(result.b) == [1] * 3


def test_a_damaged_entry_is_compiled_again(tmp_path: Path) -> None:
    build(tmp_path)
    (entry,) = tmp_path.iterdir()
    data = bytearray(entry.read_bytes())
    data[-1] ^= 1
    entry.write_bytes(data)
    with pytest.warns(CacheWarning, match="is damaged"):
        executable = build(tmp_path)
    assert executable.compile_count == 1
    assert build(tmp_path).compile_count == 0


def test_an_entry_that_cannot_be_loaded_is_compiled_again(tmp_path: Path) -> None:
    """Its checksums are right and its contents are not, as after an error in the compiler.

    For this processor: a program for a named level is loaded at its first call.
    """
    executable = build(tmp_path, cpu="host")
    (entry,) = tmp_path.iterdir()
    artifact = executable.artifact
    header = {**artifact.header, "target": {"triple": "riscv64-unknown-linux", "features": []}}
    entry.write_bytes(shlo_disc.runtime.Artifact.of(header, artifact.object).serialize())
    assert build(tmp_path, cpu="host").compile_count == 1
    assert build(tmp_path, cpu="host").compile_count == 0


PROCESS = f"""
import sys
import jax.numpy as jnp, numpy as np
import shlo_disc
{SOURCE}
executable = shlo_disc.compile(f, args={SPECS!r})
y = executable(np.ones((3, 6), np.float32), np.ones((6, 9), np.float32))["y"]
assert y.shape == (3, 9) and abs(y - np.tanh(6)).max() < 1e-6
modules = ("torch_mlir", "llvmlite", "jax._src.pallas")
print(executable.compile_count, *(name in sys.modules for name in modules))
"""


@pytest.mark.slow
def test_processes_share_the_cache(tmp_path: Path) -> None:
    """Two that compile at once, then one that finds the program and needs neither MLIR nor LLVM, nor Pallas."""
    environment = {**os.environ, "SHLO_DISC_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PROCESS]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    for process in [start(), start()]:
        output, errors = process.communicate(timeout=120)
        assert output.split()[0] in "01", errors
    output, errors = start().communicate(timeout=120)
    assert output.split() == ["0", "False", "False", "False"], errors
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".shlodisc"]
