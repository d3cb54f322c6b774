# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wrong calls and the exact texts of their errors, for `test_bad_input.py`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from shlo_disc.errors import ArgumentTypeError, DiscError, ShapeError
from shlo_disc.runtime import AllocationError
from tests.run.call_programs import params, steps, view, zeros

_OWN = re.compile(r"\A.*?\n(?=Shape mismatch for|Input shapes do not match|The invocation args)", re.DOTALL)


def words_of_jax(text: str) -> str:
    """The part of an error's text that is in the words of jax.export."""
    return _OWN.sub("", text).rstrip()


def text_of(error: BaseException) -> str:
    """An error's message in JAX's words, with links to JAX's documentation as when the tests were written."""
    text = error.message if isinstance(error, DiscError) else str(error)
    text = words_of_jax(text)
    return re.sub(r"https://docs\.jax\.dev/\S+?(?=#)", "https://docs.jax.dev/en/latest/export/shape_poly.html", text)


# ---- calls -------------------------------------------------------------------------------------------------------

TREE = (
    "The invocation args and kwargs must have the same pytree structure as when the function '{name}' was exported, "
    "but they have the following structural differences:\n"
)
ADVICE = "Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details."
"""JAX moves its documentation between releases; `text_of` makes any link to it this one."""

POLYMORPHIC = "Input shapes do not match the polymorphic shapes specification. "
LAYER_SHAPES = "args[0]['w'].shape = (s, 8),args[1].shape = (b, s)"


def tree(*differences: str, name: str = "layer") -> str:
    """The text for a wrong pytree."""
    return TREE.format(name=name) + "\n".join(f"   - {line}\n" for line in differences)


def sizes(finding: str, shapes: str, *obtained: str) -> str:
    """The text for wrong sizes."""
    listed = "".join(f"{text}, " for text in obtained)
    return (
        f"{finding} Using the following polymorphic shapes specifications: {shapes}. "
        f"Obtained dimension variables: {listed}. {ADVICE}"
    )


def obtained(symbol: str, value: int, specification: str, dimension: str, size: int) -> str:
    """One solved symbol."""
    return f"'{symbol}' = {value} from specification '{specification}' for dimension {dimension} (= {size})"


def layer_sizes(finding: str, s: int, b: int) -> str:
    """The text for wrong sizes of `layer`."""
    solved = (obtained("s", s, "s", "args[0]['w'].shape[0]", s), obtained("b", b, "b", "args[1].shape[0]", b))
    return sizes(finding, LAYER_SHAPES, *solved)


@dataclass(frozen=True)
class BadCall:
    """A call, its error, and whether jax.export says the same. advice: what follows that."""

    program: str
    args: Callable[[], tuple[Any, ...]]
    error: type[DiscError]
    message: str
    as_jax: bool = True
    kwargs: tuple[tuple[str, Any], ...] = ()
    advice: str = ""


def not_a_leaf(path: str, kind: str) -> str:
    """The text for a container or None in place of an array. JAX, having lost the array, speaks of an 'int'."""
    return tree(
        f"{path} is a <class '{kind}'> in the invocation and a pytree leaf when exported, so their Python types differ."
    )


CALLS: dict[str, BadCall] = {
    # Ranks, dtypes, static sizes.
    "rank too high": BadCall(
        "layer",
        lambda: (params(3), zeros(4, 3, 1)),
        ShapeError,
        "Rank mismatch for args[1]: expected (b, s) and called with (4, 3, 1)",
    ),
    "rank too low": BadCall(
        "layer",
        lambda: ({"w": zeros(3), "b": zeros(8)}, zeros(4, 3)),
        ShapeError,
        "Rank mismatch for args[0]['w']: expected (s, 8) and called with (3,)",
    ),
    "number for an array": BadCall(
        "layer",
        lambda: (params(3), 1.5),
        ShapeError,
        "Rank mismatch for args[1]: expected (b, s) and called with ()",
    ),
    "array for a number": BadCall(
        "scale",
        lambda: (steps(3), zeros(1, dtype=np.int32)),
        ShapeError,
        "Rank mismatch for args[1]: expected () and called with (1,)",
    ),
    "dtype of an integer": BadCall(
        "layer",
        lambda: (params(3), zeros(4, 3, dtype=np.int32)),
        ArgumentTypeError,
        "Dtype mismatch for args[1]: expected float32 and called with int32",
        advice=": convert it by args[1].astype('float32'), or compile the program for int32",
    ),
    "dtype of double precision": BadCall(
        "layer",
        lambda: (params(3), zeros(4, 3, dtype=np.float64)),
        ArgumentTypeError,
        "Dtype mismatch for args[1]: expected float32 and called with float64: convert it by args[1].astype('float32')",
        as_jax=False,  # JAX turns float64 into float32 unless jax_enable_x64 is set
    ),
    "dtype of half precision": BadCall(
        "layer",
        lambda: (params(3), zeros(4, 3, dtype=ml_dtypes.bfloat16)),
        ArgumentTypeError,
        "Dtype mismatch for args[1]: expected float32 and called with bfloat16",
        advice=": convert it by args[1].astype('float32'), or compile the program for bfloat16",
    ),
    "dtype of eight bits": BadCall(
        "layer",
        lambda: (params(3), zeros(4, 3, dtype=ml_dtypes.float8_e4m3fn)),
        ArgumentTypeError,
        "Dtype mismatch for args[1]: expected float32 and called with float8_e4m3fn",
        advice=": convert it by args[1].astype('float32'), or compile the program for float8_e4m3fn",
    ),
    "complex array": BadCall(
        "layer",
        lambda: (params(3), zeros(4, 3, dtype=np.complex64)),
        ArgumentTypeError,
        "Dtype mismatch for args[1]: expected float32 and called with complex64",
        advice=": pass its real part, args[1].real.astype('float32'), or compile the program for complex64",
    ),
    "static size": BadCall(
        "layer",
        lambda: (params(3, 7), zeros(4, 3)),
        ShapeError,
        "Shape mismatch for args[0]['w'].shape[1] (expected same constant): expected (s, 8) and called with (3, 7)",
    ),
    "size that a reshape fixes": BadCall(
        "fifteen",
        lambda: (zeros(16),),
        ShapeError,
        "Shape mismatch for args[0].shape[0] (expected same constant): expected (15,) and called with (16,)",
        as_jax=False,  # XLA ends compilation with an internal error
    ),
    # Pytrees.
    "missing key": BadCall(
        "layer",
        lambda: ({"w": zeros(3, 8)}, zeros(4, 3)),
        ArgumentTypeError,
        tree(
            "args[0] is a <class 'dict'> with 1 child in the invocation and a <class 'dict'> with 2 children when "
            "exported, so the numbers of children do not match, with the symmetric difference of key sets: {'b'}."
        ),
    ),
    "extra key": BadCall(
        "layer",
        lambda: ({**params(3), "c": zeros(1)}, zeros(4, 3)),
        ArgumentTypeError,
        tree(
            "args[0] is a <class 'dict'> with 3 children in the invocation and a <class 'dict'> with 2 children when "
            "exported, so the numbers of children do not match, with the symmetric difference of key sets: {'c'}."
        ),
    ),
    "other key": BadCall(
        "layer",
        lambda: ({"w": zeros(3, 8), "c": zeros(8)}, zeros(4, 3)),
        ArgumentTypeError,
        tree(
            "args[0] is a <class 'dict'> with pytree metadata ('c', 'w') in the invocation and a <class 'dict'> with "
            "pytree metadata ('b', 'w') when exported, so the pytree node metadata does not match."
        ),
    ),
    "extra argument": BadCall(
        "layer",
        lambda: (params(3), zeros(4, 3), zeros(1)),
        ArgumentTypeError,
        tree(
            "args is a tuple of length 3 in the invocation and a tuple of length 2 when exported, so the lengths do "
            "not match."
        ),
    ),
    "no arguments": BadCall(
        "layer",
        tuple,
        ArgumentTypeError,
        tree(
            "args is a tuple of length 0 in the invocation and a tuple of length 2 when exported, so the lengths do "
            "not match."
        ),
    ),
    "argument by name": BadCall(
        "layer",
        lambda: (params(3),),
        ArgumentTypeError,
        tree(
            "args is a tuple of length 1 in the invocation and a tuple of length 2 when exported, so the lengths do "
            "not match.",
            "kwargs is a <class 'dict'> with 1 child in the invocation and a <class 'dict'> with 0 child when "
            "exported, so the numbers of children do not match, with the symmetric difference of key sets: {'y'}.",
        ),
        kwargs=(("y", 1.0),),
    ),
    "list for a dict": BadCall(
        "layer",
        lambda: ([zeros(8), zeros(3, 8)], zeros(4, 3)),
        ArgumentTypeError,
        tree(
            "args[0] is a <class 'list'> in the invocation and a <class 'dict'> when exported, so their Python types "
            "differ."
        ),
    ),
    "None": BadCall(
        "layer", lambda: (params(3), None), ArgumentTypeError, not_a_leaf("args[1]", "NoneType"), as_jax=False
    ),
    "None in a dict": BadCall(
        "layer",
        lambda: ({"w": zeros(3, 8), "b": None}, zeros(4, 3)),
        ArgumentTypeError,
        not_a_leaf("args[0]['b']", "NoneType"),
        as_jax=False,
    ),
    "tuple for an array": BadCall(
        "layer", lambda: (params(3), (zeros(4, 3),)), ArgumentTypeError, not_a_leaf("args[1]", "tuple"), as_jax=False
    ),
    "ragged list": BadCall(
        "layer", lambda: (params(3), [[1, 2], [3]]), ArgumentTypeError, not_a_leaf("args[1]", "list"), as_jax=False
    ),
    # Things that are no arrays.
    "str": BadCall(
        "layer",
        lambda: (params(3), "abc"),
        ArgumentTypeError,
        "args[1] is a <class 'str'>, which is not an array or a number",
        as_jax=False,
    ),
    "bytes": BadCall(
        "layer",
        lambda: (params(3), b"abc"),
        ArgumentTypeError,
        "args[1] is a <class 'bytes'>, which is not an array or a number",
        as_jax=False,
    ),
    "set": BadCall(
        "layer",
        lambda: (params(3), {1, 2}),
        ArgumentTypeError,
        "args[1] is a <class 'set'>, which is not an array or a number",
        as_jax=False,
    ),
    "complex number": BadCall(
        "scale",
        lambda: (steps(3), 1j),
        ArgumentTypeError,
        "Dtype mismatch for args[1]: expected int32 and called with a Python complex number: "
        "pass its real part, or compile the program for complex64",
        as_jax=False,
    ),
    "float for an integer": BadCall(
        "scale",
        lambda: (steps(3), 1.5),
        ArgumentTypeError,
        "Dtype mismatch for args[1]: expected int32 and called with a Python float: "
        "pass int(args[1]), or compile the program for float32",
        as_jax=False,  # JAX gives the number a dtype first, and says float32
    ),
    "array of objects": BadCall(
        "layer",
        lambda: (params(3), np.array([[None] * 3] * 4)),
        ArgumentTypeError,
        "Dtype mismatch for args[1]: expected float32 and called with object: "
        "if it is an array of numbers, convert it by args[1].astype('float32')",
        as_jax=False,
    ),
    "array of strings": BadCall(
        "layer",
        lambda: (params(3), np.array([["a"] * 3] * 4)),
        ArgumentTypeError,
        "Dtype mismatch for args[1]: expected float32 and called with <U1",
        as_jax=False,
    ),
    "array of dates": BadCall(
        "layer",
        lambda: (params(3), np.zeros((4, 3), "M8[s]")),
        ArgumentTypeError,
        "Dtype mismatch for args[1]: expected float32 and called with datetime64[s]",
        as_jax=False,
    ),
    "array of records": BadCall(
        "layer",
        lambda: (params(3), np.zeros((4, 3), [("a", "f4")])),
        ArgumentTypeError,
        "Dtype mismatch for args[1]: expected float32 and called with [('a', '<f4')]",
        as_jax=False,
    ),
    # Symbols and constraints.
    "two sizes for a symbol": BadCall(
        "layer",
        lambda: (params(5), zeros(4, 3)),
        ShapeError,
        layer_sizes(
            POLYMORPHIC + "Found inconsistency between dimension size args[1].shape[1] (= 3) and the specification "
            "'s' (= 5).",
            s=5,
            b=4,
        ),
    ),
    "beyond the maximum": BadCall(
        "layer",
        lambda: (params(513), zeros(4, 513)),
        ShapeError,
        layer_sizes(
            "Input shapes do not match the symbolic shape constraint s <= 512. "
            "Expected '- s + 512' to be greater or equal to 0, but found -1. ",
            s=513,
            b=4,
        ),
    ),
    "no multiple": BadCall(
        "layer",
        lambda: (params(3), zeros(6, 3)),
        ShapeError,
        layer_sizes(
            "Input shapes do not match the symbolic shape constraint 4*floordiv(b, 4) == b. "
            "Expected '4*floordiv(b, 4) - b' to be equal to 0, but found -2. ",
            s=3,
            b=6,
        ),
    ),
    "zero": BadCall(
        "layer",
        lambda: (params(3), zeros(0, 3)),
        ShapeError,
        layer_sizes(POLYMORPHIC + "Expected value >= 1 for dimension variable 'b'.", s=3, b=0),
    ),
    "zero of the first symbol": BadCall(
        "layer",
        lambda: (params(0), zeros(4, 0)),
        ShapeError,
        sizes(
            POLYMORPHIC + "Expected value >= 1 for dimension variable 's'.",
            LAYER_SHAPES,
            obtained("s", 0, "s", "args[0]['w'].shape[0]", 0),
        ),
    ),
    "below the minimum": BadCall(
        "at least",
        lambda: (zeros(7),),
        ShapeError,
        sizes(
            "Input shapes do not match the symbolic shape constraint s >= 8. "
            "Expected 's - 8' to be greater or equal to 0, but found -1. ",
            "args[0].shape = (s,)",
            obtained("s", 7, "s", "args[0].shape[0]", 7),
        ),
    ),
    "wrong order": BadCall(
        "order",
        lambda: (zeros(3), zeros(4)),
        ShapeError,
        sizes(
            "Input shapes do not match the symbolic shape constraint a >= b. "
            "Expected '- b + a' to be greater or equal to 0, but found -1. ",
            "args[0].shape = (a,),args[1].shape = (b,)",
            obtained("a", 3, "a", "args[0].shape[0]", 3),
            obtained("b", 4, "b", "args[1].shape[0]", 4),
        ),
    ),
    "a remainder": BadCall(
        "odd",
        lambda: (zeros(4),),
        ShapeError,
        sizes(POLYMORPHIC + "Division had remainder 1 when computing the value of 'k'.", "args[0].shape = (2*k + 3,)"),
    ),
    "a negative symbol": BadCall(
        "odd",
        lambda: (zeros(1),),
        ShapeError,
        sizes(
            POLYMORPHIC + "Expected value >= 1 for dimension variable 'k'.",
            "args[0].shape = (2*k + 3,)",
            obtained("k", -1, "2*k + 3", "args[0].shape[0]", 1),
        ),
    ),
    # Sizes that no memory holds, on views that have the memory of one element.
    "bytes of a result": BadCall(
        "outer",
        lambda: (view(2**42, dtype=np.int8), view(2**20)),
        ShapeError,
        "The bytes of result (b, s) do not fit 64 bits at this shape.",
        as_jax=False,
    ),
    "memory of a result": BadCall(
        "outer",
        lambda: (np.zeros(2**24, np.int8), np.zeros(2**23, np.float32)),
        AllocationError,
        f"could not allocate {2**49} bytes: out of memory",
        as_jax=False,
    ),
    "memory of an argument": BadCall(
        "copy",
        lambda: (view(2**31, 2**31, dtype=np.int8),),
        AllocationError,
        f"could not allocate {2**62} bytes: out of memory",
        as_jax=False,
    ),
    "a size that overflows": BadCall(
        "cube",
        lambda: (view(2**31),),
        ShapeError,
        sizes(
            POLYMORPHIC + "A size that this call needs does not fit in 64 bits, or divides by zero.",
            "args[0].shape = (b,)",
            obtained("b", 2**31, "b", "args[0].shape[0]", 2**31),
        ),
        as_jax=False,
    ),
}


OWN = {
    "static size": (
        "Shape mismatch: args[0]['w'].shape[1] (of p) is 7, and the program was compiled for 8. Pass that size; if it "
        'changes, name it in args= or dynamic=, as in "s, n"'
    ),
    "missing key": "'layer' takes p, x: p lacks 'b'",
    "extra key": "'layer' takes p, x: p has more keys: 'c'",
    "other key": (
        "'layer' takes p, x: p is a dict with the keys ('c', 'w'), and the program takes a dict with the keys "
        "('b', 'w')"
    ),
    "extra argument": "'layer' takes p, x: the call gives 3 by position",
    "no arguments": "'layer' takes p, x: the call lacks p, x",
    "argument by name": "'layer' takes p, x: the call gives 'y', which is none of them",
    "list for a dict": "'layer' takes p, x: p is a list, and the program takes a dict",
    "None in a dict": "'layer' takes p, x: p['b'] is None, and the program takes an array",
    "tuple for an array": "'layer' takes p, x: x is a tuple, and the program takes an array",
    "two sizes for a symbol": (
        "args[1].shape[1] (of x) is 3, where it has to be s, which is 5, by args[0]['w'].shape[0] (of p), as names in "
        "args= or dynamic= and constraints= state. Pass arrays whose sizes go together, or give sizes that may differ "
        "other names"
    ),
    "no multiple": (
        "the sizes do not satisfy the constraint mod(b, 4) == 0: b is 6, by args[1].shape[0] (of x). Pass sizes that "
        "satisfy it, or change what constraints= states"
    ),
    "zero": (
        'b is 0, by args[1].shape[0] (of x), and is at least 1: a size that may be 0 is named "b - 1" in args= or '
        "dynamic="
    ),
    "wrong order": (
        "the sizes do not satisfy the constraint a >= b: a is 3, by args[0].shape[0] (of x) and b is 4, by "
        "args[1].shape[0] (of y). Pass sizes that satisfy it, or change what constraints= states"
    ),
}
"""The first lines of some errors, which are our own words."""
