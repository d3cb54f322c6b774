# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options and examples that a function of the package does not take for PyTorch: the text says what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from shlo_disc.errors import DiscError, OptionError, ProgramError  # noqa: E402

X = torch.ones(2, 4)
ROWS = ({0: torch.export.Dim("rows")},)
LAYER = torch.nn.Linear(4, 3)

CASES: dict[str, tuple[Callable[[], Any], type[DiscError], str]] = {
    "a misspelt option": (
        lambda: shlo_disc.torch.export(LAYER, (X,), dynamic_shape=ROWS), OptionError, "did you mean 'dynamic_shapes'",
    ),
    "an option of compile": (
        lambda: shlo_disc.torch.export(LAYER, (X,), target="cpu"), OptionError, r"shlo_disc\.compile has it, for what",
    ),
    "numbers in lists": (
        lambda: shlo_disc.torch.export(LAYER, ([[1.0, 2.0]],)), ProgramError, r"args\[0\] is \[\[1.0, 2.0\]\], ",
    ),
    "by name": (
        lambda: shlo_disc.torch.export(LAYER, (), {"input": [1.0]}), ProgramError, r"input is \[1.0\], .*torch\.tensor",
    ),
    "an example of JAX": (
        lambda: shlo_disc.torch.export(LAYER, (("b, 4", "float32"),)), ProgramError, r"'float32'\), .*dynamic_shapes=",
    ),
    "compile like an export": (
        lambda: shlo_disc.compile(LAYER, (X,), dynamic_shapes=ROWS), ProgramError,  # type: ignore[call-overload]
        r"shlo_disc\.torch\.export\(module, args, dynamic_shapes",
    ),
    "compile with examples": (
        lambda: shlo_disc.compile(LAYER, args=(X,)), ProgramError, r"shlo_disc\.torch\.export\(module, args",
    ),
    "jit": (
        lambda: shlo_disc.jit(LAYER, dynamic_shapes=ROWS), ProgramError,  # type: ignore[call-overload]
        r"shlo_disc\.torch\.export\(module, args",
    ),
    "a program and sizes": (
        lambda: shlo_disc.compile(torch.export.export(LAYER, (X,)), dynamic_shapes=ROWS),  # type: ignore[call-overload]
        OptionError, r"torch\.export\.export\(module, args, dynamic_shapes=\.\.\.\)",
    ),
    "a target in options": (
        lambda: shlo_disc.Options(target="cpu"),  # type: ignore[call-arg]
        OptionError, r"shlo_disc\.compile has it, beside options=",
    ),
    "fallback in options": (
        lambda: shlo_disc.Options(fallback=True),  # type: ignore[call-arg]
        OptionError, r'torch\.compile\(\.\.\., options=\{"fallback": True\}\)',
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_words(name: str) -> None:
    call, kind, words = CASES[name]
    with pytest.raises(kind, match=words):
        call()


def test_a_target_under_dynamo() -> None:
    compiled = torch.compile(LAYER, backend="shlo_disc", options={"target": "cuda"})
    with pytest.raises(Exception, match="give target= to shlo_disc.compile, for an exported program"):
        compiled(X)


def test_errors_of_pytorch_stay() -> None:
    class Failing(torch.nn.Module):
        """A module with a fault of its own, and a list among its arguments."""

        def forward(self, x: Any, sizes: Any) -> Any:
            return x.no_such_method(sizes)

    with pytest.raises(AttributeError, match="no_such_method"):
        shlo_disc.torch.export(Failing(), (X, [X]))
    program = shlo_disc.torch.export(LAYER, (X,), dynamic_shapes=ROWS, strict=False)
    torch.testing.assert_close(shlo_disc.compile(program)(X.detach() * 2).detach(), LAYER(X * 2).detach())
