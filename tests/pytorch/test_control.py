# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Branches and loops of PyTorch's higher-order ops."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch._higher_order_ops import map as mapped  # noqa: E402
from torch._higher_order_ops import scan, while_loop  # noqa: E402

import shlo_disc  # noqa: E402
from tests.pytorch.judge import close  # noqa: E402

B, T = torch.export.Dim("b"), torch.export.Dim("t")


class Branches(torch.nn.Module):
    """A branch by data, with a parameter in it, in another one."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        def positive(y: Any) -> Any:
            return torch.cond(y.amax() > 2, lambda z: z * 0.5, lambda z: self.linear(z), (y,))

        return torch.cond(x.sum() > 0, positive, lambda y: torch.sin(y), (x,)) + 1


class Loops(torch.nn.Module):
    """A scan over rows, a loop that counts, a map."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            carry = torch.tanh(self.linear(carry) + row)
            return carry, carry * 2

        last, rows = scan(step, torch.zeros(x.shape[1], 4), x, dim=0)
        _, grown = while_loop(lambda i, z: i < 5, lambda i, z: (i + 1, z * 1.5 + i), (torch.tensor(0), x[0]))
        return last, rows, grown, mapped(lambda row, k: row * row.sum() + k, x, last)


@pytest.mark.parametrize("module", [Branches(), Loops()], ids=["branches", "loops"])
def test_graphs_in_graphs(module: Any) -> None:
    x = torch.randn(5, 3, 4)
    run = shlo_disc.compile(torch.export.export(module, (x,), dynamic_shapes=({0: T, 1: B},)))
    for sizes in ((1, 1), (2, 5), (7, 3), (33, 2)):
        for shift in (-1.0, 0.2, 3.0):
            x = torch.randn(*sizes, 4) + shift
            with torch.no_grad():
                close(run(x), module(x), f"at {sizes}")


def test_random_numbers_in_loops_are_refused() -> None:
    class Noise(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return while_loop(lambda i, z: i < 5, lambda i, z: (i + 1, z + torch.rand_like(z)), (torch.tensor(0), x))[1]

    with pytest.raises(shlo_disc.UnsupportedError, match="inside of a loop"):
        shlo_disc.compile(torch.export.export(Noise(), (torch.randn(3),)))


class Selections(torch.nn.Module):
    """Elements that a mask selects, in a branch and in each iteration of a loop."""

    def forward(self, x: Any) -> Any:
        def doubled(y: Any) -> Any:
            at = torch.nonzero(y > 0)[:, 0]
            return y.index_put((at,), y[at] * 2 + at.shape[0])

        def shrunk(count: Any, y: Any) -> Any:
            at = torch.nonzero(y > 1)[:, 0]
            return count + 1, y.index_put((at,), y[at] * 0.5)

        y = torch.cond(x.sum() > 0, doubled, lambda y: y.clone(), (x,))
        return while_loop(lambda count, y: count < 3, shrunk, (torch.tensor(0), y))[1]


def test_selections_in_a_branch_and_in_a_loop() -> None:
    module = Selections()
    program = torch.export.export(module, (torch.ones(5),), dynamic_shapes=({0: torch.export.Dim("n", min=2)},))
    run = shlo_disc.compile(program)
    for size in (2, 7, 8, 9, 33):
        for shift in (-3, 0, 3):
            x = torch.randn(size, generator=torch.Generator().manual_seed(size)) + shift
            close(run(x), module(x), f"at {size}")


def test_a_size_that_no_mask_counts_is_refused_in_a_branch() -> None:
    class Repeated(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            def longer(y: Any) -> Any:
                count = y.abs().sum().to(torch.int64).item()
                torch._check(count >= 0)
                return y + torch.ones(count).sum()

            return torch.cond(x.sum() > 0, longer, lambda y: y.clone(), (x,))

    program = torch.export.export(Repeated(), (torch.ones(5),), dynamic_shapes=({0: torch.export.Dim("n", min=2)},))
    with pytest.raises(shlo_disc.UnsupportedError, match="is no number of elements that a mask selects"):
        shlo_disc.compile(program)
