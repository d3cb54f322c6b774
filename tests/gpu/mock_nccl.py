# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NCCL without a GPU: a shared library of the functions that the runtime uses, over the mock driver and NumPy.

A collective is done as late as its streams allow, once all ranks of its communicator have given theirs; whoever waits
for its stream before waits for them. Ranks of several processes meet in a folder. Their communicators do not block: a
call returns before its work is in the stream, and a thread drives the stream, as a GPU does. What no caller may do
(ranks that call different things, counts or types that do not fit each other, sends that nobody receives, no context, a
communicator that was destroyed) is kept in `mistakes`.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.gpu.mock_driver import FIRST_CONTEXT, OfThread, mock_driver
from tests.gpu.mock_library import MockFunctions, Refused, make_library
from tests.gpu.mock_nccl_meeting import Meeting, make_id, name_of
from tests.gpu.mock_streams import PATIENCE

SUCCESS, UNHANDLED_CUDA, SYSTEM, INTERNAL, INVALID_ARGUMENT, INVALID_USAGE, REMOTE, IN_PROGRESS = range(8)
NAMES = {
    UNHANDLED_CUDA: "unhandled cuda error", SYSTEM: "unhandled system error", INTERNAL: "internal error",
    INVALID_ARGUMENT: "invalid argument", INVALID_USAGE: "invalid usage", REMOTE: "remote process exited",
    IN_PROGRESS: "in progress",
}  # fmt: skip
TYPES = {0: "i1", 1: "u1", 2: "i4", 3: "u4", 4: "i8", 5: "u8", 6: "f2", 7: "f4", 8: "f8"}
CONFIG = (24, 0xCAFEBEEF, 21400, 0)
"""The only ncclConfig_t that is expected: bytes, magic number, version, and that calls do not block."""
_TURNS = 2  # questions after which work that is late is in its stream
REDUCTIONS = {0: np.add, 1: np.multiply, 2: np.fmax, 3: np.fmin}


@dataclass
class Part:
    """The part of one rank: its source and its target, or for messages one of each a peer."""

    source: int = 0
    target: int = 0
    sends: dict[int, tuple[int, int]] = field(default_factory=dict)
    receives: dict[int, tuple[int, int]] = field(default_factory=dict)
    stream: Any = None
    position: int = 0


@dataclass
class Operation:
    """One collective: what all ranks have to say alike, and what each has given."""

    alike: tuple[Any, ...]
    parts: dict[int, Part] = field(default_factory=dict)
    is_begun: bool = False
    is_done: bool = False


@dataclass
class Clique:
    """Ranks that were connected together. `devices`: the GPUs of those of this process. `meeting`: with others."""

    devices: dict[int, int]
    size: int
    meeting: Meeting | None = None
    operations: list[Operation] = field(default_factory=list)
    is_aborted: bool = False
    error: int = SUCCESS


@dataclass
class Comm:
    """A communicator: one rank of a clique, and how many operations it has given.

    late: what a call of one that does not block has still to do. ends: it is finalized.
    """

    clique: Clique
    rank: int
    given: int = 0
    late: Callable[[], None] | None = None
    turns: int = 0
    ends: bool = False

    @property
    def is_blocking(self) -> bool:
        return self.clique.meeting is None


class MockNccl(MockFunctions):
    """The library."""

    INVALID = INVALID_ARGUMENT
    INTERNAL = INTERNAL

    def __init__(self) -> None:
        super().__init__()
        self.cliques: list[Clique] = []
        self.version = 22805
        self._comms: dict[int, Comm] = {}
        self._numbers = itertools.count(0x1000)
        self._texts: dict[str, Any] = {}
        self._group = OfThread()
        self._changed = mock_driver()._changed

    @property
    def live(self) -> int:
        """Communicators that have been made and not destroyed."""
        return len(self._comms)

    def call(self, name: str, arguments: Sequence[int]) -> int:
        """Calls the library's function `name`, one at a time, and returns its status."""
        with self._changed:
            return super().call(name, arguments)

    def _comm(self, number: int) -> Comm:
        self.require(number in self._comms, f"{number:#x} is no communicator, or was destroyed before")
        return self._comms[number]

    # ---- communicators ----------------------------------------------------------------------------------------------

    def ncclGetVersion(self, out: int) -> None:
        ctypes.c_int.from_address(out).value = self.version

    def ncclGetErrorString(self, status: int) -> int:
        text = NAMES[_int(status)]
        return ctypes.addressof(self._texts.setdefault(text, ctypes.create_string_buffer(text.encode())))

    def ncclCommInitAll(self, out: int, count: int, devices: int) -> None:
        numbers = list((ctypes.c_int * _int(count)).from_address(devices))
        self.require(len(set(numbers)) == len(numbers) > 1, f"communicators of the GPUs {numbers}")
        clique = Clique(dict(enumerate(numbers)), len(numbers))
        self.cliques.append(clique)
        for rank in range(len(numbers)):
            number = next(self._numbers)
            self._comms[number] = Comm(clique, rank)
            (ctypes.c_uint64 * len(numbers)).from_address(out)[rank] = number

    def ncclGetUniqueId(self, out: int) -> None:
        make_id(out)

    def ncclCommInitRankConfig(
        self, out: int, count: int, rank: int, config: int, _r8: int, _r9: int, *id_: int
    ) -> int:
        size, given = ctypes.c_uint64.from_address(config).value, (ctypes.c_uint32 * 3).from_address(config + 8)
        self.require((size, *given) == CONFIG, f"a configuration of {size} bytes with {list(given)}")
        count, rank, driver = _int(count), _int(rank), mock_driver()
        folder = Path(name_of(id_[:16]))
        if not folder.is_absolute() or not folder.is_dir():
            return SYSTEM
        contexts = getattr(driver._thread, "contexts", None)
        self.require(bool(contexts) and 0 <= rank < count, f"rank {rank} of {count}, or no context")
        known = [clique for clique in self.cliques if clique.meeting and clique.meeting.folder == folder]
        if not known:
            known.append(Clique({}, count, Meeting(folder, count)))
            self.cliques.append(known[0])
        known[0].devices[rank] = contexts[-1] - FIRST_CONTEXT
        number = next(self._numbers)
        self._comms[number] = Comm(known[0], rank)
        ctypes.c_uint64.from_address(out).value = number
        known[0].meeting.say("joined", rank)
        self._group.status = IN_PROGRESS
        return IN_PROGRESS

    def ncclCommFinalize(self, comm: int) -> int:
        found = self._comm(comm)
        self.require(found.clique.meeting is not None and not found.ends, "a communicator is finalized for no reason")
        assert found.clique.meeting
        found.clique.meeting.say("ends", found.rank)
        found.ends = True
        return IN_PROGRESS

    def ncclCommDestroy(self, comm: int) -> None:
        clique = self._comm(comm).clique
        self.require(self._comm(comm).is_blocking or self._comm(comm).ends, "a communicator is not finalized")
        self.require(all(one.is_done for one in clique.operations), "a communicator is destroyed that has work to do")
        del self._comms[comm]

    def ncclCommAbort(self, comm: int) -> None:
        self._comm(comm).clique.is_aborted = True
        del self._comms[comm]
        self._changed.notify_all()

    def ncclCommGetAsyncError(self, comm: int, out: int) -> None:
        ctypes.c_int.from_address(out).value = self._state(self._comm(comm))

    def _state(self, comm: Comm) -> int:
        """The status of a communicator; each question brings work that is late a step further."""
        clique, meeting = comm.clique, comm.clique.meeting
        if clique.error != SUCCESS or meeting is None:
            return clique.error
        if not meeting.have_all_said("ends" if comm.ends else "joined"):
            return IN_PROGRESS
        if comm.late is not None:
            comm.turns -= 1
            if comm.turns > 0:
                return IN_PROGRESS
            late, comm.late = comm.late, None
            late()
        return SUCCESS

    # ---- collectives ------------------------------------------------------------------------------------------------

    def ncclAllReduce(
        self, source: int, target: int, count: int, type_: int, reduction: int, comm: int, stream: int
    ) -> int:
        return self._give(comm, stream, ("all_reduce", count, _int(type_), _int(reduction)), source, target)

    def ncclReduceScatter(
        self, source: int, target: int, count: int, type_: int, reduction: int, comm: int, stream: int
    ) -> int:
        return self._give(comm, stream, ("reduce_scatter", count, _int(type_), _int(reduction)), source, target)

    def ncclAllGather(self, source: int, target: int, count: int, type_: int, comm: int, stream: int) -> int:
        return self._give(comm, stream, ("all_gather", count, _int(type_), 0), source, target)

    def ncclBroadcast(self, source: int, target: int, count: int, type_: int, root: int, comm: int, stream: int) -> int:
        return self._give(comm, stream, ("broadcast", count, _int(type_), _int(root)), source, target)

    def _give(self, comm: int, stream: int, alike: tuple[Any, ...], source: int, target: int) -> int:
        self.require(not getattr(self._group, "depth", 0), f"{alike[0]} within a group")
        self.require(alike[1] > 0, "nothing is exchanged")
        return self._append(self._comm(comm), stream, alike, Part(source, target))

    # ---- messages ---------------------------------------------------------------------------------------------------

    def ncclGroupStart(self) -> None:
        self.require(not getattr(self._group, "depth", 0), "a group within a group")
        self._group.depth, self._group.parts, self._group.status = 1, {}, SUCCESS

    def ncclGroupEnd(self) -> int:
        self.require(bool(getattr(self._group, "depth", 0)), "a group ends that was not begun")
        self._group.depth = 0
        parts = self._group.parts.items()
        given = [self._append(self._comm(comm), stream, ("messages",), part) for (comm, stream), part in parts]
        return max([*given, self._group.status])

    def ncclSend(self, source: int, count: int, type_: int, peer: int, comm: int, stream: int) -> None:
        self._message("sends", comm, stream, _int(peer), (source, count * np.dtype(TYPES[_int(type_)]).itemsize))

    def ncclRecv(self, target: int, count: int, type_: int, peer: int, comm: int, stream: int) -> None:
        self._message("receives", comm, stream, _int(peer), (target, count * np.dtype(TYPES[_int(type_)]).itemsize))

    def _message(self, kind: str, comm: int, stream: int, peer: int, what: tuple[int, int]) -> None:
        self.require(bool(getattr(self._group, "depth", 0)), "a message outside of a group waits for its receiver")
        found = self._comm(comm)
        self.require(0 <= peer < found.clique.size, f"a message of rank {peer}")
        messages = getattr(self._group.parts.setdefault((comm, stream), Part()), kind)
        self.require(peer not in messages, f"two {kind} of one rank")
        messages[peer] = what

    # ---- work -------------------------------------------------------------------------------------------------------

    def _append(self, comm: Comm, number: int, alike: tuple[Any, ...], part: Part) -> int:
        driver, clique = mock_driver(), comm.clique
        context = (getattr(driver._thread, "contexts", None) or [None])[-1]
        self.require(context == FIRST_CONTEXT + clique.devices[comm.rank], "the context of another GPU, or none")
        stream = driver._handles[number]
        self.require(stream.context == context and stream.capture is None, "a stream of another GPU, or that captures")
        if not comm.is_blocking:
            if clique.error != SUCCESS:
                raise Refused(clique.error)
            self.require(comm.late is None and self._state(comm) == SUCCESS, "a communicator is used that is not ready")
            comm.late, comm.turns = functools.partial(self._drive, comm, stream, alike, part), _TURNS
            return IN_PROGRESS
        if comm.given == len(clique.operations):
            clique.operations.append(Operation(alike))
        operation = clique.operations[comm.given]
        self.require(operation.alike == alike, f"ranks call {operation.alike} and {alike}")
        comm.given += 1
        part.stream, part.position = stream, len(stream.given)
        operation.parts[comm.rank] = part
        driver._give(number, lambda: self._complete(clique, operation))
        self._changed.notify_all()
        return SUCCESS

    def _complete(self, clique: Clique, operation: Operation) -> None:
        """Do an operation, once all ranks are there and have done what they were given before it."""

        def is_ready() -> bool:
            return len(operation.parts) == clique.size and not operation.is_begun

        there = self._changed.wait_for(lambda: operation.is_done or clique.is_aborted or is_ready(), PATIENCE)
        if not there:
            self.mistakes.append(f"a rank never gives {operation.alike[0]}")
        if operation.is_done or clique.is_aborted or not there:
            return
        operation.is_begun = True
        try:
            for part in operation.parts.values():
                mock_driver()._run(part.stream, part.position)
            sent = [self._sent(operation.alike, operation.parts[rank], clique.size) for rank in range(clique.size)]
            for rank, part in operation.parts.items():
                self._receive(operation.alike, rank, part, sent)
        finally:
            operation.is_done = True
            self._changed.notify_all()

    # ---- with other processes ---------------------------------------------------------------------------------------

    def _drive(self, comm: Comm, stream: Any, alike: tuple[Any, ...], part: Part) -> None:
        """Put an operation into a stream, whose work is then done by a thread."""
        operation = Operation(alike, {comm.rank: part})
        comm.clique.operations.append(operation)
        work = functools.partial(self._meet, comm, operation, part, comm.given)
        work.is_driven = True  # type: ignore[attr-defined]
        comm.given += 1
        stream.given.append(work)
        threading.Thread(target=self._run_stream, args=(stream, len(stream.given)), daemon=True).start()

    def _run_stream(self, stream: Any, until: int) -> None:
        with self._changed:
            mock_driver()._run(stream, until)

    def _meet(self, comm: Comm, operation: Operation, part: Part, number: int) -> None:
        """Do a rank's part of an operation, as soon as all other ranks have come to theirs."""
        clique, subject, meeting = comm.clique, f"operation{number}", comm.clique.meeting
        assert meeting
        if not clique.is_aborted:
            meeting.say(subject, comm.rank, (operation.alike, self._sent(operation.alike, part, clique.size)))
        end = time.monotonic() + PATIENCE
        while not clique.is_aborted and not meeting.have_all_said(subject):
            self._changed.wait(1e-3)
            if time.monotonic() > end:
                self.mistakes.append(f"a rank never gives {operation.alike[0]}")
                break
        else:
            if not clique.is_aborted:
                said = meeting.all(subject)
                if any(alike != operation.alike for alike, _ in said):
                    self.mistakes.append(f"ranks call {[alike for alike, _ in said]}")
                else:
                    self._receive(operation.alike, comm.rank, part, [sent for _, sent in said])
        operation.is_done = True

    # ---- elements ---------------------------------------------------------------------------------------------------

    def _sent(self, alike: tuple[Any, ...], part: Part, size: int) -> Any:
        """The elements that a rank brings: an array, or one for each rank that is sent a message."""
        if alike == ("messages",):
            return {to: self._elements(at, count, 1).copy() for to, (at, count) in part.sends.items()}
        name, count, type_, _ = alike
        return self._elements(part.source, count * size if name == "reduce_scatter" else count, type_).copy()

    def _receive(self, alike: tuple[Any, ...], rank: int, part: Part, sent: list[Any]) -> None:
        """Write what a rank gets of what all have sent."""
        if alike == ("messages",):
            come = {of: one[rank] for of, one in enumerate(sent) if rank in one}
            if {of: len(one) for of, one in come.items()} != {of: count for of, (_, count) in part.receives.items()}:
                self.mistakes.append(f"rank {rank} is sent {come}, and receives {part.receives}")
                return
            for of, (at, count) in part.receives.items():
                self._elements(at, count, 1)[...] = come[of]
            return
        name, count, type_, number = alike
        if name in ("all_reduce", "reduce_scatter"):
            with np.errstate(all="ignore"):
                found = functools.reduce(REDUCTIONS[number], sent)
        else:
            found = sent[number] if name == "broadcast" else np.concatenate(sent)
        mine = found[rank * count : (rank + 1) * count] if name == "reduce_scatter" else found
        self._elements(part.target, len(mine), type_)[...] = mine

    def _elements(self, address: int, count: int, type_: int) -> np.ndarray:
        dtype = np.dtype(TYPES[type_])
        return mock_driver().view(address, count * dtype.itemsize).view(dtype)


def _int(word: int) -> int:
    return ctypes.c_int(word & 0xFFFFFFFF).value


FUNCTIONS = [name for name in vars(MockNccl) if name.startswith("nccl")]


def _dispatch(name: str, *arguments: int) -> int:
    return mock_nccl().call(name, arguments)


@functools.cache
def library() -> Path:
    """The library, whose functions call the mock."""
    return make_library("libnccl.so.2", FUNCTIONS, _dispatch, closed=SYSTEM)


@functools.cache
def mock_nccl() -> MockNccl:
    """The library of this process."""
    library()
    return MockNccl()
