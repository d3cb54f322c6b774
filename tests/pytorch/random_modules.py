# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random modules: layers and ops on tensors of shape [b, t, width], one after the other, joined at random.

A program is a list of steps over a growing list of values, so that eager PyTorch and an export run the same code.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

nn = torch.nn

SIZES = ((3, 5), (1, 1), (2, 17), (6, 1))
"""Values of b and t at which a program is compared."""

Step = Callable[["RandomModule", list[Any]], Any]

_UNARY: tuple[Callable[[Any], Any], ...] = (
    torch.relu, torch.tanh, torch.sigmoid, torch.sin, torch.cos, torch.abs, torch.neg, F.gelu, F.silu, F.softplus,
    lambda x: x.square(), lambda x: x * 0.5 + 1, lambda x: torch.exp(-x.abs()), lambda x: torch.log1p(x.abs()),
    lambda x: torch.sqrt(x.abs() + 1), lambda x: torch.rsqrt(x.square() + 1), lambda x: x.clamp(-1, 2),
    lambda x: torch.floor(x * 2), lambda x: torch.where(x > 0, x, -0.1 * x), lambda x: x.to(torch.float64).to(x.dtype),
    lambda x: (x > 0.3).to(x.dtype), lambda x: x.masked_fill(x < 0, 0.5), lambda x: x * x.shape[0] / (x.shape[1] + 1),
    lambda x: x.round().to(torch.int64).remainder(3).to(x.dtype), lambda x: torch.erf(x), lambda x: x.frac(),
)  # fmt: skip
"""Functions of one value, with results of its shape."""

_MOVING: tuple[Callable[[Any], Any], ...] = (
    lambda x: x.flip(1), lambda x: x.transpose(0, 1).contiguous().transpose(0, 1),
    lambda x: F.pad(x, (0, 0, 1, 0))[:, :-1],
    lambda x: torch.cat([x[:, 1:], x[:, :1]], 1), lambda x: x.reshape(-1, x.shape[-1]).reshape(x.shape),
    lambda x: torch.stack([x, -x], 1).sum(1), lambda x: torch.cat([x, x * 2], -1)[..., ::2],
    lambda x: x.permute(2, 0, 1).permute(1, 2, 0), lambda x: torch.cumsum(x, 1) / 4, lambda x: torch.sort(x, 1)[0],
    lambda x: x.gather(1, torch.arange(x.shape[1] - 1, -1, -1)[None, :, None].expand(x.shape)),
    lambda x: x[:, torch.arange(x.shape[1]) // 2], lambda x: x.unflatten(-1, (2, -1)).flip(2).flatten(2),
    lambda x: torch.tril(x.transpose(1, 2) @ x)[:, :1] + x, lambda x: x.roll(1, 2),
    lambda x: x.expand(2, *x.shape).mean(0),
    lambda x: torch.chunk(x, 2, -1)[0].repeat(1, 1, 2), lambda x: x.index_select(2, torch.arange(x.shape[2]).flip(0)),
    lambda x: torch.scatter_add(x, 1, torch.zeros_like(x, dtype=torch.int64), x * 0.1),
)  # fmt: skip
"""Functions of one value that move its elements."""

_REDUCING: tuple[Callable[[Any], Any], ...] = (
    lambda x: x.sum(1, keepdim=True) / 4, lambda x: x.mean(-1, keepdim=True), lambda x: x.amax(1, keepdim=True),
    lambda x: x.amin((0, 1), keepdim=True), lambda x: x.var(-1, keepdim=True, unbiased=False),
    lambda x: x.argmax(-1, keepdim=True).to(x.dtype), lambda x: torch.logsumexp(x, 1, keepdim=True),
    lambda x: x.norm(dim=-1, keepdim=True), lambda x: (x > 0).any(1, keepdim=True).to(x.dtype),
    lambda x: torch.topk(x, 2, -1)[0].sum(-1, keepdim=True), lambda x: x.std(0, keepdim=True, unbiased=False),
)  # fmt: skip
"""Functions of one value whose results are added to it, which broadcasts."""

_SOFT: tuple[Callable[[Any], Any], ...] = (
    lambda x: F.softmax(x, -1), lambda x: F.softmax(x, 1), lambda x: F.log_softmax(x, -1),
    lambda x: F.softmax(x * x, 0),
    lambda x: F.normalize(x, dim=-1), lambda x: F.layer_norm(x, x.shape[-1:]), lambda x: F.glu(torch.cat([x, x], -1)),
    lambda x: F.scaled_dot_product_attention(x, x, x),
    lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    lambda x: torch.softmax(x @ x.transpose(1, 2), -1) @ x, lambda x: torch.einsum("btd,bsd->bts", x, x) @ x / 9,
    lambda x: torch.softmax((x @ x.mT).masked_fill(torch.ones(x.shape[1], x.shape[1]).triu(1) > 0, -1e9), -1) @ x,
)  # fmt: skip
"""Functions of one value by rows."""

_BINARY: tuple[Callable[[Any, Any], Any], ...] = (
    torch.add, torch.sub, torch.mul, torch.maximum, torch.minimum, lambda x, y: x / (y.abs() + 1),
    lambda x, y: torch.where(x > y, x, y * 0.5), lambda x, y: torch.lerp(x, y, 0.3), torch.hypot,
    lambda x, y: x + y[:, :1], lambda x, y: x * torch.sigmoid(y.mean(1, keepdim=True)),
    lambda x, y: x @ y.transpose(1, 2) @ y / 9,
    lambda x, y: torch.cat([x, y], 1)[:, : x.shape[1]], lambda x, y: F.scaled_dot_product_attention(x, y, y),
    lambda x, y: (x[..., None] * y[..., None, :]).sum(-1),
)  # fmt: skip
"""Functions of two values."""


class RandomModule(nn.Module):
    """The module of a seed. Its argument is x [b, t, width]; it returns the last values."""

    def __init__(self, seed: int):
        super().__init__()
        self.random = random.Random(seed)
        torch.manual_seed(seed)
        self.width = self.random.choice((4, 6, 8))
        self.layers = nn.ModuleList()
        self.steps = [self._step() for _ in range(self.random.randint(3, 9))]

    def _layer(self) -> int:
        w = self.width
        make: Callable[[], nn.Module] = self.random.choice((
            lambda: nn.Linear(w, w), lambda: nn.Linear(w, w, bias=False), lambda: nn.LayerNorm(w),
            lambda: nn.Sequential(nn.Linear(w, 2 * w), nn.GELU(), nn.Linear(2 * w, w)), lambda: nn.RMSNorm(w),
            lambda: nn.MultiheadAttention(w, 2, batch_first=True), lambda: nn.Conv1d(w, w, 3, padding=1),
            lambda: nn.GroupNorm(2, w), lambda: nn.Conv1d(w, w, 3, padding=2, dilation=2, groups=2),
        ))  # fmt: skip
        self.layers.append(make())
        return len(self.layers) - 1

    def _step(self) -> tuple[str, int, int, int]:
        kind = self.random.choice(("unary", "unary", "moving", "reducing", "soft", "binary", "binary", "layer"))
        count = {"unary": _UNARY, "moving": _MOVING, "reducing": _REDUCING, "soft": _SOFT, "binary": _BINARY}
        number = self._layer() if kind == "layer" else self.random.randrange(len(count[kind]))
        return kind, number, self.random.randrange(64), self.random.randrange(64)

    def forward(self, x: Any) -> Any:
        values = [x]
        for kind, number, first, second in self.steps:
            a, b = values[-1 - first % min(len(values), 3)], values[-1 - second % len(values)]
            values.append(self._applied(kind, number, a, b))
        return values[-1], values[-2].sum(-1), values[-1].amax(1)

    def _applied(self, kind: str, number: int, a: Any, b: Any) -> Any:
        if kind == "binary":
            return _BINARY[number](a, b)
        if kind == "reducing":
            return a + _REDUCING[number](a)
        if kind != "layer":
            return {"unary": _UNARY, "moving": _MOVING, "soft": _SOFT}[kind][number](a)
        layer = self.layers[number]
        if isinstance(layer, nn.MultiheadAttention):
            return layer(a, a, a, need_weights=False)[0]
        if isinstance(layer, nn.Conv1d | nn.GroupNorm):
            return layer(a.transpose(1, 2)).transpose(1, 2)
        return layer(a)
