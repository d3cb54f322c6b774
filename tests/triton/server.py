# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The backend in a server of one model in this process: arrays in, arrays out, errors as values."""

from __future__ import annotations

import ctypes
import functools
import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shlo_disc

ROOT = Path(__file__).parents[2]
TYPES = {
    "bool": 1, "uint8": 2, "uint16": 3, "uint32": 4, "uint64": 5, "int8": 6, "int16": 7, "int32": 8, "int64": 9,
    "float16": 10, "float32": 11, "float64": 12, "bfloat16": 14,
}  # fmt: skip
"""Numbers of data types."""
GPU = 2
"""The number of a memory and of a kind of instances."""


@functools.cache
def library() -> Any:
    """The server, with the backend open; skips the test without a compiler."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++")
    built = Path(tempfile.mkdtemp()) / "fake_server.so"
    flags = ["-std=c++20", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    include = f"-I{ROOT / 'shlo_disc' / 'runtime' / 'native'}"
    source = str(Path(__file__).with_name("fake_server.cpp"))
    subprocess.run([compiler, *flags, include, source, "-o", str(built)], check=True)
    native = ctypes.CDLL(str(built), mode=ctypes.RTLD_GLOBAL)
    shutil.rmtree(built.parent)
    texts = (
        "open backend end_backend attributes model completed end_model instance end_instance execute error output log"
    )
    for name in [*texts.split(), "log"]:
        getattr(native, f"fake_{name}").restype = ctypes.c_char_p
    native.fake_request.restype = ctypes.c_void_p
    native.fake_outputs.restype = ctypes.c_size_t
    native.fake_live.restype = ctypes.c_int64
    backend = Path(shlo_disc.get_triton_backends()) / "shlo_disc" / "libtriton_shlo_disc.so"
    assert native.fake_open(str(backend).encode()) == b""
    return native


class ServerError(Exception):
    """An error that a function of the backend returned: its code, and its text."""


def checked(name: str, *args: Any) -> None:
    if text := getattr(library(), f"fake_{name}")(*args).decode():
        raise ServerError(text)


@dataclass
class Given:
    """An input of a request: an array, its sizes where they are to be others, its pieces, and their memory."""

    array: np.ndarray
    shape: tuple[int, ...] | None = None
    pieces: Sequence[int] = ()
    memory: int = 0


@dataclass
class Answer:
    """Outputs by name; or the code and the text of an error."""

    outputs: dict[str, np.ndarray] = field(default_factory=dict)
    code: int = -1
    error: str = ""


class Server:
    """A model with its instances; `folder` is that of the model. Checks at the end that everything is released."""

    def __init__(self, folder: Path, config: Mapping[str, Any] | None = None, **options: Any):
        self.model, self.instances = ctypes.c_void_p(), []
        self.backend = ctypes.c_void_p()
        self.before = library().fake_live()
        backend_config = json.dumps({"cmdline": options.pop("backend", {"trust": "true"})}).encode()
        checked("backend", backend_config, ctypes.byref(self.backend))
        text = json.dumps(config or {}).encode()
        try:
            names = b"model", str(folder).encode(), text
            checked("model", self.backend, *names, options.pop("completes", 1), ctypes.byref(self.model))
            for _ in range(options.pop("instances", 1)):
                self.instances.append(ctypes.c_void_p())
                checked("instance", self.model, options.get("kind", 1), ctypes.byref(self.instances[-1]))
        except ServerError:
            self.close()
            raise

    def close(self) -> None:
        for instance in self.instances:
            checked("end_instance", instance)
        checked("end_model", self.model)
        checked("end_backend", self.backend)
        assert library().fake_live() == self.before

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: Any) -> None:
        if error[0] is None:
            self.close()

    @property
    def completed(self) -> Any:
        """The configuration that the backend has set; None where it has set none."""
        text = library().fake_completed(self.model)
        return json.loads(text) if text else None

    def execute(
        self, *requests: Mapping[str, Any], outputs: Sequence[str] = ("result",), instance: int = 0
    ) -> list[Answer]:
        """Hand over requests together: arrays or `Given` by name."""
        handles = [_request(inputs, outputs) for inputs in requests]
        array = (ctypes.c_void_p * len(handles))(*(h.value for h in handles))
        checked("execute", self.instances[instance], array, len(handles))
        return [_answer(handle) for handle in handles]

    def __call__(self, outputs: Sequence[str] = ("result",), **inputs: Any) -> Answer:
        return self.execute(inputs, outputs=outputs)[0]


def statistics() -> list[int]:
    """Successes, failures, calls and rows of calls since the last time."""
    values = (ctypes.c_int64 * 4)()
    library().fake_statistics(values)
    return list(values)


def _request(inputs: Mapping[str, Any], outputs: Sequence[str]) -> ctypes.c_void_p:
    handle = ctypes.c_void_p(library().fake_request())
    for name, value in inputs.items():
        given = value if isinstance(value, Given) else Given(value)
        shape = given.array.shape if given.shape is None else given.shape
        sizes = (ctypes.c_int64 * max(1, len(shape)))(*shape)
        library().fake_input(handle, name.encode(), TYPES[given.array.dtype.name], sizes, ctypes.c_size_t(len(shape)))
        data, places = given.array.tobytes(), [0, *given.pieces, given.array.nbytes]
        for start, end in zip(places, places[1:], strict=False):
            piece = data[start:end]
            library().fake_piece(handle, piece, ctypes.c_size_t(len(piece)), given.memory)
    for name in outputs:
        library().fake_want(handle, name.encode())
    return handle


def _answer(handle: ctypes.c_void_p) -> Answer:
    assert library().fake_is_done(handle)
    code = library().fake_code(handle)
    found = Answer(code=code)
    if code >= 0:
        found.error = library().fake_error(handle).decode()
    for index in range(library().fake_outputs(handle) if code == -1 else 0):
        kind, rank, size = ctypes.c_int(), ctypes.c_size_t(), ctypes.c_size_t()
        shape, data = ctypes.POINTER(ctypes.c_int64)(), ctypes.c_void_p()
        parts = map(ctypes.byref, (kind, shape, rank, data, size))
        name = library().fake_output(handle, ctypes.c_size_t(index), *parts).decode()
        dtype = next(n for n, number in TYPES.items() if number == kind.value)
        sizes = tuple(shape[i] for i in range(rank.value))
        contents = ctypes.string_at(data, size.value) if size.value else b""
        found.outputs[name] = np.frombuffer(contents, np.uint16 if dtype == "bfloat16" else dtype).reshape(sizes)
    library().fake_end_request(handle)
    return found
