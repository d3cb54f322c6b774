# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fourier transforms whose lengths are symbols: their lowering, which JAX lacks, and their transposes.

JAX's own transposes of transforms from and to real numbers branch on the parity of the length while they are traced,
and take a symbol to be odd. Those here compute which elements of half a spectrum stand for themselves alone.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jax._src.interpreters import ad, mlir
from jax._src.lax import fft as jax_fft


def lower_fft(ctx: Any, x: Any, *, fft_type: Any, fft_lengths: Sequence[Any]) -> Any:
    """The lowering rule of transforms, which is that of JAX but for lengths that are symbols."""
    if not any(export.is_symbolic_dim(length) for length in fft_lengths):
        return mlir._lowerings[jax_fft.fft_p].rule(ctx, x, fft_type=fft_type, fft_lengths=fft_lengths)
    from shlo_disc.shape_dialect.ops.fft import KINDS, TARGET

    kind = np.int64(KINDS.index(fft_type.name))
    return jax.ffi.ffi_lowering(TARGET)(ctx, x, kind=kind, rank=np.int64(len(fft_lengths)))


RULES = ((jax_fft.fft_p, lower_fft),)
"""For `jax.export`: the primitive and its rule."""


@functools.cache
def install_transposes() -> None:
    """Give JAX the transposes of this module for lengths that are symbols; others keep JAX's."""
    ad.deflinear2(jax_fft.fft_p, functools.partial(_transpose, jax_fft._fft_transpose_rule))


def _transpose(plain: Any, t: Any, operand: Any, fft_type: Any, fft_lengths: Sequence[Any]) -> Any:
    if fft_type.name not in ("RFFT", "IRFFT") or not export.is_symbolic_dim(fft_lengths[-1]):
        return plain(t, operand, fft_type, fft_lengths)
    real = jnp.finfo(t.dtype).dtype
    count = jnp.asarray(math.prod(fft_lengths), real)
    if fft_type.name == "RFFT":
        t = lax.conj(t) / _weights(t.shape[-1], fft_lengths[-1], real)
        return (count * lax.fft(t, jax_fft.FftType.IRFFT, fft_lengths),)
    spectrum = lax.fft(t, jax_fft.FftType.RFFT, fft_lengths)
    return (lax.conj(spectrum * _weights(spectrum.shape[-1], fft_lengths[-1], real) / count),)


def _weights(half: Any, length: Any, dtype: Any) -> Any:
    """Multiplicities of the first `half` elements of a spectrum in the whole one: 2, but 1 for the first, and for the
    last if the length is even."""
    position = jnp.arange(half)
    return jnp.where((position == 0) | (2 * position == length), 1, 2).astype(dtype)
