# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Factorisations, solves and decompositions, compiled once and run at many batch and matrix sizes.

What is unique is compared with XLA. Where signs and orders are free, the factors are multiplied again. Tolerances are
multiples of the machine epsilon times the order of the matrix, relative to the largest element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp
from jax.scipy import linalg as jsl

import shlo_disc
from shlo_disc.errors import ProgramError, ShapeError, UnsupportedError
from tests.run.op_check import compile_function, dtype_of, run_xla

REALS = ("float32", "float64")
SQUARES = ((1, 1), (2, 7), (1, 33), (40, 4))
"""Batch and order; 40 matrices are more than there are slots."""
RECTANGLES = ((1, 1, 1), (3, 5, 3), (20, 6, 6))


def matrices(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    return rng.standard_normal(shape).astype(dtype_of(dtype))


def positive(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    a = matrices(shape, dtype).astype(np.float64)
    return (a @ np.swapaxes(a, -1, -2) + shape[-1] * np.eye(shape[-1])).astype(dtype_of(dtype))


def near(got: Any, want: Any, factor: float = 8.0) -> None:
    """Leaf by leaf: dtype, shape, and values within `factor` epsilons times the last size."""
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if a.dtype.kind not in "cfV":
            np.testing.assert_array_equal(a, b)
            continue
        order = a.shape[-1] if a.ndim else 1
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        size = np.max(np.abs(b.astype(wide)), initial=0.0, where=np.isfinite(b))
        tolerance = factor * float(jnp.finfo(a.dtype).eps) * max(order, 1) * max(size, 1e-30)
        np.testing.assert_allclose(a.astype(wide), b.astype(wide), rtol=0, atol=tolerance)


def check_squares(
    function: Callable[..., Any], dtype: str, make: Callable[..., np.ndarray] = matrices, factor: float = 8.0
) -> None:
    executable = compile_function(function, [("b, n, n", dtype)])
    for b, n in SQUARES:
        a = make((b, n, n), dtype)
        near(executable(a), run_xla(function, [a]), factor)


def product(*factors: np.ndarray) -> np.ndarray:
    result = factors[0]
    for factor in factors[1:]:
        result = result @ factor
    return result


def orthogonal(q: np.ndarray) -> None:
    """The columns are orthonormal."""
    want = np.broadcast_to(np.eye(q.shape[-1], dtype=q.dtype), (*q.shape[:-2], q.shape[-1], q.shape[-1]))
    near(np.swapaxes(q, -1, -2) @ q, want, 16)


# ---- through JAX ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", REALS)
def test_cholesky(dtype: str) -> None:
    check_squares(jnp.linalg.cholesky, dtype, positive)


def test_cholesky_upper_and_static() -> None:
    a = positive((4, 4), "float32")
    upper = shlo_disc.compile(lambda x: jnp.linalg.cholesky(x, upper=True), args=(("n, n", "float32"),))
    near(upper(a), np.linalg.cholesky(a).T.copy())
    static = shlo_disc.compile(jnp.linalg.cholesky, args=(("4, 4", "float32"),))
    near(static(a), np.linalg.cholesky(a))


def test_failures_are_data() -> None:
    """A matrix that is not positive definite gives NaN, and only its own entry of the batch."""
    a = np.stack([positive((3, 3), "float32"), -positive((3, 3), "float32")])
    function = jnp.linalg.cholesky
    near(compile_function(function, [("b, n, n", "float32")])(a), run_xla(function, [a]))


@pytest.mark.parametrize("dtype", REALS)
def test_determinants(dtype: str) -> None:
    check_squares(lambda x: (lax.linalg.lu(x)[0], *jnp.linalg.slogdet(x)), dtype, factor=200.0)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_qr(dtype: str, mode: str) -> None:
    function = lambda x: jnp.linalg.qr(x, mode=mode)  # noqa: E731
    executable = compile_function(function, [("b, m, n", dtype)], constraints=("m >= n",))
    for shape in RECTANGLES:
        a = matrices(shape, dtype)
        found = executable(a)
        near(found, run_xla(function, [a]), 32)
        if mode != "r":
            near(product(*found), a, 32)
            orthogonal(found[0])


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("full", [False, True])
def test_svd(dtype: str, full: bool) -> None:
    function = lambda x: jnp.linalg.svd(x, full_matrices=full)  # noqa: E731
    executable = compile_function(function, [("b, m, n", dtype)])
    for shape in (*RECTANGLES, (1, 4, 60), (1, 60, 4)):
        a = matrices(shape, dtype)
        u, s, vt = (np.asarray(r) for r in executable(a))
        near(s, run_xla(function, [a])[1], 16)
        k = s.shape[-1]
        near(product(u[..., :k] * s[..., None, :], vt[..., :k, :]), a, 64)
        orthogonal(u)
        orthogonal(np.swapaxes(vt, -1, -2))


def test_singular_values_alone() -> None:
    function = lambda x: (jnp.linalg.svd(x, compute_uv=False), jnp.linalg.norm(x, 2, (-2, -1)))  # noqa: E731
    executable = compile_function(function, [("b, m, n", "float32")])
    for shape in RECTANGLES:
        a = matrices(shape, "float32")
        near(executable(a), run_xla(function, [a]), 16)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(
    ("dims", "shapes"),
    [("b, m, n", [(2, 2, 7), (3, 7, 2)]), ("b, 2, 7", [(3, 2, 7)]), ("2, 7, n", [(2, 7, 2), (2, 7, 9)]),
     ("2, 2, 7", [(2, 2, 7)])],
)  # fmt: skip
def test_singular_vectors_that_nobody_asks_for(dims: str, shapes: list[tuple[int, ...]], full: bool) -> None:
    function = lambda x: lax.linalg.svd(x, full_matrices=full, compute_uv=False)  # noqa: E731
    executable = compile_function(function, [(dims, "float32")])
    for shape in shapes:
        a = matrices(shape, "float32")
        near(executable(a), run_xla(function, [a]), 16)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("upper", [False, True])
def test_eigh(dtype: str, upper: bool) -> None:
    function = lambda x: jnp.linalg.eigh(x, UPLO="U" if upper else "L")  # noqa: E731
    executable = compile_function(function, [("b, n, n", dtype)])
    for b, n in SQUARES:
        a = positive((b, n, n), dtype)
        values, vectors = (np.asarray(r) for r in executable(a))
        near(values, run_xla(function, [a])[0], 16)
        near(product(vectors * values[..., None, :], np.swapaxes(vectors, -1, -2)), a, 32)
        orthogonal(vectors)


def test_pseudoinverse() -> None:
    function = jnp.linalg.pinv
    executable = compile_function(function, [("b, m, n", "float64")], constraints=("m >= n",))
    for shape in RECTANGLES:
        a = matrices(shape, "float64")
        near(executable(a), run_xla(function, [a]), 1e4)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [0, 1])
@pytest.mark.parametrize("unit", [False, True])
def test_solve_triangular(lower: bool, trans: int, unit: bool) -> None:
    def function(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        flags = {"lower": lower, "transpose_a": bool(trans), "unit_diagonal": unit}
        left = lax.linalg.triangular_solve(a, b, left_side=True, **flags)
        return left, lax.linalg.triangular_solve(a, jnp.swapaxes(b, -1, -2), left_side=False, **flags)

    executable = compile_function(function, [("b, n, n", "float64"), ("b, n, k", "float64")])
    for b, n, k in ((1, 1, 1), (3, 5, 2), (2, 17, 20)):
        a = positive((b, n, n), "float64") / n
        right = matrices((b, n, k), "float64")
        near(executable(a, right), run_xla(function, [a, right]), 1e3)


def test_tridiagonal_and_hessenberg_forms() -> None:
    function = lambda x: lax.linalg.tridiagonal(x, lower=True)  # noqa: E731
    executable = compile_function(function, [("n, n", "float64")])
    for n in (2, 5, 40):
        a = positive((n, n), "float64")
        near(executable(a), run_xla(function, [a]), 32)
    function = lax.linalg.hessenberg
    executable = compile_function(function, [("b, 6, 6", "float32")])
    a = matrices((3, 6, 6), "float32")
    near(executable(a), run_xla(function, [a]), 32)


def test_schur() -> None:
    executable = compile_function(lax.linalg.schur, [("b, n, n", "float64")])
    for b, n in ((1, 1), (3, 6), (2, 30)):
        a = matrices((b, n, n), "float64")
        form, vectors = (np.asarray(r) for r in executable(a))
        near(product(vectors, form, np.swapaxes(vectors, -1, -2)), a, 64)
        orthogonal(vectors)


def test_solve_and_inverse() -> None:
    function = lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.inv(a), jsl.cho_solve(jsl.cho_factor(a), b))  # noqa: E731
    executable = compile_function(function, [("n, n", "float32"), ("n, k", "float32")])
    for n, k in ((1, 1), (5, 3), (40, 17)):
        a, b = positive((n, n), "float32"), matrices((n, k), "float32")
        near(executable(a, b), run_xla(function, [a, b]), 16)


def test_batched_solve() -> None:
    function = jnp.linalg.solve
    executable = compile_function(function, [("b, n, n", "float64"), ("b, n, k", "float64")])
    for b, n, k in ((1, 3, 1), (20, 6, 4)):
        a, right = positive((b, n, n), "float64"), matrices((b, n, k), "float64")
        near(executable(a, right), run_xla(function, [a, right]), 16)


def test_least_squares() -> None:
    function = lambda a, b: jnp.linalg.lstsq(a, b)  # noqa: E731
    executable = compile_function(function, [("m, 3", "float64"), ("m, k", "float64")], constraints=("m >= 4",))
    for m, k in ((4, 1), (17, 3)):
        a, b = matrices((m, 3), "float64"), matrices((m, k), "float64")
        solution, residuals, rank, values = executable(a, b)
        want = run_xla(function, [a, b])
        near((solution, rank, values), (want[0], want[2], want[3]), 64)
        np.testing.assert_allclose(residuals, want[1], rtol=1e-10, atol=1e-25)


@pytest.mark.slow
def test_powers_and_exponential() -> None:
    function = lambda a: (jnp.linalg.matrix_power(a, 5), jsl.expm(a), jnp.linalg.norm(a, "nuc"))  # noqa: E731
    executable = compile_function(function, [("n, n", "float64")])
    for n in (3, 20):
        a = matrices((n, n), "float64") / n
        near(executable(a), run_xla(function, [a]), 64)


def test_gradients() -> None:
    def function(a: jax.Array) -> jax.Array:
        return jnp.linalg.slogdet(a)[1].sum() + jnp.linalg.cholesky(a).sum()

    gradient = jax.grad(function)
    executable = compile_function(gradient, [("b, n, n", "float64")])
    for b, n in ((1, 1), (3, 8)):
        a = positive((b, n, n), "float64")
        near(executable(a), run_xla(gradient, [a]), 64)


# ---- complex matrices -----------------------------------------------------------------------------------------------

COMPLEX = ("complex64", "complex128")


def complex_matrices(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    return (matrices(shape, "float64", seed) + 1j * matrices(shape, "float64", seed + 1)).astype(dtype)


def adjoint(a: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(a, -1, -2))


def hermitian(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    a = complex_matrices(shape, "complex128")
    return (a @ adjoint(a) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def unitary(q: np.ndarray) -> None:
    want = np.broadcast_to(np.eye(q.shape[-1], dtype=q.dtype), (*q.shape[:-2], q.shape[-1], q.shape[-1]))
    near(adjoint(q) @ q, want, 16)


@pytest.mark.slow
def test_complex_factors(dtype: str = "complex64") -> None:
    function = lambda a, b: (jnp.linalg.cholesky(a), jnp.linalg.solve(a, b), jnp.linalg.det(a))  # noqa: E731
    executable = compile_function(function, [("b, n, n", dtype), ("b, n, k", dtype)])
    for b, n, k in ((1, 1, 1), (3, 6, 2)):
        a, right = hermitian((b, n, n), dtype), complex_matrices((b, n, k), dtype)
        near(executable(a, right), run_xla(function, [a, right]), 32)


def test_complex_qr_and_svd(dtype: str = "complex128") -> None:
    function = lambda x: (*jnp.linalg.qr(x), *jnp.linalg.svd(x, full_matrices=False))  # noqa: E731
    executable = compile_function(function, [("b, m, n", dtype)], constraints=("m >= n",))
    for shape in ((1, 1, 1), (3, 7, 4), (1, 40, 3)):
        a = complex_matrices(shape, dtype)
        q, r, u, values, vt = (np.asarray(x) for x in executable(a))
        near(product(q, r), a, 32)
        near(product(u * values[..., None, :], vt), a, 64)
        near(values, np.linalg.svd(a, compute_uv=False), 32)
        for factor in (q, u, adjoint(vt)):
            unitary(factor)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_eigh(dtype: str) -> None:
    executable = compile_function(jnp.linalg.eigh, [("b, n, n", dtype)])
    for b, n in ((1, 1), (3, 6), (1, 35)):
        a = hermitian((b, n, n), dtype)
        values, vectors = (np.asarray(r) for r in executable(a))
        near(values, np.linalg.eigvalsh(a), 16)
        near(product(vectors * values[..., None, :], adjoint(vectors)), a, 32)
        unitary(vectors)


@pytest.mark.parametrize("dtype", ["float32", "float64", *COMPLEX])
def test_eig(dtype: str) -> None:
    """Each vector belongs to its value; conjugate pairs of real matrices come unpacked."""
    executable = compile_function(jnp.linalg.eig, [("b, n, n", dtype)])
    for b, n in ((1, 1), (3, 6), (1, 31)):
        a = (complex_matrices if dtype in COMPLEX else matrices)((b, n, n), dtype)
        values, vectors = (np.asarray(r) for r in executable(a))
        near(product(a.astype(vectors.dtype), vectors), vectors * values[..., None, :], 64)
        near(np.linalg.norm(vectors, axis=-2), np.ones((b, n), values.real.dtype), 16)
        near(np.sum(values, -1), np.trace(a, axis1=-2, axis2=-1).astype(values.dtype), 64)


def test_eig_of_what_is_not_finite() -> None:
    a = matrices((3, 4, 4), "float64")
    a[1, 2, 2] = np.nan
    values, vectors = (np.asarray(r) for r in compile_function(jnp.linalg.eig, [("b, n, n", "float64")])(a))
    assert np.isnan(values[1]).all() and np.isnan(vectors[1]).all()
    assert np.isfinite(values[[0, 2]]).all()


def test_complex_schur_and_triangular_solve() -> None:
    def function(a: jax.Array, b: jax.Array) -> Any:
        flags = {"left_side": True, "lower": True}
        kinds = [{}, {"transpose_a": True}, {"transpose_a": True, "conjugate_a": True}]
        return lax.linalg.schur(a), [lax.linalg.triangular_solve(a, b, **flags, **k) for k in kinds]

    executable = compile_function(function, [("n, n", "complex128"), ("n, k", "complex128")])
    for n, k in ((1, 1), (7, 3)):
        a, b = complex_matrices((n, n), "complex128") + 4 * np.eye(n), complex_matrices((n, k), "complex128", 5)
        (form, vectors), solved = executable(a, b)
        near(product(np.asarray(vectors), np.asarray(form), adjoint(np.asarray(vectors))), a, 64)
        unitary(np.asarray(vectors))
        lower = np.tril(a)
        for x, matrix in zip(solved, (lower, lower.T, adjoint(lower)), strict=True):
            near(product(matrix, np.asarray(x)), b, 64)


# ---- StableHLO ------------------------------------------------------------------------------------------------------


def cholesky_text(lower: bool, dtype: str) -> str:
    return f"""func.func @main(%a: tensor<?x?x?x{dtype}>) -> tensor<?x?x?x{dtype}> {{
      %r = "stablehlo.cholesky"(%a) {{lower = {str(lower).lower()}}} : (tensor<?x?x?x{dtype}>) -> tensor<?x?x?x{dtype}>
      return %r : tensor<?x?x?x{dtype}> }}"""


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_cholesky_op(lower: bool, dtype: str) -> None:
    executable = shlo_disc.compile(cholesky_text(lower, dtype))
    numpy = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}[dtype]
    for b, n in SQUARES:
        a = positive((b, n, n), numpy)
        want = np.linalg.cholesky(a.astype(np.float64))
        near(executable(a), (want if lower else np.swapaxes(want, -1, -2)).astype(a.dtype), 2)
    assert np.isnan(np.asarray(executable(-positive((1, 3, 3), numpy))).astype(np.float64)).all()


def solve_text(left: bool, lower: bool, transpose: str, unit: bool, dtype: str) -> str:
    flags = f"left_side = {left}, lower = {lower}, unit_diagonal = {unit}".lower()
    t = f"tensor<?x?x{dtype}>"
    return f"""func.func @main(%a: {t}, %b: {t}) -> {t} {{
      %r = "stablehlo.triangular_solve"(%a, %b) <{{{flags}, transpose_a = #stablehlo<transpose {transpose}>}}>
        : ({t}, {t}) -> {t}
      return %r : {t} }}"""


@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_triangular_solve_op(transpose: str, left: bool, dtype: str) -> None:
    element = {"bfloat16": "bf16", "float32": "f32"}[dtype]
    for lower in (False, True):
        executable = shlo_disc.compile(solve_text(left, lower, transpose, False, element))
        for n, k in ((1, 1), (4, 3), (16, 17)):
            a, b = positive((n, n), dtype) / dtype_of(dtype).type(n), matrices((n, k) if left else (k, n), dtype)
            triangle = np.tril(a.astype(np.float64)) if lower else np.triu(a.astype(np.float64))
            matrix = triangle if transpose == "NO_TRANSPOSE" else triangle.T
            right = b.astype(np.float64)
            want = np.linalg.solve(matrix, right) if left else np.linalg.solve(matrix.T, right.T).T
            near(executable(a, b), want.astype(b.dtype), 32)


def lapack_text(target: str, result: str = "tensor<3x3xf32>", layout: str = "[0, 1]", uplo: str = "76 : ui8") -> str:
    return f"""func.func @main(%a: tensor<3x3xf32>) -> {result} {{
      %r:2 = stablehlo.custom_call @{target}(%a) {{mhlo.backend_config = {{uplo = {uplo}}},
        operand_layouts = [dense<{layout}> : tensor<2xindex>],
        result_layouts = [dense<{layout}> : tensor<2xindex>, dense<> : tensor<0xindex>]}}
        : (tensor<3x3xf32>) -> ({result}, tensor<i32>)
      return %r#0 : {result} }}"""


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        (lapack_text("lapack_dpotrf_ffi"), "needs a tensor of f64"),
        (lapack_text("lapack_spotrs_ffi"), "no lowering"),
        (lapack_text("lapack_spotrf_ffi", layout="[1, 0]"), "column by column"),
        (lapack_text("lapack_spotrf_ffi", uplo="65 : ui8"), "uplo of potrf must be one of the letters L, U"),
        (lapack_text("lapack_spotrf_ffi", uplo='"L"'), "needs the parameter uplo"),
        (lapack_text("lapack_sgeqrf_ffi"), "needs a tensor of f32 and rank 1"),
    ],
)
def test_calls_that_do_not_fit(text: str, pattern: str) -> None:
    with pytest.raises(UnsupportedError, match=pattern):
        shlo_disc.compile(text)


def test_sizes_that_do_not_fit() -> None:
    """A program that declares too small a result is refused: LAPACK would write beyond it."""
    with pytest.raises(ProgramError, match="must be equal"):
        shlo_disc.compile(lapack_text("lapack_spotrf_ffi", "tensor<2x3xf32>"))
    executable = shlo_disc.compile(cholesky_text(True, "f32"))
    with pytest.raises(ShapeError):
        executable(np.ones((1, 2, 3), np.float32))


def test_empty() -> None:
    executable = shlo_disc.compile(cholesky_text(True, "f32"))
    for shape in ((0, 3, 3), (2, 0, 0)):
        assert executable(np.ones(shape, np.float32)).shape == shape


def test_memory_is_planned() -> None:
    """The workspace of a decomposition is part of the arena, as an expression of the sizes."""
    executable = compile_function(lambda x: jnp.linalg.svd(x), [("b, m, n", "float32")])
    small, large = (executable.memory(b=b, m=64, n=64).arena_bytes for b in (1, 4))
    assert small > 4 * 64 * 64 * 4
    assert 3 * small < large < 5 * small
    assert ("lapack_sgesdd", "library") in executable.kernels


def test_entries_in_parallel_give_the_same() -> None:
    options: Sequence[shlo_disc.Options] = [shlo_disc.Options(threads=t) for t in (1, 4)]
    a = matrices((50, 12, 9), "float32")
    found = [
        shlo_disc.compile(lambda x: jnp.linalg.qr(x)[1], args=(("b, 12, 9", "float32"),), options=o)(a) for o in options
    ]
    np.testing.assert_array_equal(*found)


def test_gpus_have_no_eigenvalues_of_general_matrices() -> None:
    with pytest.raises(UnsupportedError, match="no kernel for GPUs"):
        shlo_disc.compile(jnp.linalg.eigvals, args=(("n, n", "float32"),), target="cuda:sm_90")
