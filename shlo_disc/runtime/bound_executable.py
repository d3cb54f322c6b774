# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program whose first arguments are fixed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from shlo_disc.errors import ArgumentTypeError, ShapeError

from . import _native
from .adapt import detached
from .call_arguments import takes_call
from .call_results import CommandTime, RecordedSpan, command_times, output_of, recorded_spans
from .described import missing_text, program_table, program_text, signature_text, target_row
from .native_owner import NativeOwner
from .tree import TreeSpec, call_tree

if TYPE_CHECKING:
    from .executable import LoadedExecutable


class BoundExecutable(NativeOwner):
    """A program whose first arguments are fixed: call it with the others. Thread-safe, like the program itself.

    `args` are as the program takes them, with its own order of axes, which `LoadedExecutable.bind` gives them.
    """

    pickle_instead = "pickle the Executable and the arrays, and bind them again"

    def __init__(
        self,
        executable: LoadedExecutable,
        args: tuple[Any, ...],
        output: str | None = None,
        donate: bool = False,
        copy: bool = True,
        buffers: Mapping[str, Any] = MappingProxyType({}),
    ):
        if donate and not copy:
            raise ValueError("bind(donate=True) deletes the arrays and so has to copy them; leave copy=True")
        self._output = output_of(output)
        positional, keyword = executable.in_tree.children
        count = len(args)
        if count > len(positional.children):
            raise ArgumentTypeError(f"bind got {count} arguments; '{executable.name}' takes {len(positional.children)}")
        is_of_torch = "in" not in executable.header.get("pytree", {})
        if is_of_torch and any(isinstance(value, (str, os.PathLike, Mapping)) for value in args):
            raise ArgumentTypeError("bind takes arrays by position, and names or a file of arrays by bind(weights=...)")
        if is_of_torch and any(hasattr(value, "state_dict") for value in args):
            raise ArgumentTypeError("bind takes arrays, and not a module: write bind(weights=module.state_dict())")
        if any(isinstance(value, str | os.PathLike | np.lib.npyio.NpzFile) for value in args):
            raise ArgumentTypeError(
                "bind takes arguments of the program by position, and not files: write bind(dict(numpy.load(file))) "
                "for a dict of the arrays in an .npz file, and bind(weights=file) for arguments by name"
            )
        bound = TreeSpec("tuple", positional.children[:count])
        rest = call_tree(TreeSpec("tuple", positional.children[count:]), keyword)

        self.executable = executable
        self._names = executable.parameter_names.after(count)
        self._count = count
        self._buffers = dict(buffers)
        self._native: Any = _native.BoundExecutable(
            executable=executable.native,
            args=tuple(map(detached, args)),
            bound_tree=call_tree(bound).native(),
            rest_tree=rest.native(),
            explain_bound=executable.explainer(call_tree(bound)),
            explain_structure=executable.explainer(rest, count, self._buffers),
            donate=donate,
            copy=copy,
        )

    def __repr__(self) -> str:
        return f"<BoundExecutable {program_text(self.executable.artifact.header)}, its first {self._count} fixed>"

    def _repr_html_(self) -> str:
        header = self.executable.artifact.header
        fixed = "fixed", f"the first {self._count} of {len(self.executable.in_tree.children[0].children)} arguments"
        return program_table(f"BoundExecutable {header['name']}", header, [target_row(header), fixed])

    if not TYPE_CHECKING:  # to a checker it would be an attribute of any name

        def __getattr__(self, name: str) -> Any:
            """Raises AttributeError, which names the object that has the attribute."""
            program = self.__dict__.get("executable")
            is_ours = getattr(program, "has_executable", False)
            text = missing_text(type(self).__name__, name, getattr(program, "name", ""), is_ours)
            if hasattr(type(program), name):
                text = f"a bound program has no {name!r}, but its program has: use bound.executable.{name}"
            raise AttributeError(text, name=name, obj=self)

    @property
    def signature(self) -> str:
        """The names of the other arguments and of results, with their dtypes and symbolic shapes, in a line."""
        return signature_text(self.executable.artifact.header, self._count)

    @property
    def buffers(self) -> dict[str, Any]:
        """The values that `bind(weights=...)` was given for buffers that the program changes, by name.

        They are the first arguments of the first call, and each call returns their new values first.
        """
        return dict(self._buffers)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program on its other arguments; results are jax.Arrays if any argument, bound or not, is one."""
        names = self._names
        try:
            if (kwargs and names) or names.turned:
                args, kwargs = names.by_position(args, kwargs)
            return self._native.execute(args, kwargs, self._output)
        except (ArgumentTypeError, ShapeError) as error:
            raise self.executable.worded(error) from None

    @takes_call
    def execute(
        self, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None, *, output: str | None = None
    ) -> Any:
        """As `LoadedExecutable.execute`."""
        try:
            return self.execute_unworded(args, kwargs, output=output)
        except (ArgumentTypeError, ShapeError) as error:
            raise self.executable.worded(error) from None

    def execute_unworded(
        self, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None, *, output: str | None = None
    ) -> Any:
        """As `execute`; errors count the arguments of programs of PyTorch, as those of other programs do."""
        args, kwargs = self._placed(args, kwargs)
        return self._native.execute(tuple(args), dict(kwargs), output_of(output))

    @takes_call
    def profile(self, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> list[CommandTime]:
        """As `LoadedExecutable.profile`."""
        return command_times(self._worded(self._native.profile, args, kwargs))

    @takes_call
    def record(
        self, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None
    ) -> tuple[list[RecordedSpan], list[RecordedSpan]]:
        """Run the program once and return its commands as they ran, with the part of each thread for divided ones.

        Raises DeviceError on a GPU.
        """
        return recorded_spans(*self._worded(self._native.record, args, kwargs))

    def _placed(self, args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """A call as the program takes it. Raises ShapeError."""
        names = self._names
        if (kwargs and names) or names.turned:
            return names.by_position(args, kwargs or {})
        return args, kwargs or {}

    def _worded(self, run: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> Any:
        """The result of a function of the native core for a call, with the errors of `execute`."""
        try:
            args, kwargs = self._placed(args, kwargs)
            return run(tuple(args), dict(kwargs))
        except (ArgumentTypeError, ShapeError) as error:
            raise self.executable.worded(error) from None
