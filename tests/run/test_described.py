# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The display of programs in an interpreter and in a notebook."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.runtime import Artifact, Client, TreeSpec
from shlo_disc.runtime.described import size_text

V3 = shlo_disc.Options(cpu="x86-64-v3")


def score(x: jax.Array, w: jax.Array) -> jax.Array:
    return jax.nn.softmax(x @ w)


@pytest.fixture(scope="module")
def executable() -> shlo_disc.Executable:
    return shlo_disc.compile(
        score, args=(("b, 8", "float32"), ("8, 4", "float32")), constraints=("b <= 64",), options=V3
    )


def test_a_line(executable: shlo_disc.Executable) -> None:
    assert repr(executable) == "<Executable score(f32[b, 8], f32[8, 4]) -> f32[b, 4] for x86-64-v3>"
    assert repr(executable.artifact).startswith("<Artifact of score(f32[b, 8], f32[8, 4]) -> f32[b, 4]; object: ")
    again = Artifact.deserialize(executable.artifact.serialize())
    assert repr(again).endswith(" kB; not trusted>")
    bound = executable.bind(np.ones((3, 8), np.float32))
    assert repr(bound) == "<BoundExecutable score(f32[b, 8], f32[8, 4]) -> f32[b, 4], its first 1 fixed>"
    jitted = shlo_disc.jit(score)
    assert repr(jitted) == "<shlo_disc.jit of score, compiled 0 times>"


def test_all_that_a_user_meets_is_a_line(executable: shlo_disc.Executable) -> None:
    made = executable.loaded
    assert repr(made) == "<LoadedExecutable score(f32[b, 8], f32[8, 4]) -> f32[b, 4] for x86-64-v3>"
    assert repr(made.in_jax) == "<JaxFunction score(f32[b, 8], f32[8, 4]) -> f32[b, 4]>"
    assert repr(made.in_tree) == "TreeSpec(((*, *), {}))" and repr(made.out_tree) == "TreeSpec(*)"
    assert repr(executable.signature) == "score(args[0]: f32[b, 8], args[1]: f32[8, 4]) -> (result: f32[b, 4])"
    assert repr(executable.signature.results[0]) == "result: f32[b, 4]"
    assert re.fullmatch(r"<Listing of score for cpu, \d kernels?>", repr(executable.listing()))
    x, w = np.ones((3, 8), np.float32), np.ones((8, 4), np.float32)
    traced = shlo_disc.jit(score, dynamic=("b, 8", None)).trace(x, w)
    assert repr(traced) == "<Traced score(f32[b, 8], f32[8, 4])>"
    assert repr(traced.lower()) == "<Lowered score(f32[b, 8], f32[8, 4])>"


def test_nothing_is_shown_by_its_address(executable: shlo_disc.Executable) -> None:
    """Python shows an address for classes without a repr."""
    x, w = np.ones((3, 8), np.float32), np.ones((8, 4), np.float32)
    made, client = executable.loaded, executable.loaded.client
    things = [
        executable, executable.signature, executable.launches, executable.options, executable.artifact,
        executable.listing(), executable.memory(b=3), executable.explain(b=3), executable.bind(x), made, made.in_tree,
        made.in_jax, made.profile((x, w)), made.execute_async((x, w)), client, client.devices(), client.memories(),
        client.topology(), client.buffer_from_host(x), client.buffer_from_host(x).ready_event(),
        shlo_disc.jit(score), shlo_disc.jit(score, filter=True), shlo_disc.jit(score).trace(x, w),
        shlo_disc.jit(score).lower(x, w), shlo_disc.Options(), shlo_disc.Schedule(), shlo_disc.KernelSchedule(),
        shlo_disc.ShapeError("too long"),
    ]  # fmt: skip
    for thing in things:
        assert " object at 0x" not in repr(thing) and len(repr(thing)) < 1000, repr(thing)


def test_a_buffer() -> None:
    client = Client(threads=2)
    assert repr(client) == "<Client of Device(platform='cpu', id=0, threads=2)>"
    assert repr(Client(threads=1, device_count=3)) == "<Client of Device(platform='cpu', id=0, threads=1) and 2 more>"
    buffer = client.buffer_from_host(np.ones((3, 8), np.float32))
    assert repr(buffer) == "<Buffer f32[3, 8], in the memory 'device' of Device(platform='cpu', id=0, threads=2)>"
    buffer.delete()
    assert repr(buffer) == "<Buffer f32[3, 8], deleted>"
    assert repr(client.buffer_from_host(np.bool_(True))).startswith("<Buffer i1[], ")


def test_a_future() -> None:
    client = Client(threads=1)
    go = threading.Event()
    waiting = client.run_async(go.wait)
    failing = client.run_async(lambda: 1 // 0)
    assert repr(waiting) == "<Future, not ready>"
    go.set()
    failing.error()
    assert repr(waiting) == "<Future, ready>"
    assert repr(failing).startswith("<Future, failed: ZeroDivisionError(")


def test_a_structure() -> None:
    tree = TreeSpec.of({"a": (1, [2, None]), "b": (3,)})
    assert repr(tree) == "TreeSpec({'a': (*, [*, None]), 'b': (*,)})"


def test_options_show_what_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHLO_DISC_CPU", raising=False)
    assert repr(shlo_disc.Options()) == "Options()"
    chosen = shlo_disc.Options(threads=2, hints={"b": 8})
    assert repr(chosen) == "Options(threads=2, hints={'b': 8})"
    assert eval(repr(V3), {"Options": shlo_disc.Options}) == V3  # noqa: S307 - it is to be a line of Python


def test_a_loaded_program_says_what_it_has_not(executable: shlo_disc.Executable, tmp_path: Path) -> None:
    executable.save(tmp_path / "score.disc")
    loaded = shlo_disc.load(tmp_path / "score.disc", trust=True)
    for name in ("explain", "report", "as_text"):
        with pytest.raises(AttributeError, match=f"'score' was loaded as native code.*{name}.*shlo_disc.compile gives"):
            getattr(loaded, name)
        assert hasattr(executable, name)
    with pytest.raises(AttributeError, match="'LoadedExecutable' object has no attribute 'explian'"):
        _ = loaded.explian


def test_signatures_of_loaded_and_bound_programs(executable: shlo_disc.Executable, tmp_path: Path) -> None:
    executable.save(tmp_path / "score.disc")
    loaded = shlo_disc.load(tmp_path / "score.disc", trust=True)
    assert loaded.signature == "score(x: f32[b, 8], w: f32[8, 4]) -> (result: f32[b, 4])"
    bound = executable.bind(np.ones((2, 8), np.float32))
    assert bound.signature == "score(w: f32[8, 4]) -> (result: f32[b, 4])"


def test_a_program_of_this_process_says_which_object_has_it(executable: shlo_disc.Executable) -> None:
    names = ("explain", "report", "as_text", "launches")
    bound = executable.bind(np.ones((2, 8), np.float32))
    for name in names:
        with pytest.raises(AttributeError, match=f"the Executable that it was bound from has: .*executable.{name}$"):
            getattr(bound, name)
        with pytest.raises(AttributeError, match=f"use executable.{name} in place of executable.loaded.{name}$"):
            getattr(executable.loaded, name)
        assert hasattr(executable, name)


def test_a_loaded_program_does_what_serving_needs(executable: shlo_disc.Executable, tmp_path: Path) -> None:
    executable.save(tmp_path / "score.disc")
    loaded = shlo_disc.load(tmp_path / "score.disc", trust=True)
    assert loaded.memory(b=3) == executable.memory(b=3) and loaded.target == executable.target
    assert loaded.out_shape(b=3) == executable.out_shape(b=3) == jax.ShapeDtypeStruct((3, 4), np.float32)
    loaded.save(tmp_path / "again.disc")
    assert (tmp_path / "again.disc").read_bytes() == (tmp_path / "score.disc").read_bytes()
    loaded.export_library(tmp_path / "score.so")
    assert (tmp_path / "score.h").exists()


def test_values_of_symbols_in_a_mapping(executable: shlo_disc.Executable) -> None:
    for owner in (executable, executable.loaded):
        for name in ("memory", "out_shape", "prepare", "cost_analysis", "peak_memory"):
            assert getattr(owner, name)({"b": 3}) == getattr(owner, name)(b=3), name
    assert executable.explain({"b": 3}).dims == {"b": 3}
    with pytest.raises(shlo_disc.ShapeError, match=r"memory takes .* by name, as in memory\(b=1\), not 1, 2"):
        executable.memory(1, 2)


def test_the_shapes_of_a_loaded_tree(tmp_path: Path) -> None:
    keys = shlo_disc.compile(lambda x, k: {"y": (x, [x[0]]), "k": k}, args=(("b, 2", "f16"), jax.random.key(0)))
    keys.save(tmp_path / "keys.disc")
    found = shlo_disc.load(tmp_path / "keys.disc", trust=True).out_shape(b=5)
    assert found == keys.out_shape(b=5)
    assert found["y"] == (jax.ShapeDtypeStruct((5, 2), np.float16), [jax.ShapeDtypeStruct((2,), np.float16)])


def test_what_another_object_has(executable: shlo_disc.Executable) -> None:
    bound = executable.bind(np.ones((3, 8), np.float32))
    with pytest.raises(AttributeError, match=r"a bound program has no 'memory', .* use bound\.executable\.memory"):
        _ = bound.memory
    assert bound.executable.memory(b=3) == executable.memory(b=3)
    with pytest.raises(AttributeError, match="'BoundExecutable' object has no attribute 'memroy'"):
        _ = bound.memroy
    for is_filtered in (False, True):
        function = shlo_disc.jit(lambda x: x + 1, filter=is_filtered)
        with pytest.raises(AttributeError, match=r"no 'as_text', .* call it, then use \.executable\.as_text"):
            _ = function.as_text
        function(np.ones(3, np.float32))
        assert "main" in function.executable.as_text()
        with pytest.raises(AttributeError, match="object has no attribute 'as_txt'"):
            _ = function.as_txt


def test_a_gpu_program_says_which() -> None:
    made = shlo_disc.compile(jnp.negative, target="cuda:sm_90", args=(("n", "float32"),))
    assert repr(made) == "<Executable negative(f32[n]) -> f32[n] for cuda:sm_90>"


def test_many_arguments_are_counted() -> None:
    def total(*arrays: jax.Array) -> list[jax.Array]:
        return [a + 1 for a in arrays]

    made = shlo_disc.compile(total, args=(("n", "int32"),) * 60, options=V3)
    line = ", ".join(["i32[n]"] * 5)
    assert repr(made) == f"<Executable total({line}, 55 more) -> ({line}, 55 more) for x86-64-v3>"
    table = made._repr_html_()
    assert table.count("<tr>") == 2 + 41 + 41 + 1 and "and 20 more" in table


def test_tables(executable: shlo_disc.Executable) -> None:
    for table in (executable._repr_html_(), executable.artifact._repr_html_(), executable.loaded._repr_html_()):
        assert "<th>argument</th><td>args[0]: f32[b, 8]</td>" in table
        assert "<th>symbol</th><td>1 &lt;= b &lt;= 64</td>" in table


def test_the_table_of_a_binding(executable: shlo_disc.Executable) -> None:
    table = executable.bind(np.ones((3, 8), np.float32))._repr_html_()
    assert "<caption>BoundExecutable score</caption>" in table
    assert "<th>fixed</th><td>the first 1 of 2 arguments</td>" in table
    assert "<th>result</th><td>result: f32[b, 4]</td>" in table


def test_the_tables_of_a_jitted_function() -> None:
    jitted = shlo_disc.jit(lambda x: x + 1, dynamic=("n",))
    assert jitted._repr_html_() == "<p>shlo_disc.jit of &lt;lambda&gt;, compiled 0 times</p>"
    jitted(np.ones(3, np.float32))
    table = jitted._repr_html_()
    assert table.count("<table>") == table.count("<caption>Executable ") == 1 and "compiled 1 time</p>" in table
    assert "<td>args[0]: f32[n]</td>" in table


@pytest.mark.parametrize("header", [{}, {"name": "f", "arguments": 3}, {"name": "f", "arguments": [], "results": [1]}])
def test_a_malformed_header_is_shown_as_one(header: dict[str, object]) -> None:
    artifact = Artifact(header, {"object": b"12"})
    assert repr(artifact) == "<Artifact of a malformed header; object: 2 bytes>"
    assert artifact._repr_html_() == "&lt;Artifact of a malformed header; object: 2 bytes&gt;"


@pytest.mark.parametrize(("count", "text"), [
    (0, "0 bytes"), (999, "999 bytes"), (1000, "1 kB"), (45_678, "45.7 kB"), (999_499, "999 kB"), (999_500, "1 MB"),
    (3 * 10**12, "3 TB"), (10**16, "1e+04 TB"),
])  # fmt: skip
def test_sizes(count: int, text: str) -> None:
    assert size_text(count) == text
