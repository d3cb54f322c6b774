# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops of libraries that quantise modules: those that are written in PyTorch's ops, and PyTorch's products for them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch.ao.quantization.fx import _decomposed  # noqa: E402, F401  (it defines the ops)

import shlo_disc  # noqa: E402
from shlo_disc.errors import UnsupportedError  # noqa: E402

SIZES = (2, 3, 17, 40)
OPS = torch.ops.quantized_decomposed


class Module(torch.nn.Module):  # type: ignore[misc]
    """A function of a tensor as a module, with buffers that it is given as well."""

    def __init__(self, function: Callable[..., Any], *buffers: Any) -> None:
        super().__init__()
        self.function = function
        for number, buffer in enumerate(buffers):
            self.register_buffer(f"buffer_{number}", buffer)

    def forward(self, x: Any) -> Any:
        return self.function(x, *self.buffers())


def check(module: Any, example: Any, tolerance: float = 1e-5) -> list[str]:
    """Numbers of an exported module and of a compiled one against those of PyTorch; the names of kernels."""
    torch.compiler.reset()  # Dynamo keeps some programs of a function, here of Module.forward, and no more
    rows = torch.export.Dim("rows", min=1, max=64)
    exported = shlo_disc.compile(torch.export.export(module, (example,), dynamic_shapes=({0: rows},)))
    traced = torch.compile(module, backend="shlo_disc", dynamic=True, fullgraph=True)
    for count in SIZES:
        x = torch.cat([example] * math.ceil(count / len(example)))[:count]
        with torch.no_grad():
            wanted = module(x)
        for got in (exported(x), traced(x)):
            assert got.dtype == wanted.dtype
            largest = float(wanted.float().abs().max())
            torch.testing.assert_close(got.float(), wanted.float(), rtol=tolerance, atol=tolerance * largest)
    return [kernel.name for kernel in exported.kernels]


@pytest.fixture(scope="module")
def library() -> Iterator[Any]:
    """A library with an op that is written in others, and one that is not."""
    made = torch.library.Library("of_a_test", "DEF")
    made.define("halved(Tensor x, int count) -> Tensor")
    made.impl("halved", lambda x, count: x * 0.5**count, "CompositeImplicitAutograd")
    made.define("opaque(Tensor x) -> Tensor")
    made.impl("opaque", lambda x: x + float(x.sum() > 0), "CompositeExplicitAutograd")
    made.impl("opaque", torch.empty_like, "Meta")
    yield torch.ops.of_a_test
    made._destroy()


def test_ops_that_are_written_in_others(library: Any) -> None:
    check(Module(lambda x: library.halved(x.sin(), 2) + 1), torch.randn(4, 8))
    nested = Module(lambda x: torch.cond(x.sum() > 0, lambda x: library.halved(x, 1), lambda x: x * 2, (x,)))
    rows = torch.export.Dim("rows", min=1, max=64)
    exported = shlo_disc.compile(torch.export.export(nested, (torch.ones(4, 8),), dynamic_shapes=({0: rows},)))
    for sign in (1, -1):
        torch.testing.assert_close(exported(sign * torch.ones(3, 8)), nested(sign * torch.ones(3, 8)))


def test_ops_that_may_look_at_elements_are_refused(library: Any) -> None:
    exported = torch.export.export(Module(lambda x: library.opaque(x)), (torch.randn(4),))
    with pytest.raises(UnsupportedError, match="of_a_test.opaque.default.*has no translation"):
        shlo_disc.compile(exported)


def by_numbers(x: Any) -> Any:
    stated = 0.03, 3, -128, 127, torch.int8
    return OPS.dequantize_per_tensor(OPS.quantize_per_tensor(x, *stated), *stated)


def by_tensors(x: Any) -> Any:
    limits = -128, 127
    scale, zero = OPS.choose_qparams.tensor(x, *limits, 1e-6, torch.int8)
    return OPS.dequantize_per_tensor.tensor(
        OPS.quantize_per_tensor.tensor(x, scale, zero, *limits, torch.int8), scale, zero, *limits, torch.int8
    )


def symmetric(x: Any) -> Any:
    limits = 0, 255
    scale, zero = OPS.choose_qparams_symmetric.tensor(x, *limits, 1e-6, torch.uint8)
    tensors = scale, zero, *(torch.tensor(limit) for limit in limits)
    return OPS.dequantize_per_tensor.tensor2(
        OPS.quantize_per_tensor.tensor2(x, *tensors, torch.uint8), *tensors, torch.uint8
    )


def by_channels(x: Any) -> Any:
    scales, zeros = torch.linspace(0.01, 0.05, 24), torch.arange(24) - 12
    stated = scales, zeros, 1, -128, 127, torch.int8
    return OPS.dequantize_per_channel(OPS.quantize_per_channel(x, *stated), *stated)


@pytest.mark.parametrize("function", [by_numbers, by_tensors, symmetric, by_channels], ids=lambda f: f.__name__)
def test_steps_of_quantised_modules(function: Callable[[Any], Any]) -> None:
    """Programs that torch.export and a quantiser of PT2E make consist of them."""
    check(Module(function), 4 * torch.randn(40, 24))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("eps", [1e-6, 10.0])
def test_scales_are_chosen_as_by_pytorch(dtype: torch.dtype, eps: float) -> None:
    chosen = Module(lambda x: OPS.choose_qparams.tensor(x, -128, 127, eps, torch.int8))
    exported = shlo_disc.compile(torch.export.export(chosen, (torch.ones(4).to(dtype),)))
    for numbers in ([1, 2, 3, 4], [-1, -2, -3, -4], [0, 0, 0, 0], [-3, 1, 5, 0], [math.nan, 1, 2, 3]):
        x = torch.tensor(numbers, dtype=dtype)
        for got, want in zip(exported(x), chosen(x), strict=True):
            if not math.isnan(numbers[0]) or want.is_floating_point():  # NaN is no integer
                torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)


FEATURES, OUTPUTS = 64, 48


def bytes_(*shape: int) -> Any:
    return torch.randint(-128, 128, shape, dtype=torch.int8)


def test_products_of_integers() -> None:
    check(Module(lambda x, w: torch._int_mm(x, w.t()), bytes_(OUTPUTS, FEATURES)), bytes_(40, FEATURES), 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_products_of_narrow_weights(dtype: torch.dtype) -> None:
    weights = bytes_(OUTPUTS, FEATURES), torch.rand(OUTPUTS).to(dtype)
    names = check(
        Module(torch._weight_int8pack_mm, *weights),
        torch.randn(40, FEATURES).to(dtype),
        1e-5 if dtype == torch.float32 else 2**-7,
    )
    assert "dequantized_dot" in names


def scales(kind: str) -> tuple[Any, Any]:
    one = torch.tensor(0.5), torch.tensor(2.0)
    return one if kind == "one" else (torch.rand(1, 1), torch.rand(1, OUTPUTS))


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_scaled_products(dtype: torch.dtype, has_bias: bool) -> None:
    w, bias = torch.randn(OUTPUTS, FEATURES).to(torch.float8_e4m3fn), torch.randn(OUTPUTS).bfloat16()

    def function(x: Any, w: Any, a: Any, b: Any, bias: Any) -> Any:
        return torch._scaled_mm(x, w.t(), a, b, bias=bias if has_bias else None, out_dtype=torch.bfloat16)

    check(Module(function, w, *scales("one"), bias), torch.randn(40, FEATURES).to(dtype), 2**-8)


def test_scaled_products_by_rows() -> None:
    """A scale for each row of x, computed of it, and one for each column of the weight."""
    w, b = torch.randn(OUTPUTS, FEATURES), torch.rand(1, OUTPUTS)

    def function(x: Any, w: Any, b: Any) -> Any:
        a = x.abs().amax(1, keepdim=True) / 448
        return torch._scaled_mm((x / a).to(w.dtype), w.t(), a, b, out_dtype=torch.float32)

    check(Module(function, w.to(torch.float8_e4m3fn), b), torch.randn(40, FEATURES), 1e-4)


def test_scales_of_blocks_are_refused() -> None:
    """One for 128 elements of each row of both sides: as many as rows and columns here, so they would broadcast."""
    terms, rows = 2048, 16
    x, w = (torch.randn(rows, terms).to(torch.float8_e4m3fn) for _ in range(2))
    a, b = torch.rand(rows, terms // 128), torch.rand(terms // 128, rows)
    function = lambda x, w, a, b: torch._scaled_mm(x, w.t(), a, b, out_dtype=torch.float32)  # noqa: E731
    exported = torch.export.export(Module(function, w, a, b), (x,))
    with pytest.raises(UnsupportedError, match="scales of blocks have no translation.*give one scale"):
        shlo_disc.compile(exported)


def configurations() -> list[Any]:
    quantization = pytest.importorskip("torchao.quantization")
    names = ("Int8WeightOnlyConfig", "Float8WeightOnlyConfig", "IntxWeightOnlyConfig",
             "Int8DynamicActivationInt8WeightConfig", "Int8DynamicActivationIntxWeightConfig")  # fmt: skip
    return [getattr(quantization, name)() for name in names]


class Layers(torch.nn.Module):  # type: ignore[misc]
    """Two layers, of which one has a bias."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(FEATURES, 128, bias=False), torch.nn.Linear(128, OUTPUTS)

    def forward(self, x: Any) -> Any:
        return self.second(F.gelu(self.first(x)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_torchao(dtype: torch.dtype) -> None:
    """Weights are multiplied as they are stored, and what x is rounded to may be the next integer."""
    rows = torch.export.Dim("rows", min=1, max=64)
    for configuration in configurations():
        from torchao.quantization import quantize_

        module, x = Layers().to(dtype).eval(), torch.randn(40, FEATURES).to(dtype)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            quantize_(module, configuration)
            exported = torch.export.export(module, (x[:3],), dynamic_shapes=({0: rows},))
        executable = shlo_disc.compile(exported)
        for count in SIZES:
            with torch.no_grad():
                wanted = module(x[:count]).float()
            torch.testing.assert_close(executable(x[:count]).float(), wanted, rtol=0.02, atol=0.02)
