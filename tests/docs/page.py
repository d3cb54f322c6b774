# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pages of the documentation as programs: their blocks of Python and shell run in order, and print what the page says.

A page becomes a script of its name, in which every block of Python stands on the page's own lines, so that tracebacks
and the compiler's source lines name those. A block of `sh` is run by bash in the same place. A block of `text` is what
the block before it prints: `...` stands for anything, and spaces in a row are one. Comments right above a block say:

    <!-- left out: REASON -->   it does not run
    <!-- needs: MODULE -->      it runs where that module is installed
    <!-- file: NAME -->         it is written to that file before anything runs

and anywhere in a page `<!-- environment: NAME=VALUE ... -->` holds for all of its blocks. The blocks run with whatever
shlo_disc this Python has installed. `python tests/docs/page.py docs/install.md` checks a page, and needs nothing else.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = frozenset(
    {"python", "sh", "text", "c", "cpp", "cmake", "json", "mlir", "yaml", "mermaid", "{toctree}", "{eval-rst}"}
)
ERRORS = ROOT / "docs" / "errors"  # whose examples raise what the pages say: tests/run/test_error_codes.py
_MARK = re.compile(r"<!-- (left out|needs|file): (.+) -->")
_ENVIRONMENT = re.compile(r"^<!-- environment: (.+) -->$", re.MULTILINE)
_BEGIN = "\x1e"
"""The mark that the script prints before each block, with the line of the block."""


@dataclass(frozen=True)
class Block:
    """The text between two fences; `line` is that of the first fence, from 1, and `marks` what is said above it."""

    line: int
    language: str
    lines: tuple[str, ...]
    marks: dict[str, str]

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    @property
    def can_run(self) -> bool:
        """Tells whether it is a program: one that is neither a file nor left out."""
        return self.language in ("python", "sh") and not self.marks.keys() & {"left out", "file"}

    @property
    def runs(self) -> bool:
        """Tells whether it is a program that runs here."""
        return self.can_run and ("needs" not in self.marks or importlib.util.find_spec(self.marks["needs"]) is not None)


@dataclass(frozen=True)
class Page:
    """A page's text and its blocks."""

    name: str
    text: str

    @functools.cached_property
    def blocks(self) -> tuple[Block, ...]:
        """In their order. Raises ValueError for a block that is indented, not closed, or of an unknown language."""
        return tuple(self._blocks())

    def _blocks(self) -> Iterator[Block]:
        marks: dict[str, str] = {}
        opened: tuple[int, str] | None = None
        inside: list[str] = []
        for number, line in enumerate(self.text.splitlines(), start=1):
            if opened is not None and line != "```":
                inside.append(line)
            elif opened is not None:
                yield Block(*opened, tuple(inside), marks)
                opened, marks, inside = None, {}, []
            elif line.lstrip().startswith("```"):
                if line[3:] not in LANGUAGES:
                    raise ValueError(f"{self.name}:{number}: a block of {line!r}; there are {sorted(LANGUAGES)}")
                opened = (number, line[3:])
            elif mark := _MARK.fullmatch(line):
                marks[mark[1]] = mark[2]
            elif line:
                marks = {}
        if opened is not None:
            raise ValueError(f"{self.name}:{opened[0]}: a block that does not end")

    @property
    def environment(self) -> dict[str, str]:
        """The variables that the page sets for its blocks."""
        return dict(pair.split("=", 1) for found in _ENVIRONMENT.findall(self.text) for pair in found.split())

    @property
    def left_out(self) -> list[str]:
        """The reasons for which blocks do not run, one for each."""
        return [block.marks["left out"] for block in self.blocks if "left out" in block.marks]

    @property
    def needs(self) -> set[str]:
        """The modules without which some of its blocks do not run."""
        return {block.marks["needs"] for block in self.blocks if block.can_run and "needs" in block.marks}

    @property
    def printed(self) -> list[tuple[Block, Block]]:
        """Each program that runs here and whose output is shown, and the block that shows it."""
        found = []
        last: Block | None = None
        for block in self.blocks:
            if block.language == "text" and last is not None and last.runs:
                found.append((last, block))
            last = block
        return found

    def script(self) -> str:
        """The page as a Python program, every block of Python on its own lines."""
        lines = [""] * (len(self.text.splitlines()) + 1)
        for block in self.blocks:
            if not block.runs:
                continue
            lines[block.line - 1] = f"print('\\x1e{block.line}', flush=True)"
            if block.language == "python":
                lines[block.line : block.line + len(block.lines)] = block.lines
            else:
                lines[block.line] = (
                    f"__import__('subprocess').run(['bash', '-euo', 'pipefail', '-c', {block.text!r}], check=True)"
                )
        return "\n".join(lines)

    def run(self, folder: Path) -> dict[int, str]:
        """Run the blocks in a folder; what each printed, by its line. Raises AssertionError when one fails."""
        for block in self.blocks:
            if "file" in block.marks:
                (folder / block.marks["file"]).write_text(block.text)
        script = folder / Path(self.name).name
        script.write_text(self.script())
        command, environment = [sys.executable, script.name], self._whole_environment()
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"{self.name} fails:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return dict(_parts(done.stdout))

    def check(self, folder: Path) -> None:
        """Run the blocks. Raises AssertionError when one fails, or prints something else than the page shows."""
        printed = self.run(folder)
        for program, shown in self.printed:
            assert matches(printed[program.line], shown.text), (
                f"{self.name}:{program.line} prints\n{printed[program.line]}\nand line {shown.line} shows\n{shown.text}"
            )

    def _whole_environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("SHLO_DISC_") and name not in ("COLUMNS", "LINES")  # which pytest -n sets
        }
        return {**kept, "JAX_PLATFORMS": "cpu", "PATH": path, **self.environment}


def _parts(output: str) -> Iterator[tuple[int, str]]:
    for part in output.split(_BEGIN)[1:]:
        line, _, text = part.partition("\n")
        yield int(line), text


def matches(printed: str, shown: str) -> bool:
    """Tells whether a program has printed what a page shows."""
    pattern = ".*?".join(re.escape(part) for part in _plain(shown).split("..."))
    return re.fullmatch(pattern, _plain(printed), re.DOTALL) is not None


def _plain(text: str) -> str:
    return "\n".join(re.sub(r"[ \t]+", " ", line).strip() for line in text.strip().splitlines())


def read(name: str) -> Page:
    """A page of this repository, by its path."""
    return Page(name, (ROOT / name).read_text())


def names() -> list[str]:
    """The pages whose blocks are programs or might be, README.md first."""
    pages = [path for path in sorted((ROOT / "docs").rglob("*.md")) if path.parent != ERRORS]
    return ["README.md", *(str(path.relative_to(ROOT)) for path in pages)]


def programs() -> list[str]:
    """The pages that have a block to run."""
    return [name for name in names() if any(block.can_run for block in read(name).blocks)]


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as temporary:
            read(argument).check(Path(temporary))
