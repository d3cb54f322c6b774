# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Everything that can be chosen about a compilation: the target, the schedules of kernels, and `Options`."""

from __future__ import annotations

import difflib
import functools
import inspect
import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar, cast

from shlo_disc.errors import DeviceError, OptionError, check_folder, reading

MOST_THREADS = 4096
"""More threads than any machine has processors; a wrong number would take all that the system allows."""

# ---- names of options -----------------------------------------------------------------------------------------------


_OF_JIT = "; shlo_disc.jit has it"
_ELSEWHERE = {
    "shlo_disc.compile": {
        "dynamic": '; names of sizes go into args=, as in args=(("b, 768", "float32"),)',
        "dynamic_shapes": '; names of sizes go into args=, as in args=(("b, 768", "float32"),), and for a module of '
        "PyTorch into torch.export.export(module, args, dynamic_shapes=...)",
        **dict.fromkeys(("compile_once", "donate_argnums", "static_argnames", "static_argnums"), _OF_JIT),
        "filter": f"{_OF_JIT}: write shlo_disc.jit(function, filter=True, dynamic=...), and call it, or .lower(...)"
        ".compile() of it for an Executable that takes a list of the arrays",
    },
    "shlo_disc.jit": {
        **dict.fromkeys(("args", "kwargs"), "; shlo_disc.compile has it, and here names of sizes go into dynamic="),
        "target": "; shlo_disc.compile has it",
    },
    "shlo_disc.Options": {
        **dict.fromkeys(("target", "constraints"), "; shlo_disc.compile has it, beside options="),
        **dict.fromkeys(("fallback", "freezing"), '; a dict has it: torch.compile(..., options={"fallback": True})'),
    },
    "options= of torch.compile": {
        "target": "; it compiles for processors: for a GPU, give target= to shlo_disc.compile, for an exported program",
    },
    "shlo_disc.torch.export": dict.fromkeys(("options", "target"), "; shlo_disc.compile has it, for what this returns"),
    "shlo_disc.Executable.bind": {"output": "; give options=shlo_disc.Options(output=...) to shlo_disc.compile"},
}
"""Advice on options that another function has."""


def check_names(given: Iterable[str], known: Iterable[str], owner: str) -> None:
    """Raises OptionError for a name that is not known, with the nearest one that is. owner: what takes the options."""
    names = [name for name in known if not name.startswith("_")]
    for name in given:
        if name not in names:
            is_elsewhere = "options" in names and name in {f.name for f in fields(Options)}
            instead = _ELSEWHERE.get(owner, {}).get(name) or _instead_of(name, names)
            instead = f"; give options=shlo_disc.Options({name}=...)" if is_elsewhere else instead
            raise OptionError(f"there is no option {name!r} of {owner}{instead}")


def _instead_of(name: str, known: Sequence[str]) -> str:
    """The end of a message: `; did you mean 'threads'?`, or all names where none is near."""
    near = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(known)}"


def check_flag(name: str, value: Any) -> None:
    """Raises OptionError for a value that is neither True nor False."""
    if value not in (True, False):
        raise OptionError(f"{name} must be True or False, not {value!r}")


def owner_of(function: Callable[..., Any]) -> str:
    """The name of a function of the package that takes options, as `check_names` has it."""
    return "shlo_disc." + function.__qualname__.removesuffix(".__init__")


_Function = TypeVar("_Function", bound=Callable[..., Any])
_Class = TypeVar("_Class", bound=type)


def takes_options(function: _Function) -> _Function:
    """Makes a function of the package raise OptionError for keywords that it does not have."""
    parameters = inspect.signature(function).parameters
    known = [name for name in parameters if name != "self"]
    owner = owner_of(function)
    by_name = [name for name, parameter in parameters.items() if parameter.kind is parameter.KEYWORD_ONLY]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not kwargs.keys() <= set(known):
            check_names(kwargs, known, owner)
        if by_name and len(args) > len(parameters) - len(by_name):
            names = ", ".join(f"{name}=" for name in by_name)
            raise OptionError(f"{owner} takes {known[0]} by position, and all else by name: {names}")
        return function(*args, **kwargs)

    return cast(_Function, call)


def _takes_options(kind: _Class) -> _Class:
    """Makes a class raise OptionError for keywords that it does not have."""
    initialize: Any = kind.__init__  # type: ignore[misc]
    initialize.__qualname__ = f"{kind.__name__}.__init__"
    kind.__init__ = takes_options(initialize)  # type: ignore[misc]
    return kind


# ---- targets --------------------------------------------------------------------------------------------------------

CPU = "cpu"
CUDA = "cuda"
"""The GPU that is found when a program is compiled, whatever its architecture is."""
CUDA_ARCHITECTURES = ("sm_80", "sm_90", "sm_90a")
"""Each can do what those before it can. An "a" stands for instructions that no later generation has."""
TARGETS = (CPU, CUDA, *(f"{CUDA}:{a}" for a in CUDA_ARCHITECTURES))

Capability = tuple[int, int]
"""A GPU's compute capability: (9, 0) for an H100."""


def jax_platforms(target: str) -> tuple[str, ...]:
    """The platforms of JAX whose programs are compiled for a target, best first; our plugin's are as the CPU's."""
    return ("cpu", "shlo_disc") if target == CPU else ("cuda", "cpu", "shlo_disc")


def check_target(target: str) -> None:
    """Raises OptionError listing the targets for any other name."""
    if target not in TARGETS:
        raise OptionError(f"unknown target {target!r}; targets are {', '.join(map(repr, TARGETS))}")


def cuda_architecture(target: str) -> str | None:
    """The NVIDIA architecture that a target names, e.g. "sm_90"; None for "cpu".

    Raises OptionError listing the targets for any other name.
    """
    check_target(target)
    if target == CUDA:
        raise OptionError("the target 'cuda' has no architecture before a GPU is asked for it")
    return None if target == CPU else target.removeprefix(f"{CUDA}:")


def runs_on(architecture: str, capability: Capability) -> bool:
    """Tells whether a GPU runs code for an architecture: "sm_90" for its generation and later, "sm_90a" for it alone.

    Raises ValueError for what is no architecture's name.
    """
    digits = architecture.removeprefix("sm_").removesuffix("a")
    wanted = int(digits[:-1]), int(digits[-1:])
    return capability == wanted if architecture.endswith("a") else capability >= wanted


def architecture_for(capability: Capability) -> str:
    """The best of the architectures that a GPU runs code for. Raises DeviceError for GPUs that are older than all."""
    found = [architecture for architecture in CUDA_ARCHITECTURES if runs_on(architecture, capability)]
    if not found:
        raise DeviceError(f"the GPU is an sm_{capability[0]}{capability[1]}; programs need an {CUDA_ARCHITECTURES[0]}")
    return found[-1]


# ---- schedules ------------------------------------------------------------------------------------------------------

FORMAT = 1
_UNROLLS = (1, 2, 4, 8)


@_takes_options
@dataclass(frozen=True)
class KernelSchedule:
    """`unroll`: the number of vector registers processed together in long rows, at most two in short ones; None for the
    default choice. `serial_work`: launches with fewer simple vector operations than this run on one thread.

    Raises OptionError for a value that no kernel supports.
    """

    unroll: int | None = None
    serial_work: int = 300_000

    def __post_init__(self) -> None:
        if self.unroll is not None and self.unroll not in _UNROLLS:
            raise OptionError(f"a schedule's unroll must be one of {_UNROLLS}, not {self.unroll!r}")
        if not isinstance(self.serial_work, int) or not 0 < self.serial_work < 1 << 40:
            raise OptionError(f"a schedule's serial_work must be an integer from 1 to 2**40, not {self.serial_work!r}")


@dataclass(frozen=True)
class Schedule:
    """The forms of kernels, by their names as in `Executable.kernels`; `default` is for all others."""

    kernels: Mapping[str, KernelSchedule] = field(default_factory=dict, hash=False)
    default: KernelSchedule = KernelSchedule()

    def of(self, kernel: str) -> KernelSchedule:
        """The form of one kernel."""
        return self.kernels.get(kernel, self.default)

    def key(self) -> str:
        """A text that is the same for equal schedules."""
        return json.dumps(self.to_json(), sort_keys=True)

    def to_json(self) -> dict[str, Any]:
        """The form that `from_json` reads."""
        kernels = {name: asdict(schedule) for name, schedule in sorted(self.kernels.items())}
        return {"format": FORMAT, "default": asdict(self.default), "kernels": kernels}

    @staticmethod
    def from_json(data: Any) -> Schedule:
        """The schedule from JSON data. Raises OptionError if the data are not a schedule."""
        try:
            if data["format"] != FORMAT:
                raise OptionError(f"a schedule of format {data['format']!r}; this release reads format {FORMAT}")
            kernels = {str(name): KernelSchedule(**row) for name, row in data["kernels"].items()}
            return Schedule(kernels, KernelSchedule(**data["default"]))
        except (AttributeError, KeyError, TypeError) as error:
            raise OptionError(f"this is no schedule: {error!r}") from None

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Schedule:
        """Reads a file of `save`. Raises OptionError if it is not a schedule, OSError if it cannot be read."""
        try:
            with reading(path, "`python -m shlo_disc tune` writes schedules"):
                data = json.loads(Path(path).read_text())
        except ValueError as error:
            raise OptionError(f"{os.fspath(path)}: no schedule: {error}") from None
        return Schedule.from_json(data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the schedule as JSON. Raises OSError."""
        check_folder(path)
        Path(path).write_text(json.dumps(self.to_json(), indent=1) + "\n")


# ---- options --------------------------------------------------------------------------------------------------------

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
    *("CACHE_DIR", "RECORD", "MAX_PROGRAMS", "WATCH", "TRUST"),
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


@_takes_options
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
    hoist: whether matrix products, gathers, sorts and other costly ops that are the same in every iteration are
        computed once, before their loop. False computes them in each iteration: slower, but their results need no
        memory for as long as the loop runs.
    deterministic: calls with the same arguments return the same bits. On processors they always do. On GPUs, scatters
        that add floats or replace elements then combine their updates in order instead of atomically, which is much
        slower for many indices.
    strict: an internal error of a fusion or another pattern raises a CompilerError; otherwise the program is compiled
        without that pattern, with a warning. The sizes that ops imply are also checked after each stage, as well as the
        IR. None means the value of the environment variable SHLO_DISC_STRICT, 1 or 0.
    passes: pipelines of your own to run after stages or passes, by their names, e.g. {"simplify": "drop-negations"}
        (docs/guides/writing-a-pass.md). Such programs are not kept in a compile cache.
    schedule: the form of each kernel, e.g. `Schedule.load(path)` of a file that `shlo_disc tune` wrote.
    cpu: the processors that the code is for: "host", the processor of this process; "x86-64-v3", all with AVX2 and FMA;
        "x86-64-v4", those with AVX-512; "sapphirerapids", those with AMX as well; or several of the last three, such as
        ("x86-64-v3", "x86-64-v4"): the artifact then has code for each, and a processor runs the best that it supports.
        The default is the value of the environment variable SHLO_DISC_CPU, or else "host".
    symbolic: turn the argument sizes above 1 of a static StableHLO program into symbols, where its ops allow it.
        Numbers that were computed from sizes, such as the divisor of a mean or the window of a running sum, stay
        constant; to make them follow the sizes, export the program with symbolic sizes.
    replicas: the number of devices that run a StableHLO program together, each with its own arguments
        (`Executable.execute_sharded`); as `mhlo.num_replicas` in the program.
    dump: a directory to which the text of every stage is written.
    cache_dir: the directory of the compile cache, which keeps compiled programs for later processes
        (docs/compile-cache.md). None means the value of the environment variable SHLO_DISC_CACHE_DIR, and "" no cache.
    cache_bytes: the largest size of that directory; the least recently used files are removed first.
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

    threads: int = 0
    hints: Mapping[str, int] = field(default_factory=dict)
    verify: bool = True
    opt_level: int | None = None
    output: str | None = None
    max_fusions: int | None = None
    reuse: bool = True
    hoist: bool = True
    deterministic: bool = False
    strict: bool | None = None
    passes: Mapping[str, str] = field(default_factory=dict)
    schedule: Schedule = field(default_factory=Schedule)
    cpu: str | Sequence[str] = field(default_factory=stated_cpu)
    symbolic: bool = False
    replicas: int = 1
    dump: str | None = None
    cache_dir: str | os.PathLike[str] | None = None
    cache_bytes: int = 4 << 30
    guard_pages: bool | None = None
    read_seconds: int | None = None
    read_bytes: int | None = None
    isolate: bool = False
    compile_seconds: float | None = None
    compile_bytes: int | None = None
    progress: bool | None = None

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
        for name in ("read_seconds", "read_bytes", "compile_bytes"):
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

    def _check_choices(self) -> None:
        either = (True, False, None)
        for name, allowed in (
            ("verify", (True, False)),
            ("symbolic", (True, False)),
            ("reuse", (True, False)),
            ("hoist", (True, False)),
            ("deterministic", (True, False)),
            ("isolate", (True, False)),
            ("strict", either),
            ("guard_pages", either),
            ("progress", either),
        ):
            if getattr(self, name) not in allowed:
                raise OptionError(f"{name} must be one of {allowed}, not {getattr(self, name)!r}")
        if not isinstance(self.schedule, Schedule):
            raise OptionError(f"schedule must be a shlo_disc.Schedule, not {self.schedule!r}")
        several = isinstance(self.cpu, Sequence) and not isinstance(self.cpu, str)
        if not (self.cpu and all(name in LEVELS for name in self.cpu) if several else self.cpu in CPUS):
            raise OptionError(f"cpu must be 'host', one of {LEVELS}, or several of these, not {self.cpu!r}")
        if self.output not in OUTPUTS:
            raise OptionError(f"output must be 'numpy', 'jax', 'buffer' or None, not {self.output!r}")
        if not isinstance(self.cache_dir, str | os.PathLike | None):
            raise OptionError(f"cache_dir must be a path or None, not {self.cache_dir!r}")
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
        cache_dir = None if self.cache_dir is None else os.fspath(self.cache_dir)
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
            | {"schedule": self.schedule.to_json(), "cache_dir": cache_dir}
        )

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Options:
        """The options from JSON data. Raises OptionError if the data are not options."""
        try:
            return Options(**{**data, "schedule": Schedule.from_json(data["schedule"])})
        except (KeyError, TypeError) as error:
            raise OptionError(f"these are no options: {error!r}") from None

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
