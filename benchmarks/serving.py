# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Requests of random lengths to Triton Inference Server: throughput and latency of our backend, and of padded jax.jit.

`SHLO_DISC_TRITONSERVER=.../tritonserver python -m benchmarks.serving` serves a BERT and a step of GPT-2's decoding by
the backend, and by Triton's Python backend, where each batch is padded to powers of two for jax.jit: the decoding has
a mask of the valid keys there (`benchmarks.padded_decode`).
Clients are threads that speak HTTP. In a closed loop each sends its next request when it has the answer; in an open
one requests arrive at random times, at a mean rate, and wait in the client if all connections are in use: a latency
is counted from the arrival. The binary is that of nvidia-pytriton, whose wheel has the Python backend too. Numbers
are compared with jax.jit first.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.tables import table
from benchmarks.timing import environment
from benchmarks.triton_server import TritonServer, binary, infer, served
from examples import bert, gpt2, gpt2_decode

BATCH = 16
SIZES = {
    "small": (bert.SMALL, gpt2.SMALL),
    "middle": (
        replace(bert.SMALL, layers=4, width=256, heads=4, hidden=1024, vocabulary=1000, max_length=512),
        replace(gpt2.SMALL, layers=4, width=256, heads=4, vocabulary=1000, max_length=512),
    ),
}
"""Configurations of both models; `middle` is the model of benchmarks.packed_bert."""


@dataclass(frozen=True)
class Model:
    """A model of the repository, and what a request for it of some length has."""

    name: str
    work: str
    longest: int
    config: Any


def request(model: Model, length: int, seed: int) -> dict[str, np.ndarray]:
    """Inputs of one row."""
    if model.work == "bert":
        tokens, segments, _ = bert.make_inputs(model.config, 1, length, seed=seed)
        return {"tokens": tokens, "segments": segments, "mask": np.ones_like(tokens)}
    token, cache = gpt2_decode.make_inputs(model.config, 1, length, seed=seed)
    pairs = {f"cache[{i}][{j}]": part for i, pair in enumerate(cache) for j, part in enumerate(pair)}
    return {"token": token.reshape(1, 1), **pairs}


def lengths(model: Model, count: int, seed: int) -> np.ndarray:
    """Long-tailed: exponential, with a mean of a quarter of the longest."""
    drawn = np.random.default_rng(seed).exponential(model.longest / 4, count)
    return np.clip(drawn, 1, model.longest).astype(int)


# ---- the repository -------------------------------------------------------------------------------------------------


def write_ours(repository: Path, size: str, threads: int) -> list[Model]:
    """Both models, compiled with their weights inside."""
    import shlo_disc
    from shlo_disc.runtime.triton_repository import write_model

    bert_config, gpt2_config = SIZES[size]
    params = jax.tree.map(jnp.asarray, (bert.init(bert_config), gpt2.init(gpt2_config)))

    def encode(tokens: Any, segments: Any, mask: Any) -> Any:
        return bert.forward(params[0], tokens, segments, mask, config=bert_config)

    def decode(token: Any, cache: Any) -> Any:
        return gpt2_decode.forward(params[1], token, cache, config=gpt2_config)

    longest = gpt2_config.max_length - 1
    cache = [((f"b, c, {gpt2_config.width}", "float32"),) * 2] * gpt2_config.layers
    programs = {
        "bert": (encode, (("b, s", "int32"),) * 3, f"s <= {bert_config.max_length}"),
        "gpt2_decode": (decode, (("b", "int32"), cache), f"c <= {longest}"),
    }
    for name, (function, args, constraint) in programs.items():
        run = shlo_disc.compile(function, args=args, constraints=[constraint])
        write_model(run.artifact, repository / name, max_batch_size=BATCH)
        more = f'parameters {{ key: "threads" value {{ string_value: "{threads}" }} }}\n' if threads else ""
        _append(repository / name, more)
    return [
        Model("bert", "bert", bert_config.max_length, bert_config),
        Model("gpt2_decode", "gpt2", longest, gpt2_config),
    ]


def write_jit(repository: Path, size: str) -> list[Model]:
    """Both models for Triton's Python backend."""
    bert_config, gpt2_config = SIZES[size]
    width, layers, longest = gpt2_config.width, gpt2_config.layers, gpt2_config.max_length - 1
    names = [f"[{i}][{j}]" for i in range(layers) for j in range(2)]
    row = {name: ("INT32", [-1]) for name in ("tokens", "segments", "mask")}
    rows = {f"cache{name}": ("FP32", [-1, width]) for name in names}
    grown = {f"result[1]{name}": ("FP32", [-1, width]) for name in names}
    logits = {"result[0]": ("FP32", [gpt2_config.vocabulary])}
    _write_python(repository / "bert_jit", "Bert", bert_config, row, {"result": ("FP32", [-1, bert_config.width])})
    _write_python(
        repository / "gpt2_decode_jit", "Decode", gpt2_config, {"token": ("INT32", [1]), **rows}, logits | grown
    )
    return [
        Model("bert_jit", "bert", bert_config.max_length, bert_config),
        Model("gpt2_decode_jit", "gpt2", longest, gpt2_config),
    ]


Tensors = dict[str, tuple[str, list[int]]]
"""Data types and dims without the batch, by names."""


def _write_python(folder: Path, name: str, config: Any, inputs: Tensors, outputs: Tensors) -> None:
    """The folder of a class of `benchmarks.serving_jit`."""
    (folder / "1").mkdir(parents=True)
    paths = [str(Path(__file__).resolve().parents[1]), *filter(None, sys.path)]
    text = f"import sys\n\nsys.path[:0] = {paths}\nfrom benchmarks.serving_jit import {name} as TritonPythonModel\n"
    (folder / "1" / "model.py").write_text(text)
    lines = [
        f'{side} {{ name: "{name}" data_type: TYPE_{dtype} dims: {dims}{ragged} }}\n'
        for side, tensors, ragged in (("input", inputs, " allow_ragged_batch: true"), ("output", outputs, ""))
        for name, (dtype, dims) in tensors.items()
    ]
    stated = json.dumps(json.dumps(asdict(config)))
    (folder / "config.pbtxt").write_text(
        f'backend: "python"\nmax_batch_size: {BATCH}\ndynamic_batching {{ }}\n{"".join(lines)}'
        f'parameters {{ key: "config" value {{ string_value: {stated} }} }}\n'
        "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
    )


def _append(folder: Path, text: str) -> None:
    with (folder / "config.pbtxt").open("a") as config:
        config.write(text)


def python_backends(folder: Path) -> Path:
    """A folder of backends with Triton's Python backend for this Python, copied out of nvidia-pytriton."""
    server = Path(str(binary())).parents[1]
    backend = folder / "backends" / "python"
    shutil.copytree(server / "backends" / "python", backend)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    stub = shutil.copy(server / "python_backend_stubs" / version / "triton_python_backend_stub", backend)
    Path(stub).chmod(0o755)
    os.environ["LD_LIBRARY_PATH"] = str(server.parents[1] / "nvidia_pytriton.libs")
    return backend.parent


# ---- load -----------------------------------------------------------------------------------------------------------


def closed(port: int, model: Model, seconds: float, seed: int) -> list[float]:
    """Latencies of a client that sends its next request when it has the answer."""
    requests = [request(model, n, seed + i) for i, n in enumerate(lengths(model, 64, seed))]
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    found: list[float] = []
    end = time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        infer(connection, model.name, requests[len(found) % len(requests)])
        found.append(time.perf_counter() - start)
    return found


def opened(port: int, model: Model, seconds: float, rate: float, clients: int) -> list[float]:
    """Latencies of requests that arrive at random times, `rate` a second, on at most `clients` connections."""
    rng = np.random.default_rng(7)
    arrivals = np.cumsum(rng.exponential(1 / rate, int(rate * seconds)))
    requests = [request(model, n, i) for i, n in enumerate(lengths(model, 64, 7))]
    connections: list[HTTPConnection] = [HTTPConnection("127.0.0.1", port, timeout=120) for _ in range(clients)]
    begin = time.perf_counter()

    def send(index: int) -> float:
        connection = connections.pop()
        infer(connection, model.name, requests[index % len(requests)])
        connections.append(connection)
        return time.perf_counter() - begin - arrivals[index]

    with ThreadPoolExecutor(clients) as threads:
        waiting = []
        for index, arrival in enumerate(arrivals):
            time.sleep(max(0.0, begin + arrival - time.perf_counter()))
            waiting.append(threads.submit(send, index))
        return [answer.result() for answer in waiting]


def _closed_clients(port: int, model: Model, seconds: float, clients: int) -> list[float]:
    with ThreadPoolExecutor(clients) as threads:
        parts = [threads.submit(closed, port, model, seconds, 1000 * i) for i in range(clients)]
        return [latency for part in parts for latency in part.result()]


def check(server: TritonServer, model: Model) -> None:
    """Raises AssertionError where the numbers of requests, one by one and at once, are not those of jax.jit."""
    lengths = (1, 7, 33, model.longest)
    for length in lengths:
        _check(server, model, length)
    with ThreadPoolExecutor(2 * len(lengths)) as threads:
        list(threads.map(functools.partial(_check, server, model), 2 * lengths))


def _check(server: TritonServer, model: Model, length: int) -> None:
    config = model.config
    given = request(model, length, length)
    found = infer(server.connect(), model.name, given)
    if model.work == "bert":
        wanted = jax.jit(functools.partial(bert.forward, config=config))(bert.init(config), **given)
        np.testing.assert_allclose(found["result"], wanted, rtol=2e-3, atol=2e-4)
        return
    token, cache = gpt2_decode.make_inputs(config, 1, length, seed=length)
    logits, grown = jax.jit(functools.partial(gpt2_decode.forward, config=config))(gpt2.init(config), token, cache)
    np.testing.assert_allclose(found["result[0]"], logits, rtol=2e-3, atol=2e-3)
    for i, pair in enumerate(grown):
        for j, part in enumerate(pair):
            np.testing.assert_allclose(found[f"result[1][{i}][{j}]"], part, rtol=2e-3, atol=2e-3)


def measure(server: TritonServer, model: Model, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each loop: requests a second, and milliseconds of the median and the 99th percentile."""
    check(server, model)
    _closed_clients(server.port, model, 1.0, options.clients)
    loops = {"closed": lambda: _closed_clients(server.port, model, options.seconds, options.clients)}
    if options.rate:
        loops["open"] = lambda: opened(server.port, model, options.seconds, options.rate, 4 * options.clients)
    for loop, run in loops.items():
        before, start = server.resident_bytes, time.perf_counter()
        latencies = np.array(run())
        per_second = len(latencies) / (time.perf_counter() - start)
        median, slow = np.percentile(latencies, [50, 99]) * 1e3
        memory = {"before": before, "after": server.resident_bytes}
        yield {"model": model.name, "loop": loop, "requests": len(latencies), "per_second": per_second,
               "p50_ms": median, "p99_ms": slow, "resident_bytes": memory}  # fmt: skip


def report(found: list[dict[str, Any]]) -> str:
    """A line for each model and loop."""
    cells = [
        [row["model"], row["loop"], str(row["requests"]), f"{row['per_second']:.1f}", f"{row['p50_ms']:.2f}",
         f"{row['p99_ms']:.2f}", " -> ".join(f"{b / 1e6:.1f}" for b in row["resident_bytes"].values())]
        for row in found
    ]  # fmt: skip
    return table(["model", "loop", "requests", "a second", "p50 ms", "p99 ms", "server's MB"], cells)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--rate", type=float, default=0, help="requests a second of the open loop; 0: none")
    parser.add_argument("--threads", type=int, default=0, help="threads of a call of ours; 0: as many as processors")
    parser.add_argument("--only", choices=("ours", "jit"))
    parser.add_argument("--output", type=Path, default=Path("build/serving.json"), help="the JSON file to write")
    options = parser.parse_args()
    found: list[dict[str, Any]] = []
    for side in ("ours", "jit"):
        if options.only not in (None, side):
            continue
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            repository, is_ours = folder / "repository", side == "ours"
            if is_ours:
                models, backends = write_ours(repository, options.size, options.threads), None
            else:
                models, backends = write_jit(repository, options.size), python_backends(folder)
            server = stack.enter_context(served(repository, backends=backends))
            for model in models:
                found += measure(server, model, options)
    print(report(found))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"environment": environment(), "cases": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
