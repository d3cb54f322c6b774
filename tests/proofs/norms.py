# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The semantics of StableHLO's batch normalisation."""

from __future__ import annotations

from collections.abc import Callable

import z3

from shlo_disc.shape_dialect.mlir import ir
from tests.proofs.elements import divided, literal, opaque
from tests.proofs.scope import Index, Term, product
from tests.proofs.semantics import Call, Rule, Tensor
from tests.proofs.sums import sum_of


def batch_norm(call: Call) -> Tensor | list[Tensor]:
    """`batch_norm_inference`, `batch_norm_training` and `batch_norm_grad`, after the formulas of the specification."""
    axis = call.number("feature_index")
    dims = call.operands[0].dims
    epsilon = literal(ir.FloatAttr(call.op.attributes["epsilon"]).value, call.operands[0].element, call.scope)
    others = [n for a, n in enumerate(dims) if a != axis]
    count = z3.ToReal(product(others))

    def summed(feature: Term, of: Callable[[Index], Term]) -> Term:
        def body(inner: Index) -> Term:
            return of((*inner[:axis], feature, *inner[axis:]))

        return sum_of(call, others, body, call.operands[0].element)

    def root(variance: Term) -> Term:
        return opaque("sqrt  f32", z3.RealSort(), variance + epsilon)

    def scaled(index: Index, mean: Term, variance: Term) -> Term:
        scale, offset = (call.read(i, (index[axis],)) for i in (1, 2))
        return divided(call.read(0, index) - mean, root(variance)) * scale + offset

    def mean_of(feature: Term) -> Term:
        return divided(summed(feature, lambda i: call.read(0, i)), count)

    def variance_of(feature: Term) -> Term:
        mean = mean_of(feature)
        return divided(summed(feature, lambda i: (call.read(0, i) - mean) * (call.read(0, i) - mean)), count)

    name = call.op.name.removeprefix("stablehlo.batch_norm_")
    if name == "inference":
        return call.tensor(lambda i: scaled(i, call.read(3, (i[axis],)), call.read(4, (i[axis],))))
    vector, element = (dims[axis],), call.element
    if name == "training":
        output = Tensor(dims, element, lambda i: scaled(i, mean_of(i[axis]), variance_of(i[axis])))
        moments = [Tensor(vector, element, lambda i, f=f: f(i[0])) for f in (mean_of, variance_of)]  # type: ignore[misc]
        return [output, *moments]
    return _gradient(call, axis, count, epsilon, summed, root)


def _gradient(
    call: Call, axis: int, count: Term, epsilon: Term, summed: Callable[..., Term], root: Callable[[Term], Term]
) -> list[Tensor]:
    def of_feature(operand: int, feature: Term) -> Term:
        return call.read(operand, (feature,))

    def centred(index: Index) -> Term:
        return call.read(0, index) - of_feature(2, index[axis])

    def operand(index: Index) -> Term:
        feature = index[axis]
        along = summed(feature, lambda i: call.read(4, i) * centred(i))
        inner = count * call.read(4, index) - summed(feature, lambda i: call.read(4, i))
        inner -= divided(centred(index) * along, of_feature(3, feature) + epsilon)
        return divided(divided(of_feature(1, feature), root(of_feature(3, feature))), count) * inner

    def scale(index: Index) -> Term:
        feature = index[0]
        return summed(feature, lambda i: call.read(4, i) * divided(centred(i), root(of_feature(3, feature))))

    vector = (call.operands[0].dims[axis],)
    offset = Tensor(vector, call.element, lambda i: summed(i[0], lambda j: call.read(4, j)))
    return [Tensor(call.dims, call.element, operand), Tensor(vector, call.element, scale), offset]


NORMS: dict[str, Rule] = {
    "batch_norm_grad": batch_norm,
    "batch_norm_inference": batch_norm,
    "batch_norm_training": batch_norm,
}
"""Rules by the names of the ops."""
