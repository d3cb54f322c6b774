# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch.compile` with our backend: results and gradients beside PyTorch's in double precision, one compile each."""

from __future__ import annotations

import copy
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from shlo_disc.torch import backend, graph_count  # noqa: E402
from shlo_disc.torch.tensors import as_argument  # noqa: E402
from shlo_disc.torch.weights import Weights  # noqa: E402
from tests.pytorch.judge import close  # noqa: E402

nn, F = torch.nn, torch.nn.functional

SIZES = ((4, 6), (3, 9), (7, 2), (5, 17))


@pytest.fixture(autouse=True)
def compiles() -> Iterator[Callable[[], int]]:
    """Counts the graphs that a test compiles."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    start = graph_count()
    yield lambda: graph_count() - start
    torch._dynamo.reset()


class Convolutions(nn.Module):
    """Two convolutions, one with `options`, statistics of a batch, windows."""

    def __init__(self, stride: int, groups: int, padding: int, dilation: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 1)
        self.second = nn.Conv2d(4, 8, 3, stride, padding, dilation, groups)
        self.norm = nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(2)
        self.linear = nn.Linear(8, 5)

    def forward(self, x: Any) -> Any:
        return self.linear(self.pool(torch.relu(self.norm(self.second(self.first(x))))).mean((2, 3)))


class Transposed(nn.Module):
    """A transposed convolution and means of windows."""

    def __init__(self, stride: int, groups: int) -> None:
        super().__init__()
        self.first = nn.Conv1d(3, 4, 1)
        self.second = nn.ConvTranspose1d(4, 8, 3, stride, 1, stride - 1, groups)
        self.pool = nn.AvgPool2d(2)

    def forward(self, x: Any) -> Any:
        return self.pool(torch.tanh(self.second(self.first(x)))[:, None])


class Words(nn.Module):
    """An embedding and a softmax whose result is transposed in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 16)
        self.linear = nn.Linear(16, 50)

    def forward(self, x: Any) -> Any:
        return torch.log_softmax(self.linear(self.table(x)), -1).transpose(1, 2)


def _rows(b: int, t: int) -> Any:
    return torch.randn(b, t, 16)


MODULES: dict[str, tuple[Callable[[], Any], Callable[[int, int], Any]]] = {
    "mlp": (lambda: nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8)), _rows),
    "encoder": (lambda: nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True), _rows),
    "convolution": (lambda: Convolutions(2, 1, 1, 1), lambda b, t: torch.randn(b, 3, t + 10, 19)),
    "wide steps": (lambda: Convolutions(3, 2, 1, 1), lambda b, t: torch.randn(b, 3, t + 10, 19)),
    "groups": (lambda: Convolutions(2, 4, 2, 2), lambda b, t: torch.randn(b, 3, t + 10, 19)),
    "transposed": (lambda: Transposed(2, 2), lambda b, t: torch.randn(b, 3, t + 3)),
    "words": (Words, lambda b, t: torch.randint(0, 50, (b, t))),
}


@pytest.mark.parametrize("name", MODULES)
def test_gradients(name: str, compiles: Callable[[], int]) -> None:
    make, arguments = MODULES[name]
    module = make()
    exact = copy.deepcopy(module).double()
    compiled = torch.compile(module, backend=backend, dynamic=True)
    for sizes in SIZES:
        x = arguments(*sizes)
        found, wanted = compiled(x), exact(x.double() if x.is_floating_point() else x)
        close(found, wanted.float(), f"{name} at {sizes}")
        assert found.stride() == wanted.stride()
        found.square().mean().backward()
        wanted.square().mean().backward()
        pairs = list(zip(module.parameters(), exact.parameters(), strict=True))
        largest = max(float(p.grad.abs().max()) for _, p in pairs)
        for mine, other in pairs:
            assert float((mine.grad - other.grad).abs().max()) <= 1e-5 * largest, f"{name} at {sizes}"
            mine.grad = other.grad = None
    assert compiles() == 2  # one forwards, one backwards


@pytest.mark.parametrize("name", ["mlp", "encoder", "convolution"])
def test_inference(name: str, compiles: Callable[[], int]) -> None:
    make, arguments = MODULES[name]
    module = make().eval()
    compiled = torch.compile(module, backend=backend, dynamic=True)
    for sizes in SIZES:
        x = arguments(*sizes)
        with torch.no_grad():
            close(compiled(x), module(x), f"{name} at {sizes}")
    assert compiles() == 1


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_layers_of_encoders_and_their_masks(norm_first: bool, activation: str, compiles: Callable[[], int]) -> None:
    """The op of an encoder's layer is translated whole; rows of which a mask leaves nothing are NaN there too."""
    layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, activation, batch_first=True, norm_first=norm_first)
    module = layer.eval().requires_grad_(False)
    compiled = torch.compile(module, backend=backend, dynamic=True)
    with torch.no_grad():
        for b, t in SIZES:
            x, padding = torch.randn(b, t, 16), torch.rand(b, t) < 0.3
            padding[0] = True
            causal = torch.triu(torch.ones(t, t, dtype=torch.bool), 1)
            for masks in ({}, {"src_key_padding_mask": padding}, {"src_mask": causal}):
                close(compiled(x, **masks), module(x, **masks), f"{list(masks)} at {b}, {t}")
            padding[:, 0] = False
            both = {"src_key_padding_mask": padding, "src_mask": causal}
            close(compiled(x, **both), module(x, **both), f"both at {b}, {t}")
    assert compiles() == 4


def test_attention_stands_whole_in_inference(compiles: Callable[[], int]) -> None:
    """Heads of queries that share keys, a mask of numbers, a mask of which rows leave nothing, causal bounds."""

    def function(q: Any, k: Any, v: Any, mask: Any, hidden: Any) -> Any:
        shared = F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True, scale=0.3)
        bounded = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        both = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, is_causal=True, attn_mask=mask)[0]
        return shared, bounded, both, *(F.scaled_dot_product_attention(q, k, v, attn_mask=m) for m in (mask, hidden))

    compiled = torch.compile(function, backend=backend, dynamic=True)
    with torch.no_grad():
        for b, t in SIZES:
            q, k, v = torch.randn(3, b, 10, t, 8).unbind()
            mask, hidden = torch.randn(b, 1, t, t), torch.rand(t, t) < 0.5
            hidden[0] = False
            close(compiled(q, k, v, mask, hidden), function(q, k, v, mask, hidden), f"at {b}, {t}")
    assert compiles() == 1


def test_floats_that_are_fixed_are_no_inputs(compiles: Callable[[], int]) -> None:
    """An epsilon is a number in the graph, another one another graph; a float that is computed with stays an input."""

    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.scale = nn.LayerNorm(8), 0.3

        def forward(self, x: Any) -> Any:
            return self.norm(x) * self.scale

    module = Scaled().eval().requires_grad_(False)
    traces: list[int] = []

    def counted(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        traces.append(len(inputs))
        return backend(graph, inputs)

    compiled = torch.compile(module, backend=counted, dynamic=True)

    def check(rows: int) -> None:
        x = torch.randn(rows, 8)
        with torch.no_grad():
            close(compiled(x), module(x), f"at {rows}")

    check(5)
    check(7)
    module.scale = 0.7
    check(6)
    assert (compiles(), len(traces)) == (1, 1)
    module.norm.eps = 0.5
    check(5)
    assert (compiles(), len(traces)) == (2, 2)
    module.norm.eps = 1e-5
    check(9)
    assert compiles() == 2


def test_arguments_are_taken_in_the_order_that_they_lie_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is copied of weights that the gradient's graph takes transposed, nor of an argument that is a view."""
    orders = []

    def watched(value: Any, what: str, order: tuple[int, ...] | None = None) -> Any:
        turned = value if order is None else value.permute(order)
        assert isinstance(value, int) or turned.is_contiguous(), what
        orders.append(order)
        return as_argument(value, what, order)

    monkeypatch.setattr(sys.modules["shlo_disc.torch.backend"], "as_argument", watched)
    module = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8))
    compiled = torch.compile(module, backend=backend, dynamic=True)
    for b, t in SIZES:
        x = torch.randn(b, 16, t).transpose(1, 2).requires_grad_()
        found, wanted = compiled(x), module(x)
        close(found, wanted, f"at {b}, {t}")
        cotangent = torch.randn_like(wanted)
        close(*(torch.autograd.grad(y, x, cotangent)[0] for y in (found, wanted)), f"the gradient at {b}, {t}")
    assert {None, (1, 0), (0, 2, 1)} <= set(orders)


def test_an_argument_that_lies_in_another_order_later(compiles: Callable[[], int]) -> None:
    compiled = torch.compile(lambda x: x.cumsum(1) * 2, backend=backend, dynamic=True)
    for b, t in SIZES:
        for x in (torch.randn(t, b).t(), torch.randn(b, t), torch.randn(2 * b, 3 * t)[::2, ::3]):
            close(compiled(x), x.cumsum(1) * 2, f"at {b}, {t}, {x.stride()}")
    assert compiles() <= 3  # Dynamo's guards may know the strides


def test_changes_in_place_and_views(compiles: Callable[[], int]) -> None:
    def function(x: Any, y: Any) -> Any:
        x.add_(y)
        view = x[1:]
        view.mul_(2)
        return view.t(), x.sum(0), x.shape[0]

    compiled = torch.compile(function, backend=backend, dynamic=True)
    for sizes in SIZES:
        x, y = torch.randn(*sizes), torch.randn(*sizes)
        mine, other = x.clone(), x.clone()
        close(compiled(mine, y), function(other, y), f"at {sizes}")
        close(mine, other, f"the argument at {sizes}")
    assert compiles() == 1


def test_a_graph_break_is_respected(compiles: Callable[[], int]) -> None:
    def function(x: Any) -> Any:
        y = torch.sin(x)
        torch._dynamo.graph_break()
        return torch.cos(y) * x.shape[0]

    compiled = torch.compile(function, backend=backend, dynamic=True)
    for sizes in SIZES:
        x = torch.randn(*sizes)
        close(compiled(x), function(x), f"at {sizes}")
    assert compiles() == 2


def test_an_op_without_translation_is_refused_or_left_to_pytorch(
    caplog: pytest.LogCaptureFixture, compiles: Callable[[], int]
) -> None:
    def function(x: Any) -> Any:
        return torch.special.erfcx(x) + 1

    x = torch.randn(5)
    with pytest.raises(Exception, match=r"aten\.special_erfcx\.default"):
        torch.compile(function, backend=backend)(x)
    torch._dynamo.reset()
    left = torch.compile(function, backend=backend, options={"fallback": True})
    close(left(x), function(x), "left to PyTorch")
    warning = next(text for text in caplog.messages if "a graph is left to PyTorch" in text)
    assert "fallback" not in warning and "aten.special_erfcx.default" in warning and not compiles()


def test_the_log_names_functions_and_sizes(caplog: pytest.LogCaptureFixture) -> None:
    class Doubled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(3, 2)

        def forward(self, x: Any) -> Any:
            return self.layer(x) * 2

    caplog.set_level("INFO", logger="shlo_disc")
    compiled = torch.compile(Doubled(), backend=backend, dynamic=True)
    compiled(torch.randn(5, 3)).sum().backward()
    with torch.no_grad():
        compiled(torch.randn(5, 3))
    lines = [text for text in caplog.messages if text.startswith("torch.compile: graph")]
    assert [line.split(" is the ")[1].split()[0] for line in lines] == ["forward", "backward", "inference"]
    assert all(re.search(r"graph of forward \(.*test_backend\.py:\d+\) for f32\[s\d+, ", line) for line in lines)
    assert lines[0].endswith(", 3], 2 weights") and lines[2].endswith(", 3], 2 weights")


def test_unknown_options_are_refused() -> None:
    with pytest.raises(Exception, match="there is no option 'speed' of options= of torch.compile"):
        torch.compile(torch.sin, backend=backend, options={"speed": 11})(torch.randn(3))


def test_integers_that_may_be_negative() -> None:
    def function(x: Any, n: int, k: int) -> Any:
        return x * n + n * n - k * n, x[:, : x.shape[1] - 1] * k

    compiled = torch.compile(function, backend=backend, dynamic=True)
    x = torch.randn(3, 5)
    for n, k in ((7, 9), (-4, 3), (12, -6), (-9, -8)):
        close(compiled(x, n, k), function(x, n, k), f"{n}, {k}")


def test_frozen_weights_are_bound_until_they_change() -> None:
    torch._dynamo.reset()
    model = torch.nn.Sequential(torch.nn.Linear(7, 9), torch.nn.BatchNorm1d(9), torch.nn.Linear(9, 5)).eval()
    run = torch.compile(model, backend=backend, dynamic=True, options={"freezing": True})
    with torch.no_grad():
        for rows in (3, 8):
            x = torch.randn(rows, 7)
            close(run(x), model(x), f"at {rows}")
            model[0].weight.mul_(2)
            close(run(x), model(x), "after a change in place")
            model[2].weight.data = torch.randn(5, 9)
            close(run(x), model(x), "after another memory")
            model.load_state_dict({name: value * 0.5 for name, value in model.state_dict().items()})
            close(run(x), model(x), "after load_state_dict")


def test_modes_are_ignored_with_a_warning() -> None:
    """The remedy of the text compiles without a warning."""
    layer, x = torch.nn.Linear(4, 3), torch.ones(5, 4)
    for mode in ("max-autotune", "reduce-overhead"):
        torch._dynamo.reset()
        with torch.no_grad(), pytest.warns(UserWarning, match=rf"mode='{mode}'\) .* no effect .*: leave it out;"):
            torch.testing.assert_close(torch.compile(layer, backend=backend, mode=mode)(x), layer(x))
    torch._dynamo.reset()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("error", "torch.compile")
        torch.compile(layer, backend=backend, mode="default")(x)
        torch.compile(layer, backend=backend, options={"threads": 1})(x)


def changes(model: torch.nn.Sequential) -> Iterator[str]:
    """Ways to change weights, those that PyTorch does not count among them; each done when it is told."""
    model[0].weight.mul_(2)
    yield "in place"
    model[0].weight.data.add_(1)
    yield "through .data"
    model[2].bias.detach().numpy()[3] = 7
    yield "through NumPy"
    model[2].weight.data = torch.randn(5, 9)
    yield "another memory"
    model[1].running_mean.data[4] = 2
    yield "a buffer"
    model.load_state_dict({name: value * 0.5 for name, value in model.state_dict().items()})
    yield "load_state_dict"


@pytest.mark.parametrize("calls", [1, 2, 3])
def test_weights_are_bound_while_their_memory_stays_as_it_is(calls: int) -> None:
    torch._dynamo.reset()
    model = torch.nn.Sequential(torch.nn.Linear(7, 9), torch.nn.BatchNorm1d(9), torch.nn.Linear(9, 5)).eval()
    run = torch.compile(model, backend=backend, dynamic=True)
    with torch.no_grad():
        for change in ("nothing", *changes(model)):
            for rows in range(3, 3 + calls):
                x = torch.randn(rows, 7)
                close(run(x), model(x), f"at {rows} after {change}")


def test_checked_weights_are_bound_at_the_second_call_with_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    torch._dynamo.reset()
    weight = torch.nn.Parameter(torch.randn(7, 5).t())
    run = torch.compile(lambda x: torch.nn.functional.linear(x, weight), backend=backend, dynamic=True)
    bound: list[int] = []
    plain = Weights._bind
    monkeypatch.setattr(Weights, "_bind", lambda self, *given: bound.append(1) or plain(self, *given))
    counts = []
    with torch.no_grad():
        for step in range(8):
            if step in (3, 6, 7):
                weight.data[2, 3] += 1
            x = torch.randn(4 + step, 7)
            close(run(x), x @ weight.t(), f"call {step}")
            counts.append(len(bound))
    assert counts == [0, 1, 1, 1, 2, 2, 2, 2]


def test_weights_of_inference_mode_may_be_frozen() -> None:
    torch._dynamo.reset()
    with torch.inference_mode():
        model = torch.nn.Linear(7, 5)
        run = torch.compile(model, backend=backend, dynamic=True, options={"freezing": True})
        for rows in (3, 8):
            x = torch.randn(rows, 7)
            close(run(x), model(x), f"at {rows}")


def test_freezing_leaves_training_as_it_is() -> None:
    torch._dynamo.reset()
    model = torch.nn.Linear(7, 5)
    run = torch.compile(model, backend=backend, dynamic=True, options={"freezing": True})
    for rows in (3, 8):
        x = torch.randn(rows, 7)
        found, wanted = (torch.autograd.grad(f(x).square().sum(), list(model.parameters())) for f in (run, model))
        close(found, wanted, f"at {rows}")
        with torch.no_grad():
            model.weight.add_(1)


def test_a_padding_that_is_a_size() -> None:
    torch._dynamo.reset()

    def padded(x: Any, w: Any, p: int) -> Any:
        return torch.nn.functional.conv2d(x, w, padding=p)

    run = torch.compile(padded, backend=backend, dynamic=True)
    x, w = torch.randn(2, 3, 8, 10), torch.randn(4, 3, 3, 3)
    for p in (2, 3, 5):
        close(run(x, w, p), padded(x, w, p), f"with {p}")


@pytest.mark.parametrize("name", ["Adam", "AdamW", "RMSprop", "Adagrad", "NAdam"])
def test_steps_of_optimizers(name: str) -> None:
    models = nn.Linear(3, 4), nn.Linear(3, 4)
    models[1].load_state_dict(models[0].state_dict())
    own, other = (getattr(torch.optim, name)(model.parameters(), lr=0.01, foreach=False) for model in models)
    step = torch.compile(own.step, backend=backend)
    for _ in range(3):
        x = torch.randn(5, 3)
        for model in models:
            model.zero_grad()
            (model(x) ** 2).sum().backward()
        step()
        other.step()
        for found, wanted in zip(models[0].parameters(), models[1].parameters(), strict=True):
            torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize(("mode", "padding", "factors"), [("sum", None, False), ("mean", 2, False), ("sum", 2, True)])
def test_gradients_of_bags(mode: str, padding: int | None, factors: bool, compiles: Callable[[], int]) -> None:
    module = nn.EmbeddingBag(7, 4, mode=mode, padding_idx=padding)
    compiled = torch.compile(module, backend=backend, dynamic=True)
    for count, offsets in ((9, [0, 3, 3, 5]), (6, [0, 0, 2, 6, 6]), (12, [0, 1, 12]), (5, [0, 2])):
        index, given, found = torch.randint(0, 7, (count,)), torch.rand(count), []
        for run in (module, compiled):
            own = given.clone().requires_grad_() if factors else None
            loss = (run(index, torch.tensor(offsets), per_sample_weights=own) ** 2).sum()
            found.append(torch.autograd.grad(loss, [module.weight, *([own] if own is not None else [])]))
        for wanted, gradient in zip(*found, strict=True):
            torch.testing.assert_close(gradient, wanted)
    assert compiles() == 2


REPLACEMENTS: dict[str, Callable[[Any], Any]] = {
    "assigned": lambda m: m.load_state_dict({k: torch.randn_like(v) for k, v in m.state_dict().items()}, assign=True),
    "a new parameter": lambda m: setattr(m, "weight", torch.nn.Parameter(torch.randn(4, 4))),
    "of another dtype": lambda m: m.double(),
}


@pytest.mark.parametrize("freezing", [False, True])
@pytest.mark.parametrize("name", REPLACEMENTS)
def test_parameters_that_are_replaced(name: str, freezing: bool) -> None:
    torch._dynamo.reset()
    module, x = torch.nn.Linear(4, 4), torch.randn(3, 4)
    compiled = torch.compile(module, backend="shlo_disc", dynamic=True, options={"freezing": freezing})
    with torch.no_grad():
        for _ in range(3):
            compiled(x)
        REPLACEMENTS[name](module)
        for _ in range(3):
            given = x.to(module.weight.dtype)
            torch.testing.assert_close(compiled(given), module(given), rtol=1e-4, atol=1e-5)
