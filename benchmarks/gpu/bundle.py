# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs as files, compiled and recorded on one machine and run on another.

    programs/NAME.json       what a program is, its calls, and what they are to give
    programs/NAME.shlodisc   the artifact
    programs/NAME.npz        the bytes of the calls' arrays
    programs/NAME.jax        the program by jax.export, for CPUs and GPUs, where it is timed
    refused.json             programs that are not there, and why

Arguments and results are flat: the leaves of the program's trees, in JAX's order.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from shlo_disc.runtime import Artifact
from shlo_disc.shape_dialect.dtypes import BY_NAME, BY_NUMPY, numpy_dtype
from shlo_disc.shape_dialect.symbolic.expr import Expr

Json = dict[str, Any]

WEIGHT_SCALE = 0.02
"""The standard deviation of weights that are drawn."""


@dataclass(frozen=True)
class Array:
    """An array, by the key of its bytes in the program's archive."""

    key: str
    dtype: str
    shape: list[int]


@dataclass(frozen=True)
class Result:
    """An expected result. Each element may be off by `absolute`, and by `relative` of itself."""

    array: Array
    relative: float
    absolute: float


@dataclass(frozen=True)
class Call:
    """One call, named by its sizes."""

    dims: str
    arguments: list[Array]
    results: list[Result]


@dataclass(frozen=True)
class Timing:
    """At which sizes a program is timed, and what backends that are not compiled from it have to know.

    symbols, shapes: the symbols in order, and their values. integers: at each shape the arguments that are no floats,
    by number; floats are drawn where they are needed. weights: how many of the first arguments are weights. tree: of
    the arguments, as in the artifact's header. torch_model, config: the module of `benchmarks.torch_models`. pullback,
    trains: as `benchmarks.data.Folder` has them.
    """

    symbols: list[str]
    shapes: list[list[int]]
    integers: list[dict[str, Array]]
    weights: int
    tree: Any
    torch_model: str
    config: Json = field(default_factory=dict)
    pullback: int = 0
    trains: bool = False


@dataclass(frozen=True)
class Program:
    """A program of a bundle. `launches`: kernels of a call, those of a loop or branch once."""

    name: str
    family: str
    title: str
    target: str
    launches: int
    compile_seconds: float
    calls: list[Call]
    timing: Timing | None = None

    @staticmethod
    def of_json(row: Json) -> Program:
        """Reads a program from the output of `asdict`."""
        timing = _timing_of_json(row["timing"]) if row["timing"] else None
        return Program(**row | {"calls": [_call(call) for call in row["calls"]], "timing": timing})


def _timing_of_json(row: Json) -> Timing:
    integers = [{number: Array(**array) for number, array in arrays.items()} for arrays in row["integers"]]
    return Timing(**row | {"integers": integers})


def _call(row: Json) -> Call:
    results = [Result(Array(**r["array"]), r["relative"], r["absolute"]) for r in row["results"]]
    return Call(row["dims"], [Array(**a) for a in row["arguments"]], results)


@dataclass(frozen=True)
class Refusal:
    """A program that is not in the bundle."""

    name: str
    family: str
    title: str
    reason: str


class Bundle:
    """The files of a bundle."""

    def __init__(self, path: Path):
        self.path = path

    def names(self) -> list[str]:
        """The names of all programs."""
        return sorted(file.stem for file in self.path.glob("programs/*.json"))

    def programs(self) -> list[Program]:
        """All, by name."""
        return [self.program(name) for name in self.names()]

    def program(self, name: str) -> Program:
        """The one called `name`."""
        return Program.of_json(json.loads(self.file(name, "json").read_text()))

    def refused(self) -> list[Refusal]:
        """The programs that are not there."""
        file = self.path / "refused.json"
        return [Refusal(**row) for row in json.loads(file.read_text())] if file.exists() else []

    def artifact(self, name: str) -> Artifact:
        """A program's artifact, which is trusted as the bundle is."""
        return Artifact.deserialize(self.file(name, "shlodisc").read_bytes(), trust=True)

    def archive(self, name: str) -> Callable[[Array], np.ndarray]:
        """A function that reads a program's arrays. It raises ImportError for elements of ml_dtypes without that."""
        stored = np.load(self.file(name, "npz"))

        def read(array: Array) -> np.ndarray:
            data = np.frombuffer(stored[array.key].tobytes(), numpy_dtype(BY_NUMPY[array.dtype]))
            return data.reshape(array.shape)

        return read

    def weights(self, program: Program) -> list[np.ndarray]:
        """The first arguments of a timed program, which are the same at all shapes."""
        timing = program.timing
        return self._arguments(program, 0, range(timing.weights)) if timing and timing.weights else []

    def inputs(self, program: Program, index: int) -> list[np.ndarray]:
        """The other arguments at one of the shapes."""
        count = len(self.artifact(program.name).header["arguments"])
        return self._arguments(program, index, range(_timing(program).weights, count))

    def _arguments(self, program: Program, index: int, numbers: range) -> list[np.ndarray]:
        """Floats are normal numbers."""
        timing, dims = _timing(program), _dims(program, index)
        read, drawn = self.archive(program.name), np.random.default_rng(0).standard_normal(1 << 20, np.float32)
        found = []
        rows = self.artifact(program.name).header["arguments"]
        for number in numbers:
            row = rows[number]
            if str(number) in timing.integers[index]:
                found.append(read(timing.integers[index][str(number)]))
                continue
            floats = np.resize(np.roll(drawn, number), sizes_of(row, dims))
            scale = WEIGHT_SCALE if number < timing.weights else 1
            found.append((floats * np.float32(scale)).astype(numpy_dtype(BY_NAME[row["dtype"]]), copy=False))
        return found

    def bytes_moved(self, program: Program, index: int) -> int:
        """The bytes of all arguments and results at one of the shapes: what a call reads and writes at least."""
        header, dims = self.artifact(program.name).header, _dims(program, index)
        rows = [*header["arguments"], *header["results"]]
        return sum(math.prod(sizes_of(row, dims)) * BY_NAME[row["dtype"]].bytes for row in rows)

    def file(self, name: str, suffix: str) -> Path:
        """One of a program's files."""
        return self.path / "programs" / f"{name}.{suffix}"

    # ---- writing ----------------------------------------------------------------------------------------------------

    def write(self, program: Program, artifact: Artifact, arrays: Mapping[str, np.ndarray], exported: bytes) -> None:
        """Write a program; `arrays` are bytes by their keys, `exported` is empty where it is not timed."""
        self.file(program.name, "json").parent.mkdir(parents=True, exist_ok=True)
        self.file(program.name, "shlodisc").write_bytes(artifact.serialize())
        with self.file(program.name, "npz").open("wb") as file:
            by_key: dict[str, Any] = dict(arrays)
            np.savez_compressed(file, **by_key)
        if exported:
            self.file(program.name, "jax").write_bytes(exported)
        self.file(program.name, "json").write_text(json.dumps(asdict(program)))

    def write_refused(self, refused: list[Refusal]) -> None:
        """Write which programs are not there."""
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / "refused.json").write_text(json.dumps([asdict(row) for row in refused], indent=1))


def sizes_of(row: Mapping[str, Any], dims: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of an array of an artifact's header for values of the symbols."""
    return tuple(Expr.parse(size).evaluate(dims) if isinstance(size, str) else int(size) for size in row["shape"])


def _timing(program: Program) -> Timing:
    """Raises ValueError for a program that is not timed."""
    if program.timing is None:
        raise ValueError(f"{program.name} has no sizes to be timed at")
    return program.timing


def _dims(program: Program, index: int) -> dict[str, int]:
    """The symbols' values at one of the shapes."""
    timing = _timing(program)
    return dict(zip(timing.symbols, timing.shapes[index], strict=True))


def tree_of(node: Any, leaves: Iterator[Any]) -> Any:
    """Containers around leaves, by the JSON form of `shlo_disc.runtime.tree`."""
    if node == "*":
        return next(leaves)
    if node is None:
        return None
    (kind, children), *_ = node.items()
    if kind == "dict":
        return {key: tree_of(child, leaves) for key, child in children}
    made = [tree_of(child, leaves) for child in children]
    return made if kind == "list" else tuple(made)
