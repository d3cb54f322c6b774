# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs from outside: damaged bytes, text that takes more than it looks like, and the process that reads both."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import DiscError, OptionError, ProgramError, ReaderError, UnsupportedError
from shlo_disc.importer.reader import Limits, read_program
from shlo_disc.importer.reader.client import READER, Reader
from shlo_disc.runtime import AllocationError
from tests.fuzz.damaged_bytes import damaged, programs
from tests.run.bad_programs import ADD, HEAD, TAIL
from tests.run.call_programs import steps

BOMBS = {
    "regions": ('"a.b"() ({\n' * 20_000, "more than 256 brackets are open"),
    "types": ("%x = foo : " + "tuple<" * 10_000, "line 2: more than 256 brackets are open"),
    "attributes": ("%x = foo {a = " + "[" * 100_000, "line 2: more than 256 brackets are open"),
    "a rank": (
        '%x = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<' + "1x" * 100_000 + "f32>",
        "takes more than 1 s; Options(read_seconds=...) or",
    ),
    "a number": (f"%x = stablehlo.constant dense<{'9' * 10**6}> : tensor<4xi64>", "takes more than 2 s; Options(read_"),
}
ALIASES = "!t0 = tensor<f32>\n" + "".join(f"!t{i + 1} = tuple<!t{i}, !t{i}>\n" for i in range(60))


@pytest.mark.parametrize("name", BOMBS)
def test_bombs(name: str) -> None:
    line, message = BOMBS[name]
    with pytest.raises(ProgramError) as caught:
        shlo_disc.compile(f"{HEAD}  {line}\n{TAIL}", options=shlo_disc.Options(read_seconds=1))
    assert message in str(caught.value)


def test_a_type_that_is_too_long_to_print() -> None:
    text = ALIASES + "func.func @main(%a: !t60) -> !t60 {\n  return %a : !t60\n}\n"
    with pytest.raises(ProgramError, match="takes more than"):
        shlo_disc.compile(text, options=shlo_disc.Options(read_seconds=1))


def doubling(depth: int, last: str) -> str:
    """Functions that call the next one twice; the last one does `last`."""
    kind = "tensor<4xf32>"
    text = ""
    for n in range(depth):
        name = f"private @f{n}" if n else "public @main"
        calls = f"  %0 = call @f{n + 1}(%a) : ({kind}) -> {kind}\n  %1 = call @f{n + 1}(%0) : ({kind}) -> {kind}\n"
        text += f"func.func {name}(%a: {kind}) -> {kind} {{\n{calls}  return %1 : {kind}\n}}\n"
    return f"{text}func.func private @f{depth}(%a: {kind}) -> {kind} {{\n{last}  return %a : {kind}\n}}\n"


def test_calls_that_open_to_too_much() -> None:
    with pytest.raises(ProgramError, match=r"e\+12 operations once its calls are opened"):
        shlo_disc.compile(doubling(40, ""))
    again = "  %0 = call @f2(%a) : (tensor<4xf32>) -> tensor<4xf32>\n"
    with pytest.raises(UnsupportedError, match="func.call at line 27: recursion has no lowering"):
        shlo_disc.compile(doubling(5, again))
    four = np.ones(4, np.float32)
    np.testing.assert_array_equal(shlo_disc.compile(doubling(5, ""))(four), four)


@pytest.mark.slow
def test_memory_has_a_limit() -> None:
    """The error names the settings that allow more memory."""
    text = ALIASES + "func.func @main(%a: !t60) -> !t60 {\n  return %a : !t60\n}\n"
    limits = Limits(60, 64 << 20)
    with pytest.raises(
        ProgramError, match=r"MiB of memory; Options\(read_bytes=\.\.\.\) or SHLO_DISC_READ_BYTES allow"
    ):
        read_program(text.encode(), "the program", limits)


def test_huge_constants_are_cheap_and_huge_types_refused() -> None:
    """A splat takes no room, however many elements it has; its type may not say more than can be counted."""
    text = (
        "func.func @main() -> tensor<4xf32> {{\n  %c = stablehlo.constant dense<1.0> : tensor<{0}xf32>\n"
        "  %0 = stablehlo.slice %c [0:4] : (tensor<{0}xf32>) -> tensor<4xf32>\n  return %0 : tensor<4xf32>\n}}\n"
    )
    np.testing.assert_array_equal(shlo_disc.compile(text.format(10**12))(), np.ones(4, np.float32))
    square = f"tensor<{10**12}x{10**12}xf32>"
    with pytest.raises(ProgramError, match="has more elements than can be counted"):
        shlo_disc.compile(f"func.func @main(%a: {square}) -> {square} {{\n  return %a : {square}\n}}\n")


def test_a_result_that_does_not_fit_in_memory() -> None:
    text = f"func.func @main() -> tensor<{10**13}xf32> {{\n  %c = stablehlo.iota dim = 0 : tensor<{10**13}xf32>\n"
    with pytest.raises(AllocationError, match="too little memory left|out of memory"):
        shlo_disc.compile(text + f"  return %c : tensor<{10**13}xf32>\n}}\n")()


@pytest.mark.parametrize("seed", range(40))
def test_damaged_programs(seed: int) -> None:
    """An executable, or an error of the program's."""
    try:
        shlo_disc.compile(damaged(seed, plugin=False)[1])
    except (ProgramError, UnsupportedError) as error:
        assert str(error)


@pytest.mark.slow
def test_changes_that_end_readers() -> None:
    for data in importlib.import_module("tests.pjrt.test_damaged_programs").fatal_artifacts():
        try:
            shlo_disc.compile(data)
        except (ProgramError, UnsupportedError) as error:
            assert str(error)


@pytest.mark.parametrize("name", ["sort, exported", "custom call, artifact", "mlp, serialized", "window, bytecode"])
def test_whole_programs(name: str) -> None:
    assert shlo_disc.compile(programs(plugin=False)[name]).signature.arguments


# ---- the process ---------------------------------------------------------------------------------------------------


def process_of(reader: Reader) -> int:
    assert reader._process is not None
    return reader._process.pid


def test_it_is_one_process_and_started_again() -> None:
    shlo_disc.compile(ADD)
    first = process_of(READER)
    shlo_disc.compile(ADD)
    assert process_of(READER) == first
    os.kill(first, signal.SIGKILL)
    np.testing.assert_array_equal(shlo_disc.compile(ADD)(steps(3), steps(3)), 2 * steps(3))
    assert process_of(READER) != first


def test_the_end_of_a_worker_is_explained() -> None:
    ended = importlib.import_module("shlo_disc.importer.reader.client")._ended
    texts = [
        ended(status, said, data, "the program", Limits(3, 1 << 30)).message
        for status, said, data in (
            (-signal.SIGSEGV, "", b"ML\xefR"),
            (-signal.SIGABRT, "", b"func"),
            (-signal.SIGXCPU, "", b""),
            (-signal.SIGABRT, "LLVM ERROR: out of memory\n", b""),
        )
    ]
    assert texts == [
        "the program cannot be parsed: the bytecode is damaged (its reader ended with SIGSEGV)",
        "the program cannot be parsed: its reader ended with SIGABRT",
        "the program cannot be parsed: that takes more than 3 s; Options(read_seconds=...) or SHLO_DISC_READ_SECONDS "
        "allow more",
        "the program cannot be parsed: that takes more than 1024 MiB of memory; Options(read_bytes=...) or "
        "SHLO_DISC_READ_BYTES allow more",
    ]


def test_many_threads() -> None:
    found: list[Any] = []

    def work(number: int) -> None:
        text = ADD if number % 2 else "nothing"
        try:
            found.append(read_program(text.encode(), "the program")[:4])
        except DiscError as error:
            found.append(type(error))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, found)) == sorted(map(str, [b"ML\xefR"] * 4 + [ProgramError] * 4))


def test_a_forked_process_has_a_reader_of_its_own() -> None:
    read_program(ADD.encode(), "the program")
    first = process_of(READER)
    child = os.fork()
    if child == 0:
        is_read = read_program(ADD.encode(), "the program").startswith(b"ML\xefR")
        is_own = process_of(READER) != first
        READER.close()
        os._exit(0 if is_read and is_own else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    read_program(ADD.encode(), "the program")
    assert process_of(READER) == first


def test_a_process_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader()
    message = "programs from outside are read in a process of their own, which cannot be started: "
    for executable in ("/nowhere/python", "/bin/false", None):
        monkeypatch.setattr(sys, "executable", executable)
        with pytest.raises(ReaderError) as caught:
            reader.read("read_program", ADD.encode(), "the program", Limits.of())
        assert str(caught.value).startswith(message)


def test_programs_of_this_process_need_none(tmp_path: Path) -> None:
    """JAX's functions and exports are compiled without it."""
    script = tmp_path / "script.py"
    script.write_text(
        "import jax, shlo_disc\nfrom jax import export\nfrom shlo_disc.importer.reader.client import READER\n"
        "shlo_disc.compile(lambda x: x + 1, args=(('b', 'float32'),))\n"
        "shlo_disc.compile(export.export(jax.jit(lambda x: x + 1))(jax.ShapeDtypeStruct((2,), 'float32')))\n"
        "assert not READER._process.is_started\n"
    )
    plugin = importlib.import_module("tests.pjrt.plugin")
    done = plugin.run_python(str(script))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5"])
def test_limits_that_are_none(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHLO_DISC_READ_SECONDS", text)
    with pytest.raises(OptionError, match="SHLO_DISC_READ_SECONDS must be an integer of at least 1"):
        shlo_disc.compile(ADD)
    with pytest.raises(OptionError, match="read_bytes must be an integer of at least 1 or None"):
        shlo_disc.Options(read_bytes=0)
