# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs for the rules of `expand` whose ops have a semantics of index maps, sums and elementwise arithmetic."""

from __future__ import annotations

from collections.abc import Iterator

from tests.proofs.template import Template


def _legacy() -> Iterator[Template]:
    for added, source, result in (("2, 3", "n", "2 3 n"), ("4", "b k", "4 b k"), ("1", "3", "1 3")):
        yield Template("broadcast: broadcast_in_front", (f"T({source})",), f"""
            %0 = "stablehlo.broadcast"(%a) <{{broadcast_sizes = array<i64: {added}>}}> : (T({source})) -> T({result})
            return %0 : T({result})""")  # fmt: skip
    for left, right, result in (("m k", "k n", "m n"), ("k", "k n", "n"), ("m k", "k", "m"), ("k", "k", "")):
        yield Template("dot: dot", (f"T({left})", f"T({right})"), f"""
            %0 = stablehlo.dot %a, %b : (T({left}), T({right})) -> T({result})
            return %0 : T({result})""")  # fmt: skip
    for config in (
        "bmk,bknz->bnm", "mk,kn->mn", "mk,kn->nm", "bhqd,bhkd->bhqk", "bk,bk->b", "bk,bk->", "i,j->ji", "abc,bd->dca", "abcd,dbe->aec",
    ):  # fmt: skip
        terms, result = config.split("->")
        left, right = (" ".join(term) for term in terms.split(","))
        dims = " ".join(result)
        yield Template("einsum: einsum", (f"T({left})", f"T({right})"), f"""
            %0 = "stablehlo.einsum"(%a, %b) <{{einsum_config = "{config}"}}> : (T({left}), T({right})) -> T({dims})
            return %0 : T({dims})""")  # fmt: skip
    for config in ("abc->ca", "ab->", "abc->cab"):
        term, result = (" ".join(part) for part in config.split("->"))
        yield Template("unary_einsum: einsum", (f"T({term})",), f"""
            %0 = "stablehlo.unary_einsum"(%a) <{{einsum_config = "{config}"}}> : (T({term})) -> T({result})
            return %0 : T({result})""")  # fmt: skip
    for source, index, axis, batch, result in (
        ("a b c", "a k", 1, 1, "a k c"), ("a b", "k", 1, 0, "a k"), ("a b c", "k m", 0, 0, "k m b c"), ("a b c", "a k", 2, 1, "a b k"),
    ):  # fmt: skip
        yield Template("torch_index_select: torch_index_select", (f"T({source})", f"T({index}, i32)"), f"""
            %0 = "stablehlo.torch_index_select"(%a, %b) <{{dim = {axis} : i64, batch_dims = {batch} : i64}}> : (T({source}), T({index}, i32)) -> T({result})
            return %0 : T({result})""")  # fmt: skip


def _bodies() -> Iterator[Template]:
    for body, result in (
        ("%1 = stablehlo.multiply %x, %two : T()\n%2 = stablehlo.compare LT, %1, %y : (T(), T()) -> T(, i1)\nstablehlo.return %2 : T(, i1)", "i1"),
        ("%1 = stablehlo.subtract %y, %x : T()\n%2 = stablehlo.divide %1, %two : T()\n%3 = stablehlo.tanh %2 : T()\nstablehlo.return %3 : T()", "f32"),
        ("stablehlo.return %two : T()", "f32"), ("stablehlo.return %y : T()", "f32"),
    ):  # fmt: skip
        yield Template("map: map_body", ("T(b s)", "T(b s)"), f"""
            %0 = "stablehlo.map"(%a, %b) <{{dimensions = array<i64: 0, 1>}}> ({{
            ^bb0(%x: T(), %y: T()):
              %two = stablehlo.constant dense<2.0> : T()
              {body}
            }}) : (T(b s), T(b s)) -> T(b s, {result})
            return %0 : T(b s, {result})""")  # fmt: skip
    larger = (
        "func.func private @larger(%a: T(), %b: T()) -> T() {\n%0 = stablehlo.maximum %a, %b : T()\nreturn %0 : T()\n}"
    )
    for window, stride, dilation, base, low, high, result in (
        (3, 1, 1, 1, 0, 0, "m"), (3, 2, 1, 1, 1, 0, "m"), (2, 1, 3, 1, 2, 1, "m"), (2, 3, 1, 2, 0, 1, "m"),
    ):  # fmt: skip
        numbers = (("w", window), ("t", stride), ("h", base), ("d", dilation))
        constants = "\n".join(f"%{name} = stablehlo.constant dense<{n}> : tensor<1xi64>" for name, n in numbers)
        yield Template("custom_call: dynamic_reduce_window", ("T(n)",), f"""
            %i = stablehlo.constant dense<0xFF800000> : T()
            {constants}
            %p = stablehlo.constant dense<[[{low}, {high}]]> : tensor<1x2xi64>
            %0 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%a, %i, %w, %t, %h, %d, %p)
                {{called_computations = [@larger]}} : (T(n), T(), tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>,
                tensor<1x2xi64>) -> T({result})
            return %0 : T(m)""", functions=larger)  # fmt: skip


def _sorts() -> Iterator[Template]:
    for dims, axis in (("n m", 0), ("n m 4", 1), ("4 n m", 0)):
        types = f"T({dims}), T({dims}, i32)"
        yield Template("sort: sort_along_last_axis", (f"T({dims})", f"T({dims}, i32)"), f"""
            %0:2 = "stablehlo.sort"(%a, %b) <{{dimension = {axis} : i64, is_stable = true}}> ({{
            ^bb0(%p: T(), %q: T(), %r: T(, i32), %s: T(, i32)):
              %c = stablehlo.compare LT, %p, %q : (T(), T()) -> T(, i1)
              stablehlo.return %c : T(, i1)
            }}) : ({types}) -> ({types})
            return %0#0, %0#1 : {types}""")  # fmt: skip


def _mixed() -> Iterator[Template]:
    for left, right, result in (
        ("f8E4M3FN", "f8E5M2", "bf16"),
        ("f8E4M3FN", "f8E5M2", "f32"),
        ("bf16", "f32", "f32"),
        ("f16", "bf16", "f16"),
    ):
        a, b, c = f"T(m k, {left})", f"T(k n, {right})", f"T(m n, {result})"
        yield Template("dot_general: product_of_two_types", (a, b), f"""
            %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({a}, {b}) -> {c}
            return %0 : {c}""")  # fmt: skip


def _convolution(
    types: tuple[str, str, str], left: str, kernel: str, result: str, stride: str = "1", pad: str = "0, 0", lhs: str = "1",
    rhs: str = "1", reverse: str = "false", groups: int = 1, batches: int = 1,
) -> str:  # fmt: skip
    """A convolution over one axis of space."""
    layouts = f"[{', '.join(left)}]x[{', '.join(kernel)}]->[{', '.join(result)}]"
    return f"""
        %0 = "stablehlo.convolution"(%a, %b) <{{batch_group_count = {batches} : i64, dimension_numbers = #stablehlo.conv<{layouts}>,
            feature_group_count = {groups} : i64, lhs_dilation = array<i64: {lhs}>, padding = dense<[[{pad}]]> : tensor<1x2xi64>,
            rhs_dilation = array<i64: {rhs}>, window_reversal = array<i1: {reverse}>, window_strides = array<i64: {stride}>}}>
            : ({types[0]}, {types[1]}) -> {types[2]}
        return %0 : {types[2]}"""


def _convolutions() -> Iterator[Template]:
    rule = "convolution: canonical_convolution"
    for types, layouts, options in (
        (("T(b f n)", "T(o f 3)", "T(b o m)"), ("bf0", "oi0", "bf0"), {"stride": "2"}),
        (("T(b f n)", "T(o f 3)", "T(b o m)"), ("bf0", "oi0", "bf0"), {"pad": "1, 2", "rhs": "2"}),
        (("T(b n f)", "T(3 f o)", "T(b m o)"), ("b0f", "0io", "b0f"), {"lhs": "2", "pad": "1, 1"}),
        (("T(b n f)", "T(w f o)", "T(b m o)"), ("b0f", "0io", "b0f"), {"reverse": "true"}),
        (("T(n b 4)", "T(2 3 6)", "T(6 b m)"), ("0bf", "i0o", "fb0"), {"groups": 2, "stride": "2"}),
        (("T(b n f)", "T(3 f 4)", "T(c m 4)"), ("b0f", "0io", "b0f"), {"batches": 2}),
    ):  # fmt: skip
        types = tuple(t.replace("T(b n f)", "T(2*c n f)") if options.get("batches") else t for t in types)  # type: ignore[assignment]
        yield Template(rule, types[:2], _convolution(types, *layouts, **options))
    yield Template("dynamic_conv: canonical_convolution", ("T(b f n)", "T(o f 3)"), """
        %p = stablehlo.constant dense<[[1, 2]]> : tensor<1x2xi64>
        %0 = "stablehlo.dynamic_conv"(%a, %b, %p) <{batch_group_count = 1 : i64, feature_group_count = 1 : i64,
            dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>, window_strides = array<i64: 2>}>
            : (T(b f n), T(o f 3), tensor<1x2xi64>) -> T(b o m)
        return %0 : T(b o m)""")  # fmt: skip
    rule = "convolution: convolution_is_dot"
    for types, options in (
        (("T(b n f)", "T(1 f o)", "T(b n o)"), {}),
        (("T(b n f)", "T(n f o)", "T(b 1 o)"), {}), (("T(b 9 f)", "T(1 f o)", "T(b 5 o)"), {"stride": "2"}),
    ):  # fmt: skip
        yield Template(rule, types[:2], _convolution(types, "b0f", "0io", "b0f", **options))  # type: ignore[arg-type]
    rule = "convolution: convolution_of_patches"
    for types, options in (
        (("T(b n f)", "T(3 f o)", "T(b n-2 o)"), {}), (("T(b 21 64)", "T(3 64 64)", "T(b 9 64)"), {"stride": "2", "rhs": "2"}),
    ):  # fmt: skip
        yield Template(rule, types[:2], _convolution(types, "b0f", "0io", "b0f", **options), target="cuda")  # type: ignore[arg-type]


def _normalisations() -> Iterator[Template]:
    attributes = "{epsilon = 1.250000e-01 : f32, feature_index = %d : i64}"
    for dims, axis in (("b n f", 2), ("b f n", 1), ("b f", 1)):
        x, vector, more = f"T({dims})", "T(f)", attributes % axis
        vectors = ", ".join([vector] * 4)
        yield Template("batch_norm_inference: rewrite_op", (x, vector, vector, vector, vector), f"""
            %0 = "stablehlo.batch_norm_inference"(%a, %b, %c, %d, %e) {more} : ({x}, {vectors}) -> {x}
            return %0 : {x}""")  # fmt: skip
        yield Template("batch_norm_training: rewrite_op", (x, vector, vector), f"""
            %0:3 = "stablehlo.batch_norm_training"(%a, %b, %c) {more} : ({x}, {vector}, {vector}) -> ({x}, {vector}, {vector})
            return %0#0, %0#1, %0#2 : {x}, {vector}, {vector}""")  # fmt: skip
        yield Template("batch_norm_grad: rewrite_op", (x, vector, vector, vector, x), f"""
            %0:3 = "stablehlo.batch_norm_grad"(%a, %b, %c, %d, %e) {more} : ({x}, {vector}, {vector}, {vector}, {x}) -> ({x}, {vector}, {vector})
            return %0#0, %0#1, %0#2 : {x}, {vector}, {vector}""")  # fmt: skip


def _bitcasts() -> Iterator[Template]:
    for source, result, a, b in (
        ("n", "n 4", "ui32", "ui8"), ("n 4", "n", "ui8", "ui32"), ("b n", "b n 2", "i32", "i16"), ("n 2", "n", "i32", "i64"),
    ):  # fmt: skip
        yield Template("bitcast_convert: bitcast_that_changes_rank", (f"T({source}, {a})",), f"""
            %0 = stablehlo.bitcast_convert %a : (T({source}, {a})) -> T({result}, {b})
            return %0 : T({result}, {b})""", has_bits=True)  # fmt: skip


TEMPLATES: list[Template] = [
    *_legacy(), *_bodies(), *_sorts(), *_mixed(), *_convolutions(), *_normalisations(), *_bitcasts(),
]  # fmt: skip
"""Programs, on each of which its rule fires."""

UNPROVED = {
    "convolution: product_of_two_types": "StableHLO's verifier rejects a convolution of two element types",
    "custom_call: csr_product": "a custom call, which StableHLO gives no meaning; run against XLA",
    "custom_call: rng_bit_generator": "random bits are integers of one algorithm, compared with XLA's",
    "custom_call: top_k": "a custom call, which StableHLO gives no meaning; run against XLA",
    "rng_bit_generator: rng_bit_generator": "random bits are integers of one algorithm, compared with XLA's",
}
"""Rules without a proof, and why."""
