# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs for the plugin some of whose bytes are wrong: each is refused or compiled, and the process goes on."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.damaged_bytes import damaged, programs
from tests.pjrt.plugin import library, run_python

pypjrt: Any = pytest.importorskip("pypjrt")
client_module: Any = pytest.importorskip("pypjrt.client")
errors: Any = pytest.importorskip("pypjrt.errors")

REFUSED = (errors.InvalidArgument, errors.Unimplemented)
PROGRAM = """
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %c = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
  %p = stablehlo.compare LT, %1, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %2 = stablehlo.select %p, %1, %c : tensor<4xi1>, tensor<4xf32>
  return %0, %2 : tensor<4x4xf32>, tensor<4xf32>
}
"""
FATAL = (
    (61, 246), (44, 208), (44, 96), (249, 215), (79, 5), (237, 203), (47, 140), (45, 64), (266, 208), (234, 45),
    (160, 29), (258, 35), (223, 17), (166, 19), (142, 13), (301, 176), (267, 206), (310, 112), (258, 79), (321, 208),
    (508, 29), (28, 192), (249, 131), (303, 16), (508, 27), (521, 5),
)  # fmt: skip
"""Bytes of the program as a portable artifact, and values for them that end MLIR's reader with a signal or not at all
(with torch-mlir 20261001; another version may write other bytes)."""


@functools.cache
def artifact() -> bytes:
    from shlo_disc.shape_dialect.dialect.context import make_context
    from shlo_disc.shape_dialect.mlir import ir, stablehlo

    return bytes(stablehlo.serialize_portable_artifact(ir.Module.parse(PROGRAM, make_context()), "1.15.0"))


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    plugin = pypjrt.Plugin(library())
    plugin.initialize()
    with client_module.Client(plugin) as made:
        yield made


def fatal_artifacts() -> list[bytes]:
    return [artifact()[:place] + bytes([value]) + artifact()[place + 1 :] for place, value in FATAL]


def compile_or_refuse(client: Any, data: bytes) -> None:
    try:
        client.compile(data).close()
    except REFUSED as error:
        assert str(error)


@pytest.mark.slow
def test_changes_that_end_readers(client: Any) -> None:
    client.compile(artifact()).close()
    for data in fatal_artifacts():
        compile_or_refuse(client, data)
    client.compile(artifact()).close()


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_damaged_programs(client: Any, seed: int) -> None:
    for one in range(seed, seed + 3):
        compile_or_refuse(client, damaged(one, plugin=True)[1])


@pytest.mark.parametrize("name", ["sharding", "layout", "control flow, artifact"])
def test_whole_programs(client: Any, name: str) -> None:
    client.compile(programs(plugin=True)[name]).close()


def test_bombs(client: Any) -> None:
    with pytest.raises(errors.InvalidArgument, match="more than 256 brackets are open"):
        client.compile(PROGRAM.replace("dense<0.0>", "[" * 10_000))


def test_programs_of_jax_are_read_in_this_process(tmp_path: Path) -> None:
    """jaxlib has made their bytes of modules in memory: no other process is started."""
    script = tmp_path / "script.py"
    script.write_text(
        "import jax, numpy as np\nfrom shlo_disc.importer.reader.client import READER\n"
        "assert jax.jit(lambda x: x + 1)(np.ones(3, np.float32)).device.platform == 'shlo_disc'\n"
        "assert not READER._process.is_started\n"
    )
    done = run_python(str(script), JAX_PLATFORMS="shlo_disc,cpu")
    assert done.returncode == 0, done.stderr
