# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Warnings about recurrent modules and sparse tensors, which Dynamo leaves out of its graphs with all around them."""

from __future__ import annotations

import sys
import types
import warnings
from typing import Any, ClassVar

import torch
from torch import nn
from torch._dynamo import config
from torch._dynamo.callback import callback_handler
from torch._dynamo.utils import counters

from shlo_disc.torch.backend import backend

_REASON = "RNN, GRU, or LSTM"
_TEXT = (
    "torch.compile leaves nn.LSTM, nn.GRU and nn.RNN out of its graphs, with the modules around them, so that this "
    "module runs in PyTorch and is not compiled: make its first call in the context shlo_disc.torch.as_scans(), after "
    "torch._dynamo.reset(), as in `with shlo_disc.torch.as_scans(): compiled(x)`"
)

_SPARSE = "sparse"
_SPARSE_TEXT = (
    "torch.compile leaves sparse tensors out of its graphs, so that what is computed with them, and often all of the "
    "function, runs in PyTorch and is not compiled: give dense tensors, as x.to_dense() makes them, to what you compile"
)


class _Seen:
    """The numbers of graph breaks that have been seen, by their reason."""

    counts: ClassVar[dict[str, int]] = {_REASON: 0, _SPARSE: 0}


def _is_new(reason: str) -> bool:
    """Tells whether there are graph breaks of a reason that have not been seen."""
    count = sum(number for text, number in counters["graph_break"].items() if reason in text)
    seen, _Seen.counts[reason] = _Seen.counts[reason], count
    return count > seen or 0 < count < seen  # torch._dynamo.reset() begins anew


def _warn(_: Any) -> None:
    """Warn if Dynamo has left a recurrent module or a sparse tensor out of a graph that was for this backend.

    PyTorch counts the graph breaks that it goes on from; at others it leaves out the whole function, of which a local
    variable, such as `self`, has the module.
    """
    is_new, has_sparse = _is_new(_REASON), _is_new(_SPARSE)
    traced = _traced()
    if traced is None or _innermost(traced["compiler_fn"]) is not backend:
        return
    if is_new or (not config.allow_rnn and any(map(_has_recurrent, traced.get("locals", {}).values()))):
        warnings.warn(_TEXT, stacklevel=2)
    if has_sparse or any(map(_has_sparse, traced.get("locals", {}).values())):
        warnings.warn(_SPARSE_TEXT, stacklevel=2)


def _traced() -> dict[str, Any] | None:
    """The variables of PyTorch's function that is tracing: the backend, and the variables of what is traced."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_locals.get("compiler_fn") is not None:
            return frame.f_locals
        frame = frame.f_back
    return None


def _has_recurrent(value: Any) -> bool:
    kinds = (nn.LSTM, nn.GRU, nn.RNN)
    return isinstance(value, nn.Module) and any(isinstance(part, kinds) for part in value.modules())


def _has_sparse(value: Any) -> bool:
    found = [value] if isinstance(value, torch.Tensor) else []
    found = [*value.parameters(), *value.buffers()] if isinstance(value, nn.Module) else found
    return any(tensor.layout is not torch.strided for tensor in found)


def _innermost(function: Any) -> Any:
    """The backend within PyTorch's wrappers."""
    for name in ("_torchdynamo_orig_backend", "_torchdynamo_orig_callable", "compiler_fn"):
        if (inner := getattr(function, name, None)) is not None:
            return _innermost(inner)
    return function


def watch() -> None:
    """Have Dynamo say when it has traced a function, also after `torch._dynamo.reset()`, which clears its callbacks."""
    clear = callback_handler.clear

    def clear_others() -> None:
        clear()
        callback_handler.register_end_callback(_warn)

    callback_handler.clear = clear_others
    callback_handler.register_end_callback(_warn)


__all__ = ["watch"]
