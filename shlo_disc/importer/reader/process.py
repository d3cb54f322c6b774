# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process that programs from outside are read in: a template with MLIR loaded, which forks a worker for each.

A worker reads one program and ends, whatever the program has made of it: the next one is read in memory that no other
has touched. The template only passes bytes on. Requests come on standard input, answers go to standard output. A worker
answers "read" with the program, "refused" with the reason, or "memory". When it dies, the template answers "ended".
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import signal
import sys
import threading
from typing import Any, NoReturn

from shlo_disc.errors import ProgramError
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir, stablehlo

from . import frames
from .limits import Limits
from .tasks import TASKS, Request, needed

Contexts = tuple[ir.Context, ir.Context]
_STACK = 2 << 20  # bytes: what can be read there can be read on the stack of any thread, which has 8 MiB as a rule
_FIRST_PROGRAM = b"""func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<1.0> : tensor<2xf32>
  %0 = stablehlo.add %x, %c : tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""
_SAID = 4096  # bytes of what a worker has written to standard error


class Worker:
    """A process that waits for a request."""

    def __init__(self, contexts: Contexts):
        self._said = os.memfd_create("said")
        (request, self._request), (self._answer, answer) = os.pipe(), os.pipe()
        self._status: int | None = None
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._request)
            os.dup2(self._said, 2)
            _work(request, answer, contexts)
        os.close(request)
        os.close(answer)

    def answer(self, header: bytes, data: bytes) -> list[bytes]:
        """Have a request worked on; what to answer, and its bytes."""
        with contextlib.suppress(BrokenPipeError):
            frames.send(self._request, header, data)
        try:
            return frames.receive(self._answer, 2)
        except EOFError:
            said = os.pread(self._said, _SAID, 0).decode(errors="replace")
            return [b"ended", json.dumps({"status": self._wait(), "said": said}).encode()]

    def end(self) -> None:
        """Wait for the process, which ends when it has answered, or gets no request."""
        for descriptor in (self._request, self._answer, self._said):
            os.close(descriptor)
        self._wait()

    def _wait(self) -> int:
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._status


def _work(request: int, answer: int, contexts: Contexts) -> NoReturn:
    """Run a worker from start to end."""
    try:
        header, data = frames.receive(request, 2)
        threading.stack_size(_STACK)
        thread = threading.Thread(target=lambda: _answer(answer, json.loads(header), data, contexts))
        thread.start()
        thread.join()
    except EOFError:
        pass
    finally:
        os._exit(0)


def _answer(descriptor: int, header: dict[str, Any], data: bytes, contexts: Contexts) -> None:
    try:
        _restrict(Limits(header["seconds"], header["bytes"]))
        answer = b"read", TASKS[header["task"]](Request(data, header["what"], contexts))
    except ProgramError as error:
        answer = b"refused", error.message.encode(errors="replace")
    except (MemoryError, OverflowError):
        answer = b"memory", b""
    except RecursionError:
        answer = b"refused", f"{header['what']} cannot be parsed: it nests too deep".encode()
    frames.send(descriptor, *answer)


def _restrict(limits: Limits) -> None:
    """Have this process end with a signal when it takes more time, and get no more memory."""
    with open("/proc/self/statm", "rb") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
    for kind, limit in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, max(int(limits.seconds), 1)),
        (resource.RLIMIT_AS, taken + limits.bytes),
    ):
        most = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))
    signal.setitimer(signal.ITIMER_REAL, limits.clock_seconds)


def _load(names: tuple[str, ...]) -> bool:
    """Import modules; whether there was anything to import."""
    missing = [name for name in names if name not in sys.modules]
    for name in missing:
        importlib.import_module(name)
    return bool(missing)


def _contexts() -> Contexts:
    """Two contexts that have read a program of ours, so that a worker finds all dialects loaded."""
    made = make_context(), make_context()
    for context in made:
        context.enable_multithreading(False)
    for contexts in (made, made[::-1]):
        bytecode = TASKS["read_program"](Request(_FIRST_PROGRAM, "", contexts))
        module = ir.Module.parse(bytecode, contexts[0])
        artifact = stablehlo.serialize_portable_artifact(module, stablehlo.get_current_version())
        TASKS["read_program"](Request(artifact, "", contexts))
    return made


def main() -> None:
    """Answer requests until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever waits for the answer gets it, too
    answers = os.dup(1)
    os.dup2(2, 1)
    contexts = _contexts()
    gc.collect()
    gc.freeze()
    worker = Worker(contexts)
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            header, data = frames.receive(0, 2)
            if _load(needed(json.loads(header)["task"], data)):
                worker.end()
                worker = Worker(contexts)
            frames.send(answers, *worker.answer(header, data))
            del data
            worker.end()
            worker = Worker(contexts)
    worker.end()


if __name__ == "__main__":
    main()
