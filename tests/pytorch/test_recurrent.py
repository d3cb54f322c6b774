# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent modules, exported for any length."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from shlo_disc.torch import as_scans, backend, export, graph_count  # noqa: E402
from tests.pytorch.judge import close  # noqa: E402

nn = torch.nn
B, T = torch.export.Dim("b"), torch.export.Dim("t")

MODULES: dict[str, Any] = {
    "lstm": lambda: nn.LSTM(6, 8, batch_first=True),
    "deep lstm both ways": lambda: nn.LSTM(6, 8, 2, bidirectional=True, batch_first=True, dropout=0.3),
    "lstm with a projection": lambda: nn.LSTM(6, 8, proj_size=5, batch_first=True),
    "gru": lambda: nn.GRU(6, 8, 2, batch_first=True),
    "gru without bias": lambda: nn.GRU(6, 8, bias=False, bidirectional=True, batch_first=True),
    "rnn": lambda: nn.RNN(6, 8, nonlinearity="relu", batch_first=True),
    "lstm, time first": lambda: nn.LSTM(6, 8),
}


@pytest.mark.parametrize("name", MODULES)
def test_any_length(name: str) -> None:
    torch.manual_seed(0)
    module = MODULES[name]().eval()
    axes = {0: B, 1: T} if module.batch_first else {0: T, 1: B}
    run = shlo_disc.compile(export(module, (torch.randn(3, 5, 6),), dynamic_shapes=(axes,)))
    for sizes in ((2, 7), (1, 1), (4, 33), (3, 2)):
        x = torch.randn(*sizes, 6)
        with torch.no_grad():
            close(run(x), module(x), f"{name} at {sizes}")
    assert run.compile_count == 1
    assert "scan" not in str(nn.LSTM.forward)


def test_an_export_knows_nothing_of_the_sizes_of_another() -> None:
    export(nn.LSTM(4, 8).eval(), (torch.randn(3, 2, 4),), dynamic_shapes=({0: T},))
    module = nn.GRU(6, 8, 2, batch_first=True).eval()
    run = shlo_disc.compile(export(module, (torch.randn(3, 5, 6),), dynamic_shapes=({0: B, 1: T},)))
    for b in (2, 5):
        x = torch.randn(b, 4, 6)
        with torch.no_grad():
            close(run(x), module(x), f"at {b}")


def test_given_states() -> None:
    module = nn.LSTM(6, 8, batch_first=True).eval()
    state = (torch.randn(1, 3, 8), torch.randn(1, 3, 8))
    shapes = ({0: B, 1: T}, ({1: B}, {1: B}))
    run = shlo_disc.compile(export(module, (torch.randn(3, 5, 6), state), dynamic_shapes=shapes))
    for b, t in ((2, 7), (1, 3)):
        values = torch.randn(b, t, 6), (torch.randn(1, b, 8), torch.randn(1, b, 8))
        with torch.no_grad():
            close(run(*values), module(*values), f"at {b}, {t}")


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn"])
def test_gradients_at_any_length(name: str) -> None:
    torch.manual_seed(0)
    torch._dynamo.reset()
    module = MODULES[name]()
    weights = list(module.parameters())

    def loss(x: Any) -> Any:
        return module(x)[0].square().mean()

    run, before, found = torch.compile(loss, backend=backend, dynamic=True, fullgraph=True), graph_count(), {}
    with as_scans():
        for sizes in ((2, 7), (3, 9), (5, 33)):
            x = torch.randn(*sizes, 6, requires_grad=True)
            found[x] = torch.autograd.grad(run(x), [x, *weights])
    assert graph_count() - before == 2  # forwards and backwards
    for x, gradients in found.items():
        close(gradients, torch.autograd.grad(loss(x), [x, *weights]), f"{name} at {list(x.shape)}")


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Linear(6, 6)
        self.rows = nn.LSTM(6, 8, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.rows(self.embedding(x))[0] * 2


@pytest.mark.parametrize("make", [Tagger, lambda: nn.GRU(6, 8)])
def test_modules_that_dynamo_leaves_out(make: Any) -> None:
    """A warning says so, and its remedy compiles the module; other backends and modules have none."""
    module, x = make().eval(), torch.randn(2, 5, 6)
    for name in (backend, "eager"):
        torch._dynamo.reset()
        before = graph_count()
        with warnings.catch_warnings(record=True) as caught, torch.no_grad():
            warnings.simplefilter("always")
            torch.compile(module, backend=name, dynamic=True)(x)
        assert graph_count() == before
        texts = [str(w.message) for w in caught if "as_scans" in str(w.message)]
        assert len(texts) == (name is backend)
        if texts:
            assert "`with shlo_disc.torch.as_scans(): compiled(x)`" in texts[0]
    torch._dynamo.reset()
    compiled = torch.compile(module, backend=backend, dynamic=True)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.filterwarnings("error", ".*as_scans")
        with as_scans():
            compiled(x)
        other = torch.randn(3, 9, 6)
        close(compiled(other), module(other), "another length")
    assert graph_count() > before


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize(("dim", "name"), [(B, "b"), (torch.export.Dim.DYNAMIC, r"input\.shape\[0\]")])
def test_examples_whose_sizes_pytorch_fixes(size: int, dim: Any, name: str) -> None:
    """The error says to give an example of 2, with which the export is right for a size of 1."""
    module = nn.Linear(6, 3)
    words = rf"a size of {size} \({name}\) that is dynamic.*give an example in which it is 2 or more"
    with pytest.raises(shlo_disc.ProgramError, match=words):
        export(module, (torch.randn(size, 6),), dynamic_shapes=({0: dim},))
    run = shlo_disc.compile(export(module, (torch.randn(2, 6),), dynamic_shapes=({0: dim},)))
    x = torch.randn(size, 6)
    with torch.no_grad():
        close(run(x), module(x), "a size that examples do not have")
