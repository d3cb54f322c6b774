# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs: chains of elementwise ops, reductions, moves and dots over two symbols, against XLA.

What to do next is drawn from the axes' names ("m", "n" or a number), never from their sizes, so that one seed gives one
program for every shape. Values stay within [-4, 4] to keep the comparison sharp; integers are exact.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

from tests.run.op_check import assert_same, compile_function, random_array, run_xla

Names = tuple[str | int, ...]
PAIRS = ((1, 1), (2, 3), (1, 17), (16, 5), (33, 16), (7, 40))


@dataclass
class Term:
    """A value and the names of its axes."""

    value: jax.Array
    names: Names


class Generator:
    """One program: `seed` decides every step."""

    def __init__(self, seed: int, m: Any, n: Any, terms: list[Term], integers: bool):
        self.random = random.Random(seed)
        self.sizes = {"m": m, "n": n}
        self.terms = terms
        self.integers = integers

    def size(self, name: str | int) -> Any:
        return self.sizes[name] if isinstance(name, str) else name

    def run(self, steps: int) -> list[jax.Array]:
        """The last values of `steps` random ops."""
        makers: list[Callable[[Term], Term | None]] = [
            self.unary, self.unary, self.binary, self.binary, self.binary, self.reduce, self.reduce, self.normalise,
            self.transpose, self.broadcast, self.reverse, self.concatenate, self.pad, self.slice, self.dot,
            self.flatten, self.select,
        ]  # fmt: skip
        for _ in range(steps):
            made = self.random.choice(makers)(self.pick())
            if made is not None:
                self.terms.append(made)
        return [t.value for t in self.terms[-4:]]

    def pick(self) -> Term:
        return self.random.choice(self.terms[-6:])

    def bounded(self, value: jax.Array) -> jax.Array:
        return jnp.clip(value, -4, 4) if not self.integers else value

    def unary(self, t: Term) -> Term:
        floats = [jnp.tanh, jnp.sin, lambda v: jnp.sqrt(abs(v)), jnp.exp, lambda v: jax.nn.relu(v), lambda v: -v]
        whole = [lambda v: -v, abs, lambda v: v * 3 - 1, jnp.sign, lambda v: v >> 1]
        return Term(self.bounded(self.random.choice(whole if self.integers else floats)(t.value)), t.names)

    def matching(self, t: Term) -> jax.Array:
        """A value that broadcasts to the shape of `t`."""
        fitting = [o for o in self.terms if _stretches(o.names, t.names)]
        return self.random.choice(fitting or [t]).value

    def binary(self, t: Term) -> Term:
        function = self.random.choice([jnp.add, jnp.multiply, jnp.maximum, jnp.minimum, jnp.subtract])
        return Term(self.bounded(function(t.value, self.matching(t))), t.names)

    def select(self, t: Term) -> Term:
        return Term(jnp.where(t.value > self.matching(t), t.value, self.matching(t)), t.names)

    def reduce(self, t: Term) -> Term | None:
        if not t.names:
            return None
        axes = tuple(sorted(self.random.sample(range(len(t.names)), self.random.randint(1, len(t.names)))))
        keep = self.random.random() < 0.5
        function = self.random.choice([jnp.max, jnp.min, jnp.sum] if self.integers else [jnp.max, jnp.min, jnp.mean])
        names = tuple(1 if i in axes else d for i, d in enumerate(t.names) if keep or i not in axes)
        value = function(t.value, axis=axes, keepdims=keep)
        return Term(value.astype(t.value.dtype), names)

    def normalise(self, t: Term) -> Term | None:
        if not t.names or self.integers:
            return None
        return Term(jax.nn.softmax(t.value, self.random.randrange(len(t.names))), t.names)

    def transpose(self, t: Term) -> Term:
        order = self.random.sample(range(len(t.names)), len(t.names))
        return Term(jnp.transpose(t.value, order), tuple(t.names[i] for i in order))

    def broadcast(self, t: Term) -> Term | None:
        if len(t.names) > 2:
            return None
        name: str | int = self.random.choice(["m", "n", 1, 2])
        at = self.random.randint(0, len(t.names))
        names = (*t.names[:at], name, *t.names[at:])
        shape = tuple(self.size(d) for d in names)
        kept = tuple(i for i in range(len(names)) if i != at)
        return Term(lax.broadcast_in_dim(t.value, shape, kept), names)

    def reverse(self, t: Term) -> Term | None:
        return Term(jnp.flip(t.value, self.random.randrange(len(t.names))), t.names) if t.names else None

    def concatenate(self, t: Term) -> Term | None:
        """Twice as long, then every second element: the sizes stay what they were."""
        if not t.names:
            return None
        axis = self.random.randrange(len(t.names))
        both = jnp.concatenate([t.value, self.unary(t).value], axis)
        return Term(lax.slice_in_dim(both, 1, None, 2, axis), t.names)

    def pad(self, t: Term) -> Term | None:
        if not t.names:
            return None
        low = [self.random.choice([-1, 0, 1]) for _ in t.names]
        return Term(lax.pad(t.value, t.value.dtype.type(1), [(a, -a, 0) for a in low]), t.names)

    def slice(self, t: Term) -> Term | None:
        if not t.names:
            return None
        axis = self.random.randrange(len(t.names))
        start = t.value[(0,) * len(t.names)].astype(jnp.int32)
        part = lax.dynamic_slice_in_dim(t.value, start, 1, axis)
        return Term(part, tuple(1 if i == axis else d for i, d in enumerate(t.names)))

    def dot(self, t: Term) -> Term | None:
        if not t.names:
            return None
        axis = self.random.randrange(len(t.names))
        if not isinstance(t.names[axis], str):
            return None
        value = jnp.tensordot(t.value, t.value, ((axis,), (axis,))) / (1 if self.integers else self.size(t.names[axis]))
        rest = tuple(d for i, d in enumerate(t.names) if i != axis)
        names = rest + rest
        return Term(self.bounded(value.astype(t.value.dtype)), names) if len(names) <= 3 else None

    def flatten(self, t: Term) -> Term | None:
        """Through one axis and back in another order of sizes."""
        if len(t.names) < 2:
            return None
        order = self.random.sample(range(len(t.names)), len(t.names))
        names = tuple(t.names[i] for i in order)
        flat = self.unary(Term(t.value.reshape(-1), ())).value
        return Term(flat.reshape(tuple(self.size(d) for d in names)), names)


def _stretches(names: Names, target: Names) -> bool:
    own = target[len(target) - len(names) :]
    return len(names) <= len(target) and all(a in (b, 1) for a, b in zip(names, own, strict=True))


def program(seed: int, steps: int, integers: bool) -> Callable[..., Any]:
    def function(x: jax.Array, y: jax.Array) -> list[jax.Array]:
        terms = [Term(x, ("m", "n")), Term(y, ("n",))]
        return Generator(seed, x.shape[0], x.shape[1], terms, integers).run(steps)

    return function


def check_program(seed: int) -> None:
    integers = seed % 3 == 0
    dtype = ("int32", "float32", "float32")[seed % 3]
    function = program(seed, 6 + seed % 20, integers)
    executable = compile_function(function, [("m, n", dtype), ("n", dtype)])
    for m, n in PAIRS[seed % 2 :: 2]:
        arguments = [random_array(shape, dtype, seed) for shape in ((m, n), (n,))]
        want = run_xla(function, arguments)
        try:
            assert_same(executable(*arguments), want, 0 if integers else 4096, floor=1.0)
        except AssertionError as error:
            raise AssertionError(f"seed {seed} at {(m, n)}: {error}") from None
    fixed = compile_function(function, [("m, n", dtype), ("n", dtype)], {"m": m, "n": n})
    assert_same(fixed(*arguments), executable(*arguments), 0 if integers else 4096, floor=1.0)
    assert all(np.asarray(w).dtype == np.dtype(dtype) for w in want)


@pytest.mark.parametrize("seed", range(24))
def test_program(seed: int) -> None:
    check_program(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24, 400))
def test_more_programs(seed: int) -> None:
    check_program(seed)
