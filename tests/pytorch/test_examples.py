# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls beside the examples of an export: tensors given twice, keys in another order, numbers of another kind."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from shlo_disc.errors import ArgumentTypeError, ProgramError  # noqa: E402

N = torch.export.Dim("n")


class Twice(torch.nn.Module):
    def forward(self, a: Any, b: Any) -> Any:
        return a + 2 * b


class Nested(torch.nn.Module):
    def forward(self, d: dict[str, Any], x: Any) -> Any:
        return d["b"]["y"] - 2 * d["a"] + x


class Scaled(torch.nn.Module):
    def forward(self, x: Any, a: Any) -> Any:
        return x * a


def test_one_tensor_as_two_examples() -> None:
    """PyTorch exports a program that reads the first for both: refused, and `shlo_disc.torch.export` copies it."""
    one, shapes = torch.ones(3), ({0: N}, {0: N})
    x, y = torch.zeros(4), torch.ones(4)
    with pytest.raises(ProgramError, match=r"a and b had one tensor as their example.*x\.clone\(\)"):
        shlo_disc.compile(torch.export.export(Twice(), (one, one), dynamic_shapes=shapes))
    for program in (
        torch.export.export(Twice(), (one, one.clone()), dynamic_shapes=shapes),
        shlo_disc.torch.export(Twice(), (one, one), dynamic_shapes=shapes),
    ):
        torch.testing.assert_close(shlo_disc.compile(program)(x, y), Twice()(x, y))
    by_name = shlo_disc.torch.export(Twice(), (one,), {"b": one}, dynamic_shapes={"a": {0: N}, "b": {0: N}})
    torch.testing.assert_close(shlo_disc.compile(by_name)(x, b=y), Twice()(x, y))


def test_one_tensor_as_examples_in_a_dict() -> None:
    one, shapes = torch.ones(3), ({"a": {0: N}, "b": {"y": {0: N}}}, {0: N})
    with pytest.raises(ProgramError, match=r"d\['a'\] and d\['b'\]\['y'\] had one tensor"):
        shlo_disc.compile(
            torch.export.export(Nested(), ({"a": one, "b": {"y": one}}, torch.ones(3)), dynamic_shapes=shapes)
        )


def test_keys_in_another_order() -> None:
    shapes = ({"a": {0: N}, "b": {"y": {0: N}}}, {0: N})
    example = ({"a": torch.ones(3), "b": {"y": torch.ones(3)}}, torch.ones(3))
    run = shlo_disc.compile(torch.export.export(Nested(), example, dynamic_shapes=shapes))
    for n in (1, 2, 5):
        a, y, x = (torch.randn(n) for _ in range(3))
        torch.testing.assert_close(run({"b": {"y": y}, "a": a}, x), Nested()({"a": a, "b": {"y": y}}, x))
        torch.testing.assert_close(run(x=x, d={"b": {"y": y}, "a": a}), Nested()({"a": a, "b": {"y": y}}, x))
    for other in ({"a": a}, {"a": a, "b": y}, {"a": [a], "b": {"y": y}}, {"a": a, "b": {"y": y}, "c": a}):
        with pytest.raises(ArgumentTypeError, match=r"another structure: d is .* export(s| another program)"):
            run(other, x)


@pytest.mark.parametrize(
    ("fixed", "same", "others"),
    [
        (2, [2], [2.0, True, 3]),
        (2.0, [2.0], [2, 2.5, math.nan]),
        (True, [True], [1, 1.0, False]),
        (math.nan, [math.nan], [2.0, 0]),
    ],
    ids=str,
)
def test_numbers_that_were_fixed(fixed: Any, same: list[Any], others: list[Any]) -> None:
    """2.0 in place of 2 would have another dtype in eager PyTorch."""
    run = shlo_disc.compile(torch.export.export(Scaled(), (torch.arange(3), fixed), dynamic_shapes=({0: N}, None)))
    x = torch.arange(5)
    for value in same:
        torch.testing.assert_close(run(x, value), Scaled()(x, value), equal_nan=True)
    for value in others:
        with pytest.raises(ArgumentTypeError, match="the argument a is .*; the program was exported for"):
            run(x, value)


def test_modules_of_other_kinds() -> None:
    module, x = torch.nn.Linear(3, 2).eval(), torch.randn(4, 3)
    with pytest.raises(ProgramError, match=r"TorchScript.* take the torch\.nn\.Module"):
        shlo_disc.compile(torch.jit.trace(module, (x,)))
    wrapped = torch.compile(module)
    with pytest.raises(ProgramError, match=r"shlo_disc\.torch\.export\(module\._orig_mod, args"):
        shlo_disc.compile(wrapped)
    run = shlo_disc.compile(shlo_disc.torch.export(wrapped._orig_mod, (x,), dynamic_shapes=({0: N},)))
    with torch.no_grad():
        torch.testing.assert_close(run(x), module(x))
