# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The state of the compile that runs in this thread, which reaches code that others call back.

MLIR's drivers call patterns, JAX's lowering calls rules, and conditions of patterns take a candidate alone. Whoever
knows a field sets it for what runs inside; a compile in a compile has the fields of the outer one that it does not set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Protocol

from shlo_disc.shape_dialect.policy import Policy

Watch = Callable[[str, float | None], None]
"""Called with the name of a stage and None when it begins, and with its seconds when it has ended."""


class Listener(Protocol):
    """Hears what is asked to be proved, and the answers."""

    def ask(self, relation: Any, answer: bool | None) -> None:
        """Hears one answer to a `facts_relation.Relation`."""


@dataclass
class Progress:
    """The stage that runs, and the kernels that it has made of those expected, of which 0 are where it makes none."""

    stage: str = "import"
    done: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class CompileState:
    """The fields, each of which is empty outside of the code that sets it.

    policy: of the target (`compiling_for`). is_strict: what a pattern raises is an error. listener: hears of proofs
    (`facts.listening`). results: those that functions of types and attributes have had (`dialect.remembered`). watch,
    progress: are told of the stages (`lowering.progress`). kept: objects that the program to be compiled has to keep
    alive, while JAX exports it (`runtime.exporting`).
    """

    policy: Policy | None = None
    is_strict: bool = False
    listener: Listener | None = None
    results: Mapping[Callable[[Any], Any], Mapping[Any, Any]] | None = None
    watch: Watch | None = None
    progress: Progress | None = None
    kept: list[Any] | None = None


_NO_COMPILE = CompileState()
_STATE: ContextVar[CompileState] = ContextVar("shlo_disc_compile", default=_NO_COMPILE)

current_compile: Callable[[], CompileState] = _STATE.get
"""The state of this thread's compile."""


@contextmanager
def compiling_with(state: CompileState) -> Iterator[None]:
    """Inside, the state of this thread's compile is this one."""
    token = _STATE.set(state)
    try:
        yield
    finally:
        _STATE.reset(token)


@contextmanager
def compiling_for(policy: Policy, *, strict: bool = False) -> Iterator[None]:
    """Inside, passes of this thread ask this policy. strict: what a pattern raises is an error."""
    with compiling_with(replace(current_compile(), policy=policy, is_strict=strict)):
        yield


def policy() -> Policy:
    """The policy of the target which is compiled for. Raises LookupError outside of `compiling_for`."""
    found = current_compile().policy
    if found is None:
        raise LookupError("no target is compiled for here")
    return found


__all__ = [
    "CompileState", "Listener", "Progress", "Watch", "compiling_for", "compiling_with", "current_compile", "policy",
]  # fmt: skip
