# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Artifacts: the file format, its refusals, trust, and what a processor must have."""

from __future__ import annotations

import copy
import random
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from shlo_disc.errors import ArtifactError
from shlo_disc.runtime import Artifact, Client, cpu_features

from .programs import add_one, compile_ir, header

CLIENT = Client(threads=1)


def test_round_trip() -> None:
    original = Artifact.of(add_one().header, add_one().object, bytes(range(200)), b"portable")
    data = original.serialize()
    read = Artifact.deserialize(data)
    assert dict(read.header) == dict(original.header)
    for name in ("object", "constants", "portable"):
        assert bytes(getattr(read, name)) == bytes(getattr(original, name))
    assert read.serialize() == data
    assert read.fingerprint() == original.fingerprint()


def test_native_code_needs_trust() -> None:
    data = add_one().serialize()
    with pytest.raises(ArtifactError, match="trust=True"):
        CLIENT.load(data)
    with pytest.raises(ArtifactError, match="trust=True"):
        CLIENT.load(Artifact.deserialize(data))
    assert (CLIENT.load(data, trust=True)(np.zeros((2, 8), np.float32)) == 1).all()


def test_every_truncation_and_extension_is_refused() -> None:
    data = add_one().serialize()
    for length in [*range(400), *range(400, len(data), 97), len(data) - 1]:
        with pytest.raises(ArtifactError):
            Artifact.deserialize(data[:length])
    with pytest.raises(ArtifactError):
        Artifact.deserialize(data + b"\0")


def refused(data: bytes) -> bool:
    try:
        Artifact.deserialize(data, trust=True)
    except ArtifactError:
        return True
    return False


def test_every_bit_of_the_table_and_ten_thousand_others() -> None:
    data = bytearray(add_one().serialize())
    rng = random.Random(1)
    bits = [*range(8 * 320), *(rng.randrange(8 * len(data)) for _ in range(10_000))]
    for bit in bits:
        data[bit // 8] ^= 1 << bit % 8
        assert refused(bytes(data)), bit
        data[bit // 8] ^= 1 << bit % 8
    assert not refused(bytes(data))


def test_a_header_that_is_not_json() -> None:
    for value in ({1, 2}, float("nan"), object()):
        with pytest.raises(ArtifactError, match="JSON"):
            Artifact.of({"x": value}, b"").serialize()


def test_host_features() -> None:
    """Features that LLVM finds in this processor must be found under Linux's names."""
    features = [name for name, present in llvm.get_host_cpu_features().items() if present]
    assert cpu_features.missing_features(features) == []
    assert cpu_features.missing_features(["+avx2", "-sse4a", "hvx", "3dnowext"]) == ["3dnowext", "hvx"]


def load(**changes: Any) -> Any:
    fields = copy.deepcopy(dict(add_one().header))
    for path, value in changes.items():
        *parents, last = path.split("__")
        target: Any = fields
        for step in parents:
            target = target[int(step) if step.isdigit() else step]
        if value is KeyError:
            del target[last]
        else:
            target[int(last) if last.isdigit() else last] = value
    return CLIENT.load(Artifact.of(fields, add_one().object, bytes(128)))


BAD_HEADERS: list[dict[str, Any]] = [
    {"format": 4},
    {"format": 0},
    {"format": KeyError},
    {"target": KeyError},
    {"target__triple": "aarch64-unknown-linux-gnu"},
    {"target__triple": 3},
    {"target__features": ["avx1024"]},
    {"target__features": "avx2"},
    {"name": KeyError},
    {"name": 3},
    {"symbols": KeyError},
    {"symbols": {}},
    {"symbols__0__solve__argument": 1},
    {"symbols__0__solve__argument": -1},
    {"symbols__0__solve__dim": 2},
    {"symbols__0__solve__scale": 0},
    {"symbols__0__solve__scale": 2**63},
    {"symbols__0__solve": None},
    {"symbols__0__solve__less": 3},
    {"symbols__0__solve__less": [3]},
    {"symbols__0__solve__less": [[]]},
    {"symbols__0__solve__less": [["exponential"]]},
    {"symbols__0__solve__less": [["number"]]},
    {"symbols__0__solve__less": [["number", 1, 2]]},
    {"symbols__0__solve__less": [["number", "1"]]},
    {"symbols__0__solve__less": [["number", 1], ["number", 1]]},
    {"symbols__0__solve__less": [["number", 1], ["add"]]},
    {"symbols__0__solve__less": [["number", 1]] * 65 + [["add"]] * 64},
    {"symbols__0__solve__less": [["symbol", 0]]},
    {"symbols__0__solve__less": [["symbol", -1]]},
    {"symbols__0__solve__less": [["size", 9, 0]]},
    {"symbols__0__solve__less": [["size", 0, 9]]},
    {"symbols__0__solve__less": [["size", -1, 0]]},
    {"symbols__0__min": None},
    {"symbols__0__max": "9"},
    {"arguments": KeyError},
    {"arguments__0__dtype": "c32"},
    {"arguments__0__dtype": 4},
    {"arguments__0__shape": [-1, 8]},
    {"arguments__0__shape": [1.5, 8]},
    {"arguments__0__shape": [None, 8]},
    {"arguments__0__shape": "b"},
    {"arguments__0__path": None},
    {"arguments__0": 3},
    {"results": 3},
    {"results__0__shape": ["b", 8, 3, 2]},
    {"checks__0__operands": [99]},
    {"checks__0__operands": [-1]},
    {"checks__0__message": None},
    {"plan_words": 4},
    {"plan_words": -1},
    {"plan_words": 2**40},
    {"plan_words": "5"},
    {"constants": [{"offset": 64, "bytes": 65}]},
    {"constants": [{"offset": -64, "bytes": 1}]},
    {"constants": [{"offset": 8, "bytes": 1}]},
    {"constants": [{"offset": 2**63 - 1, "bytes": 2**63 - 1}]},
    {"constants": [{"offset": 0, "bytes": -1}]},
    {"entry__plan": "no_such_function"},
    {"entry__run": KeyError},
    {"pytree": {"in": "*"}},
    {"pytree": {"in": {"tuple": [{"tuple": ["*", "*"]}, {"dict": []}]}}},
    {"pytree": {"in": {"tuple": [{"tuple": [{"set": ["*"]}]}, {"dict": []}]}}},
    {"pytree": {"in": {"tuple": [{"tuple": [{"dict": [["a"]]}]}, {"dict": []}]}}},
    {"pytree": {"in": {"tuple": [{"tuple": [{"dict": [[["a"], "*"]]}]}, {"dict": []}]}}},
    {"pytree": {"out": {"namedtuple": {"module": "os", "name": "x y", "fields": ["a"]}, "children": ["*"]}}},
    {"pytree": {"out": {"namedtuple": {"module": "os", "name": "x", "fields": []}, "children": ["*"]}}},
    {"pytree": {"out": 7}},
    {"pytree": []},
    {"pytree": 7},
]


@pytest.mark.parametrize("case", range(len(BAD_HEADERS)))
def test_bad_headers(case: int) -> None:
    changes = BAD_HEADERS[case]
    if changes == {"pytree": []}:
        load(**changes)  # nothing given is the flat tree, in whatever empty form
        return
    with pytest.raises(ArtifactError):
        load(**changes)


def test_a_deep_tree_is_refused() -> None:
    tree: Any = "*"
    for _ in range(5000):
        tree = {"list": [tree]}
    with pytest.raises(ArtifactError, match="too deep"):
        load(pytree={"out": tree})


CONSTANT_IR = """
define i64 @disc_plan(ptr %symbols, ptr %words) {
  store i64 0, ptr %words
  %w1 = getelementptr i64, ptr %words, i64 1
  store i64 16, ptr %w1
  ret i64 0
}
declare ptr @memcpy(ptr, ptr, i64)
define void @disc_run(ptr %rt, ptr %buffers, ptr %words, ptr %arena) {
  %y = load ptr, ptr %buffers
  %cp = getelementptr ptr, ptr %buffers, i64 2
  %c = load ptr, ptr %cp
  %low = ptrtoint ptr %c to i64
  %rest = and i64 %low, 63
  %ok = icmp eq i64 %rest, 0
  br i1 %ok, label %copy, label %exit
copy:
  %u = call ptr @memcpy(ptr %y, ptr %c, i64 16)
  br label %exit
exit:
  ret void
}
"""


@pytest.mark.parametrize("offset", [0, 1, 32])
def test_constants_are_aligned_whatever_the_bytes_are(offset: int) -> None:
    fields = header(
        results=[{"path": "result", "dtype": "u8", "shape": [16]}],
        constants=[{"offset": 0, "bytes": 3}, {"offset": 64, "bytes": 16}],
    )
    backing = bytearray(80 + offset)
    backing[offset + 64 :] = bytes(range(16))
    view = memoryview(backing)[offset:]
    executable = CLIENT.load(Artifact.of(fields, compile_ir(CONSTANT_IR), view))
    assert executable().tolist() == list(range(16))
    data = Artifact.of(fields, compile_ir(CONSTANT_IR), view).serialize()
    assert CLIENT.load(data, trust=True)().tolist() == list(range(16))
