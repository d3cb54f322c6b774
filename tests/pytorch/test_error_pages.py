# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pages of the codes that users of PyTorch meet: they speak of PyTorch, and what they advise works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from shlo_disc.errors import DiscError  # noqa: E402
from shlo_disc.tools.cli import main  # noqa: E402

Dim, ones = torch.export.Dim, torch.ones
PAGES = Path(__file__).parents[2] / "docs" / "errors"
MET = [
    "A100", "A101", "C100", "M101", "O100", "O102", "P100", "P102", "P103", "P104", "S100", "S101", "S102", "S103",
    "S104", "S105", "T100", "T101", "T102", "T103", "U101",
]  # fmt: skip


@pytest.mark.parametrize("code", MET)
def test_pages_speak_of_pytorch(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", f"DISC-{code}"]) == 0
    remedy = capsys.readouterr().out.rpartition("```")[2]
    assert "PyTorch" in remedy


class Scaled(torch.nn.Module):
    """A linear layer of tokens, with a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, tokens: Any, mask: Any = None) -> Any:
        found = self.layer(tokens)
        return found if mask is None else found * mask


MODULE = Scaled()


def program(*args: Any, shapes: Any = None, **kwargs: Any) -> Any:
    return shlo_disc.compile(torch.export.export(MODULE, args, kwargs, dynamic_shapes=shapes))


class Times(torch.nn.Module):
    """A product with a number."""

    def forward(self, x: Any, n: Any) -> Any:
        return x * n


def times(shape: Any = None) -> Any:
    return shlo_disc.compile(torch.export.export(Times(), (X, 3), dynamic_shapes=(None, shape)))


def rows(**limits: int) -> Any:
    return {"tokens": {0: Dim("batch", **limits)}}


def loaded(folder: Path) -> Any:
    program(ones(2, 4), shapes=rows()).save(folder / "program.disc", weights=folder / "weights.npz")
    return shlo_disc.load(folder / "program.disc", trust=True)


X = ones(5, 4)
CASES: dict[str, tuple[str, Callable[[Path], Any], Callable[[Path], Any]]] = {
    "an array": (
        "T100", lambda _: program(X)(X.numpy()), lambda _: program(X)(torch.from_numpy(X.numpy())),
    ),
    "a gradient": (
        "T100", lambda _: program(X)(X.clone().requires_grad_()),
        lambda _: program(X)(X.clone().requires_grad_().detach()),
    ),
    "a sparse tensor": ("T100", lambda _: program(X)(X.to_sparse()), lambda _: program(X)(X.to_sparse().to_dense())),
    "no weights": (
        "T102", lambda folder: loaded(folder)(X),
        lambda folder: loaded(folder).bind(weights=MODULE.state_dict())(X),
    ),
    "a dtype": ("T101", lambda _: program(X)(X.double()), lambda _: program(X)(X.double().to(torch.float32))),
    "an optional argument": (
        "T102", lambda _: program(X)(X, ones(5, 3)), lambda _: program(X, ones(5, 3))(X, ones(5, 3)),
    ),
    "an argument by name": ("T102", lambda _: program(tokens=X)(X), lambda _: program(tokens=X)(tokens=X)),
    "a number": ("T102", lambda _: times()(X, 2), lambda _: MODULE(times(Dim.DYNAMIC)(X, 2) / 2)),
    "names of sizes": (
        "S100", lambda _: program(X, shapes=rows()).memory(b=5), lambda _: program(X, shapes=rows()).memory(batch=5),
    ),
    "a rank": ("S101", lambda _: program(X)(X[0]), lambda _: program(ones(1, 4))(X[0].unsqueeze(0))),
    "a fixed size": ("S102", lambda _: program(X)(ones(6, 4)), lambda _: program(X, shapes=rows())(ones(6, 4))),
    "a range": (
        "S104", lambda _: program(X, shapes=rows(max=8))(ones(9, 4)), lambda _: program(X, shapes=rows())(ones(9, 4)),
    ),
    "a file of torch.export.save": (
        "P102", lambda folder: shlo_disc.compile(exported_file(folder)),
        lambda folder: shlo_disc.compile(torch.export.load(exported_file(folder)))(X),
    ),
    "a file of torch.save": (
        "A100", lambda folder: shlo_disc.load(state_file(folder), trust=True),
        lambda folder: loaded(folder).bind(weights=folder / "weights.npz")(X),
    ),
    "a file that is not trusted": (
        "A101", lambda folder: loaded(folder) and shlo_disc.load(folder / "program.disc"), loaded,
    ),
}  # fmt: skip


def exported_file(folder: Path) -> Path:
    torch.export.save(torch.export.export(MODULE, (X,)), folder / "module.pt2")
    return folder / "module.pt2"


def state_file(folder: Path) -> Path:
    torch.save(MODULE.state_dict(), folder / "weights.pth")
    return folder / "weights.pth"


@pytest.mark.parametrize("name", CASES)
def test_advice(name: str, tmp_path: Path) -> None:
    code, fault, remedied = CASES[name]
    with torch.set_grad_enabled(name == "a gradient"), pytest.raises(DiscError) as caught:
        fault(tmp_path)
    assert caught.value.code == f"DISC-{code}"
    with torch.no_grad():
        found = remedied(tmp_path)
    if isinstance(found, torch.Tensor | np.ndarray):
        wanted = MODULE(ones(len(found), 4)).detach()
        np.testing.assert_allclose(np.asarray(found), wanted.numpy(), rtol=1e-5)
