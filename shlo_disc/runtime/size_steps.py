# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes in reverse Polish notation, as headers have them (`less` of a symbol), of integers or sizes of JAX."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any


def evaluate(steps: Sequence[Sequence[Any]], shapes: Sequence[Sequence[Any]], symbols: Sequence[Any]) -> Any:
    """The value of a size; 0 without steps. shapes: those of all arguments. symbols: the values of earlier symbols."""
    stack: list[Any] = []
    for name, *places in steps:
        if name in _OPERATIONS:
            right, left = stack.pop(), stack.pop()
            stack.append(_OPERATIONS[name](left, right))
        elif name == "size":
            stack.append(shapes[places[0]][places[1]])
        else:
            stack.append(symbols[places[0]] if name == "symbol" else places[0])
    return stack.pop() if stack else 0


def _max(a: Any, b: Any) -> Any:
    from jax.core import max_dim

    return max_dim(a, b)


def _min(a: Any, b: Any) -> Any:
    from jax.core import min_dim

    return min_dim(a, b)


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "multiply": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": _max,
    "min": _min,
}
