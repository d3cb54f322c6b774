# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls raise where PyTorch raises: at sizes from data outside of their checks, at indices that follow from sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from tests.pytorch.judge import close  # noqa: E402
from tests.pytorch.modules import Applied  # noqa: E402

DYNAMIC = torch.export.Dim.DYNAMIC


class Function(torch.nn.Module):
    """A function of tensors and integers as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *values: Any) -> Any:
        return self.function(*values)


def exported(function: Callable[..., Any], values: tuple[Any, ...], shapes: tuple[Any, ...]) -> Any:
    return shlo_disc.compile(torch.export.export(Function(function), values, dynamic_shapes=(shapes,)))


def traced(function: Callable[..., Any], *_: Any) -> Any:
    torch._dynamo.reset()
    return torch.compile(function, backend="shlo_disc", dynamic=True, fullgraph=True)


def agrees(run: Callable[..., Any], function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> tuple[int, int]:
    """The numbers of calls that gave PyTorch's result and that raised as PyTorch does. Raises AssertionError."""
    right = raised = 0
    for values in calls:
        shown = [tuple(v.shape) if isinstance(v, torch.Tensor) and v.dim() else v for v in values]
        try:
            wanted = function(*values)
        except (AssertionError, IndexError, RuntimeError):
            with pytest.raises((shlo_disc.ShapeError, RuntimeError)):
                print(shown, run(*values))
            raised += 1
        else:
            close(run(*values), wanted, str(shown))
            right += 1
    return right, raised


def not_negative(x: Any, count: Any) -> Any:
    n = count.item()
    torch._check(n >= 0)
    torch._check(n <= x.shape[0])
    return x[:n].sum() + n


def positive(x: Any, count: Any) -> Any:
    n = count.item()
    torch._check(n > 0)
    torch._check(n <= x.shape[0])
    return x[:n].sum() + n


def three_or_more(x: Any, count: Any) -> Any:
    n = count.item()
    torch._check(n >= 3)
    torch._check(n <= x.shape[0])
    return x[:n].sum() + n


def above(x: Any, count: Any) -> Any:
    n = count.item()
    torch._check(n > -1)
    torch._check(n < x.shape[0])
    return x[:n] * 2


def narrowed(x: Any, count: Any) -> Any:
    n = count.item()
    torch._check_is_size(n)
    torch._check(n <= x.shape[0])
    return x.narrow(0, 0, n).sum()


def listed(x: Any, count: Any) -> Any:
    n = count.reshape(1).tolist()[0]
    torch._check(n >= 0)
    torch._check(n <= x.shape[0])
    return x[:n].sum()


def less(x: Any, count: Any) -> Any:
    n = count.item() - 3
    torch._check(n >= 0)
    torch._check(n <= x.shape[0])
    return x[:n].sum()


def even(x: Any, count: Any) -> Any:
    n = count.item()
    torch._check(n >= 0)
    torch._check(n % 2 == 0)
    torch._check(n <= x.shape[0])
    return x[:n].sum()


def constrained(x: Any, count: Any) -> Any:
    n = count.item()
    torch.sym_constrain_range(n, min=1, max=6)
    return torch.ones(n) + x.sum()


CHECKED = [not_negative, positive, three_or_more, above, narrowed, listed, less, even, constrained]


@pytest.mark.parametrize("make", [exported, traced])
@pytest.mark.parametrize("function", CHECKED)
def test_an_integer_from_data_outside_of_its_checks(function: Callable[..., Any], make: Callable[..., Any]) -> None:
    x = torch.arange(8.0)
    counts = (4, 0, 1, 2, 3, 6, 7, 8, 9, 12, -1, -2, -(2**31))
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        run = make(function, (x, torch.tensor(4)), (None, None))
        right, raised = agrees(run, function, [(x, torch.tensor(n)) for n in counts])
    assert right >= 3
    assert raised >= 3


def test_an_argument_outside_of_its_range() -> None:
    def function(x: Any, n: int) -> Any:
        return x[:n].sum() + n

    x = torch.arange(8.0)
    program = torch.export.export(Function(function), (x, 4), dynamic_shapes=((None, DYNAMIC),))
    run = shlo_disc.compile(program)
    calls = [(x, n) for n in (4, 3, 8, 2, 9, -1, -8)]
    right, raised = agrees(run, program.module(), calls)
    assert (right, raised) == (4, 3)


ROUNDED = [
    lambda x: x[int(0.5 * x.shape[0]) :].sum(),
    lambda x: x[int(0.5 * x.shape[0]) - 5 :].sum(),
    lambda x: x[int(-0.5 * x.shape[0]) :].sum(),
    lambda x: x[: int(-0.3 * x.shape[0]) + 2].sum(),
    lambda x: x[int(0.7 * x.shape[0]) :].sum(),
    lambda x: x[int(-0.7 * x.shape[0]) :].sum(),
]


@pytest.mark.parametrize("function", ROUNDED)
def test_rounded_sizes_of_either_sign(function: Callable[..., Any]) -> None:
    agrees(traced(function), function, [(torch.arange(float(n)),) for n in (13, 3, 8, 10, 12, 11, 4, 50, 51)])


def rows_of(x: Any, y: Any) -> Any:
    return y[torch.arange(x.shape[0])] + x[:, None]


def behind(x: Any, y: Any) -> Any:
    return y[torch.arange(x.shape[0]) + 2] + x[:, None]


def every_second(x: Any, y: Any) -> Any:
    return y[torch.arange(0, 2 * x.shape[0], 2)] + x[:, None]


def from_the_end(x: Any, y: Any) -> Any:
    return y[torch.arange(x.shape[0]) - 4] + x[:, None]


def both(x: Any, y: Any) -> Any:
    return y[torch.arange(x.shape[0])[:, None], torch.arange(3)[None]] + x[:, None]


def selected(x: Any, y: Any) -> Any:
    return y.index_select(0, torch.arange(x.shape[0]).flip(0)) + x[:, None]


def looked_up(x: Any, y: Any) -> Any:
    return torch.nn.functional.embedding(torch.arange(x.shape[0]), y) + x[:, None]


def gathered(x: Any, y: Any) -> Any:
    return y.gather(0, torch.arange(x.shape[0])[:, None].expand(-1, 3)) + x[:, None]


def assigned(x: Any, y: Any) -> Any:
    return y.index_put((torch.arange(x.shape[0]),), x[:, None].expand(-1, 3))


def scattered(x: Any, y: Any) -> Any:
    return y.scatter_add(0, torch.arange(x.shape[0])[:, None].expand(-1, 3), x[:, None].expand(-1, 3))


INDEXED = [rows_of, behind, every_second, from_the_end, both, selected, looked_up, gathered, assigned, scattered]


@pytest.mark.parametrize("function", INDEXED)
def test_indices_that_follow_from_sizes(function: Callable[..., Any]) -> None:
    axes = {0: DYNAMIC}
    run = exported(function, (torch.randn(5), torch.randn(13, 3)), (axes, axes))
    calls = [(torch.randn(n), torch.randn(m, 3)) for n in (2, 4, 5, 7, 16) for m in (2, 3, 4, 5, 6, 7, 8, 14, 16, 33)]
    right, raised = agrees(run, function, calls)
    assert right >= 5
    assert raised >= 5


TOO_SHORT = {
    "indices in code": (lambda x: x[:, torch.tensor([0, 4])], 5, "reads indices up to 4, which are out of range"),
    "from the end": (lambda x: x[:, [-5, 0]], 5, "reads indices from -5 on, which are out of range"),
    "index_select": (lambda x: x.index_select(1, torch.tensor([4, 0])), 5, "reads indices up to 4"),
    "index_put": (lambda x: x.index_put((torch.tensor([0]), torch.tensor([4])), x[0, :1]), 5, "indices up to 4"),
    "argmax": (lambda x: x.argmax(1), 1, "asks that n >= 1"),
    "argmax of all": (lambda x: x.argmax(), 1, "asks that n >= 1"),
    "max": (lambda x: x.max(1)[0], 1, "asks that n >= 1"),
    "amin": (lambda x: x.amin(1), 1, "asks that n >= 1"),
    "aminmax": (lambda x: torch.aminmax(x, dim=1)[0], 1, "asks that n >= 1"),
}


@pytest.mark.parametrize("name", TOO_SHORT)
def test_sizes_that_eager_refuses(name: str) -> None:
    """The least size that eager takes is right, and one less is an error here too."""
    function, least, words = TOO_SHORT[name]
    sizes = ({1: torch.export.Dim("n")},)
    run = shlo_disc.compile(torch.export.export(Applied(function), (torch.randn(2, 9),), dynamic_shapes=sizes))
    for size in (9, least):
        x = torch.randn(2, size)
        torch.testing.assert_close(run(x), function(x))
    x = torch.randn(2, least - 1)
    with pytest.raises((IndexError, RuntimeError)):
        function(x)
    with pytest.raises(shlo_disc.ShapeError, match=words):
        run(x)


class Joined(torch.nn.Module):
    """A step of decoding: a mask is one longer than the keys that are kept."""

    def forward(self, mask: Any, keys: Any, new: Any) -> Any:
        every = torch.cat([keys, new], 1)
        return every.masked_fill(mask[:, :, None] == 0, 0.0).sum(1)


def test_starts_that_follow_from_those_of_other_sizes() -> None:
    """PyTorch takes all sizes to be 2 or more, and so the length of the mask 3 or more: no reason to refuse less."""
    axes = {0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO}
    example = (torch.ones(3, 6), torch.randn(3, 5, 4), torch.randn(3, 1, 4))
    run = shlo_disc.compile(
        torch.export.export(Joined(), example, dynamic_shapes=(axes, axes, {0: torch.export.Dim.AUTO}))
    )
    for rows, kept in ((2, 5), (1, 2), (2, 1), (3, 0)):
        values = (torch.ones(rows, kept + 1), torch.randn(rows, kept, 4), torch.randn(rows, 1, 4))
        close(run(*values), Joined()(*values), f"at {rows, kept}")
    with pytest.raises(shlo_disc.ShapeError):
        run(torch.ones(2, 7), torch.randn(2, 5, 4), torch.randn(2, 1, 4))


EMPTY: dict[str, Callable[[Any, Any], Any]] = {
    "gather": lambda x, k: x.gather(1, k[:, None]),
    "index": lambda x, k: x[k, k],
    "cross entropy": lambda x, k: torch.nn.functional.cross_entropy(x, k, reduction="sum"),
    "scatter_add": lambda x, k: x.scatter_add(1, k[:, None], x.detach()[:, :1]),
    "index_select": lambda x, k: x.index_select(0, k),
    "take_along_dim": lambda x, k: torch.take_along_dim(x, k[:, None], 1),
    "embedding": lambda x, k: torch.nn.functional.embedding(k, x),
}


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", EMPTY)
def test_batches_of_none_under_torch_compile(name: str, grad: bool) -> None:
    """A first call without rows, whose sizes of 0 PyTorch fixes."""
    function = EMPTY[name]
    run = traced(function)
    for rows in (0, 4, 0):
        x, k = torch.randn(rows, 4, requires_grad=grad), torch.zeros(rows, dtype=torch.int64)
        found, wanted = run(x, k), function(x, k)
        close(found, wanted, f"{name} of {rows}")
        if grad:
            close(*(torch.autograd.grad(v.sum(), x)[0] for v in (found, wanted)), f"gradient of {name} of {rows}")


def test_an_index_into_an_empty_axis_is_refused() -> None:
    with pytest.raises(Exception, match="an index into an axis of size 0"):
        traced(lambda x, k: x[k])(torch.randn(0, 4), torch.zeros(3, dtype=torch.int64))


def test_empty_axes_that_eager_takes() -> None:
    """Ops that PyTorch takes apart into maxima are right of nothing."""

    def function(x: Any) -> Any:
        return x.softmax(1), x.log_softmax(1), x.logsumexp(1), x.amax(0), x.T.argmax(1)[:0], x[:, :0].amax(0)

    sizes = ({1: torch.export.Dim("n")},)
    run = shlo_disc.compile(torch.export.export(Applied(function), (torch.randn(2, 9),), dynamic_shapes=sizes))
    for size in (0, 1, 5):
        x = torch.randn(2, size)
        torch.testing.assert_close(run(x), function(x))


def test_indices_in_code_under_torch_compile() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: x[:, torch.tensor([0, 4])], backend=shlo_disc.torch.backend, dynamic=True)
    for size in (9, 5):
        x = torch.randn(2, size)
        torch.testing.assert_close(compiled(x), x[:, [0, 4]])
    with pytest.raises(shlo_disc.ShapeError, match="reads indices up to 4"):
        compiled(torch.randn(2, 3))
