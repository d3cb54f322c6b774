# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tests.pytorch.samples [--count N] [--kind f32] [NAME ...]`: PyTorch's own samples of its ops.

Each sample is exported with symbolic sizes where PyTorch lets it, compiled, and compared with eager PyTorch; results in
half precision that differ by more than they may have to be nearer than its own to those in double precision. Needs the
package `expecttest`. Exit status 1 when a result is wrong, or something fails in another way than by a refusal.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import signal
import sys
import warnings
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

import shlo_disc
from tests.pytorch.judge import close

KINDS = {"f32": torch.float32, "i64": torch.int64, "bool": torch.bool, "bf16": torch.bfloat16, "c64": torch.complex64}

SECONDS = 60

_RANDOM = ("rand", "dropout", "normal", "bernoulli", "multinomial", "uniform", "exponential", "cauchy", "geometric",
           "empty", "rrelu", "multi_head_attention_forward")  # fmt: skip
"""Parts of names of ops whose results cannot be compared."""


class _Sample(torch.nn.Module):
    """A sample as a module of the tensors in it."""

    def __init__(self, function: Any, leaves: list[Any], structure: Any):
        super().__init__()
        self.function = function
        self.others = [None if isinstance(v, torch.Tensor) else v for v in leaves]
        self.places = [i for i, v in enumerate(leaves) if isinstance(v, torch.Tensor)]
        self.structure = structure

    def forward(self, *tensors: Any) -> Any:
        """The op at these tensors."""
        leaves = list(self.others)
        for place, value in zip(self.places, tensors, strict=True):
            leaves[place] = value
        args, kwargs = torch.utils._pytree.tree_unflatten(leaves, self.structure)
        return self.function(*args, **kwargs)


def _function(op: Any) -> Any:
    """A function of an op's comparable results: for the place of any of equal elements, the element there."""
    if op.name not in ("argsort", "sort", "topk"):
        return op.op

    def found(x: Any, *args: Any, **kwargs: Any) -> Any:
        result = op.op(x, *args, **kwargs)
        if kwargs.get("stable"):
            return result
        *values, indices = (result,) if op.name == "argsort" else result
        place = int(op.name == "topk")
        dim = args[place] if len(args) > place else kwargs.get("dim", -1)
        return *values, x.gather(dim, indices)

    return found


def judge(op: Any, sample: Any) -> tuple[str, str]:
    """The outcome of one sample, and what there is to say."""
    leaves, structure = torch.utils._pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
    tensors = [v.detach() for v in leaves if isinstance(v, torch.Tensor)]
    if not tensors:
        return "no tensors", ""
    module = _Sample(_function(op), leaves, structure)
    try:
        wanted = module(*[v.clone() for v in tensors])
        shapes = tuple(dict.fromkeys(range(v.dim()), torch.export.Dim.AUTO) for v in tensors)
        program = torch.export.export(module, tuple(tensors), dynamic_shapes=(shapes,))
    except Exception as error:
        return "not exported", str(error).split("\n", 1)[0]
    try:
        found = shlo_disc.compile(program)(*tensors)
    except shlo_disc.UnsupportedError as error:
        return "refused", error.message
    try:
        close(found, wanted, op.name)
    except AssertionError as error:
        return ("nearer", "") if _is_nearer(found, wanted, module, tensors) else ("WRONG", str(error))
    return "agrees", ""


def _is_nearer(found: Any, wanted: Any, module: _Sample, tensors: list[torch.Tensor]) -> bool:
    """Tells whether all of a result in half precision is nearer to that of the same numbers in double precision."""
    halves = (torch.bfloat16, torch.float16)
    flat = [torch.utils._pytree.tree_leaves(result) for result in (found, wanted)]
    if not all(isinstance(v, torch.Tensor) and v.dtype in halves for leaves in flat for v in leaves):
        return False
    exact = torch.utils._pytree.tree_leaves(module(*[v.double() if v.dtype in halves else v.clone() for v in tensors]))
    ours, theirs = ([_distance(v, e) for v, e in zip(leaves, exact, strict=True)] for leaves in flat)
    return all(mine <= other for mine, other in zip(ours, theirs, strict=True))


def _distance(value: torch.Tensor, exact: torch.Tensor) -> float:
    return float((value.double() - exact).abs().max())


_RIGHT = ("agrees", "nearer", "no tensors")


def _too_long(*_: Any) -> None:
    raise TimeoutError(f"over {SECONDS} s")


def main() -> int:
    """Run the samples."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--count", type=int, default=3, help="samples of each op")
    parser.add_argument("--kind", choices=KINDS, default="f32")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _too_long)
    counts: collections.Counter[str] = collections.Counter()
    kind = KINDS[chosen.kind]
    for op in op_db:
        if chosen.names and op.name not in chosen.names or kind not in op.supported_dtypes("cpu"):
            continue
        if any(part in op.name for part in _RANDOM):
            continue
        torch.manual_seed(0)
        for number, sample in enumerate(itertools.islice(op.sample_inputs("cpu", kind), chosen.count)):
            signal.alarm(SECONDS)
            try:
                outcome, text = judge(op, sample)
            except Exception as error:
                outcome, text = f"ERROR {type(error).__name__}", str(error)
            signal.alarm(0)
            counts[outcome] += 1
            if outcome not in _RIGHT:
                print(f"{op.name} {op.variant_test_name} {number}: {outcome}: {text[:400]}", flush=True)
    print(dict(counts))
    return int(any(o not in (*_RIGHT, "not exported", "refused") for o in counts))


if __name__ == "__main__":
    sys.exit(main())
