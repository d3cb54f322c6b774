# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with weights of 8 and 4 bits: `python -m benchmarks.narrow_weights [--dtype bfloat16] [--small]`.

Prints times of products whose weights the program dequantises, relative to those with a passed weight of floats (ours,
all in turns, the least of each), and in f32 of ONNX Runtime's `MatMulNBits` with the same numbers, if it is installed.
"""

from __future__ import annotations

import argparse
import functools
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.tables import table
from benchmarks.timing import limit_threads, seconds

WEIGHTS = ((4096, 4096), (4096, 11008))
"""Terms and columns."""
ROWS = (1, 3, 16, 256)
GROUP = 32
"""Rows of a weight that share a scale."""


def grouped(x: Any, q: Any, s: Any) -> Any:
    """Rows times integers (k, n) with scales (k / GROUP, n)."""
    return x @ (q.astype(s.dtype).reshape(len(s), -1, q.shape[1]) * s[:, None]).reshape(q.shape)


def grouped_transposed(x: Any, q: Any, s: Any) -> Any:
    """Rows times integers (n, k) with scales (n, k / GROUP)."""
    return x @ (q.astype(s.dtype).reshape(*s.shape, -1) * s[..., None]).reshape(q.shape).T


def halves(x: Any, q: Any, s: Any) -> Any:
    """Rows times pairs of 4 bits (k / 2, n), with a zero point of 8."""
    return grouped(x, jnp.stack([q & 15, q >> 4], axis=1).reshape(-1, q.shape[1]).astype(jnp.int8) - 8, s)


def halves_transposed(x: Any, q: Any, s: Any) -> Any:
    """Rows times pairs of 4 signed bits (n, k / 2)."""
    return grouped_transposed(x, jax.lax.bitcast_convert_type(q, jnp.int4).reshape(len(q), -1), s)


def weight_products(k: int, n: int, dtype: np.dtype) -> dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]]:
    """Products by name: the function and the weight that it is called with. dtype: of all floats."""
    rng = np.random.default_rng(0)
    bytes_ = rng.integers(0, 256, (k, n), np.uint8)
    scales = rng.random((k // GROUP, n), np.float32).astype(dtype)
    pairs, signed = bytes_[: k // 2], bytes_.view(np.int8)
    flipped = [np.ascontiguousarray(array.T) for array in (signed, scales, pairs)]
    return {
        dtype.name: (lambda x, w: x @ w, (rng.random((k, n), np.float32).astype(dtype),)),
        "int8": (lambda x, q, s: x @ (q.astype(dtype) * s), (signed, scales[0])),
        "int8, scaled sums": (lambda x, q, s: (x @ q.astype(dtype)) * s, (signed, scales[0])),
        "int8.T": (lambda x, q, s: x @ (q.astype(dtype) * s[:, None]).T, (flipped[0], scales[0])),
        "int8 groups": (grouped, (signed, scales)),
        "int8.T groups": (grouped_transposed, (flipped[0], flipped[1])),
        "int4 groups": (halves, (pairs, scales)),
        "int4.T groups": (halves_transposed, (flipped[2], flipped[1])),
    }


def weight_calls(k: int, n: int, dtype: np.dtype, threads: int) -> dict[str, Callable[..., Any]]:
    """Compiled products by name, of which "bound" has its weight packed; prints their temporary memory."""
    import shlo_disc

    options = shlo_disc.Options(threads=threads, output="buffer")
    calls: dict[str, Callable[..., Any]] = {}
    for name, (multiply, weight) in weight_products(k, n, dtype).items():
        specs = ((f"m, {k}", dtype.name), *((", ".join(map(str, w.shape)), w.dtype.name) for w in weight))
        program = shlo_disc.compile(multiply, args=specs, options=options)
        passed = [jnp.asarray(w) for w in weight]
        calls[name] = lambda x, program=program, passed=passed: program(x, *passed)
        print(f"{name} ({k}, {n}): {program.memory(m=1).arena_bytes} temporary bytes at one row")
        if name == dtype.name:
            weight_first = shlo_disc.compile(lambda w, x: x @ w, args=(specs[1], specs[0]), options=options)
            calls["bound"] = weight_first.bind(passed[0])
    return calls


def onnxruntime_calls(k: int, n: int, threads: int) -> dict[str, Callable[..., Any]]:
    """ONNX Runtime's products in groups by name, which take NumPy arrays; nothing if it is not installed."""
    try:
        import onnx
        import onnxruntime
    except ImportError:
        return {}
    products = weight_products(k, n, np.dtype(np.float32))
    signed, scales = products["int8 groups"][1]
    pairs = products["int4 groups"][1][0]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    blocks = (n, k // GROUP, -1)
    calls: dict[str, Callable[..., Any]] = {}
    for bits, packed in ((8, signed.view(np.uint8) ^ 128), (4, pairs)):
        constants = {
            "weight": np.ascontiguousarray(packed.T).reshape(blocks),
            "scales": np.ascontiguousarray(scales.T).reshape(-1),
        }
        helper, numpy_helper = onnx.helper, onnx.numpy_helper
        attributes = {"K": k, "N": n, "bits": bits, "block_size": GROUP, "domain": "com.microsoft"}
        node = helper.make_node("MatMulNBits", ["x", *constants], ["y"], **attributes)
        ends = [
            helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["m", size])
            for name, size in zip("xy", (k, n), strict=True)
        ]
        graph = helper.make_graph(
            [node], "product", ends[:1], ends[1:], [numpy_helper.from_array(c, name) for name, c in constants.items()]
        )
        imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=imports, ir_version=10)
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        calls[f"ONNX Runtime int{bits}"] = lambda x, session=session: session.run(None, {"x": np.asarray(x)})[0]
    return calls


def compare_weights(shapes: tuple[tuple[int, int], ...], dtype: np.dtype, threads: int, rounds: int) -> None:
    """Print the table of times and of temporary memory."""
    rows, names = [], [""]
    for k, n in shapes:
        calls = weight_calls(k, n, dtype, threads)
        calls |= onnxruntime_calls(k, n, threads) if dtype == np.float32 else {}
        names = list(calls)
        for m in ROWS:
            x = jnp.ones((m, k), dtype)
            _require_equal(calls, x)
            times: dict[str, list[float]] = {name: [] for name in names}
            for _, name in itertools.product(range(rounds + 1), names):
                times[name].append(seconds(functools.partial(calls[name], x)))
            least = [min(times[name]) for name in names]
            rows.append([str((m, n, k)), f"{least[0] * 1e3:.2f}", *(f"{time / least[0]:.2f}" for time in least[1:])])
    print(table(["(m, n, k)", f"{names[0]} ms", *names[1:]], rows))


def _require_equal(calls: dict[str, Callable[..., Any]], x: jax.Array) -> None:
    """The results of ONNX Runtime are those of the same products in groups, but for rounding."""
    for bits in (8, 4):
        if f"ONNX Runtime int{bits}" in calls:
            ours, theirs = np.asarray(calls[f"int{bits} groups"](x)), calls[f"ONNX Runtime int{bits}"](x)
            np.testing.assert_allclose(theirs, ours, rtol=1e-4, atol=1e-4 * float(np.abs(ours).max()))


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.narrow_weights", description=__doc__)
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), default="float32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--small", action="store_true", help="a small weight: does it run?")
    options = parser.parse_args()
    limit_threads(options.threads)
    shapes = ((64, 96),) if options.small else WEIGHTS
    compare_weights(shapes, jnp.dtype(options.dtype), options.threads, options.rounds)


if __name__ == "__main__":
    main()
