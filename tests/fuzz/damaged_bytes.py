# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tests.fuzz.damaged_bytes --count N --seed S [--plugin]`: compile programs some of whose bytes are wrong.

Each program is damaged in one to three bytes, or cut off, and compiled in a process that may die. It has to become an
executable, or an error of the program's, in a few seconds and with little memory. What else happens is a finding: a
signal, a time limit, memory, an error that is a defect of ours. Exit status 1 when there was one.
"""

from __future__ import annotations

import argparse
import collections
import functools
import multiprocessing
import os
import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

SECONDS = 5.0  # that a compile may take, on a processor of its own
MOST_BYTES = 2 << 30  # of memory that the compiling process may come to
_PATIENCE = 6  # turns of the clock for each of the processor's, on a machine that does other things


class Outcome(NamedTuple):
    """The outcome of a program: "compiled", the name of an error, or of a finding; what there is to say; seconds."""

    kind: str
    text: str
    seconds: float


EXPECTED = ("compiled", "ProgramError", "UnsupportedError", "InvalidArgument", "Unimplemented")


# ---- programs ------------------------------------------------------------------------------------------------------


def _functions() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """The functions to compile, with symbolic shapes of their arguments."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    table = np.random.default_rng(0).normal(size=(16, 24)).astype(np.float32)

    def mlp(x: Any, w: Any, b: Any) -> Any:
        return jax.nn.softmax(jnp.maximum(x @ w + b, 0.0))

    def attention(q: Any, k: Any, v: Any) -> Any:
        return jax.nn.softmax(q @ k.swapaxes(-1, -2) / 4.0) @ v

    def control_flow(x: Any) -> Any:
        looped = jax.lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, jnp.sin(c[1])), (0, x))[1]
        scanned = jax.lax.scan(lambda c, e: (c + e, c * e), jnp.zeros(x.shape[1:]), looped)[1]
        return jax.lax.cond(jnp.sum(x) > 0, lambda y: y + 1, lambda y: y * 2, scanned)

    def sort(x: Any, i: Any) -> Any:
        return jax.lax.sort((x, i), num_keys=1), x[i % 3], x.at[i % 2].add(1.0)

    def custom_call(x: Any) -> Any:
        return jnp.linalg.cholesky(x @ x.T + jnp.eye(4)), jax.random.normal(jax.random.key(0), (3,))

    def constants(x: Any) -> Any:
        return x @ table + np.arange(24, dtype=np.float32), (x[:, :3] > 0) & np.array([True, False, True])

    def window(x: Any) -> Any:
        y = jax.lax.conv_general_dilated(x, np.ones((2, 3, 3, 3), np.float32), (1, 1), "SAME")
        return jax.lax.reduce_window(y, -np.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    square = ("4, 4", np.float32)
    return {
        "mlp": (mlp, (("b, 8", np.float32), ("8, 16", np.float32), ("16", np.float32))),
        "attention": (attention, (("b, s, 16", np.float32),) * 3),
        "control flow": (control_flow, (("b, 6", np.float32),)),
        "sort": (sort, (("n", np.float32), ("n", np.int32))),
        "custom call": (custom_call, (square,)),
        "constants": (constants, (("b, 16", np.float32),)),
        "window": (window, (("b, 3, 8, 8", np.float32),)),
    }


def _sharded() -> dict[str, bytes]:
    """Programs with the dialect of shardings, and with layouts, as JAX sends them to a plugin."""
    import jax
    import numpy as np
    from jax.experimental.layout import Format, Layout
    from jax.extend.mlir import serialize_portable_artifact
    from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

    device = jax.devices()[0]
    on_mesh = NamedSharding(Mesh(np.array([device]), ("i",)), PartitionSpec("i"))
    columns = Format(Layout((1, 0)), SingleDeviceSharding(device))
    x = jax.ShapeDtypeStruct((8, 4), np.float32)
    jitted = {
        "sharding": jax.jit(lambda x: jax.lax.with_sharding_constraint(x * 2, on_mesh), in_shardings=on_mesh),
        "layout": jax.jit(lambda x: x @ x.T + 1, in_shardings=columns),
    }
    return {
        name: bytes(serialize_portable_artifact(f.lower(x).compiler_ir("stablehlo"), "1.17.0"))
        for name, f in jitted.items()
    }


@functools.cache
def programs(plugin: bool) -> dict[str, bytes]:
    """Whole programs by name."""
    import jax
    from jax import export
    from jax.extend.mlir import serialize_portable_artifact

    found = _sharded()
    for name, (function, stated) in _functions().items():
        scope = export.SymbolicScope()
        shapes = [(export.symbolic_shape(text, scope=scope), dtype) for text, dtype in stated]
        static = [tuple(3 if export.is_symbolic_dim(d) else d for d in shape) for shape, _ in shapes]
        fixed = [jax.ShapeDtypeStruct(shape, dtype) for shape, (_, dtype) in zip(static, shapes, strict=True)]
        module = jax.jit(function).lower(*fixed).compiler_ir("stablehlo")
        found[f"{name}, artifact"] = bytes(serialize_portable_artifact(module, "1.17.0"))
        if plugin:
            continue
        exported = export.export(jax.jit(function))(*(jax.ShapeDtypeStruct(*s) for s in shapes))
        found[f"{name}, exported"] = bytes(exported.mlir_module_serialized)
        found[f"{name}, serialized"] = bytes(exported.serialize())
        if b"sdy" not in exported.mlir_module_serialized:
            found[f"{name}, bytecode"] = _bytecode(found[f"{name}, exported"])
    return found


def _bytecode(artifact: bytes) -> bytes:
    """A program as bytecode of StableHLO itself."""
    import io

    from shlo_disc.shape_dialect.dialect.context import make_context
    from shlo_disc.shape_dialect.mlir import stablehlo

    buffer = io.BytesIO()
    stablehlo.deserialize_portable_artifact(make_context(), artifact).operation.write_bytecode(buffer)
    return buffer.getvalue()


def damaged(seed: int, plugin: bool) -> tuple[str, bytes]:
    """The name of a program, and its bytes with some of them changed or cut off."""
    chance = random.Random(seed)
    name = chance.choice(sorted(programs(plugin)))
    return name, damage(programs(plugin)[name], chance)


def damage(whole: bytes, chance: random.Random) -> bytes:
    """Some bytes of which one to three are others, or of which the end is missing."""
    data = bytearray(whole)
    if chance.random() < 0.1:
        return bytes(data[: chance.randrange(len(data))])
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(data))
        data[place] = data[place] ^ 1 << chance.randrange(8) if chance.random() < 0.5 else chance.randrange(256)
    return bytes(data)


# ---- the process that may die --------------------------------------------------------------------------------------


def _compile(data: bytes) -> Any:
    import shlo_disc

    return shlo_disc.compile(data, options=shlo_disc.Options(strict=True))


def _plugin_compile() -> Callable[[bytes], Any]:
    from pypjrt import Plugin
    from pypjrt.client import Client

    from tests.pjrt.plugin import library

    plugin = Plugin(library())
    plugin.initialize()
    client = Client(plugin)
    return lambda data: client.compile(data).close()


def _serve(connection: Any, plugin: bool) -> None:
    os.environ["SHLO_DISC_STRICT"] = "1"
    compile_one = _plugin_compile() if plugin else _compile
    try:
        while True:
            connection.send(_outcome(compile_one, connection.recv_bytes()))
    except EOFError:
        pass


def _outcome(compile_one: Callable[[bytes], Any], data: bytes) -> Outcome:
    start, spent = time.perf_counter(), time.process_time()
    kind, text = "compiled", ""
    try:
        compile_one(data)
    except Exception as error:  # which ones there may be is judged by the reader
        kind, text = type(error).__name__, str(error)
    seconds = time.perf_counter() - start
    if seconds > SECONDS and time.process_time() - spent > SECONDS:
        kind, text = "slow", f"{kind}: {text}"
    if 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > MOST_BYTES:
        kind, text = "memory", f"{kind}: {text}"
    return Outcome(kind, text, seconds)


class Worker:
    """The process that compiles. It is started again when it has died, or taken too much."""

    def __init__(self, plugin: bool = False):
        self._plugin = plugin
        self._process: Any = None
        self._connection: Any = None

    def examine(self, data: bytes) -> Outcome:
        """Compile a program."""
        if self._process is None:
            self._start()
        start = time.perf_counter()
        self._connection.send_bytes(data)
        try:
            if not self._connection.poll(_PATIENCE * SECONDS):
                self.close()
                return Outcome("hang", "", time.perf_counter() - start)
            outcome: Outcome = self._connection.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            outcome = Outcome("signal", f"exit status {self._process.exitcode}", time.perf_counter() - start)
            self._process = None
        if outcome.kind == "memory":
            self.close()
        return outcome

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._plugin))
        self._process.start()
        theirs.close()
        for whole in programs(self._plugin).values():  # so that no damaged one has to wait for imports
            self._connection.send_bytes(whole)
            self._connection.recv()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
            self._process = None


# ---- the command ---------------------------------------------------------------------------------------------------


def main() -> int:
    """Exit status 1 when anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.damaged_bytes", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=100, help="how many seeds")
    parser.add_argument("--minutes", type=float, default=1e9, help="start no program after so long")
    parser.add_argument("--plugin", action="store_true", help="through the PJRT plugin's Compile")
    parser.add_argument("--out", type=Path, default=Path("fuzz_out"), help="where programs with findings are written")
    options = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # on which the order of attributes in JAX's programs depends
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        os.execve(sys.executable, [sys.executable, "-m", "tests.fuzz.damaged_bytes", *sys.argv[1:]], environment)  # noqa: S606
    worker = Worker(options.plugin)
    counts: collections.Counter[str] = collections.Counter()
    slowest, found, start = 0.0, 0, time.monotonic()
    for seed in range(options.seed, options.seed + options.count):
        if time.monotonic() - start > 60 * options.minutes:
            break
        name, data = damaged(seed, options.plugin)
        outcome = worker.examine(data)
        counts[outcome.kind] += 1
        slowest = max(slowest, outcome.seconds)
        if outcome.kind not in EXPECTED:
            found += 1
            options.out.mkdir(exist_ok=True)
            (options.out / f"damaged-{seed}.bin").write_bytes(data)
            print(
                f"seed {seed}, {name}: {outcome.kind} after {outcome.seconds:.1f} s: {outcome.text[:600]}", flush=True
            )
    worker.close()
    table = ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))
    print(f"{sum(counts.values())} programs in {time.monotonic() - start:.0f} s: {table}; slowest {slowest:.1f} s")
    print(f"{found} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
