# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that come from JAX: `jax.export.Exported` objects and plain functions."""

from __future__ import annotations

import io
import itertools
import re
import tokenize
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import export
from jax.interpreters import mlir as jax_mlir
from jaxlib.mlir.dialects import stablehlo
from jaxlib.mlir.passmanager import PassManager

from shlo_disc.errors import OF_PYTORCH, ArgumentTypeError, ProgramError
from shlo_disc.importer.programs import JaxProgram
from shlo_disc.runtime import callbacks
from shlo_disc.runtime.exporting import exporting
from shlo_disc.runtime.size_syntax import syntax_advice
from shlo_disc.shape_dialect.custom_calls import OF_THIS_PROCESS, RAGGED_DOT
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .constraints import constraint_fault
from .jax_fft import install_transposes, lower_fft
from .jax_platforms import rules_for
from .requested_sizes import MoreSizesNeeded, hidden_specs, tracing, with_hidden_arguments
from .size_equalities import checked_sizes
from .size_guards import with_guards
from .specifications import (
    check_count,
    check_sequence,
    check_specifications,
    is_pair,
    numpy_name,
    parameters_of,
    size_fault,
    warn_of_narrowed,
)
from .trace_notes import OF_SIZES, noted_traces

_NO_ARRAY = re.compile(r"problematic value is of type <class '(.*?)'> and was passed to the function at path (\S+)\.\n")
_NO_SYMBOL = re.compile(r"Encountered dimension variable ('.*?') .*function arguments: (\[.*?\])", re.DOTALL)
_OF_CONTAINERS = re.compile(r"'(tuple|list)'")
_CUSTOM_CALL = re.compile(r'stablehlo\.custom_call @(?:"([^"]+)"|([\w.$]+))')


def is_exported(program: Any) -> bool:
    """True for a `jax.export.Exported`."""
    return isinstance(program, export.Exported)


def export_function(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    constraints: Sequence[str],
    platform: str = "cpu",
) -> JaxProgram:
    """Export a JAX function for a platform of JAX.

    Leaves of args/kwargs: arrays, ShapeDtypeStructs or ("b, s", dtype) pairs.

    The last positional argument of what is exported are hidden arguments, one for each of the sizes that the function
    reads from data, whose names the program has; there is no such argument where there are no such sizes.
    """
    check_sequence(args)
    if fault := constraint_fault(constraints, _names(args, kwargs)):
        raise ProgramError(fault)
    if not hasattr(function, "trace"):
        check_specifications(args, kwargs)
        check_count(function, args, kwargs)
        return _export_jitted(function, jax.jit(function), args, kwargs, constraints, platform)
    try:
        return _export_jitted(function, function, args, kwargs, constraints, platform)
    except (ArgumentTypeError, ProgramError) as error:  # only now, for static arguments may look like shapes
        if error.code not in OF_SIZES:
            check_specifications(args, kwargs)
        raise
    except (TypeError, AttributeError) as error:
        if _OF_CONTAINERS.search(str(error)):  # a shape in place of a pair, as JAX sees it
            check_specifications(args, kwargs)
        check_count(function, args, kwargs)
        raise


def _names(args: Sequence[Any], kwargs: dict[str, Any]) -> set[str]:
    """The names in the sizes of some specifications."""
    leaves = jax.tree.leaves((tuple(args), kwargs), is_leaf=is_pair)
    shapes = [leaf[0] if is_pair(leaf) else getattr(leaf, "shape", ()) for leaf in leaves]
    return set(re.findall(r"[a-zA-Z_]\w*", " ".join(map(str, shapes))))


def _export_jitted(
    function: Callable[..., Any],
    jitted: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    constraints: Sequence[str],
    platform: str,
) -> JaxProgram:
    try:
        scope = export.SymbolicScope(constraints)
        # One by one: a tuple of two arguments may look like a pair.
        positional, keyword = (
            [jax.tree.map(lambda leaf: _spec(leaf, scope), value, is_leaf=is_pair) for value in values]
            for values in (args, kwargs.values())
        )
        specs = (tuple(positional), dict(zip(kwargs, keyword, strict=True)))
    except ValueError as error:  # the texts of JAX's parser
        raise ProgramError(str(error)) from None
    warn_of_narrowed(args, kwargs)
    try:
        with tracing(()):
            program = _export(jitted, specs, _Options(traces_anew=_has_other_scope(specs, scope), platform=platform))
        return program._replace(parameters=parameters_of(function, len(args)))
    except MoreSizesNeeded:
        return _export_with_sizes(function, specs, scope, platform)


def _export_with_sizes(
    function: Callable[..., Any], specs: tuple[Any, Any], scope: export.SymbolicScope, platform: str
) -> JaxProgram:
    """Export with as many hidden arguments as the function asks for, named n0, n1, ... where that is free."""
    symbolic: list[Any] = [d for leaf in jax.tree.leaves(specs) for d in np.shape(leaf) if export.is_symbolic_dim(d)]
    scope = symbolic[0].scope if symbolic else scope
    taken = {name for d in symbolic for name in Expr.parse(str(d)).symbols()}
    names = (name for i in itertools.count() if (name := f"n{i}") not in taken)
    sizes: list[str] = [next(names)]
    is_pure = False
    while True:
        traced = jax.jit(with_hidden_arguments(function, is_pure))
        try:
            hidden = hidden_specs(sizes, scope)
            program = _export(traced, ((*specs[0], hidden), specs[1]), _Options(platform=platform))
            return program._replace(sizes=sizes, parameters=parameters_of(function, len(specs[0])))
        except MoreSizesNeeded:
            sizes.append(next(names))
        except NotImplementedError as error:  # of jax.checkpoint
            if is_pure or "Effects not supported" not in str(error):
                raise
            is_pure = True


class _Options(NamedTuple):
    """Options of JAX's export. custom_calls: the allowed ones. is_fresh: JAX does not take what it has lowered before.
    traces_anew: nor what it has traced before. platform: that it lowers for."""

    custom_calls: Sequence[str] = ()
    is_fresh: bool = False
    traces_anew: bool = False
    platform: str = "cpu"


def _has_other_scope(specs: Any, scope: export.SymbolicScope) -> bool:
    """Tells whether there are sizes of another scope than this, which no one else has."""
    sizes: list[Any] = [size for leaf in jax.tree.leaves(specs) for size in np.shape(leaf)]
    return any(export.is_symbolic_dim(size) and size.scope is not scope for size in sizes)


def _export(jitted: Any, specs: tuple[Any, Any], options: _Options) -> JaxProgram:
    """Export, and find what only this process has that the function calls.

    jax.export refuses custom calls that it promises no compatibility for. Which of them can be compiled is decided with
    the rest of the program, where the user's source line is known.
    """
    checks = [
        export.DisabledSafetyCheck.custom_call(name) for name in (*OF_THIS_PROCESS, RAGGED_DOT, *options.custom_calls)
    ]
    unused = [(_new_primitive(), lower_fft)] if options.is_fresh else []
    rules = (*rules_for(options.platform), *unused)
    callbacks.install_for_exports()
    install_transposes()
    try:
        own: dict[str, Any] = {"disabled_checks": checks, "_override_lowering_rules": rules}
        exporter = export.export(jitted, platforms=[options.platform], **own)
        with exporting() as kept, noted_traces(), checked_sizes(options.traces_anew) as asked:
            exported = exporter(*specs[0], **specs[1])
    except TypeError as error:
        if "must be Tensor, not" in str(error):  # PyTorch's text
            raise ProgramError(f"the function calls PyTorch ({error}): {OF_PYTORCH}") from error
        if not str(error).startswith("Error interpreting argument"):
            raise
        raise ArgumentTypeError(_not_an_array(str(error))) from None
    except ValueError as error:  # the function's own errors keep their traceback
        message = str(error)
        if message.startswith("Cannot solve for values of dimension variables"):
            raise ProgramError(message) from None
        found = _CUSTOM_CALL.findall(message)
        if options.custom_calls or not found or not message.startswith("Cannot serialize code with custom calls"):
            raise
        names = sorted({quoted or plain for quoted, plain in found})
        return _export(jitted, specs, options._replace(custom_calls=names))
    except Exception as error:  # JAX derives it from no other class
        if type(error).__name__ != "UnexpectedDimVar":
            raise
        raise ProgramError(_unknown_symbol(str(error))) from None
    is_known = options.is_fresh or bool(kept)
    if not is_known and any(name.encode() in exported.mlir_module_serialized for name in OF_THIS_PROCESS):
        return _export(jitted, specs, options._replace(is_fresh=True))
    guards = tuple(asked.values())
    return JaxProgram(with_guards(exported, guards), keeps=kept, guards=guards)


def platform_index(exported: export.Exported, platforms: Sequence[str]) -> int:
    """The platform of an Exported to compile for, of those that will do.

    Raises ProgramError when it is for none of them.
    """
    for platform in platforms:
        if platform in exported.platforms:
            return exported.platforms.index(platform)
    if export.DisabledSafetyCheck.platform() in exported.disabled_safety_checks:
        return 0
    raise ProgramError(
        f"{exported.fun_name!r} was exported for {', '.join(exported.platforms)}; export it with "
        f"platforms=[{platforms[0]!r}], or with that among others"
    )


def _new_primitive() -> Any:
    """A primitive that no function calls. A cached program is found without `jax.extend`, which imports Pallas."""
    from jax.extend.core import Primitive

    return Primitive("of no other program")


def without_locations(exported: export.Exported) -> bytes:
    """The exported module as bytes that do not change when lines of the source file move."""
    data = bytes(exported.mlir_module_serialized)
    with jax_mlir.make_ir_context() as context:
        try:
            module = stablehlo.deserialize_portable_artifact(context, data)
        except ValueError:  # what reads it next says why
            return data
        PassManager.parse("builtin.module(strip-debuginfo)").run(module.operation)
        buffer = io.BytesIO()
        module.operation.write_bytecode(buffer)
        return buffer.getvalue()


def _unknown_symbol(message: str) -> str:
    """Advice about a constraint on a size that no argument has, by JAX's message."""
    found = _NO_SYMBOL.search(message)
    if found is None:
        return message
    return f"constraints= has a size {found[1]}, and the sizes of the arguments are named {found[2]}: use one of these"


def _not_an_array(message: str) -> str:
    """Advice about an argument that JAX cannot trace, by JAX's message."""
    found = _NO_ARRAY.search(message)
    if found is None:
        return message
    advice = (
        "give an array, a jax.ShapeDtypeStruct or a "
        'pair such as ("b, 768", "float32"), or fix its value by functools.partial(function, ...)'
    )
    if not found[2].isidentifier():  # a leaf of a pytree
        advice = "shlo_disc.jit(function, filter=True) makes static what is not an array, or give an array or a pair"
    return f"the argument {found[2]} is a {found[1]}, which is not an array: {advice}"


def _spec(leaf: Any, scope: export.SymbolicScope) -> Any:
    if not is_pair(leaf):
        return leaf
    shape, dtype = leaf
    if isinstance(dtype, str):
        dtype = numpy_name(dtype, leaf)
    text = shape if isinstance(shape, str) else ", ".join(str(d) for d in shape)
    if not text.strip():
        return jax.ShapeDtypeStruct((), dtype)
    if fault := size_fault(text):
        raise ProgramError(fault)
    try:
        return jax.ShapeDtypeStruct(export.symbolic_shape(text, scope=scope), dtype)
    except (ValueError, tokenize.TokenError) as error:
        advice = syntax_advice(text)
        raise ProgramError(f"args= has {text!r}: {advice}" if advice else str(error)) from None
