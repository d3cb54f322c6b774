# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes type stubs for the MLIR bindings, whose wheel has none, into stubs/.

The compiled modules are described by nanobind's stub generator. The Python modules on top of them re-export those
names; the dialect builders, thousands of generated functions, are left untyped.
Run: `python scripts/make_stubs.py`.
"""

from __future__ import annotations

import pkgutil
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

PACKAGE = "torch_mlir"
STUBS = Path(__file__).resolve().parent.parent / "stubs"
UNTYPED = "from typing import Any\n\ndef __getattr__(name: str) -> Any: ...\n"


def main() -> int:
    """Writes the stubs unless they are those of the installed version; returns the exit status."""
    stamp = STUBS / f"{PACKAGE}-{version('torch-mlir')}"
    if stamp.exists():
        return 0
    shutil.rmtree(STUBS, ignore_errors=True)
    libraries = STUBS / PACKAGE / "_mlir_libs"
    libraries.mkdir(parents=True)
    describe_extension("_mlir", libraries)
    describe_extension("_stablehlo", libraries)
    complete_ir(libraries / "_mlir" / "ir.pyi")
    write_faces(STUBS / PACKAGE)
    stamp.touch()
    return 0


def describe_extension(name: str, folder: Path) -> None:
    """Runs nanobind's generator on one compiled module. Raises CalledProcessError with its output when it fails."""
    module = f"{PACKAGE}._mlir_libs.{name}"
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", module, "-r", "-O", str(folder)]
    subprocess.run(command, check=True)  # noqa: S603 - a fixed command of this interpreter


def complete_ir(path: Path) -> None:
    """Repairs what the generator leaves out of ir.pyi.

    It uses a type variable without declaring it. And accessors are declared to return the base classes Attribute and
    OpView where the bindings return the registered subclass, so reading any property of those two is allowed.
    """
    text = path.read_text()
    first = re.search(r"^class ", text, re.MULTILINE)
    if first is None:
        raise ValueError(f"no class in {path}: the stub generator's output has changed")
    variable = 'import typing_extensions\n_T = typing_extensions.TypeVar("_T", default=Any, covariant=True)\n\n'
    text = text[: first.start()] + "from typing import Any\n" + variable + text[first.start() :]
    dynamic = r"\1\n    def __getattr__(self, name: str) -> Any: ...\n"
    path.write_text(re.sub(r"^(class (?:Attribute|OpView)\b.*:)$", dynamic, text, flags=re.MULTILINE))


def write_faces(package: Path) -> None:
    """Stubs of the Python modules: ir, passmanager and rewrite re-export compiled names, dialects are untyped."""
    (package / "__init__.pyi").touch()
    libraries = package / "_mlir_libs"
    (libraries / "__init__.pyi").write_text(UNTYPED)
    for name in ("ir", "passmanager", "rewrite"):
        (package / f"{name}.pyi").write_text(f"{UNTYPED}\nfrom ._mlir_libs._mlir.{name} import *\n")
    dialects = package / "dialects"
    dialects.mkdir()
    (dialects / "__init__.pyi").touch()
    for name in dialect_names():
        (dialects / f"{name}.pyi").write_text(UNTYPED)


def dialect_names() -> list[str]:
    """The public modules of the installed bindings' `dialects` package."""
    import torch_mlir.dialects

    return [module.name for module in pkgutil.iter_modules(torch_mlir.dialects.__path__) if module.name[0] != "_"]


if __name__ == "__main__":
    sys.exit(main())
