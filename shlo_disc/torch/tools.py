# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tools that compiled PyTorch programs share with other compiled programs: sizes, memory, kernels and texts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shlo_disc.runtime.dims import NO_DIMS, all_dims, by_name
from shlo_disc.runtime.sized import Sized

if TYPE_CHECKING:
    from shlo_disc.driver.executable import Executable, KernelLaunch
    from shlo_disc.options import Options
    from shlo_disc.report.explanation import Explanation
    from shlo_disc.report.listing import Listing


def _with_named(dims: Any, named: Mapping[str, int]) -> Any:
    """The sets of values of symbols of a call that may give one of them by name."""
    return [*all_dims(dims), named] if named else dims


class Tools(Sized):
    """The methods and properties of `executable` that make sense for tensors, under the same names.

    Values of symbols are given by the names that `signature` shows, or in one mapping.
    """

    executable: Executable

    if not TYPE_CHECKING:  # to a checker it would be an attribute of any name

        def __getattr__(self, name: str) -> Any:
            """Raises AttributeError, which names the object that has the attribute."""
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            executable = self.__dict__.get("executable")
            if name == "bind":
                text = (
                    "a compiled PyTorch program has no 'bind': calls bind the module's parameters and buffers. "
                    "To bind others, write save(path, weights=file) and shlo_disc.load(path).bind(weights=...)"
                )
            elif not name.startswith("_") and hasattr(type(executable), name):
                text = f"a compiled PyTorch program has no {name!r}, but its program of arrays has: "
                text += f"use run.executable.{name}"
            raise AttributeError(text, name=name, obj=self)

    @property
    def _sized(self) -> Executable:
        return self.executable

    @property
    def signature(self) -> Any:
        """The arguments and results with their symbolic shapes; parameters and buffers come first."""
        return self.executable.signature

    @property
    def target(self) -> str:
        """The target of the program."""
        return self.executable.target

    @property
    def options(self) -> Options:
        """The options with which the program was compiled."""
        return self.executable.options

    @property
    def timings(self) -> dict[str, float]:
        """The seconds of each stage; only those of "cache" if the program came from the compile cache."""
        return self.executable.timings

    @property
    def kernels(self) -> list[KernelLaunch]:
        """Every launch of a call, in program order."""
        return self.executable.kernels

    @property
    def stages(self) -> list[str]:
        """The names that `as_text` takes for MLIR, in pipeline order."""
        return self.executable.stages

    @property
    def peak_memory_formula(self) -> str:
        """`peak_memory` as an expression of the symbols, in bytes."""
        return self.executable.peak_memory_formula

    def max_dim(self, name: str, values: Mapping[str, int] = NO_DIMS, /, *, memory: int, **dims: int) -> int:
        """The largest value of a symbol for which `peak_memory` is at most `memory` bytes.

        dims: the values of all other symbols, by name or in the mapping `values`. Raises ShapeError when no value fits.
        """
        return self.executable.max_dim(name, values, memory=memory, **dims)

    def as_text(self, stage: str = "simplify") -> str:
        """The text of a stage, as `Executable.as_text` has it. Raises OptionError on another name."""
        return self.executable.as_text(stage)

    def dump(self, directory: str | Path) -> list[Path]:
        """Write the text of every stage to `directory`; returns the files."""
        return self.executable.dump(directory)

    def listing(self, *stages: str, file: str = "") -> Listing:
        """The code, kernel by kernel, beside your source lines, as `Executable.listing` has it."""
        return self.executable.listing(*stages, file=file)

    @by_name
    def explain(self, **dims: int) -> Explanation:
        """The kernels of a call at given values of the symbols, measured on synthetic arguments: print it."""
        return self.executable.explain(**dims)

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        dims: Iterable[Mapping[str, int]] | Mapping[str, int] = (),
        *,
        show: bool | None = None,
        **named: int,
    ) -> Path:
        """Write a self-contained HTML page about the compile, as `Executable.report` does; returns its path.

        Values of symbols by name, as in `report(b=4)`, are one of `dims`.
        """
        return self.executable.report(path, _with_named(dims, named), show=show)

    def trace(
        self,
        path: str | os.PathLike[str],
        dims: Iterable[Mapping[str, int]] | Mapping[str, int] = (),
        **named: int,
    ) -> Path:
        """Write a trace of the compile, and of a call at each of `dims`, for https://ui.perfetto.dev.

        Values of symbols by name, as in `trace(path, b=4)`, are one of `dims`.
        """
        return self.executable.trace(path, _with_named(dims, named))

    def export_library(self, path: str | os.PathLike[str], name: str | None = None) -> None:
        """Write a shared library and a C header; the arguments of its functions begin with the weights."""
        self.executable.export_library(path, name)
