# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The machine code of an object file as text, by the disassembler of the system: objdump, binutils' or LLVM's.

Neither llvmlite's nor the MLIR bindings' library offers LLVM's disassembler, and objdump knows every instruction that
kernels have (AMX, AVX-512's f16 and bf16), which Python's packages do not.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

from shlo_disc.errors import DiscError

_TOOLS = ("objdump", "llvm-objdump")
_HEADING = re.compile(r"^[0-9a-f]+ <(.+)>:$")
_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+(.*)$")
_RELOCATION = re.compile(r"^R_\w+\s+(\S+?)(?:-0x4)?$")
_ADDRESS = re.compile(r"\b(?:0x)?[0-9a-f]+ <([^+>]+)(?:\+0x([0-9a-f]+))?>")
_COMMENT = re.compile(r"\s+#.*")
_RELATIVE = re.compile(r"-?0x[0-9a-f]+\(%rip\)")
"""An address relative to rip, for which a comment has a name."""

_SECONDS = 120


def disassembled(data: bytes) -> dict[str, str]:
    """The instructions of each function by its name; `.L1c0` is the label of its byte 0x1c0.

    Raises DiscError where there is no objdump, or it cannot read the object.
    """
    tool = next((found for name in _TOOLS if (found := shutil.which(name))), None)
    if tool is None:
        raise DiscError("machine code is printed by objdump, which is not on the PATH: install binutils, or LLVM")
    with tempfile.NamedTemporaryFile(suffix=".o") as file:
        file.write(data)
        file.flush()
        command = [tool, "-d", "-r", "--no-show-raw-insn", file.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)  # noqa: S603
    if done.returncode:
        raise DiscError(f"{tool} cannot read the object code: {done.stderr.strip()}")
    return _functions(done.stdout)


def _functions(text: str) -> dict[str, str]:
    found: dict[str, _Function] = {}
    for line in text.splitlines():
        heading, instruction = _HEADING.match(line), _INSTRUCTION.match(line)
        if heading is not None:
            function = found.setdefault(heading[1], _Function(heading[1]))
        elif instruction is not None:
            function.add(int(instruction[1], 16), instruction[2])
    return {name: function.text() for name, function in found.items()}


class _Function:
    """The lines of one function."""

    def __init__(self, name: str):
        self._name = name
        self._lines: list[tuple[int, str]] = []
        self._targets: set[int] = set()

    def add(self, address: int, text: str) -> None:
        """An instruction, or what the linker writes into the one before."""
        relocation = _RELOCATION.match(text)
        if relocation is None:
            self._lines.append((address, _RELATIVE.sub("(%rip)", " ".join(text.split()))))
            return
        before, instruction = self._lines[-1]
        instruction = _COMMENT.sub("", instruction)
        called = _ADDRESS.sub(relocation[1], instruction)
        self._lines[-1] = before, called if called != instruction else f"{instruction} # {relocation[1]}"

    def text(self) -> str:
        """The function, with labels where its jumps go."""
        start = self._lines[0][0] if self._lines else 0
        lines = [(address - start, _ADDRESS.sub(self._target, text)) for address, text in self._lines]
        return "\n".join([f"{self._name}:", *self._labelled(lines)])

    def _target(self, found: re.Match[str]) -> str:
        offset = int(found[2] or "0", 16)
        if found[1] != self._name:
            return found[1] + (f"+{offset:#x}" if offset else "")
        self._targets.add(offset)
        return f".L{offset:x}"

    def _labelled(self, lines: list[tuple[int, str]]) -> Iterator[str]:
        for offset, text in lines:
            if offset in self._targets:
                yield f".L{offset:x}:"
            yield f"        {text}"


__all__ = ["disassembled"]
