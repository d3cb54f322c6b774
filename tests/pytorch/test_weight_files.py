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
from shlo_disc.errors import ArgumentTypeError, ArtifactError, ShapeError  # noqa: E402

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
    with pytest.raises(FileNotFoundError, match="there is no folder 'no', and save creates none: 'no/weights.npz'"):
        run.save(place / "half.disc", weights="no/weights.npz")
    with pytest.raises(FileNotFoundError, match="there is no folder 'no', and save creates none: 'no/half.disc'"):
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
        with pytest.raises(ArtifactError, match=rf"{words}.*, which holds weights and no program: load the program"):
            shlo_disc.load(folder / name, trust=True)


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
        (lambda: loaded(x=X, y=Y), r"lacks layer.weight, layer.bias. Weights, which come first, are given by bind"),
        (lambda: loaded.bind(weights={"layer.weight": [[1.0]], "layer.bias": X}), "layer.weight is of type list: give"),
    ):
        with pytest.raises(ArgumentTypeError) as caught:
            call()
        assert re.search(words, caught.value.message)
        assert ("bind(" in caught.value.message) == ("bind" in words)


class Tokens(torch.nn.Module):
    """A product of two, as models of transformers take them."""

    def forward(self, tokens: Any, mask: Any = None) -> Any:
        return tokens * mask


def test_exported_by_name_and_called_by_position() -> None:
    one = torch.ones(2)
    program = torch.export.export(Tokens(), (), {"tokens": one, "mask": one})
    run = shlo_disc.compile(program)
    for call, words in (
        (lambda: run(one, one), r"gives 2 by position: pass tokens=\.\.\., mask=\.\.\. by name"),
        (lambda: run(one, mask=one), r"gives 1 by position: pass tokens=\.\.\., mask=\.\.\. by name"),
        (lambda: run(tokens=one), "lacks mask: pass it, or export"),
        (lambda: run(one, one, one), "gives 3 arguments: export"),
    ):
        with pytest.raises(ArgumentTypeError, match=words):
            call()
    plain = shlo_disc.compile(torch.export.export(Tokens(), (one, one)))
    with pytest.raises(ArgumentTypeError, match="gives mask by position and by name"):
        plain(one, one, mask=one)
