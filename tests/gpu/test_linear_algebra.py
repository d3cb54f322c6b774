# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear algebra on GPUs by cuSOLVER and cuBLAS, over mocks of the driver and of the libraries."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import pytest
from jax import lax
from jax._src.lax.linalg import geqrf

import shlo_disc
from shlo_disc.errors import DeviceError, UnsupportedError
from shlo_disc.runtime import Client, LoadedExecutable, cuda_libraries
from tests.gpu.emulated import loaded
from tests.gpu.marks import needs_mock_driver
from tests.gpu.mock_solver import MockCublas, MockSolver, mock_cublas, mock_solver
from tests.gpu.solver_programs import SOLVERS

pytestmark = needs_mock_driver

slow = pytest.mark.slow
DTYPES = ("float32", "float64", "complex64", "complex128")
SQUARES = ((1, 1), (3, 2), (1, 5), (3, 17), (2, 5))
"""Sizes: batch and order."""
EMPTY = ((0, 3), (2, 0), (0, 0))


@pytest.fixture(autouse=True)
def solver() -> Iterator[MockSolver]:
    """The mock of cuSOLVER; nothing that a test did may be a mistake."""
    mocks = mock_solver(), mock_cublas()
    for mock in mocks:
        mock.calls.clear()
        mock.fails.clear()
    yield mocks[0]
    for mock in mocks:
        mistakes, mock.mistakes[:] = list(mock.mistakes), []
        assert not mistakes


@pytest.fixture
def cublas(solver: MockSolver) -> MockCublas:
    """The mock of cuBLAS."""
    return mock_cublas()


@pytest.fixture(autouse=True)
def wide_types() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def program(
    function: Callable[..., Any], client: Client, dtype: str, *dims: str, constraints: Sequence[str] = ()
) -> LoadedExecutable:
    args = tuple((text, dtype) for text in dims)
    return loaded(shlo_disc.compile(function, target="cuda:sm_90", args=args, constraints=constraints), client)


def matrices(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    real = rng.standard_normal(shape)
    is_complex = np.issubdtype(dtype, np.complexfloating)
    return (real + 1j * rng.standard_normal(shape) if is_complex else real).astype(dtype)


def adjoint(a: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(a, -1, -2))


def positive(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    a = matrices(shape, "complex128" if "complex" in dtype else "float64")
    return (a @ adjoint(a) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def near(got: Any, want: Any, of: str) -> None:
    """Compare with tolerances of a type, or of the real numbers of a complex one."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    scale = max(1.0, float(np.abs(want[np.isfinite(want)]).max(initial=0)))
    np.testing.assert_allclose(got, want, atol=200 * scale * np.finfo(of).eps, rtol=0)


# ---- triangles and LU -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_cholesky(dtype: str, client: Client) -> None:
    def function(a: Any) -> Any:
        return lax.linalg.cholesky(a, symmetrize_input=False), jsl.cholesky(a), a + 1

    run = program(function, client, dtype, "b - 1, n - 1, n - 1")
    for b, n in (*SQUARES, *EMPTY):
        a = positive((b, n, n), dtype)
        given = np.tril(a) + np.triu(np.full_like(a, 3.5), 1)  # the other triangle is not read
        want = np.linalg.cholesky(a)
        lower, _, more = run(given)
        near(lower, want, dtype)
        near(more, given + 1, dtype)  # the argument is what it was
        near(run(np.triu(a) + np.tril(np.zeros_like(a), -1))[1] if b and n else want, adjoint(want), dtype)


def test_cholesky_of_what_is_not_positive(client: Client) -> None:
    run = program(jnp.linalg.cholesky, client, "float32", "b, n, n")
    a = positive((3, 4, 4), "float32")
    a[1, 2, 2] = -1
    got = np.asarray(run(a))
    near(got[1], np.asarray(jnp.linalg.cholesky(a))[1], "float32")  # NaN, and zeros above the diagonal
    near(got[[0, 2]], np.linalg.cholesky(a[[0, 2]]), "float32")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [False, True])
def test_triangular_equations(lower: bool, dtype: str, client: Client) -> None:
    kinds = [
        {"transpose_a": transpose, "conjugate_a": conjugate, "unit_diagonal": unit}
        for transpose, conjugate in ((False, False), (True, False), (True, True))
        for unit in (False, True)
    ]

    def function(a: jax.Array, b: jax.Array) -> Any:
        left = [lax.linalg.triangular_solve(a, b, left_side=True, lower=lower, **kind) for kind in kinds]
        right = [lax.linalg.triangular_solve(a, jnp.swapaxes(b, -1, -2), lower=lower, **kind) for kind in kinds]
        return left, right

    run = program(function, client, dtype, "b - 1, n - 1, n - 1", "b - 1, n - 1, k - 1")
    for b, n, k in ((1, 1, 1), (3, 2, 5), (1, 5, 3), (2, 17, 2), (0, 2, 2), (2, 0, 3), (2, 3, 0)):
        a, right = positive((b, n, n), dtype) / max(n, 1), matrices((b, n, k), dtype)
        a = a.astype(dtype)
        for kind, x, y in zip(kinds, *run(a, right), strict=True):
            own = np.tril(a) if lower else np.triu(a)
            if kind["unit_diagonal"]:
                own[..., range(n), range(n)] = 1
            own = np.swapaxes(own, -1, -2) if kind["transpose_a"] else own
            own = np.conj(own) if kind["conjugate_a"] else own
            wide = np.result_type(dtype, "float64")
            near(x, np.linalg.solve(own.astype(wide), right), dtype)
            turned = np.linalg.solve(np.swapaxes(own, -1, -2).astype(wide), right)
            near(y, np.swapaxes(turned, -1, -2), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_lu(dtype: str, client: Client) -> None:
    def function(a: Any) -> Any:
        return *lax.linalg.lu(a), a + 1

    run = program(function, client, dtype, "b, m, n")
    for shape in ((1, 1, 1), (3, 2, 5), (2, 5, 2), (1, 17, 17)):
        a = matrices(shape, dtype)
        lu, pivots, permutation, more = (np.asarray(x) for x in run(a))
        k = min(shape[1:])
        assert pivots.shape == (shape[0], k)
        lower = np.tril(lu[..., :k], -1) + np.eye(shape[1], k, dtype=dtype)
        near(lower @ np.triu(lu[..., :k, :]), np.take_along_axis(a, permutation[..., None], 1), dtype)
        near(more, a + 1, dtype)


def test_lu_of_what_is_singular(client: Client) -> None:
    run = program(lambda a: (lax.linalg.lu(a)[0], jnp.linalg.det(a)), client, "float32", "b, n, n")
    a = matrices((2, 3, 3), "float32")
    a[0, :, 1] = 0
    lu, det = run(a)
    assert np.isfinite(np.asarray(lu)).all()
    near(det, np.linalg.det(a), "float32")


@pytest.mark.parametrize("dtype", DTYPES)
def test_equations_and_determinants(dtype: str, client: Client) -> None:
    def function(a: Any, b: Any) -> Any:
        return jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.det(a), jsl.cho_solve(jsl.cho_factor(a), b)

    run = program(function, client, dtype, "b, n, n", "b, n, k")
    for b, n, k in ((1, 1, 1), (3, 2, 4), (1, 5, 1), (2, 17, 3)):
        a, right = positive((b, n, n), dtype) / n, matrices((b, n, k), dtype)
        a = a.astype(dtype)
        solution, inverse, determinant, by_cholesky = run(a, right)
        want = np.linalg.solve(a.astype(np.result_type(dtype, "float64")), right)
        near(solution, want, dtype)
        near(by_cholesky, want, dtype)
        near(inverse, np.linalg.inv(a), dtype)
        near(determinant, np.linalg.det(a), dtype)


@pytest.mark.slow
def test_batches_are_one_call_where_matrices_are_small(solver: MockSolver, cublas: MockCublas, client: Client) -> None:
    def function(a: Any, b: Any) -> Any:
        return jnp.linalg.cholesky(a), lax.linalg.lu(a)[0], lax.linalg.triangular_solve(a, b, left_side=True)

    names = {
        solver: ("cusolverDnSpotrfBatched", "cusolverDnXpotrf", "cusolverDnSgetrf"),
        cublas: ("cublasSgetrfBatched", "cublasStrsmBatched", "cublasStrsm_v2"),
    }
    run = program(function, client, "float32", "b, n, n", "b, n, 2")
    for b, n, want in ((3, 128, (1, 0, 0, 1, 1, 0)), (2, 129, (0, 2, 2, 0, 0, 2)), (1, 3, (0, 1, 1, 0, 0, 1))):
        solver.calls.clear()
        cublas.calls.clear()
        a, right = positive((b, n, n), "float32"), matrices((b, n, 2), "float32")
        factor, _, solution = run(a, right)
        near(factor, np.linalg.cholesky(a), "float32")
        near(solution, np.linalg.solve(np.triu(a), right), "float32")
        assert tuple(mock.calls.count(name) for mock, found in names.items() for name in found) == want


def test_batches_find_released_memory(cublas: MockCublas, client: Client) -> None:
    run = program(lambda a: lax.linalg.lu(a)[0], client, "float32", "b, n, n")
    a = matrices((2, 3, 3), "float32")
    want = np.asarray(run(a))
    run(matrices((9, 40, 40), "float32"))
    cublas.fails["cublasSgetrfBatched"] = MockCublas.NO_MEMORY
    near(run(a), want, "float32")
    cublas.fails["cublasSgetrfBatched"] = 14
    with pytest.raises(DeviceError, match="CUBLAS_STATUS_INTERNAL_ERROR"):
        run(a)


@slow
def test_gradients(client: Client) -> None:
    def function(a: jax.Array) -> jax.Array:
        return jnp.linalg.slogdet(a)[1].sum() + jnp.linalg.cholesky(a).sum()

    run = program(jax.grad(function), client, "float64", "b, n, n")
    for b, n in ((1, 1), (3, 5)):
        a = positive((b, n, n), "float64")
        near(run(a), jax.grad(function)(a), "float64")


# ---- QR -------------------------------------------------------------------------------------------------------------


def unitary(q: np.ndarray, of: str) -> None:
    near(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1], dtype=q.dtype), (*q.shape[:-2], *[q.shape[-1]] * 2)), of)


TALL = ((1, 1, 1), (3, 5, 2), (1, 17, 17), (2, 17, 1))
WIDE = ((1, 1, 2), (3, 2, 5), (1, 16, 17))
SHAPES = {"m >= n": TALL, "n >= m + 1": WIDE}
"""Batch, rows and columns by what is stated of them."""


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("mode", "stated"),
    [("reduced", "m >= n"), ("complete", "m >= n"), ("reduced", "n >= m + 1")],
)
def test_qr(mode: Any, stated: str, dtype: str, client: Client) -> None:
    function = lambda a: (*jnp.linalg.qr(a, mode=mode), a + 1)  # noqa: E731
    run = program(function, client, dtype, "b, m, n", constraints=[stated])
    for shape in SHAPES[stated]:
        a = matrices(shape, dtype)
        q, r, more = (np.asarray(x) for x in run(a))
        assert q.shape == np.linalg.qr(a, mode=mode)[0].shape
        near(q @ r, a, dtype)
        unitary(q, dtype)
        near(np.tril(r, -1), np.zeros_like(r), dtype)
        near(more, a + 1, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_by_reflectors(dtype: str, client: Client) -> None:
    def function(a: jax.Array, c: jax.Array) -> Any:
        r, taus = geqrf(a)
        turned = jnp.swapaxes(c, -1, -2)
        flags = [{"left": left, "transpose": transpose} for left in (True, False) for transpose in (False, True)]
        products = [lax.linalg.ormqr(r, taus, c if flag["left"] else turned, **flag) for flag in flags]
        return lax.linalg.householder_product(r, taus), products

    run = program(function, client, dtype, "b, m, n", "b, m, k", constraints=["m >= n"])
    for b, m, n, k in ((1, 1, 1, 1), (3, 5, 2, 3), (2, 17, 4, 1)):
        a, c = matrices((b, m, n), dtype), matrices((b, m, k), dtype)
        q, (left, left_adjoint, right, right_adjoint) = run(a, c)
        q, turned = np.asarray(q), np.swapaxes(c, -1, -2)
        near(adjoint(q) @ np.asarray(left), c[..., :n, :], dtype)
        near(np.asarray(left_adjoint)[..., :n, :], adjoint(q) @ c, dtype)
        near(np.asarray(right)[..., :n], turned @ q, dtype)
        near(np.asarray(right_adjoint) @ q, turned[..., :n], dtype)


# ---- eigenvalues and singular values --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigenvalues(uplo: Any, dtype: str, client: Client) -> None:
    def function(a: Any) -> Any:
        given = lax.linalg.eigh(a, lower=uplo == "L", symmetrize_input=False)
        return *given, jnp.linalg.eigvalsh(a, UPLO=uplo), a + 1

    run = program(function, client, dtype, "b - 1, n, n")
    for b, n in (*SQUARES, (0, 3)):
        a = positive((b, n, n), dtype)
        other = np.triu(np.full_like(a, 3.5), 1)  # the other triangle is not read
        given = np.tril(a) + other if uplo == "L" else np.triu(a) + np.swapaxes(other, -1, -2)
        vectors, values, alone, more = (np.asarray(x) for x in run(given))
        near(values, np.linalg.eigvalsh(a), dtype)
        near(vectors * values[..., None, :] @ adjoint(vectors), a, dtype)
        unitary(vectors, dtype)
        near(more, given + 1, dtype)
        near(run(a)[2], np.linalg.eigvalsh(a), dtype)
        assert alone.shape == (b, n)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("full", [False, True])
def test_singular_values(full: bool, dtype: str, client: Client) -> None:
    """Factors of matrices whose larger size is not known before the call."""

    def function(a: Any) -> Any:
        vectors = lax.linalg.svd(a, full_matrices=full)
        return *vectors, lax.linalg.svd(a, compute_uv=False), a + 1

    run = program(function, client, dtype, "b - 1, m, n")
    for shape in (*TALL, *WIDE, (3, 5, 5), (0, 2, 3), (2, 5, 17)):
        a = matrices(shape, dtype)
        u, values, vt, alone, more = (np.asarray(x) for x in run(a))
        want = np.linalg.svd(a, full_matrices=full)
        least = min(shape[1:])
        assert (u.shape, vt.shape) == (want[0].shape, want[2].shape)
        near(values, want[1], dtype)
        near(alone, want[1], dtype)
        near(u[..., :least] * values[..., None, :] @ vt[..., :least, :], a, dtype)
        unitary(u, dtype)
        unitary(adjoint(vt), dtype)
        near(more, a + 1, dtype)


def test_matrices_that_are_not_finite(client: Client) -> None:
    """Matrices with a number that says so have results of NaN, and others their own."""

    def function(a: Any) -> Any:
        return jnp.linalg.eigvalsh(a), *jnp.linalg.svd(a)

    run = program(function, client, "float32", "b, n, n")
    a = positive((3, 4, 4), "float32")
    a[1, 2, 2] = np.nan
    for got in map(np.asarray, run(a)):
        assert np.isnan(got[1]).all() and np.isfinite(got[[0, 2]]).all()


@slow
def test_least_squares_and_pseudoinverses(client: Client) -> None:
    def function(a: Any, b: Any) -> Any:
        return jnp.linalg.lstsq(a, b)[0], jnp.linalg.pinv(a), jnp.linalg.matrix_rank(a[:3])

    run = program(function, client, "float64", "m, 3", "m, k", constraints=["m >= 4"])
    for m, k in ((4, 1), (17, 5)):
        a, b = matrices((m, 3), "float64"), matrices((m, k), "float64", 1)
        solution, inverse, rank = run(a, b)
        near(solution, np.linalg.lstsq(a, b, rcond=None)[0], "float64")
        near(inverse, np.linalg.pinv(a), "float64")
        assert rank == 3


# ---- what is taken to GPUs ------------------------------------------------------------------------------------------


@slow
@pytest.mark.parametrize("name", SOLVERS)
def test_recorded_program(name: str, client: Client) -> None:
    recorded = SOLVERS[name]
    with jax.enable_x64(False):
        run = loaded(shlo_disc.compile(recorded.function, target="cuda:sm_90", args=recorded.arguments), client)
        for sizes in ((1, 1), (3, 7)):
            given = recorded.make(*sizes)
            found, want = jax.tree.leaves(run(*given)), jax.tree.leaves(recorded.function(*given))
            for got, expected in zip(found, want, strict=True):
                near(got, expected, "float32")


# ---- matrices without elements --------------------------------------------------------------------------------------

CALLS = {
    "potrf": ("MN", "uplo = 76 : ui8"),
    "getrf": ("MVN", ""),
    "geqrf": ("MV", ""),
    "syevd": ("MVN", "mode = 86 : ui8, uplo = 76 : ui8"),
    "gesdd": ("MVMMN", "mode = 83 : ui8"),
}
"""Results of functions of LAPACK (matrices, vectors, numbers), and their parameters."""


def call_text(name: str) -> str:
    """A program of one call, of a batch of matrices of any size."""
    kinds, parameters = CALLS[name]
    types = {"M": "tensor<?x?x?xf32>", "V": "tensor<?x?xf32>", "N": "tensor<?xi32>"}
    layouts = {"M": "dense<[1, 2, 0]>", "V": "dense<[1, 0]>", "N": "dense<0>"}
    results = ["tensor<?x?xi32>" if (name, kind) == ("getrf", "V") else types[kind] for kind in kinds]
    orders = [f"{layouts[k]} : tensor<{'MVN'[::-1].index(k) + 1}xindex>" for k in kinds]
    return f"""func.func @main(%a: {types["M"]}) -> ({", ".join(results)}) {{
      %r:{len(kinds)} = stablehlo.custom_call @lapack_s{name}_ffi(%a) {{mhlo.backend_config = {{{parameters}}},
        operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], result_layouts = [{", ".join(orders)}]}}
        : ({types["M"]}) -> ({", ".join(results)})
      return {", ".join(f"%r#{i}" for i in range(len(kinds)))} : {", ".join(results)} }}"""


def test_matrices_without_elements(solver: MockSolver, client: Client) -> None:
    for name in CALLS:
        run = loaded(shlo_disc.compile(call_text(name), target="cuda:sm_90"), client)
        shapes = [(2, 0, 0), (0, 2, 2)] if name in ("potrf", "syevd") else [(2, 0, 3), (2, 3, 0), (0, 2, 3)]
        for shape in shapes:
            found = run(np.ones(shape, np.float32))
            if CALLS[name][0].endswith("N"):
                np.testing.assert_array_equal(found[-1], np.zeros(shape[0], np.int32))
    of_handles = {f"cusolverDn{name}" for name in ("Create", "CreateParams", "SetStream", "DestroyParams", "Destroy")}
    assert set(solver.calls) <= of_handles  # clients of other tests may end meanwhile


# ---- failures -------------------------------------------------------------------------------------------------------


def test_functions_that_fail_name_the_line(solver: MockSolver, cublas: MockCublas, client: Client) -> None:
    run = program(jnp.linalg.solve, client, "float32", "n, n", "n, k")
    a, b = positive((3, 3), "float32"), matrices((3, 2), "float32")
    lu, triangle = "an LU factorization", "a solution of triangular equations"
    for mock, function, status, text in (
        (solver, "cusolverDnCreate", 1, f"{lu} at .* by cuSOLVER .*: CUSOLVER_STATUS_NOT_INITIALIZED"),
        (solver, "cusolverDnCreateParams", 7, f"{lu} at .* by cuSOLVER .*: CUSOLVER_STATUS_INTERNAL_ERROR"),
        (solver, "cusolverDnSetStream", 3, f"{lu} at .* by cuSOLVER .*: CUSOLVER_STATUS_INVALID_VALUE"),
        (cublas, "cublasCreate_v2", 8, f"{lu} at .* by cuSOLVER .*: CUBLAS_STATUS_ARCH_MISMATCH"),
        (solver, "cusolverDnSgetrf_bufferSize", 9, f"{lu} at .* by cuSOLVER .*: CUSOLVER_STATUS_NOT_SUPPORTED"),
        (solver, "cusolverDnSgetrf", 6, f"{lu} at .* by cuSOLVER .*: CUSOLVER_STATUS_EXECUTION_FAILED"),
        (solver, "cusolverDnSgetrf", 77, f"{lu} at .* by cuSOLVER .*: error 77"),
        (cublas, "cublasStrsm_v2", 13, f"{triangle} at .* by cuBLAS .*: CUBLAS_STATUS_EXECUTION_FAILED"),
        (cublas, "cublasStrsm_v2", 4, f"{triangle} at .* by cuBLAS .*: error 4"),
    ):
        mock.fails[function] = status
        with pytest.raises(DeviceError, match=rf"could not compute {text}"):
            run(a, b)
    near(run(a, b), np.linalg.solve(a, b), "float32")


def test_memory_is_released_for_functions_that_find_none(solver: MockSolver, client: Client) -> None:
    run = program(jnp.linalg.cholesky, client, "float32", "n, n")
    a = positive((5, 5), "float32")
    for function in ("cusolverDnXpotrf_bufferSize", "cusolverDnXpotrf"):
        run(positive((50, 50), "float32"))
        assert client.devices()[0].memory_stats()["cached_bytes"] > 1000
        solver.fails[function] = MockSolver.NO_MEMORY
        near(run(a), np.linalg.cholesky(a), "float32")
    assert solver.calls.count("cusolverDnXpotrf") == 5
    client.trim()
    solver.fails["cusolverDnXpotrf_bufferSize"] = MockSolver.NO_MEMORY
    with pytest.raises(DeviceError, match="CUSOLVER_STATUS_ALLOC_FAILED"):
        run(a)


def test_handles_are_made_once(solver: MockSolver, client: Client) -> None:
    run = program(jnp.linalg.cholesky, client, "float32", "n, n")
    for n in (1, 3, 4):
        run(positive((n, n), "float32"))
    assert solver.calls.count("cusolverDnCreate") == 1


def test_names_of_the_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_libraries, "_path_of", lambda library: f"/somewhere/{library}")
    found = cuda_libraries._names_of("cusolver", cuda_libraries._SOLVER)
    assert found == ["/somewhere/cusolver", "libcusolver.so.12", "libcusolver.so.11"]


@slow
@pytest.mark.parametrize(("names", "told"), [([], "not installed"), (["libm.so.6"], "has no cusolverDnCreate")])
def test_without_the_library(names: list[str], told: str) -> None:
    """In a process of its own, for one opens the libraries once."""
    code = f"from shlo_disc.runtime import _native; _native.open_solver({names}, [])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "DeviceError" in found.stderr and told in found.stderr and "install nvidia-cusolver" in found.stderr


def test_functions_that_gpus_lack_are_refused() -> None:
    function = lambda x: jnp.linalg.eig(x)[0]  # noqa: E731
    with pytest.raises(UnsupportedError, match=r"geev|eig") as caught:
        shlo_disc.compile(function, target="cuda:sm_90", args=(("n, n", "float32"),))
    (found,) = caught.value.constructs
    assert "target='cpu'" in found.suggestion
    assert found.location.rsplit("/", 1)[-1] == f"{__file__.rsplit('/', 1)[-1]}:{function.__code__.co_firstlineno}"
