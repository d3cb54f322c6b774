# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of `jax.scipy`, `jax.image` and `jax.experimental.sparse` whose arrays have the size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import jax.scipy.optimize
from jax.experimental import sparse

from corpus.registry import integers, normal, program

Built = tuple[Callable[..., Any], tuple[Any, ...]]


@program(tolerance=1e-4)
def convolutions(size: int) -> Built:
    def run(x: Any, kernel: Any) -> Any:
        return [jsp.signal.convolve(x, kernel, mode=mode) for mode in ("full", "same", "valid")]

    return run, (normal(size), normal(4, seed=1))


@program(tolerance=1e-4)
def convolution_by_transforms(size: int) -> Built:
    return lambda x, y: jsp.signal.fftconvolve(x, y, mode="same"), (normal(size), normal(3, seed=1))


@program(tolerance=1e-4)
def planes_by_kernels(size: int) -> Built:
    return lambda x, k: jsp.signal.correlate2d(x, k, mode="same"), (normal(size, 7), normal(3, 2, seed=1))


@program(sizes=lambda size: 16 + size, tolerance=1e-4)
def spectrogram(size: int) -> Built:
    """Transforms of windows of 8, and their inverse."""

    def run(x: Any) -> Any:
        _, _, found = jsp.signal.stft(x, nperseg=8)
        return jnp.abs(found), jsp.signal.istft(found, nperseg=8)[1]

    return run, (normal(size),)


@program(sizes=lambda size: 16 + size, tolerance=1e-4)
def power(size: int) -> Built:
    return lambda x: jsp.signal.welch(x, nperseg=8)[1], (normal(size),)


@program(tolerance=1e-4)
def without_trend(size: int) -> Built:
    return lambda x: jsp.signal.detrend(x, axis=0), (normal(size, 2),)


@program()
def map_coordinates(size: int) -> Built:
    def run(image: Any, at: Any) -> Any:
        return [
            jsp.ndimage.map_coordinates(image, list(4 * at), order, mode)
            for order, mode in ((0, "nearest"), (1, "wrap"), (1, "reflect"), (1, "constant"))
        ]

    return run, (normal(size, 6), abs(normal(2, 9, seed=1)))


@program()
def resized(size: int) -> Built:
    def run(x: Any) -> Any:
        return [jax.image.resize(x, (11, 5, 3), method) for method in ("nearest", "linear", "cubic", "lanczos3")]

    return run, (normal(size, 7, 3),)


@program(tolerance=1e-4)
def grid_interpolator(size: int) -> Built:
    def run(values: Any, at: Any) -> Any:
        axes = jnp.arange(values.shape[0], dtype=jnp.float32), jnp.arange(5.0)
        return jsp.interpolate.RegularGridInterpolator(axes, values, bounds_error=False, fill_value=0.0)(at)

    return run, (normal(size, 5), abs(normal(6, 2, seed=1)))


@program(tolerance=1e-4)
def statistics(size: int) -> Built:
    def run(x: Any, y: Any) -> Any:
        return (
            jsp.stats.mode(jnp.round(x)).mode,
            jsp.stats.rankdata(y),
            jsp.stats.sem(x),
            jsp.stats.gaussian_kde(x)(y[:4]),
        )

    return run, (normal(size), normal(size, seed=1))


@program()
def integrals(size: int) -> Built:
    def run(y: Any) -> Any:
        return (
            jsp.integrate.trapezoid(y, dx=0.3),
            jax.numpy.gradient(y),
            jnp.interp(jnp.linspace(0, 3, 5), y.cumsum(), y),
        )

    return run, (abs(normal(size)) + 0.1,)


@program(tolerance=1e-3)
def conjugate_gradients(size: int) -> Built:
    def run(a: Any, b: Any) -> Any:
        matrix = a.T @ a + 3 * jnp.eye(a.shape[1])
        return [
            solve(lambda v: matrix @ v, b, maxiter=8)[0] for solve in (jsp.sparse.linalg.cg, jsp.sparse.linalg.bicgstab)
        ]

    return run, (normal(4, size) * 0.3, normal(size, seed=1))


@program(tolerance=1e-3)
def gmres(size: int) -> Built:
    def run(a: Any, b: Any) -> Any:
        return jsp.sparse.linalg.gmres(lambda v: v + 0.1 * (a @ v), b, restart=4, maxiter=2)[0]

    return run, (normal(size, size), normal(size, seed=1))


@program(tolerance=1e-3)
def minimised(size: int) -> Built:
    def run(x: Any) -> Any:
        return jax.scipy.optimize.minimize(
            lambda v: jnp.sum((v - 1) ** 2 + 0.1 * v**4), x, method="BFGS", options={"maxiter": 5}
        ).x

    return run, (normal(size),)


@program(tolerance=1e-3)
def special_functions(size: int) -> Built:
    def run(x: Any) -> Any:
        a = jnp.abs(x) + 0.2
        some = jsp.special.gammainc(a, a * 2), jsp.special.betainc(a, a, a / (1 + a)), jsp.special.zeta(a + 1, a)
        more = jsp.special.i0e(x), jsp.special.erfinv(jnp.tanh(x)), jsp.special.polygamma(1, a), jsp.special.expi(a)
        return some, more, jsp.special.logsumexp(x), jsp.special.xlog1py(x, a)

    return run, (normal(size),)


@program(tolerance=1e-3)
def block_matrices(size: int) -> Built:
    def run(a: Any) -> Any:
        return jsp.linalg.block_diag(a, a.T), jsp.linalg.expm(0.1 * a @ a.T), jsp.linalg.toeplitz(a[:, 0])

    return run, (normal(size, 3),)


@program()
def sparse_products(size: int) -> Built:
    """Twelve elements of a matrix whose rows have the size."""

    def run(values: Any, at: Any, x: Any) -> Any:
        matrix = sparse.BCOO((values, at % jnp.array([6, x.shape[0]])), shape=(6, x.shape[0]))
        return matrix @ x, matrix.todense(), (matrix.T @ jnp.ones((6, 2)))

    return run, (normal(12), integers(1000, 12, 2), normal(size, 2, seed=1))


@program()
def sparse_of_many_elements(size: int) -> Built:
    """As many elements as the size."""

    def run(values: Any, at: Any, x: Any) -> Any:
        matrix = sparse.BCOO((values, at), shape=(6, 5))
        return matrix @ x, matrix.sum_duplicates(nse=values.shape[0]).data.sum(), jax.grad(lambda v: (
            sparse.BCOO((v, at), shape=(6, 5)) @ x).sum())(values)  # fmt: skip

    return run, (normal(size), integers(5, size, 2), normal(5, 2, seed=1))
