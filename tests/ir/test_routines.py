# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Micro-kernels are compiled once, and programs that have them are the same whether that was before or now."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax import lax

import shlo_disc
from shlo_disc.lowering.codegen import routines


def product(x: jax.Array, w: jax.Array) -> jax.Array:
    return x @ w


def convolution(x: jax.Array, w: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


@pytest.mark.parametrize("opt_level", (0, 3))
def test_a_warm_process_makes_the_same_code(opt_level: int) -> None:
    options = shlo_disc.Options(opt_level=opt_level)
    cases = ((product, ("m, k", "k, n"), (5, 33), (33, 40)), (convolution, ("b, h, w, 16", "3, 3, 16, 16"),
             (2, 9, 11, 16), (3, 3, 16, 16)))  # fmt: skip
    for function, shapes, *sizes in cases:
        routines.routines_ir.cache_clear()
        routines.routines_object.cache_clear()
        programs = [shlo_disc.compile(function, args=[(s, "float32") for s in shapes], options=options) for _ in "ab"]
        assert routines.routines_object.cache_info().hits
        assert len({program.artifact.sections["object"] for program in programs}) == 1
        arrays = [np.random.default_rng(i).standard_normal(size).astype(np.float32) for i, size in enumerate(sizes)]
        np.testing.assert_allclose(programs[1](*arrays), function(*map(jax.numpy.asarray, arrays)), atol=1e-3)


def test_views_show_routines_behind_the_program() -> None:
    program = shlo_disc.compile(product, args=[("m, 8", "float32"), ("8, 9", "float32")])
    for view, mark in (("llvm", "define void @gemm_f32("), ("optimized-llvm", "@gemm_f32_1("), ("asm", "gemm_f32_1:")):
        text = program.as_text(view)
        assert text.index("disc_run") < text.index(mark), view
    assert "declare" in program.as_text("llvm").split("define void @gemm_f32(")[0]
