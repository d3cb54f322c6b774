# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of single ops: a function of tensors, and the shapes of these over symbols, with their dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

Function = Callable[..., Any]


class Case(NamedTuple):
    """Shapes as "b, 3, t", one for each argument. kinds: dtypes of the arguments, f32 where there are fewer.

    least: the smallest size of a symbol. low, high: between which numbers elements are.
    """

    function: Function
    shapes: tuple[str, ...]
    kinds: tuple[torch.dtype, ...] = ()
    least: int = 0
    low: float = -3.0
    high: float = 3.0


def _of(function: Function, *shapes: str, **others: Any) -> Case:
    return Case(function, shapes, **others)


def _with_steps_written(x: Any) -> Any:
    x = x.clone()
    x[::2] = 1.5
    x[1:, 2::3] += 1
    x[:-1, x.shape[1] // 2 :: 2].mul_(2)
    return x


def _with_diagonals_written(x: Any) -> Any:
    x = x.clone()
    x.diagonal(0, 2, 0).add_(1)
    x.diagonal(-1).mul_(3)
    return x


def _with_strides_written(x: Any) -> Any:
    x = x.clone()
    x.as_strided((x.shape[0], 2), (8, 3), 1).mul_(2)
    return x


_INT = (torch.int64, torch.int64)
_INDEXED = (torch.float32, torch.int64)
_BF16 = (torch.bfloat16, torch.bfloat16)
_BOOL = (torch.bool, torch.bool)

UNARY = [
    "abs", "ceil", "cos", "erf", "erfc", "exp", "expm1", "exp2", "floor", "neg", "relu", "round", "sigmoid",
    "sign", "sin", "sqrt", "tan", "tanh", "trunc", "isnan", "isinf", "logical_not", "signbit", "sinh", "cosh",
    "asinh", "atan", "reciprocal", "rsqrt", "log", "log2", "log10", "log1p", "lgamma", "square", "frac",
    "nan_to_num", "isfinite", "positive", "deg2rad"
]  # fmt: skip
"""Functions of one float tensor."""

CASES: dict[str, Case] = {name: _of(getattr(torch, name), "b, t") for name in UNARY}
CASES |= {f"{name} of bf16": _of(getattr(torch, name), "b, t", kinds=_BF16) for name in ("exp", "erf", "log2", "sinh")}
CASES |= {name: _of(getattr(torch, name), "b, t", low=-1.0, high=1.0) for name in ("acos", "asin", "atanh", "erfinv")}
CASES |= {"acosh": _of(torch.acosh, "b, t", low=1.0, high=5.0)}
CASES |= {
    f"{name} of integers": _of(getattr(torch, name), "b, t", kinds=_INT)
    for name in ("abs", "neg", "sign", "exp", "sqrt", "ceil", "bitwise_not", "logical_not", "sgn")
}
CASES |= {
    name: _of(getattr(torch, name), "b, t", "t")
    for name in [
        "add",
        "sub",
        "mul",
        "div",
        "maximum",
        "minimum",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "fmod",
        "remainder",
        "atan2",
        "floor_divide",
        "logical_and",
        "logical_or",
        "logical_xor",
        "hypot",
        "copysign",
        "true_divide",
        "fmax",
        "fmin",
    ]
}
CASES |= {
    f"{name} of integers": _of(getattr(torch, name), "b, t", "b, t", kinds=_INT)
    for name in [
        "add",
        "sub",
        "mul",
        "maximum",
        "minimum",
        "eq",
        "lt",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "div",
    ]
}
CASES |= {
    f"{name} of bf16": _of(getattr(torch, name), "b, t", "b, t", kinds=_BF16) for name in ("add", "mul", "div", "lt")
}
CASES |= {
    f"{name} of booleans": _of(getattr(torch, name), "b, t", "b, t", kinds=_BOOL)
    for name in ("add", "mul", "logical_and", "bitwise_xor", "eq", "maximum")
}
CASES |= {
    "add with alpha": _of(lambda x, y: torch.add(x, y, alpha=0.5), "b, t", "b, t"),
    "rsub": _of(lambda x: 3 - x, "b, t"),
    "mixed kinds": _of(lambda x, y: x + y, "b, t", "b, t", kinds=_INDEXED),
    "comparison of mixed kinds": _of(lambda x, y: x < y, "b, t", "b, t", kinds=_INDEXED),
    "integers and a float": _of(lambda x: x * 0.5, "b, t", kinds=_INT),
    "compared with a float": _of(lambda x: x > 0.5, "b, t", kinds=_INT),
    "division down": _of(lambda x, y: torch.div(x, y, rounding_mode="floor"), "b, t", "b, t"),
    "division towards zero": _of(lambda x, y: torch.div(x, y, rounding_mode="trunc"), "b, t", "b, t"),
    "integers divided down": _of(
        lambda x, y: torch.div(x, y * 2 + 1, rounding_mode="floor"), "b, t", "b, t", kinds=_INT
    ),
    "integers divided towards zero": _of(
        lambda x, y: torch.div(x, y * 2 + 1, rounding_mode="trunc"), "b, t", "b, t", kinds=_INT
    ),
    "remainder of integers": _of(lambda x, y: torch.remainder(x, y * 2 + 1), "b, t", "b, t", kinds=_INT),
    "fmod of integers": _of(lambda x, y: torch.fmod(x, y * 2 + 1), "b, t", "b, t", kinds=_INT),
    "power": _of(lambda x, y: torch.pow(x.abs(), y), "b, t", "b, t"),
    "square power": _of(lambda x: x**2, "b, t"),
    "cube": _of(lambda x: x**3, "b, t"),
    "power of integers": _of(lambda x, y: torch.pow(x, y.abs()), "b, t", "b, t", kinds=_INT),
    "negative powers of integers": _of(torch.pow, "b, t", "b, t", kinds=_INT),
    "power of a number": _of(lambda x: torch.pow(2.0, x), "b, t"),
    "where": _of(torch.where, "b, t", "b, t", "t", kinds=(torch.bool,)),
    "where with numbers": _of(lambda c, x: torch.where(c, x, 0.0), "b, t", "b, t", kinds=(torch.bool,)),
    "clamp": _of(lambda x: x.clamp(-1, 2), "b, t"),
    "clamp below": _of(lambda x: x.clamp(min=0.5), "b, t"),
    "clamp by tensors": _of(torch.clamp, "b, t", "t", "b, t"),
    "gelu": _of(F.gelu, "b, t"),
    "gelu by tanh": _of(lambda x: F.gelu(x, approximate="tanh"), "b, t"),
    "silu": _of(F.silu, "b, t"),
    "elu": _of(F.elu, "b, t"),
    "celu": _of(F.celu, "b, t"),
    "selu": _of(F.selu, "b, t"),
    "leaky_relu": _of(F.leaky_relu, "b, t"),
    "hardtanh": _of(F.hardtanh, "b, t"),
    "hardswish": _of(F.hardswish, "b, t"),
    "hardsigmoid": _of(F.hardsigmoid, "b, t"),
    "mish": _of(F.mish, "b, t"),
    "softplus": _of(F.softplus, "b, t"),
    "logsigmoid": _of(F.logsigmoid, "b, t"),
    "lerp": _of(torch.lerp, "b, t", "b, t", "b, t"),
    "addcmul": _of(torch.addcmul, "b, t", "b, t", "t"),
    "addcdiv": _of(torch.addcdiv, "b, t", "b, t", "t"),
    "to float": _of(lambda x: x.to(torch.float32) / 2, "b, t", kinds=_INT),
    "to integers": _of(lambda x: x.to(torch.int32), "b, t"),
    "to booleans": _of(lambda x: x.to(torch.bool), "b, t"),
    "to bf16": _of(lambda x: x.to(torch.bfloat16), "b, t"),
    "times a size": _of(lambda x: x * x.shape[0], "b, t"),
    # shapes
    "view": _of(lambda x: x.reshape(x.shape[0], -1), "b, 3, t", least=1),
    "flatten": _of(lambda x: x.flatten(), "b, t, 3"),
    "unflatten": _of(lambda x: x.reshape(x.shape[0], x.shape[1], 2, 3), "b, t, 6"),
    "permute": _of(lambda x: x.permute(2, 0, 1), "b, t, 3"),
    "transpose": _of(lambda x: x.transpose(0, -1), "b, t, 3"),
    "squeeze": _of(lambda x: x.squeeze(1), "b, 1, t"),
    "unsqueeze": _of(lambda x: x.unsqueeze(-1), "b, t"),
    "expand": _of(lambda x, y: x.expand(y.shape[0], -1), "1, t", "b, t"),
    "repeat": _of(lambda x: x.repeat(2, 3), "b, t"),
    "slice": _of(lambda x: x[1:3, 2:], "b, t", least=4),
    "slice from the end": _of(lambda x: x[:, -2:], "b, t", least=3),
    "slice without the last": _of(lambda x: x[:, :-1], "b, t", least=3),
    "slice with a step": _of(lambda x: x[:, ::2], "b, t", least=3),
    "slice by a size": _of(lambda x, y: x[:, : y.shape[0]], "b, 64", "t", least=1),
    "select": _of(lambda x: x[:, 1], "b, 4, t"),
    "select the last": _of(lambda x: x[:, -1], "b, t", least=1),
    "cat": _of(lambda x, y: torch.cat([x, y, x], 1), "b, t", "b, u"),
    "cat of kinds": _of(lambda x, y: torch.cat([x, y], 0), "b, 4", "t, 4", kinds=_INDEXED),
    "stack": _of(lambda x, y: torch.stack([x, y], 1), "b, t", "b, t"),
    "split": _of(lambda x: torch.split(x, [1, 2, 3], 1), "b, 6"),
    "chunk": _of(lambda x: torch.chunk(x, 3, -1), "b, t, 6"),
    "unbind": _of(lambda x: torch.unbind(x, 1), "b, 3, t"),
    "flip": _of(lambda x: x.flip(0, 1), "b, t"),
    "roll": _of(lambda x: torch.roll(x, 1, 0), "b, t", least=1),
    "pad": _of(lambda x: F.pad(x, (1, 2, 0, 3), value=2.0), "b, t"),
    "pad fewer": _of(lambda x: F.pad(x, (-1, 2)), "b, t", least=1),
    "slice_scatter": _of(lambda x, y: torch.slice_scatter(x, y, 1, 2, 4), "b, 8", "b, 2"),
    "slice_scatter with a step": _of(
        lambda x, y: (torch.slice_scatter(x, y, 1, 1, None, 3), torch.slice_scatter(x, y[:, :2], 1, -5, -1, 2)),
        "b, 8", "b, 3",
    ),
    "slices with a step written": _of(_with_steps_written, "b, t", least=6),
    "diagonals written": _of(_with_diagonals_written, "b, t, 3", least=3),
    "strides written": _of(_with_strides_written, "b, 8", least=1),
    "select_scatter": _of(lambda x, y: torch.select_scatter(x, y, 0, 1), "b, t", "t", least=2),
    "movedim": _of(lambda x: x.movedim(0, 2), "b, t, 3"),
    "diagonal_scatter": _of(lambda x, y: torch.diagonal_scatter(x, y, -1, 2, 1), "b, 4, 5", "b, 4"),
    "diagonal": _of(lambda x: torch.diagonal(x, 1, 1, 2), "b, 4, 5"),
    "tril": _of(torch.tril, "b, t"),
    "triu": _of(lambda x: torch.triu(x, 1), "b, t"),
    # creation
    "full": _of(lambda x: torch.full((x.shape[0], 3), 2.5), "b"),
    "zeros_like": _of(lambda x: torch.zeros_like(x) + 1, "b, t"),
    "ones": _of(lambda x: torch.ones(x.shape), "b, t"),
    "arange": _of(lambda x: torch.arange(x.shape[0]) * 2, "b"),
    "arange from": _of(lambda x: torch.arange(2, x.shape[0] + 2), "b"),
    "eye": _of(lambda x: torch.eye(x.shape[0]), "b"),
    # reductions
    "sum": _of(torch.sum, "b, t"),
    "sum along": _of(lambda x: x.sum(1), "b, t"),
    "sum kept": _of(lambda x: x.sum((0, 2), keepdim=True), "b, t, 3"),
    "sum of integers": _of(lambda x: x.sum(0), "b, t", kinds=(torch.int32,)),
    "sum of booleans": _of(lambda x: x.sum(0), "b, t", kinds=_BOOL),
    "sum of bf16": _of(lambda x: x.sum(1), "b, t", kinds=_BF16),
    "mean": _of(lambda x: x.mean(-1), "b, t"),
    "prod": _of(lambda x: x.prod(1), "b, t", low=0.5, high=1.5),
    "var": _of(lambda x: x.var(1), "b, t", least=1),
    "std of the population": _of(lambda x: x.std(0, unbiased=False), "b, t", least=1),
    "var_mean": _of(lambda x: torch.var_mean(x, 1), "b, t", least=1),
    "amax": _of(lambda x: x.amax(1), "b, t", least=1),
    "amin": _of(lambda x: x.amin((0, 1)), "b, t", least=1),
    "max along": _of(lambda x: x.max(1), "b, t", least=1),
    "min along": _of(lambda x: x.min(0), "b, t", least=1),
    "max": _of(torch.max, "b, t", least=1),
    "argmax": _of(lambda x: x.argmax(1), "b, t", least=1),
    "argmin of all": _of(torch.argmin, "b, t", least=1),
    "any": _of(lambda x: (x > 2).any(1), "b, t"),
    "all": _of(lambda x: (x > -2).all(0), "b, t"),
    "logsumexp": _of(lambda x: torch.logsumexp(x, 1), "b, t", least=1),
    "norm": _of(lambda x: torch.linalg.vector_norm(x, dim=1), "b, t"),
    "cumsum": _of(lambda x: torch.cumsum(x, 1), "b, t"),
    "cumsum of integers": _of(lambda x: torch.cumsum(x, 0), "b, t", kinds=_INT),
    "cumprod": _of(lambda x: torch.cumprod(x, 0), "b, t", low=0.5, high=1.5),
    "sort": _of(lambda x: torch.sort(x, 1), "b, t"),
    "sort down": _of(lambda x: torch.sort(x, stable=True, dim=0, descending=True), "b, t", kinds=_INT),
    "topk": _of(lambda x: torch.topk(x, 3, 1), "b, t", least=3),
    "topk smallest": _of(lambda x: torch.topk(x, 2, 0, largest=False), "b, t", least=2),
    # products
    "mm": _of(torch.mm, "b, t", "t, 5"),
    "bmm": _of(torch.bmm, "b, t, 4", "b, 4, u"),
    "mv": _of(torch.mv, "b, t", "t"),
    "dot": _of(torch.dot, "b", "b"),
    "addmm": _of(lambda c, x, y: torch.addmm(c, x, y, beta=0.5, alpha=2), "5", "b, t", "t, 5"),
    "baddbmm": _of(torch.baddbmm, "b, t, u", "b, t, 4", "b, 4, u"),
    "linear": _of(F.linear, "b, t, 6", "5, 6", "5"),
    "matmul": _of(torch.matmul, "b, 1, t, 4", "3, 4, u"),
    "matmul of a vector": _of(torch.matmul, "t", "b, t, 4"),
    "matmul by a vector": _of(torch.matmul, "b, u, t", "t"),
    "einsum": _of(lambda x, y: torch.einsum("bik,bjk->bij", x, y), "b, t, 4", "b, u, 4"),
    "outer": _of(torch.outer, "b", "t"),
    "mm of bf16": _of(torch.mm, "b, 8", "8, t", kinds=_BF16),
    "attention": _of(F.scaled_dot_product_attention, "b, 2, t, 8", "b, 2, u, 8", "b, 2, u, 8", least=1),
    "causal attention": _of(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        "b, 2, t, 8", "b, 2, t, 8", "b, 2, t, 8", least=1,
    ),
    "masked attention": _of(
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m > 0),
        "b, 2, t, 8", "b, 2, u, 8", "b, 2, u, 8", "t, u", least=1,
    ),
    # layers
    "softmax": _of(lambda x: F.softmax(x, -1), "b, t", least=1),
    "log_softmax": _of(lambda x: F.log_softmax(x, 0), "b, t", least=1),
    "softmax of bf16": _of(lambda x: F.softmax(x, -1), "b, t", kinds=_BF16, least=1),
    "layer_norm": _of(lambda x, w, c: F.layer_norm(x, (6,), w, c), "b, t, 6", "6", "6"),
    "rms_norm": _of(lambda x, w: F.rms_norm(x, (6,), w), "b, t, 6", "6"),
    "group_norm": _of(lambda x, w, c: F.group_norm(x, 2, w, c), "b, 6, t", "6", "6", least=1),
    "instance_norm": _of(lambda x: F.instance_norm(x), "b, 3, t", least=2),
    "batch_norm": _of(
        lambda x, m, v, w, c: F.batch_norm(x, m, v.abs(), w, c), "b, 4, t", "4", "4", "4", "4", least=1
    ),
    "conv1d": _of(lambda x, w, c: F.conv1d(x, w, c, padding=1), "b, 3, t", "4, 3, 3", "4", least=1),
    "conv2d": _of(lambda x, w: F.conv2d(x, w, stride=2, padding=1), "b, 3, t, 9", "4, 3, 3, 3", least=3),
    "grouped conv2d": _of(lambda x, w: F.conv2d(x, w, groups=2, dilation=2), "b, 4, t, 9", "6, 2, 3, 3", least=6),
    "transposed conv1d": _of(
        lambda x, w: F.conv_transpose1d(x, w, stride=2, padding=1, output_padding=1), "b, 4, t", "4, 3, 3", least=1
    ),
    "transposed grouped conv2d": _of(
        lambda x, w: F.conv_transpose2d(x, w, stride=2, groups=2), "b, 4, t, 3", "4, 3, 2, 2", least=1
    ),
    "max_pool2d": _of(lambda x: F.max_pool2d(x, 3, 2, 1), "b, 3, t, 8", least=3),
    "avg_pool2d": _of(lambda x: F.avg_pool2d(x, 2), "b, 3, t, 8", least=4),
    "avg_pool2d without padding": _of(
        lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), "b, 3, t, 8", least=3
    ),
    "adaptive_avg_pool2d": _of(lambda x: F.adaptive_avg_pool2d(x, 1), "b, 3, t, 8", least=1),
    "dropout": _of(lambda x: F.dropout(x, 0.5, training=False), "b, t"),
    "one_hot": _of(lambda x: F.one_hot(x.abs(), 4), "b, t", kinds=_INT),
    "cross_entropy": _of(lambda x, y: F.cross_entropy(x, y.abs()), "b, 4", "b", kinds=_INDEXED, least=1),
    "mse_loss": _of(F.mse_loss, "b, t", "b, t", least=1),
    # indices
    "embedding": _of(lambda w, x: F.embedding(x.abs(), w), "9, 4", "b, t", kinds=_INDEXED),
    "index_select": _of(
        lambda x, i: torch.index_select(x, 1, i.abs()), "b, 5", "t", kinds=_INDEXED
    ),
    "gather": _of(lambda x, i: torch.gather(x, 1, i.abs()), "b, 5", "b, t", kinds=_INDEXED, least=1),
    "index": _of(lambda x, i: x[i], "5, b", "t, 2", kinds=_INDEXED),
    "index of the second axis": _of(lambda x, i: x[:, i], "b, 5, t", "u", kinds=_INDEXED),
    "index by two": _of(
        lambda x, i, j: x[i, :, j], "5, b, 6", "t", "t", kinds=(torch.float32, torch.int64, torch.int64)
    ),
    "index_put": _of(
        lambda x, i, v: x.index_put((i.abs(),), v, accumulate=True), "5, b", "t", "t, b",
        kinds=_INDEXED,
    ),
    "scatter": _of(
        lambda x, i: torch.scatter(x, 1, i.abs() * 0 + torch.arange(2), 1.5), "b, 5", "b, 2",
        kinds=_INDEXED,
    ),
    "scatter_add": _of(
        lambda x, i, v: torch.scatter_add(x, 0, i.abs(), v), "5, b", "t, b", "t, b", kinds=_INDEXED
    ),
    "masked_fill": _of(lambda x, m: x.masked_fill(m, -1.0), "b, t", "b, t", kinds=(torch.float32, torch.bool)),
}  # fmt: skip
