# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a program that has been read to an executable, by way of the compile cache."""

from __future__ import annotations

import copyreg
import functools
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from shlo_disc.driver.cache import CompileCache, cache_key, open_cache
from shlo_disc.driver.code_pages import note_compile, note_reading
from shlo_disc.driver.executable import Executable
from shlo_disc.driver.garbage import fewer_collections
from shlo_disc.driver.recovery import compile_program
from shlo_disc.errors import ArtifactError, OptionError
from shlo_disc.importer.program import read
from shlo_disc.importer.programs import JaxProgram, Program, TextProgram
from shlo_disc.importer.reader import Limits
from shlo_disc.lowering.progress import showing
from shlo_disc.options import CPU, Options, check_target
from shlo_disc.runtime import Artifact
from shlo_disc.runtime.exporting import exporting
from shlo_disc.runtime.native_owner import NativeOwner

if TYPE_CHECKING:
    from shlo_disc.driver.compiler import Compilation

LOGGER = logging.getLogger("shlo_disc")


def compile_read(
    read: Program, options: Options, target: str = "cpu", *, start: float | None = None, context: Any = None
) -> Executable:
    """`shlo_disc.compile` for a program that has been read.

    start: when its reading began, by `time.perf_counter`. context: an MLIR context of `make_context` to work in, in
    place of a new one; what a program leaves in it stays there.
    """
    started = time.perf_counter() if start is None else start
    reading = time.perf_counter() - started
    check_target(target)
    note_reading()
    name = read.exported.fun_name if isinstance(read, JaxProgram) else ""
    with showing(name, options.has_progress), fewer_collections():  # of what the first compile imports, too
        return _compile_read(read, options, target, started, reading, context)


def _compile_read(
    read: Program, options: Options, target: str, started: float, reading: float, context: Any
) -> Executable:
    cache = open_cache(options) if target == CPU and not _keeps(read) else None
    key = cache_key(read, options) if cache else ""
    executable = _cached(cache, key, read, options, started) if cache else None
    if executable is None:
        began = time.perf_counter()
        executable = _compiled(read, target, options, reading, context)
        note_compile(time.perf_counter() - began)
        if cache:
            cache.store(key, executable.artifact)
    return executable


def _keeps(read: Program) -> bool:
    """Tells whether a program calls what no other process has."""
    return isinstance(read, JaxProgram) and bool(read.keeps)


def _cached(cache: CompileCache, key: str, read: Program, options: Options, start: float) -> Executable | None:
    """The program from the cache; None when it is not there, or cannot be loaded any more."""
    artifact = cache.load(key)
    if artifact is None:
        return None

    def compilation() -> Compilation:
        from shlo_disc.driver.compiler import import_stage

        return import_stage(read, "cpu", _here(artifact, options))

    timings: dict[str, float] = {}
    try:
        executable = _executable(read, artifact, options, compilation, timings, 0)
    except ArtifactError:
        cache.discard(key)
        return None
    timings["cache"] = time.perf_counter() - start
    LOGGER.info("loaded %s for cpu in %.3f s, from the compile cache", artifact.header["name"], timings["cache"])
    return executable


def _executable(read: Program, artifact: Artifact, options: Options, *about: Any) -> Executable:
    gradient = _gradient(read, options)
    return Executable(artifact, options, read.trees(), *about, program=read, gradient=gradient)


def _gradient(read: Program, options: Options) -> Callable[[], Executable] | None:
    """Compiles the vector-Jacobian product of a program; None for one that has none.

    Of sizes that are read from data, JAX knows no derivatives.
    """
    if not isinstance(read, JaxProgram) or read.sizes or not read.exported.has_vjp():
        return None

    @functools.cache
    def compiled() -> Executable:
        from shlo_disc.importer.size_guards import with_guards

        with exporting() as kept:
            exported = with_guards(read.exported.vjp(), read.guards)
            product = read._replace(exported=exported, keeps=kept, parameters=())
        made: Executable = compile_read(product, options)
        return made

    return compiled


def _here(artifact: Artifact, options: Options) -> Options:
    """The options for the one of several levels of processors that is run here."""
    return replace(options, cpu=options.cpus[_level_here(artifact)])


def _level_here(artifact: Artifact) -> int:
    """The position of the level that is run here; 0 if the code is for other processors."""
    try:
        return artifact.level_number()
    except ArtifactError:
        return 0


def compile_artifact(read: Program, options: Options, target: str = "cpu", *, context: Any = None) -> Artifact:
    """The artifact of a program that has been read: compiled, and not loaded, so that it may be for another process.

    context: as `compile_read` has it. There is no compile cache here.
    """
    return Artifact.of_levels([level.artifact for level in _levels(read, target, options, context)])


def _compiled(read: Program, target: str, options: Options, reading: float, context: Any = None) -> Any:
    """The program compiled. The seconds of `reading` it count as those of its import."""
    levels = _levels(read, target, options, context)
    artifact = Artifact.of_levels([level.artifact for level in levels])
    timings = {stage: sum(level.timings[stage] for level in levels) for stage in levels[0].timings}
    timings["import"] += reading
    start = levels[_level_here(artifact)].start
    return _executable(read, artifact, options, start, timings, sum(level.compile_count for level in levels))


def _levels(read: Program, target: str, options: Options, context: Any) -> list[_Level]:
    """The program for each level of processors."""
    if target != CPU and len(options.cpus) > 1:
        raise OptionError(f"several levels of processors are for the target 'cpu', not for {target!r}")
    return [_level(read, target, replace(options, cpu=cpu), context) for cpu in options.cpus]


class _Level(NamedTuple):
    """A program compiled for one level of processors; `start` gives its compilation, at least imported."""

    artifact: Artifact
    start: Callable[[], Compilation]
    timings: dict[str, float]
    compile_count: int


def _level(read: Program, target: str, options: Options, context: Any) -> _Level:
    """The program for one level of processors, compiled here or in a process of its own."""
    if not options.isolate:
        compilation, artifact = compile_program(read, options, target, context)
        return _Level(artifact, lambda: compilation, compilation.timings, compilation.compile_count)
    from shlo_disc.driver.compiler import import_stage
    from shlo_disc.driver.isolated import compile_apart

    apart = compile_apart(read, options, target)
    start = functools.partial(import_stage, read, target, options)
    return _Level(apart.artifact, start, apart.timings, apart.compile_count)


def _reduced(executable: Executable) -> tuple[Any, ...]:
    """The pickled form of an executable: data, no part of which is code. Raises TypeError where it cannot be."""
    read, how = executable.program, (executable.options, executable.target)
    if isinstance(read, TextProgram):
        return recompile, (read._replace(trusted=False), (), *how)
    if not isinstance(read, JaxProgram):
        return NativeOwner.__reduce__(executable)  # which raises
    try:
        executable.artifact.check_portable()
        return recompile, (bytes(read.exported.serialize()), tuple(read.sizes), *how, read.parameters)
    except (ArtifactError, ValueError) as error:
        raise TypeError(f"cannot pickle the executable of {read.exported.fun_name!r}: {error}") from None


def recompile(
    program: Any, sizes: tuple[str, ...], options: Options, target: str, parameters: tuple[str, ...] = ()
) -> Executable:
    """Compiles an executable anew from what pickle kept: its program, the sizes of its hidden arguments, and the names
    of its parameters."""
    source = read(program, limits=Limits.of(options))
    if isinstance(source, JaxProgram):
        source = source._replace(sizes=sizes, parameters=parameters)
    made: Executable = compile_read(source, options, target)
    return made


copyreg.pickle(Executable, _reduced)
