# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The native core of the runtime, built from its source for one Python, where it is not there already."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

STATIC = "-static-libstdc++ -static-libgcc"
"""The C++ library of the machine that builds may be newer than that of the one that runs."""


class NativeMissing(Exception):
    """There is no native core for this Python, and none can be built."""


def build(source: Path, python: Path, scratch: Path, into: Path) -> Path:
    """Build the module of the CMake project in `source` for a Python with NumPy and nanobind; returns it in `into`.

    Raises NativeMissing with the last lines of what failed.
    """
    configure = [
        "cmake", "-S", source, "-B", scratch, "-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={python}",
        f"-DCMAKE_MODULE_LINKER_FLAGS={STATIC}",
    ]  # fmt: skip
    for command in (configure, ["cmake", "--build", scratch, "--parallel", str(os.cpu_count() or 1)]):
        try:
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
        except OSError as error:
            raise NativeMissing(f"cmake did not run: {error}") from error
        if done.returncode:
            raise NativeMissing("\n".join((done.stdout + done.stderr).splitlines()[-8:]))
    (made,) = scratch.glob("_native.*.so")
    return Path(shutil.copy2(made, into))


def ensure(root: Path) -> None:
    """Have a native core in the package under `root` that this Python loads. Raises NativeMissing saying why not."""
    trouble = _trouble(root)
    if not trouble:
        return
    print(f"no native core loads here ({trouble}); it is built from source/, which takes minutes", flush=True)
    try:
        build(root / "source", Path(sys.executable), root / "build", root / "shlo_disc" / "runtime")
    except NativeMissing as error:
        needs = "that needs CMake 3.20, a C++20 compiler, and NumPy and nanobind for this Python"
        raise NativeMissing(f"{trouble}; it could not be built ({needs}): {error}") from error
    trouble = _trouble(root)
    if trouble:
        raise NativeMissing(trouble)


def _trouble(root: Path) -> str:
    """The reason that the runtime cannot be imported in a new process of this Python; "" when it can."""
    script = f"import sys; sys.path.insert(0, {str(root)!r}); import shlo_disc.runtime"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["it ended"])[-1]
