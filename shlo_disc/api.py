# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The public functions: `compile` and `jit`."""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from shlo_disc import importing
from shlo_disc.compiling import compile_read
from shlo_disc.errors import ArgumentTypeError, OptionError, RecompileError, ShapeError
from shlo_disc.executable import Executable
from shlo_disc.options import Options
from shlo_disc.programs import TextProgram
from shlo_disc.reader import Limits

if TYPE_CHECKING:
    from shlo_disc.call_types import WeakTypes


def compile(
    program: Any,
    *,
    target: str = "cpu",
    options: Options | None = None,
    args: Sequence[Any] | None = None,
    kwargs: dict[str, Any] | None = None,
    constraints: Sequence[str] = (),
) -> Any:
    """Compile a program once, for every shape it admits.

    Returns an `Executable`, or for a `torch.export.ExportedProgram` a `shlo_disc.torch.ExportedExecutable`, which is
    called with tensors as the module was.

    program: a `torch.export.ExportedProgram`; a `jax.export.Exported`, or what its `serialize` wrote (bytes or a path);
    StableHLO as text, bytecode or portable artifact (str, bytes or a path); or a JAX function with `args=`/`kwargs=`
    whose leaves are arrays, `jax.ShapeDtypeStruct`s or pairs like ("b, s, 768", "float32"). `constraints` are JAX's,
    e.g. "s <= 512", and apply to a JAX function. An Exported for several platforms is compiled for that of the target.
    target: "cpu"; "cuda", the first NVIDIA GPU of this machine; or "cuda:sm_80" or "cuda:sm_90", for GPUs of that
    generation and later ones, or "cuda:sm_90a", for that generation alone.

    Raises ProgramError when the program cannot be parsed or verified, UnsupportedError listing every construct that
    cannot be compiled, with the user's source lines, and DiscError for a target that does not exist or lacks its tools.
    """
    options = Options() if options is None else options
    if not isinstance(options, Options):
        raise OptionError(f"options must be a shlo_disc.Options, not {options!r}")
    if _is_exported_by_torch(program):
        if args is not None or kwargs is not None or constraints:
            raise OptionError("args=, kwargs= and constraints= apply to a JAX function; an ExportedProgram has its own")
        from shlo_disc.torch import compile_exported

        return compile_exported(program, options, target)
    start = time.perf_counter()
    read = importing.read(program, args, kwargs, constraints, Limits.of(options))
    if options.replicas > 1:
        if not isinstance(read, TextProgram):
            raise OptionError(
                "the option replicas is for StableHLO programs, which say by mhlo.num_replicas what it is"
            )
        read = read._replace(participants=options.replicas)
    executable = compile_read(read, options, target, start=start)
    if options.dump:
        executable.dump(options.dump)
    return executable


def _is_exported_by_torch(program: Any) -> bool:
    """Whether a program is a `torch.export.ExportedProgram`; where nobody has imported PyTorch, nothing is one."""
    export = sys.modules.get("torch.export")
    return export is not None and isinstance(program, export.ExportedProgram)


class Jitted:
    """A JAX function compiled on first use; see `jit`."""

    def __init__(
        self,
        function: Callable[..., Any],
        dynamic: Any,
        constraints: Sequence[str],
        options: Options | None,
        compile_once: bool,
    ):
        functools.update_wrapper(self, function)
        _check_static(function)
        if not (dynamic is None or isinstance(dynamic, str | Sequence)):
            raise OptionError(f"dynamic must be a string, a sequence of strings or None, not {dynamic!r}")
        self._function = function
        self._dynamic = dynamic
        self._constraints = tuple(constraints)
        self._options = options
        self._compile_once = compile_once
        self._lock = threading.Lock()
        self._executables: list[tuple[WeakTypes, Executable]] = []

    def __repr__(self) -> str:
        name = getattr(self._function, "__name__", repr(self._function))
        return f"<shlo_disc.jit of {name}, compiled {self.compile_count} times>"

    @property
    def compile_count(self) -> int:
        """How often this function was compiled."""
        return len(self._executables)

    @property
    def executable(self) -> Executable:
        """The newest executable. Raises ValueError before the first call."""
        if not self._executables:
            raise ValueError(f"{self._function} has not been called yet")
        return self._executables[-1][1]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function. The first call exports and compiles it; later calls of any admissible size only run.

        Types are those of `jax.jit`: dtypes of 64 bits are taken as such of 32 unless jax_enable_x64 is set, and a
        Python number is an argument of another type than an array.
        """
        from shlo_disc.call_types import difference, weak_types

        _refuse_tracers((args, kwargs))
        weak = weak_types((args, kwargs))
        if not self._executables:
            self._compile_first(args, kwargs, weak)
        for compiled, executable in self._executables:
            try:
                if compiled == weak:
                    return _call_canonical(executable, args, kwargs)
                if self._compile_once:
                    raise ArgumentTypeError(difference((args, kwargs), compiled))
            except (ShapeError, ArgumentTypeError) as error:
                if self._compile_once:
                    raise RecompileError(f"this call does not fit the one compiled program: {error}") from error
        executable = self._compile(args, kwargs)
        self._executables.append((weak, executable))
        return _call_canonical(executable, args, kwargs)

    def _compile_first(self, args: tuple[Any, ...], kwargs: dict[str, Any], weak: WeakTypes) -> None:
        with self._lock:
            if not self._executables:
                self._executables.append((weak, self._compile(args, kwargs)))

    def _compile(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Executable:
        from shlo_disc.call_types import specifications

        specs = specifications(args, kwargs, self._specification(args), self._constraints)
        return compile(self._function, args=specs[0], kwargs=specs[1], options=self._options)

    def _specification(self, args: tuple[Any, ...]) -> Any:
        if self._dynamic is None or isinstance(self._dynamic, str):
            return self._dynamic
        return (tuple(self._dynamic), None)


def _call_canonical(executable: Executable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call; when its dtypes are refused, one more with those that JAX gives them."""
    from shlo_disc.call_types import canonical

    try:
        return executable(*args, **kwargs)
    except ArgumentTypeError:
        new_args, new_kwargs = canonical((args, kwargs))
        return executable(*new_args, **new_kwargs)


def _check_static(function: Any) -> None:
    """Refuse functions of jax.jit with static arguments: those would be traced."""
    info = getattr(function, "_jit_info", None)
    if getattr(info, "static_argnums", ()) or getattr(info, "static_argnames", ()):
        raise OptionError("shlo_disc.jit has no static arguments: fix them with functools.partial")


def _refuse_tracers(call: Any) -> None:
    import jax

    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(call)):
        raise ArgumentTypeError(
            "a function of shlo_disc.jit cannot be called inside a function that JAX is tracing (jit, grad, vmap)"
        )


def jit(
    function: Callable[..., Any] | None = None,
    *,
    dynamic: Any = None,
    constraints: Sequence[str] = (),
    options: Options | None = None,
    compile_once: bool = True,
) -> Any:
    """Like `jax.jit`, but one compilation serves every size.

    dynamic: the symbolic shapes, as `jax.export.symbolic_args_specs` takes them: one string for all arguments, or one
    for each positional argument (None: static), e.g. dynamic=("b, s", "b, s, ...").
    compile_once: a call that does not fit the compiled program raises RecompileError; with False it compiles again.
    """
    if function is None:
        return functools.partial(
            jit, dynamic=dynamic, constraints=constraints, options=options, compile_once=compile_once
        )
    return Jitted(function, dynamic, constraints, options, compile_once)
