# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tools of compiled programs: alike for programs of JAX and of PyTorch, and for those that were loaded."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from shlo_disc.driver.executable import Executable  # noqa: E402
from shlo_disc.errors import ArgumentTypeError, ShapeError  # noqa: E402
from shlo_disc.runtime import BoundExecutable, LoadedExecutable  # noqa: E402
from shlo_disc.torch import ExportedExecutable  # noqa: E402

ONES = torch.ones


def kinds(of: type) -> dict[str, bool]:
    """The public names of a class, and whether each is an attribute and no method."""
    return {name: not callable(getattr(of, name)) for name in dir(of) if not name.startswith("_")}


@pytest.mark.parametrize("other", [ExportedExecutable, LoadedExecutable, BoundExecutable])
def test_names_are_attributes_everywhere_or_methods_everywhere(other: type) -> None:
    own, others = kinds(Executable), kinds(other)
    shared = own.keys() & others.keys()
    assert {name: own[name] for name in shared} == {name: others[name] for name in shared}
    expected = {"memory", "memory_stats", "prepare", "profile", "seen_shapes", "target"}
    assert other is BoundExecutable or expected <= shared


class Counting(torch.nn.Module):
    """A layer, dropout, and a count of calls."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: Any, mask: Any = None) -> Any:
        self.count += 1
        return torch.nn.functional.dropout(self.layer(x) * mask, 0.5)


def test_profiles_of_calls() -> None:
    module, b = Counting(), torch.export.Dim("b")
    program = torch.export.export(module, (ONES(2, 4), ONES(2, 3)), dynamic_shapes=({0: b}, {0: b}))
    run = shlo_disc.compile(program)
    for times in (run.profile(ONES(5, 4), ONES(5, 3)), run.profile(ONES(5, 4), mask=ONES(5, 3))):
        assert len(times) == len(run.kernels) and sum(time.calls for time in times) > 0
    assert run.program.state_dict["count"] == 0
    run(ONES(5, 4), ONES(5, 3))
    assert run.program.state_dict["count"] == 1
    with pytest.raises(ArgumentTypeError, match="lacks mask"):
        run.profile(ONES(5, 4))
    with pytest.raises(ShapeError, match=r"mask\.shape\[0\] is 6, and b is 5"):
        run.profile(ONES(5, 4), ONES(6, 3))


def test_profiles_of_functions_of_jax() -> None:
    pytest.importorskip("jax")
    run = shlo_disc.compile(lambda x, y: x @ y, args=(("b, 4", "float32"), ("4, b", "float32")))
    x = ONES(5, 4).numpy()
    for times in (run.profile(x, x.T), run.profile((x, x.T)), run.profile(x, y=x.T)):
        assert len(times) == len(run.kernels)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (shlo_disc.Options(threads=1), r'is a dict of fields of shlo_disc.Options: write \{"threads": 1\}'),
        ({"fallback": "yes"}, "'fallback' in options= of torch.compile is True or False, not 'yes'"),
        ({"freezing": 1}, "'freezing' in options= of torch.compile is True or False, not 1"),
    ],
    ids=["Options", "fallback", "freezing"],
)
def test_options_of_other_kinds(given: Any, text: str) -> None:
    torch._dynamo.reset()
    with pytest.raises(Exception, match=text):
        torch.compile(lambda x: x + 1, backend="shlo_disc", options=given)(torch.ones(3))


class Sized(torch.nn.Module):
    """Ones of a size that is read before any op of the module."""

    def forward(self, x: Any) -> Any:
        return ONES(x.shape[0])


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("module", [Counting(), Sized(), torch.nn.Sequential(Sized())])
def test_programs_have_the_name_of_the_class_of_the_module(module: Any, strict: bool) -> None:
    given = (ONES(2, 4), ONES(2, 3)) if isinstance(module, Counting) else (ONES(2, 4),)
    shapes = [{0: torch.export.Dim.AUTO} for _ in given]
    program = torch.export.export(module, given, dynamic_shapes=[*shapes], strict=strict)
    run = shlo_disc.compile(program)
    assert run.executable.loaded.name == type(module).__name__
    assert str(run).startswith(f"<ExportedExecutable {type(module).__name__}(")
