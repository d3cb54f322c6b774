# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Branches of modules on sizes: a program of `shlo_disc.torch.export` takes sizes of the branch that was traced, only.

`torch.compile` compiles again for the other branch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.export import Dim  # noqa: E402

import shlo_disc  # noqa: E402
from shlo_disc.errors import ShapeError  # noqa: E402
from shlo_disc.torch.branches import recorded_branches  # noqa: E402

SIZES = (0, 1, 2, 3, 4, 5, 7, 8)


class Branching(torch.nn.Module):
    """A result that depends on a condition of the number of rows."""

    def __init__(self, condition: Callable[[int], Any]):
        super().__init__()
        self.condition = condition

    def forward(self, x: Any) -> Any:
        return x * 2 if self.condition(x.shape[0]) else x + 1


def matches(n: int) -> bool:
    """Tells whether a number is 1 or 7."""
    match n:
        case 1 | 7:
            return True
        case _:
            return False


CONDITIONS: dict[str, Callable[[int], Any]] = {
    "== 1": lambda n: n == 1,
    "== 0": lambda n: n == 0,
    "== 7": lambda n: n == 7,
    "!= 1": lambda n: n != 1,
    "> 1": lambda n: n > 1,
    "< 2": lambda n: n < 2,
    ">= 1": lambda n: n >= 1,
    "<= 1": lambda n: n <= 1,
    "> 4": lambda n: n > 4,
    "a product": lambda n: 3 * n <= 3,
    "in a tuple": lambda n: n in (1, 2),
    "in a range": lambda n: n in range(1, 3),
    "parity": lambda n: n % 2,
    "truth": lambda n: n,
    "not": lambda n: not n,
    "and": lambda n: n > 0 and n != 1,
    "a match": matches,
    "all": lambda n: all([n > 1, n < 6]),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_sizes_of_the_other_branch_are_refused(name: str) -> None:
    condition = CONDITIONS[name]
    module = Branching(condition)
    program = shlo_disc.torch.export(module, (torch.ones(5, 3),), dynamic_shapes=({0: Dim.DYNAMIC},))
    run = shlo_disc.compile(program)
    for n in SIZES:
        x = torch.randn(n, 3)
        if bool(condition(n)) == bool(condition(5)):
            try:
                torch.testing.assert_close(run(x), module(x))
            except ShapeError:  # another comparison on the way has another outcome
                assert name in ("and", "a match", "all", "in a tuple", "in a range")
        elif n or name in ("> 1", "< 2", "<= 1", "a product", "parity", "> 4", "all"):  # no comparison with 0
            with pytest.raises(ShapeError):
                run(x)


@pytest.mark.parametrize("name", ["== 1", "> 1", "in a tuple"])
def test_named_sizes_and_the_text(name: str) -> None:
    """The remedy of the text exports a program of the other branch."""
    module, one = Branching(CONDITIONS[name]), torch.ones(1, 3)
    program = shlo_disc.torch.export(module, (torch.ones(5, 3),), dynamic_shapes=({0: Dim.AUTO, 1: Dim("columns")},))
    with pytest.raises(ShapeError, match=r"op of the module or a branch .* export the module again with an example"):
        shlo_disc.compile(program)(one)
    again = shlo_disc.torch.export(module, (one,), dynamic_shapes=({0: Dim.AUTO, 1: Dim("columns")},))
    torch.testing.assert_close(shlo_disc.compile(again)(one[:, :2]), module(one[:, :2]))


def test_branches_of_pytorch_are_not_recorded() -> None:
    """Broadcasting and layers branch on sizes of 1, and are right for them."""
    layer = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
    shapes = ({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},)
    run = shlo_disc.compile(shlo_disc.torch.export(layer, (torch.ones(2, 5, 4),), dynamic_shapes=shapes))
    with torch.no_grad():
        for sizes in ((1, 3), (3, 1), (1, 1)):
            x = torch.randn(*sizes, 4)
            torch.testing.assert_close(run(x), layer(x), rtol=1e-4, atol=1e-5)


def test_the_class_of_conditions_stays_as_it_was() -> None:
    plain = torch.SymBool.__bool__
    with pytest.raises(AttributeError):
        shlo_disc.torch.export(Branching(lambda n: n.no_such_name), (torch.ones(5, 3),))
    assert torch.SymBool.__bool__ is plain


@pytest.mark.parametrize("name", ["== 1", "in a tuple", "parity", "a match"])
def test_dynamo_compiles_the_other_branch(name: str) -> None:
    torch._dynamo.reset()
    module = Branching(CONDITIONS[name])
    compiled = torch.compile(module, backend="shlo_disc", dynamic=True)
    for n in (5, 7, 2, 1, 0, 4):
        x = torch.randn(n, 3)
        torch.testing.assert_close(compiled(x), module(x))


def test_exports_of_several_threads_leave_pytorch_as_it_was() -> None:
    """The second one begins while the first has PyTorch's method replaced, and ends after it."""
    plain = torch.SymBool.__bool__
    inside, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def first() -> None:
        with recorded_branches():
            inside.set()
            go_on.wait(10)
        ended.set()

    def second() -> None:
        inside.wait(10)
        with recorded_branches():
            ended.wait(10)

    threads = [threading.Thread(target=run) for run in (first, second)]
    for thread in threads:
        thread.start()
    threads[1].join(0.2)
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert torch.SymBool.__bool__ is plain


RELATIONS: dict[str, tuple[Callable[[Any], Any], int, str]] = {
    "a rest": (lambda x: x.reshape(2, -1) if x.shape[0] % 2 == 0 else x, 3, r"rows % 2 == 0"),
    "another rest": (lambda x: x.reshape(2, -1) if x.shape[0] % 3 != 1 else x, 4, r"rows % 3 != 1"),
    "a quotient": (lambda x: x * 2 if x.shape[0] // 2 == 3 else x, 8, r"rows // 2 == 3"),
    "the larger one": (lambda x: x * 2 if max(x.shape[0], 4) == 6 else x, 7, r"max\(4, rows\) == 6|rows == 6"),
}


@pytest.mark.parametrize("name", RELATIONS)
def test_relations_are_written_in_python(name: str) -> None:
    function, size, text = RELATIONS[name]

    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return function(x)

    auto = {0: torch.export.Dim.AUTO}
    run = shlo_disc.compile(torch.export.export(Module(), (torch.randn(6, 4),), dynamic_shapes=(auto,)))
    with pytest.raises(ShapeError, match=text.replace("rows", r"s\d+")):
        run(torch.randn(size, 4))
