# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions of interpolation by a given factor, as eager PyTorch computes it where the size does not change.

PyTorch's own decompositions scale the places by the factor at every size. Its kernels (`UpSample.h`) copy an axis whose
rounded size is the same (3 elements times 1.3 are 3), and repeat each element of one whose size is doubled, for images.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import torch
from torch._decomp import decompositions as of_torch

from .graph import HALVES

Sizes = Sequence[Any]


def _keeps_some_size(factor: Any, most: int) -> bool:
    """Tells whether a size times the factor, no integer, may round down to the size or to a multiple, up to `most`."""
    return factor is not None and (not isinstance(factor, int | float) or (1 < factor < most + 1 and factor % 1 != 0))


def _where_same(count: Any, size: Any, plain: Any, scaled: Any) -> Any:
    """Places of results: `plain` where the sizes are equal. The choice is made by data, which fixes no size."""
    return torch.where(torch.scalar_tensor(count, dtype=torch.int64) == size, plain, scaled)


def _spread(places: Any, axis: int, rank: int) -> Any:
    return places.reshape([-1 if i == axis else 1 for i in range(rank)])


def _linear(x: Any, counts: Sizes, factors: Sizes) -> Any:
    """Linear interpolation along the last axes, corners not aligned."""
    value = x.float() if x.dtype in HALVES else x
    sizes, rank = x.shape[2:], len(counts)
    ends, parts = [], []
    for axis, (size, count, factor) in enumerate(zip(sizes, counts, factors, strict=True)):
        place = torch.arange(count).to(value.dtype)
        scaled = ((place + 0.5) * (1.0 / factor) - 0.5).clamp(min=0.0)
        source = _spread(_where_same(count, size, place, scaled), axis, rank)
        low = source.to(torch.int64)
        ends.append((low, (low + 1).clamp(max=size - 1)))
        parts.append((source - low).clamp(0.0, 1.0))
    found = [torch.ops.aten._unsafe_index(value, [None, None, *corner]) for corner in product(*ends)]
    for part in reversed(parts):
        found = [low + (high - low) * part for low, high in zip(found[::2], found[1::2], strict=True)]
    return found[0].to(x.dtype)


def _nearest(x: Any, counts: Sizes, factors: Sizes) -> Any:
    """The nearest element in images."""
    places = []
    for axis, (size, count, factor) in enumerate(zip(x.shape[2:], counts, factors, strict=True)):
        place = torch.arange(count)
        scaled = (place.to(torch.float32) * (1.0 / factor)).to(torch.int64)
        doubled = _where_same(count, 2 * size, place >> 1, scaled)
        places.append(_spread(_where_same(count, size, place, doubled), axis, len(counts)))
    return torch.ops.aten._unsafe_index(x, [None, None, *places])


def _linear_by_factors(x: Any, size: Sizes | None, align_corners: bool, factors: Sizes | None) -> Any:
    is_plain = not x.is_floating_point() or align_corners
    if is_plain or not factors or not any(_keeps_some_size(f, 1) for f in factors):
        return of_torch._upsample_linear_vec(x, size, align_corners, factors)
    return _linear(x, of_torch.upsample_compute_output_size(x.shape, size, factors), factors)


def _nearest_by_factors(x: Any, size: Sizes | None, factors: Sizes | None) -> Any:
    if not factors or not any(_keeps_some_size(f, 2) for f in factors):
        return of_torch._upsample_nearest_vec(x, size, factors)
    return _nearest(x, of_torch.upsample_compute_output_size(x.shape, size, factors), factors)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    torch.ops.aten.upsample_linear1d.vec: _linear_by_factors,
    torch.ops.aten.upsample_bilinear2d.vec: _linear_by_factors,
    torch.ops.aten.upsample_trilinear3d.vec: _linear_by_factors,
    torch.ops.aten.upsample_nearest2d.vec: _nearest_by_factors,
}
"""By the ops that exported programs have. Those of `torch.compile` are taken apart before a backend sees them."""
