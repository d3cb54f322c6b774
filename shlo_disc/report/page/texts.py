# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The texts of a compilation, and where in them a function is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from shlo_disc.driver.compilation import Compilation
from shlo_disc.driver.stage_text import stage_text
from shlo_disc.driver.stages import STAGES
from shlo_disc.report.function_texts import functions_of
from shlo_disc.report.page.document import Diff, Excerpt
from shlo_disc.report.page.line_diff import changes

PROGRAM = "disc_run"
"""The function that is the host program."""


@dataclass
class Texts:
    """Each stage's text and each view's, such as "asm", in the order of the pipeline."""

    lines: dict[str, list[str]] = field(default_factory=dict)

    @staticmethod
    def of(c: Compilation) -> Texts:
        """All of a finished compilation."""
        names = [*STAGES, *c.backend.views]
        return Texts({name: stage_text(c, name).split("\n") for name in names})

    def diffs(self) -> Iterator[Diff]:
        """The diff of each stage with the one before."""
        for left, right in zip(STAGES, STAGES[1:], strict=False):
            yield Diff(left, right, tuple(changes(self.lines[left], self.lines[right])))

    @cached_property
    def machine_code(self) -> str:
        """The name of the text of machine code."""
        return "ptx" if "ptx" in self.lines else "asm"

    def functions(self, text: str) -> dict[str, Excerpt]:
        """The excerpt of each function of a text."""
        if text not in self._functions:
            found = functions_of(self.lines[text], text)
            self._functions[text] = {name: Excerpt(text, first, end) for name, first, end in found}
        return self._functions[text]

    def kernel(self, names: Iterable[str]) -> tuple[Excerpt, ...]:
        """The MLIR of kernels, as the stage that makes them left them; of those that programs share, LLVM IR."""
        texts = [self.functions(text) for text in ("kernels", "llvm") if text in self.lines]
        found = (next((text[name] for text in texts if name in text), None) for name in names)
        return tuple(excerpt for excerpt in found if excerpt is not None)

    def code(self, names: Iterable[str]) -> tuple[Excerpt, ...]:
        """The machine code of kernels. A micro-kernel is several functions, `gemm_f32_1` and so on.

        A kernel of one work item may have become a part of the program, whose function it then is.
        """
        functions = self.functions(self.machine_code)
        found = dict.fromkeys(own for n in names for own in self._variants.get(n, [PROGRAM]))
        return tuple(functions[own] for own in found if own in functions)

    @cached_property
    def _variants(self) -> dict[str, list[str]]:
        """The functions of the machine code, by the name of their kernel."""
        found: dict[str, list[str]] = {}
        for name in self.functions(self.machine_code):
            for base in {name, re.sub(r"(_\d+|_entry)$", "", name)}:
                found.setdefault(base, []).append(name)
        return found

    @cached_property
    def _functions(self) -> dict[str, dict[str, Excerpt]]:
        return {}


__all__ = ["Texts"]
