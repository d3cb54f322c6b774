# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops of `jax.lax`: convolutions, windows, sorts, slices, gathers and scatters."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.pjrt.variants import Variant, of, with_indices
from tests.run.functions_of_jax import arrays

OPS: dict[str, Variant] = {}
for _mode in ("full", "same", "valid"):
    OPS |= {
        f"convolve {_mode}": (lambda x, y, mode=_mode: jnp.convolve(x, y, mode), of("n", "m")),
        f"convolve {_mode} with 3": (lambda x, y, mode=_mode: jnp.convolve(x, y, mode), of("n", "3")),
        f"correlate {_mode}": (lambda x, y, mode=_mode: jnp.correlate(x, y, mode), of("n", "n")),
        f"convolve2d {_mode}": (lambda x, y, mode=_mode: jax.scipy.signal.convolve2d(x, y, mode), of("n, m", "2, 3")),
        f"fftconvolve {_mode}": (lambda x, y, mode=_mode: jax.scipy.signal.fftconvolve(x, y, mode), of("n", "m")),
    }

NCHW = ("NCHW", "OIHW", "NCHW")
for _padding in ("SAME", "VALID", "SAME_LOWER"):
    for _stride in (1, 2):
        OPS |= {
            f"conv1d {_padding} {_stride}": (
                lambda x, w, p=_padding, s=_stride: lax.conv_general_dilated(x, w, (s,), p),
                of("2, 3, n", "4, 3, 2"),
            ),
            f"conv2d {_padding} {_stride}": (
                lambda x, w, p=_padding, s=_stride: lax.conv_general_dilated(x, w, (s, s), p, dimension_numbers=NCHW),
                of("2, 3, n, m", "4, 3, 1, 1"),
            ),
            f"gradients of conv1d {_padding} {_stride}": (
                jax.grad(
                    lambda x, w, p=_padding, s=_stride: (lax.conv_general_dilated(x, w, (s,), p) ** 2).sum(), (0, 1)
                ),
                of("2, 3, n", "4, 3, 2"),
            ),
            f"reduce_window {_padding} {_stride}": (
                lambda x, p=_padding, s=_stride: (
                    lax.reduce_window(x, 0.0, lax.add, (2, 1), (s, 1), p),
                    lax.reduce_window(x, -jnp.inf, lax.max, (1, 2), (1, s), p),
                ),
                of("n, m"),
            ),
            f"gradient of max pool {_padding} {_stride}": (
                jax.grad(
                    lambda x, p=_padding, s=_stride: (
                        lax.reduce_window(x, -jnp.inf, lax.max, (2, 1), (s, 1), p) ** 2
                    ).sum()
                ),
                of("n, m"),
            ),
        }
OPS |= {
    "conv batch": (lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME"), of("n, 3, m", "4, 3, 3")),
    "conv kernel of data": (lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME"), of("2, 3, n", "4, 3, m")),
    "conv kernel full": (
        lambda x, w: lax.conv_general_dilated(x, w, (1,), [(w.shape[2] - 1,) * 2]),
        of("2, 3, n", "4, 3, m"),
    ),
    "conv dilated": (lambda x, w: lax.conv_general_dilated(x, w, (1,), [(1, 2)], (2,), (3,)), of("2, 3, n", "4, 3, 2")),
    "conv transpose": (lambda x, w: lax.conv_transpose(x, w, (2,), "SAME"), of("2, n, 3", "3, 3, 4")),
    "conv transpose valid": (lambda x, w: lax.conv_transpose(x, w, (3,), "VALID"), of("2, n, 3", "2, 3, 4")),
    "conv groups": (
        lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME", feature_group_count=2),
        of("2, 4, n", "6, 2, 3"),
    ),
    "conv features": (lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME"), of("2, n, 6", "m, n, 3")),
    "conv depthwise": (
        lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME", feature_group_count=x.shape[1]),
        of("2, n, 6", "n, 1, 3"),
    ),
    "conv batch groups": (
        lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME", batch_group_count=2),
        of("4, 3, n", "6, 3, 3"),
    ),
    "conv bf16": (
        lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME"),
        of("2, 3, n", "4, 3, 3", dtype=jnp.bfloat16),
    ),
    "conv int": (lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME"), of("2, 3, n", "4, 3, 3", dtype=np.int32)),
    "conv patches": (lambda x: lax.conv_general_dilated_patches(x, (2,), (1,), "SAME"), of("2, 3, n")),
    "avg pool": (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, x.shape[1]), (1, 1), "VALID"), of("n, m")),
    "reduce_window dilated": (lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (1,), "SAME", (2,), (2,)), of("n")),
    "reduce_window pads": (lambda x: lax.reduce_window(x, 0.0, lax.add, (3,), (2,), [(2, 1)]), of("n")),
    "reduce_window min": (
        lambda x: lax.reduce_window(x, jnp.int32(99), lax.min, (2,), (1,), "SAME"),
        of("n", dtype=np.int32),
    ),
    "cumulative by window": (
        lambda x: lax.reduce_window(x, 0.0, lax.add, x.shape, (1,), [(x.shape[0] - 1, 0)]),
        of("n"),
    ),
    "lax.cum reverse": (
        lambda x: (
            lax.cumsum(x, 0, True),
            lax.cummax(x, 1, True),
            lax.cumprod(x, 1),
            lax.cummin(x),
            lax.cumlogsumexp(x, 1, True),
        ),
        of("n, m"),
    ),
    "gradient of cums": (
        jax.grad(
            lambda x: (
                lax.cumsum(x, 0, True) ** 2 + lax.cummax(x, 1) * lax.cumprod(x, 1) + lax.cumlogsumexp(x, 0)
            ).sum()
        ),
        of("n, m"),
    ),
    "lax.sort": (lambda x, y: lax.sort((jnp.round(x * 4), y, jnp.arange(x.shape[0])), num_keys=2), of("n", "n")),
    "lax.sort axis 0": (lambda x, y: lax.sort((x, y), dimension=0, num_keys=1), of("n, m", "n, m")),
    "lax.sort unstable": (lambda x, y: lax.sort((x, y), is_stable=False), of("n", "n")),
    "gradient of sort": (
        jax.grad(lambda x, y: (lax.sort((x, y))[1] * jnp.arange(x.shape[0])).sum(), (0, 1)),
        of("n", "n"),
    ),
    "top_k 1": (lambda x: lax.top_k(x, 1), of("n, m")),
    "top_k all": (lambda x: lax.top_k(x, x.shape[1]), of("n, m")),
    "top_k half": (lambda x: lax.top_k(x, (x.shape[1] + 1) // 2), of("n, m")),
    "top_k int": (lambda x: lax.top_k(x, 1), of("n, m", dtype=np.int32)),
    "gradient of top_k": (jax.grad(lambda x: (lax.top_k(x, 1)[0] ** 2).sum()), of("n, m")),
    "approx_max_k": (lambda x: lax.approx_max_k(x, 1), of("n, m")),
    "argmin index": (lambda x: (lax.argmin(x, 0, jnp.int32), lax.argmax(x, 1, jnp.uint8)), of("n, m")),
    "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i[0], 0), (x.shape[0] // 2 + 1, 1)), with_indices("n, m")),
    "dynamic_slice in dim": (lambda x, i: lax.dynamic_slice_in_dim(x, i[0], 1, 1), with_indices("n, m")),
    "dynamic_update_slice": (
        lambda x, y, i: lax.dynamic_update_slice(x, y[:1], (i[0], i[0])),
        with_indices("n, m", "n, 1"),
    ),
    "dynamic_update_slice larger": (
        lambda x, y, i: lax.dynamic_update_slice(x, y, (i[0], 0)),
        with_indices("n, m", "n, 1"),
    ),
    "dynamic_index": (
        lambda x, i: (lax.dynamic_index_in_dim(x, i[0]), lax.dynamic_index_in_dim(x, i[0], 1, False)),
        with_indices("n, m"),
    ),
    "gradient of dynamic_slice": (
        jax.grad(lambda x, i: (lax.dynamic_slice(x, (i[0], 0), (1, 1)) ** 2).sum()),
        with_indices("n, m"),
    ),
    "lax.slice": (
        lambda x: (lax.slice(x, (0, 0), x.shape, (2, 3)), lax.slice_in_dim(x, x.shape[0] // 2, None)),
        of("n, m"),
    ),
    "lax.pad": (
        lambda x: (lax.pad(x, 1.0, ((1, 2, 0), (0, 0, 1))), lax.pad(x, 0.0, ((0, 3, 2), (2, 1, 3)))),
        of("n, m"),
    ),
    "lax.pad negative": (lambda x: lax.pad(x, 0.0, ((-1, 3, 0), (2, -1, 0))), of("n, m")),
    "lax.pad negative interior": (lambda x: lax.pad(x, 0.0, ((-1, 1, 2),)), of("n")),
    "gradient of lax.pad": (jax.grad(lambda x: (lax.pad(x, 0.0, ((-1, 1, 2),)) ** 2).sum()), of("n")),
    "lax.rev": (lambda x: (lax.rev(x, (0,)), lax.rev(x, (0, 1))), of("n, m")),
    "lax.reduce": (lambda x: lax.reduce(x, jnp.float32(1), lambda a, b: a * b, (0,)), of("n, m")),
    "lax.reduce two": (
        lambda x: lax.reduce(
            (x, -x), (jnp.float32(0), jnp.float32(9)), lambda a, b: (a[0] + b[0], jnp.minimum(a[1], b[1])), (1,)
        ),
        of("n, m"),
    ),
    "lax.reduce bits": (
        lambda x: (lax.reduce_and(x, (0,)), lax.reduce_or(x, (1,)), lax.reduce_xor(x, (0, 1))),
        of("n, m", dtype=np.int32),
    ),
    "reduce_precision": (lambda x: lax.reduce_precision(x, 5, 7), of("n, m")),
    "broadcasted_iota": (lambda x: lax.broadcasted_iota(jnp.int32, x.shape, 1) * x, of("n, m")),
    "broadcast_in_dim": (lambda x: lax.broadcast_in_dim(x, (x.shape[0], x.shape[1], x.shape[0]), (2, 1)), of("n, m")),
    "expand and squeeze": (lambda x: lax.squeeze(lax.expand_dims(x, (0, 2)), (0,)), of("n, m")),
    "dot_general": (lambda x, y: lax.dot_general(x, y, (((1,), (2,)), ((0,), (0,)))), of("n, m, 3", "n, 2, m")),
    "dot_general two": (lambda x, y: lax.dot_general(x, y, (((0, 1), (1, 0)), ((), ()))), of("n, m, 3", "m, n, 2")),
    "ragged_dot": (lambda x, w, i: lax.ragged_dot(x, w, jnp.array([2, 1], jnp.int32)), with_indices("n, 3", "2, 3, m")),
    "associative_scan": (lambda x: lax.associative_scan(jnp.add, x), of("n, m")),
    "gather fill": (
        lambda x, i: lax.gather(
            x, i[:, None], lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, x.shape[1]), mode="fill", fill_value=7.0
        ),
        with_indices("n, m"),
    ),
    "gather clip": (
        lambda x, i: lax.gather(
            x, i[:, None], lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, x.shape[1]), mode="clip"
        ),
        with_indices("n, m"),
    ),
    "gather windows": (
        lambda x, i: lax.gather(
            x, i[:, None], lax.GatherDimensionNumbers((1,), (), (0,)), (x.shape[0] // 2 + 1,), mode="clip"
        ),
        with_indices("n"),
    ),
    "scatter windows": (
        lambda x, i: lax.scatter_add(
            x,
            i[:, None],
            jnp.ones((i.shape[0], x.shape[0] // 2 + 1)),
            lax.ScatterDimensionNumbers((1,), (), (0,)),
            mode="clip",
        ),
        with_indices("n"),
    ),
    "scatter windows drop": (
        lambda x, i: lax.scatter_add(
            x, i[:, None], jnp.ones((i.shape[0], 1)), lax.ScatterDimensionNumbers((1,), (), (0,))
        ),
        with_indices("n"),
    ),
    "scatter_max": (
        lambda x, i: lax.scatter_max(
            x, i[:, None], jnp.ones((i.shape[0], x.shape[1])), lax.ScatterDimensionNumbers((1,), (0,), (0,))
        ),
        with_indices("n, m"),
    ),
    "segment_sum": (
        lambda x, i: jax.ops.segment_sum(x, i, 4),
        lambda n, m: [*arrays(("n, m",), n, m), (np.arange(n) % 5).astype(np.int32)],
    ),
    "segment_max": (
        lambda x, i: jax.ops.segment_max(x, i, x.shape[0]),
        lambda n, m: [*arrays(("n, m",), n, m), (np.arange(n) % 5).astype(np.int32)],
    ),
    "segment sorted": (
        lambda x, i: jax.ops.segment_prod(x, i, 6, indices_are_sorted=True),
        lambda n, m: [*arrays(("n, m",), n, m), (np.arange(n) // 3).astype(np.int32)],
    ),
}
