# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of calls in PyTorch's words: names of `forward`'s arguments, Dims and `dynamic_shapes`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from shlo_disc.errors import ArgumentTypeError, DiscError, ShapeError

from .axes import IN_C
from .described import count_text
from .parameter_names import listed
from .tree import TreeSpec

_PATH = re.compile(r"args\[(\d+)\]")
_FIXED = re.compile(
    r"^Shape mismatch for (\S+)\.shape\[(\d+)\] \(expected same constant\): expected \((.*?)\)( and .*)$", re.DOTALL
)
ASSUMED = "the program was exported for sizes with "
"""The beginning of a message about a relation that PyTorch took to hold while it traced."""

_MISMATCH = re.compile(r"^(?:Shape|Rank) mismatch for ([^:]+?)(?:\.shape\[\d+\])?(?: \(|:)")
_CONSTANT = re.compile(r" \(expected same constant\)")
_DTYPE = re.compile(r"^Dtype mismatch for (.+): expected (\w+) and called with (\w+)$")
_ASKED = re.compile(r"Expected (.*?), which (?:\S+ at )?(.*?) requires")
_OF_DATA = "A size that the program reads from data does not fit"
_VALUE = re.compile(r"(?:Here |, )(\w+) = (-?\d+)")


def names_of_torch(header: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the arguments of a program of PyTorch, of its weights too; () for other programs.

    Programs of JAX state their trees beside the names; those of PyTorch take all their tensors one by one.
    """
    pytree = header.get("pytree") or {}
    return () if "in" in pytree else tuple(pytree.get("names", ()))


def explainer_of_torch(
    name: str, names: Sequence[str], bound: int = 0, weights: int | None = None, buffers: Collection[str] = ()
) -> Callable[[Any, Any], str]:
    """The function that explains for a call which of the arguments it lacks.

    bound: how many `bind` has fixed. weights: how many of the first are weights; None where the file does not have it.
    buffers: those after the weights that the program changes.
    """
    own = names[: len([n for n in names if _is_weight(n)]) if weights is None else weights]

    def explain(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        taken = names[bound:]
        fixed = f" beside the {bound} that bind has fixed" if bound else ""
        every = f" ({listed(taken)})" if taken else ""
        text = f"'{name}' takes {count_text(len(taken), 'argument')}{every}{fixed}; the call "
        if unknown := [key for key in kwargs if key not in taken]:
            return f"{text}gives {unknown[0]!r}, which is none of {'them' if taken else 'its arguments'}"
        if twice := [key for key in taken[: len(args)] if key in kwargs]:
            return f"{text}gives {twice[0]} by position and by name"
        if len(args) > len(taken) == 0:
            rest = f": bind only {listed(own)}, and give {listed(names[len(own) :])} in calls" if own else ""
            return f"bind has fixed all {count_text(bound, 'argument')} of '{name}'; the call gives {len(args)}{rest}"
        if len(args) > len(taken):
            return f"{text}gives {len(args)}"
        if missing := [key for key in taken[len(args) :] if key not in kwargs]:
            remedy = f". The weights come first ({listed(own)}): {BIND}" if bound < len(own) else ""
            if any(key in buffers for key in taken):
                remedy = _of_buffers(buffers, [key for key in taken if key not in buffers])
            given = f"gives {listed(taken[: len(args)])} by position, and " if args else ""
            return f"{text}{given}lacks {listed(missing)}{remedy}"
        values = {**dict(zip(taken, args, strict=False)), **kwargs}
        others = [f"{key} is of type {type(v).__name__}" for key, v in values.items() if TreeSpec.of(v).kind != "leaf"]
        return f"'{name}' takes arrays, and {listed(others)}: give numpy.asarray(..., dtype=...)"

    return explain


def _of_buffers(buffers: Collection[str], others: Sequence[str]) -> str:
    """Advice on buffers that the program changes. others: what a call takes after them."""
    call = ", ".join(["*state", *(key if key.isidentifier() else "..." for key in others)])
    return (
        f". The module changes {listed(list(buffers))}: each call takes the values of these first, and returns their "
        f"new values first. Begin with state = bound.buffers.values(), and call *state, y = bound({call})"
    )


BIND = (
    "bind the weights, as in bound = program.bind(weights=file) with the path of the file that run.save(path, "
    "weights=file) wrote, or with module.state_dict() where that has all of them, and call bound"
)


def _is_weight(name: str) -> bool:
    """Tells whether a name is that of a parameter or buffer of a submodule: those of `forward`'s arguments have no dot
    before a bracket."""
    return "." in name.partition("[")[0]


def of_array(error: DiscError, names: Sequence[str], weights: int) -> DiscError:
    """The error for a program of PyTorch that was loaded from a file, and takes arrays.

    weights: how many of the first arguments are weights, whatever their names are.
    """
    own = [name for place, name in enumerate(names) if place < weights or _is_weight(name)]
    conversion = "{name}.astype({dtype!r}), a tensor by .to(torch.{dtype})"
    return in_words_of_torch(error, dict(enumerate(names)), conversion, own)


def in_words_of_torch(
    error: DiscError,
    names: Mapping[int, str],
    conversion: str = "{name}.to(torch.{dtype})",
    weights: Collection[str] = (),
) -> DiscError:
    """The same error for a program of PyTorch. names: what the user calls the arguments, by their positions.

    weights: those that are parameters and buffers.
    """
    message = _PATH.sub(lambda found: names.get(int(found[1])) or found[0], error.message)
    if isinstance(error, ShapeError):
        found = _MISMATCH.match(message)
        if found and IN_C in message:
            return ShapeError(_CONSTANT.sub("", message))
        if found and found[1] in weights:
            return ShapeError(
                f"{_CONSTANT.sub('', message)}; the shapes of weights are those of the exported module: these weights "
                "are of a model of other sizes, or of another model; compile and save the one that has them"
            )
        return ShapeError(_of_sizes(message, names.values()))
    if isinstance(error, ArgumentTypeError) and (found := _DTYPE.match(message)):
        if found[1] in weights:
            return ArgumentTypeError(
                f"{message}; weights and buffers have the dtypes of the module that was exported: convert arrays by "
                f".astype({found[2]!r}) and tensors by .to(torch.{found[2]}), and export a module again that was "
                "converted after its export"
            )
        return ArgumentTypeError(f"{message}: convert it by {conversion.format(name=found[1], dtype=found[2])}")
    return type(error)(message) if isinstance(error, ArgumentTypeError) else error


def _of_sizes(message: str, names: Collection[str]) -> str:
    if found := _FIXED.match(message):
        name, axis, expected, sizes = found.groups()
        shapes = f"={{{name!r}: {{{axis}: Dim.AUTO}}}}" if name.isidentifier() else "= in which it is a Dim"
        is_special = expected.split(", ")[int(axis)].rstrip(",") in ("0", "1")  # PyTorch fixes these of examples
        example = "an example in which this size is 2 or more, and " if is_special else ""
        return (
            f"Shape mismatch for {name}.shape[{axis}], which was fixed when the program was exported: expected "
            f"({expected}){sizes}; where the module allows other sizes, export it with {example}dynamic_shapes{shapes}"
        )
    finding, takes, rest = message.partition(". The program takes ")
    if not takes and not message.startswith(_OF_DATA):
        return message
    if "is above its range" in finding or "is below its range" in finding:
        return _of_range(finding, rest)
    finding = _ASKED.sub(lambda found: f"{_asker(found[2])} asks that {found[1]}", finding)
    if "out of range for an axis of" in finding:
        return (
            f"{finding}. The program was exported for {rest}: call it with sizes at which they are in range, or export "
            f"a module whose axis there is longer, such as an embedding of more rows{_one_dim(rest)}"
        )
    if finding.startswith(_OF_DATA):
        return _of_data(finding.rstrip("."), f". The program was exported for {rest}" if rest else "", names)
    if finding.startswith(ASSUMED):
        what, place = _at_place(finding)
        return (
            f"{what}, which PyTorch took to hold for an op of the module or a branch in it{place}. The program was "
            f"exported for {rest}: {_of_others(finding, rest, 'for sizes where it does not hold')}"
        )
    return f"{finding}. The program was exported for {rest}: other sizes take an export with other dynamic_shapes="


def _of_range(finding: str, rest: str) -> str:
    """A message about a size out of its range, which a `Dim` has, or PyTorch took for an op or a branch."""
    if _TAKEN not in finding:
        end = "max=" if "is above its range" in finding else "min="
        return (
            f"{finding}, by {end} of its Dim. The program was exported for {rest}: export the module with another "
            f"{end}; where PyTorch refuses that, an op or a branch takes other sizes in another way, and a second "
            "program, exported with an example of them, takes these"
        )
    told = f"{finding}. The program was exported for {rest}: "
    if "torch.cdist" in finding:
        return (
            f"{told}write torch.cdist(x, y, compute_mode='donot_use_mm_for_euclid_dist'), which takes all sizes, or "
            "export the module again with an example of sizes outside of it"
        )
    return f"{told}{_of_others(finding, rest, 'for sizes outside of it')}"


_TAKEN = ", as PyTorch took it for "
"""The part of an error about the end of a range that is not that of a `Dim`."""


def _of_others(finding: str, rest: str, when: str) -> str:
    """Advice on sizes that a program does not take, as PyTorch took another way for them. rest: the sizes of the call.

    PyTorch fixes sizes of 0 and 1 of examples, so that these take programs of their own.
    """
    sizes = {name: (int(value), source) for name, value, source in _SIZE.findall(rest)}
    relation = finding.removeprefix(ASSUMED).partition(_TAKEN)[0]
    special = [sizes[name] for name in re.findall(r"\w+", relation) if name in sizes and sizes[name][0] in (0, 1)]
    if special:
        value, source = special[0]
        return (
            f"for {source} of {value}, export the module again with an example of it and Dim.STATIC for this axis in "
            "dynamic_shapes=, or write a branch on it with torch.cond"
        )
    return (
        f"{when}, export the module again with an example of them, and with Dim.STATIC for this axis in "
        "dynamic_shapes= where PyTorch then fixes it, or write a branch on them with torch.cond"
    )


_SIZE = re.compile(r"(\w+) = (\d+) \(from ([^()]+)\)")


def _at_place(finding: str) -> tuple[str, str]:
    """A finding without the line of the user's in parentheses at its end, and this line."""
    found = re.match(r"(.*) \(([^()]+:\d+)\)$", finding, re.DOTALL)
    return (found[1], f", at {found[2]}") if found else (finding, "")


def _one_dim(rest: str) -> str:
    """Advice for a call whose arguments have sizes of several names, some of which have to be equal."""
    sources = [source for _, _, source in _SIZE.findall(rest)]
    if len({source.partition(".")[0] for source in sources}) < 2:
        return ""
    return f"; where sizes of {listed(sources)} have to be equal, give both one Dim in dynamic_shapes="


def _of_data(finding: str, exported: str, names: Collection[str]) -> str:
    """A message about integers that are read from tensors, or are arguments. exported: the sizes of the program."""
    values = dict(_VALUE.findall(finding))
    own = [name for name in values if name in names]
    if not own:
        return f"{finding}{exported}: call it with data for which this holds"
    integers = f"{listed(own)}, {'integers' if len(own) > 1 else 'an integer'} among the arguments,"
    finding = f"{integers} {'do' if len(own) > 1 else 'does'} not fit{finding.removeprefix(_OF_DATA)}"
    given = " and ".join(f"{name} = {values[name]}" for name in own)
    return (
        f"{finding}{exported}: if the module takes {given}, export it again with this as the example and None for "
        f"{listed(own)} in dynamic_shapes="
    )


def _asker(place: str) -> str:
    """The line that asks for a relation, or PyTorch for one that is none of the user's."""
    return "PyTorch" if place == "unknown" or place.startswith("torch/fx/") else place


__all__ = ["BIND", "explainer_of_torch", "in_words_of_torch", "names_of_torch", "of_array"]
