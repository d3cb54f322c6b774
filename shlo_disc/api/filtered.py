# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`shlo_disc.jit(filter=True)`: leaves that are no arrays, such as a model's activation function, are static."""

from __future__ import annotations

import contextlib
import functools
import html
import re
import threading
import types
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.export import is_symbolic_dim

from shlo_disc.api.jit import missing_attribute, sizes_by_name
from shlo_disc.api.named_sizes import NamedSizes, count_fault
from shlo_disc.errors import ArgumentTypeError, OptionError, RecompileError, ShapeError
from shlo_disc.runtime.described import count_text
from shlo_disc.runtime.dynamic_entries import positions_fault

if TYPE_CHECKING:
    from shlo_disc.api.jit import Jitted
    from shlo_disc.api.lowered import Lowered, Traced
    from shlo_disc.driver.executable import Executable

Call = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class Static:
    """All of a pytree but its arrays. `where`: the places of the other leaves; `leaves`: these, with their types.

    Two calls with equal ones run one program.
    """

    tree: Any
    where: tuple[int, ...]
    leaves: tuple[tuple[type, Hashable], ...]

    @staticmethod
    def of(value: Any, place: Callable[[Any], str]) -> tuple[Static, list[Any]]:
        """The Static and arrays of a pytree; Python's numbers are none. place: the name of a leaf, by its path.

        Raises ArgumentTypeError for a leaf without a hash.
        """
        leaves, tree = jax.tree.flatten(value)
        where = tuple(i for i, leaf in enumerate(leaves) if not _is_array(leaf))
        for i in where:
            try:
                hash(leaves[i])
            except TypeError:
                path, leaf = jax.tree_util.tree_leaves_with_path(value)[i]
                raise ArgumentTypeError(
                    f"a leaf that is no array has to be hashable, and {type(leaf).__name__} is not: {place(path)}"
                ) from None
        static = Static(tree, where, tuple((type(leaves[i]), leaves[i]) for i in where))
        return static, [leaf for leaf in leaves if _is_array(leaf)]

    def filled(self, arrays: Sequence[Any]) -> Any:
        """The pytree with these arrays."""
        fixed, given = dict(zip(self.where, self.leaves, strict=True)), iter(arrays)
        places = range(self.tree.num_leaves)
        return jax.tree.unflatten(self.tree, [fixed[i][1] if i in fixed else next(given) for i in places])


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | np.generic | jax.ShapeDtypeStruct)


class _OfArrays:
    """A function of the arrays of a call, which returns a list of arrays; and what else the result has."""

    def __init__(self, function: Callable[..., Any], static: Static):
        functools.update_wrapper(self, function)
        del self.__dict__["__wrapped__"]  # its signature is another one
        self._function, self._static = function, static
        self._results: Static | None = None

    def __call__(self, list_of_arrays: list[Any]) -> list[Any]:
        args, kwargs = self._static.filled(list_of_arrays)
        result = jax.tree.map(_size_as_array, self._function(*args, **kwargs))
        found, leaves = Static.of(result, lambda path: f"the result{jax.tree_util.keystr(path)}")
        if self._results not in (None, found):
            raise RecompileError("what the function returns besides arrays differs between sizes: return arrays")
        self._results = found
        return leaves

    def result(self, leaves: Sequence[Any]) -> Any:
        """The function's result, of the arrays that its program has returned."""
        assert self._results is not None  # noqa: S101 - it has been traced
        return self._results.filled(leaves)


@contextlib.contextmanager
def _errors_of(call: Call) -> Iterator[None]:
    """While this lasts, errors about the list of arrays name the places that its arrays have in the call."""
    try:
        yield
    except (ArgumentTypeError, OptionError, RecompileError, ShapeError) as error:
        message = _of_the_call(error.message, call)
        if message == error.message:
            raise
        raise type(error)(message) from error


def _of_the_call(message: str, call: Call) -> str:
    """A message about the list of arrays, with the places in the call that its arrays have."""
    leaves = jax.tree_util.tree_leaves_with_path(call)
    paths = [path for path, leaf in leaves if _is_array(leaf)]

    return _ARRAY.sub(lambda found: _place(paths[int(found[1])]), message)


def _place(path: Any) -> str:
    """The place that a leaf of (args, kwargs) has in the call, such as `args[0]['w']`."""
    return ("args" if path[0].idx == 0 else "kwargs") + jax.tree_util.keystr(path[1:])


_ARRAY = re.compile(r"args\[0\]\[(\d+)\]")


def _size_as_array(leaf: Any) -> Any:
    return jax.numpy.asarray(leaf) if is_symbolic_dim(leaf) else leaf


class FilteredJit:
    """A JAX function that takes and returns any objects in pytrees; see `filter` of `shlo_disc.jit`."""

    def __init__(self, function: Callable[..., Any], dynamic: Any, jitted: Callable[..., Jitted]):
        """`jitted` makes a Jitted of a function and its `dynamic`."""
        functools.update_wrapper(self, function)
        self._function, self._dynamic, self._jitted = function, sizes_by_name(function, dynamic), jitted
        self._lock = threading.Lock()
        self._programs: dict[Static, tuple[_OfArrays, Jitted]] = {}

    def __repr__(self) -> str:
        name = getattr(self._function, "__name__", repr(self._function))
        return f"<shlo_disc.jit of {name}, filtered, compiled {count_text(self.compile_count, 'time')}>"

    def _repr_html_(self) -> str:
        tables = (jitted._repr_html_() for _, jitted in list(self._programs.values()))
        return "".join([f"<p>{html.escape(repr(self)[1:-1])}</p>", *tables])

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> str:
        """Pickled and copied by name, as functions are."""
        return str(getattr(self, "__qualname__", type(self).__qualname__))

    if not TYPE_CHECKING:  # to a checker it would be an attribute of any name

        def __getattr__(self, name: str) -> Any:
            """Raises AttributeError, which says where the compiled program has the attribute."""
            raise missing_attribute(self, name)

    @property
    def compile_count(self) -> int:
        """The number of times that this function was compiled."""
        return sum(jitted.compile_count for _, jitted in list(self._programs.values()))

    @property
    def executable(self) -> Executable:
        """The newest executable, a function of the list of arrays. Raises OptionError before the first call."""
        found = [jitted for _, jitted in list(self._programs.values()) if jitted.compile_count]
        if not found:
            name = getattr(self._function, "__name__", repr(self._function))
            raise OptionError(f"no call has compiled {name!r} yet: call it first, or use .lower(...).compile()")
        return found[-1].executable

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As `Jitted`; each combination of what is no array in the arguments is a program of its own."""
        (function, jitted), arrays = self._program((args, kwargs))
        with _errors_of((args, kwargs)):
            return function.result(jitted(arrays))

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """As `Jitted.trace`, of a function of the list of arrays."""
        (_, jitted), arrays = self._program((args, kwargs))
        with _errors_of((args, kwargs)):
            return jitted.trace(arrays)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """As `Jitted.lower`, of a function of the list of arrays."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """As `Jitted.eval_shape`; leaves of the result that are no arrays are as the function returns them."""
        static, arrays = Static.of((args, kwargs), _place)
        function = _OfArrays(self._function, static)
        return function.result(jax.eval_shape(function, arrays))

    def clear_cache(self) -> None:
        """As `Jitted.clear_cache`."""
        with self._lock:
            self._programs = {}

    def _program(self, call: Call) -> tuple[tuple[_OfArrays, Jitted], list[Any]]:
        static, arrays = Static.of(call, _place)
        with self._lock:
            found = self._programs.get(static)
            if found is None:
                function = _OfArrays(self._function, static)
                found = function, self._jitted(function, dynamic=self._shapes(static, call))
                self._programs[static] = found
        return found, arrays

    def _shapes(self, static: Static, call: Call) -> Any:
        """The entry of `dynamic` for each array. Raises OptionError."""
        if self._dynamic is None or isinstance(self._dynamic, str):
            return self._dynamic
        args, kwargs = call
        if isinstance(self._dynamic, NamedSizes):
            positional, named = self._dynamic.of_calls(len(args))
            by_name = [(named.get(name), value) for name, value in sorted(kwargs.items())]
            pairs = [*zip(positional, args, strict=False), *by_name]
            return self._of_arrays(pairs, static)
        if fault := positions_fault(self._dynamic, args):
            raise OptionError(fault)
        if len(self._dynamic) != len(args):
            raise OptionError(count_fault(self._function, self._dynamic, call, is_filtered=True))
        return self._of_arrays([*zip(self._dynamic, args, strict=True), (None, kwargs)], static)

    @staticmethod
    def _of_arrays(pairs: Sequence[tuple[Any, Any]], static: Static) -> Any:
        """The entry for each array, of entries and what they are for."""
        texts = [text for text, value in pairs for _ in jax.tree.leaves(value)]
        return ([text for i, text in enumerate(texts) if i not in static.where],)


__all__ = ["FilteredJit", "Static"]
