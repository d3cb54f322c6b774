# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of one op that sorts, folds, slides a window, or multiplies."""

from __future__ import annotations

from tests.op_programs.movement import SHAPE
from tests.op_programs.program import ALIKE, LEGACY, Form, Program, Tensor, below, region, scalar, tensor


def sort(t: str) -> Program:
    x, i = (("n", 3), t), (("n", 3), "i32")
    types = f"{tensor(*x)}, {tensor(*i)}"
    body = f"""%s:2 = "stablehlo.sort"(%a0, %a1) <{{dimension = 0 : i64, is_stable = true}}> ({{
    ^bb0{below(t, ("i32",))}
      stablehlo.return %s : tensor<i1> }}) : ({types}) -> ({types})"""
    return Program((x, i), (x, i), body, returned="%s#0, %s#1")


def top_k(t: str) -> Program:
    x, y, i = ((3, 9), t), ((3, 2), t), ((3, 2), "i32")
    body = f"""%k = stablehlo.constant dense<2> : tensor<1xi64>
  %s:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%a0, %k)
    : ({tensor(*x)}, tensor<1xi64>) -> ({tensor(*y)}, {tensor(*i)})"""
    return Program((x,), (y, i), body, by_xla=False, returned="%s#0, %s#1")


def stated_top_k(t: str) -> Program:
    x, y, i = (("n", 9), t), (("n", 2), t), (("n", 2), "i32")
    body = f"""%s:2 = stablehlo.custom_call @mhlo.topk(%a0) {{mhlo.attributes = {{k = 2 : i64, largest = true}}}}
    : ({tensor(*x)}) -> ({tensor(*y)}, {tensor(*i)})"""
    return Program((x,), (y, i), body, by_xla=False, returned="%s#0, %s#1")


def approximate(dynamic: bool) -> Form:
    """Five of nine, by the call's own comparator; with sizes as operands where `dynamic`."""

    def made(t: str) -> Program:
        functions = f"""func.func private @above{below(t, ("i32",), "GT").replace("):", ") -> tensor<i1> {", 1)}
  return %s : tensor<i1> }}"""
        whole, best = ((("n", 9), t), (("n", 9), "i32")), ((("n", 5), t), (("n", 5), "i32"))
        x, i = (tensor(*a) for a in whole)
        call = f"@{'stablehlo.dynamic_approx_top_k' if dynamic else 'ApproxTopK'}"
        shape = SHAPE.replace("X", x).replace("dense<4>", "dense<5>") if dynamic else ""
        sizes = ", indices_of_shape_operands = dense<[4, 5]> : tensor<2xi64>" if dynamic else ""
        body = f"""{shape}%least = stablehlo.constant {scalar(t, 0)}
  %none = stablehlo.constant dense<-1> : tensor<i32>
  %s:2 = stablehlo.custom_call {call}(%a0, %a1, %least, %none{", %shape, %shape" if dynamic else ""}) {{
    called_computations = [@above], mhlo.backend_config = {{reduction_dim = 1 : i64, top_k = 5 : i64}}{sizes}}}
    : ({x}, {i}, tensor<{t}>, tensor<i32>{", tensor<2xi32>, tensor<2xi32>" if dynamic else ""})
    -> ({", ".join(tensor(*b) for b in best)})"""
        return Program(whole, best, body, by_xla=False, functions=functions, returned="%s#0, %s#1")

    return made


def reduce(t: str) -> Program:
    """By rows, and by columns."""
    x = tensor(("n", 7), t)
    body = f"""%z = stablehlo.constant {scalar(t, 0)}
  %r0 = "stablehlo.reduce"(%a0, %z) <{{dimensions = array<i64: 1>}}> {region("add", t)}
    : ({x}, tensor<{t}>) -> {tensor(ALIKE, t)}
  %r1 = "stablehlo.reduce"(%a0, %z) <{{dimensions = array<i64: 0>}}> {region("add", t)}
    : ({x}, tensor<{t}>) -> tensor<7x{t}>"""
    return Program(((("n", 7), t),), ((ALIKE, t), ((7,), t)), body, small=True)


def reduce_window(t: str) -> Program:
    """Windows that overlap, and all prefixes."""
    x, y, r = tensor((3, 9), t), tensor((2, 8), t), region("add", t)
    body = f"""%z = stablehlo.constant {scalar(t, 0)}
  %r0 = "stablehlo.reduce_window"(%a0, %z) <{{window_dimensions = array<i64: 2, 3>,
    padding = dense<[[0, 0], [1, 0]]> : tensor<2x2xi64>}}> {r} : ({x}, tensor<{t}>) -> {y}
  %r1 = "stablehlo.reduce_window"(%a0, %z) <{{window_dimensions = array<i64: 1, 9>,
    padding = dense<[[0, 0], [8, 0]]> : tensor<2x2xi64>}}> {r} : ({x}, tensor<{t}>) -> {x}"""
    return Program((((3, 9), t),), (((2, 8), t), ((3, 9), t)), body, small=True)


def dynamic_reduce_window(t: str) -> Program:
    e = f"tensor<{t}>"
    functions = f"""func.func private @sum(%p: {e}, %q: {e}) -> {e} {{
  %s = stablehlo.add %p, %q : {e}
  return %s : {e} }}"""
    body = f"""%z = stablehlo.constant {scalar(t, 0)}
  %o = stablehlo.constant dense<1> : tensor<1xi32>
  %w = stablehlo.constant dense<3> : tensor<1xi32>
  %p = stablehlo.constant dense<1> : tensor<1x2xi32>
  %r0 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%a0, %z, %w, %o, %o, %o, %p)
    {{called_computations = [@sum]}} : ({tensor(ALIKE, t)}, {e}, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>,
    tensor<1xi32>, tensor<1x2xi32>) -> {tensor(ALIKE, t)}"""
    return Program(((ALIKE, t),), ((ALIKE, t),), body, small=True, by_xla=False, functions=functions)


def select_and_scatter(t: str) -> Program:
    e = f"tensor<{t}>"
    body = f"""%z = stablehlo.constant {scalar(t, 0)}
  %r0 = "stablehlo.select_and_scatter"(%a0, %a1, %z) <{{window_dimensions = array<i64: 2>,
    window_strides = array<i64: 2>}}> ({{ ^bb0(%p: {e}, %q: {e}):
      %s = stablehlo.compare GE, %p, %q : ({e}, {e}) -> tensor<i1>
      stablehlo.return %s : tensor<i1> }},
    {region("add", t)[1:-1]}) : (tensor<8x{t}>, tensor<4x{t}>, {e}) -> tensor<8x{t}>"""
    return Program((((8,), t), ((4,), t)), (((8,), t),), body, small=True)


def convolution(t: str) -> Program:
    x, w, y = (("n", 5, 2), t), ((2, 2, 3), t), (("n", 5, 3), t)
    body = f"""%r0 = stablehlo.convolution(%a0, %a1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {{stride = [1], pad = [[1, 0]]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
    : ({tensor(*x)}, {tensor(*w)}) -> {tensor(*y)}"""
    return Program((x, w), (y,), body, small=True)


def dynamic_conv(t: str) -> Program:
    made = convolution(t)
    types = ", ".join(tensor(*a) for a in made.arguments)
    body = f"""%p = stablehlo.constant dense<[[1, 0]]> : tensor<1x2xi64>
  %r0 = "stablehlo.dynamic_conv"(%a0, %a1, %p) {{batch_group_count = 1 : i64, feature_group_count = 1 : i64,
    dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>}}
    : ({types}, tensor<1x2xi64>) -> {tensor(*made.results[0])}"""
    return made._replace(body=body)


def batch_norm(kind: str) -> Form:
    """Variances are made positive."""

    def made(t: str) -> Program:
        whole, per = (("n", 5), t), ((5,), t)
        taken = {"training": (whole, per, per), "inference": (whole, *(per,) * 4), "grad": (whole, *(per,) * 3, whole)}[
            kind
        ]
        variance = {"training": -1, "inference": 4, "grad": 3}[kind]
        names = ", ".join("%b" if i == variance else f"%a{i}" for i in range(len(taken)))
        results = (whole,) if kind == "inference" else (whole, per, per)
        types = [", ".join(tensor(*a) for a in some) for some in (taken, results)]
        positive = f"%b = stablehlo.abs %a{variance} : {tensor(*per)}\n  " if variance > 0 else ""
        body = f"""{positive}%s:{len(results)} = "stablehlo.batch_norm_{kind}"({names}) <{{
    epsilon = 0.5 : f32, feature_index = 1 : i64}}> : ({types[0]}) -> ({types[1]})"""
        return Program(taken, results, body, 512, returned="%s#0, %s#1, %s#2")

    return made


def product(op: str) -> Form:
    forms = {
        "dot_general": "stablehlo.dot_general %a0, %a1, contracting_dims = [1] x [0]",
        "dot": "stablehlo.dot %a0, %a1",
        "einsum": '"stablehlo.einsum"(%a0, %a1) {einsum_config = "ab,bc->ac"}',
    }

    def made(t: str) -> Program:
        x, y, z = tensor(("n", 4), t), tensor((4, 3), t), tensor(("n", 3), t)
        arguments: tuple[Tensor, ...] = ((("n", 4), t), ((4, 3), t))
        return Program(arguments, ((("n", 3), t),), f"%r0 = {forms[op]} : ({x}, {y}) -> {z}", small=True)

    return made


def unary_einsum(t: str) -> Program:
    x, y = tensor(("n", 4), t), tensor((4,), t)
    body = f'%r0 = "stablehlo.unary_einsum"(%a0) {{einsum_config = "ab->b"}} : ({x}) -> {y}'
    return Program(((("n", 4), t),), (((4,), t),), body, small=True, by_xla=False)


def solved(op: str) -> Form:
    forms = {
        "cholesky": '"stablehlo.cholesky"(%a0) <{lower = true}> : (X) -> X',
        "triangular_solve": '"stablehlo.triangular_solve"(%a0, %a0) <{left_side = true, lower = true, '
        "unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (X, X) -> X",
    }

    def made(t: str) -> Program:
        x = tensor((3, 3), t)
        return Program((((3, 3), t),), (((3, 3), t),), "%r0 = " + forms[op].replace("X", x), 64)

    return made


def fft(t: str) -> Program:
    kind = t if "complex" in t else f"complex<{t}>"
    body = f"%r0 = stablehlo.fft %a0, type = FFT, length = [8] : (tensor<8x{kind}>) -> tensor<8x{kind}>"
    return Program((((8,), kind),), (((8,), kind),), body, 64)


def scatter(t: str) -> Program:
    x, u = tensor(("n", 4), t), tensor((2, 4), t)
    body = f"""%r0 = "stablehlo.scatter"(%a0, %a1, %a2) <{{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}>
    {region("add", t)} : ({x}, tensor<2xi32>, {u}) -> {x}"""
    return Program(((("n", 4), t), ((2,), "i32"), ((2, 4), t)), ((("n", 4), t),), body, small=True)


def random_bits(t: str) -> Program:
    bits: tuple[Tensor, ...] = (((2,), "ui64"), ((3, 5), t))
    body = f"""%r0, %r1 = stablehlo.rng_bit_generator %a0, algorithm = THREE_FRY
    : (tensor<2xui64>) -> (tensor<2xui64>, {tensor(*bits[1])})"""
    return Program(bits[:1], bits, body, by_xla=t.startswith("ui"))


def random_bits_of_sizes(t: str) -> Program:
    made = random_bits(t)
    body = f"""%shape = stablehlo.constant dense<[3, 5]> : tensor<2xi64>
  %s:2 = stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator(%a0, %shape)
    {{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}}
    : (tensor<2xui64>, tensor<2xi64>) -> (tensor<2xui64>, {tensor(*made.results[1])})"""
    return made._replace(body=body, by_xla=False, returned="%s#0, %s#1")


def quantized(t: str) -> Program:
    kind = f"!quant.uniform<i8:{t}, 0.25:3>"
    x, q = tensor(ALIKE, t), tensor(ALIKE, kind)
    body = f"%q = stablehlo.uniform_quantize %a0 : ({x}) -> {q}\n  %r0 = stablehlo.uniform_dequantize %q : ({q}) -> {x}"
    return Program(((ALIKE, t),), ((ALIKE, t),), body, by_xla=False)


GROUP = "replica_groups = dense<0> : tensor<1x1xi64>"


def alone(call: str) -> Form:
    """A collective of one participant."""

    def made(t: str) -> Program:
        x = tensor(("n", 4), t)
        body = f"%r0 = {call.replace('REGION', region('add', t))} : ({x}) -> {x}"
        return Program(((("n", 4), t),), ((("n", 4), t),), body, by_xla=False)

    return made


def asynchronous(t: str) -> Program:
    x = tensor(("n", 4), t)
    body = f"""%f = "stablehlo.async_start"(%a0) ({{ ^bb0(%c: {x}):
      %d = "stablehlo.collective_broadcast"(%c) <{{{GROUP}}}> : ({x}) -> {x}
      stablehlo.return %d : {x} }}) : ({x}) -> !stablehlo.future<{x}>
  %r0 = "stablehlo.async_done"(%f) : (!stablehlo.future<{x}>) -> {x}"""
    return Program(((("n", 4), t),), ((("n", 4), t),), body, by_xla=False)


def tokens(_: str) -> Program:
    body = """%t = stablehlo.create_token : !stablehlo.token
  %u = stablehlo.after_all %t : !stablehlo.token
  %r0 = stablehlo.negate %a0 : tensor<?xf32>"""
    return Program(((ALIKE, "f32"),), ((ALIKE, "f32"),), body, by_xla=False)


FORMS: dict[str, Form] = {
    "sort": sort, "@stablehlo.dynamic_top_k": top_k, "@mhlo.topk": stated_top_k, "@ApproxTopK": approximate(False),
    "@stablehlo.dynamic_approx_top_k": approximate(True),
    "reduce": reduce, "reduce_window": reduce_window, "@stablehlo.dynamic_reduce_window": dynamic_reduce_window,
    "select_and_scatter": select_and_scatter,
    "convolution": convolution, "dynamic_conv": dynamic_conv,
    **{f"batch_norm_{kind}": batch_norm(kind) for kind in ("training", "inference", "grad")},
    **{op: product(op) for op in ("dot_general", "dot", "einsum")}, "unary_einsum": unary_einsum,
    "cholesky": solved("cholesky"), "triangular_solve": solved("triangular_solve"), "fft": fft,
    "scatter": scatter,
    "rng_bit_generator": random_bits, "@stablehlo.dynamic_rng_bit_generator": random_bits_of_sizes,
    "uniform_quantize": quantized, "uniform_dequantize": quantized,
    "after_all": tokens, "create_token": tokens,
    "collective_reduce": alone(f'"stablehlo.collective_reduce"(%a0) <{{{GROUP}}}> REGION'),
    "cross-replica-sum": alone(f'"stablehlo.cross-replica-sum"(%a0) {{{GROUP}}}'),
    "async_start": asynchronous, "async_done": asynchronous,
}  # fmt: skip

_CALL = "jax.export's spelling of an op, with tests of its own"

NOT_GENERATED = {
    **dict.fromkeys(("dot", "einsum", "unary_einsum"), LEGACY),
    **dict.fromkeys(("@ApproxTopK", "@stablehlo.dynamic_approx_top_k", "@stablehlo.dynamic_top_k"), _CALL),
    "@mhlo.topk": _CALL.replace("jax.export", "XLA"),
    **dict.fromkeys(("@stablehlo.dynamic_reduce_window", "@stablehlo.dynamic_rng_bit_generator"), _CALL),
    **dict.fromkeys(("batch_norm_grad", "batch_norm_training"), "a variance has no bound on its error in general"),
    **dict.fromkeys(
        ("cholesky", "triangular_solve"), "a random matrix may be near a singular one; see test_ops_linalg"
    ),
    **dict.fromkeys(
        ("uniform_dequantize", "uniform_quantize"), "XLA compiles no quantized types; see test_ops_quantized"
    ),
}
