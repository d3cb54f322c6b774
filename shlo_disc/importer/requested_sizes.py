# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that a traced JAX function asks for: how many elements a mask selects is known only when the program runs.

JAX traces with symbolic sizes as long as each belongs to an argument. So every size that is asked for gets a hidden
argument of that size. A function that asks for more sizes than it has hidden arguments is traced again with one more.
`stablehlo.custom_call @shlo_disc.nonzero(mask, hidden)` marks what a size counts; `data_sizes.py` removes the hidden
arguments again, and with them the assertion that the size is at least 1, which JAX makes for all its variables.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jax import export

from shlo_disc.errors import ProgramError

from .trace_state import current_trace, tracing_with

NONZERO = "shlo_disc.nonzero"


class MoreSizesNeeded(BaseException):
    """The function asks for one more size; no `except Exception` on the way may hold this back."""


class SizeRequests:
    """The hidden arguments of one trace, handed out one after the other.

    is_pure: selections have no effect, as `jax.checkpoint` wants it. One whose positions are not read may go then, and
    its size with it, which is refused where that is read.
    """

    def __init__(self, hidden: Sequence[Any], stack: contextlib.ExitStack, is_pure: bool):
        self._hidden = hidden
        self._stack = stack
        self.is_pure = is_pure
        self._taken = 0

    def take(self) -> Any:
        """The hidden argument of the next size. Raises MoreSizesNeeded when all are taken."""
        if self._taken == len(self._hidden):
            raise MoreSizesNeeded
        self._taken += 1
        # What jax.jit has traced before has the sizes that were taken then: every trace after this one is a new one.
        self._stack.enter_context(new_trace())
        return self._hidden[self._taken - 1]


_TRACES = itertools.count()


@functools.cache
def _trace_context() -> Any:
    """Made when it is needed first: it makes JAX forget what it has traced before."""
    return jax.make_user_context(None)


def new_trace() -> contextlib.AbstractContextManager[Any]:
    """While this lasts, JAX traces anew what it has traced in another such context, or in none."""
    context: contextlib.AbstractContextManager[Any] = _trace_context()(next(_TRACES))
    return context


@contextlib.contextmanager
def tracing(hidden: Sequence[Any], is_pure: bool = False) -> Iterator[None]:
    """While this lasts, traced functions may ask for sizes."""
    with contextlib.ExitStack() as stack:
        if hidden:
            stack.enter_context(new_trace())
        with tracing_with(replace(current_trace(), requests=SizeRequests(hidden, stack, is_pure))):
            yield


def with_hidden_arguments(function: Callable[..., Any], is_pure: bool) -> Callable[..., Any]:
    """`function` with the hidden arguments as one more positional argument."""

    @functools.wraps(function)
    def traced(*args: Any, **kwargs: Any) -> Any:
        *own, hidden = args
        with tracing(hidden, is_pure):
            return function(*own, **kwargs)

    return traced


def hidden_specs(names: Sequence[str], scope: export.SymbolicScope) -> tuple[jax.ShapeDtypeStruct, ...]:
    """The hidden arguments for these sizes."""
    shapes = [export.symbolic_shape(f"{name},", scope=scope) for name in names]
    return tuple(jax.ShapeDtypeStruct(shape, np.bool_) for shape in shapes)


def traced_flatnonzero(mask: jax.Array) -> jax.Array:
    """The positions of the true elements of a traced vector, as a vector of a size of its own.

    Raises ProgramError where no size can be asked for.
    """
    if mask.shape == (0,):
        return jax.numpy.zeros(0, _index_type())
    requests = current_trace().requests
    if requests is None:
        raise ProgramError(
            "the size of this result depends on data, which jax.jit and other transformations of JAX cannot trace: "
            "compile the function with shlo_disc.jit or shlo_disc.compile, or call it with arrays"
        )
    positions = _pure_positions if requests.is_pure else _positions
    return positions(mask, requests.take())


def _index_type() -> np.dtype[Any]:
    return jax.dtypes.canonicalize_dtype(np.int64)


def _selecting(has_effect: bool) -> Callable[[jax.Array, jax.Array], jax.Array]:
    """The custom call as a function of JAX's arrays."""

    @jax.custom_batching.custom_vmap
    def positions(mask: jax.Array, hidden: jax.Array) -> jax.Array:
        result = jax.ShapeDtypeStruct(hidden.shape, _index_type())
        return jax.ffi.ffi_call(NONZERO, result, has_side_effect=has_effect)(mask, hidden)

    @positions.def_vmap
    def positions_of_a_batch(size: int, batched: Any, mask: jax.Array, hidden: jax.Array) -> Any:
        raise ProgramError("jax.vmap over a size that depends on data: every element of the batch would have its own")

    return positions


_positions = _selecting(has_effect=True)
"""With an effect, for the size stays in use where the positions are not."""

_pure_positions = _selecting(has_effect=False)
