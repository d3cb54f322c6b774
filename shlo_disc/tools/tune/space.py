# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The search space: the kernels of a program that can have other forms, and the forms of each kind."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace

from shlo_disc.lowering.launches import Launched
from shlo_disc.options import KernelSchedule

Values = Mapping[str, tuple[int | None, ...]]
"""The values of the fields of a schedule to try, the default first."""

DEFAULT = KernelSchedule()

_FIELDS: dict[str, Values] = {
    "epilogue": {"registers": (None, 1), "unroll": (None, 1)},
    "attention": {"registers": (None, 1), "unroll": (None, 1, 4)},
    "recurrence": {"pieces": (None, 2, 4, 16, 32), "unroll": (None, 1)},
}
"""The fields that kernels of some kinds read."""

_OTHERS: Values = {"serial_work": (DEFAULT.serial_work, 75_000, 1_200_000), "unroll": (None, 1, 2, 4, 8)}


@dataclass
class TunedKernel:
    """A kernel whose form is searched, or several that run in one command: a schedule gives all of `names` one form.

    content: the digest of what it computes. commands: the numbers of those that run it.
    """

    names: tuple[str, ...]
    kind: str
    content: str
    commands: list[int] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name in reports."""
        return "+".join(self.names)


def kind_of(launch: Launched) -> str:
    """The kind of a command's kernel; the kernel that is fused with a product is an epilogue."""
    is_epilogue = bool(launch.tile) and launch.kind in ("dot", "convolution")
    return "epilogue" if is_epilogue else launch.kind


def tuned_kernels(launches: Iterable[Launched], contents: Mapping[str, str]) -> list[TunedKernel]:
    """The kernels of a program's commands, by the contents of its fusions. A kernel belongs to the first command."""
    kernels: list[TunedKernel] = []
    owners: dict[str, TunedKernel] = {}
    for number, launch in enumerate(launches):
        if not launch.kernels:
            continue
        owner = next((owners[name] for name in launch.kernels if name in owners), None)
        if owner is None:
            owner = TunedKernel(launch.kernels, kind_of(launch), contents[launch.fusion])
            kernels.append(owner)
        owners.update((name, owner) for name in owner.names)
        owner.commands.append(number)
    return kernels


def forms_of(kind: str) -> list[KernelSchedule]:
    """The forms of a kind, the default first."""
    values = _FIELDS.get(kind, _OTHERS)
    rows = (dict(zip(values, row, strict=True)) for row in itertools.product(*values.values()))
    return [replace(DEFAULT, **row) for row in rows]  # type: ignore[arg-type]


def distance(a: KernelSchedule, b: KernelSchedule) -> int:
    """The number of fields in which two forms differ."""
    return sum(getattr(a, f.name) != getattr(b, f.name) for f in fields(KernelSchedule))


def features_of(kind: str, form: KernelSchedule, seconds: float) -> dict[str, float]:
    """The features of a form that the cost model reads: its fields, alone, by kind and by the time of the kernel."""
    size = 0.1 * min(max(math.log10(max(seconds, 1e-9)) + 5, -1.0), 3.0)
    found: dict[str, float] = {}
    for f in fields(KernelSchedule):
        value = getattr(form, f.name)
        if value != getattr(DEFAULT, f.name):
            name = f"{f.name}={value}"
            found |= {name: 1.0, f"{name} {kind}": 1.0, f"{name} {kind} size": size}
    return found


__all__ = ["DEFAULT", "TunedKernel", "distance", "features_of", "forms_of", "kind_of", "tuned_kernels"]
