# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights by name, as `bind` takes them: mappings and .npz files; and what files of weights look like."""

from __future__ import annotations

import contextlib
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

from shlo_disc.errors import ArgumentTypeError, OptionError, reading
from shlo_disc.shape_dialect.dtypes import BY_NAME, numpy_dtype

NPZ, NPY = "an .npz file of arrays", "an .npy file of one array"
TORCH, SAFETENSORS = "a file of torch.save", "a safetensors file"

_WRITE = "run.save(path, weights=file) in Python writes one"
_READ = {
    TORCH: "torch.load({!r}, weights_only=True)",
    SAFETENSORS: "safetensors.numpy.load_file({!r})",
    NPZ: "{!r}",
}
"""Expressions of the arrays by name that a file has."""


@contextlib.contextmanager
def named_weights(weights: Any) -> Iterator[Mapping[str, Any]]:
    """The arrays by name that a mapping has, or a file of a path, which is open inside.

    Raises ArgumentTypeError for what is neither, and OSError.
    """
    if isinstance(weights, str | os.PathLike):
        with reading(weights, wanted=f"weights= is the path of an .npz file: {_WRITE}"):
            file = _opened(weights)
        with file as arrays:
            yield arrays
        return
    if not hasattr(weights, "keys") or not hasattr(weights, "__getitem__"):
        hint = _hint(weights)
        raise ArgumentTypeError(
            f"weights= is a {type(weights).__name__}: give arrays by name, as a dict or the path of an .npz file{hint}"
        )
    yield weights


def _hint(weights: Any) -> str:
    """The rest of a sentence on weights without names."""
    if hasattr(weights, "state_dict"):
        return ", such as its state_dict(): weights=module.state_dict()"
    if isinstance(weights, Iterator):
        return ", such as weights=module.state_dict(), or weights=dict(module.named_parameters())"
    return ", or the weights alone by position: bind(*weights)" if isinstance(weights, list | tuple) else ""


def of_its_dtype(value: Any, row: Mapping[str, Any]) -> Any:
    """An array in the dtype of the argument, where a file has kept the bytes of one that NumPy does not have.

    row: that of the argument in the header.
    """
    if getattr(getattr(value, "dtype", None), "kind", "") != "V":
        return value
    dtype = BY_NAME.get(row["dtype"])
    if dtype is None or not dtype.is_extension or numpy_dtype(dtype).itemsize != value.dtype.itemsize:
        return value
    return value.view(numpy_dtype(dtype))


def own_copy(value: Any, row: Mapping[str, Any]) -> Any:
    """A copy of an array or a tensor. row: that of the argument in the header."""
    return value.detach().clone() if hasattr(value, "detach") else np.array(of_its_dtype(value, row))


def delete_others(given: Sequence[Any], taken: Sequence[Any]) -> None:
    """Delete what was donated and bound as a copy with its axes in another order."""
    for value, copy in zip(given, taken, strict=True):
        if value is not copy and hasattr(value, "delete"):
            value.delete()


def _opened(path: str | os.PathLike[str]) -> Any:
    kind = kind_of_weights(path)
    if kind and kind != NPZ:
        other = f", and bind(weights={_READ[kind].format(os.fspath(path))}) reads this one" if kind in _READ else ""
        raise ArgumentTypeError(f"weights= is the path of {kind}, and not of an .npz file: {_WRITE}{other}")
    try:
        found = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ArgumentTypeError(f"weights= is a path, {os.fspath(path)!r}, of no .npz file: {_WRITE}") from error
    return found


def kind_of_weights(path: str | os.PathLike[str]) -> str:
    """The kind of a file of weights, such as "an .npz file of arrays"; "" for all other files. Raises OSError."""
    with open(path, "rb") as file:
        start = file.read(16)
    if start.startswith(b"\x93NUMPY"):
        return NPY
    if start[8:].startswith(b'{"'):
        return SAFETENSORS
    if start.startswith(b"PK"):
        try:
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
        except zipfile.BadZipFile:
            return ""
        if names and all(name.endswith(".npy") for name in names):
            return NPZ
        is_program = any("/models/" in name or "/code/" in name or "serialized_" in name for name in names)
        return TORCH if not is_program and any(n.endswith("/data.pkl") for n in names) else ""
    return ""


_FORMATS = {
    ".disc": "a program of shlo_disc",
    ".npz": NPZ,
    ".npy": NPY,
    ".pt": TORCH,
    ".pth": TORCH,
    ".pt2": "a file of torch.export.save",
    ".safetensors": SAFETENSORS,
    ".onnx": "an ONNX file",
}
"""The formats that endings of files stand for."""


def check_ending(path: str | os.PathLike[str], own: str) -> None:
    """Raises OptionError for a path whose ending stands for another format than `own`, the ending of what is written.

    Endings that stand for none of the formats that are known here are taken.
    """
    ending = PurePath(path).suffix.lower()
    if ending in _FORMATS and ending != own:
        raise OptionError(
            f"{os.fspath(path)!r} has the ending of {_FORMATS[ending]}, and what is written there is {_FORMATS[own]}: "
            f"write {os.fspath(PurePath(path).with_suffix(own))!r}"
        )


def advice_on_file(path: str) -> str:
    """A description of a file of weights, or of a program of another kind, and what to do with it; "" for others.

    Raises OSError.
    """
    if kind := kind_of_weights(path):
        return (
            f"{kind}, which holds weights and no program: load the program that `save` wrote, and bind the weights by "
            f"shlo_disc.load(program, trust=True).bind(weights={_READ.get(kind, '...').format(path)})"
        )
    if path.endswith(".onnx"):
        return "an ONNX file: compile the program of PyTorch or JAX that it was made from"
    names: tuple[str, ...] = ()
    with contextlib.suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
        names = tuple(archive.namelist())
    if any("/models/" in name or "serialized_" in name for name in names):
        return (
            f"a zip archive of torch.export.save: call shlo_disc.compile(torch.export.load({path!r})) in Python; what "
            'its save("program.disc") writes is a file for `python -m shlo_disc`'
        )
    if any("/code/" in name for name in names):
        return "a TorchScript program: export the module by torch.export.export(module, args), and compile that"
    return ""


__all__ = [
    "advice_on_file",
    "check_ending",
    "delete_others",
    "kind_of_weights",
    "named_weights",
    "of_its_dtype",
    "own_copy",
]
