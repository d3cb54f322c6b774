# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NVIDIA's software on this machine. Run as a program: what the runtime says in a process that has no driver."""

from __future__ import annotations

import functools
import subprocess
import sys

from shlo_disc.errors import DeviceError, DiscError


@functools.cache
def has_driver() -> bool:
    """Tells whether NVIDIA's driver is on this machine."""
    script = "import ctypes; ctypes.CDLL('libcuda.so.1')"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, check=False).returncode == 0


def has_libdevice() -> bool:
    """Tells whether a program for GPUs that calls functions of NVIDIA's can be compiled to PTX here."""
    from shlo_disc.lowering.codegen import cuda_toolkit

    try:
        cuda_toolkit.find_libdevice()
    except DiscError:
        return False
    return True


def main() -> None:
    """Print what asking for a GPU says."""
    from shlo_disc.runtime.native_module import Gpu

    try:
        Gpu.get(0)
    except DeviceError as error:
        print(error)


if __name__ == "__main__":
    main()
