# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the runtime says where there is no GPU; run as a program, for a process with no driver."""

from __future__ import annotations

import functools
import subprocess
import sys

from shlo_disc.errors import DeviceError


@functools.cache
def has_driver() -> bool:
    """Whether NVIDIA's driver is on this machine."""
    script = "import ctypes; ctypes.CDLL('libcuda.so.1')"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, check=False).returncode == 0


def main() -> None:
    """Print what asking for a GPU says."""
    from shlo_disc.runtime.native_module import Gpu

    try:
        Gpu.get(0)
    except DeviceError as error:
        print(error)


if __name__ == "__main__":
    main()
