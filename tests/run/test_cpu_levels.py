# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Artifacts with code for several levels of processors: what they hold, which level runs, and damage to them."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import ArtifactError, OptionError
from shlo_disc.lowering.codegen.cpu_target import CpuTarget
from shlo_disc.runtime import Artifact, Client
from shlo_disc.runtime.cpu_features import missing_features
from tests.c import c_api

LEVELS = ("x86-64-v3", "x86-64-v4", "sapphirerapids")
WEIGHTS = np.random.default_rng(0).standard_normal((24, 40)).astype(np.float32)


def model(x: Any) -> Any:
    return jnp.tanh(x @ WEIGHTS).sum(1)


@pytest.fixture(scope="module")
def executable() -> Any:
    options = shlo_disc.Options(cpu=("sapphirerapids", "x86-64-v3", "x86-64-v4"))  # in any order
    return shlo_disc.compile(model, args=(("n, 24", "float32"),), options=options)


@pytest.fixture(scope="module")
def saved(executable: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("levels") / "model.disc"
    executable.save(path)
    return path


def runs(level: str) -> bool:
    return not missing_features(CpuTarget.named(level).features)


def x(n: int = 5) -> np.ndarray:
    return np.random.default_rng(n).standard_normal((n, 24)).astype(np.float32)


def test_each_level_has_its_code(executable: Any, saved: Path) -> None:
    read = Artifact.open(saved)
    assert [name for name, data in read.sections.items() if len(data)] == [
        "object", "consts", "header1", "object1", "header2", "object2"
    ]  # fmt: skip
    assert [level.header["target"]["cpu"] for level in read.levels()] == list(LEVELS)
    assert bytes(read.levels()[0].object) != bytes(read.levels()[1].object)
    assert {bytes(level.constants) for level in read.levels()} == {bytes(read.constants)}
    assert "avx512f" not in read.levels()[0].header["target"]["features"]
    assert "amx-tile" in read.levels()[2].header["target"]["features"]
    assert executable.compile_count == 3


def test_the_best_level_runs(executable: Any, saved: Path) -> None:
    best = [level for level in LEVELS if runs(level)][-1]
    loaded = shlo_disc.load(saved, trust=True)
    assert loaded.header["target"]["cpu"] == executable.loaded.header["target"]["cpu"] == best
    np.testing.assert_allclose(loaded(x()), model(x()), rtol=1e-5, atol=1e-5)
    assert repr(loaded) == f"<LoadedExecutable model(f32[n, 24]) -> f32[n] for {best}>"
    np.testing.assert_array_equal(executable(x()), loaded(x()))
    assert executable.signature.arguments[0].dtype == "f32" and "n" in executable.peak_memory_formula


def test_levels_by_their_names(saved: Path) -> None:
    for level in filter(runs, LEVELS):
        loaded = shlo_disc.load(saved, trust=True, cpu=level)
        assert loaded.header["target"]["cpu"] == level
        alone = shlo_disc.compile(model, args=(("n, 24", "float32"),), options=shlo_disc.Options(cpu=level))
        assert bytes(alone.artifact.object) == bytes(Artifact.open(saved).levels()[LEVELS.index(level)].object)
        for n in (1, 7):
            np.testing.assert_array_equal(loaded(x(n)), alone(x(n)))
            (result,) = c_api.Program(saved.read_bytes(), cpu=level.encode())(x(n))
            np.testing.assert_allclose(result, alone(x(n)), rtol=1e-5, atol=1e-5)  # C has no BLAS here


@pytest.mark.skipif(all(map(runs, LEVELS)), reason="this processor has all levels")
def test_a_level_that_this_processor_lacks(saved: Path) -> None:
    """The text says to leave `cpu` out where other code of the file runs here."""
    best = [level for level in LEVELS if runs(level)][-1]
    text = f"made for a processor with .*, which this one lacks: {{}}, which runs the code for '{best}'( .DISC-A103.)?$"
    with pytest.raises(ArtifactError, match=text.format("load it without cpu")) as error:
        shlo_disc.load(saved, trust=True, cpu="sapphirerapids")
    with pytest.raises(c_api.CError, match=text.format("leave cpu of disc_load_options NULL")) as caught:
        c_api.Program(saved.read_bytes(), cpu=b"sapphirerapids")
    assert error.value.code == caught.value.code == "DISC-A103"


@pytest.mark.skipif(runs("x86-64-v4"), reason="this processor has all levels")
def test_a_level_where_this_processor_runs_none(tmp_path: Path) -> None:
    path = tmp_path / "model.disc"
    options = shlo_disc.Options(cpu=("x86-64-v4", "sapphirerapids"))
    shlo_disc.compile(model, args=(("n, 24", "float32"),), options=options).save(path)
    text = r"which this one lacks: compile the program with Options\(cpu=\"x86-64-v3\"\)"
    for cpu in ("", "x86-64-v4", "sapphirerapids"):
        with pytest.raises(ArtifactError, match=text):
            shlo_disc.load(path, trust=True, cpu=cpu)
        with pytest.raises(c_api.CError, match=text):
            c_api.Program(path, cpu=cpu.encode())


@pytest.mark.skipif(all(map(runs, LEVELS)), reason="this processor has all levels")
def test_programs_are_compiled_for_processors_that_this_one_is_not(saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "program.disc"
    executable = shlo_disc.compile(model, args=(("n, 24", "float32"),), options=shlo_disc.Options(cpu="sapphirerapids"))
    executable.save(path)
    assert bytes(Artifact.open(path).object) == bytes(
        Artifact.open(saved).levels()[LEVELS.index("sapphirerapids")].object
    )
    assert "sapphirerapids" in repr(executable) and executable.as_text("asm") and executable.kernels
    for call in (lambda: executable(x()), lambda: executable.bind(x()), lambda: executable.prepare(n=3)):
        with pytest.raises(ArtifactError, match="which this one lacks"):
            call()


@pytest.mark.skipif(runs("x86-64-v4"), reason="this processor has all levels")
def test_a_level_beside_those_that_this_processor_lacks(tmp_path: Path) -> None:
    """The command of the text makes a file that loads, and leaving `cpu` out is not advised, for it does not help."""
    path = tmp_path / "model.disc"
    options = shlo_disc.Options(cpu="x86-64-v4")
    shlo_disc.compile(model, args=(("n, 24", "float32"),), options=options).save(path)
    words = r"not for 'x86-64-v3', and this processor runs no code that it has: compile the program with Options\(cpu="
    with pytest.raises(c_api.CError, match=words) as caught:
        c_api.Program(path, cpu=b"x86-64-v3")
    with pytest.raises(ArtifactError, match=words):
        shlo_disc.load(path, trust=True, cpu="x86-64-v3")
    (level,) = re.findall(r"`python -m shlo_disc compile --cpu (\S+)`", caught.value.text)
    shlo_disc.compile(model, args=(("n, 24", "float32"),), options=shlo_disc.Options(cpu=level)).save(path)
    assert len(c_api.Program(path, cpu=b"x86-64-v3")(x())) == 1


def test_c_runs_the_best_level_as_python(saved: Path) -> None:
    (result,) = c_api.Program(saved.read_bytes())(x())
    np.testing.assert_allclose(result, model(x()), rtol=1e-5, atol=1e-5)


def test_a_level_that_is_not_there(saved: Path) -> None:
    text = "made for 'x86-64-v3', 'x86-64-v4', 'sapphirerapids', and not for 'x86-64-v5': load it without cpu"
    with pytest.raises(ArtifactError, match=text) as error:
        shlo_disc.load(saved, trust=True, cpu="x86-64-v5")
    assert error.value.code == "DISC-A103"
    with pytest.raises(c_api.CError, match=text.replace("load it without cpu", "leave cpu of disc_load_options NULL")):
        c_api.Program(saved.read_bytes(), cpu=b"x86-64-v5")


def test_a_level_of_a_file_for_the_processor_that_compiled_it(tmp_path: Path) -> None:
    path = tmp_path / "model.disc"
    shlo_disc.compile(model, args=(("n, 24", "float32"),), options=shlo_disc.Options(cpu="host")).save(path)
    text = r"made for the processor that compiled it, and not for \'x86-64-v3\': .* Options\(cpu=\.\.\.\)"
    with pytest.raises(ArtifactError, match=text) as error:
        shlo_disc.load(path, trust=True, cpu="x86-64-v3")
    assert error.value.code == "DISC-A103"
    with pytest.raises(c_api.CError, match=text):
        c_api.Program(path.read_bytes(), cpu=b"x86-64-v3")


def test_two_compiles_write_the_same_bytes(executable: Any, saved: Path) -> None:
    again = shlo_disc.compile(model, args=(("n, 24", "float32"),), options=executable.options)
    assert again.artifact.serialize() == saved.read_bytes() == Artifact.open(saved).serialize()


def test_constants_that_differ_are_kept_for_each() -> None:
    one = Artifact.of({"target": {}}, b"code", b"a" * 64)
    other = Artifact.of({"target": {}}, b"other", b"b" * 64)
    both = Artifact.deserialize(Artifact.of_levels([one, other, one]).serialize())
    assert [bytes(level.constants[:1]) for level in both.levels()] == [b"a", b"b", b"a"]
    with pytest.raises(ArtifactError, match="at most, not for 10"):
        Artifact.of_levels([one] * 10)


def verdicts(data: bytes) -> tuple[str, str]:
    """The verdicts of Python and C on bytes."""
    found = []
    for load in (lambda: Client(threads=1).load(data, trust=True), lambda: c_api.Program(data, threads=1)):
        try:
            load()
        except ArtifactError as error:
            found.append(error.message)
        except c_api.CError as error:
            found.append(str(error).removeprefix("ArtifactError: "))
        else:
            found.append("loaded")
    return found[0], found[1]


def test_damage_is_refused_in_python_and_c(saved: Path) -> None:
    good, rng = saved.read_bytes(), random.Random(0)
    for _ in range(300):
        place = rng.randrange(len(good))
        bad = bytearray(good)
        bad[place] ^= 1 << rng.randrange(8)
        python, c = verdicts(bytes(bad))
        assert python == c != "loaded", place


def test_a_level_s_header_that_is_wrong_and_well_sealed(saved: Path) -> None:
    read = Artifact.open(saved, trust=True)
    kept = {name: read.sections[name] for name in ("object", "consts", "object1")}
    for text, verdict in {
        b"{": "header",
        b"[]": "the header is not a JSON object",
        b"\xff": "header",
        b"{}": "loaded",  # is for no processor
        b'{"target":{"features":[1]}}': "loaded",
        b'{"target":{"features":[]}}': "header",
    }.items():
        python, c = verdicts(Artifact(read.header, {**kept, "header1": text}).serialize())
        assert python == c and verdict in python, text


def test_a_level_without_code_is_refused(saved: Path) -> None:
    read = Artifact.open(saved, trust=True)
    header = {**json.loads(bytes(read.sections["header1"])), "target": read.header["target"]}
    kept = {name: read.sections[name] for name in ("object", "consts")}
    python, c = verdicts(Artifact(read.header, {**kept, "header1": json.dumps(header).encode()}).serialize())
    assert python == c != "loaded"


def test_options_are_checked() -> None:
    for wrong in ((), ("host", "x86-64-v3"), ("zen4",), 3):
        with pytest.raises(OptionError, match="cpu must be 'host', one of"):
            shlo_disc.Options(cpu=wrong)  # type: ignore[arg-type]
    several = shlo_disc.Options(cpu=("x86-64-v3", "x86-64-v4"))
    with pytest.raises(OptionError, match="several levels of processors are for the target 'cpu'"):
        shlo_disc.compile(model, args=(("n, 24", "float32"),), target="cuda:sm_80", options=several)


def test_the_compile_cache(tmp_path: Path) -> None:
    options = shlo_disc.Options(cpu=("x86-64-v3", "x86-64-v4"), cache_dir=str(tmp_path))
    first, second = (shlo_disc.compile(jnp.exp, args=(("n", "float32"),), options=options) for _ in range(2))
    assert (first.compile_count, second.compile_count) == (2, 0)
    assert second.artifact.serialize() == first.artifact.serialize()
    assert second.peak_memory_formula == first.peak_memory_formula
