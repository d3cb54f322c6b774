# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The public functions: `compile` and `jit`."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, Unpack, overload

from shlo_disc.api.jit import Arguments, Jitted
from shlo_disc.api.refused import refuse_compiled, refuse_no_function, refuse_tensors, refuses_torch
from shlo_disc.driver.compiling import compile_read
from shlo_disc.driver.garbage import fewer_collections
from shlo_disc.driver.recording import record_read
from shlo_disc.errors import OptionError
from shlo_disc.importer.program import read
from shlo_disc.importer.programs import TextProgram
from shlo_disc.importer.reader import Limits
from shlo_disc.lowering.progress import showing
from shlo_disc.options import Options, check_flag, check_names, takes_options

if TYPE_CHECKING:
    from shlo_disc.api.filtered import FilteredJit
    from shlo_disc.driver.executable import Executable
    from shlo_disc.torch import ExportedExecutable


class ExportedByTorch(Protocol):
    """A `torch.export.ExportedProgram`, by attributes of it: checkers tell it from others where PyTorch is absent."""

    @property
    def graph_signature(self) -> Any:
        """Roles of the arguments and results of its graph."""

    @property
    def range_constraints(self) -> Any:
        """The bounds of its symbols."""


@overload
def compile(program: ExportedByTorch, *, target: str = "cpu", options: Options | None = None) -> ExportedExecutable: ...


@overload
def compile(
    program: Any,
    *,
    target: str = "cpu",
    options: Options | None = None,
    args: Sequence[Any] | None = None,
    kwargs: dict[str, Any] | None = None,
    constraints: Sequence[str] = (),
) -> Executable: ...


@refuses_torch
@takes_options
def compile(
    program: Any,
    *,
    target: str = "cpu",
    options: Options | None = None,
    args: Sequence[Any] | None = None,
    kwargs: dict[str, Any] | None = None,
    constraints: Sequence[str] = (),
) -> Any:
    """Compile a program once, for all shapes that its signature allows.

    Returns an `Executable`. For a `torch.export.ExportedProgram` it returns a `shlo_disc.torch.ExportedExecutable`,
    which you call with tensors, like the module.

    program: a `torch.export.ExportedProgram`; a `jax.export.Exported`, or what its `serialize` wrote (bytes or a path);
    StableHLO as text, bytecode or portable artifact (str, bytes or a path); or a JAX function with `args=`/`kwargs=`
    whose leaves are arrays, `jax.ShapeDtypeStruct`s or pairs like ("b, s, 768", "float32"). `constraints` are those of
    JAX, e.g. "s <= 512", for JAX functions. JAX assumes that symbols are at least 1: if a size may be 0, write "b - 1".
    An Exported for several platforms is compiled for the platform of the target.
    target: "cpu"; "cuda" for the first NVIDIA GPU of this machine; "cuda:sm_80" or "cuda:sm_90" for GPUs of that
    generation and later ones; or "cuda:sm_90a" for that generation only.

    Raises ProgramError if the program cannot be parsed or verified; UnsupportedError, which lists, with your source
    lines, every construct that cannot be compiled; OptionError for an unknown target; and another DiscError if the
    tools of the target are missing.
    """
    options = Options() if options is None else options
    _check_options(options)
    if _is_exported_by_torch(program):
        if args is not None or kwargs is not None or constraints:
            raise OptionError(
                "an ExportedProgram has arguments and sizes of its own: give them to torch.export.export, as args and "
                "dynamic_shapes="
            )
        from shlo_disc.torch import compile_exported

        return compile_exported(program, options, target)
    refuse_compiled(program)
    refuse_tensors([args, kwargs])
    with showing(getattr(program, "__name__", ""), options.has_progress), fewer_collections():
        return _compile(program, target, options, args, kwargs, constraints)


def _compile(
    program: Any,
    target: str,
    options: Options,
    args: Sequence[Any] | None,
    kwargs: dict[str, Any] | None,
    constraints: Sequence[str],
) -> Executable:
    start = time.perf_counter()
    source = read(program, args, kwargs, constraints, Limits.of(options), target)
    record_read(source, "compile")
    if options.replicas > 1:
        if not isinstance(source, TextProgram):
            raise OptionError(
                "the option replicas is for StableHLO programs, which say by mhlo.num_replicas what it is"
            )
        source = source._replace(participants=options.replicas)
    executable = compile_read(source, options, target, start=start)
    if options.dump:
        executable.dump(options.dump)
    return executable


def _is_exported_by_torch(program: Any) -> bool:
    """Tells whether a program is a `torch.export.ExportedProgram`; without PyTorch imported, nothing is."""
    export = sys.modules.get("torch.export")
    return export is not None and isinstance(program, export.ExportedProgram)


def _check_options(options: Any) -> None:
    """Raises OptionError, with what to write, for options that are no Options."""
    if not isinstance(options, Options):
        raise OptionError(f"options must be a shlo_disc.Options, not {options!r}{_as_options(options)}")


def _as_options(given: Any) -> str:
    """Advice on how a mapping is written as Options; "" for what is none."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) and name.isidentifier() for name in given):
        return ""
    check_names(given, [field.name for field in fields(Options)], "shlo_disc.Options")
    return f": write options=shlo_disc.Options({', '.join(f'{name}={value!r}' for name, value in given.items())})"


class _FilterOptions(TypedDict, total=False):
    """Options of `jit` with and without `filter=True`."""

    dynamic: Any
    constraints: Sequence[str]
    options: Options | None
    compile_once: bool


class _JitOptions(_FilterOptions, total=False):
    """Options of `jit` without `filter=True`."""

    static_argnums: int | Sequence[int] | None
    static_argnames: str | Sequence[str] | None
    donate_argnums: int | Sequence[int]
    filter: Literal[False]


@overload
def jit(function: Callable[..., Any], **options: Unpack[_JitOptions]) -> Jitted: ...


@overload
def jit(**options: Unpack[_JitOptions]) -> Callable[[Callable[..., Any]], Jitted]: ...


@overload
def jit(function: Callable[..., Any], *, filter: Literal[True], **options: Unpack[_FilterOptions]) -> FilteredJit: ...


@overload
def jit(*, filter: Literal[True], **options: Unpack[_FilterOptions]) -> Callable[[Callable[..., Any]], FilteredJit]: ...


@refuses_torch
@takes_options
def jit(
    function: Callable[..., Any] | None = None,
    *,
    dynamic: Any = None,
    constraints: Sequence[str] = (),
    options: Options | None = None,
    compile_once: bool = True,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] = (),
    filter: bool = False,
) -> Any:
    """Like `jax.jit`, but one compile serves every size.

    dynamic: the symbolic shapes, as `jax.export.symbolic_args_specs` takes them: one string for all arguments, or one
    for each positional argument (None: the sizes of that argument stay fixed), e.g. dynamic=("b, s", "b, s, ..."), or
    a dict of them by the names of arguments; "b - 1" for a size that may be 0.
    compile_once: a call that does not fit the compiled program raises RecompileError; with False it compiles again, and
        so for another outcome of comparisons of sizes in Python.
    static_argnums, static_argnames: arguments that are not arrays, as in `jax.jit`. Their values must be hashable, and
    each has a separate program. donate_argnums: arguments whose memory the results may reuse. A call deletes the
    jax.Arrays and Buffers in them. filter: everything in the arguments and results that is not an array is static,
    Python numbers included, as in `equinox.filter_jit`. Use it for models that contain functions and settings besides
    arrays.

    As in `jax.jit`, `.trace(...)` and `.lower(...)` of the function run the steps separately, `.eval_shape(...)`
    returns the types of the results, and `.clear_cache()` forgets the compiled programs.

    Raises OptionError for options that contradict each other or do not match the function.
    """
    check_flag("compile_once", compile_once)
    check_flag("filter", filter)
    if options is not None:
        _check_options(options)
    if function is None:
        return functools.partial(
            jit, dynamic=dynamic, constraints=constraints, options=options, compile_once=compile_once,
            static_argnums=static_argnums, static_argnames=static_argnames, donate_argnums=donate_argnums,
            filter=filter,
        )  # fmt: skip
    refuse_compiled(function)
    refuse_no_function(function)
    static = Arguments.of(function, static_argnums, static_argnames, "static_arg")
    donated = Arguments.of(function, donate_argnums, None, "donate_arg").numbers
    jitted = functools.partial(
        Jitted, compile=compile, constraints=constraints, options=options, compile_once=compile_once
    )
    if not filter:
        return jitted(function, dynamic=dynamic, static=static.with_those_of_jax(function), donated=donated)
    if static != Arguments() or donated:
        raise OptionError("filter=True finds out what is static: it takes neither static_ nor donate_ arguments")
    from shlo_disc.api.filtered import FilteredJit  # here, for a program that is not JAX's needs it for nothing

    return FilteredJit(function, dynamic, functools.partial(jitted, static=static, donated=donated))
