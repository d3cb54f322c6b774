# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Streams, events and graphs of the driver in `mock_driver.py`, and what may not be done while work is captured."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, INVALID_CONTEXT, BAD_IMAGE = 0, 1, 2, 201, 218
ILLEGAL_STATE, NOT_FOUND, NOT_READY, ILLEGAL_ADDRESS, UNKNOWN = 401, 500, 600, 700, 999
CAPTURE_UNSUPPORTED, CAPTURE_INVALIDATED, WRONG_THREAD = 900, 901, 908

LEGACY, PER_THREAD = 1, 2
"""Handles of the default streams, which are always there."""

THREAD_LOCAL = 1

PATIENCE = 60.0
"""Seconds after which work that waits for another thread's never ends."""

UNSAFE = frozenset({"cuMemAlloc_v2", "cuMemFree_v2", "cuMemHostAlloc", "cuMemFreeHost", "cuModuleLoadDataEx",
                    "cuModuleUnload", "cuEventSynchronize", "cuEventQuery", "cuMemGetInfo_v2"})  # fmt: skip
"""Functions that a thread may not call while it captures, as a graph would not contain them."""

Work = Callable[[], None]


class Refused(Exception):
    """A function of the driver that gives an error."""

    def __init__(self, code: int):
        super().__init__(str(code))
        self.code = code


@dataclass
class Capture:
    """Work of one thread that is kept and not done."""

    thread: int
    works: list[Work] = field(default_factory=list)
    is_valid: bool = True


@dataclass
class Stream:
    """Work that has been given, and how much of it is done. `context`: whose it is, None for the default streams."""

    context: int | None = None
    given: list[Work] = field(default_factory=list)
    done: int = 0
    runner: int | None = None
    """The thread that does its work. Others wait for it, whom work that waits for theirs lets in."""
    capture: Capture | None = None


@dataclass
class Graph:
    """Captured work."""

    works: list[Work]


@dataclass
class GraphProgram:
    """A graph that can be launched."""

    works: list[Work]


def words_at(address: int, count: int, type_: Any = ctypes.c_uint64) -> Any:
    """The words at an address of the host's."""
    return (type_ * count).from_address(address)


class Streams:
    """The part of the driver that has to do with streams."""

    mistakes: list[str]
    graph_launches = 0
    _running = 0
    _collects = True
    _handles: dict[int, Any]
    _new: Callable[[int, Any], None]
    _context: Callable[[], int]
    _changed: threading.Condition

    def _stream(self, number: int, what: str = "") -> Stream:
        """The stream; `what` may not be done to one that captures."""
        found: Stream = self._handles[number]
        if what and found.capture:
            self._spoil(found, f"{what} of a stream that captures")
        return found

    def _spoil(self, stream: Stream, mistake: str) -> None:
        self.mistakes.append(mistake)
        if stream.capture:
            stream.capture.is_valid = False
        raise Refused(CAPTURE_UNSUPPORTED)

    def _capturing(self) -> list[Stream]:
        return [h for h in self._handles.values() if isinstance(h, Stream) and h.capture]

    def refuse_unsafe(self, name: str) -> None:
        """Refuse a function that this thread may not call as long as it captures."""
        for stream in self._capturing() if name in UNSAFE else ():
            if stream.capture and stream.capture.thread == threading.get_ident():
                self._spoil(stream, f"{name} while the thread captures")

    def invalidate_captures(self) -> None:
        """End all captures in progress without a graph."""
        for stream in self._capturing():
            if stream.capture:
                stream.capture.is_valid = False

    def _give(self, number: int, work: Work) -> None:
        stream = self._stream(number)
        if stream.capture is None:
            stream.given.append(work)
            return
        if stream.capture.thread != threading.get_ident():
            self.mistakes.append("a thread gives work to a stream in which another one captures")
        stream.capture.works.append(work)

    def _run(self, stream: Stream, until: int) -> None:
        """Do the stream's work up to a point, or wait for the thread that is doing it."""
        me = threading.get_ident()
        if stream.runner not in (None, me):
            if not self._changed.wait_for(lambda: stream.runner is None or stream.done > until, PATIENCE):
                self.mistakes.append("the work of a stream waits for ever")
        if stream.runner is not None:
            return
        stream.runner = me
        try:
            with self._uncollected():
                while stream.done < until:
                    stream.done += 1
                    self._changed.notify_all()
                    stream.given[stream.done - 1]()
        finally:
            stream.runner = None
            self._changed.notify_all()

    @contextlib.contextmanager
    def _uncollected(self) -> Iterator[None]:
        """Python collects nothing in the middle of work: what has memory of a GPU would wait there for work that cannot
        go on meanwhile, and give the memory back all the same. Nor in a capture, in which no memory may be freed:
        with a driver that is not written in Python, none of Python's code runs there."""
        self._hold_garbage()
        try:
            yield
        finally:
            self._let_collect()

    def _hold_garbage(self) -> None:
        if self._running == 0:
            self._collects = gc.isenabled()
            gc.disable()
        self._running += 1

    def _let_collect(self) -> None:
        self._running -= 1
        if self._running == 0 and self._collects:
            gc.enable()

    def _finish(self) -> None:
        """Do all work of the context."""
        context = self._context()
        for stream in [h for h in self._handles.values() if isinstance(h, Stream) and h.context in (None, context)]:
            self._run(stream, len(stream.given))

    def cuCtxSynchronize(self) -> None:
        for stream in self._capturing():
            if stream.context == self._context():
                self._spoil(stream, "a wait for a context of which a stream captures")
        self._finish()

    # ---- streams and events -----------------------------------------------------------------------------------------

    def cuStreamCreate(self, out: int, flags: int) -> None:
        self._new(out, Stream(self._context()))

    def cuStreamDestroy_v2(self, stream: int) -> None:
        self._stream(stream, "the end")
        del self._handles[stream]

    def cuStreamSynchronize(self, stream: int) -> None:
        found = self._stream(stream, "a wait for the work")
        self._run(found, len(found.given))

    def cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> None:
        self._stream(stream, "a wait for an event")
        point = list(self._handles[event])
        self._give(stream, lambda: self._reach(point))

    def _reach(self, point: list[Any]) -> None:
        if point:
            self._run(*point)

    def cuEventCreate(self, out: int, flags: int) -> None:
        self._new(out, [])

    def cuEventDestroy_v2(self, event: int) -> None:
        del self._handles[event]

    def cuEventRecord(self, event: int, stream: int) -> None:
        found = self._stream(stream, "an event")
        self._handles[event][:] = [found, len(found.given)]

    def cuEventElapsedTime(self, out: int, begin: int, end: int) -> None:
        """A microsecond for each piece of work between two events of a stream, which have to have happened."""
        (first, start), (second, stop) = self._handles[begin], self._handles[end]
        if first is not second:
            raise Refused(INVALID_VALUE)
        if first.done < max(start, stop):
            raise Refused(NOT_READY)
        words_at(out, 1, ctypes.c_float)[0] = (stop - start) * 1e-3

    def cuEventQuery(self, event: int) -> None:
        """Each question brings the stream one piece of work further, but for work that another thread drives."""
        if point := self._handles[event]:
            stream, until = point
            if stream.runner is not None and stream.done <= until:
                raise Refused(NOT_READY)
            if stream.done < until:
                if not getattr(stream.given[stream.done], "is_driven", False):
                    self._run(stream, stream.done + 1)
                raise Refused(NOT_READY)

    def cuEventSynchronize(self, event: int) -> None:
        self._reach(self._handles[event])

    # ---- graphs -----------------------------------------------------------------------------------------------------

    def cuStreamBeginCapture_v2(self, stream: int, mode: int) -> None:
        found = self._stream(stream)
        if stream == LEGACY or found.capture:
            raise Refused(ILLEGAL_STATE)
        if mode & 0xFFFFFFFF != THREAD_LOCAL:
            self.mistakes.append(f"a capture of mode {mode} restricts other threads, or nobody")
        found.capture = Capture(threading.get_ident())
        self._hold_garbage()

    def cuStreamEndCapture(self, stream: int, out: int) -> None:
        found = self._stream(stream)
        words_at(out, 1)[0] = 0
        if not found.capture:
            raise Refused(ILLEGAL_STATE)
        if found.capture.thread != threading.get_ident():
            self.mistakes.append("a capture ends in another thread")
            raise Refused(WRONG_THREAD)
        capture, found.capture = found.capture, None
        self._let_collect()
        if not capture.is_valid:
            raise Refused(CAPTURE_INVALIDATED)
        self._new(out, Graph(capture.works))

    def cuGraphInstantiateWithFlags(self, out: int, graph: int, flags: int) -> None:
        self._new(out, GraphProgram(list(self._graph(graph, Graph).works)))

    def cuGraphLaunch(self, program: int, stream: int) -> None:
        self._stream(stream, "a launch of a graph in the work")
        for work in self._graph(program, GraphProgram).works:
            self._give(stream, work)
        self.graph_launches += 1

    def cuGraphExecDestroy(self, program: int) -> None:
        self._graph(program, GraphProgram)
        del self._handles[program]

    def cuGraphDestroy(self, graph: int) -> None:
        self._graph(graph, Graph)
        del self._handles[graph]

    def _graph(self, number: int, kind: type) -> Any:
        found = self._handles.get(number)
        if not isinstance(found, kind):
            self.mistakes.append(f"{number} is no {kind.__name__}, or was destroyed before")
            raise Refused(INVALID_VALUE)
        return found
