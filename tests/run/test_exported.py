# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs made by `jax.export`: for several platforms, with donated arguments, serialized."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import shlo_disc
from shlo_disc import Options
from shlo_disc.errors import ProgramError, UnsupportedError
from shlo_disc.tools.cli import main

X = np.linspace(-2, 2, 5, dtype=np.float32)


def by_platform(x: Any) -> Any:
    """Another function on each platform."""
    inner = jax.lax.platform_dependent(x, cpu=jnp.sin, tpu=jnp.cos, default=lambda x: x + 100)
    return inner + jax.lax.platform_dependent(x, tpu=lambda x: x, default=lambda x: 2 * x)


def exported(function: Any, platforms: Any, *shape: Any, **options: Any) -> export.Exported:
    spec = jax.ShapeDtypeStruct(shape, np.float32)
    return export.export(function if hasattr(function, "trace") else jax.jit(function), platforms=platforms, **options)(
        spec
    )


# ---- platforms ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("platforms", [("cpu",), ("cpu", "tpu"), ("tpu", "cpu"), ("cuda", "tpu", "cpu")], ids=str)
@pytest.mark.parametrize("x64", [False, True])
def test_the_processors_branch_of_several(platforms: tuple[str, ...], x64: bool) -> None:
    with jax.enable_x64(x64):
        for shape in (export.symbolic_shape("b"), (5,)):
            program = shlo_disc.compile(exported(by_platform, platforms, *shape))
            np.testing.assert_allclose(program(X), np.sin(X) + 2 * X, rtol=1e-6)
            assert len(platforms) == 1 or "stablehlo.case" not in program.as_text("import")


def test_what_is_for_other_platforms_needs_no_lowering() -> None:
    def elsewhere(x: Any) -> Any:
        return jax.ffi.ffi_call("only_on_tpu", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    def either(x: Any) -> Any:
        return jax.lax.platform_dependent(x, tpu=elsewhere, cpu=jnp.sin) + jnp.linalg.norm(x)

    checks = [export.DisabledSafetyCheck.custom_call("only_on_tpu")]
    program = shlo_disc.compile(exported(either, ("tpu", "cpu"), 5, disabled_checks=checks))
    np.testing.assert_allclose(program(X), np.sin(X) + np.linalg.norm(X), rtol=1e-6)


def test_a_linear_solver_of_several_platforms() -> None:
    """JAX lowers these to other functions on each platform."""

    def eigenvalues(x: Any) -> Any:
        return jnp.linalg.eigvalsh(jnp.outer(x, x) + jnp.diag(x))

    checks = [export.DisabledSafetyCheck.custom_call("cusolver_syevd_ffi")]
    program = shlo_disc.compile(exported(eigenvalues, ("cuda", "cpu"), 5, disabled_checks=checks))
    np.testing.assert_allclose(program(X), jax.jit(eigenvalues)(X), rtol=1e-4, atol=1e-5)


def test_a_linear_solver_of_gpus() -> None:
    def eigenvalues(x: Any) -> Any:
        return jnp.linalg.eigvalsh(jnp.outer(x, x) + jnp.diag(x))

    checks = [export.DisabledSafetyCheck.custom_call("cusolver_syevd_ffi")]
    with pytest.raises(UnsupportedError, match=r"@cusolver_syevd_ffi at .*export it with platforms=\['cpu'\]"):
        shlo_disc.compile(exported(eigenvalues, ("cuda",), 5, disabled_checks=checks), target="cuda:sm_90")
    program = shlo_disc.compile(exported(eigenvalues, ("cpu",), 5), target="cuda:sm_90")
    assert ("lapack_ssyevd", "library") in program.kernels


@pytest.mark.parametrize("platforms", [("tpu",), ("tpu", "cuda")], ids=str)
def test_programs_for_other_platforms_only(platforms: tuple[str, ...], tmp_path: Path) -> None:
    message = (
        f"'by_platform' was exported for {', '.join(platforms)}; export it with platforms=['cpu'], or with that among "
        "others"
    )
    for _ in range(2):
        with pytest.raises(ProgramError) as caught:
            shlo_disc.compile(exported(by_platform, platforms, 5), options=Options(cache_dir=tmp_path))
        assert caught.value.message == message
        shlo_disc.compile(exported(jnp.sin, ("cpu",), 5), options=Options(cache_dir=tmp_path))


def test_the_platforms_check_can_be_switched_off() -> None:
    checks = [export.DisabledSafetyCheck.platform()]
    program = shlo_disc.compile(exported(by_platform, ("tpu",), 5, disabled_checks=checks))
    np.testing.assert_allclose(program(X), np.cos(X) + X, rtol=1e-6)


def test_programs_for_a_gpu() -> None:
    spec = jax.ShapeDtypeStruct((512,), np.float32)
    program = export.export(jax.jit(by_platform), platforms=("tpu", "cpu", "cuda"))(spec)
    assert "sin" not in shlo_disc.compile(program, target="cuda:sm_90").as_text("import")
    assert "sin" in shlo_disc.compile(program).as_text("import")


# ---- donation ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [("b",), (5,)], ids=str)
def test_donated_arrays_are_deleted(shape: Any) -> None:
    def step(state: Any, x: Any) -> Any:
        return {"w": state["w"] + x, "n": state["n"] + 1}, (x * 2).sum()

    sizes = export.symbolic_shape("b") if shape == ("b",) else shape
    array = jax.ShapeDtypeStruct(sizes, np.float32)
    state = {"w": array, "n": jax.ShapeDtypeStruct((), np.int32)}
    for platforms in (("cpu",), ("tpu", "cpu")):
        program = shlo_disc.compile(export.export(jax.jit(step, donate_argnums=0), platforms=platforms)(state, array))
        assert [row["donated"] for row in program.artifact.header["arguments"]] == [True, True, False]
        given, x = {"w": jnp.asarray(X), "n": jnp.int32(0)}, jnp.asarray(X)
        for turn in range(3):
            new, _ = program(given, x)
            assert all(leaf.is_deleted() for leaf in jax.tree.leaves(given)) and not x.is_deleted()
            with pytest.raises(RuntimeError, match="deleted"):
                program(given, x)
            np.testing.assert_allclose(new["w"], X * (turn + 2), rtol=1e-6)
            given = new
        bound = program.bind({"w": jnp.asarray(X), "n": jnp.int32(0)})
        assert int(bound(X)[0]["n"]) == int(bound(X)[0]["n"]) == 1


def test_arrays_are_kept_when_a_call_is_refused_or_they_are_not_jaxs() -> None:
    program = shlo_disc.compile(jax.jit(lambda x, y: x + y, donate_argnums=(0, 1)), args=(("b", "float32"),) * 2)
    x, y = jnp.asarray(X), jnp.asarray(X)
    with pytest.raises(shlo_disc.ShapeError):
        program(x, y[:3])
    assert not x.is_deleted()
    np.testing.assert_array_equal(program(x, X.copy()), 2 * X)
    assert x.is_deleted()
    donated = [row["donated"] for row in program.artifact.header["arguments"]]
    assert donated == [True, False], "one result takes the memory of one argument"


def test_donated_arguments_among_those_that_are_not_bound() -> None:
    program = shlo_disc.compile(jax.jit(lambda w, x: w * x, donate_argnums=1), args=(("b", "float32"),) * 2)
    bound, x = program.bind(X), jnp.asarray(X)
    np.testing.assert_allclose(bound(x), X * X, rtol=1e-6)
    assert x.is_deleted()


# ---- serialized --------------------------------------------------------------------------------------------------


def square(x: Any) -> Any:
    return {"y": x * x, "z": jnp.linalg.norm(x)}


@pytest.fixture(scope="module")
def blob() -> bytes:
    pytest.importorskip("flatbuffers")
    return bytes(exported(square, ("tpu", "cpu"), *export.symbolic_shape("b")).serialize())


def test_serialized_programs(blob: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "square.jax"
    path.write_bytes(blob)
    for program in (blob, bytearray(blob), memoryview(blob), path, str(path)):
        executable = shlo_disc.compile(program, options=Options(cache_dir=tmp_path / "cache"))
        assert str(executable.signature) == "square(args[0]: f32[b]) -> (result['y']: f32[b], result['z']: f32[])"
        np.testing.assert_allclose(executable(X)["y"], X * X, rtol=1e-6)
    assert executable.compile_count == 0, "from the cache"
    assert main(["info", str(path)]) == 0
    assert main(["run", str(path), "--dims", "b=3"]) == 0
    assert main(["compile", str(path), "-o", str(tmp_path / "square.disc")]) == 0
    assert main(["opt", str(path), "--stage", "import"]) == 0
    assert "result['y']: float32[3]" in capsys.readouterr().out


def test_serialized_programs_with_custom_calls(blob: bytes) -> None:
    """To which JAX attaches sharding rules, of a dialect of their own."""
    data = export.export(jax.jit(jnp.linalg.cholesky))(jax.ShapeDtypeStruct((3, 3), np.float32)).serialize()
    np.testing.assert_array_equal(shlo_disc.compile(data)(np.eye(3, dtype=np.float32)), np.eye(3))


@pytest.mark.parametrize("cut", [64, 300, 0.5, 0.9, 0.99])
def test_truncated_programs(blob: bytes, cut: float) -> None:
    with pytest.raises(ProgramError):
        shlo_disc.compile(blob[: int(cut if cut > 1 else len(blob) * cut)])


@pytest.mark.slow
def test_damaged_programs(blob: bytes) -> None:
    """A program or an error of ours, and the process lives."""
    random = np.random.default_rng(3)
    for _ in range(60):
        damaged = bytearray(blob)
        for place in random.integers(0, len(blob), 3):
            damaged[place] = random.integers(256)
        try:
            shlo_disc.compile(damaged)
        except shlo_disc.DiscError as error:
            assert str(error)


def test_without_the_package_that_reads_them(blob: bytes, tmp_path: Path) -> None:
    (tmp_path / "flatbuffers.py").write_text("raise ImportError('no flatbuffers')")
    (tmp_path / "square.jax").write_bytes(blob)
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "shlo_disc", "info", str(tmp_path / "square.jax")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(root)])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "was written by jax.export, which cannot be used here: Please install 'flatbuffers'" in done.stderr
