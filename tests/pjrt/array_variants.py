# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of `jax.numpy` with the arguments that decide on shapes: axes, modes, lengths, indices."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.pjrt.variants import Variant, of, with_indices


def axes(name: str, **options: Any) -> dict[str, Variant]:
    """A function along each axis of a matrix, and of a block."""
    function = getattr(jnp, name)
    found: dict[str, Variant] = {}
    for axis in (0, 1, -1):
        found[f"{name} axis={axis}"] = (lambda x, axis=axis: function(x, axis=axis, **options), of("n, m"))
    found[f"{name} axis=1 of 3"] = (lambda x: function(x, axis=1, **options), of("n, m, 3"))
    return found


REDUCTIONS = (
    "sum", "prod", "max", "min", "mean", "std", "var", "any", "all", "argmax", "argmin", "nansum", "nanmean",
    "nanmax", "nanargmin", "median", "ptp", "nanmedian", "nanstd", "count_nonzero",
)  # fmt: skip
ALONG = (
    "cumsum", "cumprod", "sort", "argsort", "diff", "flip", "nancumsum", "gradient", "unwrap", "trapezoid",
)  # fmt: skip

ARRAYS: dict[str, Variant] = {}
for _name in REDUCTIONS:
    ARRAYS |= axes(_name)
    ARRAYS |= {f"{k} keepdims": v for k, v in axes(_name, keepdims=True).items() if "of 3" not in k}
for _name in ALONG:
    if hasattr(jnp, _name):
        ARRAYS |= axes(_name)

PADS = (
    "constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric", "wrap",
)  # fmt: skip
for _name in PADS:
    for _label, _widths in {"1": 1, "2, 3": (2, 3), "per axis": ((1, 0), (0, 2))}.items():
        _x = of("n, m") if _label != "2, 3" else of("n")
        ARRAYS[f"pad {_name} {_label}"] = (lambda x, w=_widths, mode=_name: jnp.pad(x, w, mode=mode), _x)
    ARRAYS[f"pad {_name} by its size"] = (
        lambda x, mode=_name: jnp.pad(x, (x.shape[0], x.shape[0] // 2), mode),
        of("n"),
    )
    ARRAYS[f"pad {_name} to a multiple"] = (
        lambda x, mode=_name: jnp.pad(x, ((0, -x.shape[0] % 4), (0, 0)), mode),
        of("n, m"),
    )

for _mode in ("fill", "clip", "wrap", None):
    ARRAYS |= {
        f"take {_mode}": (lambda x, i, mode=_mode: jnp.take(x, i, mode=mode), with_indices("n")),
        f"take {_mode} axis 0": (lambda x, i, mode=_mode: jnp.take(x, i, axis=0, mode=mode), with_indices("n, 3")),
        f"take {_mode} axis 1": (lambda x, i, mode=_mode: jnp.take(x, i, axis=1, mode=mode), with_indices("3, n")),
        f"gradient of take {_mode}": (
            jax.grad(lambda x, i, mode=_mode: jnp.nansum(jnp.take(x, i, axis=0, mode=mode) ** 2)),
            with_indices("n, 3"),
        ),
    }
for _mode in ("fill", "clip", "drop"):
    ARRAYS[f"at get {_mode}"] = (lambda x, i, mode=_mode: x.at[i].get(mode=mode), with_indices("n, m"))
for _op in ("set", "add", "multiply", "min", "max", "divide", "power"):
    for _mode in ("drop", "clip", None):
        ARRAYS[f"at {_op} {_mode}"] = (
            lambda x, y, i, op=_op, mode=_mode: getattr(x.at[jnp.sort(i)], op)(y if op != "set" else 1.5, mode=mode),
            with_indices("n", "m"),
        )
ARRAYS |= {
    "take_along_axis 0": (lambda x: jnp.take_along_axis(x, jnp.argsort(x, 0), 0), of("n, m")),
    "take_along_axis 1": (lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1), of("n, m")),
    "put_along_axis": (lambda x: jnp.put_along_axis(x, jnp.argsort(x, 1)[:, :1], 9.0, 1, inplace=False), of("n, m")),
    "index mask": (lambda x: jnp.where(x > 0.5, x, 0)[::2, ::-1], of("n, m")),
    "index new axes": (lambda x: x[:, None, ..., None, 0], of("n, m")),
    "index negative": (lambda x: (x[-1], x[0, -1], x[-1:], x[:-1]), of("n, m")),
    "index ellipsis and array": (lambda x, i: x[..., i % x.shape[-1], :1], with_indices("n, m, 2")),
    "index two arrays": (lambda x, i: x[i, i[::-1]], with_indices("n, m")),
    "index steps": (lambda x: (x[::3], x[1::2], x[::-2], x[: x.shape[0] // 2], x[x.shape[0] // 3 :]), of("n")),
    "set a row": (lambda x: x.at[-1].set(2.0).at[:, 0].add(1.0), of("n, m")),
    "set a slice": (lambda x: x.at[1::2].set(0.0).at[: x.shape[0] // 2].multiply(3.0), of("n, m")),
    "diagonal set": (lambda x: x.at[jnp.arange(x.shape[0]), jnp.arange(x.shape[0])].set(0.0), of("n, n")),
    "triangle": (lambda x: (jnp.tril(x, 1), jnp.triu(x, -1), jnp.tril(x, -2)), of("n, m")),
    "diagonal": (lambda x: (jnp.diagonal(x, 1), jnp.diagonal(x, -1), jnp.diag(x[0]), jnp.trace(x)), of("n, n")),
    "diag k": (lambda x: (jnp.diag(x, 1), jnp.diag(x, -2)), of("n")),
    "eye k": (lambda x: x + jnp.eye(x.shape[0], x.shape[1], 1) + jnp.eye(x.shape[0], x.shape[1], k=-2), of("n, m")),
}
for _shift in (1, -1, 3, -7):
    ARRAYS[f"roll {_shift}"] = (lambda x, s=_shift: jnp.roll(x, s), of("n, m"))
    ARRAYS[f"roll {_shift} axis 0"] = (lambda x, s=_shift: jnp.roll(x, s, 0), of("n, m"))
ARRAYS |= {
    "roll two axes": (lambda x: jnp.roll(x, (1, -2), (0, 1)), of("n, m")),
    "roll by data": (lambda x, i: jnp.roll(x, i[0], 0), with_indices("n, m")),
    "rot90": (lambda x: (jnp.rot90(x), jnp.rot90(x, 2), jnp.rot90(x, -1)), of("n, m")),
    "repeat": (lambda x: (jnp.repeat(x, 3), jnp.repeat(x, 2, axis=1)), of("n, m")),
    "repeat by data": (lambda x: jnp.repeat(x, jnp.arange(x.shape[0]) % 3, total_repeat_length=12), of("n")),
    "tile": (lambda x: (jnp.tile(x, 3), jnp.tile(x, (2, 1, 2))), of("n, m")),
    "resize": (lambda x: (jnp.resize(x, (3, 5)), jnp.resize(x, (2 * x.shape[0] + 1,))), of("n, m")),
    "reshape F": (lambda x: (x.reshape(-1, order="F"), x.reshape((x.shape[1], -1))), of("n, m")),
    "split": (lambda x: jnp.split(jnp.concatenate([x, x, x]), 3), of("n, m")),
    "array_split": (lambda x: jnp.array_split(jnp.concatenate([x, x]), [2, 3]), of("n, m")),
    "stack": (lambda x, y: (jnp.stack([x, y], 1), jnp.concatenate([x, y], 1), jnp.hstack([x, y])), of("n, m", "n, m")),
    "append": (lambda x, y: (jnp.append(x, y), jnp.append(x, y, axis=0)), of("n, m", "n, m")),
    "insert": (lambda x: (jnp.insert(x, 1, 5.0), jnp.insert(x, 0, 1.0, axis=1)), of("n, m")),
    "delete": (lambda x: (jnp.delete(x, 0), jnp.delete(x, -1, axis=0)), of("n, m")),
    "moveaxis": (lambda x: (jnp.moveaxis(x, 0, -1), jnp.swapaxes(x, 1, 2), jnp.rollaxis(x, 2)), of("n, m, 3")),
    "linspace": (lambda x: jnp.linspace(x[0], x[-1], 7) + jnp.linspace(x, 2 * x, 7).sum(1), of("n")),
    "linspace sized": (lambda x: jnp.linspace(0, 1, x.shape[0]) * x, of("n")),
    "logspace sized": (lambda x: jnp.logspace(0, 1, x.shape[0]) * x, of("n")),
    "arange": (
        lambda x: (jnp.arange(0, x.shape[0], 2), jnp.arange(x.shape[0], 0, -1.0), jnp.arange(3, 3 + x.shape[0])),
        of("n"),
    ),
    "meshgrid": (lambda x, y: (jnp.meshgrid(x, y), jnp.meshgrid(x, y, indexing="ij", sparse=True)), of("n", "m")),
    "indices": (lambda x: jnp.indices(x.shape), of("n, m")),
    "window functions": (
        lambda x: (
            jnp.hanning(x.shape[0]) * x
            + jnp.hamming(x.shape[0])
            + jnp.blackman(x.shape[0])
            + jnp.bartlett(x.shape[0])
            + jnp.kaiser(x.shape[0], 3.0)
        ),
        of("n"),
    ),
    "vander": (lambda x: (jnp.vander(x), jnp.vander(x, 3), jnp.vander(x, increasing=True)), of("n")),
    "tri": (lambda x: jnp.tri(x.shape[0], x.shape[1], 1) * x, of("n, m")),
    "tril_indices": (lambda x: x[jnp.tril_indices(x.shape[0])], of("n, n")),
    "unravel_index": (lambda x: jnp.unravel_index(jnp.argmax(x), x.shape), of("n, m")),
    "average weights": (lambda x, w: (jnp.average(x, 0, w), jnp.average(x, weights=x)), of("n, m", "n")),
    "var ddof": (lambda x: (jnp.var(x, ddof=1), jnp.std(x, 0, ddof=1)), of("n, m")),
    "cov": (lambda x: (jnp.cov(x), jnp.cov(x, rowvar=False), jnp.corrcoef(x)), of("n, m")),
    "cumulative_sum": (lambda x: jnp.cumulative_sum(x, axis=1, include_initial=True), of("n, m")),
    "sum where": (lambda x: jnp.sum(x, 0, where=x > 0.5, initial=2.0), of("n, m")),
    "max where": (lambda x: jnp.max(x, 1, where=x > 0.5, initial=-1.0), of("n, m")),
    "sum dtype": (lambda x: jnp.sum(x, dtype=jnp.int32), of("n, m", dtype=np.int8)),
    "mean int": (lambda x: jnp.mean(x, 0), of("n, m", dtype=np.int32)),
    "prod int8": (lambda x: (jnp.prod(x), jnp.cumsum(x), jnp.cumprod(x, 0), jnp.sum(x)), of("n, m", dtype=np.int8)),
    "norms": (lambda x: tuple(jnp.linalg.norm(x, o) for o in ("fro", 1, -1, jnp.inf, -jnp.inf)), of("n, m")),
    "vector norms": (lambda x: tuple(jnp.linalg.norm(x, o, axis=1) for o in (0, 1, 2, 3, jnp.inf)), of("n, m")),
    "digitize": (lambda x, y: (jnp.digitize(x, jnp.sort(y)), jnp.digitize(x, jnp.sort(y), right=True)), of("n", "m")),
    "searchsorted": (
        lambda x, y: (jnp.searchsorted(jnp.sort(x), y), jnp.searchsorted(jnp.sort(x), y, side="right")),
        of("n", "m"),
    ),
    "searchsorted scan": (lambda x, y: jnp.searchsorted(jnp.sort(x), y, method="sort"), of("n", "m")),
    "searchsorted compare_all": (lambda x, y: jnp.searchsorted(jnp.sort(x), y, method="compare_all"), of("n", "m")),
    "interp": (lambda x, y: jnp.interp(x, jnp.sort(y), y, left=0.0, right=1.0), of("n", "m")),
    "interp period": (lambda x, y: jnp.interp(x, y, y, period=0.5), of("n", "m")),
    "bincount": (lambda x: jnp.bincount(x, length=5), of("n", dtype=np.int32)),
    "bincount weights": (lambda x, w: jnp.bincount(x.astype(jnp.int32), w, length=6), of("n", "n")),
    "unique": (
        lambda x: jnp.unique(x // 2, size=4, fill_value=-1, return_index=True, return_inverse=True, return_counts=True),
        of("n", dtype=np.int32),
    ),
    "nonzero": (
        lambda x: (jnp.nonzero(x > 0.5, size=5, fill_value=-1), jnp.flatnonzero(x > 0.5, size=x.shape[0])),
        of("n, m"),
    ),
    "argwhere": (lambda x: jnp.argwhere(x > 0.5, size=6, fill_value=0), of("n, m")),
    "union": (
        lambda x, y: (jnp.union1d(x // 2, y // 2, size=6), jnp.intersect1d(x // 2, y // 2, size=5, fill_value=-1)),
        of("n", "m", dtype=np.int32),
    ),
    "setdiff": (
        lambda x, y: (jnp.setdiff1d(x // 2, y // 2, size=3, fill_value=-9), jnp.isin(x, y)),
        of("n", "m", dtype=np.int32),
    ),
    "quantile": (
        lambda x: (
            jnp.quantile(x, 0.3),
            jnp.quantile(x, jnp.array([0.1, 0.9]), axis=1),
            jnp.percentile(x, 25, axis=0, keepdims=True),
        ),
        of("n, m"),
    ),
    "quantile methods": (
        lambda x: tuple(jnp.quantile(x, 0.4, method=m) for m in ("lower", "higher", "nearest", "midpoint")),
        of("n, m"),
    ),
    "partition": (lambda x: (jnp.sort(jnp.partition(x, 0)), jnp.argpartition(x, 0, axis=0)[:1]), of("n, m")),
    "lexsort": (lambda x, y: jnp.lexsort((x, jnp.round(y))), of("n", "n")),
    "sort descending": (
        lambda x: (jnp.sort(x, descending=True), jnp.argsort(x, descending=True, stable=True)),
        of("n, m"),
    ),
    "sort None": (lambda x: (jnp.sort(x, axis=None), jnp.argsort(x, axis=None)), of("n, m")),
    "piecewise": (lambda x: jnp.piecewise(x, [x < 0.3, x > 0.6], [lambda v: -v, lambda v: v * v, 0.0]), of("n, m")),
    "select": (lambda x: jnp.select([x < 0.3, x < 0.6], [x, x * 2], 9.0), of("n, m")),
    "choose": (lambda x, y: jnp.choose((x % 3), [y, y + 1, y * 2], mode="wrap"), of("n", "n", dtype=np.int32)),
    "compress": (lambda x: jnp.compress(x[0] > 0.3, x, axis=1, size=3, fill_value=0), of("n, m")),
    "extract": (lambda x: jnp.extract(x > 0.5, x, size=4, fill_value=-1), of("n, m")),
    "place": (lambda x: jnp.place(x, x > 0.5, jnp.array([1.0, 2.0]), inplace=False), of("n, m")),
    "fill_diagonal": (lambda x: jnp.fill_diagonal(x, 4.0, inplace=False), of("n, m")),
    "apply_along_axis": (lambda x: jnp.apply_along_axis(lambda r: jnp.cumsum(r)[::-1], 0, x), of("n, m")),
    "vectorize": (lambda x, y: jnp.vectorize(jnp.dot, signature="(k),(k)->()")(x, y), of("n, m", "m")),
    "cross": (lambda x, y: jnp.cross(x, y), of("n, 3", "n, 3")),
    "kron": (lambda x, y: jnp.kron(x, y), of("n, m", "2, n")),
    "outer": (lambda x, y: (jnp.outer(x, y), jnp.inner(x, x), jnp.vdot(x, x)), of("n", "m")),
    "tensordot": (lambda x, y: (jnp.tensordot(x, y, 1), jnp.tensordot(x, y, ((0, 1), (1, 0)))), of("n, m", "m, n")),
    "einsum": (
        lambda x, y: (jnp.einsum("ij,jk->ki", x, y), jnp.einsum("ij,ji", x, y), jnp.einsum("ij->j", x)),
        of("n, m", "m, n"),
    ),
    "einsum batch": (lambda x, y: jnp.einsum("bij,bjk->bik", x, y), of("n, m, 3", "n, 3, m")),
    "einsum ellipsis": (lambda x, y: jnp.einsum("...ij,...j->...i", x, y), of("2, n, m", "2, m")),
    "matmul": (lambda x, y: x @ y, of("n, m", "m, n")),
    "matmul batch": (lambda x, y: x @ y, of("n, 3, m", "m, 4")),
    "matmul broadcast": (lambda x, y: x @ y, of("n, 1, 3, m", "2, m, 4")),
    "matmul int": (lambda x, y: x @ y, of("n, m", "m, n", dtype=np.int32)),
    "matmul bf16": (
        lambda x, y: (x @ y, jnp.matmul(x, y, preferred_element_type=jnp.float32)),
        of("n, m", "m, n", dtype=jnp.bfloat16),
    ),
    "matmul f16": (lambda x, y: x @ y, of("n, m", "m, n", dtype=np.float16)),
    "matmul complex": (lambda x, y: x @ y.conj(), of("n, m", "m, n", dtype=np.complex64)),
    "multi_dot": (lambda x, y: jnp.linalg.multi_dot([x, y, x]), of("n, m", "m, n")),
    "matrix_power": (lambda x: (jnp.linalg.matrix_power(x, 3), jnp.linalg.matrix_power(x, 0)), of("n, n")),
    "polyfit": (lambda x, y: jnp.polyfit(x, y, 2), of("n", "n")),
    "polyval": (
        lambda x, y: (
            jnp.polyval(x, y),
            jnp.polyval(x, y, unroll=1),
            jnp.polyder(x),
            jnp.polyint(x),
            jnp.polymul(x, y),
            jnp.polyadd(x, y),
        ),
        of("n", "m"),
    ),
    "ediff1d": (lambda x: jnp.ediff1d(x, to_begin=1.0, to_end=2.0), of("n, m")),
    "diff n": (lambda x: (jnp.diff(x, prepend=0.0), jnp.diff(x, append=1.0, axis=0)), of("n, m")),
    "diff 2": (lambda x: jnp.diff(x, 2), of("n")),
    "packbits": (
        lambda x: (jnp.packbits(x > 4), jnp.packbits(x > 4, axis=0, bitorder="little")),
        of("n, m", dtype=np.int32),
    ),
    "unpackbits": (
        lambda x: (jnp.unpackbits(x.astype(jnp.uint8)), jnp.unpackbits(x.astype(jnp.uint8), axis=1, count=5)),
        of("n, m", dtype=np.int32),
    ),
    "histogram": (lambda x: jnp.histogram(x * 10 + 0.05, 5, (0.0, 10.0)), of("n")),
    "nan_to_num": (lambda x: jnp.nan_to_num(jnp.log(x - 0.5), nan=1.0, neginf=-3.0), of("n, m")),
    "clip": (lambda x, y: jnp.clip(x, y, 0.8), of("n, m", "m")),
    "round": (lambda x: (jnp.round(x * 100, 1), jnp.round(x * 100, -1)), of("n, m")),
    "isclose": (
        lambda x, y: (jnp.isclose(x, y), jnp.allclose(x, x), jnp.array_equal(x, y), jnp.array_equiv(x, x[:1])),
        of("n, m", "n, m"),
    ),
    "divmod": (
        lambda x, y: (jnp.divmod(x, y), x // y, x % y, jnp.fmod(x, -y), jnp.remainder(-x, y)),
        of("n", "n", dtype=np.int32),
    ),
    "frexp": (lambda x: (jnp.frexp(x), jnp.modf(x * 9), jnp.ldexp(x, 3)), of("n")),
    "bits": (
        lambda x: (x << 2, x >> 1, x & 3, x | 8, x ^ 5, ~x, jnp.bitwise_count(x), lax.clz(x)),
        of("n", dtype=np.int32),
    ),
    "view": (lambda x: (x.view(jnp.int32), x.view(jnp.uint8), lax.bitcast_convert_type(x, jnp.int16)), of("n, m")),
    "view wider": (lambda x: jnp.concatenate([x, x], 1).view(jnp.int32), of("n, m", dtype=np.int16)),
    "astype": (
        lambda x: tuple(
            (x * 20).astype(t) for t in (jnp.int8, jnp.uint8, jnp.bool_, jnp.float16, jnp.complex64, jnp.bfloat16)
        ),
        of("n, m"),
    ),
}
