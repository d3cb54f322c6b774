# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of ops outside of Core ATen, several of a kind in each."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tests.pytorch.ops import Case, Function


def _of(function: Function, *shapes: str, **others: Any) -> Case:
    return Case(function, shapes, **others)


_INT = (torch.int64, torch.int64)


def _searched(rows: Any, x: Any, y: Any) -> Any:
    found = rows.sort(-1)[0]
    one = x.sort()[0]
    return (
        torch.searchsorted(found, y), torch.searchsorted(found, y, right=True),
        torch.searchsorted(one, y, out_int32=True),
        torch.searchsorted(x, y, sorter=x.argsort(), side="right"), torch.bucketize(y, torch.tensor([-1.0, 0.0, 0.5])),
        torch.bucketize(y, one, right=True), torch.searchsorted(one, 0.3),
    )  # fmt: skip


def _with_nans(x: Any) -> Any:
    return torch.where(x > 2, float("nan"), x)


def _shifted(x: Any, y: Any) -> Any:
    small = x.to(torch.int8)
    return (
        x << 2, x >> 1, small << 3, small >> 2, 2 << y.abs(), small << y.to(torch.int8), small >> y.to(torch.int8),
        torch.bitwise_left_shift(x, y.abs() * 30), torch.bitwise_right_shift(x, y.abs() * 30),
        x.to(torch.uint8) >> 1, x << x.shape[0],
    )  # fmt: skip


def _rounded(x: Any) -> Any:
    n = x.shape[0]
    sizes = map(torch.sym_int, (1.3 * n, 0.29 * n, n / 3, n * 0.7 + 0.5))
    ranges = (
        torch.arange(0, n, 0.5),
        torch.arange(n, -1, -1.0),
        torch.arange(0, n, 0.3),
        torch.arange(0.5, n * 1.0, 2.0),
    )
    return *(x.new_ones(size) for size in sizes), *ranges


MORE: dict[str, Case] = {
    "searchsorted": _of(_searched, "b, t", "u", "b, 3", least=1),
    "histc": _of(lambda x, y: (torch.histc(x, 7, -2.0, 2.0), torch.histc(y, bins=5)), "b, t", "b", least=2),
    "median and kthvalue": _of(
        lambda x: (x.median(1), x.median(), x.kthvalue(2, 0), x.sum(0).median(0, keepdim=True)), "b, t", least=2
    ),
    "medians beside NaNs": _of(
        lambda x: (_with_nans(x).median(0), _with_nans(x).nanmedian(0), _with_nans(x).nanmedian()), "b, t", least=1
    ),
    "mode": _of(lambda x: ((x % 3).mode(0), (x % 2).mode(-1, keepdim=True)[0]), "b, t", kinds=_INT, least=1),
    "cummax and cummin": _of(
        lambda x, y: (x.cummax(0), x.cummin(1), _with_nans(x).cummax(1), y.cummin(0), (y > 0).cummax(0)), "b, t", "u",
        kinds=(torch.float32, torch.int64),
    ),
    "logcumsumexp": _of(
        lambda x: (torch.logcumsumexp(x * 60, 0), torch.logcumsumexp(torch.where(x > 1, -torch.inf, x), 1)), "b, t"
    ),
    "shifts": _of(_shifted, "b, t", "b, t", kinds=_INT),
    "adaptive_max_pool": _of(
        lambda x, y: (F.adaptive_max_pool2d(x, (2, 3), return_indices=True), F.adaptive_max_pool1d(y, 4)),
        "b, 2, t, u", "b, 3, t", least=1,
    ),
    "adaptive_max_pool3d": _of(
        lambda x: F.adaptive_max_pool3d(x, (2, 1, 3), return_indices=True), "b, 2, t, 3, u", least=1
    ),
    "resampling with antialias": _of(
        lambda x: (
            F.interpolate(x, size=(5, 7), mode="bicubic", antialias=True),
            F.interpolate(x, size=(5, 7), mode="bilinear", antialias=True, align_corners=True),
            F.interpolate(x, size=(x.shape[2] * 2, x.shape[3] + 1), mode="bilinear", antialias=True),
        ),
        "b, 2, t, u", least=2,
    ),
    "interpolation by rounded factors": _of(
        lambda x: (F.interpolate(x, scale_factor=1.3), F.interpolate(x, scale_factor=0.7, mode="bilinear")),
        "b, 2, t, u", least=4,
    ),
    "bilinear": _of(lambda x, y, w: F.bilinear(x, y, w), "b, t", "b, 4", "3, t, 4", least=1),
    "bilinear of a batch": _of(lambda x, y, w: F.bilinear(x, y, w), "b, t, 2", "b, t, 4", "3, 2, 4", least=1),
    "rounded to tenths": _of(lambda x: torch.round(x * 20, decimals=1), "b, t"),
    "rounded to tens": _of(lambda x: torch.round(x * 20, decimals=-1), "b, t"),
    "rounded sizes": _of(_rounded, "b", least=9),
}  # fmt: skip
