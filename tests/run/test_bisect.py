# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`shlo_disc bisect` names the stage and the decision that make results wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import export

import shlo_disc
from shlo_disc.tools.bisect.search import bisect
from shlo_disc.tools.cli import main
from shlo_disc.transforms import decisions

UNCHECKED = shlo_disc.Options(verify=False, opt_level=0)


def distances(x: Any) -> Any:
    n = (x * x).sum(1)
    d = n[:, None] + n[None, :] - 2 * (x @ x.T)
    far = d.max(1)
    return d, far - far.max()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    spec = jax.ShapeDtypeStruct(export.symbolic_shape("n, 5"), jnp.float32)
    path = tmp_path / "distances.mlir"
    path.write_text(export.export(jax.jit(distances))(spec).mlir_module())
    return path


@pytest.mark.slow
def test_a_right_program_has_no_difference(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bisect", str(program), "--dims", "n=3"]) == 0
    assert capsys.readouterr().out == "no difference\n"


def test_a_wrong_reuse_is_found(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "TURNED_OFF", {"in-place.spreads-along-columns"})
    found = bisect(program, [{"n": 1}, {"n": 3}], UNCHECKED)
    assert found is not None
    assert found.dims == {"n": 3}
    assert found.stages == dict.fromkeys(("annotate", "simplify", "fuse"), "agrees")
    assert found.stage == "plan"
    assert found.fault is not None
    assert (found.fault.kind, found.fault.pattern) == ("reuse", "in-place")
    assert "stage at fault: plan" in str(found)


def test_the_checker_finds_it_too(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "TURNED_OFF", {"in-place.spreads-along-columns"})
    with pytest.raises(shlo_disc.CompilerError, match="overwrites %.*, which it reads"):
        shlo_disc.compile(program, options=shlo_disc.Options(verify=True, strict=True))


def test_a_wrong_rewrite_is_found_in_its_stage(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern that takes sums for maxima makes every compile wrong; the interpreter sees in which stage."""
    from shlo_disc.shape_dialect.mlir import ir
    from shlo_disc.transforms.simplify import patterns

    def break_maxima(op: Any, rewriter: Any) -> bool:
        inner = next(iter(op.regions[0].blocks[0].operations)).operation
        if inner.name != "stablehlo.maximum":
            return True
        new = ir.Operation.create(
            "stablehlo.minimum",
            results=[inner.results[0].type],
            operands=list(inner.operands),
            ip=ir.InsertionPoint(inner),
        )
        inner.results[0].replace_all_uses_with(new.results[0])
        inner.erase()
        return False

    monkeypatch.setattr(patterns, "PATTERNS", [*patterns.PATTERNS, ("stablehlo.reduce", break_maxima)])
    found = bisect(program, [{"n": 3}], UNCHECKED)
    assert found is not None
    assert found.stage == "simplify"
    assert found.fault is None
    assert found.stages["annotate"] == "agrees"
    assert found.stages["simplify"].startswith("differs: result 1")
