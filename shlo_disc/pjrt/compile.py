# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Entry points of the C API in Python: to compile a program, and to write an executable down and read it again."""

from __future__ import annotations

import atexit
import base64
import contextlib
import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shlo_disc.driver.compiling import compile_artifact, compile_read
from shlo_disc.driver.executable import Executable
from shlo_disc.driver.recording import record_read
from shlo_disc.errors import (
    ArgumentTypeError,
    ArtifactError,
    DiscError,
    OptionError,
    ProgramError,
    RecompileError,
    ShapeError,
    UnsupportedError,
)
from shlo_disc.importer.normalise import entry_function
from shlo_disc.importer.parse import parse_trusted
from shlo_disc.importer.programs import TextProgram
from shlo_disc.importer.reader import BYTECODE_MAGIC, portable_version, read_any
from shlo_disc.importer.reader.artifacts import STABLEHLO_VERSION, rewritten
from shlo_disc.importer.reader.shardy import remove_shardy
from shlo_disc.options import CPU, CUDA, Options, architecture_for
from shlo_disc.runtime import AllocationError, Artifact, LoadedExecutable
from shlo_disc.runtime.clients import client, gpu_client
from shlo_disc.runtime.cuda_libraries import nccl_names
from shlo_disc.runtime.native_module import CallCount, open_nccl, plugin_programs, read_program
from shlo_disc.shape_dialect.custom_calls import PYTHON_CALLBACK, register_custom_call
from shlo_disc.shape_dialect.symbolic.expr import Expr

from . import layouts, observation
from .contexts import Contexts
from .partition import partition
from .partition.meshes import unsupported

if TYPE_CHECKING:
    from .generalize import SymbolicProgram

_INVALID_ARGUMENT, _RESOURCE_EXHAUSTED, _FAILED_PRECONDITION, _UNIMPLEMENTED, _INTERNAL = 3, 8, 9, 12, 13
_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (UnsupportedError, _UNIMPLEMENTED),
    (ProgramError, _INVALID_ARGUMENT),
    (ShapeError, _INVALID_ARGUMENT),
    (ArgumentTypeError, _INVALID_ARGUMENT),
    (OptionError, _INVALID_ARGUMENT),
    (ArtifactError, _INVALID_ARGUMENT),
    (RecompileError, _FAILED_PRECONDITION),
    (AllocationError, _RESOURCE_EXHAUSTED),
    (MemoryError, _RESOURCE_EXHAUSTED),
)
_OF_DEVICES = (
    "mhlo.num_partitions", "mhlo.num_replicas", "mhlo.spmd_output_sharding", "mhlo.spmd_parameters_shardings"
)  # fmt: skip
_HEADER_KEY = "pjrt"
_CONTEXTS = Contexts()
_COMPILING = threading.RLock()  # MLIR's bindings are not made for several threads at a time

atexit.register(plugin_programs().table.clear)  # what it holds of Python's goes before Python does


@dataclass(frozen=True)
class Serialized:
    """An executable as it was written down, with the program and the options that it came from."""

    artifact: Artifact
    program: bytes
    options: bytes
    symbols: list[int]
    hidden: list[bytes]


def read_untrusted(program: bytes) -> bytes:
    """A program from outside that is known to be whole, as a portable artifact, or as bytecode where it cannot be one.

    Raises ProgramError and ReaderError.
    """
    read = read_any(program, "the program")
    return read if portable_version(read) else _portable(read)


def _portable(program: bytes) -> bytes:
    """Bytecode as a portable artifact, which the table of programs can read; unchanged where it has ops of others."""
    from shlo_disc.shape_dialect.mlir import stablehlo

    with _COMPILING, _CONTEXTS.borrow(len(program)) as context:
        try:
            return bytes(stablehlo.serialize_portable_artifact(parse_trusted(program, context), STABLEHLO_VERSION))
        except (ValueError, DiscError):
            return program


def states_placement(program: bytes) -> bool:
    """Tells whether a program for one device has to be rewritten by `for_one_device`, as compile.h does."""
    return (program.startswith(BYTECODE_MAGIC) and b"sdy" in program) or layouts.STATED.encode() in program


def _target(gpu: int) -> str:
    """The target that programs are compiled for on a GPU, by its number, or on processors where that is negative."""
    if gpu < 0:
        return CPU
    return f"{CUDA}:{architecture_for(gpu_client(gpu).native_device.gpu.facts['compute_capability'])}"


def _loaded(executable: Executable, gpu: int) -> LoadedExecutable:
    """A compiled program on the GPU with a number, or on processors where that is negative."""
    return executable.loaded if gpu < 0 else load_on(executable.artifact, gpu)


def load_on(artifact: Artifact, gpu: int) -> LoadedExecutable:
    """A program on the GPU with a number, or on processors where that is negative.

    Raises ArtifactError and DeviceError.
    """
    if gpu < 0:
        return client(threads=0).load(artifact)
    if any(call.get("groups") for call in artifact.header.get("calls", ())):
        open_nccl(nccl_names())
    return gpu_client(gpu).load(artifact)


def compile_program(program: bytes, gpu: int = -1, max_programs: int = 0, participants: int = 1) -> LoadedExecutable:
    """Compile bytecode or a portable artifact that is known to be whole.

    gpu: the number of the GPU that it is for, the first of several; negative: it is for processors. max_programs: the
    programs that a function may have, 0 for any number. participants: how many devices run it together. Raises
    ProgramError, UnsupportedError, and RecompileError for one too many.
    """
    with _prepared(program, max_programs, participants) as (read, options, context):
        return _loaded(compile_read(read, options, _target(gpu), context=context), gpu)


def artifact_of_program(program: bytes, max_programs: int = 0, participants: int = 1) -> Artifact:
    """As `compile_program`, for processors; not loaded."""
    with _prepared(program, max_programs, participants) as (read, options, context):
        return compile_artifact(read, options, context=context)


@contextlib.contextmanager
def _prepared(program: bytes, max_programs: int, participants: int) -> Iterator[tuple[TextProgram, Options, Any]]:
    """A program that may be compiled for its own sizes, the options for it, and an MLIR context."""
    with _COMPILING:
        observation.before_compile(program, max_programs)
    with _COMPILING, _CONTEXTS.borrow(len(program)) as context:
        options = Options(opt_level=0) if participants == 1 and _is_tiny(program, context) else Options()
        functions = _functions_of(program)
        read = TextProgram(program, trusted=True, has_tokens=True, participants=participants, functions=functions)
        yield read, options, context


def _functions_of(program: bytes) -> tuple[int, ...]:
    """The numbers of the functions of Python that a program calls, as the table of programs passes them."""
    if PYTHON_CALLBACK.encode() not in program:
        return ()
    try:
        return tuple(read_program(program, with_places=False)["functions"])
    except ValueError:  # the table cannot read it either, and passes none
        return ()


def for_one_device(program: bytes) -> bytes:
    """A program as a portable artifact without shardings, whose arrays are all in row-major order.

    Raises ProgramError and UnsupportedError.
    """

    def rewrite(module: Any) -> None:
        remove_shardy(module)
        layouts.decide(module)
        layouts.apply(module)

    return rewritten(program, rewrite)


def for_devices(program: bytes, replicas: int, partitions: int) -> tuple[bytes, str]:
    """The program that each of several devices runs, as a portable artifact, and its module's attributes as text.

    Replicas run it as it is, partitions on parts of its arrays; the attributes say on which. Raises ProgramError and
    UnsupportedError.
    """
    if replicas > 1 and partitions > 1:
        raise unsupported("module", "a program of replicas and partitions at once")
    if partitions == 1 and layouts.STATED.encode() not in program:
        return program, ""
    if not portable_version(program):
        raise ProgramError("a program over several devices comes as a portable artifact")
    stated: list[str] = []

    def rewrite(module: Any) -> None:
        if partitions == 1:
            remove_shardy(module)
        layouts.decide(module)
        if partitions > 1:
            partition(module, partitions)
        layouts.apply(module)
        attributes = module.operation.attributes
        stated.extend(f"{name} = {attributes[name]}" for name in _OF_DEVICES if name in attributes)

    return rewritten(program, rewrite), ", ".join(stated)


def count_flops(artifact: Artifact, symbols: list[int]) -> float | None:
    """The arithmetic of one run at the sizes that the symbols have, on each device; None where it depends on others."""
    names = [row["name"] for row in artifact.header["symbols"]]
    flops = Expr.parse(str(artifact.header.get("flops", 0)))
    sizes = dict(zip(names, symbols, strict=True))
    return float(flops.evaluate(sizes)) if flops.symbols() <= sizes.keys() else None


_TINY_PROGRAM = 4096  # bytes of a portable artifact
_TINY_ARRAYS = 4096  # elements of all arguments and results


def _is_tiny(program: bytes, context: Any) -> bool:
    """Tells whether LLVM's optimisations take longer than they can save: JAX compiles each op that it runs eagerly."""
    if len(program) > _TINY_PROGRAM or not program.startswith(BYTECODE_MAGIC):
        return False
    module = parse_trusted(program, context)
    signature = entry_function(module).attributes["function_type"].value
    elements = 0
    for kind in (*signature.inputs, *signature.results):
        if not hasattr(kind, "shape") or not kind.has_static_shape:
            return False
        elements += math.prod(kind.shape)
    return elements <= _TINY_ARRAYS


def generalize_programs(
    programs: list[bytes], gpu: int = -1, max_programs: int = 0, participants: int = 1
) -> tuple[Any, ...] | None:
    """One executable for programs that differ in sizes only, with what the table of programs needs to know of it.

    None when there is none; the programs are compiled as they are then. gpu, max_programs, participants: as
    `compile_program` has them. Raises RecompileError for one program too many.
    """
    found = symbolic_program(programs, _target(gpu), max_programs, participants)
    if found is None:
        return None
    return (_loaded(found.executable, gpu), *found.for_table())


def symbolic_program(
    programs: list[bytes], target: str = CPU, max_programs: int = 0, participants: int = 1
) -> SymbolicProgram | None:
    """As `generalize_programs`; not loaded."""
    from shlo_disc.pjrt.generalize import generalize_or_explain

    with _COMPILING:
        observation.before_generalizing(programs[-1], max_programs)
        tell = observation.refusal_of(programs[-1], max_programs)
        found = generalize_or_explain(programs, target=target, tell=tell, participants=participants)
        if found is not None:
            observation.note_symbolic(programs[-1], found, max_programs)
        return found


def record_program(program: bytes) -> None:
    """Write down a program as it was given; see `shlo_disc.driver.recording`."""
    with _COMPILING:
        record_read(TextProgram(program, trusted=True), "plugin")


def note_program(program: bytes, how: str, seconds: float) -> CallCount:
    """Note how a program was served, for whoever observes programs; returns what counts its calls."""
    with _COMPILING:
        return observation.after_compile(program, how, seconds)


def serialize(artifact: Artifact, program: bytes, options: bytes, symbols: list[int], hidden: list[bytes]) -> bytes:
    """The bytes of an executable; see `Serialized`."""
    encoded = [base64.b64encode(data).decode() for data in (options, *hidden)]
    ours = {"options": encoded[0], "symbols": symbols, "hidden": encoded[1:]}
    header, sections = {**artifact.header, _HEADER_KEY: ours}, {**artifact.sections, "portable": program}
    return replace(artifact, header=header, sections=sections).serialize()


def deserialize(data: bytes) -> Serialized:
    """Read what `serialize` wrote, which is native code and trusted as such. Raises ArtifactError."""
    artifact = Artifact.deserialize(data, trust=True)
    try:
        ours = artifact.header[_HEADER_KEY]
        options, *hidden = (base64.b64decode(text, validate=True) for text in (ours["options"], *ours["hidden"]))
        symbols = [int(value) for value in ours["symbols"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"the artifact is not one of the plugin: {error!r}") from None
    header = {key: value for key, value in artifact.header.items() if key != _HEADER_KEY}
    return Serialized(replace(artifact, header=header), bytes(artifact.portable), options, symbols, hidden)


def register_function(name: str, address: int) -> None:
    """Let programs call a handler of XLA's FFI by name."""
    register_custom_call(name, address, convention="ffi")


def describe_error(error: BaseException) -> tuple[int, str]:
    """The code that the C API has for an exception, and its message."""
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code, str(error)
    return _INTERNAL, f"{type(error).__name__}: {error}"


__all__ = [
    "Serialized", "artifact_of_program", "compile_program", "count_flops", "describe_error", "deserialize",
    "for_devices", "for_one_device", "generalize_programs", "load_on", "note_program", "read_untrusted",
    "record_program", "register_function", "serialize", "states_placement", "symbolic_program",
]  # fmt: skip
