# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changes of a kernel's text that tests expect to be found."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping


def without(pattern: str, number: int, counts: Mapping[str, int] = {}) -> Callable[[str], str]:
    """A function that leaves out line `number` of those that hold a pattern, as many as `counts` has, if it has it."""

    def change(text: str) -> str:
        lines = text.splitlines(keepends=True)
        at = [i for i, line in enumerate(lines) if re.search(pattern, line)]
        assert len(at) == counts.get(pattern, len(at))
        del lines[at[number]]
        return "".join(lines)

    return change
