# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs that `bad_calls.py` calls wrongly, each with a call that is right."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import export

import shlo_disc


def layer(p: dict[str, Any], x: Any) -> dict[str, Any]:
    """Two results, a dict of parameters."""
    return {"n": x.sum(1), "y": x @ p["w"] + p["b"]}


@dataclass(frozen=True)
class Program:
    """A function with its specifications, and a call that is right."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    constraints: tuple[str, ...] = ()
    good: Callable[[], tuple[Any, ...]] = tuple


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Zeros."""
    return np.zeros(shape, dtype)


def steps(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """0, 1, 2, ..."""
    return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


def view(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """An array of any size with the memory of one element."""
    return np.broadcast_to(np.ones((), dtype), shape)


def params(rows: int, columns: int = 8) -> dict[str, np.ndarray]:
    """The parameters of `layer`."""
    return {"w": steps(rows, columns), "b": zeros(8)}


PROGRAMS = {
    "layer": Program(
        layer,
        ({"w": ("s, 8", "float32"), "b": ("8", "float32")}, ("b, s", "float32")),
        ("s <= 512", "mod(b, 4) == 0"),
        lambda: (params(3), steps(4, 3)),
    ),
    "at least": Program(lambda x: x + 1, (("s", "float32"),), ("s >= 8",), lambda: (steps(8),)),
    "order": Program(
        lambda x, y: x[: y.shape[0]] + y,
        (("a", "float32"), ("b", "float32")),
        ("a >= b",),
        lambda: (steps(5), steps(4)),
    ),
    "odd": Program(lambda x: x + 1, (("2*k + 3", "float32"),), (), lambda: (steps(5),)),
    "fifteen": Program(lambda x: x.reshape(3, 5) + 1, (("b", "float32"),), (), lambda: (steps(15),)),
    "outer": Program(
        lambda x, y: x[:, None].astype("float32") * y[None, :],
        (("b", "int8"), ("s", "float32")),
        (),
        lambda: (steps(3, dtype=np.int8), steps(4)),
    ),
    "copy": Program(lambda x: x.sum(), (("b, s", "int8"),), (), lambda: (steps(3, 4, dtype=np.int8),)),
    "cube": Program(lambda x: x + x.shape[0] ** 3, (("b", "float32"),), (), lambda: (steps(3),)),
    "scale": Program(lambda x, n: x * n, (("b", "float32"), ("", "int32")), (), lambda: (steps(3), 2)),
}


@functools.cache
def compiled(name: str) -> shlo_disc.Executable:
    """The program, compiled once."""
    program = PROGRAMS[name]
    return shlo_disc.compile(program.function, args=program.args, constraints=program.constraints)


@functools.cache
def exported(name: str) -> export.Exported:
    """The program in jax.export."""
    program = PROGRAMS[name]
    scope = export.SymbolicScope(program.constraints)

    def spec(leaf: Any) -> Any:
        return jax.ShapeDtypeStruct(export.symbolic_shape(leaf[0], scope=scope) if leaf[0] else (), leaf[1])

    is_pair = lambda node: isinstance(node, tuple) and isinstance(node[0], str)  # noqa: E731
    return export.export(jax.jit(program.function))(*jax.tree.map(spec, program.args, is_leaf=is_pair))
