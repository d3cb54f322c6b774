# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The instructions that a warp takes for one round of a loop of machine code, where it takes the shortest way."""

from __future__ import annotations

import re

_LINE = re.compile(r"^\s*(?:(?P<label>\.L_x_\d+):|/\*[0-9a-f]{4,}\*/\s+(?P<text>[^;]*);)", re.MULTILINE)
_TARGET = re.compile(r"^(?P<guard>@!?U?P\w+\s+)?BRA.*`\((?P<label>\.L_x_\d+)\)")


def rounds(text: str, opcode: str) -> list[int]:
    """For each innermost loop with some opcode, in the order of the code: the instructions of its shortest round.

    text: a kernel's, as `nvdisasm -c` writes it. Inner loops count as one round of theirs, or none.
    """
    lines, labels = list[str](), dict[str, int]()
    for found in _LINE.finditer(text):
        if found["label"]:
            labels[found["label"]] = len(lines)
        else:
            lines.append(found["text"])
    targets = {i: labels[m["label"]] for i, line in enumerate(lines) if (m := _TARGET.match(line))}
    loops = [(t, i) for i, t in targets.items() if t <= i and any(opcode in line for line in lines[t:i])]
    inner = [a for a in loops if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in loops)]
    found = (_shortest(lines, targets, begin, end) for begin, end in sorted(inner))
    return [count for count in found if count is not None]


def _shortest(lines: list[str], targets: dict[int, int], begin: int, end: int) -> int | None:
    """The instructions from `begin` to the branch back at `end`, by branches forward; None where no way leads there, as
    to that of a wait behind the code, which goes back into it."""
    steps = {begin: 1}
    for i in range(begin, end):
        target = targets.get(i, -1)
        goes_on = target <= i or lines[i].startswith("@")
        for following in ([target] if target > i else []) + ([i + 1] if goes_on else []):
            if i in steps:
                steps[following] = min(steps.get(following, steps[i] + 1), steps[i] + 1)
    return steps.get(end)
