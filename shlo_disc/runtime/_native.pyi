# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import enum
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

class TreeKind(enum.Enum):
    leaf = 0

    none = 1

    tuple = 2

    list = 3

    dict = 4

    named_tuple = 5

    custom = 6

class Tree:
    def __init__(self, kind: TreeKind, children: Sequence[Tree], detail: object | None) -> None: ...
    def flatten(self, items: tuple) -> list[Any] | None:
        """The leaves of a tuple with this structure; None where it has another one."""

    def unflatten(self, leaves: Sequence[object]) -> Any: ...
    @property
    def leaves(self) -> int: ...

class Buffer:
    """
    An array in the memory of a device. Its elements never change.
    """

    @property
    def shape(self) -> tuple: ...
    @property
    def dtype(self) -> object: ...
    @property
    def memory(self) -> Any:
        """The Memory that holds it."""

    @property
    def device(self) -> Any: ...
    def copy_to_memory(self, memory: object) -> Buffer:
        """The same elements in another Memory. All kinds are memory of this machine, so nothing is copied."""

    def on_device_size_in_bytes(self) -> int: ...
    def delete(self) -> None:
        """Releases the memory; arrays made from it earlier keep their part."""

    def is_deleted(self) -> bool: ...
    def is_ready(self) -> bool:
        """True if the elements are ready: always on the CPU, where a call has ended when it returns a Buffer."""

    def ready_event(self) -> Any:
        """An Event that completes when the elements are ready."""

    def block_until_ready(self) -> object: ...
    def to_host(self) -> object:
        """A copy as a NumPy array."""

    def __array__(self, dtype: object | None = None, copy: object | None = None) -> object: ...
    def __dlpack__(
        self,
        *,
        stream: object | None = None,
        max_version: object | None = None,
        dl_device: object | None = None,
        copy: object | None = None,
    ) -> object: ...
    @property
    def __cuda_array_interface__(self) -> dict: ...
    def __dlpack_device__(self) -> tuple: ...
    def __len__(self) -> int: ...

class Device:
    """
    A device that runs programs, with memory shared by one client's executables.
    """

    def memory_stats(self) -> dict: ...
    def reset_peak(self) -> None: ...
    def trim(self) -> int: ...
    def fail_allocation(self, arg: int, /) -> None:
        """Test hook: the k-th next allocation fails once; 0 switches it off."""

    def buffer_from_host(self, array: object, memory: object) -> Buffer: ...

class Processors(Device):
    """The processors of this machine, as threads."""

    def __init__(self, threads: int, memory_limit: int, cache_limit: int, guard_pages: bool) -> None: ...
    @property
    def threads(self) -> int: ...

class Topology:
    memory_kinds: ClassVar[list[str]]

    def __init__(self, arg: int, /) -> None: ...
    @staticmethod
    def deserialize(arg: bytes, /) -> Topology: ...
    def serialize(self) -> bytes: ...
    @property
    def device_count(self) -> int: ...
    @property
    def fingerprint(self) -> int: ...

def default_device() -> Processors: ...

class Output(enum.Enum):
    automatic = 0

    numpy = 1

    jax = 2

    buffer = 3

class BoundExecutable:
    def __init__(
        self,
        executable: Executable,
        args: tuple,
        bound_tree: Tree,
        rest_tree: Tree,
        explain_bound: object,
        explain_structure: object,
        donate: bool,
        copy: bool,
    ) -> None: ...
    def execute(self, args: tuple, kwargs: dict, output: Output) -> object: ...
    def profile(self, args: tuple, kwargs: dict) -> list[CommandTime]:
        """Time of each command of a call."""

    def record(self, args: tuple, kwargs: dict) -> tuple[list[RecordedSpan], list[RecordedSpan]]:
        """Times at which the commands of a call ran, and the ranges of their work."""

class RecordedSpan:
    """A command, or a range of its work; times by the system's clock."""

    @property
    def command(self) -> int: ...
    @property
    def thread(self) -> int: ...
    @property
    def start(self) -> int: ...
    @property
    def nanoseconds(self) -> int: ...

class Contents:
    """The contents that arrays had. Keeps the arrays."""

    def hold(self) -> bool:
        """True while the arrays hold the same."""

    @property
    def are_read(self) -> bool:
        """True where hold() reads the memory of one of them."""

class CommandTime:
    """Number of a command's runs, their time, and the way chosen for it."""

    @property
    def calls(self) -> int: ...
    @property
    def nanoseconds(self) -> int: ...
    @property
    def way(self) -> str | None: ...

def sections_of(data: object) -> list:
    """(name, offset, length) of each section of an artifact, the header first. Raises ArtifactError on any damage."""

def choose_level(headers: Sequence[bytes], cpu: str, to_run: bool) -> int:
    """
    The number of the level to run, of those that these headers are of, the least demanding one first: that of the name
    `cpu`, or if that is empty, the last one that this processor can run. Raises ArtifactError.
    """

def header_digest(header: bytes) -> bytes:
    """
    Digest of the header fields that a program's code depends on: 32 bytes, the same for the artifact as packed and as
    plugins serialize it. Raises ArtifactError where it is no JSON object.
    """

release: str

def triton_config(
    arguments: Sequence[tuple[str, str, str, Sequence[str]]],
    results: Sequence[tuple[str, str, str, Sequence[str]]],
    max_batch_size: int,
) -> tuple[str, str]:
    """
    A configuration of Triton as JSON, and why the server must not join requests, of which one is empty. Arrays are
    (path, name, dtype, sizes). Raises ArtifactError where Triton does not have a dtype.
    """

def missing_features(features: Sequence[str]) -> list[str]: ...
def pack_constants(header: bytes, constants: object) -> bytes:
    """
    The packed forms of a program's constants, as a section of an artifact has them; empty where there are none.
    Raises ArtifactError where the header is malformed.
    """

class Header:
    """The contents of a program's header, except its pytrees."""

    def __init__(self, text: bytes) -> None:
        """Raises ArtifactError where it is malformed, or made for another processor."""

    @property
    def replicas(self) -> int: ...

class Executable:
    def __init__(
        self,
        device: Device,
        header: Header,
        object: object,
        device_code: object,
        constants: object,
        packed: object,
        in_tree: Tree,
        out_tree: Tree,
        explain_structure: object,
        memory: object,
        jax_converter: object,
        key_array: object,
        memo_bytes: int,
        perf_map: bool,
    ) -> None: ...
    def __call__(self, *args: object, **kwargs: object) -> object: ...
    def execute(self, args: tuple, kwargs: dict, output: Output) -> object: ...
    def profile(self, args: tuple, kwargs: dict) -> list[CommandTime]:
        """Time of each command of a call."""

    def execute_sharded(
        self, calls: Sequence[tuple[tuple, dict]], memories: Sequence[object], output: Output, on: Sequence[Executable]
    ) -> list:
        """One call on several devices at a time, and the results of each. `on`: the program on each device."""

    def contents_of(self, arrays: Sequence[object], watch: bool) -> Contents:
        """Present contents of contiguous arrays, for programs of the processor.

        watch: by watches of writes, where the kernel has them, instead of by fingerprints.
        """

    def symbols_of(self, dims: Sequence[int]) -> list[int]:
        """The values of the symbols for arguments with these sizes, which are those of all in order."""

    @property
    def code_bytes(self) -> int: ...
    def plan(self, symbols: Sequence[int]) -> tuple:
        """(arena bytes, result shapes, result bytes) at symbol values."""

    def prepare(self, symbols: Sequence[int]) -> None:
        """Gives memory to what a call at symbol values allocates."""

    def memo_symbols(self) -> list[list[int]]:
        """Values of the symbols that are remembered, most recent first."""

    @property
    def memo_size(self) -> int: ...
    @property
    def memo_bytes(self) -> int: ...
    @property
    def function_names(self) -> list[str]: ...

class ObjectCode:
    """An object file placed in memory."""

    def __init__(self, arg: bytes, /) -> None: ...
    def function(self, arg: str, /) -> int: ...
    def write_perf_map(self) -> None: ...
    @property
    def function_names(self) -> list[str]: ...
    @property
    def mapped_bytes(self) -> int: ...

def dot(arg0: Device, arg1: Sequence[int], /) -> None: ...
def pack_right(arg0: Device, arg1: Sequence[int], arg2: int, /) -> int: ...

class GpuEvent:
    """A point in a GPU's stream of work."""

    def is_done(self) -> bool: ...
    def wait(self) -> None: ...

class GpuKernel:
    """A kernel of a GpuModule."""

    @property
    def name(self) -> str: ...

class Gpu:
    """One GPU of this machine, and its stream of work."""

    @staticmethod
    def count() -> int: ...
    @staticmethod
    def get(arg: int, /) -> Gpu: ...
    @property
    def ordinal(self) -> int: ...
    @property
    def facts(self) -> dict: ...
    def launch(
        self, kernel: GpuKernel, grid: Sequence[int], block: Sequence[int], shared_bytes: int, words: Sequence[int]
    ) -> None: ...
    def record(self) -> GpuEvent: ...
    def wait(self) -> None: ...
    @property
    def free_memory(self) -> int: ...
    def allocate(self, bytes: int) -> int:
        """The address of fresh memory."""

    def release(self, arg: int, /) -> None: ...
    def write(self, to: int, source: object) -> None:
        """Copy the bytes of a contiguous Python buffer."""

    def read(self, address: int, bytes: int) -> bytes:
        """Bytes, once all work given before is done."""

    def copy(self, to: int, address: int, bytes: int) -> None: ...
    def fill(self, to: int, byte: int, bytes: int) -> None: ...

class GpuDevice(Device):
    """A GPU as a device of programs."""

    def __init__(
        self,
        ordinal: int,
        memory_limit: int,
        cache_limit: int,
        blas_names: Sequence[str],
        may_use_tf32: bool,
        fuses_products: bool | None,
        graphs: int,
    ) -> None: ...
    def launch_stats(self) -> dict:
        """Counts of the ways in which runs of programs were given to the GPU."""

    @property
    def blas_version(self) -> int:
        """cuBLASLt's, as it gives it; 0 where there is none."""

    @property
    def gpu(self) -> Gpu: ...

def open_nccl(names: Sequence[str]) -> None:
    """Open NCCL, by paths and names that it may be found by; once."""

def open_fft(names: Sequence[str]) -> None:
    """Open cuFFT, by paths and names that it may be found by; once."""

def open_solver(solver: Sequence[str], blas: Sequence[str]) -> None:
    """Open cuSOLVER and cuBLAS, each by paths and names that it may be found by; once."""

def destroy_nccl_groups() -> int:
    """Destroy the communicators of all groups of GPUs; how many groups there were."""

class GpuModule:
    """Code for a GPU: PTX, or a cubin."""

    def __init__(self, arg0: Gpu, arg1: bytes, /) -> None: ...
    def kernel(self, name: str, where: str = "") -> GpuKernel: ...

def available_memory() -> int: ...
def install_blas(arg0: object, arg1: object, arg2: object, arg3: object, /) -> None: ...
def install_lapack(functions: dict) -> None: ...
def lapack_names() -> list[str]:
    """The functions that `install_lapack` needs."""

def register_custom_call(target: str, function: int, is_ffi: bool) -> None: ...
def blas_controls_threads() -> bool: ...
def set_extension_dtype(arg0: str, arg1: object, /) -> None: ...
def set_jax_elements(arg: object, /) -> None: ...
def set_main_thread(arg: int | None, /) -> None:
    """The thread whose runs signals may interrupt."""

def set_adapt(arg: object, /) -> None: ...
def set_jax_array_type(arg: object, /) -> None: ...
def read_program(program: bytes, with_places: bool = ...) -> dict[str, Any]: ...
def interpret(program: bytes, arrays: list[Any], most_work: int = ...) -> list[Any]: ...
def evaluate_steps(steps: Sequence[tuple[int, int, int]], symbols: Sequence[int]) -> list[int] | None: ...
def finish_runs(milliseconds: int) -> bool:
    """
    Wait for the runs of all clients, so long at most; tells whether they have ended.
    """

def leave_job() -> None:
    """Tells the other processes of the job that this one ends."""

def plugin_programs() -> ProgramTable:
    """The programs that the plugin has compiled."""

def observe_programs(wanted: bool) -> None:
    """Tell shlo_disc.pjrt.compile.note_program of each program that the plugin is given from now on."""

class CallCount:
    def __init__(self) -> None: ...
    @property
    def value(self) -> int: ...

class ProgramTable:
    def __init__(self, limit: int) -> None: ...
    def compile(
        self,
        program: bytes,
        options: bytes,
        compile: Callable[[bytes, bytes], object],
        generalize: Callable[[list[bytes], bytes], object],
    ) -> tuple[Any, list[tuple[bytes, list[int]]], str]: ...
    def clear(self) -> None: ...
    @property
    def bytes(self) -> int: ...
    @property
    def counts(self) -> dict[str, int]: ...

class CallableFromJax:
    """A program that JAX's programs may call by its number."""

    def __init__(self, executable: Executable, number: int) -> None: ...

def jax_call_handler() -> int:
    """The address of the handler of XLA's FFI that calls programs."""
