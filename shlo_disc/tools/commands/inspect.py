# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc inspect FILE`: everything known about a program or an artifact; `info` is short.

An artifact is read without MLIR, and none of its code runs. Kernel kinds, guards (run-time conditions on sizes), the
memory formula and source lines are available only for a program.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shlo_disc.runtime import Artifact
from shlo_disc.tools.commands.common import (
    add_command,
    add_program_or_artifact,
    at_level,
    built,
    opened,
    show,
)
from shlo_disc.tools.commands.facts import (
    COMPILING_PROCESSOR,
    Facts,
    artifact_facts,
    code_facts,
    program_facts,
    signature_lines,
)

if TYPE_CHECKING:
    from shlo_disc.driver.executable import Executable

SHOWN = 6
"""The most source lines that are shown of a kernel; --json has all."""


def add_inspect(commands: Any) -> None:
    """Add the command."""
    command = add_command(commands, "inspect", _inspect, "print all about a program or an artifact", __doc__)
    add_program_or_artifact(command)


def _inspect(arguments: argparse.Namespace) -> None:
    found = opened(arguments.file)
    if isinstance(found, Artifact):
        facts = _of_artifact(at_level(found, arguments))
    else:
        facts = _of_program(built(found, arguments))
    show(arguments, facts, _lines(facts))


def _of_artifact(artifact: Artifact) -> Facts:
    return {**artifact_facts(artifact), **code_facts(artifact, True)}


def _of_program(executable: Executable) -> Facts:
    from shlo_disc.tools.doctor import package_versions

    facts, code = program_facts(executable), code_facts(executable.artifact, False)
    sources = executable.source_lines()
    kernels = [{**kernel, "sources": sources.get(kernel["fusion"], [])} for kernel in facts["kernels"]]
    return {**facts, **code, "kernels": kernels, "versions": {**code["versions"], **package_versions()}}


# ---- lines --------------------------------------------------------------------------------------------------------


def _lines(facts: Mapping[str, Any]) -> Iterator[str]:
    yield from signature_lines(facts)
    yield from _machine_lines(facts)
    yield from _kernel_lines(facts)
    yield from _memory_lines(facts)
    yield from _section_lines(facts)
    versions = [f"{name.replace('_format', ' format')} {version}" for name, version in facts["versions"].items()]
    yield f"versions      {', '.join(versions)}"
    if facts["kernels"] is None:
        yield "The program that was compiled has more: kinds of kernels, guards, the memory formula, source lines."


def _machine_lines(facts: Mapping[str, Any]) -> Iterator[str]:
    processor, gpu = facts["processor"], facts["gpu"]
    beyond = f" with {', '.join(processor['beyond'])}" if processor["beyond"] else ""
    missing = processor["missing_here"]
    here = f"this one lacks {', '.join(missing)}" if missing else "this one will do"
    what = f"{processor['level']}{beyond}"
    uses = f"the level {processor['cpu']}" if processor["cpu"] else f"{COMPILING_PROCESSOR} ({what})"
    yield f"processor     {processor['triple']}, {uses}; {here}"
    if gpu is not None:
        yield f"GPU           {gpu['architecture']}"
    if facts["replicas"] > 1:
        yield f"replicas      {facts['replicas']}"
    if facts["custom_calls"]:
        yield f"custom calls  {', '.join(facts['custom_calls'])}"


def _kernel_lines(facts: Mapping[str, Any]) -> Iterator[str]:
    kernels = facts["kernels"]
    if kernels is not None:
        yield f"kernels       {len(kernels)} launches, {len({kernel['name'] for kernel in kernels})} different"
        for kernel in kernels:
            yield f"  {kernel['name']}: {kernel['kind']}"
            yield from (f"    {guard['text']}" for guard in kernel["guards"])
            yield from (f"    {line}" for line in _source_lines(kernel["sources"]))
    elif facts["gpu"] is not None:
        yield f"kernels       {len(facts['gpu']['kernels'])} on the GPU"
        for kernel in facts["gpu"]["kernels"]:
            yield f"  {kernel['name']}: blocks of {kernel['threads']} threads, {kernel['source'] or 'source unknown'}"
    functions = facts["functions"]
    yield f"functions     {len(functions)}"
    yield from (f"  {function['name']}: {function['bytes']} bytes" for function in functions)


def _source_lines(sources: Sequence[str]) -> Iterator[str]:
    """The source of a kernel, in a line."""
    if sources:
        more = f" and {len(sources) - SHOWN} lines more" if len(sources) > SHOWN else ""
        yield f"from {', '.join(sources[:SHOWN])}{more}"


def _memory_lines(facts: Mapping[str, Any]) -> Iterator[str]:
    if facts["peak_memory"] is not None:
        yield f"peak memory   {facts['peak_memory']} bytes"
    if facts["flops"] is not None:
        yield f"flops         {facts['flops']}"
    constants = facts["constants"]
    yield f"constants     {constants['count']}, {constants['bytes']} bytes; {facts['prepacked']} arrays are packed"


def _section_lines(facts: Mapping[str, Any]) -> Iterator[str]:
    yield f"sections      {len(facts['sections'])}"
    for section in facts["sections"]:
        machine = f" for {section['for']}" if section["for"] else ""
        state = "checksum right" if section["checked"] else "not in a file"
        yield f"  {section['name']}: {section['bytes']} bytes{machine}, SHA-256 {section['sha256'][:16]}, {state}"
