# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of products whose right side is a weight of narrow integers or floats, in the emulator.

All rows of the left side but the last have one element that is not 0, a 1: so their results are elements of the weight,
which have to be those of NumPy to the last bit.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from shlo_disc.lowering.codegen import compile_to_ptx
from shlo_disc.lowering.element_types import Element
from shlo_disc.lowering_gpu import lower_to_nvvm, nvvm_to_llvm_ir
from shlo_disc.lowering_gpu.narrow_slices import BytesOfSlice
from shlo_disc.lowering_gpu.narrow_weight import NarrowWeight, Parameter
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.lowering_gpu.product_form import ProductForm
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.utils.product_tiles import tile_sums
from tests.gpu.sass import read
from tests.gpu.test_sass import needs_tools
from tests.ir.gpu_emulator import Emulator
from tests.ir.gpu_mutations import without
from tests.ir.test_gpu_products import DTYPES, TARGETS, emulated, flat, kernels, problem_of, tiles_of

FLOATS_OF_8_BITS = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2}
HALVES = ("", "near", "far")


@dataclass(frozen=True)
class Weight:
    """A weight: its elements, whether neighbours are along the depth, which rows share a byte, and how many a scale.

    scale, zero: the types of tensors of them, or numbers. A type of "same" is that of the product.
    """

    code: str
    by_columns: bool = False
    half: str = ""
    group: int = 0
    scale: str | float = "same"
    zero: str | float = 0.0
    rounding: str = "same"

    def form(self, element: str, k: int, n: int) -> NarrowWeight:
        """The weight of a product of an element type."""
        group = self.group or k

        def parameter(told: str | float) -> Parameter:
            if not isinstance(told, str):
                return Parameter(told)
            name = element if told == "same" else told
            if group == k:
                return Parameter(0, Element(name), 0, 1)
            return Parameter(0, Element(name), *((1, k // group) if self.by_columns else (n, 1)))

        half = {"": 0, "near": 1, "far": k // 2}[self.half]
        rounding = element if self.rounding == "same" else self.rounding
        if self.scale == 1.0:
            rounding = "f32"
        scale, zero = parameter(self.scale), parameter(self.zero)
        return NarrowWeight(Element(self.code), k, n, self.by_columns, half, group, scale, zero, Element(rounding))

    @property
    def name(self) -> str:
        """The name of a test."""
        parts = (self.code, self.half, "T" if self.by_columns else "", self.group or "", self.scale, self.zero)
        return "_".join(str(part) for part in parts if part not in ("", 0.0, "same"))


WEIGHTS = (
    Weight("i8"), Weight("i8", True), Weight("ui8", scale=0.125), Weight("i8", scale=1.0),
    Weight("ui8", True, scale=1.0),
    Weight("i8", group=16), Weight("ui8", True, group=16), Weight("ui8", True, group=8, zero="ui8"),
    Weight("i8", group=24, zero="i8"), Weight("ui8", zero="f32", scale="f32"), Weight("ui8", zero=7.0),
    Weight("ui8", True, zero=2.5, scale="f32"), Weight("i8", zero="i32", scale=1.0),
    Weight("i4"), Weight("ui4", True, group=16),
    Weight("ui4", half="near", zero=8.0), Weight("i4", half="near", group=16), Weight("i4", True, "near", group=16),
    Weight("ui4", True, "near", group=32, zero="ui8"), Weight("ui4", True, "near", zero=8.0, scale=1.0),
    Weight("ui4", half="far"), Weight("i4", True, "far", group=16), Weight("ui4", half="far", zero=8.0, group=16),
    Weight("f8E4M3FN"), Weight("f8E4M3FN", True, group=16), Weight("f8E5M2", scale=1.0), Weight("f8E5M2", True),
    Weight("i8", scale="f32"), Weight("ui4", True, "near", group=16, scale="f32"),
)  # fmt: skip


@dataclass(frozen=True)
class Arrays:
    """The bytes, scales and zero points of a weight, and what they are as f32."""

    buffers: list[np.ndarray]
    elements: np.ndarray


def arrays_of(weight: NarrowWeight, element: str, seed: int = 0) -> Arrays:
    """Random ones. Floats of 8 bits are finite."""
    k, n = weight.rows, weight.columns
    rng = np.random.default_rng([seed, k, n])
    data = rng.integers(0, 256, (weight.byte_rows, n), np.uint8)
    if weight.code.is_float:
        data = rng.standard_normal(data.shape).astype(FLOATS_OF_8_BITS[weight.code.name]).view(np.uint8)
    elements = decoded(weight, data)
    buffers = [np.ascontiguousarray(data.T if weight.by_columns else data)]
    groups = np.arange(k) // weight.group
    parameters = []
    for told, otherwise in ((weight.scale, 1.0), (weight.zero, 0.0)):
        if told.element is None:
            parameters.append(np.float32(told.number if told.number != otherwise else otherwise))
            continue
        dtype = DTYPES[told.element.name]
        count = (k // weight.group - 1) * told.of_group + (n - 1) * told.of_column + 1
        array = rng.integers(0, 100, count).astype(dtype)
        if told.element.is_float:
            array = rng.uniform(0.5, 1.5, count).astype(dtype)
        buffers.append(array)
        places = groups[:, None] * told.of_group + np.arange(n)[None] * told.of_column
        parameters.append(array[places].astype(np.float32))
    scale, zero = parameters
    rounded = ((elements - zero) * scale).astype(DTYPES[weight.rounding.name]).astype(np.float32)
    return Arrays(buffers, rounded)


def decoded(weight: NarrowWeight, data: np.ndarray) -> np.ndarray:
    """The elements of bytes (rows, columns), as f32."""
    if weight.half:
        low, high = data & 15, data >> 4
        data = np.stack([low, high], 1).reshape(-1, data.shape[1]) if weight.half == 1 else np.concatenate([low, high])
    code = weight.code
    if code.is_float:
        return data.view(FLOATS_OF_8_BITS[code.name]).astype(np.float32)
    data = data & ((1 << code.bits) - 1)
    sign = 0 if code.is_unsigned else 1 << (code.bits - 1)
    return (data.astype(np.int32) ^ sign).astype(np.float32) - np.float32(sign)


def shifted(array: np.ndarray) -> np.ndarray:
    """The same elements, from the second one of a buffer on."""
    memory = np.zeros(array.size + 1, array.dtype)
    memory[1:] = array.ravel()
    return memory[1:].reshape(array.shape)


def run(
    weight: Weight,
    element: str,
    sizes: tuple[int, int, int],
    parts: int = 0,
    precision: str = "full",
    blocks: int | None = None,
    move: Callable[[np.ndarray], np.ndarray] = np.ascontiguousarray,
) -> None:
    """The kernel gives NumPy's numbers, and writes nothing else. `move`: gives buffers other addresses."""
    m, k, n = sizes
    narrow = weight.form(element, k, n)
    found = arrays_of(narrow, element)
    rng = np.random.default_rng(m)
    dtype = DTYPES[element]
    lhs = np.zeros((m, k), dtype)
    chosen = rng.integers(0, k, m)
    chosen[: m // 2] = k - 1 - chosen[: m // 2] % min(k, 5)
    lhs[np.arange(m), chosen] = 1
    lhs[-1] = rng.integers(-2, 3, k)
    lhs = move(lhs)
    memory = np.full((m, n + 3), 77, np.float32)
    result = memory[:, :n]
    rhs = np.empty((n, k), dtype).T if weight.by_columns else np.empty((k, n), dtype)
    problem = problem_of(element, lhs, rhs, result)
    layout = "nk" if weight.by_columns else "kn"
    form = ProductForm(Element(element), "mk", layout, 0, False, precision, parts > 0, narrow)
    context, emulator = emulated(form)
    numbers = [number.constant for number in problem.numbers]
    buffers = [_bytes(lhs), *(_bytes(move(b)) for b in found.buffers), flat(result)]
    tiles = tiles_of(problem).constant
    if parts:
        buffers.append(np.full(tiles * parts * tile_sums(GPU_POLICY), np.nan, np.float32))
        numbers, tiles = [*numbers, parts], tiles * parts
    with context, ir.Location.unknown():
        emulator.launch(form.name, blocks or tiles, buffers, numbers)
    wanted = lhs.astype(np.float64) @ found.elements.astype(np.float64)
    magnitude = np.abs(lhs.astype(np.float64)) @ np.abs(found.elements).astype(np.float64)
    error = {"full": 2.0**-22, "tf32x3": 2.0**-20, "tf32": 2.0**-10}[precision]
    if precision == "full":
        np.testing.assert_array_equal(result[:-1], wanted[:-1].astype(np.float32))
    assert (np.abs(result - wanted) <= error * magnitude).all()
    assert (memory[:, n:] == 77).all()


def _bytes(array: np.ndarray) -> np.ndarray:
    """The memory of a buffer as kernels see it."""
    memory = array.reshape(-1)
    return memory.view(f"i{memory.itemsize}") if memory.dtype.kind == "u" else memory


ELEMENTS = ("bf16", "f16", "f32")
NAMES = [weight.name for weight in WEIGHTS]


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("weight", WEIGHTS, ids=NAMES)
@pytest.mark.slow
def test_pieces(weight: Weight, element: str) -> None:
    """Sizes of whole pieces: a row, a tile of few rows, and one row more; more columns than a tile, half of a slice."""
    for m in (1, 3, 16, 17):
        run(weight, element, (m, 96, 144))


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("weight", WEIGHTS, ids=NAMES)
def test_elements_one_by_one(weight: Weight, element: str) -> None:
    """Columns, or a depth, that are no multiples of 16; and addresses that are none."""
    for m in (2, 16, 18):
        run(weight, element, (m, 96, 144), move=shifted)
    if not weight.group:
        run(weight, element, (3, 38, 21))
        run(weight, element, (17, 2, 1))
    if not weight.half and not weight.group:
        run(weight, element, (5, 1, 5))
        run(weight, element, (2, 33, 130))


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("weight", [WEIGHTS[i] for i in (0, 1, 7, 11, 16, 18, 20, 24)], ids=lambda w: w.name)
def test_parts_of_the_depth(weight: Weight, element: str) -> None:
    run(weight, element, (2, 192, 48), parts=3)
    run(weight, element, (18, 192, 48), parts=2, blocks=3)
    run(weight, element, (3, 96, 48), parts=4, move=shifted)


@pytest.mark.parametrize("precision", ["tf32", "tf32x3"])
@pytest.mark.parametrize("weight", [WEIGHTS[i] for i in (0, 7, 17)], ids=lambda w: w.name)
def test_precisions_of_f32(weight: Weight, precision: str) -> None:
    for m in (3, 18):
        run(weight, "f32", (m, 96, 48), precision=precision)
        run(weight, "f32", (m, 96, 24), precision=precision, parts=2)


def test_more_rows_than_a_tile() -> None:
    """Compute all rows by the kernel, as where no library is installed."""
    run(WEIGHTS[0], "bf16", (130, 96, 48))
    run(WEIGHTS[17], "f32", (66, 96, 48))


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("columns", [256, 257])
@pytest.mark.parametrize("code", FLOATS_OF_8_BITS)
def test_all_floats_of_8_bits(code: str, columns: int, by_columns: bool) -> None:
    """Infinities and NaNs as well, by pieces and one by one."""
    k, n = 16, columns
    weight = Weight(code, by_columns, scale=1.0).form("bf16", k, n)
    data = np.zeros((k, n), np.uint8)
    data[3] = np.arange(n) % 256
    lhs, result = np.zeros((1, k), np.float32), np.zeros((1, n), np.float32)
    lhs[0, 3] = 1
    bits = lhs.astype(ml_dtypes.bfloat16)
    rhs = np.empty((n, k), bits.dtype).T if by_columns else np.empty((k, n), bits.dtype)
    problem = problem_of("bf16", bits, rhs, result)
    form = ProductForm(Element("bf16"), "mk", "nk" if by_columns else "kn", 0, narrow=weight)
    context, emulator = emulated(form)
    with context, ir.Location.unknown():
        buffers = [flat(bits), _bytes(np.ascontiguousarray(data.T if by_columns else data)), flat(result)]
        emulator.launch(form.name, 3, buffers, [number.constant for number in problem.numbers])
    np.testing.assert_array_equal(result[0], data[3].view(FLOATS_OF_8_BITS[code]).astype(np.float32))


@pytest.mark.parametrize(
    ("weight", "sizes", "are_pieces"),
    [
        (Weight("i8"), (3, 48), True), (Weight("i8"), (48, 40), False), (Weight("i8", True), (48, 5), True),
        (Weight("i8", True), (40, 48), False), (Weight("i8", True, group=8), (48, 48), False),
        (Weight("i8", group=8), (48, 48), True), (Weight("i4", True, "near"), (32, 3), True),
        (Weight("i4", True, "near"), (48, 3), False), (Weight("i4", half="far"), (128, 16), True),
        (Weight("i4", half="far"), (96, 16), False),
    ],
)  # fmt: skip
def test_which_weights_are_read_by_pieces(weight: Weight, sizes: tuple[int, int], are_pieces: bool) -> None:
    assert BytesOfSlice(weight.form("bf16", *sizes), 32, 128).are_pieces == are_pieces


@pytest.mark.parametrize(("element", "m"), [("bf16", 3), ("bf16", 20), ("f32", 3)])
@pytest.mark.parametrize("aligned", [True, False])
def test_no_barrier_can_be_left_out(element: str, m: int, aligned: bool) -> None:
    """Before a slice of elements is written, behind that, and behind a tile, whose last slice is in the first stage."""
    k, n = 144, 256
    weight = Weight("i8", scale=1.0).form(element, k, n)
    form = ProductForm(Element(element), "mk", "kn", 0, narrow=weight)
    lhs, result = np.ones((m, k), DTYPES[element]), np.zeros((m, n), np.float32)
    numbers = [number.constant for number in problem_of(element, lhs, np.empty((k, n), lhs.dtype), result).numbers]
    data = np.ones(k * n, np.int8)
    buffers = [flat(lhs), data if aligned else shifted(data), flat(result)]
    with make_context(), ir.Location.unknown():
        text = str(kernels(form))
        found = 0
        for number in range(text.count("gpu.barrier")):
            wrong = without(r"gpu\.barrier", number)(text)
            try:
                Emulator(ir.Module.parse(wrong)).launch(form.name, 1, buffers, numbers)
            except AssertionError as error:
                assert "two threads touch one element" in str(error)
                found += 1
    assert found == 3


def test_permutations_of_bytes() -> None:
    """The last operand of an instruction says which bytes are chosen; the emulator would not find another order."""
    pattern, chosen = r"prmt\.b32\s+(\S+), (\S+), (\S+), (\S+);", {}
    for weight in (Weight("i8"), Weight("i4", True, "near")):
        with make_context(), ir.Location.unknown():
            text = nvvm_to_llvm_ir(lower_to_nvvm(kernels(_form(weight, "bf16"))))
        chosen[weight.half] = {found[1:] for found in re.findall(pattern, compile_to_ptx(text, "sm_80", 3))}
    bits = str(0x4B000000)
    assert {(base, numbers) for low, base, numbers in chosen[""] if low.startswith("%r") and base == bits} == {
        (bits, f"0x744{byte}U") for byte in range(4)
    }
    assert {f"0x{byte + 4}{byte + 4}{byte}{byte}U" for byte in range(4)} <= {numbers for *_, numbers in chosen["near"]}


@needs_tools
@pytest.mark.ptxas
@pytest.mark.parametrize("target", TARGETS)
def test_machine_code(target: str) -> None:
    """No local memory; few enough registers for two blocks of a multiprocessor; two elements of 16 bits at a time."""
    forms = [_form(weight, element) for element in ("bf16", "f32") for weight in OF_CODE]
    forms += [replace(_form(OF_CODE[0], "f32"), precision=precision) for precision in ("tf32", "tf32x3")]
    with make_context(), ir.Location.unknown():
        text = nvvm_to_llvm_ir(lower_to_nvvm(kernels(*forms)))
    found = {name: (usage, machine) for name, _, usage, machine in read(compile_to_ptx(text, target[5:], 3))}
    for form in forms:
        usage, machine = found[form.name]
        assert usage.spills == 0 and machine.count("LDL", "STL") == 0, form.name
        assert usage.registers <= 128, (form.name, usage)
        assert 128 in machine.widths("STS"), (form.name, machine.widths("STS"))
        if form.element.name == "bf16" and form.narrow is not None and form.narrow.half:
            assert machine.count("HFMA2", "HMUL2"), form.name


OF_CODE = (
    Weight("i8"), Weight("ui8", True, group=128, zero="ui8"), Weight("ui4", half="near", group=128, zero=8.0),
    Weight("i4", True, "near", group=128), Weight("ui4", half="far"), Weight("f8E4M3FN", True),
)  # fmt: skip


def _form(weight: Weight, element: str) -> ProductForm:
    narrow: Any = weight.form(element, 4096, 11008)
    return ProductForm(Element(element), "mk", "nk" if weight.by_columns else "kn", 0, splits=True, narrow=narrow)
