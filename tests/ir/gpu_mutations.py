# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changes of a text, of kernels or of fusions, that tests expect to be found."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pytest

from shlo_disc.driver.compiler import Compilation
from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.verify.fusions import verify_fusions


def without(pattern: str, number: int, counts: Mapping[str, int] = {}) -> Callable[[str], str]:
    """A function that leaves out line `number` of those that hold a pattern, as many as `counts` has, if it has it."""

    def change(text: str) -> str:
        lines = text.splitlines(keepends=True)
        at = [i for i, line in enumerate(lines) if re.search(pattern, line)]
        assert len(at) == counts.get(pattern, len(at))
        del lines[at[number]]
        return "".join(lines)

    return change


def expect_refused(compilation: Compilation, pattern: str, replacement: str, error: str) -> None:
    """Expect the verifier to accept the fusions of a program, and to reject them after a change of their text."""
    with compilation.context, ir.Location.unknown():
        text = str(compilation.snapshots["fuse"])
        verify_fusions(ir.Module.parse(text))
        wrong = re.sub(pattern, replacement, text)
        assert wrong != text
        with pytest.raises(CompilerError, match=error):
            verify_fusions(ir.Module.parse(wrong))
