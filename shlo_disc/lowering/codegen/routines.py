# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that are the same in every program that needs them: compiled once in a process, then joined to objects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir

from .cpu_target import CpuTarget
from .llvm_text import to_llvm_ir
from .native import HOST_FUNCTIONS, code_text, compile_to_object, initialise
from .object_store import ObjectStore, stored
from .objects import join_objects
from .parts import parts_of
from .pipelines import lower_to_llvm
from .unlocked import at_a_time


@dataclass(frozen=True)
class Routines:
    """Functions in the LLVM dialect that call each other alone, such as the micro-kernels of one tile.

    exported: those that programs call. is_optnone: they are written instruction by instruction, so that LLVM need
    only select these: optimising them takes it as long as all other kernels of a model and changes nothing.
    """

    exported: tuple[str, ...]
    texts: tuple[str, ...]
    is_optnone: bool = False

    @property
    def opt_level(self) -> int:
        """LLVM's level of optimisation for them, whatever that of the program."""
        return 3


@cache
def routines_ir(routines: Routines) -> str:
    """Their LLVM IR."""
    with make_context(), ir.Location.unknown():
        return to_llvm_ir(lower_to_llvm(ir.Module.parse("\n".join(routines.texts))))


@cache
def routines_object(routines: Routines, target: CpuTarget, store: ObjectStore | None = None) -> bytes:
    """Their code for a processor."""
    return stored(store, _compiled, routines, target)


def _compiled(routines: Routines, target: CpuTarget) -> bytes:
    text = routines_ir(routines)
    return compile_to_object(text, target, routines.opt_level, routines.exported, is_optnone=routines.is_optnone)


def compile_with_routines(
    ir_text: str,
    target: CpuTarget,
    opt_level: int,
    exported: Collection[str],
    embedded: Mapping[str, bytes],
    routines: Sequence[Routines],
    store: ObjectStore | None,
) -> bytes:
    """One object of a program and the routines that it calls. The arguments are as `compile_to_object` has them."""
    external = names_of(routines)
    parts = parts_of(ir_text, exported, HOST_FUNCTIONS)
    constants = [embedded, *[{}] * len(parts)]
    tasks: list[Callable[[], bytes]] = [
        partial(
            stored,
            store,
            compile_to_object,
            part.text,
            target,
            opt_level,
            part.exported,
            own,
            (*external, *part.external),
        )
        for part, own in zip(parts, constants, strict=False)
    ]
    initialise()
    tasks += [partial(routines_object, each, target, store) for each in routines]
    objects = at_a_time(tasks, [*(len(part.text) for part in parts), *(len("".join(each.texts)) for each in routines)])
    return join_objects(objects, {*exported, *embedded}) if len(objects) > 1 else objects[0]


def names_of(routines: Iterable[Routines]) -> list[str]:
    """The names of the functions that programs call."""
    return [name for each in routines for name in each.exported]


def view_routines(name: str, routines: Routines, target: CpuTarget) -> str:
    """Their "llvm", "optimized-llvm" or "asm"."""
    text = routines_ir(routines)
    if name == "llvm":
        return text
    return code_text(name, text, target, routines.opt_level, routines.exported, is_optnone=routines.is_optnone)


__all__ = ["Routines", "compile_with_routines", "names_of", "routines_ir", "routines_object", "view_routines"]
