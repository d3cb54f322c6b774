# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Everything that can be chosen about a compilation: the target, the schedules of kernels, and `Options`."""

from __future__ import annotations

import difflib
import functools
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

from shlo_disc.errors import OptionError
from shlo_disc.options.names import check_flag, check_names, owner_of, takes_named, takes_options
from shlo_disc.options.schedules import KernelSchedule, Schedule
from shlo_disc.options.targets import (
    CPU,
    CUDA,
    CUDA_ARCHITECTURES,
    TARGETS,
    Capability,
    architecture_for,
    check_target,
    cuda_architecture,
    jax_platforms,
    runs_on,
)

MOST_THREADS = 4096
"""More threads than any machine has processors; a wrong number would take all that the system allows."""

MATMUL_PRECISIONS = ("highest", "tf32x3", "tf32")
"""From the most exact to the fastest."""

OUTPUTS = ("numpy", "jax", "buffer", None)
LEVELS = ("x86-64-v3", "x86-64-v4", "sapphirerapids")
"""Levels of processors, each with all that the ones before it have: AVX2 and FMA; AVX-512; AMX and 16-bit floats."""

CPUS = ("host", *LEVELS)
CPU_VARIABLE = "SHLO_DISC_CPU"
STRICT_VARIABLE = "SHLO_DISC_STRICT"
GUARD_PAGES_VARIABLE = "SHLO_DISC_GUARD_PAGES"
PROGRESS_VARIABLE = "SHLO_DISC_PROGRESS"
READ_SECONDS_VARIABLE = "SHLO_DISC_READ_SECONDS"
READ_BYTES_VARIABLE = "SHLO_DISC_READ_BYTES"
_VARIABLES = (
    *("CPU", "STRICT", "GUARD_PAGES", "PROGRESS", "READ_SECONDS", "READ_BYTES"),
    *("CACHE_DIR", "CODE_CACHE_DIR", "RECORD", "TUNING_DIR", "MAX_PROGRAMS", "WATCH", "WATCH_WRITES", "TRUST"),
    *("CACHE_STORE", "CACHE_KEY_FILE", "COMPILER", "EXCHANGE_ADDRESS", "INTERPRETED_MICROSECONDS"),
)
"""The names of the environment variables behind their prefix."""


@functools.cache
def warn_of_variables() -> None:
    """Warn once of environment variables that are nearly one of ours."""
    prefix = "SHLO_DISC_"
    for variable in os.environ:
        name = variable.removeprefix(prefix)
        near = difflib.get_close_matches(name, _VARIABLES, 1) if variable.startswith(prefix) else []
        if near and name != near[0]:
            text = f"there is no environment variable {variable}; did you mean {prefix}{near[0]}? [DISC-O111]"
            warnings.warn(text, stacklevel=3)


_READ_SECONDS = 2
_READ_BYTES = 1 << 30


def stated_cpu() -> str:
    """The default of `Options.cpu`. Raises OptionError for what the environment says."""
    name = os.environ.get(CPU_VARIABLE, "") or "host"
    if name not in CPUS:
        raise OptionError(f"the environment variable {CPU_VARIABLE} must be one of {CPUS}, not {name!r}")
    return name


@dataclass(frozen=True)
class Flag:
    """A field of `Options` on the command line: a switch for the other value than the default, a number, or a name.

    metavar: the word for the value in the help; "" for a switch. type: of the value.
    """

    name: str
    help: str
    metavar: str = ""
    type: type = int


def _option(default: Any = MISSING, *, changes_code: bool, flag: Flag | None = None, factory: Any = MISSING) -> Any:
    """A field of `Options`.

    changes_code: whether programs of other values have other code, so that the compile cache keeps them apart.
    flag: on the command line, where nothing but a number or a switch is needed.
    """
    metadata = {"changes_code": changes_code, "flag": flag}
    if factory is not MISSING:
        return field(default_factory=factory, metadata=metadata)
    return field(default=default, metadata=metadata)


@takes_named
@dataclass(frozen=True)
class Options:
    """Options of the compiler, and of the calls of the program.

    threads: size of the thread pool; 0 means the processors this process may use.
    hints: likely values of symbols, e.g. {"s": 128}; they steer cost estimates, never correctness.
    verify: check the IR after every stage.
    opt_level: LLVM's optimisation level, 0 to 3. None means 1 for processors, because the compiler emits their kernels
        as vector code and higher levels only take longer, and 3 for GPUs.
    output: "numpy", "jax" or "buffer" results; None gives jax.Arrays when an argument is one, else NumPy arrays.
    max_fusions: the largest number of fusion decisions, in program order (None: no limit). Halve the number to find the
        fusion that causes a fault. `Executable.fusion_count` returns how many there were.
    reuse: whether several values may share a buffer, one after the other. False gives every value a separate buffer, to
        find faults.
    memory_limit: the bytes that a call may allocate, results included (`Executable.peak_memory`). A call whose sizes
        need more computes values again instead of keeping them, as few as suffice; results have the same bits. Calls
        that need more in any case raise a ShapeError. None: no limit.
    hoist: whether matrix products, gathers, sorts and other costly ops that are the same in every iteration are
        computed once, before their loop. False computes them in each iteration: slower, but their results need no
        memory for as long as the loop runs.
    deterministic: calls with the same arguments return the same bits. On processors they do so anyway, once an array
        has been passed before: a matrix product packs one that is passed again, and may then add in another order. On
        GPUs, scatters that add floats or replace elements combine their updates in order instead of atomically, which
        is much slower for many indices.
    strict: an internal error of a fusion or another pattern raises a CompilerError; otherwise the program is compiled
        without that pattern, with a warning. The sizes that ops imply are also checked after each stage, as well as the
        IR. None means the value of the environment variable SHLO_DISC_STRICT, 1 or 0.
    passes: pipelines of your own to run after stages or passes, by their names, e.g. {"simplify": "drop-negations"}
        (docs/guides/writing-a-pass.md). Such programs are not kept in a compile cache.
    schedule: the form of each kernel, e.g. `Schedule.load(path)` of a file that `shlo_disc tune` wrote.
    tuned: use the schedules that `shlo_disc tune` has recorded on this machine for kernels of the same content, where
        `schedule` names none. Off by default, so that a compile depends on nothing but its inputs.
    cpu: the processors that the code is for: "host", the processor of this process; "x86-64-v3", all with AVX2 and FMA;
        "x86-64-v4", those with AVX-512; "sapphirerapids", those with AMX as well; or several of the last three, such as
        ("x86-64-v3", "x86-64-v4"): the artifact then has code for each, and a processor runs the best that it supports.
        The default is the value of the environment variable SHLO_DISC_CPU, or else "host".
    matmul_precision: the precision of f32 matrix products and convolutions on GPUs: "highest", all bits; "tf32x3",
        about 22 bits, in three products on tensor cores; "tf32", 11 bits of each factor. None means what the program
        states: in JAX and StableHLO, DEFAULT and HIGH are TF32, HIGHEST is all bits, and algorithms are as named; in
        PyTorch, `torch.get_float32_matmul_precision()` decides. Processors always take all bits.
    symbolic: turn the argument sizes above 1 of a static StableHLO program into symbols, where its ops allow it.
        Numbers that were computed from sizes, such as the divisor of a mean or the window of a running sum, stay
        constant; to make them follow the sizes, export the program with symbolic sizes.
    replicas: the number of devices that run a StableHLO program together, each with its own arguments
        (`Executable.execute_sharded`); as `mhlo.num_replicas` in the program.
    dump: a directory to which the text of every stage is written.
    cache_dir: the directory of the compile cache, which keeps compiled programs for later processes
        (docs/compile-cache.md). None means the value of the environment variable SHLO_DISC_CACHE_DIR, and "" no cache,
        not even of LLVM's objects.
    cache_bytes: the largest size of that directory; the least recently used files are removed first.
    cache_store: a directory or a URL, such as s3://bucket/prefix, with which machines share compiled programs
        (docs/compile-cache.md). None means the value of the environment variable SHLO_DISC_CACHE_STORE, and "" no
        store. The environment variable SHLO_DISC_CACHE_KEY_FILE names the key.
    guard_pages: arguments, results and the arena end at an inaccessible page, and memory is filled with 0xFF before it
        is used, so a kernel that accesses memory outside its buffers causes a signal or NaNs. Slow; for tests. None
        means the value of the environment variable SHLO_DISC_GUARD_PAGES, 1 or 0.
    read_seconds, read_bytes: the processor time and the memory that reading a program from outside (text, bytecode,
        serialized exports) may take. Large programs may take one more second per megabyte, and 32 times their size.
        None means the values of the environment variables SHLO_DISC_READ_SECONDS and SHLO_DISC_READ_BYTES, or else 2 s
        and 1 GiB.
    isolate: compile in a separate process. If MLIR or LLVM aborts, only that process ends, and you get a CompilerError.
        The process starts at the first compile and is reused. `as_text`, `signature` and `kernels` run the stages again
        in your process.
    progress: whether a compile that takes more than two seconds shows its progress on a terminal or in a notebook, in
        one line of standard error that is erased at the end. None means the value of the environment variable
        SHLO_DISC_PROGRESS, 1 or 0, or else 1.
    compile_seconds, compile_bytes: with `isolate`, the time and the memory that a compile may take; None means no
        limit.
    """

    threads: int = _option(0, changes_code=False, flag=Flag("--threads", "threads of a call; 0: all processors", "N"))
    hints: Mapping[str, int] = _option(factory=dict, changes_code=True)
    verify: bool = _option(True, changes_code=False)
    opt_level: int | None = _option(
        None, changes_code=True, flag=Flag("--opt-level", "LLVM's optimisation level, 0 to 3", "N")
    )
    output: str | None = _option(None, changes_code=False)
    max_fusions: int | None = _option(
        None, changes_code=True, flag=Flag("--max-fusions", "make at most N fusions, to find a faulty one", "N")
    )
    reuse: bool = _option(
        True, changes_code=True, flag=Flag("--no-reuse", "give every value its own buffer, to find faults")
    )
    hoist: bool = _option(
        True, changes_code=True, flag=Flag("--no-hoist", "compute in each iteration what is always the same")
    )
    memory_limit: int | None = _option(
        None, changes_code=True, flag=Flag("--memory-limit", "let a call allocate at most N bytes", "N")
    )
    deterministic: bool = _option(
        False, changes_code=True, flag=Flag("--deterministic", "bit-identical results on GPUs, slower")
    )
    strict: bool | None = _option(
        None, changes_code=False, flag=Flag("--strict", "fail on an internal error in a fusion")
    )
    passes: Mapping[str, str] = _option(factory=dict, changes_code=False)  # programs with some are not cached
    schedule: Schedule = _option(factory=Schedule, changes_code=True)
    tuned: bool = _option(
        False, changes_code=True, flag=Flag("--tuned", "use the schedules that `tune` has recorded on this machine")
    )
    cpu: str | Sequence[str] = _option(factory=stated_cpu, changes_code=True)
    matmul_precision: str | None = _option(
        None,
        changes_code=True,
        flag=Flag("--matmul-precision", f"of f32 products on GPUs: {', '.join(MATMUL_PRECISIONS)}", "NAME", str),
    )
    symbolic: bool = _option(
        False, changes_code=True, flag=Flag("--symbolic", "turn the sizes of static arguments into symbols")
    )
    replicas: int = _option(1, changes_code=False)  # the program that is read has them
    dump: str | None = _option(None, changes_code=False)
    cache_dir: str | os.PathLike[str] | None = _option(None, changes_code=False)
    cache_bytes: int = _option(4 << 30, changes_code=False)
    cache_store: str | os.PathLike[str] | None = _option(None, changes_code=False)
    guard_pages: bool | None = _option(None, changes_code=False)
    read_seconds: int | None = _option(None, changes_code=False)
    read_bytes: int | None = _option(None, changes_code=False)
    isolate: bool = _option(False, changes_code=False)
    compile_seconds: float | None = _option(None, changes_code=False)
    compile_bytes: int | None = _option(None, changes_code=False)
    progress: bool | None = _option(None, changes_code=False)

    def __post_init__(self) -> None:
        """Raises OptionError on a value that no compilation can use."""
        warn_of_variables()
        for name, least in (("threads", 0), ("replicas", 1), ("cache_bytes", 0)):
            value = getattr(self, name)
            if not _is_integer(value) or value < least:
                raise OptionError(f"{name} must be an integer of at least {least}, not {value!r}")
        if self.threads > MOST_THREADS:
            raise OptionError(f"threads must be an integer of at most {MOST_THREADS}, not {self.threads}")
        if self.opt_level is not None and not (_is_integer(self.opt_level) and 0 <= self.opt_level <= 3):
            raise OptionError(f"opt_level must be 0, 1, 2 or 3, not {self.opt_level!r}")
        if self.max_fusions is not None and (not _is_integer(self.max_fusions) or self.max_fusions < 0):
            raise OptionError(f"max_fusions must be an integer of at least 0 or None, not {self.max_fusions!r}")
        for name in ("memory_limit", "read_seconds", "read_bytes", "compile_bytes"):
            value = getattr(self, name)
            if value is not None and (not _is_integer(value) or value < 1):
                raise OptionError(f"{name} must be an integer of at least 1 or None, not {value!r}")
        self._check_choices()
        self._check_isolation()

    def _check_isolation(self) -> None:
        seconds = self.compile_seconds
        if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0):
            raise OptionError(f"compile_seconds must be a positive number or None, not {seconds!r}")
        if not self.isolate and (seconds is not None or self.compile_bytes is not None):
            raise OptionError("compile_seconds and compile_bytes are limits of a process: they need isolate=True")
        if self.isolate and self.passes:
            raise OptionError("passes are registered in this process; a compile with isolate=True has one of its own")

    def _check_names(self) -> None:
        for name, known in (("output", OUTPUTS), ("matmul_precision", (*MATMUL_PRECISIONS, None))):
            if getattr(self, name) not in known:
                *named, last = map(repr, known)
                raise OptionError(f"{name} must be {', '.join(named)} or {last}, not {getattr(self, name)!r}")

    def _check_choices(self) -> None:
        for option in fields(self):
            allowed, value = _SWITCHES.get(str(option.type)), getattr(self, option.name)
            if allowed is not None and value not in allowed:
                raise OptionError(f"{option.name} must be one of {allowed}, not {value!r}")
        if not isinstance(self.schedule, Schedule):
            raise OptionError(f"schedule must be a shlo_disc.Schedule, not {self.schedule!r}")
        several = isinstance(self.cpu, Sequence) and not isinstance(self.cpu, str)
        if not (self.cpu and all(name in LEVELS for name in self.cpu) if several else self.cpu in CPUS):
            raise OptionError(f"cpu must be 'host', one of {LEVELS}, or several of these, not {self.cpu!r}")
        self._check_names()
        if not isinstance(self.cache_dir, str | os.PathLike | None):
            raise OptionError(f"cache_dir must be a path or None, not {self.cache_dir!r}")
        if not isinstance(self.cache_store, str | os.PathLike | None):
            raise OptionError(f"cache_store must be a path, a URL or None, not {self.cache_store!r}")
        if not isinstance(self.passes, Mapping) or not all(isinstance(t, str) for t in self.passes.values()):
            raise OptionError(f"passes must map names to pipelines, e.g. {{'simplify': 'cse'}}, not {self.passes!r}")
        if not isinstance(self.hints, Mapping):
            raise OptionError(f"hints must map symbols to sizes, e.g. {{'s': 128}}, not {self.hints!r}")
        for name, value in self.hints.items():
            if not _is_integer(value) or value < 0:
                raise OptionError(f"the hint for {name!r} must be an integer of at least 0, not {value!r}")

    def __repr__(self) -> str:
        """The options that are not as they are by default; `cpu` as well where the environment has chosen it."""
        chosen = (f for f in fields(self) if getattr(self, f.name) != _default_of(f))
        return f"Options({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in chosen)})"

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON data, values from the environment included; `from_json` reads them."""
        stated = {f.name: getattr(self, f.name) for f in fields(self)}
        names = {"cache_dir": self.cache_dir, "cache_store": self.cache_store}
        paths = {name: None if path is None else os.fspath(path) for name, path in names.items()}
        resolved = {
            "strict": self.is_strict,
            "guard_pages": self.has_guard_pages,
            "read_seconds": self.seconds_to_read,
            "read_bytes": self.bytes_to_read,
        }
        return (
            stated
            | resolved
            | {"hints": dict(self.hints), "passes": dict(self.passes)}
            | {"schedule": self.schedule.to_json()}
            | paths
        )

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Options:
        """The options from JSON data. Raises OptionError if the data are not options."""
        try:
            return Options(**{**data, "schedule": Schedule.from_json(data["schedule"])})
        except (KeyError, TypeError) as error:
            raise OptionError(f"these are no options: {error!r}") from None

    def code_key(self) -> tuple[tuple[str, Any], ...]:
        """The options that change the code, by name; what they are compiled to is the same for equal ones."""
        forms = {"cpu": self.cpus, "schedule": self.schedule.key(), "hints": tuple(sorted(self.hints.items()))}
        names = [f.name for f in fields(self) if f.metadata["changes_code"]]
        return tuple((name, forms.get(name, getattr(self, name))) for name in names)

    @property
    def cpus(self) -> tuple[str, ...]:
        """The names in `cpu`, the least demanding level first."""
        return (self.cpu,) if isinstance(self.cpu, str) else tuple(name for name in LEVELS if name in self.cpu)

    @property
    def is_strict(self) -> bool:
        """Tells whether internal errors of patterns raise."""
        return os.environ.get(STRICT_VARIABLE, "") == "1" if self.strict is None else self.strict

    @property
    def has_guard_pages(self) -> bool:
        """Tells whether buffers end at an inaccessible page."""
        return os.environ.get(GUARD_PAGES_VARIABLE, "") == "1" if self.guard_pages is None else self.guard_pages

    @property
    def has_progress(self) -> bool:
        """Tells whether a long compile shows its progress."""
        return os.environ.get(PROGRESS_VARIABLE, "") != "0" if self.progress is None else self.progress

    @property
    def seconds_to_read(self) -> int:
        """The processor time for reading a program. Raises OptionError for an invalid environment variable."""
        return _stated(READ_SECONDS_VARIABLE, _READ_SECONDS) if self.read_seconds is None else self.read_seconds

    @property
    def bytes_to_read(self) -> int:
        """The memory for reading a program. Raises OptionError for an invalid environment variable."""
        return _stated(READ_BYTES_VARIABLE, _READ_BYTES) if self.read_bytes is None else self.read_bytes


_SWITCHES = {"bool": (True, False), "bool | None": (True, False, None)}
"""The values of fields, by their types as they are written."""


def flagged() -> dict[str, tuple[Flag, Any]]:
    """The flag and the default of each option that has a flag."""
    return {f.name: (f.metadata["flag"], f.default) for f in fields(Options) if f.metadata["flag"] is not None}


def flags_of(options: Options) -> list[str]:
    """The flags of options that change the code and are not as they are by default, as words of a command line."""
    changing = {f.name for f in fields(options) if f.metadata["changes_code"]}
    words = []
    for name, (flag, default) in flagged().items():
        value = getattr(options, name)
        if name in changing and value != default:
            words += [flag.name, *([str(value)] if flag.metavar else [])]
    return words


def _default_of(option: Field[Any]) -> Any:
    """The value of an option that nobody has chosen, the environment neither."""
    if option.name == "cpu":
        return "host"
    return option.default if option.default_factory is MISSING else option.default_factory()


def _stated(variable: str, default: int) -> int:
    text = os.environ.get(variable, "")
    if not text:
        return default
    if not text.isdecimal() or int(text) < 1:
        raise OptionError(f"the environment variable {variable} must be an integer of at least 1, not {text!r}")
    return int(text)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


__all__ = [
    "CPU", "CPUS", "CPU_VARIABLE", "CUDA", "CUDA_ARCHITECTURES", "Capability", "Flag", "GUARD_PAGES_VARIABLE",
    "KernelSchedule", "LEVELS", "MATMUL_PRECISIONS", "MOST_THREADS", "OUTPUTS", "Options", "PROGRESS_VARIABLE",
    "READ_BYTES_VARIABLE", "READ_SECONDS_VARIABLE", "STRICT_VARIABLE", "Schedule", "TARGETS", "architecture_for",
    "check_flag", "check_names", "check_target", "cuda_architecture", "flagged", "flags_of", "jax_platforms",
    "owner_of", "runs_on", "stated_cpu", "takes_options", "warn_of_variables",
]  # fmt: skip
