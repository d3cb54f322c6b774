# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Configurations of models for Triton: completed, checked against the program, and refused in words."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.runtime.triton_repository import configuration
from tests.triton.conftest import Save
from tests.triton.server import GPU, Server, ServerError, checked, library


def header_of(folder: Path) -> Any:
    return shlo_disc.runtime.Artifact.open(folder / "1" / "model.disc").header


def parameter(**values: str) -> dict[str, Any]:
    return {"parameters": {name: {"string_value": value} for name, value in values.items()}}


def refused(folder: Path, config: dict[str, Any], **options: Any) -> str:
    with pytest.raises(ServerError) as caught:
        Server(folder, config, **options)
    return str(caught.value)


@pytest.mark.parametrize("batch", [0, 8])
def test_completed(attending: Path, batch: int) -> None:
    with Server(attending, {"max_batch_size": batch}) as server:
        completed = server.completed
    sizes, ragged = ([-1, -1], {}) if batch == 0 else ([-1], {"allow_ragged_batch": True})
    whole = {"data_type": "TYPE_FP32", "dims": sizes}
    sums = {"dims": [-1]} if batch == 0 else {"dims": [1], "reshape": {"shape": []}}
    assert completed == {
        "max_batch_size": batch,
        "input": [{"name": "x", **whole, **ragged}, {"name": "mask", **whole, **ragged}],
        "output": [
            {"name": "result['sums']", "data_type": "TYPE_FP32", **sums},
            {"name": "result['twice']", **whole},
            {"name": "result['weights']", **whole},
        ],
    }
    written = configuration(header_of(attending), batch)  # what `export` writes
    assert {key: written[key] for key in completed} == completed and ("dynamic_batching" in written) == (batch > 0)


def test_what_is_not_completed(attending: Path) -> None:
    """A scheduler that is stated has to be stated again, and what is whole stays as it is."""
    with Server(attending, {"max_batch_size": 4, "dynamic_batching": {"max_queue_delay_microseconds": "7"}}) as server:
        assert server.completed["dynamic_batching"] == {}
    with Server(attending, {}, completes=0) as server:
        assert server.completed is None
    with Server(attending, configuration(header_of(attending), 4)) as server:
        assert server.completed is None


def test_names(save: Save) -> None:
    """Names of parameters, with paths inside; paths of results."""
    shapes = {"w": ("3", "float32"), 'a "b"\n': ("n", "float32")}
    folder = save(lambda params, x: (x * params["w"], [x]), shapes, ("n, 3", "float32"))
    with Server(folder) as server:
        assert [row["name"] for row in server.completed["input"]] == ["params['a \"b\"\\n']", "params['w']", "x"]
        assert [row["name"] for row in server.completed["output"]] == ["result[0]", "result[1][0]"]


PLAIN = {"name": "x", "data_type": "TYPE_FP32", "dims": [-1, 3]}
OUTPUT = {"name": "result", "data_type": "TYPE_FP32", "dims": ["-1", "3"]}


@pytest.mark.parametrize(
    "entry, words",
    [
        ({"dims": [-1]}, 'write {"name": "x", "data_type": "TYPE_FP32", "dims": [-1, 3]}'),
        ({"dims": [-1, 4]}, "sizes [-1, 4], and the program's have TYPE_FP32 and [-1, 3]"),
        ({"dims": [-1, -1]}, "sizes [-1, -1]"),
        ({"data_type": "TYPE_FP16"}, "data_type TYPE_FP16"),
        ({"data_type": "TYPE_STRING"}, "data_type TYPE_STRING"),
        ({"name": "y"}, "the input 'y' is none of the program, which has 'x': name one of them"),
    ],
)
def test_misfits(save: Save, entry: dict[str, Any], words: str) -> None:
    folder = save(lambda x: x + 1, ("n, 3", "float32"))
    for dims in ([-1, 3], [5, 3]):  # a symbolic size may be narrowed
        Server(folder, {"input": [{**PLAIN, "dims": dims}], "output": [OUTPUT]}).close()
    assert words in refused(folder, {"input": [{**PLAIN, **entry}], "output": [OUTPUT]})
    assert "it states inputs or outputs alone" in refused(folder, {"input": [PLAIN]})


def test_missing_inputs(attending: Path) -> None:
    whole = configuration(header_of(attending))
    assert "the input 'mask' is missing: add {" in refused(attending, {**whole, "input": whole["input"][:1]})
    Server(attending, {**whole, "output": whole["output"][:1]}).close()  # outputs may be left out


NO_BATCHES = {
    "other symbols": (lambda x, y: (x, y), [("b, s", "float32"), ("t, s", "float32")], "is t"),
    "a fixed size": (lambda x: x, [("4, s", "float32")], "is 4, not a symbol"),
    "a scalar": (lambda x, y: x * y, [("b", "float32"), ("", "float32")], "'y' is missing"),
    "a sum of rows": (lambda x: x.sum(0), [("b, s", "float32")], "'x' is b, and that of 'result' is s"),
    "a square": (lambda x: x @ x.T, [("b, s", "float32")], "the size b of 'result' depends on b"),
    "pairs": (lambda x: x.reshape(x.shape[0] * 2, -1), [("b, 2*s", "float32")], "is 2*b, not a symbol"),
    "a count": (lambda x: jnp.ones((x.shape[0], 2 * x.shape[0] + 1)), [("b, s", "float32")], "depends on b"),
}  # fmt: skip


@pytest.mark.parametrize("case", NO_BATCHES)
def test_requests_that_cannot_be_joined(save: Save, case: str) -> None:
    function, args, words = NO_BATCHES[case]
    folder = save(function, *args)
    Server(folder, {"max_batch_size": 0}).close()
    assert words in (text := refused(folder, {"max_batch_size": 2})) and text.endswith(": set max_batch_size to 0")
    with pytest.raises(shlo_disc.OptionError, match="requests for the program cannot be joined"):
        configuration(header_of(folder), 2)


@pytest.mark.parametrize("dtype", ["complex64", "int4", "float8_e4m3fn"])
def test_types_that_triton_does_not_have(save: Save, dtype: str) -> None:
    folder = save(lambda x: x, ("n", dtype))
    assert f"args[0] has elements of type {dtype}, which Triton does not have" in refused(folder, {})
    with pytest.raises(shlo_disc.ArtifactError, match="which Triton does not have"):
        configuration(header_of(folder))


def test_trust(attending: Path) -> None:
    text = refused(attending, {}, backend={})
    assert text.startswith("3 DISC-A101: ") and "--backend-config=shlo_disc,trust=true" in text
    Server(attending, parameter(trust="true"), backend={}).close()
    assert "'trust' is 'yes': set it to true or false" in refused(attending, parameter(trust="yes"), backend={})
    assert "trust=yes: set it to true or false" in refused(attending, {}, backend={"trust": "yes"})


def test_parameters(attending: Path) -> None:
    Server(attending, parameter(threads="1", memory_limit="1000000")).close()
    assert "'threads' is 'two': set it to a number of 0 or more" in refused(attending, parameter(threads="two"))
    assert "at most 4096" in refused(attending, parameter(threads="5000"))
    assert "DISC-A103" in refused(attending, parameter(cpu="x86-64-v3"))
    library().fake_log()
    Server(attending, parameter(thread="1", TRITON_BATCH_STRATEGY_PATH="x")).close()
    log = library().fake_log().decode()
    assert "1 model 'model': the backend reads no parameter 'thread'" in log and "TRITON_" not in log


def test_files(save: Save, tmp_path: Path) -> None:
    folder = save(lambda x: x, ("n", "float32"), file="model.shlo_disc")
    Server(folder, {"default_model_filename": "model.shlo_disc"}).close()
    assert refused(folder, {}).startswith("2 [Errno 2]") and "model.disc" in refused(folder, {})
    assert "is no name of a file" in refused(folder, {"default_model_filename": "../1/model.shlo_disc"})
    (folder / "1" / "model.disc").write_bytes(b"SHLODISC and more")
    assert "DISC-A100" in refused(folder, {})


def test_weights(save: Save, tmp_path: Path) -> None:
    folder = save(lambda w, bias, x: x @ w + bias, ("3, 5", "float32"), ("5", "float32"), ("b, 3", "float32"))
    rng = np.random.default_rng(0)
    w, bias, x = (rng.standard_normal(shape, np.float32) for shape in ((3, 5), (5,), (4, 3)))
    (folder / "1" / "model.weights").write_bytes(w.tobytes() + bias.tobytes())
    (folder / "1" / "some.bin").write_bytes(w.tobytes())
    with Server(folder, {"max_batch_size": 8}, instances=2) as server:
        assert [row["name"] for row in server.completed["input"]] == ["x"]
        for instance in (0, 1):
            answer = server.execute({"x": x}, {"x": x[:1]}, instance=instance)
            np.testing.assert_allclose(answer[0].outputs["result"], x @ w + bias, rtol=2e-5, atol=2e-5)
            np.testing.assert_allclose(answer[1].outputs["result"], x[:1] @ w + bias, rtol=2e-5, atol=2e-5)
    with Server(folder, parameter(weights="some.bin")) as server:
        np.testing.assert_allclose(server(bias=bias, x=x).outputs["result"], x @ w + bias, rtol=2e-5, atol=2e-5)
    for size in (0, 59, 61, 79, 81, 400):
        (folder / "1" / "model.weights").write_bytes(bytes(size))
        assert f"has {size} bytes, and is to have the elements" in refused(folder, {})
    assert "cannot be read: No such file" in refused(folder, parameter(weights="none.bin"))
    assert "is no name of a file" in refused(folder, parameter(weights="../../none.bin"))


def test_instances_on_gpus(attending: Path) -> None:
    assert "write instance_group [ { kind: KIND_CPU } ]" in refused(attending, {}, kind=GPU)


def test_other_versions_of_the_server(attending: Path) -> None:
    try:
        library().fake_version(13)
        assert refused(attending, {}).startswith("5 the server has version 1.13 of Triton's interface")
        library().fake_version(99)
        Server(attending).close()
    finally:
        library().fake_version(14)


def test_the_backend_prefers_processors(attending: Path) -> None:
    import ctypes

    kind, is_parallel = ctypes.c_int(), ctypes.c_int()
    with Server(attending) as server:
        checked("attributes", server.backend, ctypes.byref(kind), ctypes.byref(is_parallel))
    assert (kind.value, is_parallel.value) == (1, 1)


def test_a_blas(attending: Path) -> None:
    assert "OSError" not in (text := refused(attending, {}, backend={"blas": "none.so"})) and text.startswith("2 ")


@pytest.mark.skipif(shutil.which("nm") is None, reason="there is no nm")
def test_what_the_library_exports_and_needs() -> None:
    path = Path(shlo_disc.get_triton_backends()) / "shlo_disc" / "libtriton_shlo_disc.so"
    lines = subprocess.run(["nm", "-D", path], capture_output=True, text=True, check=True).stdout.splitlines()
    assert all("TRITONBACKEND_" in line for line in lines if " T " in line)
    names = [line.split()[-1] for line in lines if " U " in line]
    assert all("@" in name for name in names if not name.startswith("TRITON"))  # all others are of system libraries
    needed = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    assert "python" not in needed and "shlo_disc" not in needed.replace(str(path), "")


def test_export_says_what_the_backend_says() -> None:
    """JSON of a configuration is that of the other side: see test_completed. Here: a result of a jitted pytree."""
    header = shlo_disc.compile(jax.jit(lambda x: {"y": x}), args=(("b, 2", "int8"),)).artifact.header
    assert json.dumps(configuration(header, 3)["output"]) == (
        '[{"name": "result[\'y\']", "data_type": "TYPE_INT8", "dims": [2]}]'
    )
