# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exporting recurrent modules for any length.

`torch.export` fixes the length of what LSTM, GRU and RNN walk along. Inside of `as_scans` these modules are scans over
their rows, whose length stays a symbol: the products with all rows come first, the scan has those with the state.
"""

from __future__ import annotations

import inspect
import re
import threading
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch._dynamo.config
import torch.nn.functional as F
from torch import nn
from torch._dynamo.exc import UserError
from torch._higher_order_ops import scan
from torch.utils._pytree import tree_leaves, tree_map

from shlo_disc.errors import ProgramError
from shlo_disc.options import check_names
from shlo_disc.torch.branches import recorded_branches

_lock = threading.RLock()


def _apart(examples: Any) -> Any:
    """The examples, with a copy where a tensor stands again: PyTorch would take it for one argument."""
    seen: set[int] = set()

    def own(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or id(value) not in seen:
            seen.add(id(value))
            return value
        return value.detach().clone().requires_grad_(value.requires_grad)

    return tree_map(own, examples)


def export(
    module: nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    **options: Any,
) -> torch.export.ExportedProgram:
    """`torch.export.export`, with recurrent modules whose length may be a symbol, and guards for branches on sizes.

    The program refuses sizes for which a comparison in the module, such as `x.shape[0] == 1`, has another outcome than
    in the export, but for comparisons with 0. Raises the same errors, with a note where PyTorch fixes a size,
    OptionError for options that it does not have, and ProgramError where an example is a list in place of a tensor, or
    has a size of 0 or 1 that is dynamic.
    """
    parameters = inspect.signature(torch.export.export).parameters.values()
    known = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    check_names(options, known, "shlo_disc.torch.export")
    try:
        examples, named = _apart((args, dict(kwargs or {})))
        with as_scans(), recorded_branches():
            return torch.export.export(module, examples, named, dynamic_shapes=dynamic_shapes, **options)
    except (TypeError, AttributeError) as error:
        given = {**{f"args[{i}]": value for i, value in enumerate(args)}, **(kwargs or {})}
        for name, value in given.items():
            if isinstance(value, list | tuple) and not any(isinstance(v, torch.Tensor) for v in tree_leaves(value)):
                raise ProgramError(
                    f"the example {name} is {value!r:.60}, and PyTorch cannot export the module with it: where forward "
                    "takes a tensor give one, as torch.tensor([...]) or torch.ones(2, 4), and sizes in dynamic_shapes="
                ) from error
        raise
    except (UserError, ValueError) as error:
        if found := _FIXED.search(str(error)):
            raise ProgramError(
                f"the example has a size of {found['size'] or found['hint']}{_names_of_sizes(str(error))} that is "
                "dynamic, and PyTorch fixes sizes of 0 and 1 of examples: give an example in which it is 2 or more, as "
                "torch.randn(2, ...); the program takes sizes of 1 then, too, but where the module branches on them, "
                "as in `if x.shape[0] == 1`: for a program of that branch give Dim.STATIC for this axis in "
                "dynamic_shapes=, or write the branch with torch.cond"
            ) from error
        if "specialized it to be a constant" in str(error):
            error.add_note(
                "Forms that serve every size, in place of functions whose sizes PyTorch fixes, are in docs/torch.md, "
                'under "Sizes that PyTorch fixes".'
            )
        raise


_FIXED = re.compile(r"specialized it to be a constant \((?P<size>[01])\)|0/1 specialized due to hint of (?P<hint>[01])")
"""PyTorch's words about a dynamic size that is 0 or 1 in the example."""


def _names_of_sizes(text: str) -> str:
    """The names of the sizes that an error of PyTorch's is about, in parentheses; "" where it has none."""
    names = re.findall(r"marked (\S+) as dynamic but your code specialized it to be a constant \([01]\)", text)
    names += [
        f"{name}{rest}" for name, rest in re.findall(r"for dimension inputs\['(\w+)'\](\S*?)\.?$", text, re.MULTILINE)
    ]
    return f" ({', '.join(dict.fromkeys(names))})" if names else ""


@contextmanager
def as_scans() -> Iterator[None]:
    """A context in which `nn.LSTM`, `nn.GRU` and `nn.RNN`, but not subclasses with a `forward`, compute scans.

    Modules that you export inside, or call there for the first time under `torch.compile`, have these scans in their
    graphs.
    """
    kinds = (nn.LSTM, nn.GRU, nn.RNN)
    with _lock:
        plain = [kind.forward for kind in kinds]
        for kind, forward in zip(kinds, plain, strict=True):
            kind.forward = _by_scan(forward)
        try:
            with torch._dynamo.config.patch(allow_rnn=True):  # else Dynamo leaves them out of its graphs
                yield
        finally:
            for kind, forward in zip(kinds, plain, strict=True):
                kind.forward = forward


def _by_scan(plain: Callable[..., Any]) -> Callable[..., Any]:
    def forward(self: Any, input: Any, hx: Any = None) -> Any:
        if isinstance(input, nn.utils.rnn.PackedSequence):
            return plain(self, input, hx)
        is_batched = input.dim() == 3
        x = input if is_batched else input.unsqueeze(1)
        x = x.transpose(0, 1) if self.batch_first and is_batched else x
        states = _states(self, x, hx, is_batched)
        found, last = _layers(self, x, states)
        found = found.transpose(0, 1) if self.batch_first and is_batched else found
        if not is_batched:
            found, last = found.squeeze(1), [s.squeeze(1) for s in last]
        return found, (tuple(last) if isinstance(self, nn.LSTM) else last[0])

    return forward


def _states(module: Any, x: Any, hx: Any, is_batched: bool) -> list[Any]:
    """The states before the first row, [layers * directions, b, size] each."""
    count = module.num_layers * (2 if module.bidirectional else 1)
    if hx is None:
        sizes = [module.proj_size or module.hidden_size, module.hidden_size][: 2 if isinstance(module, nn.LSTM) else 1]
        return [x.new_zeros(count, x.shape[1], size) for size in sizes]
    given = list(hx) if isinstance(module, nn.LSTM) else [hx]
    return given if is_batched else [s.unsqueeze(1) for s in given]


def _layers(module: Any, x: Any, states: Sequence[Any]) -> tuple[Any, list[Any]]:
    directions = 2 if module.bidirectional else 1
    last: list[list[Any]] = []
    for layer in range(module.num_layers):
        outputs = []
        for direction in range(directions):
            number = layer * directions + direction
            weights = _weights(module, layer, direction)
            rows = x.flip(0) if direction else x
            found, end = _one(module, rows, [s[number] for s in states], weights)
            outputs.append(found.flip(0) if direction else found)
            last.append(end)
        x = torch.cat(outputs, -1) if directions == 2 else outputs[0]
        if module.training and module.dropout and layer + 1 < module.num_layers:
            x = F.dropout(x, module.dropout)
    return x, [torch.stack(parts) for parts in zip(*last, strict=True)]


def _weights(module: Any, layer: int, direction: int) -> dict[str, Any]:
    suffix = f"_l{layer}{'_reverse' if direction else ''}"
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
    return {name: getattr(module, name + suffix, None) for name in names}


def _one(module: Any, x: Any, start: list[Any], w: dict[str, Any]) -> tuple[Any, list[Any]]:
    """One layer in one direction: its results at all rows, and the states after the last one."""
    inputs = F.linear(x, w["weight_ih"], w["bias_ih"])
    step = _lstm if isinstance(module, nn.LSTM) else _gru if isinstance(module, nn.GRU) else _rnn(module.nonlinearity)

    def combine(state: Any, row: Any) -> Any:
        new = step(state, row, w)
        return new, new[0].clone()

    run = scan if torch.compiler.is_dynamo_compiling() else _anew(scan)
    end, found = run(combine, [s.clone() for s in start], inputs, dim=0)
    return found, end


def _anew(function: Any) -> Any:
    """The function with code of its own, also for the functions within it.

    Dynamo, which `scan` calls, keeps what it has compiled by code. To look it up it would compare the sizes of that
    with those of an export, which then holds for other sizes only.
    """
    code = function.__code__
    constants = (c.replace() if isinstance(c, types.CodeType) else c for c in code.co_consts)
    copy = types.FunctionType(code.replace(co_consts=tuple(constants)), function.__globals__)
    copy.__defaults__, copy.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return copy


def _lstm(state: Any, row: Any, w: dict[str, Any]) -> list[Any]:
    hidden, cell = state
    gates = row + F.linear(hidden, w["weight_hh"], w["bias_hh"])
    enter, forget, content, leave = gates.chunk(4, -1)
    cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(content)
    hidden = torch.sigmoid(leave) * torch.tanh(cell)
    return [hidden if w["weight_hr"] is None else F.linear(hidden, w["weight_hr"]), cell]


def _gru(state: Any, row: Any, w: dict[str, Any]) -> list[Any]:
    (hidden,) = state
    own = F.linear(hidden, w["weight_hh"], w["bias_hh"])
    (reset, update, new), (own_reset, own_update, own_new) = row.chunk(3, -1), own.chunk(3, -1)
    update = torch.sigmoid(update + own_update)
    new = torch.tanh(new + torch.sigmoid(reset + own_reset) * own_new)
    return [(1 - update) * new + update * hidden]


def _rnn(nonlinearity: str) -> Callable[..., list[Any]]:
    function = torch.tanh if nonlinearity == "tanh" else torch.relu

    def step(state: Any, row: Any, w: dict[str, Any]) -> list[Any]:
        return [function(row + F.linear(state[0], w["weight_hh"], w["bias_hh"]))]

    return step
