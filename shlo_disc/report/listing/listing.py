# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of a listing, and the listing of an artifact."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from shlo_disc.errors import OptionError
from shlo_disc.report.function_texts import functions_in
from shlo_disc.report.listing.object_code import disassembled
from shlo_disc.runtime import Artifact
from shlo_disc.runtime.described import count_text, reading_header

HOST = "host"
"""The kind of functions that are no kernels: the plan, the run, and what those call."""

ENTRY = "_entry"
"""The end of the name by which the runtime calls a kernel for processors."""


SHOWN = 12
"""The most of the user's lines that the text has of a kernel."""


@dataclass(frozen=True)
class Source:
    """One of the user's lines: "file.py:12", and its text where the file can be read."""

    location: str
    text: str = ""

    @classmethod
    def at(cls, location: str, file: str = "") -> Source:
        """The line at "file.py:12". file: where a program is that is text, and whose lines are "line 12"."""
        if file and location.startswith("line "):
            location = f"{file}:{location.removeprefix('line ')}"
        path, _, line = location.rpartition(":")
        return cls(location, linecache.getline(path, int(line)).strip() if line.isdigit() else "")

    def __str__(self) -> str:
        return f"{self.location}: {self.text}" if self.text else self.location


@dataclass(frozen=True)
class Kernel:
    """A kernel, or with the kind "host" another function.

    `kind` is that of its fusion, "" where it is not known; `launches` counts the commands that run it, where that is
    known. `variants`: the choices left to run time. `code`: its text by stage.
    """

    name: str
    kind: str
    launches: int | None
    sources: tuple[Source, ...]
    variants: tuple[str, ...]
    code: Mapping[str, str]


@dataclass(frozen=True)
class Listing:
    """The code of a program, kernel by kernel. Print it for its text."""

    program: str
    target: str
    kernels: tuple[Kernel, ...]

    def only(self, pattern: str) -> Listing:
        """The kernels of a name, or those that match a pattern such as "gemm_*". Raises OptionError where none do."""
        found = tuple(kernel for kernel in self.kernels if fnmatchcase(kernel.name, pattern))
        if not found:
            names = ", ".join(kernel.name for kernel in self.kernels)
            raise OptionError(f"no kernel {pattern!r}; there are {names}")
        return replace(self, kernels=found)

    def to_json(self) -> dict[str, Any]:
        """Everything as texts, lists and dicts."""
        return asdict(self)

    def __repr__(self) -> str:
        return f"<Listing of {self.program} for {self.target}, {count_text(len(self.kernels), 'kernel')}>"

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def _lines(listing: Listing) -> Iterator[str]:
    yield f"// {listing.program} for {listing.target}"
    for kernel in listing.kernels:
        launched = "" if kernel.launches is None else f", {count_text(kernel.launches, 'command')}"
        yield ""
        yield f"// ===== {kernel.name}" + (f" ({kernel.kind}{launched})" if kernel.kind else "")
        yield from (f"// {source}" for source in kernel.sources[:SHOWN])
        if len(kernel.sources) > SHOWN:
            yield f"// and {len(kernel.sources) - SHOWN} lines more"
        yield from (f"// {variant}" for variant in kernel.variants)
        for stage, text in kernel.code.items():
            if len(kernel.code) > 1:
                yield f"// ----- {stage}"
            yield text


# ---- artifacts ----------------------------------------------------------------------------------------------------

_STAGES = {"asm": "object", "ptx": "ptx"}
"""The sections of an artifact that are code, by stage."""


def artifact_listing(artifact: Artifact, stages: Sequence[str] = ()) -> Listing:
    """The machine code of an artifact, or its PTX; by default that of the kernels' device.

    Of several levels of processors it is that which would run here.
    Raises OptionError for stages that only a program has, DiscError without a disassembler, ArtifactError.
    """
    artifact = artifact.level()
    has = [stage for stage, section in _STAGES.items() if len(artifact.sections.get(section, b""))]
    stages = stages or has[-1:]
    missing = [stage for stage in stages if stage not in has]
    if missing:
        raise OptionError(f"this artifact has no {missing[0]!r}, only {', '.join(has)}; others need the program")
    code, header = {stage: _code_of(artifact, stage) for stage in stages}, artifact.header
    with reading_header():
        target = str(header["target"].get("name") or header["target"].get("triple"))
        listed = {row["name"]: row.get("where", "") for row in header.get("kernels", ())}
        kernels = [
            Kernel(name, _kind(name, header), None, _sources(listed.get(name)), (), texts)
            for name, texts in by_kernel(code, list(listed)).items()
        ]
        return Listing(str(header["name"]), target, tuple(kernels))


def _sources(location: str | None) -> tuple[Source, ...]:
    return (Source.at(location),) if location else ()


def _kind(name: str, header: Mapping[str, Any]) -> str:
    """The functions by which a program is entered, and on GPUs all that are no kernels, are the host's."""
    entries = {entry for part in (header, *header.get("segments", ())) for entry in part["entry"].values()}
    kernels = {row["name"] for row in header.get("kernels", ())}
    return HOST if name in entries or (kernels and name not in kernels) else ""


def _code_of(artifact: Artifact, stage: str) -> dict[str, str]:
    data = bytes(artifact.sections[_STAGES[stage]])
    return disassembled(data) if stage == "asm" else functions_in(data.decode(errors="replace"), stage)


def by_kernel(code: Mapping[str, Mapping[str, str]], kernels: Sequence[str]) -> dict[str, dict[str, str]]:
    """Functions by stage as texts by kernel: what a kernel consists of comes together, those of `kernels` first."""
    names = {name for functions in code.values() for name in functions}
    found: dict[str, dict[str, list[str]]] = {name: {} for name in kernels}
    for stage, functions in code.items():
        for function, text in functions.items():
            texts = found.setdefault(kernel_of(function, names | set(kernels)), {}).setdefault(stage, [])
            texts.append(text)
    return {
        name: {stage: "\n".join(texts) for stage, texts in of_stages.items()}
        for name, of_stages in found.items()
        if of_stages
    }


def kernel_of(function: str, names: set[str]) -> str:
    """The kernel that a function belongs to: itself, without the end of an entry's name or a variant's number."""
    base = function.removesuffix(ENTRY)
    numbered = re.fullmatch(r"(.+)_\d+", base)
    return numbered[1] if numbered and numbered[1] in names else base


__all__ = ["HOST", "Kernel", "Listing", "Source", "artifact_listing", "by_kernel"]
