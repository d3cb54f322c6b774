# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The state of the trace of a JAX function in this thread, which our methods of sizes and errors of JAX look up.

JAX and the user's function call them. Whoever knows a field sets it for what runs inside; a trace in a trace has the
fields of the outer one that it does not set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .held_errors import Raised
    from .requested_sizes import SizeRequests
    from .size_equalities import CallSizes, Equalities
    from .trace_notes import CallAdvice


@dataclass(frozen=True, slots=True)
class TraceState:
    """The fields, each of which is None outside of the code that sets it.

    advice: on options of the call, for notes (`trace_notes.advice_of_call`). sizes: those of the call
    (`size_equalities.sizes_of_call`). equalities: of sizes, which the function has asked
    (`size_equalities.checked_sizes`). raised: errors about sizes (`held_errors.no_held_errors`). requests: sizes that
    depend on data, which the function may ask for (`requested_sizes.tracing`).
    """

    advice: CallAdvice | None = None
    sizes: CallSizes | None = None
    equalities: Equalities | None = None
    raised: list[Raised] | None = None
    requests: SizeRequests | None = None


_NO_TRACE = TraceState()
_STATE: ContextVar[TraceState] = ContextVar("shlo_disc_trace", default=_NO_TRACE)

current_trace: Callable[[], TraceState] = _STATE.get
"""The state of this thread's trace."""


@contextmanager
def tracing_with(state: TraceState) -> Iterator[None]:
    """Inside, the state of this thread's trace is this one."""
    token = _STATE.set(state)
    try:
        yield
    finally:
        _STATE.reset(token)


__all__ = ["TraceState", "current_trace", "tracing_with"]
