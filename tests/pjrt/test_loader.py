# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plugin without Python: what it loads, what it refuses, and that Python is no part of it."""

from __future__ import annotations

import base64
import ctypes
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.runtime import Artifact
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from tests.c.building import scipy_blas
from tests.c.forging import forged, sealed
from tests.pjrt.clients import build_client, call, get, made, numbers, put
from tests.pjrt.plugin import library, run_python
from tests.pjrt.streams import VERSION, artifact

pypjrt: Any = pytest.importorskip("pypjrt")
options_module: Any = pytest.importorskip("pypjrt.compile_options")
errors: Any = pytest.importorskip("pypjrt.errors")
abi: Any = pytest.importorskip("pypjrt._abi.pjrt_0_114")


def scaled(x: Any) -> Any:
    """Its constant is another one for each size."""
    return x * np.float32(1 / (x.shape[0] + 0.3))


SUM = """
module attributes {mhlo.num_replicas = 2 : i32} {
  func.func @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
    %sum = "stablehlo.all_reduce"(%x) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<?x3xf32>) -> tensor<?x3xf32>
    return %sum : tensor<?x3xf32>
  }
}
"""


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """One that may load native code."""
    opened = made(shlo_disc.get_pjrt_plugin(), trust=True, device_count=2)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def compiling() -> Iterator[Any]:
    """One of the plugin in Python."""
    opened = made(library(), trusts_programs=1)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def softmax(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "softmax.disc"
    shlo_disc.compile(jax.nn.softmax, args=(("b, s", "float32"),), constraints=["s <= 512"]).save(path)
    return path


def test_a_file_takes_arguments_of_any_size(client: Any, softmax: Path) -> None:
    executable = client.deserialize_executable(softmax.read_bytes())
    program = shlo_disc.load(softmax, trust=True)
    for shape in ((1, 1), (2, 3), (5, 67)):
        x = numbers(*shape)
        np.testing.assert_array_equal(call(client, executable, x)[0], program(x))
    with pytest.raises(errors.InvalidArgument, match="513"):
        call(client, executable, numbers(1, 513))
    with pytest.raises(errors.InvalidArgument, match="takes 1 arguments, not 2"):
        call(client, executable, numbers(1, 2), numbers(1, 2))
    with pytest.raises(errors.InvalidArgument, match="the program takes float32"):
        call(client, executable, numbers(4))


def test_a_file_of_known_sizes_describes_itself(client: Any) -> None:
    def layer(w: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.tanh(x @ w), x[:, 0]

    w, x = numbers(16, 8), numbers(4, 16)
    compiled = shlo_disc.compile(layer, args=(("16, 8", "float32"), ("4, 16", "float32")))
    executable = client.deserialize_executable(compiled.artifact.serialize())
    for found, wanted in zip(call(client, executable, w, x), compiled(w, x), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
    assert (executable.name, executable.num_outputs) == ("layer", 2)
    stats = executable.compiled_memory_stats()
    assert (stats["argument_size_in_bytes"], stats["output_size_in_bytes"]) == (768, 144)
    assert executable.cost_analysis()["flops"] > 2 * 4 * 16 * 8
    assert executable.serialize() == compiled.artifact.serialize()


def test_a_file_with_packed_weights(client: Any, tmp_path: Path) -> None:
    w, path = numbers(64, 48), tmp_path / "packed.disc"
    compiled = shlo_disc.compile(lambda x: jnp.tanh(x @ w), args=(("b, 64", "float32"),))
    compiled.save(path, prepack=True)
    executable = client.deserialize_executable(path.read_bytes())
    for b in (1, 5, 17):
        np.testing.assert_array_equal(call(client, executable, numbers(b, 64))[0], compiled(numbers(b, 64)))


def test_serialized_executables_of_the_compiling_plugin(client: Any, compiling: Any) -> None:
    """The last program is an instance of a symbolic one, with the constant as a hidden argument."""
    for n in (3, 5, 8):
        x = numbers(n)
        served = compiling.compile(artifact(scaled, [x]))
        blob = served.serialize()
        executable = client.deserialize_executable(blob)
        np.testing.assert_array_equal(call(client, executable, x)[0], call(compiling, served, x)[0])
        np.testing.assert_array_equal(call(client, executable, x)[0], scaled(x))
        assert executable.serialize() == blob
        assert executable.fingerprint() == served.fingerprint()
    ours = Artifact.deserialize(blob).header["pjrt"]
    assert ours["symbols"] == [8] and len(ours["hidden"]) == 1


def test_what_the_plugin_adds_to_a_header_is_checked(client: Any, compiling: Any) -> None:
    """Any change to it is refused, with the program or at the call, or the results are right."""
    for n in (3, 5, 8):
        x = numbers(n)
        blob = compiling.compile(artifact(scaled, [x])).serialize()
    read, wanted, refused = Artifact.deserialize(blob), scaled(x), 0
    longer, shorter = (base64.b64encode(bytes(size)).decode() for size in (4000, 1))
    changed = [(name, header) for name, header in forged(dict(read.header)) if name.startswith("pjrt")]
    for hidden in ([longer], [shorter], []):
        changed.append((f"hidden {len(hidden)}", {**read.header, "pjrt": {**read.header["pjrt"], "hidden": hidden}}))
    for name, header in changed:
        for loading in (client, compiling):
            try:
                (found,) = call(loading, loading.deserialize_executable(sealed(read, header)), x)
            except errors.PjrtError:
                refused += 1
                continue
            np.testing.assert_array_equal(found, wanted, err_msg=name)
    assert refused > 40


def test_a_program_of_two_devices(client: Any) -> None:
    """A saved file says how many devices it is for, the compile options that it is loaded with say which."""
    data = shlo_disc.compile(SUM, options=shlo_disc.Options(replicas=2)).artifact.serialize()
    with pytest.raises(errors.InvalidArgument, match="the program runs on 2 devices: give compile options"):
        client.deserialize_executable(data)
    options = options_module.CompileOptions(num_replicas=2).encode(abi)
    executable = client.deserialize_executable(data, overridden_options=options)
    for rows in (1, 5):
        shards = [numbers(rows, 3), numbers(rows, 3) + 1]
        for (found,) in executable.execute_sharded([[put(client, x, i)] for i, x in enumerate(shards)]):
            np.testing.assert_array_equal(get(found), shards[0] + shards[1])
    with pytest.raises(errors.Unimplemented, match="keep the bytes that it was loaded from"):
        executable.serialize()


def test_what_the_compiling_plugin_made_for_two_devices(client: Any) -> None:
    compiling = made(library(), trusts_programs=1, device_count=2)
    module = ir.Module.parse(SUM.replace("?", "4"), make_context())
    program, options = (
        stablehlo.serialize_portable_artifact(module, VERSION),
        options_module.CompileOptions(num_replicas=2),
    )
    blob = compiling.compile(program, options=options).serialize()
    executable = client.deserialize_executable(blob)
    shards = [numbers(4, 3), numbers(4, 3) + 1]
    for (found,) in executable.execute_sharded([[put(client, x, i)] for i, x in enumerate(shards)]):
        np.testing.assert_array_equal(get(found), shards[0] + shards[1])
    assert executable.serialize() == blob
    compiling.close()


def test_native_code_is_loaded_on_request(softmax: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, x = softmax.read_bytes(), numbers(2, 3)
    monkeypatch.delenv("SHLO_DISC_TRUST", raising=False)
    untrusting = made(shlo_disc.get_pjrt_plugin())
    with pytest.raises(errors.PermissionDenied, match="native code from outside.*the option trust.*SHLO_DISC_TRUST=1"):
        untrusting.deserialize_executable(data)
    untrusting.close()
    monkeypatch.setenv("SHLO_DISC_TRUST", "1")
    trusting, refusing = made(shlo_disc.get_pjrt_plugin()), made(shlo_disc.get_pjrt_plugin(), trust=0)
    assert call(trusting, trusting.deserialize_executable(data), x)[0].shape == (2, 3)
    with pytest.raises(errors.PermissionDenied):
        refusing.deserialize_executable(data)
    for opened in (trusting, refusing):
        opened.close()
    with pytest.raises(errors.InvalidArgument, match="the option trust is a number from 0 to 1"):
        made(shlo_disc.get_pjrt_plugin(), trust=2)
    options = "trust, asynchronous, max_programs, interpreted_microseconds, compiler, compile_seconds and blas"
    with pytest.raises(errors.InvalidArgument, match=options):
        made(shlo_disc.get_pjrt_plugin(), no_such_option=1)


def test_the_compiling_plugin_can_be_told_not_to(softmax: Path) -> None:
    refusing = made(library(), trust=False)
    with pytest.raises(errors.PermissionDenied):
        refusing.deserialize_executable(softmax.read_bytes())
    refusing.close()


def with_header(data: bytes, **changes: Any) -> bytes:
    """An artifact that is whole, with other values in its header."""
    read = Artifact.deserialize(data, trust=True)
    return replace(read, header={**read.header, **changes}).serialize()


ENCODED = base64.b64encode(b"").decode()
WRONG: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a byte": (lambda data: b"\0", "not a shlo_disc artifact"),
    "cut": (lambda data: data[:-1], "truncated"),
    "a flipped bit": (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "is damaged"),
    "text": (lambda data: b"func.func @main() { return }", "not a shlo_disc artifact"),
    "another processor": (lambda data: with_header(data, target={"triple": "aarch64-none"}), "made for aarch64"),
    "another device": (
        lambda data: with_header(data, target={"triple": "x86_64-none", "name": "cuda"}),
        "made for cuda; this client's device is the CPU",
    ),
    "several replicas": (lambda data: with_header(data, replicas=2), "the program runs on 2 devices: give compile"),
    "no object": (lambda data: with_header(data, pjrt=[]), "not base 64"),
    "no base 64": (
        lambda data: with_header(data, pjrt={"options": "?", "symbols": [], "hidden": []}),
        "not base 64",
    ),
    "no sizes": (lambda data: with_header(data, pjrt={"options": ENCODED, "hidden": []}), "lacks a list"),
    "sizes of text": (
        lambda data: with_header(data, pjrt={"options": ENCODED, "symbols": ["2", "3"], "hidden": []}),
        "a size that is no integer",
    ),
    "a size too few": (
        lambda data: with_header(data, pjrt={"options": ENCODED, "symbols": [2], "hidden": []}),
        "is not that of its program",
    ),
    "hidden arguments": (
        lambda data: with_header(data, pjrt={"options": ENCODED, "symbols": [2, 3], "hidden": [ENCODED, ENCODED]}),
        "is not that of its program",
    ),
}


def test_damaged_bytes_are_refused(client: Any, softmax: Path) -> None:
    for name, (damage, words) in WRONG.items():
        try:
            client.deserialize_executable(damage(softmax.read_bytes()))
            told = "it was loaded"
        except errors.InvalidArgument as error:
            told = str(error)
        assert re.search(words, told), (name, told)


def test_gpus_are_refused() -> None:
    """As a client's devices, which are a list of numbers."""
    plugin = pypjrt.Plugin(shlo_disc.get_pjrt_plugin())
    ordinals, option, name = (ctypes.c_int64 * 1)(0), abi.PJRT_NamedValue(), ctypes.create_string_buffer(b"gpus")
    option.struct_size, option.name, option.name_size = ctypes.sizeof(option), ctypes.addressof(name), 4
    option.type, option.value_size = abi.PJRT_NamedValue_kInt64List, 1
    option.int64_array_value = ctypes.addressof(ordinals)
    args = plugin.args("PJRT_Client_Create_Args")
    args.create_options, args.num_options = ctypes.addressof(option), 1
    with pytest.raises(errors.Unimplemented, match="GPUs without Python"):
        plugin.call("PJRT_Client_Create", args)


def test_the_library_exports_one_function_and_needs_no_python() -> None:
    path = shlo_disc.get_pjrt_plugin()
    symbols = subprocess.run(["nm", "-D", path], capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split()[-1] for line in symbols if " U " not in line and " w " not in line] == ["GetPjrtApi"]
    assert not [line for line in symbols if "Py" in line]
    needed = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    assert "python" not in needed and "not found" not in needed


def test_the_option_blas_names_the_library_of_lapack() -> None:
    """It is one for the process, so it is not there before."""
    data = shlo_disc.compile(jnp.linalg.cholesky, args=(("3, 3", "float32"),)).artifact.serialize()
    opened = made(shlo_disc.get_pjrt_plugin(), trust=True)
    with pytest.raises(errors.InvalidArgument, match="calls LAPACK.*clients of PJRT by the option blas"):
        opened.deserialize_executable(data)
    opened.close()
    for name, words in (("/nowhere.so", "cannot open"), ("libm.so.6", "libm.so.6 has no BLAS of 32-bit integers")):
        with pytest.raises(errors.InvalidArgument, match=f"the option blas: .*{words}"):
            made(shlo_disc.get_pjrt_plugin(), blas=name)
    opened = made(shlo_disc.get_pjrt_plugin(), trust=True, blas=scipy_blas())
    x = numbers(3, 3)
    x = x @ x.T + np.eye(3, dtype=np.float32)
    (found,) = call(opened, opened.deserialize_executable(data), x)
    np.testing.assert_allclose(found, np.linalg.cholesky(x), rtol=1e-5, atol=1e-6)
    opened.close()


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["", sys.executable])
def test_conformance(compiler: str) -> None:
    plugin = shlo_disc.get_pjrt_plugin()
    done = run_python("-m", "pypjrt.conform", plugin, SHLO_DISC_COMPILER=compiler, SHLO_DISC_TRUST="1")
    assert " 0 FAIL" in done.stdout, done.stdout + done.stderr
    assert ("no compiled executable" in done.stdout) == (not compiler)


def test_a_program_without_python(softmax: Path, tmp_path: Path) -> None:
    told = {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(tmp_path / "loaded")}
    command = [str(build_client(tmp_path)), shlo_disc.get_pjrt_plugin(), str(softmax), "2", "3"]
    missing = [*command[:2], "/nowhere", *command[3:]]
    failed = subprocess.run(missing, capture_output=True, text=True, check=False)
    assert (failed.returncode, failed.stderr) == (1, "cannot open /nowhere\n")
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=told)
    x = np.arange(6, dtype=np.float32).reshape(2, 3) / 8
    np.testing.assert_array_equal(
        np.array(done.stdout.split(), np.float32).reshape(2, 3), shlo_disc.load(softmax, trust=True)(x)
    )
    (loaded,) = tmp_path.glob("loaded.*")
    names = {
        Path(line.split("file=")[1].split()[0]).name for line in loaded.read_text().splitlines() if "file=" in line
    }
    assert "libshlo_disc_pjrt.so" in names and not [name for name in names if "python" in name]
    refused = subprocess.run([*command[:3], "2", "513"], capture_output=True, text=True, check=False)
    assert refused.returncode == 1 and "513" in refused.stderr
