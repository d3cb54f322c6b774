# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The facts known of an artifact and of a program, as data with stable keys, and as lines.

What only a program has is None for an artifact.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shlo_disc.runtime import Artifact
from shlo_disc.runtime.artifact import FORMAT_VERSION
from shlo_disc.runtime.axes import turned, users_shape
from shlo_disc.runtime.cpu_features import level_of, missing_features
from shlo_disc.runtime.described import argument_names, reading_header, target_text, type_text
from shlo_disc.runtime.elf_symbols import functions

if TYPE_CHECKING:
    from shlo_disc.driver.executable import Executable
    from shlo_disc.lowering.launches import Launched

Facts = dict[str, Any]

SECTIONS = {"object": "native code", "ptx": "PTX", "consts": "constants", "packed": "packed constants"}
"""Names of the sections in printed lines."""


COMPILING_PROCESSOR = "the processor that compiled it"
"""The processor of code without the name of a level: no `cpu=` of a load names it."""


# ---- what info prints ---------------------------------------------------------------------------------------------


def artifact_facts(artifact: Artifact) -> Facts:
    """The facts that the header and the sections state; the native code is not touched. Raises ArtifactError."""
    header = artifact.header
    with reading_header():
        return {
            "program": header["name"],
            "target": target_text(header),
            "arguments": [
                _tensor(row) | {"name": name or None}
                for row, name in zip(header["arguments"], argument_names(header), strict=True)
            ],
            "results": [_tensor(row) for row in header["results"]],
            "symbols": [_symbol(row) for row in header["symbols"]],
            "constraints": [_condition(row) for row in _checks(header) if row["kind"] in _OF_CONSTRAINTS],
            "levels": [target_text(level.header) for level in artifact.levels()],
            "sections": [_section(artifact, name) for name in artifact.sections],
            "kernels": None,
            "peak_memory": None,
            "timings": None,
        }


def program_facts(executable: Executable) -> Facts:
    """The facts known of a program that has been compiled here."""
    return {
        **artifact_facts(executable.artifact),
        "kernels": [_kernel(launch) for launch in executable.launches],
        "peak_memory": executable.peak_memory_formula,
        "timings": executable.timings,
    }


def info_lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """The facts for people, in short."""
    yield from signature_lines(facts)
    kernels = facts["kernels"]
    if kernels is not None:
        yield f"kernels       {len(kernels)} launches, {len({launch['name'] for launch in kernels})} different"
        yield from (f"  {launch['name']}: {launch['kind']}" for launch in kernels)
        yield f"peak memory   {facts['peak_memory']} bytes"
    for section in facts["sections"]:
        if (title := SECTIONS.get(section["name"].rstrip(string.digits))) is not None:
            machine = f" for {section['for']}" if section["for"] else ""
            yield f"{title:<13} {section['bytes']} bytes{machine}"
    if facts["timings"] is not None:
        yield f"timings       {sum(facts['timings'].values()):.3f} s"
        yield from (f"  {stage}: {seconds:.3f} s" for stage, seconds in facts["timings"].items())


def signature_lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """The lines that describe what the program takes and gives."""
    yield f"program       {facts['program']}"
    for title in ("arguments", "results"):
        yield f"{title:<14}{len(facts[title])}"
        yield from (f"  {_tensor_line(row)}" for row in facts[title])
    yield f"symbols       {len(facts['symbols'])}"
    yield from (f"  {_symbol_line(row, facts['arguments'])}" for row in facts["symbols"])
    yield f"constraints   {len(facts['constraints'])}"
    yield from (f"  {condition}" for condition in facts["constraints"])


def _tensor_line(row: Mapping[str, Any]) -> str:
    """`args[0] (x): f32[b, 768]`, and for C where it takes another order of axes."""
    in_c = {**row, "shape": row["shape_in_c"]} if "shape_in_c" in row else None
    return f"{_place(row)}: {type_text(row)}{f', in C {type_text(in_c)}' if in_c else ''}"


def _place(row: Mapping[str, Any]) -> str:
    """`args[0] (x)`: the path that errors name, then the user's name."""
    name = f" ({row['name']})" if row.get("name") not in (None, "", row["path"]) else ""
    return f"{row['path']}{name}"


def _tensor(row: Mapping[str, Any]) -> Facts:
    known = {key: row[key] for key in ("path", "dtype", "shape", "donated", "memory", "layout", "key") if key in row}
    return known if turned(row) is None else {**known, "shape": [*users_shape(row)], "shape_in_c": row["shape"]}


def _symbol(row: Mapping[str, Any]) -> Facts:
    solve = row["solve"]
    known = {key: row[key] for key in ("name", "min", "max")}
    return {**known, "argument": solve["argument"], "dim": solve["dim"]}


def _symbol_line(row: Mapping[str, Any], arguments: Sequence[Mapping[str, Any]]) -> str:
    low = f"{row['min']} <= " if row["min"] is not None else ""
    high = f" <= {row['max']}" if row["max"] is not None else ""
    return f"{low}{row['name']}{high}, from dimension {row['dim']} of {_place(arguments[row['argument']])}"


def _section(artifact: Artifact, name: str) -> Facts:
    """A section, and the machine that it is for: None for data. Those of a second level of processors end in 1."""
    kind, levels = name.rstrip(string.digits), artifact.levels()
    header = levels[int(name.removeprefix(kind) or 0)].header
    triple = header["target"].get("triple")
    machines = {
        "object": f"{triple}, {header['target'].get('cpu') or COMPILING_PROCESSOR}",
        "ptx": header["target"].get("name"),
    }
    return {"name": name, "bytes": len(artifact.sections[name]), "for": machines.get(kind)}


def _kernel(launch: Launched) -> Facts:
    guards = [
        {
            "variant": guard.variant,
            "otherwise": guard.otherwise,
            "conditions": [str(condition) for condition in guard.conditions],
            "of_size": guard.of_size,
            "text": str(guard),
        }
        for guard in launch.guards
    ]
    found = {"name": launch.name, "kind": launch.kind, "fusion": launch.fusion}
    return {**found, "functions": list(launch.functions), "guards": guards}


_OF_CONSTRAINTS = ("constraint", "equal", "data")
"""The kinds of checks that are constraints; the others are of the ranges of symbols, and of sizes that overflow."""
_REQUIRED = re.compile(r", which (.+?) requires\.")


def _checks(header: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The checks of a header, those of sizes that are read from data last."""
    return [row for segment in (header, *header.get("segments", ())) for row in segment["checks"]]


def _condition(row: Mapping[str, Any]) -> str:
    """The condition of a check, and what requires it; of old artifacts the part of the message that states it."""
    text = row["message"]
    if "relation" in row:
        required = _REQUIRED.search(text)
        return f"{row['relation']}, which {required[1]} requires" if required else str(row["relation"])
    text = text.removeprefix("Input shapes do not match the ")
    text = text.removeprefix("polymorphic shapes specification. ").removeprefix("symbolic shape constraint ")
    return text.partition(", but found")[0].partition(" Using the following")[0]


# ---- what inspect adds --------------------------------------------------------------------------------------------


def code_facts(artifact: Artifact, is_from_file: bool) -> Facts:
    """The contents and needs of an artifact. is_from_file: its checksums have been compared. Raises ArtifactError."""
    header = artifact.header
    with reading_header():
        return {
            "sections": [_summed(artifact, name, is_from_file) for name in artifact.sections],
            "processor": _processor(header["target"]),
            "gpu": _gpu(header),
            "functions": _functions(artifact),
            "constants": {"count": len(header["constants"]), "bytes": len(artifact.constants)},
            "prepacked": len(header.get("packs", ())),
            "custom_calls": [call["target"] for call in header.get("calls", ())],
            "flops": header.get("flops"),
            "replicas": header.get("replicas", 1),
            "segments": 1 + len(header.get("segments", ())),
            "versions": {"file_format": FORMAT_VERSION, "header_format": header["format"]},
        }


def _summed(artifact: Artifact, name: str, is_from_file: bool) -> Facts:
    digest = hashlib.sha256(artifact.sections[name]).hexdigest()
    return {**_section(artifact, name), "sha256": digest, "checked": is_from_file}


def _processor(target: Mapping[str, Any]) -> Facts:
    level, beyond = level_of(target["features"])
    return {
        "triple": target["triple"],
        "cpu": target.get("cpu"),
        "level": level,
        "beyond": beyond,
        "missing_here": missing_features(target["features"]),
    }


def _gpu(header: Mapping[str, Any]) -> Facts | None:
    name = header["target"].get("name")
    if name is None:
        return None
    kernels = [
        {"name": row["name"], "threads": row.get("threads"), "source": row.get("where")}
        for row in header.get("kernels", ())
    ]
    return {"architecture": name.partition(":")[2], "kernels": kernels}


def _functions(artifact: Artifact) -> list[Facts]:
    code = bytes(artifact.object)
    return [{"name": name, "bytes": size} for name, size in functions(code).items()] if code else []


__all__ = [
    "COMPILING_PROCESSOR",
    "Facts",
    "artifact_facts",
    "code_facts",
    "info_lines",
    "program_facts",
    "signature_lines",
]
