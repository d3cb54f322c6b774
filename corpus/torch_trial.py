# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of PyTorch against eager: by `torch.compile(dynamic=True)`, by `torch.export`, and in training.

A result is right where it is as near to the model in double precision as eager PyTorch's is, with a margin.
"""

from __future__ import annotations

import copy
import logging
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree

import shlo_disc
from corpus.outcomes import refusal
from corpus.registry import Entry

_COMPILED = re.compile(r"^compiled .* ops, (\d+) kernels")
_MARGIN = 4.0
_ERROR = 5e-6
"""A share of the largest element, besides the margin: some forty units in the last place."""


class _Compiles(logging.Handler):
    """Counts the compiles that the logger `shlo_disc` tells of."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.kernels: list[int] = []
        logger = logging.getLogger("shlo_disc")
        logger.addHandler(self)
        logger.setLevel(logging.INFO)

    def emit(self, record: logging.LogRecord) -> None:
        if found := _COMPILED.match(record.getMessage()):
            self.kernels.append(int(found[1]))


def run_model(entry: Entry, sizes: Sequence[int]) -> dict[str, Any]:
    """The module of the first size with the arguments of each; the fields of `outcomes.Outcome`."""
    cases = [entry.build(size) for size in sizes]
    compiles = _Compiles()
    run = _train if entry.mode == "training" else _infer
    start = time.process_time()
    try:
        reference_seconds, text = run(entry, cases)
    except Exception as error:  # whatever it is, it is the outcome
        return refusal(_kind(error), f"{type(error).__name__}: {error}")
    return {
        "outcome": "wrong" if text else "right",
        "note": text,
        "programs": len(compiles.kernels),
        "kernels": compiles.kernels[-1] if compiles.kernels else 0,
        "seconds": time.process_time() - start - reference_seconds,
        "reference_seconds": reference_seconds,
    }


def _kind(error: Exception) -> str:
    """The outcome of an error; "reference fails" where `torch.export` itself refuses a model."""
    if isinstance(error, torch._dynamo.exc.UserError):
        return "reference fails"
    return "refused" if "nsupported" in f"{type(error)}{error}" else "error"


# ---- inference ------------------------------------------------------------------------------------------------------


def _infer(entry: Entry, cases: Sequence[Any]) -> tuple[float, str]:
    """The seconds that eager PyTorch takes, and what is wrong, "" where nothing is."""
    module, seconds = cases[0].module, 0.0
    exact = copy.deepcopy(module).double()
    with torch.no_grad():
        run = _by_export(cases[0]) if entry.mode == "export" else _by_compile(module)
        for case in cases:
            given = list(case.arguments.values())
            found = run(*given)
            start = time.process_time()
            single = module(*given)
            wanted = _called(exact, _doubled(given), single)
            seconds += time.process_time() - start
            if text := difference(_leaves(found), _leaves(single), _leaves(wanted)):
                return seconds, f"at {[list(v.shape) for v in given]}: {text}"
    return seconds, ""


def _called(exact: Any, given: Sequence[Any], single: Any) -> Any:
    """Results of a model in double precision, or in single precision where it has an op without doubles,
    such as grouped products."""
    try:
        return exact(*given)
    except RuntimeError:
        return single


def _by_compile(module: Any) -> Callable[..., Any]:
    return torch.compile(module, backend="shlo_disc", dynamic=True)


def _by_export(case: Any) -> Callable[..., Any]:
    axes = [case.dynamic.get(name, {}) for name in case.arguments]
    dynamic = tuple(dict.fromkeys(names, torch.export.Dim.DYNAMIC) for names in axes)
    program = torch.export.export(case.module, tuple(case.arguments.values()), dynamic_shapes=dynamic)
    return shlo_disc.compile(program)


# ---- training -------------------------------------------------------------------------------------------------------


def _train(_: Entry, cases: Sequence[Any]) -> tuple[float, str]:
    """A step of gradient descent with momentum at each size: the loss, the gradients and the weights behind it.

    Three models are trained: ours, eager PyTorch's, and one in double precision. Without dropout, whose random numbers
    are others.
    """
    models = [without_dropout(copy.deepcopy(cases[0].module)).train() for _ in range(3)]
    models[2] = models[2].double()
    calls = [_by_compile(models[0]), *models[1:]]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9) for model in models]
    seconds = 0.0
    for case in cases:
        given, steps = list(case.arguments.values()), []
        for number, (call, model, optimizer) in enumerate(zip(calls, models, optimizers, strict=True)):
            start = time.process_time()
            steps.append(_step(call, model, optimizer, _doubled(given) if number == 2 else given))
            seconds += time.process_time() - start if number else 0.0
        for what, *groups in zip(("loss", "gradients", "weights"), *steps, strict=True):
            if text := difference(*groups, together=True):
                return seconds, f"{what} at {[list(v.shape) for v in given]}: {text}"
    return seconds, ""


def _step(call: Callable[..., Any], model: Any, optimizer: Any, given: Sequence[Any]) -> tuple[list[Any], ...]:
    """The loss, the gradients, and the weights and buffers behind a step; a gradient that there is none of is empty."""
    optimizer.zero_grad()
    rows = _leaves(call(*given))[0]
    rows = rows.reshape(-1, rows.shape[-1])
    loss = torch.nn.functional.cross_entropy(rows, torch.arange(len(rows)) % rows.shape[-1])
    loss.backward()
    gradients = [torch.zeros(0) if p.grad is None else p.grad.clone() for p in model.parameters()]
    optimizer.step()
    return [loss.detach()], gradients, [v.detach().clone() for v in model.state_dict().values()]


def without_dropout(model: Any) -> Any:
    """A model without its dropouts, whether they are modules, or numbers that a module has for them."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        for name, value in vars(module).items():
            if isinstance(value, float) and re.search("drop", name):
                setattr(module, name, 0.0)
    return model


# ---- comparing ------------------------------------------------------------------------------------------------------


def _doubled(values: Sequence[Any]) -> list[Any]:
    return [v.double() if v.is_floating_point() else v for v in values]


def _leaves(result: Any) -> list[Any]:
    return [leaf for leaf in _pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]


def difference(found: Sequence[Any], single: Sequence[Any], exact: Sequence[Any], together: bool = False) -> str:
    """The fault of results, "" where there is none. together: their errors are compared with the largest of all,
    such as those of gradients that are 0 but for rounding."""
    if [(v.shape, v.dtype) for v in found] != [(v.shape, v.dtype) for v in single]:
        return "other shapes or dtypes"
    sizes = [float(v.abs().max()) if v.numel() else 0.0 for v in exact]
    for number, values in enumerate(zip(found, single, exact, strict=True)):
        if not values[0].numel():
            continue
        error, own = (float((v.double() - values[2]).abs().max()) for v in values[:2])
        size = max(sizes) if together else sizes[number]
        if not error <= _MARGIN * own + _ERROR * size:  # NaN is wrong too
            return f"result {number} is {error:.1e} from double precision, eager {own:.1e}, of {size:.1e}"
    return ""
