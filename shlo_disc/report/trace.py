# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times of a compile and of calls of its program, as a trace: the JSON that Perfetto and Chrome's about:tracing open.

The format is Google's "Trace Event Format": complete events (`"ph": "X"`) with a start and a length in microseconds.
The compile is a process of the trace with a track of stages and one of passes. Each call is another: on processors its
commands as they ran, and a track for each thread with the parts of commands that it did; on a GPU the commands in the
order of the program, the fastest run of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from shlo_disc.driver.compilation import Compilation
from shlo_disc.report.explanation import Explanation, KernelReport
from shlo_disc.report.synthetic import synthetic_call

if TYPE_CHECKING:
    from shlo_disc.runtime import Artifact, Client
    from shlo_disc.runtime.call_results import RecordedSpan


class TracedCall(NamedTuple):
    """The explanation of a call at some sizes; when its commands ran, and the parts of them that each thread did, both
    empty on a GPU."""

    explanation: Explanation
    commands: Sequence[RecordedSpan] = ()
    ranges: Sequence[RecordedSpan] = ()


def traced_call(artifact: Artifact, on: Client, explanation: Explanation) -> TracedCall:
    """One warm call at the sizes of an explanation."""
    if on.platform != "cpu":
        return TracedCall(explanation)
    bound, arguments = synthetic_call(artifact, on, explanation.dims)
    bound.record(arguments)
    return TracedCall(explanation, *bound.record(arguments))


def trace_of(c: Compilation, calls: Iterable[TracedCall]) -> dict[str, Any]:
    """The trace of a finished compilation, and of calls of its program."""
    events = [*_process(1, "compile", ("stages", "passes")), *_compile(c)]
    for number, call in enumerate(calls, 2):
        sizes = ", ".join(f"{name}={value}" for name, value in call.explanation.dims.items())
        threads = range(1 + max((r.thread for r in call.ranges), default=-1))
        tracks = ("commands", *(f"thread {n}" if n else "the caller's thread" for n in threads))
        events += _process(number, f"call at {sizes or 'its one shape'}", tracks)
        events += _recorded(number, call) if call.commands else _measured(number, call.explanation)
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


def _recorded(process: int, call: TracedCall) -> Iterator[dict[str, Any]]:
    """The commands as they ran, and below them what the threads did."""
    kernels = call.explanation.kernels
    for span in call.commands:
        yield _event(process, 1, kernels[span.command].name, span.start, span.seconds, _about(kernels[span.command]))
    for span in call.ranges:
        yield _event(process, 2 + span.thread, kernels[span.command].name, span.start, span.seconds)


def _measured(process: int, call: Explanation) -> Iterator[dict[str, Any]]:
    """The commands one after the other, each as long as its runs took together."""
    start = 0.0
    for k in call.kernels:
        if k.seconds is None or not k.runs:
            continue
        yield _event(process, 1, k.name, start, k.seconds * k.runs, _about(k))
        start += k.seconds * k.runs


def _about(k: KernelReport) -> dict[str, Any]:
    about = {"kind": k.kind, "variant": k.variant, "ops": k.ops, "source": k.source, "runs": k.runs}
    about |= {"bytes_read": k.bytes_read, "bytes_written": k.bytes_written, "flops": k.flops}
    return about | {"least_us": None if k.estimated_seconds is None else k.estimated_seconds * 1e6}


def _process(process: int, name: str, tracks: Sequence[str]) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "pid": process, "tid": 0, "name": "process_name", "args": {"name": name}}
    for number, track in enumerate(tracks, 1):
        yield {"ph": "M", "pid": process, "tid": number, "name": "thread_name", "args": {"name": track}}


def _event(
    process: int, track: int, name: str, start: float, seconds: float, about: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    times = {"ts": round(start * 1e6, 3), "dur": round(seconds * 1e6, 3)}
    return {"ph": "X", "pid": process, "tid": track, "name": name, **times, "args": dict(about or {})}


__all__ = ["TracedCall", "trace_of", "traced_call"]
