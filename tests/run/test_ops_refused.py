# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each op that the table refuses is refused at import, by name, with the table's reason and advice."""

from __future__ import annotations

import pytest

import shlo_disc
from shlo_disc.errors import UnsupportedError
from shlo_disc.shape_dialect.ops import TABLE

REFUSED = sorted(row.name for row in TABLE.values() if not row.lowering)

TENSOR = "tensor<4xf32>"
AFTER_NOTHING = "%t = stablehlo.create_token : !stablehlo.token\n"
CHANNEL = "<{channel_handle = #stablehlo.channel_handle<handle = 1, type = %d>, is_host_transfer = true}>"

PROGRAMS = {
    "infeed": f'{AFTER_NOTHING}%r, %u = "stablehlo.infeed"(%t) : (!stablehlo.token) -> ({TENSOR}, !stablehlo.token)',
    "outfeed": f"""{AFTER_NOTHING}%u = "stablehlo.outfeed"(%x, %t) : ({TENSOR}, !stablehlo.token) -> !stablehlo.token
      %r = stablehlo.negate %x : {TENSOR}""",
    "recv": f"""{AFTER_NOTHING}%r, %u = "stablehlo.recv"(%t) {CHANNEL % 3}
      : (!stablehlo.token) -> ({TENSOR}, !stablehlo.token)""",
    "rng": f"""%n = stablehlo.constant dense<4> : tensor<1xi64>
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %r = stablehlo.rng %z, %z, %n, distribution = NORMAL : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> {TENSOR}""",
    "send": f"""{AFTER_NOTHING}%u = "stablehlo.send"(%x, %t) {CHANNEL % 2}
      : ({TENSOR}, !stablehlo.token) -> !stablehlo.token
      %r = stablehlo.negate %x : {TENSOR}""",
    "set_dimension_size": f"""%n = stablehlo.constant dense<2> : tensor<i32>
      %s = stablehlo.set_dimension_size %x, %n, dim = 0
        : ({TENSOR}, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<4>>
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %q = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [0]
        : (tensor<?xf32, #stablehlo.bounds<4>>, tensor<f32>) -> tensor<f32>
      %r = stablehlo.broadcast_in_dim %q, dims = [] : (tensor<f32>) -> {TENSOR}""",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_op(name: str) -> None:
    body = PROGRAMS[name.removeprefix("stablehlo.")]
    with pytest.raises(UnsupportedError) as caught:
        shlo_disc.compile(f"func.func @main(%x: {TENSOR}) -> {TENSOR} {{\n{body}\nreturn %r : {TENSOR} }}")
    row = TABLE[name]
    found = {(c.reason, c.suggestion) for c in caught.value.constructs if c.op == name}
    assert found == {(row.reason, row.instead)}
    assert row.reason in str(caught.value)
