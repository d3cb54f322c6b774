# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a compile and calls of its program took, as a trace: the JSON that Perfetto and Chrome's about:tracing open.

The format is Google's "Trace Event Format": complete events (`"ph": "X"`) with a start and a length in microseconds.
The compile is a process of the trace with a track of stages and one of passes; each call is another, with its commands
in the order of the program, the fastest run of each. Which threads worked on a command is not in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from shlo_disc.compilation import Compilation
from shlo_disc.report.explanation import Explanation


def trace_of(c: Compilation, calls: Iterable[Explanation]) -> dict[str, Any]:
    """The trace of a finished compilation, and of calls of its program."""
    events = [*_process(1, "compile", ("stages", "passes")), *_compile(c)]
    for number, call in enumerate(calls, 2):
        sizes = ", ".join(f"{name}={value}" for name, value in call.dims.items())
        events += [*_process(number, f"call at {sizes or 'its one shape'}", ("commands",)), *_call(number, call)]
    return {"displayTimeUnit": "ms", "traceEvents": events}


def _compile(c: Compilation) -> Iterator[dict[str, Any]]:
    """Stages one after the other, and in each its passes, by their lengths: what lies between them is not timed."""
    start = 0.0
    for stage, seconds in c.timings.items():
        yield _event(1, 1, stage, start, seconds)
        at = start
        for name, length in c.pass_timings.items():
            if name.startswith(f"{stage}/"):
                yield _event(1, 2, name.partition("/")[2], at, length)
                at += length
        start += seconds


def _call(process: int, call: Explanation) -> Iterator[dict[str, Any]]:
    """The commands one after the other, each as long as its runs took together."""
    start = 0.0
    for k in call.kernels:
        if k.seconds is None or not k.runs:
            continue
        about = {"kind": k.kind, "variant": k.variant, "ops": k.ops, "source": k.source, "runs": k.runs}
        about |= {"bytes_read": k.bytes_read, "bytes_written": k.bytes_written, "flops": k.flops}
        about |= {"least_us": None if k.estimated_seconds is None else k.estimated_seconds * 1e6}
        yield _event(process, 1, k.name, start, k.seconds * k.runs, about)
        start += k.seconds * k.runs


def _process(process: int, name: str, tracks: Sequence[str]) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "pid": process, "tid": 0, "name": "process_name", "args": {"name": name}}
    for number, track in enumerate(tracks, 1):
        yield {"ph": "M", "pid": process, "tid": number, "name": "thread_name", "args": {"name": track}}


def _event(
    process: int, track: int, name: str, start: float, seconds: float, about: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    times = {"ts": round(start * 1e6, 3), "dur": round(seconds * 1e6, 3)}
    return {"ph": "X", "pid": process, "tid": track, "name": name, **times, "args": dict(about or {})}


__all__ = ["trace_of"]
