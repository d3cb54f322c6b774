# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `compile` returns for a GPU: the program's kernels as text of every stage, down to PTX."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shlo_disc.compilation import Compilation
from shlo_disc.errors import CompilerError, DiscError
from shlo_disc.lowering.launches import Launched, launches_in
from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.stage_text import stage_text
from shlo_disc.stages import STAGES


@dataclass(frozen=True)
class GpuLaunch:
    """One launch: the kernel's name, the kind of its fusion, and expressions of the program's symbols.

    blocks: the grid's size; nothing is launched where it is 0. threads: the block's size. sizes: the kernel's
    arguments after its pointers, which are the fusion's inputs, then its outputs.
    """

    name: str
    kind: str
    blocks: Expr
    threads: int
    sizes: tuple[Expr, ...]


def gpu_launches(program: ir.Operation) -> list[GpuLaunch]:
    """Every launch of a call, in order, of a module of the stage `host`."""
    return [_launch(launched) for launched in launches_in(program)]


def _launch(launched: Launched) -> GpuLaunch:
    use = launched.use
    if use is None:
        raise CompilerError(f"{launched.name} is no kernel of a GPU")
    return GpuLaunch(use.kernel, launched.kind, use.items, use.threads, use.sizes)


class GpuProgram:
    """A program compiled for an NVIDIA GPU. It can be read and assembled; this version cannot run it."""

    def __init__(self, compilation: Compilation):
        self._compilation = compilation
        self._kernels = gpu_launches(compilation.snapshots["host"])

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
        """A stage's MLIR, or "llvm" (LLVM IR), "ptx". Raises OptionError on another name."""
        return stage_text(self._compilation, stage)

    def dump(self, directory: str | Path) -> list[Path]:
        """Write every stage's text to `directory`; returns the files."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        names = {f"{number}-{stage}.mlir": stage for number, stage in enumerate(STAGES)}
        names |= {f"{len(STAGES)}-codegen.ll": "llvm", f"{len(STAGES)}-codegen.ptx": "ptx"}
        for name, stage in names.items():
            (folder / name).write_text(self.as_text(stage))
        return [folder / name for name in names]


__all__ = ["GpuLaunch", "GpuProgram", "gpu_launches"]
