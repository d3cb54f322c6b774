# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forms that docs/torch.md has in place of functions whose sizes PyTorch fixes, and that serve every size."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from tests.docs.page import ROOT  # noqa: E402

ROWS = [
    tuple(part.strip(" `") for part in line.split("`")[1::2][:: 2 if "nn.MaxPool1d" in line else 1][:2])
    for line in (ROOT / "docs" / "torch.md").read_text().splitlines()
    if line.startswith(("| `F.max_pool1d", "| `torch.gradient", "| `torch.vander", "| `torch.kron", "| `torch.tril"))
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
    assert len(ROWS) == 5


@pytest.mark.parametrize(("fixed", "written"), ROWS)
def test_what_to_write(fixed: str, written: str) -> None:
    shape = (2, 3, 9) if "pool" in fixed else (9,)
    sizes = {len(shape) - 1: torch.export.Dim.DYNAMIC}
    example = torch.randn(shape)
    with pytest.raises(Exception, match="specialized it to be a constant"):
        torch.export.export(Written(fixed), (example,), dynamic_shapes=(sizes,))
    run = shlo_disc.compile(torch.export.export(Written(written), (example,), dynamic_shapes=(sizes,)))
    for size in (4, 7, 20):
        x = torch.randn(*shape[:-1], size)
        torch.testing.assert_close(run(x), Written(fixed)(x), rtol=1e-4, atol=1e-5)


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
