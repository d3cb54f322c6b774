# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The corpus without its clients: names, processes, and what is worse in a table than in another."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpus import apart
from corpus.outcomes import Outcome, differences, read_table, table_text
from corpus.registry import entry_names
from corpus.streams import joined, load_compiler, run_stream
from corpus.trial import _difference
from shlo_disc.runtime.native_module import observe_programs

ROOT = Path(__file__).resolve().parents[3]
RIGHT = Outcome("optax", "adamw", "right", 2, 7, 2.94999, 1.8, "")


def test_entries_are_listed_without_their_clients() -> None:
    names = entry_names()
    assert len(names) == len(set(names)) >= 120 and ("diffrax", "tsit5") in names
    clients = {client for client, _ in names}
    assert all((ROOT / "corpus" / "clients" / f"{client}_.py").exists() for client in clients - {"torch"})
    pinned = (ROOT / "corpus" / "requirements.txt").read_text()
    assert "diffrax==" in pinned and not any(client in sys.modules for client in ("diffrax", "haiku"))


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    wrong = Outcome("diffrax", "euler", "wrong", 0, 0, 0.0, 0.0, 'call 0, "x": differs')
    (tmp_path / "table.csv").write_text(table_text([RIGHT, wrong]))
    assert read_table(tmp_path / "table.csv") == [wrong, replace(RIGHT, seconds=2.9)]
    assert read_table(tmp_path / "no.csv") == []


@pytest.mark.parametrize(
    ("change", "is_other", "is_worse"),
    [
        ({"seconds": 9.0}, False, False),
        ({"programs": 3}, True, True),
        ({"programs": 1}, True, False),
        ({"kernels": 9}, True, False),
        ({"outcome": "wrong", "note": "differs"}, True, True),
        ({"outcome": "refused", "note": "no"}, True, True),
        ({"program": "lion"}, True, False),
    ],
)
def test_what_is_worse(change: dict[str, Any], is_other: bool, is_worse: bool) -> None:
    other, worse = differences([RIGHT], [replace(RIGHT, **change)])
    assert (bool(other), bool(worse)) == (is_other, is_worse)


def test_what_was_not_right_may_become_wrong_only_once() -> None:
    refused = replace(RIGHT, outcome="refused")
    assert differences([refused], [replace(RIGHT, outcome="wrong")])[1]
    assert not differences([refused], [RIGHT])[1] and not differences([refused], [replace(RIGHT, outcome="error")])[1]


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (np.float32([1, 2]), np.float32([1, 2.0001]), ""),
        (np.float32([1, 2]), np.float32([1, 2.01]), "differs by 5.0e-03"),
        (np.float32([np.nan, np.inf]), np.float32([np.nan, np.inf]), ""),
        (np.float32([np.inf]), np.float32([-np.inf]), "other elements are finite"),
        (np.int32([1, 2]), np.int32([1, 3]), "1 elements differ"),
        (np.float32([1]), np.float64([1]), "float32[1], not float64[1]"),
        (np.ones((0, 3), np.float32), np.ones((0, 3), np.float32), ""),
    ],
)
def test_arrays_are_compared(ours: Any, theirs: Any, said: str) -> None:
    assert _difference(ours, theirs, None).startswith(said) and bool(_difference(ours, theirs, None)) == bool(said)


FORKED = """
import os, signal, sys, time
from corpus import apart

def run(client, name):
    if name == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "leaves":
        os._exit(3)
    if name == "sleeps":
        time.sleep(60)
    return {"said": name * int(client)} if name != "raises" else {}["no"]

for name in ("right", "dies", "leaves", "sleeps", "raises"):
    print(apart._forked("2", name, 1.0, run))
"""


def test_each_entry_has_a_process_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.stdout.splitlines() == [
        "{'said': 'rightright'}",
        "{'error': 'crash', 'note': 'exit status -9'}",
        "{'error': 'error', 'note': 'exit status 3'}",
        "{'error': 'timeout', 'note': 'more than 1 s'}",
        "{'error': 'error', 'note': \"KeyError: 'no'\"}",
    ], done.stderr


def test_a_client_that_is_not_installed_fails_with_all_its_entries() -> None:
    found = dict(apart.run_apart("corpus.trial", "mark: ", "no_such_client", ["a", "b"], 5.0, {}))
    assert set(found) == {"a", "b"} and all(outcome["error"] == "error" for outcome in found.values())


def test_a_stream_counts_sizes_and_programs() -> None:
    """An entry of JAX alone, on XLA's CPU: the turns are of each size."""
    load_compiler()
    try:
        said = run_stream("jax_scipy", "convolutions", (5, 8, 9))
    finally:
        observe_programs(False)
    assert len(said["turns"]) == 3 and all(clock > 0 and used >= 0 for clock, used in said["turns"])
    said = {"convolutions": said}
    stream = joined("jax_scipy", ["convolutions", "gone"], said, said, said)
    assert (stream.entries, stream.failed, len(stream.turns)) == (2, 1, 3)
    assert stream.ratio(0, 1) == stream.ratio(2) == 1 and stream.seconds[0] == stream.seconds[1]
