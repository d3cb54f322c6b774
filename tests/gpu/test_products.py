# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products of whole programs for GPUs: by cuBLASLt, by a kernel of ours, and from one to the other."""

from __future__ import annotations

import functools
import gc
import sys
import threading
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import DeviceError
from shlo_disc.runtime import Client, cuda_libraries
from shlo_disc.runtime.allocation import AllocationError
from tests.gpu import mock_blas
from tests.gpu.emulated import fresh_client, loaded
from tests.gpu.marks import needs_mock_driver
from tests.gpu.mock_blas import EXECUTION_FAILED, F32, F32_BY_TF32, F64, FUNCTIONS, I32, VERSION, MockBlas
from tests.gpu.mock_driver import MockDriver
from tests.gpu.mock_library import build_library
from tests.ir.gpu_cases import EXACT, assert_close
from tests.run.op_check import random_array, small_integers

pytestmark = needs_mock_driver


class Program(NamedTuple):
    """A function, and its arguments as shape and dtype; floats are computed to within `tolerance` of XLA's.

    compute: the types that the library computes its products in; none for what it does not take.
    """

    function: Any
    arguments: tuple[tuple[str, str], ...]
    compute: tuple[int, ...]
    tolerance: float = 1e-5


def heads(q: Any, k: Any, v: Any) -> Any:
    """Heads between rows and features: two batch axes that are not one. It is too much for one kernel of attention."""
    scores = jnp.einsum("bshd,bthd->bhst", q, k) / 8**0.5
    return jnp.einsum("bhst,bthd->bshd", 2 * jax.nn.softmax(scores), v)


def perceptron(x: Any, first: Any, bias: Any, second: Any) -> Any:
    return jax.nn.gelu(x @ first + bias) @ second


def repeated(x: Any, w: Any) -> Any:
    return jax.lax.fori_loop(0, 3, lambda _, y: jnp.tanh(y @ w), x)


def summed(x: Any, w: Any, kind: Any) -> Any:
    return jax.lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=kind)


MATRICES = (("b, s", "float32"), ("s, 5", "float32"))
HEADS = (("b, s, 2, 8", "float32"),) * 3
PROGRAMS = {
    "matrices": Program(lambda x, w: x @ w, MATRICES, (F32,)),
    "rows": Program(lambda x, w: jnp.einsum("bs,cs->bc", x, w), (("b, s", "float32"), ("5, s", "float32")), (F32,)),
    "columns": Program(lambda x, w: jnp.einsum("sb,sc->cb", x, w), (("s, b", "float32"), ("s, 5", "float32")), (F32,)),
    "vector": Program(lambda x, w: x @ w, (("b, s", "float32"), ("s", "float32")), (F32,)),
    "square": Program(lambda x: x @ x.T, (("b, s", "float32"),), (F32,)),
    "batch": Program(lambda x, y: x @ y, (("b, s, 3", "float32"), ("b, 3, s", "float32")), (F32,)),
    "shorter": Program(lambda x, w: x[1:, 1:] @ w[1:], MATRICES, (F32,)),
    "shorter_batch": Program(lambda x, y: x[1:] @ y[1:], (("b, s, 3", "float32"), ("b, 3, s", "float32")), (F32,)),
    "heads": Program(heads, HEADS, (F32, F32)),
    "perceptron": Program(
        perceptron, (("b, s", "float32"), ("s, 9", "float32"), ("9", "float32"), ("9, 4", "float32")), (F32, F32)
    ),
    "doubles": Program(jnp.dot, (("b, s", "float64"), ("s, 5", "float64")), (F64,), 1e-13),
    "halves": Program(jnp.dot, (("b, s", "float16"), ("s, 5", "float16")), (F32,), 1e-3),
    "bfloats": Program(
        functools.partial(summed, kind=jnp.float32), (("b, s", "bfloat16"), ("s, 5", "bfloat16")), (F32,)
    ),
    "bytes": Program(functools.partial(summed, kind=jnp.int32), (("b, s", "int8"), ("s, 5", "int8")), ()),
    "integers": Program(jnp.dot, (("b, s", "uint32"), ("s, 5", "uint32")), ()),
    "loop": Program(repeated, (("b, s", "float32"), ("s, s", "float32")), (F32,) * 3),
}  # fmt: skip

DIMS = ({"b": 2, "s": 2}, {"b": 3, "s": 7}, {"b": 2, "s": 16}, {"b": 5, "s": 17})


@pytest.fixture
def blas(monkeypatch: pytest.MonkeyPatch) -> Iterator[MockBlas]:
    """The library, whose caller must make no mistake; clients find it."""
    found = mock_blas.mock_blas()
    for kept in (found.calls, found.products, found.epilogues, found.mistakes, found.fails):
        kept.clear()
    monkeypatch.setattr("shlo_disc.runtime.client.blas_names", lambda: ["libnowhere.so", str(mock_blas.library())])
    yield found
    found.refuses = False
    gc.collect()  # workspaces are large
    assert found.mistakes == []


def library_client(**options: Any) -> Client:
    """One whose products are the library's, whatever follows them."""
    return fresh_client(**{"uses_libraries": True, "fuses_products": False, **options})


@functools.cache
def program(name: str) -> shlo_disc.Executable:
    with jax.enable_x64(True):
        return shlo_disc.compile(
            PROGRAMS[name].function, target="cuda:sm_90", options=EXACT, args=PROGRAMS[name].arguments
        )


def arguments(name: str, dims: dict[str, int]) -> list[np.ndarray]:
    def shape(text: str) -> tuple[int, ...]:
        return tuple(eval(d, {"__builtins__": {}}, dims) for d in text.split(","))  # noqa: S307

    return [random_array(shape(text), dtype, i) for i, (text, dtype) in enumerate(PROGRAMS[name].arguments)]


def check(name: str, client: Client, *all_dims: dict[str, int]) -> Any:
    """The program gives XLA's numbers at some sizes."""
    with jax.enable_x64(True):
        run = loaded(program(name), client)
        for dims in all_dims:
            given = arguments(name, dims)
            assert_close(run(*given), jax.jit(PROGRAMS[name].function)(*given), PROGRAMS[name].tolerance)
    return run


@pytest.mark.parametrize("name", PROGRAMS)
def test_by_the_kernel(driver: MockDriver, name: str) -> None:
    check(name, fresh_client(), *DIMS)
    assert any(launch.startswith("product_") for launch in driver.launches)


@pytest.mark.parametrize("name", PROGRAMS)
def test_by_the_library(driver: MockDriver, blas: MockBlas, name: str) -> None:
    check(name, library_client(), *DIMS)
    compute = PROGRAMS[name].compute
    is_heads = name == "heads"
    assert {call[0] for call in blas.products} == set(compute)
    if not is_heads:  # whose batch axes take several calls
        assert len(blas.products) == len(compute) * len(DIMS)
    assert any(launch.startswith("product_") for launch in driver.launches) == (not compute)


@pytest.mark.parametrize("has_library", [False, True])
@pytest.mark.parametrize("name", ["shorter", "shorter_batch"])
def test_products_of_nothing(driver: MockDriver, blas: MockBlas, name: str, has_library: bool) -> None:
    """Sums over nothing are zeros, and results without elements are not computed."""
    client = library_client() if has_library else fresh_client()
    check(name, client, {"b": 1, "s": 7}, {"b": 4, "s": 1}, {"b": 1, "s": 1}, {"b": 3, "s": 5})


def test_a_sum_over_nothing_takes_the_kernel(driver: MockDriver, blas: MockBlas) -> None:
    check("shorter", library_client(), {"b": 4, "s": 1})
    assert blas.products == [] and [name for name in driver.launches if name.startswith("product_")]


def test_bytes_by_the_library_where_they_lie_along_k(driver: MockDriver, blas: MockBlas) -> None:
    def function(x: Any, w: Any) -> Any:
        return jnp.einsum("bs,cs->bc", x, w, preferred_element_type=jnp.int32)

    executable = shlo_disc.compile(function, target="cuda:sm_90", args=(("b, s", "int8"), ("8, s", "int8")))
    run = loaded(executable, library_client())
    for size, products in ((16, 1), (24, 2), (7, 2)):
        given = random_array((4, size), "int8"), random_array((8, size), "int8", 1)
        assert_close(run(*given), function(*given), 0)
        assert len(blas.products) == products
    assert {call[0] for call in blas.products} == {I32}


@pytest.mark.slow
def test_batch_axes_that_are_not_one_take_a_call_for_each_of_the_shorter(driver: MockDriver, blas: MockBlas) -> None:
    check("heads", library_client(), {"b": 5, "s": 3})
    batches = [[layout[4] for layout in call[1:]] for call in blas.products]
    assert batches == [[5, 5, 5]] * 4, "two heads, two products"
    blas.products.clear()
    check("heads", library_client(), {"b": 1, "s": 3})
    assert [call[1][4] for call in blas.products] == [2, 2]


def test_an_algorithm_is_chosen_once_for_equal_problems(driver: MockDriver, blas: MockBlas) -> None:
    choice = "cublasLtMatmulAlgoGetHeuristic"
    run = check("matrices", library_client(), {"b": 3, "s": 7}, {"b": 3, "s": 7})
    assert blas.calls.count(choice) == 1 and len(blas.products) == 2
    for b in (3, 4, 3, 4):
        run(*arguments("matrices", {"b": b, "s": 7}))
    assert blas.calls.count(choice) == 2
    assert blas.calls.count("cublasLtCreate") == 1


def test_what_the_library_refuses_takes_the_kernel(driver: MockDriver, blas: MockBlas) -> None:
    blas.refuses = True
    run = check("matrices", library_client(), {"b": 3, "s": 7})
    blas.refuses = False
    run(*arguments("matrices", {"b": 3, "s": 7}))
    assert blas.products == [] and len(driver.launches) == 2, "it is not asked again"
    run(*arguments("matrices", {"b": 4, "s": 7}))
    assert len(blas.products) == 1


def test_an_error_names_the_product_and_the_users_line(driver: MockDriver, blas: MockBlas) -> None:
    client = library_client()
    run = loaded(program("perceptron"), client)
    given = arguments("perceptron", {"b": 3, "s": 7})
    text = r"multiply the matrices of (?:dot|gemm)_\d+ \(.*test_products\.py:\d+\) by cuBLASLt \(GPU \d+\): "
    for function in ("cublasLtMatmul", "cublasLtMatrixLayoutCreate", "cublasLtMatmulAlgoGetHeuristic"):
        blas.fails[function] = EXECUTION_FAILED
        with pytest.raises(DeviceError, match=text + "CUBLAS_STATUS_EXECUTION_FAILED"):
            loaded(program("perceptron"), library_client())(*given)
    blas.fails["cublasLtCreate"] = 1
    with pytest.raises(DeviceError, match="start cuBLASLt on a GPU: CUBLAS_STATUS_NOT_INITIALIZED"):
        run(*given)
    assert_close(run(*given), jax.jit(perceptron)(*given), 1e-5)


def test_an_error_that_shows_later_names_the_product(driver: MockDriver, blas: MockBlas) -> None:
    run = loaded(program("matrices"), library_client())
    driver.fails["cuMemcpyDtoHAsync_v2"] = 719
    with pytest.raises(DeviceError, match=r"the last kernels before it: (?:dot|gemm)_\d+ \(.*test_products\.py:\d+\)"):
        run(*arguments("matrices", {"b": 3, "s": 7}))


def test_no_memory_for_the_workspace(driver: MockDriver, blas: MockBlas, monkeypatch: pytest.MonkeyPatch) -> None:
    client = library_client()
    run = loaded(program("matrices"), client)
    given = arguments("matrices", {"b": 3, "s": 7})
    monkeypatch.setattr(driver, "memory", driver.live_bytes + (1 << 20))
    with pytest.raises(AllocationError):
        run(*given)
    monkeypatch.undo()
    assert_close(run(*given), jnp.dot(*given), 1e-5)


def test_two_threads_multiply(driver: MockDriver, blas: MockBlas) -> None:
    run = loaded(program("perceptron"), library_client())
    wrong: list[BaseException] = []

    def work(first: int) -> None:
        try:
            for b in range(first, first + 4):
                given = arguments("perceptron", {"b": b, "s": 7})
                assert_close(run(*given), jax.jit(perceptron)(*given), 1e-5)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(first,)) for first in (1, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert blas.calls.count("cublasLtMatmulAlgoGetHeuristic") == 2 * 6, "six sizes, two products"


def test_an_old_library_is_refused(driver: MockDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    path = build_library("libcublasLt.so.13", [name for name in FUNCTIONS if name != "cublasLtMatmul"], closed=0)
    monkeypatch.setattr("shlo_disc.runtime.client.blas_names", lambda: [str(path)])
    run = loaded(program("matrices"), library_client())
    with pytest.raises(DeviceError, match="is too old: it has no cublasLtMatmul; .*uses_libraries=False"):
        run(*arguments("matrices", {"b": 3, "s": 7}))


def test_where_there_is_no_library(driver: MockDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shlo_disc.runtime.client.blas_names", lambda: ["libnowhere.so"])
    client = library_client()
    check("matrices", client, {"b": 3, "s": 7})
    assert client.native_device.blas_version == 0 and len(driver.launches) == 1


@pytest.mark.slow
def test_nothing_is_left_of_a_client(driver: MockDriver, blas: MockBlas) -> None:
    gc.collect()
    before = blas.live_handles
    client = library_client()
    check("heads", client, *DIMS)
    assert client.native_device.blas_version == VERSION
    assert len(blas.live_handles) > len(before)
    del client
    gc.collect()
    assert blas.live_handles == before


# ---- precision ------------------------------------------------------------------------------------------------------


BY_TF32 = """func.func @main(%x: tensor<?x7xf32>, %w: tensor<7x5xf32>) -> tensor<?x5xf32> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0],
    algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32,
      lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1,
      allow_imprecise_accumulation = false> : (tensor<?x7xf32>, tensor<7x5xf32>) -> tensor<?x5xf32>
  return %y : tensor<?x5xf32>
}"""
"""A program that JAX exports for GPUs only."""


@functools.cache
def precise_program(precision: Any) -> shlo_disc.Executable:
    if precision == "tf32":
        return shlo_disc.compile(BY_TF32, target="cuda:sm_90")
    function = functools.partial(jax.lax.dot, precision=precision)
    return shlo_disc.compile(function, target="cuda:sm_90", args=MATRICES)


@pytest.mark.parametrize(
    ("precision", "compute"),
    [
        (None, F32_BY_TF32), ("default", F32_BY_TF32), ("high", F32_BY_TF32), ("highest", F32), ("F32_F32_F32", F32),
        ("TF32_TF32_F32", F32_BY_TF32), ("BF16_BF16_F32_X9", F32), ("tf32", F32_BY_TF32),
    ],
)  # fmt: skip
def test_bits_of_factors(driver: MockDriver, blas: MockBlas, precision: Any, compute: int) -> None:
    run = loaded(precise_program(precision), library_client())
    x, w = arguments("matrices", {"b": 3, "s": 7})
    got = run(x, w)
    assert [call[0] for call in blas.products] == [compute]
    exact = np.array_equal(got, (x.astype(np.float64) @ w).astype(np.float32))
    assert exact == (compute == F32)
    np.testing.assert_allclose(got, x @ w, rtol=0, atol=1e-2)


@pytest.mark.parametrize("fuses", [True, False])
def test_three_products_are_not_the_library_s(driver: MockDriver, blas: MockBlas, fuses: bool) -> None:
    run = loaded(precise_program("TF32_TF32_F32_X3"), library_client(fuses_products=fuses))
    x, w = arguments("matrices", {"b": 3, "s": 7})
    np.testing.assert_allclose(run(x, w), x.astype(np.float64) @ w, rtol=0, atol=2e-6)
    assert blas.products == []


def test_tf32_is_for_f32_only(driver: MockDriver, blas: MockBlas) -> None:
    check("doubles", library_client(), {"b": 3, "s": 7})
    check("bfloats", library_client(), {"b": 3, "s": 7})
    assert [call[0] for call in blas.products] == [F64, F32]


# ---- where the library is -------------------------------------------------------------------------------------------


def pathfinder(monkeypatch: pytest.MonkeyPatch, load: Any) -> None:
    module: Any = types.ModuleType("cuda.pathfinder")
    module.DynamicLibNotFoundError = type("DynamicLibNotFoundError", (RuntimeError,), {})
    module.load_nvidia_dynamic_lib = functools.partial(load, module)
    monkeypatch.setitem(sys.modules, "cuda", types.ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", module)


def test_the_library_is_looked_for_by_pathfinder_first(monkeypatch: pytest.MonkeyPatch) -> None:
    pathfinder(monkeypatch, lambda _, name: types.SimpleNamespace(abs_path=f"/somewhere/{name}"))
    assert cuda_libraries.blas_names() == ["/somewhere/cublasLt", "libcublasLt.so.13", "libcublasLt.so.12"]


def test_the_library_is_looked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(module: Any, name: str) -> None:
        raise module.DynamicLibNotFoundError(name)

    pathfinder(monkeypatch, missing)
    assert cuda_libraries.blas_names() == ["libcublasLt.so.13", "libcublasLt.so.12"]
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    assert cuda_libraries.blas_names() == ["libcublasLt.so.13", "libcublasLt.so.12"]


@pytest.mark.slow
def test_small_integers_are_exact_in_every_type(driver: MockDriver, blas: MockBlas) -> None:
    """Whole numbers up to 4: the kernel and the library agree bit by bit."""
    with jax.enable_x64(True):
        for name in ("matrices", "doubles", "halves", "bfloats", "bytes", "integers"):
            runs = [loaded(program(name), client) for client in (fresh_client(), library_client())]
            shapes = [array.shape for array in arguments(name, {"b": 5, "s": 17})]
            kinds = [dtype for _, dtype in PROGRAMS[name].arguments]
            given = [small_integers(shape, kind, i) for i, (shape, kind) in enumerate(zip(shapes, kinds, strict=True))]
            first, second = (np.asarray(run(*given)) for run in runs)
            np.testing.assert_array_equal(first, second)
            np.testing.assert_array_equal(first.astype(np.int64), given[0].astype(np.int64) @ given[1].astype(np.int64))
