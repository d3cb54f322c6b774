# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with what follows them, in whole programs for GPUs: by one kernel of ours, or by cuBLASLt with a kernel
behind it or none, against XLA."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.runtime import Client
from shlo_disc.shape_dialect.dialect.buffers import arenas_of
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from tests.gpu.emulated import fresh_client, install, loaded
from tests.gpu.marks import needs_mock_driver
from tests.gpu.mock_blas import BIAS, NO_EPILOGUE, MockBlas
from tests.gpu.mock_driver import MockDriver
from tests.gpu.test_products import blas as blas
from tests.ir.gpu_cases import EXACT, assert_close
from tests.run.op_check import random_array

pytestmark = needs_mock_driver

Texts = tuple[tuple[str, str], ...]


class Program(NamedTuple):
    """A function of one product, and its arguments as shape and dtype.

    kernels: how many there are when the program's own multiply, and when the library does, which then does `epilogue`.
    """

    function: Any
    arguments: Texts
    tolerance: float = 1e-5
    own: int = 1
    behind: int = 1
    epilogue: int = NO_EPILOGUE


def dot(x: Any, w: Any, kind: Any) -> Any:
    return jax.lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=kind)


def matrices(dtype: str, *more: tuple[str, str]) -> Texts:
    return (("m, k", dtype), ("k, n", dtype), *more)


ROW, COLUMN, WHOLE = "n", "m, 1", "m, n"
F32, BF16, F16 = "float32", "bfloat16", "float16"
PROGRAMS = {
    "bias": Program(lambda x, w, b: x @ w + b, matrices(F32, (ROW, F32)), behind=0, epilogue=BIAS),
    "bias_first": Program(lambda x, w, b: b + x @ w, matrices(F32, (ROW, F32)), behind=0, epilogue=BIAS),
    "relu": Program(lambda x, w, b: jax.nn.relu(x @ w + b), matrices(F32, (ROW, F32))),
    "gelu": Program(lambda x, w, b: jax.nn.gelu(x @ w + b, approximate=False), matrices(F32, (ROW, F32))),
    "gelu_tanh": Program(lambda x, w: jax.nn.gelu(x @ w), matrices(F32)),
    "columns": Program(lambda x, w, b: x @ w * b, matrices(F32, (COLUMN, F32))),
    "residual": Program(lambda x, w, b, r: x @ w + b + r, matrices(F32, (ROW, F32), (WHOLE, F32))),
    "only_residual": Program(lambda x, w, r: x @ w - r, matrices(F32, (WHOLE, F32))),
    "scalar": Program(lambda x, w, a: a * (x @ w), matrices(F32, ("", F32))),
    "masked": Program(
        lambda x, w, mask: jnp.where(mask > 0, x @ w, -1e9), matrices(F32, (WHOLE, F32)),
    ),
    "causal": Program(lambda x, w: jnp.tril(x @ w), matrices(F32)),
    "two_results": Program(lambda x, w, b: ((y := x @ w + b), jnp.tanh(y)), matrices(F32, (ROW, F32))),
    "compared": Program(lambda x, w, b: x @ w > b, matrices(F32, (ROW, F32))),
    "to_half": Program(lambda x, w, b: (x @ w + b).astype(jnp.bfloat16), matrices(F32, (ROW, F32)), 1e-2),
    "rounded_bias": Program(lambda x, w, b: x @ w + b, matrices(BF16, (ROW, BF16)), 1e-2),
    "half_gelu": Program(lambda x, w, b: jax.nn.gelu(x @ w + b), matrices(F16, (ROW, F16)), 1e-2),
    "wide_bias": Program(
        lambda x, w, b: dot(x, w, jnp.float32) + b, matrices(BF16, (ROW, F32)), behind=0, epilogue=BIAS
    ),
    "wide_half_bias": Program(
        lambda x, w, b: (y := dot(x, w, jnp.float32), y + jnp.broadcast_to(b, y.shape).astype(jnp.float32))[1].astype(
            jnp.bfloat16
        ),
        matrices(BF16, (ROW, BF16)), 1e-2,
    ),
    "wide_bias_rounded": Program(
        lambda x, w, b: (dot(x, w, jnp.float32) + b).astype(jnp.bfloat16), matrices(BF16, (ROW, F32)), 1e-2
    ),
    "bytes": Program(
        lambda x, w, b: (dot(x, w, jnp.int32) + b).astype(jnp.float32) * 0.5,
        matrices("int8", (ROW, "int32")),
        behind=-1,
    ),
    "doubles": Program(lambda x, w, b: x @ w + b, matrices("float64", (ROW, "float64")), 1e-13),
    "batch": Program(
        lambda x, y, r: jnp.tanh(x @ y + r), (("3, m, k", F32), ("3, k, n", F32), ("3, m, n", F32)),
    ),
    "batch_bias": Program(
        lambda x, y, b: x @ y + b, (("3, m, k", F32), ("3, k, n", F32), ("n", F32)), behind=0, epilogue=BIAS
    ),
    "batch_rows": Program(lambda x, y, b: x @ y + b, (("3, m, k", BF16), ("3, k, n", BF16), ("3, 1, n", BF16)), 1e-2),
    "dense": Program(
        lambda x, w, b: jax.nn.relu(jnp.einsum("amk,kn->amn", x, w) + b),
        (("2, m, k", F32), ("k, n", F32), ("n", F32)),
    ),
    "vector": Program(lambda x, v, b: x @ v + b, (("m, k", F32), ("k", F32), ("m", F32))),
    "square": Program(lambda x, b: x @ x.T + b, (("m, k", F32), ("m", F32)), behind=0, epilogue=BIAS),
    "of_itself": Program(lambda x, w: x @ w + x, (("m, k", F32), ("k, k", F32))),
    "of_other_side": Program(lambda x, w: x @ w * w, (("k, k", F32), ("k, k", F32))),
}  # fmt: skip

NEAR = {
    "transposed_bias": Program(lambda x, w, b: (x @ w).T + b, matrices(F32, ("m", F32))),
    "product_as_well": Program(lambda x, w, b: (x @ w > b, x @ w), matrices(F32, (ROW, F32))),
    "twice": Program(lambda x, w: (x @ w, jnp.tanh(x @ w)), matrices(F32)),
    "reduced": Program(lambda x, w, b: (x @ w + b).sum(-1), matrices(F32, (ROW, F32))),
    "normalised": Program(lambda x, w: jax.nn.softmax(x @ w), matrices(F32)),
    "shifted": Program(lambda x, w: (x @ w)[:, ::-1] + 1, matrices(F32)),
    "sliced": Program(lambda x, w, r: (x @ w)[1:] + r[1:], matrices(F32, (WHOLE, F32))),
    "two_products": Program(lambda x, w, y: x @ w + y @ w, (("m, k", F32), ("k, n", F32), ("m, k", F32)), own=2),
    "chain": Program(lambda x, w: jnp.tanh(x @ w) @ w, (("m, k", F32), ("k, k", F32))),
    "axis_of_batch": Program(lambda x, y, b: x @ y + b, (("3, m, k", F32), ("3, k, n", F32), ("3, 1, 1", F32))),
    "transposed_result": Program(lambda x, w, b: (x @ w + b[:, None]).T, matrices(F32, ("m", F32))),
}

SIZES = ((1, 1, 1), (2, 3, 2), (15, 16, 17), (17, 15, 16), (64, 5, 63), (3, 19, 65), (67, 24, 130))
FEW = ((1, 1, 1), (15, 8, 17), (17, 16, 64))


@functools.cache
def program(name: str) -> shlo_disc.Executable:
    found = {**PROGRAMS, **NEAR}[name]
    with jax.enable_x64(True):
        return shlo_disc.compile(found.function, target="cuda:sm_90", options=EXACT, args=found.arguments)


def given(arguments: Texts, sizes: tuple[int, int, int]) -> list[np.ndarray]:
    dims = dict(zip("mkn", sizes, strict=True))

    def shape(text: str) -> tuple[int, ...]:
        return tuple(eval(d, {"__builtins__": {}}, dims) for d in text.split(",") if d)  # noqa: S307

    return [random_array(shape(text), dtype, i) for i, (text, dtype) in enumerate(arguments)]


def check(name: str, client: Client, sizes: tuple[tuple[int, int, int], ...]) -> None:
    found = {**PROGRAMS, **NEAR}[name]
    with jax.enable_x64(True):
        run = loaded(program(name), client)
        for one in sizes:
            values = given(found.arguments, one)
            assert_close(run(*values), jax.jit(found.function)(*values), found.tolerance)


def library_client(**options: Any) -> Client:
    return fresh_client(uses_libraries=True, **options)


def _sizes_of(name: str) -> tuple[tuple[int, int, int], ...]:
    return SIZES if name in ("bias", "residual", "rounded_bias", "half_gelu", "wide_half_bias") else FEW


@pytest.mark.parametrize("name", PROGRAMS)
def test_by_one_kernel(driver: MockDriver, name: str) -> None:
    sizes = _sizes_of(name)
    check(name, fresh_client(), sizes)
    assert len(driver.launches) == PROGRAMS[name].own * len(sizes)
    assert all(launch.startswith("product_") and "_epilogue_" in launch for launch in driver.launches)


@pytest.mark.parametrize("name", PROGRAMS)
def test_by_the_library(driver: MockDriver, blas: MockBlas, name: str) -> None:
    expected = PROGRAMS[name]
    check(name, library_client(fuses_products=False), FEW)
    if expected.behind < 0:  # no product for the library
        assert blas.products == [] and len(driver.launches) == len(FEW)
        return
    assert blas.epilogues == [expected.epilogue] * len(FEW)
    assert len(driver.launches) == expected.behind * len(FEW)
    assert not any(launch.startswith("product_") for launch in driver.launches)


@pytest.mark.parametrize("has_library", [False, True])
@pytest.mark.parametrize("name", NEAR)
@pytest.mark.slow
def test_near_programs(driver: MockDriver, blas: MockBlas, name: str, has_library: bool) -> None:
    client = library_client(fuses_products=False) if has_library else fresh_client()
    check(name, client, ((1, 1, 1), (5, 8, 7), (17, 16, 33)))
    assert bool(blas.products) == has_library


@pytest.mark.parametrize("name", ["bias", "half_gelu", "residual", "two_results"])
@pytest.mark.parametrize("has_library", [False, True])
def test_nothing_to_multiply(driver: MockDriver, blas: MockBlas, name: str, has_library: bool) -> None:
    """Sums over nothing are zeros, to which a bias is added; results without elements are not computed."""
    found = PROGRAMS[name]
    texts = tuple((text.replace("k", "k - 1").replace("m", "m - 1"), dtype) for text, dtype in found.arguments)
    executable = shlo_disc.compile(found.function, target="cuda:sm_90", options=EXACT, args=texts)
    run = loaded(executable, library_client() if has_library else fresh_client())
    for sizes in ((4, 1, 5), (1, 4, 5), (1, 1, 5), (3, 3, 5)):
        values = given(texts, sizes)
        assert_close(run(*values), jax.jit(found.function)(*values), found.tolerance)


def test_a_forced_kernel_asks_no_library(driver: MockDriver, blas: MockBlas) -> None:
    check("bias", library_client(fuses_products=True), FEW)
    assert blas.calls == [] and len(driver.launches) == len(FEW)


@pytest.mark.slow
def test_the_cheaper_way_is_taken(driver: MockDriver, blas: MockBlas) -> None:
    """Few operations for each sum are done by one kernel, many by the library."""
    found = PROGRAMS["gelu_tanh"]
    run = loaded(program("gelu_tanh"), library_client())
    for sizes, products in (((4, 8, 4), 0), ((8, 16, 40), 0), ((9, 1 << 21, 8), 1)):
        values = [value / 64 for value in given(found.arguments, sizes)]
        assert_close(run(*values), jax.jit(found.function)(*values), 1e-4)
        assert len(blas.products) == products
    assert len(driver.launches) == 3


def test_what_the_library_refuses_takes_one_kernel(driver: MockDriver, blas: MockBlas) -> None:
    blas.refuses = True
    check("relu", library_client(fuses_products=False), FEW)
    assert blas.products == [] and len(driver.launches) == len(FEW)


def test_a_bias_that_is_a_view_has_an_algorithm_of_its_own(driver: MockDriver, blas: MockBlas) -> None:
    """Its address may be aligned worse, which an algorithm depends on."""

    def function(x: Any, w: Any, b: Any) -> Any:
        return x @ w + b

    client = library_client(fuses_products=False)
    run = loaded(
        shlo_disc.compile(function, target="cuda:sm_90", options=EXACT, args=matrices(F32, (ROW, F32))), client
    )
    x, w, b = given(matrices(F32, (ROW, F32)), (5, 6, 8))
    for other in (b, b + 1):
        assert_close(run(x, w, other), function(x, w, other), 1e-5)
    assert blas.epilogues == [BIAS] * 2
    assert blas.calls.count("cublasLtMatmulAlgoGetHeuristic") == 1


def test_sums_have_a_buffer_only_where_no_result_is_one() -> None:
    """Parts of the depth have one besides, where there are several."""

    def arena(name: str) -> int:
        with make_context():
            module = ir.Module.parse(program(name).as_text("plan"))
            return arenas_of(module.operation)[0].evaluate({"m": 5, "k": 6, "n": 7})

    assert arena("residual") == 0 and arena("to_half") > 0


def test_an_artifact_of_a_file(driver: MockDriver, blas: MockBlas, tmp_path: Any) -> None:
    path = tmp_path / "program.shlodisc"
    path.write_bytes(program("residual").artifact.serialize())
    install(program("residual"))
    values = given(PROGRAMS["residual"].arguments, (5, 6, 7))
    for client in (fresh_client(), library_client(fuses_products=False)):
        run = client.load(path.read_bytes(), trust=True)
        assert_close(run(*values), jax.jit(PROGRAMS["residual"].function)(*values), 1e-5)
