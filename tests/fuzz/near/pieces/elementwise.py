# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise pieces, and those that make constants of a shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from tests.fuzz.near.program import Params, Rejected, Type, piece, resolve_dtype

FLOAT_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "tanh": jnp.tanh, "sigmoid": jax.nn.sigmoid, "sin": jnp.sin, "cos": jnp.cos, "abs": jnp.abs, "neg": jnp.negative,
    "relu": jax.nn.relu, "gelu": jax.nn.gelu, "gelu_erf": lambda x: jax.nn.gelu(x, approximate=False),
    "silu": jax.nn.silu, "softplus": jax.nn.softplus, "elu": jax.nn.elu, "leaky": jax.nn.leaky_relu,
    "exp_tanh": lambda x: jnp.exp(jnp.tanh(x)), "exp": lambda x: jnp.exp(jnp.clip(x, -8, 4)),
    "exp_neg_abs": lambda x: jnp.exp(-jnp.abs(x)), "sqrt1": lambda x: jnp.sqrt(1 + x * x),
    "log1": lambda x: jnp.log1p(x * x), "log_pos": lambda x: jnp.log(0.5 + jnp.abs(x)),
    "recip1": lambda x: 1 / (1 + x * x), "rsqrt1": lambda x: jax.lax.rsqrt(1 + x * x), "half": lambda x: x * 0.5,
    "twice": lambda x: x + x, "plus1": lambda x: x + 1, "one_minus": lambda x: 1 - x,
    "clip": lambda x: jnp.clip(x, -1, 1), "sign": jnp.sign, "floor": jnp.floor, "erf": jax.scipy.special.erf,
    "expm1": lambda x: jnp.expm1(jnp.clip(x, -4, 4)),
    "cube": lambda x: jnp.clip(x, -2, 2) ** 3, "third": lambda x: x / 3, "masked": lambda x: jnp.where(x > 0, x, -0.5),
    "identity": lambda x: x + 0,
}  # fmt: skip
ANY_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "square": jnp.square, "neg": jnp.negative, "abs": jnp.abs, "plus1": lambda x: x + 1, "twice": lambda x: x + x,
    "one_minus": lambda x: 1 - x, "relu": jax.nn.relu, "sign": jnp.sign, "clip": lambda x: jnp.clip(x, -1, 1),
    "identity": lambda x: x + 0, "half": lambda x: x // 2, "masked": lambda x: jnp.where(x > 0, x, -5),
}  # fmt: skip


def is_float(dtype: Any) -> bool:
    """Tells whether a dtype is one of floats."""
    return bool(jnp.issubdtype(dtype, jnp.floating))


def _functions(type_: Any) -> list[str]:
    if type_.dtype == bool:
        return ["not"]
    return list(FLOAT_FUNCTIONS) + ["square"] if is_float(type_.dtype) else list(ANY_FUNCTIONS)


def _other_functions(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    return [{"f": f} for f in _functions(types[0]) if f != params["f"]]


def _suggest_unary(b: Any) -> int:
    value = b.some()
    return int(b.f(b.any(_functions(b.types[value])), value))


@piece("unary", _other_functions, _suggest_unary)
def _unary(arrays: list[Any], params: Params) -> Any:
    (x,) = arrays
    if params["f"] == "not":
        return jnp.logical_not(x)
    table = FLOAT_FUNCTIONS if is_float(x.dtype) and params["f"] in FLOAT_FUNCTIONS else ANY_FUNCTIONS
    if params["f"] not in table or x.dtype == bool:
        raise Rejected(f"{params['f']} of {x.dtype}")
    return table[params["f"]](x)


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply, "max": jnp.maximum, "min": jnp.minimum,
    "rsub": lambda x, y: y - x, "div1": lambda x, y: x / (1 + y * y), "rdiv1": lambda x, y: y / (1 + x * x),
    "select": lambda x, y: jnp.where(x > y, x, y * 0.5), "gate": lambda x, y: x * jax.nn.sigmoid(y),
    "mean": lambda x, y: (x + y) / 2, "dist": lambda x, y: jnp.square(x - y),
    "keep": lambda x, y: jnp.where(y > 0, x, 0),
    "hypot": lambda x, y: jnp.sqrt(1 + x * x + y * y), "left": lambda x, y: x + 0 * y,
}  # fmt: skip
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "lt": jnp.less,
    "le": jnp.less_equal,
    "gt": jnp.greater,
    "ge": jnp.greater_equal,
    "eq": jnp.equal,
}
LOGIC: dict[str, Callable[[Any, Any], Any]] = {"and": jnp.logical_and, "or": jnp.logical_or, "xor": jnp.logical_xor}


def _other_binary(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    table = LOGIC if types[0].dtype == bool else COMPARE if params["f"] in COMPARE else BINARY
    found = [{**params, "f": f} for f in table if f != params["f"]]
    ranks = [len(t.shape) for t in types]
    if ranks[0] == ranks[1] + 1:
        found += 3 * [{**params, "lift": [axis]} for axis in range(ranks[0]) if [axis] != params.get("lift", [])]
    return found


def _suggest_binary(b: Any) -> int:
    if b.flip():
        return _suggest_lifted(b)
    x = b.some(lambda t: t.dtype != bool)
    same = b.types[x]
    y = b.some(lambda t: t.dtype == same.dtype and t.shape == same.shape, late=0.3)
    return int(b.two(b.any(list(BINARY)), x, y))


def _suggest_lifted(b: Any) -> int:
    """A value that is broadcast over one axis of another."""
    y = b.some(lambda t: t.dtype.name == b.dtype, late=0.8)
    whole, part = b.types[y].dtype, b.shape(y)
    fitting = [
        (i, a) for i, t in b.types.items() if t.dtype == whole and len(t.shape) == len(part) + 1
        for a in range(len(t.shape)) if t.shape[:a] + t.shape[a + 1 :] == part
    ]  # fmt: skip
    x, axis = b.any(fitting)
    return int(b.two(b.any(list(BINARY)), x, y, lift=[axis]))


@piece("binary", _other_binary, _suggest_binary)
def _binary(arrays: list[Any], params: Params) -> Any:
    x, y = arrays
    y = jnp.expand_dims(y, tuple(params.get("lift", ())))
    function = {**BINARY, **COMPARE, **LOGIC}[params["f"]]
    if x.dtype != y.dtype:
        raise Rejected("operands of two types")
    if (x.dtype == bool) != (params["f"] in LOGIC):
        raise Rejected(f"{params['f']} of {x.dtype}")
    result = function(x, y)
    return result if params["f"] in COMPARE else result.astype(x.dtype)


def _outer(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    return [{**params, "turn": not params["turn"]}, *({**params, "f": f} for f in BINARY if f != params["f"])]


def _suggest_outer(b: Any) -> int:
    x, y = b.floats(1), b.floats(1)
    return int(b.add("outer", x, y, f=b.any(list(BINARY)), turn=b.flip()))


@piece("outer", _outer, _suggest_outer)
def _outer_piece(arrays: list[Any], params: Params) -> Any:
    """Two vectors, one along the rows and one along the columns."""
    x, y = arrays[::-1] if params["turn"] else arrays
    return BINARY[params["f"]](x[:, None], y[None, :])


def _suggest_where(b: Any) -> int:
    mask = b.some(lambda t: t.dtype == bool)
    shape = b.shape(mask)
    x = b.some(lambda t: t.dtype != bool and t.shape == shape)
    y = b.some(lambda t: t.dtype == b.types[x].dtype and t.shape == shape, late=0.3)
    return int(b.add("where", mask, x, y))


@piece("where", None, _suggest_where)
def _where(arrays: list[Any], params: Params) -> Any:
    mask, x, y = arrays
    if x.dtype != y.dtype:
        raise Rejected("operands of two types")
    return jnp.where(mask, x, y)


NUMBERS = (0.5, 1.0, 0.0, -1.0, 1.5, 2.0, -0.25, 3.0, 0.75, 1e-3)
_WITH_A_NUMBER = ("add", "sub", "mul", "max", "rsub", "div1", "rdiv1")


def _other_number(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    found = [{**params, "number": str(n)} for n in NUMBERS if str(n) != params["number"]]
    return [*found, *({**params, "f": f} for f in _WITH_A_NUMBER if f != params["f"])]


def _suggest_number(b: Any) -> int:
    return int(b.add("number", b.floats(), f=b.any(list(_WITH_A_NUMBER)), number=str(b.any(list(NUMBERS)))))


@piece("number", _other_number, _suggest_number)
def _number(arrays: list[Any], params: Params) -> Any:
    """A value and a number of the program's."""
    (x,) = arrays
    if not is_float(x.dtype):
        raise Rejected("not floats")
    return BINARY[params["f"]](x, jnp.asarray(float(params["number"]), x.dtype)).astype(x.dtype)


FILLS = (-1e9, float("-inf"), 0.0, -1e30, 1.0, -1.0, 100.0)


def _other_fill(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    found = [{**params, "value": str(v)} for v in FILLS if str(v) != params["value"]]
    return [{**params, "invert": not params["invert"]}, *found]


@piece("fill", _other_fill)
def _fill(arrays: list[Any], params: Params) -> Any:
    """`value` where the mask, of the last axes, is false."""
    mask, x = arrays
    if mask.dtype != bool or not is_float(x.dtype):
        raise Rejected("not a mask and floats")
    value = jnp.asarray(float(params["value"]), x.dtype)
    return jnp.where(mask, value, x) if params["invert"] else jnp.where(mask, x, value)


_ORDERS = {"ge": jnp.greater_equal, "gt": jnp.greater, "le": jnp.less_equal, "lt": jnp.less, "eq": jnp.equal,
           "ne": jnp.not_equal}  # fmt: skip


def _other_mask(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    found = [{**params, "compare": c} for c in _ORDERS if c != params["compare"]]
    found += [{**params, "offset": o} for o in (0, 1, -1, 3, -2, "tail") if o != params["offset"]]
    found += [{**params, "rows": r} for r in (1, 2, -1) if r != params["rows"]]
    found += [{**params, "columns": r} for r in (1, 2, -1) if r != params["columns"]]
    if len(types) > 1:
        found.append({**params, "sign": -params.get("sign", 1)})
    return found


def _suggest_mask(b: Any) -> int:
    x = b.some(lambda t: len(t.shape) >= 2)
    return int(b.add("mask", x, compare=b.any(list(_ORDERS)), offset=b.any([0, 0, 1, -1, "tail"]), rows=1, columns=1))


@piece("mask", _other_mask, _suggest_mask)
def _mask(arrays: list[Any], params: Params) -> Any:
    """rows * i + offset compared with columns * j, for the last two axes of operand 0.

    The offset is a number, "tail" for as many as there are more columns than rows, and what operand 1 says besides.
    """
    shape = arrays[0].shape[-2:]
    i, j = (jax.lax.broadcasted_iota(jnp.int32, shape, axis) for axis in (0, 1))
    i, j = (x if factor == 1 else x * factor for x, factor in ((i, params["rows"]), (j, params["columns"])))
    offset = params["offset"]
    if offset == "tail":
        i = i + (shape[1] - shape[0])
    elif offset:
        i = i + offset
    if len(arrays) > 1:
        if arrays[1].ndim or arrays[1].dtype != jnp.int32:
            raise Rejected("an offset is an i32 scalar")
        i = i + params.get("sign", 1) * arrays[1]
    return _ORDERS[params["compare"]](i, j)


_DTYPES = ("float32", "bfloat16", "float16", "int32", "float", "bool")


def _other_dtypes(params: Params, types: Sequence[Type]) -> list[dict[str, Any]]:
    return [{"dtype": d} for d in _DTYPES if d != params["dtype"]]


def _suggest_convert(b: Any) -> int:
    value = b.some()
    exact = b.types[value].dtype in (jnp.int32, bool)
    return int(b.add("convert", value, dtype=b.any(_DTYPES if exact else ("bfloat16", "float32", "float", "float16"))))


@piece("convert", _other_dtypes, _suggest_convert)
def _convert(arrays: list[Any], params: Params) -> Any:
    return arrays[0].astype(resolve_dtype(params["dtype"], params["float"]))


@piece("iota", lambda p, t: [{**p, "axis": a} for a in range(len(t[0].shape)) if a != p["axis"]])
def _iota(arrays: list[Any], params: Params) -> Any:
    """Places along an axis, of the shape of the operand."""
    if params["axis"] >= arrays[0].ndim:
        raise Rejected("no such axis")
    return jax.lax.broadcasted_iota(resolve_dtype(params["dtype"], params["float"]), arrays[0].shape, params["axis"])


@piece("full", lambda p, t: [{"value": v} for v in (0.0, 1.0, -0.5) if v != p["value"]])
def _full(arrays: list[Any], params: Params) -> Any:
    return jnp.full_like(arrays[0], params["value"])


@piece("axpy", lambda p, t: [{"a": v} for v in (2.0, -1.0, 0.25) if v != p["a"]])
def _axpy(arrays: list[Any], params: Params) -> Any:
    x, y = arrays
    return (params["a"] * x + y).astype(x.dtype)
