# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops, branches and transformations over sizes that change, and functions of the modules beside `jax.numpy`."""

from __future__ import annotations

import jax
import jax.flatten_util
import jax.image
import jax.numpy as jnp
import jax.scipy.fft
import jax.scipy.linalg
import jax.scipy.ndimage
import jax.scipy.signal
import numpy as np
from jax import lax

from tests.pjrt.variants import Variant, of, with_indices

TRANSFORMED: dict[str, Variant] = {
    "while": (
        lambda x: lax.while_loop(
            lambda s: s[0] < x.shape[0], lambda s: (s[0] + 1, s[1] + x[s[0]]), (0, jnp.zeros(x.shape[1]))
        ),
        of("n, m"),
    ),
    "while by data": (
        lambda x: lax.while_loop(lambda v: (jnp.sum(v) > 0) & (jnp.sum(v) < 50), lambda v: v * 1.5 + 0.1, x),
        of("n, m"),
    ),
    "fori": (lambda x: lax.fori_loop(0, x.shape[0], lambda i, v: v.at[i].add(v[i - 1]), x), of("n, m")),
    "fori unrolled": (lambda x: lax.fori_loop(0, 6, lambda i, v: v * 0.5 + i, x, unroll=2), of("n, m")),
    "scan": (lambda x: lax.scan(lambda c, v: (c * 0.9 + v, c.sum()), jnp.zeros(x.shape[1]), x), of("n, m")),
    "scan reverse": (
        lambda x: lax.scan(lambda c, v: (c * 0.9 + v, (c, v)), jnp.zeros(x.shape[1]), x, reverse=True),
        of("n, m"),
    ),
    "scan of a length": (lambda x: lax.scan(lambda c, _: (jnp.tanh(c), c[0]), x, None, length=4), of("n, m")),
    "scan of its length": (
        lambda x: lax.scan(lambda c, _: (jnp.tanh(c), c[0]), x, None, length=x.shape[0]),
        of("n, m"),
    ),
    "gradient of scan": (
        jax.grad(lambda x: (lax.scan(lambda c, v: (jnp.tanh(c * 0.9 + v), c), jnp.zeros(x.shape[1]), x)[1] ** 2).sum()),
        of("n, m"),
    ),
    "gradient of fori": (
        jax.grad(lambda x: (lax.fori_loop(0, 4, lambda i, v: jnp.sin(v) * i, x) ** 2).sum()),
        of("n, m"),
    ),
    "gradient of checkpoint": (jax.grad(lambda x: jax.checkpoint(lambda v: jnp.sin(jnp.sin(v)))(x).sum()), of("n, m")),
    "cond": (lambda x: lax.cond(x.sum() > 5, lambda v: v[::-1], lambda v: v * 2, x), of("n, m")),
    "cond of reductions": (lambda x: lax.cond(x[0, 0] > 0.5, lambda v: v.sum(0), lambda v: v.max(0), x), of("n, m")),
    "switch": (
        lambda x: lax.switch((x[0] * 10).astype(jnp.int32) % 3, [jnp.sort, jnp.cumsum, lambda v: v[::-1]], x),
        of("n"),
    ),
    "gradient of cond": (
        jax.grad(lambda x: lax.cond(x[0, 0] > 0.5, lambda v: (v**2).sum(), lambda v: jnp.cos(v).sum(), x)),
        of("n, m"),
    ),
    "map": (lambda x: lax.map(lambda r: jnp.sort(r) * r.sum(), x), of("n, m")),
    "vmap": (lambda x, y: jax.vmap(lambda a, b: jnp.convolve(a, b, "same"), (0, None))(x, y), of("n, m", "3")),
    "vmap of solve": (
        lambda x: jax.vmap(lambda v: jnp.linalg.solve(jnp.eye(3) * 3 + v, jnp.ones(3)))(x),
        of("n, 3, 3"),
    ),
    "vmap of while": (
        lambda x: jax.vmap(lambda v: lax.while_loop(lambda a: a < 3, lambda a: a * 1.5 + 0.1, v))(x),
        of("n"),
    ),
    "vmap of cond": (lambda x: jax.vmap(lambda v: lax.cond(v.sum() > 1, jnp.sort, lambda w: -w, v))(x), of("n, m")),
    "vmap of dynamic_slice": (lambda x, i: jax.vmap(lambda j: lax.dynamic_slice(x, (j,), (1,)))(i), with_indices("n")),
    "vmap of scatter": (lambda x, i: jax.vmap(lambda v: v.at[i].add(1.0))(x), with_indices("3, n")),
    "vmap of sort": (lambda x: jax.vmap(jnp.sort, 1, 1)(x), of("n, m")),
    "jvp": (lambda x: jax.jvp(lambda v: jnp.cumsum(jnp.sin(v), 0), (x,), (jnp.cos(x),)), of("n, m")),
    "vjp": (lambda x: jax.vjp(lambda v: jax.nn.softmax(v) @ v.T, x)[1](jnp.ones((x.shape[0],) * 2)), of("n, m")),
    "hessian": (lambda x: jax.hessian(lambda v: jnp.sum(jnp.sin(v) * v) ** 2)(x), of("n")),
    "jacobian": (lambda x: (jax.jacfwd(jnp.cumsum)(x), jax.jacrev(lambda v: jnp.sort(v) ** 2)(x)), of("n")),
    "hessian vector": (lambda x: jax.jvp(jax.grad(lambda v: jnp.prod(v) + jnp.sum(v**3)), (x,), (x,)), of("n")),
    "linearize": (lambda x: jax.linearize(lambda v: v / jnp.linalg.norm(v), x)[1](x), of("n")),
    "custom_jvp": (
        jax.grad(lambda x: jax.nn.relu(x - 0.5).sum() + jax.nn.silu(x).sum() + jax.nn.logsumexp(x)),
        of("n, m"),
    ),
    "softmax where": (lambda x: (jax.nn.softmax(x, 0, where=x > 0.3), jax.nn.log_softmax(x, 0)), of("n, m")),
    "logsumexp": (lambda x: (jax.nn.logsumexp(x, 0, b=x, keepdims=True), jax.nn.logsumexp(x, (0, 1))), of("n, m")),
    "one_hot": (lambda x: (jax.nn.one_hot(x, 7), jax.nn.one_hot(x, x.shape[0], axis=0)), of("n", dtype=np.int32)),
    "standardize": (lambda x: (jax.nn.standardize(x, 0), jax.nn.standardize(x, where=x > 0.2)), of("n, m")),
    "dot_product_attention": (lambda x: jax.nn.dot_product_attention(x, x, x, is_causal=True), of("2, n, 2, 4")),
    "attention of two": (lambda x, y: jax.nn.dot_product_attention(x, y, y), of("2, n, 4, 4", "2, m, 2, 4")),
    "gradient of attention": (
        jax.grad(lambda x, y: (jax.nn.dot_product_attention(x, y, y) ** 2).sum(), (0, 1)),
        of("2, n, 4, 4", "2, m, 2, 4"),
    ),
    "fft n": (lambda x: (jnp.fft.fft(x, 8), jnp.fft.rfft(x, axis=0), jnp.fft.ifft(x, norm="ortho")), of("n, m")),
    "irfft": (lambda x: (jnp.fft.irfft(x), jnp.fft.irfft(x, x.shape[0]), jnp.fft.hfft(x)), of("n", dtype=np.complex64)),
    "fft2": (lambda x: (jnp.fft.fft2(x), jnp.fft.rfft2(x), jnp.fft.fftshift(x), jnp.fft.ifftshift(x, 0)), of("n, m")),
    "fftfreq": (lambda x: (jnp.fft.fftfreq(x.shape[0]) * x, jnp.fft.rfftfreq(x.shape[0])), of("n")),
    "dct": (
        lambda x: (jax.scipy.fft.dct(x, axis=0), jax.scipy.fft.idct(x, norm="ortho"), jax.scipy.fft.dctn(x)),
        of("n, m"),
    ),
    "gradient of fft": (jax.grad(lambda x: (jnp.abs(jnp.fft.rfft(x)) ** 2).sum()), of("n, m")),
    "stft": (lambda x: jax.scipy.signal.stft(jnp.tile(x, 8), nperseg=8)[2], of("n")),
    "welch": (lambda x: jax.scipy.signal.welch(jnp.tile(x, 8), nperseg=8)[1], of("n")),
    "detrend": (lambda x: jax.scipy.signal.detrend(x, 0, "constant"), of("n, m")),
    "solve_triangular": (
        lambda x, y: jax.scipy.linalg.solve_triangular(x + 3 * jnp.eye(x.shape[0]), y, lower=True, trans=1),
        of("n, n", "n, m"),
    ),
    "cho_solve": (
        lambda x, y: jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(x @ x.T + 9 * jnp.eye(x.shape[0])), True), y),
        of("n, n", "n, m"),
    ),
    "solve": (lambda x, y: jnp.linalg.solve(x + 3 * jnp.eye(x.shape[0]), y), of("n, n", "n, m")),
    "gradient of solve": (
        jax.grad(lambda x, y: (jnp.linalg.solve(x + 3 * jnp.eye(x.shape[0]), y) ** 2).sum(), (0, 1)),
        of("n, n", "n, m"),
    ),
    "slogdet": (
        lambda x: (jnp.linalg.slogdet(x), jnp.linalg.det(x), jnp.linalg.inv(x + 3 * jnp.eye(x.shape[0]))),
        of("n, n"),
    ),
    "qr r": (lambda x: jnp.abs(jnp.linalg.qr(x, mode="r")), of("n, m")),
    "svd values": (lambda x: jnp.linalg.svd(x, compute_uv=False), of("n, m")),
    "eigvalsh": (lambda x: jnp.linalg.eigvalsh(x + x.T), of("n, n")),
    "pinv": (lambda x: jnp.linalg.pinv(x.T @ x + jnp.eye(x.shape[1])), of("n, m")),
    "lstsq": (
        lambda x, y: jnp.linalg.lstsq(
            jnp.concatenate([x, jnp.diag(3.0 + jnp.arange(x.shape[1]))]), jnp.concatenate([y, jnp.ones(x.shape[1])])
        )[0],
        of("n, m", "n"),
    ),
    "expm": (lambda x: jax.scipy.linalg.expm(x / x.shape[0]), of("n, n")),
    "block_diag": (lambda x, y: jax.scipy.linalg.block_diag(x, y), of("n, m", "2, n")),
    "toeplitz": (lambda x, y: jax.scipy.linalg.toeplitz(x, y), of("n", "m")),
    "random": (
        lambda x: tuple(
            x + f(jax.random.key(3), x.shape)
            for f in (jax.random.normal, jax.random.uniform, jax.random.gumbel, jax.random.laplace)
        ),
        of("n, m"),
    ),
    "random permutation": (
        lambda x: (jax.random.permutation(jax.random.key(1), x), jax.random.permutation(jax.random.key(1), x.shape[0])),
        of("n, m"),
    ),
    "random choice": (
        lambda x: (
            jax.random.choice(jax.random.key(1), x, (4,)),
            jax.random.choice(jax.random.key(1), x, (3,), p=x[:, 0] / x[:, 0].sum()),
        ),
        of("n, m"),
    ),
    "random categorical": (lambda x: jax.random.categorical(jax.random.key(1), x), of("n, m")),
    "random randint": (lambda x: x + jax.random.randint(jax.random.key(1), x.shape, 0, 9), of("n, m")),
    "random bits": (
        lambda x: (jax.random.bits(jax.random.key(1), x.shape), jax.random.bits(jax.random.key(1), x.shape, jnp.uint8)),
        of("n, m"),
    ),
    "random bernoulli": (lambda x: jax.random.bernoulli(jax.random.key(1), x), of("n, m")),
    "random split": (lambda x: jax.random.key_data(jax.random.split(jax.random.key(1), x.shape[0])), of("n, m")),
    "random gamma": (lambda x: jax.random.gamma(jax.random.key(1), x + 1), of("n")),
    "random poisson": (lambda x: jax.random.poisson(jax.random.key(1), x * 3), of("n")),
    "random truncated": (lambda x: x + jax.random.truncated_normal(jax.random.key(1), -1, 1, x.shape), of("n, m")),
    "image resize": (lambda x: jax.image.resize(x, (8, 6), "linear"), of("n, m")),
    "image resize twice": (lambda x: jax.image.resize(x, (2 * x.shape[0], 2 * x.shape[1]), "nearest"), of("n, m")),
    "map_coordinates": (lambda x: jax.scipy.ndimage.map_coordinates(x, [x * 2, x * 3], 1, mode="nearest"), of("n, m")),
    "flatten": (lambda x: jax.flatten_util.ravel_pytree({"a": x, "b": x[0]})[0], of("n, m")),
}
