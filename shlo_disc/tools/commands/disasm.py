# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc disasm FILE`: machine code or PTX, kernel by kernel, beside its IR and your source lines.

    disasm model.jax --kernel 'gemm_*'
    disasm model.jax --stage optimized-llvm,asm
    disasm model.disc --cpu x86-64-v3

Stages are kernels (MLIR) and, for CPUs, llvm, optimized-llvm and asm; for GPUs llvm, ptx and host-llvm. A program is
printed at kernels and asm, or ptx. For an artifact only asm, printed by objdump, and ptx are available; of several
levels of processors, --cpu names the one to print, by default the best that runs here.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from shlo_disc.report.listing import artifact_listing
from shlo_disc.runtime import Artifact
from shlo_disc.tools.commands.common import (
    add_command,
    add_program_or_artifact,
    at_level,
    built,
    opened,
    show,
)


def add_disasm(commands: Any) -> None:
    """Add the command."""
    command = add_command(commands, "disasm", _disasm, "print machine code or PTX, kernel by kernel", __doc__)
    add_program_or_artifact(command)
    command.add_argument("--kernel", metavar="NAME", help="only this kernel, or those that match a pattern like gemm_*")
    command.add_argument("--stage", metavar="NAMES", type=_names, default=(), help="stages, separated by commas")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _disasm(arguments: argparse.Namespace) -> None:
    found = opened(arguments.file)
    if isinstance(found, Artifact):
        listing = artifact_listing(at_level(found, arguments), arguments.stage)
    else:
        listing = built(found, arguments).listing(*arguments.stage, file=str(found) if isinstance(found, Path) else "")
    if arguments.kernel:
        listing = listing.only(arguments.kernel)
    show(arguments, listing.to_json(), str(listing))
