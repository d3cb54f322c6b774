# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Triton Inference Server in a process of its own, and requests by its HTTP protocol, with the standard library."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np

import shlo_disc

NAMES = {"float32": "FP32", "int32": "INT32", "int64": "INT64", "bool": "BOOL", "float16": "FP16", "float64": "FP64"}
"""Data types of the protocol by NumPy's names."""

START_SECONDS = 300
"""The most seconds until a server is ready: a model may compile its programs first."""


def binary() -> Path | None:
    """The server: SHLO_DISC_TRITONSERVER, or that of an installed nvidia-pytriton; None where there is none."""
    if stated := os.environ.get("SHLO_DISC_TRITONSERVER"):
        return Path(stated)
    found = importlib.util.find_spec("pytriton")
    path = Path(str(found and found.origin)).parent / "tritonserver" / "bin" / "tritonserver"
    return path if path.is_file() else None


@dataclass
class TritonServer:
    """A server that runs; `pid` is its process."""

    port: int
    pid: int

    def get(self, path: str) -> Any:
        """The document at a path."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{path}", timeout=60) as answer:
            return json.loads(answer.read())

    def connect(self) -> HTTPConnection:
        """A connection for `infer`, of one thread."""
        return HTTPConnection("127.0.0.1", self.port, timeout=60)

    @property
    def resident_bytes(self) -> int:
        """The memory that it has now."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024


@contextmanager
def served(repository: Path, *arguments: str, backends: Path | None = None) -> Iterator[TritonServer]:
    """A server of a model repository. Raises RuntimeError, with its log, where it does not become ready."""
    path = binary()
    if path is None:
        raise RuntimeError("there is no Triton server: name its binary by SHLO_DISC_TRITONSERVER")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        str(path), f"--model-repository={repository}",
        f"--backend-directory={backends or shlo_disc.get_triton_backends()}",
        "--http-address=127.0.0.1", f"--http-port={port}", "--allow-grpc=false", "--allow-metrics=false",
        "--exit-timeout-secs=5", *arguments,
    ]  # fmt: skip
    log = repository.parent / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    server = TritonServer(port, process.pid)
    try:
        _wait(server, process, log)
        yield server
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def _wait(server: TritonServer, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/v2/health/ready", timeout=60):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    raise RuntimeError(f"the server is not ready:\n{log.read_text()}")


def infer(connection: HTTPConnection, model: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs of a request with binary data. Raises RuntimeError with the text of an error."""
    rows = [
        {"name": name, "shape": array.shape, "datatype": NAMES[array.dtype.name],
         "parameters": {"binary_data_size": array.nbytes}}
        for name, array in inputs.items()
    ]  # fmt: skip
    head = json.dumps({"inputs": rows, "parameters": {"binary_data_output": True}}).encode()
    body = head + b"".join(array.tobytes() for array in inputs.values())
    connection.request("POST", f"/v2/models/{model}/infer", body, {"Inference-Header-Content-Length": str(len(head))})
    answer = connection.getresponse()
    data, length = answer.read(), answer.getheader("Inference-Header-Content-Length")
    if answer.status != 200:
        raise RuntimeError(json.loads(data)["error"])
    place, found = int(length or len(data)), {}
    for row in json.loads(data[:place])["outputs"]:
        size = row["parameters"]["binary_data_size"]
        dtype = next(name for name, triton in NAMES.items() if triton == row["datatype"])
        found[row["name"]] = np.frombuffer(data[place : place + size], dtype).reshape(row["shape"])
        place += size
    return found
