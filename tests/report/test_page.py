# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The data of reports, and the page around them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import shlo_disc
import shlo_disc.numpy as snp
from shlo_disc.errors import DeviceError, ShapeError
from shlo_disc.report.page import document_of, render, script_json
from shlo_disc.report.page.arena import arena_of
from shlo_disc.report.page.document import Document, Excerpt, unpack
from shlo_disc.tools.cli import main
from shlo_disc.transforms.decisions import OUTCOMES
from tests.gpu.marks import needs_libdevice

BERT = Path(__file__).resolve().parents[2] / "examples" / "bert.mlir"


def norms(x: jax.Array, y: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
    z = jax.nn.softmax(jnp.tanh(x @ w), axis=-1)
    return jnp.sort(z, axis=0) * jnp.cumsum(z, axis=0), jnp.concatenate([z, y]).sum(axis=0)


def looped(x: jax.Array, n: jax.Array) -> jax.Array:
    def body(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        i, a = carry
        a = jax.lax.cond(i % 2 == 0, lambda v: jnp.sort(v, axis=0), lambda v: v[::-1] * 2, a)
        return i + 1, a + jnp.roll(x, 1, axis=0)

    _, a = jax.lax.while_loop(lambda carry: carry[0] < n, body, (jnp.int32(0), jnp.cumsum(x, axis=0)))
    return a / a.sum()


PROGRAMS: dict[str, tuple[Any, dict[str, int]]] = {
    "bert": (BERT, {"b": 3, "s": 17}),
    "norms": ((norms, (("b, 8", "float32"), ("c, s", "float32"), ("8, s", "float32"))), {"b": 3, "c": 5, "s": 33}),
    "looped": ((looped, (("b, 4", "float32"), ("", "int32"))), {"b": 37}),
}


V3 = shlo_disc.Options(cpu="x86-64-v3")
"""The missing facts depend on the width of vectors, here 256 bits: two vectors of a row of f32 are 16 elements."""


@cache
def compiled(name: str) -> shlo_disc.Executable:
    program, _ = PROGRAMS[name]
    function, args = (program, None) if isinstance(program, Path) else program
    return shlo_disc.compile(function, args=args, options=V3)


def no_device() -> Any:
    raise DeviceError("there is none")


@cache
def document(name: str) -> Document:
    """The report, not measured."""
    executable = compiled(name)
    return document_of(executable.artifact, executable._at("codegen"), no_device, [PROGRAMS[name][1]])


def lines(found: Document, excerpt: Excerpt) -> list[str]:
    return unpack(found.texts[excerpt.text]).split("\n")[excerpt.first : excerpt.end]


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_of_the_arena_never_overlap(name: str) -> None:
    executable = compiled(name)
    for scale in (1, 2, 5):
        dims = {symbol: size * scale for symbol, size in PROGRAMS[name][1].items()}
        dims["s"] = min(dims.get("s", 1), 48)
        found = arena_of(executable._at("codegen"), {k: v for k, v in dims.items() if k in PROGRAMS[name][1]})
        values = found.rectangles
        assert values and all(0 <= r.begin < r.end <= len(found.commands) for r in values)
        for i, one in enumerate(values):
            for other in values[:i]:
                apart_in_time = one.end <= other.begin or other.end <= one.begin
                apart = one.offset + one.bytes <= other.offset or other.offset + other.bytes <= one.offset
                assert apart_in_time or apart, (one, other)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_arena_ends_where_its_values_do(name: str) -> None:
    dims = PROGRAMS[name][1]
    (call,) = document(name).calls
    top = max(r.offset + r.bytes for r in call.rectangles)
    (arena,) = call.arenas
    stats = compiled(name).memory(**dims)
    assert arena == stats.arena_bytes and call.result_bytes == stats.result_bytes
    assert top <= stats.arena_bytes < top + 64  # slots begin at multiples of 64


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_kernel_is_there(name: str) -> None:
    found, executable = document(name), compiled(name)
    (call,) = found.calls
    assert [(k.report["name"], k.report["kind"]) for k in call.kernels] == [tuple(k) for k in executable.kernels]
    nodes = {node.name: node for node in found.nodes}
    for kernel in call.kernels:
        if kernel.node:
            assert kernel.node in nodes
    for node in found.nodes:
        if node.excerpts is None:
            continue
        assert f"@{node.name}(" in lines(found, node.excerpts["ops"][0])[0]
        for text, excerpts in (("kernel", node.excerpts["kernel"]), ("code", node.excerpts["code"])):
            assert bool(excerpts) >= bool(node.kernels), (node.name, text)
        for kernel, excerpt in zip(node.kernels, node.excerpts["kernel"], strict=True):
            body = lines(found, excerpt)
            assert f"@{kernel}(" in body[0] and body[-1].strip().startswith("}")


@pytest.mark.parametrize("name", PROGRAMS)
def test_edges_follow_the_program(name: str) -> None:
    found = document(name)
    assert all(edge.source < edge.target for edge in found.edges)
    assert all(found.nodes[e.source].y < found.nodes[e.target].y for e in found.edges)
    read = {edge.source for edge in found.edges}
    results = [i for i, node in enumerate(found.nodes) if node.kind == "result"]
    assert results and {e.target for e in found.edges} >= set(results)
    computing = {i for i, n in enumerate(found.nodes) if n.kind not in ("result", "argument", "control")}
    assert name == "looped" or read >= computing  # what a loop hands on to its next iteration is read there only


def test_stages_become_each_other() -> None:
    found = document("bert")
    texts = {name: unpack(text) for name, text in found.texts.items()}
    assert list(texts) == [*compiled("bert").stages, "llvm", "optimized-llvm", "asm"]
    assert texts["plan"] == compiled("bert").as_text("plan")
    assert [(d.left, d.right) for d in found.diffs][:2] == [("import", "annotate"), ("annotate", "simplify")]
    for diff in found.diffs:
        left, right = (texts[side].split("\n") for side in (diff.left, diff.right))
        at = other = 0
        for first, end, other_first, other_end in diff.changes:
            assert first - at == other_first - other
            at, other = end, other_end
        assert len(left) - at == len(right) - other


def test_the_overview_counts() -> None:
    rows = dict(document("looped").overview.rows)
    text = compiled("looped").as_text("import")
    names = re.findall(r"(?m)^ *(?:%[^=\n]* = )?\"?(stablehlo\.\w+)", text)
    assert rows["ops imported"] == str(len(names)) and {"stablehlo.while", "stablehlo.case"} <= set(names)
    assert rows["arena and results"] == f"{compiled('looped').peak_memory_formula} bytes"
    assert set(compiled("looped").stages) <= set(document("looped").overview.timings)


def test_missing_facts_name_the_constraint_that_helps() -> None:
    found = document("bert")
    (missing,) = (m for m in found.missing if m.relation == "mod(s, 16) == 0")
    assert missing.constraint == "mod(s, 16) == 0" and set(missing.where) == {"attention_0", "attention_1"}
    assert any("whole vectors" in text for text in missing.decides)
    text = BERT.read_text()
    constraints = ["mod(s, 16) == 0", "s <= 4096"]
    program = shlo_disc.compile(norms, args=PROGRAMS["norms"][0][1], constraints=constraints, options=V3)
    known = document_of(program.artifact, program._at("codegen"), no_device, ())
    assert "mod(s, 16) == 0" not in {m.relation for m in known.missing} and text


def test_sizes_that_would_let_ops_fuse_are_missing_facts() -> None:
    def f(x: jax.Array, y: jax.Array) -> jax.Array:
        return y * jnp.sum(jnp.exp(x), 1)[:, None]

    def compiled_with(*constraints: str) -> tuple[int, dict[str, tuple[str, ...]]]:
        made = shlo_disc.compile(f, args=(("b, s", "float32"), ("b, t", "float32")), constraints=constraints)
        found = document_of(made.artifact, made._at("codegen"), no_device, ())
        return len(made.kernels), {m.constraint: m.decides for m in found.missing}

    count, missing = compiled_with()
    (constraint,) = (c for c, decides in missing.items() if decides[0].startswith("elementwise-fusion: "))
    assert (count, constraint) == (2, "t == s")
    count, missing = compiled_with(constraint)
    assert count == 1 and constraint not in missing


def test_memory_that_serves_two_cases_is_a_missing_fact() -> None:
    def f(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.cumsum(jnp.sort(x)).sum() + jnp.cumsum(jnp.sort(y)).sum()

    def missing(*constraints: str) -> dict[str, tuple[str, ...]]:
        made = shlo_disc.compile(f, args=(("n", "float32"), ("m", "float32")), constraints=constraints)
        found = document_of(made.artifact, made._at("codegen"), no_device, ())
        return {m.constraint: m.decides for m in found.missing}

    either = {r for r, decides in missing().items() if "reuse-slot serves one case, not both" in decides}
    assert either == {"n >= m", "m >= n"}
    assert not either & set(missing("n >= m"))


def test_decisions_have_places_and_proofs() -> None:
    executable, found = compiled("bert"), document("bert")
    rules = {rule.name: rule for rule in found.rules}
    decisions = executable._at("codegen").decisions
    assert sum(rule.taken for rule in found.rules) == decisions["fusion"].taken + decisions["reuse"].taken
    assert rules["elementwise-fusion"].made and rules["elementwise-fusion"].refused
    assert any(relation == "256*b*s >= 256*s" for _, proofs in rules["reuse-slot"].made for relation in proofs)
    assert all(place.startswith("line ") for place, _ in rules["row-reduce-fusion"].made)


def test_a_report_changes_no_later_compile() -> None:
    """Outcomes of patterns are recorded only for a report."""
    from shlo_disc.transforms.decisions import current_record

    before = sum(OUTCOMES.values())
    document("norms")
    compile_again = shlo_disc.compile(norms, args=PROGRAMS["norms"][0][1])
    assert current_record() is None and sum(OUTCOMES.values()) > before
    assert compile_again.as_text("plan") == compiled("norms").as_text("plan")


def document_in(page: str) -> Mapping[str, Any]:
    (text,) = re.findall(r'<script type="application/json" id="document">(.*?)</script>', page, re.DOTALL)
    found: Mapping[str, Any] = json.loads(text)
    return found


def test_the_page_has_the_document_and_loads_nothing() -> None:
    page = render(document("looped"))
    assert document_in(page) == json.loads(json.dumps(asdict(document("looped"))))
    assert not re.search(
        r"""(src|href)\s*=|@import|url\(|\bfetch\(|XMLHttpRequest|import\(""",
        page.replace(re.search(r'id="document">.*?</script>', page, re.DOTALL)[0], ""),
    )  # type: ignore[index]


def test_names_of_a_program_cannot_leave_the_script() -> None:
    hostile = "</script><script>alert(1)</script><!-- &amp; \u2028 \U0001f600"
    text = f"""
      #where = loc("{hostile}")
      func.func public @main(%x: tensor<?xf32>) -> (tensor<?xf32>) {{
        %0 = stablehlo.tanh %x : tensor<?xf32> loc(#where)
        %1 = stablehlo.sort_is_not_here
        return %0 : tensor<?xf32>
      }}""".replace("        %1 = stablehlo.sort_is_not_here\n", "")
    executable = shlo_disc.compile(text)
    found = document_of(executable.artifact, executable._at("codegen"), no_device, ())
    assert any(hostile == place for node in found.nodes for place, _ in node.sources)
    page = render(found)
    assert page.count("</script>") == 2 and "<!--" not in page
    assert document_in(page) == json.loads(json.dumps(asdict(found)))


def test_script_json_is_json() -> None:
    value = {"<a>": ["</script>", "<!--", "&lt;", "\u2028\u2029"]}
    text = script_json(value)
    assert json.loads(text) == value and not set("<>&\u2028\u2029") & set(text)


def test_the_title_is_escaped() -> None:
    from dataclasses import replace

    found = document("looped")
    page = render(replace(found, overview=replace(found.overview, name="<b>%%SCRIPT%%</b>")))
    assert "<title>&lt;b&gt;%%SCRIPT%%&lt;/b&gt;: shlo_disc report</title>" in page


@pytest.mark.slow
def test_the_command_measures_and_traces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, trace = tmp_path / "report.html", tmp_path / "trace.json"
    assert main(["report", str(BERT), "--dims", "b=2,s=16", "-o", str(page), "--trace", str(trace)]) == 0
    assert str(page) in capsys.readouterr().out
    (call,) = document_in(page.read_text())["calls"]
    assert call["dims"] == {"b": 2, "s": 16} and call["problem"] == ""
    assert all(k["report"]["seconds"] > 0 for k in call["kernels"] if k["report"]["runs"])
    events = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X"]
    stages = [e for e in events if (e["pid"], e["tid"]) == (1, 1)]
    assert [e["name"] for e in stages] == compiled("bert").stages
    assert all(b["ts"] >= a["ts"] + a["dur"] - 0.01 for a, b in zip(stages, stages[1:], strict=False))
    ran = [e["name"] for e in events if (e["pid"], e["tid"]) == (2, 1)]
    assert ran == [k["report"]["name"] for k in call["kernels"] if k["report"]["runs"]]


SLACK = 1000.0
"""Microseconds for which a thread may lose its processor between two looks at a clock."""


def within(part: dict[str, Any], whole: dict[str, Any]) -> bool:
    """Tells whether an event lies in another."""
    return whole["ts"] - SLACK <= part["ts"] and part["ts"] + part["dur"] <= whole["ts"] + whole["dur"] + SLACK


def test_a_trace_has_what_each_thread_did(tmp_path: Path) -> None:
    """A loop that is divided, again and again: the commands follow each other, and each thread's parts lie in them."""

    def function(x: jax.Array, n: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, n, lambda _, y: jnp.tanh(y) * 2, x)

    program = shlo_disc.compile(function, args=(("s", "float32"), ((), "int32")), options=shlo_disc.Options(threads=2))
    trace = json.loads(program.trace(tmp_path / "trace.json", [{"s": 3_000_000}]).read_text())["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace if e["ph"] == "M" and e["name"] == "thread_name"}
    events = [e for e in trace if e["ph"] == "X" and e["pid"] == 2]
    commands = [e for e in events if e["tid"] == 1]
    assert names[2, 1] == "commands" and names[2, 2] == "the caller's thread"
    assert all(b["ts"] >= a["ts"] + a["dur"] - SLACK for a, b in zip(commands, commands[1:], strict=False))
    parts = [e for e in events if e["tid"] > 1]
    assert {(2, e["tid"]) for e in parts} <= set(names)
    assert parts and all(any(within(p, c) and p["name"] == c["name"] for c in commands) for p in parts)
    for tid in {p["tid"] for p in parts}:
        own = [p for p in parts if p["tid"] == tid]
        assert all(b["ts"] >= a["ts"] + a["dur"] - SLACK for a, b in zip(own, own[1:], strict=False))


def test_sizes_that_are_not_admissible() -> None:
    with pytest.raises(ShapeError, match="s <= 48"):
        compiled("bert").report("/dev/null", [{"b": 2, "s": 49}])
    with pytest.raises(ShapeError, match=r"expected values for the dimension variables \['b', 's'\]"):
        compiled("bert").report("/dev/null", [{"b": 2}])


def test_sizes_read_from_data_have_no_rectangles() -> None:
    def positive(x: jax.Array) -> jax.Array:
        return jnp.sort(jnp.cumsum(x)[snp.nonzero(x > 0)[0]] * 2)

    executable = shlo_disc.compile(positive, args=(("n", "float32"),))
    (call,) = document_of(executable.artifact, executable._at("codegen"), no_device, [{"n": 9}]).calls
    assert len(call.arenas) == 2 and call.arenas[0] is not None and call.arenas[1] is None
    assert call.rectangles and all(r.segment == 0 for r in call.rectangles) and call.result_bytes is None


def test_a_program_of_constant_sizes_is_measured_unasked(tmp_path: Path) -> None:
    executable = shlo_disc.compile(lambda x: x, args=(("3", "float32"),))
    found = document_in(executable.report(tmp_path / "page.html").read_text())
    (call,) = found["calls"]
    assert call["dims"] == {} and call["problem"] == "" and call["arenas"] == [0]
    assert [k["report"]["name"] for k in call["kernels"]] == [k.name for k in executable.kernels]
    assert [node["kind"] for node in found["nodes"]] == ["argument", "loop", "result"] and len(found["edges"]) == 2


def test_a_program_from_the_compile_cache(tmp_path: Path) -> None:
    options = shlo_disc.Options(cache_dir=tmp_path / "cache")
    pages = []
    for _ in range(2):
        executable = shlo_disc.compile(jnp.tanh, args=(("n", "float32"),), options=options)
        pages.append(document_in(executable.report(tmp_path / "page.html").read_text()))
    assert executable.compile_count == 0
    assert pages[0]["texts"] == pages[1]["texts"] and pages[0]["nodes"] == pages[1]["nodes"]


@needs_libdevice
def test_a_program_for_a_gpu_without_one() -> None:
    executable = shlo_disc.compile(jnp.tanh, target="cuda:sm_90", args=(("n", "float32"),))
    found = document_of(executable.artifact, executable._at("codegen"), no_device, [{"n": 100}])
    (call,) = found.calls
    assert call.problem == "not measured: there is none" and call.kernels[0].report["bytes_read"] == 400
    (node,) = (node for node in found.nodes if node.kernels)
    (code,) = (node.excerpts or {})["code"]
    assert code.text == "ptx" and any("tanh" in line or "ex2" in line for line in lines(found, code))
