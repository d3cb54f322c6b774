# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Portable artifacts as a skeleton and numbers."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from shlo_disc.runtime import callbacks
from shlo_disc.runtime.callbacks import install_for_exports
from shlo_disc.runtime.native_module import read_program
from tests.pjrt.streams import artifact


def of(function: Callable[..., Any], *shapes: tuple[int, ...], dtype: Any = jnp.float32) -> dict[str, Any]:
    """A function's program for arguments of these shapes."""
    return read_program(artifact(function, [jax.ShapeDtypeStruct(s, dtype) for s in shapes]))


def model(x: Any, w: Any) -> Any:
    """An op with a region, constants, a called function and attributes of several kinds."""
    y = jax.nn.softmax(x @ w + 2.5) * jnp.arange(w.shape[1])
    return jnp.where(y > 0.1, lax.sort(y, dimension=0), y[:1, ::-1]).sum(0)


def test_sizes_are_numbers() -> None:
    """Programs at two shapes have one skeleton; what differs are the sizes, where they stand."""
    a, b = of(model, (3, 5), (5, 7)), of(model, (6, 5), (5, 9))
    assert a["skeleton"] == b["skeleton"]
    pairs = {(x, y) for x, y in zip(a["numbers"], b["numbers"], strict=True) if x != y}
    assert pairs == {(3, 6), (7, 9)}


def test_tables_in_another_order() -> None:
    """Types are numbered by how often they are used, and equal ones are one: the skeleton does not see that."""
    programs = [of(model, (b, 5), (5, s)) for b, s in ((3, 7), (7, 3), (5, 5), (2, 64), (300, 70000))]
    assert len({p["skeleton"] for p in programs}) == 1


def test_names_and_places_in_the_source_do_not_count() -> None:
    """Two functions that do the same on different lines are one program."""

    def first(x: Any) -> Any:
        return jnp.tanh(x) + 1

    def second(y: Any) -> Any:
        z = jnp.tanh(y)

        return z + 1

    assert of(first, (4,))["skeleton"] == of(second, (5,))["skeleton"]


def test_the_count_of_approximate_top_k_is_a_number() -> None:
    """All else that configures the call is not."""
    a, b = (of(lambda x, k=k: lax.approx_max_k(x, k), (3, 9)) for k in (4, 5))
    assert a["skeleton"] == b["skeleton"]
    pairs = {(x, y) for x, y in zip(a["numbers"], b["numbers"], strict=True) if x != y}
    assert pairs == {(4, 5)}
    others = (
        of(lambda x: lax.approx_max_k(x, 4, 0), (9, 9)),
        of(lambda x: lax.approx_max_k(x, 4, recall_target=0.5), (3, 9)),
        of(lambda x: lax.approx_max_k(x, 4, reduction_input_size_override=100), (3, 9)),
        of(lambda x: lax.approx_min_k(x, 4), (3, 9)),
    )
    assert len({a["skeleton"], *(other["skeleton"] for other in others)}) == 5


def test_the_groups_of_a_convolution_are_numbers() -> None:
    a, b = (of(lambda x, w, n=n: lax.conv(x, w, (1,), "SAME") if n == 1 else lax.conv_general_dilated(
        x, w, (1,), "SAME", feature_group_count=n), (2, 12, 9), (12, 12 // n, 3)) for n in (1, 4))  # fmt: skip
    assert a["skeleton"] == b["skeleton"]
    pairs = {(x, y) for x, y in zip(a["numbers"], b["numbers"], strict=True) if x != y}
    assert pairs == {(1, 4), (12, 3)}


OTHERS: dict[str, Callable[..., Any]] = {
    "op": lambda x, y: jnp.sin(x) + y.T,
    "operands": lambda x, y: jnp.cos(y.T) + x,
    "permutation": lambda x, y: jnp.cos(x) + y,
    "axis": lambda x, y: lax.rev(jnp.cos(x) + y.T, (0,)),
    "other axis": lambda x, y: lax.rev(jnp.cos(x) + y.T, (1,)),
    "reduction": lambda x, y: (jnp.cos(x) + y.T).sum(0),
    "its body": lambda x, y: (jnp.cos(x) + y.T).max(0),
    "result": lambda x, y: (jnp.cos(x) + y.T, x),
    "rank": lambda x, y: (jnp.cos(x) + y.T)[None],
    "type": lambda x, y: (jnp.cos(x) + y.T).astype(jnp.bfloat16),
    "comparison": lambda x, y: x < y.T,
    "other comparison": lambda x, y: x <= y.T,
}


def test_everything_else_is_in_the_skeleton() -> None:
    """No two of these programs have one skeleton, though their sizes are all 4."""
    skeletons = {name: of(function, (4, 4), (4, 4))["skeleton"] for name, function in OTHERS.items()}
    assert len(set(skeletons.values())) == len(OTHERS)


def test_constants() -> None:
    """A splat is its bits; of other constants two numbers change whenever an element does."""

    def constants_of(*values: Any) -> list[list[int]]:
        found = of(lambda x: [x.sum() + v for v in values], (2,))
        return [found["numbers"][start : start + count] for start, count, *_ in found["constants"]]

    one = np.float32(1).view(np.int32)
    assert [int(one)] in constants_of(np.float32(1))
    table = np.arange(100, dtype=np.float32)
    other = table.copy()
    other[77] += 1
    assert len({str(constants_of(t)) for t in (table, other)}) == 2
    assert constants_of(table) == constants_of(table.copy())


@pytest.fixture
def plugin_callbacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let JAX emit callbacks for the processor as it does for the plugin."""
    install_for_exports()
    monkeypatch.setattr(callbacks, "_platforms", {"cpu"})


def call_in_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of JAX, called by its callers, that calls one of Python."""
    return jax.jit(lambda x: jax.pure_callback(function, jax.ShapeDtypeStruct((3,), jnp.float32), x))


@pytest.mark.usefixtures("plugin_callbacks")
def test_numbers_of_functions_are_none_of_the_program() -> None:
    """Each trace has others. Which calls have the same one is a number."""
    traces = []
    for _ in range(2):
        sine, cosine = call_in_function(np.sin), call_in_function(np.cos)
        traces.append(of(lambda x, f=sine, g=cosine: [f(x), g(x), f(-x)], (3,)))
    first, second = traces
    assert (first["skeleton"], first["numbers"]) == (second["skeleton"], second["numbers"])
    assert len({*first["functions"], *second["functions"]}) == 4
    named = [first["numbers"][number] for number, *_, names_function in first["constants"] if names_function]
    assert named == [0, 1, 0]
    others = [call_in_function(np.sin) for _ in range(3)]
    assert of(lambda x: [f(-x if f is others[2] else x) for f in others], (3,))["numbers"] != first["numbers"]
    assert of(lambda x: x + 1, (3,))["functions"] == []


def test_places_are_where_mlir_has_the_numbers() -> None:
    """Every size of a value of the module is a number, in the place that is told."""
    program = of(lambda x: lax.slice(x, (1, 0), (3, 5)) * 2, (4, 5))
    by_place = {tuple(p): n for p, n in zip(program["places"], program["numbers"], strict=True)}
    ops = program["ops"]
    position = ops.index("slice_v1")
    for name, values in (("start_indices", (1, 0)), ("limit_indices", (3, 5)), ("strides", (1, 1))):
        assert tuple(by_place["attribute", position, name, i, 0] for i in range(2)) == values
    assert [by_place["result", position, 0, i, 0] for i in range(2)] == [2, 5]
    function = ops.index("func_v1")
    assert [by_place["argument", function, 0, i, 0] for i in range(2)] == [4, 5]


@pytest.fixture(scope="module")
def data() -> bytes:
    """A program of some size."""
    return artifact(model, [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((3, 5), (5, 7))])


def attempt(data: bytes) -> bool:
    """Tells whether the bytes can be read. Nothing but a ValueError may come of them."""
    try:
        read_program(data)
    except ValueError:
        return False
    return True


def test_truncated(data: bytes) -> None:
    """No beginning of a program is a program."""
    assert attempt(data)
    assert not any(attempt(data[:length]) for length in range(len(data)))


def test_damaged(data: bytes) -> None:
    """Every byte replaced by each of a few others, tables that refer to themselves among them, and random damage."""
    for place in range(len(data)):
        for value in (0, 1, 3, 0x29, 0x7F, 0x80, 0xFF, data[place] ^ 2, data[place] ^ 0x20):
            attempt(data[:place] + bytes([value]) + data[place + 1 :])
    source = random.Random(0)
    for _ in range(3000):
        damaged = bytearray(data)
        for _ in range(source.randint(1, 6)):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        attempt(bytes(damaged))


def test_no_bytecode() -> None:
    """Text, nothing, and numbers without end."""
    for bad in (b"", b"ML\xefR", b"module {}", b"ML\xefR\x0d" + b"\x00" * 64, b"ML\xefR\x0dx\x00" + b"\xff" * 64):
        assert not attempt(bad)
