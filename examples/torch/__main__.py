# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m examples.torch [NAME ...]`: models exported and by torch.compile, beside PyTorch at ten sizes and more.

By torch.compile sizes of 1 are left out: Dynamo compiles them apart.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

import shlo_disc

if not __package__:
    sys.exit("run it from the folder of the repository as a module: python -m examples.torch tagger")

from examples.torch import bert, conformer, gpt2, resnet, tagger, training
from shlo_disc.torch import as_scans, backend, graph_count

TOLERANCE = 1e-4


class Model(NamedTuple):
    """A module, its arguments at some sizes, which of their axes are symbols, and the sizes."""

    make: Callable[[], torch.nn.Module]
    arguments: Callable[..., tuple[Any, ...]]
    dims: Any
    sizes: tuple[tuple[int, ...], ...]


MODELS = {
    "bert": Model(bert.Bert, bert.arguments, bert.DIMS, bert.SIZES),
    "gpt2": Model(gpt2.Gpt2, gpt2.arguments, gpt2.DIMS, gpt2.SIZES),
    "resnet": Model(resnet.ResNet, resnet.arguments, resnet.DIMS, resnet.SIZES),
    "conformer": Model(conformer.Conformer, conformer.arguments, conformer.DIMS, conformer.SIZES),
    "tagger": Model(tagger.Tagger, tagger.arguments, tagger.DIMS, tagger.SIZES),
}


def difference(found: Any, wanted: Any) -> float:
    """The largest difference, relative to the largest number."""
    pairs = zip(*map(torch.utils._pytree.tree_leaves, (found, wanted)), strict=True)
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)


def compiled(module: torch.nn.Module, model: Model, by_compile: bool) -> tuple[Any, Callable[[], int]]:
    """The compiled module, and what counts its compiles."""
    if by_compile:
        start = graph_count()
        return torch.compile(module, backend=backend, dynamic=True), lambda: graph_count() - start
    program = torch.export.export(module, model.arguments(*model.sizes[0]), dynamic_shapes=model.dims)
    run: Any = shlo_disc.compile(program)
    return run, lambda: run.compile_count


def show(name: str, model: Model, by_compile: bool) -> bool:
    """Run a model at its sizes; whether all agree and it was compiled once."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    module = model.make().eval()
    start = time.perf_counter()
    sizes = [s for s in model.sizes if not by_compile or 1 not in s]
    values = [model.arguments(*s) for s in sizes]
    with torch.no_grad():
        with as_scans():  # recurrent modules of any length
            run, count = compiled(module, model, by_compile)
            found = [run(*v) for v in values]
        worst = max(difference(f, module(*v)) for f, v in zip(found, values, strict=True))
    way = "torch.compile" if by_compile else "exported"
    seconds = time.perf_counter() - start
    text = f"{len(sizes)} sizes, {count()} compile, {worst:.1e} apart, {seconds:.1f} s"
    print(f"{name:12} {way:14} {text}", flush=True)
    return worst <= TOLERANCE and count() == 1


def main() -> int:
    """Run the models named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join([*MODELS, *training.STEPS])}")
    names = parser.parse_args().names or [*MODELS, *training.STEPS]
    warnings.simplefilter("ignore")
    good = [show(n, MODELS[n], by_compile) for n in names if n in MODELS for by_compile in (False, True)]
    good += [training.show(n) for n in names if n in training.STEPS]
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
