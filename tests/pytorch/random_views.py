# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random functions that return views: chains of view ops whose sizes, offsets and strides hold sizes of the call.

`python -m tests.pytorch --views` compares them with eager PyTorch at several sizes: numbers, strides, offsets, what a
write through a returned view changes, and gradients. Views, and values that are rounded once, have to be equal. Sines,
sums and gradients are compared with double precision: their error is at most four times that of eager PyTorch, and
eight units in the last place of the largest element.

Where a result differs, PyTorch's own `aot_eager` is asked, which runs the graph that our backend is given: what differs
there too is PyTorch's own defect, and no outcome of ours.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import torch

from shlo_disc.torch import backend

SIZES = ((4, 6), (5, 8), (9, 4), (3, 12))
"""Values of n and m at which a function is compared: its arguments are [n, m], [2 * n, m] with gaps, and [m]."""

PYTORCHS = "wrong in aot_eager too"
"""The outcome where PyTorch itself is at fault."""

View = Callable[[Any], Any]

_VIEWS: tuple[View, ...] = (
    lambda x: x[x.shape[0] // 2 :], lambda x: x[: (x.shape[0] + 1) // 2], lambda x: x[..., x.shape[-1] // 2 :],
    lambda x: x[..., : x.shape[-1] // 2 + 1], lambda x: x[::2], lambda x: x[..., ::2], lambda x: x[x.shape[0] - 1],
    lambda x: x.select(-1, x.shape[-1] // 2), lambda x: x[-1], lambda x: x[1:], lambda x: x[..., -2:],
    lambda x: x.mT if x.dim() > 1 else x, lambda x: x.movedim(0, -1), lambda x: x.unsqueeze(0),
    lambda x: x[None, :, None],
    lambda x: x.chunk(2, 0)[-1], lambda x: x.chunk(2, -1)[0], lambda x: x.split(max(1, x.shape[0] // 2), 0)[0],
    lambda x: x.narrow(0, x.shape[0] // 2, 1), lambda x: x.narrow(-1, x.shape[-1] - 1, 1),
    lambda x: x[:1].expand(x.shape[0], *x.shape[1:]), lambda x: x.expand(x.shape[0], *x.shape),
    lambda x: x[..., :1].expand(*x.shape[:-1], x.shape[0] + 1), lambda x: x.unbind(-1)[0] if x.dim() > 2 else x,
    lambda x: x.diagonal() if x.dim() > 1 else x, lambda x: x.diagonal(1, 0, -1) if x.dim() > 1 else x[1:],
    lambda x: x.unfold(-1, 1, 2), lambda x: x.unflatten(0, (1, -1)), lambda x: x.detach(),
    lambda x: x.view(x.shape) if x.dim() else x, lambda x: torch.broadcast_tensors(x, x[..., :1])[1],
    lambda x: x.as_strided((x.shape[0],), (x.stride(0),), x.storage_offset()), lambda x: x.squeeze(),
)  # fmt: skip
"""Views of one tensor of at least one axis."""

_COMPUTED: tuple[View, ...] = (
    lambda x: x * 2, lambda x: x.sin(), lambda x: (x + 1).t() if x.dim() == 2 else x + 1, lambda x: x.cumsum(0),
)  # fmt: skip
"""Functions of one tensor whose values are views of no argument."""

_ROUNDED = (1, 3)
"""Those of them that are not the same in every correct program."""


_CHANGES: tuple[Callable[[Any, Any], Any], ...] = (
    lambda x, y: x.mul_(0.5), lambda x, y: x[::2].mul_(2), lambda x, y: x[1:, ::3].add_(1), lambda x, y: y.mul_(0.5),
    lambda x, y: x.diagonal().mul_(4), lambda x, y: x[:, x.shape[1] // 2 :].copy_(y[:, : (x.shape[1] + 1) // 2]),
)  # fmt: skip
"""Changes of two arguments in place."""


class RandomViews:
    """The function of a seed. Its arguments are x [n, m], y [n, m] with gaps, z [m], and k, an index below n.

    changes: it changes x or y in place, by `change`, before it takes the views.
    """

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.changes = self.random.random() < 0.25
        self.breaks = self.random.random() < 0.15
        self.results = [self._result() for _ in range(self.random.randint(1, 3))]
        self.change = self.random.choice(_CHANGES)
        self.weight = torch.arange(40 * 16, dtype=torch.float32).reshape(40, 16) / 7

    def _result(self) -> tuple[str, bool, int, list[int]]:
        source = self.random.choice(("x", "x", "y", "z", "weight", "x[k]"))
        computed = self.random.randrange(len(_COMPUTED)) if self.random.random() < 0.3 else -1
        return source, self.random.random() < 0.2, computed, [
            self.random.randrange(len(_VIEWS)) for _ in range(self.random.randint(1, 4))
        ]  # fmt: skip

    def is_exact(self) -> list[bool]:
        """A truth value for each result: every correct program has the same numbers."""
        return [c not in _ROUNDED for _, both, c, _ in self.results for _ in range(2 if both else 1)]

    def __call__(self, x: Any, y: Any, z: Any, k: int) -> list[Any]:
        if self.changes:
            self.change(x, y)
        weight, found = self.weight.to(x.dtype), []
        for source, both, computed, views in self.results:
            value = {"x": x, "y": y, "z": z, "weight": weight[: x.shape[0]], "x[k]": x[k]}[source]
            if computed >= 0:
                value = _COMPUTED[computed](value)
            if both:
                found.append(value)
            for number, view in enumerate(views):
                if value.dim() == 0 or 0 in value.shape:
                    break
                if self.breaks and number == 1:
                    torch._dynamo.graph_break()
                value = _VIEWS[view](value)
            found.append(value)
        return found


def arguments(n: int, m: int) -> tuple[Any, ...]:
    """Arguments at a size, the same each time."""
    x, gaps = torch.arange(n * m * 1.0).reshape(n, m) / 3, torch.arange(4 * n * m * 1.0).reshape(2 * n, 2 * m) / 5
    return x, gaps[::2, ::2], torch.arange(m * 1.0), n // 2


def _layout(values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The layout that is compared beside the numbers of results; strides of axes of size 1 tell nothing."""
    strides = [[s for size, s in zip(v.shape, v.stride(), strict=True) if size > 1] for v in values]
    return [(v.shape, s, v.storage_offset()) for v, s in zip(values, strides, strict=True) if v.numel()]


def _write(values: Sequence[Any]) -> None:
    """Write through each view, as far as PyTorch lets one."""
    for number, value in enumerate(values):
        try:
            value.add_(number + 1)
        except RuntimeError:  # elements that share memory
            continue


def _is_near(mine: Any, other: Any, wanted: Any) -> bool:
    """Tells whether a tensor is as near to one of double precision as another one of single precision is."""
    if not wanted.numel():
        return True
    error, own = (float((v.double() - wanted).abs().max()) for v in (mine, other))
    return error <= 4 * own + 8 * torch.finfo(torch.float32).eps * float(wanted.abs().max())


def _doubled(values: Sequence[Any]) -> list[Any]:
    return [v.double() if isinstance(v, torch.Tensor) else v for v in values]


def difference(function: RandomViews, run: Any, n: int, m: int) -> str:
    """Describes the error at a size, "" where there is none."""
    ours, theirs, exact = arguments(n, m), arguments(n, m), _doubled(arguments(n, m))
    wanted, found, doubles = function(*theirs), run(*ours), function(*exact)
    if _layout(found) != _layout(wanted):
        return f"laid out as {_layout(found)}, not {_layout(wanted)}"
    are_exact = [*function.is_exact(), True, True, True]
    for when in ("", " after a write through the results"):
        rows = zip(are_exact, [*found, *ours[:3]], [*wanted, *theirs[:3]], [*doubles, *exact[:3]], strict=True)
        wrong = [
            number
            for number, (is_exact, *values) in enumerate(rows)
            if not (torch.equal(*values[:2]) if is_exact else _is_near(*values))
        ]
        if wrong:
            return f"the values {wrong}{when}"
        for results in (found, wanted, doubles):
            _write(results)
    return ""


def _gradients(function: Any, given: Sequence[Any]) -> list[Any]:
    given = [v.clone().requires_grad_() if isinstance(v, torch.Tensor) else v for v in given]
    results = [v for v in function(*given) if v.requires_grad]
    if not results:
        return []
    tensors = [v for v in given if isinstance(v, torch.Tensor)]
    total = sum((v.sin().sum() for v in results), torch.zeros(()))
    return list(torch.autograd.grad(total, tensors, allow_unused=True))


def gradients_differ(function: RandomViews, run: Any, n: int, m: int) -> str:
    """Describes the error in gradients at a size, "" where there is none."""
    given = arguments(n, m)
    found, wanted, doubles = _gradients(run, given), _gradients(function, given), _gradients(function, _doubled(given))
    for number, (mine, other, exact) in enumerate(zip(found, wanted, doubles, strict=True)):
        if (mine is None) != (other is None) or (other is not None and not _is_near(mine, other, exact)):
            return f"the gradient {number}"
    return ""


def judge(seed: int) -> tuple[str, str]:
    """The outcome of a seed's function, and what there is to say. An odd seed's calls begin with fixed sizes."""
    function = RandomViews(seed)
    said = f"{function.results}, changes: {function.changes and _CHANGES.index(function.change)}"
    for check in [difference] if function.changes else [difference, gradients_differ]:
        if text := _first_difference(seed, function, check, backend):
            is_pytorchs = _first_difference(seed, function, check, "aot_eager")
            return PYTORCHS if is_pytorchs else "WRONG", f"{check.__name__} {text}; {said}"
    return "agrees", ""


def _first_difference(seed: int, function: RandomViews, check: Any, by: Any) -> str:
    """The fault at the first size that has one, "" where there is none."""
    torch._dynamo.reset()
    run = torch.compile(function, backend=by, dynamic=None if seed % 2 else True)
    for n, m in SIZES:
        if text := _outcome(check, function, run, n, m):
            return f"at {n}, {m}: {text}"
    return ""


def _outcome(check: Any, function: RandomViews, run: Any, n: int, m: int) -> str:
    """Describes the error at a size; nothing where eager PyTorch itself refuses it."""
    try:
        function(*arguments(n, m))
    except (RuntimeError, IndexError):
        return ""
    return str(check(function, run, n, m))
