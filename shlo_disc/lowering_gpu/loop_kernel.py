# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loop kernels: one thread computes one element of each output, then the one a whole grid further."""

from __future__ import annotations

from shlo_disc.lowering.element_types import element_of, to_memory
from shlo_disc.lowering.elements import uniform
from shlo_disc.lowering.kernels import delinearize, output_positions
from shlo_disc.lowering_gpu.kernel import Frame, each_thread
from shlo_disc.mlir import ir, memref
from shlo_disc.shape_dialect.dialect.types import dims_of, product
from shlo_disc.shape_dialect.symbolic.expr import Expr


def build_loop(frame: Frame) -> Expr:
    """Emit the body; returns the number of elements."""
    domain = dims_of(frame.outputs[0])
    elements = frame.elements()

    def element(linear: ir.Value) -> None:
        """All outputs are computed before any is written, so that an output may take over an input's buffer."""
        with elements.scope():
            positions = uniform(delinearize(linear, domain, frame.size_of))
            places = [output_positions(v, positions, domain) for v in frame.outputs]
            values = [elements.at(v, p) for v, p in zip(frame.outputs, places, strict=True)]
        for value, place, output, buffer in zip(values, places, frame.outputs, frame.output_buffers, strict=True):
            memref.store(to_memory(value, element_of(output.type)), buffer, [p.base for p in place])

    total = product(domain)
    each_thread(frame.size_of(total), element)
    return total
