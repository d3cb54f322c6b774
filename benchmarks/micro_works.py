# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory-bound programs of `examples.micro` and their gradients as works, over 20 shapes."""

from __future__ import annotations

import functools
from typing import Any

import jax

from benchmarks.micro import SHAPES, SMALL_SHAPES
from benchmarks.works import Work
from examples import micro
from examples.model import export_function, symbolic_sizes

TITLES = {
    "softmax": "softmax",
    "layernorm": "layer norm",
    "gelu_bias": "bias and GELU",
    "rmsnorm_rope": "RMS norm and rotation",
    "cross_entropy": "cross-entropy",
}


def work(name: str, small: bool) -> Work:
    """The program called `name`, or its gradient when the name ends in "_gradient"."""
    program = name.removesuffix("_gradient")
    gradient = program != name
    text = micro.PROGRAMS[program].dims
    dims = text.replace("2*", "")
    shapes = SMALL_SHAPES if small else SHAPES
    halved = 2 if dims != text else 1

    def export(dims: str = dims) -> jax.export.Exported:
        rows, columns = symbolic_sizes(dims)
        inputs = micro.specs(program, rows, halved * columns, gradient=gradient)
        return export_function(function, {}, inputs)

    def function(params: Any, *inputs: jax.Array) -> Any:
        return micro.function(program, gradient)(*inputs)

    return Work(
        name=name,
        title=TITLES[program] + (", gradient" if gradient else ""),
        dims=dims,
        shapes=[(rows, columns // halved) for rows, columns in shapes],
        function=function,
        export=export,
        init=dict,
        make_inputs=lambda rows, columns: micro.make_inputs(program, rows, halved * columns, gradient=gradient),
        limits=(4096, 16384),
        torch_model="micro",
        small=small,
        config={"program": program, "epsilon": micro.EPSILON},
        padded=() if gradient else ("n",),
        pullback=micro.PROGRAMS[program].differentiated if gradient else 0,
    )


WORKS = {name: functools.partial(work, name) for name in [*TITLES, *(f"{name}_gradient" for name in TITLES)]}
"""The works by name; the argument chooses small shapes."""
