# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a jaxpr, whose sizes may be symbolic, at given sizes; loops, branches and calls among its equations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from jax.extend import core as jex

from tests.fuzz.near.reference.numbers import EPSILON, RULES, Array, Number, Op, any_error

_CALLS = {
    "jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr", "remat2": "jaxpr",
    "checkpoint": "jaxpr", "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
}  # fmt: skip
_MOST_ITERATIONS = 2000


class Unpredictable(Exception):
    """The program's behaviour depends on how numbers are rounded, or on something that is not interpreted."""


def interpret(closed: Any, arrays: Sequence[Array], sizes: Mapping[str, int]) -> list[Number]:
    """The results of a closed jaxpr on arrays of its own types. Raises Unpredictable."""
    with np.errstate(all="ignore"):
        return _Interpreter(sizes).closed(closed, [number_of(a) for a in arrays])


def number_of(array: Any) -> Number:
    """An exact array."""
    array = np.asarray(array)
    is_float = array.dtype.name in EPSILON
    return Number(array.astype(np.float64) if is_float else array)


class _Interpreter:
    def __init__(self, sizes: Mapping[str, int]):
        self.sizes = sizes

    def closed(self, closed: Any, operands: Sequence[Number]) -> list[Number]:
        if not hasattr(closed, "consts"):
            return self.block(closed, (), operands)
        return self.block(closed.jaxpr, closed.consts, operands)

    def block(self, jaxpr: Any, consts: Sequence[Any], operands: Sequence[Number]) -> list[Number]:
        known: dict[Any, Number] = dict(zip(jaxpr.constvars, map(number_of, consts), strict=True))
        known.update(zip(jaxpr.invars, operands, strict=True))

        def read(atom: Any) -> Number:
            return _literal(atom) if isinstance(atom, jex.Literal) else known[atom]

        for eqn in jaxpr.eqns:
            results = self.equation(eqn, [read(v) for v in eqn.invars])
            known.update(zip(eqn.outvars, results, strict=True))
        return [read(v) for v in jaxpr.outvars]

    def equation(self, eqn: Any, operands: list[Number]) -> list[Number]:
        name = eqn.primitive.name
        if name in _CALLS:
            return self.closed(eqn.params[_CALLS[name]], operands)
        if name in ("scan", "while", "cond"):
            return getattr(self, f"_{name}")(eqn, operands)
        if name == "dim_as_value":
            return [Number(np.asarray(self.size(eqn.params["dim"]), eqn.outvars[0].aval.dtype))]
        if name == "platform_index":
            return [Number(np.int32(_platform(eqn.params["platforms"])))]
        found = RULES.get(name)
        if found is None:
            raise Unpredictable(f"no rule for {name}")
        shapes = [tuple(self.size(d) for d in v.aval.shape) for v in eqn.outvars]
        dtypes = [v.aval.dtype.name for v in eqn.outvars]
        params = {k: self.resolved(v) for k, v in eqn.params.items()}
        same = len(eqn.invars) == 2 and eqn.invars[0] is eqn.invars[1]
        result = found(Op(params, shapes, dtypes, same), *operands)
        results = result if isinstance(result, list) else [result]
        for number, shape in zip(results, shapes, strict=True):
            if number.value.shape != shape:
                raise AssertionError(f"the reference's {name} gives {number.value.shape}, not {shape}")
        return results

    def size(self, dim: Any) -> int:
        """A size, which may be an expression of symbols."""
        return dim if isinstance(dim, int) else int(dim._evaluate(dict(self.sizes))) if _is_symbolic(dim) else int(dim)

    def resolved(self, param: Any) -> Any:
        """A parameter with numbers for the sizes in it."""
        if type(param) in (tuple, list):
            return tuple(self.resolved(p) for p in param)
        return self.size(param) if _is_symbolic(param) else param

    # ---- control flow -----------------------------------------------------------------------------------------------

    def _cond(self, eqn: Any, operands: list[Number]) -> list[Number]:
        if any_error(operands[0]):
            raise Unpredictable("a branch is chosen by rounding")
        branches = eqn.params["branches"]
        chosen = min(max(int(operands[0].value), 0), len(branches) - 1)
        return self.closed(branches[chosen], operands[1:])

    def _while(self, eqn: Any, operands: list[Number]) -> list[Number]:
        split = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
        of_condition, rest = operands[: split[0]], operands[split[0] :]
        of_body, carried = rest[: split[1]], rest[split[1] :]
        for _ in range(_MOST_ITERATIONS):
            (test,) = self.closed(eqn.params["cond_jaxpr"], [*of_condition, *carried])
            if any_error(test):
                raise Unpredictable("a loop ends by rounding")
            if not test.value.any():
                return carried
            further = self.closed(eqn.params["body_jaxpr"], [*of_body, *carried])
            carried = [_where(test.value, new, old) for new, old in zip(further, carried, strict=True)]
        raise Unpredictable("a loop does not end")

    def _scan(self, eqn: Any, operands: list[Number]) -> list[Number]:
        consts, carries = eqn.params["num_consts"], eqn.params["num_carry"]
        fixed, carried, stacks = operands[:consts], operands[consts : consts + carries], operands[consts + carries :]
        length = self.size(eqn.params["length"])
        rows: list[list[Number]] = []
        for i in reversed(range(length)) if eqn.params["reverse"] else range(length):
            here = [Number(s.value[i], None if s.error is None else s.error[i]) for s in stacks]
            results = self.closed(eqn.params["jaxpr"], [*fixed, *carried, *here])
            carried = results[:carries]
            rows.append(results[carries:])
        if eqn.params["reverse"]:
            rows.reverse()
        outs = eqn.outvars[carries:]
        stacked = [self._stacked([row[k] for row in rows], v.aval) for k, v in enumerate(outs)]
        return [*carried, *stacked]

    def _stacked(self, rows: list[Number], aval: Any) -> Number:
        if not rows:
            shape = tuple(self.size(d) for d in aval.shape)
            return Number(np.zeros(shape, np.float64 if aval.dtype.name in EPSILON else aval.dtype))
        error = None if all(r.error is None for r in rows) else np.stack([r.errors for r in rows])
        return Number(np.stack([r.value for r in rows]), error)


def _platform(platforms: Sequence[Any]) -> int:
    """The branch for processors; that for others where none is."""
    return next(i for i, names in enumerate(platforms) if names is None or "cpu" in names)


def _is_symbolic(dim: Any) -> bool:
    return hasattr(dim, "_evaluate")


def _literal(atom: Any) -> Number:
    dtype = atom.aval.dtype
    return number_of(np.asarray(atom.val).astype(ml_dtypes.bfloat16 if dtype.name == "bfloat16" else dtype))


def _where(goes_on: Array, new: Number, old: Number) -> Number:
    """Selects what a loop carries on: of several loops that run together, those that have ended keep what they have."""
    if not goes_on.ndim:
        return new
    mask = goes_on.reshape(goes_on.shape + (1,) * (new.value.ndim - goes_on.ndim))
    has_error = new.error is not None or old.error is not None
    return Number(np.where(mask, new.value, old.value), np.where(mask, new.errors, old.errors) if has_error else None)
