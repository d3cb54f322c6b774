# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NULL for any parameter of any function of the C API: an error that names it, or nothing, and no crash."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc

from .c_api import CError, Options, checked, library, tensor_of

DECLARED = re.compile(r"^([\w ]+[ *])(disc_\w+)\(([^;{}]*)\);", re.MULTILINE)


def functions() -> dict[str, tuple[str, list[tuple[str, str]]]]:
    """The type of the result, and (type, name) of each parameter, of the functions that the header declares."""
    text = (Path(shlo_disc.get_include()) / "shlo_disc.h").read_text()
    found = {}
    for result, name, parameters in DECLARED.findall(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)):
        split = [re.fullmatch(r"(.*?)(\w+)", " ".join(p.split())) for p in parameters.split(",") if p.strip() != "void"]
        found[name] = (result.strip(), [(match[1].strip(), match[2]) for match in split if match])
    return found


POINTERS = [
    (function, parameter)
    for function, (_, parameters) in functions().items()
    for type_, parameter in parameters
    if type_.endswith("*") or type_ == "ShloDiscCustomCall"
]
OPTIONAL = {("disc_load", "options"), ("disc_load_bytes", "options")}
"""Parameters for which NULL has a meaning."""


class Given:
    """Arguments that are right, by the names of parameters; kept alive."""

    def __init__(self, path: Path):
        self.data = path.read_bytes()
        self.options = Options(struct_size=ctypes.sizeof(Options) - 8, trust=1)
        self.program, self.plan, self.results = (ctypes.c_void_p() for _ in range(3))
        checked("disc_load", str(path).encode(), ctypes.byref(self.options), ctypes.byref(self.program))
        self.dims = (ctypes.c_int64 * 1)(3)
        checked("disc_plan", self.program, self.dims, ctypes.c_size_t(1), ctypes.byref(self.plan))
        self.arrays = [np.ones(3, np.float32) for _ in range(2)]
        self.tensors = [(type(tensor_of(self.arrays[0])) * 1)(tensor_of(array)) for array in self.arrays]
        checked("disc_call", self.program, self.tensors[0], ctypes.c_size_t(1), ctypes.byref(self.results))
        self.info = (ctypes.c_size_t * 12)(12 * 8)
        self.function = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(lambda call: None)
        self.path = path

    def arguments(self, name: str, without: str) -> Iterator[Any]:
        """Those of a function, NULL for the parameter `without`."""
        for type_, parameter in functions()[name][1]:
            yield None if parameter == without else self._argument(type_, parameter)

    def _argument(self, type_: str, parameter: str) -> Any:
        if type_.endswith("**"):
            return ctypes.byref(ctypes.c_void_p())
        if type_ == "size_t":
            return ctypes.c_size_t(len(self.data) if parameter == "size" else 0 if parameter == "index" else 1)
        return {
            "path": str(self.path).encode(), "bytes": self.data, "options": ctypes.byref(self.options),
            "program": self.program, "plan": self.plan,
            "results": self.results if "disc_results" in type_ else self.tensors[1],
            "dims": self.dims, "values": self.dims, "arguments": self.tensors[0], "info": self.info,
            "name": b"test.null", "function": self.function, "library": b"libm.so.6", "functions": None, "error": None,
        }[parameter]  # fmt: skip


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Given:
    path = tmp_path_factory.mktemp("null") / "program.disc"
    shlo_disc.compile(jnp.negative, args=(("n", "float32"),)).save(path)
    return Given(path)


def test_all_functions_are_looked_at() -> None:
    text = (Path(shlo_disc.get_include()) / "shlo_disc.h").read_text()
    assert set(functions()) == set(re.findall(r"\b(disc_\w+)\(", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)))
    assert len(POINTERS) > 40


@pytest.mark.parametrize(("function", "parameter"), POINTERS, ids=".".join)
def test_null(given: Given, function: str, parameter: str) -> None:
    arguments = list(given.arguments(function, parameter))
    result = functions()[function][0]
    if result == "disc_error_t *":
        if (function, parameter) not in OPTIONAL:
            with pytest.raises(CError, match=f"{function}: {parameter} is NULL") as caught:
                checked(function, *arguments)
            assert (caught.value.kind, caught.value.code) == ("ValueError", "DISC-V100")
        elif function == "disc_load":
            with pytest.raises(CError, match="set trust of disc_load_options"):
                checked(function, *arguments)
        return
    native = library()[function]  # of its own: others have another type of result
    native.restype = {"void": None, "int64_t": ctypes.c_int64, "size_t": ctypes.c_size_t}.get(result, ctypes.c_void_p)
    if result == "const char *":
        native.restype = ctypes.c_char_p
    wanted = {
        "disc_error_kind": b"",
        "disc_error_code": b"",
        "disc_error_text": b"no error",
        "int64_t": -1,
        "size_t": 0,
    }
    assert native(*arguments) == wanted.get(function, wanted.get(result))


def test_arrays_of_nothing_may_be_null(tmp_path: Path) -> None:
    shlo_disc.compile(lambda: jnp.arange(3.0), args=()).save(tmp_path / "none.disc")
    options = Options(struct_size=ctypes.sizeof(Options) - 8, trust=1)
    program, plan, results, none = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t(0)
    checked("disc_load", str(tmp_path / "none.disc").encode(), ctypes.byref(options), ctypes.byref(program))
    checked("disc_plan", program, None, none, ctypes.byref(plan))
    checked("disc_plan_symbols", program, None, none, ctypes.byref(plan))
    checked("disc_call", program, None, none, ctypes.byref(results))
    checked("disc_bind", program, None, none, ctypes.byref(ctypes.c_void_p()))
    array = np.zeros(3, np.float32)
    checked("disc_run", plan, None, none, (type(tensor_of(array)) * 1)(tensor_of(array)), ctypes.c_size_t(1))
    np.testing.assert_array_equal(array, [0, 1, 2])


@pytest.mark.parametrize("count", [0, 2, 1 << 40])
def test_other_numbers_of_sizes_than_there_are(given: Given, count: int) -> None:
    """None of them is read."""
    with pytest.raises(CError, match=rf"have 1 size in all \(args\[0\] of \(n,\)\), and {count} were given"):
        checked("disc_plan", given.program, given.dims, ctypes.c_size_t(count), ctypes.byref(ctypes.c_void_p()))


@pytest.mark.parametrize("field", ["data", "shape"])
def test_tensors_without_what_they_need(given: Given, field: str) -> None:
    tensor, results = tensor_of(given.arrays[0]), ctypes.byref(ctypes.c_void_p())
    setattr(tensor, field, None)
    with pytest.raises(CError, match="has no (data|sizes)") as caught:
        checked("disc_call", given.program, (type(tensor) * 1)(tensor), ctypes.c_size_t(1), results)
    assert caught.value.kind == "ArgumentTypeError"
