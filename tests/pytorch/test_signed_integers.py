# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers that may be negative, as ends of slices, indices, shifts, offsets and paddings, beside eager PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from shlo_disc.torch import backend  # noqa: E402

F = torch.nn.functional

NUMBERS = (2, -2, 0, 1, -1, 3, -3, 5, -5, 6, -6, 7, -7, 100, -100)
"""Integers of both signs, in and out of range, for axes of 5 and 6."""

DYNAMIC = torch.export.Dim.DYNAMIC


@pytest.fixture(autouse=True)
def _reset() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch._dynamo.config.patch(recompile_limit=64, capture_scalar_outputs=True):
        yield


def outcome(function: Callable[..., Any], *values: Any) -> Any:
    """A result and the gradient of its squares; None where the call raises."""
    leaves = [v.clone().requires_grad_(v.is_floating_point()) if isinstance(v, torch.Tensor) else v for v in values]
    try:
        found = function(*leaves)
    except (AssertionError, IndexError, RuntimeError, ValueError, torch._dynamo.exc.TorchRuntimeError):
        return None
    if not found.requires_grad or not found.numel():
        return found.detach(), None
    return found.detach(), torch.autograd.grad(found.square().sum(), leaves[0])[0]


def compare(function: Callable[..., Any], dynamic: Callable[..., Any], numbers: Any) -> int:
    """The number of integers at which a function has a result; the compiled one has the same there, and else raises."""
    right = 0
    for number in numbers:
        x = torch.randn(5, 6)
        wanted, found = outcome(function, x, number), outcome(dynamic, x, number)
        assert (wanted is None) == (found is None), f"at {number}"
        torch.testing.assert_close(found, wanted, msg=lambda text, number=number: f"at {number}: {text}")
        right += wanted is not None
    return right


FEW: dict[str, tuple[Callable[..., Any], int]] = {
    "start": (lambda x, k: x[k:], 15),
    "start of a negated integer": (lambda x, k: x[:, slice(-k, None)], 15),
    "indices": (lambda x, k: x[k] + x[k + 1], 8),
}
MANY: dict[str, tuple[Callable[..., Any], int]] = {
    "end": (lambda x, k: x[:, :k], 15),
    "start, to a negative end": (lambda x, k: x[k:-1], 15),
    "end, from a negative start": (lambda x, k: x[-4:k], 15),
    "start with a step": (lambda x, k: x[k::2], 15),
    "both ends": (lambda x, k: x[k : k + 2], 15),
    "halves": (lambda x, k: x[k // 2 : k % 3], 15),
    "slice of a slice": (lambda x, k: x.flip(0)[k:].softmax(0), 15),
    "operand of a product": (lambda x, k: x[k:] @ x.T, 15),
    "parts put together": (lambda x, k: torch.cat([x[k:], x[:k]]), 15),
    "index": (lambda x, k: x[:, k], 10),
    "narrow": (lambda x, k: x.narrow(0, k, 2), 7),
    "index beside indices": (lambda x, k: x[torch.tensor([0, 1]), k], 10),
    "indices by arange": (lambda x, k: x.index_select(0, torch.arange(3) + k), 3),
    "shift": (lambda x, k: x.roll((k, 2 * k), (0, 1)), 15),
    "shift of all": (lambda x, k: x.roll(k), 15),
    "lower triangle": (lambda x, k: x.tril(k), 15),
    "upper triangle": (lambda x, k: x.triu(k), 15),
    "arange from": (lambda x, k: x.sum() + torch.arange(k, x.shape[0]), 12),
    "arange to": (lambda x, k: x.sum() * torch.arange(0, k, -1 if k < 0 else 1), 15),
    "parts": (lambda x, k: x.tensor_split((k,), 1)[1], 15),
    "numbers": (lambda x, k: x * k + x * (k // 2) - x * (k / 3) + torch.full((6,), k), 15),
    "bound": (lambda x, k: x.clamp(k), 15),
    "slice that is replaced": (lambda x, k: torch.slice_scatter(x, torch.ones(2, 6), 0, k, k + 2), 6),
    "index that is replaced": (lambda x, k: torch.select_scatter(x, torch.ones(6), 0, k), 8),
}  # fmt: skip


@pytest.mark.parametrize("name", FEW)
def test_few(name: str) -> None:
    function, count = FEW[name]
    assert compare(function, torch.compile(function, backend=backend, dynamic=True), NUMBERS) == count


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY)
def test_many(name: str) -> None:
    function, count = MANY[name]
    assert compare(function, torch.compile(function, backend=backend, dynamic=True), NUMBERS) == count


@pytest.mark.slow
def test_padding() -> None:
    def function(x: Any, k: int) -> Any:
        return F.pad(x, (k, 1))

    dynamic = torch.compile(function, backend=backend, dynamic=True)
    assert compare(function, dynamic, (2, -2, 0, 3, -5, -6, 100, -100)) == 7


def test_a_tensor_whose_size_is_a_negated_integer() -> None:
    """The backward graph takes `x[k:]`, which has -k rows."""
    function = torch.compile(lambda x, k: (x[k:].exp() * x[k:]).sum(0), backend=backend, dynamic=True)
    assert compare(lambda x, k: (x[k:].exp() * x[k:]).sum(0), function, (-2, -3, -4)) == 3


OF_DATA: dict[str, Callable[..., Any]] = {
    "start": lambda x, k: x[(k + 1).item() :] * 2,
    "end": lambda x, k: x[:, : (k + 1).item()] * 2,
    "start with a step": lambda x, k: x[(k + 1).item() :: 2] * 2,
    "index": lambda x, k: x[(k + 1).item()],
    "shift": lambda x, k: x.roll((k + 1).item(), 0),
    "number": lambda x, k: x * (k + 1).item(),
}


@pytest.mark.parametrize("name", OF_DATA)
def test_integers_from_data(name: str) -> None:
    function = OF_DATA[name]
    run = torch.compile(function, backend=backend, dynamic=True, fullgraph=True)
    with torch.no_grad():
        for number in (1, -1, -3, 3, 7, -8, 100) if name != "index" else (1, -1, -3, 3):
            x, k = torch.randn(5, 6), torch.tensor(number)
            torch.testing.assert_close(run(x, k), function(x, k), msg=lambda text, k=k: f"at {k}: {text}")


def test_an_exported_integer() -> None:
    """PyTorch exports programs for integers that are not negative, and a call with another one is rejected."""

    class Function(torch.nn.Module):
        def forward(self, x: Any, k: int) -> Any:
            return x[k:] * 2, x.roll(k, 0)

    run = shlo_disc.compile(
        torch.export.export(Function(), (torch.randn(5, 6), 2), dynamic_shapes=({0: DYNAMIC}, DYNAMIC))
    )
    for rows, number in ((5, 2), (9, 0), (9, 4)):
        x = torch.randn(rows, 6)
        torch.testing.assert_close(run(x, number), Function()(x, number))
    with pytest.raises(shlo_disc.ShapeError, match="k >= 0"):
        run(torch.randn(5, 6), -2)


def test_an_expression_that_has_no_lowering_names_the_fallback() -> None:
    function = torch.compile(lambda x, k: x[: k & 3] * 2, backend=backend, dynamic=True)
    with pytest.raises(Exception, match=r'no expression over sizes; .*pass options=\{"fallback": True\}'):
        function(torch.randn(5, 6), 6)


@pytest.mark.slow
def test_the_loss_of_gpt2() -> None:
    """Its `slice(-logits_to_keep, None)` stands in transformers, where users can add no check."""
    pytest.importorskip("transformers")
    from corpus import torch_models  # noqa: F401  # declares ops of torchvision, which transformers imports

    transformers = pytest.importorskip("transformers.models.gpt2.modeling_gpt2")
    config = transformers.GPT2Config(vocab_size=50, n_positions=64, n_embd=32, n_layer=2, n_head=2)
    config.bos_token_id = config.eos_token_id = 0
    config.attn_pdrop = config.embd_pdrop = config.resid_pdrop = 0
    model = transformers.GPT2LMHeadModel(config)
    run = torch.compile(model, backend=backend, dynamic=True)
    for shape in ((3, 7), (2, 9), (5, 20)):
        x = torch.randint(0, 50, shape)
        losses = [module(input_ids=x, labels=x).loss for module in (run, model)]
        torch.testing.assert_close(*losses)
        torch.testing.assert_close(*(torch.autograd.grad(loss, list(model.parameters())) for loss in losses))
