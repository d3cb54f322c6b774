# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fourier transforms: StableHLO's op, whose lengths are numbers, and our custom call for lengths that are symbols."""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.shape_dialect.dialect.ops import integer_attr
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.ops.definition import OpDef, define
from shlo_disc.shape_dialect.ops.dynamic_forms import DynamicForm, StatedSizes, call, shape_operands_attribute
from shlo_disc.shape_dialect.ops.element_types import COMPLEX
from shlo_disc.shape_dialect.ops.lapack_sizes import parameters_of, shape_operands
from shlo_disc.shape_dialect.ops.propagation import Propagation
from shlo_disc.shape_dialect.ops.size_relations import SizeRelations, numbers_of, rank
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.attributes import integers

TARGET = "shlo_disc.fft"
KINDS = ("FFT", "IFFT", "RFFT", "IRFFT")


@dataclass(frozen=True)
class Transform:
    """The kind of a transform and how many of the last axes it runs along."""

    kind: str
    rank: int


def fft_of(op: ir.OpView) -> Transform | None:
    """The transform that an op is, None when it is none."""
    if op.operation.name == "stablehlo.fft":
        kind = str(stablehlo.FftTypeAttr(op.attributes["fft_type"]).value)
        return Transform(kind, len(integers(op.attributes["fft_length"])))
    if ir.StringAttr(op.attributes["call_target_name"]).value != TARGET:
        return None
    given = parameters_of(op)
    return Transform(KINDS[ir.IntegerAttr(given["kind"]).value], ir.IntegerAttr(given["rank"]).value)


def _infer_fft(p: Propagation, op: ir.OpView) -> list[Dims]:
    dims = dims_of(op.operands[0])
    transform = fft_of(op)
    lengths = [Expr.const(n) for n in integers(op.attributes["fft_length"])]
    return [_result(p, op, transform.kind if transform else "", dims, lengths)]


def _infer_custom_fft(p: Propagation, op: ir.OpView) -> list[Dims]:
    dims = dims_of(op.operands[0])
    transform = fft_of(op)
    if transform is None:
        return [dims]
    sizes = p.sizes(op.operands[1]) if len(op.operands) > 1 else dims_of(op.results[0])
    if transform.kind == "RFFT":
        sizes = (*sizes[:-1], dims[-1])
    return [_result(p, op, transform.kind, dims, list(sizes[len(sizes) - transform.rank :]))]


def _result(p: Propagation, op: ir.OpView, kind: str, dims: Dims, lengths: list[Expr]) -> Dims:
    """The sizes of the result; a transform back to reals starts from half of the last axis and one.

    Of a length of 0, which StableHLO allows, the half is 0, too.
    """
    half = lengths[-1] // 2 + 1 if lengths[-1].constant != 0 else lengths[-1]
    given = [*lengths[:-1], half] if kind == "IRFFT" else lengths
    for size, length in zip(dims[len(dims) - len(given) :], given, strict=True):
        p.equal(size, length, op)
    if kind == "RFFT":
        return (*dims[:-1], half)
    return (*dims[:-1], lengths[-1]) if kind == "IRFFT" else dims


def _relate_fft(r: SizeRelations, op: ir.OpView) -> None:
    batch = range(rank(op.operands[0]) - len(numbers_of(op, "fft_length")))
    r.same_axes(op.operands[0], batch, op.results[0], batch)
    for value in (op.operands[0], op.results[0]):
        r.fix(value, range(len(batch), rank(value)))


def _form_of_fft(s: StatedSizes, op: ir.OpView) -> list[ir.Value]:
    """The custom call for lengths that are sizes."""
    kind = KINDS.index(str(stablehlo.FftTypeAttr(op.attributes["fft_type"]).value))
    lengths, result = s.numbers(op, "fft_length"), s.dims(op.results[0])
    given = result if KINDS[kind] == "RFFT" else (*result[: -len(lengths)], *lengths)
    config: dict[str, ir.Attribute] = {"kind": integer_attr(kind), "rank": integer_attr(len(lengths))}
    attributes = {
        "call_target_name": ir.StringAttr.get(TARGET),
        "api_version": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 4),
        "backend_config": ir.DictAttr.get(config),
        **shape_operands_attribute(len(op.operands), 1),
    }
    return call(op, [*op.operands, s.sizes(given)], attributes)


def _check_fft(op: ir.OpView) -> str | None:
    """The reason that our custom call of a Fourier transform cannot be compiled; None when it can."""
    given = parameters_of(op)
    if not all(isinstance(given.get(name), ir.IntegerAttr) for name in ("kind", "rank")):
        return "a transform needs the integers kind and rank"
    kind, rank = (ir.IntegerAttr(given[name]).value for name in ("kind", "rank"))
    if len(op.results) != 1 or len(op.operands) != 1 + len(shape_operands(op)) or not 0 <= kind < len(KINDS):
        return "a transform has one operand, its result's sizes, one result and a kind from 0 to 3"
    source, result = (ir.RankedTensorType(v.type) for v in (op.operands[0], op.results[0]))
    if source.rank != result.rank or not 1 <= rank <= min(3, source.rank):
        return "a transform runs along one to three axes"
    real, pair = [("f32", "complex<f32>"), ("f64", "complex<f64>")]["f64" in str(source.element_type)]
    expected = {"RFFT": (real, pair), "IRFFT": (pair, real)}.get(KINDS[kind], (pair, pair))
    if (str(source.element_type), str(result.element_type)) != expected:
        return f"{KINDS[kind]} goes from {expected[0]} to {expected[1]}"
    return None


_TESTS = "tests/run/test_ops_fft.py"

OPS = (
    *define(
        "library", "fft", {"f32", "f64"} | COMPLEX, gpu={"f32", "f64"} | COMPLEX, infer=_infer_fft, relate=_relate_fft,
        dynamic_form=DynamicForm(_form_of_fft), tests=_TESTS,
    ),
    OpDef(
        f"@{TARGET}", "library", frozenset({"f32", "f64", "i32", "i64"}) | COMPLEX, frozenset(),
        gpu_dtypes=frozenset({"f32", "f64", "i32", "i64"}) | COMPLEX, check=_check_fft, infer=_infer_custom_fft,
        tests=_TESTS,
    ),
)  # fmt: skip
