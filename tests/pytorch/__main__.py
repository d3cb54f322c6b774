# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tests.pytorch --seed S --count N [--compile]`: random modules beside PyTorch in double precision.

With `--views` they are random functions that return views, beside eager PyTorch (`random_views.py`). Else a result
agrees where it is PyTorch's in single precision, or as near to double precision as that, with a margin. Exit status 1
when one does not, or when anything but PyTorch's own export fails.
"""

from __future__ import annotations

import argparse
import collections
import copy
import sys
import warnings
from typing import Any

import torch

import shlo_disc
from shlo_disc.torch import backend
from tests.pytorch import random_views
from tests.pytorch.random_modules import SIZES, RandomModule

_MARGIN = 30.0
_FINE = ("agrees", "not exported", "refused", random_views.PYTORCHS)


def difference(found: Any, single: Any, exact: Any) -> str:
    """Describes the error in results, "" where there is none."""
    for number, (mine, other, wanted) in enumerate(zip(found, single, exact, strict=True)):
        if mine.shape != other.shape or mine.dtype != other.dtype:
            return f"result {number} is {mine.dtype}{list(mine.shape)}, not {other.dtype}{list(other.shape)}"
        if not mine.numel():
            continue
        if not torch.equal(mine.isfinite(), other.isfinite()):
            return f"result {number} is not finite at other places"
        scale = float(wanted.abs().nan_to_num(0, 0, 0).max()) + 1.0
        error, own = (float((v.double() - wanted).abs().nan_to_num(0, 0, 0).max()) for v in (mine, other))
        apart = float((mine - other).abs().nan_to_num(0, 0, 0).max())
        if apart > 1e-5 * scale and error > _MARGIN * own + 1e-5 * scale:
            return f"result {number} is {error:.3g} from double precision, PyTorch's {own:.3g} (numbers to {scale:.3g})"
    return ""


def judge(seed: int, by_compile: bool) -> tuple[str, str]:
    """The outcome of a seed's module, and what there is to say."""
    module = RandomModule(seed).eval()
    exact = copy.deepcopy(module).double()
    x = torch.randn(4, 7, module.width)
    torch._dynamo.reset()
    if by_compile:
        run: Any = torch.compile(module, backend=backend, dynamic=True)
    else:
        dims = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
        try:
            program = torch.export.export(module, (x,), dynamic_shapes=(dims,))
        except Exception as error:
            return "not exported", str(error).split("\n", 1)[0]
        try:
            run = shlo_disc.compile(program)
        except shlo_disc.UnsupportedError as error:
            return "refused", error.message
    for sizes in SIZES:
        x = torch.randn(*sizes, module.width)
        with torch.no_grad():
            single, wanted = module(x), exact(x.double())
            found = run(x)
        text = difference(found, single, wanted)
        if text:
            return "WRONG", f"at {sizes}: {text}"
    return "agrees", ""


def main() -> int:
    """Run the seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--compile", action="store_true", help="by torch.compile")
    parser.add_argument("--views", action="store_true", help="functions that return views, by torch.compile")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    counts: collections.Counter[str] = collections.Counter()
    for seed in range(chosen.seed, chosen.seed + chosen.count):
        try:
            outcome, text = random_views.judge(seed) if chosen.views else judge(seed, chosen.compile)
        except Exception as error:
            outcome, text = f"ERROR {type(error).__name__}", str(error)[:600]
        counts[outcome] += 1
        if outcome != "agrees":
            print(f"seed {seed}: {outcome}: {text}", flush=True)
        elif sum(counts.values()) % 50 == 0:
            print(f"{sum(counts.values())} of {chosen.count}: {dict(counts)}", flush=True)
    print(dict(counts))
    return int(any(outcome not in _FINE for outcome in counts))


if __name__ == "__main__":
    sys.exit(main())
