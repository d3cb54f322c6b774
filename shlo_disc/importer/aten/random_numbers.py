# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random numbers. A call draws one key from PyTorch's generator, and each op of it counts on from a place of its own.

The bits are Threefry's (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"): numbers are of the same
distributions as PyTorch's, and follow from `torch.manual_seed`, but they are not the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.build import shape_tensor
from shlo_disc.shape_dialect.dialect.types import dims_of, tensor_type
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.random import DYNAMIC

from .graph import Graph, working
from .ordering import ordered
from .table import Translate, translates

DRAWING: set[str] = set()
"""The overloads that need a key."""


def draws(*names: str) -> Callable[[Translate], Translate]:
    """Makes a function the translation of overloads that need a key."""
    DRAWING.update(name if "." in name else f"{name}.default" for name in names)
    return translates(*names)


def bits(t: Graph) -> ir.Value:
    """32 random bits (ui32) for each element of the op's result."""
    key, number = t.next_draw()
    state = build.add(key, _place(t, number))
    word = t.element(torch.uint32)
    types = [state.type, tensor_type(t.dims, word)]
    attributes: dict[str, ir.Attribute] = {
        "rng_algorithm": ir.Attribute.parse("#stablehlo<rng_algorithm THREE_FRY>"),
    }
    if all(d.constant is not None for d in t.dims):
        op = ir.Operation.create("stablehlo.rng_bit_generator", types, [state], attributes)
    else:
        attributes["call_target_name"] = ir.StringAttr.get(DYNAMIC)
        op = ir.Operation.create("stablehlo.custom_call", types, [state, shape_tensor(t.dims)], attributes)
    return op.results[1]


def _place(t: Graph, number: int) -> ir.Value:
    """The start of an op's counter: 2^40 numbers from that of the op before."""
    type_ = ir.RankedTensorType.get([2], t.element(torch.uint64))
    element = t.element(torch.uint64)
    value = ir.DenseElementsAttr.get([ir.IntegerAttr.get(element, n) for n in (0, number << 40)], type_)
    return build.dense(value)


def uniform(t: Graph, kind: torch.dtype) -> ir.Value:
    """Numbers from 0 up to 1, which is none of them, 24 bits of each."""
    shift = t.constant(8, torch.uint32, t.dims)
    high = t.convert(build.shift_right_logical(bits(t), shift), kind)
    return build.multiply(high, t.constant(2.0**-24, kind, t.dims))


def normal(t: Graph, kind: torch.dtype) -> ir.Value:
    """Normally distributed numbers, by the inverse of the distribution at the middles of equal parts."""
    middle = build.add(uniform(t, kind), t.constant(2.0**-25, kind, t.dims))
    both = build.multiply(middle, t.constant(2, kind, t.dims))
    centred = build.subtract(both, t.constant(1, kind, t.dims))
    found = build.erf_inv(centred)
    return build.multiply(found, t.constant(math.sqrt(2), kind, t.dims))


def _kind(t: Graph) -> torch.dtype:
    return working(t.dtype) if t.dtype.is_floating_point else torch.float32


def _below(t: Graph, probability: Any) -> ir.Value:
    """True with a probability, a number or one for each element."""
    return t.compare("LT", uniform(t, torch.float32), t.operand(probability, torch.float32))


@draws("rand", "rand_like")
def rand(t: Graph, *_: Any) -> ir.Value:
    """Uniformly distributed from 0 to 1."""
    return t.convert(uniform(t, _kind(t)), t.dtype)


@draws("randn", "randn_like")
def randn(t: Graph, *_: Any) -> ir.Value:
    """Normally distributed with mean 0 and standard deviation 1."""
    return t.convert(normal(t, _kind(t)), t.dtype)


@draws("uniform")
def uniform_between(t: Graph, _: ir.Value, low: Any = 0.0, high: Any = 1.0, *__: Any) -> ir.Value:
    """Uniformly distributed between two numbers."""
    kind = _kind(t)
    width = build.subtract(t.operand(high, kind), t.operand(low, kind))
    found = build.multiply(uniform(t, kind), width)
    return t.convert(build.add(found, t.operand(low, kind)), t.dtype)


@draws("normal_functional")
def normal_about(t: Graph, _: ir.Value, mean: Any = 0.0, deviation: Any = 1.0, *__: Any) -> ir.Value:
    """Normally distributed with the given mean and standard deviation."""
    kind = _kind(t)
    found = build.multiply(normal(t, kind), t.operand(deviation, kind))
    return t.convert(build.add(found, t.operand(mean, kind)), t.dtype)


@draws("randint", "randint.low", "randint_like", "randint_like.low_dtype")
def randint(t: Graph, *arguments: Any) -> ir.Value:
    """Integers from `low` to `high` - 1, for a range below 2^24."""
    name = str(t.node.target)
    numbers = arguments[1:] if "_like" in name else arguments
    low, high = (numbers[0], numbers[1]) if ".low" in name else (0, numbers[0])
    if not isinstance(low, int) or not isinstance(high, int) or high - low >= 1 << 24:
        raise t.refuse("random integers of a symbolic or very wide range have no translation", "scale torch.rand")
    scaled = build.multiply(uniform(t, torch.float64), t.constant(high - low, torch.float64, t.dims))
    whole = t.convert(build.floor(scaled), torch.int64)
    return t.convert(build.add(whole, t.constant(low, torch.int64, t.dims)), t.dtype)


@draws("bernoulli.p", "bernoulli")
def bernoulli(t: Graph, x: ir.Value, probability: Any = None, *_: Any) -> ir.Value:
    """1 with the given probability, else 0."""
    chosen = x if str(t.node.target).endswith("bernoulli.default") else probability
    return t.convert(_below(t, chosen), t.dtype)


@draws("native_dropout")
def native_dropout(t: Graph, x: ir.Value, probability: float, train: bool | None) -> tuple[ir.Value, ir.Value]:
    """x with elements dropped with the given probability and the others scaled up, and the mask of kept elements."""
    if train is False or probability == 0:
        return x, t.constant(True, torch.bool, t.dims)
    if probability == 1:
        return t.constant(0, t.dtype, t.dims), t.constant(False, torch.bool, t.dims)
    kind = working(t.dtype)
    kept = _below(t, 1 - probability)
    scaled = build.multiply(t.convert(x, kind), t.constant(1 / (1 - probability), kind, dims_of(x)))
    return t.convert(t.select(kept, scaled, t.constant(0, kind, t.dims)), t.dtype), kept


@draws("randperm")
def randperm(t: Graph, *_: Any) -> ir.Value:
    """The numbers from 0 on in a random order: sorted by 64 random bits."""
    high, low = (t.convert(bits(t), torch.uint64) for _ in range(2))
    key = build.or_(build.shift_left(high, t.constant(32, torch.uint64, t.dims)), low)
    return t.convert(ordered(t, key, 0, False)[1], t.dtype)
