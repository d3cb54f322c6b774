# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forms that docs/torch.md has in place of functions whose sizes PyTorch fixes, and that serve every size."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from tests.docs.page import ROOT  # noqa: E402
from tests.pytorch.modules import Applied  # noqa: E402

NAMES = ("| `torch.linspace", "| `torch.take_along_dim", "| `torch.combinations")
ROWS = [
    tuple(part.strip(" `") for part in line.split("`")[1::2][:: 2 if "nn.MaxPool1d" in line else 1][:2])
    for line in (ROOT / "docs" / "torch.md").read_text().splitlines()
    if line.startswith(
        ("| `F.max_pool1d", "| `torch.gradient", "| `torch.vander", "| `torch.kron", "| `torch.tril", *NAMES)
    )
]
"""The functions that PyTorch fixes, and what to write."""


class Written(torch.nn.Module):
    """An expression of `x`."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.code = compile(text, "<docs/torch.md>", "eval")

    def forward(self, x: Any) -> Any:
        return eval(self.code, {"torch": torch, "F": torch.nn.functional, "x": x, "n": x.shape[0]})  # noqa: S307


def test_all_rows_are_read() -> None:
    assert len(ROWS) == 8


@pytest.mark.parametrize(("fixed", "written"), ROWS)
def test_what_to_write(fixed: str, written: str) -> None:
    shape = (2, 3, 9) if "pool" in fixed else (9,)
    sizes = {len(shape) - 1: torch.export.Dim.DYNAMIC}
    example = torch.randn(shape)
    with pytest.raises(Exception, match="specialized it to be a constant|Pending unbacked symbols"):
        torch.export.export(Written(fixed), (example,), dynamic_shapes=(sizes,))
    run = shlo_disc.compile(torch.export.export(Written(written), (example,), dynamic_shapes=(sizes,)))
    for size in (4, 7, 20):
        x = torch.randn(*shape[:-1], size)
        torch.testing.assert_close(run(x), Written(fixed)(x), rtol=1e-4, atol=1e-5)


FORMS = {
    "fill_diagonal_": (
        lambda x: x.clone().fill_diagonal_(0),
        lambda x: torch.where(torch.eye(x.shape[0], dtype=torch.bool), 0, x),
    ),
    "cov": (torch.cov, lambda x: centered(x) @ centered(x).T / (x.shape[1] - 1)),
    "corrcoef": (torch.corrcoef, lambda x: correlated(centered(x) @ centered(x).T)),
    "split": (lambda x: torch.stack(x.split(2, 1), 1), lambda x: x.reshape(x.shape[0], -1, 2)),
}


def centered(x: Any) -> Any:
    return x - x.mean(1, keepdim=True)


def correlated(x: Any) -> Any:
    return x / torch.sqrt(x.diagonal()[:, None] * x.diagonal()[None])


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_matrices(name: str) -> None:
    fixed, written = FORMS[name]
    rows = torch.export.Dim("rows")
    columns = rows if name == "fill_diagonal_" else 2 * torch.export.Dim("half") if name == "split" else None
    sizes = ({0: rows, 1: columns or torch.export.Dim("columns")},)
    example = torch.randn(6, 6 if columns is rows else 8)
    with pytest.raises(Exception, match="specialized it to be a constant|aten.equal|not equal|Not all values"):
        shlo_disc.torch.export(Applied(fixed), (example,), dynamic_shapes=sizes)
    run = shlo_disc.compile(shlo_disc.torch.export(Applied(written), (example,), dynamic_shapes=sizes))
    for shape in ((4, 4), (7, 7), (20, 20)) if columns is rows else ((4, 6), (9, 12)):
        x = torch.randn(shape)
        torch.testing.assert_close(run(x), fixed(x), rtol=1e-4, atol=1e-5)


def test_refusals_of_export_point_to_the_forms() -> None:
    sizes = ({0: torch.export.Dim.DYNAMIC},)
    with pytest.raises(Exception, match="specialized it to be a constant") as raised:
        shlo_disc.torch.export(Written("torch.linspace(0, 1, n)"), (torch.randn(9),), dynamic_shapes=sizes)
    assert "Sizes that PyTorch fixes" in raised.value.__notes__[0]
    assert "## Sizes that PyTorch fixes" in (ROOT / "docs" / "torch.md").read_text()


def test_losses_of_sequences_train() -> None:
    """CTC, which `torch.export` refuses with lengths in tensors."""
    torch._dynamo.reset()
    compiled = torch.compile(FUNCTIONAL.ctc_loss, backend=shlo_disc.torch.backend, dynamic=True)
    for length in (12, 20):
        logits = torch.randn(length, 3, 5)
        rest = torch.randint(1, 5, (3, 4)), torch.full((3,), length), torch.full((3,), 4)
        gradients = []
        for function in (compiled, FUNCTIONAL.ctc_loss):
            x = logits.clone().requires_grad_()
            function(x.log_softmax(-1), *rest).backward()
            gradients.append(x.grad)
        torch.testing.assert_close(*gradients)


FUNCTIONAL = torch.nn.functional
SERVED = {
    "avg_pool1d": (lambda x: FUNCTIONAL.avg_pool1d(x, 3), (2, 3, 9)),
    "adaptive": (lambda x: FUNCTIONAL.adaptive_max_pool1d(x, 2), (2, 3, 9)),
    "interpolate": (lambda x: FUNCTIONAL.interpolate(x, scale_factor=2, mode="linear"), (2, 3, 9)),
    "max_pool2d": (lambda x: FUNCTIONAL.max_pool2d(x, 2), (2, 3, 10, 8)),
}


@pytest.mark.parametrize("name", SERVED)
def test_what_serves_every_size(name: str) -> None:
    torch._dynamo.reset()
    function, shape = SERVED[name]
    compiled = torch.compile(function, backend=shlo_disc.torch.backend, dynamic=True)
    before = shlo_disc.torch.graph_count()
    for size in (9, 12, 7):
        x = torch.randn(*shape[:-1], size)
        torch.testing.assert_close(compiled(x), function(x), rtol=1e-4, atol=1e-5)
    assert shlo_disc.torch.graph_count() - before == 1


class Skip(torch.nn.Module):
    """A level of a U-Net: a strided convolution, its transpose, and the two put together."""

    def __init__(self, crops: bool) -> None:
        super().__init__()
        self.crops = crops
        self.down, self.up = torch.nn.Conv1d(3, 4, 4, 2, 1), torch.nn.ConvTranspose1d(4, 3, 4, 2, 1)

    def forward(self, h: Any) -> Any:
        z = self.up(self.down(h))
        if self.crops:
            k = min(z.shape[-1], h.shape[-1])
            return torch.cat([z[..., :k], h[..., :k]], 1)
        return torch.cat([torch.nn.functional.pad(z, (0, h.shape[-1] - z.shape[-1])), h], 1)


@pytest.mark.parametrize("example", [37, 64])
def test_skips_of_odd_and_even_lengths(example: int) -> None:
    shapes, module = ({2: torch.export.Dim.AUTO},), Skip(crops=False)
    run, cropped = (
        shlo_disc.compile(torch.export.export(m, (torch.randn(2, 3, example),), dynamic_shapes=shapes))
        for m in (module, Skip(crops=True))
    )
    for length in (4, 5, 16, 17, 37, 64):
        h = torch.randn(2, 3, length)
        with torch.no_grad():
            torch.testing.assert_close(run(h), module(h), rtol=1e-4, atol=1e-5)
        if length % 2 != example % 2:
            with pytest.raises(shlo_disc.ShapeError, match="which PyTorch took to hold"):
                cropped(h)
