# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A bundle of two programs, carried to a folder with a Python that has NumPy alone, and run there over the mock driver.

That Python has no MLIR to emulate kernels with, so functions of NumPy stand for the two that are launched.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import tarfile
import textwrap
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from benchmarks.gpu.backends import BACKENDS
from benchmarks.gpu.backends.ours import Ours
from benchmarks.gpu.bundle import Array, Bundle, Program, Refusal, Result
from benchmarks.gpu.recording import OPTIONS, Source, record, within
from benchmarks.gpu.replay import check, difference
from benchmarks.gpu.works import sources_of
from tests.gpu import mock_driver, mock_library, mock_streams, mock_tensor_maps, recorded_programs
from tests.gpu.emulated import fresh_client, install
from tests.gpu.make_bundle import pack, write_programs, write_runtime
from tests.gpu.no_driver import has_driver, has_libdevice
from tests.ir.gpu_cases import CASES

pytestmark = pytest.mark.skipif(has_driver(), reason="NVIDIA's own driver is here")

KERNELS = """
def add(driver, grid, block, words):
    x, y, count, *_ = words
    values = driver.view(x, 4 * count).view(np.float32)
    driver.view(y, 4 * count).view(np.float32)[...] = values + 1

def double(driver, grid, block, words):
    x, y, count, *_ = words
    driver.view(y, 4 * count).view(np.int32)[...] = 2 * driver.view(x, 4 * count).view(np.int32)
"""
"""Effects of the two programs' kernels, by the names below."""

SITE = """
import os
if "MOCK" in os.environ:
    import json, pathlib
    from tests.gpu import mock_driver
    import numpy as np
    {kernels}
    here = pathlib.Path(__file__).parent
    for name, kernel in (("add", add), ("double", double)):
        counts = json.loads((here / f"{{name}}.json").read_text())
        image = mock_driver.Image({{one: (count, kernel) for one, count in counts.items()}})
        mock_driver.mock_driver().images[(here / f"{{name}}.ptx").read_bytes()] = image
"""


def doubled(x: Any) -> Any:
    return x * 2


def int_source() -> Source:
    """A program on integers, which is not timed."""

    def calls() -> Iterator[tuple[str, tuple[Any, ...]]]:
        for n in (1, 5, 33):
            yield f"n={n}", (np.arange(n, dtype=np.int32),)

    def compiled(target: str, options: shlo_disc.Options) -> shlo_disc.Executable:
        return shlo_disc.compile(doubled, target=target, args=(("n", "int32"),), options=options)

    return Source("cases-double", "cases", "double", doubled, compiled, calls, within(0))


def add_source() -> Source:
    """A program that is timed, at small sizes."""
    return timed_at("add", (8,), (1003,))


def timed_at(name: str, *shapes: tuple[int, ...]) -> Source:
    """A work, timed at these shapes."""
    (source,) = sources_of(name)
    assert source.work is not None
    return dataclasses.replace(source, work=dataclasses.replace(source.work, shapes=shapes))


def refused_source() -> Source:
    """A program that no GPU takes."""

    def compiled(target: str, options: shlo_disc.Options) -> shlo_disc.Executable:
        return shlo_disc.compile(jnp.linalg.eigvals, target=target, args=(("n, n", "float32"),), options=options)

    return Source("ops-eig", "ops", "eig", jnp.linalg.eigvals, compiled, lambda: (), within(0))


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The two files of a small bundle."""
    folder = tmp_path_factory.mktemp("made") / "gpu-bundle"
    write_runtime(folder)
    groups = [[add_source()], [int_source()], [refused_source()]]
    write_programs(Bundle(folder), iter(groups), "cuda:sm_90")
    return pack(folder, folder)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python whose packages are NumPy, and what makes a mock driver of this process's environment's wish."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for path in Path(np.__file__).parents[1].glob("numpy*"):
        if path.name in ("numpy", "numpy.libs"):
            (site / path.name).symlink_to(path)
    (site / "tests" / "gpu").mkdir(parents=True)
    for module in (mock_driver, mock_library, mock_streams, mock_tensor_maps):
        (site / "tests" / "gpu" / Path(module.__file__).name).write_bytes(Path(module.__file__).read_bytes())
    (site / "sitecustomize.py").write_text(SITE.format(kernels=textwrap.indent(KERNELS, "    ").strip()))
    return folder


@pytest.fixture
def unpacked(packed: list[Path], bare: Path, tmp_path: Path) -> Path:
    """The bundle in an empty folder, and its kernels known to the bare Python."""
    for file in packed:
        with tarfile.open(file) as archive:
            archive.extractall(tmp_path, filter="data")
    (site,) = bare.glob("lib/python*/site-packages")
    for name, program in (("add", "plain-add"), ("double", "cases-double")):
        ptx = bytes(Bundle(tmp_path).artifact(program).sections["ptx"])
        (site / f"{name}.ptx").write_bytes(ptx)
        (site / f"{name}.json").write_text(json.dumps(parameter_counts(ptx.decode())))
    return tmp_path


def parameter_counts(ptx: str) -> dict[str, int]:
    """The number of parameters of each kernel."""
    entries = re.findall(r"\.entry (\w+)\((.*?)\)", ptx, re.DOTALL)
    return {name: parameters.count(".param") for name, parameters in entries}


def run(bare: Path, folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(bare / "bin" / "python"), str(folder / "run.py"), "--output", str(folder / "report"), *arguments]
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "CC") if name in os.environ}
    return subprocess.run(
        command, capture_output=True, text=True, env=kept | environment, cwd=folder, timeout=120, check=False
    )


def result_of(folder: Path) -> Any:
    return json.loads((folder / "report" / "gpu.json").read_text())


def test_a_bundle_runs_with_numpy_alone(bare: Path, unpacked: Path) -> None:
    done = run(bare, unpacked, "--budget", "0.001", MOCK="1")
    assert done.returncode == 0, done.stdout + done.stderr
    result = result_of(unpacked)
    assert {row["name"]: (row["calls"], row["wrong"]) for row in result["checks"]} == {
        "plain-add": (3, []), "cases-double": (3, []),
    }  # fmt: skip
    assert [row["reason"].split(":")[0] for row in result["refused"]] == ["stablehlo.custom_call"]
    assert "cases: 1 of 1 programs right (3 calls)" in done.stdout
    work = result["works"]["plain-add"]
    assert work["launches"] == 1 and work["bytes"] == [64, 8024]
    own = work["backends"]["ours"]
    assert set(own["stream"]) == set(own["first"]) == set(work["copy_seconds"]) == {"0", "1"}
    assert min(own["stream"].values()) > 0
    assert result["absent"] == {
        name: f"{entry.needs[0]} is not installed" for name, entry in BACKENDS.items() if name != "ours"
    }
    page = (unpacked / "report" / "gpu.html").read_text()
    assert "Mock GPU" in page and "x + 1" in page and "1 x stablehlo.custom_call" in page and "src=" not in page


def test_a_wrong_result_is_told_and_is_the_exit_status(bare: Path, unpacked: Path) -> None:
    bundle = Bundle(unpacked)
    row = json.loads(bundle.file("cases-double", "json").read_text())
    row["calls"][1]["results"][0]["array"] = row["calls"][1]["arguments"][0]
    bundle.file("cases-double", "json").write_text(json.dumps(row))
    done = run(bare, unpacked, "--only", "checks", "--programs", "cases-double", MOCK="1")
    assert done.returncode == 1, done.stdout + done.stderr
    text = "n=5: result 0 has 4 of 5 wrong elements"
    assert f"WRONG cases-double (double): {text}" in done.stdout
    assert result_of(unpacked)["checks"][0]["wrong"] == [text]
    assert text in (unpacked / "report" / "gpu.html").read_text()


@pytest.mark.slow
def test_a_program_that_fails_on_the_gpu_leaves_the_others_to_run(bare: Path, unpacked: Path) -> None:
    (site,) = bare.glob("lib/python*/site-packages")
    (site / "double.ptx").write_bytes(b"another")
    done = run(bare, unpacked, "--only", "checks", MOCK="1")
    assert done.returncode == 1, done.stdout + done.stderr
    by_name = {row["name"]: row for row in result_of(unpacked)["checks"]}
    assert "could not load code" in by_name["cases-double"]["refused"]
    assert by_name["plain-add"]["wrong"] == []


def test_a_machine_without_a_gpu_is_told_so(bare: Path, unpacked: Path) -> None:
    done = run(bare, unpacked)
    assert done.returncode == 2
    assert "nothing can run here: DeviceError: there is no GPU to run on: NVIDIA's driver" in done.stdout


@pytest.mark.slow
def test_a_python_without_a_native_core_is_told_what_to_install(bare: Path, unpacked: Path) -> None:
    for file in (unpacked / "shlo_disc" / "runtime").glob("_native*.so"):
        file.unlink()
    done = run(bare, unpacked, PATH=str(unpacked))  # without CMake
    assert done.returncode == 2
    assert re.search(
        r"nothing can run here: .*_native.*that needs CMake 3.20, a C\+\+20 compiler", done.stdout, re.DOTALL
    )


# ---- the parts ------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not has_libdevice(), reason="libdevice is absent: pip install '.[cuda]'")
def test_a_program_is_read_as_it_was_written(tmp_path: Path) -> None:
    bundle = Bundle(tmp_path)
    source = timed_at("cross_entropy", (3, 40), (128, 768))
    program = record(source, "cuda:sm_90", bundle)
    assert isinstance(program, Program), program
    assert bundle.program(program.name) == program and bundle.names() == [program.name]
    logits, labels = bundle.inputs(program, 1)
    assert logits.shape == (128, 768) and logits.dtype == np.float32 and labels.dtype == np.int32
    np.testing.assert_array_equal(labels, source.work.make_inputs(128, 768)[1])  # type: ignore[union-attr]
    assert bundle.bytes_moved(program, 1) == logits.nbytes + labels.nbytes + 4 * 128
    read = bundle.archive(program.name)
    call = program.calls[0]
    given = [read(array) for array in call.arguments]
    np.testing.assert_array_equal(read(call.results[0].array), jax.jit(source.function)({}, *given))


@pytest.mark.skipif(not has_libdevice(), reason="libdevice is absent: pip install '.[cuda]'")
@pytest.mark.parametrize("name", ["narrow_floats", "any_and_all"])
def test_recorded_cases_are_right_in_the_emulator(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several results, of bf16, f16 and booleans, checked as on a GPU."""
    monkeypatch.setattr(recorded_programs, "SIZES", ({"b": 1, "s": 1}, {"b": 2, "s": 33}))
    source, bundle = recorded_programs.case_source(name, CASES[name]), Bundle(tmp_path)
    with jax.enable_x64(True):
        install(source.compile("cuda:sm_90a", OPTIONS))
    program = record(source, "cuda:sm_90a", bundle)
    assert isinstance(program, Program), program
    found = check(bundle, program, Ours(bundle, fresh_client()))
    assert found["calls"] == 2 and found["wrong"] == found["unsteady"] == [] and found["error"] <= 1


def test_a_refused_program_says_why(tmp_path: Path) -> None:
    refused = record(refused_source(), "cuda:sm_90", Bundle(tmp_path))
    assert isinstance(refused, Refusal) and refused.reason.startswith("stablehlo.custom_call: ")

    def untraceable(target: str, options: shlo_disc.Options) -> shlo_disc.Executable:
        return shlo_disc.compile(jax.vmap(doubled), target=target, args=(("", "float32"),), options=options)

    by_jax = record(dataclasses.replace(refused_source(), compile=untraceable), "cuda:sm_90", Bundle(tmp_path))
    assert isinstance(by_jax, Refusal) and by_jax.reason.startswith("JAX: ")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", "int8", "complex64", "float64"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_arrays_of_any_kind_are_kept(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    given = np.ones(shape).astype(jnp.dtype(dtype))

    def calls() -> Any:
        yield "", (given,)

    def compiled(target: str, options: shlo_disc.Options) -> shlo_disc.Executable:
        return shlo_disc.compile(lambda x: x, args=(jax.ShapeDtypeStruct(shape, dtype),), options=options)

    bundle = Bundle(tmp_path)
    program = record(Source("p", "cases", "p", lambda x: x, compiled, calls, within(0), True), "cpu", bundle)
    assert isinstance(program, Program), program
    got = bundle.archive("p")(program.calls[0].results[0].array)
    assert got.dtype == given.dtype and got.shape == given.shape
    np.testing.assert_array_equal(got, given)


def _result(want: np.ndarray, absolute: float, relative: float = 0.0) -> Result:
    return Result(Array("", want.dtype.name, list(want.shape)), relative, absolute)


def test_a_result_that_is_off_is_told() -> None:
    want = np.array([1.0, np.nan, -np.inf, 1000.0])
    assert difference(want + 1e-4, want, _result(want, 1e-3)) == (pytest.approx(0.1), "")
    assert difference(want + 1e-2, want, _result(want, 1e-3))[1].startswith("has 2 of 4 wrong elements, at [")
    assert difference(want * 1.01, want, _result(want, 0.0, 0.011))[1] == ""
    assert difference(np.zeros(4), want, _result(want, 1e6))[1].startswith("has 2 of 4 wrong elements")
    assert difference(np.zeros(4), want, _result(want, np.inf))[1] == ""
    assert difference(want[:3], want, _result(want, np.inf))[1] == "is float64[3], not float64[4]"
    numbers = np.array([1, 2])
    assert difference(numbers, np.array([1, 3]), _result(numbers, 1))[1] == "has 1 of 2 wrong elements"
    scalar = np.array(2.0)
    assert difference(scalar + 1, scalar, _result(scalar, 0.5))[1] == "has 1 of 1 wrong elements, at [] 3 and not 2"
