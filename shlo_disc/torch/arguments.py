# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The values of a call that are the arguments of an exported program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind
from torch.utils import _pytree

from shlo_disc.errors import ArgumentTypeError, ProgramError
from shlo_disc.runtime.parameter_names import ParameterNames
from shlo_disc.torch.tensors import as_argument


class Structure:
    """The arguments and results of a program, as trees; read once, as PyTorch makes them anew each time."""

    def __init__(self, program: ExportedProgram):
        call = program.call_spec
        assert call.in_spec is not None and call.out_spec is not None  # noqa: S101  # of all that PyTorch exports
        self._spec, self.results = call.in_spec, call.out_spec
        users = [s.arg for s in program.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
        self._read = [(place, a.name) for place, a in enumerate(users) if not isinstance(a, ConstantArgument)]
        self._fixed = [(place, a) for place, a in enumerate(users) if isinstance(a, ConstantArgument)]
        self._names = self._spec.child(1).context if self._spec.num_children == 2 else []
        self.paths = _paths(program, self._spec, [a.name for a in users])
        values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
        self._dtypes = {a.name: getattr(values.get(a.name), "dtype", None) for a in users}
        self._places = ParameterNames(_positional_names(program)[: self._spec.child(0).num_children])
        positional = [self._spec.child(0).child(i) for i in range(self._spec.child(0).num_children)]
        self._is_flat = not self._names and not self._fixed and all(part.is_leaf() for part in positional)

    @property
    def read_names(self) -> list[str]:
        """The names in the program of the arguments that it reads, in their order."""
        return [name for _, name in self._read]

    def given(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that the program reads, by their names in it. Raises ArgumentTypeError for another structure,
        and where a number is not that of the export."""
        if self._is_flat and not kwargs and len(args) == len(self._read) and _are_tensors(args):
            return {name: args[place] for place, name in self._read}
        if kwargs:
            args, kwargs = self._places.by_position(args, kwargs)
        if set(self._names) == set(kwargs):
            kwargs = {name: kwargs[name] for name in self._names}
        flat, found = _pytree.tree_flatten((args, dict(kwargs)))
        if found != self._spec:
            flat = self._in_other_order((args, dict(kwargs)))
        if flat is None:
            raise ArgumentTypeError(self._difference(found))
        for place, argument in self._fixed:
            if not _is_equal(flat[place], argument.value):
                raise ArgumentTypeError(
                    f"the argument {self.paths[argument.name]} is {flat[place]!r}; the program was exported for "
                    f"{argument.value!r}: export it for each value{_other_than_fixed(argument.value)}"
                )
        return {name: flat[place] for place, name in self._read}

    def _in_other_order(self, tree: Any) -> list[Any] | None:
        """The leaves of arguments whose dicts have the keys of the export in another order; None for other trees."""
        try:
            flat: list[Any] = self._spec.flatten_up_to(tree)
        except ValueError:
            return None
        return flat if all(_pytree.tree_is_leaf(value) for value in flat) else None

    def leaf(self, name: str, value: Any) -> Any:
        """An argument of `given` as the program takes it. Raises ArgumentTypeError for one of another kind, and for a
        tensor that a gradient is wanted of, which would be lost."""
        path, dtype = self.paths[name], self._dtypes[name]
        what = f"the argument {path}"
        if isinstance(value, torch.Tensor):
            if value.requires_grad and torch.is_grad_enabled():
                raise ArgumentTypeError(f"{what} requires a gradient{_DETACHED}")
            return as_argument(value, what)
        if dtype in (None, torch.int64) and isinstance(value, int | np.integer) and not isinstance(value, bool):
            return np.array(value, np.int64)
        is_number = isinstance(value, int | float | complex | np.generic)
        if dtype is None:
            remedy = f": give int({path})" if is_number or isinstance(value, np.ndarray) else ""
            raise ArgumentTypeError(f"{what} is {type(value).__name__}, and the program takes an integer{remedy}")
        remedy = f": give torch.tensor({path}, dtype={dtype})" if is_number else ""
        remedy = f"; make it one by torch.from_numpy({path})" if isinstance(value, np.ndarray) else remedy
        if value is None:
            remedy = ": give a tensor, or export another program with None for it, and call that"
        raise ArgumentTypeError(f"{what} is {type(value).__name__}, not a tensor{remedy}")

    def _difference(self, found: _pytree.TreeSpec) -> str:
        """A sentence on the structure that `forward` was exported with, and that of a call with another one."""
        names = [*self._places.names, *self._names]
        wanted, given = (_children(spec, self._places.names) for spec in (self._spec, found))
        if unknown := [name for name in found.child(1).context if name not in wanted]:
            return (
                f"the arguments have another structure: the program has no argument {unknown[0]!r}; it was exported "
                f"for forward({', '.join(wanted)})"
            )
        positional = self._places.names or names
        twice = [name for name in positional[: found.child(0).num_children] if name in found.child(1).context]
        if twice or list(wanted) != list(given):
            fault = f"gives {twice[0]} by position and by name" if twice else self._misplaced([*wanted], given, found)
            return (
                f"the arguments have another structure: the program was exported for forward({', '.join(wanted)}), and "
                f"the call {fault}"
            )
        name = next((name for name in wanted if wanted[name] != given[name]), names[0] if names else "")
        is_list = wanted[name].is_leaf() and given[name].type in (list, tuple)
        remedy = f"give torch.tensor({name}) for numbers, and torch.stack({name}) for tensors" if is_list else ""
        remedy = remedy or "give it so, or export another program with an example like that of the call"
        return (
            f"the arguments have another structure: {name} is {_text(given[name])}, and the program was exported for "
            f"{_text(wanted[name])}, where * is a tensor or a number: {remedy}"
        )

    def _misplaced(self, wanted: Sequence[str], given: Mapping[str, Any], found: _pytree.TreeSpec) -> str:
        """The rest of a sentence on a call: it has too few or too many arguments, or gives some by position."""
        positional, most = found.child(0).num_children, self._spec.child(0).num_children
        if len(given) > len(wanted):
            return f"gives {len(given)} arguments: export the program with those that calls give"
        if positional > most:
            return f"gives {positional} by position: pass {', '.join(f'{n}=...' for n in wanted[most:])} by name"
        missing = [name for name in wanted if name not in given]
        what = "it" if len(missing) == 1 else "them"
        return f"lacks {', '.join(missing)}: pass {what}, or export the program with the arguments that calls give"


_DETACHED = (
    ", and none flows through an exported program: call it under torch.no_grad(), pass a .detach() of it, or, for "
    'training, use torch.compile(module, backend="shlo_disc")'
)


def _is_equal(value: Any, fixed: Any) -> bool:
    """Tells whether a value is the one that PyTorch has fixed, of its kind: 2.0 gives other dtypes than 2."""
    if isinstance(fixed, bool | int | float | complex):
        kinds = (bool | np.bool_, int | np.integer, float | np.floating, complex | np.complexfloating)
        kind = next(kind for kind in kinds if isinstance(fixed, kind))
        if not isinstance(value, kind) or (isinstance(value, bool) and not isinstance(fixed, bool)):
            return False
    try:
        return bool(value == fixed) or bool(value != value and fixed != fixed)  # both are NaN
    except (ValueError, RuntimeError):  # arrays of several elements are none
        return False


def check_examples(program: ExportedProgram, paths: Mapping[str, str]) -> None:
    """Check that no tensor was the example of two arguments, one of which the program reads for both: so does PyTorch.

    paths: the user's names for the inputs of the program. Raises ProgramError.
    """
    args, kwargs = program.example_inputs or ((), {})
    leaves, spec = _pytree.tree_flatten((args, dict(kwargs)))
    if spec != program.call_spec.in_spec:
        return
    names = [s.arg.name for s in program.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
    read = {node.name for node in program.graph.nodes if node.op == "placeholder" and node.users}
    first: dict[int, str] = {}
    for name, value in zip(names, leaves, strict=True):
        if not isinstance(value, torch.Tensor) or first.setdefault(id(value), name) == name:
            continue
        other = first[id(value)]
        if (name in read) != (other in read):
            raise ProgramError(
                f"{paths[other]} and {paths[name]} had one tensor as their example, and PyTorch "
                f"exported a program that reads one of them for both: export it with tensors of their own, such as "
                "x.clone(), or by shlo_disc.torch.export, which does so"
            )


class _Leaf:
    """A leaf of a printed tree."""

    def __repr__(self) -> str:
        return "*"


def _text(spec: _pytree.TreeSpec) -> str:
    """A tree as its containers print it: `{'mask': *, 'layers': [*, *]}`."""
    return repr(spec.unflatten([_Leaf()] * spec.num_leaves))


def _children(spec: _pytree.TreeSpec, names: Sequence[str]) -> dict[str, _pytree.TreeSpec]:
    """The trees of a call's arguments, by what the user calls these."""
    positional, keyword = spec.child(0), spec.child(1)
    found = {
        (names[i] if i < len(names) else f"positional argument {i + 1}"): positional.child(i)
        for i in range(positional.num_children)
    }
    return found | {name: keyword.child(i) for i, name in enumerate(keyword.context)}


def _positional_names(program: ExportedProgram) -> tuple[str, ...]:
    """The names of the arguments of `forward`, by position and then by keyword; () where PyTorch has not kept them."""
    signature = program.module_call_graph[0].signature if program.module_call_graph else None
    return tuple(getattr(signature, "forward_arg_names", None) or ())


def _paths(program: ExportedProgram, spec: _pytree.TreeSpec, inputs: Sequence[str]) -> dict[str, str]:
    """The user's name for an input of the program: `x`, or `batch['mask']`."""
    names = _positional_names(program)
    try:
        leaves, _ = _pytree.tree_flatten_with_path(spec.unflatten(list(range(len(inputs)))))
    except Exception:  # containers of the user's own that have no paths
        return {name: name for name in inputs}
    found = {}
    for (part, entry, *rest), leaf in leaves:
        key = getattr(entry, "key", None) if part.idx else None
        position = getattr(entry, "idx", 0)
        first = str(key) if part.idx else names[position] if position < len(names) else f"args[{position}]"
        found[inputs[leaf]] = first + _pytree.keystr(tuple(rest))
    return found


def _are_tensors(values: tuple[Any, ...]) -> bool:
    return all(isinstance(v, torch.Tensor) for v in values)


def _other_than_fixed(value: Any) -> str:
    """Advice on how a number that PyTorch has fixed at export is left open; "" for what it always fixes."""
    if isinstance(value, bool):
        return ""
    if isinstance(value, int):
        return ", or once for all, with Dim.DYNAMIC for it in dynamic_shapes="
    return ", or take a tensor of one element instead" if isinstance(value, float) else ""
