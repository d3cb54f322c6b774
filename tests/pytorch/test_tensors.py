# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors that programs take, and those that they refuse: of gradients, without elements, and of other layouts."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch._subclasses import FakeTensorMode  # noqa: E402

import shlo_disc  # noqa: E402
from shlo_disc.errors import ArgumentTypeError, ProgramError  # noqa: E402

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


class Taking(torch.nn.Module):
    """The first elements, shifted."""

    def forward(self, x: Any, count: Any, shift: Any) -> Any:
        return x[:count] * count + shift


@pytest.fixture(scope="module")
def taking() -> Any:
    count, rows = torch.export.Dim.DYNAMIC, torch.export.Dim.DYNAMIC
    example = torch.ones(9), 3, torch.tensor(1.0)
    return shlo_disc.compile(torch.export.export(Taking(), example, dynamic_shapes=({0: rows}, count, None)))


@pytest.mark.parametrize("kind", [int, np.int64, np.int32, np.uint8, torch.tensor])
def test_integers_of_all_kinds(kind: Any, taking: Any) -> None:
    x, shift = torch.arange(5.0), torch.tensor(2.0)
    torch.testing.assert_close(taking(x, kind(4), shift), Taking()(x, 4, shift))


@pytest.mark.parametrize(
    ("values", "words"),
    [({"count": 4.0}, "count is float, and the program takes an integer: give (.*)"),
     ({"count": np.float32(4)}, "count is float32, and the program takes an integer: give (.*)"),
     ({"count": np.array(4)}, "count is ndarray, and the program takes an integer: give (.*)"),
     ({"shift": 2}, "shift is int, not a tensor: give (.*)"),
     ({"shift": 2.5}, "shift is float, not a tensor: give (.*)"),
     ({"shift": True}, "shift is bool, not a tensor: give (.*)"),
     ({"shift": np.float64(2)}, "shift is float64, not a tensor: give (.*)"),
     ({"shift": np.array(2, np.float32)}, "shift is ndarray, not a tensor; make it one by (.*)"),
     ({"x": [1.0, 2.0, 3.0, 4.0]}, r"x is \[\*, \*, \*, \*\], .*: give (\S*) for numbers, and")],
)  # fmt: skip
def test_what_is_no_tensor(values: dict[str, Any], words: str, taking: Any) -> None:
    """The remedy of the text calls the program."""
    given = {"x": torch.arange(5.0), "count": 3, "shift": torch.tensor(2.0), **values}
    with pytest.raises(ArgumentTypeError) as caught:
        taking(**given)
    found = re.search(f"{words}$" if not words.endswith("and") else words, caught.value.message)
    assert found
    name = next(iter(values))
    given[name] = eval(found[1], {"torch": torch, **values})  # noqa: S307
    wanted = Taking()(torch.as_tensor(given["x"]), int(given["count"]), torch.as_tensor(given["shift"]))
    torch.testing.assert_close(taking(**given), wanted)


def test_arrays_in_place_of_fixed_numbers() -> None:
    run = shlo_disc.compile(torch.export.export(Taking(), (torch.ones(9), 3, torch.tensor(1.0))))
    with pytest.raises(ArgumentTypeError, match=r"count is array\(\[3, 3\]\); the program was exported for 3"):
        run(torch.ones(9), np.array([3, 3]), torch.tensor(1.0))


def test_modules_that_were_converted_after_the_export(tmp_path: Path) -> None:
    """The remedies of the texts call the program."""
    module = torch.nn.BatchNorm1d(4)
    program = torch.export.export(module, (X,))
    run = shlo_disc.compile(program)
    run.save(tmp_path / "program.disc")
    wanted = run(X)
    module.double()
    words = r"Dtype mismatch for weight: .* tensors by (\.to\(torch\.float32\)), and export a module again"
    with torch.no_grad(), pytest.raises(ArgumentTypeError, match=words):
        run(X)
    with pytest.raises(ProgramError, match=r"weight is float64\[4\], and was float32\[4\]: export it again"):
        shlo_disc.compile(program)
    torch.testing.assert_close(
        shlo_disc.compile(torch.export.export(module, (X.double(),)))(X.double()).float(), wanted
    )
    loaded = shlo_disc.load(tmp_path / "program.disc", trust=True)
    with pytest.raises(ArgumentTypeError, match=words):
        loaded.bind(weights=module.state_dict())
    weights = {name: value.to(torch.float32) for name, value in module.state_dict().items() if "tracked" not in name}
    found = loaded.bind(weights=weights)(weights["running_mean"], weights["running_var"], np.int64(0), X)
    np.testing.assert_allclose(found[-1], wanted, rtol=1e-5, atol=1e-6)
    program.state_dict["weight"].data = torch.ones(4)
    program.state_dict["bias"].data = torch.zeros(4)
    program.state_dict["running_mean"].data = torch.zeros(4, dtype=torch.float64)
    with (
        torch.no_grad(),
        pytest.raises(ArgumentTypeError, match="mismatch for running_mean: .* buffers have"),
    ):
        run(X)
