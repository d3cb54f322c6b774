# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`shlo_disc.load`: compiled programs from files, without the compiler."""

from __future__ import annotations

import os

from shlo_disc.clients import client, client_for
from shlo_disc.runtime import Artifact, LoadedExecutable


def load(path: str | os.PathLike[str], *, trust: bool = False, threads: int = 0, cpu: str = "") -> LoadedExecutable:
    """A program from a file that `Executable.save` or `shlo_disc compile` wrote: call it with arrays.

    trust: the file holds native code, which can do anything that this process can; pass True where you know who made
    it. threads: of a call on processors; 0: one a processor. A program for a GPU goes to the first of this machine.
    cpu: of a file with code for several levels of processors (`Options.cpu`), the one to run, such as "x86-64-v3", so
    that machines which differ give the same bits; "" means the best that this processor has.

    Needs NumPy and no more: neither JAX nor MLIR is imported. Raises ArtifactError where the file is damaged, not
    trusted, or made for another processor or device, DeviceError without a GPU, and OSError.
    """
    artifact = Artifact.open(path, trust=trust)
    return (client_for(artifact, threads) if artifact.trusted else client(threads)).load(artifact, cpu=cpu)


__all__ = ["load"]
