# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of JAX that ask for sizes as numbers, or for sizes that only data have."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

import shlo_disc
import shlo_disc.numpy
from shlo_disc.errors import ProgramError

from .case import Case, Numbers, value_of

VALUES = np.array([3, 1, 4, 1, 5, 9], np.float32)
VECTOR = ("n", "float32")


def compiled(function: Callable[..., Any], *args: Any, constraints: tuple[str, ...] = ()) -> Any:
    """The executable of a function."""
    return shlo_disc.compile(function, args=args or (VECTOR,), constraints=constraints)


class RepeatByData(Case):
    error = jax.errors.ConcretizationTypeError
    remedy = r"total_repeat_length=: a number, or the size of an argument, such as (total_repeat_length)=y\.shape\[0\]"

    def provoke(self) -> Any:
        return compiled(lambda x, counts: jnp.repeat(x, counts), VECTOR, ("n", "int32"))

    def follow(self, found: re.Match[str]) -> Numbers:
        counts = np.array([1, 2, 0, 1, 3, 1], np.int32)
        repeat = compiled(
            lambda x, counts, y: jnp.repeat(x, counts, **{found[1]: y.shape[0]}),
            VECTOR,
            ("n", "int32"),
            ("m", "float32"),
        )
        return repeat(VALUES, counts, np.zeros(8, np.float32)), np.repeat(VALUES, counts)


class AssociativeScan(Case):
    error = ProgramError
    remedy = r"use jax\.numpy\.cumsum, .* jax\.lax\.(cummax), .* and jax\.lax\.(scan) otherwise"

    def provoke(self) -> Any:
        return compiled(lambda x: jax.lax.associative_scan(jnp.maximum, x))

    def follow(self, found: re.Match[str]) -> Numbers:
        largest, scan = (getattr(jax.lax, name) for name in found.groups())
        decayed = compiled(lambda x: (largest(x), scan(lambda c, v: (c / 2 + v,) * 2, jnp.zeros(()), x)[1]))
        first, second = decayed(VALUES)
        sums, total = [], 0.0
        for value in VALUES:
            sums.append(total := total / 2 + float(value))
        return np.stack([first, second]), np.stack([np.maximum.accumulate(VALUES), sums])


class Stft(Case):
    error = jax.errors.ConcretizationTypeError
    remedy = r"x\[starts\[:, None\] \+ jax\.numpy\.arange\(width\)\], and transform them by jax\.numpy\.fft\.(rfft)"

    def provoke(self) -> Any:
        return compiled(lambda x: jax.scipy.signal.stft(x, nperseg=4)[2], constraints=("n >= 4",))

    def follow(self, found: re.Match[str]) -> Numbers:
        def spectra(x: Any) -> Any:
            starts = jnp.arange((x.shape[0] - 4) // 2 + 1) * 2
            return getattr(jnp.fft, found[1])(x[starts[:, None] + jnp.arange(4)])

        frames = np.lib.stride_tricks.sliding_window_view(VALUES, 4)[::2]
        return compiled(spectra, constraints=("n >= 4",))(VALUES), np.fft.rfft(frames)


class InverseTransform(Case):
    error = Exception
    remedy = r"at least one element there: state it by constraints=(\(.*?,\))"

    def provoke(self) -> Any:
        return compiled(jnp.fft.irfft, ("n", "complex64"))

    def follow(self, found: re.Match[str]) -> Numbers:
        inverse = compiled(jnp.fft.irfft, ("n", "complex64"), constraints=value_of(found[1]))
        return inverse(VALUES.astype(np.complex64)), np.fft.irfft(VALUES)


class UniqueByData(Case):
    error = jax.errors.ConcretizationTypeError
    remedy = r"write shlo_disc\.numpy\.(unique) in place of jax\.numpy\.unique"

    def provoke(self) -> Any:
        return compiled(jnp.unique)

    def follow(self, found: re.Match[str]) -> Numbers:
        return compiled(getattr(shlo_disc.numpy, found[1]))(VALUES), np.unique(VALUES)


class SliceByData(Case):
    error = IndexError
    remedy = r"write shlo_disc\.numpy\.(\w+)\(x, jax\.numpy\.arange\(x\.shape\[0\]\) < stop\)"

    def provoke(self) -> Any:
        return compiled(lambda x: x[: jnp.argmax(x)])

    def follow(self, found: re.Match[str]) -> Numbers:
        select = getattr(shlo_disc.numpy, found[1])
        return compiled(lambda x: select(x, jnp.arange(x.shape[0]) < jnp.argmax(x)))(VALUES), VALUES[:5]


class UnevenSplit(Case):
    error = ValueError
    remedy = r'write "(2\*n)" in place of "n"'

    def provoke(self) -> Any:
        return compiled(lambda x: jnp.split(x, 2)[1])

    def follow(self, found: re.Match[str]) -> Numbers:
        return compiled(lambda x: jnp.split(x, 2)[1], (found[1], "float32"))(VALUES), VALUES[3:]


class Permutation(Case):
    error = ProgramError
    remedy = r"sort by random numbers: x\[jax\.numpy\.argsort\(jax\.random\.uniform\(key, x\.shape\[:1\]\)\)\]"
    key: ClassVar[Any] = jax.random.key(0)

    def provoke(self) -> Any:
        return compiled(lambda x: jax.random.permutation(self.key, x))

    def follow(self, found: re.Match[str]) -> Numbers:
        shuffled = compiled(lambda x: x[jnp.argsort(jax.random.uniform(self.key, x.shape[:1]))])(VALUES)
        return np.sort(shuffled), np.sort(VALUES)


class BranchOnData(Case):
    error = jax.errors.TracerBoolConversionError
    remedy = r"jax\.numpy\.(where)\(condition, a, b\), or run one of two functions with jax\.lax\.(cond)"

    def provoke(self) -> Any:
        return compiled(lambda x: x if x.sum() > 0 else -x)

    def follow(self, found: re.Match[str]) -> Numbers:
        choose, run_one = getattr(jnp, found[1]), getattr(jax.lax, found[2])
        both = compiled(lambda x: choose(x.sum() > 0, x, -x) + run_one(x.sum() > 0, jnp.sin, jnp.cos, x))
        return both(VALUES), VALUES + np.sin(VALUES)


class SizeByFraction(Case):
    error = jax.errors.ConcretizationTypeError
    remedy = r"x\.shape\[0\] \* (\d) // (\d) in place of int"

    def provoke(self) -> Any:
        return compiled(lambda x: x[: int(x.shape[0] * 0.75)])

    def follow(self, found: re.Match[str]) -> Numbers:
        factor, divisor = map(int, found.groups())
        return compiled(lambda x: x[: x.shape[0] * factor // divisor])(VALUES), VALUES[:4]


class TwoNamesForOneSize(Case):
    error = TypeError
    remedy = r"where m and n are equal, give both one name .*or state constraints=(\(.*?,\))"

    def provoke(self) -> Any:
        return compiled(jnp.add, VECTOR, ("m", "float32"))

    def follow(self, found: re.Match[str]) -> Numbers:
        add = compiled(jnp.add, VECTOR, ("m", "float32"), constraints=value_of(found[1]))
        return add(VALUES, VALUES), 2 * VALUES


class TwoNamesInProduct(TwoNamesForOneSize):
    def provoke(self) -> Any:
        return compiled(lambda x, y: x @ y, ("n", "float32"), ("m", "float32"))


class NameForNumber(Case):
    error = TypeError
    remedy = r"where n is always (\d), write that number in its place"

    def provoke(self) -> Any:
        return compiled(lambda x: x + jnp.ones(6))

    def follow(self, found: re.Match[str]) -> Numbers:
        return compiled(lambda x: x + jnp.ones(6), (found[1], "float32"))(VALUES), VALUES + 1


class MultipleOfProduct(Case):
    error = Exception
    remedy = r'write "(\d\*k)" in place of "k"'

    def provoke(self) -> Any:
        return compiled(lambda x: x.reshape(-1, 4), ("k, 2", "float32"))

    def follow(self, found: re.Match[str]) -> Numbers:
        pairs = VALUES[:4].reshape(2, 2)
        return compiled(lambda x: x.reshape(-1, 4), (f"{found[1]}, 2", "float32"))(pairs), VALUES[None, :4]


class ForwardMode(Case):
    error = TypeError
    remedy = r"for jax\.jvp, .*, (differentiate) the JAX function and (compile) the result"

    def provoke(self) -> Any:
        return jax.jvp(compiled(jnp.sin), (VALUES,), (VALUES,))

    def follow(self, found: re.Match[str]) -> Numbers:
        compile_ = getattr(shlo_disc, found[2])
        both = compile_(lambda x, t: jax.jvp(jnp.sin, (x,), (t,))[1], args=(VECTOR, VECTOR))
        return both(VALUES, VALUES), np.cos(VALUES) * VALUES


class SearchSorted(Case):
    error = Exception
    remedy = r"in place of jax\.numpy\.searchsorted and interp those of (shlo_disc\.numpy)"

    def provoke(self) -> Any:
        return compiled(jnp.searchsorted, VECTOR, ("m", "float32"))

    def follow(self, found: re.Match[str]) -> Numbers:
        search = {"shlo_disc.numpy": shlo_disc.numpy}[found[1]].searchsorted
        ordered = np.sort(VALUES)
        return compiled(search, VECTOR, ("m", "float32"))(ordered, VALUES), np.searchsorted(ordered, VALUES)


class GradientOfStridedConvolution(Case):
    error = ValueError
    remedy = r'such as "(2\*h \+ 1)" for one layer of .* Or use jax\.jit with the plugin'

    @staticmethod
    def gradient(x: Any) -> Any:
        w = jnp.ones((1, 1, 3), x.dtype)
        return jax.grad(lambda x: jnp.sum(jnp.sin(jax.lax.conv_general_dilated(x, w, (2,), "VALID"))))(x)

    def provoke(self) -> Any:
        return compiled(self.gradient, ("1, 1, h", "float32"), constraints=("h >= 3",))

    def follow(self, found: re.Match[str]) -> Numbers:
        x = VALUES[:5].reshape(1, 1, 5)
        return compiled(self.gradient, (f"1, 1, {found[1]}", "float32"))(x), self.gradient(x)
