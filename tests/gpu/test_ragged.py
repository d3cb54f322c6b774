# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of `shlo_disc.ragged` for GPUs: all of them assemble, and some run over the mock driver."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc import ragged
from shlo_disc.lowering.codegen.ptx import assemble
from shlo_disc.runtime import Client
from tests.gpu.emulated import loaded
from tests.gpu.marks import needs_libdevice, needs_no_driver

ON_THE_HOST = {
    "from_rows", "to_rows", "from_nested", "to_nested", "from_awkward", "to_awkward", "from_keyed",
}  # fmt: skip
"""Functions of arrays that are there, which no program has."""

ROWS = ragged.Ragged(("t, 3", "float32"), ("r + 1", "int32"))
INDICES = ragged.Ragged(("t", "int32"), ("r + 1", "int32"))
TABLE = (("v", 4), "float32")
FOUR_ROWS = ragged.Ragged(("t, 3", "float32"), ((5,), "int32"))
MATRICES = ((4, 3, 5), "float32")
WIDTH = (("w",), "float32")


def as_values(found: Any) -> Any:
    return found.values if isinstance(found, ragged.Ragged) else found


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    **{
        name: (getattr(ragged, name), (ROWS,))
        for name in (
            "row_ids", "positions", "is_in_row", "sum", "mean", "max", "min", "norm", "logsumexp", "softmax",
        )
    },
    "from_lengths": (ragged.from_lengths, ((("t", 3), "float32"), (("r",), "int32"))),
    "mask": (lambda rows, w: ragged.mask(rows, w.shape[0]), (ROWS, WIDTH)),
    "pad": (lambda rows, w: ragged.pad(rows, w.shape[0]), (ROWS, WIDTH)),
    "unpad": (
        lambda padded, lengths, like: ragged.unpad(padded, lengths, like.shape[0]),
        ((("r", "w", 3), "float32"), (("r",), "int32"), (("t",), "float32")),
    ),
    "take_rows": (ragged.take_rows, (INDICES, TABLE)),
    "map": (lambda rows, w: ragged.map(lambda row, _: jnp.cumsum(row, 0), rows, w.shape[0]), (ROWS, WIDTH)),
    "dot": (ragged.dot, (FOUR_ROWS, MATRICES)),
}  # fmt: skip


def flat(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Each array by itself."""
    parts = [(a.values, a.offsets) if isinstance(a, ragged.Ragged) else (a,) for a in arguments]
    return tuple(part for argument in parts for part in argument)


@functools.cache
def compiled(name: str, target: str = "cuda:sm_80") -> shlo_disc.Executable:
    function, arguments = CASES[name]

    def of_arrays(*arrays: Any) -> Any:
        left = iter(arrays)
        is_ragged = [isinstance(argument, ragged.Ragged) for argument in arguments]
        given = [ragged.Ragged(next(left), next(left)) if two else next(left) for two in is_ragged]
        return as_values(function(*given))

    return shlo_disc.compile(of_arrays, args=flat(arguments), target=target)


def test_every_function_of_a_program_has_a_case() -> None:
    public = {name for name, value in vars(ragged).items() if callable(value) and value.__module__ == ragged.__name__}
    assert {name for name in public if not name.startswith("_")} - ON_THE_HOST - {"Ragged"} == set(CASES)


@needs_libdevice
@pytest.mark.ptxas
@pytest.mark.parametrize("name", CASES)
def test_kernels_assemble(name: str) -> None:
    assert assemble(compiled(name).as_text("ptx"), "sm_80").startswith(b"\x7fELF")


def arguments_of(name: str) -> tuple[Any, ...]:
    """Four rows, one of which is empty."""
    lengths = np.array([3, 0, 33, 1], np.int32)
    random = np.random.default_rng(0)
    total = int(lengths.sum())
    values = random.standard_normal((total, 3)).astype(np.float32)
    rows = ragged.Ragged(values, np.append(0, np.cumsum(lengths)).astype(np.int32))
    width = np.zeros(7, np.float32)
    return {
        "from_lengths": (values, lengths),
        "unpad": (random.standard_normal((4, 33, 3)).astype(np.float32), lengths, np.zeros(total, np.float32)),
        "take_rows": (
            ragged.Ragged(np.arange(total, dtype=np.int32) % 5, rows.offsets),
            np.eye(5, 4, dtype=np.float32),
        ),
        "dot": (rows, random.standard_normal((4, 3, 5)).astype(np.float32)),
        **dict.fromkeys(("mask", "pad", "map"), (rows, width)),
    }.get(name, (rows,))


@needs_no_driver
@needs_libdevice
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_processors(name: str, client: Client) -> None:
    given = flat(arguments_of(name))
    got = jax.tree.map(np.asarray, loaded(compiled(name), client)(*given))
    want = jax.tree.map(np.asarray, compiled(name, "cpu")(*given))
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
