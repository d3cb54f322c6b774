# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of matrix products, in the emulator, which looks for races and accesses outside of a matrix as well."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from shlo_disc.driver.compiler import import_stage, run_pipeline
from shlo_disc.lowering.codegen import compile_to_ptx
from shlo_disc.lowering.element_types import Element
from shlo_disc.lowering_gpu import lower_to_nvvm, nvvm_to_llvm_ir
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.lowering_gpu.product_block import FORMATS
from shlo_disc.lowering_gpu.product_form import ProductForm
from shlo_disc.lowering_gpu.product_kernel import build_product
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.dialect.host import PRECISIONS
from shlo_disc.shape_dialect.dialect.problems import Axis, MatrixProduct
from shlo_disc.shape_dialect.mlir import gpu, ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.product_tiles import product_tiles, tile_sums
from shlo_disc.transforms.simplify.dot import SUM_TYPES
from tests.gpu.sass import read
from tests.gpu.test_sass import needs_tools
from tests.ir.gpu_cases import EXACT, TARGETS, launches_of
from tests.ir.gpu_emulator import Emulator
from tests.ir.gpu_mutations import without

SIZES = (
    (1, 1, 1), (15, 17, 16), (16, 16, 17), (17, 15, 1), (64, 63, 15), (63, 65, 33), (65, 64, 16), (1, 130, 64),
    (130, 1, 63), (130, 70, 20), (0, 5, 3), (5, 0, 3), (5, 3, 0),
)  # fmt: skip
NARROW = PRECISIONS[1:]
LAYOUTS = tuple(itertools.product(("mk", "km"), ("kn", "nk")))
Build = Callable[[gpu.GPUModuleOp, ProductForm], object]
DTYPES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8,
          "i32": np.int32, "ui8": np.uint8, "ui32": np.uint32}  # fmt: skip


def kernels(*forms: ProductForm, build: Build = build_product) -> ir.Module:
    """A module of kernels; the context has to be the current one."""
    module = ir.Module.create()
    module.operation.attributes["gpu.container_module"] = ir.UnitAttr.get()
    module.context.get_dialect_descriptor("gpu")
    with ir.InsertionPoint(module.body):
        device = gpu.GPUModuleOp("kernels")
        device.regions[0].blocks.append()
    for form in forms:
        build(device, form)
    assert module.operation.verify()
    return module


def emulator_of(form: ProductForm, build: Build = build_product) -> tuple[Any, Emulator]:
    """A kernel, and the context that it lives in."""
    context = make_context()
    with context, ir.Location.unknown():
        return context, Emulator(kernels(form, build=build))


emulated = functools.cache(emulator_of)


def problem_of(element: str, lhs: np.ndarray, rhs: np.ndarray, result: np.ndarray) -> MatrixProduct:
    """The product of stacks of matrices [batch..., m, k], [batch..., k, n] and [batch..., m, n]."""

    def axis(size: int, *strides: tuple[np.ndarray, int] | None) -> Axis:
        steps = (0 if s is None else s[0].strides[s[1]] // s[0].itemsize for s in strides)
        return Axis(Expr.const(size), *map(Expr.const, steps))

    m = axis(lhs.shape[-2], (lhs, -2), None, (result, -2))
    n = axis(rhs.shape[-1], None, (rhs, -1), (result, -1))
    k = axis(lhs.shape[-1], (lhs, -1), (rhs, -2), None)
    rank = lhs.ndim - 2
    batch = tuple(axis(lhs.shape[i], (lhs, i), (rhs, i), (result, i)) for i in range(rank))
    return MatrixProduct(element, 0, 1, batch, m, n, k)


def stack(
    text: str, batch: tuple[int, ...], axes: str, sizes: dict[str, int], dtype: Any, seed: int, hole: int = 3
) -> np.ndarray:
    """Random matrices [batch..., text] that lie in memory as `axes` says, with a hole behind each row; bytes of any
    value."""
    shape = [sizes[name] for name in axes]
    kind = np.dtype(dtype)
    low, high = (kind.kind != "u") * -4, 4
    if kind.itemsize == 1:
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
    random = np.random.default_rng([seed, *shape]).integers(low, high + 1, (*batch, shape[0], shape[1] + hole))
    memory = random.astype(dtype)
    matrices = memory[..., : shape[1]]
    return matrices if text == axes else matrices.swapaxes(-1, -2)


def tiles_of(problem: MatrixProduct) -> Expr:
    """The blocks of a launch whose blocks have all of the depth."""
    return product_tiles(problem, GPU_POLICY)


def flat(array: np.ndarray) -> np.ndarray:
    """The memory that an array is a view of, as kernels see it."""
    base = array if array.base is None else array.base
    memory = base.reshape(-1)
    return memory.view(f"i{memory.itemsize}") if memory.dtype.kind == "u" else memory


def run(
    element: str,
    lhs_axes: str,
    rhs_axes: str,
    sizes: tuple[int, int, int],
    batch: tuple[int, ...] = (),
    hole: int = 3,
    rounded: bool = False,
    precision: str = "full",
    parts: int = 0,
) -> None:
    """The kernel gives NumPy's numbers, and writes nothing else. parts: of the depth, in scratch memory of just as many
    sums; blocks come in the order of their numbers, and the launch is repeated."""
    named = dict(zip("mnk", sizes, strict=True))
    lhs = stack("mk", batch, lhs_axes, named, DTYPES[element], 0, hole)
    rhs = stack("kn", batch, rhs_axes, named, DTYPES[element], 1, hole)
    memory = np.full((*batch, named["m"], named["n"] + 3), 77, DTYPES[element if rounded else SUM_TYPES[element]])
    result = memory[..., : named["n"]]
    problem = problem_of(element, lhs, rhs, result)
    form = ProductForm(Element(element), lhs_axes, rhs_axes, len(batch), rounded, precision, parts > 0)
    context, emulator = emulated(form)
    numbers = [number.constant for number in problem.numbers]
    buffers, blocks = [flat(lhs), flat(rhs), flat(result)], tiles_of(problem).constant
    if parts:
        tiles = tiles_of(problem).constant
        room = np.full(tiles * parts * tile_sums(GPU_POLICY), 77, DTYPES[SUM_TYPES[element]])
        buffers, numbers, blocks = [*buffers, flat(room)], [*numbers, parts], max(tiles * parts, 1)
    wide = np.float64 if element[0] in "fb" else np.int64
    for _ in range(2 if parts else 1):
        with context, ir.Location.unknown():
            emulator.launch(form.name, blocks, buffers, numbers)
        np.testing.assert_array_equal(result, (lhs.astype(wide) @ rhs.astype(wide)).astype(memory.dtype))
        assert (memory[..., named["n"] :] == 77).all()
        result[...] = 55


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_sizes(sizes: tuple[int, int, int]) -> None:
    run("f32", "mk", "kn", sizes)


@pytest.mark.parametrize("precision", NARROW)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_sizes_by_tf32(sizes: tuple[int, int, int], precision: str) -> None:
    """Small whole numbers are numbers of TF32, so that every product and sum is exact."""
    run("f32", "mk", "kn", sizes, precision=precision)


@pytest.mark.parametrize("precision", NARROW)
def test_layouts_by_tf32(precision: str) -> None:
    for layout in LAYOUTS:
        run("f32", *layout, (17, 33, 19), (2,), precision=precision)


@pytest.mark.parametrize("layout", LAYOUTS, ids="_".join)
@pytest.mark.parametrize("element", SUM_TYPES)
def test_types_and_layouts(element: str, layout: tuple[str, str]) -> None:
    run(element, *layout, (17, 33, 19))


@pytest.mark.parametrize("batch", [(0,), (1,), (3,), (2, 3), (2, 1, 2, 2)], ids=str)
def test_batches(batch: tuple[int, ...]) -> None:
    run("f32", "mk", "nk", (5, 7, 18), batch)
    run("f32", "km", "kn", (3, 2, 4), batch)


def test_tiles_over_a_batch() -> None:
    run("f32", "km", "kn", (66, 70, 3), (2,))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_any_number_of_blocks(precision: str) -> None:
    """The loop over tiles has a stride; a block that goes on does not spoil what its threads still read."""
    form = ProductForm(Element("f32"), "mk", "kn", 0, precision=precision)
    context, emulator = emulated(form)
    lhs, rhs = (np.random.default_rng(0).integers(0, 5, shape).astype(np.float32) for shape in ((70, 5), (5, 130)))
    result = np.zeros((70, 130), np.float32)
    numbers = [number.constant for number in problem_of("f32", lhs, rhs, result).numbers]
    with context, ir.Location.unknown():
        emulator.launch(form.name, 1, [flat(lhs), flat(rhs), flat(result)], numbers)
    np.testing.assert_array_equal(result, lhs @ rhs)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_what_is_beyond_the_end_of_k_counts_for_nothing(precision: str) -> None:
    """Neighbours in memory of the last elements along k may be anything."""
    form = ProductForm(Element("f32"), "mk", "kn", 0, precision=precision)
    context, emulator = emulated(form)
    lhs, rhs = np.full((4, 6), np.inf, np.float32), np.full((6, 4), np.nan, np.float32)
    lhs[:, :3], rhs[:3] = 2, 3
    result = np.zeros((4, 4), np.float32)
    numbers = [number.constant for number in problem_of("f32", lhs[:, :3], rhs[:3], result).numbers]
    with context, ir.Location.unknown():
        emulator.launch(form.name, 1, [flat(lhs), flat(rhs), flat(result)], numbers)
    np.testing.assert_array_equal(result, 18)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    ("barrier", "rows", "columns"), [(0, 20, 20), (1, 20, 20), (2, 3, 132), (3, 3, 132), (4, 3, 131), (5, 3, 131)]
)
def test_no_barrier_can_be_left_out(barrier: int, rows: int, columns: int, precision: str) -> None:
    """Two in a step of square tiles; of few rows, by copies and by elements, one in a step and one behind a tile."""
    form = ProductForm(Element("f32"), "mk", "kn", 0, precision=precision)
    with make_context(), ir.Location.unknown():
        text = str(kernels(form))
        lhs, rhs = np.ones((rows, 80), np.float32), np.ones((80, columns), np.float32)
        result = np.zeros((rows, columns), np.float32)
        numbers = [number.constant for number in problem_of("f32", lhs, rhs, result).numbers]
        wrong = without(r"gpu\.barrier", barrier, {r"gpu\.barrier": 6})(text)
        with pytest.raises(AssertionError, match="two threads touch one element"):
            Emulator(ir.Module.parse(wrong)).launch(form.name, 1, [flat(lhs), flat(rhs), flat(result)], numbers)


# ---- precision ------------------------------------------------------------------------------------------------------


def product_of(precision: str, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """The product of two matrices of f32 by a kernel of a precision."""
    form = ProductForm(Element("f32"), "mk", "kn", 0, precision=precision)
    context, emulator = emulated(form)
    result = np.zeros((len(lhs), rhs.shape[1]), np.float32)
    problem = problem_of("f32", lhs, rhs, result)
    numbers = [number.constant for number in problem.numbers]
    with context, ir.Location.unknown():
        emulator.launch(form.name, tiles_of(problem).constant, [flat(lhs), flat(rhs), flat(result)], numbers)
    return result


@pytest.mark.parametrize("rows", [9, 20])
@pytest.mark.parametrize("k", [1, 15, 16, 17, 97])
def test_errors(k: int, rows: int) -> None:
    """TF32 has errors of 2^-11 of each factor and no fewer; three products of it come close to f32."""
    random = np.random.default_rng(k)
    lhs, rhs = (random.standard_normal(shape).astype(np.float32) for shape in ((rows, k), (k, 10)))
    wanted = lhs.astype(np.float64) @ rhs
    magnitude = np.abs(lhs).astype(np.float64) @ np.abs(rhs)
    errors = {p: np.max(np.abs(product_of(p, lhs, rhs) - wanted) / magnitude) for p in PRECISIONS}
    assert 2**-15 < errors["tf32"] <= 2**-10 + 2**-18
    assert errors["tf32x3"] <= 2**-20 and errors["full"] <= 2**-20


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_what_is_not_finite(precision: str, times: int) -> None:
    """Infinities, NaNs whose payload is in the lower bits, and a number that TF32 would round to infinity."""
    odd, most = np.array([0x7F800001, 0x7F7FF000], np.uint32).view(np.float32)
    near = np.float32(1 + 2**-20)
    lhs = np.array([[np.inf, 1], [-np.inf, near], [odd, 1], [most, 0], [2**-120, 0], [0, np.inf]], np.float32)
    lhs = np.tile(lhs, (times, 1))
    rhs = np.array([[1, -near, 0], [1, near, 1]], np.float32)
    found = product_of(precision, lhs, rhs)
    with np.errstate(invalid="ignore", over="ignore"):
        wanted = (lhs.astype(np.float64) @ rhs).astype(np.float32)
    np.testing.assert_allclose(found, wanted, rtol=2**-10)


# ---- in programs ----------------------------------------------------------------------------------------------------


def host_stage(function: Any, *arguments: tuple[str, str]) -> Any:
    start = import_stage(function, TARGETS[0], EXACT, arguments, None, ())
    return run_pipeline(start, "host")


def test_products_of_a_form_share_a_kernel() -> None:
    def twice(x: Any, w: Any, v: Any) -> Any:
        return 2 * jax.nn.softmax(x @ w) @ v  # which is no attention

    launches = launches_of(host_stage(twice, ("b, 4", "float32"), ("4, 300", "float32"), ("300, n", "float32")))
    products = [one for one in launches if one.kind == "dot"]
    assert [one.name for one in products] == ["product_f32_mk_kn"] * 2
    assert [str(size) for size in products[0].sizes] == ["b", "300", "4", "4", "1", "300", "1", "300"]
    assert products[0].blocks.evaluate({"b": 65, "n": 200}) == 2 * 5


@pytest.mark.parametrize(
    ("equation", "shapes", "name"),
    [
        ("mk,kn->mn", ("m, k", "k, n"), "product_f32_mk_kn_in_parts"),
        ("mk,nk->mn", ("m, k", "n, k"), "product_f32_mk_nk_in_parts"),
        ("km,kn->mn", ("k, m", "k, n"), "product_f32_km_kn_in_parts"),
        ("mk,kn->nm", ("m, k", "k, n"), "product_f32_km_nk_in_parts"),
        ("bmk,bkn->bmn", ("b, m, k", "b, k, n"), "product_f32_bmk_bkn_in_parts"),
        ("bmhk,bnhk->bhmn", ("b, m, 3, k", "b, n, 3, k"), "product_f32_bbmk_bbnk_in_parts"),
    ],
)
def test_forms(equation: str, shapes: tuple[str, ...], name: str) -> None:
    """A result in columns is one in rows with its sides exchanged."""
    arguments = [(shape, "float32") for shape in shapes]
    launches = launches_of(host_stage(functools.partial(jnp.einsum, equation), *arguments))
    assert [one.name for one in launches if one.kind == "dot"] == [name]


# ---- machine code ---------------------------------------------------------------------------------------------------

FORMS = (
    *(ProductForm(Element("f32"), *layout, 1, precision=precision) for layout in LAYOUTS for precision in NARROW),
    *(ProductForm(Element(element), *layout, batch)
    for element, layout, batch in [
        *((element, ("mk", "kn"), 0) for element in SUM_TYPES if element[-2:] in ("32", "64")),
        *(("f32", layout, 1) for layout in LAYOUTS),
        ("i32", ("mk", "nk"), 2), ("f32", ("mk", "kn"), 4),
    ]),
    *(ProductForm(Element("f32"), *layout, 0, precision=precision, splits=True)
    for layout in LAYOUTS for precision in PRECISIONS),
    *(ProductForm(Element(element), "mk", "nk", 1, splits=True) for element in ("f64", "i32", "ui32")),
)  # fmt: skip


@needs_tools
@pytest.mark.ptxas
@pytest.mark.parametrize("target", TARGETS)
def test_machine_code(target: str) -> None:
    """No local memory; few enough registers for two blocks of a multiprocessor; factors are read four at a time."""
    with make_context(), ir.Location.unknown():
        text = nvvm_to_llvm_ir(lower_to_nvvm(kernels(*FORMS)))
    found = {name: (usage, machine) for name, _, usage, machine in read(compile_to_ptx(text, target[5:], 3))}
    assert found.keys() == {form.name for form in FORMS}
    for name, (usage, machine) in found.items():
        assert usage.spills == 0 and machine.count("LDL", "STL") == 0, name
        assert usage.registers <= 128, (name, usage)
        if "tf32" in name:
            assert machine.count("HMMA") and not machine.count("FFMA"), name
        else:
            assert 128 in machine.widths("LDS"), (name, machine.widths("LDS"))


def test_every_type_of_sums_has_a_format() -> None:
    assert {element for element, _ in FORMATS} == {*SUM_TYPES, "tf32x3", "narrow"}
    for element, sums in SUM_TYPES.items():
        assert ProductForm(Element(element), "mk", "kn", 0).result.name == sums
