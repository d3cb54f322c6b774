# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The machine code of GPU kernels, read where there is no GPU: assembled by ptxas, disassembled by nvdisasm.

`python -m tests.gpu.sass NAME [--text] [--loops]` reports the kernels of a case of `tests/ir/gpu_cases.py`, with their
code or the instructions of their innermost loops if asked; `python -m tests.gpu.sass --update [NAME ...]` writes the
table `sass.txt` again, all of it or the rows of some cases.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, get_type_hints

import jax

import shlo_disc
from shlo_disc.errors import DiscError
from shlo_disc.lowering.codegen.cuda_toolkit import find_ptxas
from tests.ir.gpu_cases import CASES, TARGETS

TABLE = Path(__file__).with_name("sass.txt")

REGISTER_SLACK = 8
"""Registers that a kernel may take beyond the table's: other versions of ptxas allocate a little differently,
and a thread is given registers by eights."""

PACKAGE = "nvidia-cuda-nvdisasm"


def find_nvdisasm() -> Path:
    """NVIDIA's disassembler: of the toolkit that ptxas is part of, else on the PATH, else of its Python package.

    Raises DiscError naming the package to install when there is none.
    """
    packages = (Path(sysconfig.get_path(kind), "nvidia") for kind in ("purelib", "platlib"))
    on_path = shutil.which("nvdisasm")
    candidates = [
        find_ptxas().resolve().with_name("nvdisasm"),
        *([Path(on_path)] if on_path else []),
        *(path for folder in packages for path in sorted(folder.glob("*/bin/nvdisasm"), reverse=True)),
    ]
    found = next((path for path in candidates if path.is_file()), None)
    if found is None:
        raise DiscError(f"nvdisasm is not found: `pip install {PACKAGE}`")
    return found


# ---- a kernel -------------------------------------------------------------------------------------------------------


class Usage(NamedTuple):
    """The resources of a kernel by ptxas: registers of a thread, bytes of shared memory of a block, bytes spilled."""

    registers: int
    shared: int
    spills: int


@dataclass(frozen=True)
class Machine:
    """The code of a kernel. `opcodes`: how often each instruction stands there, subroutines included, with its
    modifiers. `calls`: how often each subroutine is called."""

    opcodes: Counter[str]
    calls: Counter[str]
    text: str

    def count(self, *prefixes: str) -> int:
        """Instructions whose opcode is, or begins with the whole words of, one of the prefixes."""
        return sum(n for code, n in self.opcodes.items() if any(f"{code}.".startswith(f"{p}.") for p in prefixes))

    def widths(self, opcode: str) -> tuple[int, ...]:
        """The widths in bits of the accesses of an opcode such as LDG, each once."""
        return tuple(sorted({width_of(code) for code in self.opcodes if code.split(".")[0] == opcode}))

    @property
    def loops(self) -> list[Counter[str]]:
        """The instructions of each innermost loop, in the order of the code: from a label to a branch back to it. The
        branch to itself that ends a kernel is none."""
        lines = [line for line in self.text.splitlines() if _LABEL.match(line) or _INSTRUCTION.match(line)]
        labels = {found[1]: number for number, line in enumerate(lines) if (found := _LABEL.match(line))}
        branches = {n: found[1] for n, line in enumerate(lines) if (found := _BRANCH.search(line))}
        backward = [(labels[label], end) for end, label in branches.items() if labels.get(label, end) < end]
        inner = [(b, e) for b, e in backward if not any(b <= x and y < e for x, y in backward)]
        bodies = [
            [found[1] for line in lines[b : e + 1] if (found := _INSTRUCTION.match(line))] for b, e in sorted(inner)
        ]
        return [Counter(body) for body in bodies if len(body) > 1]

    @property
    def divisions(self) -> int:
        """Divisions of 64 bits, each a call of a long sequence."""
        return sum(n for name, n in self.calls.items() if re.search(r"_(div|rem)_[us]64", name))


def width_of(opcode: str) -> int:
    """The bits that one thread moves by an instruction such as LDG.E.128."""
    for modifier in opcode.split(".")[1:]:
        if match := re.fullmatch(r"[US]?(8|16|64|128|256)", modifier):
            return int(match[1])
    return 32


class Kernel(NamedTuple):
    """A kernel of a case on one architecture."""

    case: str
    name: str
    architecture: str
    usage: Usage
    machine: Machine


# ---- the tools' text ------------------------------------------------------------------------------------------------

_USAGE = re.compile(
    r"Compiling entry function '(?P<name>[^']+)'.*?"
    r"(?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads.*?"
    r"Used (?P<registers>\d+) registers(?P<rest>[^\n]*)",
    re.DOTALL,
)
_SECTION = re.compile(r"^\s*\.section\s+\.text\.([\w$.]+),", re.MULTILINE)
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.a-z]*)([^;]*);", re.MULTILINE)
_LABEL = re.compile(r"^(\.L_x_\d+):")
_BRANCH = re.compile(r"\bBRA\b[^;]*`\((\.L_x_\d+)\)")
_CALLED = re.compile(r"`\(([^)]+)\)")


def parse_usage(text: str) -> dict[str, Usage]:
    """By kernel, from the output of `ptxas -v`."""
    return {
        found["name"]: Usage(
            int(found["registers"]),
            sum(map(int, re.findall(r"(\d+) bytes smem", found["rest"]))),
            int(found["stores"]) + int(found["loads"]),
        )
        for found in _USAGE.finditer(text)
    }


def parse_machine(text: str) -> dict[str, Machine]:
    """By kernel, from the output of `nvdisasm -c`."""
    _, *parts = _SECTION.split(text)
    return {name: _machine(body) for name, body in zip(parts[::2], parts[1::2], strict=True)}


def _machine(text: str) -> Machine:
    found = list(_INSTRUCTION.finditer(text))
    targets = [_CALLED.search(one[2]) for one in found if one[1].startswith("CALL")]
    return Machine(Counter(one[1] for one in found), Counter(target[1] for target in targets if target), text)


# ---- running the tools ----------------------------------------------------------------------------------------------


def read(ptx: str) -> Iterator[tuple[str, str, Usage, Machine]]:
    """Name, architecture and code of each kernel of a module, for the architecture that the module is for.

    Raises DiscError where a tool is missing, CalledProcessError when one refuses.
    """
    architecture = re.search(r"^\.target (\w+)", ptx, re.MULTILINE)[1]
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder, "kernels.ptx"), Path(folder, "kernels.cubin")
        source.write_text(ptx)
        usage = parse_usage(_output([find_ptxas(), "-v", f"-arch={architecture}", source, "-o", cubin]))
        machines = parse_machine(_output([find_nvdisasm(), "-c", cubin]))
    assert usage.keys() == machines.keys(), "ptxas and nvdisasm tell of other kernels"
    for name in sorted(usage):
        yield name, architecture, usage[name], machines[name]


def _output(command: list[str | Path]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def kernels_of(case: str) -> list[Kernel]:
    """Those of a case on every architecture."""
    with jax.enable_x64(True):
        texts = [
            shlo_disc.compile(CASES[case].function, target=target, args=CASES[case].arguments).as_text("ptx")
            for target in TARGETS
        ]
    return sorted(Kernel(case, *found) for text in texts for found in read(text))


# ---- the table ------------------------------------------------------------------------------------------------------

USES = ("HGMMA", "IGMMA", "HMMA", "IMMA", "UTMALDG", "UTMASTG", "LDGSTS", "LDSM")
"""Instructions that a kernel is written for, and that have to be there: products and asynchronous copies."""


class Row(NamedTuple):
    """The requirements on a kernel.

    registers: at most so many, and REGISTER_SLACK more. loads, stores: the widths of accesses of global memory,
    exactly. local, spills: at most so many instructions on local memory, and bytes spilled. divisions: at most so many
    of 64 bits. waits: at most so many waits for groups of products. uses: instructions that are there.
    """

    case: str
    kernel: str
    architecture: str
    registers: int
    loads: str
    stores: str
    local: int
    spills: int
    divisions: int
    waits: int
    uses: str

    @property
    def key(self) -> tuple[str, str, str]:
        """The fields that identify the kernel."""
        return self[:3]


def row_of(kernel: Kernel) -> Row:
    """The row that holds for a kernel."""
    machine, usage = kernel.machine, kernel.usage
    return Row(
        kernel.case,
        kernel.name,
        kernel.architecture,
        usage.registers,
        _joined(machine.widths("LDG")),
        _joined(machine.widths("STG")),
        machine.count("LDL", "STL"),
        usage.spills,
        machine.divisions,
        machine.count("WARPGROUP.DEPBAR"),
        _joined(name for name in USES if machine.count(name)),
    )


def _joined(parts: Iterable[object]) -> str:
    return "+".join(map(str, parts)) or "-"


def differences(expected: Row, found: Row) -> list[str]:
    """The differences of a kernel from the table."""
    limits = {"registers": REGISTER_SLACK, "local": 0, "spills": 0, "divisions": 0, "waits": 0}
    wrong = [
        f"{name}: {getattr(found, name)}, the table has {getattr(expected, name)}"
        for name, slack in limits.items()
        if getattr(found, name) > getattr(expected, name) + slack
    ]
    for name in ("loads", "stores"):
        if getattr(found, name) != getattr(expected, name):
            wrong.append(f"{name}: {getattr(found, name)}, the table has {getattr(expected, name)}")
    missing = {*expected.uses.split("+")} - {*found.uses.split("+"), "-"}
    return wrong + [f"no {name}" for name in sorted(missing)]


def read_table(text: str) -> list[Row]:
    """The rows of a table."""
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    assert tuple(lines[0]) == Row._fields, "the table's head is that of another version"
    types = get_type_hints(Row).values()
    return [Row(*(int(c) if t is int else c for c, t in zip(line, types, strict=True))) for line in lines[1:]]


def write_table(rows: Iterable[Row]) -> str:
    """The text of a table."""
    lines = [Row._fields, *(tuple(map(str, row)) for row in sorted(rows))]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    head = "# What tests/gpu/test_sass.py asserts of each kernel; written by: python -m tests.gpu.sass --update\n"
    aligned = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    return head + "\n".join(line.rstrip() for line in aligned) + "\n"


# ---- the command ----------------------------------------------------------------------------------------------------


def report(kernel: Kernel) -> str:
    """A kernel for people."""
    usage, machine = kernel.usage, kernel.machine
    counted = [
        "LDG", "STG", "LDS", "STS", "LDL", "STL", "ATOM", "ATOMG", "RED", "REDG", "BAR", "SHFL", "WARPSYNC", "MUFU",
        *USES, "WARPGROUP.ARRIVE", "WARPGROUP.DEPBAR", "SYNCS",
    ]  # fmt: skip
    memory = {name: n for name in counted if (n := machine.count(name))}
    wide = ", ".join(f"{op} {_joined(machine.widths(op))} bits" for op in ("LDG", "STG", "LDS", "STS") if op in memory)
    lines = [
        f"{kernel.name} ({kernel.architecture})",
        f"  {usage.registers} registers, {usage.shared} bytes of shared memory, {usage.spills} bytes spilled",
        f"  {machine.opcodes.total()} instructions: " + ", ".join(f"{n} {name}" for name, n in memory.items()),
        f"  {wide or 'no accesses'}; {machine.divisions} divisions of 64 bits",
    ]
    lines += [f"  calls {name}: {n}" for name, n in sorted(machine.calls.items())]
    return "\n".join(lines)


def _loop_text(loop: Counter[str]) -> str:
    memory = [f"{n} {code}" for code, n in sorted(loop.items()) if code.split(".")[0] in ("LDG", "STG", "LDS", "STS")]
    return f"  a loop of {loop.total()} instructions: {', '.join(memory) or 'no accesses'}"


def update(names: list[str]) -> None:
    """Write the table's rows of some cases again, and leave out those of cases that are gone."""
    kept = [row for row in _stored() if row.case in CASES and row.case not in names]
    TABLE.write_text(write_table([*kept, *(row_of(kernel) for name in names for kernel in kernels_of(name))]))


def _stored() -> list[Row]:
    return read_table(TABLE.read_text()) if TABLE.exists() else []


def main(arguments: list[str]) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.sass", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(CASES)} (default: all)")
    parser.add_argument("--update", action="store_true", help="write the table again instead of a report")
    parser.add_argument("--loops", action="store_true", help="count the instructions of the innermost loops, too")
    parser.add_argument("--text", action="store_true", help="print the code of the kernels, too")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in CASES]
    if unknown:
        parser.error(f"no case {unknown[0]!r}; cases are {', '.join(CASES)}")
    names = options.names or list(CASES)
    if options.update:
        update(names)
        return 0
    for kernel in (kernel for name in names for kernel in kernels_of(name)):
        parts = [report(kernel), *(map(_loop_text, kernel.machine.loops) if options.loops else ())]
        print("\n".join([*parts, kernel.machine.text] if options.text else parts))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
