# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors that programs take, and those that they refuse: of gradients, without elements, and of other layouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch._subclasses import FakeTensorMode  # noqa: E402

import shlo_disc  # noqa: E402
from shlo_disc.errors import ArgumentTypeError  # noqa: E402

B = torch.export.Dim("b")
X = torch.arange(20.0).reshape(5, 4)


@pytest.fixture(scope="module")
def layer() -> Any:
    return torch.nn.Linear(4, 3)


@pytest.fixture(scope="module")
def run(layer: Any) -> Any:
    return shlo_disc.compile(torch.export.export(layer, (X,), dynamic_shapes=({0: B},)))


@pytest.fixture(scope="module")
def program(run: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("files") / "program.disc"
    run.save(path)
    return shlo_disc.load(path, trust=True)


@pytest.fixture(scope="module")
def bound(program: Any, layer: Any) -> Any:
    return program.bind(weights=layer.state_dict())


@pytest.fixture(scope="module")
def of_jax() -> Any:
    pytest.importorskip("jax")
    return shlo_disc.compile(lambda x: x + 1, args=(("b, 4", "float32"),))


def test_tensors_that_require_a_gradient(run: Any, program: Any, bound: Any, of_jax: Any, layer: Any) -> None:
    """The remedies of the text, and those alone, give the results of other tensors."""
    x = X.clone().requires_grad_()
    weights = layer.weight.detach(), layer.bias.detach()
    calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
        (run, (x,)), (bound, (x,)), (lambda x: bound(input=x), (x,)), (bound.execute, (x,)), (bound.profile, (x,)),
        (program, (*weights, x)), (program.execute, (*weights, x)), (run.executable, (*weights, x)), (of_jax, (x,)),
    ]  # fmt: skip
    for call, args in calls:
        with pytest.raises(ArgumentTypeError, match=r"requires a gradient, .* torch\.no_grad\(\), pass a \.detach\(\)"):
            call(*args)
        wanted = call(*(a.detach() for a in args))
        with torch.no_grad():
            found = call(*args)
        if not isinstance(found, list):
            np.testing.assert_array_equal(found, wanted)


def test_parameters_are_bound(program: Any, bound: Any, layer: Any) -> None:
    wanted = bound(X)
    for run in (program.bind(layer.weight, layer.bias), program.bind(weights=dict(layer.named_parameters()))):
        np.testing.assert_array_equal(run(X), wanted)
    with torch.no_grad():
        np.testing.assert_array_equal(program(layer.weight, layer.bias, X), wanted)
    np.testing.assert_array_equal(program.client.buffer_from_host(layer.bias), layer.bias.detach())


class Marked(torch.Tensor):
    """A class of the user's own."""


def test_views_of_other_signs_and_classes(run: Any, bound: Any) -> None:
    negative = torch.view_as_complex(torch.ones(5, 4, 2)).conj().imag
    for call in (run, bound):
        np.testing.assert_array_equal(call(negative), call(negative.resolve_neg()))
    np.testing.assert_array_equal(bound(X.as_subclass(Marked)), bound(X))
    with pytest.raises(ArgumentTypeError, match=r"input is a Marked: pass its \.as_subclass\(torch\.Tensor\)"):
        run(X.as_subclass(Marked))
    torch.testing.assert_close(run(X.as_subclass(Marked).as_subclass(torch.Tensor)), run(X))


def fake() -> Any:
    with FakeTensorMode():
        return torch.ones(5, 4)


OTHERS: dict[str, tuple[Callable[[], Any], str]] = {
    "sparse": (X.to_sparse, r"of layout torch\.sparse_coo, not a dense one: pass its \.to_dense\(\)"),
    "without elements": (lambda: X.to("meta"), 'of the device "meta", which has no elements'),
    "of a trace": (fake, "a FakeTensor of a trace, which has no elements"),
    "nested": (lambda: torch.nested.nested_tensor([X, X]), "a nested tensor, not a dense one"),
    "quantized": (lambda: torch.quantize_per_tensor(X, 1.0, 0, torch.qint8), "a quantized tensor, not a dense one"),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", OTHERS)
def test_other_tensors(name: str, run: Any, bound: Any, of_jax: Any) -> None:
    make, words = OTHERS[name]
    for call in (run, bound, of_jax):
        with pytest.raises(ArgumentTypeError, match=words):
            call(make())
    np.testing.assert_array_equal(bound(X.to_sparse().to_dense()), bound(X))


def test_transforms_of_pytorch(run: Any, bound: Any) -> None:
    for call in (run, bound):
        with pytest.raises(ArgumentTypeError, match=r"of torch\.vmap or torch\.func, which no compiled program takes"):
            torch.vmap(call)(X[None])


@pytest.mark.parametrize("backend", ["eager", "shlo_disc"])
def test_calls_in_functions_that_dynamo_compiles(run: Any, bound: Any, backend: str) -> None:
    """Dynamo breaks its graph at the call of a program."""
    torch._dynamo.reset()
    with torch.no_grad():
        for call in (run, lambda x: torch.as_tensor(bound(x))):
            found = torch.compile(lambda x, call=call: call(x + 1) * 2, backend=backend)(X)
            torch.testing.assert_close(found, torch.as_tensor(bound(X + 1)) * 2)


def test_other_dtypes(run: Any, bound: Any) -> None:
    """The remedies of the texts convert tensors and arrays."""
    with pytest.raises(ArgumentTypeError, match=r"convert it by input\.to\(torch\.float32\)"):
        run(X.double())
    words = r"convert it by input\.astype\('float32'\), a tensor by \.to\(torch\.float32\)"
    with pytest.raises(ArgumentTypeError, match=words):
        bound(X.double())
    np.testing.assert_array_equal(bound(X.double().to(torch.float32)), bound(X.double().numpy().astype("float32")))
