# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles by the plugin without Python: in another process, which may end at any time."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import stat
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.runtime.native_module import plugin_programs
from tests.pjrt.clients import call, get, made, numbers, opened, put
from tests.pjrt.plugin import library, run_python
from tests.pjrt.standalone_programs import TANH, dynamic_softmax, softmax, wanted
from tests.pjrt.streams import artifact

errors: Any = pytest.importorskip("pypjrt.errors")

UNKNOWN = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @nowhere(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("model.py":7:1)
  return %0 : tensor<4xf32>
}"""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHLO_DISC_COMPILER", sys.executable)
    monkeypatch.delenv("SHLO_DISC_CACHE_DIR", raising=False)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with opened(compiler=sys.executable, device_count=2) as it:
        yield it


def children() -> list[int]:
    """The processes that this one has started and that run the compiler."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            is_ours = int((process / "stat").read_text().rpartition(")")[2].split()[1]) == os.getpid()
            if is_ours and b"shlo_disc.pjrt.server" in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


def test_sizes_that_are_not_known(client: Any) -> None:
    program = client.compile(TANH.format(n="?"))
    for n in (1, 2, 7, 8, 9, 131):
        x = numbers(n, 3)
        np.testing.assert_allclose(call(client, program, x)[0], np.tanh(x), rtol=2e-6, atol=1e-6)


def test_what_jax_exports_with_symbols(client: Any) -> None:
    """Its assertion of shapes does not hold for a size of 0."""
    with made(library()) as compiling:
        for opened in (client, compiling):
            program = opened.compile(dynamic_softmax())
            for n in (1, 4, 33):
                x = numbers(n, 3)
                np.testing.assert_allclose(call(opened, program, x)[0], wanted(x), rtol=2e-6, atol=1e-6)


def test_shapes_of_text_are_instances() -> None:
    """Through the plugin in Python, whose programs can be counted."""
    plugin_programs().clear()
    before = plugin_programs().counts
    with made(library()) as compiling:
        for n in (4, 7, 12, 30):
            x = numbers(n, 3)
            found = call(compiling, compiling.compile(TANH.format(n=n)), x)[0]
            np.testing.assert_allclose(found, np.tanh(x), rtol=2e-6, atol=1e-6)
    counts = {name: count - before[name] for name, count in plugin_programs().counts.items()}
    assert (counts["compiled"], counts["compiled_symbolic"], counts["instances"]) == (1, 1, 2)


def test_shapes_of_a_function_of_jax(client: Any) -> None:
    for n in (4, 7, 1, 9, 31, 256):
        x = numbers(n, 3)
        served = client.compile(artifact(softmax, [x]))
        np.testing.assert_allclose(call(client, served, x)[0], wanted(x), rtol=2e-6, atol=1e-6)


def test_an_instance_is_serialized(client: Any) -> None:
    for n in (4, 7, 12):
        x = numbers(n, 3)
        served = client.compile(artifact(softmax, [x]))
    with opened(trust=True) as loading:
        loaded = loading.deserialize_executable(served.serialize())
        np.testing.assert_array_equal(call(loading, loaded, x)[0], call(client, served, x)[0])
        assert loaded.fingerprint() == served.fingerprint()


def test_the_program_next_to_one(client: Any) -> None:
    """One other number makes another program."""
    text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{\n" \
           "  %c = stablehlo.constant dense<[{a}, 2.0]> : tensor<2xf32>\n" \
           "  %0 = stablehlo.add %x, %c : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}}"  # fmt: skip
    x = numbers(2)
    for a in (1.0, 3.0, 1.0, 5.0):
        found = call(client, client.compile(text.format(a=a)), x)[0]
        np.testing.assert_array_equal(found, x + np.float32([a, 2.0]))


def test_errors_of_programs(client: Any) -> None:
    with pytest.raises(errors.InvalidArgument, match=r"line 1, column 20: .*\[DISC-P102\]"):
        client.compile("func.func @main() {\n")
    with pytest.raises(errors.Unimplemented, match=r"custom_call @nowhere at model.py:7(.|\n)*\[DISC-U101\]"):
        client.compile(UNKNOWN)
    whole = artifact(softmax, [numbers(5, 3)])
    for place in range(40, len(whole), 97):
        damaged = whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :]
        try:
            client.compile(damaged)
        except (errors.InvalidArgument, errors.Unimplemented) as error:
            assert str(error)
    with pytest.raises(errors.InvalidArgument):
        client.compile(whole[: len(whole) // 2])
    client.compile(whole).close()


def test_several_devices(client: Any) -> None:
    options_module: Any = pytest.importorskip("pypjrt.compile_options")
    program = """
module attributes {mhlo.num_replicas = 2 : i32} {
  func.func @main(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
    %sum = "stablehlo.all_reduce"(%x) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4x3xf32>) -> tensor<4x3xf32>
    return %sum : tensor<4x3xf32>
  }
}
"""
    executable = client.compile(program, options=options_module.CompileOptions(num_replicas=2))
    shards = [numbers(4, 3), numbers(4, 3) + 1]
    for (found,) in executable.execute_sharded([[put(client, x, i)] for i, x in enumerate(shards)]):
        np.testing.assert_array_equal(get(found), shards[0] + shards[1])


def test_functions_that_a_client_registers() -> None:
    """The compiler is told of their names, and they are called in the client's process."""
    ffi: Any = pytest.importorskip("pypjrt.ffi")

    def twice(frame: Any) -> None:
        (source,), (target,) = frame.args, frame.rets
        for i in range(source.size):
            target.as_ctypes()[i] = 2 * source.as_ctypes()[i]

    program = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @twice(%x) {api_version = 4 : i32, backend_config = {}} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.add %0, %x : tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""
    with opened() as client:
        with pytest.raises(errors.Unimplemented, match="custom_call @twice"):
            client.compile(program)
        ffi.register(client._plugin, "twice", twice, platform="shlo_disc")
        np.testing.assert_array_equal(call(client, client.compile(program), numbers(4))[0], 3 * numbers(4))


def test_threads(client: Any) -> None:
    """Eight compile different programs, each at several shapes."""
    failures: list[BaseException] = []

    def work(k: int) -> None:
        try:
            for n in (2 + k % 2, 5, 9):
                x = numbers(n, 3)
                served = client.compile(artifact(lambda x: jnp.tanh(x) * (1 + k % 4), [x]))
                np.testing.assert_allclose(call(client, served, x)[0], np.tanh(x) * (1 + k % 4), rtol=2e-6, atol=1e-6)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


# ---- the process -----------------------------------------------------------------------------------------------------


def test_the_process_inherits_nothing_and_ends_with_its_client(tmp_path: Path) -> None:
    before, descriptors = set(children()), len(os.listdir("/proc/self/fd"))
    with open(tmp_path / "secret", "w") as secret, opened() as client:
        os.set_inheritable(secret.fileno(), True)
        assert set(children()) == before  # it starts with the first compile
        client.compile(TANH.format(n=2))
        (pid,) = set(children()) - before
        files = {os.readlink(file) for file in Path(f"/proc/{pid}/fd").iterdir()}
        assert not [file for file in files if "secret" in file]
        client.compile(TANH.format(n=5))
        assert set(children()) - before == {pid}
    assert not Path(f"/proc/{pid}").exists()
    assert len(os.listdir("/proc/self/fd")) == descriptors


@pytest.mark.parametrize("tries", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_process_that_is_killed(tries: int) -> None:
    """It is stopped first, so that it is killed before it has answered."""
    before = set(children())
    with opened() as client:
        client.compile(TANH.format(n=2))
        for i in range(tries):
            (pid,) = set(children()) - before
            os.kill(pid, signal.SIGSTOP)
            killer = threading.Timer(0.1, os.kill, (pid, signal.SIGKILL))
            killer.start()
            with pytest.raises(errors.Internal, match=rf"the compiler, process {pid}, ended with SIGKILL; the next"):
                client.compile(TANH.format(n=3 + i))
            killer.join()
            x = numbers(3 + i, 3)
            found = call(client, client.compile(TANH.format(n=3 + i)), x)[0]
            np.testing.assert_allclose(found, np.tanh(x), rtol=2e-6, atol=1e-6)


def test_a_process_that_ends_between_compiles_is_started_again() -> None:
    before = set(children())
    with opened() as client:
        client.compile(TANH.format(n=2))
        (pid,) = set(children()) - before
        os.kill(pid, signal.SIGKILL)
        time.sleep(0.2)
        client.compile(TANH.format(n=5))


@pytest.mark.slow
def test_a_limit_of_time() -> None:
    before = set(children())
    with opened(compile_seconds=1) as client:
        client.compile(TANH.format(n=2))
        (pid,) = set(children()) - before
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(errors.DeadlineExceeded, match="more than 1 s, the client's option compile_seconds"):
            client.compile(TANH.format(n=5))
        assert not Path(f"/proc/{pid}").exists()
        client.compile(TANH.format(n=5))


@pytest.mark.slow
def test_the_process_ends_when_its_client_dies(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, signal, sys, shlo_disc\nfrom tests.pjrt.clients import opened\n"
        "from tests.pjrt.standalone_programs import TANH\nfrom tests.pjrt.test_standalone import children\n"
        "client = opened()\nclient.compile(TANH.format(n=2))\nprint(*children(), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = run_python(str(script))
    assert done.returncode == -signal.SIGKILL, done.stderr
    (pid,) = map(int, done.stdout.split())
    end = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z":
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.slow
def test_a_fork_starts_a_compiler_of_its_own(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os\nfrom tests.pjrt.clients import call, numbers, opened\n"
        "from tests.pjrt.standalone_programs import TANH\nfrom tests.pjrt.test_standalone import children\n"
        "client = opened()\nclient.compile(TANH.format(n=2))\n(first,) = children()\nforked = os.fork()\n"
        "program = client.compile(TANH.format(n=5))\nassert children() != [first] or forked\n"
        "assert call(client, program, numbers(5, 3))[0].shape == (5, 3)\n"
        "if forked == 0:\n    client.close()\n    os._exit(0)\n"
        "assert os.waitpid(forked, 0)[1] == 0 and children() == [first]\nclient.compile(TANH.format(n=7))\n"
    )
    done = run_python(str(script))
    assert done.returncode == 0, done.stderr


def executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_compilers_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = '{"release": "0.0.9", "sizes": []}'
    other = executable(
        tmp_path / "other",
        f"#!{sys.executable}\nimport os, struct\nos.write(1, struct.pack('<QQ', {len(header)}, 0) + b'{header}')\n"
        "os.read(0, 1)\nos.read(0, 1 << 20)\nos.read(0, 1)\n",
    )
    wrong = {
        "/nowhere/python": "'/nowhere/python' cannot be started: No such file or directory; SHLO_DISC_COMPILER names",
        "/bin/false": "'/bin/false' ended with exit status 1",
        str(
            executable(tmp_path / "cat", "#!/bin/sh\nexec cat\n")
        ): "is not that of shlo_disc, and this plugin of shlo_disc",
        str(
            executable(tmp_path / "says", "#!/bin/sh\necho no such module >&2; exit 3\n")
        ): "exit status 3: no such module",
        str(other): rf"is of shlo_disc 0\.0\.9, and this plugin of shlo_disc {re.escape(shlo_disc.__version__)}",
    }
    for command, words in wrong.items():
        monkeypatch.setenv("SHLO_DISC_COMPILER", command)
        with opened() as client, pytest.raises(errors.FailedPrecondition, match=words):
            client.compile(TANH.format(n=2))
    monkeypatch.setenv("SHLO_DISC_COMPILER", "")
    with opened() as client, pytest.raises(errors.Unimplemented, match="SHLO_DISC_COMPILER is empty: set "):
        client.compile(TANH.format(n=2))


def test_options_of_the_other_plugin_are_refused() -> None:
    for options in ({"compiler": sys.executable}, {"compile_seconds": 5}):
        with pytest.raises(errors.InvalidArgument, match="are those of the plugin without Python"):
            made(library(), **options)


def test_the_interpreter_of_the_environment_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugin lies in PREFIX/lib/pythonX.Y/site-packages."""
    monkeypatch.delenv("SHLO_DISC_COMPILER")
    package = tmp_path / "lib" / "python3.11" / "site-packages" / "shlo_disc"
    for folder in (package / "lib", package / "pjrt", tmp_path / "bin"):
        folder.mkdir(parents=True)
    (package / "pjrt" / "server.py").touch()
    copy = shutil.copy(shlo_disc.get_pjrt_plugin(), package / "lib")
    with (
        made(copy) as client,
        pytest.raises(errors.Unimplemented, match="finds none beside .*: set SHLO_DISC_COMPILER"),
    ):
        client.compile(TANH.format(n=2))
    executable(tmp_path / "bin" / "python3.11", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    with made(copy) as client:
        client.compile(TANH.format(n=2))


@pytest.mark.slow
def test_functions_may_have_so_many_programs() -> None:
    def pads(x: jax.Array) -> jax.Array:
        return sum(jnp.roll(x, i) for i in range(x.shape[0]))  # type: ignore[return-value]

    with opened(max_programs=1) as client:
        client.compile(artifact(pads, [numbers(2, 3)]))
        with pytest.raises(errors.FailedPrecondition, match="DISC-R102"):
            client.compile(artifact(pads, [numbers(4, 3)]))
