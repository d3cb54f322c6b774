# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PJRT's LoadedExecutable: a compiled program ready to be called."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shlo_disc.errors import ArgumentTypeError, DiscError, ShapeError
from shlo_disc.options import CPU, check_flag, takes_options
from shlo_disc.shape_dialect.dtypes import BY_NAME
from shlo_disc.shape_dialect.symbolic.expr import Expr

from . import _native
from .artifact import Artifact
from .bound_executable import BoundExecutable
from .call_arguments import takes_call, takes_weights
from .call_results import CommandTime, MemoryStats, command_times, output_of
from .cuda_libraries import nccl_names, open_for
from .described import missing_text, program_table, program_text, signature_text, target_row, target_text
from .dims import by_name, dim_values
from .dtype_faults import with_conversion
from .header_arrays import bytes_of, sizes_of
from .in_jax import JaxFunction, is_traced
from .jax_arrays import jax_converter
from .keys import key_array, key_dtype
from .lists import with_arrays
from .load_checks import check_device, check_replicas, trusted
from .native_module import install_blas, install_custom_call, install_extension_dtype, install_lapack
from .native_owner import NativeOwner
from .parameter_names import ParameterNames, explained, listed
from .program_trees import rebuilt, trees_of
from .tree import TreeSpec
from .weight_files import delete_others, named_weights, of_its_dtype, own_copy
from .words_of_calls import in_own_words
from .words_of_torch import BIND, explainer_of_torch, names_of_torch, of_array

if TYPE_CHECKING:
    from .client import Client
    from .device import Device
    from .event import Future


class LoadedExecutable(NativeOwner):
    """A program in memory. Calls are thread-safe and check every argument before anything runs.

    A call raises ArgumentTypeError (structure, dtype), ShapeError (rank, size, constraint, overflow) or AllocationError
    (memory). After any of these you can call the executable again.

    You can pass arguments by the parameter names of the compiled function, if these are known.

    In functions that JAX traces (`jax.jit`, `jax.vmap`, `jax.grad`), calls accept JAX's tracers (docs/in-jax.md).
    `gradient` returns the vector-Jacobian product of the program there, of flat arguments and cotangents of results.
    `keeps`: objects of this process that the program calls, such as Python functions. `has_executable`: tells whether
    it belongs to an Executable of this process, and was read from no file.
    """

    pickle_instead = "pickle its artifact, which is to be trusted anew, or the Executable, which is compiled anew"
    gradient: Callable[[], LoadedExecutable] | None = None
    keeps: Sequence[Any] = ()
    has_executable: bool = False

    def __init__(
        self,
        client: Client,
        artifact: Artifact,
        *,
        in_tree: Any = None,
        out_tree: Any = None,
        memo_bytes: int = 4 << 20,
        perf_map: bool = False,
        cpu: str = "",
    ):
        level = trusted(artifact).level(cpu)
        read_header = _native.Header(level.header_text)
        header = level.header
        check_device(header["target"].get("name"), client)
        self.num_replicas: int = read_header.replicas
        check_replicas(self.num_replicas, len(client.devices()))
        self._client = client
        self._artifact, self._level = artifact, level
        read = [symbol for segment in header.get("segments", ()) for symbol in segment["symbols_read"]]
        self._symbols = [str(symbol["name"]) for symbol in (*header["symbols"], *read)]
        trees = trees_of(header, in_tree, out_tree)
        self.in_tree, self.out_tree = trees
        self.name: str = header["name"]
        self.parameter_names = ParameterNames.of(header, trees[0])
        self._names_of_torch = names_of_torch(header) if self.parameter_names else ()
        if header.get("blas", True):
            install_blas()
        if client.platform == "cuda":
            open_for(header.get("calls", ()))
        elif any(call["target"].startswith("lapack_") for call in header.get("calls", ())):
            install_lapack()
        for call in header.get("calls", ()):
            if "custom" in call:
                install_custom_call(call["target"])
        for array in (*header["arguments"], *header["results"]):
            dtype = BY_NAME.get(array["dtype"])
            if dtype is not None and dtype.is_extension:
                install_extension_dtype(dtype)
        places = client.devices() if self.num_replicas > 1 else client.devices()[:1]
        if self.num_replicas > 1 and client.platform == "cuda":
            _native.open_nccl(nccl_names())
        on = {place.native: place for place in reversed(places)}
        loaded = {native: self._load_on(place, read_header, memo_bytes, perf_map) for native, place in on.items()}
        self._on = {place.id: loaded[place.native] for place in places}
        self._native: Any = self._on[places[0].id]

    def _load_on(self, device: Device, header: Any, memo_bytes: int, perf_map: bool) -> Any:
        """The program on a device of the native core."""
        return _native.Executable(
            device=device.native,
            header=header,
            object=self._level.object,
            device_code=self._level.sections.get("ptx", b""),
            constants=self._level.constants,
            packed=self._level.packed,
            in_tree=self.in_tree.native(),
            out_tree=self.out_tree.native(),
            explain_structure=self.explainer(self.in_tree),
            memory=device.default_memory(),
            jax_converter=jax_converter,
            key_array=key_array,
            memo_bytes=memo_bytes,
            perf_map=perf_map,
        )

    def __repr__(self) -> str:
        return f"<LoadedExecutable {program_text(self.header)} for {target_text(self.header)}>"

    def _repr_html_(self) -> str:
        rows = [target_row(self.header), ("loaded", f"on {self.devices()[0]}")]
        return program_table(f"LoadedExecutable {self.name}", self.header, rows)

    if not TYPE_CHECKING:  # to a checker it would be an attribute of any name

        def __getattr__(self, name: str) -> Any:
            """Raises AttributeError, which says of what only a compile knows where to find it."""
            text = missing_text(type(self).__name__, name, self.__dict__.get("name", ""), self.has_executable)
            raise AttributeError(text, name=name, obj=self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program; results are jax.Arrays if any argument is one, else NumPy arrays."""
        names = self.parameter_names
        try:
            if (kwargs and names) or names.turned:
                args, kwargs = names.by_position(args, kwargs)
            return self._native(*args, **kwargs)
        except (ArgumentTypeError, ShapeError) as error:
            if isinstance(error, ShapeError) or not is_traced(args, kwargs):
                raise self.worded(error) from None
        return self.in_jax(args, kwargs)

    @takes_call
    def execute(
        self, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None, *, output: str | None = None
    ) -> Any:
        """Runs the program on `args` and `kwargs`; `output` is "numpy", "jax", "buffer", or None as in a call.

        `execute(x, y, mask=m)` is `execute((x, y), {"mask": m})`; so it is for the other methods of a call's arguments.

        Buffers that are passed for donated arguments are deleted after the call has succeeded.
        """
        try:
            args, kwargs = self._placed(args, kwargs)
        except ShapeError as error:
            raise self.worded(error) from None
        return self.execute_as_taken(args, kwargs, output=output)

    def execute_as_taken(self, args: Sequence[Any], kwargs: Mapping[str, Any], *, output: str | None = None) -> Any:
        """As `execute`, of arguments by position that have the program's own order of axes, as in C."""
        try:
            return self._native.execute(tuple(args), dict(kwargs), output_of(output))
        except (ArgumentTypeError, ShapeError) as error:
            if isinstance(error, ShapeError) or not is_traced(args, kwargs):
                raise self.worded(error) from None
        return self.in_jax(tuple(args), kwargs)

    def _placed(self, args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """A call as the program takes it. Raises ShapeError."""
        names = self.parameter_names
        if (kwargs and names) or names.turned:
            return names.by_position(tuple(args), kwargs or {})
        return args, kwargs or {}

    def worded(self, error: DiscError, are_weights: bool = False) -> DiscError:
        """The error of a call, with a conversion; for programs of PyTorch it has the names of arguments.

        are_weights: the arguments are those of `bind(weights=...)`.
        """
        if self._names_of_torch:
            names = self._names_of_torch
            return of_array(error, names, len(names) if are_weights else self.parameter_names.weights or 0)
        return with_conversion(in_own_words(error, self.parameter_names.names))

    def explainer(self, tree: TreeSpec, bound: int = 0, buffers: Collection[str] = ()) -> Callable[..., str]:
        """The function that explains why a call does not fit `tree`. bound: how many arguments `bind` has fixed.

        buffers: the names of those that each call takes and changes.
        """
        if self._names_of_torch:
            names = self._names_of_torch[: bound + len(tree.children[0].children)]
            return explainer_of_torch(self.name, names, bound, self.parameter_names.weights, buffers)
        explain = explained(self.name, tree, self.parameter_names, bound)
        return with_arrays(explain, tree, self.header["arguments"], self.parameter_names.names, bound)

    @functools.cached_property
    def in_jax(self) -> JaxFunction:
        """The program as functions that JAX traces call it. Raises ArgumentTypeError where they cannot."""
        return JaxFunction(self, self.gradient)

    @takes_call
    def execute_async(
        self, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None, *, output: str | None = "buffer"
    ) -> Future[Any]:
        """Like `execute`, in a thread of the client; calls run in the order in which you make them.

        Do not change the arrays before the call has ended. Ctrl-C ends the wait for the result, not the call.
        """
        return self._client.run_async(functools.partial(self.execute, tuple(args), kwargs, output=output))

    def execute_sharded(
        self,
        shards: Sequence[Sequence[Any]],
        *,
        devices: Sequence[Device] | None = None,
        output: str | None = None,
    ) -> list[Any]:
        """Runs the program on several devices at once, each on its own arguments; returns the results of each.

        `shards`: the positional arguments for each device, one entry per replica of the program. `devices`: the devices
        of Buffer results, by default the first ones of the client. Raises ValueError for a wrong number of either,
        CustomCallError if devices would wait for each other forever, and the errors of a call.
        """
        places = list(self.devices() if devices is None else devices)
        if len(shards) != self.num_replicas or len(places) != self.num_replicas:
            raise ValueError(
                f"'{self.name}' runs on {self.num_replicas} devices, not {len(shards)} shards on {len(places)} devices"
            )
        calls = [(tuple(self._placed(shard, {})[0]), dict[str, Any]()) for shard in shards]
        memories = [device.default_memory() for device in places]
        first = self._alive()
        on = [self._on.get(place.id, first) for place in places]
        if self._client.platform == "cuda" and len(set(map(id, on))) != len(places):
            raise ValueError(f"'{self.name}' runs on {self.num_replicas} different GPUs, not on {places}")
        return first.execute_sharded(calls, memories, output_of(output), on)

    @takes_weights
    def bind(
        self,
        *args: Any,
        weights: Mapping[str, Any] | str | os.PathLike[str] | None = None,
        output: str | None = None,
        donate: bool = False,
        copy: bool = True,
    ) -> BoundExecutable:
        """The program with its first arguments fixed, such as weights in serving. `output`: as in `execute`.

        weights: arguments by their names, in any order: a mapping, such as the `state_dict` of a PyTorch module, or the
        path of an .npz file; they come after `args`. Weights of PyTorch have PyTorch's order of axes, by position too.
        Right-hand sides of matrix products are packed once for all shapes; all other arrays are copied. You may change
        or drop the arrays afterwards. With `donate`, each jax.Array or Buffer is deleted once it has been packed or
        copied, so weights are never in memory twice. With `copy=False`, the arrays are kept alive and read in place,
        unless they are strided or unaligned; do not change them while the bound program is in use, because packed forms
        would not change. Of `weights`, buffers that the program changes are left to the calls: `buffers` of the result
        has their values. Raises ValueError for `donate` with `copy=False`, ArgumentTypeError and ShapeError before
        anything is deleted, and AllocationError.
        """
        check_flag("donate", donate)
        check_flag("copy", copy)
        buffers: dict[str, Any] = {}
        if weights is not None:
            rows = self.header["arguments"]
            with named_weights(weights) as arrays:
                trees = self.in_tree.children[0].children
                placed = self.parameter_names.with_weights(args, arrays, trees)
                left = list(enumerate(self.parameter_names.names))[len(placed) :]
                buffers = {name: own_copy(arrays[name], rows[i]) for i, name in left if name in arrays}
            is_flat = len(rows) == len(trees)
            args = tuple(map(of_its_dtype, placed, rows)) if is_flat else tuple(placed)
        elif not args and self.parameter_names.weights:
            names = listed(self.parameter_names.names[: self.parameter_names.weights])
            raise ArgumentTypeError(f"bind() fixes nothing, and the weights are {names}: {BIND}")
        elif not args:
            raise ArgumentTypeError(self._bound_nothing())
        try:
            taken = self.parameter_names.as_taken(args)
            bound = BoundExecutable(self, taken, output, donate, copy, buffers)
        except (ArgumentTypeError, ShapeError) as error:
            raise self.worded(error, are_weights=weights is not None) from None
        if donate:
            delete_others(args, taken)
        return bound

    def _bound_nothing(self) -> str:
        """The fault of a `bind` of no arguments, and what to write."""
        count, names = len(self.in_tree.children[0].children), self.parameter_names.names
        if not count:
            return f"bind() fixes nothing, and '{self.name}' takes no arguments by position: call it as it is"
        first = (names and names[0]) or "x"
        by_name = f" or bind(weights={{{first!r}: {first}}})" if names and names[0] else ""
        return f"bind() fixes nothing: give the first arguments of '{self.name}', as in bind({first}){by_name}"

    @takes_call
    def profile(self, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> list[CommandTime]:
        """Run the program, drop its results, and return the time of each command; on a GPU, as timed by the GPU.

        Commands are in program order; a command that runs without the runtime has no calls. Raises the errors of a
        call.
        """
        try:
            args, kwargs = self._placed(args, kwargs)
            return command_times(self._alive().profile(tuple(args), dict(kwargs)))
        except (ArgumentTypeError, ShapeError) as error:
            raise self.worded(error) from None

    @property
    def signature(self) -> str:
        """The names of arguments and results, with their dtypes and symbolic shapes, in a line."""
        return signature_text(self.header)

    @property
    def client(self) -> Client:
        """The client on which it runs."""
        return self._client

    @property
    def native(self) -> Any:
        """The executable of the native core."""
        return self._alive()

    @property
    def artifact(self) -> Artifact:
        """The artifact that this was loaded from."""
        return self._artifact

    @property
    def header(self) -> Mapping[str, Any]:
        """The header of the code that runs: that of the level of processors that was chosen."""
        return self._level.header

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the artifact, in hexadecimal."""
        return self._artifact.fingerprint()

    def serialize(self) -> bytes:
        """The program as bytes, which `Client.load(data, trust=True)` reads."""
        return self._artifact.serialize()

    @takes_options
    def save(self, path: str | os.PathLike[str], *, prepack: bool = False) -> None:
        """Write the program to a file, as `Executable.save` does."""
        (self._artifact.prepacked() if prepack else self._artifact).save(path)

    def export_library(self, path: str | os.PathLike[str], name: str | None = None) -> None:
        """Write a shared library and a C header, as `Executable.export_library` does."""
        from .export_library import export_library

        export_library(self._artifact, path, name)

    @property
    def target(self) -> str:
        """The target of the program: "cpu", or the name of a GPU architecture, e.g. "cuda:sm_90"."""
        return str(self.header["target"].get("name", CPU))

    def devices(self) -> list[Device]:
        """The devices that the program runs on, one for each replica."""
        return self._client.devices()[: self.num_replicas]

    def dims_of(self, *shapes: Sequence[int]) -> dict[str, int]:
        """The values of the symbols for arguments of these shapes, one shape for each leaf. Raises ShapeError."""
        arguments = self._level.header["arguments"]
        if len(shapes) != len(arguments):
            raise ShapeError(f"'{self.name}' has {len(arguments)} arguments, not {len(shapes)}")
        sizes = [size for given, row in zip(shapes, arguments, strict=True) for size in sizes_of(given, row)]
        return dict(zip(self._symbols, self._alive().symbols_of(sizes), strict=False))

    @by_name
    def output_shapes(self, **dims: int) -> Any:
        """The result tree with a shape tuple at each leaf, for values of the symbols."""
        return rebuilt(self.out_tree, iter(self.result_shapes(**dims)))

    @by_name
    def out_shape(self, **dims: int) -> Any:
        """The result tree with a jax.ShapeDtypeStruct at each leaf, for values of the symbols. Needs JAX.

        Raises ShapeError. Nothing is allocated and nothing runs.
        """
        return self.out_tree.native().unflatten(self.result_types(**dims))

    @by_name
    def result_types(self, **dims: int) -> list[Any]:
        """The jax.ShapeDtypeStruct of every result leaf, for values of the symbols. Raises ShapeError, ImportError."""
        try:
            import jax
        except ImportError as error:
            raise ImportError(
                "out_shape returns jax.ShapeDtypeStructs, and JAX is not installed: output_shapes returns shapes alone"
            ) from error
        return [
            jax.ShapeDtypeStruct(shape[:-1], key_dtype(result["key"]))
            if "key" in result
            else jax.ShapeDtypeStruct(shape, jax.numpy.dtype(BY_NAME[result["dtype"]].numpy))
            for shape, result in zip(self.result_shapes(**dims), self.header["results"], strict=True)
        ]

    @by_name
    def result_shapes(self, **dims: int) -> tuple[tuple[int, ...], ...]:
        """The shape of every result leaf, for values of the symbols. Raises ShapeError."""
        return tuple(tuple(shape) for shape in self._plan(dims)[1])

    def memory_stats(self) -> dict[str, int]:
        """The counters of the device that the program runs on, as `Device.memory_stats` has them."""
        return self.devices()[0].memory_stats()

    @by_name
    def memory(self, **dims: int) -> MemoryStats:
        """The bytes that a call needs at values of the symbols. Raises ShapeError for values that are not allowed."""
        arena_bytes, _, result_bytes = self._plan(dims)
        values = dim_values(self._symbols, dims)
        arguments = sum(bytes_of(row, values) for row in self._level.header["arguments"])
        constants = len(self._level.constants)
        return MemoryStats(arena_bytes, sum(result_bytes), constants, arguments, self._alive().code_bytes)

    @by_name
    def cost_analysis(self, **dims: int) -> dict[str, float]:
        """The work of a call at values of the symbols, under XLA's names. Raises ShapeError.

        "bytes accessed": arguments and results, each read or written once. "flops": arithmetic on elements. A
        multiply-add counts as two and any other op as one; loop bodies count as often as they are known to run, and of
        several branches the longest counts.
        """
        stats = self.memory(**dims)
        cost = {"bytes accessed": float(stats.argument_bytes + stats.result_bytes)}
        flops = self._level.header.get("flops")
        if flops is not None:
            cost["flops"] = float(Expr.parse(str(flops)).evaluate(dim_values(self._symbols, dims)))
        return cost

    @by_name
    def peak_memory(self, **dims: int) -> int:
        """The peak of bytes allocated during a call, without arguments and constants."""
        return self.memory(**dims).peak_bytes

    @by_name
    def prepare(self, **dims: int) -> None:
        """Allocate the memory of a call at these values of the symbols now.

        A later call that needs no more memory than this does not wait for the system to clear pages, as the first call
        at a new largest size otherwise does. Raises ShapeError for values that are not allowed.
        """
        self._alive().prepare(self._values(dims))

    def plan_cache(self) -> tuple[int, int]:
        """The number of cached plans (one per shape), and their size in bytes."""
        return self._alive().memo_size, self._alive().memo_bytes

    def seen_shapes(self) -> list[dict[str, int]]:
        """The values of the symbols in recent calls, most recent first."""
        return [dict(zip(self._symbols, values, strict=False)) for values in self._alive().memo_symbols()]

    def delete(self) -> None:
        """Release the code and the constants once calls in progress have ended. Later calls raise RuntimeError."""
        self._native, self._on = _Deleted(self.name), {}

    def is_deleted(self) -> bool:
        """Tells whether `delete` was called."""
        return isinstance(self._native, _Deleted)

    def _alive(self) -> Any:
        if self.is_deleted():
            self._native()
        return self._native

    def _plan(self, dims: Mapping[str, int]) -> tuple[int, tuple[tuple[int, ...], ...], list[int]]:
        return self._alive().plan(self._values(dims))

    def _values(self, dims: Mapping[str, int]) -> list[int]:
        """The values in the order of the symbols."""
        return list(dim_values(self._symbols, dims).values())


class _Deleted:
    """Stands in for the native executable after `delete`."""

    def __init__(self, name: str):
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"the executable '{self._name}' has been deleted")

    execute = __call__
