# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs whose first arguments are weights: bound, with products' right-hand sides packed, until a weight changes."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from shlo_disc.runtime.bound_executable import BoundExecutable
from shlo_disc.torch.tensors import as_argument

if TYPE_CHECKING:
    from shlo_disc.driver.executable import Executable


class _Bound(NamedTuple):
    """A program with its weights fixed, and which these were.

    tensors: keep the memory of the weights from being freed, so that no others can come to lie there.
    """

    run: Any
    versions: Hashable
    tensors: list[torch.Tensor]


class Weights:
    """The binding of a program to tensors, which it shares and does not copy; packed forms are its own.

    It is made anew when one of them is another one, or has changed in place.

    orders: for each tensor the order of axes in which the program takes it, None for its own.
    """

    def __init__(self, executable: Executable, orders: Sequence[tuple[int, ...] | None]):
        self._executable = executable
        self._orders = orders
        self._lock = threading.Lock()
        self._bound: _Bound | None = None

    def program(self, tensors: Sequence[torch.Tensor]) -> Any:
        """The program, bound to the tensors as they are by PyTorch's count of changes in place.

        PyTorch counts an optimizer's step and `load_state_dict`, but not changes through `.data`, nor any of tensors
        that were made in inference mode.
        """
        versions = tuple((0 if t.is_inference() else t._version, t.data_ptr()) for t in tensors)
        bound = self._bound
        if bound is None or bound.versions != versions:
            with self._lock:
                self._bound = bound = self._bind(tensors, versions)
        return bound.run

    def arguments(self, tensors: Sequence[torch.Tensor]) -> list[Any]:
        """The tensors as the program takes them."""
        return [as_argument(t, "a parameter", order) for t, order in zip(tensors, self._orders, strict=True)]

    def forget(self) -> None:
        """Read the tensors again at the next call."""
        self._bound = None

    def _bind(self, tensors: Sequence[torch.Tensor], versions: Hashable) -> _Bound:
        own = [t.detach() for t in tensors]
        run = BoundExecutable(self._executable.loaded, tuple(self.arguments(own)), copy=False)
        return _Bound(run, versions, own)


class CheckedWeights(Weights):
    """Weights whose memory is compared, at each call, with what it was when they were bound.

    They are bound once they have held the same in two calls in a row, and no longer when they hold something else,
    whoever wrote it. Until then fingerprints tell, of 64 bits with keys of the process; while they are bound, the
    kernel, where it notes writes by pages.
    """

    def __init__(self, executable: Executable, orders: Sequence[tuple[int, ...] | None]):
        super().__init__(executable, orders)
        self._memory: tuple[tuple[int, ...], list[Any]] = ((), [])
        self._contents: Any = None

    def program(self, tensors: Sequence[torch.Tensor]) -> Any:
        """The bound program; None where it is to be called with the tensors as arguments."""
        places = tuple(t.data_ptr() for t in tensors)
        with self._lock:
            if self._memory[0] != places:
                self._memory = places, [_bytes_of(t) for t in tensors]
                self._contents = self._bound = None
            contents, bound, memory = self._contents, self._bound, self._memory[1]
        holds = contents is not None and contents.hold()
        if not holds or bound is None:
            contents = self._executable.loaded.native.contents_of(memory, watch=holds)
            bound = self._bind(tensors, places) if holds else None
            with self._lock:
                if self._memory[1] is memory:
                    self._contents, self._bound = contents, bound
        return bound.run if bound is not None else None


def _bytes_of(tensor: torch.Tensor) -> Any:
    """The memory of a tensor from its first element to its last, which may lie in any order, as a NumPy array.

    Raises ArgumentTypeError for a tensor that no program takes.
    """
    plain = tensor.detach()
    if not plain.is_cpu or plain.layout != torch.strided or plain.is_neg() or plain.is_conj():
        as_argument(plain, "a parameter")
        plain = plain.resolve_neg().resolve_conj()
    count = 1 + sum((size - 1) * stride for size, stride in zip(plain.shape, plain.stride(), strict=True))
    flat = torch.as_strided(plain, (count if plain.numel() else 0,), (1,))
    return flat.view(torch.uint8).numpy()
