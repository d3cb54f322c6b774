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

from shlo_disc.errors import DiscError

_TOOLS = ("objdump", "llvm-objdump")
_FUNCTION = re.compile(r"^([0-9a-f]+) <(.+)>:$")
_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s*(.*)$")
_ADDRESS = re.compile(r"\b(?:0x)?[0-9a-f]+ (?=<)")
_SECONDS = 120


def disassembled(data: bytes) -> dict[str, str]:
    """The instructions of each function by its name, at offsets from its start.

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
    found: dict[str, list[str]] = {}
    start, lines = 0, list[str]()
    for line in text.splitlines():
        heading = _FUNCTION.match(line)
        if heading is not None:
            start, lines = int(heading[1], 16), found.setdefault(heading[2], [f"{heading[2]}:"])
        elif (instruction := _INSTRUCTION.match(line)) is not None:
            lines.append(f"{int(instruction[1], 16) - start:6x}:  {_ADDRESS.sub('', instruction[2]).expandtabs(8)}")
    return {name: "\n".join(lines) for name, lines in found.items()}


__all__ = ["disassembled"]
