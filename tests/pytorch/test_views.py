# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views that a compiled graph returns: as eager PyTorch's in numbers, layout and what a write through them changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from shlo_disc.torch import backend, graph_count  # noqa: E402
from tests.pytorch import random_views  # noqa: E402

SIZES = ((4, 6), (5, 8), (9, 4), (3, 12), (6, 10))

PARAMETER = torch.nn.Parameter(torch.arange(512.0).reshape(32, 16))


@pytest.fixture(autouse=True)
def _reset() -> None:
    torch._dynamo.reset()


def layout(value: Any) -> Any:
    """All that a view is besides its elements."""
    return value.shape, value.stride(), value.storage_offset(), value.dtype, value.is_conj()


def same(found: Any, wanted: Any, what: str) -> None:
    """Raises AssertionError unless tensors have the same numbers and layout."""
    assert len(found) == len(wanted), what
    for number, (mine, other) in enumerate(zip(found, wanted, strict=True)):
        assert layout(mine) == layout(other), f"result {number} of {what}"
        assert torch.allclose(mine, other, rtol=1e-5, atol=1e-5), f"result {number} of {what}"


def compare(function: Callable[..., Any], arguments: Callable[[int, int], Any], dynamic: bool | None) -> None:
    """A function beside its compiled form, at all sizes; writes go through the results too."""
    run = torch.compile(function, backend=backend, dynamic=dynamic)
    for n, m in SIZES:
        ours, theirs = arguments(n, m), arguments(n, m)
        found, wanted = list(run(*ours)), list(function(*theirs))
        same(found, wanted, f"{n}, {m}")
        with torch.no_grad():
            for mine, other in zip(found, wanted, strict=True):
                if not any(stride == 0 for stride in mine.stride()):
                    mine.add_(1)
                    other.add_(1)
        tensors = [[v for v in given if isinstance(v, torch.Tensor)] for given in (ours, theirs)]
        same([*found, *tensors[0]], [*wanted, *tensors[1]], f"{n}, {m} after writes")


def _matrix(n: int, m: int) -> Any:
    return (torch.arange(n * m * 1.0).reshape(n, m) / 7,)


def _of_rows(x: Any) -> Any:
    n = x.shape[0]
    return (
        x[n // 2 :],
        x[: n // 2],
        x[n - 1],
        x[-2:],
        x[::2],
        x[1:][:-1],
        *x.split(n // 2),
        *x.chunk(2),
        x.narrow(0, n - 2, 2),
    )


def _of_columns(x: Any) -> Any:
    m = x.shape[1]
    return (
        x[:, : m // 2], x[:, m // 2 :], *x.chunk(2, -1), x[:, -1], x[..., 1::2], x[:, m // 2], x.unfold(1, 2, 2),
        x.view(x.shape[0], 2, -1)[:, 1], *x.view(x.shape[0], 2, -1).unbind(1), x[1:, m // 2 : m - 1],
    )  # fmt: skip


def _in_other_orders(x: Any) -> Any:
    return (
        x.t()[1:],
        x.diagonal(),
        x.diagonal(1),
        x.mT[:, x.shape[0] // 2 :],
        x.flatten()[3:],
        x.view(2, -1)[1],
        x[:, None].movedim(2, 0),
    )


def _expanded(x: Any) -> Any:
    n, m = x.shape
    return x[:1].expand(n, m), x[:, :1].expand(n, m + 1), *torch.broadcast_tensors(x[1:2], x), x[n // 2].expand(n, m)


def _computed(x: Any) -> Any:
    y = x * 2
    z = y.t() + 1
    return y, y[x.shape[0] // 2 :], y[:, x.shape[1] // 2 :], z, z.t()[1:], (x + 1)[:, : x.shape[1] // 2], y.sum(0)


def _computed_alone(x: Any) -> Any:
    return (x.sin().t()[x.shape[1] // 2 :, :-1],)


def _of_parameters(x: Any) -> Any:
    p = PARAMETER.detach()
    return p[: x.shape[0]], p.t()[:, x.shape[0] :], x + p[: x.shape[0], :1], p


def _with_values(x: Any) -> Any:
    return x, x + 1, x[x.shape[0] // 2 :], x


def _broken(x: Any) -> Any:
    y = x[:, x.shape[1] // 2 :]
    torch._dynamo.graph_break()
    z = y[y.shape[0] // 2 :]
    return z, z + 1, y.t()


FUNCTIONS = {
    f.__name__[1:]: f
    for f in (_of_rows, _of_columns, _in_other_orders, _expanded, _computed, _computed_alone, _of_parameters,
              _with_values, _broken)
}  # fmt: skip

QUICK = ("expanded", "computed")


@pytest.mark.parametrize("name", QUICK)
def test_views(name: str) -> None:
    compare(FUNCTIONS[name], _matrix, True)


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_views_from_the_second_size_on(name: str) -> None:
    compare(FUNCTIONS[name], _matrix, None)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - set(QUICK)))
def test_other_views(name: str) -> None:
    compare(FUNCTIONS[name], _matrix, True)


ARGUMENTS: dict[str, Callable[[int, int], Any]] = {
    "behind others": lambda n, m: (torch.arange(2.0 * n * m).reshape(2 * n, m)[n:],),
    "with gaps": lambda n, m: (torch.arange(4.0 * n * m).reshape(2 * n, 2 * m)[::2, m:],),
    "of complex numbers": lambda n, m: (torch.complex(*(_matrix(n, m) * 2)),),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_that_are_views(name: str) -> None:
    def function(x: Any) -> Any:
        return x[x.shape[0] // 2 :], x.t()[1:], x[:, x.shape[1] // 2].conj(), x.real[1:], x * 2

    compare(function, ARGUMENTS[name], True)


def test_a_cache_that_is_written() -> None:
    def function(cache: Any, rows: Any) -> Any:
        t = rows.shape[0]
        cache[:t].copy_(rows)
        return cache[:t], cache[:, : t + 1], cache[t - 1]

    compare(function, lambda n, m: (torch.zeros(16, 3 * n), torch.arange(3.0 * n * n).reshape(n, 3 * n)), True)


@pytest.mark.slow
def test_arguments_that_are_changed() -> None:
    def function(x: Any, k: int) -> Any:
        x.mul_(2)
        x[k:].add_(1)
        return x[k], x[:, k:], x.t()[1:]

    compare(function, lambda n, m: (*_matrix(n, m), n // 2), True)


@pytest.mark.slow
def test_an_argument_whose_axes_are_exchanged_in_place() -> None:
    def function(x: Any) -> Any:
        x.t_()
        return x[1:], x.sum(0)

    compare(function, _matrix, True)


def test_gradients_of_views() -> None:
    def function(x: Any, w: Any) -> Any:
        y = (x @ w)[:, x.shape[0] // 2 :]
        return x[:, x.shape[1] // 2 :], w.chunk(2, -1)[1], y, y.t()[1:], PARAMETER[: x.shape[0]]

    run = torch.compile(function, backend=backend, dynamic=True)
    before = graph_count()
    for n, m in SIZES:
        found, wanted = [], []
        for call, grads in ((run, found), (function, wanted)):
            x, w = _matrix(n, m)[0].requires_grad_(), torch.ones(m, 2 * n, requires_grad=True)
            results = call(x, w)
            total = sum((v.sin().sum() for v in results), torch.zeros(()))
            grads += [v.detach() for v in results]
            grads += torch.autograd.grad(total, (x, w, PARAMETER))
        for mine, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)
    assert graph_count() - before == 2


def test_a_result_may_be_changed_in_place_in_training() -> None:
    """For autograd a result that lies in another order of axes is no view."""
    module = torch.nn.Conv2d(3, 4, 1).to(memory_format=torch.channels_last)
    run = torch.compile(module, backend=backend, dynamic=True)
    for n in (5, 7):
        x = torch.randn(2, 3, n, 9).to(memory_format=torch.channels_last)
        found, wanted = run(x), module(x)
        assert found.stride() == wanted.stride() and found._base is None
        torch.testing.assert_close(found.mul_(2), wanted.mul_(2), rtol=1e-4, atol=1e-5)


def test_views_alone_compile_nothing() -> None:
    before = graph_count()
    compare(lambda x: (x[:, x.shape[1] // 2 :],), _matrix, True)
    assert graph_count() == before


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_random_views(seed: int) -> None:
    assert random_views.judge(seed) == ("agrees", "")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [32, 72])
def test_views_that_pytorch_has_wrong(seed: int) -> None:
    """Views of an argument with gaps that the graph changes in place: `aot_eager` differs from eager PyTorch, too."""
    assert random_views.judge(seed)[0] == random_views.PYTORCHS


def _changed(x: Any, y: Any) -> Any:
    x.add_(1)
    return (y * 2,)


_OVERLAPPING = {
    "columns": lambda a: (a[:, 0], a[:, 2]), "rows": lambda a: (a[:4], a[2:]), "equal": lambda a: (a[:, 1], a[:, 1]),
    "column and row": lambda a: (a[:, 1], a[2]), "transposed": lambda a: (a[1:], a.t()),
}  # fmt: skip


@pytest.mark.parametrize(("name", "dynamic"), [(name, True) for name in _OVERLAPPING] + [("columns", None)])
def test_a_change_of_one_of_two_views_of_a_tensor(name: str, dynamic: bool | None) -> None:
    compare(_changed, lambda n, m: _OVERLAPPING[name](*_matrix(n, m)), dynamic)
