# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ways to compile and call a program."""

from __future__ import annotations

import collections
import random
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

import shlo_disc
from tests.fuzz.near.case import Case

Say = Callable[[str], None]
Results = list[np.ndarray]


class Front:
    """A way to compile and call a program."""

    def __init__(self, case: Case, exported: Any, say: Say):
        self.case = case
        self.exported = exported
        self.say = say

    def options(self, **more: Any) -> shlo_disc.Options:
        """The case's options, with others."""
        chosen = {"guard_pages": True, "threads": 1, "opt_level": 0, "strict": True}
        return shlo_disc.Options(**{**chosen, **self.case.options, **more})

    def compile(self, **more: Any) -> None:
        """Compile it, where that comes before calls."""

    def run(self, arrays: Results) -> Results:
        """The results of a call."""
        raise NotImplementedError

    def decisions(self) -> dict[str, int]:
        """The number of decisions made, by pattern."""
        return {}

    def served(self) -> dict[str, int]:
        """The number of programs, by the way the plugin served them."""
        return {}


class CompileFront(Front):
    """`jax.export`, then `shlo_disc.compile`."""

    def compile(self, **more: Any) -> None:
        self.say("compile" + (f" with {more}" if more else ""))
        self.executable = shlo_disc.compile(self.exported, options=self.options(**more))

    def run(self, arrays: Results) -> Results:
        return _listed(self.executable(*arrays))

    def decisions(self) -> dict[str, int]:
        kinds = self.executable._at("plan").decisions.values()
        return dict(collections.Counter(d.pattern for kind in kinds for d in kind.made))


class BoundFront(CompileFront):
    """As `CompileFront`, with some first arguments bound, in packed forms where products read them."""

    def run(self, arrays: Results) -> Results:
        count = random.Random(self.case.seed).randint(1, len(arrays)) if arrays else 0
        bound = self.executable.bind(*arrays[:count]) if count else self.executable
        return _listed(bound(*arrays[count:]))


class JitFront(Front):
    """`shlo_disc.jit`."""

    def compile(self, **more: Any) -> None:
        dims = [", ".join(a.dims) for a in self.case.program.arguments]
        self.function = shlo_disc.jit(
            lambda *arrays: self.case.program.run(*arrays), dynamic=tuple(dims), options=self.options(**more)
        )

    def run(self, arrays: Results) -> Results:
        return _listed(self.function(*arrays))


class PluginFront(Front):
    """`jax.jit` with the platform shlo_disc, at one shape after another; some arguments are donated."""

    def compile(self, **more: Any) -> None:
        from shlo_disc.runtime import _native

        self.programs = _native.plugin_programs()
        self.before: Mapping[str, int] = dict(self.programs.counts)
        rng = random.Random(self.case.seed)
        donated = [n for n in range(len(self.case.program.arguments)) if rng.random() < 0.25]
        self.function = jax.jit(lambda *arrays: self.case.program.run(*arrays), donate_argnums=donated)

    def run(self, arrays: Results) -> Results:
        device = jax.devices("shlo_disc")[0]
        return _listed(self.function(*(jax.device_put(a, device) for a in arrays)))

    def served(self) -> dict[str, int]:
        return {how: number - self.before[how] for how, number in self.programs.counts.items()}


FRONTS: dict[str, type[Front]] = {
    "compile": CompileFront, "bound": BoundFront, "jit": JitFront, "plugin": PluginFront,
}  # fmt: skip


def _listed(results: Any) -> Results:
    return [np.asarray(r) for r in (results if isinstance(results, tuple | list) else [results])]
