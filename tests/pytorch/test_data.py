# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random numbers, and sizes that are read from data."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from shlo_disc.errors import ShapeError  # noqa: E402
from shlo_disc.torch import backend  # noqa: E402
from tests.pytorch.judge import close  # noqa: E402

B = torch.export.Dim("b")


class _Function(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


def compiled(function: Callable[..., Any], x: Any) -> Any:
    return shlo_disc.compile(torch.export.export(_Function(function), (x,), dynamic_shapes=(({0: B},))))


@pytest.mark.parametrize(
    ("draw", "mean", "deviation"),
    [
        (torch.rand_like, 0.5, 12**-0.5),
        (torch.randn_like, 0.0, 1.0),
        (lambda x: torch.bernoulli(x, 0.3), 0.3, 0.21**0.5),
        (lambda x: torch.randint(2, 12, x.shape).float(), 6.5, (99 / 12) ** 0.5),
        (lambda x: torch.nn.functional.dropout(torch.ones_like(x), 0.25), 1.0, 3**-0.5),
        (lambda x: x.clone().uniform_(-1, 3), 1.0, 4 * 12**-0.5),
        (lambda x: x.clone().normal_(2, 3), 2.0, 3.0),
    ],
)  # fmt: skip
def test_distributions(draw: Callable[..., Any], mean: float, deviation: float) -> None:
    run = compiled(lambda x: (draw(x), draw(x)), torch.zeros(5, 4))
    torch.manual_seed(3)
    first, second = run(torch.zeros(20000, 4))
    for found in (first, second):
        assert abs(float(found.mean()) - mean) < 0.03 * deviation
        assert abs(float(found.std()) - deviation) < 0.03 * deviation
    assert not torch.equal(first, second)
    pair = torch.stack([first.flatten(), second.flatten()])
    assert abs(float(torch.corrcoef(pair)[0, 1])) < 0.02
    torch.manual_seed(3)
    again, _ = run(torch.zeros(20000, 4))
    assert torch.equal(first, again)
    other, _ = run(torch.zeros(20000, 4))
    assert not torch.equal(again, other)


def test_dropout_has_the_gradient_of_what_it_kept() -> None:
    torch._dynamo.reset()
    run = torch.compile(lambda x: torch.nn.functional.dropout(x, 0.5) * 2, backend=backend, dynamic=True)
    for rows in (6, 9):
        x = torch.randn(rows, 50, requires_grad=True)
        y = run(x)
        y.sum().backward()
        kept = y.detach() != 0
        close(x.grad, torch.where(kept, 4.0, 0.0), "gradient")
        assert 0.3 < float(kept.float().mean()) < 0.7


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.nonzero(x > 0.5),
        lambda x: x[x > 0.5] * 2,
        lambda x: x[x[:, 0] > 0.5].sum(1),
        lambda x: x[:, x[0] > 0],
        lambda x: (x > 0.5).nonzero(as_tuple=True),
        lambda x: torch.masked_select(x, x[0] > 0),
    ],
)
def test_sizes_of_masks(function: Callable[..., Any]) -> None:
    run = compiled(function, torch.randn(5, 4))
    for rows in (1, 2, 7, 33):
        x = torch.randn(rows, 4)
        close(run(x), function(x), f"{rows} rows")
    close(run(-torch.ones(3, 4)), function(-torch.ones(3, 4)), "nothing")


def test_an_integer_becomes_a_size() -> None:
    def function(x: Any) -> Any:
        n = x.abs().sum().to(torch.int64).item()
        torch._check(n >= 0)
        return torch.ones(n) * 2, n

    run = compiled(function, torch.randn(5, 4))
    for rows in (1, 3, 8):
        x = torch.randn(rows, 4)
        close(run(x), function(x), f"{rows} rows")


PIECES: dict[str, Callable[..., Any]] = {
    "a start": lambda x, s, n: x.narrow(0, s.item(), 2),
    "a start of columns": lambda x, s, n: x.narrow(1, s.item(), 3),
    "no elements": lambda x, s, n: x.narrow(0, s.item(), 0),
    "a length": lambda x, s, n: x.narrow(0, 1, n.item()),
    "a start and a length": lambda x, s, n: torch.narrow(x, 0, s.item(), n.item()),
    "a start and a length of sizes": lambda x, s, n: x.narrow(0, s.item(), x.shape[0] // 2),
    "a start that is computed": lambda x, s, n: x.narrow(0, (s * 2 - n).item(), 2),
    "ends of a slice": lambda x, s, n: x[s.item() : s.item() + 2],
}
"""Pieces of a tensor [rows, 6] by two integers that are read from data."""


class _Pieces(_Function):
    def forward(self, x: Any, s: Any, n: Any) -> Any:  # type: ignore[override]
        return self.function(x, s, n)


def _of(dtype: Any, rows: int) -> Any:
    numbers = torch.randn(rows, 6) * 3
    return numbers > 0 if dtype == torch.bool else numbers.to(dtype)


def _calls(dtype: Any, sizes: tuple[int, ...]) -> Any:
    """Rows, starts at both sides of all bounds, and lengths."""
    for rows in sizes:
        for start in sorted(
            {-rows - 3, -rows - 1, -rows, -rows + 1, -2, -1, 0, 1, 2, rows - 2, rows - 1, rows, rows + 1}
        ):
            for count in (-1, 0, 1, 2, rows, rows + 1):
                yield _of(dtype, rows), torch.tensor(start), torch.tensor(count)


def _compare_pieces(run: Callable[..., Any], function: Callable[..., Any], calls: Any) -> int:
    """The number of calls that eager PyTorch admits; what it rejects is rejected, all others have its numbers."""
    kept = 0
    for values in calls:
        what = f"{tuple(values[0].shape)} from {int(values[1])}, {int(values[2])}"
        try:
            wanted = function(*values)
        except (RuntimeError, IndexError):
            with pytest.raises(Exception, match=r"\w"):
                run(*values)
            continue
        close(run(*values), wanted, what)
        kept += 1
    return kept


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
@pytest.mark.parametrize("name", PIECES)
def test_pieces_whose_start_or_length_is_data(name: str, dtype: Any) -> None:
    torch.manual_seed(0)
    example = _of(dtype, 7), torch.tensor(2), torch.tensor(2)
    dynamic = {"x": {0: torch.export.Dim.DYNAMIC}, "s": None, "n": None}
    run = shlo_disc.compile(torch.export.export(_Pieces(PIECES[name]), example, dynamic_shapes=dynamic))
    sizes = (2, 7, 8, 9, 33) if "of sizes" in name else (0, 1, 2, 7, 8, 9, 33)
    assert _compare_pieces(run, PIECES[name], _calls(dtype, sizes)) > 20


@pytest.mark.parametrize("name", PIECES)
def test_compiled_pieces_whose_start_or_length_is_data(name: str) -> None:
    torch._dynamo.reset()
    run = torch.compile(PIECES[name], backend=backend, dynamic=True, fullgraph=True)
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        assert _compare_pieces(run, PIECES[name], _calls(torch.float32, (7, 2, 8, 9, 33))) > 20


def test_words_of_a_piece_that_is_out_of_range() -> None:
    dynamic = {"x": {0: torch.export.Dim.DYNAMIC}, "s": None, "n": None}
    example = _of(torch.float32, 7), torch.tensor(2), torch.tensor(2)
    run = shlo_disc.compile(torch.export.export(_Pieces(PIECES["a start"]), example, dynamic_shapes=dynamic))
    words = r"A size that the program reads from data does not fit. \S+:\d+ asks that .*Here s\d+ = 7, u\d+ = 6; "
    words += r"u\d+ is the value of s that \.item\(\) reads at \S+:\d+\..*: call it with data for which this holds"
    with pytest.raises(ShapeError, match=words) as caught:
        run(_of(torch.float32, 7), torch.tensor(6), torch.tensor(2))
    assert not re.search(r"max\(|min\(", str(caught.value))


class _Half(torch.nn.Module):
    """Half of the rows, from one on."""

    def forward(self, x: Any, start: Any) -> Any:
        return x.narrow(0, start.item(), x.shape[0] // 2)


def test_a_piece_of_no_rows() -> None:
    """PyTorch takes all sizes to be 2 or more, which is no condition on pieces either."""
    dynamic = {"x": {0: torch.export.Dim.DYNAMIC}, "start": None}
    example = torch.ones(10, 3), torch.tensor(2)
    run = shlo_disc.compile(torch.export.export(_Half(), example, dynamic_shapes=dynamic))
    calls = [(torch.randn(n, 3), torch.tensor(start)) for n in (0, 1, 2, 3, 9) for start in (-1, 0, 1, 2)]
    results = 0
    for values in calls:
        try:
            wanted = _Half()(*values)
        except (RuntimeError, IndexError):
            with pytest.raises(ShapeError, match=r"u\d+ is the value of start that \.item\(\) reads"):
                run(*values)
            continue
        assert torch.equal(run(*values), wanted)
        results += 1
    assert results > 12
