# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs for each rule of `simplify`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.proofs.template import Template

_BROADCASTS = (
    ("T(s)", "m n", "m n", "1", "0 1"),
    ("T(s t)", "m n", "q m n", "0 1", "1 2"),
    ("T(s t)", "m n", "m n", "1 0", "0 1"),
    ("T(s t)", "m n p", "m n p", "2 0", "1 0 2"),
    ("T(1 t)", "m t", "m 4 t", "0 1", "0 2"),
    ("T()", "m n", "n m p", "", "1 0"),
)
"""The operand, the sizes of the two results, and the two lists of axes, of which the second ones stand in the result."""


def _comma(numbers: str) -> str:
    return "[" + ", ".join(numbers.split()) + "]"


def _array(numbers: str) -> str:
    return "array<i64" + (": " + ", ".join(numbers.split()) if numbers.split() else "") + ">"


def _broadcasts() -> Iterator[Template]:
    for source, inner, outer, first, second in _BROADCASTS:
        if len(second.split()) != len(inner.split()):
            continue
        yield Template(
            "dynamic_broadcast_in_dim: broadcast_of_broadcast", (source,), f"""
            %s = S({inner})
            %t = S({outer})
            %0 = stablehlo.dynamic_broadcast_in_dim %a, %s, dims = {_comma(first)} : ({source}, tensor<{len(inner.split())}xi64>) -> T({inner})
            %1 = stablehlo.dynamic_broadcast_in_dim %0, %t, dims = {_comma(second)} : (T({inner}), tensor<{len(outer.split())}xi64>) -> T({outer})
            return %1 : T({outer})""",
        )  # fmt: skip
    for source, inner, outer, first, second in (
        ("T(3)", "2 3", "2 3 4", "1", "0 1"),
        ("T(1 3)", "2 3", "5 3 2", "0 1", "2 1"),
        ("T(3 2)", "2 3", "2 4 3", "1 0", "0 2"),
    ):
        yield Template(
            "broadcast_in_dim: broadcast_of_broadcast", (source,), f"""
            %0 = stablehlo.broadcast_in_dim %a, dims = {_comma(first)} : ({source}) -> T({inner})
            %1 = stablehlo.broadcast_in_dim %0, dims = {_comma(second)} : (T({inner})) -> T({outer})
            return %1 : T({outer})""",
        )  # fmt: skip


def _identities() -> Iterator[Template]:
    """Ops that move nothing, and some that move although the types are the same."""
    for op, sizes, numbers, refused in (
        ("broadcast_in_dim", "3 3", "0 1", ""), ("broadcast_in_dim", "3 3", "1 0", "the axes change places"),
        ("transpose", "b b", "0 1", ""), ("transpose", "b b", "1 0", "the axes change places"),
        ("transpose", "b 4 b", "0 1 2", ""), ("transpose", "b 4 b", "2 1 0", "the axes change places"),
    ):  # fmt: skip
        yield Template(f"{op}: identity_data_movement", (f"T({sizes})",), f"""
            %0 = stablehlo.{op} %a, dims = {_comma(numbers)} : (T({sizes})) -> T({sizes})
            return %0 : T({sizes})""", refused=refused)  # fmt: skip
    for numbers, refused in (("0 1", ""), ("1 0", "the axes change places")):
        yield Template("dynamic_broadcast_in_dim: identity_data_movement", ("T(b b)",), f"""
            %s = S(b b)
            %0 = stablehlo.dynamic_broadcast_in_dim %a, %s, dims = {_comma(numbers)} : (T(b b), tensor<2xi64>) -> T(b b)
            return %0 : T(b b)""", refused=refused)  # fmt: skip
    for element in ("f32", "bf16", "i32", "i1"):
        yield Template("convert: identity_data_movement", (f"T(b 4, {element})",), f"""
            %0 = stablehlo.convert %a : (T(b 4, {element})) -> T(b 4, {element})
            return %0 : T(b 4, {element})""")  # fmt: skip
    yield Template("convert: identity_data_movement", ("T(b 4)",), """
        %0 = stablehlo.convert %a : (T(b 4)) -> T(b 4, bf16)
        return %0 : T(b 4, bf16)""", refused="the elements are rounded")  # fmt: skip
    for sizes in ("b k", "b 4 floordiv(b,2)", "b"):
        count = len(sizes.split())
        yield Template("dynamic_reshape: identity_data_movement", (f"T({sizes})".replace("floordiv(b,2)", "2*b"),), f"""
            %s = S({sizes})
            %0 = stablehlo.dynamic_reshape %a, %s : (T({sizes}), tensor<{count}xi64>) -> T({sizes})
            return %0 : T({sizes})""".replace("floordiv(b,2)", "2*b"))  # fmt: skip
    yield Template("reshape: identity_data_movement", ("T(2 3)",), """
        %0 = stablehlo.reshape %a : (T(2 3)) -> T(2 3)
        return %0 : T(2 3)""")  # fmt: skip
    yield Template("reshape: identity_data_movement", ("T(2 3)",), """
        %0 = stablehlo.reshape %a : (T(2 3)) -> T(3 2)
        return %0 : T(3 2)""", refused="the sizes change")  # fmt: skip
    for sizes, limit, stride, refused in (("b 4", "b 4", "1 1", ""), ("b 4", "b-1 4", "1 1", "it is smaller")):
        yield Template("real_dynamic_slice: identity_data_movement", (f"T({sizes})",), f"""
            %s = S(0 0)
            %l = S({limit})
            %t = S({stride})
            %0 = stablehlo.real_dynamic_slice %a, %s, %l, %t : (T({sizes}), tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> T({limit})
            return %0 : T({limit})""", refused=refused)  # fmt: skip
    # Bounds that are data: a slice as large as all begins at 0.
    yield Template("real_dynamic_slice: identity_data_movement", ("T(b 4)", "tensor<2xi64>", "tensor<2xi64>"), """
        %t = S(1 1)
        %0 = stablehlo.real_dynamic_slice %a, %b, %c, %t : (T(b 4), tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> T(b 4)
        return %0 : T(b 4)""")  # fmt: skip


def _static_forms() -> Iterator[Template]:
    yield Template("dynamic_broadcast_in_dim: static_broadcast", ("T(1 3)",), """
        %s = S(2 3 4)
        %0 = stablehlo.dynamic_broadcast_in_dim %a, %s, dims = [0, 1] : (T(1 3), tensor<3xi64>) -> T(2 3 4)
        return %0 : T(2 3 4)""")  # fmt: skip
    yield Template("dynamic_broadcast_in_dim: static_broadcast", ("T(b)",), """
        %s = S(2 3)
        %0 = stablehlo.dynamic_broadcast_in_dim %a, %s, dims = [1] : (T(b), tensor<2xi64>) -> T(2 3)
        return %0 : T(2 3)""", refused="the operand has no static size")  # fmt: skip
    yield Template("dynamic_reshape: static_reshape", ("T(2 6)",), """
        %s = S(3 4)
        %0 = stablehlo.dynamic_reshape %a, %s : (T(2 6), tensor<2xi64>) -> T(3 4)
        return %0 : T(3 4)""")  # fmt: skip


def _reshapes() -> Iterator[Template]:
    for source, inner, outer in (
        ("b 6", "b 2 3", "b 3 2"), ("b k", "b*k", "k b"), ("b 6", "6*b", "2 b 3"), ("b 1 k", "b k", "1 b*k"),
        ("b k 4", "b 4*k", "b*k 4"), ("2 b k", "b 2 k", "b*k 2"), ("b k n", "n*k b", "k b*n"),
    ):  # fmt: skip
        first, second = len(inner.split()), len(outer.split())
        yield Template("dynamic_reshape: reshape_of_reshape", (f"T({source})",), f"""
            %s = S({inner})
            %t = S({outer})
            %0 = stablehlo.dynamic_reshape %a, %s : (T({source}), tensor<{first}xi64>) -> T({inner})
            %1 = stablehlo.dynamic_reshape %0, %t : (T({inner}), tensor<{second}xi64>) -> T({outer})
            return %1 : T({outer})""")  # fmt: skip
    for source, inner, outer in (("2 6", "3 4", "12"), ("4 6", "2 12", "8 3"), ("2 3 4", "6 4", "2 12")):
        yield Template("reshape: reshape_of_reshape", (f"T({source})",), f"""
            %0 = stablehlo.reshape %a : (T({source})) -> T({inner})
            %1 = stablehlo.reshape %0 : (T({inner})) -> T({outer})
            return %1 : T({outer})""")  # fmt: skip
    yield Template("reshape: reshape_of_reshape", ("T(2 6)",), """
        %0 = stablehlo.transpose %a, dims = [1, 0] : (T(2 6)) -> T(6 2)
        %1 = stablehlo.reshape %0 : (T(6 2)) -> T(3 4)
        return %1 : T(3 4)""", refused="it is one of a transpose")  # fmt: skip


def _transposes() -> Iterator[Template]:
    for sizes, first, second in (
        ("b k", "1 0", "1 0"), ("b k 3", "1 2 0", "1 0 2"), ("b k n", "2 0 1", "2 0 1"), ("b k n 4", "3 0 2 1", "1 2 0 3"),
        ("b k n m p", "4 2 0 1 3", "1 0 3 4 2"),
    ):  # fmt: skip
        dims = sizes.split()
        inner = [dims[int(p)] for p in first.split()]
        outer = [inner[int(p)] for p in second.split()]
        yield Template("transpose: transpose_of_transpose", (f"T({sizes})",), f"""
            %0 = stablehlo.transpose %a, dims = {_comma(first)} : (T({sizes})) -> T({" ".join(inner)})
            %1 = stablehlo.transpose %0, dims = {_comma(second)} : (T({" ".join(inner)})) -> T({" ".join(outer)})
            return %1 : T({" ".join(outer)})""")  # fmt: skip


def _reverses() -> Iterator[Template]:
    for sizes, first, second in (("b", "0", "0"), ("b k", "0", "1"), ("b k 3", "0 2", "2 1"), ("b b", "1 0", "0")):
        yield Template("reverse: reverse_of_reverse", (f"T({sizes})",), f"""
            %0 = stablehlo.reverse %a, dims = {_comma(first)} : T({sizes})
            %1 = stablehlo.reverse %0, dims = {_comma(second)} : T({sizes})
            return %1 : T({sizes})""")  # fmt: skip


def _unit_broadcasts() -> Iterator[Template]:
    rule = "dynamic_broadcast_in_dim: unit_broadcast_is_reshape"
    for source, result, dims, refused in (
        ("b 4", "b 1 4", "0 2", ""), ("b k", "1 b k 1", "1 2", ""), ("1 k", "1 1 k", "1 2", ""), ("b 1", "1 b 1", "1 2", ""),
        ("b k", "k 1 b", "2 0", "the axes change places"), ("b 4", "b 2 4", "0 2", "elements repeat"),
        ("b 4", "n 1 4", "0 2", "elements may repeat"), ("b b", "b 1 b", "2 0", "the axes of a square change places"),
    ):  # fmt: skip
        yield Template(rule, (f"T({source})",), f"""
            %s = S({result})
            %0 = stablehlo.dynamic_broadcast_in_dim %a, %s, dims = {_comma(dims)} : (T({source}), tensor<{len(result.split())}xi64>) -> T({result})
            return %0 : T({result})""", refused=refused)  # fmt: skip
    for source, result, dims, refused in (
        ("2 4", "2 1 4", "0 2", ""), ("3", "1 3 1", "1", ""), ("2 2", "2 1 2", "2 0", "the axes change places"),
        ("1 4", "2 1 4", "0 2", "elements repeat"), ("2 4", "2 3 4", "0 2", "elements repeat"),
    ):  # fmt: skip
        yield Template("broadcast_in_dim: unit_broadcast_is_reshape", (f"T({source})",), f"""
            %0 = stablehlo.broadcast_in_dim %a, dims = {_comma(dims)} : (T({source})) -> T({result})
            return %0 : T({result})""", refused=refused)  # fmt: skip


def _slices() -> Iterator[Template]:
    yield Template("real_dynamic_slice: constant_bounds_are_shapes", ("T(b 8)",), """
        %s = stablehlo.constant dense<[1, 2]> : tensor<2xi64>
        %l = S(b 7)
        %t = stablehlo.constant dense<[1, 2]> : tensor<2xi64>
        %0 = stablehlo.real_dynamic_slice %a, %s, %l, %t : (T(b 8), tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> T(b-1 3)
        return %0 : T(b-1 3)""")  # fmt: skip
    yield Template("real_dynamic_slice: constant_bounds_are_shapes", ("T(b 8)", "tensor<2xi64>"), """
        %l = stablehlo.constant dense<[3, 7]> : tensor<2xi64>
        %t = stablehlo.constant dense<[2, 1]> : tensor<2xi64>
        %0 = stablehlo.real_dynamic_slice %a, %b, %l, %t : (T(b 8), tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> T(n m)
        return %0 : T(n m)""")  # fmt: skip


def _gathers() -> Iterator[Template]:
    for whole, start, axes, sizes, refused in (
        ("8 b", "[3]", "[0]", "2 b", ""), ("8 b", "[6]", "[0]", "2 b", ""),
        ("8 b", "[7]", "[0]", "2 b", "it is moved inside"), ("8 b", "[-1]", "[0]", "2 b", "it is moved inside"),
        ("8 6 b", "[3, 1]", "[1, 0]", "2 2 b", ""), ("8 6 b", "[2, 5]", "[0, 1]", "3 1 b", ""),
        ("b 4", "[3]", "[0]", "2 4", "it may be moved inside"),
    ):  # fmt: skip
        count = start.count(",") + 1
        rank = len(sizes.split())
        offsets = list(range(rank))
        yield Template("dynamic_gather: gather_of_one_slice", (f"T({whole})",), f"""
            %s = stablehlo.constant dense<{start}> : tensor<{count}xi32>
            %n = S({sizes})
            %0 = "stablehlo.dynamic_gather"(%a, %s, %n) <{{dimension_numbers = #stablehlo.gather<offset_dims = {offsets}, start_index_map = {axes}>}}> : (T({whole}), tensor<{count}xi32>, tensor<{rank}xi64>) -> T({sizes})
            return %0 : T({sizes})""", refused=refused)  # fmt: skip
    for whole, start, collapsed, sizes, result, refused in (
        ("8 6", "[3, 1]", "[0]", "1 4", "4", ""), ("8 6", "[3, 2]", "[]", "2 4", "2 4", ""),
        ("8 6", "[3, 3]", "[]", "2 4", "2 4", "it is moved inside"), ("8 6", "[3, 5]", "[1]", "2 1", "2", ""),
    ):  # fmt: skip
        offsets = list(range(len(result.split())))
        yield Template("gather: gather_of_one_slice", (f"T({whole})",), f"""
            %s = stablehlo.constant dense<{start}> : tensor<2xi32>
            %0 = "stablehlo.gather"(%a, %s) <{{dimension_numbers = #stablehlo.gather<offset_dims = {offsets}, collapsed_slice_dims = {collapsed}, start_index_map = [0, 1]>, slice_sizes = {_array(sizes)}}}> : (T({whole}), tensor<2xi32>) -> T({result})
            return %0 : T({result})""", refused=refused)  # fmt: skip
    yield Template("gather: gather_of_one_slice", ("T(8 6)",), """
        %s = stablehlo.constant dense<[[3], [1]]> : tensor<2x1xi32>
        %0 = "stablehlo.gather"(%a, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>}> : (T(8 6), tensor<2x1xi32>) -> T(2 6)
        return %0 : T(2 6)""", refused="there are two slices")  # fmt: skip


def _dot(numbers: str, left: str, right: str, result: str, names: tuple[str, str] = ("%a", "%b")) -> str:
    return f"stablehlo.dot_general {names[0]}, {names[1]}, {numbers} : ({left}, {right}) -> {result}"


def _dots() -> Iterator[Template]:
    rule = "dot_general: transposed_operand"
    yield Template(rule, ("T(b k)", "T(n k)"), f"""
        %t = stablehlo.transpose %b, dims = [1, 0] : (T(n k)) -> T(k n)
        %0 = {_dot("contracting_dims = [1] x [0]", "T(b k)", "T(k n)", "T(b n)", ("%a", "%t"))}
        return %0 : T(b n)""")  # fmt: skip
    yield Template(rule, ("T(b h k)", "T(h b k)"), f"""
        %t = stablehlo.transpose %a, dims = [1, 0, 2] : (T(b h k)) -> T(h b k)
        %0 = {_dot("batching_dims = [1, 0] x [1, 0], contracting_dims = [2] x [2]", "T(h b k)", "T(h b k)", "T(b h)", ("%t", "%b"))}
        return %0 : T(b h)""")  # fmt: skip
    yield Template(rule, ("T(m k b n)", "T(k b l)"), f"""
        %t = stablehlo.transpose %a, dims = [2, 0, 1, 3] : (T(m k b n)) -> T(b m k n)
        %u = stablehlo.transpose %b, dims = [1, 0, 2] : (T(k b l)) -> T(b k l)
        %0 = {_dot("batching_dims = [0] x [0], contracting_dims = [2] x [1]", "T(b m k n)", "T(b k l)", "T(b m n l)", ("%t", "%u"))}
        return %0 : T(b m n l)""")  # fmt: skip
    yield Template(rule, ("T(b k)", "T(n k n)"), f"""
        %t = stablehlo.transpose %b, dims = [1, 2, 0] : (T(n k n)) -> T(k n n)
        %0 = {_dot("contracting_dims = [1] x [0]", "T(b k)", "T(k n n)", "T(b n n)", ("%a", "%t"))}
        return %0 : T(b n n)""", refused="the free axes change places")  # fmt: skip
    for element, wide in (("bf16", "bf16"), ("f16", "f16"), ("i8", "i8")):
        yield Template("dot_general: narrow_result", (f"T(b k, {element})", f"T(k n, {element})"), f"""
            %0 = {_dot("contracting_dims = [1] x [0]", f"T(b k, {element})", f"T(k n, {element})", f"T(b n, {wide})")}
            return %0 : T(b n, {wide})""")  # fmt: skip
    rule = "dot_general: inner_product"
    for left, right, result, numbers in (
        ("k", "k", "", "contracting_dims = [0] x [0]"),
        ("b h k", "h k b", "b h", "batching_dims = [0, 1] x [2, 0], contracting_dims = [2] x [1]"),
        ("h k b", "b h k", "b h", "batching_dims = [2, 0] x [0, 1], contracting_dims = [1] x [2]"),
        ("n b k", "k b n", "b", "batching_dims = [1] x [1], contracting_dims = [2, 0] x [0, 2]"),
        ("b h", "h b", "h b", "batching_dims = [1, 0] x [0, 1], contracting_dims = [] x []"),
    ):
        yield Template(rule, (f"T({left})", f"T({right})"), f"""
            %0 = {_dot(numbers, f"T({left})", f"T({right})", f"T({result})")}
            return %0 : T({result})""")  # fmt: skip
    for element in ("f64", "i32"):
        yield Template(rule, (f"T(b k, {element})", f"T(b k, {element})"), f"""
            %0 = {_dot("batching_dims = [0] x [0], contracting_dims = [1] x [1]", *[f"T(b k, {element})"] * 2, f"T(b, {element})")}
            return %0 : T(b, {element})""")  # fmt: skip
    yield Template(rule, ("T(b k)", "T(b k n)"), f"""
        %0 = {_dot("batching_dims = [0] x [0], contracting_dims = [1] x [1]", "T(b k)", "T(b k n)", "T(b n)")}
        return %0 : T(b n)""", refused="the result has columns")  # fmt: skip
    yield Template(rule, ("T(k, bf16)", "T(k, f16)"), f"""
        %0 = {_dot("contracting_dims = [0] x [0]", "T(k, bf16)", "T(k, f16)", "T()")}
        return %0 : T()""", refused="the operands have two types")  # fmt: skip
    yield Template("transpose: transposed_narrow_result", ("T(h b k, f16)", "T(h k n, f16)"), f"""
        %0 = {_dot("batching_dims = [0] x [0], contracting_dims = [2] x [1]", "T(h b k, f16)", "T(h k n, f16)", "T(h b n)")}
        %1 = stablehlo.convert %0 : (T(h b n)) -> T(h b n, f16)
        %2 = stablehlo.transpose %1, dims = [2, 0, 1] : (T(h b n, f16)) -> T(n h b, f16)
        return %2 : T(n h b, f16)""")  # fmt: skip


def _exchanged() -> Iterator[Template]:
    rule = "transpose: exchanged_operands"
    for numbers, weight in (("contracting_dims = [1] x [1]", "n k"), ("contracting_dims = [0] x [1]", "k n")):
        yield Template(rule, (f"T({weight})", "T(b k)"), f"""
            %h = stablehlo.tanh %b : T(b k)
            %p = {_dot(numbers, f"T({weight})", "T(b k)", "T(n b)", ("%a", "%h"))}
            %t = stablehlo.transpose %p, dims = [1, 0] : (T(n b)) -> T(b n)
            return %t : T(b n)""")  # fmt: skip
    yield Template(rule, ("T(n k)", "T(b k)", "T(b)", "T()"), f"""
        %h = stablehlo.tanh %b : T(b k)
        %s = S(n b)
        %p = {_dot("contracting_dims = [1] x [1]", "T(n k)", "T(b k)", "T(n b)", ("%a", "%h"))}
        %v = stablehlo.dynamic_broadcast_in_dim %c, %s, dims = [1] : (T(b), tensor<2xi64>) -> T(n b)
        %w = stablehlo.dynamic_broadcast_in_dim %d, %s, dims = [] : (T(), tensor<2xi64>) -> T(n b)
        %1 = stablehlo.subtract %v, %p : T(n b)
        %2 = stablehlo.multiply %1, %w : T(n b)
        %3 = stablehlo.exponential %2 : T(n b)
        %t = stablehlo.transpose %3, dims = [1, 0] : (T(n b)) -> T(b n)
        return %t : T(b n)""")  # fmt: skip
    yield Template(rule, ("T(8 k)", "T(b k)"), f"""
        %h = stablehlo.tanh %b : T(b k)
        %s = S(3 1)
        %l = S(5 b)
        %o = S(1 1)
        %p = {_dot("contracting_dims = [1] x [1]", "T(8 k)", "T(b k)", "T(8 b)", ("%a", "%h"))}
        %1 = stablehlo.real_dynamic_slice %p, %s, %l, %o : (T(8 b), tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> T(2 b-1)
        %t = stablehlo.transpose %1, dims = [1, 0] : (T(2 b-1)) -> T(b-1 2)
        return %t : T(b-1 2)""")  # fmt: skip
    yield Template(rule, ("T(8 k)", "T(b k)"), f"""
        %h = stablehlo.tanh %b : T(b k)
        %s = S(1 0)
        %l = S(8 b)
        %o = S(2 1)
        %p = {_dot("contracting_dims = [1] x [1]", "T(8 k)", "T(b k)", "T(8 b)", ("%a", "%h"))}
        %1 = stablehlo.real_dynamic_slice %p, %s, %l, %o : (T(8 b), tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> T(4 b)
        %t = stablehlo.transpose %1, dims = [1, 0] : (T(4 b)) -> T(b 4)
        return %t : T(b 4)""", refused="the slice has a stride")  # fmt: skip


def _reductions() -> Iterator[Template]:
    rule = "reduce: reduce_of_ones"

    def reduction(
        sizes: str, axes: str, result: str, name: str, start: str, element: str, refused: str = ""
    ) -> Template:
        return Template(rule, (f"T({sizes}, {element})",), f"""
            %s = stablehlo.constant dense<{start}> : tensor<{element}>
            %0 = stablehlo.reduce(%a init: %s) applies stablehlo.{name} across dimensions = {axes} : (T({sizes}, {element}), tensor<{element}>) -> T({result}, {element})
            return %0 : T({result}, {element})""", has_bits=not element.startswith("f"), refused=refused)  # fmt: skip

    for sizes, axes, result in (("b 1 4", "[1]", "b 4"), ("1 b 1", "[0, 2]", "b"), ("b 1 k n", "[1]", "b k n")):
        yield reduction(sizes, axes, result, "add", "0.0", "f32")
    for name, start, element in (
        ("multiply", "1.0", "f32"), ("maximum", "0xFF800000", "f32"), ("minimum", "0x7F800000", "f32"), ("add", "0", "i32"),
        ("multiply", "1", "i32"), ("maximum", "-2147483648", "i32"), ("minimum", "2147483647", "i32"), ("and", "-1", "i32"),
        ("or", "0", "i32"), ("xor", "0", "i32"), ("and", "255", "ui8"), ("minimum", "255", "ui8"), ("maximum", "0", "ui8"),
        ("and", "true", "i1"), ("or", "false", "i1"), ("maximum", "false", "i1"), ("minimum", "true", "i1"),
        ("xor", "false", "i1"),
    ):  # fmt: skip
        yield reduction("b 1", "[1]", "b", name, start, element)
    yield reduction("b 1", "[1]", "b", "add", "1.0", "f32", "it does not start at the neutral element")
    yield reduction("b 1", "[1]", "b", "maximum", "0", "i32", "it does not start at the neutral element")
    yield reduction("b 1 k", "[1, 2]", "b", "add", "0.0", "f32", "one of the sizes is not 1")


def _unit_axes() -> Iterator[Template]:
    for sizes, permutation in (
        ("2 n 1 m", "0 3 2 1"), ("b 1 k", "1 2 0"), ("1 b k n", "3 0 2 1"), ("b 1 k", "0 2 1"), ("1 b 1 k 1", "4 3 2 1 0"),
    ):  # fmt: skip
        dims = sizes.split()
        result = " ".join(dims[int(p)] for p in permutation.split())
        yield Template("transpose: transpose_of_unit_axes", (f"T({sizes})",), f"""
            %0 = stablehlo.transpose %a, dims = {_comma(permutation)} : (T({sizes})) -> T({result})
            return %0 : T({result})""", target="cuda")  # fmt: skip
    for name, first, second in (
        ("multiply", "%p", "%s"),
        ("divide", "%p", "%s"),
        ("subtract", "%s", "%p"),
        ("add", "%s", "%p"),
    ):
        yield Template("transpose: transpose_of_scaled", ("T(n k)", "T(m k)", "T()"), f"""
            %p = {_dot("contracting_dims = [1] x [1]", "T(n k)", "T(m k)", "T(n m)")}
            %d = S(n m)
            %s = stablehlo.dynamic_broadcast_in_dim %c, %d, dims = [] : (T(), tensor<2xi64>) -> T(n m)
            %0 = stablehlo.{name} {first}, {second} : T(n m)
            %1 = stablehlo.transpose %0, dims = [1, 0] : (T(n m)) -> T(m n)
            return %1 : T(m n)""", target="cuda")  # fmt: skip
    yield Template("transpose: transpose_of_scaled", ("T(n k)", "T(m k)", "T(m)"), f"""
        %p = {_dot("contracting_dims = [1] x [1]", "T(n k)", "T(m k)", "T(n m)")}
        %d = S(n m)
        %s = stablehlo.dynamic_broadcast_in_dim %c, %d, dims = [1] : (T(m), tensor<2xi64>) -> T(n m)
        %0 = stablehlo.multiply %p, %s : T(n m)
        %1 = stablehlo.transpose %0, dims = [1, 0] : (T(n m)) -> T(m n)
        return %1 : T(m n)""", target="cuda", refused="it is scaled by a vector")  # fmt: skip
    rule = "dot_general: product_of_unit_axes"
    for left, right, result, numbers in (
        ("2 n 1 8", "2 m 8", "2 n 1 m", "batching_dims = [0] x [0], contracting_dims = [3] x [2]"),
        ("1 k", "k n", "1 n", "contracting_dims = [1] x [0]"), ("b k", "1 k 1 n", "b 1 1 n", "contracting_dims = [1] x [1]"),
        ("1 b k 1 h", "b h k 1", "b h 1 1 1", "batching_dims = [1, 4] x [0, 1], contracting_dims = [2] x [2]"),
    ):  # fmt: skip
        yield Template(rule, (f"T({left})", f"T({right})"), f"""
            %0 = {_dot(numbers, f"T({left})", f"T({right})", f"T({result})")}
            return %0 : T({result})""", target="cuda")  # fmt: skip


TEMPLATES: list[Template] = [
    *_broadcasts(), *_identities(), *_static_forms(), *_reshapes(), *_transposes(), *_reverses(), *_unit_broadcasts(), *_slices(),
    *_gathers(), *_dots(), *_exchanged(), *_reductions(), *_unit_axes(),
]  # fmt: skip
