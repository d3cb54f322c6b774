# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wrong rules are refuted: a proof that could not fail would say nothing."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from types import FrameType

import pytest

from shlo_disc.shape_dialect.mlir import ir
from tests.proofs import prover
from tests.proofs.mutants import mutants, wrong_results
from tests.proofs.prover import compare
from tests.proofs.rewrites import PROVED, ROWS, TEMPLATES
from tests.proofs.template import Row, Template, prepared, rewritten

FEW = 2
"""Wrong forms of a rule that have to be refuted, of its source or, where that has not as many, of its results."""

SECONDS = 2
"""For a wrong rule on a program: it may not end."""


def verdict(row: Row, templates: list[Template]) -> str:
    """The fate of a wrong rule on programs.

    It is "refuted", "unknown", it "fails", the programs are "proved" all the same, or it is "silent": it never fires.
    """
    seen = Counter[str]()
    for template in templates:
        seen[_outcome(row, template)] += 1
        if seen["refuted"]:
            break
    return next((kind for kind in ("refuted", "unknown", "fails", "proved") if seen[kind]), "silent")


def _outcome(row: Row, template: Template) -> str:
    with prepared(template.target):
        try:
            with limited():
                before, after, fired = rewritten(template, row, times=2)
        except Exception:
            return "fails"
        return compared(before, after, template) if fired else "silent"


def compared(before: ir.Module, after: ir.Module, template: Template) -> str:
    """The outcome of a comparison with what may not even be a valid program."""
    try:
        with limited():
            return compare(before, after, template.has_bits).kind
    except Exception:
        return "fails"


@contextmanager
def limited() -> Iterator[None]:
    """Inside, a TimeoutError is raised after some seconds."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    held = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS, 0.5)  # Again, as an exception may be lost in a finaliser.
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, held)


def verdicts(name: str) -> Iterator[tuple[str, str]]:
    """The wrong forms of a rule's source, and what becomes of them."""
    if name in UNSAFE:
        return
    op, pattern = ROWS[name]
    templates = [t for t in TEMPLATES if t.rule == name]
    for text, wrong in mutants(pattern):
        yield text, verdict((op, wrong), templates)


def verdicts_of_results(name: str) -> Iterator[tuple[str, str]]:
    """The wrong forms of what a rule makes of its programs, and what becomes of them."""
    for template in TEMPLATES:
        if template.rule != name or template.refused:
            continue
        with prepared(template.target):
            before, after, _ = rewritten(template, ROWS[name])
            for text in wrong_results(after):
                yield text, compared(before, after, template)


@pytest.fixture(autouse=True)
def _briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives z3 little time: what it does not refute soon is not refuted."""
    monkeypatch.setattr(prover, "SECONDS", 1)


SLOW = ("transpose: exchanged_operands", "convolution: canonical_convolution")
"""Proofs whose wrong forms take z3 more than five seconds."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in sorted(PROVED)]
)
def test_wrong_forms_are_refuted(name: str) -> None:
    refuted = (text for text, kind in chain(verdicts(name), verdicts_of_results(name)) if kind == "refuted")
    least = 1 if name in WITHOUT_ATTRIBUTES else FEW
    found = list(islice(refuted, least))
    assert len(found) == least, found


UNSAFE = {"map: map_body"}
"""Rules that move regions: MLIR does not survive their wrong forms."""

WITHOUT_ATTRIBUTES = {
    "dynamic_broadcast_in_dim: static_broadcast", "dynamic_reshape: static_reshape", "reshape: reshape_of_reshape",
    "dynamic_reshape: identity_data_movement", "convert: identity_data_movement",
}  # fmt: skip
"""Rules with one way only to be wrong that is not rejected by MLIR."""
