# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that a program refuses as PyTorch took another way for them: errors name the line, and their remedies work."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.export import Dim  # noqa: E402

import shlo_disc  # noqa: E402
from shlo_disc.errors import ProgramError, ShapeError, UnsupportedError  # noqa: E402
from tests.pytorch.modules import Applied  # noqa: E402

BY_DIFFERENCES = "donot_use_mm_for_euclid_dist"


def compiled(function: Callable[..., Any], rows: int, size: Any, export: Any = None) -> Any:
    """A program that was exported for a matrix of so many rows, of a size."""
    export = export or shlo_disc.torch.export
    return shlo_disc.compile(export(Applied(function), (torch.randn(rows, 3),), dynamic_shapes=({0: size},)))


def branch(x: Any) -> Any:
    return x * 2 if x.shape[0] > 5 else x + 1


def every_second(x: Any) -> Any:
    return x[::2] * torch.arange(0, x.shape[0], 2)[:, None]


def distances(x: Any) -> Any:
    return torch.cdist(x, x)


def alone(x: Any) -> Any:
    return x * 2 if x.shape[0] == 1 else x


TAKEN: dict[str, tuple[Callable[[Any], Any], int, int, str]] = {
    "a branch": (branch, 4, 9, "above its range, which ends at 5, as PyTorch took it for an op or a branch at "),
    "the other branch": (branch, 9, 4, "below its range, which starts at 6, as PyTorch took it for an op or a branch"),
    "cdist": (distances, 4, 90, "which ends at 25, as PyTorch took it for torch.cdist at "),
    "cdist of many": (distances, 90, 4, "which starts at 26, as PyTorch took it for torch.cdist at "),
}


@pytest.mark.parametrize("name", TAKEN)
def test_a_range_of_pytorch(name: str) -> None:
    function, rows, other, words = TAKEN[name]
    run, x = compiled(function, rows, Dim.DYNAMIC), torch.randn(other, 3)
    with pytest.raises(ShapeError) as raised:
        run(x)
    text = str(raised.value)
    line = inspect.getsourcelines(function)[1] + 1
    assert words in text and f"{Path(__file__).name}:{line}" in text
    assert "export the module again with an example" in text and "its Dim" not in text
    torch.testing.assert_close(compiled(function, other, Dim.DYNAMIC)(x), function(x), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("export", [torch.export.export, shlo_disc.torch.export])
@pytest.mark.parametrize("name", ["a branch", "cdist"])
def test_a_range_of_pytorch_in_a_plain_export(name: str, export: Any) -> None:
    function, rows, other, _ = TAKEN[name]
    with pytest.raises(ShapeError, match="as PyTorch took it for"):
        compiled(function, rows, Dim.AUTO, export)(torch.randn(other, 3))


def test_the_mode_of_cdist_that_takes_all_sizes() -> None:
    run = compiled(lambda x: torch.cdist(x, x, compute_mode=BY_DIFFERENCES), 4, Dim.DYNAMIC)
    with pytest.raises(ShapeError, match=BY_DIFFERENCES):
        compiled(distances, 4, Dim.DYNAMIC)(torch.randn(90, 3))
    for rows in (1, 4, 90):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(run(x), torch.cdist(x, x), rtol=1e-3, atol=1e-2)


def test_a_branch_by_cond() -> None:
    def function(x: Any) -> Any:
        return torch.cond(x.shape[0] > 5, lambda x: x * 2, lambda x: x + 1, (x,))

    run = compiled(function, 4, Dim.DYNAMIC)
    for rows in (1, 5, 6, 9):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(run(x), branch(x))


def test_a_short_size_of_an_op() -> None:
    """An example of it, and Dim.STATIC for its axis, export a program for it."""
    run = compiled(every_second, 5, Dim.DYNAMIC)
    x = torch.randn(2, 3)
    with pytest.raises(ShapeError, match="starts at 3, as PyTorch took it for .* Dim.STATIC for this axis"):
        run(x)
    torch.testing.assert_close(compiled(every_second, 2, Dim.STATIC)(x), every_second(x))


def test_a_range_of_a_dim() -> None:
    for size in (Dim("n", max=10), Dim.DYNAMIC(max=10)):
        run = compiled(lambda x: x * 2, 4, size)
        with pytest.raises(ShapeError, match="by max= of its Dim.* with another max=; where PyTorch refuses"):
            run(torch.randn(11, 3))
    run = compiled(lambda x: x * 2, 4, Dim("n", min=3))
    with pytest.raises(ShapeError, match="below its range, which starts at 3, by min= of its Dim.* another min="):
        run(torch.randn(2, 3))


@pytest.mark.parametrize("size", [Dim.DYNAMIC, Dim("n")], ids=["dynamic", "named"])
def test_a_branch_on_one_row(size: Any) -> None:
    one = torch.randn(1, 3)
    with pytest.raises(ProgramError, match="2 or more.* Dim.STATIC for this axis in dynamic_shapes=.* torch.cond"):
        compiled(alone, 1, size)
    with pytest.raises(ShapeError, match=r"for x\.shape\[0\] of 1, .* an example of it and Dim.STATIC .* torch\.cond"):
        compiled(alone, 3, size)(one)
    torch.testing.assert_close(compiled(alone, 1, Dim.STATIC)(one), alone(one))

    def by_cond(x: Any) -> Any:
        return torch.cond(x.shape[0] == 1, lambda x: x * 2, lambda x: x + 0, (x,))

    run = compiled(by_cond, 3, size)
    for x in (one, torch.randn(4, 3)):
        torch.testing.assert_close(run(x), alone(x))


def test_one_bag_of_tokens() -> None:
    """A relation is written without quotients that are known."""
    module = torch.nn.EmbeddingBag(10, 3)

    def program(rows: int, size: Any) -> Any:
        example = torch.zeros(rows, 4, dtype=torch.int64)
        sizes = ({0: size, 1: Dim.AUTO},)
        return shlo_disc.compile(shlo_disc.torch.export(module, (example,), dynamic_shapes=sizes))

    one, run = torch.arange(6).reshape(1, 6), program(3, Dim("b"))
    with torch.no_grad():
        with pytest.raises(ShapeError, match=r"sizes with b >= 2, .* for input\.shape\[0\] of 1, .* Dim.STATIC for"):
            run(one)
        torch.testing.assert_close(program(1, None)(one), module(one))
        for shape in ((2, 1), (5, 4)):
            given = torch.zeros(shape, dtype=torch.int64)
            torch.testing.assert_close(run(given), module(given))


class Masked(torch.nn.Module):
    def forward(self, tokens: Any, mask: Any) -> Any:
        return tokens * 2 + mask[torch.arange(tokens.shape[0])]


def test_a_mask_of_other_rows() -> None:
    given = torch.randn(4), torch.randn(4)
    loose = torch.export.export(Masked(), (given[0], torch.randn(5)), dynamic_shapes=({0: Dim.AUTO}, {0: Dim.AUTO}))
    words = r"out of range .* where sizes of tokens\.shape\[0\], mask\.shape\[0\] have to be equal, give both one Dim"
    with pytest.raises(ShapeError, match=words):
        shlo_disc.compile(loose)(given[0], torch.randn(3))
    b = Dim("b")
    run = shlo_disc.compile(torch.export.export(Masked(), given, dynamic_shapes=({0: b}, {0: b})))
    torch.testing.assert_close(run(*given), Masked()(*given))
    with pytest.raises(ShapeError, match="b, which is 4|mask"):
        run(given[0], torch.randn(3))


def test_reports_of_sizes_by_name(tmp_path: Path) -> None:
    run = compiled(lambda x: x * 2, 4, Dim("b"))
    assert run.report(tmp_path / "report.html", b=4).read_text().count("<html") == 1
    assert run.report(tmp_path / "report.html", [{"b": 3}], b=4).exists()
    assert run.trace(tmp_path / "trace.json", b=4).exists()
    with pytest.raises(ShapeError, match="expected values for the dimension variables"):
        run.report(tmp_path / "report.html", c=4)


def ratio(x: Any) -> Any:
    return x * 2 if x.shape[0] / x.shape[1] > 1 else x


def scaled(x: Any) -> Any:
    return x * 2 if max(x.shape[0] / 11, x.shape[1] / 13) <= 0.6 or x.shape[0] * 0.5 >= 4.5 else x + 1


def root(x: Any) -> Any:
    return x * 2 if x.shape[0] ** 0.5 > 3 else x


@pytest.mark.parametrize("export", [torch.export.export, shlo_disc.torch.export])
@pytest.mark.parametrize("function", [ratio, scaled, root])
@pytest.mark.parametrize("example", [(4, 9), (12, 7), (7, 3)])
def test_a_branch_on_floats_of_sizes(function: Callable[[Any], Any], example: tuple[int, int], export: Any) -> None:
    """A call is right, or has another outcome of the branch and is refused; the example's own is never refused."""
    sizes = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}
    run = shlo_disc.compile(export(Applied(function), (torch.ones(example),), dynamic_shapes=(sizes,)))
    refused = 0
    for rows in range(2, 14):
        for columns in range(2, 14):
            x = torch.ones(rows, columns)
            try:
                torch.testing.assert_close(run(x), function(x))
            except ShapeError as error:
                refused += 1
                assert "which PyTorch took to hold for" in str(error) or "as PyTorch took it" in str(error)
                assert (rows, columns) != example
                assert function(x).flatten()[0] != function(torch.ones(example)).flatten()[0] or function is scaled
    assert 0 < refused < 12 * 12


@pytest.mark.parametrize("function", [lambda n: round(n * 0.3), lambda n: round(n / 4), lambda n: round(n * 0.5)])
def test_sizes_that_are_rounded_to_the_nearest(function: Callable[[Any], Any]) -> None:
    """To the even one of two, as Python's; a size of 1 is PyTorch's own exception."""

    def module(x: Any) -> Any:
        return x.new_ones(function(x.shape[0]), 3)

    run = compiled(module, 17, Dim.DYNAMIC, torch.export.export)
    for rows in range(8, 100):
        assert run(torch.ones(rows, 3)).shape == (function(rows), 3)


def test_a_rounded_power_is_refused() -> None:
    """The last bit of a power may be another one than Python's: int(27 ** (1 / 3)) is 3 there."""
    with pytest.raises(UnsupportedError, match="may be another integer than in Python"):
        compiled(lambda x: x.new_ones(int(x.shape[0] ** (1 / 3)), 3), 17, Dim.DYNAMIC, torch.export.export)


def of_two_sizes(size: Callable[[int, int], int]) -> Any:
    """A program whose result has a size that is computed from both of a matrix."""
    sizes = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}
    module = Applied(lambda x: x.new_ones(size(*x.shape)))
    return shlo_disc.compile(shlo_disc.torch.export(module, (torch.ones(17, 5),), dynamic_shapes=(sizes,)))


@pytest.mark.parametrize("number", [lambda a, b: a * 0.3 * b, lambda a, b: a * 0.1 + b * 0.2 + a * b * 0.7])
def test_products_and_sums_whose_order_is_lost_are_refused(number: Callable[[int, int], float]) -> None:
    """SymPy has no order of factors, and Python's result depends on it: 0.1 * 3 * 7 is not 0.1 * (3 * 7)."""
    with pytest.raises(UnsupportedError, match="may be another integer than in Python"):
        of_two_sizes(lambda a, b: math.floor(number(a, b)))


def test_products_with_powers_of_two_are_exact_in_any_order() -> None:
    run = of_two_sizes(lambda a, b: math.floor(a * 0.25 * b) + 1)
    for rows, columns in ((2, 3), (7, 9), (13, 12), (31, 17)):
        assert run(torch.ones(rows, columns)).shape == (int(rows * 0.25 * columns) + 1,)
