# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exported programs of PyTorch: compiled once, called as the module was."""

from __future__ import annotations

import contextlib
import os
import re
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils._sympy.value_ranges import ValueRanges

from shlo_disc.driver.compiling import compile_read
from shlo_disc.driver.recording import record_read
from shlo_disc.errors import ArgumentTypeError, OptionError, ProgramError, ShapeError
from shlo_disc.importer.programs import TextProgram
from shlo_disc.options import CPU, Options
from shlo_disc.runtime.artifact import replacing
from shlo_disc.runtime.described import program_text, target_text
from shlo_disc.runtime.dims import by_name
from shlo_disc.runtime.weight_files import check_ending
from shlo_disc.runtime.words_of_torch import in_words_of_torch
from shlo_disc.shape_dialect.dtypes import BY_NAME
from shlo_disc.torch.aliases import Aliases
from shlo_disc.torch.arguments import Structure, check_examples
from shlo_disc.torch.assumptions import has_own_start, origins_of, simplified
from shlo_disc.torch.tensors import as_argument, as_array, as_tensor, new_key, write_arrays
from shlo_disc.torch.tools import Tools
from shlo_disc.torch.weights import Weights

if TYPE_CHECKING:
    from shlo_disc.driver.executable import Executable
    from shlo_disc.runtime.call_results import CommandTime

_RETURNED = (OutputKind.USER_OUTPUT, OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)
_STATE = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def compile_exported(program: ExportedProgram, options: Options, target: str = "cpu") -> ExportedExecutable:
    """Compile an exported program once, for every size that it admits.

    Raises UnsupportedError listing every op that has no translation, with the lines of the PyTorch program, and what
    `shlo_disc.compile` raises.
    """
    from shlo_disc.importer.aten.graphs import translate
    from shlo_disc.importer.aten.wrapped_padding import check_circular_paddings

    _check_results(program)
    _check_state(program)
    check_circular_paddings(program.graph_module)
    start = time.perf_counter()
    plain = _taken_apart(program)
    structure = Structure(plain)
    check_examples(program, structure.paths)
    ranges = _ranges_of(program, plain)
    fixed, changed = _state(plain)
    state = [spec.arg.name for spec in (*fixed, *changed)]
    relations = _relations_of(program)
    origins = origins_of(program, _environment_of(program), ranges)
    translated = translate(
        plain.graph_module, _name_of(program), ranges=ranges, first=state, bound=len(fixed), relations=relations,
        names=_names_of(program), literals=_literals_of(plain), origins=origins,
    )  # fmt: skip
    names = _names_of_arguments(plain, structure, len(translated.captured), translated.draws)
    axes = tuple(order or () for order in translated.orders)
    axes += ((),) * (len(names) - len(axes))
    weights = len(translated.captured) + len(fixed)
    read = TextProgram(translated.text, is_own=True, parameters=names, axes=axes, weights=weights)
    record_read(read, "torch.export")
    executable = compile_read(read, _with_precision(options, target), target, start=start)
    return ExportedExecutable(plain, executable, translated, structure)


def _with_precision(options: Options, target: str) -> Options:
    """The options, with the precision of f32 products on GPUs that PyTorch is set to.

    "high" and "medium" allow TF32, and PyTorch uses it for both on GPUs.
    """
    if target == CPU or options.matmul_precision is not None:
        return options
    is_exact = torch.get_float32_matmul_precision() == "highest"
    return replace(options, matmul_precision="highest" if is_exact else "tf32")


def _check_results(program: ExportedProgram) -> None:
    """Check that a call can return what the program returns. Raises ProgramError."""
    kinds = {spec.kind for spec in program.graph_signature.output_specs}
    if any(kind.name in ("LOSS_OUTPUT", "GRADIENT_TO_PARAMETER", "GRADIENT_TO_USER_INPUT") for kind in kinds):
        raise ProgramError(
            "the exported program computes gradients (a joint graph of a loss and its gradients), and only programs of "
            "forward are compiled: compile what torch.export.export(module, ...) returns, and for training use "
            'torch.compile(module, backend="shlo_disc", dynamic=True)'
        )
    if others := [kind.name for kind in kinds if kind not in _RETURNED]:
        raise ProgramError(f"the exported program has results of the kind {others[0]}, which no call returns")


def _check_state(program: ExportedProgram) -> None:
    """Check that parameters and buffers are as they were exported. Raises ProgramError.

    `module.double()` and assignments to `.data` change them in the exported program, too, and not its ops.
    """
    tensors = {**program.state_dict, **program.constants}
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    for spec in program.graph_signature.input_specs:
        own, exported = tensors.get(spec.target), values.get(spec.arg.name)
        if spec.kind not in _STATE or not isinstance(own, torch.Tensor) or not isinstance(exported, torch.Tensor):
            continue
        if (own.dtype, own.shape) != (exported.dtype, exported.shape):
            shown = [f"{str(t.dtype).removeprefix('torch.')}{[*t.shape]}" for t in (own, exported)]
            raise ProgramError(
                f"the module has changed since it was exported: {spec.target} is {shown[0]}, and was {shown[1]}: "
                "export it again"
            )


def _taken_apart(program: ExportedProgram) -> ExportedProgram:
    """The program in ops that have a translation."""
    from shlo_disc.importer.aten.decompositions import decompositions_of

    _assume_as_traced(program)
    try:
        with _without_examples(program), warnings.catch_warnings():
            warnings.filterwarnings("ignore", _OF_COPIES, FutureWarning)
            return program.run_decompositions(decompositions_of(program.graph_module))
    except Exception as error:
        raise ProgramError(f"PyTorch cannot take the exported program apart: {error}") from error


def _assume_as_traced(program: ExportedProgram) -> None:
    """Have PyTorch take the sizes of arguments to be 2 or more, as it does while it traces.

    A program that it has read from a file has sizes of 0 and 1 in its ranges, and taking it apart would add guards
    such as `s != 1` for ops that are right there.
    """
    environment = _environment_of(program)
    if environment is None:
        return
    for symbol in _symbols_of_sizes(program):
        known = environment.var_to_range.get(symbol)
        if known is not None and known.lower < 2 < known.upper:
            environment.var_to_range[symbol] = ValueRanges(2, known.upper)
            environment._update_version_counter()


_OF_COPIES = re.escape("`isinstance(treespec, LeafSpec)` is deprecated")
"""The beginning of a warning that PyTorch causes where it copies its own trees."""


@contextlib.contextmanager
def _without_examples(program: ExportedProgram) -> Iterator[None]:
    """Inside, PyTorch does not check its guards on the program's examples, which fails where one of them is a view:
    what it takes to hold of sizes is stated by `_relations_of`."""
    examples = program._example_inputs
    program._example_inputs = None
    try:
        yield
    finally:
        program._example_inputs = examples


def _relations_of(program: ExportedProgram) -> list[Any]:
    """The relations of sizes that PyTorch assumed while tracing the program, and what took it apart, in SymPy's terms.

    What it has taken to hold of memory, such as the size of a tensor that an example is a view of, is left out: it is
    none of a value's. Raises ProgramError where the program holds only what PyTorch has written of it, as one does that
    was read from a file.
    """
    environment = _environment_of(program)
    guards = [] if environment is None else environment.guards
    found = [simplified(environment.replace(guard.expr)) for guard in guards]
    if len(found) < len(program._guards_code):
        raise ProgramError(
            f"the exported program is right only where {' and '.join(program._guards_code)}, and torch.export.load "
            "keeps only the text of this: export what it has read again by torch.export.export(program.module(), args, "
            "dynamic_shapes=...), with arguments and dynamic_shapes as at first"
        )
    memory = set() if environment is None else set(environment.var_to_sources) - _symbols_of_arguments(program)
    return [relation for relation in found if memory.isdisjoint(getattr(relation, "free_symbols", ()))]


def _symbols_of_sizes(program: ExportedProgram) -> set[Any]:
    """The symbols in sizes of arguments."""
    values = [node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"]
    sizes = [size for value in values if isinstance(value, torch.Tensor) for size in value.shape]
    return {s for size in sizes if isinstance(size, torch.SymInt) for s in size.node.expr.free_symbols}


def _symbols_of_arguments(program: ExportedProgram) -> set[Any]:
    """The symbols in sizes of arguments, and in arguments that are integers."""
    values = [node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"]
    numbers = [n for v in values for n in (v.shape if isinstance(v, torch.Tensor) else [v])]
    return {s for n in numbers if isinstance(n, torch.SymInt) for s in n.node.expr.free_symbols}


def _environment_of(program: ExportedProgram) -> Any:
    """The shape environment of a program, PyTorch's facts about its sizes; None where all are numbers."""
    values = (node.meta.get("val") for node in program.graph.nodes)
    modes = (value.fake_mode for value in values if isinstance(value, FakeTensor))
    return next((mode.shape_env for mode in modes if mode.shape_env is not None), None)


def _names_of(program: ExportedProgram) -> dict[Any, str]:
    """The user's names of sizes, those of `Dim("batch")`, by PyTorch's symbols; a name that is taken is left out."""
    environment, found = _environment_of(program), dict[Any, str]()
    given = {} if environment is None else environment.source_name_to_debug_name
    for symbol, sources in environment.var_to_sources.items() if given else ():
        own = environment.replace(symbol)
        names = [given[name] for name in map(_source_name, sources) if given.get(name, "").isidentifier()]
        if own.is_Symbol and names and names[0] not in _RESERVED:
            found[own] = names[0]
    for node in program.graph.nodes:  # integers that are arguments have the arguments' names
        value = node.meta.get("val") if node.op == "placeholder" else None
        own = value.node.expr if isinstance(value, torch.SymInt) else None
        if own is not None and own.is_Symbol and own not in found and node.name not in _RESERVED:
            found[own] = node.name
    taken = [*found.values(), *(symbol.name for symbol in environment.var_to_sources)] if found else []
    return {symbol: name for symbol, name in found.items() if taken.count(name) == 1}


_RESERVED = ("floordiv", "mod", "max", "min")
"""Names of functions in expressions over sizes."""


def _source_name(source: Any) -> str:
    return source.name() if callable(source.name) else source.name


def _ranges_of(program: ExportedProgram, plain: ExportedProgram) -> list[tuple[Any, Any]]:
    """The ranges of symbols, without the starts that PyTorch gives sizes that have no `Dim`.

    The range of a `Dim` begins at its `min`, or at 0. plain: the program that has been taken apart.
    """
    environment = _environment_of(program)
    given = {} if environment is None else environment.source_name_to_debug_name
    named = {
        environment.replace(symbol)
        for symbol, sources in (environment.var_to_sources.items() if given else ())
        if any(_source_name(source) in given for source in sources)
    }
    ranges, sizes = dict(plain.range_constraints), _symbols_of_sizes(plain) - named
    for size in plain.range_constraints.keys() - named:
        if has_own_start(environment, size, plain.range_constraints, sizes):
            ranges[size] = ValueRanges(0, ranges[size].upper)
    return list(ranges.items())


def _name_of(program: ExportedProgram) -> str:
    """The class of the module; "main" for one without ops, of which PyTorch keeps no class."""
    kinds = [kind for node in program.graph.nodes for _, kind in (node.meta.get("nn_module_stack") or {}).values()]
    names = (kind if isinstance(kind, str) else kind.__name__ for kind in kinds)
    own = next((name for name in names if _HOOK not in name), "main")
    return own.rpartition(".")[2]


_HOOK = "_empty_nn_module_stack"
"""Part of the name that `torch.export` gives ops that belong to no module."""


def _state(program: ExportedProgram) -> tuple[list[Any], list[Any]]:
    """The inputs that are state: what a call leaves as it is, and what it changes."""
    signature = program.graph_signature
    changed = {spec.target for spec in signature.output_specs if spec.kind == OutputKind.BUFFER_MUTATION}
    state = [spec for spec in signature.input_specs if spec.kind in _STATE]
    return [s for s in state if s.target not in changed], [s for s in state if s.target in changed]


def _literals_of(program: ExportedProgram) -> dict[str, Any]:
    """The tensors of numbers in the user's code, such as `torch.tensor([0, 4])`, by their placeholders."""
    specs = [s for s in program.graph_signature.input_specs if s.kind == InputKind.CONSTANT_TENSOR]
    return {s.arg.name: program.constants[s.target] for s in specs if str(s.target).startswith("lifted_tensor")}


def _names_of_arguments(program: ExportedProgram, structure: Structure, captured: int, draws: bool) -> tuple[str, ...]:
    """The names of the translated program's arguments: those of parameters and buffers, and of `forward`'s arguments.

    captured: the number of tensors that come first, which PyTorch does not name. draws: a key comes last.
    """
    fixed, changed = _state(program)
    state = [str(spec.target) for spec in (*fixed, *changed)]
    users = [structure.paths[name] for name in structure.read_names]
    return (*(f"captured {i}" for i in range(captured)), *state, *users, *["random key"] * draws)


class ExportedExecutable(Tools):
    """A compiled PyTorch program: call it like the exported module, with tensors of any allowed size.

    Parameters and buffers are those of the exported program. The first call binds them and packs the right-hand sides
    of matrix products; a later call does so again after one of them has changed in place (a step of an optimizer,
    `load_state_dict`). Mutated buffers are written back. Gradients do not flow through a call: while PyTorch records
    gradients, arguments that require one are rejected. Raises ShapeError for sizes outside of the exported ranges, and
    ArgumentTypeError for other dtypes or structures.

    `explain`, `memory`, `out_shape`, `prepare`, `report`, `signature` and the like are those of `Executable`, and take
    values of the symbols of `dynamic_shapes` by name. `executable` is the program itself, which takes arrays: first
    the parameters and buffers, then the arguments.
    """

    def __init__(self, program: ExportedProgram, executable: Executable, translated: Any, structure: Structure):
        self.program = program
        self.executable = executable
        self._outputs = translated.outputs
        self._draws = translated.draws
        signature = program.graph_signature
        self._results = list(signature.output_specs)
        tensors = {**program.state_dict, **program.constants}
        fixed, changed = _state(program)
        self._fixed = [*translated.captured, *(_tensor_of(spec, tensors) for spec in fixed)]
        self._changed = [_tensor_of(spec, tensors) for spec in changed]
        self._weights = Weights(executable, translated.orders[: len(self._fixed)])
        self._tensors = tensors
        self._structure = structure
        self._shown = [i for i, spec in enumerate(self._results) if spec.kind == OutputKind.USER_OUTPUT]
        self._writes = len(self._shown) < len(self._results)
        written = [spec.target for spec in self._results if spec.kind == OutputKind.USER_INPUT_MUTATION]
        kept, own = ({f"{s.target} of the module": _tensor_of(s, tensors) for s in part} for part in (fixed, changed))
        self._aliases = Aliases(kept, own, written)

    def __repr__(self) -> str:
        header = self.executable.artifact.header
        return f"<ExportedExecutable {program_text(header)} for {target_text(header)}>"

    def _repr_html_(self) -> str:
        return self.executable._repr_html_()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""
        given = self._structure.given(args, kwargs)
        found = self._run(given, "execute_unworded", output="buffer")
        results = [found] if not isinstance(found, list | tuple) else list(found)
        values = [self._value(output, results) for output in self._outputs]
        if self._writes:
            self._write_back(values, given)
        return self._structure.results.unflatten([values[place] for place in self._shown])

    def profile(self, *args: Any, **kwargs: Any) -> list[CommandTime]:
        """Run the program for arguments as a call takes them, drop its results, and return the time of each command.

        Buffers that the program changes stay as they are. Raises the errors of a call.
        """
        found: list[CommandTime] = self._run(self._structure.given(args, kwargs), "profile")
        return found

    def _run(self, given: dict[str, Any], method: str, **options: Any) -> Any:
        """The result of a method of the program, bound to its weights, for the user's arguments."""
        self._aliases.check(given, self._structure.paths)
        leaves = [as_argument(t, "a buffer") for t in self._changed]
        leaves += [self._structure.leaf(name, value) for name, value in given.items()]
        if self._draws:
            leaves.append(new_key())
        try:
            program = self._weights.program(self._fixed)
            return getattr(program, method)(tuple(leaves), {}, **options)
        except (ShapeError, ArgumentTypeError) as error:
            names = self._names_of_leaves(given, len(leaves))
            state = [str(spec.target) for part in _state(self.program) for spec in part]
            raise in_words_of_torch(error, names, weights=state) from None

    def _names_of_leaves(self, given: dict[str, Any], count: int) -> dict[int, str]:
        """The user's names for the arguments of the translated program, the last `count` of which calls give."""
        first = len(self.executable.artifact.header["arguments"]) - count
        buffers = [f"the buffer {spec.target}" for spec in _state(self.program)[1]]
        names = [*buffers, *(self._structure.paths[name] for name in given)]
        return {first + i: name for i, name in enumerate(names)}

    def __reduce__(self) -> Any:
        """Raises TypeError, for pickle and copy: it shares its tensors with the exported program."""
        raise TypeError(
            "cannot pickle or copy a compiled program of PyTorch: write the exported program by torch.export.save, and "
            "compile what torch.export.load reads"
        )

    @property
    def compile_count(self) -> int:
        """The number of times native code was generated: once, however many sizes were run."""
        return self.executable.compile_count

    # ---- state ------------------------------------------------------------------------------------------------------

    def weights(self, *, as_taken: bool = False) -> dict[str, np.ndarray]:
        """The parameters and buffers that the program reads, by name, as arrays that share the tensors' memory.

        They are for `load(path).bind(weights=...)`. Buffers that the program changes are not among them: each call
        takes these, and `save` writes their values beside the weights. as_taken: in the order of axes in which the
        program takes them in C; Python takes them in PyTorch's order everywhere.
        """
        names = self.executable.artifact.header["pytree"]["names"]
        tensors = [tensor.detach() for tensor in self._fixed]
        if as_taken:
            arrays = self._weights.arguments(tensors)
        else:
            arrays = [as_argument(tensor, "a parameter") for tensor in tensors]
        return {names[place]: as_array(array) for place, array in enumerate(arrays)}

    def save(self, path: str | os.PathLike[str], *, weights: str | os.PathLike[str] | None = None) -> None:
        """Write the program to a file, which `shlo_disc.load` loads without PyTorch and without a compiler.

        weights: a second file, an .npz, for `weights()` and the values of buffers that the program changes; the program
        itself is without them. Where one of the files
        cannot be written, neither is. Raises OSError, and OptionError where `weights` is no path, or `path` itself, or
        one of them has the ending of another format, such as .safetensors.
        """
        if weights is None:
            self.executable.save(path)
            return
        if not isinstance(weights, str | os.PathLike) or os.path.realpath(weights) == os.path.realpath(path):
            given = repr(os.fspath(path)) if isinstance(weights, str | os.PathLike) else type(weights).__name__
            raise OptionError(
                f"weights= of save is the path of a second file, for the weights of the module, and not {given}: write "
                f"save({os.fspath(path)!r}, weights={os.fspath(Path(path).with_suffix('.weights.npz'))!r})"
            )
        check_ending(weights, ".npz")
        with replacing(weights) as file:
            write_arrays(file, {**self.weights(), **self._starts()})
            self.executable.save(path)

    def _starts(self) -> dict[str, np.ndarray]:
        """The values of the buffers that the program changes, by name."""
        names = [str(spec.target) for spec in _state(self.program)[1]]
        arrays = [as_array(as_argument(tensor, "a buffer")) for tensor in self._changed]
        return dict(zip(names, arrays, strict=True))

    def rebind(self) -> None:
        """Read parameters and buffers again. Needed after changes that PyTorch does not count, through `.data`."""
        self._weights.forget()

    # ---- results ----------------------------------------------------------------------------------------------------

    @by_name
    def out_shape(self, **dims: int) -> Any:
        """The results for given values of the symbols, as tensors of the device "meta", which have no elements.

        Raises ShapeError for values that the program does not allow. Nothing is allocated and nothing runs.
        """
        loaded = self.executable.loaded
        rows = zip(loaded.result_shapes(**dims), loaded.header["results"], strict=True)
        dtypes = {kind: getattr(torch, dtype.numpy) for kind, dtype in BY_NAME.items() if hasattr(torch, dtype.numpy)}
        found = [torch.empty(shape, dtype=dtypes[row["dtype"]], device="meta") for shape, row in rows]
        values = [found[o.result] if o.result is not None else o.constant for o in self._outputs]
        return self._structure.results.unflatten([values[place] for place in self._shown])

    @staticmethod
    def _value(output: Any, results: Sequence[Any]) -> Any:
        if output.result is None:
            return output.constant
        tensor = as_tensor(results[output.result])
        return int(tensor) if output.is_size else tensor

    def _write_back(self, values: Sequence[Any], given: dict[str, Any]) -> None:
        """Write back what the program changed in place."""
        for value, spec in zip(values, self._results, strict=True):
            if spec.kind == OutputKind.USER_OUTPUT:
                continue
            changed = given if spec.kind == OutputKind.USER_INPUT_MUTATION else self._tensors
            with torch.no_grad():
                changed[spec.target].copy_(value)


def _tensor_of(spec: Any, tensors: dict[str, Any]) -> torch.Tensor:
    found = tensors.get(spec.target)
    if not isinstance(found, torch.Tensor):
        raise ProgramError(f"the exported program has no tensor {spec.target}")
    return found
