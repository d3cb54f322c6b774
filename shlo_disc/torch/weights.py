# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs whose first arguments are weights: bound, with products' right-hand sides packed, until a weight changes."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from shlo_disc.torch.tensors import as_argument

if TYPE_CHECKING:
    from shlo_disc.executable import Executable


class _Bound(NamedTuple):
    """A program with its weights fixed, and which these were.

    tensors: keep the memory of the weights from being freed, so that no others can come to lie there.
    """

    run: Any
    versions: tuple[tuple[int, int], ...]
    tensors: list[torch.Tensor]


class Weights:
    """The binding of a program to tensors, which it shares and does not copy; packed forms are its own.

    It is made anew when one of them is another one, or has changed in place.

    PyTorch counts changes in place (an optimizer's step, `load_state_dict`), but not those through `.data`.

    orders: for each tensor the order of axes in which the program takes it, None for its own.
    """

    def __init__(self, executable: Executable, orders: Sequence[tuple[int, ...] | None]):
        self._executable = executable
        self._orders = orders
        self._lock = threading.Lock()
        self._bound: _Bound | None = None

    def program(self, tensors: Sequence[torch.Tensor]) -> Any:
        """The program, bound to the tensors as they are."""
        versions = tuple((t._version, t.data_ptr()) for t in tensors)
        bound = self._bound
        if bound is None or bound.versions != versions:
            with self._lock:
                own = [t.detach() for t in tensors]
                turned = (t if o is None else t.permute(o) for t, o in zip(own, self._orders, strict=True))
                run = self._executable.bind(*(as_argument(t, "a parameter") for t in turned), copy=False)
                self._bound = bound = _Bound(run, versions, own)
        return bound.run

    def forget(self) -> None:
        """Read the tensors again at the next call."""
        self._bound = None
