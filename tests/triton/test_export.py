# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`shlo_disc export --triton`: the files that it writes, which the backend serves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shlo_disc
from shlo_disc.runtime import Artifact
from shlo_disc.runtime.triton_repository import configuration
from shlo_disc.tools.cli import main
from tests.triton.conftest import Save
from tests.triton.server import Server, ServerError

DENSE = """
func.func @main(%w: tensor<3x5xf32>, %x: tensor<?x3xf32>) -> tensor<?x5xf32> {
  %0 = stablehlo.dot %x, %w : (tensor<?x3xf32>, tensor<3x5xf32>) -> tensor<?x5xf32>
  return %0 : tensor<?x5xf32>
}
"""

CONFIG = """\
backend: "shlo_disc"
max_batch_size: 8
dynamic_batching { }
input { name: "x" data_type: TYPE_FP32 dims: [-1] allow_ragged_batch: true }
output { name: "result" data_type: TYPE_FP32 dims: [1] reshape { shape: [] } }
parameters { key: "trust" value { string_value: "true" } }
"""


def export(capsys: Any, *arguments: Any, status: int = 0) -> Any:
    """The document that the command prints, or its error."""
    assert main(["export", *map(str, arguments), "--json"]) == status
    document = json.loads(capsys.readouterr().out)
    return document["error"]["message"] if status else document


def test_an_artifact(save: Save, tmp_path: Path, capsys: Any) -> None:
    file = save(lambda x: x.sum(-1), ("b, s", "float32"), constraints=["b <= 16"]) / "1" / "model.disc"
    folder = tmp_path / "repository" / "sums"
    found = export(capsys, file, "--triton", folder, "--max-batch-size", 8, "--trust")
    assert found["files"] == [str(folder / "config.pbtxt"), str(folder / "1" / "model.disc")] and found["trusted"]
    assert (folder / "config.pbtxt").read_text() == CONFIG
    assert (folder / "1" / "model.disc").read_bytes() == file.read_bytes()
    found = export(capsys, file, "--triton", folder)
    assert not found["trusted"] and "trust" not in (folder / "config.pbtxt").read_text()
    with pytest.raises(ServerError, match="DISC-A101"):
        Server(folder, backend={})
    assert main(["export", str(file), "--triton", str(folder)]) == 0
    assert "--backend-config=shlo_disc,trust=true, or export it with --trust" in capsys.readouterr().out
    words = "the maximum batch size is 17, and the program has b <= 16"
    assert export(capsys, file, "--triton", folder, "--max-batch-size", 17, status=2) == words
    assert "must not be negative" in export(capsys, file, "--triton", folder, "--max-batch-size", -1, status=2)


def test_programs_for_gpus(save: Save) -> None:
    header = Artifact.open(save(lambda x: x, ("n", "float32")) / "1" / "model.disc").header
    with pytest.raises(
        shlo_disc.OptionError, match="is for cuda:sm_80, and the backend runs programs on the processor"
    ):
        configuration({**header, "target": {**header["target"], "name": "cuda:sm_80"}})


def test_a_program(tmp_path: Path, capsys: Any) -> None:
    source, folder = tmp_path / "dense.mlir", tmp_path / "dense"
    source.write_text(DENSE)
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((3, 5), np.float32), rng.standard_normal((7, 3), np.float32)
    (tmp_path / "w.bin").write_bytes(w.tobytes())
    assert export(capsys, source, "--triton", folder, "--weights", tmp_path / "w.bin")["trusted"]
    with Server(folder, {"parameters": {"trust": {"string_value": "true"}}}, backend={}) as server:
        (name,) = (row["name"] for row in server.completed["input"])
        np.testing.assert_allclose(server(**{name: x}).outputs["result"], x @ w, rtol=2e-5, atol=2e-5)
    (tmp_path / "w.bin").write_bytes(w.tobytes()[1:])
    found = export(capsys, source, "--triton", folder, "--weights", tmp_path / "w.bin", status=2)
    assert found == "the weights have 59 bytes, which no number of the program's first arguments has in all"


def test_weights_by_name(save: Save, tmp_path: Path, capsys: Any) -> None:
    file = save(lambda w, bias, x: x @ w + bias, ("3, 5", "float32"), ("5", "float32"), ("b, 3", "float32"))
    file, folder = file / "1" / "model.disc", tmp_path / "dense"
    w, bias = np.ones((3, 5), np.float32), np.arange(5, dtype=np.float32)
    np.savez(tmp_path / "weights.npz", bias=bias, w=w)
    export(capsys, file, "--triton", folder, "--weights", tmp_path / "weights.npz")
    assert (folder / "1" / "model.weights").read_bytes() == w.tobytes() + bias.tobytes()
    for wrong, words in ((bias.astype(np.float64), "float64[5] for args[1]"), (bias[:4], "float32[4] for args[1]")):
        np.savez(tmp_path / "weights.npz", bias=wrong, w=w)
        found = export(capsys, file, "--triton", folder, "--weights", tmp_path / "weights.npz", status=1)
        assert words in found
    np.savez(tmp_path / "weights.npz", other=w)
    assert "weights= has other" in export(
        capsys, file, "--triton", folder, "--weights", tmp_path / "weights.npz", status=1
    )


def test_weights_of_pytorch(tmp_path: Path, capsys: Any) -> None:
    """Weights of convolutions have their axes in another order."""
    torch = pytest.importorskip("torch")
    layer = torch.nn.Sequential(torch.nn.Conv1d(2, 3, 3), torch.nn.Flatten(1), torch.nn.LazyLinear(4)).eval()
    layer(torch.ones(1, 2, 8))
    dynamic = ({0: torch.export.Dim("batch", max=64)},)
    run = shlo_disc.compile(torch.export.export(layer, (torch.ones(2, 2, 8),), dynamic_shapes=dynamic))
    file, folder = tmp_path / "layer.disc", tmp_path / "layer"
    run.save(file, weights=tmp_path / "layer.npz")
    export(capsys, file, "--triton", folder, "--weights", tmp_path / "layer.npz", "--max-batch-size", 64, "--trust")
    x = np.random.default_rng(0).standard_normal((5, 2, 8), np.float32)
    with Server(folder, {"max_batch_size": 64}) as server, torch.no_grad():
        (name,), (result,) = ([row["name"] for row in server.completed[part]] for part in ("input", "output"))
        found = server((result,), **{name: x}).outputs[result]
        np.testing.assert_allclose(found, layer(torch.from_numpy(x)).numpy(), rtol=2e-4, atol=2e-5)
