# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The public API: what can be compiled, what an executable says of itself, and that it is true."""

from __future__ import annotations

import functools
import gc
import importlib
import io
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import shlo_disc
from examples.model import relative_error
from shlo_disc.driver.stages import STAGES
from shlo_disc.errors import ShapeError
from shlo_disc.lowering_cpu.backend import CpuBackend
from shlo_disc.options import Options
from shlo_disc.runtime import Artifact, Client
from shlo_disc.runtime.clients import client
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from tests.run.op_check import OnlyDlpack

ROOT = Path(__file__).resolve().parents[2]


def attention(q: Any, k: Any, v: Any) -> Any:
    """One head."""
    return jax.nn.softmax(q @ k.T * 0.25) @ v


def mlp(x: Any, w: Any) -> Any:
    """Two products with something between them: an arena."""
    return jnp.tanh(x @ w) @ w.T


def statistics(x: Any) -> dict[str, Any]:
    """A dict, a tuple and three dtypes."""
    return {"mean": x.mean(0), "more": (x.sum(), (x > 0).astype("int32"), x.astype("bfloat16"))}


class Case(NamedTuple):
    """A function, its specifications and constraints, and sizes to try."""

    function: Any
    args: tuple[tuple[str, str], ...]
    constraints: tuple[str, ...]
    dims: tuple[dict[str, int], ...]


CASES = {
    "attention": Case(
        attention,
        (("s, 16", "float32"), ("t, 16", "float32"), ("t, 8", "float32")),
        ("s <= 64",),
        ({"s": 1, "t": 1}, {"s": 5, "t": 7}, {"s": 64, "t": 33}),
    ),
    "mlp": Case(mlp, (("b, 32", "float32"), ("32, 48", "float32")), (), ({"b": 1}, {"b": 17}, {"b": 300})),
    "statistics": Case(
        statistics, (("b, s", "float32"),), (), ({"b": 1, "s": 1}, {"b": 13, "s": 2}, {"b": 4, "s": 100})
    ),
    "join": Case(
        lambda x, y: jnp.exp(jnp.concatenate([x, y])).sum(1),
        (("a, 6", "float32"), ("2*b, 6", "float32")),
        (),
        ({"a": 1, "b": 1}, {"a": 9, "b": 4}),
    ),
    "rows": Case(
        lambda x: (x - x.max(1, keepdims=True)).reshape(-1),
        (("b, s", "float32"),),
        ("mod(s, 2) == 0",),
        ({"b": 3, "s": 4},),
    ),
    "identity": Case(lambda x: x, (("n", "float32"),), (), ({"n": 1}, {"n": 1000})),
}


def arrays(name: str, dims: dict[str, int], seed: int = 0) -> tuple[np.ndarray, ...]:
    """Arguments of a case at given sizes."""
    random = np.random.default_rng(seed)
    shapes = [[Expr.parse(d.strip()).evaluate(dims) for d in text.split(",")] for text, _ in CASES[name].args]
    return tuple(random.standard_normal(shape).astype(np.float32) for shape in shapes)


@functools.cache
def compiled(name: str, guard_pages: bool = True) -> shlo_disc.Executable:
    """The case compiled from the function."""
    case, options = CASES[name], shlo_disc.Options(guard_pages=guard_pages)
    return shlo_disc.compile(case.function, args=case.args, constraints=case.constraints, options=options)


@functools.cache
def exported(name: str) -> export.Exported:
    """The case in jax.export."""
    case = CASES[name]
    scope = export.SymbolicScope(case.constraints)
    specs = [jax.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), dtype) for shape, dtype in case.args]
    return export.export(jax.jit(case.function), platforms=["cpu"])(*specs)


EVERY = [(name, dims) for name, case in CASES.items() for dims in case.dims]
each = pytest.mark.parametrize(("name", "dims"), EVERY, ids=[f"{n}-{'-'.join(map(str, d.values()))}" for n, d in EVERY])


@each
def test_results_are_those_of_jax(name: str, dims: dict[str, int]) -> None:
    args = arrays(name, dims)
    got, want = compiled(name)(*args), jax.jit(CASES[name].function)(*args)
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for mine, xla in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert mine.dtype == xla.dtype
        np.testing.assert_allclose(np.asarray(mine, np.float64), np.asarray(xla, np.float64), rtol=2e-5, atol=2e-5)


# ---- sources -----------------------------------------------------------------------------------------------------


def sources(name: str, folder: Path) -> Iterator[tuple[str, Any]]:
    """The case as everything that `compile` takes, but for the function."""
    program = exported(name)
    portable = bytes(program.mlir_module_serialized)
    yield "Exported", program
    text = program.mlir_module()
    yield "text", text
    yield "text as bytes", text.encode()
    (folder / "a.mlir").write_text(text)
    yield "path of text", folder / "a.mlir"
    bytecode = io.BytesIO()
    ir.Module.parse(text, make_context()).operation.write_bytecode(bytecode)
    (folder / "a.mlirbc").write_bytes(bytecode.getvalue())
    yield "bytecode", bytecode.getvalue()
    yield "path of bytecode, as str", str(folder / "a.mlirbc")
    (folder / "a.stablehlo").write_bytes(portable)
    yield "portable artifact", portable
    yield "path of a portable artifact", folder / "a.stablehlo"


def shapes(executable: shlo_disc.Executable) -> list[tuple[str, tuple[str, ...]]]:
    """Dtypes and symbolic shapes of arguments and results."""
    signature = executable.signature
    return [(s.dtype, tuple(map(str, s.dims))) for s in (*signature.arguments, *signature.results)]


def nameless(text: str) -> str:
    """A module's text without what each source says in its own way: names, the calling convention, the least sizes."""
    lines = [line for line in text.splitlines() if not line.startswith(('  "disc.signature"', '  "disc.symbol"'))]
    return re.sub(r"^module @\S+", "module", "\n".join(lines))


@pytest.mark.parametrize("name", ["attention", "mlp", "statistics", "rows"])
def test_every_source_gives_the_same_program(name: str, tmp_path: Path) -> None:
    reference = compiled(name)
    args = arrays(name, CASES[name].dims[-1])
    want = [np.asarray(leaf) for leaf in jax.tree.leaves(reference(*args))]
    for label, program in sources(name, tmp_path):
        executable = shlo_disc.compile(program)
        assert nameless(executable.as_text("import")) == nameless(reference.as_text("import")), label
        assert shapes(executable) == shapes(reference), label
        if label == "Exported":  # from text, what JAX assumes of sizes is a constraint to check
            assert executable.as_text("asm") == reference.as_text("asm")
        for mine, other in zip(jax.tree.leaves(executable(*args)), want, strict=True):
            np.testing.assert_array_equal(np.asarray(mine), other, err_msg=label)


SPECIFICATIONS = {
    "strings": (("b, 32", "float32"), ("32, 48", "float32")),
    "tuples": (("b, 32", jnp.float32), ((32, 48), np.dtype("float32"))),
    "an array for what is static": (("b, 32", "float32"), np.zeros((32, 48), np.float32)),
    "structs": (("b, 32", "float32"), jax.ShapeDtypeStruct((32, 48), jnp.float32)),
}


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_specifications_of_arguments(name: str) -> None:
    executable = shlo_disc.compile(mlp, args=SPECIFICATIONS[name])
    assert str(executable.signature) == "mlp(args[0]: f32[b, 32], args[1]: f32[32, 48]) -> (result: f32[b, 32])"
    assert executable.artifact.object == compiled("mlp").artifact.object


def test_keyword_arguments_and_trees() -> None:
    def scale(x: Any, *, by: dict[str, Any]) -> Any:
        return [x * by["a"], by["b"]]

    executable = shlo_disc.compile(
        scale, args=(("n", "float32"),), kwargs={"by": {"a": ("", "float32"), "b": ("n", "int32")}}
    )
    assert [a.path for a in executable.signature.arguments] == ["args[0]", "kwargs['by']['a']", "kwargs['by']['b']"]
    x, b = np.arange(3, dtype=np.float32), np.arange(3, dtype=np.int32)
    doubled, same = executable(x, by={"a": 2.0, "b": b})
    np.testing.assert_array_equal(doubled, 2 * x)
    np.testing.assert_array_equal(same, b)


def test_constraints_become_facts_and_checks() -> None:
    executable = shlo_disc.compile(lambda x: x + 1, args=(("b", "float32"),), constraints=("b <= 9", "b >= 2"))
    assert '"disc.symbol"() {max = 9 : i64, min = 2 : i64, name = "b"}' in executable.as_text("annotate")
    for size in (2, 9):
        assert executable(np.zeros(size, np.float32)).shape == (size,)
    for size in (1, 10):
        with pytest.raises(ShapeError, match="symbolic shape constraint b"):
            executable(np.zeros(size, np.float32))


# ---- what an executable says of itself ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["attention", "statistics", "identity"])
def test_text_of_every_stage(name: str) -> None:
    executable = compiled(name)
    assert executable.stages == list(STAGES)
    for stage in STAGES:
        text = executable.as_text(stage)
        assert str(ir.Module.parse(text, make_context())) == text
    assert executable.as_text() == executable.as_text("simplify")
    for view in CpuBackend.views:
        assert "disc_plan" in executable.as_text(view)
    assert list(executable.timings) == list(STAGES)
    assert all(seconds >= 0 for seconds in executable.timings.values())


def test_dump(tmp_path: Path) -> None:
    executable = compiled("mlp")
    files = executable.dump(tmp_path / "a" / "b")
    assert sorted(path.name for path in files) == sorted(path.name for path in (tmp_path / "a" / "b").iterdir())
    for number, stage in enumerate(STAGES):
        assert (tmp_path / "a" / "b" / f"{number}-{stage}.mlir").read_text() == executable.as_text(stage)
    shlo_disc.compile(mlp, args=CASES["mlp"].args, options=Options(dump=str(tmp_path / "c")))
    assert sorted(p.name for p in (tmp_path / "c").iterdir()) == sorted(path.name for path in files)


@each
def test_out_shape_is_that_of_the_results(name: str, dims: dict[str, int]) -> None:
    predicted = compiled(name).out_shape(**dims)
    got = compiled(name)(*arrays(name, dims))
    assert jax.tree.structure(predicted) == jax.tree.structure(got)
    assert all(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves(predicted))
    assert [(p.shape, p.dtype) for p in jax.tree.leaves(predicted)] == [
        (g.shape, g.dtype) for g in jax.tree.leaves(got)
    ]


def test_out_shape_of_text() -> None:
    one = shlo_disc.compile("func.func @main(%x: tensor<?xf64>) -> tensor<?xf64> {\n  return %x : tensor<?xf64>\n}")
    assert one.out_shape(arg0_d0=3) == jax.ShapeDtypeStruct((3,), np.float64)
    two = shlo_disc.compile(
        "func.func @main(%x: tensor<?xui8>) -> (tensor<?xui8>, tensor<?xui8>) {\n"
        "  return %x, %x : tensor<?xui8>, tensor<?xui8>\n}"
    )
    assert two.out_shape(arg0_d0=3) == (jax.ShapeDtypeStruct((3,), np.uint8),) * 2


@each
def test_peak_memory_is_what_a_call_allocates(name: str, dims: dict[str, int]) -> None:
    """The formula, its value, and the allocator's counters agree to the byte; the arena is one allocation."""
    executable = compiled(name, guard_pages=False)
    args = arrays(name, dims)
    executable(*args)
    gc.collect()  # results in the tracebacks of earlier tests
    before = executable.memory_stats()
    executable._client.reset_peak()
    results = executable(*args)
    after = executable.memory_stats()
    predicted = executable.memory(**dims)
    assert Expr.parse(executable.peak_memory_formula).evaluate(dims) == executable.peak_memory(**dims)
    assert after["peak_bytes"] - before["live_bytes"] == executable.peak_memory(**dims)
    assert after["live_bytes"] - before["live_bytes"] == predicted.result_bytes
    assert predicted.result_bytes == sum(leaf.nbytes for leaf in jax.tree.leaves(results))
    assert after["arena_allocations"] - before["arena_allocations"] == (predicted.arena_bytes > 0)
    assert after["argument_copies"] == before["argument_copies"]
    if predicted.arena_bytes:
        assert after["last_arena_bytes"] == predicted.arena_bytes


def test_peak_memory_after_results_were_dropped() -> None:
    options = shlo_disc.Options(guard_pages=False)
    executable = shlo_disc.compile(
        lambda x: jnp.tanh(x) @ jnp.ones((64, 64)), args=(("b, 64", "float32"),), options=options
    )
    x = jnp.ones((100, 64))
    executable(x)  # dropped, and not yet freed
    assert executable.measure_peak_memory(x) == executable.peak_memory(b=100)


@pytest.mark.parametrize("name", ["bert", "gpt2", "transformer_train"])
def test_peak_memory_of_the_models(name: str) -> None:
    module = importlib.import_module(f"examples.{name}")
    config = module.SMALL
    executable = shlo_disc.compile(module.export(config))
    weights = module.init(config)
    for sizes in ((1, 1), (2, 13), (3, module.limits(config)[1])):
        dims = dict(
            zip([s.name for s in sorted(executable.signature.symbols, key=lambda s: s.name)], sizes, strict=True)
        )
        inputs = module.make_inputs(config, *sizes)
        executable(weights, *inputs)
        gc.collect()
        before = executable.memory_stats()
        client(0).reset_peak()
        results = executable(weights, *inputs)
        after = executable.memory_stats()
        assert Expr.parse(executable.peak_memory_formula).evaluate(dims) == executable.peak_memory(**dims)
        assert after["arena_allocations"] - before["arena_allocations"] == 1
        copies = after["argument_copies"] - before["argument_copies"]
        if copies == 0:
            assert after["peak_bytes"] - before["live_bytes"] == executable.peak_memory(**dims)
        del results


def test_identical_layers_share_kernels() -> None:
    """Equal layers launch the same functions: products that take their softmax along."""

    def network(depth: int) -> shlo_disc.Executable:
        def layers(x: Any, *weights: Any) -> Any:
            for w in weights:
                x = jax.nn.softmax(x @ w) + 1
            return x

        return shlo_disc.compile(layers, args=(("b, 16", "float32"), *[("16, 16", "float32")] * depth))

    deep, deeper = network(3), network(9)
    assert {k.name for k in deeper.kernels} == {k.name for k in deep.kernels}
    assert list(Counter(k.name for k in deeper.kernels).values()) == [9]
    assert list(Counter(k.name for k in deep.kernels).values()) == [3]
    symbols = re.compile(r"^define [^@]*@(\w+)", re.MULTILINE)
    assert sorted(symbols.findall(deeper.as_text("llvm"))) == sorted(symbols.findall(deep.as_text("llvm")))


@pytest.mark.slow
def test_shifts_share_a_kernel() -> None:
    """A kernel takes the sizes of the pieces that are put together as arguments, whatever bounds they have."""

    def shifted(count: int) -> Callable[[jax.Array], jax.Array]:
        def function(x: jax.Array) -> jax.Array:
            for i in range(1, count + 1):
                x = jnp.roll(jnp.tanh(x), 3 * i)
            return x

        return function

    few, many = (shlo_disc.compile(shifted(count), args=(("n", "float32"),)) for count in (4, 16))
    assert {k.name for k in many.kernels} == {k.name for k in few.kernels}
    for n in (1, 2, 31, 32, 33, 47, 1009):
        x = np.linspace(-1, 1, n, dtype=np.float32)
        np.testing.assert_allclose(many(x), shifted(16)(x), rtol=2e-6, atol=1e-7)


def test_an_artifact_runs_in_another_client() -> None:
    executable = compiled("statistics")
    artifact = Artifact.deserialize(executable.artifact.serialize(), trust=True)
    (x,) = arrays("statistics", {"b": 3, "s": 5})
    mine, other = executable(x), Client(threads=1).load(artifact)(x)
    assert jax.tree.structure(mine) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(mine), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


# ---- calls -------------------------------------------------------------------------------------------------------


def test_two_threads_calling() -> None:
    """Each thread gets the results of its own arguments."""
    executable = compiled("mlp")
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for turn in range(40):
                x, w = arrays("mlp", {"b": 1 + (seed * 13 + turn) % 29}, seed=seed)
                np.testing.assert_allclose(executable(x, w), np.tanh(x @ w) @ w.T, rtol=1e-3, atol=1e-3)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_kinds_of_arguments_and_results() -> None:
    """NumPy in, NumPy out; a jax.Array in, jax.Arrays out; DLPack in without a copy."""
    executable = compiled("mlp", guard_pages=False)
    x, w = arrays("mlp", {"b": 5})
    want = executable(x, w)
    assert type(want) is np.ndarray
    for args in ((jnp.asarray(x), w), (x, jnp.asarray(w)), (jnp.asarray(x), jnp.asarray(w))):
        got = executable(*args)
        assert isinstance(got, jax.Array)
        np.testing.assert_array_equal(np.asarray(got), want)
    before = executable.memory_stats()["argument_copies"]
    got = executable(OnlyDlpack(x), OnlyDlpack(w))
    assert type(got) is np.ndarray
    np.testing.assert_array_equal(got, want)
    assert executable.memory_stats()["argument_copies"] == before
    buffer = client(0).buffer_from_host(x)
    np.testing.assert_array_equal(executable(buffer, w), want)
    np.testing.assert_array_equal(executable(np.asfortranarray(x), w[::-1][::-1]), want)


@pytest.mark.parametrize(
    ("output", "kind"),
    [("numpy", np.ndarray), ("jax", jax.Array), ("buffer", shlo_disc.runtime.Buffer), (None, np.ndarray)],
)
def test_output_option(output: str | None, kind: type) -> None:
    case = CASES["mlp"]
    executable = shlo_disc.compile(case.function, args=case.args, options=Options(output=output))
    x, w = arrays("mlp", {"b": 5})
    got = executable(x, w)
    assert isinstance(got, kind)
    np.testing.assert_array_equal(np.asarray(got), compiled("mlp")(x, w))
    if output == "numpy":
        assert type(executable(jnp.asarray(x), w)) is np.ndarray


def test_hints_change_no_result() -> None:
    case = CASES["attention"]
    args = arrays("attention", {"s": 5, "t": 7})
    hinted = shlo_disc.compile(
        case.function, args=case.args, constraints=case.constraints, options=Options(hints={"s": 48, "t": 1024})
    )
    assert hinted._at("annotate").facts.symbols["t"].hints == (1024,)
    assert relative_error(hinted(*args), compiled("attention")(*args)) <= 1e-6


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_opt_levels_agree(level: int) -> None:
    case = CASES["rows"]
    executable = shlo_disc.compile(
        case.function, args=case.args, constraints=case.constraints, options=Options(opt_level=level, threads=1)
    )
    args = arrays("rows", {"b": 3, "s": 4})
    np.testing.assert_allclose(executable(*args), compiled("rows")(*args), rtol=1e-6, atol=1e-6)


# ---- determinism -------------------------------------------------------------------------------------------------

PRINT_OBJECT = """
import hashlib, sys
import shlo_disc
executable = shlo_disc.compile(sys.argv[1])
artifact = executable.artifact
print(hashlib.sha256(artifact.object).hexdigest(), hashlib.sha256(artifact.serialize()).hexdigest())
print(*(hashlib.sha256(executable.as_text(s).encode()).hexdigest() for s in executable.stages))
"""


def test_a_compile_depends_on_nothing_but_the_program() -> None:
    """The object code, the artifact and every stage's text are the same for every seed of Python's hashes."""
    outputs = set()
    for seed in ("1", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", PRINT_OBJECT, str(ROOT / "examples" / "bert.mlir")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
        outputs.add(done.stdout)
    assert len(outputs) == 1
    assert all(len(digest) == 64 for digest in outputs.pop().split())


@jax.tree_util.register_pytree_node_class
class Weights:
    """A pytree of a class that no other process knows."""

    def __init__(self, w: Any):
        self.w = w

    def tree_flatten(self) -> tuple[tuple[Any], None]:
        return (self.w,), None

    @classmethod
    def tree_unflatten(cls, _: None, children: tuple[Any]) -> Weights:
        return cls(*children)


def test_pytrees_of_own_classes_are_given_when_loading(tmp_path: Path) -> None:
    path = tmp_path / "program.disc"
    shlo_disc.compile(lambda p: Weights(p.w + 1), args=(Weights(("b", "float32")),)).save(path)
    with pytest.raises(shlo_disc.ArtifactError, match="load it with in_tree="):
        shlo_disc.load(path, trust=True)
    trees = jax.tree.structure(((Weights(0),), {})), jax.tree.structure(Weights(0))
    loaded = shlo_disc.load(path, trust=True, in_tree=trees[0], out_tree=trees[1])
    np.testing.assert_array_equal(loaded(Weights(np.ones(3, np.float32))).w, np.full(3, 2, np.float32))
