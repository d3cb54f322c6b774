# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Line coverage of the matchers: by `sys.monitoring` where it exists (3.12), else by a trace function."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import shlo_disc

ROOT = Path(shlo_disc.__file__).parent / "transforms"
_SIMPLIFY = ("scanned", "accumulated", "control_flow", "data_movement")
FILES = (
    *sorted((ROOT / "fusion").glob("*.py")), *sorted((ROOT / "memory").glob("*.py")),
    *(ROOT / "simplify" / f"{name}.py" for name in _SIMPLIFY), ROOT / "control_flow" / "counted_loops.py",
)  # fmt: skip
"""The files of the matchers."""


class LineCoverage:
    """Counts from the moment it is made, for the whole process."""

    def __init__(self) -> None:
        self._names = {str(p) for p in FILES}
        self._new: dict[str, set[int]] = {}
        self._seen: set[tuple[str, int]] = set()
        if hasattr(sys, "monitoring"):
            self._monitor()
        else:
            sys.settrace(self._call)

    def news(self) -> dict[str, set[int]]:
        """The lines that ran for the first time since this was asked, by file."""
        found, self._new = self._new, {}
        return found

    def _note(self, file: str, line: int) -> None:
        if (file, line) not in self._seen:
            self._seen.add((file, line))
            self._new.setdefault(file, set()).add(line)

    def _call(self, frame: types.FrameType, event: str, argument: Any) -> Any:
        return self._line if frame.f_code.co_filename in self._names else None

    def _line(self, frame: types.FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self._note(frame.f_code.co_filename, frame.f_lineno)
        return self._line

    def _monitor(self) -> None:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined]
        tool = monitoring.COVERAGE_ID
        monitoring.use_tool_id(tool, "shlo_disc fuzzer")

        def line(code: types.CodeType, number: int) -> Any:
            if code.co_filename in self._names:
                self._note(code.co_filename, number)
            return monitoring.DISABLE

        monitoring.register_callback(tool, monitoring.events.LINE, line)
        monitoring.set_events(tool, monitoring.events.LINE)


def code_lines(path: Path) -> set[int]:
    """The lines of functions that may run: module level runs at import, before anybody counts."""
    module = compile(path.read_text(), str(path), "exec")
    lines: set[int] = set()
    for function in _functions(module):
        lines |= {line for _, _, line in function.co_lines() if line is not None and line != function.co_firstlineno}
    return lines


def _functions(code: types.CodeType, in_function: bool = False) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            is_class = "__module__" in constant.co_names and "__qualname__" in constant.co_names
            if not is_class:
                yield constant
            yield from _functions(constant)


def report(seen: dict[str, set[int]]) -> str:
    """Per file the share of lines that ran, and those that did not."""
    rows = []
    for path in FILES:
        lines = code_lines(path)
        missing = sorted(lines - seen.get(str(path), set()))
        if lines:
            share = 100 * (1 - len(missing) / len(lines))
            rows.append(f"  {path.relative_to(ROOT)}: {share:.0f}% of {len(lines)} lines; not {_ranges(missing)}")
    return "\n".join(rows)


def _ranges(numbers: list[int]) -> str:
    found: list[list[int]] = []
    for number in numbers:
        if found and number <= found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found) or "none"
