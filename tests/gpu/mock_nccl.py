# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NCCL without a GPU: a shared library of the functions that the runtime uses, over the mock driver and NumPy.

A collective is done as late as its streams allow, once all ranks of its communicator have given theirs; whoever waits
for its stream before waits for them. What no caller may do (ranks that call different things, counts or types that do
not fit each other, sends that nobody receives, no context, a communicator that was destroyed) is kept in `mistakes`.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.gpu.mock_driver import FIRST_CONTEXT, OfThread, mock_driver
from tests.gpu.mock_library import make_library
from tests.gpu.mock_streams import PATIENCE

SUCCESS, UNHANDLED_CUDA, SYSTEM, INTERNAL, INVALID_ARGUMENT, INVALID_USAGE, REMOTE = range(7)
NAMES = {
    UNHANDLED_CUDA: "unhandled cuda error", SYSTEM: "unhandled system error", INTERNAL: "internal error",
    INVALID_ARGUMENT: "invalid argument", INVALID_USAGE: "invalid usage", REMOTE: "remote process exited",
}  # fmt: skip
TYPES = {0: "i1", 1: "u1", 2: "i4", 3: "u4", 4: "i8", 5: "u8", 6: "f2", 7: "f4", 8: "f8"}
REDUCTIONS = {0: np.add, 1: np.multiply, 2: np.fmax, 3: np.fmin}


class Refused(Exception):
    """A function of the library that gives an error."""

    def __init__(self, status: int):
        super().__init__(NAMES.get(status, str(status)))
        self.status = status


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
    """Ranks that were connected together, by their GPUs."""

    devices: list[int]
    operations: list[Operation] = field(default_factory=list)
    is_aborted: bool = False
    error: int = SUCCESS


@dataclass
class Comm:
    """A communicator: one rank of a clique, and how many operations it has given."""

    clique: Clique
    rank: int
    given: int = 0


class MockNccl:
    """The library. `fails`: what the next call of a function is to give."""

    def __init__(self) -> None:
        self.fails: dict[str, int] = {}
        self.mistakes: list[str] = []
        self.calls: list[str] = []
        self.cliques: list[Clique] = []
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
        """Calls the library's function `name`, and returns its status."""
        with self._changed:
            self.calls.append(name)
            if name in self.fails:
                return self.fails.pop(name)
            function = getattr(self, name)
            try:
                return function(*arguments[: function.__code__.co_argcount - 1]) or SUCCESS
            except Refused as error:
                return error.status
            except Exception as error:
                self.mistakes.append(f"{name}: {error!r}")
                return INTERNAL

    def require(self, is_right: bool, what: str) -> None:
        """Keep a mistake of the caller's."""
        if not is_right:
            self.mistakes.append(what)
            raise Refused(INVALID_ARGUMENT)

    def _comm(self, number: int) -> Comm:
        self.require(number in self._comms, f"{number:#x} is no communicator, or was destroyed before")
        return self._comms[number]

    # ---- communicators ----------------------------------------------------------------------------------------------

    def ncclGetVersion(self, out: int) -> None:
        ctypes.c_int.from_address(out).value = 22805

    def ncclGetErrorString(self, status: int) -> int:
        text = NAMES[_int(status)]
        return ctypes.addressof(self._texts.setdefault(text, ctypes.create_string_buffer(text.encode())))

    def ncclCommInitAll(self, out: int, count: int, devices: int) -> None:
        numbers = list((ctypes.c_int * _int(count)).from_address(devices))
        self.require(len(set(numbers)) == len(numbers) > 1, f"communicators of the GPUs {numbers}")
        clique = Clique(numbers)
        self.cliques.append(clique)
        for rank in range(len(numbers)):
            number = next(self._numbers)
            self._comms[number] = Comm(clique, rank)
            (ctypes.c_uint64 * len(numbers)).from_address(out)[rank] = number

    def ncclCommDestroy(self, comm: int) -> None:
        clique = self._comm(comm).clique
        self.require(all(one.is_done for one in clique.operations), "a communicator is destroyed that has work to do")
        del self._comms[comm]

    def ncclCommAbort(self, comm: int) -> None:
        self._comm(comm).clique.is_aborted = True
        del self._comms[comm]
        self._changed.notify_all()

    def ncclCommGetAsyncError(self, comm: int, out: int) -> None:
        ctypes.c_int.from_address(out).value = self._comm(comm).clique.error

    # ---- collectives ------------------------------------------------------------------------------------------------

    def ncclAllReduce(
        self, source: int, target: int, count: int, type_: int, reduction: int, comm: int, stream: int
    ) -> None:
        self._give(comm, stream, ("all_reduce", count, _int(type_), _int(reduction)), source, target)

    def ncclReduceScatter(
        self, source: int, target: int, count: int, type_: int, reduction: int, comm: int, stream: int
    ) -> None:
        self._give(comm, stream, ("reduce_scatter", count, _int(type_), _int(reduction)), source, target)

    def ncclAllGather(self, source: int, target: int, count: int, type_: int, comm: int, stream: int) -> None:
        self._give(comm, stream, ("all_gather", count, _int(type_), 0), source, target)

    def ncclBroadcast(
        self, source: int, target: int, count: int, type_: int, root: int, comm: int, stream: int
    ) -> None:
        self._give(comm, stream, ("broadcast", count, _int(type_), _int(root)), source, target)

    def _give(self, comm: int, stream: int, alike: tuple[Any, ...], source: int, target: int) -> None:
        self.require(not getattr(self._group, "depth", 0), f"{alike[0]} within a group")
        self.require(alike[1] > 0, "nothing is exchanged")
        self._append(self._comm(comm), stream, alike, Part(source, target))

    # ---- messages ---------------------------------------------------------------------------------------------------

    def ncclGroupStart(self) -> None:
        self.require(not getattr(self._group, "depth", 0), "a group within a group")
        self._group.depth, self._group.parts = 1, {}

    def ncclGroupEnd(self) -> None:
        self.require(bool(getattr(self._group, "depth", 0)), "a group ends that was not begun")
        self._group.depth = 0
        for (comm, stream), part in self._group.parts.items():
            self._append(self._comm(comm), stream, ("messages",), part)

    def ncclSend(self, source: int, count: int, type_: int, peer: int, comm: int, stream: int) -> None:
        self._message("sends", comm, stream, _int(peer), (source, count * np.dtype(TYPES[_int(type_)]).itemsize))

    def ncclRecv(self, target: int, count: int, type_: int, peer: int, comm: int, stream: int) -> None:
        self._message("receives", comm, stream, _int(peer), (target, count * np.dtype(TYPES[_int(type_)]).itemsize))

    def _message(self, kind: str, comm: int, stream: int, peer: int, what: tuple[int, int]) -> None:
        self.require(bool(getattr(self._group, "depth", 0)), "a message outside of a group waits for its receiver")
        found = self._comm(comm)
        self.require(0 <= peer < len(found.clique.devices), f"a message of rank {peer}")
        messages = getattr(self._group.parts.setdefault((comm, stream), Part()), kind)
        self.require(peer not in messages, f"two {kind} of one rank")
        messages[peer] = what

    # ---- work -------------------------------------------------------------------------------------------------------

    def _append(self, comm: Comm, number: int, alike: tuple[Any, ...], part: Part) -> None:
        driver, clique = mock_driver(), comm.clique
        context = (getattr(driver._thread, "contexts", None) or [None])[-1]
        self.require(context == FIRST_CONTEXT + clique.devices[comm.rank], "the context of another GPU, or none")
        stream = driver._handles[number]
        self.require(stream.context == context and stream.capture is None, "a stream of another GPU, or that captures")
        if comm.given == len(clique.operations):
            clique.operations.append(Operation(alike))
        operation = clique.operations[comm.given]
        self.require(operation.alike == alike, f"ranks call {operation.alike} and {alike}")
        comm.given += 1
        part.stream, part.position = stream, len(stream.given)
        operation.parts[comm.rank] = part
        driver._give(number, lambda: self._complete(clique, operation))
        self._changed.notify_all()

    def _complete(self, clique: Clique, operation: Operation) -> None:
        """Do an operation, once all ranks are there and have done what they were given before it."""

        def is_ready() -> bool:
            return len(operation.parts) == len(clique.devices) and not operation.is_begun

        there = self._changed.wait_for(lambda: operation.is_done or clique.is_aborted or is_ready(), PATIENCE)
        if not there:
            self.mistakes.append(f"a rank never gives {operation.alike[0]}")
        if operation.is_done or clique.is_aborted or not there:
            return
        operation.is_begun = True
        try:
            for part in operation.parts.values():
                mock_driver()._run(part.stream, part.position)
            self._exchange(operation, [operation.parts[rank] for rank in range(len(clique.devices))])
        finally:
            operation.is_done = True
            self._changed.notify_all()

    def _exchange(self, operation: Operation, parts: list[Part]) -> None:
        if operation.alike == ("messages",):
            self._deliver(parts)
            return
        name, count, type_, number = operation.alike
        read = {"reduce_scatter": count * len(parts)}.get(name, count)
        sources = [self._elements(part.source, read, type_).copy() for part in parts]
        if name in ("all_reduce", "reduce_scatter"):
            with np.errstate(all="ignore"):
                found = functools.reduce(REDUCTIONS[number], sources)
        else:
            found = sources[number] if name == "broadcast" else np.concatenate(sources)
        for rank, part in enumerate(parts):
            mine = found[rank * count : (rank + 1) * count] if name == "reduce_scatter" else found
            self._elements(part.target, len(mine), type_)[...] = mine

    def _deliver(self, parts: list[Part]) -> None:
        sent = {(i, to): count for i, part in enumerate(parts) for to, (_, count) in part.sends.items()}
        received = {(of, i): count for i, part in enumerate(parts) for of, (_, count) in part.receives.items()}
        if sent != received:
            self.mistakes.append(f"sent are {sent}, received {received}")
            return
        data = {pair: self._elements(parts[pair[0]].sends[pair[1]][0], count, 1).copy() for pair, count in sent.items()}
        for (of, to), one in data.items():
            self._elements(parts[to].receives[of][0], len(one), 1)[...] = one

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
