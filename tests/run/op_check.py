# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared by the op tests: run a JAX function compiled for all sizes, compiled for one, and by XLA, and compare.

Programs come as JAX functions with symbolic shapes ("n, 4"), or as StableHLO text with `?`; text is refined to static
shapes before XLA compiles it. Integers, booleans and moved data are compared bit for bit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import ml_dtypes
import numpy as np

import shlo_disc
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir, passmanager

BF16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = ("float32", "float64", "float16", "bfloat16")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
DTYPES = (*FLOATS, *INTEGERS, "bool")

WIDTHS = (1, 2, 15, 16, 17, 31, 32, 33, 97, 300)
"""Both sides of vectors of 16 and 32 lanes, a prime, and some hundreds."""

Spec = tuple[str, str]
Sizes = dict[str, int]
Inputs = Callable[[tuple[int, ...], str, int], np.ndarray]


def dtype_of(name: str) -> np.dtype:
    """The NumPy dtype of a name, bfloat16 included."""
    return BF16 if name == "bfloat16" else np.dtype(name)


def is_float(dtype: np.dtype) -> bool:
    """f16, bf16, f32 or f64."""
    return dtype == BF16 or dtype.kind == "f"


def random_array(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    """Floats from a normal distribution, integers from their whole range, booleans evenly."""
    rng = np.random.default_rng([seed, *shape, len(dtype)])
    kind = dtype_of(dtype)
    if is_float(kind):
        return rng.standard_normal(shape).astype(kind)
    if kind.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(kind)
    if kind == np.bool_:
        return rng.random(shape) < 0.5
    info = np.iinfo(kind)
    return rng.integers(info.min, info.max, shape, kind, endpoint=True)


def small_integers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    """Numbers from 0 to 4 of any dtype: sums and products of these are exact."""
    return np.random.default_rng([seed, *shape]).integers(0, 5, shape).astype(dtype_of(dtype))


# ---- comparing ------------------------------------------------------------------------------------------------------


def assert_same(got: Any, want: Any, ulps: float = 0.0, scale: Any = None, floor: float = 0.0) -> None:
    """Leaves agree in dtype, shape and value, floats within `ulps` units of the last place of `want`, or of `scale`.

    Elements below `floor` are measured as if they were of that size.

    Results smaller than the smallest normal number may differ by it: XLA flushes them to zero.
    """
    got_leaves, want_leaves = jax.tree.leaves(got), jax.tree.leaves(want)
    scales = [None] * len(want_leaves) if scale is None else jax.tree.leaves(scale)
    assert len(got_leaves) == len(want_leaves)
    for number, (a, b, s) in enumerate(zip(got_leaves, want_leaves, scales, strict=True)):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape), f"result {number}: {a.dtype}{a.shape}, not {b.dtype}{b.shape}"
        wrong = different(a, b, ulps, np.asarray(floor if s is None else s))
        if wrong.any():
            where = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise AssertionError(
                f"result {number}: {wrong.sum()} of {wrong.size} elements differ, first at {where}: "
                f"{a[where]!r}, not {b[where]!r}"
            )


def different(got: np.ndarray, want: np.ndarray, ulps: float, scale: np.ndarray) -> np.ndarray:
    """The elements that differ by more than the tolerance; NaN equals NaN, zeros differ in sign only if `ulps` is 0.

    Parts of complex numbers are measured against the number's magnitude.
    """
    if want.dtype.kind == "c":
        size = np.maximum(np.abs(scale), np.abs(want))
        return different(got.real, want.real, ulps, size) | different(got.imag, want.imag, ulps, size)
    if not is_float(want.dtype):
        return np.asarray(got != want)
    nan = np.isnan(want)
    if ulps == 0:
        bits = f"u{want.dtype.itemsize}"
        same = got.view(bits) == want.view(bits) if want.ndim else got.tobytes() == want.tobytes()
        return np.asarray(~(same | (nan & np.isnan(got))))
    info = ml_dtypes.finfo(want.dtype)
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(scale.astype(np.float64)), np.abs(want.astype(np.float64)))
        step = np.where(np.isfinite(size), np.maximum(size * float(info.eps), float(info.tiny)), 0)
        close = np.abs(got.astype(np.float64) - want.astype(np.float64)) <= ulps * step
        return np.asarray(~(close | (got == want) | (nan & np.isnan(got))))


# ---- JAX functions --------------------------------------------------------------------------------------------------


def shape_of(text: str, sizes: Sizes) -> tuple[int, ...]:
    """ "n, 2*m" at n=3, m=4 is (3, 8)."""
    return tuple(int(eval(part, {"__builtins__": {}}, dict(sizes))) for part in text.split(",") if part.strip())  # noqa: S307


def compile_function(
    function: Callable[..., Any], specs: Sequence[Spec], sizes: Sizes | None = None, constraints: Sequence[str] = ()
) -> Any:
    """Our compiler on a JAX function: with symbolic sizes, or at `sizes`."""
    with jax.enable_x64(True):
        if sizes is None:
            return shlo_disc.compile(function, args=tuple(specs), constraints=constraints)
        args = [jax.ShapeDtypeStruct(shape_of(text, sizes), dtype_of(dtype)) for text, dtype in specs]
        return shlo_disc.compile(function, args=args)


def run_xla(function: Callable[..., Any], arrays: Sequence[np.ndarray]) -> Any:
    """XLA's result on the CPU."""
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, jax.jit(function)(*arrays))


def check(
    function: Callable[..., Any],
    specs: Sequence[Spec],
    sizes: Iterable[Sizes],
    *,
    inputs: Inputs = random_array,
    ulps: float = 0.0,
    scaled: bool = False,
    floor: float = 0.0,
    static: int = 1,
    constraints: Sequence[str] = (),
) -> Any:
    """Compile once, run at every one of `sizes`, compare with XLA and, at `static` of the sizes, our static compile.

    `scaled`: the tolerance is relative to the function of the magnitudes, the right measure for sums and dots.
    Returns the executable.
    """
    sizes = list(sizes)
    executable = compile_function(function, specs, constraints=constraints)
    picked = sizes[len(sizes) // 2 :][:static] if sizes else []
    for number, size in enumerate(sizes):
        arrays = [inputs(shape_of(text, size), dtype, number + 10 * i) for i, (text, dtype) in enumerate(specs)]
        got, want = executable(*arrays), run_xla(function, arrays)
        scale = run_xla(function, [_magnitude(a) for a in arrays]) if scaled else None
        try:
            assert_same(got, want, ulps, scale, floor)
            if size in picked:
                fixed = compile_function(function, specs, size)
                assert_same(got, fixed(*arrays), ulps, scale, floor)
        except AssertionError as error:
            raise AssertionError(f"at {size}: {error}") from None
    return executable


def _magnitude(array: np.ndarray) -> np.ndarray:
    return np.abs(array).astype(array.dtype) if is_float(array.dtype) or array.dtype.kind == "c" else array


# ---- StableHLO text -------------------------------------------------------------------------------------------------


def check_text(
    text: str,
    calls: Iterable[Sequence[np.ndarray]],
    *,
    ulps: float = 0.0,
    floor: float = 0.0,
    static: int = 1,
) -> Any:
    """Compile `text`, which may have `?`; compare every call with XLA and the last `static` with a static compile."""
    calls = [list(arrays) for arrays in calls]
    executable = shlo_disc.compile(text)
    for number, arrays in enumerate(calls):
        refined = refine(text, tuple((a.shape, a.dtype.name) for a in arrays))
        got, want = executable(*arrays), run_xla_text(refined, arrays)
        try:
            assert_same(got, want, ulps, floor=floor)
            if number >= len(calls) - static:
                assert_same(got, shlo_disc.compile(refined)(*arrays), ulps, floor=floor)
        except AssertionError as error:
            raise AssertionError(f"at {[a.shape for a in arrays]}: {error}") from None
    return executable


_MLIR = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "bool": "i1",
    "complex64": "complex<f32>", "complex128": "complex<f64>",
}  # fmt: skip


def mlir_dtype(name: str) -> str:
    """ "float32" -> "f32", "uint8" -> "ui8"."""
    return _MLIR.get(name) or name.replace("uint", "ui").replace("int", "i").replace("ui", "ui")


def tensor_text(shape: Iterable[Any], dtype: str) -> str:
    """`tensor<2x?xf32>`."""
    return f"tensor<{'x'.join([*map(str, shape), mlir_dtype(dtype)])}>"


@functools.cache
def refine(text: str, arguments: tuple[tuple[tuple[int, ...], str], ...]) -> str:
    """The static program that `text` is for arguments of these shapes and dtypes."""
    types = ",".join(tensor_text(shape, dtype) for shape, dtype in arguments)
    passes = (
        f"builtin.module(inline,stablehlo-refine-arguments{{types={types}}},stablehlo-refine-shapes,"
        "func.func(stablehlo-canonicalize-dynamism),canonicalize)"
    )
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        if "?" in text:
            passmanager.PassManager.parse(passes).run(module.operation)
        return str(module)


def run_xla_text(text: str, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """XLA's results of a static StableHLO program."""
    from jax._src import compiler, xla_bridge

    backend = xla_bridge.get_backend("cpu")
    with jax.enable_x64(True):
        options = compiler.get_compile_options(1, 1)
        loaded = backend.compile_and_load(text, backend.local_devices()[:1], options)
        results = loaded.execute([jax.numpy.asarray(a) for a in arrays])
        return [np.asarray(r) for r in results]


class OnlyDlpack:
    """An array of a library that offers DLPack and nothing else."""

    def __init__(self, array: np.ndarray):
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()
