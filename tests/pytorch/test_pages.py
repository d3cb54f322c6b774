# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The blocks of pages that need PyTorch run and print what the pages show, with this build of PyTorch."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import shlo_disc  # noqa: E402
from tests.docs.page import ROOT, matches, read  # noqa: E402

GUIDES = [f"docs/guides/{path.name}" for path in (ROOT / "docs" / "guides").glob("*.md")]
PAGES = sorted(name for name in ["README.md", *GUIDES] if "torch" in read(name).needs)
MODULES = ("torch", "transformers")
_OF_C = "layer.txt"
"""The file that a program in C has written: tests/docs runs it."""


def _check(name: str) -> int:
    """Run the blocks of Python of a page that need PyTorch, and count them."""
    torch._dynamo.reset()
    page, count, last = read(name), 0, None
    known: dict[str, Any] = {"np": np, "shlo_disc": shlo_disc, "rng": np.random.default_rng(0), "__name__": "page"}
    before = shlo_disc.torch.graph_count()
    for block in page.blocks:
        if block.language == "text" and last is not None:
            assert matches(last, block.text), f"{name}:{block.line}: {last}"
        is_of_torch = block.language == "python" and block.marks.get("needs") in MODULES
        last = None
        if not is_of_torch or not block.runs or _OF_C in block.text:
            continue
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile("\n" * block.line + block.text, name, "exec"), known)  # noqa: S102
        count, last = count + 1, printed.getvalue().replace(f"graphs: {before + 2}", "graphs: 2")
    return count


@pytest.mark.parametrize("name", PAGES)
def test_page(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert _check(name)


@pytest.mark.slow
def test_page_of_pytorch(tmp_path: Path) -> None:
    page = read("docs/torch.md")
    assert page.needs <= {*MODULES}
    page.check(tmp_path)


def test_pages_are_found() -> None:
    assert {"README.md", "docs/guides/deployment.md", "docs/guides/serving.md", "docs/guides/training.md"} <= {*PAGES}
