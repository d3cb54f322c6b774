# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`shlo_disc.load`: compiled programs from files, without the compiler."""

from __future__ import annotations

import os
from typing import Any

from shlo_disc.errors import OptionError
from shlo_disc.options import check_flag, takes_options
from shlo_disc.runtime import Artifact, LoadedExecutable
from shlo_disc.runtime.clients import client, client_for


@takes_options
def load(
    path: str | os.PathLike[str],
    *,
    trust: bool = False,
    threads: int = 0,
    cpu: str = "",
    in_tree: Any = None,
    out_tree: Any = None,
) -> LoadedExecutable:
    """Load a program from a file of `Executable.save` or `shlo_disc compile`; call the result with arrays.

    trust: the file contains native code, which can do anything that this process can; pass True if you know who made
    it. threads: the number of threads for a call on processors; 0 means one for each processor. A program for a GPU is
    loaded onto the first GPU of this machine. cpu: the level of processors to run, such as "x86-64-v3", if the file has
    code for several (`Options.cpu`), so that different machines return the same bits; "" means the best level that this
    processor supports. in_tree, out_tree: the pytrees of `((args...), {kwargs})` and of the results, as
    `jax.tree.structure` returns them, for programs whose pytrees have classes of yours.

    It needs only NumPy, and imports neither JAX nor MLIR. Raises ArtifactError if the file is damaged, not trusted, or
    for another processor or device, DeviceError without a GPU, OptionError for what is no path, and OSError.
    """
    check_flag("trust", trust)
    _check_path(path)
    artifact = Artifact.open(path, trust=trust)
    return (client_for(artifact, threads) if artifact.trusted else client(threads)).load(
        artifact, cpu=cpu, in_tree=in_tree, out_tree=out_tree
    )


def _check_path(path: Any) -> None:
    """Raises OptionError, with what to write, for what is not the path of a file."""
    if isinstance(path, str | os.PathLike):
        return
    given = f"load takes the path of a file, and not {_kind(path)}"
    if isinstance(path, bytes | bytearray | memoryview):
        raise OptionError(f"{given}: for a program in memory write shlo_disc.runtime.Client().load(data, trust=True)")
    if hasattr(path, "read"):
        raise OptionError(f"{given}: give its path, or write shlo_disc.runtime.Client().load(file.read(), trust=True)")
    if isinstance(path, LoadedExecutable) or hasattr(path, "loaded"):
        raise OptionError(f"{given}: call the program as it is; program.save(path) writes the file")
    instead = ": shlo_disc.compile and shlo_disc.jit compile it" if callable(path) else ", such as 'model.disc'"
    raise OptionError(f"{given}{instead}")


def _kind(value: Any) -> str:
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'AEIOaeio' else 'a'} {name} object"


__all__ = ["load"]
