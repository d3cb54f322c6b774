# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a program that has been read to an executable, by way of the compile cache."""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from shlo_disc.cache import CompileCache, cache_key, open_cache
from shlo_disc.errors import ArtifactError
from shlo_disc.executable import Executable
from shlo_disc.options import Options
from shlo_disc.programs import Program
from shlo_disc.recovery import compile_program
from shlo_disc.target import CPU, check_target

if TYPE_CHECKING:
    from shlo_disc.compiler import Compilation

LOGGER = logging.getLogger("shlo_disc")


def compile_read(
    read: Program, options: Options, target: str = "cpu", *, start: float | None = None, context: Any = None
) -> Any:
    """`shlo_disc.compile` for a program that has been read.

    start: when its reading began, by `time.perf_counter`. context: an MLIR context of `make_context` to work in, in
    place of a new one; what a program leaves in it stays there.
    """
    started = time.perf_counter() if start is None else start
    reading = time.perf_counter() - started
    check_target(target)
    cache = open_cache(options) if target == CPU else None
    key = cache_key(read, options) if cache else ""
    executable = _cached(cache, key, read, options, started) if cache else None
    if executable is None:
        executable = _compiled(read, target, options, reading, context)
        if cache:
            cache.store(key, executable.artifact)
    return executable


def _cached(cache: CompileCache, key: str, read: Program, options: Options, start: float) -> Executable | None:
    """The program from the cache; None when it is not there, or cannot be loaded any more."""
    artifact = cache.load(key)
    if artifact is None:
        return None

    def compilation() -> Compilation:
        from shlo_disc.compiler import import_stage

        return import_stage(read, "cpu", options)

    timings: dict[str, float] = {}
    try:
        executable = Executable(artifact, options, read.trees(), compilation, timings, 0)
    except ArtifactError:
        cache.discard(key)
        return None
    timings["cache"] = time.perf_counter() - start
    LOGGER.info("loaded %s for cpu in %.3f s, from the compile cache", artifact.header["name"], timings["cache"])
    return executable


def _compiled(read: Program, target: str, options: Options, reading: float, context: Any = None) -> Any:
    """The program compiled. The seconds of `reading` it count as those of its import."""
    if options.isolate:
        from shlo_disc.compiler import import_stage
        from shlo_disc.isolated import compile_apart

        apart = compile_apart(read, options, target)
        apart.timings["import"] += reading
        start = partial(import_stage, read, target, options)
        return Executable(apart.artifact, options, read.trees(), start, apart.timings, apart.compile_count)
    compilation, artifact = compile_program(read, options, target, context)
    compilation.timings["import"] += reading
    timings, count = compilation.timings, compilation.compile_count
    return Executable(artifact, options, read.trees(), lambda: compilation, timings, count)
