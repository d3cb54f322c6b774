# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions whose number of feature groups is a size, as of filters that are applied to each channel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from shlo_disc.errors import UnsupportedError  # noqa: E402
from shlo_disc.torch import backend  # noqa: E402
from tests.pytorch.judge import close  # noqa: E402
from tests.pytorch.modules import Applied  # noqa: E402

F = torch.nn.functional
CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
SIZES = ((2, 3, 13, 17, 9), (3, 7, 11, 12, 10), (1, 1, 9, 11, 9), (4, 2, 21, 30, 9))


class Filters(torch.nn.Module):
    """A filter of each group, multiples of one another."""

    def __init__(self, window: Sequence[int], inputs: int = 1, outputs: int = 1, **options: Any):
        super().__init__()
        self.window, self.inputs, self.outputs, self.options = window, inputs, outputs, options

    def forward(self, x: Any) -> Any:
        groups, rank = x.shape[1] // self.inputs, len(self.window)
        shape, kind = (self.inputs, *self.window), torch.float64
        weights = torch.arange(torch.Size(shape).numel(), dtype=kind).sin().reshape(1, *shape)
        factors = torch.arange(groups * self.outputs, dtype=kind).cos().reshape(-1, 1, *[1] * rank)
        kernel = (weights.expand(groups * self.outputs, *shape) * factors).to(x.dtype)
        return CONVOLUTIONS[rank](x, kernel, groups=groups, **self.options)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("window", "options"),
    [
        ((3, 5), {}),
        ((3, 3), {"outputs": 2, "stride": 2, "padding": 1}),
        ((5,), {"dilation": 2, "padding": 4}),
        ((3, 2), {"inputs": 2, "outputs": 3, "stride": (2, 1), "dilation": (1, 2)}),
        ((2, 2, 2), {"outputs": 2}),
        ((9, 11), {}),
        ((9, 9), {"inputs": 3, "outputs": 2, "stride": (1, 2), "padding": (3, 4)}),
    ],
)
def test_one_program_serves_each_number_of_groups(window: Sequence[int], options: Any, dtype: Any) -> None:
    module = Filters(window, **options)
    torch._dynamo.reset()
    run = torch.compile(module, backend=backend, dynamic=True)
    torch.manual_seed(0)
    for batch, groups, *space in SIZES:
        x = torch.randn(batch, groups * options.get("inputs", 1), *space[: len(window)]).to(dtype)
        with torch.no_grad():
            close(run(x), module(x), f"of {x.shape}")


def test_windows_whose_size_is_computed_from_sizes() -> None:
    def module(x: Any) -> Any:
        reach = x.shape[-1] // 3
        kernel = torch.ones(x.shape[1], 1, 1, reach) / reach
        return F.conv2d(x, kernel, groups=x.shape[1])

    run = torch.compile(module, backend=backend, dynamic=True)
    for size in ((2, 3, 5, 12), (1, 4, 7, 31), (3, 2, 2, 9)):
        x = torch.randn(size)
        with torch.no_grad():
            close(run(x), module(x), f"of {x.shape}")


@pytest.mark.parametrize("kind", ["a transposed convolution", "the gradient of a convolution"])
def test_what_has_no_lowering_says_so(kind: str) -> None:
    def transposed(x: Any) -> Any:
        return F.conv_transpose2d(x, torch.ones(x.shape[1], 1, 2, 2), groups=x.shape[1])

    def gradient(x: Any) -> Any:
        kernel = torch.ones(x.shape[1], 1, 2, 2)
        wanted, shape = [True, False, False], (x.shape[0], x.shape[1], x.shape[2] + 1, x.shape[3] + 1)
        options = ([1, 1], [0, 0], [1, 1], False, [0, 0], x.shape[1], wanted)
        return torch.ops.aten.convolution_backward(x, x.new_ones(shape), kernel, None, *options)[0]

    module = Applied(transposed if "transposed" in kind else gradient)
    sizes = {1: torch.export.Dim.DYNAMIC}
    exported = shlo_disc.torch.export(module, (torch.ones(2, 3, 4, 5),), dynamic_shapes=(sizes,))
    with pytest.raises(UnsupportedError, match=f"{kind} whose number of groups is a size.*mark_static"):
        shlo_disc.compile(exported)
