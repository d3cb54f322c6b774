# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is known of an artifact and of a program, as data with stable keys, and as lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from shlo_disc.errors import ArtifactError
from shlo_disc.runtime import Artifact
from shlo_disc.runtime.described import target_text, tensor_text

if TYPE_CHECKING:
    from shlo_disc.executable import Executable

Facts = dict[str, Any]

_SECTIONS = {"object": "native code", "ptx": "PTX", "consts": "constants"}
"""How lines name a section."""


def artifact_facts(artifact: Artifact) -> Facts:
    """What the header and the sections say; the native code is not touched. Raises ArtifactError."""
    header = artifact.header
    try:
        return {
            "program": header["name"],
            "target": target_text(header),
            "arguments": [_tensor(row) for row in header["arguments"]],
            "results": [_tensor(row) for row in header["results"]],
            "symbols": [_symbol(row) for row in header["symbols"]],
            "constraints": [_condition(c["message"]) for c in header["checks"] if c["kind"] in ("constraint", "equal")],
            "sections": [_section(artifact, name) for name in artifact.sections],
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(f"the artifact's header is malformed: {error!r}") from None


def program_facts(executable: Executable) -> Facts:
    """What is known of a program that has been compiled here: the same and more."""
    return {
        **artifact_facts(executable.artifact),
        "kernels": [launch._asdict() for launch in executable.kernels],
        "peak_memory": executable.peak_memory_formula,
        "timings": executable.timings,
    }


def lines_of(facts: Mapping[str, Any]) -> Iterator[str]:
    """The facts for people."""
    yield f"program       {facts['program']}"
    for title in ("arguments", "results"):
        yield f"{title:<14}{len(facts[title])}"
        yield from (f"  {tensor_text(row)}" for row in facts[title])
    yield f"symbols       {len(facts['symbols'])}"
    yield from (f"  {_symbol_line(row)}" for row in facts["symbols"])
    yield f"constraints   {len(facts['constraints'])}"
    yield from (f"  {condition}" for condition in facts["constraints"])
    if "kernels" in facts:
        kernels = facts["kernels"]
        yield f"kernels       {len(kernels)} launches, {len({launch['name'] for launch in kernels})} different"
        yield from (f"  {launch['name']}: {launch['kind']}" for launch in kernels)
        yield f"peak memory   {facts['peak_memory']} bytes"
    for section in facts["sections"]:
        if section["name"] in _SECTIONS:
            machine = f" for {section['for']}" if section["for"] else ""
            yield f"{_SECTIONS[section['name']]:<13} {section['bytes']} bytes{machine}"
    if "timings" in facts:
        yield f"timings       {sum(facts['timings'].values()):.3f} s"
        yield from (f"  {stage}: {seconds:.3f} s" for stage, seconds in facts["timings"].items())


def _tensor(row: Mapping[str, Any]) -> Facts:
    return {key: row[key] for key in ("path", "dtype", "shape", "donated", "memory", "layout", "key") if key in row}


def _symbol(row: Mapping[str, Any]) -> Facts:
    solve = row["solve"]
    return {
        "name": row["name"],
        "min": row["min"],
        "max": row["max"],
        "argument": solve["argument"],
        "dim": solve["dim"],
    }


def _symbol_line(row: Mapping[str, Any]) -> str:
    low = f"{row['min']} <= " if row["min"] is not None else ""
    high = f" <= {row['max']}" if row["max"] is not None else ""
    return f"{low}{row['name']}{high}, from dimension {row['dim']} of argument {row['argument']}"


def _section(artifact: Artifact, name: str) -> Facts:
    """A section, and the machine that it is for: None for data."""
    target = artifact.header["target"]
    machines = {"object": target.get("triple"), "ptx": target.get("name")}
    return {"name": name, "bytes": len(artifact.sections[name]), "for": machines.get(name)}


def _condition(message: str) -> str:
    """The part of a check's message that states the condition, without the sizes of a call."""
    text = message.removeprefix("Input shapes do not match the ")
    text = text.removeprefix("polymorphic shapes specification. ").removeprefix("symbolic shape constraint ")
    return text.partition(", but found")[0].partition(" Using the following")[0]
