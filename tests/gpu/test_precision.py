# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The precision of f32 products on GPUs, as JAX, StableHLO, PyTorch and the options state it: kernels and results."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import UnsupportedError
from tests.gpu.checks import TARGET, run_on_gpu
from tests.gpu.marks import needs_mock_driver
from tests.ir.gpu_cases import EXACT

pytestmark = needs_mock_driver

SIDES = (("b, s", "float32"), ("s, d", "float32"))
SIZES = ((1, 1, 1), (63, 15, 65), (64, 16, 64), (65, 17, 63), (4, 0, 5))
"""Rows, depth and columns: 0, 1, and on both sides of a tile and of a step along the depth."""

BOUNDS = {"full": 2**-21, "tf32x3": 2**-20, "tf32": 2**-10 + 2**-18}
"""Errors of a product over that of its magnitudes: of one rounding to 11 bits for each factor in TF32."""


def precisions(executable: shlo_disc.Executable) -> list[str]:
    """The precisions of the products of a program."""
    names = [kernel.name for kernel in executable.kernels if kernel.name.startswith("product_")]
    return [name.split("_")[1].replace("f32", "full") if "tf32" not in name else name.split("_")[1] for name in names]


def compiled(function: Any, options: shlo_disc.Options | None = None, args: Any = SIDES) -> shlo_disc.Executable:
    return shlo_disc.compile(function, target=TARGET, args=args, options=options)


def lax_dot(precision: Any) -> Callable[[Any, Any], Any]:
    return functools.partial(jax.lax.dot, precision=precision)


# ---- JAX ------------------------------------------------------------------------------------------------------------

STATED = {
    None: "tf32", "default": "tf32", "high": "tf32", "tensorfloat32": "tf32", "highest": "full", "float32": "full",
    ("high", "highest"): "full", "TF32_TF32_F32": "tf32", "TF32_TF32_F32_X3": "tf32x3", "F32_F32_F32": "full",
    "BF16_BF16_F32": "tf32", "BF16_BF16_F32_X3": "tf32x3", "BF16_BF16_F32_X6": "full", "BF16_BF16_F32_X9": "full",
}  # fmt: skip
"""By what `jax.lax.dot` is told."""


@pytest.mark.parametrize("stated", STATED, ids=str)
def test_precision_of_jax(stated: Any) -> None:
    assert precisions(compiled(lax_dot(stated))) == [STATED[stated]]


@pytest.mark.parametrize(("stated", "found"), [("tensorfloat32", "tf32"), ("highest", "full"), ("high", "tf32")])
def test_default_precision_of_jax(stated: str, found: str) -> None:
    with jax.default_matmul_precision(stated):
        assert precisions(compiled(lambda x, w: x @ w)) == [found]


@pytest.mark.parametrize("name", shlo_disc.options.MATMUL_PRECISIONS)
def test_the_option_overrides_the_program(name: str) -> None:
    for stated in ("highest", "TF32_TF32_F32_X3", None):
        executable = compiled(lax_dot(stated), shlo_disc.Options(matmul_precision=name))
        assert precisions(executable) == ["full" if name == "highest" else name]


def test_products_of_one_program_keep_their_own() -> None:
    def function(x: Any, w: Any) -> Any:
        return [lax_dot(stated)(x, w) for stated in ("highest", "default", "TF32_TF32_F32_X3")]

    assert precisions(compiled(function)) == ["full", "tf32", "tf32x3"]


@pytest.mark.slow
def test_loops_and_gradients() -> None:
    def scanned(x: Any, w: Any) -> Any:
        return jax.lax.scan(lambda c, _: (jnp.tanh(c @ w), None), x, None, length=3)[0].sum()

    sides = (("b, s", "float32"), ("s, s", "float32"))
    executable = compiled(jax.grad(scanned, argnums=(0, 1)), args=sides)
    assert set(precisions(executable)) == {"tf32"}
    with jax.default_matmul_precision("highest"):
        assert set(precisions(compiled(jax.grad(scanned, argnums=(0, 1)), args=sides))) == {"full"}


def test_an_algorithm_beyond_f32_is_refused() -> None:
    text = stablehlo("lhs_precision_type = f64, rhs_precision_type = f64, accumulation_type = f64", 1)
    with pytest.raises(UnsupportedError, match=r"dot_general.*f64.*more exact.*convert the sides to float64"):
        shlo_disc.compile(text, target=TARGET)


@pytest.mark.slow
def test_other_types_have_no_precision() -> None:
    def function(x: Any, w: Any) -> Any:
        half = x.astype(jnp.bfloat16)
        return half @ w.astype(jnp.bfloat16), x.astype(jnp.int32) @ w.astype(jnp.int32)

    assert "disc.precision" not in compiled(function).as_text("import")
    assert "disc.precision" in compiled(lambda x, w: x @ w).as_text("import")


def test_processors_keep_all_bits() -> None:
    random = np.random.default_rng(0)
    x, w = (random.standard_normal((33, 33)).astype(np.float32) for _ in range(2))
    executable = shlo_disc.compile(
        lambda x, w: x @ w, args=SIDES, options=shlo_disc.Options(matmul_precision="tf32", cache_dir="")
    )
    np.testing.assert_allclose(executable(x, w), x.astype(np.float64) @ w, rtol=0, atol=1e-5)
    assert "disc.precision" not in executable.as_text("import")


# ---- StableHLO ------------------------------------------------------------------------------------------------------


def stablehlo(types: str, count: int) -> str:
    """A product with an algorithm."""
    return f"""func.func @main(%x: tensor<?x7xf32>, %w: tensor<7x5xf32>) -> tensor<?x5xf32> {{
      %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0], algorithm = <{types}, lhs_component_count = 1,
        rhs_component_count = 1, num_primitive_operations = {count}, allow_imprecise_accumulation = false>
        : (tensor<?x7xf32>, tensor<7x5xf32>) -> tensor<?x5xf32>
      return %y : tensor<?x5xf32>
    }}"""


@pytest.mark.parametrize("count", [1, 3])
def test_algorithms_of_stablehlo(count: int) -> None:
    text = stablehlo("lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32", count)
    assert precisions(shlo_disc.compile(text, target=TARGET)) == ["tf32" if count == 1 else "tf32x3"]


@pytest.mark.parametrize(
    "product",
    [
        "stablehlo.dot %x, %w : (tensor<?x7xf32>, tensor<7x5xf32>) -> tensor<?x5xf32>",
        'stablehlo.einsum %x, %w, config = "ab,bc->ac" : (tensor<?x7xf32>, tensor<7x5xf32>) -> tensor<?x5xf32>',
    ],
)
def test_older_products_of_stablehlo(product: str) -> None:
    text = f"""func.func @main(%x: tensor<?x7xf32>, %w: tensor<7x5xf32>) -> tensor<?x5xf32> {{
      %y = {product}
      return %y : tensor<?x5xf32>
    }}"""
    assert precisions(shlo_disc.compile(text, target=TARGET)) == ["tf32"]
    assert precisions(shlo_disc.compile(text, target=TARGET, options=EXACT)) == ["full"]


def test_convolutions() -> None:
    """One of a window of one element, and one whose windows are written out, are products like others."""
    images = (("b, h, h, 16", "float32"),)

    def function(x: Any, w: Any, v: Any, precision: Any) -> Any:
        convolve = functools.partial(
            jax.lax.conv_general_dilated, window_strides=(1, 1), padding="VALID",
            dimension_numbers=("NHWC", "HWIO", "NHWC"), precision=precision,
        )  # fmt: skip
        return convolve(x, w), convolve(x, v)

    args = (*images, ("1, 1, 16, 32", "float32"), ("3, 3, 16, 32", "float32"))
    for stated, found in ((None, "tf32"), ("highest", "full")):
        executable = shlo_disc.compile(
            functools.partial(function, precision=stated), target=TARGET, args=args, constraints=("h >= 3",)
        )
        assert precisions(executable) == [found] * 2


# ---- PyTorch --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("setting", "found"), [("highest", "full"), ("high", "tf32"), ("medium", "tf32")])
def test_setting_of_pytorch(setting: str, found: str) -> None:
    torch = pytest.importorskip("torch")
    before = torch.get_float32_matmul_precision()
    exported = torch.export.export(torch.nn.Linear(4, 5), (torch.ones(3, 4),))
    try:
        torch.set_float32_matmul_precision(setting)
        program = shlo_disc.compile(exported, target=TARGET)
        forced = shlo_disc.compile(exported, target=TARGET, options=shlo_disc.Options(matmul_precision="tf32x3"))
    finally:
        torch.set_float32_matmul_precision(before)
    assert precisions(program.executable) == [found]
    assert precisions(forced.executable) == ["tf32x3"]


# ---- results --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("followed", [False, True])
@pytest.mark.parametrize("precision", BOUNDS)
def test_errors_do_not_depend_on_sizes(precision: str, followed: bool) -> None:
    """Each product has the errors of its precision, alone and with what follows it; no larger one is in TF32 alone."""
    name = "highest" if precision == "full" else precision
    sides = (("b, s - 1", "float32"), ("s - 1, d", "float32"))
    options = shlo_disc.Options(matmul_precision=name)
    executable = compiled(lambda x, w: x @ w + 1 if followed else x @ w, options, sides)
    calls = []
    for number, (m, k, n) in enumerate(SIZES):
        random = np.random.default_rng(number)
        calls.append([random.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n))])
    for (x, w), found in zip(calls, run_on_gpu(executable, calls), strict=True):
        wanted = x.astype(np.float64) @ w + followed
        magnitude = np.abs(x).astype(np.float64) @ np.abs(w) + followed
        error = np.max(np.abs(found - wanted) / np.maximum(magnitude, 1e-30), initial=0)
        assert error <= BOUNDS[precision]
        if precision == "tf32" and x.shape[1] > 1:
            assert error > BOUNDS["tf32x3"]


@pytest.mark.parametrize(
    ("precision", "size", "queries", "least", "most"),
    [
        ("program", 8, 17, 1e-5, 4e-3),
        ("tf32", 8, 17, 1e-5, 4e-3),
        ("tf32", 8, 16, 0, 2e-6),
        ("highest", 8, 17, 0, 2e-6),
        ("tf32x3", 8, 17, 0, 2e-6),
        ("tf32", 72, 17, 0, 2e-6),
    ],
)
@pytest.mark.slow
def test_attention_has_the_precision_of_its_products(
    precision: str, size: int, queries: int, least: float, most: float
) -> None:
    """Few queries and heads of more than 64 elements take all bits, and so does 3xTF32: no kernel of these has less."""

    def attention(q: Any, k: Any, v: Any) -> Any:
        return jax.nn.dot_product_attention(q, k, v)

    options = shlo_disc.Options() if precision == "program" else shlo_disc.Options(matmul_precision=precision)
    executable = compiled(attention, options, args=((f"b, s, 2, {size}", "float32"),) * 3)
    assert [kernel.kind for kernel in executable.kernels] == ["attention"]
    random = np.random.default_rng(0)
    given = [random.standard_normal((2, queries, 2, size)).astype(np.float32) for _ in range(3)]
    (found,) = run_on_gpu(executable, [given])
    assert least <= np.abs(found - jax.jit(attention)(*given)).max() <= most


# ---- the platform ---------------------------------------------------------------------------------------------------


def test_branches_of_platforms_are_those_of_gpus() -> None:
    def function(x: Any) -> Any:
        return jax.lax.platform_dependent(x, cpu=lambda x: x + 1, cuda=lambda x: x + 2)

    x = np.zeros(3, np.float32)
    executable = compiled(function, args=(("n", "float32"),))
    (found,) = run_on_gpu(executable, [[x]])
    np.testing.assert_array_equal(found, x + 2)
    np.testing.assert_array_equal(shlo_disc.compile(function, args=(("n", "float32"),))(x), x + 1)


def test_random_bits_are_those_of_processors() -> None:
    """JAX's own lowering for GPUs calls a kernel of NVIDIA's."""

    def function(x: Any) -> Any:
        return jax.random.uniform(jax.random.key(3), x.shape) + x

    x = np.zeros((4, 5), np.float32)
    (found,) = run_on_gpu(compiled(function, args=(("4, 5", "float32"),)), [[x]])
    np.testing.assert_array_equal(found, jax.jit(function)(x))


@pytest.mark.parametrize("function", [jnp.linalg.eigvals, jax.lax.linalg.schur, jax.lax.linalg.hessenberg])
def test_linear_algebra_that_gpus_lack_is_refused_with_its_line(function: Any) -> None:
    with pytest.raises(UnsupportedError, match=r"test_precision\.py:\d+"):
        compiled(lambda x: function(x), args=(("4, 4", "float32"),))
