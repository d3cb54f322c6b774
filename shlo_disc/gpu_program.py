# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `compile` returns for a GPU: the program's kernels as text of every stage, down to PTX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shlo_disc.compiler import STAGES, Compilation
from shlo_disc.errors import CompilerError, DiscError
from shlo_disc.lowering_gpu import GpuLaunch


class GpuProgram:
    """A program compiled for an NVIDIA GPU. It can be read and assembled; this version cannot run it."""

    def __init__(self, compilation: Compilation):
        if compilation.gpu is None:
            raise CompilerError("the program has not been lowered for a GPU")
        self._compilation = compilation
        self._kernels = compilation.gpu.launches

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raises DiscError: there is no execution on GPUs."""
        raise DiscError(
            f"{self.signature.name} is compiled for {self.target}, and running on GPUs is not supported yet; "
            "compile with target='cpu' to run it, or read the kernels with as_text('ptx')"
        )

    @property
    def target(self) -> str:
        """The target's name, e.g. "cuda:sm_90"."""
        return self._compilation.target

    @property
    def signature(self) -> Any:
        """The arguments and results with their symbolic shapes."""
        return self._compilation.signature

    @property
    def stages(self) -> list[str]:
        """The names that `as_text` takes for MLIR, in pipeline order."""
        return list(STAGES)

    @property
    def kernels(self) -> list[GpuLaunch]:
        """Every launch of a call, in order."""
        return list(self._kernels)

    @property
    def timings(self) -> dict[str, float]:
        """Seconds that each stage took."""
        return dict(self._compilation.timings)

    def as_text(self, stage: str = "simplify") -> str:
        """A stage's MLIR, or "llvm" (LLVM IR), "ptx". Raises ValueError on another name."""
        c = self._compilation
        if stage in c.snapshots:
            return str(c.snapshots[stage])
        if stage == "llvm":
            return c.llvm_ir
        if stage == "ptx":
            return c.ptx
        raise ValueError(f"no stage {stage!r}; stages are {', '.join([*STAGES, 'llvm', 'ptx'])}")

    def dump(self, directory: str | Path) -> list[Path]:
        """Write every stage's text to `directory`; returns the files."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        names = {f"{number}-{stage}.mlir": stage for number, stage in enumerate(STAGES)}
        names |= {f"{len(STAGES)}-codegen.ll": "llvm", f"{len(STAGES)}-codegen.ptx": "ptx"}
        for name, stage in names.items():
            (folder / name).write_text(self.as_text(stage))
        return [folder / name for name in names]


__all__ = ["GpuLaunch", "GpuProgram"]
