# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that PyTorch takes apart before they are translated: those that have no translation of their own.

An op that is translated as it is gives a smaller graph, and PyTorch's tracing with symbolic sizes is what most of the
time from a module to code goes into.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, decomposition_table

from . import interpolation, table
from .composites import Rules, composites
from .graph import HALVES


def decompositions_of(module: torch.fx.GraphModule) -> Rules:
    """The rules for all ops in a module's graphs that have no translation and can be taken apart."""
    return of_pytorch() | composites(module)


@functools.cache
def of_pytorch() -> Rules:
    """The rules for all that PyTorch can take apart and that has no translation."""
    known = table.rows()
    every = {**decomposition_table, **dict(core_aten_decompositions().items())}
    every |= _OWN | interpolation.DECOMPOSITIONS
    return {op: rule for op, rule in every.items() if _is_taken_apart(op, known)}


def _is_taken_apart(op: Any, known: dict[str, table.Row]) -> bool:
    if not isinstance(op, torch._ops.OpOverload):
        return False
    name = table.name_of(op)
    return bool(name) and name not in known and name not in _WHOLE


def _trilinear(
    x: Any, y: Any, z: Any, expand1: list[int], expand2: list[int], expand3: list[int], sumdim: list[int], _: int = 1
) -> Any:
    """The product of three tensors with further axes at the places `expand`, summed along `sumdim`: `nn.Bilinear`."""
    wide = []
    for value, axes in ((x, expand1), (y, expand2), (z, expand3)):
        for axis in axes:
            value = value.unsqueeze(axis)
        wide.append(value)
    return (wide[0] * wide[1] * wide[2]).sum(sumdim)


def _round_decimals(x: Any, *, decimals: int) -> Any:
    """Rounding to multiples of a power of ten, as eager PyTorch computes it: halves in single precision."""
    if decimals == 0:
        return torch.round(x)
    power, value = 10.0 ** abs(decimals), x.float() if x.dtype in HALVES else x
    found = torch.round(value * power) / power if decimals > 0 else torch.round(value / power) * power
    return found.to(x.dtype)


def _rrelu(
    x: Any, noise: Any, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, generator: Any = None
) -> Any:
    """A leaky ReLU with a slope that is drawn for each negative element, or with the mean slope; and the slopes."""
    if not training:
        return torch.nn.functional.leaky_relu(x, (lower + upper) / 2), noise
    slopes = torch.where(x <= 0, torch.rand_like(x) * (upper - lower) + lower, 1.0).to(x.dtype)
    return x * slopes, slopes


def _cdist_backward(gradient: Any, x: Any, y: Any, p: float, distances: Any) -> Any:
    """The gradient of the rows of `x` in the p-norms of their differences from those of `y`; 0 at a distance of 0."""
    if p == 0:
        return torch.zeros_like(x)
    apart, g, d = x.unsqueeze(-2) - y.unsqueeze(-3), gradient.unsqueeze(-1), distances.unsqueeze(-1)
    if p == 1:
        return (g * torch.sign(apart)).sum(-2)
    if math.isinf(p):
        return (g * torch.sign(apart) * (apart.abs() == d)).sum(-2)
    is_zero = (d == 0) | (apart == 0)
    slope = apart / d if p == 2 else torch.sign(apart) * (apart.abs() / d) ** (p - 1)
    return torch.where(is_zero, 0.0, g * slope).sum(-2)


def _pdist_backward(gradient: Any, x: Any, p: float, distances: Any) -> Any:
    """The gradient of the rows of `x` in the p-norms of the differences of all pairs of them."""
    n = x.shape[0]
    row, column = torch.arange(n).unsqueeze(1), torch.arange(n).unsqueeze(0)
    first, second = torch.minimum(row, column), torch.maximum(row, column)
    place = first * (2 * n - first - 1) // 2 + second - first - 1
    place = torch.where(row == column, distances.shape[0], place)  # a zero at the end, for a row and itself
    g, d = (torch.cat([value, value.new_zeros(1)])[place] for value in (gradient, distances))
    return _cdist_backward(g, x, x, p, d)


def _weight_norm_backward(gradient: Any, v: Any, g: Any, norms: Any, dim: int) -> tuple[Any, Any]:
    """The gradients of `v` and `g` in `v * (g / norms)`, with the norms of `v` along all axes but `dim`."""
    axes = [axis for axis in range(v.dim()) if axis != dim % v.dim()]
    along = (gradient * v).sum(axes, keepdim=True) / norms
    return ((g / norms) * (gradient - v * (along / norms))).to(v.dtype), along.to(g.dtype)


def _isin(x: Any, y: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    """Tells of each element whether it is one of others, by comparing it with all of them."""
    found = (x.unsqueeze(-1) == y.reshape(-1)).any(-1)
    return ~found if invert else found


def _index_reduce(x: Any, axis: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Any:
    """`scatter_reduce` with one index for each slice."""
    if x.dim() == 0:
        return torch.scatter_reduce(x, 0, index.reshape(()), source.reshape(()), reduce, include_self=include_self)
    shape = [1] * x.dim()
    shape[axis] = -1
    places = index.reshape(shape).expand_as(source)
    return torch.scatter_reduce(x, axis, places, source, reduce, include_self=include_self)


def _window(*weights: float) -> Callable[..., Any]:
    """A window that is a sum of cosines."""

    def window(size: int, periodic: bool = True, *, dtype: Any = None, **_: Any) -> Any:
        kind = dtype or torch.get_default_dtype()
        if size == 1:
            return torch.ones(1, dtype=kind)
        place = torch.arange(size, dtype=kind) * (2 * math.pi / (size if periodic else size - 1))
        found = torch.full((size,), weights[0], dtype=kind)
        for number, weight in enumerate(weights[1:], 1):
            found = found + weight * torch.cos(place * number)
        return found

    return window


def _kaiser(size: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None, **_: Any) -> Any:
    kind = dtype or torch.get_default_dtype()
    if size == 1:
        return torch.ones(1, dtype=kind)
    half = (size if periodic else size - 1) / 2
    place = (torch.arange(size, dtype=kind) - half) / half
    return torch.i0(beta * torch.sqrt(1 - place * place)) / torch.i0(torch.full((), beta, dtype=kind))


def _multiple(x: Any, y: Any) -> Any:
    """The least common multiple."""
    divisor = torch.gcd(x, y)
    return torch.abs(torch.div(x, torch.where(divisor == 0, 1, divisor), rounding_mode="trunc") * y)


def _multinomial(x: Any, count: Any, replacement: bool = False, *, generator: Any = None) -> Any:
    """Places drawn with probabilities that are proportional to elements: the largest of them over exponential numbers.

    With `replacement`, more than one is where a uniform number falls among running sums.
    """
    own = x.float() if x.dtype in HALVES else x
    if replacement and not (isinstance(count, int) and count == 1):
        sums = own.cumsum(-1)
        drawn = torch.rand([*x.shape[:-1], count], dtype=own.dtype) * sums[..., -1:]
        return torch.searchsorted(sums, drawn, right=True).clamp(max=x.shape[-1] - 1)
    waits = (-torch.log1p(-torch.rand(x.shape, dtype=own.dtype))).clamp(min=torch.finfo(own.dtype).tiny)
    return torch.topk(own / waits, count)[1]


def _bartlett(size: int, periodic: bool = True, *, dtype: Any = None, **_: Any) -> Any:
    kind = dtype or torch.get_default_dtype()
    if size == 1:
        return torch.ones(1, dtype=kind)
    place = torch.arange(size, dtype=kind) * (2 / (size if periodic else size - 1))
    return torch.where(place <= 1, place, 2 - place)


def _pinv(x: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    """The pseudo-inverse by singular values, of which those below a tolerance are 0."""
    u, s, v = torch.linalg.svd(x, full_matrices=False)
    least = torch.zeros((), dtype=s.dtype) if atol is None else atol
    if rtol is None:
        size = torch.sym_max(x.shape[-2], x.shape[-1])
        own = torch.full((), torch.finfo(s.dtype).eps, dtype=s.dtype) * size
        rtol = own if atol is None else torch.where(atol > 0, 0.0, own)
    edge = torch.maximum(least.unsqueeze(-1), rtol.unsqueeze(-1) * s.amax(-1, keepdim=True))
    inverse = torch.where(s > edge, s.reciprocal(), 0.0)
    return v.mT @ (inverse.unsqueeze(-1) * u.mT)


_OWN: dict[Any, Callable[..., Any]] = {
    torch.ops.aten._trilinear.default: _trilinear,
    torch.ops.aten.round.decimals: _round_decimals,
    torch.ops.aten._cdist_backward.default: _cdist_backward,
    torch.ops.aten._pdist_backward.default: _pdist_backward,
    torch.ops.aten._weight_norm_interface_backward.default: _weight_norm_backward,
    torch.ops.aten.isin.Tensor_Tensor: _isin,
    torch.ops.aten.rrelu_with_noise_functional.default: _rrelu,
    torch.ops.aten.index_reduce.default: _index_reduce,
    torch.ops.aten.bartlett_window.default: _bartlett,
    torch.ops.aten.bartlett_window.periodic: _bartlett,
    torch.ops.aten.blackman_window.default: _window(0.42, -0.5, 0.08),
    torch.ops.aten.blackman_window.periodic: _window(0.42, -0.5, 0.08),
    torch.ops.aten.hamming_window.default: _window(0.54, -0.46),
    torch.ops.aten.hamming_window.periodic: _window(0.54, -0.46),
    torch.ops.aten.kaiser_window.default: _kaiser,
    torch.ops.aten.kaiser_window.periodic: _kaiser,
    torch.ops.aten.kaiser_window.beta: _kaiser,
    torch.ops.aten.lcm.default: _multiple,
    torch.ops.aten.multinomial.default: _multinomial,
    torch.ops.aten.linalg_cholesky.default: lambda x, *, upper=False: torch.linalg.cholesky_ex(x, upper=upper)[0],
    torch.ops.aten.linalg_inv.default: lambda x: torch.linalg.inv_ex(x)[0],
    torch.ops.aten.linalg_lu_factor.default: lambda x, *, pivot=True: torch.linalg.lu_factor_ex(x, pivot=pivot)[:2],
    torch.ops.aten.linalg_pinv.atol_rtol_tensor: _pinv,
    torch.ops.aten.linalg_solve.default: lambda x, y, *, left=True: torch.linalg.solve_ex(x, y, left=left)[0],
}
"""Decompositions of ours, for ops of which PyTorch has none, or one into ops without a translation.

Those of linear algebra are without PyTorch's check that a matrix has an inverse or a factor, a check of elements."""

_WHOLE = frozenset({"bucketize.Scalar", "bucketize.Tensor", "complex.default", "polar.default"})
"""Ops that PyTorch decomposes into ops in place, or by numbers that it reads, which cannot be exported."""
