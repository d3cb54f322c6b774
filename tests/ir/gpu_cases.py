# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs for the GPU target, and one call of such a program: its buffers, and its launches on what runs kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

import shlo_disc
from shlo_disc.driver.compiler import Compilation, import_stage, run_pipeline
from shlo_disc.lowering.host.device_products import calls_in
from shlo_disc.lowering.host_llvm.constants import dense_bytes
from shlo_disc.lowering.launches import launches_in
from shlo_disc.lowering_gpu import device_module
from shlo_disc.lowering_gpu.product_form import device_product
from shlo_disc.shape_dialect.dialect.buffers import Buffer, ResultBuffer, arenas_of, buffers_of
from shlo_disc.shape_dialect.dialect.fusion import Gemm, fusion_of
from shlo_disc.shape_dialect.dialect.types import bytes_of, dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.views import root
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import entry_block, terminator_of
from tests.ir.gpu_emulator import Emulator, dtype_of
from tests.run.op_check import random_array

TARGETS = ("cuda:sm_80", "cuda:sm_90a")
EXACT = shlo_disc.Options(matmul_precision="highest")
"""Products of f32 take all bits, so that results can be compared with those of processors."""


class Case(NamedTuple):
    """A program, its arguments as shape and dtype, and an absolute tolerance per unit of the largest result."""

    function: Callable[..., Any]
    arguments: tuple[tuple[str, str], ...]
    tolerance: float = 2e-6


def layer_norm(x: Any, scale: Any, bias: Any) -> Any:
    """Two reductions, the second of values that need the first."""
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * scale + bias


def narrow_floats(x: Any, y: Any) -> Any:
    """f16 and bf16 arithmetic, and conversions between them."""
    return jnp.tanh(x) * 2 + jnp.exp(y).astype(jnp.float16), y * y - x.astype(jnp.bfloat16)


def many_functions(x: Any, y: Any) -> Any:
    """Each function of the math library, f64 included."""
    wide = x.astype(jnp.float64)
    return (
        jnp.log(jnp.abs(x)), jnp.log1p(jnp.abs(x)), jnp.expm1(x), jax.nn.sigmoid(x), jnp.sin(x) + jnp.cos(x),
        jnp.tan(x), jnp.cbrt(x), jnp.arctan2(x, y), jnp.power(jnp.abs(x), y), jnp.sqrt(jnp.abs(x)),
        jnp.maximum(wide, jnp.exp(wide)), jnp.minimum(wide, jnp.tanh(wide)), jnp.round(x), jnp.floor(x), jnp.ceil(x),
    )  # fmt: skip


def integer_functions(x: Any, y: Any) -> Any:
    """Divisions, shifts, counts, comparisons and conversions of integers of several widths."""
    narrow = x.astype(jnp.int8)
    return (
        x // y, x % y, x << 3, jax.lax.shift_right_logical(x, jnp.int32(2)), jax.lax.population_count(x),
        jax.lax.clz(x), jnp.sign(narrow), narrow.astype(jnp.float32), x.astype(jnp.uint16), (x > y) & (x != 0),
    )  # fmt: skip


def in_place(x: Any, y: Any) -> Any:
    """A chain in which results take over the buffers of arguments that die, rows and single values both."""
    first = jnp.exp(x) + y.sum(0)
    second = first - first.max(-1, keepdims=True)
    weight = jax.nn.softmax(jnp.tanh(second.mean(-1)).reshape(1, -1))[0]
    return second.T * weight, (second / weight[:, None]).sum(-1)


def heads(x: Any, y: Any) -> Any:
    """Products of two batch axes, between which the rows lie."""
    return jnp.einsum("bshd,bnhd->bhsn", x, y, preferred_element_type=jnp.float32)


def recurrent(x: Any, w: Any) -> Any:
    """A network whose batch is `b`."""
    return jax.lax.scan(lambda h, row: (jnp.tanh(row + h @ w), h), jnp.zeros_like(x[0]), x)


def pairs_by_columns(x: Any, q: Any, s: Any) -> Any:
    """A weight of two integers in a byte, with a scale for each 32 of a column."""
    pairs = jnp.stack([q & 15, q >> 4], axis=-1).reshape(40, 2, 32)
    return x @ ((pairs.astype(jnp.float32) - 8) * s[..., None]).reshape(40, 64).T


def bytes_by_rows(x: Any, y: Any) -> Any:
    """A product of integers that lie along the depth."""
    return jax.lax.dot_general(x, y, (((1,), (1,)), ((), ())), preferred_element_type=jnp.int32)


def causal_attention(q: Any, k: Any, v: Any) -> Any:
    """The last queries see all keys, those before them fewer, and the first none where there are fewer keys."""
    scores = jnp.einsum("bqd,bkd->bqk", q, k) / q.shape[-1] ** 0.5
    row, column = (jax.lax.broadcasted_iota(jnp.int32, scores.shape, axis) for axis in (1, 2))
    is_seen = column + q.shape[1] <= row + k.shape[1]
    return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(jnp.where(is_seen, scores, -1e9)), v)


def attention_of_heads(q: Any, k: Any, v: Any) -> Any:
    """Causal attention of [batch, rows, heads, elements], whose scores are f32."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) / q.shape[-1] ** 0.5
    row, column = (jax.lax.broadcasted_iota(jnp.int32, scores.shape, axis) for axis in (2, 3))
    weights = jax.nn.softmax(jnp.where(column <= row, scores, -1e9)).astype(v.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def attention_of_groups(q: Any, k: Any, v: Any) -> Any:
    """Attention of groups of heads, which share keys."""
    weights = jax.nn.softmax(jnp.einsum("bqghd,bkgd->bghqk", q, k, preferred_element_type=jnp.float32))
    return jnp.einsum("bghqk,bkgd->bqghd", weights.astype(v.dtype), v)


def decoded(q: Any, k: Any, v: Any, length: Any) -> Any:
    """One query for each of three heads, which share keys, of which so many count."""
    scores = jnp.einsum("bhd,bkd->bhk", q, k, preferred_element_type=jnp.float32) / q.shape[-1] ** 0.5
    scores = jnp.where(jnp.arange(k.shape[1]) <= length[:, None, None], scores, -1e9)
    return jnp.einsum("bhk,bkd->bhd", jax.nn.softmax(scores).astype(v.dtype), v)


IMAGE = (("b, s", "float32"),)

CASES = {
    "softmax": Case(lambda x: jax.nn.softmax(x, axis=-1), (("b, s", "float32"),)),
    "softmax_static_row": Case(lambda x: jax.nn.softmax(x, axis=-1), (("b, s, 48", "float32"),)),
    "layer_norm": Case(layer_norm, (("b, s, 64", "float32"), ("64", "float32"), ("64", "float32")), 1e-5),
    "gelu_bias": Case(lambda x, b: jax.nn.gelu(x + b, approximate=False), (("b, 3*s", "float32"), ("3*s", "float32"))),
    "gelu_tanh": Case(lambda x: jax.nn.gelu(x), (("b, s", "float32"),)),
    "embedding": Case(lambda t, i, p: t[i] + p, (("1000, 32", "float32"), ("b, s", "int32"), ("s, 32", "float32"))),
    "transpose": Case(lambda x: x.transpose(0, 2, 1), (("b, s, 16", "float32"),), 0),
    "argmax": Case(lambda x: jnp.argmax(x, axis=-1), (("b, s", "float32"),), 0),
    "argmin_of_integers": Case(lambda x: jnp.argmin(x % 7, axis=-1), (("b, s", "int32"),), 0),
    "narrow_floats": Case(narrow_floats, (("b, s", "float16"), ("b, s", "bfloat16")), 1e-2),
    "narrow_sums": Case(lambda x, y: (x.sum(-1), jax.nn.softmax(y)), (("b, s", "float16"), ("b, s", "bfloat16")), 1e-2),
    "functions": Case(many_functions, (("b, s", "float32"), ("b, s", "float32")), 1e-5),
    "integers": Case(integer_functions, (("b, s", "int32"), ("b, s", "int32")), 0),
    "remainder": Case(jax.lax.rem, (("b, s", "float32"), ("b, s", "float32")), 0),
    "any_and_all": Case(lambda x: (jnp.any(x, -1), jnp.all(x, -1)), (("b, s", "bool"),), 0),
    "doubles": Case(lambda x: (x.max(-1), x.sum((-1, -2)), x.prod(-1)), (("b, s, 5", "float64"),)),
    "pooled": Case(lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (2, 3), (1, 2), "SAME"), IMAGE, 0),
    "columns": Case(lambda x: (x.sum(0), x.max(1)), (("b, s, 5", "float32"),), 1e-5),
    "joined": Case(lambda x, y: jnp.concatenate([x, y * 2, x[:, :1]], 1), (("b, s", "float32"), ("b, 9", "float32"))),
    "padded": Case(lambda x: jnp.pad(x, ((1, 2), (0, 3)), constant_values=1.5)[:, ::2], (("b, s", "float32"),), 0),
    "constant_table": Case(lambda x: x + np.arange(12, dtype=np.float32).reshape(3, 4), (("b, 3, 4", "float32"),), 0),
    "in_place": Case(in_place, (("b, s", "float32"), ("b, b, s", "float32")), 1e-5),
    "sorted": Case(lambda x: (jnp.sort(x), jnp.argsort(-x)), IMAGE, 0),
    "best": Case(lambda x: jax.lax.top_k(jnp.pad(x, ((0, 0), (0, 4))), 5), IMAGE, 0),
    "cumulative": Case(lambda x: (jnp.cumsum(x, 1), jax.lax.cummax(x, 1, reverse=True)), IMAGE, 1e-5),
    "integer_product": Case(lambda x, y: jax.lax.dot(x, y), (("b, s", "int64"), ("s, 9", "int64")), 0),
    "product": Case(lambda x, w: x @ w, (("b, s", "float32"), ("s, 40", "float32")), 1e-5),
    "product_in_columns": Case(lambda x, w: (x @ w).T, (("b, s", "float16"), ("s, 5", "float16")), 1e-2),
    "product_of_bytes": Case(bytes_by_rows, (("b, s", "int8"), ("5, s", "int8")), 0),
    "product_of_heads": Case(heads, (("b, s, 2, 8", "bfloat16"), ("b, 5, 2, 8", "bfloat16")), 1e-5),
    "product_gelu": Case(
        lambda x, w, b: jax.nn.gelu(x @ w + b), (("b, s", "float32"), ("s, 3*s", "float32"), ("3*s", "float32")), 1e-5
    ),
    "product_residual": Case(
        lambda x, w, b, r: (x @ w + b).astype(jnp.float32) + r,
        (("b, s", "bfloat16"), ("s, 3*s", "bfloat16"), ("3*s", "bfloat16"), ("b, 3*s", "float32")),
        1e-2,
    ),
    "product_narrow": Case(
        lambda x, q, s: jax.nn.relu(x @ (q.astype(jnp.bfloat16) * s)),
        (("b, 96", "bfloat16"), ("96, 144", "int8"), ("144", "bfloat16")),
        1e-2,
    ),
    "product_pairs": Case(pairs_by_columns, (("b, 64", "float32"), ("40, 32", "uint8"), ("40, 2", "float32")), 1e-5),
    "attention": Case(causal_attention, (("b, 33, 64", "float32"), *(("b, s, 64", "float32"),) * 2), 1e-5),
    "attention_narrow": Case(causal_attention, (("b, 33, 128", "bfloat16"), *(("b, s, 128", "bfloat16"),) * 2), 2e-2),
    "attention_heads": Case(attention_of_heads, (("b, s, 2, 64", "bfloat16"),) * 3, 2e-2),
    "attention_groups": Case(
        attention_of_groups, (("b, s, 2, 2, 80", "float16"), *(("b, s + 5, 2, 80", "float16"),) * 2), 5e-3
    ),
    "decoding": Case(decoded, (("b, 3, 64", "float32"), *(("b, 64*s, 64", "float32"),) * 2, ("b", "int32")), 1e-5),
    "decoding_narrow": Case(
        decoded, (("b, 3, 128", "bfloat16"), *(("b, 64*s, 128", "bfloat16"),) * 2, ("b", "int32")), 2e-2
    ),
    "recurrence": Case(recurrent, (("5, b, 24", "float32"), ("24, 24", "float32")), 1e-5),
    "whole": Case(lambda x: (x.sum(), x.max()), (("b, s", "float32"),), 1e-5),
}


@functools.cache
def lowered(name: str) -> Compilation:
    """A case down to the `host` stage, which needs none of NVIDIA's tools."""
    case = CASES[name]
    with jax.enable_x64(True):
        start = import_stage(case.function, TARGETS[0], EXACT, case.arguments, None, ())
        return run_pipeline(start, "host")


def _name_of(op: ir.OpView) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value if "sym_name" in op.attributes else ""


class GpuLaunch(NamedTuple):
    """One launch: the kernel's name and the kind of its fusion, the sizes of grid and block, and its size arguments."""

    name: str
    kind: str
    blocks: Expr
    threads: int
    sizes: tuple[Expr, ...]


def launches_of(c: Compilation) -> list[GpuLaunch]:
    """Those of a call, in their order."""
    return [
        GpuLaunch(one.name, one.kind, one.use.items, one.use.threads, one.use.sizes)
        for one in launches_in(c.snapshots["host"])
        if one.use is not None
    ]


class Machine(Protocol):
    """A machine that runs a kernel on flat arrays, which it changes in place."""

    def launch(self, name: str, blocks: int, pointers: Sequence[np.ndarray], sizes: Sequence[int]) -> None: ...


class Run:
    """One call of a lowered program, in the arena and at the offsets of its plan."""

    def __init__(self, c: Compilation, dims: dict[str, int], machine: Machine):
        self.c, self.dims, self.machine = c, dims, machine
        with c.context:
            self.plan = ir.Module.parse(str(c.snapshots["plan"]))
            size = arenas_of(self.plan.operation)[0].evaluate(dims)
        self.arena = np.full(size, 0xA5, np.uint8)
        self.results: dict[int, np.ndarray] = {}

    def __call__(self, arguments: list[np.ndarray]) -> list[np.ndarray]:
        """The results as flat arrays."""
        block = entry_block(self.plan)
        leaves = [np.ascontiguousarray(arguments[leaf]).reshape(-1) for leaf in self.c.signature.kept]
        self.buffers = dict(zip(block.arguments, leaves, strict=True))
        launches = iter(launches_of(self.c))
        for op in block.operations:
            if op.operation.name == "stablehlo.constant":
                data = dense_bytes(ir.DenseElementsAttr(op.attributes["value"]))
                self.buffers[op.results[0]] = np.frombuffer(data, self._dtype(op.results[0]))
            elif op.operation.name == "func.call":
                self._launch(op, next(launches))
        return [self.results[i] for i in sorted(self.results)]

    def _launch(self, call: ir.OpView, launch: Any) -> None:
        for result, buffer in zip(call.results, buffers_of(call), strict=True):
            self.buffers[result] = self._buffer(result, buffer)
        values = self._product(call) if launch.kind == "dot" else [*call.operands, *call.results]
        pointers = [self.buffers[root(v)].view(self._dtype(v)) for v in values]
        sizes = [s.evaluate(self.dims) for s in launch.sizes]
        self.machine.launch(launch.name, launch.blocks.evaluate(self.dims), pointers, sizes)

    def _product(self, call: ir.OpView) -> list[ir.Value]:
        """The buffers of the kernel of a product: its sides, and its result or what its epilogue has but the sums."""
        fusion = self._callee(call)
        if isinstance(fusion_of(fusion), Gemm):
            product, loop = calls_in(fusion)
            outer = dict(zip(fusion.entry_block.arguments, call.operands, strict=True))
            outer |= dict(zip(terminator_of(fusion.entry_block).operands, call.results, strict=True))
            others = [root(v) for v in loop.operands if root(v) != product.results[0]]
            sides = [outer[root(product.operands[side])] for side in _sides(self._callee(product))]
            memory = list(product.results)[1:]
            return [*sides, *(outer[v] for v in (*others, *loop.results, *memory))]
        operands = list(call.operands)
        sides = operands if device_product(fusion) is None else [operands[side] for side in _sides(fusion)]
        return [*sides, *call.results]

    def _callee(self, call: ir.OpView) -> ir.OpView:
        name = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
        return next(op for op in self.plan.body.operations if _name_of(op) == name)

    def _buffer(self, value: ir.Value, buffer: Buffer) -> np.ndarray:
        count = product(dims_of(value)).evaluate(self.dims)
        if isinstance(buffer, ResultBuffer):
            self.results[buffer.index] = np.zeros(count, self._dtype(value))
            return self.results[buffer.index]
        start = buffer.offset.evaluate(self.dims)
        return self.arena[start : start + count * bytes_of(element_type_of(value))].view(self._dtype(value))

    @staticmethod
    def _dtype(value: ir.Value) -> np.dtype:
        name = str(element_type_of(value))
        if name == "i1":
            return np.dtype(np.int8)
        return np.dtype(f"uint{name[2:]}") if name.startswith("ui") else dtype_of(element_type_of(value))


def _sides(product: ir.OpView) -> list[int]:
    """The arguments that the kernel of a product reads."""
    problem, what = device_product(product), fusion_of(product)
    return [problem.lhs, *(what.narrow or (problem.rhs,))]


def arrays(case: Case, dims: dict[str, int]) -> list[np.ndarray]:
    """Random arguments; indices stay small, so that most are inside the table."""
    found = []
    for position, (text, dtype) in enumerate(case.arguments):
        shape = tuple(eval(d, {"__builtins__": {}}, dims) for d in text.split(","))  # noqa: S307
        array = random_array(shape, dtype, position)
        found.append(array % 1100 if dtype == "int32" and case is CASES["embedding"] else array)
    return found


def emulated(c: Compilation, dims: dict[str, int], given: list[np.ndarray]) -> list[np.ndarray]:
    """The flat results of a call of a program at the stage `host`, whose kernels the emulator runs."""
    known = {s.name for s in c.signature.symbols}
    with c.context, ir.Location.unknown():
        return Run(c, {k: v for k, v in dims.items() if k in known}, Emulator(device_module(c.module)))(given)


def assert_close(found: Any, wanted: Any, tolerance: float) -> None:
    """Floats agree up to a tolerance of the largest of each result, all else bit by bit. What is found may be flat."""
    for got, want in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        got, want = np.asarray(got), np.asarray(want)
        got = got.view(want.dtype).reshape(want.shape)
        if want.dtype.kind in "iub":
            np.testing.assert_array_equal(got, want)
            continue
        got, want = got.astype(np.float64), want.astype(np.float64)
        scale = np.abs(want[np.isfinite(want)]).max(initial=1.0)
        np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * scale)
