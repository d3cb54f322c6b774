# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pickled and copied executables, artifacts and jitted functions."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import shlo_disc
import shlo_disc.numpy
from shlo_disc.errors import ArtifactError
from shlo_disc.runtime import Artifact, Client

ADD = """
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %y = stablehlo.add %x, %x : tensor<?xf32>
  return %y : tensor<?xf32>
}
"""


def model(p: Any, x: Any) -> Any:
    return {"y": jnp.tanh(x @ p["w"])}


@shlo_disc.jit
def doubled(x: Any) -> Any:
    return x * 2


@pytest.fixture(scope="module")
def executable() -> Any:
    options = shlo_disc.Options(output="numpy", hints={"n": 8})
    return shlo_disc.compile(model, args=({"w": ((4, 8), "float32")}, ("n, 4", "float32")), options=options)


def arguments(n: int = 3) -> Any:
    return {"w": np.full((4, 8), 0.25, np.float32)}, np.arange(4 * n, dtype=np.float32).reshape(n, 4) / 9


def test_an_executable_is_compiled_anew(executable: Any) -> None:
    data = pickle.dumps(executable)
    code = executable.artifact.object
    assert bytes(code)[:64] not in data and b"\x7fELF" not in data
    read = pickle.loads(data)  # noqa: S301
    assert read is not executable and read.compile_count == 1
    assert read.options == executable.options and read.target == "cpu"
    assert bytes(read.artifact.object) == bytes(code)
    for n in (1, 6):
        found = read(*arguments(n))["y"]
        assert isinstance(found, np.ndarray)
        np.testing.assert_array_equal(found, executable(*arguments(n))["y"])


@pytest.mark.slow
def test_in_another_process(executable: Any, tmp_path: Path) -> None:
    path = tmp_path / "executable.pickle"
    path.write_bytes(pickle.dumps(executable))
    script = f"""
import pickle, numpy as np
with open({str(path)!r}, "rb") as file:
    program = pickle.load(file)
w, x = {{"w": np.full((4, 8), 0.25, np.float32)}}, np.ones((5, 4), np.float32)
print(program(w, x)["y"].shape, program(w, x)["y"][0, 0])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout == "(5, 8) 0.7615942\n", done.stderr


def test_programs_of_text() -> None:
    read = pickle.loads(pickle.dumps(shlo_disc.compile(ADD)))  # noqa: S301
    np.testing.assert_array_equal(read(np.arange(3, dtype=np.float32)), [0, 2, 4])


def test_sizes_that_are_data() -> None:
    made = shlo_disc.compile(lambda x: x[shlo_disc.numpy.flatnonzero(x)], args=(("n", "float32"),))
    read = pickle.loads(pickle.dumps(made))  # noqa: S301
    np.testing.assert_array_equal(read(np.array([0, 3, 0, 5], np.float32)), [3, 5])


def test_a_pytree_that_jax_cannot_write_says_so() -> None:
    @jax.tree_util.register_pytree_node_class
    class Pair:
        def __init__(self, a: Any, b: Any):
            self.a, self.b = a, b

        def tree_flatten(self) -> Any:
            return (self.a, self.b), None

        @classmethod
        def tree_unflatten(cls, _: Any, children: Any) -> Any:
            return cls(*children)

    spec = jax.ShapeDtypeStruct((3,), jnp.float32)
    made = shlo_disc.compile(lambda p: p.a + p.b, args=(Pair(spec, spec),))
    with pytest.raises(TypeError, match="cannot pickle the executable of '<lambda>': .*register_pytree_node"):
        pickle.dumps(made)


def test_an_artifact_is_not_trusted_when_it_is_read(executable: Any) -> None:
    read = pickle.loads(pickle.dumps(executable.artifact))  # noqa: S301
    assert read == executable.artifact and executable.artifact.trusted and not read.trusted
    with pytest.raises(ArtifactError, match="pass trust=True"):
        Client().load(read)
    loaded = Client().load(Artifact.deserialize(read.serialize(), trust=True))
    np.testing.assert_array_equal(loaded(*arguments())["y"], executable(*arguments())["y"])


def test_an_artifact_from_a_file(executable: Any, tmp_path: Path) -> None:
    executable.save(tmp_path / "program")
    mapped = Artifact.open(tmp_path / "program", trust=True)
    assert pickle.loads(pickle.dumps(mapped)) == mapped  # noqa: S301


def test_what_cannot_be_pickled_says_what_to_pickle(executable: Any) -> None:
    for value, text in {
        executable.loaded: "cannot pickle a LoadedExecutable, which has native code: pickle its artifact",
        executable.bind(arguments()[0]): "cannot pickle a BoundExecutable, .*: pickle the Executable and the arrays",
    }.items():
        with pytest.raises(TypeError, match=text):
            pickle.dumps(value)


def test_copies_are_the_thing_itself(executable: Any) -> None:
    for value in (executable, executable.loaded, executable.artifact, executable.bind(arguments()[0]), doubled):
        assert copy.copy(value) is value and copy.deepcopy(value) is value
        assert copy.deepcopy([value])[0] is value


def test_jitted_functions_are_pickled_by_name() -> None:
    read = pickle.loads(pickle.dumps(doubled))  # noqa: S301
    assert read is doubled
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(shlo_disc.jit(lambda x: x))


def test_exported_programs() -> None:
    exported = export.export(jax.jit(model))(*export.symbolic_args_specs(arguments(), ("...", "n, ...")))
    made = shlo_disc.compile(bytes(exported.serialize(vjp_order=1)))
    read = pickle.loads(pickle.dumps(made))  # noqa: S301
    np.testing.assert_array_equal(read(*arguments())["y"], made(*arguments())["y"])
