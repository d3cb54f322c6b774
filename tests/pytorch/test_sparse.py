# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse tensors, which `torch.compile` leaves to PyTorch: a warning says so."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402


def product(x: Any, y: Any) -> Any:
    return x @ y


def made(x: Any, y: Any) -> Any:
    return x.to_sparse() @ y


@pytest.mark.parametrize("name", ["given", "made"])
def test_sparse_tensors_are_warned_of(name: str) -> None:
    """The remedy, dense tensors, compiles the function; other backends have no warning."""
    x, y = torch.eye(3), torch.randn(3, 2)
    function, given = (product, x.to_sparse()) if name == "given" else (made, x)
    torch._dynamo.reset()
    with pytest.warns(UserWarning, match=r"leaves sparse tensors out of its graphs.*x\.to_dense\(\)"):
        found = torch.compile(function, backend=shlo_disc.torch.backend, dynamic=True)(given, y)
    torch.testing.assert_close(found, y)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*sparse tensors")
        torch._dynamo.reset()
        torch.compile(function, backend="eager", dynamic=True)(given, y)
        torch._dynamo.reset()
        before = shlo_disc.torch.graph_count()
        found = torch.compile(product, backend=shlo_disc.torch.backend, dynamic=True)(x.to_sparse().to_dense(), y)
    torch.testing.assert_close(found, y)
    assert shlo_disc.torch.graph_count() == before + 1
