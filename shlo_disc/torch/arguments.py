# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which values of a call are the arguments of an exported program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind
from torch.utils import _pytree

from shlo_disc.errors import ArgumentTypeError


class Structure:
    """What a program is called with and returns, as trees; read once, as PyTorch makes them anew each time."""

    def __init__(self, program: ExportedProgram):
        call = program.call_spec
        assert call.in_spec is not None and call.out_spec is not None  # noqa: S101  # of all that PyTorch exports
        self._spec, self.results = call.in_spec, call.out_spec
        users = [s.arg for s in program.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
        self._read = [(place, a.name) for place, a in enumerate(users) if not isinstance(a, ConstantArgument)]
        self._fixed = [(place, a) for place, a in enumerate(users) if isinstance(a, ConstantArgument)]
        self._names = self._spec.child(1).context if self._spec.num_children == 2 else []
        positional = [self._spec.child(0).child(i) for i in range(self._spec.child(0).num_children)]
        self._is_flat = not self._names and not self._fixed and all(part.is_leaf() for part in positional)

    def given(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that the program reads, by their names in it. Raises ArgumentTypeError for another structure,
        and where a number is not that of the export."""
        if self._is_flat and not kwargs and len(args) == len(self._read) and _are_tensors(args):
            return {name: args[place] for place, name in self._read}
        if set(self._names) == set(kwargs):
            kwargs = {name: kwargs[name] for name in self._names}
        flat, found = _pytree.tree_flatten((args, dict(kwargs)))
        if found != self._spec:
            raise ArgumentTypeError(
                f"the arguments have the structure {found}; the program was exported for {self._spec}"
            )
        for place, argument in self._fixed:
            if flat[place] != argument.value:
                raise ArgumentTypeError(
                    f"the argument {argument.name} is {flat[place]!r}; the program was exported for {argument.value!r}"
                )
        return {name: flat[place] for place, name in self._read}


def _are_tensors(values: tuple[Any, ...]) -> bool:
    return all(isinstance(v, torch.Tensor) for v in values)
