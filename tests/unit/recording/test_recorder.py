# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs are written without their weights, under names that depend on nothing else."""

from __future__ import annotations

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from shlo_disc.driver.recording import record_read, recorder
from shlo_disc.driver.recording.recorder import record
from shlo_disc.importer.program import read
from shlo_disc.importer.programs import JaxProgram, TextProgram
from tests.pjrt.streams import artifact

WEIGHTS = np.arange(8 * 16, dtype=np.float32).reshape(8, 16) + 1234
SMALL = np.arange(8, dtype=np.float32) + 4321


def model(x: Any) -> Any:
    return jnp.tanh(x @ WEIGHTS).sum(1) + SMALL[0] + jnp.asarray(SMALL).sum()


def of_plugin(size: int) -> TextProgram:
    return TextProgram(artifact(model, (np.ones((size, 8), np.float32),)), trusted=True)


def test_a_program_of_the_plugin(tmp_path: Path) -> None:
    path = record(str(tmp_path), of_plugin(3), "plugin")
    assert path is not None
    about = json.loads(path.read_text())
    assert about["arguments"] == ["tensor<3x8xf32>"] and about["results"] == ["tensor<3xf32>"]
    assert [row["type"] for row in about["elided"]] == ["tensor<8x16xf32>"] and about["front"] == "plugin"
    data = (tmp_path / about["program"]).read_bytes()
    assert WEIGHTS[3:5].tobytes() not in data and SMALL.tobytes() in data
    assert path == record(str(tmp_path), of_plugin(3), "plugin")  # the same program has the same name
    assert path != record(str(tmp_path), of_plugin(4), "plugin")
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("kind", ["i32", "i1", "ui8", "f64", "bf16", "complex<f32>", "f8E4M3FN", "i4"])
def test_each_element_type(tmp_path: Path, kind: str) -> None:
    ones = "true" if kind == "i1" else "(1.0, 2.0)" if kind.startswith("complex") else "1.0" if "f" in kind else "1"
    zero = ones.replace("true", "false").replace("1", "0")
    elements = ", ".join([ones, zero] * 40)
    tensor = f"tensor<80x{kind}>"
    constant = f"%0 = stablehlo.constant dense<[{elements}]> : {tensor}"
    text = f"func.func @main() -> {tensor} {{\n{constant}\nreturn %0 : {tensor}\n}}"
    path = record(str(tmp_path), TextProgram(text), "compile")
    assert path is not None and len(json.loads(path.read_text())["elided"]) == 1


def test_an_exported_function_keeps_its_symbols(tmp_path: Path) -> None:
    (size,) = export.symbolic_shape("b", constraints=["b <= 9"])
    exported = export.export(jax.jit(model))(jax.ShapeDtypeStruct((size, 8), np.float32))
    path = record(str(tmp_path), JaxProgram(exported), "compile")
    assert path is not None
    again = read(tmp_path / json.loads(path.read_text())["program"])
    assert isinstance(again, JaxProgram) and str(again.exported.in_avals[0].shape[0]) == "b"


def test_a_folder_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(recorder, "MOST_FILES", 2)
    assert record(str(tmp_path), of_plugin(3), "plugin") is not None
    with caplog.at_level(logging.WARNING):
        assert record(str(tmp_path), of_plugin(4), "plugin") is None
        assert record(str(tmp_path), of_plugin(5), "plugin") is None
    assert caplog.text.count("no more programs are recorded") == 1


def test_what_cannot_be_written_is_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert record(str(tmp_path), TextProgram("func.func @main("), "compile") is None
    assert "a program is not recorded" in caplog.text
    (tmp_path / "file").write_text("")
    assert record(str(tmp_path / "file"), of_plugin(3), "plugin") is None


def test_many_threads_write_one_file(tmp_path: Path) -> None:
    program = of_plugin(3)._replace(data=b"", source="")
    text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\nreturn %x : tensor<4xf32>\n}"
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: record(str(tmp_path), program._replace(data=text), "compile"), range(8)))
    assert len(found) == 1 and len(list(tmp_path.iterdir())) == 2


def test_the_environment_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHLO_DISC_RECORD", raising=False)
    record_read(of_plugin(3), "plugin")
    monkeypatch.setenv("SHLO_DISC_RECORD", str(tmp_path / "new"))
    record_read(of_plugin(3), "plugin")
    assert len(list((tmp_path / "new").glob("*.json"))) == 1
