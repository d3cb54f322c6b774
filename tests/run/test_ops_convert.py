# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`convert` between every pair of dtypes: saturation, NaN, rounding to even, wrapping of integers."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

import shlo_disc
from tests.run.op_check import (
    DTYPES,
    FLOATS,
    WIDTHS,
    assert_same,
    compile_function,
    dtype_of,
    is_float,
    mlir_dtype,
    run_xla,
)

SPECIAL = (0.0, -0.0, 0.4, -0.4, 0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 127.0, 127.9, 128.0, -128.0, -128.9, -129.0, 255.0,
           255.9, 256.0, 257.0, 32767.0, 32767.6, 32768.0, -32769.0, 65503.0, 65535.0, 65536.0, 2147483520.0,
           2147483647.0, 2147483648.0, -2147483648.0, -2147483649.0, 4294967040.0, 4294967296.0, 9.2e18, 9.3e18,
           -9.3e18, 1.8e19, 1.9e19, 3e38, 1e300, -1e300, np.inf, -np.inf, np.nan, 1.0009765625, 1.00048828125, 2049.0,
           16777217.0)  # fmt: skip


def samples(dtype: str) -> np.ndarray:
    """The limits of every other dtype and their neighbours, then random numbers of all magnitudes."""
    kind = dtype_of(dtype)
    rng = np.random.default_rng(5)
    if kind == np.bool_:
        return rng.random(400) < 0.5
    if is_float(kind):
        numbers = np.concatenate([SPECIAL, rng.standard_normal(500) * np.exp2(rng.integers(-20, 40, 500))])
        with np.errstate(over="ignore", invalid="ignore"):
            return numbers.astype(kind)
    info = np.iinfo(kind)
    limits = [n + d for n in (0, 127, 128, 255, 32767, 65535, 2**24, 2**31, 2**53, 2**62) for d in (-1, 0, 1)]
    edge = [n for s in (1, -1) for n in (s * m for m in limits) if info.min <= n <= info.max]
    edge += [info.min, info.min + 1, info.max, info.max - 1]
    return np.concatenate([np.array(edge, kind), rng.integers(info.min, info.max, 400, kind, endpoint=True)])


@pytest.mark.parametrize("source", DTYPES)
def test_convert_to_every_dtype(source: str) -> None:
    def everything(x: jax.Array) -> dict[str, jax.Array]:
        return {target: lax.convert_element_type(x, dtype_of(target)) for target in DTYPES}

    x = samples(source)
    with np.errstate(all="ignore"):
        want = run_xla(everything, (x,))
    vector, matrix = (compile_function(everything, [(s, source)]) for s in ("n", "m, n"))
    static = compile_function(everything, [("n", source)], {"n": x.size})
    compare(static(x), want, np.arange(x.size), (x.size,))
    for number, width in enumerate((*WIDTHS, x.size)):
        where = (np.arange(width) + 37 * number) % x.size
        compare(vector(x[where]), want, where, (width,))
    for number, shape in enumerate([(3, 1), (2, 33), (17, 15)]):
        where = (np.arange(shape[0] * shape[1]) + 37 * number) % x.size
        compare(matrix(x[where].reshape(shape)), want, where, shape)


def compare(got: Any, want: Any, where: np.ndarray, shape: tuple[int, ...]) -> None:
    for target in want:
        try:
            assert_same(got[target], want[target][where].reshape(shape))
        except AssertionError as error:
            raise AssertionError(f"to {target} at {shape}: {error}") from None


@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
def test_every_half_float_keeps_its_bits_when_moved(dtype: str) -> None:
    """Signalling NaNs included: moving data is not arithmetic."""
    text = """func.func @main(%x: tensor<?x?xT>) -> (tensor<?x?xT>, tensor<?x?xT>, tensor<?x?xT>) {
      %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<?x?xT>) -> tensor<?x?xT>
      %r = stablehlo.reverse %x, dims = [1] : tensor<?x?xT>
      return %t, %r, %x : tensor<?x?xT>, tensor<?x?xT>, tensor<?x?xT> }"""
    executable = shlo_disc.compile(text.replace("T", mlir_dtype(dtype)))
    bits = np.arange(1 << 16, dtype=np.uint16).reshape(-1, 64)
    got = executable(bits.view(dtype_of(dtype)))
    for array, want in zip(got, (bits.T, bits[:, ::-1], bits), strict=True):
        np.testing.assert_array_equal(np.ascontiguousarray(array).view(np.uint16), want)


@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("source", ("float16", "bfloat16"))
def test_every_half_float_converts_exactly_as_xla(source: str, target: str) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype_of(source))
    with np.errstate(invalid="ignore"):
        normal = x[~((np.abs(x) < 2.0**-14) & (x != 0)) & ~np.isnan(x)]

    def function(x: jax.Array) -> jax.Array:
        return lax.convert_element_type(x, dtype_of(target))

    assert_same(compile_function(function, [("n", source)])(normal), run_xla(function, (normal,)))
