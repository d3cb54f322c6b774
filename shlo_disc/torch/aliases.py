# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors that share memory with one that a program changes in place.

An exported program is a function of values: it is right only where what it changes is no part of what it reads by
another name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from shlo_disc.errors import ArgumentTypeError


class Aliases:
    """Checks the arguments of one program. `fixed`, `changed`: its state by names, the latter what calls change.

    written: the names of the arguments that a call changes.
    """

    def __init__(self, fixed: Mapping[str, torch.Tensor], changed: Mapping[str, torch.Tensor], written: Iterable[str]):
        self._written = frozenset(written)
        self._changed = _by_storage(changed)
        self._state = _by_storage({**fixed, **changed})

    def check(self, given: Mapping[str, Any], paths: Mapping[str, str]) -> None:
        """Raise ArgumentTypeError for an argument that a call would change by another name. `paths`: their names."""
        if not self._written and not self._changed:
            return
        tensors = {name: value for name, value in given.items() if isinstance(value, torch.Tensor)}
        for name, value in tensors.items():
            is_written = name in self._written
            others = list((self._state if is_written else self._changed).get(_storage(value), ()))
            others += [(f"the argument {paths[n]}", v) for n, v in tensors.items() if is_written and n != name]
            if shared := next((other for other, tensor in others if _overlap(value, tensor)), None):
                raise ArgumentTypeError(
                    f"the argument {paths[name]} shares memory with {shared}, and the program changes one of them in "
                    "place, which an exported program cannot show in the other: pass a clone of the argument, or use "
                    'torch.compile(module, backend="shlo_disc")'
                )


def _by_storage(tensors: Mapping[str, torch.Tensor]) -> dict[int, list[tuple[str, torch.Tensor]]]:
    found: dict[int, list[tuple[str, torch.Tensor]]] = {}
    for name, tensor in tensors.items():
        found.setdefault(_storage(tensor), []).append((name, tensor))
    return found


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr() if tensor.layout == torch.strided else 0


def _overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Tells whether two tensors have a byte in common."""
    if not one.numel() or not other.numel() or not _storage(one) or _storage(one) != _storage(other):
        return False
    spans = [_span(tensor) for tensor in (one, other)]
    first, last = max(start for start, _ in spans), min(end for _, end in spans)
    if first >= last:
        return False
    start = min(start for start, _ in spans)
    marks = torch.zeros(max(end for _, end in spans) - start, dtype=torch.bool)
    _bytes_in(marks, one, start).fill_(True)
    return bool(_bytes_in(marks, other, start).any())


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """The first byte of a tensor in its storage, and that behind its last."""
    count = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    start = tensor.storage_offset()
    return start * tensor.element_size(), (start + count + 1) * tensor.element_size()


def _bytes_in(marks: torch.Tensor, tensor: torch.Tensor, start: int) -> torch.Tensor:
    """The part of `marks`, one for each byte from `start` of the storage, that a tensor has."""
    width = tensor.element_size()
    strides: Sequence[int] = [*(width * stride for stride in tensor.stride()), 1]
    return marks.as_strided([*tensor.shape, width], strides, tensor.storage_offset() * width - start)


__all__ = ["Aliases"]
