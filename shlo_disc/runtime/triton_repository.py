# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Folders of Triton's model repository: an artifact, its configuration, and a file of its weights."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shlo_disc.errors import ArgumentTypeError, OptionError, reading
from shlo_disc.shape_dialect.dtypes import BY_NAME, numpy_dtype

from . import _native
from .artifact import Artifact, replacing
from .described import argument_names, tensor_text
from .parameter_names import ParameterNames
from .program_trees import trees_of
from .weight_files import NPZ, kind_of_weights, named_weights, of_its_dtype

PROGRAM, WEIGHTS, CONFIG = "model.disc", "model.weights", "config.pbtxt"
"""Names of files; the first two lie in the folder of a version."""

BACKEND = "shlo_disc"


def write_model(
    artifact: Artifact, folder: Path, *, max_batch_size: int = 0, weights: str | os.PathLike[str] | None = None
) -> list[Path]:
    """Write a model's folder with its version 1; the files. The configuration trusts the program where `artifact` does.

    max_batch_size: the most rows of requests that the server joins; 0: none. weights: an .npz file of arrays by the
    names of the first arguments, or a file of their elements one after the other. Raises OptionError,
    ArgumentTypeError, ShapeError, ArtifactError and OSError.
    """
    data = b"" if weights is None else weights_bytes(artifact.header, weights)
    bound = bound_arguments(artifact.header, len(data)) if data else 0
    config = configuration(artifact.header, max_batch_size, bound)
    if artifact.trusted:
        config["parameters"] = {"trust": {"string_value": "true"}}
    files = {folder / CONFIG: "".join(f"{line}\n" for line in _lines(config)).encode()}
    if data:
        files[folder / "1" / WEIGHTS] = data
    (folder / "1").mkdir(parents=True, exist_ok=True)
    for path, contents in files.items():
        with replacing(path) as file:
            file.write(contents)
    artifact.save(folder / "1" / PROGRAM)
    return [*files, folder / "1" / PROGRAM]


def configuration(header: Mapping[str, Any], max_batch_size: int = 0, bound: int = 0) -> dict[str, Any]:
    """The configuration of a program whose first `bound` arguments are bound. Raises OptionError, ArtifactError."""
    if target := header["target"].get("name"):
        raise OptionError(
            f"the program is for {target}, and the backend runs programs on the processor: compile for cpu"
        )
    names = argument_names(header)
    arguments = [_array(row, name) for row, name in zip(header["arguments"], names, strict=True)][bound:]
    text, reason = _native.triton_config(arguments, [_array(row) for row in header["results"]], max_batch_size)
    if reason:
        raise OptionError(f"requests for the program cannot be joined, as {reason}: set no maximum of the batch size")
    if max_batch_size:
        _check_batch(header, arguments[0][3][0], max_batch_size)
    return {"backend": BACKEND, **json.loads(text)}


def bound_arguments(header: Mapping[str, Any], size: int) -> int:
    """The number of first arguments that have `size` bytes in all. Raises OptionError where there is none."""
    taken = 0
    for count, row in enumerate(header["arguments"]):
        if taken == size and count:
            return count
        if any(isinstance(dim, str) for dim in row["shape"]):
            break
        taken += math.prod(row["shape"]) * BY_NAME[row["dtype"]].bytes
    else:
        if taken == size:
            return len(header["arguments"])
    raise OptionError(f"the weights have {size} bytes, which no number of the program's first arguments has in all")


def weights_bytes(header: Mapping[str, Any], path: str | os.PathLike[str]) -> bytes:
    """The elements of a program's first arguments, from a file of them or an .npz file."""
    with reading(path):
        if kind_of_weights(path) != NPZ:
            return Path(path).read_bytes()
    rows = header["arguments"]
    in_tree = trees_of(header, None, None)[0]
    parameters = ParameterNames.of(header, in_tree)
    if len(rows) != len(in_tree.children[0].children):
        raise ArgumentTypeError(
            "the program has arguments that hold several arrays, which an .npz file does not name: write the "
            "elements of jax.tree.leaves to a file, one after the other, and give that"
        )
    with named_weights(path) as arrays:
        placed = parameters.with_weights((), arrays, in_tree.children[0].children)
        taken = parameters.as_taken(tuple(map(of_its_dtype, placed, rows)))
        return b"".join(_elements(value, row) for value, row in zip(taken, rows, strict=False))


def _elements(value: Any, row: Mapping[str, Any]) -> bytes:
    """The bytes of an array that an argument takes. Raises ArgumentTypeError."""
    array = np.asarray(value)
    if array.dtype != numpy_dtype(BY_NAME[row["dtype"]]) or array.shape != tuple(row["shape"]):
        raise ArgumentTypeError(f"the weights have {array.dtype}{list(array.shape)} for {tensor_text(row)}")
    return array.tobytes()


def _array(row: Mapping[str, Any], name: str = "") -> tuple[str, str, str, list[str]]:
    return row["path"], name, BY_NAME[row["dtype"]].numpy, [str(dim) for dim in row["shape"]]


def _check_batch(header: Mapping[str, Any], symbol: str, max_batch_size: int) -> None:
    """Raises OptionError for a batch that is larger than the program takes."""
    largest = next((row["max"] for row in header["symbols"] if row["name"] == symbol), None)
    if largest is not None and max_batch_size > largest:
        raise OptionError(f"the maximum batch size is {max_batch_size}, and the program has {symbol} <= {largest}")


def _lines(config: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """A configuration in the text format of protobuf."""
    for key, value in config.items():
        if key == "parameters":
            for name, held in value.items():
                yield f"{indent}parameters {{ key: {json.dumps(name)} value {{ {' '.join(_lines(held))} }} }}"
        elif isinstance(value, Mapping):
            yield f"{indent}{key} {{ {' '.join([*_lines(value), '}'])}"
        elif isinstance(value, Sequence) and value and isinstance(value[0], Mapping):
            for entry in value:
                yield f"{indent}{key} {{ {' '.join(_lines(entry))} }}"
        else:
            is_name = key == "data_type" or isinstance(value, bool | int | list)
            yield f"{indent}{key}: {_scalar(value) if is_name else json.dumps(value)}"


def _scalar(value: Any) -> str:
    """Numbers, enumerators and lists of numbers."""
    return str(value).lower() if isinstance(value, bool) else str(value)


__all__ = ["CONFIG", "PROGRAM", "WEIGHTS", "bound_arguments", "configuration", "weights_bytes", "write_model"]
