# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The frame of a GPU kernel: a gpu.func over raw pointers and sizes.

    gpu.func @kernel(inputs..., outputs..., sizes...) kernel attributes {known_block_size = [THREADS, 1, 1]}

A pointer is a memref of rank 0, which the conversion to NVVM turns into one plain pointer; the body sees it through a
`memref.reinterpret_cast` with the tensor's sizes.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from shlo_disc.lowering.element_types import element_of, to_memory
from shlo_disc.lowering.elements import Elements, Positions
from shlo_disc.lowering.frame import Frame, OneElement
from shlo_disc.lowering.index_rules import INDEX_RULES
from shlo_disc.lowering_gpu import device_math
from shlo_disc.lowering_gpu.element_loop import ElementLoop
from shlo_disc.lowering_gpu.grid import THREADS
from shlo_disc.lowering_gpu.hopper import map_type
from shlo_disc.lowering_gpu.lanes import Lanes
from shlo_disc.shape_dialect.dialect.types import DYNAMIC, Dims, dims_of
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref
from shlo_disc.shape_dialect.symbolic.expr import Expr

E = TypeVar("E", bound=Elements)


@dataclass
class GpuFrame(Frame):
    """A kernel for GPUs: a gpu.func. `deterministic`: it gives the same bits at each run.

    threads: of a block. maps: how many tensor maps it is told before all else.
    """

    shared: int = 0
    deterministic: bool = False
    partial_buffers: Sequence[ir.Value] = ()
    threads: int = field(default=THREADS, kw_only=True)
    maps: int = field(default=0, kw_only=True)

    def open(self, module: gpu.GPUModuleOp, name: str) -> None:
        """Create the function at the end of `module`."""
        with ir.InsertionPoint(module.regions[0].blocks[0]):
            pointers = [pointer_type(element_of(v.type).memory()) for v in self.tensors]
            types: list[ir.Type] = [*[map_type()] * self.maps, *pointers]
            type_ = ir.FunctionType.get(types, [])
            function = gpu.GPUFuncOp(type_, name, kernel=True, known_block_size=[self.threads, 1, 1])
        self.begin_function(function)
        with ir.InsertionPoint(self.entry):
            buffers = [self.view(p, v) for p, v in zip(self.pointers, self.tensors, strict=True)]
        first, end = len(self.inputs), len(self.inputs) + len(self.outputs)
        self.input_buffers, self.output_buffers, self.partial_buffers = (
            buffers[:first],
            buffers[first:end],
            buffers[end:],
        )

    @property
    def told_maps(self) -> Sequence[ir.Value]:
        """The tensor maps."""
        return list(self.entry.arguments)[: self.maps]

    @property
    def pointers(self) -> Sequence[ir.Value]:
        """The pointers to the tensors."""
        return list(self.entry.arguments)[self.maps : self.maps + len(self.tensors)]

    def close(self) -> None:
        """Fix the function's type, after the body is complete."""
        with ir.InsertionPoint(self.entry):
            gpu.ReturnOp([])
        self.end_function()

    def elements(self) -> Elements:
        """An emitter, one element at a time, that reads this kernel's inputs."""
        return self.elements_of(Elements)

    def elements_of(self, kind: type[E]) -> E:
        """An emitter as `elements`, of a kind of its own."""
        memory = dict(zip(self.inputs, self.input_buffers, strict=True))
        return kind(1, self.facts, self.size_of, device_math, INDEX_RULES, memory)

    def each_element(self, domain: Dims, body: OneElement) -> tuple[Expr, Expr]:
        """One thread computes an element, or several side by side, then those a whole grid further."""
        return ElementLoop(self, domain, body, self.shared_memory).emit()

    def store(
        self, buffer: ir.Value, value: ir.Value, at: Positions, output: ir.Value, elements: Elements, streaming: bool
    ) -> None:
        """One element, or those of all lanes."""
        if isinstance(elements, Lanes):
            elements.store(buffer, value, at, output)
        else:
            memref.store(to_memory(value, element_of(output.type)), buffer, [p.base for p in at])

    def shared_memory(self, length: int, element: ir.Type) -> ir.Value:
        """An uninitialised array in the memory of the block."""
        self.shared += 1
        return shared_array(self.function, self.shared - 1, length, element)

    def view(self, pointer: ir.Value, value: ir.Value) -> ir.Value:
        """The contiguous tensor behind a pointer."""
        dims = dims_of(value)
        if not dims:
            return pointer
        strides = _strides(dims)
        type_ = ir.MemRefType.get(
            [_static(d) for d in dims],
            element_of(value.type).memory(),
            layout=ir.StridedLayoutAttr.get(0, [_static(s) for s in strides]),
            memory_space=_global_space(),
        )
        return memref.ReinterpretCastOp(
            type_,
            pointer,
            [],
            [self.size_of(d) for d in dims if d.constant is None],
            [self._stride(dims, axis) for axis, s in enumerate(strides) if s.constant is None],
            [0],
            [_static(d) for d in dims],
            [_static(s) for s in strides],
        ).result

    def _stride(self, dims: Dims, axis: int) -> ir.Value:
        """The product of the sizes after `axis`."""
        first, *rest = (self.size_of(d) for d in dims[axis + 1 :] if d.constant != 1)
        return functools.reduce(arith.muli, rest, first)


def _strides(dims: Dims) -> list[Expr]:
    strides = [Expr.const(1)]
    for dim in reversed(dims[1:]):
        strides.insert(0, strides[0] * dim)
    return strides


def _static(size: Expr) -> int:
    return DYNAMIC if size.constant is None else size.constant


def _global_space() -> ir.Attribute:
    return ir.Attribute.parse("#gpu.address_space<global>")


def pointer_type(element: ir.Type) -> ir.MemRefType:
    """The type of an argument that points to elements."""
    return ir.MemRefType.get([], element, memory_space=_global_space())


def flat_view(pointer: ir.Value, length: ir.Value) -> ir.Value:
    """So many elements behind a pointer, one after the other."""
    return part_behind(pointer, 0, length)


def part_behind(pointer: ir.Value, start: int, length: ir.Value) -> ir.Value:
    """So many elements, of which the first is number `start` behind a pointer."""
    element, layout = ir.MemRefType(pointer.type).element_type, ir.StridedLayoutAttr.get(start, [1])
    type_ = ir.MemRefType.get([DYNAMIC], element, layout=layout, memory_space=_global_space())
    return memref.ReinterpretCastOp(type_, pointer, [], [length], [], [start], [DYNAMIC], [1]).result


def zeroed_array(function: gpu.GPUFuncOp, name: str, length: int, element: ir.Type) -> ir.Value:
    """An array of a kernel in the memory of the device, which holds zeros when the program is loaded, and what the
    kernel's last launch has left there after that."""
    type_ = ir.MemRefType.get([length], element, memory_space=_global_space())
    name = f"{function.name.value}_{name}"
    with ir.InsertionPoint(function):
        zeros = ir.DenseElementsAttr.get_splat(
            ir.RankedTensorType.get([length], element), ir.IntegerAttr.get(element, 0)
        )
        memref.GlobalOp(name, type_, sym_visibility="private", initial_value=zeros)
    return memref.GetGlobalOp(type_, name).result


def shared_array(function: gpu.GPUFuncOp, number: int, length: int, element: ir.Type) -> ir.Value:
    """An uninitialised array in the memory of the block, at a multiple of 16 bytes; `number` tells a kernel's arrays
    apart."""
    space = ir.Attribute.parse("#gpu.address_space<workgroup>")
    type_ = ir.MemRefType.get([length], element, memory_space=space)
    name = f"{function.name.value}_shared_{number}"
    with ir.InsertionPoint(function):
        initial = ir.UnitAttr.get()
        memref.GlobalOp(name, type_, sym_visibility="private", initial_value=initial, alignment=16)
    return memref.GetGlobalOp(type_, name).result
