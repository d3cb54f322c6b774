# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions under `torch.compile`: how often Dynamo compiles them, and how one program serves every batch."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from shlo_disc.torch import backend, graph_count  # noqa: E402
from tests.pytorch.judge import close  # noqa: E402

nn = torch.nn

FIRST = (4, 3, 14, 19)
SIZES = (FIRST, (16, 3, 11, 12), (15, 3, 9, 20), (33, 3, 8, 7), (2, 3, 40, 13))


@contextmanager
def without_libraries() -> Iterator[None]:
    """Leave PyTorch one algorithm of convolutions, as docs/torch.md says."""
    with warnings.catch_warnings(), ExitStack() as stack:
        warnings.simplefilter("ignore")  # PyTorch's own, about TF32
        stack.enter_context(torch.backends.mkldnn.flags(enabled=False))
        stack.enter_context(torch.backends.nnpack.flags(enabled=False))
        yield


def _module() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 1), nn.ConvTranspose2d(4, 3, 2, 2))


def _graphs(run: Callable[[Any], Any], sizes: Sequence[tuple[int, ...]], count: Callable[[], int]) -> list[int]:
    """The number of graphs after each call for inference."""
    counts = []
    with torch.no_grad():
        for size in sizes:
            run(torch.randn(size))
            counts.append(count())
    return counts


@pytest.mark.parametrize("sizes", [SIZES, ((1, 3, 14, 19), (1, 3, 120, 80), (1, 3, 19, 14))], ids=["many", "one"])
def test_we_compile_no_more_than_dynamo_does(sizes: Sequence[tuple[int, ...]]) -> None:
    """PyTorch chooses between libraries by the batch, and by the size of a batch of 1, and Dynamo guards the choice."""
    graphs: list[Any] = []
    module = _module()
    torch._dynamo.reset()
    theirs = torch.compile(module, backend=lambda graph, _: graphs.append(graph) or graph.forward, dynamic=True)
    wanted = _graphs(theirs, sizes, lambda: len(graphs))
    torch._dynamo.reset()
    start = graph_count()
    found = _graphs(torch.compile(module, backend=backend, dynamic=True), sizes, lambda: graph_count() - start)
    assert found == wanted
    assert found[-1] <= 2


def test_one_program_serves_every_batch_where_pytorch_has_one_algorithm() -> None:
    module = _module()
    torch._dynamo.reset()
    start = graph_count()
    compiled = torch.compile(module, backend=backend, dynamic=True)
    with without_libraries(), torch.no_grad():
        compiled(torch.randn(FIRST))
    for size in SIZES:
        x = torch.randn(size)
        with torch.no_grad():
            close(compiled(x), module(x), f"at {size}")
    assert graph_count() - start == 1


def test_one_program_serves_the_gradients_of_every_batch() -> None:
    module = _module()
    exact = copy.deepcopy(module).double()
    torch._dynamo.reset()
    start = graph_count()
    compiled = torch.compile(module, backend=backend, dynamic=True)
    with without_libraries():
        compiled(torch.randn(FIRST)).sum().backward()
    for size in SIZES:
        module.zero_grad()
        exact.zero_grad()
        x = torch.randn(size)
        for run, given in ((compiled, x), (exact, x.double())):
            run(given).square().mean().backward()
        for mine, other in zip(module.parameters(), exact.parameters(), strict=True):
            assert float((mine.grad - other.grad).abs().max()) <= 1e-5 * float(other.grad.abs().max()), f"at {size}"
    assert graph_count() - start == 2  # one forwards, one backwards
