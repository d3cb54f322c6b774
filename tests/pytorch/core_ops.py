# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases that call overloads of Core ATen themselves, where no case of `ops.py` comes to them."""

from __future__ import annotations

from typing import Any

import torch

from tests.pytorch.ops import Case, Function

A = torch.ops.aten
_INT = (torch.int64, torch.int64)
_INDEXED = (torch.float32, torch.int64)
_BAGS = (torch.float32, torch.int64, torch.int64)


def _of(function: Function, *shapes: str, **others: Any) -> Case:
    return Case(function, shapes, **others)


def _bags(mode: int, padding: int = -1, weighted: bool = False) -> Function:
    """Bags of two rows each, the last one of what is left; some are empty."""

    def function(table: Any, index: Any, _: Any, factors: Any = None) -> Any:
        offsets = torch.arange(index.shape[0] // 2 + 2) * 2
        offsets = torch.minimum(offsets, torch.tensor(index.shape[0]))
        given = factors if weighted else None
        return A._embedding_bag(table, index.abs(), offsets, False, mode, False, given, False, padding)[0]

    return function


def _largest_backward(x: Any) -> Any:
    found, places = A.max_pool2d_with_indices(x, [3, 3], [2, 2], [1, 1])
    return A.max_pool2d_with_indices_backward(found * 2, x, [3, 3], [2, 2], [1, 1], [1, 1], False, places)


def _layer_norm_backward(g: Any, x: Any, w: Any, c: Any) -> Any:
    _, mean, inverse = A.native_layer_norm(x, [6], w, c, 1e-5)
    return A.native_layer_norm_backward(g, x, [6], mean, inverse, w, c, [True, True, True])


def _group_norm_backward(g: Any, x: Any, w: Any, c: Any) -> Any:
    sizes = (x.shape[0], 6, x.shape[2], 2)
    _, mean, inverse = A.native_group_norm(x, w, c, *sizes, 1e-5)
    return A.native_group_norm_backward(g, x, mean, inverse, w, *sizes, [True, True, True])


CORE: dict[str, Case] = {
    "_adaptive_avg_pool2d": _of(lambda x: A._adaptive_avg_pool2d(x, [3, 2]), "b, 2, t, 9", least=1),
    "_adaptive_avg_pool2d_backward": _of(A._adaptive_avg_pool2d_backward, "b, 2, 3, 2", "b, 2, t, 9", least=1),
    "_adaptive_avg_pool3d": _of(lambda x: A._adaptive_avg_pool3d(x, [2, 3, 1]), "b, 2, t, 5, 4", least=1),
    "adaptive_avg_pool1d": _of(lambda x: A.adaptive_avg_pool1d(x, [4]), "b, 2, t", least=1),
    "_cdist_forward 2": _of(lambda x, y: A._cdist_forward(x, y, 2.0, 2), "b, t, 5", "b, u, 5"),
    "_cdist_forward by a product": _of(lambda x, y: A._cdist_forward(x, y, 2.0, 1), "t, 5", "u, 5", low=1.0),
    "_cdist_forward 1": _of(lambda x, y: A._cdist_forward(x, y, 1.0, None), "b, t, 5", "b, u, 5"),
    "_cdist_forward 3": _of(lambda x, y: A._cdist_forward(x, y, 3.0, None), "t, 5", "u, 5"),
    "_cdist_forward 0": _of(lambda x, y: A._cdist_forward(x.round(), y.round(), 0.0, None), "t, 5", "u, 5"),
    "_cdist_forward of maxima": _of(lambda x, y: A._cdist_forward(x, y, float("inf"), None), "t, 5", "u, 5"),
    "_pdist_forward": _of(lambda x: A._pdist_forward(x, 2.0), "b, 5", least=3),
    "_embedding_bag": _of(_bags(0), "7, 4", "t", "1", kinds=_BAGS, least=1),
    "_embedding_bag of means": _of(_bags(1), "7, 4", "t", "1", kinds=_BAGS, least=1),
    "_embedding_bag of maxima": _of(_bags(2), "7, 4", "t", "1", kinds=_BAGS, least=1),
    "_embedding_bag with padding": _of(_bags(1, 1), "7, 4", "t", "1", kinds=_BAGS, least=1),
    "_embedding_bag with factors": _of(
        _bags(0, weighted=True), "7, 4", "t", "1", "t", kinds=(*_BAGS, torch.float32), least=1
    ),
    "_log_softmax": _of(lambda x: A._log_softmax(x, 1, False), "b, t", least=1),
    "_softmax": _of(lambda x: A._softmax(x, 0, False), "b, t", least=1),
    "alias": _of(lambda x: A.alias(x) + 1, "b, t"),
    "any of all": _of(lambda x: A.any(x > 2), "b, t"),
    "any along some": _of(lambda x: A.any.dims(x > 2, [0, 2]), "b, 3, t"),
    "arange.start_step": _of(lambda x: A.arange.start_step(1, x.shape[0] + 1, 2), "b", least=3),
    "as_strided": _of(lambda x: A.as_strided(x, [x.shape[0], 2, 3], [8, 2, 2], 1), "b, 8", least=1),
    "as_strided that overlaps": _of(lambda x: A.as_strided(x, [3, x.shape[0] - 2], [1, 1]), "t", least=4),
    "avg_pool1d": _of(lambda x: A.avg_pool1d(x, [3], [2], [1]), "b, 2, t", least=3),
    "avg_pool1d up": _of(lambda x: A.avg_pool1d(x, [3], [2], [1], True), "b, 2, t", least=2),
    "avg_pool1d up without padding": _of(lambda x: A.avg_pool1d(x, [3], [2], [1], True, False), "b, 2, t", least=2),
    "avg_pool1d of single ones": _of(lambda x: A.avg_pool1d(x, [1], [4], [0], True), "b, 2, t", least=9),
    "avg_pool2d with a divisor": _of(
        lambda x: A.avg_pool2d(x, [2, 2], [1, 1], [0, 0], True, True, 3), "b, 2, t, 5", least=3
    ),
    "avg_pool3d": _of(lambda x: A.avg_pool3d(x, [2, 2, 2], [2, 1, 2]), "b, 2, t, 5, 4", least=4),
    "avg_pool2d_backward": _of(
        lambda x: A.avg_pool2d_backward(A.avg_pool2d(x, [2, 3]), x, [2, 3], [2, 3], [0, 0], False, True, None),
        "b, 2, t, 7", least=4,
    ),
    "avg_pool2d_backward without padding": _of(
        lambda x: A.avg_pool2d_backward(
            A.avg_pool2d(x, [3, 3], [2, 2], [1, 1], True, False), x, [3, 3], [2, 2], [1, 1], True, False, None
        ),
        "b, 2, t, 8", least=2,
    ),
    "max_pool2d up": _of(lambda x: A.max_pool2d_with_indices(x, [3, 3], [2, 2], [1, 1], [1, 1], True), "b, 2, t, 7",
                         least=2),
    "max_pool2d_with_indices": _of(lambda x: A.max_pool2d_with_indices(x, [2, 3], [2, 1]), "b, 2, t, 7", least=4),
    "max_pool2d_with_indices_backward": _of(_largest_backward, "b, 2, t, 7", least=3),
    "max_pool3d_with_indices": _of(
        lambda x: A.max_pool3d_with_indices(x, [2, 2, 3], [2, 1, 2], [1, 0, 1]), "b, 2, t, 5, 4", least=2
    ),
    "bitwise_and.Scalar": _of(lambda x: A.bitwise_and.Scalar(x, 5), "b, t", kinds=_INT),
    "bitwise_or.Scalar": _of(lambda x: A.bitwise_or.Scalar(x, 5), "b, t", kinds=_INT),
    "bitwise_xor.Scalar": _of(lambda x: A.bitwise_xor.Scalar(x, 5), "b, t", kinds=_INT),
    "col2im": _of(lambda x: A.col2im(x, [6, 5], [2, 3], [1, 1], [1, 0], [2, 1]), "b, 18, 12", least=1),
    "convolution_backward": _of(
        lambda g, x, w: A.convolution_backward(
            g, x, w, [4], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True]
        ),
        "b, 4, t, 8", "b, 3, t, 8", "4, 3, 3, 3", least=1, low=-0.5, high=0.5,
    ),
    "copy": _of(lambda x, y: A.copy(x, y), "b, t", "t"),
    "div.Scalar": _of(lambda x: A.div.Scalar(x, 3), "b, t"),
    "div.Scalar_mode": _of(lambda x: A.div.Scalar_mode(x, 3, rounding_mode="floor"), "b, t"),
    "embedding_dense_backward": _of(
        lambda g, i: A.embedding_dense_backward(g, i.abs(), 5, 1, False), "b, t, 4", "b, t", kinds=_INDEXED
    ),
    "empty.memory_format": _of(lambda x: A.zeros_like(A.empty.memory_format([x.shape[0], 2])), "b"),
    "empty_strided": _of(lambda x: A.zeros_like(A.empty_strided([x.shape[0], 2], [2, 1])), "b"),
    "fill.Scalar": _of(lambda x: A.fill.Scalar(x, 2.5), "b, t"),
    "full_like": _of(lambda x: A.full_like(x, 2.5), "b, t"),
    "grid_sampler_2d": _of(
        lambda x, g: A.grid_sampler_2d(x, g / 2, 0, 0, False), "b, 2, 5, t", "b, u, 3, 2", least=1
    ),
    "grid_sampler_2d at the border": _of(
        lambda x, g: A.grid_sampler_2d(x, g / 2, 0, 1, True), "b, 2, 5, t", "b, u, 3, 2", least=1
    ),
    "le.Scalar": _of(lambda x: A.le.Scalar(x, 0.5), "b, t"),
    "masked_scatter": _of(
        lambda x, m, v: A.masked_scatter(x, m, torch.cat([v, x.flatten()])), "b, t", "b, t", "3",
        kinds=(torch.float32, torch.bool),
    ),
    "assignment by a mask": _of(
        lambda x, m: A.index_put(x, [m > 0], x[m > 0] * 2), "b, 3", "b", least=1
    ),
    "mul.Scalar": _of(lambda x: A.mul.Scalar(x, 3), "b, t"),
    "native_batch_norm_legit": _of(
        lambda x, w, c: A._native_batch_norm_legit(x, w, c, w * 0, w * 0 + 1, True, 0.1, 1e-5), "b, 4, t", "4", "4",
        least=2,
    ),
    "native_layer_norm": _of(lambda x, w, c: A.native_layer_norm(x, [6], w, c, 1e-5), "b, t, 6", "6", "6"),
    "native_layer_norm_backward": _of(_layer_norm_backward, "b, t, 6", "b, t, 6", "6", "6", least=1),
    "native_group_norm_backward": _of(_group_norm_backward, "b, 6, t", "b, 6, t", "6", "6", least=1),
    "nonzero": _of(lambda x: A.nonzero(x > 1), "b, t"),
    "item": _of(lambda x, i: torch.ones(i.abs().sum().item()) * 2, "b", "3", kinds=_INDEXED),
    "prod of all": _of(A.prod, "b, t", low=0.5, high=1.5),
    "rand": _of(lambda x: A.rand([x.shape[0], 2]) * 0, "b"),
    "randn": _of(lambda x: A.randn([x.shape[0], 2]) * 0, "b"),
    "randperm": _of(lambda x: torch.sort(A.randperm(x.shape[0]))[0], "b"),
    "native_dropout": _of(lambda x: A.native_dropout(x, 0.5, True)[0] * 0, "b, t"),
    "reflection_pad1d": _of(lambda x: A.reflection_pad1d(x, [1, 2]), "b, 2, t", least=4),
    "reflection_pad2d": _of(lambda x: A.reflection_pad2d(x, [1, 2, 2, 0]), "b, 2, t, u", least=4),
    "reflection_pad3d": _of(lambda x: A.reflection_pad3d(x, [1, 0, 2, 0, 1, 1]), "b, 2, t, u, 3", least=4),
    "replication_pad2d": _of(lambda x: A.replication_pad2d(x, [1, 2, 2, 0]), "b, 2, t, u", least=1),
    "replication_pad3d": _of(lambda x: A.replication_pad3d(x, [1, 0, 2, 0, 1, 1]), "b, 2, t, u, 3", least=1),
    "remainder.Scalar": _of(lambda x: A.remainder.Scalar(x, 1.5), "b, t"),
    "scalar_tensor": _of(lambda x: A.scalar_tensor(x.shape[0]) + x, "b, t"),
    "scatter.src": _of(
        lambda x, i, v: A.scatter.src(x, 1, i * 0 + torch.arange(3), v), "b, 5", "b, 3", "b, 4",
        kinds=(torch.float32, torch.int64),
    ),
    "scatter_reduce.two": _of(
        lambda x, i, v: A.scatter_reduce.two(x, 0, i.abs(), v, "amax"), "5, b", "t, b", "t, b", kinds=_INDEXED
    ),
    **{
        f"scatter_reduce.two {how}, {'' if own else 'not '}the element": _of(
            lambda x, i, v, how=how, own=own: A.scatter_reduce.two(x, 0, i.abs(), v, how, include_self=own),
            "5, b", "t, b", "t, b", kinds=_INDEXED,
        )
        for how, own in (("mean", True), *((name, False) for name in ("mean", "sum", "prod", "amax", "amin")))
    },
    "sub.Scalar": _of(lambda x: A.sub.Scalar(x, 3), "b, t"),
    "upsample_bilinear2d.vec": _of(
        lambda x: A.upsample_bilinear2d.vec(x, None, False, [2.0, 1.5]), "b, 2, t, u", least=1
    ),
    "upsample_nearest2d.vec": _of(lambda x: A.upsample_nearest2d.vec(x, None, [2.0, 1.5]), "b, 2, t, u", least=1),
}  # fmt: skip
