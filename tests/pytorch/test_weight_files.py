# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files of a program and its weights: given the wrong way round, of other models, and to folders that do not exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from shlo_disc.errors import ArgumentTypeError, ArtifactError, OptionError, ProgramError, ShapeError  # noqa: E402
from shlo_disc.tools.cli import main  # noqa: E402

B = torch.export.Dim("b")
X, Y = np.ones((5, 4), np.float32), np.ones((5, 3), np.float32)


class Shifted(torch.nn.Module):
    """A linear layer and a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x: Any, y: Any) -> Any:
        return self.layer(x) + y


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    module, place = Shifted(), tmp_path_factory.mktemp("files")
    example = torch.ones(2, 4), torch.ones(2, 3)
    run = shlo_disc.compile(torch.export.export(module, example, dynamic_shapes=({0: B}, {0: B})))
    run.save(place / "program.disc", weights=place / "weights.npz")
    with pytest.raises(FileNotFoundError, match="there is no folder 'no': create it first: 'no/weights.npz'"):
        run.save(place / "half.disc", weights="no/weights.npz")
    with pytest.raises(FileNotFoundError, match="there is no folder 'no': create it first: 'no/half.disc'"):
        run.save("no/half.disc", weights=place / "half.npz")
    with pytest.raises(IsADirectoryError):
        run.save(place / "half.disc", weights=place)
    assert sorted(file.name for file in place.iterdir()) == ["program.disc", "weights.npz"]
    torch.save(module.state_dict(), place / "weights.pth")
    np.save(place / "one.npy", X)
    header = b'{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}'
    (place / "weights.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    (place / "text.txt").write_text("weights")
    return place


@pytest.fixture(scope="module")
def loaded(folder: Path) -> Any:
    return shlo_disc.load(folder / "program.disc", trust=True)


def test_weights_by_the_path_of_their_file(folder: Path, loaded: Any) -> None:
    with np.load(folder / "weights.npz") as weights:
        wanted = loaded.bind(weights=weights)(X, Y)
    for path in (folder / "weights.npz", str(folder / "weights.npz")):
        np.testing.assert_array_equal(loaded.bind(weights=path)(X, Y), wanted)


@pytest.mark.parametrize(
    ("name", "words"),
    [("weights.pth", "a file of torch.save"), ("one.npy", "an .npy file"),
     ("weights.safetensors", "a safetensors file"), ("text.txt", "of no .npz file"),
     ("program.disc", "of no .npz file")],
)  # fmt: skip
def test_paths_of_other_files(name: str, words: str, folder: Path, loaded: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=rf"weights= is .*{words}.*run.save\(path, weights=file\)"):
        loaded.bind(weights=folder / name)
    if words != "of no .npz file":
        with pytest.raises(
            ProgramError, match=rf"{words}.*shlo_disc\.load\(program, trust=True\)\.bind\(weights="
        ) as caught:
            shlo_disc.compile(folder / name)
        assert caught.value.code == "DISC-P102"
        with pytest.raises(ArtifactError, match=rf"{words}.*, which holds weights and no program: load the program"):
            shlo_disc.load(folder / name, trust=True)


def test_remedies_for_files_of_weights(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The remedies that `info` prints bind the weights."""
    for name in ("weights.npz", "weights.pth"):
        assert main(["info", str(folder / name)]) == 1
        printed = capsys.readouterr().err
        remedy = re.findall(r"bind the weights by (.*)", printed)[0]
        found = eval(remedy, {"shlo_disc": shlo_disc, "torch": torch, "program": folder / "program.disc"})  # noqa: S307
        assert found(X, Y).shape == (5, 3)


def test_programs_of_other_kinds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The remedy that `info` prints for a file of torch.export.save makes a file that `info` reads."""
    one, module = torch.ones(2), Tokens()
    torch.export.save(torch.export.export(module, (one, one.clone())), tmp_path / "module.pt2")
    torch.jit.save(torch.jit.trace(module, (one, one)), tmp_path / "module.pt")
    (tmp_path / "module.onnx").write_bytes(b"\x08\x08\x12\x07pytorch")
    for name, words in (
        ("module.pt2", "zip archive"),
        ("module.pt", "TorchScript program"),
        ("module.onnx", "ONNX file"),
    ):
        assert main(["info", str(tmp_path / name)]) == 1
        printed = capsys.readouterr().err
        assert re.search(rf"DISC-P102.*but an? {words}.*: (call|export|compile) ", printed)
        if name == "module.pt2":
            run = eval(re.findall(r"call (.*) in Python", printed)[0], {"shlo_disc": shlo_disc, "torch": torch})  # noqa: S307
            run.save(tmp_path / "program.disc")
            assert main(["info", str(tmp_path / "program.disc")]) == 0


def test_a_path_of_weights_without_a_file(folder: Path, loaded: Any) -> None:
    with pytest.raises(FileNotFoundError, match=r"did you mean '.*weights\.npz'"):
        loaded.bind(weights=folder / "weight.npz")
    with pytest.raises(
        FileNotFoundError, match=r"weights= is the path of an \.npz file: run\.save\(path, weights=file"
    ):
        loaded.bind(weights=folder / "nope.npz")


def test_remedies_for_commands_that_need_the_program(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The calls of Python that they name work."""
    exported = torch.export.export(Shifted(), (torch.ones(2, 4), torch.ones(2, 3)), dynamic_shapes=({0: B}, {0: B}))
    for command in ("explain", "report"):
        assert main([command, str(folder / "program.disc")]) == 1
        first, second = re.search(r"as in `run = (.*?)` and `(.*?)` in Python", capsys.readouterr().err).groups()  # type: ignore[union-attr]
        run = eval(first, {"shlo_disc": shlo_disc, "exported": exported})  # noqa: S307
        assert eval(second, {"run": run})  # noqa: S307


def test_weights_as_programs(folder: Path) -> None:
    with pytest.raises(ArtifactError, match=r"weights.npz' is an .npz file .*bind\(weights=\.\.\.\)"):
        shlo_disc.load(folder / "weights.npz", trust=True)


def test_weights_without_names(loaded: Any) -> None:
    for weights in ([1, 2], 3, X):
        with pytest.raises(ArgumentTypeError, match="give arrays by name, as a dict or the path of an .npz file"):
            loaded.bind(weights=weights)


def test_weights_of_other_models(folder: Path, loaded: Any) -> None:
    weights = dict(np.load(folder / "weights.npz"))
    other = {**weights, "layer.weight": np.ones((7, 9), np.float32)}
    for call in (lambda: loaded.bind(weights=other), lambda: loaded(*other.values(), X, Y)):
        with pytest.raises(ShapeError, match="these weights are of a model of other sizes") as caught:
            call()
        assert "dynamic_shapes" not in str(caught.value) and "same constant" not in str(caught.value)


def test_arguments_that_are_missing_or_no_arrays(folder: Path, loaded: Any) -> None:
    bound = loaded.bind(weights=folder / "weights.npz")
    for call, words in (
        (lambda: bound(X), "lacks y$"),
        (lambda: bound(X.tolist(), Y.tolist()), r"x is of type list, y is of type list: give numpy\.asarray"),
        (lambda: bound(X, None), r"takes arrays, and y is of type NoneType"),
        (lambda: loaded(x=X, y=Y), r"lacks layer.weight, layer.bias. The weights come first .*: bind the weights"),
        (lambda: loaded.bind(weights={"layer.weight": [[1.0]], "layer.bias": X}), "layer.weight is of type list: give"),
    ):
        with pytest.raises(ArgumentTypeError) as caught:
            call()
        assert re.search(words, caught.value.message)
        assert ("bind(" in caught.value.message) == ("bind" in words)


LAYERS = {
    "linear": (lambda: torch.nn.Linear(4, 3), torch.ones(2, 4)),
    "in a module": (lambda: torch.nn.Sequential(torch.nn.Linear(4, 3)), torch.ones(2, 4)),
    "with buffers": (lambda: torch.nn.BatchNorm1d(4).eval(), torch.ones(2, 4)),
    "that changes buffers": (lambda: torch.nn.BatchNorm1d(4), torch.ones(2, 4)),
    "an embedding": (lambda: torch.nn.Embedding(5, 4), torch.ones(2, dtype=torch.int64)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_data_without_weights(name: str, tmp_path: Path) -> None:
    """The remedy of the text calls the program, whatever the names of the weights are."""
    make, x = LAYERS[name]
    module = make()
    shlo_disc.compile(torch.export.export(module, (x,), dynamic_shapes=({0: B},))).save(tmp_path / "program.disc")
    program = shlo_disc.load(tmp_path / "program.disc", trust=True)
    argument = program.parameter_names.names[-1]
    bound = program.bind(weights=module.state_dict())
    words = r"bind the weights, as in bound = program\.bind\(weights=file\).*, or with module\.state_dict\(\)"
    for call in (program, lambda x: program(**{argument: x}), lambda x: program.execute((x,))):
        with pytest.raises(ArgumentTypeError, match=words):
            call(x)
    with torch.no_grad():
        wanted = module(x).numpy()
    names, state = program.parameter_names, module.state_dict()
    found = bound(*(state[name] for name in names.names[names.weights : -1]), x)  # buffers that it changes come first
    np.testing.assert_allclose(found[-1] if isinstance(found, tuple) else found, wanted, rtol=1e-4, atol=1e-5)


def test_programs_without_weights(tmp_path: Path) -> None:
    one = torch.ones(2)
    shlo_disc.compile(torch.export.export(Tokens(), (one, one.clone()))).save(tmp_path / "program.disc")
    with pytest.raises(ArgumentTypeError, match=r"the call gives tokens by position, and lacks mask \["):
        shlo_disc.load(tmp_path / "program.disc", trust=True)(one)


@pytest.mark.parametrize("name", ["w.pt", "w.PTH", "w.safetensors", "w.npy", "w.disc"])
def test_endings_of_other_formats(name: str, tmp_path: Path) -> None:
    """The remedy of the text writes a file; where one ending is wrong, nothing is written."""
    run = shlo_disc.compile(torch.export.export(Shifted(), (torch.ones(2, 4), torch.ones(2, 3))))
    words = r"w\.\w+' has the ending of .*, and what is written there is an \.npz file of arrays: write '(.*w\.npz)'"
    with pytest.raises(OptionError, match=words) as caught:
        run.save(tmp_path / "program.disc", weights=tmp_path / name)
    with pytest.raises(OptionError, match=r"what is written there is a program of shlo_disc: write '.*program\.disc'"):
        run.save(tmp_path / "program.pt2", weights=tmp_path / "w.npz")
    assert not list(tmp_path.iterdir())
    found = re.search(words, caught.value.message)
    assert found
    run.save(tmp_path / "program.disc", weights=found[1])
    assert sorted(np.load(found[1])) == ["layer.bias", "layer.weight"]


def test_calls_without_a_buffer_that_the_program_changes(tmp_path: Path) -> None:
    """All that the call takes is named: a tensor that comes first is taken for the buffer."""
    module, x = torch.nn.BatchNorm1d(4), np.ones((5, 4), np.float32)
    shlo_disc.compile(torch.export.export(module, (torch.ones(2, 4),), dynamic_shapes=({0: B},))).save(tmp_path / "a")
    bound = shlo_disc.load(tmp_path / "a", trust=True).bind(weights=module.state_dict())
    every = r"takes 4 arguments \(running_mean, running_var, num_batches_tracked, input\) beside the 2 .*; the call "
    given = "gives running_mean by position, and lacks running_var, num_batches_tracked, input"
    for call, words in (
        (lambda: bound(x), given),
        (lambda: bound.execute((x,)), given),
        (lambda: bound(input=x), "lacks running_mean, running_var, num_batches_tracked"),
    ):
        with pytest.raises(ArgumentTypeError, match=every + words):
            call()


class Hidden(torch.nn.Module):
    """A linear layer, a constant, and a buffer that no state has."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)
        self.register_buffer("scale", torch.full((3,), 2.0), persistent=False)
        self.shift = torch.arange(3.0)

    def forward(self, x: Any) -> Any:
        return self.layer(x) * self.scale + self.shift


def test_weights_that_a_state_lacks(tmp_path: Path) -> None:
    """The remedy of the text binds all weights."""
    module, x = Hidden(), torch.ones(2, 4)
    run = shlo_disc.compile(torch.export.export(module, (x,), dynamic_shapes=({0: B},)))
    run.save(tmp_path / "program.disc", weights=tmp_path / "weights.npz")
    program = shlo_disc.load(tmp_path / "program.disc", trust=True)
    file, weights = tmp_path / "weights.npz", Hidden().state_dict()
    with pytest.raises(ArgumentTypeError, match=r"lacks scale, shift: run\.save\(path, weights=file\) wri") as error:
        program.bind(weights=weights)
    remedy = re.search(r"give weights=(\{.*\})$", error.value.message)
    assert remedy
    with torch.no_grad():
        np.testing.assert_allclose(program.bind(weights=file)(x), module(x).numpy(), rtol=1e-5)
        module.load_state_dict(weights)
        newer = eval(remedy[1], {"numpy": np, "file": file, "weights": weights})  # noqa: S307
        np.testing.assert_allclose(program.bind(weights=newer)(x), module(x).numpy(), rtol=1e-5)


def test_weights_in_checkpoints(folder: Path, loaded: Any) -> None:
    """The remedies of the texts, one after the other, bind the weights."""
    state = torch.load(folder / "weights.pth")
    wanted = loaded.bind(weights=state)(X, Y)
    wrapped = {f"module.{name}": weight for name, weight in state.items()}
    for checkpoint in ({"epoch": 3, "state_dict": state}, {"state_dict": wrapped}):
        with pytest.raises(ArgumentTypeError, match=r"entry 'state_dict': give weights=checkpoint\['state_dict'\]"):
            loaded.bind(weights=checkpoint)
    weights = checkpoint["state_dict"]
    with pytest.raises(ArgumentTypeError) as caught:
        loaded.bind(weights=weights)
    remedy = re.search(r"give weights=(\{.*\})$", caught.value.message)
    assert remedy
    np.testing.assert_array_equal(loaded.bind(weights=eval(remedy[1], {"weights": weights}))(X, Y), wanted)  # noqa: S307


def test_weights_that_are_no_arrays(folder: Path, loaded: Any) -> None:
    """The remedies of the texts bind the weights."""
    state = torch.load(folder / "weights.pth", weights_only=True)
    module, weights = Shifted(), list(state.values())
    module.load_state_dict(state)
    wanted = loaded.bind(weights=folder / "weights.npz")(X, Y)
    for call, words, remedy in (
        (lambda: loaded.bind(), r"bind\(\) fixes nothing.*bind\(weights=file\).*, or with module\.state_dict\(\)", {}),
        (lambda: loaded.bind(module), r"write bind\(weights=module\.state_dict\(\)\)", {}),
        (lambda: loaded.bind(weights=module), r"weights=module\.state_dict\(\)$", {}),
        (lambda: loaded.bind(weights=module.parameters()), r"weights=module\.state_dict\(\), or", {}),
        (lambda: loaded.bind(weights=[*weights, X, Y]), r"the weights alone by position: bind\(\*weights\)", weights),
        (lambda: loaded.bind(weights={}), "lacks layer.weight, layer.bias: run.save", {}),
        (
            lambda: loaded.bind(weights=folder / "weights.pth"),
            r"bind\(weights=torch\.load\('.*weights.pth', w",
            state,
        ),
    ):
        with pytest.raises(ArgumentTypeError) as caught:
            call()
        assert re.search(words, caught.value.message)
        bound = loaded.bind(*weights) if remedy is weights else loaded.bind(weights=remedy or module.state_dict())
        np.testing.assert_array_equal(bound(X, Y), wanted)


def test_files_of_weights_that_are_no_paths(tmp_path: Path) -> None:
    run = shlo_disc.compile(torch.export.export(Shifted(), (torch.ones(2, 4), torch.ones(2, 3))))
    for weights in (True, {}, tmp_path / "program.disc"):
        with pytest.raises(OptionError, match=r"the path of a second file.*: write save\('") as caught:
            run.save(tmp_path / "program.disc", weights=weights)
        assert not list(tmp_path.iterdir())
    eval(re.findall("write (.*)$", caught.value.message)[0], {"save": run.save})  # noqa: S307
    assert sorted(file.name for file in tmp_path.iterdir()) == ["program.disc", "program.weights.npz"]


def test_methods_of_calls(folder: Path, loaded: Any) -> None:
    """They take arguments as calls do, and as a tuple."""
    bound = loaded.bind(weights=folder / "weights.npz")
    weights, wanted = list(np.load(folder / "weights.npz").values()), bound(X, Y)
    for found in (
        bound.execute(X, Y), bound.execute((X, Y)), bound.execute([X], {"y": Y}), bound.execute(X, y=Y, output="numpy"),
        bound.execute(x=X, y=Y), bound.execute(args=(X, Y)), loaded.execute(*weights, X, Y),
        loaded.execute_async(*weights, X, y=torch.from_numpy(Y), output="numpy").result(),
    ):  # fmt: skip
        np.testing.assert_array_equal(found, wanted)
    for run, first in ((bound, ()), (loaded, weights)):
        for args, kwargs in (((*first, X, Y), {}), ((*first, X), {"y": Y}), ((*first, X), {"kwargs": {"y": Y}})):
            assert len(run.profile(*args, **kwargs)) == len(run.profile((*first, X, Y)))
        with pytest.raises(ShapeError, match=r"Rank mismatch for y: expected \(b, 3\)"):
            run.profile(*first, X, Y[0])
    assert bound.record(X, Y)[0]


def test_calls_where_all_is_bound(folder: Path, loaded: Any) -> None:
    weights = np.load(folder / "weights.npz")
    words = "all 4 arguments of 'Shifted'; the call gives 1: bind only layer.weight, layer.bias, and give x, y in calls"
    with pytest.raises(ArgumentTypeError, match=words):
        loaded.bind(*weights.values(), X, Y)(X)


class Tokens(torch.nn.Module):
    """A product of two, as models of transformers take them."""

    def forward(self, tokens: Any, mask: Any = None) -> Any:
        return tokens * mask


def test_exported_by_name_and_called_by_position() -> None:
    one = torch.ones(2)
    program = torch.export.export(Tokens(), (), {"tokens": one, "mask": one.clone()})
    run = shlo_disc.compile(program)
    for call, words in (
        (lambda: run(one, one), r"gives 2 by position: pass tokens=\.\.\., mask=\.\.\. by name"),
        (lambda: run(one, mask=one), r"gives 1 by position: pass tokens=\.\.\., mask=\.\.\. by name"),
        (lambda: run(tokens=one), "lacks mask: pass it, or export"),
        (lambda: run(one, one, one), "gives 3 arguments: export"),
    ):
        with pytest.raises(ArgumentTypeError, match=words):
            call()
    plain = shlo_disc.compile(torch.export.export(Tokens(), (one, one.clone())))
    with pytest.raises(ArgumentTypeError, match="gives mask by position and by name"):
        plain(one, one, mask=one)


class Counting(torch.nn.Module):
    """A layer that counts its calls in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x: Any) -> Any:
        self.count += 1
        return self.layer(x) + self.count


def test_buffers_that_a_program_changes_are_not_fixed(tmp_path: Path) -> None:
    """A state_dict has them, too."""
    module = Counting()
    exported = torch.export.export(module, (torch.randn(2, 4),), dynamic_shapes=({0: torch.export.Dim("b")},))
    run = shlo_disc.compile(exported)
    run.save(tmp_path / "s.disc", weights=tmp_path / "s.npz")
    loaded = shlo_disc.load(tmp_path / "s.disc", trust=True)
    x = torch.randn(5, 4)
    with torch.no_grad():
        expected = module.layer(x)
    for weights in (tmp_path / "s.npz", module.state_dict(), {**module.state_dict()}):
        bound = loaded.bind(weights=weights)
        count = torch.zeros(3)
        for call in (1, 2, 3):
            count, found = (torch.from_dlpack(part) for part in bound(count, x))
            torch.testing.assert_close(count, torch.full((3,), float(call)))
            torch.testing.assert_close(found, expected + call)


def test_values_of_buffers_that_a_program_changes(tmp_path: Path) -> None:
    """The file has them, the bound program returns copies of them, and the remedy of the text calls it."""
    module, x = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)), torch.randn(5, 4)
    module(torch.randn(8, 4) * 3 + 1)
    run = shlo_disc.compile(torch.export.export(module, (torch.ones(2, 4),), dynamic_shapes=({0: B},)))
    run.save(tmp_path / "s.disc", weights=tmp_path / "s.npz")
    loaded = shlo_disc.load(tmp_path / "s.disc", trust=True)
    for weights in (tmp_path / "s.npz", module.state_dict()):
        bound = loaded.bind(weights=weights)
        assert list(bound.buffers) == ["1.running_mean", "1.running_var", "1.num_batches_tracked"]
        with pytest.raises(ArgumentTypeError, match=r"The module changes 1\.running_mean.*\*state, y = ") as caught:
            bound(x.numpy())
        assert "Begin with state = bound.buffers.values(), and call *state, y = bound(*state, input)" in str(
            caught.value
        )
        state = bound.buffers.values()
        *state, _ = bound(*state, x.numpy())
        *state, y = bound(*state, x.numpy())
        start = bound.buffers["1.num_batches_tracked"]
        assert int(state[2]) == int(start) + 2
        assert int(bound.buffers["1.num_batches_tracked"]) == int(start)
        with torch.no_grad():
            np.testing.assert_allclose(y, module(x).numpy(), rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def convolution(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Path]:
    place = tmp_path_factory.mktemp("convolution")
    module = torch.nn.Conv2d(2, 5, (3, 4)).eval()
    run = shlo_disc.compile(torch.export.export(module, (torch.ones(2, 2, 8, 9),), dynamic_shapes=({0: B},)))
    run.save(place / "program.disc", weights=place / "weights.npz")
    return run, shlo_disc.load(place / "program.disc", trust=True), place


def test_shapes_of_weights_are_those_of_pytorch(convolution: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """In Python; `info` shows those of C beside them, which `weights(as_taken=True)` has."""
    run, program, place = convolution
    for text in (program.signature, str(run.signature), str(run.executable.signature)):
        assert "weight: f32[5, 2, 3, 4], bias: f32[5], input: f32[b, 2, 8, 9]" in text
    for shown in (program, run, run.executable, program.artifact, program.bind(weights=run.weights())):
        assert "(f32[5, 2, 3, 4], f32[5], f32[b, 2, 8, 9])" in repr(shown)
        assert "[3, 4, 2, 5]" not in repr(shown) + shown._repr_html_()
    assert program.dims_of((5, 2, 3, 4), (5,), (7, 2, 8, 9)) == {"b": 7}
    assert main(["info", str(place / "program.disc")]) == 0
    assert "weight: f32[5, 2, 3, 4], in C f32[3, 4, 2, 5]\n" in capsys.readouterr().out
    assert run.weights(as_taken=True)["weight"].shape == (3, 4, 2, 5)
    run.explain(b=3)
    assert run.profile(torch.ones(3, 2, 8, 9))
    assert program.profile(*run.weights().values(), torch.ones(3, 2, 8, 9))


def test_weights_in_the_order_of_c(convolution: Any) -> None:
    """They are refused where their sizes tell, with what to give."""
    run, program, _ = convolution
    taken, x = run.weights(as_taken=True), np.ones((3, 2, 8, 9), np.float32)
    for call in (
        lambda: program.bind(*taken.values()),
        lambda: program.bind(weights=taken),
        lambda: program(*taken.values(), x),
        lambda: program(**taken, input=x),
        lambda: program.execute((*taken.values(), x)),
        lambda: program.profile(*taken.values(), x),
    ):
        with pytest.raises(ShapeError) as caught:
            call()
        assert caught.value.message == (
            "Shape mismatch for weight.shape[0]: expected (5, 2, 3, 4) and called with (3, 4, 2, 5), its shape in C: "
            "give it in PyTorch's order of axes, as in module.state_dict()"
        )
    wide = np.ones((5, 2, 3), np.float32)
    with pytest.raises(ShapeError, match=r"Rank mismatch for weight: expected \(5, 2, 3, 4\) .* with \(5, 2, 3\); the"):
        program.bind(wide)
    with pytest.raises(ArgumentTypeError, match="gives weight by position, and lacks bias, input"):
        program(x)


def test_donated_weights_in_another_order(convolution: Any) -> None:
    jax = pytest.importorskip("jax")
    run, program, _ = convolution
    x = np.ones((3, 2, 8, 9), np.float32)
    wanted = program.bind(*run.weights().values())(x)
    donated = [jax.numpy.array(a) for a in run.weights().values()]
    traced = jax.jit(lambda *args: program(*args))(*donated, x)
    np.testing.assert_allclose(traced, wanted, rtol=1e-5, atol=1e-6)
    buffers = run.executable.bind(weights=run.weights(), copy=False)
    np.testing.assert_array_equal(buffers(x), wanted)
    np.testing.assert_array_equal(program.bind(*donated, donate=True)(x), wanted)
    assert all(array.is_deleted() for array in donated)
