# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C API under threads, lack of memory, damaged artifacts and many shapes, plain and under sanitizers.

The slow tests build the library once for each sanitizer.
"""

from __future__ import annotations

import json
import random
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import DiscError
from shlo_disc.runtime import Artifact, Client

from . import bare
from .building import build, run, sanitized_library, sanitized_module
from .c_api import without_remedy

SANITIZED = [pytest.param("asan", marks=pytest.mark.slow)]

CHAIN = """
func.func @main(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.add %x, %x : tensor<?xf32>
  %last = stablehlo.reduce(%y init: %zero) applies stablehlo.maximum across dimensions = [0]
    : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
  %three = stablehlo.constant dense<3.0> : tensor<f32>
  %more = stablehlo.add %last, %three : tensor<f32>
  %n = stablehlo.convert %more : (tensor<f32>) -> tensor<i64>
  %n1 = stablehlo.reshape %n : (tensor<i64>) -> tensor<1xi64>
  %s = stablehlo.dynamic_broadcast_in_dim %more, %n1, dims = [] : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32>
  %total = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
  return %y, %s, %total : tensor<?xf32>, tensor<?xf32>, tensor<f32>
}
"""
"""As many copies of a number as it says, which is computed from data: two segments."""


def layers(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """f32[b, 24] -> softmax of two layers; and their squares' sum. With constants, products and reductions."""
    rng = np.random.default_rng(0)
    first, second = (rng.standard_normal(shape, np.float32) / 8 for shape in ((24, 40), (40, 16)))
    y = jax.nn.softmax(jnp.tanh(x @ first) @ second)
    return y, (y * y).sum(0)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "layers.disc"
    shlo_disc.compile(layers, args=(("b, 24", "float32"),)).save(path)
    return path


def packable(x: jax.Array) -> jax.Array:
    """f32[b, 64] -> products with constants that are packed."""
    rng = np.random.default_rng(0)
    first, second = (rng.standard_normal(shape, np.float32) / 8 for shape in ((64, 40), (40, 48)))
    return jnp.tanh(x @ first) @ second + second[0]


@pytest.fixture(scope="module")
def saved_all(saved: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Programs without packed constants, with constants that are packed when it is loaded, and with packed ones."""
    found = {"layers": saved}
    executable = shlo_disc.compile(packable, args=(("b, 64", "float32"),))
    for name in ("packable", "prepacked"):
        found[name] = tmp_path_factory.mktemp("saved") / f"{name}.disc"
        executable.save(found[name], prepack=name == "prepacked")
    return found


@pytest.fixture(scope="module")
def saved_chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "chain.disc"
    shlo_disc.compile(CHAIN).save(path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="session")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.getbasetemp() / "sanitized"


def program(name: str, sanitizer: str, folder: Path, sanitized: Path) -> Path:
    """A test program; `sanitizer` is empty for the library that is installed."""
    library = sanitized_library(sanitizer, sanitized) if sanitizer else Path(shlo_disc.get_library())
    own = folder / (sanitizer or "plain")
    own.mkdir(exist_ok=True)
    return build(name, own, library, sanitizer)


# ---- damage ------------------------------------------------------------------------------------------------------

Damage = tuple[int, int, bytes]
"""The number of bytes that are kept, the place of a change, and the bytes that are written there."""


def damaged(good: bytes, damage: Damage) -> bytes:
    kept, place, change = damage
    data = bytearray(good[:kept])
    data.extend(bytes(max(0, place + len(change) - len(data))))
    data[place : place + len(change)] = change
    return bytes(data)


def flips(good: bytes, count: int) -> Iterator[Damage]:
    """One bit of every byte up to the end of the header, and `count` bits anywhere."""
    rng = random.Random(0)
    header_end = good.index(b"}\0") + 1
    for place in [*range(header_end), *(rng.randrange(len(good)) for _ in range(count))]:
        yield len(good), place, bytes([good[place] ^ 1 << rng.randrange(8)])


def cuts(good: bytes) -> Iterator[Damage]:
    for kept in [*range(0, 400, 7), len(good) - 1]:
        yield kept, 0, good[: min(kept, 1)]
    yield len(good), len(good), b"\0"


def resealed(good: bytes, count: int) -> Iterator[Damage]:
    """Headers with a few characters changed, in artifacts whose checksums are right again."""
    rng, read = random.Random(1), Artifact.deserialize(good)
    for _ in range(count):
        text = bytearray(read.header_text)
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(len(text))
            text[place : place + rng.randint(0, 2)] = rng.choice(
                (b"", b"0", b"-1", b"9" * 19, b"[]", b"{}", b'"', b"null", b"\xff")
            )
        yield 0, 0, with_header(read, bytes(text))


def with_header(artifact: Artifact, text: bytes) -> bytes:
    changed = Artifact({}, artifact.sections)
    object.__setattr__(changed, "_read", text)
    return changed.serialize()


def trees_of(data: bytes) -> object:
    """The pytrees in a header, which C does not read; None where it is no JSON."""
    try:
        return Artifact.deserialize(data).header.get("pytree")
    except DiscError:
        return None


def python_verdict(data: bytes) -> str:
    """As the program `verdicts` prints it, whose threads are one, too."""
    try:
        Client(threads=1).load(data, trust=True)
    except DiscError as error:
        return f"{type(error).__name__}: {error.message}"
    except ValueError as error:
        return f"{type(error).__name__}: {error}"
    return "loaded"


def c_verdicts(binary: Path, artifact: Path, damages: list[Damage]) -> list[str]:
    data = b"".join(struct.pack("<QQQ", kept, place, len(change)) + change for kept, place, change in damages)
    return run(binary, artifact, data=data).decode().split("\0")[:-1]


@pytest.mark.parametrize("sanitizer", ["", *SANITIZED])
def test_every_flipped_bit_is_refused_in_c_and_python(
    saved: Path, sanitizer: str, folder: Path, sanitized: Path
) -> None:
    good = saved.read_bytes()
    damages = [*flips(good, 10_000 if sanitizer else 500), *cuts(good)]
    verdicts = c_verdicts(program("verdicts.cpp", sanitizer, folder, sanitized), saved, damages)
    assert len(verdicts) == len(damages)
    for damage, verdict in zip(damages, verdicts, strict=True):
        assert verdict.startswith("ArtifactError: "), damage
        assert without_remedy(verdict) == without_remedy(python_verdict(damaged(good, damage)))


PYTHON = """
import struct, sys
from shlo_disc.runtime import Client
good, client, read = open(sys.argv[1], "rb").read(), Client(threads=1), sys.stdin.buffer.read
while damage := read(24):
    kept, place, length = struct.unpack("<QQQ", damage)
    data = bytearray(good[:kept])
    data.extend(bytes(max(0, place + length - len(data))))
    data[place : place + length] = read(length)
    try:
        client.load(bytes(data), trust=True)
        print("loaded", end="\\0")
    except Exception as error:
        print(f"{type(error).__name__}: {getattr(error, 'message', error)}", end="\\0")
"""
"""The same as `verdicts.cpp`, in Python."""


@pytest.mark.slow
def test_python_s_module_under_a_sanitizer(saved: Path, folder: Path, sanitized: Path, tmp_path: Path) -> None:
    good = saved.read_bytes()
    damages = [*flips(good, 10_000), *cuts(good), *resealed(good, 1000)]
    data = b"".join(struct.pack("<QQQ", kept, place, len(change)) + change for kept, place, change in damages)
    python = bare.make(tmp_path / "bare", sanitized_module("asan", sanitized))
    libraries = [
        subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("libasan.so", "libstdc++.so")
    ]
    options = {"LD_PRELOAD": " ".join(libraries), "ASAN_OPTIONS": "detect_leaks=0"}  # Python itself leaves some
    verdicts = run(python, "-I", "-c", PYTHON, saved, data=data, **options).decode().split("\0")[:-1]
    wanted = c_verdicts(program("verdicts.cpp", "", folder, sanitized), saved, damages)
    assert len(verdicts) == len(wanted) == len(damages)
    for damage, verdict, of_c in zip(damages, verdicts, wanted, strict=True):
        if trees_of(damaged(good, damage)) in (None, trees_of(good)):
            assert without_remedy(verdict) == without_remedy(of_c)


@pytest.mark.parametrize("sanitizer", ["", *SANITIZED])
@pytest.mark.parametrize("name", ["layers", "packable", "prepacked"])
def test_headers_that_are_wrong_and_well_sealed(
    saved_all: dict[str, Path], name: str, sanitizer: str, folder: Path, sanitized: Path
) -> None:
    """Loading is safe with any header, and C and Python agree on everything except pytrees."""
    good = saved_all[name].read_bytes()
    damages = [*resealed(good, 3000 if sanitizer else 300)]
    verdicts = c_verdicts(program("verdicts.cpp", sanitizer, folder, sanitized), saved_all[name], damages)
    assert len(verdicts) == len(damages)
    assert len(set(verdicts)) > 30
    for damage, verdict in zip(damages, verdicts, strict=True):
        data = damaged(good, damage)
        if trees_of(data) in (None, trees_of(good)):
            assert python_verdict(data) == verdict


# ---- threads, memory, shapes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sanitizer", "calls"), [("", 100), pytest.param("tsan", 300, marks=pytest.mark.slow)])
def test_sixteen_threads(saved: Path, sanitizer: str, calls: int, folder: Path, sanitized: Path) -> None:
    run(program("threads.cpp", sanitizer, folder, sanitized), saved, calls, TSAN_OPTIONS="halt_on_error=1")


@pytest.mark.parametrize("sanitizer", ["", *SANITIZED])
def test_every_allocation_may_fail(
    saved: Path, saved_chain: Path, sanitizer: str, folder: Path, sanitized: Path, tmp_path: Path
) -> None:
    binary = program("failures.cpp", sanitizer, folder, sanitized)
    custom, like = tmp_path / "custom.disc", lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype)
    shlo_disc.register_custom_call("test.negate", 1)  # the address is not used: nothing is called here
    shlo_disc.compile(lambda x: jax.ffi.ffi_call("test.negate", like(x))(x * 2) + 1, args=(("b, 60", "float32"),)).save(
        custom
    )
    lives: tuple[tuple[Path, str, tuple[int, ...]], ...] = (
        (saved, "kernels", (300, 24)),
        (saved_chain, "kernels", (5,)),
        (custom, "library", (3, 60)),
    )
    for artifact, kind, sizes in lives:
        assert int(run(binary, artifact, kind, *sizes)) > 100  # so many have failed


@pytest.mark.parametrize("calls", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_a_thousand_shapes_take_no_more_memory(saved: Path, calls: int, folder: Path, sanitized: Path) -> None:
    assert int(run(program("many_shapes.cpp", "", folder, sanitized), saved, calls)) < 1024  # KiB


def test_a_header_is_what_the_program_says(saved: Path) -> None:
    """Checks the property that `with_header` relies on."""
    read = Artifact.deserialize(saved.read_bytes())
    assert with_header(read, read.header_text) == saved.read_bytes()
    assert json.loads(read.header_text) == read.header
