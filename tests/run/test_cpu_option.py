# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`Options.cpu`: code for all processors with AVX2 and FMA, whatever this one has beyond them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from examples import bert
from shlo_disc.errors import OptionError
from shlo_disc.tools.cli import parser
from shlo_disc.tools.commands.common import options_of
from tests.run.op_check import random_array

V3 = shlo_disc.Options(cpu="x86-64-v3")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int8", "uint8", "int32"])
def test_products(dtype: str) -> None:
    """Both sides of tiles of 6 rows by two registers of 256 bits."""

    def function(w: jax.Array, x: jax.Array) -> jax.Array:
        wide = {1: jnp.int32 if dtype == "int8" else jnp.uint32, 2: jnp.float32}.get(x.dtype.itemsize, x.dtype)
        return jnp.dot(x, w, preferred_element_type=wide)

    executable = shlo_disc.compile(function, args=(("67, 33", dtype), ("b, 67", dtype)), options=V3)
    assert [kernel.kind for kernel in executable.kernels] == ["dot"]
    w = random_array((67, 33), dtype)
    bound = executable.bind(w)
    for b in (1, 2, 4, 5, 6, 7, 12, 50):
        x = random_array((b, 67), dtype, 1)
        want = np.asarray(function(w, x))
        for got in (executable(w, x), bound(x)):
            assert got.dtype == want.dtype
            if want.dtype.kind in "iu":
                np.testing.assert_array_equal(got, want)
            else:
                np.testing.assert_allclose(got, want, rtol=0, atol=16 * np.finfo(want.dtype).eps * 67)


def test_a_model() -> None:
    params = bert.init(bert.SMALL)
    here, everywhere = (shlo_disc.compile(bert.export(bert.SMALL), options=o) for o in (None, V3))
    for sizes in ((1, 1), (2, 17), (3, 48)):
        inputs = bert.make_inputs(bert.SMALL, *sizes)
        np.testing.assert_allclose(everywhere(params, *inputs), here(params, *inputs), rtol=0, atol=1e-4)


def test_the_artifact_names_what_it_needs() -> None:
    features = {
        cpu: set(shlo_disc.compile(lambda x: x + 1, args=(("n", "float32"),), options=shlo_disc.Options(cpu=cpu))
                 .artifact.header["target"]["features"])
        for cpu in ("host", "x86-64-v3")
    }  # fmt: skip
    assert {"avx2", "fma"} <= features["x86-64-v3"] <= features["host"]
    assert not any(name.startswith("avx512") for name in features["x86-64-v3"])


def test_the_environment_names_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHLO_DISC_CPU", "x86-64-v3")
    assert shlo_disc.Options().cpu == "x86-64-v3" and shlo_disc.Options(cpu="host").cpu == "host"
    assert options_of(parser().parse_args(["compile", "-", "-o", "-"])).cpu == "x86-64-v3"
    program = shlo_disc.compile(lambda x: x + 1, args=(("n", "float32"),))
    assert program.artifact.header["target"]["cpu"] == "x86-64-v3"
    monkeypatch.setenv("SHLO_DISC_CPU", "zen4")
    with pytest.raises(OptionError, match="variable SHLO_DISC_CPU must be one of .*, not 'zen4'"):
        shlo_disc.compile(lambda x: x + 1, args=(("n", "float32"),))


@pytest.mark.parametrize("level", [0, 1, 3])
def test_pieces_of_short_rows_are_read_within_their_bounds(level: int) -> None:
    """Rows of 2 in vectors of 16 lanes, of which those behind the row are off at compile time."""
    options = shlo_disc.Options(cpu="x86-64-v3", opt_level=level)
    run = shlo_disc.compile(lambda x: jnp.roll(x, 1, 0) * 2, args=(("16, 8, 2", "float32"),), options=options)
    x = np.arange(256, dtype=np.float32).reshape(16, 8, 2)
    np.testing.assert_array_equal(run(x), np.roll(x, 1, 0) * 2)
