# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The backend in Triton Inference Server itself, where SHLO_DISC_TRITONSERVER or nvidia-pytriton has its binary."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import numpy as np
import pytest

import shlo_disc
from benchmarks.triton_server import TritonServer, binary, infer, served
from shlo_disc.runtime.triton_repository import write_model
from tests.triton.conftest import attend

pytestmark = pytest.mark.skipif(binary() is None, reason="SHLO_DISC_TRITONSERVER names no Triton server")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonServer]:
    repository = tmp_path_factory.mktemp("triton") / "repository"
    run = shlo_disc.compile(attend, args=(("b, s", "float32"), ("b, s", "float32")), constraints=["s <= 512"])
    write_model(run.artifact, repository / "attend", max_batch_size=16)
    config = repository / "attend" / "config.pbtxt"
    text = config.read_text().replace(
        "dynamic_batching { }", "dynamic_batching { max_queue_delay_microseconds: 20000 }"
    )
    config.write_text(text + "instance_group [ { kind: KIND_CPU count: 2 } ]\n")
    bare = repository / "bare.shlo_disc" / "1"  # without a configuration
    bare.mkdir(parents=True)
    shutil.copy(repository / "attend" / "1" / "model.disc", bare / "model.shlo_disc")
    with served(repository, "--backend-config=shlo_disc,trust=true") as running:
        yield running


def check(server: TritonServer, model: str, rows: int, columns: int) -> None:
    rng = np.random.default_rng([rows, columns])
    x, mask = (rng.standard_normal((rows, columns), np.float32) for _ in range(2))
    found = infer(server.connect(), model, {"x": x, "mask": mask})
    for name, wanted in jax.jit(attend)(x, mask).items():
        other = found[f"result['{name}']"]  # a batch of scalars is [b, 1] where requests are joined
        np.testing.assert_allclose(other.reshape(wanted.shape), wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("model", ["attend", "bare.shlo_disc"])
def test_numbers(server: TritonServer, model: str) -> None:
    for rows, columns in [(1, 1), (2, 15), (3, 17), (16, 512)]:
        check(server, model, rows, columns)


def test_requests_are_joined(server: TritonServer) -> None:
    def counts() -> tuple[int, int]:
        (stats,) = server.get("v2/models/attend/stats")["model_stats"]
        return stats["inference_count"], stats["execution_count"]

    before = counts()
    with ThreadPoolExecutor(8) as clients:
        list(clients.map(lambda i: check(server, "attend", 1, 3 + i % 2), range(48)))
    requests, calls = (now - then for now, then in zip(counts(), before, strict=True))
    assert requests == 48 and calls < 36


def test_errors(server: TritonServer) -> None:
    x = np.zeros((1, 513), np.float32)
    with pytest.raises(RuntimeError, match="DISC-S103: the sizes do not satisfy s <= 512"):
        infer(server.connect(), "attend", {"x": x, "mask": x})
    with pytest.raises(RuntimeError, match="batch-size must be <= 16"):
        infer(server.connect(), "attend", {"x": np.zeros((17, 2), np.float32), "mask": np.zeros((17, 2), np.float32)})
    assert server.get("v2/models/attend/config")["instance_group"][0]["count"] == 2


def test_a_model_that_is_not_trusted(tmp_path: Path) -> None:
    run = shlo_disc.compile(lambda x: x, args=(("n", "float32"),))
    write_model(run.artifact, tmp_path / "repository" / "plain")
    config = tmp_path / "repository" / "plain" / "config.pbtxt"
    config.write_text('backend: "shlo_disc"\n')
    words = "DISC-A101: the artifact of model 'plain' holds native code"
    with pytest.raises(RuntimeError, match=words), served(tmp_path / "repository"):
        pass
