# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of single ops on complex numbers, and of Fourier transforms."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tests.pytorch.ops import Case, Function

_TWICE = (torch.complex128, torch.complex128, torch.complex128)


def _of(function: Function, *shapes: str, **others: Any) -> Case:
    """A case of complex64, unless kinds= says otherwise."""
    kinds = others.pop("kinds", (torch.complex64,) * len(shapes))
    return Case(function, shapes, kinds=kinds, **others)


_MIXED = (torch.complex64, torch.float32)
_INDEXED = (torch.complex64, torch.int64)
_MASKED = (torch.complex64, torch.bool)
_REAL = (torch.float32, torch.float32)

UNARY = [
    "abs", "angle", "real", "imag", "conj", "conj_physical", "resolve_conj", "view_as_real", "sgn", "neg", "positive",
    "reciprocal", "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "sinh",
    "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "sigmoid", "square", "isnan", "isinf",
    "isfinite", "isreal", "logical_not", "sum", "prod", "var", "count_nonzero",
]  # fmt: skip
"""Functions of one complex tensor."""

_CASES: dict[str, Case] = {name: _of(getattr(torch, name), "b, t") for name in UNARY}
_CASES |= {f"{name} of doubles": _of(getattr(torch, name), "b, t", kinds=_TWICE) for name in UNARY}
_CASES |= {
    name: _of(getattr(torch, name), "b, t", "t")
    for name in ("add", "sub", "mul", "div", "eq", "ne", "pow", "logical_and", "logical_or", "logical_xor")
}
_CASES |= {
    f"{name} of doubles": _of(getattr(torch, name), "b, t", "b, t", kinds=_TWICE) for name in ("mul", "div", "pow")
}
_CASES |= {
    "complex": _of(torch.complex, "b, t", "b, t", kinds=_REAL),
    "polar": _of(torch.polar, "b, t", "b, t", kinds=_REAL),
    "view_as_complex": _of(torch.view_as_complex, "b, t, 2", kinds=_REAL),
    "angle of reals": _of(torch.angle, "b, t", kinds=_REAL),
    "angle of integers": _of(torch.angle, "b, t", kinds=(torch.int64,)),
    "parts": _of(lambda x: x.real * x.imag, "b, t"),
    "conjugates of conjugates": _of(lambda x: x.conj().conj() * x.conj() + x.mH.mT, "b, t"),
    "parts of conjugates": _of(lambda x: x.conj().imag * 2 + x.conj().real, "b, t"),
    "conjugate transpose": _of(lambda x: x.mH @ x, "b, t"),
    "conjugate of reals": _of(lambda x: x.conj() + 1, "b, t", kinds=_REAL),
    # conversions
    "to doubles": _of(lambda x: x.to(torch.complex128) * 2, "b, t"),
    "from doubles": _of(lambda x: x.to(torch.complex64), "b, t", kinds=_TWICE),
    "from reals": _of(lambda x: x.to(torch.complex64) * 2j, "b, t", kinds=_REAL),
    "from integers": _of(lambda x: x.to(torch.complex64) * 2j, "b, t", kinds=(torch.int64,)),
    "from booleans": _of(lambda x: x.to(torch.complex128), "b, t", kinds=(torch.bool,)),
    "to reals": _of(lambda x: x.to(torch.float32), "b, t"),
    "to integers": _of(lambda x: x.to(torch.int32), "b, t"),
    "to booleans": _of(lambda x: torch.where(x.real > 0, x, 0).to(torch.bool), "b, t"),
    # numbers
    "reals and a complex number": _of(lambda x: x * (1 + 2j) - 3j, "b, t", kinds=_REAL),
    "complex and real": _of(lambda x, y: x * y + y / x, "b, t", "t", kinds=_MIXED),
    "complex and integers": _of(lambda x, y: x * y - y, "b, t", "t", kinds=_INDEXED),
    "add with alpha": _of(lambda x, y: torch.add(x, y, alpha=0.5 - 2j), "b, t", "b, t"),
    "rsub": _of(lambda x: (2 - 1j) - x, "b, t"),
    "divided by numbers": _of(lambda x: x / (1 + 2j) + 2 / x, "b, t"),
    "times a size": _of(lambda x: x * x.shape[0] + x.shape[1], "b, t"),
    "times a fraction of a size": _of(
        lambda x: x * (1 / x.shape[1]) + x.sum(1, keepdim=True) / x.shape[0], "b, t", least=1
    ),
    "compared with a number": _of(lambda x: (x * 0 + 1j) == 1j, "b, t"),
    "reals compared with a number": _of(lambda x: x != 1j, "b, t", kinds=_REAL),
    "full": _of(lambda x: torch.full((x.shape[0], 3), 1.5 - 2j), "b"),
    "ones": _of(lambda x: torch.ones_like(x) + torch.zeros_like(x), "b, t"),
    "square power": _of(lambda x: x**2 + x**3 + x**0 + x**1, "b, t"),
    "negative powers": _of(lambda x: x**-1 + x**-2, "b, t", kinds=_TWICE),
    "root": _of(lambda x: x**0.5, "b, t"),
    "power of a number": _of(lambda x: torch.pow(2.0, x), "b, t"),
    "power by a number": _of(lambda x: x ** (0.5 + 1j), "b, t"),
    "power of reals": _of(lambda x: x ** (0.5 + 1j), "b, t", kinds=_REAL),
    "sinc": _of(torch.sinc, "b, t"),
    # choices and places
    "where": _of(torch.where, "b, t", "b, t", "t", kinds=(torch.bool, torch.complex64, torch.complex64)),
    "where with numbers": _of(lambda x: torch.where(x.real > 0, x, 2j), "b, t"),
    "masked_fill": _of(lambda x, m: x.masked_fill(m, -1j), "b, t", "b, t", kinds=_MASKED),
    "cat": _of(lambda x, y: torch.cat([x, y, x], 1), "b, t", "b, u"),
    "cat with reals": _of(lambda x, y: torch.cat([x, y], 0), "b, 4", "t, 4", kinds=_MIXED),
    "stack": _of(lambda x, y: torch.stack([x, y], 1), "b, t", "b, t"),
    "pad": _of(lambda x: F.pad(x, (1, 2, 0, 3), value=2.0), "b, t"),
    "roll": _of(lambda x: torch.roll(x, 1, 0), "b, t", least=1),
    "flip": _of(lambda x: x.flip(0, 1), "b, t"),
    "repeat": _of(lambda x: x.repeat(2, 3), "b, t"),
    "slice": _of(lambda x: x[1:3, 2:], "b, t", least=4),
    "slice with a step": _of(lambda x: x[:, ::2], "b, t", least=3),
    "unbind": _of(lambda x: torch.unbind(x, 1), "b, 3, t"),
    "permute": _of(lambda x: x.permute(2, 0, 1), "b, t, 3"),
    "tril": _of(torch.tril, "b, t"),
    "diagonal": _of(lambda x: torch.diagonal(x, 1, 1, 2), "b, 4, 5"),
    "index": _of(lambda x, i: x[i], "5, b", "t, 2", kinds=_INDEXED),
    "index_select": _of(lambda x, i: torch.index_select(x, 1, i.abs()), "b, 5", "t", kinds=_INDEXED),
    "gather": _of(lambda x, i: torch.gather(x, 1, i.abs()), "b, 5", "b, t", kinds=_INDEXED, least=1),
    "index_put": _of(
        lambda x, i, v: x.index_put((i.abs(),), v, accumulate=True), "5, b", "t", "t, b",
        kinds=(torch.complex64, torch.int64, torch.complex64),
    ),
    "scatter": _of(
        lambda x, i: torch.scatter(x, 1, i.abs() * 0 + torch.arange(2), 1.5j), "b, 5", "b, 2", kinds=_INDEXED
    ),
    "scatter_add": _of(
        lambda x, i, v: torch.scatter_add(x, 0, i.abs(), v), "5, b", "t, b", "t, b",
        kinds=(torch.complex64, torch.int64, torch.complex64),
    ),
    "masked_scatter": _of(
        lambda x, m, v: x.masked_scatter(m, v), "b, t", "b, t", "b, t",
        kinds=(torch.complex64, torch.bool, torch.complex64), least=1,
    ),
    "as_strided": _of(lambda x: torch.as_strided(x.contiguous() * 1, (2, 3), (1, 2), 1), "b, 8", least=1),
    "a part written": _of(lambda x: _with_real_part(x, x.imag * 2), "b, t"),
    # reductions
    "sum of reals": _of(lambda x: x.sum(0, dtype=torch.complex64), "b, t", kinds=_REAL),
    "sum along": _of(lambda x: x.sum(1), "b, t"),
    "sum kept": _of(lambda x: x.sum((0, 2), keepdim=True), "b, t, 3"),
    "mean along": _of(lambda x: x.mean(-1), "b, t, 6"),
    "mean": _of(torch.mean, "5, 3"),
    "prod along": _of(lambda x: x.prod(1), "b, t", low=0.2, high=0.8),
    "var along": _of(lambda x: x.var(1), "b, t", least=1),
    "std of the population": _of(lambda x: x.std(0, unbiased=False), "b, t", least=1),
    "var_mean": _of(lambda x: torch.var_mean(x, 1), "b, 6", least=1),
    "cumsum": _of(lambda x: torch.cumsum(x, 1), "b, t"),
    "cumprod": _of(lambda x: torch.cumprod(x, 0), "b, t", low=0.2, high=0.8),
    "any": _of(lambda x: x.any(1), "b, t"),
    "all": _of(lambda x: x.all(0), "b, t"),
    "norm": _of(lambda x: torch.linalg.vector_norm(x, dim=1), "b, t"),
    # products
    "mm": _of(torch.mm, "b, t", "t, 5"),
    "mm of doubles": _of(torch.mm, "b, t", "t, 5", kinds=_TWICE),
    "bmm": _of(torch.bmm, "b, t, 4", "b, 4, u"),
    "mv": _of(torch.mv, "b, t", "t"),
    "dot": _of(torch.dot, "b", "b"),
    "vdot": _of(torch.vdot, "b", "b"),
    "addmm": _of(lambda c, x, y: torch.addmm(c, x, y, beta=0.5j, alpha=2), "5", "b, t", "t, 5"),
    "baddbmm": _of(torch.baddbmm, "b, t, u", "b, t, 4", "b, 4, u"),
    "linear": _of(F.linear, "b, t, 6", "5, 6", "5"),
    "matmul": _of(torch.matmul, "b, 1, t, 4", "3, 4, u"),
    "einsum": _of(lambda x, y: torch.einsum("bik,bjk->bij", x, y.conj()), "b, t, 4", "b, u, 4"),
    "outer": _of(torch.outer, "b", "t"),
    "conv1d": _of(lambda x, w, c: F.conv1d(x, w, c, padding=1), "b, 3, t", "4, 3, 3", "4", least=1),
    # transforms
    "fft": _of(torch.fft.fft, "b, t", least=1),
    "fft of the first axis": _of(lambda x: torch.fft.fft(x, dim=0), "t, b, 3", least=1),
    "fft of doubles": _of(lambda x: torch.fft.fft(x, norm="ortho"), "b, t", kinds=_TWICE, least=1),
    "fft of reals": _of(torch.fft.fft, "b, t", kinds=_REAL, least=1),
    "fft of integers": _of(torch.fft.fft, "b, t", kinds=(torch.int64,), least=1),
    "fft of a number of elements": _of(torch.fft.fft, "b, 12", least=1),
    "ifft": _of(torch.fft.ifft, "b, t", least=1),
    "ifft by the root": _of(lambda x: torch.fft.ifft(x, norm="ortho"), "b, t", least=1),
    "ifft without a factor": _of(lambda x: torch.fft.ifft(x, norm="forward"), "b, t", least=1),
    "fft by the number": _of(lambda x: torch.fft.fft(x, norm="forward"), "b, t", least=1),
    "fft2": _of(torch.fft.fft2, "3, b, t", least=1),
    "fftn": _of(torch.fft.fftn, "b, t, 3, u", least=1),
    "ifftn of two axes": _of(lambda x: torch.fft.ifftn(x, dim=(0, 2), norm="ortho"), "4, t, u", least=1),
    "rfft": _of(torch.fft.rfft, "b, t", kinds=_REAL, least=1),
    "rfft by the root": _of(lambda x: torch.fft.rfft(x, dim=0, norm="ortho"), "t, 6", kinds=_REAL, least=1),
    "rfft of doubles": _of(torch.fft.rfft, "b, t", kinds=(torch.float64,), least=1),
    "rfft2": _of(torch.fft.rfft2, "3, b, t", kinds=_REAL, least=1),
    "rfftn": _of(torch.fft.rfftn, "b, 2, t, u", kinds=_REAL, least=1),
    "irfft": _of(torch.fft.irfft, "b, t", least=2),
    "irfft of a size": _of(lambda x: torch.fft.irfft(torch.fft.rfft(x), n=x.shape[1]), "b, t", kinds=_REAL, least=1),
    "irfft of a number of elements": _of(lambda x: torch.fft.irfft(x, n=9, norm="forward"), "b, 5", least=1),
    "irfft2": _of(torch.fft.irfft2, "b, t, u", least=2),
    "irfftn": _of(lambda x: torch.fft.irfftn(x, norm="ortho"), "7, 2, t, u", least=2),
    "hfft": _of(torch.fft.hfft, "b, t", least=2),
    "ihfft": _of(torch.fft.ihfft, "b, t", kinds=_REAL, least=1),
    "padded fft": _of(lambda x: torch.fft.fft(x, n=2 * x.shape[1]), "b, t", least=1),
    "fftshift": _of(lambda x: torch.fft.ifftshift(torch.fft.fftshift(x) * 2, 1), "b, t", least=1),
    "convolution by transforms": _of(
        lambda x, y: torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(y), n=x.shape[1]), "b, t", "b, t", kinds=_REAL,
        least=1,
    ),
    "unfold": _of(lambda x: x.unfold(1, 3, 2), "b, t, 2", kinds=_REAL, least=5),
    "stft": _of(
        lambda x, w: torch.stft(x, 6, 2, window=w, return_complex=True), "b, t", "6", kinds=_REAL, least=6
    ),
    "stft of a vector": _of(
        lambda x, w: torch.stft(x, 6, 2, 5, w, center=False, normalized=True, return_complex=True), "t", "5",
        kinds=_REAL, least=8,
    ),
    "stft of both sides": _of(
        lambda x: torch.view_as_real(torch.stft(x, 4, onesided=False, return_complex=True)), "b, t", kinds=_REAL,
        least=5,
    ),
    "istft": _of(lambda x, w: torch.istft(x, 6, 2, window=w.abs() + 1), "b, 4, t", "6", kinds=_MIXED, least=3),
    "istft of a length": _of(
        lambda x, w: torch.istft(x, 6, 2, window=w.abs() + 1, length=7), "b, 4, t", "6", kinds=_MIXED,
        least=4,
    ),
}  # fmt: skip

COMPLEX = {f"complex {name}": case for name, case in _CASES.items()}


def _with_real_part(x: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
    """A copy with another real part, written in place."""
    found = x.clone()
    found.real.copy_(part)
    return found
