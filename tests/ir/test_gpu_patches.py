# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions on GPUs as products of patches: windows, strides, padding, types, and what is near."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import shlo_disc
from shlo_disc.driver.compiler import Compilation, import_stage, run_pipeline
from tests.ir.gpu_cases import EXACT, TARGETS, assert_close, emulated
from tests.run.op_check import random_array

IMAGES = ("NHWC", "HWIO", "NHWC")
Program = tuple[Callable[..., Any], tuple[str, ...]]


def conv(*arguments: Any, **options: Any) -> Callable[..., Any]:
    """A convolution of two arrays."""
    return lambda x, w: jax.lax.conv_general_dilated(x, w, *arguments, **options)


def sine_loss(x: Any, w: Any) -> Any:
    """A loss, of which each output has a gradient of its own."""
    return jnp.sum(jnp.sin(conv((1, 1), ((1, 1), (1, 1)), dimension_numbers=("NCHW", "OIHW", "NCHW"))(x, w)))


PROGRAMS: dict[str, Program] = {
    "same": (conv((1, 1), "SAME", dimension_numbers=IMAGES), ("b, h, w, 4", "3, 3, 4, 16")),
    "strided": (conv((2, 3), "VALID", dimension_numbers=IMAGES), ("b, h + 2, w + 1, 5", "3, 2, 5, 17")),
    "holes": (
        conv((1, 2), ((1, 2), (0, 3)), rhs_dilation=(2, 1), dimension_numbers=IMAGES),
        ("b, h + 4, w + 1, 4", "3, 2, 4, 16"),
    ),
    "spread": (conv((1, 1), ((1, 1), (2, 0)), lhs_dilation=(2, 3), dimension_numbers=IMAGES),
               ("b, h + 1, w, 4", "2, 2, 4, 16")),
    "channels_first": (conv((2, 2), ((1, 1), (1, 1)), dimension_numbers=("NCHW", "OIHW", "NCHW")),
                       ("b, 4, h, w", "16, 4, 3, 3")),
    "line": (conv((1,), "SAME", dimension_numbers=("NHC", "HIO", "NHC")), ("b, h, 8", "3, 8, 16")),
    "volume": (conv((1, 1, 1), "SAME", dimension_numbers=("NDHWC", "DHWIO", "NDHWC")),
               ("b, 2, h, w, 4", "2, 2, 2, 4, 16")),
    "gradients": (jax.grad(sine_loss, (0, 1)), ("b, 16, h, w", "16, 16, 3, 3")),
    "followed": (lambda x, w: jax.nn.relu(conv((1, 1), "SAME", dimension_numbers=IMAGES)(x, w) + 1) * 2,
                 ("b, h, w, 4", "3, 3, 4, 16")),
}  # fmt: skip

LOOPS: dict[str, Program] = {
    "few_features": (conv((1, 1), "SAME", dimension_numbers=IMAGES), ("b, h, w, 4", "3, 3, 4, 15")),
    "shallow": (conv((1, 1), "SAME", dimension_numbers=IMAGES), ("b, h, w, 1", "3, 3, 1, 16")),
    "groups": (conv((1, 1), "SAME", dimension_numbers=IMAGES, feature_group_count=2), ("b, h, w, 8", "3, 3, 4, 16")),
    "long_windows": (conv((1,), "VALID", dimension_numbers=("NHC", "HIO", "NHC")), ("b, w, 4", "h, 4, 16")),
}


@functools.cache
def lowered(name: str, dtype: str) -> Compilation:
    function, shapes = {**PROGRAMS, **LOOPS}[name]
    typed = tuple((shape, dtype) for shape in shapes)
    constraints = ("w >= h",) if name == "long_windows" else ()
    return run_pipeline(import_stage(function, TARGETS[0], EXACT, typed, None, constraints), "host")


def has_products(name: str) -> bool:
    """Tells whether the program has no convolution any more."""
    text = str(lowered(name, "float32").snapshots["simplify"])
    return "stablehlo.dot_general" in text and "stablehlo.convolution" not in text


def check(name: str, dtype: str, tolerance: float, **dims: int) -> None:
    function, shapes = {**PROGRAMS, **LOOPS}[name]
    sizes = [tuple(int(eval(d, {}, dims)) for d in shape.split(", ")) for shape in shapes]  # noqa: S307
    given = [random_array(size, dtype, i) for i, size in enumerate(sizes)]
    assert_close(emulated(lowered(name, dtype), dims, given), jax.jit(function)(*given), tolerance)


@pytest.mark.parametrize("dims", [(1, 1, 1), (2, 3, 1), (1, 4, 5), (3, 5, 7)], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_products_of_patches(name: str, dims: tuple[int, int, int]) -> None:
    assert has_products(name)
    check(name, "float32", 5e-6, **dict(zip("bhw", dims, strict=True)))


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 2e-3), ("bfloat16", 2e-2)])
@pytest.mark.parametrize("name", ["same", "strided", "channels_first"])
def test_halves(name: str, dtype: str, tolerance: float) -> None:
    check(name, dtype, tolerance, b=2, h=5, w=6)


@pytest.mark.parametrize("name", LOOPS)
def test_what_stays_a_loop(name: str) -> None:
    assert not has_products(name)
    check(name, "float32", 5e-6, b=2, h=4, w=5)


def test_precision_stays() -> None:
    arguments = (("b, h, w, 4", "float32"), ("3, 3, 4, 16", "float32"))
    for precision, is_exact in (("highest", True), (None, False)):
        function = conv((1, 1), "SAME", dimension_numbers=IMAGES, precision=precision)
        c = run_pipeline(import_stage(function, TARGETS[0], shlo_disc.Options(), arguments, None, ()), "simplify")
        (line,) = [line for line in str(c.module).splitlines() if "dot_general" in line]
        assert ('disc.precision = "tf32"' in line) != is_exact


def test_no_window_at_all() -> None:
    function, _ = PROGRAMS["strided"]
    arguments = (("b, h, 2, 5", "float32"), ("3, 2, 5, 17", "float32"))
    c = run_pipeline(import_stage(function, TARGETS[0], EXACT, arguments, None, ("h >= 2",)), "host")
    given = [random_array((2, 2, 2, 5), "float32"), random_array((3, 2, 5, 17), "float32")]
    (result,) = emulated(c, {"b": 2, "h": 2}, given)
    assert result.size == jax.jit(function)(*given).size == 0
