# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles and runs what SHLO_DISC_RECORD has written, and compares the results with those of XLA's CPU.

Programs of the plugin come to a table of programs one after another, as they came to the plugin: those that differ in
sizes only are one program. Those of other front ends have symbols, and no other compiler to compare with: the plain
program, with a kernel for each op, stands for that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shlo_disc.driver.recording.recorder import SCHEMA
from shlo_disc.errors import OptionError
from shlo_disc.runtime.native_module import ProgramTable
from shlo_disc.shape_dialect.dtypes import BY_MLIR, BY_NAME, numpy_dtype

_TABLE_BYTES = 1 << 30
_TOLERANCES = {1: 0.25, 2: 2e-2, 4: 1e-3, 8: 1e-6}
"""Tolerances of floats, by bytes, relative to the largest element: the arguments are synthetic, and solvers iterate."""


@dataclass(frozen=True)
class Replayed:
    """The result of a replay. outcome: "right", "wrong" or "failed". how: as the table of programs has it."""

    name: str
    outcome: str
    how: str
    note: str = ""


def replay(folder: Path, dims: Mapping[str, int], seed: int = 0) -> Iterator[Replayed]:
    """Replay all programs of a folder, in the order of their names. dims: sizes for symbols, by default 4.

    Raises OptionError where the folder has none.
    """
    described = sorted(folder.glob("*.json"))
    if not described:
        raise OptionError(f"{folder} has no recorded programs")
    table = ProgramTable(_TABLE_BYTES)
    for path in described:
        about = json.loads(path.read_text())
        if about.get("schema") != SCHEMA:
            yield Replayed(path.stem, "failed", "", "another version of shlo_disc has recorded it")
            continue
        try:
            yield _replayed(path, about, table, dims, seed)
        except Exception as error:  # whatever it is, the other programs are replayed
            yield Replayed(path.stem, "failed", "", f"{type(error).__name__}: {error}")


def _replayed(
    path: Path, about: Mapping[str, Any], table: ProgramTable, dims: Mapping[str, int], seed: int
) -> Replayed:
    program = path.with_name(Path(about["program"]).name)
    if about["front"] == "plugin":
        return _of_plugin(path.stem, program.read_bytes(), table, seed)
    return _with_symbols(path.stem, program, dims, seed)


def _of_plugin(name: str, program: bytes, table: ProgramTable, seed: int) -> Replayed:
    from shlo_disc.importer.reader.artifacts import rewritten
    from shlo_disc.importer.reader.shardy import remove_shardy
    from shlo_disc.pjrt import layouts
    from shlo_disc.pjrt.compile import compile_program, generalize_programs

    def prepare(module: Any) -> None:
        remove_shardy(module)
        layouts.decide(module)
        layouts.apply(module)

    program = rewritten(program, prepare)
    executable, hidden, how = table.compile(
        program, b"", lambda one, _: compile_program(one), lambda several, _: generalize_programs(several)
    )
    kinds = executable.artifact.header["arguments"]
    arguments = _arguments(program, seed)
    extra = [_array(kind, data, sizes) for kind, (data, sizes) in zip(kinds[len(arguments) :], hidden, strict=True)]
    found = executable(*arguments, *extra)
    wanted = _by_xla(program, arguments)
    return Replayed(name, *_compared(_leaves(found), wanted, how))


def _array(kind: Mapping[str, Any], data: bytes, sizes: Sequence[int]) -> Any:
    return np.frombuffer(data, numpy_dtype(BY_NAME[kind["dtype"]])).reshape(sizes)


def _arguments(program: bytes, seed: int) -> list[Any]:
    """Arguments of a static program: small integers, and floats between 0 and 1."""
    from shlo_disc.driver.ledger.identity import read_identity

    random = np.random.default_rng(seed)
    made = []
    for argument in read_identity(program).arguments:
        if argument.dtype not in BY_MLIR:
            raise ValueError(f"an argument of {argument.dtype} cannot be made up")
        kind = numpy_dtype(BY_MLIR[argument.dtype])
        values = random.random(argument.sizes)
        is_integer = np.dtype(kind).kind in "biu"
        made.append((values * 2).astype(kind) if is_integer else values.astype(kind))
    return made


def _by_xla(program: bytes, arguments: Sequence[Any]) -> list[Any]:
    import jax
    from jax._src.compiler import get_compile_options
    from jaxlib import xla_client

    device = jax.devices("cpu")[0]
    options = get_compile_options(num_replicas=1, num_partitions=1)
    compiled = device.client.compile_and_load(program, xla_client.DeviceList((device,)), options)
    results = compiled.execute_sharded([jax.device_put(argument, device) for argument in arguments])
    return [np.asarray(shards[0]) for shards in results.disassemble_into_single_device_arrays()]


def _with_symbols(name: str, program: Path, dims: Mapping[str, int], seed: int) -> Replayed:
    from shlo_disc.api.compile import compile as build
    from shlo_disc.options import Options
    from shlo_disc.report.synthetic import load_flat, synthetic_arguments
    from shlo_disc.runtime.clients import client_for

    results: list[list[Any]] = []
    for options in (Options(), Options(max_fusions=0, reuse=False)):
        artifact = build(program, options=options).artifact
        sizes = {row["name"]: dims.get(row["name"], 4) for row in artifact.header["symbols"]}
        arguments = synthetic_arguments(artifact.header, sizes, seed)
        results.append(_leaves(load_flat(client_for(artifact, 0), artifact)(*arguments)))
    found, wanted = results
    return Replayed(name, *_compared(found, wanted, "compiled"))


def _leaves(results: Any) -> list[Any]:
    leaves = results if isinstance(results, tuple | list) else [results]
    return [np.asarray(leaf) for leaf in leaves]


def _compared(found: Sequence[Any], wanted: Sequence[Any], how: str) -> tuple[str, str, str]:
    for number, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
        if ours.shape != theirs.shape:
            return "wrong", how, f"result {number} is {list(ours.shape)}, not {list(theirs.shape)}"
        if ours.dtype.kind in "biu" and not np.array_equal(ours, theirs):
            return "wrong", how, f"result {number} has other integers"
        if ours.dtype.kind not in "biu" and not _is_near(ours, theirs):
            return "wrong", how, f"result {number} differs"
    return "right", how, ""


def _is_near(ours: Any, theirs: Any) -> bool:
    wide = np.complex128 if ours.dtype.kind == "c" else np.float64
    a, b = ours.astype(wide), theirs.astype(wide)
    allowed = _TOLERANCES[min(8, ours.dtype.itemsize // (2 if ours.dtype.kind == "c" else 1))]
    scale = float(np.max(np.abs(b[np.isfinite(b)]), initial=1.0))
    return bool(np.allclose(a, b, rtol=allowed, atol=allowed * scale, equal_nan=True))


__all__ = ["Replayed", "replay"]
