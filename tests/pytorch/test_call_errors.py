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
from shlo_disc.tools.cli import main  # noqa: E402

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


class Widened(torch.nn.Module):
    """The largest elements."""

    def forward(self, x: Any, n: Any) -> Any:
        return torch.cat([x, x, x, x]).topk(n).values


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
    "a range": (lambda: scaled(max=8), (ones(9, 4),), ShapeError, r"batch is above its range, which ends at 8, by max"),
    "two sizes": (added, (ones(3, 4), ones(2, 4)), ShapeError, r"y\.shape\[0\] is 2, and rows is 3\..*rows = 3"),
    "a dtype": (scaled, (ones(2, 4).double(),), ArgumentTypeError, r"convert it by tokens\.to\(torch\.float32\)"),
    "no tensor": (scaled, (None,), ArgumentTypeError, "tokens is NoneType, not a tensor: give a tensor"),
    "more arguments": (
        scaled, (ones(2, 4), ones(2, 3)), ArgumentTypeError, r"exported for forward\(tokens\), and the call gives 2",
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
    "a number": (
        lambda: program(Times(), ones(3), 2), (ones(3), 3), ArgumentTypeError, r"n is 3.*exported for 2.*Dim\.DYNAMIC",
    ),
    "a float": (
        lambda: program(Times(), ones(3), 2.0), (ones(3), 3.0), ArgumentTypeError, "n is 3.0.*a tensor of one element",
    ),
    "an integer that PyTorch guards on": (
        lambda: program(Widened(), ones(3), 4, x={0: Dim.AUTO}, n=Dim.DYNAMIC), (ones(3), 1), ShapeError,
        r"^n, an integer among the arguments, does not fit\. PyTorch asks that n (!= 1|>= 2)\. Here n = 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_words(name: str) -> None:
    made, args, kind, words = CASES[name]
    run = shlo_disc.compile(made())
    with torch.no_grad(), pytest.raises(kind, match=words) as caught:
        run(*args)
    assert not OF_JAX.search(str(caught.value)) and str(caught.value).endswith(f"[{caught.value.code}]")
    assert caught.value.code not in ("DISC-S100", "")


class Positions(torch.nn.Module):
    """Rows of a table, one for each column."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(rows, 4)

    def forward(self, tokens: Any) -> Any:
        return tokens[..., None] + self.table(torch.arange(tokens.shape[1]))


def test_more_positions_than_there_are() -> None:
    """Both of the things that the text advises give a result."""
    tokens = ones(2, 5)
    short, long = (
        shlo_disc.compile(program(Positions(rows), tokens, tokens={0: Dim.DYNAMIC, 1: Dim.DYNAMIC})) for rows in (8, 9)
    )
    words = (
        r"errors\.py:\d+ reads indices up to s\d+ - 1, which are out of range for an axis of 8\..*: call it with sizes"
    )
    with torch.no_grad(), pytest.raises(ShapeError, match=words) as caught:
        short(ones(2, 9))
    assert "dynamic_shapes" not in str(caught.value)
    with torch.no_grad():
        assert short(ones(2, 8)).shape == (2, 8, 4) and long(ones(2, 9)).shape == (2, 9, 4)


class Unlike(torch.nn.Module):
    """Two pieces whose sizes are data."""

    def forward(self, x: Any, i: Any) -> Any:
        return x[: i.item()] + x[1 : 1 + i.item()]


def test_words_of_sizes_that_are_data() -> None:
    """Sizes that follow from data are named, with their values and the lines that they come from."""
    run = shlo_disc.compile(program(Unlike(), ones(9), torch.tensor(2), x={0: Dim.DYNAMIC}, i=None))
    words = r"\S+errors\.py:\d+ asks that u\d == u\d\. Here u\d = \d, u\d = \d; u\d is the size of axis 0 of the piece"
    with pytest.raises(ShapeError, match=words) as caught:
        run(ones(7), torch.tensor(7))
    assert not re.search(r"max\(|min\(", str(caught.value))


@pytest.mark.parametrize("number", [0, 1, -1, 20])
def test_integers_that_are_exported_again(number: int) -> None:
    """The remedy of the text makes a program for the integer."""
    run = shlo_disc.compile(program(Head(), ones(10, 3), 4, x={0: Dim.DYNAMIC}, k=Dim.DYNAMIC))
    words = (
        rf"^k, an integer .* if the module takes k = {number}, export it again with this as the example and None for k"
    )
    with pytest.raises(ShapeError, match=words):
        run(ones(10, 3), number)
    again = shlo_disc.compile(program(Head(), ones(10, 3), number, x={0: Dim.DYNAMIC}, k=None))
    torch.testing.assert_close(again(ones(10, 3), number), Head()(ones(10, 3), number))


class Head(torch.nn.Module):
    """The sum of the first rows."""

    def forward(self, x: Any, k: Any) -> Any:
        return x[:k].sum(0)


def test_an_integer_beside_fixed_sizes() -> None:
    run = shlo_disc.compile(program(Head(), ones(9, 3), 4, x=None, k=Dim.DYNAMIC))
    words = r"^k, an integer among the arguments, does not fit\. .* asks that k >= 0\. Here k = -2: if the module takes"
    with pytest.raises(ShapeError, match=words):
        run(ones(9, 3), -2)


def test_files_of_exported_programs(tmp_path: Path) -> None:
    """The remedy of the text compiles the file."""
    file = tmp_path / "head.pt2"
    torch.export.save(program(Head(), ones(10, 3), 4, x={0: Dim.DYNAMIC}, k=None), file)
    with pytest.raises(
        ProgramError, match=r"zip archive .*shlo_disc\.compile\(torch\.export\.load\('.*head.pt2'\)\)"
    ) as caught:
        shlo_disc.compile(str(file))
    assert caught.value.code == "DISC-P102"
    loaded = torch.export.load(file)
    with pytest.raises(
        ProgramError, match=r"right only where .* >= 4, .*torch\.export\.export\(program\.module\(\), args"
    ):
        shlo_disc.compile(loaded)
    again = export(loaded.module(), (ones(10, 3), 4), dynamic_shapes=({0: Dim.DYNAMIC}, None))
    torch.testing.assert_close(shlo_disc.compile(again)(ones(5, 3), 4), Head()(ones(5, 3), 4))


def test_programs_of_gradients() -> None:
    joint = pytest.importorskip("torch.export.experimental")._export_forward_backward
    with pytest.raises(ProgramError, match=r'computes gradients.*torch\.compile\(module, backend="shlo_disc"'):
        shlo_disc.compile(joint(program(Loss(), ones(5, 4), x={0: Dim("rows")})))


class Loss(torch.nn.Module):
    """A layer's sum."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return self.layer(x).sum()


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


def test_an_array_in_place_of_a_tensor() -> None:
    run = shlo_disc.compile(scaled())
    with torch.no_grad(), pytest.raises(ArgumentTypeError, match=r"tokens is ndarray, not a tensor.*torch\.from_numpy"):
        run(np.ones((2, 4), np.float32))


class Steps(torch.nn.Module):
    """A parameter, a buffer of the state, one that no state has, and one that each call changes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)
        self.register_buffer("scale", torch.tensor(2.0))
        self.register_buffer("hidden", torch.arange(3.0), persistent=False)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, tokens: Any) -> Any:
        self.count += 1
        return self.layer(tokens) * self.scale + self.hidden


def saved(folder: Path, module: Any, *args: Any) -> tuple[Any, Any]:
    """A program that was written and read, and the file of its weights."""
    run = shlo_disc.compile(program(module, *args, tokens={0: Dim("batch", max=8)}))
    run.save(folder / "program.disc", weights=folder / "weights.npz")
    return shlo_disc.load(folder / "program.disc", trust=True), np.load(folder / "weights.npz")


def test_weights_in_a_file(tmp_path: Path) -> None:
    module = Steps()
    loaded, weights = saved(tmp_path, module, ones(2, 4))
    assert sorted(weights) == ["count", "hidden", "layer.bias", "layer.weight", "scale"]
    serve = loaded.bind(weights=weights)
    found, count = serve(count=np.float32(6), tokens=np.ones((5, 4), np.float32))[::-1]
    with torch.no_grad():
        np.testing.assert_allclose(found, module(ones(5, 4)).numpy(), rtol=1e-5)
    assert count == 7
    for name in ("hidden", "layer.weight"):
        part = {key: weights[key] for key in weights if key != name}
        with pytest.raises(ArgumentTypeError, match=rf"lacks {name}"):
            loaded.bind(weights=part)(count=np.float32(6), tokens=np.ones((5, 4), np.float32))
    with pytest.raises(ArgumentTypeError, match="has bias, which the program does not take: it takes layer.weight, "):
        loaded.bind(weights={**weights, "bias": weights["scale"]})
    with pytest.raises(ShapeError, match=r"Shape mismatch for layer\.bias\.shape\[0\]"):
        loaded.bind(weights={**weights, "layer.bias": np.ones(5, np.float32)})


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_weights_of_other_dtypes_in_a_file(dtype: Any, tmp_path: Path) -> None:
    module = torch.nn.Linear(4, 3).to(dtype)
    run = shlo_disc.compile(program(module, ones(2, 4).to(dtype), input={0: Dim("batch")}))
    run.save(tmp_path / "program.disc", weights=tmp_path / "weights.npz")
    serve = shlo_disc.load(tmp_path / "program.disc", trust=True).bind(weights=np.load(tmp_path / "weights.npz"))
    with torch.no_grad():
        wanted = module(ones(2, 4).to(dtype)).double().numpy()
    one = next(iter(run.weights().values())).dtype
    np.testing.assert_allclose(serve(np.ones((2, 4), one)).astype(np.float64), wanted, rtol=1e-2)


CONVOLUTIONS = {
    "1d": (lambda: torch.nn.Conv1d(3, 3, 3), (3, 9)),
    "2d": (lambda: torch.nn.Conv2d(3, 3, 3), (3, 9, 8)),
    "2d of other sizes": (lambda: torch.nn.Conv2d(4, 8, (3, 5), groups=2), (4, 9, 8)),
    "transposed": (lambda: torch.nn.ConvTranspose1d(4, 4, 4), (4, 9)),
    "normalised": (lambda: torch.nn.Sequential(torch.nn.Conv2d(3, 3, 3), torch.nn.BatchNorm2d(3)), (3, 9, 8)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_weights_whose_axes_the_program_takes_in_another_order(name: str, dtype: Any, tmp_path: Path) -> None:
    """Weights have PyTorch's order by name and by position, from the file, from `weights()` or a checkpoint."""
    make, sizes = CONVOLUTIONS[name]
    module = make().eval().to(dtype)
    run = shlo_disc.compile(program(module, ones(2, *sizes).to(dtype), input={0: Dim("batch")}))
    run.save(tmp_path / "program.disc", weights=tmp_path / "weights.npz")
    loaded = shlo_disc.load(tmp_path / "program.disc", trust=True)
    x = torch.randn(5, *sizes).to(dtype)
    with torch.no_grad():
        wanted = module(x).float().numpy()
    file, own = np.load(tmp_path / "weights.npz"), [*run.weights().values()]
    found = [
        loaded.bind(weights=file)(x),
        loaded.bind(weights=run.weights())(x),
        loaded.bind(weights=module.state_dict())(x),
        loaded.bind(*own)(x),
        loaded.bind(own[0])(*own[1:], x),
        loaded.bind(*own, copy=False)(x),
        loaded(*own, x),
        loaded.execute((*own, x)),
        loaded.execute_async((*own, x)).result(),
        run.executable(*own, x),
        run.executable.bind(*own)(x),
        loaded(own[0], **{**dict(list(run.weights().items())[1:]), loaded.parameter_names.names[-1]: x}),
        loaded(**run.weights(), **{loaded.parameter_names.names[-1]: x}),
    ]
    for result in found:
        np.testing.assert_allclose(np.asarray(result).astype(np.float32), wanted, rtol=2e-2, atol=2e-2)
    if dtype == torch.float32:
        np.testing.assert_allclose(found[0], wanted, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(
            file["weight" if "weight" in file else "0.weight"], next(module.parameters()).detach()
        )


def test_words_of_a_file(tmp_path: Path) -> None:
    loaded, weights = saved(tmp_path, Scaled(), ones(2, 4))
    serve = loaded.bind(weights=weights)
    calls = {
        r"Rank mismatch for tokens: expected \(batch, 4\)": np.ones(4, np.float32),
        r"tokens\.shape\[1\], which was fixed": np.ones((2, 5), np.float32),
        r"convert it by tokens\.astype\('float32'\)": np.ones((2, 4)),
        "batch is above its range, which ends at 8": np.ones((9, 4), np.float32),
    }
    for run, first in ((serve, ()), (loaded, tuple(weights.values()))):
        for words, tokens in calls.items():
            for call in (run, lambda *args, run=run: run.execute(args)):
                with pytest.raises((ShapeError, ArgumentTypeError), match=words) as caught:
                    call(*first, tokens)
                assert not OF_JAX.search(str(caught.value))
    with pytest.raises(ArgumentTypeError, match=r"gives layer.weight by .* lacks layer.bias, tokens\. .*: bind the"):
        loaded(weights["layer.weight"])
    with pytest.raises(ArgumentTypeError, match=r"\(tokens\) beside .* gives 'x', which is none of them"):
        serve(x=np.ones((2, 4), np.float32))


def test_constraints_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved(tmp_path, Scaled(), ones(2, 4))
    assert main(["info", str(tmp_path / "program.disc")]) == 0
    assert "\n  batch <= 8\n" in capsys.readouterr().out


def test_what_is_no_exported_program() -> None:
    for work in (lambda: shlo_disc.compile(Scaled()), lambda: shlo_disc.jit(Scaled())):
        with pytest.raises(ProgramError, match=r"shlo_disc\.compile\(shlo_disc\.torch\.export\(module"):
            work()
    with pytest.raises(OptionError, match="give them to torch.export.export, as args and dynamic_shapes="):
        shlo_disc.compile(scaled(), args=(("b, 4", "float32"),))
    with pytest.raises(ProgramError, match=r"shlo_disc\.compile\(shlo_disc\.torch\.export\(module"):
        shlo_disc.compile(Scaled().forward, args=(("b, 4", "float32"),))


@pytest.mark.parametrize(
    ("function", "argument"),
    [(torch.relu, ("b", "float32")), (torch.nn.functional.relu, ("b", "float32")), (torch.compile(abs), ("b", "int32")),
     (lambda x: torch.relu(x), ("b", "float32")), (lambda x: x + 1, ones(3))],
)  # fmt: skip
def test_functions_of_pytorch_given_as_functions_of_jax(function: Any, argument: Any) -> None:
    with pytest.raises(ProgramError, match=r"shlo_disc\.torch\.export\(module.* or call torch\.compile") as caught:
        shlo_disc.compile(function, args=(argument,))
    assert caught.value.code == "DISC-P104"


class Adding(torch.nn.Module):
    """Changes an argument and a buffer in place, and reads another argument and a parameter afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.full((4, 3), 2.0))
        self.register_buffer("count", torch.zeros(4, 3))

    def forward(self, a: Any, c: Any) -> Any:
        a.add_(1)
        self.count.add_(1)
        return a * c + self.scale


def grid(rows: int, columns: int) -> Any:
    return torch.arange(float(rows * columns)).reshape(rows, columns)


APART = {
    "columns": lambda: (grid(4, 6)[:, :3], grid(4, 6)[:, 3:]),
    "halves of one tensor": lambda: grid(4, 6).split(3, dim=1),
    "every other column": lambda: ((m := grid(4, 6))[:, 0::2], m[:, 1::2]),
    "rows": lambda: grid(8, 3).split(4),
}
TOGETHER = {
    "one tensor twice": lambda run: 2 * (grid(4, 3),),
    "overlapping columns": lambda run: ((m := grid(4, 6))[:, :3], m[:, 2:5]),
    "overlapping rows": lambda run: ((m := grid(8, 3))[:4], m[2:6]),
    "one element": lambda run: ((m := grid(8, 3))[:4], m[3:7]),
    "a parameter that is changed": lambda run: (run.program.state_dict["scale"], grid(4, 3)),
    "a buffer that is changed": lambda run: (grid(4, 3), run.program.state_dict["count"]),
}


@pytest.mark.parametrize("name", APART)
def test_arguments_in_one_tensor_that_have_no_element_in_common(name: str) -> None:
    module = Adding()
    run = shlo_disc.compile(torch.export.export(module, (grid(4, 3), grid(4, 3))))
    with torch.no_grad():
        np.testing.assert_array_equal(run(*APART[name]()), module(*APART[name]()))


@pytest.mark.parametrize("name", TOGETHER)
def test_arguments_that_share_what_the_program_changes(name: str) -> None:
    run = shlo_disc.compile(torch.export.export(Adding(), (grid(4, 3), grid(4, 3))))
    given = TOGETHER[name](run)
    before = [tensor.clone() for tensor in given]
    with torch.no_grad(), pytest.raises(ArgumentTypeError, match=r"shares memory with .*pass a clone of the argument"):
        run(*given)
    for tensor, old in zip(given, before, strict=True):
        np.testing.assert_array_equal(tensor.detach(), old.detach())


def test_a_parameter_that_is_read_twice_may_be_an_argument() -> None:
    module = Adding()
    run = shlo_disc.compile(torch.export.export(module, (grid(4, 3), grid(4, 3))))
    with torch.no_grad():
        np.testing.assert_array_equal(run(grid(4, 3), module.scale), module(grid(4, 3), module.scale))


@pytest.mark.parametrize("given", [{"layer.weight": 0}, "weights.npz", Path("weights.npz")])
def test_weights_that_are_bound_by_position(given: Any, tmp_path: Path) -> None:
    loaded, _ = saved(tmp_path, Steps(), ones(2, 4))
    with pytest.raises(ArgumentTypeError, match=r"by bind\(weights=\.\.\.\)"):
        loaded.bind(given)
