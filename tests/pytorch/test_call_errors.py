# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of calls of exported programs are in PyTorch's words, and say what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from shlo_disc.errors import ArgumentTypeError, DiscError, OptionError, ProgramError, ShapeError  # noqa: E402
from shlo_disc.runtime.described import argument_names  # noqa: E402

Dim, export = torch.export.Dim, torch.export.export
OF_JAX = re.compile(r"symbolic_shape|constraints=|polymorphic|symbolic shape|jax|JAX|args\[\d|stablehlo|Ne\(|Eq\(")


class Scaled(torch.nn.Module):
    """A linear layer of tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, tokens: Any, mask: Any = None) -> Any:
        found = self.layer(tokens)
        return found if mask is None else found * mask


class Added(torch.nn.Module):
    """A sum of two."""

    def forward(self, x: Any, y: Any) -> Any:
        return x + y


class Tail(torch.nn.Module):
    """All columns but the first."""

    def forward(self, x: Any) -> Any:
        return x[:, 1:] * 2


class OfDict(torch.nn.Module):
    """One entry of a dict."""

    def forward(self, batch: Any) -> Any:
        return batch["x"] + 1


class OfList(torch.nn.Module):
    """A concatenation of a list."""

    def forward(self, parts: Any) -> Any:
        return torch.cat(parts)


class Times(torch.nn.Module):
    """A product with a number."""

    def forward(self, x: Any, n: Any) -> Any:
        return x * n


def ones(*shape: int) -> Any:
    return torch.ones(*shape)


def program(module: Any, *args: Any, **shapes: Any) -> Any:
    return export(module, args, dynamic_shapes=shapes or None)


def scaled(**limits: int) -> Any:
    torch.manual_seed(0)
    return program(Scaled(), ones(2, 4), tokens={0: Dim("batch", **limits)})


def added() -> Any:
    rows = Dim("rows")
    return program(Added(), ones(3, 4), ones(3, 4), x={0: rows}, y={0: rows})


CASES: dict[str, tuple[Callable[[], Any], tuple[Any, ...], type[DiscError], str]] = {
    "rank": (scaled, (ones(4),), ShapeError, r"Rank mismatch for tokens: expected \(batch, 4\) and called with \(4,\)"),
    "a fixed size": (scaled, (ones(2, 5),), ShapeError, r"Shape mismatch for tokens\.shape\[1\], which was fixed"),
    "a range": (lambda: scaled(max=8), (ones(9, 4),), ShapeError, r"batch is above its range, which ends at 8, as max"),
    "two sizes": (added, (ones(3, 4), ones(2, 4)), ShapeError, r"y\.shape\[0\] is 2, and rows is 3\..*rows = 3"),
    "a dtype": (scaled, (ones(2, 4).double(),), ArgumentTypeError, r"convert it by tokens\.to\(torch\.float32\)"),
    "no tensor": (scaled, (None,), ArgumentTypeError, "the argument tokens is NoneType, not a tensor"),
    "more arguments": (
        scaled, (ones(2, 4), ones(2, 3)), ArgumentTypeError, r"exported for forward\(tokens\), and is called with",
    ),
    "an op": (
        lambda: program(Tail(), ones(2, 5), x={1: Dim.AUTO}), (ones(2, 0),), ShapeError, r"errors\.py:\d+ asks",
    ),
    "a guess": (
        lambda: program(Tail(), ones(2, 5), x={1: Dim.AUTO}), (ones(2, 2),), ShapeError, r"sizes with s\d+ - 1 != 1",
    ),
    "a key": (
        lambda: program(OfDict(), {"x": ones(3)}), ({"y": ones(3)},), ArgumentTypeError, r"batch is .*exported for",
    ),
    "an entry": (
        lambda: program(OfDict(), {"x": ones(3)}), ({"x": ones(3, 1)},), ShapeError, r"Rank mismatch for batch\['x'\]",
    ),
    "a shorter list": (
        lambda: program(OfList(), [ones(3), ones(2)]), ([ones(3)],), ArgumentTypeError,
        r"parts is \[\*\], and the program was exported for \[\*, \*\], where \* is a tensor or a number",
    ),
    "a number": (lambda: program(Times(), ones(3), 2), (ones(3), 3), ArgumentTypeError, "n is 3.*exported for 2"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_words(name: str) -> None:
    made, args, kind, words = CASES[name]
    run = shlo_disc.compile(made())
    with torch.no_grad(), pytest.raises(kind, match=words) as caught:
        run(*args)
    assert not OF_JAX.search(str(caught.value)) and str(caught.value).endswith(f"[{caught.value.code}]")
    assert caught.value.code not in ("DISC-S100", "")


def test_arguments_by_name() -> None:
    run = shlo_disc.compile(program(Added(), ones(3), ones(3)))
    x, y = ones(3), 2 * ones(3)
    for found in (run(x, y=y), run(y=y, x=x), run(x, y)):
        torch.testing.assert_close(found, x + y)


def test_lists_of_tensors() -> None:
    rows, more = Dim("rows"), Dim("more")
    run = shlo_disc.compile(program(OfList(), [ones(3), ones(2)], parts=[{0: rows}, {0: more}]))
    torch.testing.assert_close(run([ones(5), 2 * ones(1)]), torch.cat([ones(5), 2 * ones(1)]))


@pytest.mark.parametrize("names", [{"maks": ones(2, 3)}, {"mask": ones(2, 3), "more": 1}, {"token": ones(2, 4)}])
def test_names_that_the_program_does_not_have(names: dict[str, Any]) -> None:
    run = shlo_disc.compile(program(Scaled(), ones(2, 4), ones(2, 3)))
    unknown = next(name for name in names if name != "mask")
    words = rf"the program has no argument '{unknown}'; it was exported for forward\(tokens, mask\)"
    with torch.no_grad(), pytest.raises(ArgumentTypeError, match=words):
        run(ones(2, 4), **names)


def test_names_survive_in_a_file(tmp_path: Path) -> None:
    run = shlo_disc.compile(program(OfDict(), {"x": ones(3)}))
    assert argument_names(run.executable.artifact.header) == ["batch['x']"]
    shlo_disc.compile(scaled()).executable.save(tmp_path / "scaled.disc")
    loaded = shlo_disc.load(tmp_path / "scaled.disc", trust=True)
    assert argument_names(loaded.header) == ["layer.weight", "layer.bias", "tokens"]
    weights = {"layer.weight": np.ones((3, 4), np.float32), "layer.bias": np.zeros(3, np.float32)}
    np.testing.assert_array_equal(loaded(**weights, tokens=np.ones((2, 4), np.float32)), np.full((2, 3), 4))


def test_what_is_no_exported_program() -> None:
    for work in (lambda: shlo_disc.compile(Scaled()), lambda: shlo_disc.jit(Scaled())):
        with pytest.raises(ProgramError, match=r"shlo_disc\.compile\(torch\.export\.export\(module"):
            work()
    with pytest.raises(OptionError, match="give them to torch.export.export, as args and dynamic_shapes="):
        shlo_disc.compile(scaled(), args=(("b, 4", "float32"),))
