# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`inspect`: an artifact and the program that it was compiled from, and what only the latter has."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import shlo_disc
from shlo_disc.runtime import Artifact
from shlo_disc.runtime.cpu_features import level_of
from shlo_disc.tools.cli import main
from tests.gpu.marks import needs_libdevice


def inspect(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Any:
    assert main(["inspect", "--json", *map(str, arguments)]) == 0
    return json.loads(capsys.readouterr().out)


def test_an_artifact(artifact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = inspect(capsys, artifact)
    read = Artifact.open(artifact)
    assert {row["name"]: row["bytes"] for row in facts["sections"]} == {k: len(v) for k, v in read.sections.items()}
    code = next(row for row in facts["sections"] if row["name"] == "object")
    assert code["sha256"] == hashlib.sha256(read.object).hexdigest() and code["checked"]
    names = {row["name"]: row["bytes"] for row in facts["functions"]}
    assert {"disc_plan", "disc_run", "gemm_f32", "epilogue_tanh_subtract_entry"} <= set(names)
    assert min(names.values()) > 0
    assert facts["processor"]["level"] in ("x86-64-v2", "x86-64-v3", "x86-64-v4")
    assert facts["processor"]["missing_here"] == [] and facts["gpu"] is None
    assert facts["versions"] == {"file_format": 1, "header_format": 1}
    assert facts["kernels"] is facts["peak_memory"] is facts["timings"] is None


def test_code_for_the_processor_that_compiled_it(artifact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The sets of instructions that it uses are no level that `cpu=` of a load could name."""
    assert inspect(capsys, artifact)["processor"]["cpu"] is None
    for command in ("inspect", "info"):
        assert main([command, str(artifact)]) == 0
        assert "-linux-gnu, the processor that compiled it" in capsys.readouterr().out


def test_a_program_has_more(program: Path, artifact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, part = inspect(capsys, program), inspect(capsys, artifact)
    assert set(whole) == set(part)
    for key in ("arguments", "results", "symbols", "constraints", "functions", "flops", "processor"):
        assert whole[key] == part[key], key
    (kernel,) = whole["kernels"]
    assert kernel["kind"] == "dot" and kernel["functions"] == ["gemm_f32", "epilogue_tanh_subtract"]
    assert kernel["sources"] == ["line 3", "line 5", "line 4"]
    assert whole["peak_memory"] == "32*arg0_d0" and "numpy" in whole["versions"]
    assert not any(section["checked"] for section in whole["sections"])


def test_names_of_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def score(params: Any, tokens: Any) -> Any:
        return tokens @ params["w"] + params["b"]

    params = {"w": ("16, 4", "float32"), "b": ("4", "float32")}
    shlo_disc.compile(score, args=(params, ("n, 16", "float32"))).save(tmp_path / "score.disc")
    facts = inspect(capsys, tmp_path / "score.disc")
    assert [row["name"] for row in facts["arguments"]] == ["params['b']", "params['w']", "tokens"]
    assert main(["info", str(tmp_path / "score.disc")]) == 0
    assert "  args[0]['w'] (params['w']): f32[16, 4]\n  args[1] (tokens): f32[n, 16]\n" in capsys.readouterr().out


def test_info_is_the_short_form(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = inspect(capsys, program)
    assert main(["info", str(program), "--json"]) == 0
    short = json.loads(capsys.readouterr().out)
    assert set(short) < set(facts)
    assert all(facts[key] == short[key] for key in short if key not in ("kernels", "sections", "timings"))


@needs_libdevice
def test_a_program_for_gpus(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gpu.disc"
    shlo_disc.compile(program, target="cuda:sm_90").save(path)
    gpu = inspect(capsys, path)["gpu"]
    assert gpu["architecture"] == "sm_90" and gpu["kernels"][0]["threads"] > 0
    assert main(["inspect", str(path)]) == 0
    assert "GPU           sm_90" in capsys.readouterr().out


@pytest.mark.parametrize("key", ["target", "checks", "symbols", "constants"])
def test_a_malformed_header_is_an_error(
    key: str, artifact: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    read = Artifact.open(artifact)
    path = tmp_path / "wrong.disc"
    dataclasses.replace(read, header={**read.header, key: 5}).save(path)
    for command in ("inspect", "disasm") if key == "target" else ("inspect",):
        assert main([command, str(path)]) == 1
        assert "the artifact's header is malformed" in capsys.readouterr().err


def test_damaged_object_code_is_an_error(artifact: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read = Artifact.open(artifact)
    path = tmp_path / "wrong.disc"
    Artifact(read.header, {**read.sections, "object": bytes(read.object)[:100]}).save(path)
    assert main(["inspect", str(path)]) == 1
    assert "the object code is malformed" in capsys.readouterr().err
    assert main(["disasm", str(path)]) == 1


def test_levels_of_processors() -> None:
    two = ["cx16", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"]
    three = [*two, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"]
    four = [*three, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"]
    assert level_of([]) == ("x86-64", [])
    assert level_of(two) == ("x86-64-v2", [])
    assert level_of([*three, "avxvnni"]) == ("x86-64-v3", ["avxvnni"])
    assert level_of(four[:-1])[0] == "x86-64-v3"
    assert level_of([*four, "amx-tile"]) == ("x86-64-v4", ["amx-tile"])
    assert level_of(three[1:]) == ("x86-64", sorted(three[1:]))
