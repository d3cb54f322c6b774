# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pipelines: the passes of each stage as text, their parsing, and the running of their elements."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

from shlo_disc.driver.compilation import Compilation
from shlo_disc.driver.passes import PASSES, Pass
from shlo_disc.driver.stages import STAGES
from shlo_disc.errors import OptionError
from shlo_disc.options import Options
from shlo_disc.shape_dialect.dialect.remembered import remembered
from shlo_disc.shape_dialect.mlir import passmanager

PIPELINES = {
    "annotate": "set-argument-sizes,erase-unused-sizes,infer-sizes,write-signature",
    "simplify": (
        "expand-library-calls,remove-quantized-types,materialize-shapes,expand-bodies,decompose-complex,"
        "func.func(canonicalize{max-iterations=4},cse),symbol-dce,fuse-dequantized-products,"
        "simplify-control-flow,hoist-scanned-products,expand-ops,unify-sizes,slice-gathers,simplify-ops,"
        "func.func(canonicalize{max-iterations=4},cse),symbol-dce,"
        "hoist-accumulated-products,split-reductions,"
        "func.func(canonicalize{max-iterations=4},cse),symbol-dce,"
        "pre-transpose-weights,hoist-invariants,unify-sizes,isolate-regions"
    ),
    "fuse": (
        "count-flops,thin-barriers,fuse-groups,func.func(cse),fuse-attention,merge-recurrences,isolate-regions,"
        "fuse-gemm,share-kernels,reserve-partials,remove-barriers"
    ),
    "plan": "split-segments,limit-memory,view-pieces,read-panels,assign-buffers",
    "kernels": "build-kernels",
    "host": "build-host",
    "codegen": "lower-host,legalize-for-target,lower-to-llvm,translate-to-llvm-ir,emit-object",
}
"""Passes of each stage, the import aside."""

Changes = dict[str, Any]
LOGGER = logging.getLogger("shlo_disc")
After = Callable[[str, Compilation], None]


@dataclass(frozen=True)
class Element:
    """One element of a pipeline: its name, its text with options, and the options where it is ours."""

    name: str
    text: str
    changes: Changes


@functools.lru_cache(maxsize=64)
def parse_pipeline(text: str) -> tuple[Element, ...]:
    """The elements of a pipeline. Raises OptionError where one is neither a stage, nor a pass of ours or MLIR's."""
    found = []
    for part in _split(text):
        name, _, options = part.partition("{")
        name = name.strip()
        is_ours = name in PASSES or name in PIPELINES
        if is_ours and options and not options.endswith("}"):
            raise OptionError(f"{part!r} does not end with a brace")
        changes = _options(name, options.removesuffix("}")) if is_ours else {}
        found.append(Element(name if is_ours else part, part, changes))
    return tuple(found)


def _split(text: str) -> Iterator[str]:
    """The parts between commas outside of brackets."""
    depth, start = 0, 0
    for position, character in enumerate(text):
        depth += (character in "({") - (character in ")}")
        if character == "," and depth == 0:
            yield text[start:position].strip()
            start = position + 1
    if depth:
        raise OptionError(f"the brackets of the pipeline {text!r} do not match")
    yield text[start:].strip()


def _options(name: str, text: str) -> Changes:
    """Options as they stand in braces, `max-fusions=3 reuse=false`."""
    read = {option for p in passes_of(name) for option in p.options}
    changes: Changes = {}
    for word in text.split():
        key, _, value = word.partition("=")
        field = key.replace("-", "_")
        if field not in read:
            known = ", ".join(sorted(option.replace("_", "-") for option in read)) or "none"
            raise OptionError(f"{name} has no option {key!r}; it has {known}")
        changes[field] = _value(field, value)
    return changes


def _value(field: str, text: str) -> Any:
    """An option's value of the type that the default has, or an integer."""
    default = {f.name: f.default for f in fields(Options)}[field]
    if isinstance(default, bool):
        if text not in ("true", "false"):
            raise OptionError(f"{field} must be true or false, not {text!r}")
        return text == "true"
    if field == "hints":
        pairs = [pair.partition(":") for pair in text.split(";")]
        return {name: _integer(field, value) for name, _, value in pairs}
    return text if isinstance(default, str) else _integer(field, text)


def _integer(field: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"{field} must be an integer, not {text!r}") from None


def passes_of(name: str) -> list[Pass]:
    """The passes of ours that a stage, or a pass, consists of."""
    if name in PASSES:
        return [PASSES[name]]
    return [PASSES[e.name] for e in parse_pipeline(PIPELINES[name]) if e.name in PASSES]


def added_passes(options: Options, place: str) -> tuple[Element, ...]:
    """The passes that the options add after a stage or a pass."""
    found = parse_pipeline(options.passes[place]) if place in options.passes else ()
    for element in found:
        if element.name in PIPELINES:
            raise OptionError(f"{element.name!r} is a stage, and no pass of ours to run after {place!r}")
    return found


def check_places(options: Options) -> None:
    """Raises OptionError where the options add passes after what there is not."""
    if not options.passes:
        return
    stages = {stage: [e.name for e in parse_pipeline(text)] for stage, text in PIPELINES.items()}
    places = dict.fromkeys([*stages, *(name for names in stages.values() for name in names)])
    for place in options.passes:
        if place not in places:
            raise OptionError(f"no stage or pass {place!r} to run others after; there are {', '.join(places)}")


def run_element(c: Compilation, element: Element, stage: str, after: After | None = None) -> None:
    """Run one pass, ours or MLIR's. Raises OptionError where MLIR knows none of its name."""
    start = time.perf_counter()
    if element.changes:
        c.change_options(**element.changes)
    if element.name in PASSES:
        PASSES[element.name].run(c)
    else:
        passes = _stock(element.text)
        passes.enable_verifier(c.options.is_strict)  # else what the stage has made is verified, once
        passes.run(c.current.operation)
    row, seconds = f"{stage}/{element.name}", time.perf_counter() - start
    c.pass_timings[row] = c.pass_timings.get(row, 0.0) + seconds
    LOGGER.debug("%s: %.3f ms", row, 1e3 * seconds)
    if after is not None:
        after(element.name, c)


@remembered
def _stock(text: str) -> passmanager.PassManager:
    """Passes of MLIR's, which take their patterns from the context once."""
    try:
        return passmanager.PassManager.parse(f"builtin.module({text})")
    except ValueError as error:
        reason = str(error).strip().splitlines()[0]
        known = f"passes of ours are {', '.join(PASSES)}; stages are {', '.join(STAGES[1:])}"
        raise OptionError(f"{text!r} is no pass of ours, nor of MLIR ({reason}); {known}") from None


__all__ = [
    "PIPELINES", "After", "Element", "added_passes", "check_places", "parse_pipeline", "passes_of", "run_element",
]  # fmt: skip
