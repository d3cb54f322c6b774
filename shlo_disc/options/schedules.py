# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules: the form of each kernel of a program."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from shlo_disc.errors import OptionError, check_folder, reading
from shlo_disc.options.names import takes_named

FORMAT = 1
CHOICES: dict[str, tuple[int, ...]] = {"unroll": (1, 2, 4, 8), "registers": (1, 2), "pieces": (1, 2, 4, 8, 16, 32)}
"""The values of the fields that may also be None, which leaves the choice to the compiler."""


@takes_named
@dataclass(frozen=True)
class KernelSchedule:
    """`unroll`: the number of vector registers processed together in long rows, at most two in short ones; None for the
    default choice. `serial_work`: launches with fewer simple vector operations than this run on one thread.
    `registers`: the vector registers in a row of the tiles of a matrix product, stated for the kernel that is fused
    with it, or of an attention, stated for its kernel of rows; tiles of one register have twice as many rows. Products
    that run together use two unless all of their kernels ask for one. `pieces`: the blocks of rows that threads share
    out in a recurrence, at most.

    Raises OptionError for a value that no kernel supports.
    """

    unroll: int | None = None
    serial_work: int = 300_000
    registers: int | None = None
    pieces: int | None = None

    def __post_init__(self) -> None:
        for name, values in CHOICES.items():
            value = getattr(self, name)
            if value is not None and (value not in values or isinstance(value, bool)):
                raise OptionError(f"a schedule's {name} must be one of {values}, not {value!r}")
        if not isinstance(self.serial_work, int) or not 0 < self.serial_work < 1 << 40:
            raise OptionError(f"a schedule's serial_work must be an integer from 1 to 2**40, not {self.serial_work!r}")


@dataclass(frozen=True)
class Schedule:
    """The forms of kernels, by their names as in `Executable.kernels`; `default` is for all others."""

    kernels: Mapping[str, KernelSchedule] = field(default_factory=dict, hash=False)
    default: KernelSchedule = KernelSchedule()

    def of(self, kernel: str) -> KernelSchedule:
        """The form of one kernel."""
        return self.kernels.get(kernel, self.default)

    def key(self) -> str:
        """A text that is the same for equal schedules."""
        return json.dumps(self.to_json(), sort_keys=True)

    def to_json(self) -> dict[str, Any]:
        """The form that `from_json` reads."""
        kernels = {name: asdict(schedule) for name, schedule in sorted(self.kernels.items())}
        return {"format": FORMAT, "default": asdict(self.default), "kernels": kernels}

    @staticmethod
    def from_json(data: Any) -> Schedule:
        """The schedule from JSON data. Raises OptionError if the data are not a schedule."""
        try:
            if data["format"] != FORMAT:
                raise OptionError(f"a schedule of format {data['format']!r}; this release reads format {FORMAT}")
            kernels = {str(name): KernelSchedule(**row) for name, row in data["kernels"].items()}
            return Schedule(kernels, KernelSchedule(**data["default"]))
        except (AttributeError, KeyError, TypeError) as error:
            raise OptionError(f"this is no schedule: {error!r}") from None

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Schedule:
        """Reads a file of `save`. Raises OptionError if it is not a schedule, OSError if it cannot be read."""
        try:
            with reading(path, "`python -m shlo_disc tune` writes schedules"):
                data = json.loads(Path(path).read_text())
        except ValueError as error:
            raise OptionError(f"{os.fspath(path)}: no schedule: {error}") from None
        return Schedule.from_json(data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the schedule as JSON. Raises OSError."""
        check_folder(path)
        Path(path).write_text(json.dumps(self.to_json(), indent=1) + "\n")
