# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled programs inside functions that JAX traces: `jax.jit`, `jax.vmap` and `jax.grad` around their calls.

A call becomes a primitive of JAX's. XLA runs it by a handler of its FFI, which finds the program by a number and runs
it on XLA's buffers. The sizes of results are computed while JAX traces, so a call whose sizes do not fit raises then.
"""

from __future__ import annotations

import functools
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shlo_disc.errors import ArgumentTypeError, ShapeError
from shlo_disc.shape_dialect.custom_calls import COMPILED_PROGRAM, register_custom_call
from shlo_disc.shape_dialect.dtypes import BY_NAME
from shlo_disc.shape_dialect.symbolic.expr import Expr

from . import _native
from .axes import in_users_order
from .described import program_text
from .dtype_faults import with_conversion
from .exporting import keep
from .keys import key_array, key_data
from .size_steps import evaluate
from .tree import TreeSpec

if TYPE_CHECKING:
    from .executable import LoadedExecutable

_MOST_SHAPES = 256


def is_traced(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Tells whether a leaf of a call's arguments stands for an array in a function that JAX traces."""
    jax = sys.modules.get("jax")
    return jax is not None and any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((args, dict(kwargs))))


class JaxFunction:
    """A program as JAX's programs call it. They keep it alive.

    gradient: the program's vector-Jacobian product, which takes the arguments and the cotangents of the results, flat,
    and returns the cotangents of the arguments; called when JAX differentiates. Raises ArgumentTypeError where the
    program has none, and for programs that JAX cannot call: those for GPUs or several devices, those whose results have
    data-dependent sizes, and those with elements below 8 bits.
    """

    def __init__(self, executable: LoadedExecutable, gradient: Callable[[], LoadedExecutable] | None):
        self.header = executable.header
        self.name = executable.name
        _check(self)
        self._executable, self._gradient = executable, gradient
        self.number = secrets.randbits(62)  # what another process has traced finds nothing
        self._callable = _native.CallableFromJax(executable.native, self.number)
        self._results = functools.lru_cache(_MOST_SHAPES)(self._result_shapes)
        self._trees = executable.in_tree.native(), executable.out_tree.native()
        self._result = TreeSpec("tuple", (executable.out_tree,)).native()

    def __repr__(self) -> str:
        return f"<JaxFunction {program_text(self.header)}>"

    def __call__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The call as it stands in the function that is traced. Raises ArgumentTypeError and ShapeError."""
        leaves = self._trees[0].flatten((args, dict(kwargs)))
        if leaves is None:
            explain = self._executable.explainer(self._executable.in_tree)
            raise ArgumentTypeError(explain(args, dict(kwargs)))
        rows = self.header["arguments"]
        results = _differentiable(self, *(_array(leaf, row) for leaf, row in zip(leaves, rows, strict=True)))
        return self._trees[1].unflatten(_with_keys(results, self.header["results"]))

    def run(self, *leaves: Any) -> list[Any]:
        """A call with arrays that are there, such as JAX makes where it differentiates what it does not compile."""
        args, kwargs = self._trees[0].unflatten(_with_keys(leaves, self.header["arguments"]))
        results: Any = self._result.flatten((self._executable.execute_as_taken(args, kwargs, output="jax"),))
        rows = self.header["results"]
        return [
            key_data(r, row["path"], row["key"]) if "key" in row else r for r, row in zip(results, rows, strict=True)
        ]

    @property
    def takes_over(self) -> bool:
        """Tells whether a call deletes arrays that it is given, which JAX may need once more."""
        return any(row.get("donated", False) for row in self.header["arguments"])

    def result_avals(self, avals: Sequence[Any]) -> list[Any]:
        """The types of the results for those of the arguments, sizes of which may be JAX's symbolic dimensions."""
        import jax

        shapes = self._results(tuple(tuple(aval.shape) for aval in avals))
        rows = self.header["results"]
        return [jax.core.ShapedArray(shape, _jax_dtype(row)) for shape, row in zip(shapes, rows, strict=True)]

    def gradient(self) -> JaxFunction:
        """The vector-Jacobian product."""
        if self._gradient is None:
            raise ArgumentTypeError(
                f"'{self.name}' has no gradient: compile the function itself, or a jax.export.Exported that was "
                "serialized with vjp_order=1"
            )
        return self._gradient().in_jax

    def _result_shapes(self, shapes: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
        from jax.export import is_symbolic_dim

        if any(is_symbolic_dim(size) for shape in shapes for size in shape):
            return self._symbolic_shapes(shapes)
        given = [
            in_users_order(shape[:-1] if "key" in row else shape, row.get("axes", ()))
            for shape, row in zip(shapes, self.header["arguments"], strict=True)
        ]
        return list(self._executable.result_shapes(**self._executable.dims_of(*given)))

    def _symbolic_shapes(self, shapes: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
        """The same where JAX exports a function: the sizes themselves are checked when it runs."""
        rows = self.header["arguments"]
        for shape, row in zip(shapes, rows, strict=True):
            if len(shape) != len(row["shape"]):
                raise ShapeError(f"Rank mismatch for {row['path']}: expected {row['shape']} and called with {shape}")
        values: dict[str, Any] = {}
        for symbol in self.header["symbols"]:
            solve = symbol["solve"]
            rest = solve["offset"] + evaluate(solve.get("less", ()), shapes, list(values.values()))
            values[symbol["name"]] = (shapes[solve["argument"]][solve["dim"]] - rest) // solve["scale"]
        return [tuple(_size(size, values) for size in row["shape"]) for row in self.header["results"]]


def _check(function: JaxFunction) -> None:
    header, name = function.header, function.name
    arrays = (*header["arguments"], *header["results"])
    reasons = {
        "it is for a GPU": "name" in header["target"],
        "it runs on several devices": header.get("replicas", 1) > 1,
        "the sizes of its results are read from data": bool(header.get("segments")),
        "it has elements of less than 8 bits, which XLA packs": any(
            BY_NAME[row["dtype"]].bits < 8 and row["dtype"] != "i1" for row in arrays
        ),
    }
    found = [reason for reason, applies in reasons.items() if applies]
    if found:
        raise ArgumentTypeError(f"'{name}' cannot be called inside a function that JAX traces: {found[0]}")


def _with_keys(leaves: Sequence[Any], rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Leaves with PRNG keys in place of their data."""
    return [key_array(leaf, row["key"]) if "key" in row else leaf for leaf, row in zip(leaves, rows, strict=True)]


def _jax_dtype(row: Mapping[str, Any]) -> Any:
    import jax

    return jax.numpy.dtype(BY_NAME[row["dtype"]].numpy)


def _array(leaf: Any, row: Mapping[str, Any]) -> Any:
    """An argument as JAX's array or tracer of the program's type. Raises ArgumentTypeError where it has another."""
    import jax

    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return key_data(leaf, row["path"], row.get("key", ""))
    expected = BY_NAME[row["dtype"]].numpy
    try:
        array = jax.numpy.asarray(leaf, expected if type(leaf) in (bool, int, float, complex) else None)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"{row['path']} is a {type(leaf)}, which is not an array or a number") from error
    if str(array.dtype) != expected:
        given = getattr(leaf, "dtype", array.dtype)
        hint = ""
        if str(given) == expected:
            hint = f", which JAX makes {array.dtype}: set jax_enable_x64"
        text = f"Dtype mismatch for {row['path']}: expected {expected} and called with {given}{hint}"
        raise ArgumentTypeError(text) if hint else with_conversion(ArgumentTypeError(text))
    return array


def _size(size: int | str, values: Mapping[str, Any]) -> Any:
    """A size of the header for values of its symbols, which may be symbolic dimensions of JAX's."""
    return Expr.parse(size).evaluate(values) if isinstance(size, str) else size


@functools.cache
def _primitive() -> Any:
    """The call of a program: arrays in, a list of arrays out. The program is its parameter `function`."""
    import jax
    from jax.extend.core import Primitive
    from jax.interpreters import batching, mlir

    primitive = Primitive("shlo_disc_call")
    primitive.multiple_results = True
    compiled = jax.jit(lambda *args, function: primitive.bind(*args, function=function), static_argnames="function")

    def call(*args: Any, function: JaxFunction) -> Any:
        return compiled(*args, function=function) if function.takes_over else function.run(*args)

    primitive.def_impl(call)
    primitive.def_abstract_eval(lambda *avals, function: function.result_avals(avals))
    handler = jax.ffi.pycapsule(_native.jax_call_handler())
    jax.ffi.register_ffi_target(COMPILED_PROGRAM, handler, platform="cpu")
    register_custom_call(COMPILED_PROGRAM, handler, convention="ffi")
    lower = jax.ffi.ffi_lowering(COMPILED_PROGRAM)

    def lowering(ctx: Any, *operands: Any, function: JaxFunction) -> Any:
        keep(ctx, function)
        return lower(ctx, *operands, program=np.int64(function.number))

    mlir.register_lowering(primitive, lowering, platform="cpu")  # which the plugin's platforms share

    def batched(args: Sequence[Any], axes: Sequence[Any], *, function: JaxFunction) -> Any:
        """One call after the other, as with `jax.lax.map`."""
        mapped = [jax.numpy.moveaxis(a, axis, 0) for a, axis in zip(args, axes, strict=True) if axis is not None]

        def one(rows: Sequence[Any]) -> Any:
            rest = iter(rows)
            whole = [a if axis is None else next(rest) for a, axis in zip(args, axes, strict=True)]
            return primitive.bind(*whole, function=function)

        results = jax.lax.map(one, mapped)
        return results, [0] * len(results)

    batching.primitive_batchers[primitive] = batched
    return primitive


def _differentiable(function: JaxFunction, *args: Any) -> Sequence[Any]:
    """A call that JAX can differentiate by the program's own vector-Jacobian product."""
    try:
        return _with_gradient()(function, *args)
    except TypeError as error:
        if "forward-mode" in str(error):
            error.add_note(_FORWARD_MODE)
        raise


_FORWARD_MODE = (
    "shlo_disc: a compiled function has gradients (jax.grad, jax.vjp), but no forward-mode ones: for jax.jvp, "
    "jax.jacfwd and jax.hessian, differentiate the JAX function and compile the result (docs/in-jax.md)"
)


@functools.cache
def _with_gradient() -> Any:
    import jax

    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def call(function: JaxFunction, *args: Any) -> Any:
        return _primitive().bind(*args, function=function)

    def forward(function: JaxFunction, *args: Any) -> Any:
        function.gradient()  # is refused here, where the user's call is on the stack
        return call(function, *args), args

    def backward(function: JaxFunction, args: Sequence[Any], cotangents: Sequence[Any]) -> Any:
        return _cotangents(function.gradient(), args, cotangents)

    call.defvjp(forward, backward)
    return call


def _cotangents(function: JaxFunction, args: Sequence[Any], cotangents: Sequence[Any]) -> tuple[Any, ...]:
    """The cotangents of the arguments; None for those that have none, such as integers."""
    import jax
    from jax.numpy import inexact, issubdtype

    rows = function.header["arguments"][len(args) :]
    given = [
        jax.numpy.zeros(cotangent.shape[: len(row["shape"])], bool)  # of keys, whose data has a dim more
        if cotangent.dtype == jax.dtypes.float0
        else cotangent
        for cotangent, row in zip(cotangents, rows, strict=True)
    ]
    results = _differentiable(function, *args, *given)
    return tuple(r if issubdtype(a.dtype, inexact) else None for a, r in zip(args, results, strict=True))


__all__ = ["JaxFunction", "is_traced"]
