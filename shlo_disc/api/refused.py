# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Objects that `compile` and `jit` do not take as programs, and what to write for them."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

from shlo_disc.api.jit import Jitted
from shlo_disc.errors import OF_PYTORCH, ProgramError
from shlo_disc.runtime.native_owner import NativeOwner

_Function = TypeVar("_Function", bound=Callable[..., Any])


def refuses_torch(function: _Function) -> _Function:
    """Makes a function raise ProgramError for a module or function of PyTorch, whatever the other arguments are."""
    first = next(iter(inspect.signature(function).parameters))

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        refuse_torch(args[0] if args else kwargs.get(first))
        return function(*args, **kwargs)

    return cast(_Function, call)


def refuse_compiled(program: Any) -> None:
    """Raises ProgramError, with what to do, for what these functions and jax.jit have returned."""
    filtered = sys.modules.get("shlo_disc.api.filtered")
    if isinstance(program, Jitted | NativeOwner) or (filtered and isinstance(program, filtered.FilteredJit)):
        raise ProgramError(
            f"cannot compile an object that is compiled already, {program!r}: call it, or compile the function itself"
        )
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(program, jax.stages.Compiled):
        raise ProgramError(
            "cannot compile an object that jax.jit has compiled already: call it, or compile the function itself"
        )
    if instead := _next_step(program):
        raise ProgramError(f"cannot compile an object of type {type(program).__name__}: {instead}")


def _next_step(program: Any) -> str:
    """The way on from a function that was traced or lowered; "" for other objects."""
    jax, own = sys.modules.get("jax"), sys.modules.get("shlo_disc.api.lowered")
    if own is not None and isinstance(program, own.Lowered):
        return "write lowered.compile() in place of shlo_disc.compile(lowered)"
    if own is not None and isinstance(program, own.Traced):
        return "write traced.lower().compile() in place of shlo_disc.compile(traced)"
    if jax is not None and isinstance(program, jax.stages.Lowered):
        return "compile the function itself, or the StableHLO by shlo_disc.compile(lowered.as_text())"
    if jax is not None and isinstance(program, jax.stages.Traced):
        return "compile the function itself, or the StableHLO by shlo_disc.compile(traced.lower().as_text())"
    return ""


def refuse_no_function(function: Any) -> None:
    """Raises ProgramError, with what to write, for what `jit` cannot trace."""
    if isinstance(function, classmethod):
        raise ProgramError(
            "cannot compile an object of type classmethod: write @classmethod above @shlo_disc.jit, and not below it"
        )
    is_exported = any(
        module in sys.modules and isinstance(function, getattr(sys.modules[module], name))
        for module, name in (("jax.export", "Exported"), ("torch.export", "ExportedProgram"))
    )
    if callable(function) and not is_exported:
        return
    is_program = is_exported or isinstance(function, str | bytes | os.PathLike)
    instead = ": shlo_disc.compile takes StableHLO and exported programs" if is_program else ""
    raise ProgramError(
        f"cannot compile an object of type {type(function).__name__} by shlo_disc.jit, which takes a function{instead}"
    )


_EXPORTED = "shlo_disc.compile(shlo_disc.torch.export(module, args, dynamic_shapes=...))"


def refuse_torch(program: Any) -> None:
    """Raises ProgramError, with what to do, for modules and functions of PyTorch."""
    torch, export = sys.modules.get("torch"), sys.modules.get("torch.export")
    if torch is None or (export is not None and isinstance(program, export.ExportedProgram)):
        return
    if isinstance(program, torch.jit.ScriptModule):
        raise ProgramError(
            f"a module of TorchScript is not compiled: take the torch.nn.Module that it was made of, as {_EXPORTED}"
        )
    if isinstance(program, torch.nn.Module) and hasattr(program, "_orig_mod"):
        raise ProgramError(
            "what torch.compile returns is compiled in its calls, by the backend that it was given; the module that it "
            f"holds is _orig_mod: {_EXPORTED.replace('(module', '(module._orig_mod')}"
        )
    if isinstance(program, torch.nn.Module) or isinstance(getattr(program, "__self__", None), torch.nn.Module):
        raise ProgramError(
            f"a torch.nn.Module is compiled as {_EXPORTED} or by torch.compile(module, backend='shlo_disc')"
        )
    if _is_of_torch(program, torch):
        raise ProgramError(f"{getattr(program, '__name__', program)!r} is a function of PyTorch: {OF_PYTORCH}")


def _is_of_torch(function: Any, torch: Any) -> bool:
    """Tells whether a function is one that PyTorch defines, or has compiled."""
    name, module = getattr(function, "__name__", ""), getattr(function, "__module__", None) or ""
    if hasattr(function, "_torchdynamo_orig_callable"):
        return True
    is_torch = module == "torch" or module.startswith("torch.")
    return callable(function) and (is_torch or getattr(torch, name, None) is function)


def refuse_tensors(arguments: Any) -> None:
    """Raises ProgramError where examples for a JAX function are tensors of PyTorch."""
    torch = sys.modules.get("torch")
    if torch is not None and any(isinstance(v, torch.Tensor) for v in torch.utils._pytree.tree_leaves(arguments)):
        raise ProgramError(f"args= has tensors of PyTorch, and JAX traces the function: {OF_PYTORCH}")


__all__ = ["refuse_compiled", "refuse_no_function", "refuse_tensors", "refuses_torch"]
