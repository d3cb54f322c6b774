# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The summary of a run: counts, failures by reason, failures by op."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from shlo_disc.tools.check.runner import Result

_MOST_FILES = 5
_NUMBERS = re.compile(r"-?\d[\w.+-]*")


def summary(results: Sequence[Result]) -> Iterator[str]:
    """Lines for people."""
    ran = [r for r in results if r.status != "skipped"]
    passed = sum(not r.failed for r in ran)
    rate = f" ({100 * passed / len(ran):.2f}%)" if ran else ""
    yield f"{passed} of {len(ran)} pass{rate}, {len(results) - len(ran)} skipped"
    symbolic = sum(r.symbols > 0 for r in ran)
    if symbolic:
        yield f"  {symbolic:5} ran with symbols"
    for status, count in Counter(r.status for r in results if r.status != "pass").most_common():
        yield f"  {count:5} {status}"
    yield from _by_reason(results)
    yield from _by_op(ran)


def _by_reason(results: Sequence[Result]) -> Iterator[str]:
    files: dict[tuple[str, str], list[str]] = {}
    for result in results:
        if result.status != "pass":
            for kind in dict.fromkeys(_kind(reason) for reason in result.reasons):
                files.setdefault((result.status, kind), []).append(_name(result))
    if files:
        yield "by reason"
    for (status, kind), names in sorted(files.items(), key=lambda item: -len(item[1])):
        shown = ", ".join(names[:_MOST_FILES]) + (", ..." if len(names) > _MOST_FILES else "")
        yield f"  {len(names):5} {status}: {kind}  [{shown}]"


def _kind(reason: str) -> str:
    """The reason without its numbers, so that alike ones are counted together."""
    check, _, rest = reason.partition(": ")
    if check.startswith(("expect_", "eq")):
        return f"{check}: {'another type' if 'elements, at' not in rest else 'elements differ'}"
    if reason.startswith(("stablehlo.", "func.")):
        return reason
    return re.sub(r"^argument \d+", "argument", reason) if "no lowering" in reason else _NUMBERS.sub("N", reason)[:160]


def _name(result: Result) -> str:
    file = result.file.rsplit("/", 1)[-1].removesuffix(".mlir")
    return file if result.case == "main" else f"{file}:{result.case}"


def _by_op(ran: Sequence[Result]) -> Iterator[str]:
    total: Counter[str] = Counter(op for r in ran for op in r.ops)
    failed: Counter[str] = Counter(op for r in ran if r.failed for op in r.ops)
    if failed:
        yield "by op: failed of cases that contain it"
    for op, count in failed.most_common():
        yield f"  {count:5} of {total[op]:5} {op}"


def as_json(results: Sequence[Result]) -> dict[str, Any]:
    """Every result, for other programs, and counts."""
    counts = {"pass": sum(r.status == "pass" for r in results), "failed": sum(r.failed for r in results)}
    return {**counts, "results": [asdict(result) for result in results]}


__all__ = ["as_json", "summary"]
