# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of JAX that divide and compare sizes, and that want the values of arrays as sizes."""

from __future__ import annotations

import functools
import re
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import ProgramError, ShapeError

from .case import Case, Numbers, value_of
from .traced import VALUES, VECTOR, compiled


class PaddedByRemainder(Case):
    error = Exception
    remedy = (
        r"round with //, not %: n up to a multiple is (-\(-n // 4\) \* 4), so pad by (-\(-n // 4\) \* 4 - n); "
        r"down it is (n // 4 \* 4)"
    )

    def provoke(self) -> Any:
        return compiled(lambda x: jnp.pad(x, (0, -x.shape[0] % 4)).reshape(-1, 4))

    def follow(self, found: re.Match[str]) -> Numbers:
        assert found.groups() == ("-(-n // 4) * 4", "-(-n // 4) * 4 - n", "n // 4 * 4")

        def rows(x: Any) -> Any:
            n = x.shape[0]
            padded = jnp.pad(x, (0, -(-n // 4) * 4 - n))
            return jnp.concatenate([padded.reshape(-1, 4), x[: n // 4 * 4].reshape(-1, 4)])

        return compiled(rows)(VALUES), [VALUES[:4], [5, 9, 0, 0], VALUES[:4]]


class MultipleAndRest(Case):
    error = Exception
    remedy = r'write "(4\*n - 2)" in place of "n"'

    def provoke(self) -> Any:
        return compiled(self.rows)

    def follow(self, found: re.Match[str]) -> Numbers:
        return compiled(self.rows, (found[1], "float32"))(VALUES), [VALUES[:4], [5, 9, 0, 0]]

    @staticmethod
    def rows(x: Any) -> Any:
        return jnp.pad(x, (0, 2)).reshape(-1, 4)


class MultipleOfSizes(Case):
    error = Exception
    remedy = r'write "(4\*b)" in place of "(b)"'

    def provoke(self) -> Any:
        return compiled(lambda x: x.reshape(-1, 4), ("a, b", "float32"))

    def follow(self, found: re.Match[str]) -> Numbers:
        x = np.arange(8, dtype=np.float32).reshape(1, 8)
        args = ("a, b".replace(found[2], found[1]), "float32")
        return compiled(lambda x: x.reshape(-1, 4), args)(x), x.reshape(-1, 4)


class QuotientOfSizes(Case):
    error = Exception
    remedy = r"in place of -1: x\.reshape\((x\.size // m), m\), which each call checks"

    def provoke(self) -> Any:
        return compiled(lambda x, y: x.reshape(-1, y.shape[0]), VECTOR, ("m", "float32"))

    def follow(self, found: re.Match[str]) -> Numbers:
        rows = compiled(lambda x, y: x.reshape(x.size // y.shape[0], y.shape[0]), VECTOR, ("m", "float32"))
        with pytest.raises(ShapeError):
            rows(VALUES, VALUES[:4])
        return rows(VALUES, VALUES[:2]), VALUES.reshape(3, 2)


class PaddedUpToNumber(Case):
    error = Exception
    remedy = r"for yours, constraints=(\(\"n <= 16\",\)) or"

    def provoke(self) -> Any:
        return compiled(self.padded)

    def follow(self, found: re.Match[str]) -> Numbers:
        return compiled(self.padded, constraints=value_of(found[1]))(VALUES), np.pad(VALUES, (0, 10))

    @staticmethod
    def padded(x: Any) -> Any:
        return jnp.pad(x, (0, 16 - x.shape[0]))


class PaddingOfTwice(PaddedUpToNumber):
    remedy = r"for yours, constraints=(\(\"n <= 8\",\)) or"

    def follow(self, found: re.Match[str]) -> Numbers:
        return compiled(self.padded, constraints=value_of(found[1]))(VALUES), np.pad(VALUES, (0, 5))

    @staticmethod
    def padded(x: Any) -> Any:
        return jnp.pad(x, (0, 17 - 2 * x.shape[0]))


class SliceUpToDifference(Case):
    error = Exception
    remedy = r"for yours, constraints=(\(\"n >= m\",\)) or"

    def provoke(self) -> Any:
        return compiled(self.first, VECTOR, ("m", "float32"))

    def follow(self, found: re.Match[str]) -> Numbers:
        first = compiled(self.first, VECTOR, ("m", "float32"), constraints=value_of(found[1]))
        return first(VALUES, VALUES[:2]), VALUES[:4]

    @staticmethod
    def first(x: Any, y: Any) -> Any:
        return x[: x.shape[0] - y.shape[0]]


class LargestOfSymbolicSize(Case):
    error = Exception
    remedy = r"for yours, constraints=(\(\"n >= 2\",\)) or"

    def provoke(self) -> Any:
        return compiled(lambda x: jax.lax.top_k(x, 2)[0])

    def follow(self, found: re.Match[str]) -> Numbers:
        return compiled(lambda x: jax.lax.top_k(x, 2)[0], constraints=value_of(found[1]))(VALUES), [9, 5]


class SmallerSize(Case):
    error = Exception
    remedy = r"traces: in place of min or max .* jax\.core\.(min_dim)\(n, 4\) or jax\.core\.(max_dim)\(n, 4\)"

    def provoke(self) -> Any:
        return compiled(lambda x: jnp.zeros(min(x.shape[0], 4)))

    def follow(self, found: re.Match[str]) -> Numbers:
        smaller, larger = (getattr(jax.core, name) for name in found.groups())
        both = compiled(lambda x: jnp.concatenate([jnp.zeros(f(x.shape[0], 4)) for f in (smaller, larger)]))
        return both(VALUES), np.zeros(10)


class LargerSize(SmallerSize):
    def provoke(self) -> Any:
        return compiled(lambda x: jnp.zeros(max(x.shape[0], 4)))


class SizeByValue(Case):
    error = TypeError
    remedy = r"write y\.(shape)\[0\], .* by (static_argnames)='(n)' of .*functools\.(partial)\("

    def provoke(self) -> Any:
        return compiled(self.function, VECTOR, ((), "int32"))

    def follow(self, found: re.Match[str]) -> Numbers:
        of_shape = compiled(lambda x, y: x.sum() + jnp.zeros(getattr(y, found[1])[0]), VECTOR, ("m", "bool"))
        static = shlo_disc.jit(self.function, dynamic="n", **{found[2]: found[3]})
        fixed = compiled(getattr(functools, found[4])(self.function, **{found[3]: 3}))
        results = [of_shape(VALUES, np.zeros(3, bool)), static(VALUES, 3), fixed(VALUES)]
        return results, np.full((3, 3), VALUES.sum())

    @staticmethod
    def function(x: Any, n: Any) -> Any:
        return x.sum() + jnp.zeros(n)


class RangeByValue(SizeByValue):
    @staticmethod
    def function(x: Any, n: Any) -> Any:
        return x.sum() + jnp.zeros([3 for _ in range(n)][0])


class ArangeByValue(SizeByValue):
    @staticmethod
    def function(x: Any, n: Any) -> Any:
        return x.sum() + 0 * jnp.arange(n)


class NumberOfArray(Case):
    error = TypeError
    remedy = r"leave out float\(\), .* write (jax\.numpy)'s functions in place of those of NumPy"

    def provoke(self) -> Any:
        return compiled(lambda x: x * float(jnp.sin(x.sum())))

    def follow(self, found: re.Match[str]) -> Numbers:
        sine = {"jax.numpy": jnp}[found[1]].sin
        return compiled(lambda x: x * sine(x.sum()))(VALUES), VALUES * np.sin(VALUES.sum())


class UnevenParts(Case):
    error = ProgramError
    remedy = r"write jax\.numpy\.split\(x, (\[.*\])\) with n = x\.shape\[0\]"

    def provoke(self) -> Any:
        return compiled(lambda x: jnp.array_split(x, 3))

    def follow(self, found: re.Match[str]) -> Numbers:
        assert found[1] == "[(n + 2) // 3, (n + 2) // 3 + (n + 1) // 3]"

        def parts(x: Any) -> Any:
            n = x.shape[0]
            return jnp.split(x, [(n + 2) // 3, (n + 2) // 3 + (n + 1) // 3])

        split, given = compiled(parts), [np.arange(n, dtype=np.float32) for n in range(1, 12)]
        assert all(list(map(np.size, split(x))) == list(map(np.size, np.array_split(x, 3))) for x in given)
        return np.concatenate(split(VALUES)), VALUES


class Covariance(Case):
    error = ProgramError
    remedy = (
        r"squeeze\(x, (axis)=1\)\..* with c = x - x\.(mean)\(1, keepdims=True\), "
        r"the covariance is c @ c\.T / \(x\.shape\[1\] - 1\)"
    )

    def provoke(self) -> Any:
        return compiled(jnp.cov, ("s, n", "float32"))

    def follow(self, found: re.Match[str]) -> Numbers:
        def covariance(x: Any) -> Any:
            c = x - getattr(x, found[2])(1, keepdims=True)
            return jnp.squeeze((c @ c.T / (x.shape[1] - 1))[None], **{found[1]: 0})

        x = np.stack([VALUES, VALUES[::-1]])
        return compiled(covariance, ("s, n", "float32"))(x), np.cov(x)


class CountsOfData(Case):
    error = jax.errors.ConcretizationTypeError
    remedy = r"by length=: a number, or the size of an argument, such as (length)=y\.shape\[0\]"

    def provoke(self) -> Any:
        return compiled(jnp.bincount, ("n", "int32"))

    def follow(self, found: re.Match[str]) -> Numbers:
        count = compiled(lambda x, y: jnp.bincount(x, **{found[1]: y.shape[0]}), ("n", "int32"), ("m", "bool"))
        return count(VALUES.astype(np.int32), np.zeros(12, bool)), np.bincount(VALUES.astype(int), minlength=12)


class PaddingOfConvolution(Case):
    error = ValueError
    remedy = r"'SAME' or '(VALID)': for others, pad by jax\.numpy\.(pad) before it"

    def provoke(self) -> Any:
        return compiled(self.convolved, VECTOR, ("m", "float32"))

    def follow(self, found: re.Match[str]) -> Numbers:
        def convolved(x: Any, w: Any) -> Any:
            padded = getattr(jnp, found[2])(x, w.shape[0] - 1)
            return jax.lax.conv_general_dilated(padded[None, None], w[None, None, ::-1], (1,), found[1])[0, 0]

        w = np.array([1, 2, 3], np.float32)
        return compiled(convolved, VECTOR, ("m", "float32"))(VALUES, w), np.convolve(VALUES, w)

    @staticmethod
    def convolved(x: Any, w: Any) -> Any:
        k = w.shape[0] - 1
        return jax.lax.conv_general_dilated(x[None, None], w[None, None, ::-1], (1,), [(k, k)])[0, 0]


class GradientOfStridedConvolutions(Case):
    error = ValueError
    remedy = r"\nshlo_disc: the gradient .* \"(4\*h)\" or \"(4\*h \+ 1)\" for two;.*constraints=(\(\"h >= 4\",\))"

    padding: ClassVar[str] = "SAME"

    def provoke(self) -> Any:
        return self.gradient("2*h + 1")

    def follow(self, found: re.Match[str]) -> Numbers:
        named = [self.gradient(size, value_of(found[3])) for size in found.groups()[:2]]
        images = [np.arange(n, dtype=np.float32).reshape(1, 1, n, 1) / n for n in (16, 17)]
        of_jax = jax.grad(self.energy)
        return (
            np.concatenate([named[i](x, self.kernel) for i, x in enumerate(images)], axis=2),
            np.concatenate([of_jax(x, self.kernel) for x in images], axis=2),
        )

    kernel = np.array([1, 2, 3], np.float32).reshape(1, 1, 3, 1)

    @classmethod
    def energy(cls, x: Any, w: Any) -> Any:
        for _ in range(2):
            x = jax.lax.conv_general_dilated(x, w, (2, 1), cls.padding)
        return (x**2).sum()

    @classmethod
    def gradient(cls, size: str, constraints: tuple[str, ...] = ()) -> Any:
        image = (f"1, 1, {size}, 1", "float32")
        return compiled(jax.grad(cls.energy), image, ("1, 1, 3, 1", "float32"), constraints=constraints)


class GradientOfValidConvolutions(GradientOfStridedConvolutions):
    padding = "VALID"


class RowsOfBatches(Case):
    """The size of the batch divides both."""

    error = Exception
    remedy = r'write "(2\*s)" in place of "s"'

    def provoke(self) -> Any:
        return compiled(self.rows, ("b, s, 4", "float32"))

    def follow(self, found: re.Match[str]) -> Numbers:
        x = np.arange(16, dtype=np.float32).reshape(2, 2, 4)
        return compiled(self.rows, (f"b, {found[1]}, 4", "float32"))(x), x.reshape(2, 1, 8)

    @staticmethod
    def rows(x: Any) -> Any:
        return x.reshape(x.shape[0], -1, 8)


class BatchesOfTwoNames(Case):
    error = TypeError
    remedy = r"where (b) and (c) are equal, give both one name in args= or dynamic="

    def provoke(self) -> Any:
        return compiled(self.product, ("b, n, 4", "float32"), ("c, m, 4", "float32"))

    def follow(self, found: re.Match[str]) -> Numbers:
        x = np.arange(16, dtype=np.float32).reshape(2, 2, 4)
        run = compiled(self.product, ("b, n, 4", "float32"), (f"{found[1]}, m, 4", "float32"))
        return run(x, x), self.product(x, x)

    @staticmethod
    def product(x: Any, y: Any) -> Any:
        return jnp.einsum("bnd,bmd->bnm", x, y)


class RowsOfTwoNames(BatchesOfTwoNames):
    error = ValueError

    @staticmethod
    def product(x: Any, y: Any) -> Any:
        return jax.vmap(lambda a, b: a.sum(0) + b.sum(0))(x, y)


class CountOfSegments(Case):
    error = jax.errors.ConcretizationTypeError
    remedy = r"say how many segments there are by (num_segments)=: .* such as num_segments=y\.shape\[0\]"

    def provoke(self) -> Any:
        return compiled(jax.ops.segment_sum, ("n", "float32"), ("n", "int32"))

    def follow(self, found: re.Match[str]) -> Numbers:
        function = compiled(
            lambda x, i, y: jax.ops.segment_sum(x, i, **{found[1]: y.shape[0]}),
            ("n", "float32"), ("n", "int32"), ("m", "float32"),
        )  # fmt: skip
        return function(VALUES, np.array([0, 0, 1, 1, 2, 2], np.int32), VALUES[:4]), [4, 5, 14, 0]
