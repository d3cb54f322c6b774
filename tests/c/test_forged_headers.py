# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Headers that say something else than what the code was compiled with, whatever it is: refused, or of no effect."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import ArtifactError
from shlo_disc.runtime import Artifact, Client

from .building import build, run, sanitized_library
from .forging import forged, sealed
from .test_robust import CHAIN, layers, packable

ROOT = Path(__file__).parents[2]
OF_NO_EFFECT = re.compile(r"\w+: (prepacked\b.*|pjrt\b.*|constants( reversed|\.\d+\.(offset|bytes) .*))")
"""Changes of fields that are written once the code has been compiled. Such a change is either right or refused."""


def spectrum(x: jax.Array, w: jax.Array) -> dict[str, jax.Array]:
    """f32[2*b + 1, s], f32[s] -> a library call, a loop over data, and results that are a pytree."""
    power = jnp.abs(jnp.fft.fft(x))
    total = jax.lax.while_loop(lambda c: c[0] < power[0, 0], lambda c: (c[0] + 1, c[1] * 0.5 + w), (0.0, w))[1]
    return {"power": power, "total": total, "half": x[: x.shape[0] // 2]}


PROGRAMS: dict[str, tuple[Any, Any, list[tuple[int, ...]]]] = {
    "layers": (layers, ("b, 24",), [(5, 24)]),
    "packable": (packable, ("b, 64",), [(5, 64)]),
    "prepacked": (packable, ("b, 64",), [(5, 64)]),
    "spectrum": (spectrum, ("2*b + 1, s", "s"), [(5, 8), (8,)]),
    "chain": (CHAIN, (), [(4,)]),
    "static": (lambda x: (x.T @ x, x.sum(0)), ("4, 6",), [(4, 6)]),
}


@pytest.fixture(scope="module", params=PROGRAMS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """An artifact and a file of arguments."""
    function, shapes, sizes = PROGRAMS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    made = {} if isinstance(function, str) else {"args": tuple((shape, "float32") for shape in shapes)}
    executable = shlo_disc.compile(function, **made)
    executable.save(folder / "program.disc", prepack=request.param == "prepacked")
    arrays = [np.random.default_rng(i).random(size, np.float32) for i, size in enumerate(sizes)]
    np.savez(folder / "arguments.npz", *arrays)
    return folder / "program.disc", folder / "arguments.npz"


def test_forged_headers(program: tuple[Path, Path]) -> None:
    """In a process of its own, which may die of it."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.c.forging", *map(str, program)],
        capture_output=True, text=True, cwd=ROOT, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    accepted = done.stdout.splitlines()
    assert all(map(OF_NO_EFFECT.fullmatch, accepted)), accepted
    assert "forged" not in done.stderr


@pytest.mark.slow
def test_forged_headers_under_a_sanitizer(program: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> None:
    library = sanitized_library("asan", tmp_path_factory.getbasetemp() / "sanitized")
    binary = build("verdicts.cpp", tmp_path_factory.mktemp("forged"), library, "asan")
    artifact = Artifact.deserialize(program[0].read_bytes())
    changed = list(forged(json.loads(artifact.header_text)))
    all_bytes = [sealed(artifact, header) for _, header in changed]
    data = b"".join(struct.pack("<QQQ", 0, 0, len(one)) + one for one in all_bytes)
    verdicts = run(binary, program[0], data=data).decode().split("\0")[:-1]
    for (name, _), verdict in zip(changed, verdicts, strict=True):
        assert verdict != "loaded" or OF_NO_EFFECT.fullmatch(f"C: {name}"), name


# ---- headers of code that does not say which one it was compiled with ------------------------------------------------

GOLDEN = ROOT / "tests" / "golden" / "0.1.0" / "layers.disc"


def without_symbols(header: dict[str, Any]) -> None:
    header["symbols"] = []


def with_symbol_twice(header: dict[str, Any]) -> None:
    header["symbols"] *= 2


def with_another_name(header: dict[str, Any]) -> None:
    header["symbols"][0]["name"] = "other"


def solved_from_a_number(header: dict[str, Any]) -> None:
    header["symbols"][0]["solve"]["dim"] = 1


def with_unknown_result(header: dict[str, Any]) -> None:
    header["results"][0]["shape"][0] = "unknown + 1"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without_symbols, "has the symbol 'b', which nothing tells"),
        (with_symbol_twice, "there are two symbols 'b'"),
        (with_another_name, "has the symbol 'b', which nothing tells"),
        (solved_from_a_number, "symbol 'b' is solved from a size that is a number"),
        (with_unknown_result, "has the symbol 'unknown', which nothing tells"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_headers_that_contradict_themselves(change: Any, message: str) -> None:
    """Those of old releases too, of whose code nothing more is known."""
    artifact = Artifact.open(GOLDEN).levels()[0]
    header = json.loads(artifact.header_text)
    change(header)
    with pytest.raises(ArtifactError, match=re.escape(message)):
        Client(threads=1).load(sealed(artifact, header), trust=True)


def test_results_of_another_size_than_the_header_s() -> None:
    artifact = Artifact.open(GOLDEN).levels()[0]
    header = json.loads(artifact.header_text)
    place, size = next((i, d) for i, d in enumerate(header["results"][0]["shape"]) if isinstance(d, int))
    header["results"][0]["shape"][place] = size + 1
    flat = header["arguments"]
    header["pytree"] = {}
    program = Client(threads=1).load(sealed(artifact, header), trust=True)
    given = [np.zeros([d if isinstance(d, int) else 3 for d in row["shape"]], np.float32) for row in flat]
    with pytest.raises(ArtifactError, match=f"is {size + 1}, and the program makes {size}"):
        program(*given)


# ---- what the digest is of -------------------------------------------------------------------------------------------


def test_other_spellings_of_a_header() -> None:
    """Order and spaces are no difference; C and Python read them alike."""
    artifact = shlo_disc.compile(layers, args=(("b, 24", "float32"),)).artifact
    spaced = json.dumps(dict(reversed(artifact.header.items())), indent=3).encode()
    other = Artifact({}, artifact.sections)
    object.__setattr__(other, "_read", spaced)
    assert other.header_digest() == artifact.header_digest() == artifact.prepacked().header_digest()
    x = np.ones((3, 24), np.float32)
    both = (Client(threads=1).load(a.serialize(), trust=True)(x) for a in (other, artifact))
    for found, wanted in zip(*both, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_all_levels_have_digests() -> None:
    options = shlo_disc.Options(cpu=("x86-64-v3", "x86-64-v4"))
    artifact = shlo_disc.compile(layers, args=(("b, 24", "float32"),), options=options).artifact
    assert len({level.header_digest() for level in artifact.levels()}) == 2
    for level in artifact.levels():
        assert level.header_digest() in bytes(level.object)
